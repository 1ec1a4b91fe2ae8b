// SPDX-License-Identifier: BSD-2-Clause
/*
 * Division by a register; by a constant: divide_k.c.
 *
 * div wants rdx:rax and gives quotient and remainder there, so both may have to be kept: in TMP and TMP2 as far as the
 * divisor leaves them, else on the stack. Division by 0, and by -1 where signed, are stubs that leave in rax or rdx what
 * the division would have; the stubs know that rax is the dividend and, signed, rdx the divisor plus 1.
 */
#include "exec/jit/x86_64/x86_int.h"

struct division {
	u8 w, d, rd, divisor;
	bool mod;
	bool live_rax, live_rdx, pushed;
	u8 keep_rax, keep_rdx;
};

static void divide_setup(struct x86 *c, struct division *v, u8 src)
{
	static const u8 pool[] = { TMP, TMP2 };
	u32 n = 0;

	v->keep_rax = v->keep_rdx = X86_NONE;
	if (v->live_rax || (src == RAX && v->rd != RAX)) {
		v->keep_rax = pool[n++];
		c->p = x86_mov(c->p, 8, v->keep_rax, RAX);
	}
	v->divisor = src;
	if (src == RAX && v->rd != RAX) {
		v->divisor = v->keep_rax;
	} else if (src == RAX || src == RDX) {
		v->divisor = pool[n++];
		c->p = x86_mov(c->p, 8, v->divisor, src);
		if (src == RDX && v->live_rdx)
			v->keep_rdx = v->divisor;
	}
	if (v->live_rdx && v->keep_rdx == X86_NONE) {
		v->pushed = n == ARRAY_SIZE(pool);
		if (v->pushed) {
			c->p = x86_push(c->p, RDX);
		} else {
			v->keep_rdx = pool[n++];
			c->p = x86_mov(c->p, 8, v->keep_rdx, RDX);
		}
	}
	if (v->rd != RAX)
		c->p = x86_mov(c->p, v->w, RAX, v->rd);
}

static void divide_unsigned(struct x86 *c, const struct division *v, bool narrow)
{
	u8 *jump32, *jump_end;

	if (v->w == 4 || narrow) {
		c->p = x86_zero(c->p, RDX);
		c->p = x86_f7(c->p, 4, 6, v->divisor);
		return;
	}
	if (!c->slow_div) {
		c->p = x86_zero(c->p, RDX);
		c->p = x86_f7(c->p, 8, 6, v->divisor);
		return;
	}
	/* where both fit 32 bits (rdx becomes 0 by finding that out), the short division does it */
	c->p = x86_mov(c->p, 8, RDX, RAX);
	c->p = x86_alu(c->p, 8, X86_OR, RDX, v->divisor);
	c->p = x86_shift_imm(c->p, 8, X86_SHR, RDX, 32);
	jump32 = c->p;
	c->p += 2;
	c->p = x86_zero(c->p, RDX);
	c->p = x86_f7(c->p, 8, 6, v->divisor);
	jump_end = c->p;
	c->p += 2;
	jump32[0] = 0x70 | CC_E;
	jump32[1] = c->p - jump32 - 2;
	c->p = x86_f7(c->p, 4, 6, v->divisor);
	jump_end[0] = 0xeb;
	jump_end[1] = c->p - jump_end - 2;
}

static void divide_result(struct x86 *c, const struct division *v, u8 w)
{
	u8 res = v->mod ? RDX : RAX;

	if (v->rd != res)
		c->p = x86_mov(c->p, w, v->rd, res);
	if (v->live_rax)
		c->p = x86_mov(c->p, 8, RAX, v->keep_rax);
	else if (v->rd != RAX)
		x86_wrote(c, 0, 64);
	if (v->pushed)
		c->p = x86_pop(c->p, RDX);
	else if (v->live_rdx)
		c->p = x86_mov(c->p, 8, RDX, v->keep_rdx);
	else if (v->rd != RDX)
		x86_wrote(c, 3, 64);
}

static u32 divide(struct x86 *c, u32 pc, u8 w, bool sign, bool mod)
{
	const struct bpf_insn *insn = &c->insns[pc];
	struct division v = { .w = w, .d = insn->dst_reg, .rd = x86_of[insn->dst_reg], .mod = mod };
	u8 bits = c->bits[v.d], by_bits = c->bits[insn->src_reg];
	struct jit_stub *stub;

	v.live_rax = v.rd != RAX && !jit_x86_dead(c, pc + 1, 0);
	v.live_rdx = v.rd != RDX && !jit_x86_dead(c, pc + 1, 3);
	divide_setup(c, &v, x86_of[insn->src_reg]);
	if (sign) {
		c->p = x86_lea(c->p, w, RDX, x86_at(v.divisor, 1));
		c->p = x86_alu_imm(c->p, w, X86_CMP, RDX, 1);
		stub = jit_x86_stub(c, CC_BE, mod ? STUB_SMOD : STUB_SDIV, 0, w);
		c->p = x86_rex(c->p, w, 0, 0, 0, false);
		c->p = x86_1(c->p, 0x99); /* cdq, cqo */
		c->p = x86_f7(c->p, w, 7, v.divisor);
	} else {
		c->p = x86_test(c->p, w, v.divisor, v.divisor);
		stub = jit_x86_stub(c, CC_E, mod ? STUB_MOD : STUB_DIV, 0, w);
		divide_unsigned(c, &v, bits <= 32 && by_bits <= 32);
	}
	stub->back = x86_off(c);
	x86_wrote(c, v.d, w == 4 ? min_of(bits, (u8)32) : bits);
	if (sign)
		x86_wrote(c, v.d, w * 8);
	divide_result(c, &v, w);
	return 1;
}

#define DIVIDE(name, sign, mod)                                                                    \
	X86_ROW(name##64_K) { return jit_x86_divide_k(c, pc, 8, sign, mod); }                      \
	X86_ROW(name##64_X) { return divide(c, pc, 8, sign, mod); }                                \
	X86_ROW(name##32_K) { return jit_x86_divide_k(c, pc, 4, sign, mod); }                      \
	X86_ROW(name##32_X) { return divide(c, pc, 4, sign, mod); }
DIVIDE(DIV, false, false)
DIVIDE(MOD, false, true)
DIVIDE(SDIV, true, false)
DIVIDE(SMOD, true, true)
#undef DIVIDE
