// SPDX-License-Identifier: BSD-2-Clause
// Classic tracepoints: the context is the event's record. For judging; the machine has no such records to run them on.
#include <linux/bpf.h>

#include "object/helper.h"
#include "progtypes/progtypes_int.h"

#define RECORD_MAX 8192 /* PERF_MAX_TRACE_SIZE */

static bool is_valid_access(const struct prog *prog, s32 off, u32 size, bool write, struct ctx_access *info)
{
	/* the first word is the kernel's */
	return progtype_plain_read(off, size, write, sizeof(u64), RECORD_MAX, info);
}

const struct prog_type_ops prog_type_tracepoint = {
	.name = "tracepoint",
	.type = BPF_PROG_TYPE_TRACEPOINT,
	.helper_groups = HELPERS_BASE | HELPERS_TRACING,
	.kfunc_groups = KFUNCS_GENERIC,
	.is_valid_access = is_valid_access,
	.ret_range = progtype_any_return,
};
