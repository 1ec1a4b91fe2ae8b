// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tristate arithmetic. Sums and differences follow the carry argument: adding the smallest members and adding the largest
 * ones shows every bit a carry can change, since carries grow monotonically with the operands (Vishwanathan, Shachnai,
 * Narayana, Nagarakatte: "Sound, precise and fast abstract interpretation with tristate numbers").
 */
#include "verifier/tnum.h"

static struct tnum tnum_make(u64 value, u64 unknown)
{
	return (struct tnum){ value & ~unknown, unknown };
}

static u64 tnum_max(struct tnum a)
{
	return a.value | a.mask;
}

struct tnum vrf_tnum_range(u64 min, u64 max)
{
	u64 differ = min ^ max;
	u32 top;

	if (!differ)
		return vrf_tnum_const(min);
	top = 63 - __builtin_clzll(differ);
	return tnum_make(min, top == 63 ? U64_MAX : (2ULL << top) - 1);
}

struct tnum vrf_tnum_lsh(struct tnum a, u32 shift)
{
	return (struct tnum){ a.value << shift, a.mask << shift };
}

struct tnum vrf_tnum_rsh(struct tnum a, u32 shift)
{
	return (struct tnum){ a.value >> shift, a.mask >> shift };
}

/* An unknown sign bit spreads as unknown, a known one as itself: both halves shift arithmetically. */
struct tnum vrf_tnum_arsh(struct tnum a, u32 shift, u32 bits)
{
	if (bits == 32)
		return (struct tnum){ (u32)((s32)a.value >> shift), (u32)((s32)a.mask >> shift) };
	return (struct tnum){ (u64)((s64)a.value >> shift), (u64)((s64)a.mask >> shift) };
}

struct tnum vrf_tnum_add(struct tnum a, struct tnum b)
{
	u64 low = a.value + b.value, high = tnum_max(a) + tnum_max(b);

	return tnum_make(low, (low ^ high) | a.mask | b.mask);
}

struct tnum vrf_tnum_sub(struct tnum a, struct tnum b)
{
	u64 high = tnum_max(a) - b.value, low = a.value - tnum_max(b);

	return tnum_make(a.value - b.value, (low ^ high) | a.mask | b.mask);
}

struct tnum vrf_tnum_neg(struct tnum a)
{
	return vrf_tnum_sub(vrf_tnum_const(0), a);
}

struct tnum vrf_tnum_and(struct tnum a, struct tnum b)
{
	u64 ones = a.value & b.value;

	return tnum_make(ones, (tnum_max(a) & tnum_max(b)) ^ ones);
}

struct tnum vrf_tnum_or(struct tnum a, struct tnum b)
{
	u64 ones = a.value | b.value;

	return tnum_make(ones, (a.mask | b.mask) & ~ones);
}

struct tnum vrf_tnum_xor(struct tnum a, struct tnum b)
{
	return tnum_make(a.value ^ b.value, a.mask | b.mask);
}

struct tnum vrf_tnum_union(struct tnum a, struct tnum b)
{
	return tnum_make(a.value, a.mask | b.mask | (a.value ^ b.value));
}

/* Long multiplication; a multiplier bit that may be 0 or 1 contributes both outcomes. */
struct tnum vrf_tnum_mul(struct tnum a, struct tnum b)
{
	struct tnum sum = vrf_tnum_const(0);

	for (; a.value | a.mask; a = vrf_tnum_rsh(a, 1), b = vrf_tnum_lsh(b, 1)) {
		if (a.value & 1)
			sum = vrf_tnum_add(sum, b);
		else if (a.mask & 1)
			sum = vrf_tnum_union(sum, vrf_tnum_add(sum, b));
	}
	return sum;
}

struct tnum vrf_tnum_intersect(struct tnum a, struct tnum b)
{
	return tnum_make(a.value | b.value, a.mask & b.mask);
}

bool vrf_tnum_overlap(struct tnum a, struct tnum b)
{
	return !((a.value ^ b.value) & ~a.mask & ~b.mask);
}

struct tnum vrf_tnum_cast(struct tnum a, u32 size)
{
	u64 keep = size >= 8 ? U64_MAX : (1ULL << (size * 8)) - 1;

	return (struct tnum){ a.value & keep, a.mask & keep };
}

static u64 swap_bytes(u64 v, u32 size)
{
	return __builtin_bswap64(v) >> (64 - size * 8);
}

struct tnum vrf_tnum_bswap(struct tnum a, u32 size)
{
	return (struct tnum){ swap_bytes(a.value, size), swap_bytes(a.mask, size) };
}

/*
 * At the highest known bit where from disagrees, either the number's 1 makes it larger already, or one of the unknown bits
 * above that are 0 in from must become 1: the lowest such. All unknown bits below are then 0.
 */
bool vrf_tnum_next(struct tnum a, u64 from, u64 *ret)
{
	u64 wrong = (from ^ a.value) & ~a.mask, top, above, grow;

	if (!wrong) {
		*ret = from;
		return true;
	}
	top = 1ULL << (63 - __builtin_clzll(wrong));
	above = ~(top | (top - 1)); /* agrees with a there */
	if (a.value & top) {
		*ret = (from & above) | (a.value & ~above);
		return true;
	}
	grow = a.mask & ~from & above;
	if (!grow)
		return false;
	grow &= -grow;
	*ret = (from & ~(grow | (grow - 1))) | grow | (a.value & (grow - 1));
	return true;
}

bool vrf_tnum_is_aligned(struct tnum a, u64 size)
{
	return !(tnum_max(a) & (size - 1));
}
