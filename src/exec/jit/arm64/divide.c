// SPDX-License-Identifier: BSD-2-Clause
/*
 * Division. The machine's gives what BPF's does where C's is not defined: 0 for a divisor of 0, and MIN for MIN / -1; the
 * remainder n - q * v then is n and 0, as it should be. By a constant it is a multiplication (reciprocal.c).
 */
#include "exec/jit/arm64/arm64_int.h"
#include "exec/jit/reciprocal.h"

static u32 divide(struct a64 *c, u32 pc, u8 w, bool sign, bool mod)
{
	u8 d = c->insns[pc].dst_reg, s = c->insns[pc].src_reg, n = a64_dst(c, pc), rd = a64_def(c, d), rn, rm, bits;

	s = s == d ? n : s;
	bits = sign ? w * 8 : min_of(c->bits[n], (u8)(w * 8));
	if (!sign && c->bits[n] <= 32 && c->bits[s] <= 32)
		w = 4; /* shorter to do */
	rn = jit_a64_use(c, n, TMP);
	rm = jit_a64_use(c, s, TMP2);
	put(c, a64_div(w, sign, mod ? TMP3 : rd, rn, rm));
	if (mod)
		put(c, a64_madd(w, true, rd, TMP3, rm, rn));
	a64_wrote(c, d, bits);
	return 1;
}

/* ---- by constants ---- */

struct divisor {
	u64 v;	    /* absolute value */
	u8 w;
	u8 d, n;    /* BPF registers: result, dividend */
	u8 rd, rn;  /* machine registers; rn is not TMP, TMP2 or TMP3 */
	bool mod, negative;
};

/* The quotient of absolute values is in q: the result. */
static void finish(struct a64 *c, const struct divisor *by, u8 w, u8 q)
{
	if (by->mod) {
		jit_a64_set(c, TMP2, by->v);
		put(c, a64_madd(w, true, by->rd, q, TMP2, by->rn));
	} else if (by->negative) {
		put(c, a64_sum(w, A64_SUB, by->rd, XZR, q, A64_LSL, 0));
	}
}

/* The dividend has 32 bits or fewer, and what is above does not count. */
static void divide_32(struct a64 *c, const struct divisor *by, u8 bits)
{
	struct jit_reciprocal r = jit_reciprocal(by->v, bits);
	u8 q = by->mod ? TMP : by->rd;

	jit_a64_set(c, TMP, r.m);
	if (r.m <= U32_MAX)
		put(c, a64_umaddl(TMP, by->rn, TMP, r.more ? TMP : XZR));
	else /* so few bits that the rest is known to be 0 */
		put(c, a64_madd(8, false, TMP, by->rn, TMP, r.more ? TMP : XZR));
	put(c, a64_shift_imm(8, A64_LSR, q, TMP, r.shift));
	finish(c, by, 4, q);
}

static void divide_64(struct a64 *c, const struct divisor *by, u8 bits)
{
	struct jit_reciprocal r = jit_reciprocal(by->v, bits);
	u8 n = by->rn, q = by->mod ? TMP : by->rd;

	if (r.pre) {
		put(c, a64_shift_imm(8, A64_LSR, TMP2, n, r.pre));
		n = TMP2;
	}
	jit_a64_set(c, TMP, r.m);
	put(c, a64_mulh(false, TMP, n, TMP));
	if (r.more) {
		put(c, a64_sum(8, A64_SUB, TMP2, n, TMP, A64_LSL, 0));
		put(c, a64_sum(8, A64_ADD, TMP, TMP, TMP2, A64_LSR, 1));
	}
	if (r.shift)
		put(c, a64_shift_imm(8, A64_LSR, q, TMP, r.shift));
	else if (q != TMP)
		put(c, a64_mov(8, q, TMP));
	finish(c, by, 8, q);
}

/* The divisor has its highest bit set: the quotient is 0 or 1. imm: the divisor as the instruction has it. */
static void divide_huge(struct a64 *c, const struct divisor *by, s32 imm)
{
	jit_a64_set(c, TMP, by->w == 4 ? (u32)imm : (u64)(s64)imm);
	put(c, a64_sum(by->w, A64_SUBS, TMP, by->rn, TMP, A64_LSL, 0));
	put(c, by->mod ? a64_csel(by->w, by->rd, TMP, by->rn, CC_HS) : a64_cset(by->rd, CC_HS));
	a64_wrote(c, by->d, by->mod ? by->w * 8 : 1);
}

static u32 divide_unsigned(struct a64 *c, struct divisor *by, s32 imm)
{
	u8 bits = min_of(c->bits[by->n], (u8)(by->w * 8)), k = a64_bits_of(by->v) - 1;
	u8 left = by->mod ? min_of(bits, (u8)(k + 1)) : bits > k ? bits - k : 0;

	if (by->v == 1 || bits < k + 1) { /* by 1, or by more than the dividend can be */
		if (by->mod == (by->v != 1))
			return jit_a64_unchanged(c, by->d, by->n, by->w);
		return a64_set_zero(c, by->d);
	}
	if (is_pow2(by->v) && by->mod) {
		put(c, a64_logic_imm(k < 32 ? 4 : 8, A64_AND, by->rd, by->rn, a64_mask(k < 32 ? 4 : 8, by->v - 1)));
		left = min_of(bits, k);
	} else if (is_pow2(by->v)) {
		put(c, a64_shift_imm(by->w, A64_LSR, by->rd, by->rn, k));
	} else if (k == by->w * 8 - 1) {
		divide_huge(c, by, imm);
		return 1;
	} else if (bits <= 32) {
		divide_32(c, by, bits);
	} else {
		divide_64(c, by, bits);
	}
	a64_wrote(c, by->d, left);
	return 1;
}

/* |divisor| is 2^k: negative dividends are rounded up by adding 2^k - 1, the sign's copies shifted */
static void divide_signed_pow2(struct a64 *c, const struct divisor *by)
{
	u8 k = a64_bits_of(by->v) - 1, top = by->w * 8 - 1, sign = by->rn;

	if (k > 1) {
		put(c, a64_shift_imm(by->w, A64_ASR, TMP, by->rn, top));
		sign = TMP;
	}
	put(c, a64_sum(by->w, A64_ADD, TMP, by->rn, sign, A64_LSR, top + 1 - k));
	if (by->mod) {
		put(c, a64_logic_imm(by->w, A64_AND, TMP, TMP, a64_mask(by->w, ~(by->v - 1))));
		put(c, a64_sum(by->w, A64_SUB, by->rd, by->rn, TMP, A64_LSL, 0));
	} else if (by->negative) {
		put(c, a64_sum(by->w, A64_SUB, by->rd, XZR, TMP, A64_ASR, k));
	} else {
		put(c, a64_shift_imm(by->w, A64_ASR, by->rd, TMP, k));
	}
}

static void divide_signed_any(struct a64 *c, const struct divisor *by)
{
	u64 m = jit_reciprocal_signed(by->v, by->w);
	u8 k = a64_bits_of(by->v) - 1, top = by->w * 8 - 1, q = by->mod || by->negative ? TMP : by->rd;

	jit_a64_set(c, TMP, m);
	if (by->w == 4) {
		put(c, a64_field(8, A64_SBFM, TMP2, by->rn, 0, 31));
		put(c, a64_mul(8, TMP, TMP2, TMP));
		put(c, a64_shift_imm(8, A64_ASR, TMP, TMP, 32 + k));
	} else {
		put(c, a64_mulh(true, TMP, by->rn, TMP));
		if (m >> 63) /* it was taken for m - 2^64 */
			put(c, a64_sum(8, A64_ADD, TMP, TMP, by->rn, A64_LSL, 0));
		if (k)
			put(c, a64_shift_imm(8, A64_ASR, TMP, TMP, k));
	}
	put(c, a64_sum(by->w, A64_ADD, q, TMP, by->rn, A64_LSR, top));
	finish(c, by, by->w, q);
}

static u32 divide_signed(struct a64 *c, struct divisor *by)
{
	if (by->v == 1) {
		if (by->mod)
			return a64_set_zero(c, by->d);
		if (!by->negative)
			return jit_a64_unchanged(c, by->d, by->n, by->w);
		put(c, a64_sum(by->w, A64_SUB, by->rd, XZR, by->rn, A64_LSL, 0));
	} else if (is_pow2(by->v)) {
		divide_signed_pow2(c, by);
	} else {
		divide_signed_any(c, by);
	}
	a64_wrote(c, by->d, by->w * 8);
	return 1;
}

static u32 divide_k(struct a64 *c, u32 pc, u8 w, bool sign, bool mod)
{
	s32 imm = c->insns[pc].imm;
	u8 d = c->insns[pc].dst_reg, n = a64_dst(c, pc);
	struct divisor by = { .v = w == 8 ? (u64)(s64)imm : (u32)imm, .w = w, .d = d, .n = n, .rd = a64_def(c, d), .mod = mod };

	if (!imm) /* refused of programs, defined all the same */
		return mod ? jit_a64_unchanged(c, d, n, w) : a64_set_zero(c, d);
	by.rn = jit_a64_use(c, n, TMP4);
	if (!sign)
		return divide_unsigned(c, &by, imm);
	by.v = imm < 0 ? -(s64)imm : imm;
	by.negative = imm < 0;
	return divide_signed(c, &by);
}

#define DIVIDE(name, sign, mod)                                                                    \
	A64_ROW(name##64_K) { return divide_k(c, pc, 8, sign, mod); }                                  \
	A64_ROW(name##64_X) { return divide(c, pc, 8, sign, mod); }                                    \
	A64_ROW(name##32_K) { return divide_k(c, pc, 4, sign, mod); }                                  \
	A64_ROW(name##32_X) { return divide(c, pc, 4, sign, mod); }
DIVIDE(DIV, false, false)
DIVIDE(MOD, false, true)
DIVIDE(SDIV, true, false)
DIVIDE(SMOD, true, true)
#undef DIVIDE
