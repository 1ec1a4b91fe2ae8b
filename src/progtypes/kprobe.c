// SPDX-License-Identifier: BSD-2-Clause
// kprobes: the context is struct pt_regs. For judging; there is no kernel function to probe in user space.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <sys/user.h>

#include "object/helper.h"
#include "progtypes/progtypes_int.h"

#define PT_REGS_SIZE (21 * 8) /* x86-64 */

static bool is_valid_access(const struct prog *prog, s32 off, u32 size, bool write, struct ctx_access *info)
{
	/* the last register would be read past the end by a wide load that starts inside */
	return progtype_plain_read(off, size, write, 0, PT_REGS_SIZE, info) && off + size <= PT_REGS_SIZE;
}

const struct prog_type_ops prog_type_kprobe = {
	.name = "kprobe",
	.type = BPF_PROG_TYPE_KPROBE,
	.helper_groups = HELPERS_BASE | HELPERS_TRACING,
	.is_valid_access = is_valid_access,
	.ret_range = progtype_any_return,
	.ctx_struct = "pt_regs",
};
