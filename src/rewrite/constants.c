// SPDX-License-Identifier: BSD-2-Clause
// Constants: descriptors of maps become their ids, addresses of kernel objects numbers, hidden arguments are loaded.
#include <errno.h>

#include "object/helper.h"
#include "object/map.h"
#include "rewrite/rewrite_int.h"

/* What Linux loads in r5 for a helper that creates storage: how it may allocate. */
#define RW_GFP_ATOMIC 0x820
#define RW_GFP_KERNEL 0xcc0

/*
 * Needs map, imm64. Leaves loads as Linux shows them: a map or value by map id, an address as a number, a function by
 * its distance. What a load gives at run time stays in the fact.
 */
int rw_pass_constants(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	u32 pc;

	for (pc = 0; pc + 1 < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		struct bpf_insn *insn = &prog->insns[pc];
		struct insn_fact *fact = &prog->facts[pc];

		if (isa_slots(insn->code) != 2 || !insn->src_reg || insn->src_reg == BPF_PSEUDO_FUNC)
			continue;
		switch (insn->src_reg) {
		case BPF_PSEUDO_MAP_FD:
		case BPF_PSEUDO_MAP_IDX:
			insn->src_reg = BPF_PSEUDO_MAP_FD;
			insn[1].imm = 0;
			break;
		case BPF_PSEUDO_MAP_VALUE:
		case BPF_PSEUDO_MAP_IDX_VALUE:
			insn->src_reg = BPF_PSEUDO_MAP_VALUE;
			break;
		default:
			insn->src_reg = 0;
			isa_set_imm64(insn, fact->imm64);
			continue;
		}
		if (!fact->map) {
			if (log)
				strbuf_printf(log, "insn %u loads a map that was not resolved\n", pc);
			return -EINVAL;
		}
		insn->imm = fact->map->obj.id;
	}
	return 0;
}

/* Needs helper, storage_atomic. Leaves calls that create storage with r5 loaded before. */
int rw_pass_hidden_args(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	struct rw_edits edits = { 0 };
	u32 pc;

	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		const struct insn_fact *fact = &prog->facts[pc];
		struct bpf_insn seq[2];

		if (!fact->helper || !(fact->helper->flags & HELPER_STORAGE_GET))
			continue;
		seq[0] = ISA_MOV(5, fact->storage_atomic ? RW_GFP_ATOMIC : RW_GFP_KERNEL);
		seq[1] = prog->insns[pc];
		rw_edit(&edits, pc, 1, seq, 2, 1);
	}
	return rw_patch(prog, &edits, log);
}
