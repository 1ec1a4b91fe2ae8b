/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of a 64-bit number: five views of one set. The set is the intersection of all of them; each operator is
 * total and sound alone: if x and y are members of the operands, the result of the instruction is a member of the result.
 * Where a view could be sharper than Linux 6.18's we stay as coarse as it, so that verdicts agree.
 */
#ifndef INLAY_VERIFIER_RANGE_H
#define INLAY_VERIFIER_RANGE_H

#include "verifier/tnum.h"

struct vrf_range {
	struct tnum var;
	s64 smin, smax;
	u64 umin, umax;
	s32 smin32, smax32; /* of the low 32 bits */
	u32 umin32, umax32;
};

void vrf_range_unknown(struct vrf_range *r);
void vrf_range_const(struct vrf_range *r, u64 v);
void vrf_range_unbound32(struct vrf_range *r); /* forgets the 32-bit intervals only */
void vrf_range_unbound64(struct vrf_range *r);
/* Makes the views agree with each other: none loses, each may gain from the others. */
void vrf_range_sync(struct vrf_range *r);
/* Some view is empty or two exclude each other (only dead code or a contradiction makes one). */
bool vrf_range_is_broken(const struct vrf_range *r);
bool vrf_range_is_const(const struct vrf_range *r, bool low32);
bool vrf_range_has(const struct vrf_range *r, u64 x);
/* Every member of in is, view by view, in out. */
bool vrf_range_within(const struct vrf_range *out, const struct vrf_range *in);
bool vrf_range_equal(const struct vrf_range *a, const struct vrf_range *b);

/* op: BPF_ADD … of the ALU classes, BPF_NEG (src ignored) included; DIV, MOD and variable shifts give unknown. */
void vrf_range_alu(struct vrf_range *dst, const struct vrf_range *src, u8 op, bool is32);
/* dst = its low size (1, 2, 4) bytes, zero- or sign-extended to 64 bits. */
void vrf_range_zext(struct vrf_range *dst, u32 size);
void vrf_range_sext(struct vrf_range *dst, u32 size);
/* 32-bit move: low half kept (after vrf_range_zext it is the whole); sext32: low size bytes sign-extended to 32, upper half 0. */
void vrf_range_low32(struct vrf_range *dst);
void vrf_range_sext32(struct vrf_range *dst, u32 size);

/* Byte order of the low size (2, 4, 8) bytes: swapped, or only cut off (on the little-endian machines we build for). */
void vrf_range_end(struct vrf_range *dst, u32 size, bool swap);

/* 1 the jump `a op b` is always taken, 0 never, -1 not known. op: BPF_JEQ … BPF_JSLE, BPF_JSET. */
int vrf_range_decide(const struct vrf_range *a, const struct vrf_range *b, u8 op, bool is32);
/* Narrows a and b to where `a op b` holds (taken) or does not. a and b are distinct objects. */
void vrf_range_refine(struct vrf_range *a, struct vrf_range *b, u8 op, bool is32, bool taken);

#endif
