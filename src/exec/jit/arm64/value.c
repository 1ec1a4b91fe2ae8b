// SPDX-License-Identifier: BSD-2-Clause
/*
 * Constants and operands: what the machine's immediates and address forms have room for is said here and nowhere else.
 *
 * A constant takes as many words as it has 16-bit pieces that are not all zeros (movz, movk) or not all ones (movn,
 * movk), one if it is a mask, one or two if it is an address near the code (adr, adrp).
 */
#include "env/env.h"
#include "exec/jit/arm64/arm64_int.h"

static u32 pieces_other_than(u64 v, u16 piece, u8 n)
{
	u32 i, count = 0;

	for (i = 0; i < n; i++)
		count += (u16)(v >> 16 * i) != piece;
	return count;
}

/* Piece by piece, those that are as the rest left out. */
static void set_pieces(struct a64 *c, u8 w, u8 d, u64 v, bool inverted)
{
	u16 rest = inverted ? 0xffff : 0, piece;
	enum a64_wide first = inverted ? A64_MOVN : A64_MOVZ;
	bool begun = false;
	u8 i;

	for (i = 0; i < w / 2; i++) {
		piece = v >> 16 * i;
		if (piece == rest)
			continue;
		put(c, a64_wide(w, begun ? A64_MOVK : first, d, begun || !inverted ? piece : ~piece, i));
		begun = true;
	}
	if (!begun)
		put(c, a64_wide(w, first, d, 0, 0));
}

/* Relative to the code, if that takes at most max words. */
static bool set_near(struct a64 *c, u8 d, u64 v, u32 max)
{
	u64 here = c->j->addr + a64_off(c);
	s64 dist = (s64)(v - here), pages = (s64)((v & ~0xfffull) - (here & ~0xfffull)) / 4096;

	if (max >= 1 && dist >= -(1 << 20) && dist < 1 << 20) {
		put(c, a64_adr(d, dist));
		return true;
	}
	if (pages < -(1 << 20) || pages >= 1 << 20 || max < 1 + !!(v & 0xfff))
		return false;
	put(c, a64_adrp(d, pages));
	if (v & 0xfff)
		put(c, a64_sum_imm(8, A64_ADD, d, d, v & 0xfff));
	return true;
}

void jit_a64_set(struct a64 *c, u8 d, u64 v)
{
	u8 w = v <= U32_MAX ? 4 : 8;
	u32 plain = pieces_other_than(v, 0, w / 2), inverted = pieces_other_than(v, 0xffff, w / 2), best = min_of(plain, inverted);

	if (best > 1) {
		u32 mask = a64_mask(w, v);

		if (mask) {
			put(c, a64_logic_imm(w, A64_ORR, d, XZR, mask));
			return;
		}
		if (w == 8 && set_near(c, d, v, best - 1))
			return;
	}
	set_pieces(c, w, d, v, inverted < plain);
}

static void add_imm(struct a64 *c, u8 w, u8 d, u8 n, s64 v)
{
	put(c, a64_sum_imm(w, v < 0 ? A64_SUB : A64_ADD, d, n, (u32)(v < 0 ? -v : v)));
}

void jit_a64_add(struct a64 *c, u8 w, u8 d, u8 n, s64 v, u8 scratch)
{
	u64 size = v < 0 ? -(u64)v : (u64)v;

	if (!v && d == n)
		return;
	if (a64_is_sum_imm(size)) {
		add_imm(c, w, d, n, v);
	} else if (size < 1 << 24) {
		add_imm(c, w, d, n, v < 0 ? -(s64)(size & 0xfff000) : (s64)(size & 0xfff000));
		add_imm(c, w, d, d, v < 0 ? -(s64)(size & 0xfff) : (s64)(size & 0xfff));
	} else {
		jit_a64_set(c, scratch, w == 4 ? (u32)v : (u64)v);
		if (n == A64_SP)
			put(c, a64_sum_sp(A64_ADD, d, n, scratch, 0));
		else
			put(c, a64_sum(w, A64_ADD, d, n, scratch, A64_LSL, 0));
	}
}

u8 jit_a64_use(struct a64 *c, u8 reg, u8 scratch)
{
	if (reg != ISA_REG_FP)
		return c->reg[reg];
	jit_a64_add(c, 8, scratch, A64_SP, c->frame_size, scratch);
	return scratch;
}

/* Machine register and distance of an address. */
static u8 base_of(const struct a64 *c, u8 base, s64 *off)
{
	if (base != ISA_REG_FP)
		return c->reg[base];
	*off += c->frame_size;
	return A64_SP;
}

/* The same of a machine register. */
static void access_at(struct a64 *c, u8 width, enum a64_access op, u8 t, u8 n, s64 off, u8 scratch)
{
	if (a64_is_scaled(width, off)) {
		put(c, a64_mem(width, op, t, n, (u32)off));
	} else if (a64_is_near(off)) {
		put(c, a64_mem_near(width, op, t, n, (s32)off));
	} else {
		jit_a64_set(c, scratch, (u64)off);
		put(c, a64_mem_reg(width, op, t, n, scratch, false));
	}
}

void jit_a64_mem(struct a64 *c, u8 width, enum a64_access op, u8 t, u8 base, s64 off, u8 scratch)
{
	u8 n = base_of(c, base, &off);

	access_at(c, width, op, t, n, off, scratch);
}

u8 jit_a64_address(struct a64 *c, u8 base, s64 off, u8 scratch)
{
	u8 n = base_of(c, base, &off);

	if (!off && n != A64_SP)
		return n;
	jit_a64_add(c, 8, scratch, n, off, scratch);
	return scratch;
}

void jit_a64_tls(struct a64 *c, u8 width, enum a64_access op, u8 t, s64 off, u8 scratch)
{
	off += c->tls;
	put(c, a64_mrs_tp(scratch));
	/* a library's block may be far from the pointer, but not very */
	if (!a64_is_scaled(width, off)) {
		jit_a64_add(c, 8, scratch, scratch, off & ~0xfffll, scratch);
		off &= 0xfff;
	}
	put(c, a64_mem(width, op, t, scratch, (u32)off));
}

u32 jit_a64_unchanged(struct a64 *c, u8 d, u8 n, u8 w)
{
	if (n == ISA_REG_FP) { /* its copy; cut, it is nobody's address any more */
		u8 reg = jit_a64_use(c, n, a64_def(c, d));

		if (w == 4)
			put(c, a64_mov(4, reg, reg));
		a64_wrote(c, d, w * 8);
	} else if (d != n) {
		put(c, a64_mov(c->bits[n] <= 32 ? 4 : w, a64_def(c, d), c->reg[n]));
		a64_wrote(c, d, min_of(c->bits[n], (u8)(w * 8)));
	} else if (w == 4) {
		a64_zext(c, d);
	}
	return 1;
}
