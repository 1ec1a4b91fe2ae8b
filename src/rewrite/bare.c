// SPDX-License-Identifier: BSD-2-Clause
// Facts for programs nobody verified: what their text alone says.
#include <errno.h>
#include <stdlib.h>

#include "object/helper.h"
#include "rewrite/rewrite_int.h"

static int refuse(struct strbuf *log, u32 pc, const char *why)
{
	if (log)
		strbuf_printf(log, "insn %u: %s\n", pc, why);
	return -EINVAL;
}

/* starts[pc]: 1 an instruction begins here, 2 a subprogram does. */
static int find_starts(const struct prog *prog, u8 *starts, struct strbuf *log)
{
	char msg[ISA_MSG_MAX];
	u32 pc;
	int n, op;

	for (pc = 0; pc < prog->nr_insns; pc += n) {
		const struct bpf_insn *insn = &prog->insns[pc];

		n = isa_check_shape(insn, prog->nr_insns - pc, msg);
		if (n < 0)
			return refuse(log, pc, msg);
		op = isa_check_insn(insn, msg);
		if (op < 0)
			return refuse(log, pc, msg);
		if (insn->dst_reg > ISA_REG_FP || (isa_info[op].fx & ISA_FX_SR && insn->src_reg > ISA_REG_FP))
			return refuse(log, pc, "no such register");
		if (isa_regs_written(op, insn) & 1 << ISA_REG_FP)
			return refuse(log, pc, "frame pointer is read only");
		starts[pc] |= 1;
	}
	return 0;
}

static int check_targets(const struct prog *prog, u8 *starts, struct strbuf *log)
{
	u32 pc;
	s32 dist;

	for (pc = 0; pc < prog->nr_insns; pc++) {
		s64 target;

		if (!(starts[pc] & 1) || !rw_distance(&prog->insns[pc], &dist))
			continue;
		target = (s64)pc + 1 + dist;
		if (target < 0 || target >= prog->nr_insns || !(starts[target] & 1))
			return refuse(log, pc, "leads nowhere");
		if (prog->insns[pc].code == (BPF_JMP | BPF_CALL) || isa_slots(prog->insns[pc].code) == 2)
			starts[target] |= 2;
	}
	return 0;
}

/* Each subprogram ends in a jump or exit, and no jump leaves it: control cannot run into the next one. */
static int check_ends(const struct prog *prog, const u8 *starts, struct strbuf *log)
{
	u32 pc, start = 0, end, last = 0;
	s32 dist;

	for (pc = 0; pc < prog->nr_insns; pc = end) {
		start = pc;
		for (end = pc + 1; end < prog->nr_insns && !(starts[end] & 2); end++)
			;
		for (; pc < end; pc++) {
			const struct bpf_insn *insn = &prog->insns[pc];

			if (!(starts[pc] & 1))
				continue;
			last = pc;
			if (insn->code == (BPF_JMP | BPF_CALL) || isa_slots(insn->code) == 2 ||
			    !rw_distance(insn, &dist))
				continue;
			if ((s64)pc + 1 + dist < start || (s64)pc + 1 + dist >= end)
				return refuse(log, pc, "jumps out of its function");
		}
		if (prog->insns[last].code != (BPF_JMP | BPF_EXIT) && prog->insns[last].code != (BPF_JMP | BPF_JA) &&
		    prog->insns[last].code != (BPF_JMP32 | BPF_JA))
			return refuse(log, last, "last insn is not an exit or jmp");
	}
	return 0;
}

static u32 subprog_at(const struct prog *prog, u32 pc)
{
	u32 i;

	for (i = prog->nr_subprogs - 1; i > 0 && prog->subprogs[i].start > pc; i--)
		;
	return i;
}

/* Nobody says how much of its frame a function uses, or in which order: all of it, if it names it at all. */
static void fill_frame(struct prog *prog, u32 subprog)
{
	u32 pc, end = subprog + 1 < prog->nr_subprogs ? prog->subprogs[subprog + 1].start : prog->nr_insns;

	for (pc = prog->subprogs[subprog].start; pc < end; pc += isa_slots(prog->insns[pc].code)) {
		int op = isa_decode(&prog->insns[pc]);

		if (!(isa_regs_read(op, &prog->insns[pc]) & 1u << ISA_REG_FP))
			continue;
		prog->subprogs[subprog].stack_depth = PROG_STACK;
		prog->subprogs[subprog].reads_stale = true;
		return;
	}
}

static void fill(struct prog *prog, const u8 *starts)
{
	u32 pc;
	s32 dist;

	for (pc = 0; pc < prog->nr_insns; pc++)
		if (!pc || starts[pc] & 2)
			prog->subprogs[prog->nr_subprogs++] = (struct prog_subprog){ .start = pc, .func_info = -1 };
	for (pc = 0; pc < prog->nr_subprogs; pc++)
		fill_frame(prog, pc);
	for (pc = 0; pc < prog->nr_insns; pc++) {
		const struct bpf_insn *insn = &prog->insns[pc];
		struct insn_fact *fact = &prog->facts[pc];

		*fact = (struct insn_fact){ .seen = 1, .orig = pc, .jump_taken = 1, .jump_fallen = 1 };
		if (!(starts[pc] & 1))
			continue;
		if (isa_info[isa_decode(insn)].fx & (ISA_FX_MR | ISA_FX_MW))
			fact->mem = INSN_MEM_PLAIN;
		if (isa_slots(insn->code) == 2)
			fact->imm64 = isa_imm64(insn);
		if (insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg)
			fact->helper = helper_by_id(insn->imm);
		if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL)
			fact->call_subprog = 1;
		if ((fact->call_subprog || isa_slots(insn->code) == 2) && rw_distance(insn, &dist))
			fact->subprog = subprog_at(prog, pc + 1 + dist);
	}
}

int rw_assume(struct prog *prog, struct strbuf *log)
{
	u8 *starts;
	u32 pc, nr_subs = 1;
	int err;

	if (!prog->nr_insns)
		return refuse(log, 0, "no instructions");
	starts = calloc(prog->nr_insns, 1);
	if (!starts)
		return -ENOMEM;
	err = find_starts(prog, starts, log);
	if (!err)
		err = check_targets(prog, starts, log);
	if (!err)
		err = check_ends(prog, starts, log);
	if (err)
		goto out;
	for (pc = 1; pc < prog->nr_insns; pc++)
		nr_subs += starts[pc] >> 1;
	free(prog->facts);
	free(prog->subprogs);
	prog->nr_subprogs = 0;
	prog->facts = calloc(prog->nr_insns, sizeof(*prog->facts));
	prog->subprogs = calloc(nr_subs, sizeof(*prog->subprogs));
	if (!prog->facts || !prog->subprogs) {
		err = -ENOMEM;
		goto out;
	}
	fill(prog, starts);
out:
	free(starts);
	return err;
}
