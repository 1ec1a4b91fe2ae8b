// SPDX-License-Identifier: BSD-2-Clause
/*
 * The views of a number and how they inform each other.
 *
 * Every step below intersects one view with a set that follows from another view, so a step never loses a member: that is
 * the whole soundness argument (one step replaces views by such a set instead, which is as good). A step is done only where Linux 6.18 does it.
 */
#include "verifier/range.h"

#define LOW32 0xffffffffULL

void vrf_range_unbound32(struct vrf_range *r)
{
	r->smin32 = S32_MIN;
	r->smax32 = S32_MAX;
	r->umin32 = 0;
	r->umax32 = U32_MAX;
}

void vrf_range_unbound64(struct vrf_range *r)
{
	r->smin = S64_MIN;
	r->smax = S64_MAX;
	r->umin = 0;
	r->umax = U64_MAX;
}

void vrf_range_unknown(struct vrf_range *r)
{
	r->var = TNUM_UNKNOWN;
	vrf_range_unbound64(r);
	vrf_range_unbound32(r);
}

void vrf_range_const(struct vrf_range *r, u64 v)
{
	r->var = vrf_tnum_const(v);
	r->smin = r->smax = (s64)v;
	r->umin = r->umax = v;
	r->smin32 = r->smax32 = (s32)v;
	r->umin32 = r->umax32 = (u32)v;
}

static void meet_u64(struct vrf_range *r, u64 min, u64 max)
{
	r->umin = max_of(r->umin, min);
	r->umax = min_of(r->umax, max);
}

static void meet_s64(struct vrf_range *r, s64 min, s64 max)
{
	r->smin = max_of(r->smin, min);
	r->smax = min_of(r->smax, max);
}

static void meet_u32(struct vrf_range *r, u32 min, u32 max)
{
	r->umin32 = max_of(r->umin32, min);
	r->umax32 = min_of(r->umax32, max);
}

static void meet_s32(struct vrf_range *r, s32 min, s32 max)
{
	r->smin32 = max_of(r->smin32, min);
	r->smax32 = min_of(r->smax32, max);
}

/* The interval may hold a single number of the tnum: then it is that. */
static void only_member(struct vrf_range *r)
{
	u64 first, second;

	if (r->umin > r->umax || !vrf_tnum_next(r->var, r->umin, &first) || first > r->umax)
		return;
	if (first == U64_MAX || !vrf_tnum_next(r->var, first + 1, &second) || second > r->umax)
		vrf_range_const(r, first);
}

/* An unknown sign bit is 1 in the smallest member and 0 in the largest. */
static void bounds_from_tnum(struct vrf_range *r)
{
	struct tnum low = vrf_tnum_low32(r->var);

	meet_s64(r, (s64)(r->var.value | (r->var.mask & (1ULL << 63))), (s64)(r->var.value | (r->var.mask & S64_MAX)));
	meet_u64(r, r->var.value, r->var.value | r->var.mask);
	meet_s32(r, (s32)((u32)low.value | ((u32)low.mask & (1u << 31))), (s32)(low.value | (low.mask & S32_MAX)));
	meet_u32(r, (u32)low.value, (u32)(low.value | low.mask));
	if (r->var.mask && (r->umin > r->var.value || r->umax < (r->var.value | r->var.mask)))
		only_member(r);
}

/*
 * Low halves of a 64-bit interval [min, max]: with equal upper halves they are an interval themselves; with upper halves
 * n and n + 1 they run through the end of one block into the next, which is an interval of signed numbers if the ends are
 * on the right sides of zero.
 */
static void low32_from_interval(struct vrf_range *r, u64 min, u64 max)
{
	if (min >> 32 == max >> 32) {
		meet_u32(r, (u32)min, (u32)max);
		if ((s32)min <= (s32)max)
			meet_s32(r, (s32)min, (s32)max);
	}
	if ((u32)(min >> 32) + 1 == (u32)(max >> 32) && (s32)min < 0 && (s32)max >= 0)
		meet_s32(r, (s32)min, (s32)max);
}

static void deduce_32(struct vrf_range *r)
{
	low32_from_interval(r, r->umin, r->umax);
	low32_from_interval(r, (u64)r->smin, (u64)r->smax);
	if ((s32)r->umin32 <= (s32)r->umax32)
		meet_s32(r, (s32)r->umin32, (s32)r->umax32);
	/* else it crosses zero: as in deduce_64() */
	if ((u32)r->smin32 <= (u32)r->smax32) {
		meet_u32(r, (u32)r->smin32, (u32)r->smax32);
	} else if (r->umax32 < (u32)r->smin32) {
		r->smin32 = (s32)r->umin32;
		r->umax32 = min_of(r->umax32, (u32)r->smax32);
	} else if (r->umin32 > (u32)r->smax32) {
		r->smax32 = (s32)r->umax32;
		r->umin32 = max_of(r->umin32, (u32)r->smin32);
	}
}

/*
 * A signed interval across zero is, unsigned, the two pieces [0, smax] and [smin, U64_MAX]. If the unsigned interval
 * meets only one of them, both views shrink to that piece; if it meets both, nothing follows.
 */
static void deduce_64(struct vrf_range *r)
{
	if ((s64)r->umin <= (s64)r->umax)
		meet_s64(r, (s64)r->umin, (s64)r->umax);
	if ((u64)r->smin <= (u64)r->smax) {
		meet_u64(r, (u64)r->smin, (u64)r->smax);
	} else if (r->umax < (u64)r->smin) {
		r->smin = (s64)r->umin;
		r->umax = min_of(r->umax, (u64)r->smax);
	} else if (r->umin > (u64)r->smax) {
		r->smax = (s64)r->umax;
		r->umin = max_of(r->umin, (u64)r->smin);
	}
}

static void deduce_64_from_32(struct vrf_range *r)
{
	meet_u64(r, (r->umin & ~LOW32) | r->umin32, (r->umax & ~LOW32) | r->umax32);
	meet_s64(r, (s64)(((u64)r->smin & ~LOW32) | r->umin32), (s64)(((u64)r->smax & ~LOW32) | r->umax32));
	/*
	 * A 64-bit number that fits in 32 signed bits is the number its low half says; if that is not negative, all views
	 * are. They are set, not met, since Linux does so too, and so may lose what the 64-bit views knew.
	 */
	if (r->smin32 >= 0 && r->smin >= S32_MIN && r->smax <= S32_MAX) {
		r->smin = r->smin32;
		r->smax = r->smax32;
		r->umin = (u64)r->smin;
		r->umax = (u64)r->smax;
		if (r->umin <= r->umax)
			r->var = vrf_tnum_intersect(r->var, vrf_tnum_range(r->umin, r->umax));
	}
}

static void tnum_from_bounds(struct vrf_range *r)
{
	struct tnum low;

	if (r->umin > r->umax || r->umin32 > r->umax32)
		return; /* broken; the caller finds out */
	r->var = vrf_tnum_intersect(r->var, vrf_tnum_range(r->umin, r->umax));
	low = vrf_tnum_intersect(vrf_tnum_low32(r->var), vrf_tnum_range(r->umin32, r->umax32));
	r->var = vrf_tnum_set_low32(r->var, low);
}

/* One number, or any: no view can tell another anything, and these are what most numbers are. */
static bool nothing_to_learn(const struct vrf_range *r)
{
	u64 x = r->var.value;

	if (!r->var.mask)
		return r->umin == x && r->umax == x && (u64)r->smin == x && (u64)r->smax == x && r->umin32 == (u32)x &&
		       r->umax32 == (u32)x && (u32)r->smin32 == (u32)x && (u32)r->smax32 == (u32)x;
	return r->var.mask == U64_MAX && !r->umin && r->umax == U64_MAX && r->smin == S64_MIN && r->smax == S64_MAX &&
	       !r->umin32 && r->umax32 == U32_MAX && r->smin32 == S32_MIN && r->smax32 == S32_MAX;
}

void vrf_range_sync(struct vrf_range *r)
{
	if (nothing_to_learn(r))
		return;
	bounds_from_tnum(r);
	for (int i = 0; i < 3; i++) {
		deduce_32(r);
		deduce_64(r);
		deduce_64_from_32(r);
	}
	tnum_from_bounds(r);
	bounds_from_tnum(r);
}

bool vrf_range_is_broken(const struct vrf_range *r)
{
	if (r->umin > r->umax || r->smin > r->smax || r->umin32 > r->umax32 || r->smin32 > r->smax32)
		return true;
	if (vrf_tnum_is_const(r->var) && (r->umin != r->var.value || r->umax != r->var.value ||
					  (u64)r->smin != r->var.value || (u64)r->smax != r->var.value))
		return true;
	if (!(u32)r->var.mask && (r->umin32 != (u32)r->var.value || r->umax32 != (u32)r->var.value ||
				  (u32)r->smin32 != (u32)r->var.value || (u32)r->smax32 != (u32)r->var.value))
		return true;
	return false;
}

bool vrf_range_is_const(const struct vrf_range *r, bool low32)
{
	return low32 ? !(u32)r->var.mask : !r->var.mask;
}

bool vrf_range_has(const struct vrf_range *r, u64 x)
{
	return vrf_tnum_has(r->var, x) && x >= r->umin && x <= r->umax && (s64)x >= r->smin && (s64)x <= r->smax &&
	       (u32)x >= r->umin32 && (u32)x <= r->umax32 && (s32)x >= r->smin32 && (s32)x <= r->smax32;
}

bool vrf_range_within(const struct vrf_range *out, const struct vrf_range *in)
{
	return vrf_tnum_includes(out->var, in->var) && out->umin <= in->umin && out->umax >= in->umax &&
	       out->smin <= in->smin && out->smax >= in->smax && out->umin32 <= in->umin32 &&
	       out->umax32 >= in->umax32 && out->smin32 <= in->smin32 && out->smax32 >= in->smax32;
}

bool vrf_range_equal(const struct vrf_range *a, const struct vrf_range *b)
{
	return a->var.value == b->var.value && a->var.mask == b->var.mask && a->umin == b->umin &&
	       a->umax == b->umax && a->smin == b->smin && a->smax == b->smax && a->umin32 == b->umin32 &&
	       a->umax32 == b->umax32 && a->smin32 == b->smin32 && a->smax32 == b->smax32;
}
