// SPDX-License-Identifier: BSD-2-Clause
/*
 * BPF has two-address arithmetic only, so compilers write
 *   a rotation	as	e = s; e >>= k; s <<= W - k; s |= e		(and other orders)
 *   an address	as	d = s; d <<= 3; d += t; d += 8; d = *(d + off)
 * What a pattern leaves behind in its scratch registers is wanted only where something may still read it: jit_dead().
 *
 * To add one: a function that looks at the text from pc on, asks jit_joins() of every further instruction, and says how
 * many slots it takes; targets call it from the row of the first instruction.
 */
#include "exec/jit/match.h"

#define DEAD_LOOK 24 /* instructions, of all paths together */

static bool is_dead(const struct jit *j, const struct jit_sub *sub, u32 pc, u8 reg, u32 *left)
{
	while (pc < sub->end && *left) {
		const struct bpf_insn *insn = &j->text->insns[pc];
		enum isa_op op = j->insn[pc].op;

		--*left;
		switch (isa_info[op].kind) {
		case ISA_K_MAY_GOTO:
			return false;
		case ISA_K_JMP:
			if (isa_regs_read(op, insn) & 1 << reg || !is_dead(j, sub, pc + 1, reg, left))
				return false;
			pc += isa_jump_off(insn);
			break;
		case ISA_K_JA:
			pc += isa_jump_off(insn);
			break;
		case ISA_K_EXIT:
			return reg != 0;
		case ISA_K_CALL:
			if (reg == 0 || reg == ISA_REG_AX)
				return true;
			if (reg <= 5)
				return false;
			break;
		default:
			if (isa_regs_read(op, insn) & 1 << reg)
				return false;
			if (isa_regs_written(op, insn) & 1 << reg)
				return true;
		}
		pc += isa_slots(insn->code);
	}
	return false;
}

bool jit_dead(const struct jit *j, const struct jit_sub *sub, u32 pc, u8 reg)
{
	u32 left = DEAD_LOOK;

	return is_dead(j, sub, pc, reg, &left);
}

/* ---- rotations ---- */

static bool is_half(const struct jit *j, const struct jit_sub *sub, u32 pc, u8 w, struct jit_half *h)
{
	const struct bpf_insn *insn = &j->text->insns[pc];
	enum isa_op op;

	if (!jit_joins(j, sub, pc))
		return false;
	op = j->insn[pc].op;
	h->left = op == (w == 8 ? ISA_LSH64_K : ISA_LSH32_K);
	if (!h->left && op != (w == 8 ? ISA_RSH64_K : ISA_RSH32_K))
		return false;
	h->reg = insn->dst_reg;
	h->n = insn->imm & (w * 8 - 1);
	return h->n;
}

static bool is_joined(const struct jit *j, const struct jit_sub *sub, u32 pc, u8 w)
{
	enum isa_op op;

	if (!jit_joins(j, sub, pc))
		return false;
	op = j->insn[pc].op;
	return w == 8 ? op == ISA_OR64_X || op == ISA_XOR64_X || op == ISA_ADD64_X :
			op == ISA_OR32_X || op == ISA_XOR32_X || op == ISA_ADD32_X;
}

/* e = s; e <<= a; then s >>= W - a; s |= e or e |= s; or d = s; d >>= W - a; d |= e or e |= d */
bool jit_find_rotation(const struct jit *j, const struct jit_sub *sub, u32 pc, u8 w, struct jit_rotation *ret_rotation)
{
	const struct bpf_insn *insns = j->text->insns, *join;
	u8 s = insns[pc].src_reg;
	enum isa_op mov = w == 8 ? ISA_MOV64_X : ISA_MOV32_X;
	struct jit_half e, o;
	u32 at = pc + 2;

	if (insns[pc].dst_reg == s || !is_half(j, sub, pc + 1, w, &e) || e.reg != insns[pc].dst_reg)
		return false;
	if (jit_joins(j, sub, at) && j->insn[at].op == mov && insns[at].src_reg == s && insns[at].dst_reg != s &&
	    insns[at].dst_reg != e.reg) {
		if (!is_half(j, sub, at + 1, w, &o) || o.reg != insns[at].dst_reg)
			return false;
		at += 2;
	} else {
		if (!is_half(j, sub, at, w, &o) || o.reg != s)
			return false;
		at++;
	}
	if (o.left == e.left || o.n + e.n != w * 8 || !is_joined(j, sub, at, w))
		return false;
	join = &insns[at];
	if (join->dst_reg == e.reg && join->src_reg == o.reg)
		*ret_rotation = (struct jit_rotation){ s, e, o, at + 1 - pc };
	else if (join->dst_reg == o.reg && join->src_reg == e.reg)
		*ret_rotation = (struct jit_rotation){ s, o, e, at + 1 - pc };
	else
		return false;
	return true;
}

/* ---- addresses ---- */

/* The instruction changes d by something the address form has room for. */
static bool add_term(const struct bpf_insn *insn, enum isa_op op, u8 d, struct jit_address *sum)
{
	if (insn->dst_reg != d)
		return false;
	switch ((int)op) {
	case ISA_ADD64_X:
		if (insn->src_reg == d)
			return false;
		if (sum->base == JIT_NO_REG)
			sum->base = insn->src_reg;
		else if (sum->index == JIT_NO_REG)
			sum->index = insn->src_reg;
		else
			return false;
		return true;
	case ISA_ADD64_K:
		return !__builtin_add_overflow(sum->disp, insn->imm, &sum->disp);
	case ISA_LSH64_K:
		if (sum->index != JIT_NO_REG || sum->disp || insn->imm < 1 || insn->imm > 3)
			return false;
		sum->index = sum->base;
		sum->base = JIT_NO_REG;
		sum->scale = insn->imm;
		return true;
	}
	return false;
}

u32 jit_find_address(const struct jit *j, const struct jit_sub *sub, u32 pc, struct jit_address *ret_address)
{
	const struct bpf_insn *insns = j->text->insns;
	u8 d = insns[pc].dst_reg;
	struct jit_address sum = { .base = d, .index = JIT_NO_REG }, longer;
	u32 at = pc;

	if (j->insn[at].op == ISA_MOV64_X) {
		sum.base = insns[at].src_reg;
		if (sum.base == d)
			return pc;
		at++;
	}
	for (; at == pc || jit_joins(j, sub, at); at++) {
		longer = sum;
		if (!add_term(&insns[at], j->insn[at].op, d, &longer))
			break;
		sum = longer;
	}
	*ret_address = sum;
	return at;
}
