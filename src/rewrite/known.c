// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is known before the program runs: loads from constant maps (`const volatile` settings, which the loader wrote and
 * froze) become the numbers they read; numbers go into the instructions that read them, where a division by one costs a
 * multiplication; what only numbers go into becomes its result; jumps of which the outcome is known become plain.
 *
 * Linux's verifier uses the same knowledge to remove branches (rw_pass_dead_branches) and leaves the loads.
 */
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

static bool is_known(const struct known *k, u8 reg)
{
	return k->regs & 1u << reg;
}

/* Sets reg to value in one slot; false: that takes two. */
static bool set_reg(u8 reg, u64 value, struct bpf_insn *ret)
{
	if ((s64)value == (s32)value)
		*ret = ISA_MOV(reg, (s32)value);
	else if (value == (u32)value)
		*ret = isa_encode(ISA_MOV32_K, reg, 0, 0, (s32)value);
	else
		return false;
	return true;
}

/* The immediate form of an operation on src, where there is one: same opcode but for the source bit. */
static bool take_operand(struct bpf_insn *insn, int op, u64 src)
{
	u8 class = BPF_CLASS(insn->code), what = BPF_OP(insn->code);
	bool wide = class == BPF_ALU64 || class == BPF_JMP;

	if (isa_info[op].kind != ISA_K_ALU && isa_info[op].kind != ISA_K_JMP)
		return false;
	if (!isa_is_reg_form(insn->code) || (wide && (s64)src != (s32)src))
		return false;
	if (isa_info[op].kind == ISA_K_ALU) {
		if ((what == BPF_DIV || what == BPF_MOD) && !(wide ? src : (u32)src))
			return false; /* allowed of registers only */
		if (what == BPF_LSH || what == BPF_RSH || what == BPF_ARSH)
			src &= wide ? 63 : 31; /* as the operation does; a number beyond is no valid shift */
	}
	insn->code &= (u8)~BPF_X;
	insn->src_reg = 0;
	insn->imm = (s32)src;
	return true;
}

/* A store of a number that fits the instruction. */
static void take_stored(struct bpf_insn *insn, int op, u64 src)
{
	if (isa_info[op].kind != ISA_K_STX || (isa_info[op].width == 8 && (s64)src != (s32)src))
		return;
	insn->code = BPF_ST | BPF_MEM | BPF_SIZE(insn->code);
	insn->src_reg = 0;
	insn->imm = (s32)src;
}

/* The result, if all that goes into it is known. */
static bool result_of(const struct known *k, const struct bpf_insn *insn, int op, u64 *ret)
{
	bool reads_dst = isa_info[op].kind != ISA_K_MOV, reg_form = isa_is_reg_form(insn->code);

	switch (isa_info[op].kind) {
	case ISA_K_MOV:
	case ISA_K_ALU:
		if ((reads_dst && !is_known(k, insn->dst_reg)) || (reg_form && !is_known(k, insn->src_reg)))
			return false;
		*ret = isa_eval_alu(op, reads_dst ? k->v[insn->dst_reg] : 0,
				    reg_form ? k->v[insn->src_reg] : (u64)(s64)isa_imm(insn));
		return true;
	case ISA_K_NEG:
	case ISA_K_END:
		if (!is_known(k, insn->dst_reg))
			return false;
		*ret = isa_eval_alu(op, k->v[insn->dst_reg], 0);
		return true;
	case ISA_K_LD_IMM64:
		*ret = isa_imm64(insn);
		return op == ISA_LD_IMM64;
	}
	return false;
}

static void fold(struct prog *prog, struct known *k, u32 pc, int op)
{
	struct bpf_insn *insn = &prog->insns[pc];
	u8 dst = insn->dst_reg;
	u64 value;

	if (isa_info[op].kind == ISA_K_JMP && is_known(k, dst) && (!isa_is_reg_form(insn->code) || is_known(k, insn->src_reg))) {
		u64 b = isa_is_reg_form(insn->code) ? k->v[insn->src_reg] : (u64)(s64)isa_imm(insn);

		*insn = ISA_GOTO(isa_eval_jmp(op, k->v[dst], b) ? insn->off : 0);
		return;
	}
	if (result_of(k, insn, op, &value)) {
		if (isa_slots(insn->code) == 1)
			set_reg(dst, value, insn);
		k->regs |= 1u << dst;
		k->v[dst] = value;
		return;
	}
	if (!prog->facts[pc].fastcall_pattern && insn->src_reg < ISA_NR_REGS && is_known(k, insn->src_reg)) {
		take_stored(insn, op, k->v[insn->src_reg]);
		take_operand(insn, op, k->v[insn->src_reg]);
	}
	k->regs &= ~rw_regs_written(prog, pc);
}

int rw_fold_known(struct prog *prog)
{
	u8 *targets = rw_targets(prog);
	struct known known = { 0 };
	u32 pc;
	int op;

	if (!targets)
		return -ENOMEM;
	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		if (targets[pc])
			known.regs = 0;
		op = isa_decode(&prog->insns[pc]);
		if (op < 0)
			known.regs = 0;
		else
			fold(prog, &known, pc, op);
	}
	free(targets);
	return 0;
}

/* Needs load_known, imm64. Leaves no load of which the result is known. */
int rw_pass_known(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	struct rw_edits edits = { 0 };
	bool any = false;
	u32 pc;
	int err;

	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		struct bpf_insn *insn = &prog->insns[pc], pair[2] = { { 0 } };
		struct insn_fact *fact = &prog->facts[pc];
		int op = isa_decode(insn);

		if (!fact->load_known || op < 0 || isa_info[op].kind != ISA_K_LDX)
			continue;
		any = true;
		fact->mem = INSN_MEM_NONE;
		if (set_reg(insn->dst_reg, fact->imm64, insn))
			continue;
		pair[0] = isa_encode(ISA_LD_IMM64, insn->dst_reg, 0, 0, 0);
		isa_set_imm64(pair, fact->imm64);
		rw_edit(&edits, pc, 1, pair, 2, 0);
	}
	err = rw_patch(prog, &edits, log);
	return err || !any ? err : rw_fold_known(prog);
}
