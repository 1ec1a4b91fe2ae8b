// SPDX-License-Identifier: BSD-2-Clause
// Raw tracepoints: the context is the array of the tracepoint's arguments, untyped.
#include <errno.h>
#include <linux/bpf.h>

#include "object/helper.h"
#include "object/instance.h"
#include "object/link.h"
#include "progtypes/progtypes_int.h"

static bool is_valid_access(const struct prog *prog, s32 off, u32 size, bool write, struct ctx_access *info)
{
	return progtype_plain_read(off, size, write, 0, RAW_TP_MAX_ARGS * 8, info);
}

static int attach(struct prog *prog, const char *tp_name, struct obj *target, u64 cookie, struct link **ret_link)
{
	struct env_hook *hook;

	if (!tp_name)
		return -EINVAL;
	hook = env_hook_find(prog->obj.inlay->env, tp_name);
	if (!hook)
		return -ENOENT;
	/* reads past the tracepoint's arguments are refused here, as Linux does */
	if (prog->max_ctx_offset > env_hook_nr_args(hook) * sizeof(u64))
		return -EINVAL;
	return link_attach_hook(prog, BPF_LINK_TYPE_RAW_TRACEPOINT, 0, hook, cookie, ret_link);
}

const struct prog_type_ops prog_type_raw_tracepoint = {
	.name = "raw_tracepoint",
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.helper_groups = HELPERS_BASE | HELPERS_TRACING,
	.is_valid_access = is_valid_access,
	.ret_range = progtype_any_return,
	.ctx_struct = "bpf_raw_tracepoint_args",
	.attach = attach,
	.test_run = progtype_raw_tp_test_run,
};
