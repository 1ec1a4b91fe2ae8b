// SPDX-License-Identifier: BSD-2-Clause
// Division by a constant as a multiplication, with the numbers of reciprocal.c.
#include "exec/jit/reciprocal.h"
#include "exec/jit/x86_64/x86_int.h"

struct divisor {
	u64 v; /* absolute value */
	u64 m; /* its reciprocal */
	u8 w, d, r, bits;
	u8 pre, shift;
	bool more; /* b = 32: m times n + 1; b = 64: m without its bit 64 */
	bool mod, negative;
};

static void reciprocal(struct divisor *by)
{
	struct jit_reciprocal r = jit_reciprocal(by->v, by->bits);

	by->m = r.m;
	by->pre = r.pre;
	by->shift = r.shift;
	by->more = r.more;
}

/* r -= q * |divisor|; q is lost. */
static void remainder_of(struct x86 *c, const struct divisor *by, u8 r, u8 q)
{
	u8 w = by->w == 4 || (by->bits <= 32 && !by->negative) ? 4 : 8;

	jit_x86_mul_imm(c, w, q, q, (s32)by->v);
	c->p = x86_alu(c->p, w, X86_SUB, r, q);
}

/* dst = src * m */
static void mul_64(struct x86 *c, u8 dst, u8 src, u64 m, u8 scratch)
{
	if (m <= S32_MAX) {
		jit_x86_mul_imm(c, 8, dst, src, (s32)m);
		return;
	}
	if (dst == src) {
		c->p = x86_mov_imm(c->p, scratch, m);
		src = scratch;
	} else {
		c->p = x86_mov_imm(c->p, dst, m);
	}
	c->p = x86_0f_rr(c->p, 8, 0xaf, dst, src, false);
}

/* The dividend has 32 bits or fewer: no register but TMP and TMP2 is needed. */
static void divide_32(struct x86 *c, struct divisor *by)
{
	u8 n = by->r, q = by->mod ? TMP : by->r;

	reciprocal(by);
	x86_zext(c, by->d);
	if (by->more) {
		c->p = x86_lea(c->p, 8, q, x86_at(n, 1));
		n = q;
	}
	mul_64(c, q, n, by->m, TMP2);
	c->p = x86_shift_imm(c->p, 8, X86_SHR, q, by->shift);
	if (by->mod)
		remainder_of(c, by, by->r, q);
}

/* What a 128-bit product needs: rax, rdx, and the dividend in neither. */
struct wide {
	u8 n, hi, spare;
	u8 keep_rax, keep_rdx; /* where what was there waits; X86_NONE: nowhere */
};

static void set_dividend(struct x86 *c, const struct divisor *by, u8 to, u8 n)
{
	if (to != n)
		c->p = x86_mov(c->p, 8, to, n);
	if (by->pre)
		c->p = x86_shift_imm(c->p, 8, X86_SHR, to, by->pre);
}

/* hi = upper half of dividend * m */
static struct wide mul_wide(struct x86 *c, const struct divisor *by, u32 pc, bool sign)
{
	bool live_rax = by->r != RAX && !jit_x86_dead(c, pc + 1, 0), live_rdx = by->r != RDX && !jit_x86_dead(c, pc + 1, 3);
	struct wide w = { .n = by->r, .hi = RDX, .spare = RAX, .keep_rax = X86_NONE, .keep_rdx = X86_NONE };

	if (c->bmi2 && !sign && by->r != RDX) { /* rax is left alone */
		w.hi = TMP;
		w.spare = RDX;
		if (live_rdx) {
			w.keep_rdx = TMP2;
			c->p = x86_mov(c->p, 8, TMP2, RDX);
		} else {
			x86_wrote(c, 3, 64);
		}
		set_dividend(c, by, RDX, by->r);
		c->p = x86_mov_imm(c->p, TMP, by->m);
		c->p = x86_mulx(c->p, TMP, RDX, TMP);
		return w;
	}
	if (c->bmi2 && !sign && !by->pre) { /* the dividend is where mulx wants it */
		w.hi = TMP;
		w.spare = TMP2;
		c->p = x86_mov_imm(c->p, TMP, by->m);
		c->p = x86_mulx(c->p, TMP, TMP2, TMP);
		return w;
	}
	if (by->r == RAX || by->r == RDX) {
		w.n = TMP;
		c->p = x86_mov(c->p, 8, TMP, by->r);
	}
	if (live_rax) {
		w.keep_rax = w.n == TMP ? TMP2 : TMP;
		c->p = x86_mov(c->p, 8, w.keep_rax, RAX);
	} else if (by->r != RAX) {
		x86_wrote(c, 0, 64);
	}
	if (live_rdx) {
		w.keep_rdx = TMP2; /* rax is in it only if the dividend was in rdx */
		c->p = x86_mov(c->p, 8, TMP2, RDX);
	} else if (by->r != RDX) {
		x86_wrote(c, 3, 64);
	}
	set_dividend(c, by, RAX, by->r);
	c->p = x86_mov_imm(c->p, RDX, by->m);
	c->p = x86_f7(c->p, 8, sign ? 5 : 4, RDX);
	return w;
}

/* The quotient is in w->hi. */
static void finish_wide(struct x86 *c, const struct divisor *by, const struct wide *w)
{
	u8 result = w->hi;

	if (by->mod) {
		remainder_of(c, by, w->n, w->hi);
		result = w->n;
	}
	if (result != by->r)
		c->p = x86_mov(c->p, 8, by->r, result);
	if (w->keep_rax != X86_NONE)
		c->p = x86_mov(c->p, 8, RAX, w->keep_rax);
	if (w->keep_rdx != X86_NONE)
		c->p = x86_mov(c->p, 8, RDX, w->keep_rdx);
}

static void divide_64(struct x86 *c, struct divisor *by, u32 pc)
{
	struct wide w;

	reciprocal(by);
	w = mul_wide(c, by, pc, false);
	if (by->more) {
		c->p = x86_mov(c->p, 8, w.spare, w.n);
		c->p = x86_alu(c->p, 8, X86_SUB, w.spare, w.hi);
		c->p = x86_shift_imm(c->p, 8, X86_SHR, w.spare, 1);
		c->p = x86_alu(c->p, 8, X86_ADD, w.hi, w.spare);
	}
	if (by->shift)
		c->p = x86_shift_imm(c->p, 8, X86_SHR, w.hi, by->shift);
	finish_wide(c, by, &w);
}

/* The divisor has its highest bit set: the quotient is 0 or 1. imm: the divisor as the instruction has it. */
static void divide_huge(struct x86 *c, const struct divisor *by, s32 imm)
{
	if (by->mod) {
		c->p = x86_mov(c->p, by->w, TMP, by->r);
		c->p = x86_alu_imm(c->p, by->w, X86_SUB, TMP, imm);
		c->p = x86_0f_rr(c->p, by->w, 0x40 | CC_AE, by->r, TMP, false);
		x86_wrote(c, by->d, by->w * 8);
	} else {
		c->p = x86_alu_imm(c->p, by->w, X86_CMP, by->r, imm);
		c->p = x86_rr(c->p, 4, 0x19, by->r, by->r); /* sbb: -1 where it is less */
		c->p = x86_alu_imm(c->p, 4, X86_ADD, by->r, 1);
		x86_wrote(c, by->d, 1);
	}
}

static u32 divide_unsigned(struct x86 *c, u32 pc, u8 w, bool mod)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg;
	struct divisor by = { .v = w == 8 ? (u64)(s64)insn->imm : (u32)insn->imm, .w = w, .d = d, .r = x86_of[d],
			      .bits = min_of(c->bits[d], (u8)(w * 8)), .mod = mod };
	u8 k = x86_bits_of(by.v) - 1, left = mod ? min_of(by.bits, k + 1) : by.bits > k ? by.bits - k : 0;

	if (by.v == 1 || by.bits < k + 1) { /* by 1, or by more than the dividend can be */
		if (mod == (by.v != 1))
			return x86_unchanged(c, d, w);
		x86_set_zero(c, d);
		return 1;
	}
	if (is_pow2(by.v)) {
		if (mod && k < 32)
			return jit_x86_and_imm(c, d, w, (s32)(by.v - 1));
		if (!mod) {
			c->p = x86_shift_imm(c->p, w, X86_SHR, by.r, k);
			x86_wrote(c, d, left);
			return 1;
		}
	}
	if (k == w * 8 - 1) {
		divide_huge(c, &by, insn->imm);
		return 1;
	}
	if (by.bits <= 32)
		divide_32(c, &by);
	else
		divide_64(c, &by, pc);
	x86_wrote(c, d, left);
	return 1;
}

/* ---- signed ---- */

/* |divisor| is 2^k: negative dividends are rounded up by adding 2^k - 1 */
static void divide_signed_pow2(struct x86 *c, const struct divisor *by)
{
	u8 k = x86_bits_of(by->v) - 1, top = by->w * 8 - 1;

	c->p = x86_mov(c->p, by->w, TMP, by->r);
	if (k > 1)
		c->p = x86_shift_imm(c->p, by->w, X86_SAR, TMP, top);
	c->p = x86_shift_imm(c->p, by->w, X86_SHR, TMP, top + 1 - k);
	c->p = x86_alu(c->p, by->w, X86_ADD, by->r, TMP);
	if (by->mod) {
		c->p = x86_alu_imm(c->p, by->w, X86_AND, by->r, (s32)(by->v - 1));
		c->p = x86_alu(c->p, by->w, X86_SUB, by->r, TMP);
		return;
	}
	c->p = x86_shift_imm(c->p, by->w, X86_SAR, by->r, k);
	if (by->negative)
		c->p = x86_f7(c->p, by->w, 3, by->r);
}

static void divide_signed_32(struct x86 *c, struct divisor *by)
{
	u8 k = x86_bits_of(by->v) - 1, r = by->r;

	by->m = jit_reciprocal_signed(by->v, 4);
	c->p = x86_rr(c->p, 8, 0x63, TMP, r); /* movsxd */
	mul_64(c, TMP, TMP, by->m, TMP2);
	c->p = x86_shift_imm(c->p, 8, X86_SAR, TMP, 32 + k);
	if (by->mod) {
		c->p = x86_mov(c->p, 4, TMP2, r);
		c->p = x86_shift_imm(c->p, 4, X86_SAR, TMP2, 31);
		c->p = x86_alu(c->p, 4, X86_SUB, TMP, TMP2);
		remainder_of(c, by, r, TMP);
		return;
	}
	c->p = x86_shift_imm(c->p, 4, X86_SAR, r, 31);
	if (by->negative) {
		c->p = x86_alu(c->p, 4, X86_SUB, r, TMP);
	} else {
		c->p = x86_alu(c->p, 4, X86_SUB, TMP, r);
		c->p = x86_mov(c->p, 4, r, TMP);
	}
}

static void divide_signed_64(struct x86 *c, struct divisor *by, u32 pc)
{
	u8 k = x86_bits_of(by->v) - 1;
	struct wide w;

	by->m = jit_reciprocal_signed(by->v, 8);
	w = mul_wide(c, by, pc, true);
	if (by->m >> 63) /* it was taken for m - 2^64 */
		c->p = x86_alu(c->p, 8, X86_ADD, w.hi, w.n);
	if (k)
		c->p = x86_shift_imm(c->p, 8, X86_SAR, w.hi, k);
	c->p = x86_mov(c->p, 8, w.spare, w.n);
	c->p = x86_shift_imm(c->p, 8, X86_SAR, w.spare, 63);
	c->p = x86_alu(c->p, 8, X86_SUB, w.hi, w.spare);
	if (by->negative && !by->mod)
		c->p = x86_f7(c->p, 8, 3, w.hi);
	finish_wide(c, by, &w);
}

static u32 divide_signed(struct x86 *c, u32 pc, u8 w, bool mod)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg;
	struct divisor by = { .v = insn->imm < 0 ? -(s64)insn->imm : insn->imm, .w = w, .d = d, .r = x86_of[d],
			      .bits = w * 8, .mod = mod, .negative = insn->imm < 0 };

	if (by.v == 1) {
		if (!mod && !by.negative)
			return x86_unchanged(c, d, w);
		if (mod) {
			x86_set_zero(c, d);
			return 1;
		}
		c->p = x86_f7(c->p, w, 3, by.r);
	} else if (is_pow2(by.v)) {
		divide_signed_pow2(c, &by);
	} else if (w == 4) {
		divide_signed_32(c, &by);
	} else {
		divide_signed_64(c, &by, pc);
	}
	x86_wrote(c, d, w * 8);
	return 1;
}

u32 jit_x86_divide_k(struct x86 *c, u32 pc, u8 w, bool sign, bool mod)
{
	if (!c->insns[pc].imm) { /* refused of programs, defined all the same */
		if (mod)
			return x86_unchanged(c, c->insns[pc].dst_reg, w);
		x86_set_zero(c, c->insns[pc].dst_reg);
		return 1;
	}
	return sign ? divide_signed(c, pc, w, mod) : divide_unsigned(c, pc, w, mod);
}
