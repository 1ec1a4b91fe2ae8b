// SPDX-License-Identifier: BSD-2-Clause
/*
 * Several BPF instructions (match.c) as one of the machine's: a rotation, and an address as lea or in the load itself.
 */
#include "exec/jit/match.h"
#include "exec/jit/x86_64/x86_int.h"

bool jit_x86_dead(const struct x86 *c, u32 pc, u8 reg)
{
	return jit_dead(c->j, c->sub, pc, reg);
}

/* ---- rotations ---- */

/* The half that is not the result, if it is still wanted: from holds the value both are made of. */
static void leftover(struct x86 *c, u32 pc, u8 w, struct jit_half h, u8 from)
{
	u8 reg = x86_of[h.reg];

	if (!jit_x86_dead(c, pc, h.reg)) {
		if (reg != from)
			c->p = x86_mov(c->p, w, reg, from);
		c->p = x86_shift_imm(c->p, w, h.left ? X86_SHL : X86_SHR, reg, h.n);
		x86_wrote(c, h.reg, w * 8);
	} else {
		x86_wrote(c, h.reg, 64);
	}
}

static void rotated(struct x86 *c, u8 w, struct jit_half h, u8 from)
{
	u8 reg = x86_of[h.reg];

	if (reg != from)
		c->p = x86_mov(c->p, w, reg, from);
	c->p = x86_shift_imm(c->p, w, X86_ROL, reg, h.left ? h.n : w * 8 - h.n);
	x86_wrote(c, h.reg, w * 8);
}

u32 jit_x86_rotate(struct x86 *c, u32 pc)
{
	u8 w = c->in[pc].op == ISA_MOV64_X ? 8 : 4;
	struct jit_rotation r;

	if (!jit_find_rotation(c->j, c->sub, pc, w, &r))
		return 0;
	if (r.result.reg == r.from) { /* the value itself is rotated: the other half first */
		leftover(c, pc + r.slots, w, r.other, x86_of[r.from]);
		rotated(c, w, r.result, x86_of[r.from]);
	} else {
		rotated(c, w, r.result, x86_of[r.from]);
		leftover(c, pc + r.slots, w, r.other, x86_of[r.from]);
	}
	return r.slots;
}

/* ---- addresses ---- */

/* A plain load through d that ends d's use as an address. */
static bool is_last_load(const struct x86 *c, u32 pc, u8 d, const struct jit_address *sum)
{
	const struct bpf_insn *insn = &c->insns[pc];
	enum isa_op op = c->in[pc].op;

	if (isa_info[op].kind != ISA_K_LDX || isa_info[op].internal || insn->src_reg != d ||
	    !x86_is_s32((s64)sum->disp + insn->off))
		return false;
	return insn->dst_reg == d || jit_x86_dead(c, pc + 1, d);
}

u32 jit_x86_sum(struct x86 *c, u32 pc)
{
	u8 d = c->insns[pc].dst_reg;
	struct jit_address sum;
	struct x86_mem mem;
	u32 at = jit_find_address(c->j, c->sub, pc, &sum);
	bool load;

	if (at == pc)
		return 0;
	load = jit_joins(c->j, c->sub, at) && is_last_load(c, at, d, &sum);
	if (!load && (at - pc < 2 || sum.base == JIT_NO_REG))
		return 0;
	mem = (struct x86_mem){ .base = sum.base == JIT_NO_REG ? X86_NONE : x86_of[sum.base],
				.index = sum.index == JIT_NO_REG ? X86_NONE : x86_of[sum.index],
				.scale = sum.scale, .disp = sum.disp };
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
