/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tristate numbers: each bit is 0, 1 or unknown. A value type; every function is total and sound: if x is in a and y is
 * in b, then x OP y is in vrf_tnum_OP(a, b).
 *
 * Invariant: value & mask == 0. A bit set in mask is unknown; otherwise the bit is that of value.
 */
#ifndef INLAY_VERIFIER_TNUM_H
#define INLAY_VERIFIER_TNUM_H

#include "base/types.h"

struct tnum {
	u64 value, mask;
};

#define TNUM_UNKNOWN ((struct tnum){ 0, U64_MAX })

static inline struct tnum vrf_tnum_const(u64 v)
{
	return (struct tnum){ v, 0 };
}

static inline bool vrf_tnum_is_const(struct tnum a)
{
	return !a.mask;
}

static inline bool vrf_tnum_has(struct tnum a, u64 x)
{
	return !((x ^ a.value) & ~a.mask);
}

/* Every number of b is in a. */
static inline bool vrf_tnum_includes(struct tnum a, struct tnum b)
{
	return !(b.mask & ~a.mask) && !((a.value ^ b.value) & ~a.mask);
}

/* Smallest tnum that holds [min, max]; min <= max. */
struct tnum vrf_tnum_range(u64 min, u64 max);
struct tnum vrf_tnum_lsh(struct tnum a, u32 shift);	     /* shift 0..63 */
struct tnum vrf_tnum_rsh(struct tnum a, u32 shift);	     /* logical */
struct tnum vrf_tnum_arsh(struct tnum a, u32 shift, u32 bits); /* bits: 32 (upper half of the result 0) or 64 */
struct tnum vrf_tnum_add(struct tnum a, struct tnum b);
struct tnum vrf_tnum_sub(struct tnum a, struct tnum b);
struct tnum vrf_tnum_neg(struct tnum a);
struct tnum vrf_tnum_and(struct tnum a, struct tnum b);
struct tnum vrf_tnum_or(struct tnum a, struct tnum b);
struct tnum vrf_tnum_xor(struct tnum a, struct tnum b);
struct tnum vrf_tnum_mul(struct tnum a, struct tnum b);
/* Numbers in both, if there are any; if the two contradict each other, some tnum (callers check bounds). */
struct tnum vrf_tnum_intersect(struct tnum a, struct tnum b);
/* Smallest tnum that holds both. */
struct tnum vrf_tnum_union(struct tnum a, struct tnum b);
/* Some number is in both. */
bool vrf_tnum_overlap(struct tnum a, struct tnum b);
/* The low size bytes, the rest 0; size 1..8. */
struct tnum vrf_tnum_cast(struct tnum a, u32 size);
struct tnum vrf_tnum_bswap(struct tnum a, u32 size); /* byte-swapped low size (2, 4, 8) bytes, the rest 0 */
bool vrf_tnum_next(struct tnum a, u64 from, u64 *ret); /* smallest number of a that is >= from; false: none */
bool vrf_tnum_is_aligned(struct tnum a, u64 size); /* size: power of two; every number is a multiple */

static inline struct tnum vrf_tnum_low32(struct tnum a)
{
	return (struct tnum){ (u32)a.value, (u32)a.mask };
}

/* Upper half of a, lower half of b. */
static inline struct tnum vrf_tnum_set_low32(struct tnum a, struct tnum b)
{
	return (struct tnum){ (a.value & ~0xffffffffULL) | (u32)b.value, (a.mask & ~0xffffffffULL) | (u32)b.mask };
}

#endif
