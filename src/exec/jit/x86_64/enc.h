/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64 instructions as bytes: one small function a form. p is where to write; each returns where to go on. Up to 8
 * bytes beyond may be overwritten. w: 8 for the 64-bit form, 4 for the 32-bit one, which clears the upper half.
 */
#ifndef INLAY_EXEC_JIT_X86_64_ENC_H
#define INLAY_EXEC_JIT_X86_64_ENC_H

#include <string.h>

#include "base/types.h"

enum x86_reg {
	RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, X86_NONE = 0xff,
};

/* condition codes, as in jcc and setcc */
enum x86_cc {
	CC_B = 2, CC_AE, CC_E, CC_NE, CC_BE, CC_A, CC_S, CC_NS, CC_L = 12, CC_GE, CC_LE, CC_G,
};

/* the operation in 81 /n and, shifted, in the opcodes of the register forms */
enum x86_alu {
	X86_ADD = 0, X86_OR = 1, X86_AND = 4, X86_SUB = 5, X86_XOR = 6, X86_CMP = 7,
};

/* /n of C1 and D3 */
enum x86_shift {
	X86_ROL = 0, X86_ROR = 1, X86_SHL = 4, X86_SHR = 5, X86_SAR = 7,
};

/* [base + index << scale + disp], base and index X86_NONE for none; fs: relative to the thread pointer */
struct x86_mem {
	u8 base, index, scale;
	bool fs;
	s32 disp;
};

static inline u8 *x86_1(u8 *p, u8 v)
{
	*p = v;
	return p + 1;
}

static inline u8 *x86_4(u8 *p, u32 v)
{
	memcpy(p, &v, 4);
	return p + 4;
}

static inline u8 *x86_8(u8 *p, u64 v)
{
	memcpy(p, &v, 8);
	return p + 8;
}

static inline bool x86_is_s8(s64 v)
{
	return v == (s8)v;
}

static inline bool x86_is_s32(s64 v)
{
	return v == (s32)v;
}

/* The REX prefix, left out if it says nothing; must: for sil, dil, bpl. */
static inline u8 *x86_rex(u8 *p, u8 w, u8 reg, u8 index, u8 base, bool must)
{
	u8 rex = (w == 8) << 3 | (reg >> 3 & 1) << 2 | (index >> 3 & 1) << 1 | (base >> 3 & 1);

	return rex || must ? x86_1(p, 0x40 | rex) : p;
}

/* op reg, rm, both registers */
static inline u8 *x86_rr(u8 *p, u8 w, u8 op, u8 reg, u8 rm)
{
	p = x86_rex(p, w, reg, 0, rm, false);
	p[0] = op;
	p[1] = 0xc0 | (reg & 7) << 3 | (rm & 7);
	return p + 2;
}

/* the same in the 0F page; must as in x86_rex() */
static inline u8 *x86_0f_rr(u8 *p, u8 w, u8 op, u8 reg, u8 rm, bool must)
{
	p = x86_rex(p, w, reg, 0, rm, must);
	p[0] = 0x0f;
	p[1] = op;
	p[2] = 0xc0 | (reg & 7) << 3 | (rm & 7);
	return p + 3;
}

/* modrm, sib, displacement */
static inline u8 *x86_modrm(u8 *p, u8 reg, struct x86_mem m)
{
	u8 r = (reg & 7) << 3, mod;

	if (m.base == X86_NONE) { /* [index << scale + disp32] or [disp32] */
		p[0] = r | 4;
		p[1] = m.scale << 6 | (m.index == X86_NONE ? 4 : m.index & 7) << 3 | 5;
		return x86_4(p + 2, m.disp);
	}
	/* rbp and r13 as a base without displacement mean something else */
	mod = !m.disp && (m.base & 7) != RBP ? 0 : x86_is_s8(m.disp) ? 0x40 : 0x80;
	if (m.index == X86_NONE && (m.base & 7) != RSP) {
		p = x86_1(p, mod | r | (m.base & 7));
	} else {
		p[0] = mod | r | 4;
		p[1] = m.scale << 6 | (m.index == X86_NONE ? 4 : m.index & 7) << 3 | (m.base & 7);
		p += 2;
	}
	if (mod == 0x40)
		return x86_1(p, m.disp);
	return mod ? x86_4(p, m.disp) : p;
}

/* prefix (0: none), REX, escape (0, 0x0f), opcode, operands */
static inline u8 *x86_rm(u8 *p, u8 prefix, u8 w, u8 escape, u8 op, u8 reg, struct x86_mem m, bool must)
{
	if (m.fs)
		p = x86_1(p, 0x64);
	if (prefix)
		p = x86_1(p, prefix);
	p = x86_rex(p, w, reg, m.index == X86_NONE ? 0 : m.index, m.base == X86_NONE ? 0 : m.base, must);
	if (escape)
		p = x86_1(p, escape);
	p = x86_1(p, op);
	return x86_modrm(p, reg, m);
}

static inline struct x86_mem x86_at(u8 base, s32 disp)
{
	return (struct x86_mem){ .base = base, .index = X86_NONE, .disp = disp };
}

static inline struct x86_mem x86_fs(s32 disp)
{
	return (struct x86_mem){ .base = X86_NONE, .index = X86_NONE, .disp = disp, .fs = true };
}

static inline u8 *x86_mov(u8 *p, u8 w, u8 dst, u8 src)
{
	return x86_rr(p, w, 0x89, src, dst);
}

static inline u8 *x86_alu(u8 *p, u8 w, enum x86_alu op, u8 dst, u8 src)
{
	return x86_rr(p, w, op << 3 | 1, src, dst);
}

static inline u8 *x86_alu_imm(u8 *p, u8 w, enum x86_alu op, u8 dst, s32 imm)
{
	if (x86_is_s8(imm)) {
		p = x86_rr(p, w, 0x83, op, dst);
		return x86_1(p, imm);
	}
	if (dst == RAX) {
		p = x86_rex(p, w, 0, 0, 0, false);
		return x86_4(x86_1(p, op << 3 | 5), imm);
	}
	p = x86_rr(p, w, 0x81, op, dst);
	return x86_4(p, imm);
}

static inline u8 *x86_test(u8 *p, u8 w, u8 a, u8 b)
{
	return x86_rr(p, w, 0x85, b, a);
}

static inline u8 *x86_zero(u8 *p, u8 dst)
{
	return x86_alu(p, 4, X86_XOR, dst, dst);
}

/* Shortest form; changes flags where the value is 0. */
static inline u8 *x86_mov_imm(u8 *p, u8 dst, u64 v)
{
	if (!v)
		return x86_zero(p, dst);
	if (v == (u32)v) {
		p = x86_rex(p, 4, 0, 0, dst, false);
		return x86_4(x86_1(p, 0xb8 | (dst & 7)), (u32)v);
	}
	if (x86_is_s32((s64)v)) {
		p = x86_rr(p, 8, 0xc7, 0, dst);
		return x86_4(p, (u32)v);
	}
	p = x86_rex(p, 8, 0, 0, dst, false);
	return x86_8(x86_1(p, 0xb8 | (dst & 7)), v);
}

static inline u8 *x86_shift_imm(u8 *p, u8 w, enum x86_shift op, u8 dst, u8 n)
{
	if (n == 1)
		return x86_rr(p, w, 0xd1, op, dst);
	p = x86_rr(p, w, 0xc1, op, dst);
	return x86_1(p, n);
}

static inline u8 *x86_shift_cl(u8 *p, u8 w, enum x86_shift op, u8 dst)
{
	return x86_rr(p, w, 0xd3, op, dst);
}

/* BMI2: dst = src shifted by n, any registers, no flags */
static inline u8 *x86_shiftx(u8 *p, u8 w, enum x86_shift op, u8 dst, u8 src, u8 n)
{
	u8 pp = op == X86_SHL ? 1 : op == X86_SHR ? 3 : 2;

	p[0] = 0xc4;
	p[1] = (dst < 8) << 7 | 1 << 6 | (src < 8) << 5 | 2;
	p[2] = (w == 8) << 7 | (~n & 15) << 3 | pp;
	p[3] = 0xf7;
	p[4] = 0xc0 | (dst & 7) << 3 | (src & 7);
	return p + 5;
}

/* BMI2: hi:lo = rdx * src, no flags; hi and lo differ */
static inline u8 *x86_mulx(u8 *p, u8 hi, u8 lo, u8 src)
{
	p[0] = 0xc4;
	p[1] = (hi < 8) << 7 | 1 << 6 | (src < 8) << 5 | 2;
	p[2] = 1 << 7 | (~lo & 15) << 3 | 3;
	p[3] = 0xf6;
	p[4] = 0xc0 | (hi & 7) << 3 | (src & 7);
	return p + 5;
}

/* F7 /n: 2 not, 3 neg, 4 mul, 5 imul, 6 div, 7 idiv; the last four of rdx:rax */
static inline u8 *x86_f7(u8 *p, u8 w, u8 n, u8 rm)
{
	return x86_rr(p, w, 0xf7, n, rm);
}

static inline u8 *x86_lea(u8 *p, u8 w, u8 dst, struct x86_mem m)
{
	return x86_rm(p, 0, w, 0, 0x8d, dst, m, false);
}

/* zero-extending load of width bytes */
static inline u8 *x86_load(u8 *p, u8 width, u8 dst, struct x86_mem m)
{
	switch (width) {
	case 1:
		return x86_rm(p, 0, 4, 0x0f, 0xb6, dst, m, false);
	case 2:
		return x86_rm(p, 0, 4, 0x0f, 0xb7, dst, m, false);
	}
	return x86_rm(p, 0, width, 0, 0x8b, dst, m, false);
}

/* sign-extending load to 64 bits */
static inline u8 *x86_load_sx(u8 *p, u8 width, u8 dst, struct x86_mem m)
{
	switch (width) {
	case 1:
		return x86_rm(p, 0, 8, 0x0f, 0xbe, dst, m, false);
	case 2:
		return x86_rm(p, 0, 8, 0x0f, 0xbf, dst, m, false);
	}
	return x86_rm(p, 0, 8, 0, 0x63, dst, m, false);
}

static inline u8 *x86_store(u8 *p, u8 width, struct x86_mem m, u8 src)
{
	if (width == 1)
		return x86_rm(p, 0, 4, 0, 0x88, src, m, src >= 4);
	return x86_rm(p, width == 2 ? 0x66 : 0, width, 0, 0x89, src, m, false);
}

static inline u8 *x86_store_imm(u8 *p, u8 width, struct x86_mem m, s32 imm)
{
	p = x86_rm(p, width == 2 ? 0x66 : 0, width, 0, width == 1 ? 0xc6 : 0xc7, 0, m, false);
	if (width == 1)
		return x86_1(p, imm);
	if (width == 2) {
		p[0] = imm;
		p[1] = imm >> 8;
		return p + 2;
	}
	return x86_4(p, imm);
}

static inline u8 *x86_push(u8 *p, u8 reg)
{
	p = x86_rex(p, 4, 0, 0, reg, false);
	return x86_1(p, 0x50 | (reg & 7));
}

static inline u8 *x86_pop(u8 *p, u8 reg)
{
	p = x86_rex(p, 4, 0, 0, reg, false);
	return x86_1(p, 0x58 | (reg & 7));
}

/* n bytes that do nothing, as few instructions as possible */
static inline u8 *x86_nops(u8 *p, u32 n)
{
	static const u8 nop[9][9] = {
		{ 0x90 },
		{ 0x66, 0x90 },
		{ 0x0f, 0x1f, 0x00 },
		{ 0x0f, 0x1f, 0x40, 0 },
		{ 0x0f, 0x1f, 0x44, 0, 0 },
		{ 0x66, 0x0f, 0x1f, 0x44, 0, 0 },
		{ 0x0f, 0x1f, 0x80, 0, 0, 0, 0 },
		{ 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 },
		{ 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 },
	};
	u32 k;

	for (; n; n -= k, p += k) {
		k = min_of(n, 9u);
		memcpy(p, nop[k - 1], k);
	}
	return p;
}

#endif
