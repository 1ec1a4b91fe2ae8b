// SPDX-License-Identifier: BSD-2-Clause
// bpf_loop.
#include <errno.h>

#include "helpers/helpers_int.h"
#include "object/prog.h"

#define LOOP_MAX (1u << 23) /* Linux's BPF_MAX_LOOPS */

static u64 loop(u64 nr, u64 func, u64 ctx, u64 flags, u64 r5)
{
	struct bpf_func *cb = (struct bpf_func *)func;
	u32 i, n = nr;

	if (flags)
		return -EINVAL;
	if (n > LOOP_MAX)
		return -E2BIG;
	for (i = 0; i < n; i++)
		if (cb->call(cb, i, ctx, 0, 0, 0))
			return i + 1;
	return i;
}

static const struct callback_desc loop_cb = {
	.func_arg = 1,
	.ctx_arg = 2,
	.calls_arg = 1,
	.reg = { CB_SCALAR, CB_CTX_ARG },
	.ret_min = 0,
	.ret_max = 1,
};

const struct helper_desc helper_loop = {
	HELPER_IS(loop, 181),
	.fn = loop,
	.flags = HELPER_SYNC_CALLBACK | HELPER_LOOP,
	.ret = RET_INTEGER,
	.arg = { ARG_ANYTHING, ARG_PTR_TO_FUNC, ARG_PTR_TO_STACK | PTR_MAYBE_NULL, ARG_ANYTHING },
	.cb = &loop_cb,
};
