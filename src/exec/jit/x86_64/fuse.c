// SPDX-License-Identifier: BSD-2-Clause
/*
 * Several BPF instructions as one of the machine's. BPF has two-address arithmetic only, so compilers write
 *   a rotation	as	e = s; e >>= k; s <<= W - k; s |= e		(and other orders)	-> rol
 *   an address	as	d = s; d <<= 3; d += t; d += 8; d = *(d + off)			-> lea, or the load itself
 * What a pattern leaves behind in its scratch registers is computed only where something may still read it.
 *
 * To add one: a function that looks at the text from pc on, asks x86_joins() of every further instruction, and returns
 * the slots it has done; its call stands in the row of the first instruction.
 */
#include "exec/jit/x86_64/x86_int.h"

#define DEAD_LOOK 24 /* instructions */

bool jit_x86_dead(const struct x86 *c, u32 pc, u8 reg)
{
	u32 n;

	for (n = 0; n < DEAD_LOOK && pc < c->sub->end; n++) {
		const struct bpf_insn *insn = &c->insns[pc];
		enum isa_op op = c->in[pc].op;

		switch (isa_info[op].kind) {
		case ISA_K_JMP:
		case ISA_K_JA:
		case ISA_K_MAY_GOTO:
			return false;
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

/* ---- rotations ---- */

struct half { /* reg shifted by n */
	u8 reg, n;
	enum x86_shift op;
};

static bool is_half(const struct x86 *c, u32 pc, u8 w, struct half *h)
{
	const struct bpf_insn *insn = &c->insns[pc];
	enum isa_op op;

	if (!x86_joins(c, pc))
		return false;
	op = c->in[pc].op;
	if (op == (w == 8 ? ISA_LSH64_K : ISA_LSH32_K))
		h->op = X86_SHL;
	else if (op == (w == 8 ? ISA_RSH64_K : ISA_RSH32_K))
		h->op = X86_SHR;
	else
		return false;
	h->reg = insn->dst_reg;
	h->n = insn->imm & (w * 8 - 1);
	return h->n;
}

static bool is_joined(const struct x86 *c, u32 pc, u8 w)
{
	enum isa_op op;

	if (!x86_joins(c, pc))
		return false;
	op = c->in[pc].op;
	return w == 8 ? op == ISA_OR64_X || op == ISA_XOR64_X || op == ISA_ADD64_X :
			op == ISA_OR32_X || op == ISA_XOR32_X || op == ISA_ADD32_X;
}

/* The half that is not the result, if it is still wanted: from holds the value both are made of. */
static void leftover(struct x86 *c, u32 pc, u8 w, struct half h, u8 from)
{
	u8 reg = x86_of[h.reg];

	if (!jit_x86_dead(c, pc, h.reg)) {
		if (reg != from)
			c->p = x86_mov(c->p, w, reg, from);
		c->p = x86_shift_imm(c->p, w, h.op, reg, h.n);
		x86_wrote(c, h.reg, w * 8);
	} else {
		x86_wrote(c, h.reg, 64);
	}
}

static void rotated(struct x86 *c, u8 w, struct half h, u8 from)
{
	u8 reg = x86_of[h.reg];

	if (reg != from)
		c->p = x86_mov(c->p, w, reg, from);
	c->p = x86_shift_imm(c->p, w, X86_ROL, reg, h.op == X86_SHL ? h.n : w * 8 - h.n);
	x86_wrote(c, h.reg, w * 8);
}

/* e = s; e <<= a; then s >>= W - a; s |= e or e |= s; or d = s; d >>= W - a; d |= e or e |= d */
u32 jit_x86_rotate(struct x86 *c, u32 pc)
{
	const struct bpf_insn *insn = &c->insns[pc], *join;
	u8 w = c->in[pc].op == ISA_MOV64_X ? 8 : 4, s = insn->src_reg;
	enum isa_op mov = w == 8 ? ISA_MOV64_X : ISA_MOV32_X;
	struct half e, o;
	u32 at = pc + 2;

	if (insn->dst_reg == s || !is_half(c, pc + 1, w, &e) || e.reg != insn->dst_reg)
		return 0;
	if (x86_joins(c, at) && c->in[at].op == mov && c->insns[at].src_reg == s && c->insns[at].dst_reg != s &&
	    c->insns[at].dst_reg != e.reg) {
		if (!is_half(c, at + 1, w, &o) || o.reg != c->insns[at].dst_reg)
			return 0;
		at += 2;
	} else {
		if (!is_half(c, at, w, &o) || o.reg != s)
			return 0;
		at++;
	}
	if (o.op == e.op || o.n + e.n != w * 8 || !is_joined(c, at, w))
		return 0;
	join = &c->insns[at];
	at++;
	if (join->dst_reg == e.reg && join->src_reg == o.reg) {
		rotated(c, w, e, x86_of[s]);
		leftover(c, at, w, o, x86_of[s]);
	} else if (join->dst_reg == o.reg && join->src_reg == e.reg) {
		if (o.reg == s) { /* the value itself is rotated: the other half first */
			leftover(c, at, w, e, x86_of[s]);
			rotated(c, w, o, x86_of[s]);
		} else {
			rotated(c, w, o, x86_of[s]);
			leftover(c, at, w, e, x86_of[s]);
		}
	} else {
		return 0;
	}
	return at - pc;
}

/* ---- addresses ---- */

struct sum {
	u8 base, index; /* BPF registers, X86_NONE: none */
	u8 scale;
	s64 disp;
};

/* The instruction changes d by something the address form has room for. */
static bool add_term(const struct x86 *c, u32 pc, u8 d, struct sum *sum)
{
	const struct bpf_insn *insn = &c->insns[pc];

	if (insn->dst_reg != d)
		return false;
	switch ((int)c->in[pc].op) {
	case ISA_ADD64_X:
		if (insn->src_reg == d)
			return false;
		if (sum->base == X86_NONE)
			sum->base = insn->src_reg;
		else if (sum->index == X86_NONE)
			sum->index = insn->src_reg;
		else
			return false;
		return true;
	case ISA_ADD64_K:
		if (!x86_is_s32(sum->disp + insn->imm))
			return false;
		sum->disp += insn->imm;
		return true;
	case ISA_LSH64_K:
		if (sum->index != X86_NONE || sum->disp || insn->imm < 1 || insn->imm > 3)
			return false;
		sum->index = sum->base;
		sum->base = X86_NONE;
		sum->scale = insn->imm;
		return true;
	}
	return false;
}

/* A plain load through d that ends d's use as an address. */
static bool is_last_load(const struct x86 *c, u32 pc, u8 d, const struct sum *sum)
{
	const struct bpf_insn *insn = &c->insns[pc];
	enum isa_op op = c->in[pc].op;

	if (isa_info[op].kind != ISA_K_LDX || isa_info[op].internal || insn->src_reg != d ||
	    !x86_is_s32(sum->disp + insn->off))
		return false;
	return insn->dst_reg == d || jit_x86_dead(c, pc + 1, d);
}

u32 jit_x86_sum(struct x86 *c, u32 pc)
{
	u8 d = c->insns[pc].dst_reg;
	struct sum sum = { .base = d, .index = X86_NONE };
	struct x86_mem mem;
	u32 at = pc;
	bool load;

	if (c->in[at].op == ISA_MOV64_X) {
		sum.base = c->insns[at].src_reg;
		if (sum.base == d)
			return 0;
		at++;
	}
	while ((at == pc || x86_joins(c, at)) && add_term(c, at, d, &sum))
		at++;
	load = at > pc && x86_joins(c, at) && is_last_load(c, at, d, &sum);
	if (!load && (at - pc < 2 || sum.base == X86_NONE))
		return 0;
	if (at == pc)
		return 0;
	mem = (struct x86_mem){ .base = sum.base == X86_NONE ? X86_NONE : x86_of[sum.base],
				.index = sum.index == X86_NONE ? X86_NONE : x86_of[sum.index],
				.scale = sum.scale, .disp = (s32)sum.disp };
	if (load) {
		const struct isa_info *info = &isa_info[c->in[at].op];
		u8 to = c->insns[at].dst_reg;
		bool sx = BPF_MODE(info->code) == BPF_MEMSX;

		mem.disp += c->insns[at].off;
		x86_wrote(c, d, 64);
		c->p = sx ? x86_load_sx(c->p, info->width, x86_of[to], mem) : x86_load(c->p, info->width, x86_of[to], mem);
		x86_wrote(c, to, sx ? 64 : info->width * 8);
		return at + 1 - pc;
	}
	c->p = x86_lea(c->p, 8, x86_of[d], mem);
	x86_wrote(c, d, 64);
	return at - pc;
}
