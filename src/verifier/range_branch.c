// SPDX-License-Identifier: BSD-2-Clause
/* Comparisons: which are decided by what is known, and what taking or not taking a jump teaches. */
#include <linux/bpf.h>

#include "verifier/range.h"

struct view {
	struct tnum var;
	u64 umin, umax;
	s64 smin, smax;
};

static struct view view_of(const struct vrf_range *r, bool is32)
{
	if (!is32)
		return (struct view){ r->var, r->umin, r->umax, r->smin, r->smax };
	return (struct view){ vrf_tnum_low32(r->var), r->umin32, r->umax32, r->smin32, r->smax32 };
}

static bool views_apart(const struct view *a, const struct view *b)
{
	return a->umin > b->umax || a->umax < b->umin || a->smin > b->smax || a->smax < b->smin;
}

/* 1 equal, 0 different, -1 not known */
static int decide_equal(const struct vrf_range *ra, const struct vrf_range *rb, bool is32)
{
	struct view a = view_of(ra, is32), b = view_of(rb, is32);

	if (!a.var.mask && !b.var.mask)
		return a.var.value == b.var.value;
	if (!vrf_tnum_overlap(a.var, b.var) || views_apart(&a, &b))
		return 0;
	if (!is32) {
		a = view_of(ra, true);
		b = view_of(rb, true);
		if (views_apart(&a, &b))
			return 0;
	}
	return -1;
}

static int decide_less(const struct view *a, const struct view *b, bool or_equal, bool is_signed)
{
	if (is_signed) {
		if (or_equal ? a->smax <= b->smin : a->smax < b->smin)
			return 1;
		if (or_equal ? a->smin > b->smax : a->smin >= b->smax)
			return 0;
		return -1;
	}
	if (or_equal ? a->umax <= b->umin : a->umax < b->umin)
		return 1;
	if (or_equal ? a->umin > b->umax : a->umin >= b->umax)
		return 0;
	return -1;
}

int vrf_range_decide(const struct vrf_range *ra, const struct vrf_range *rb, u8 op, bool is32)
{
	struct view a = view_of(ra, is32), b = view_of(rb, is32);
	int eq;

	switch (op) {
	case BPF_JEQ:
		return decide_equal(ra, rb, is32);
	case BPF_JNE:
		eq = decide_equal(ra, rb, is32);
		return eq < 0 ? eq : !eq;
	case BPF_JSET:
		if (b.var.mask) {
			struct view swap = a;

			a = b;
			b = swap;
		}
		if (b.var.mask)
			return -1;
		if (a.var.value & b.var.value)
			return 1;
		return (a.var.value | a.var.mask) & b.var.value ? -1 : 0;
	case BPF_JLT:
	case BPF_JLE:
		return decide_less(&a, &b, op == BPF_JLE, false);
	case BPF_JSLT:
	case BPF_JSLE:
		return decide_less(&a, &b, op == BPF_JSLE, true);
	case BPF_JGT:
	case BPF_JGE:
		return decide_less(&b, &a, op == BPF_JGE, false);
	case BPF_JSGT:
	case BPF_JSGE:
		return decide_less(&b, &a, op == BPF_JSGE, true);
	}
	return -1;
}

static void refine_equal(struct vrf_range *a, struct vrf_range *b, bool is32)
{
	struct tnum low;

	a->umin32 = b->umin32 = max_of(a->umin32, b->umin32);
	a->umax32 = b->umax32 = min_of(a->umax32, b->umax32);
	a->smin32 = b->smin32 = max_of(a->smin32, b->smin32);
	a->smax32 = b->smax32 = min_of(a->smax32, b->smax32);
	if (is32) {
		low = vrf_tnum_intersect(vrf_tnum_low32(a->var), vrf_tnum_low32(b->var));
		a->var = vrf_tnum_set_low32(a->var, low);
		b->var = vrf_tnum_set_low32(b->var, low);
		return;
	}
	a->umin = b->umin = max_of(a->umin, b->umin);
	a->umax = b->umax = min_of(a->umax, b->umax);
	a->smin = b->smin = max_of(a->smin, b->smin);
	a->smax = b->smax = min_of(a->smax, b->smax);
	a->var = b->var = vrf_tnum_intersect(a->var, b->var);
}

/* A constant at the end of an interval comes off. */
static void refine_not_equal(struct vrf_range *a, const struct vrf_range *b, bool is32)
{
	if (is32) {
		u32 v = (u32)b->var.value;

		a->umin32 += a->umin32 == v;
		a->umax32 -= a->umax32 == v;
		if (a->smin32 == (s32)v && a->smin32 != S32_MAX)
			a->smin32++;
		if (a->smax32 == (s32)v && a->smax32 != S32_MIN)
			a->smax32--;
		return;
	}
	if (a->umin == b->var.value && a->umin != U64_MAX)
		a->umin++;
	if (a->umax == b->var.value && a->umax != 0)
		a->umax--;
	if (a->smin == (s64)b->var.value && a->smin != S64_MAX)
		a->smin++;
	if (a->smax == (s64)b->var.value && a->smax != S64_MIN)
		a->smax--;
}

/* mask: constant bits tested. Some bit is set: only with one bit do we know which. */
static void refine_bits(struct vrf_range *a, u64 mask, bool is32, bool taken)
{
	struct tnum t = is32 ? vrf_tnum_low32(a->var) : a->var;

	if (taken && !is_pow2(mask))
		return;
	t = taken ? vrf_tnum_or(t, vrf_tnum_const(mask)) : vrf_tnum_and(t, vrf_tnum_const(~mask));
	a->var = is32 ? vrf_tnum_set_low32(a->var, t) : t;
	if (!taken) { /* Linux keeps nothing but the bits then */
		vrf_range_unbound64(a);
		vrf_range_unbound32(a);
	}
}

/* a < b, or a <= b. An end that would wrap (nothing is below 0) is left: the branch is dead, and saying less is sound. */
static void refine_less(struct vrf_range *a, struct vrf_range *b, bool or_equal, bool is_signed, bool is32)
{
	u32 d = !or_equal;

	if (is32 && is_signed) {
		if (!(d && b->smax32 == S32_MIN))
			a->smax32 = min_of(a->smax32, (s32)(b->smax32 - (s32)d));
		if (!(d && a->smin32 == S32_MAX))
			b->smin32 = max_of(b->smin32, (s32)(a->smin32 + (s32)d));
	} else if (is32) {
		if (!(d && !b->umax32))
			a->umax32 = min_of(a->umax32, b->umax32 - d);
		if (!(d && a->umin32 == U32_MAX))
			b->umin32 = max_of(b->umin32, a->umin32 + d);
	} else if (is_signed) {
		if (!(d && b->smax == S64_MIN))
			a->smax = min_of(a->smax, b->smax - (s64)d);
		if (!(d && a->smin == S64_MAX))
			b->smin = max_of(b->smin, a->smin + (s64)d);
	} else {
		if (!(d && !b->umax))
			a->umax = min_of(a->umax, b->umax - d);
		if (!(d && a->umin == U64_MAX))
			b->umin = max_of(b->umin, a->umin + d);
	}
}

void vrf_range_refine(struct vrf_range *a, struct vrf_range *b, u8 op, bool is32, bool taken)
{
	switch (op) {
	case BPF_JEQ:
	case BPF_JNE:
		if ((op == BPF_JEQ) == taken)
			refine_equal(a, b, is32);
		else if (vrf_range_is_const(b, is32))
			refine_not_equal(a, b, is32);
		else if (vrf_range_is_const(a, is32))
			refine_not_equal(b, a, is32);
		break;
	case BPF_JSET:
		if (vrf_range_is_const(b, is32))
			refine_bits(a, is32 ? (u32)b->var.value : b->var.value, is32, taken);
		else if (vrf_range_is_const(a, is32))
			refine_bits(b, is32 ? (u32)a->var.value : a->var.value, is32, taken);
		break;
	case BPF_JLT:
	case BPF_JLE:
	case BPF_JSLT:
	case BPF_JSLE:
	case BPF_JGT:
	case BPF_JGE:
	case BPF_JSGT:
	case BPF_JSGE: {
		bool is_signed = op == BPF_JSLT || op == BPF_JSLE || op == BPF_JSGT || op == BPF_JSGE;
		bool less = op == BPF_JLT || op == BPF_JLE || op == BPF_JSLT || op == BPF_JSLE;
		bool or_equal = op == BPF_JLE || op == BPF_JSLE || op == BPF_JGE || op == BPF_JSGE;

		/* not (a < b) is b <= a; not (a <= b) is b < a */
		if (!taken) {
			less = !less;
			or_equal = !or_equal;
		}
		if (less)
			refine_less(a, b, or_equal, is_signed, is32);
		else
			refine_less(b, a, or_equal, is_signed, is32);
		break;
	}
	}
	vrf_range_sync(a);
	vrf_range_sync(b);
	/* a contradiction: this side is dead, which the views did not show before; forgetting all is sound, and as Linux does */
	if (vrf_range_is_broken(a))
		vrf_range_unknown(a);
	if (vrf_range_is_broken(b))
		vrf_range_unknown(b);
}
