// SPDX-License-Identifier: BSD-2-Clause
// What inlining leaves over: registers set for a call that is no more, jumps of which the outcome is known, or to what
// follows.
#include <errno.h>
#include <stdlib.h>

#include "isa/eval.h"
#include "rewrite/flow.h"
#include "rewrite/rewrite_int.h"

/* Constants in registers, along a straight line. */
struct known {
	u16 regs; /* bit n: rn is v[n] */
	u64 v[ISA_NR_REGS];
};

static void learn(struct known *k, const struct prog *prog, u32 pc, int op)
{
	const struct bpf_insn *insn = &prog->insns[pc];
	u8 dst = insn->dst_reg, src = insn->src_reg;

	if (op == ISA_MOV64_X && k->regs & 1u << src) {
		k->v[dst] = k->v[src];
		k->regs |= 1u << dst;
		return;
	}
	k->regs &= ~rw_regs_written(prog, pc);
	if (op == ISA_MOV64_K)
		k->v[dst] = isa_imm(insn);
	else if (op == ISA_MOV32_K)
		k->v[dst] = (u32)insn->imm;
	else if (op == ISA_LD_IMM64)
		k->v[dst] = isa_imm64(insn);
	else
		return;
	k->regs |= 1u << dst;
}

/* Jumps that compare a constant, such as the address a lookup became: always taken become plain, never taken lead on. */
static int settle_jumps(struct prog *prog)
{
	u8 *targets = rw_targets(prog);
	struct known known = { 0 };
	u32 pc;

	if (!targets)
		return -ENOMEM;
	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		struct bpf_insn *insn = &prog->insns[pc];
		int op = isa_decode(insn);

		if (targets[pc])
			known.regs = 0;
		if (op < 0)
			continue;
		if (isa_info[op].kind == ISA_K_JMP && !isa_is_reg_form(insn->code) && known.regs & 1u << insn->dst_reg)
			*insn = ISA_GOTO(isa_eval_jmp(op, known.v[insn->dst_reg], isa_imm(insn)) ? insn->off : 0);
		else
			learn(&known, prog, pc, op);
	}
	free(targets);
	return 0;
}

/* Needs helper (what a call reads). Leaves no computation whose result nobody reads, and no jump whose outcome is known. */
int rw_pass_unused(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	struct rw_edits edits = { 0 };
	u32 pc, slots, i;
	bool any = false;
	u16 *live;
	int err;

	for (i = 0; i < prog->nr_inlined; i++)
		any |= prog->inlined[i].done;
	if (!any)
		return 0;
	live = calloc(prog->nr_insns + 1, sizeof(*live));
	if (!live)
		return -ENOMEM;
	err = settle_jumps(prog);
	if (!err)
		err = rw_live_after(prog, 0, prog->nr_insns, live);
	for (pc = 0; !err && pc < prog->nr_insns; pc += slots) {
		const struct bpf_insn *insn = &prog->insns[pc];

		slots = isa_slots(insn->code);
		if (insn->code == (BPF_JMP | BPF_JA) ? !insn->off :
		    rw_only_computes(prog, pc) && !(rw_regs_written(prog, pc) & live[pc]))
			rw_edit(&edits, pc, slots, NULL, 0, RW_NO_MAIN);
	}
	free(live);
	if (!err)
		return rw_patch(prog, &edits, log);
	rw_edits_drop(&edits);
	return err;
}
