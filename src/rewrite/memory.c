// SPDX-License-Identifier: BSD-2-Clause
// Memory accesses that are not what they seem: the context as its type keeps it, and memory that may not be there.
#include <errno.h>

#include "object/progtype.h"
#include "rewrite/rewrite_int.h"

#define CTX_MAX_INSNS 8 /* convert_ctx()'s contract */

static bool is_access(int op)
{
	return op >= 0 && isa_info[op].fx & (ISA_FX_MR | ISA_FX_MW) && isa_info[op].kind != ISA_K_LD_ABS &&
	       isa_info[op].kind != ISA_K_LD_IND;
}

/* Needs mem == INSN_MEM_CTX; leaves the type's own loads and stores, which are plain. */
int rw_pass_ctx(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	struct bpf_insn out[CTX_MAX_INSNS];
	struct rw_edits edits = { 0 };
	u32 pc;
	int n;

	if (!prog->ops || !prog->ops->convert_ctx)
		return 0;
	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		if (prog->facts[pc].mem != INSN_MEM_CTX || !is_access(isa_decode(&prog->insns[pc])))
			continue;
		n = prog->ops->convert_ctx(prog, &prog->insns[pc], out);
		if (n <= 0 || n > CTX_MAX_INSNS) {
			if (log)
				strbuf_puts(log, "bpf verifier is misconfigured\n");
			rw_edits_drop(&edits);
			return n < 0 ? n : -EINVAL;
		}
		rw_edit(&edits, pc, 1, out, n, RW_NO_MAIN);
	}
	return rw_patch(prog, &edits, log);
}

/* Needs mem == INSN_MEM_PROBE; leaves loads that read zero where a fault would be. */
int rw_pass_memory(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	u32 pc;

	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		struct bpf_insn *insn = &prog->insns[pc];
		int op = isa_decode(insn);

		if (prog->facts[pc].mem != INSN_MEM_PROBE || op < 0 || isa_info[op].internal)
			continue;
		if (isa_info[op].kind != ISA_K_LDX) {
			if (!is_access(op))
				continue;
			if (log)
				strbuf_printf(log, "insn %u writes through a pointer that may be stale\n", pc);
			return -EINVAL;
		}
		insn->code = BPF_LDX | BPF_SIZE(insn->code) |
			     (BPF_MODE(insn->code) == BPF_MEMSX ? ISA_PROBE_MEMSX : ISA_PROBE_MEM);
	}
	return 0;
}
