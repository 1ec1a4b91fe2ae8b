// SPDX-License-Identifier: BSD-2-Clause
/*
 * What no path reaches goes, as Linux does it for privileged programs, with the same text as result: first conditional
 * jumps that always or never jump become plain ones, then dead instructions are removed, then jumps to the next
 * instruction. Each step looks at the text once, in ascending order, as Linux's do, so that what it leaves is the same.
 */
#include <errno.h>
#include <stdlib.h>

#include "rewrite/rewrite_int.h"

int rw_pass_dead_branches(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	u32 pc;
	int op;

	for (pc = 0; pc + 1 < prog->nr_insns; pc++) {
		struct bpf_insn *insn = &prog->insns[pc];
		s64 target = (s64)pc + 1 + insn->off;
		s16 off;

		op = isa_decode(insn);
		if (op < 0 || (isa_info[op].kind != ISA_K_JMP && isa_info[op].kind != ISA_K_MAY_GOTO))
			continue;
		if (!prog->facts[pc + 1].seen)
			off = insn->off;
		else if (target >= 0 && target < prog->nr_insns && !prog->facts[target].seen)
			off = 0;
		else
			continue;
		*insn = ISA_GOTO(off);
	}
	return 0;
}

int rw_pass_dead_code(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	struct rw_edits edits = { 0 };
	u32 pc, end;

	/* a constant's second slot lives with the first */
	for (pc = 0; pc + 1 < prog->nr_insns; pc++)
		if (isa_slots(prog->insns[pc].code) == 2)
			prog->facts[pc + 1].seen = prog->facts[pc].seen;
	for (pc = 0; pc < prog->nr_insns; pc = end) {
		for (end = pc; end < prog->nr_insns && !prog->facts[end].seen; end++)
			;
		if (end > pc)
			rw_edit(&edits, pc, end - pc, NULL, 0, RW_NO_MAIN);
		else
			end++;
	}
	return rw_patch(prog, &edits, log);
}

/* Does it lead to what follows it, if the gone slots after it are removed? */
static bool jumps_nowhere(const struct bpf_insn *insn, u32 gone)
{
	if (insn->code != (BPF_JMP | BPF_JA) && insn->code != (BPF_JMP | BPF_JCOND))
		return false;
	return insn->off >= 0 && (u32)insn->off <= gone && !insn->src_reg && !insn->dst_reg && !insn->imm;
}

/*
 * Removing a may_goto that leads nowhere makes Linux look again at the instruction before it, which may lead nowhere
 * only now. gone: a flag a slot; pc: the may_goto, or other instruction, just removed.
 */
static void remove_backwards(const struct prog *prog, u8 *gone, u32 pc)
{
	u32 end = pc + 1, prev;

	while (prog->insns[pc].code == (BPF_JMP | BPF_JCOND)) {
		for (prev = pc; prev > 0 && gone[prev - 1]; prev--)
			;
		if (!prev)
			return;
		prev--;
		if (!jumps_nowhere(&prog->insns[prev], end - prev - 1))
			return;
		gone[prev] = 1;
		pc = prev;
	}
}

int rw_pass_nops(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	u8 *gone = calloc(prog->nr_insns + 1, 1);
	struct rw_edits edits = { 0 };
	u32 pc;

	if (!gone)
		return -ENOMEM;
	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		if (!jumps_nowhere(&prog->insns[pc], 0))
			continue;
		gone[pc] = 1;
		remove_backwards(prog, gone, pc);
	}
	for (pc = 0; pc < prog->nr_insns; pc++)
		if (gone[pc])
			rw_edit(&edits, pc, 1, NULL, 0, RW_NO_MAIN);
	free(gone);
	return rw_patch(prog, &edits, log);
}
