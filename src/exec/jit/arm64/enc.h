/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arm64 instructions as words: one small function a form, named for what assemblers call it. w: 8 for the 64-bit form,
 * 4 for the 32-bit one, which clears the upper half. Register 31 is the stack pointer where the form says sp, else zero.
 */
#ifndef INLAY_EXEC_JIT_ARM64_ENC_H
#define INLAY_EXEC_JIT_ARM64_ENC_H

#include "base/types.h"

enum a64_reg {
	X0, X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14, X15, X16, X17, X18, X19, X20, X21, X22, X23, X24, X25,
	X26, X27, X28, X29, X30, XZR, A64_SP = XZR, A64_NONE = 0xff,
};

enum a64_cc {
	CC_EQ, CC_NE, CC_HS, CC_LO, CC_MI, CC_PL, CC_VS, CC_VC, CC_HI, CC_LS, CC_GE, CC_LT, CC_GT, CC_LE,
};

enum a64_shift {
	A64_LSL, A64_LSR, A64_ASR, A64_ROR,
};

/* sums: what is added to the encoding of an addition */
enum a64_sum {
	A64_ADD = 0, A64_ADDS = 1 << 29, A64_SUB = 1 << 30, A64_SUBS = 3 << 29,
};

enum a64_logic {
	A64_AND, A64_ORR, A64_EOR, A64_ANDS,
};

static inline u32 a64_sf(u8 w)
{
	return (u32)(w == 8) << 31;
}

/* d = n op (m shifted by k) */
static inline u32 a64_sum(u8 w, enum a64_sum op, u8 d, u8 n, u8 m, enum a64_shift shift, u8 k)
{
	return a64_sf(w) | 0x0b000000 | (u32)op | shift << 22 | m << 16 | k << 10 | n << 5 | d;
}

/* the same where d or n is the stack pointer: m shifted left by k, at most 4 */
static inline u32 a64_sum_sp(enum a64_sum op, u8 d, u8 n, u8 m, u8 k)
{
	return 0x8b206000 | (u32)op | m << 16 | k << 10 | n << 5 | d;
}

/* d = n op imm, of 12 bits, or of 12 bits and 12 zeros; sp */
static inline bool a64_is_sum_imm(u64 imm)
{
	return imm < 1 << 12 || (imm < 1 << 24 && !(imm & 0xfff));
}

static inline u32 a64_sum_imm(u8 w, enum a64_sum op, u8 d, u8 n, u32 imm)
{
	u32 high = imm >> 12 ? 1 << 22 | imm >> 12 << 10 : imm << 10;

	return a64_sf(w) | 0x11000000 | (u32)op | high | n << 5 | d;
}

/* d = n op (m shifted by k); not: the complement of that */
static inline u32 a64_logic(u8 w, enum a64_logic op, bool not, u8 d, u8 n, u8 m, enum a64_shift shift, u8 k)
{
	return a64_sf(w) | 0x0a000000 | (u32)op << 29 | shift << 22 | not << 21 | m << 16 | k << 10 | n << 5 | d;
}

/*
 * Immediates of logical operations: a run of ones, rotated, in an element of 2, 4 .. 64 bits that is repeated. Gives
 * the 13 bits N:immr:imms and A64_MASK, or 0: it is none.
 */
#define A64_MASK (1u << 13)

static inline u32 a64_mask(u8 w, u64 v)
{
	u64 ones, all;
	u8 size = 64, zeros, rot, run;

	if (w == 4)
		v = (v & U32_MAX) | v << 32;
	if (!v || !~v)
		return 0;
	while (size > 2 && (v & (U64_MAX >> (64 - size / 2))) == (v >> size / 2 & (U64_MAX >> (64 - size / 2))))
		size /= 2;
	all = U64_MAX >> (64 - size);
	v &= all;
	/* the run is turned to the bottom: where it wraps around, what it leaves out is a run that does not */
	if (v & 1 && v >> (size - 1) & 1) {
		zeros = __builtin_ctzll(~v);
		run = size - __builtin_popcountll(~v & all);
		rot = run - zeros;
		ones = ~v & all;
		if (ones >> zeros != (U64_MAX >> (64 - (size - run))))
			return 0;
	} else {
		zeros = __builtin_ctzll(v);
		run = __builtin_popcountll(v);
		rot = (size - zeros) & (size - 1);
		if (v >> zeros != U64_MAX >> (64 - run))
			return 0;
	}
	return A64_MASK | (u32)(size == 64) << 12 | (u32)rot << 6 | (u32)((~(size * 2 - 1) & 0x3f) | (run - 1));
}

/* d = n op the immediate of a64_mask(); d is the stack pointer at 31, but for ANDS */
static inline u32 a64_logic_imm(u8 w, enum a64_logic op, u8 d, u8 n, u32 mask)
{
	return a64_sf(w) | 0x12000000 | (u32)op << 29 | (mask & 0x1fff) << 10 | n << 5 | d;
}

enum a64_wide {
	A64_MOVN, A64_MOVZ = 2, A64_MOVK,
};

/* 16 bits at 16 * at */
static inline u32 a64_wide(u8 w, enum a64_wide op, u8 d, u16 imm, u8 at)
{
	return a64_sf(w) | 0x12800000 | (u32)op << 29 | at << 21 | imm << 5 | d;
}

static inline u32 a64_mov(u8 w, u8 d, u8 m)
{
	return a64_logic(w, A64_ORR, false, d, XZR, m, A64_LSL, 0);
}

/* to or from the stack pointer */
static inline u32 a64_mov_sp(u8 d, u8 n)
{
	return a64_sum_imm(8, A64_ADD, d, n, 0);
}

enum a64_field {
	A64_SBFM, A64_BFM, A64_UBFM,
};

static inline u32 a64_field(u8 w, enum a64_field op, u8 d, u8 n, u8 immr, u8 imms)
{
	return a64_sf(w) | 0x13000000 | (u32)op << 29 | (u32)(w == 8) << 22 | immr << 16 | imms << 10 | n << 5 | d;
}

/* by a constant, below the width */
static inline u32 a64_shift_imm(u8 w, enum a64_shift op, u8 d, u8 n, u8 k)
{
	u8 top = w * 8 - 1;

	if (op == A64_ROR) /* extr d, n, n */
		return a64_sf(w) | 0x13800000 | (u32)(w == 8) << 22 | n << 16 | k << 10 | n << 5 | d;
	if (op == A64_LSL)
		return a64_field(w, A64_UBFM, d, n, -k & top, top - k);
	return a64_field(w, op == A64_LSR ? A64_UBFM : A64_SBFM, d, n, k, top);
}

/* d = n shifted by m, modulo the width */
static inline u32 a64_shift(u8 w, enum a64_shift op, u8 d, u8 n, u8 m)
{
	return a64_sf(w) | 0x1ac02000 | (u32)op << 10 | m << 16 | n << 5 | d;
}

static inline u32 a64_div(u8 w, bool sign, u8 d, u8 n, u8 m)
{
	return a64_sf(w) | 0x1ac00800 | sign << 10 | m << 16 | n << 5 | d;
}

/* d = a + n * m, or a - n * m */
static inline u32 a64_madd(u8 w, bool minus, u8 d, u8 n, u8 m, u8 a)
{
	return a64_sf(w) | 0x1b000000 | m << 16 | minus << 15 | a << 10 | n << 5 | d;
}

static inline u32 a64_mul(u8 w, u8 d, u8 n, u8 m)
{
	return a64_madd(w, false, d, n, m, XZR);
}

/* d = a + n * m, of 64 bits, n and m of 32 */
static inline u32 a64_umaddl(u8 d, u8 n, u8 m, u8 a)
{
	return 0x9ba00000 | m << 16 | a << 10 | n << 5 | d;
}

/* upper half of the 128-bit product */
static inline u32 a64_mulh(bool sign, u8 d, u8 n, u8 m)
{
	return 0x9b407c00 | (u32)!sign << 23 | m << 16 | n << 5 | d;
}

/* order of bytes: within 16 bits, or the whole of the width */
static inline u32 a64_rev16(u8 w, u8 d, u8 n)
{
	return a64_sf(w) | 0x5ac00400 | n << 5 | d;
}

static inline u32 a64_rev(u8 w, u8 d, u8 n)
{
	return a64_sf(w) | 0x5ac00800 | (u32)(w == 8) << 10 | n << 5 | d;
}

/* d = cc ? n : m */
static inline u32 a64_csel(u8 w, u8 d, u8 n, u8 m, enum a64_cc cc)
{
	return a64_sf(w) | 0x1a800000 | m << 16 | (u32)cc << 12 | n << 5 | d;
}

static inline u32 a64_cset(u8 d, enum a64_cc cc)
{
	return 0x1a9f07e0 | ((u32)cc ^ 1) << 12 | d;
}

/* ---- memory ---- */

/* the first two bits of loads and stores: log2 of their bytes */
static inline u32 a64_size(u8 width)
{
	return (u32)__builtin_ctz(width) << 30;
}

/* which access: sign extension is to 64 bits */
enum a64_access {
	A64_STR = 0, A64_LDR = 1 << 22, A64_LDRS = 1 << 23,
};

/* at n + off, off a multiple of width below 4096 * width; sp */
static inline bool a64_is_scaled(u8 width, s64 off)
{
	return off >= 0 && !(off & (width - 1)) && off < 4096 * (s64)width;
}

static inline u32 a64_mem(u8 width, enum a64_access op, u8 t, u8 n, u32 off)
{
	return a64_size(width) | 0x39000000 | (u32)op | off / width << 10 | n << 5 | t;
}

/* at n + off, off of 9 bits; sp */
static inline bool a64_is_near(s64 off)
{
	return off >= -256 && off < 256;
}

static inline u32 a64_mem_near(u8 width, enum a64_access op, u8 t, u8 n, s32 off)
{
	return a64_size(width) | 0x38000000 | (u32)op | ((u32)off & 0x1ff) << 12 | n << 5 | t;
}

/* at n + m, or n + m * width; sp */
static inline u32 a64_mem_reg(u8 width, enum a64_access op, u8 t, u8 n, u8 m, bool scaled)
{
	return a64_size(width) | 0x38206800 | (u32)op | m << 16 | scaled << 12 | n << 5 | t;
}

/* 64 bits before n moves down by off, or after which it moves up by off (9 bits); sp */
static inline u32 a64_push(u8 t, u8 n, u32 off)
{
	return 0xf8000c00 | ((0 - off) & 0x1ff) << 12 | n << 5 | t;
}

static inline u32 a64_pop(u8 t, u8 n, u32 off)
{
	return 0xf8400400 | (off & 0x1ff) << 12 | n << 5 | t;
}

/* a pair of 64 bits at n + off: off a multiple of 8 of 10 bits; before or after n moves; sp */
enum a64_pair {
	A64_STP = 0x29000000, A64_LDP = 0x29400000, A64_STP_PRE = 0x29800000, A64_LDP_POST = 0x28c00000,
};

static inline u32 a64_pair(enum a64_pair op, u8 t, u8 t2, u8 n, s32 off)
{
	return 0x80000000 | (u32)op | ((u32)(off / 8) & 0x7f) << 15 | t2 << 10 | n << 5 | t;
}

/* v0 = 0; v0 twice at n + off, a multiple of 16 below 1024; sp */
#define A64_MOVI_V0 0x6f00e400u

static inline u32 a64_stp_v0(u8 n, s32 off)
{
	return 0xad000000 | ((u32)(off / 16) & 0x7f) << 15 | n << 5;
}

/* Ordered and exclusive access at n; sp. ldar, stlr, ldxr; stxr and stlxr leave 0 in s where they did store. */
static inline u32 a64_ldar(u8 width, u8 t, u8 n)
{
	return a64_size(width) | 0x08dffc00 | n << 5 | t;
}

static inline u32 a64_stlr(u8 width, u8 t, u8 n)
{
	return a64_size(width) | 0x089ffc00 | n << 5 | t;
}

static inline u32 a64_ldxr(u8 width, u8 t, u8 n)
{
	return a64_size(width) | 0x085f7c00 | n << 5 | t;
}

static inline u32 a64_stxr(u8 width, u8 s, u8 t, u8 n)
{
	return a64_size(width) | 0x08007c00 | s << 16 | n << 5 | t;
}

static inline u32 a64_stlxr(u8 width, u8 s, u8 t, u8 n)
{
	return a64_size(width) | 0x0800fc00 | s << 16 | n << 5 | t;
}

#define A64_DMB_ISH 0xd5033bbfu

/* LSE: t = the old value at n, which s was added to (its bits cleared, turned, set; exchanged for). order: of both sides */
enum a64_lse {
	A64_LDADD = 0, A64_LDCLR = 0x1000, A64_LDEOR = 0x2000, A64_LDSET = 0x3000, A64_SWP = 0x8000,
};

static inline u32 a64_lse(u8 width, enum a64_lse op, bool order, u8 s, u8 t, u8 n)
{
	return a64_size(width) | 0x38200000 | (u32)op | (order ? 3u << 22 : 0) | s << 16 | n << 5 | t;
}

/* if n holds s, t goes there; s = what it held. casal */
static inline u32 a64_casal(u8 width, u8 s, u8 t, u8 n)
{
	return a64_size(width) | 0x08e0fc00 | s << 16 | n << 5 | t;
}

/* ---- control; distances are filled in by a64_aim() ---- */

#define A64_B   0x14000000u
#define A64_BL  0x94000000u
#define A64_CBZ 0x34000000u
#define A64_TBZ 0x36000000u

static inline u32 a64_bcc(enum a64_cc cc)
{
	return 0x54000000 | cc;
}

static inline u32 a64_cbz(u8 w, bool nz, u8 t)
{
	return a64_sf(w) | A64_CBZ | (u32)nz << 24 | t;
}

static inline u32 a64_tbz(bool nz, u8 t, u8 bit)
{
	return A64_TBZ | (u32)nz << 24 | (u32)(bit >> 5) << 31 | (u32)(bit & 31) << 19 | t;
}

/* The branch that is taken where this one is not; of conditional ones. */
static inline u32 a64_turn(u32 word)
{
	return word ^ ((word >> 24) == 0x54 ? 1 : 1 << 24);
}

/* Bytes a branch reaches forward (a little more back): b and bl, tbz, all the others. */
static inline u32 a64_reach(u32 word)
{
	if ((word & 0x7c000000) == A64_B)
		return (1 << 27) - 4;
	return (word & 0x7e000000) == A64_TBZ ? (1 << 15) - 4 : (1 << 20) - 4;
}

/* The branch with its distance, which it reaches. */
static inline u32 a64_aim(u32 word, s64 dist)
{
	u32 insns = (u32)(dist >> 2);

	if ((word & 0x7c000000) == A64_B)
		return word | (insns & 0x3ffffff);
	if ((word & 0x7e000000) == A64_TBZ)
		return word | (insns & 0x3fff) << 5;
	return word | (insns & 0x7ffff) << 5;
}

static inline u32 a64_br(u8 n)
{
	return 0xd61f0000 | n << 5;
}

static inline u32 a64_blr(u8 n)
{
	return 0xd63f0000 | n << 5;
}

#define A64_RET 0xd65f03c0u

/* d = the address of the instruction + dist, 21 bits; of its page + dist pages */
static inline u32 a64_adr(u8 d, s64 dist)
{
	return 0x10000000 | ((u32)dist & 3) << 29 | ((u32)(dist >> 2) & 0x7ffff) << 5 | d;
}

static inline u32 a64_adrp(u8 d, s64 pages)
{
	return 0x80000000 | a64_adr(d, pages);
}

/* d = the thread pointer */
static inline u32 a64_mrs_tp(u8 d)
{
	return 0xd53bd040 | d;
}

#endif
