// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an arithmetic instruction makes of a range.
 *
 * An operator computes each view on its own: the tnum by tristate arithmetic, each interval by interval arithmetic, or the
 * whole line where the interval may wrap. vrf_range_sync() then lets them inform each other. Interval arithmetic:
 *
 *	+ -	exact while both ends wrap alike (unsigned) or neither wraps (signed)
 *	*	unsigned: monotone while the largest product fits; signed: extremes are among the products of the ends
 *	& | ^	no more than the larger operand can have bits; the tnum gives the other end
 *	shifts	by a constant only; a left shift keeps an interval while no set bit can leave
 */
#include <linux/bpf.h>

#include "verifier/range.h"

static void add_bounds(struct vrf_range *d, const struct vrf_range *s)
{
	bool wrap_min = __builtin_add_overflow(d->umin, s->umin, &d->umin);
	bool wrap_max = __builtin_add_overflow(d->umax, s->umax, &d->umax);

	if (__builtin_add_overflow(d->smin, s->smin, &d->smin) || __builtin_add_overflow(d->smax, s->smax, &d->smax)) {
		d->smin = S64_MIN;
		d->smax = S64_MAX;
	}
	if (wrap_min != wrap_max) {
		d->umin = 0;
		d->umax = U64_MAX;
	}
}

static void add_bounds32(struct vrf_range *d, const struct vrf_range *s)
{
	bool wrap_min = __builtin_add_overflow(d->umin32, s->umin32, &d->umin32);
	bool wrap_max = __builtin_add_overflow(d->umax32, s->umax32, &d->umax32);

	if (__builtin_add_overflow(d->smin32, s->smin32, &d->smin32) ||
	    __builtin_add_overflow(d->smax32, s->smax32, &d->smax32)) {
		d->smin32 = S32_MIN;
		d->smax32 = S32_MAX;
	}
	if (wrap_min != wrap_max) {
		d->umin32 = 0;
		d->umax32 = U32_MAX;
	}
}

static void sub_bounds(struct vrf_range *d, const struct vrf_range *s)
{
	bool wrap_min = __builtin_sub_overflow(d->umin, s->umax, &d->umin);
	bool wrap_max = __builtin_sub_overflow(d->umax, s->umin, &d->umax);

	if (__builtin_sub_overflow(d->smin, s->smax, &d->smin) || __builtin_sub_overflow(d->smax, s->smin, &d->smax)) {
		d->smin = S64_MIN;
		d->smax = S64_MAX;
	}
	if (wrap_min != wrap_max) {
		d->umin = 0;
		d->umax = U64_MAX;
	}
}

static void sub_bounds32(struct vrf_range *d, const struct vrf_range *s)
{
	bool wrap_min = __builtin_sub_overflow(d->umin32, s->umax32, &d->umin32);
	bool wrap_max = __builtin_sub_overflow(d->umax32, s->umin32, &d->umax32);

	if (__builtin_sub_overflow(d->smin32, s->smax32, &d->smin32) ||
	    __builtin_sub_overflow(d->smax32, s->smin32, &d->smax32)) {
		d->smin32 = S32_MIN;
		d->smax32 = S32_MAX;
	}
	if (wrap_min != wrap_max) {
		d->umin32 = 0;
		d->umax32 = U32_MAX;
	}
}

static void mul_bounds(struct vrf_range *d, const struct vrf_range *s)
{
	s64 p[4] = { 0 }, min, max;
	bool over;

	if (__builtin_mul_overflow(d->umax, s->umax, &d->umax)) {
		d->umin = 0;
		d->umax = U64_MAX;
	} else {
		d->umin *= s->umin; /* no larger than the largest, which fits */
	}
	over = __builtin_mul_overflow(d->smin, s->smin, &p[0]) || __builtin_mul_overflow(d->smin, s->smax, &p[1]) ||
	       __builtin_mul_overflow(d->smax, s->smin, &p[2]) || __builtin_mul_overflow(d->smax, s->smax, &p[3]);
	min = min_of(min_of(p[0], p[1]), min_of(p[2], p[3]));
	max = max_of(max_of(p[0], p[1]), max_of(p[2], p[3]));
	d->smin = over ? S64_MIN : min;
	d->smax = over ? S64_MAX : max;
}

static void mul_bounds32(struct vrf_range *d, const struct vrf_range *s)
{
	s32 p[4] = { 0 }, min, max;
	bool over;

	if (__builtin_mul_overflow(d->umax32, s->umax32, &d->umax32)) {
		d->umin32 = 0;
		d->umax32 = U32_MAX;
	} else {
		d->umin32 *= s->umin32;
	}
	over = __builtin_mul_overflow(d->smin32, s->smin32, &p[0]) || __builtin_mul_overflow(d->smin32, s->smax32, &p[1]) ||
	       __builtin_mul_overflow(d->smax32, s->smin32, &p[2]) || __builtin_mul_overflow(d->smax32, s->smax32, &p[3]);
	min = min_of(min_of(p[0], p[1]), min_of(p[2], p[3]));
	max = max_of(max_of(p[0], p[1]), max_of(p[2], p[3]));
	d->smin32 = over ? S32_MIN : min;
	d->smax32 = over ? S32_MAX : max;
}

/* The signed view of an unsigned interval that does not cross the sign boundary is the same interval; else anything. */
static void signed_from_unsigned(struct vrf_range *d)
{
	bool same = (s64)d->umin <= (s64)d->umax, same32 = (s32)d->umin32 <= (s32)d->umax32;

	d->smin = same ? (s64)d->umin : S64_MIN;
	d->smax = same ? (s64)d->umax : S64_MAX;
	d->smin32 = same32 ? (s32)d->umin32 : S32_MIN;
	d->smax32 = same32 ? (s32)d->umax32 : S32_MAX;
}

/* d->var holds the result already. */
static void logic_bounds(struct vrf_range *d, const struct vrf_range *s, u8 op)
{
	u64 max = d->var.value | d->var.mask;
	u64 old_umin = d->umin, old_umax = d->umax;
	u32 old_umin32 = d->umin32, old_umax32 = d->umax32;

	d->umin = d->var.value;
	d->umin32 = (u32)d->var.value;
	d->umax = max;
	d->umax32 = (u32)max;
	if (op == BPF_AND) {
		d->umax = min_of(old_umax, s->umax);
		d->umax32 = min_of(old_umax32, s->umax32);
	} else if (op == BPF_OR) {
		d->umin = max_of(old_umin, s->umin);
		d->umin32 = max_of(old_umin32, s->umin32);
	}
	signed_from_unsigned(d);
}

static void lsh32(struct vrf_range *d, u32 n)
{
	d->smin32 = S32_MIN;
	d->smax32 = S32_MAX;
	if (d->umax32 > 1ULL << (31 - n)) { /* a set bit may leave */
		d->umin32 = 0;
		d->umax32 = U32_MAX;
	} else {
		d->umin32 <<= n;
		d->umax32 <<= n;
	}
}

static void lsh64(struct vrf_range *d, u32 n)
{
	/* x <<= 32 is half of a sign extension: exact for a low half of known sign */
	d->smin = n == 32 && d->smin32 >= 0 ? (s64)d->smin32 << 32 : S64_MIN;
	d->smax = n == 32 && d->smax32 >= 0 ? (s64)d->smax32 << 32 : S64_MAX;
	if (d->umax > 1ULL << (63 - n)) {
		d->umin = 0;
		d->umax = U64_MAX;
	} else {
		d->umin <<= n;
		d->umax <<= n;
	}
}

static void shift64(struct vrf_range *d, u32 n, u8 op)
{
	if (op == BPF_LSH) {
		lsh64(d, n);
		if (n < 32)
			lsh32(d, n);
		else
			vrf_range_unbound32(d);
		d->var = vrf_tnum_lsh(d->var, n);
		return;
	}
	vrf_range_unbound32(d); /* bits of the upper half come down */
	if (op == BPF_RSH) {
		d->smin = S64_MIN;
		d->smax = S64_MAX;
		d->umin >>= n;
		d->umax >>= n;
		d->var = vrf_tnum_rsh(d->var, n);
	} else {
		d->smin >>= n;
		d->smax >>= n;
		d->umin = 0;
		d->umax = U64_MAX;
		d->var = vrf_tnum_arsh(d->var, n, 64);
	}
}

static void shift32(struct vrf_range *d, u32 n, u8 op)
{
	struct tnum low = vrf_tnum_low32(d->var);

	if (op == BPF_LSH) {
		lsh32(d, n);
		low = vrf_tnum_low32(vrf_tnum_lsh(low, n));
	} else if (op == BPF_RSH) {
		d->smin32 = S32_MIN;
		d->smax32 = S32_MAX;
		d->umin32 >>= n;
		d->umax32 >>= n;
		low = vrf_tnum_rsh(low, n);
	} else {
		d->smin32 >>= n;
		d->smax32 >>= n;
		d->umin32 = 0;
		d->umax32 = U32_MAX;
		low = vrf_tnum_arsh(low, n, 32);
	}
	d->var = low;
	vrf_range_unbound64(d);
}

/* The 64-bit views of a number whose upper half is 0. */
static void assign_64_from_32(struct vrf_range *d)
{
	d->var = vrf_tnum_low32(d->var);
	d->umin = d->umin32;
	d->umax = d->umax32;
	d->smin = d->umin32;
	d->smax = d->umax32;
}

void vrf_range_low32(struct vrf_range *d)
{
	assign_64_from_32(d);
	vrf_range_sync(d);
}

void vrf_range_alu(struct vrf_range *dst, const struct vrf_range *src, u8 op, bool is32)
{
	struct vrf_range s = *src, old = *dst;

	switch (op) {
	case BPF_ADD:
		add_bounds(dst, &s);
		add_bounds32(dst, &s);
		dst->var = vrf_tnum_add(dst->var, s.var);
		break;
	case BPF_SUB:
		sub_bounds(dst, &s);
		sub_bounds32(dst, &s);
		dst->var = vrf_tnum_sub(dst->var, s.var);
		break;
	case BPF_NEG:
		vrf_range_const(dst, 0);
		sub_bounds(dst, &old);
		sub_bounds32(dst, &old);
		dst->var = vrf_tnum_neg(old.var);
		break;
	case BPF_MUL:
		mul_bounds(dst, &s);
		mul_bounds32(dst, &s);
		dst->var = vrf_tnum_mul(dst->var, s.var);
		break;
	case BPF_AND:
		dst->var = vrf_tnum_and(dst->var, s.var);
		logic_bounds(dst, &s, op);
		break;
	case BPF_OR:
		dst->var = vrf_tnum_or(dst->var, s.var);
		logic_bounds(dst, &s, op);
		break;
	case BPF_XOR:
		dst->var = vrf_tnum_xor(dst->var, s.var);
		logic_bounds(dst, &s, op);
		break;
	case BPF_LSH:
	case BPF_RSH:
	case BPF_ARSH:
		if (!vrf_range_is_const(&s, is32) || (is32 ? s.umax32 : s.umax) >= (is32 ? 32 : 64)) {
			vrf_range_unknown(dst);
			return;
		}
		if (is32)
			shift32(dst, (u32)s.umax32, op);
		else
			shift64(dst, (u32)s.umax, op);
		break;
	default: /* division and whatever may come: anything (in the upper half too, which Linux forgets as well) */
		vrf_range_unknown(dst);
		return;
	}
	if (is32)
		assign_64_from_32(dst);
	vrf_range_sync(dst);
}

/* Bytes change place: only single bits are known afterwards. */
void vrf_range_end(struct vrf_range *d, u32 size, bool swap)
{
	struct tnum var = swap ? vrf_tnum_bswap(d->var, size) : vrf_tnum_cast(d->var, size);

	vrf_range_unknown(d);
	d->var = var;
	vrf_range_sync(d);
}

/* An interval survives a cut to its low bits if all its members share the bits cut off. */
void vrf_range_zext(struct vrf_range *d, u32 size)
{
	u64 mask;

	if (size >= 8)
		return;
	mask = (1ULL << (size * 8)) - 1;
	d->var = vrf_tnum_cast(d->var, size);
	if ((d->umin & ~mask) == (d->umax & ~mask)) {
		d->umin &= mask;
		d->umax &= mask;
	} else {
		d->umin = 0;
		d->umax = mask;
	}
	d->smin = (s64)d->umin;
	d->smax = (s64)d->umax;
	if (size < 4)
		vrf_range_unbound32(d);
	vrf_range_sync(d);
}

static s64 sext(u64 v, u32 size)
{
	return size == 1 ? (s8)v : size == 2 ? (s16)v : (s32)v;
}

/* Low size bytes of [min, max] as a signed interval, if cutting keeps it one; size < width of min. */
static bool sext_interval(s64 min, s64 max, u32 size, s64 *ret_min, s64 *ret_max)
{
	u32 bits = size * 8;
	s64 a = sext(min, size), b = sext(max, size);

	if (min >> bits != max >> bits)
		return false;
	*ret_min = min_of(a, b);
	*ret_max = max_of(a, b);
	return (a < 0) == (b < 0); /* in one block of 2^bits, both in the same half: order is kept */
}

void vrf_range_sext(struct vrf_range *d, u32 size)
{
	s64 min, max;

	if (size >= 8)
		return;
	if (vrf_tnum_is_const(d->var)) {
		vrf_range_const(d, (u64)sext(d->var.value, size));
		return;
	}
	if (!sext_interval(d->smin, d->smax, size, &min, &max)) {
		min = -(1LL << (size * 8 - 1));
		max = -(min + 1);
		d->var = TNUM_UNKNOWN;
		d->umin = 0;
		d->umax = U64_MAX;
	} else {
		d->var = vrf_tnum_range((u64)min, (u64)max);
		d->umin = (u64)min;
		d->umax = (u64)max;
	}
	d->smin = min;
	d->smax = max;
	d->smin32 = (s32)min;
	d->smax32 = (s32)max;
	d->umin32 = (u32)d->umin;
	d->umax32 = (u32)d->umax;
	if (d->umin32 > d->umax32 || d->umin != (u64)min) {
		d->umin32 = 0;
		d->umax32 = U32_MAX;
	}
}

void vrf_range_sext32(struct vrf_range *d, u32 size)
{
	s64 min, max;

	if (size >= 4) {
		vrf_range_low32(d);
		return;
	}
	if (!(u32)d->var.mask) {
		vrf_range_const(d, (u32)sext(d->var.value, size));
		return;
	}
	if (!sext_interval(d->smin32, d->smax32, size, &min, &max)) {
		min = -(1LL << (size * 8 - 1));
		max = -(min + 1);
	}
	vrf_range_unknown(d);
	d->smin32 = (s32)min;
	d->smax32 = (s32)max;
	if ((u32)min <= (u32)max && (min < 0) == (max < 0)) {
		d->umin32 = (u32)min;
		d->umax32 = (u32)max;
		d->var = vrf_tnum_range((u32)min, (u32)max);
	} else {
		d->var = vrf_tnum_low32(TNUM_UNKNOWN);
	}
	assign_64_from_32(d);
	vrf_range_sync(d);
}
