// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each row of insn.def is on x86-64: one small function a row, lower_<row>(), most of them one line that names the
 * function of a family. The table at the end is made from insn.def: a row of a kind that is claimed and has no function
 * does not compile.
 *
 * Emission keeps two bits of knowledge that make code shorter: how many bits of a register can be other than zero, so
 * that nothing is cleared twice, and of which register the flags tell. Both are forgotten where control joins.
 */
#include "exec/jit/x86_64/x86_int.h"

#include "env/env.h"

#define ROW(name)   static u32 lower_##name(struct x86 *c, u32 pc)
#define NULL_GUARD  65536 /* as the interpreter's: nothing is mapped below */

static u8 bits_of(u64 v)
{
	return v ? 64 - __builtin_clzll(v) : 0;
}

/* The upper half becomes 0. */
static void zext(struct x86 *c, u8 d)
{
	if (c->bits[d] > 32) {
		c->p = x86_mov(c->p, 4, x86_of[d], x86_of[d]);
		x86_wrote(c, d, 32);
	}
}

/* What an operation that changes nothing in its own width still does. */
static u32 unchanged(struct x86 *c, u8 d, u8 w)
{
	if (w == 4)
		zext(c, d);
	return 1;
}

static void set_zero(struct x86 *c, u8 d)
{
	c->p = x86_zero(c->p, x86_of[d]);
	x86_wrote(c, d, 0);
}

/* ---- sums and logic ---- */

static u32 bin_reg(struct x86 *c, u32 pc, u8 w, enum x86_alu op)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, s = insn->src_reg, bd = min_of(c->bits[d], (u8)(w * 8)), bs = min_of(c->bits[s], (u8)(w * 8));
	u32 n;

	if (op == X86_ADD && w == 8 && c->fuse) {
		n = jit_x86_address(c, pc);
		if (n)
			return n;
	}
	if (d == s && (op == X86_XOR || op == X86_SUB)) {
		set_zero(c, d);
		return 1;
	}
	c->p = x86_alu(c->p, w, op, x86_of[d], x86_of[s]);
	x86_flags(c, d, w);
	switch (op) {
	case X86_AND:
		x86_wrote(c, d, min_of(bd, bs));
		break;
	case X86_OR:
	case X86_XOR:
		x86_wrote(c, d, max_of(bd, bs));
		break;
	case X86_ADD:
		x86_wrote(c, d, min_of(max_of(bd, bs) + 1, w * 8));
		break;
	case X86_SUB:
	case X86_CMP:
		x86_wrote(c, d, w * 8);
		break;
	}
	return 1;
}

static u32 and_imm(struct x86 *c, u8 d, u8 w, s32 imm)
{
	u8 r = x86_of[d], bits = imm >= 0 ? bits_of(imm) : w * 8;

	if (imm == -1)
		return unchanged(c, d, w);
	/* a mask of ones that all of the value passes */
	if (imm > 0 && is_pow2((u64)imm + 1) && c->bits[d] <= bits)
		return 1;
	if (imm == 0xff) {
		c->p = x86_0f_rr(c->p, 4, 0xb6, r, r, r >= 4);
	} else if (imm == 0xffff) {
		c->p = x86_0f_rr(c->p, 4, 0xb7, r, r, false);
	} else {
		c->p = x86_alu_imm(c->p, imm >= 0 ? 4 : w, X86_AND, r, imm);
		x86_flags(c, d, w);
	}
	x86_wrote(c, d, min_of(c->bits[d], bits));
	return 1;
}

static u32 bin_imm(struct x86 *c, u32 pc, u8 w, enum x86_alu op)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, bits = min_of(c->bits[d], (u8)(w * 8)), imm_bits = insn->imm < 0 ? w * 8 : bits_of(insn->imm);

	if (op == X86_AND)
		return and_imm(c, d, w, insn->imm);
	if (!insn->imm)
		return unchanged(c, d, w);
	if (op == X86_XOR && insn->imm == -1) {
		c->p = x86_f7(c->p, w, 2, x86_of[d]);
		x86_wrote(c, d, w * 8);
		return 1;
	}
	c->p = x86_alu_imm(c->p, w, op, x86_of[d], insn->imm);
	x86_flags(c, d, w);
	bits = max_of(bits, imm_bits) + (op == X86_ADD);
	x86_wrote(c, d, op == X86_SUB ? w * 8 : min_of(bits, (u8)(w * 8)));
	return 1;
}

#define BIN(name, op)                                                                              \
	ROW(name##64_K) { return bin_imm(c, pc, 8, op); }                                          \
	ROW(name##64_X) { return bin_reg(c, pc, 8, op); }                                          \
	ROW(name##32_K) { return bin_imm(c, pc, 4, op); }                                          \
	ROW(name##32_X) { return bin_reg(c, pc, 4, op); }
BIN(ADD, X86_ADD)
BIN(SUB, X86_SUB)
BIN(OR, X86_OR)
BIN(AND, X86_AND)
BIN(XOR, X86_XOR)

/* ---- products ---- */

/* dst = src * imm */
static void mul_imm(struct x86 *c, u8 w, u8 dst, u8 src, s32 imm)
{
	if (x86_is_s8(imm)) {
		c->p = x86_rr(c->p, w, 0x6b, dst, src);
		c->p = x86_1(c->p, imm);
	} else {
		c->p = x86_rr(c->p, w, 0x69, dst, src);
		c->p = x86_4(c->p, imm);
	}
}

static u32 mul_k(struct x86 *c, u32 pc, u8 w)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, r = x86_of[d];
	s32 imm = insn->imm;

	if (imm == 1)
		return unchanged(c, d, w);
	if (!imm) {
		set_zero(c, d);
		return 1;
	}
	if (imm > 0 && is_pow2(imm)) {
		c->p = x86_shift_imm(c->p, w, X86_SHL, r, bits_of(imm) - 1);
	} else if (imm == 3 || imm == 5 || imm == 9) {
		struct x86_mem m = { .base = r, .index = r, .scale = imm == 3 ? 1 : imm == 5 ? 2 : 3 };

		c->p = x86_lea(c->p, w, r, m);
	} else {
		mul_imm(c, w, r, r, imm);
	}
	x86_wrote(c, d, w * 8);
	return 1;
}

static u32 mul_x(struct x86 *c, u32 pc, u8 w)
{
	const struct bpf_insn *insn = &c->insns[pc];

	c->p = x86_0f_rr(c->p, w, 0xaf, x86_of[insn->dst_reg], x86_of[insn->src_reg], false);
	x86_wrote(c, insn->dst_reg, w * 8);
	return 1;
}

ROW(MUL64_K) { return mul_k(c, pc, 8); }
ROW(MUL64_X) { return mul_x(c, pc, 8); }
ROW(MUL32_K) { return mul_k(c, pc, 4); }
ROW(MUL32_X) { return mul_x(c, pc, 4); }

/* ---- shifts ---- */

/* d <<= n; d >>= n (s>>=) at once: an extension of the low bits. Slots done, 0: it is none. */
static u32 extension(struct x86 *c, u32 pc, u8 n)
{
	u8 d = c->insns[pc].dst_reg, r = x86_of[d];
	bool sx;

	if (!x86_joins(c, pc + 1) || c->insns[pc + 1].dst_reg != d || (c->insns[pc + 1].imm & 63) != n)
		return 0;
	sx = c->in[pc + 1].op == ISA_ARSH64_K;
	if (!sx && c->in[pc + 1].op != ISA_RSH64_K)
		return 0;
	if (n == 32 && !sx) {
		zext(c, d);
		return 2;
	}
	if (n == 32)
		c->p = x86_rr(c->p, 8, 0x63, r, r);
	else if (n == 48)
		c->p = x86_0f_rr(c->p, sx ? 8 : 4, sx ? 0xbf : 0xb7, r, r, false);
	else if (n == 56)
		c->p = x86_0f_rr(c->p, sx ? 8 : 4, sx ? 0xbe : 0xb6, r, r, r >= 4);
	else
		return 0;
	x86_wrote(c, d, sx ? 64 : 64 - n);
	return 2;
}

static u32 shift_k(struct x86 *c, u32 pc, u8 w, enum x86_shift op)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, n = insn->imm & (w * 8 - 1), bits = min_of(c->bits[d], (u8)(w * 8));
	u32 done = 0;

	if (!n)
		return unchanged(c, d, w);
	if (w == 8 && op == X86_SHL && c->fuse) {
		done = n <= 3 ? jit_x86_address(c, pc) : extension(c, pc, n);
		if (done)
			return done;
	}
	c->p = x86_shift_imm(c->p, w, op, x86_of[d], n);
	x86_flags(c, d, w);
	if (op == X86_SHL)
		x86_wrote(c, d, min_of(bits + n, w * 8));
	else if (op == X86_SHR || bits < w * 8)
		x86_wrote(c, d, bits > n ? bits - n : 0);
	else
		x86_wrote(c, d, w * 8);
	return 1;
}

static u32 shift_x(struct x86 *c, u32 pc, u8 w, enum x86_shift op)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = x86_of[insn->dst_reg], s = x86_of[insn->src_reg];

	if (c->bmi2) {
		c->p = x86_shiftx(c->p, w, op, d, d, s);
	} else if (s == RCX && d != RCX) {
		c->p = x86_shift_cl(c->p, w, op, d);
	} else {
		/* the count must be in cl; what is there now waits in TMP, and is shifted there if it is the operand */
		c->p = x86_mov(c->p, 8, TMP, RCX);
		if (s != RCX)
			c->p = x86_mov(c->p, 4, RCX, s);
		c->p = x86_shift_cl(c->p, w, op, d == RCX ? TMP : d);
		c->p = x86_mov(c->p, 8, RCX, TMP);
	}
	x86_wrote(c, insn->dst_reg, w * 8);
	return 1;
}

#define SHIFT(name, op)                                                                            \
	ROW(name##64_K) { return shift_k(c, pc, 8, op); }                                          \
	ROW(name##64_X) { return shift_x(c, pc, 8, op); }                                          \
	ROW(name##32_K) { return shift_k(c, pc, 4, op); }                                          \
	ROW(name##32_X) { return shift_x(c, pc, 4, op); }
SHIFT(LSH, X86_SHL)
SHIFT(RSH, X86_SHR)
SHIFT(ARSH, X86_SAR)

/* ---- division ---- */

/*
 * div wants rdx:rax and gives quotient and remainder there, so both may have to be kept: in TMP and TMP2 as far as the
 * divisor leaves them, else on the stack. Division by 0, and by -1 where signed, are stubs that leave in rax or rdx what
 * the division would have; the stubs know that rax is the dividend and, signed, rdx the divisor plus 1.
 */
struct division {
	u8 w, d, rd, divisor;
	bool sign, mod, k;
	u64 v; /* constant divisor */
	bool live_rax, live_rdx, pushed;
	u8 keep_rax, keep_rdx;
};

/* Constants that need no division. */
static bool divide_simple(struct x86 *c, const struct division *v)
{
	if (!v->v || (v->sign && (v->v == 1 || (s64)v->v == -1)) || (!v->sign && v->v == 1)) {
		if (!v->v ? v->mod : !v->mod && v->v == 1) {
			unchanged(c, v->d, v->w);
		} else if (v->v && !v->mod) {
			c->p = x86_f7(c->p, v->w, 3, v->rd);
			x86_wrote(c, v->d, v->w * 8);
		} else {
			set_zero(c, v->d);
		}
		return true;
	}
	if (v->sign || !is_pow2(v->v) || v->v > 1u << 31)
		return false;
	if (v->mod) {
		and_imm(c, v->d, v->w, (s32)(v->v - 1));
		return true;
	}
	c->p = x86_shift_imm(c->p, v->w, X86_SHR, v->rd, bits_of(v->v) - 1);
	x86_wrote(c, v->d, v->w * 8);
	return true;
}

static void divide_setup(struct x86 *c, struct division *v, u8 src)
{
	static const u8 pool[] = { TMP, TMP2 };
	u32 n = 0;

	v->keep_rax = v->keep_rdx = X86_NONE;
	if (v->live_rax || (!v->k && src == RAX && v->rd != RAX)) {
		v->keep_rax = pool[n++];
		c->p = x86_mov(c->p, 8, v->keep_rax, RAX);
	}
	v->divisor = src;
	if (v->k) {
		v->divisor = pool[n++];
		c->p = x86_mov_imm(c->p, v->divisor, v->w == 8 ? v->v : (u32)v->v);
	} else if (src == RAX && v->rd != RAX) {
		v->divisor = v->keep_rax;
	} else if (src == RAX || src == RDX) {
		v->divisor = pool[n++];
		c->p = x86_mov(c->p, 8, v->divisor, src);
		if (src == RDX && v->live_rdx)
			v->keep_rdx = v->divisor;
	}
	if (v->live_rdx && v->keep_rdx == X86_NONE) {
		v->pushed = n == ARRAY_SIZE(pool);
		if (v->pushed) {
			c->p = x86_push(c->p, RDX);
		} else {
			v->keep_rdx = pool[n++];
			c->p = x86_mov(c->p, 8, v->keep_rdx, RDX);
		}
	}
	if (v->rd != RAX)
		c->p = x86_mov(c->p, v->w, RAX, v->rd);
}

static void divide_unsigned(struct x86 *c, const struct division *v, bool narrow)
{
	u8 *jump32, *jump_end;

	if (v->w == 4 || narrow) {
		c->p = x86_zero(c->p, RDX);
		c->p = x86_f7(c->p, 4, 6, v->divisor);
		return;
	}
	if (!c->slow_div) {
		c->p = x86_zero(c->p, RDX);
		c->p = x86_f7(c->p, 8, 6, v->divisor);
		return;
	}
	/* where both fit 32 bits (rdx becomes 0 by finding that out), the short division does it */
	c->p = x86_mov(c->p, 8, RDX, RAX);
	c->p = x86_alu(c->p, 8, X86_OR, RDX, v->divisor);
	c->p = x86_shift_imm(c->p, 8, X86_SHR, RDX, 32);
	jump32 = c->p;
	c->p += 2;
	c->p = x86_zero(c->p, RDX);
	c->p = x86_f7(c->p, 8, 6, v->divisor);
	jump_end = c->p;
	c->p += 2;
	jump32[0] = 0x70 | CC_E;
	jump32[1] = c->p - jump32 - 2;
	c->p = x86_f7(c->p, 4, 6, v->divisor);
	jump_end[0] = 0xeb;
	jump_end[1] = c->p - jump_end - 2;
}

static void divide_result(struct x86 *c, const struct division *v, u8 w)
{
	u8 res = v->mod ? RDX : RAX;

	if (v->rd != res)
		c->p = x86_mov(c->p, w, v->rd, res);
	if (v->live_rax)
		c->p = x86_mov(c->p, 8, RAX, v->keep_rax);
	else if (v->rd != RAX)
		x86_wrote(c, 0, 64);
	if (v->pushed)
		c->p = x86_pop(c->p, RDX);
	else if (v->live_rdx)
		c->p = x86_mov(c->p, 8, RDX, v->keep_rdx);
	else if (v->rd != RDX)
		x86_wrote(c, 3, 64);
}

static u32 divide(struct x86 *c, u32 pc, u8 w, bool k, bool sign, bool mod)
{
	const struct bpf_insn *insn = &c->insns[pc];
	struct division v = { .w = w, .d = insn->dst_reg, .rd = x86_of[insn->dst_reg], .sign = sign, .mod = mod, .k = k };
	struct jit_stub *stub = NULL;
	u8 bits = c->bits[v.d];
	bool narrow;

	v.v = w == 8 || sign ? (u64)(s64)insn->imm : (u32)insn->imm;
	if (k && divide_simple(c, &v))
		return 1;
	narrow = bits <= 32 && (k ? v.v <= U32_MAX : c->bits[insn->src_reg] <= 32);
	v.live_rax = v.rd != RAX && !jit_x86_dead(c, pc + 1, 0);
	v.live_rdx = v.rd != RDX && !jit_x86_dead(c, pc + 1, 3);
	divide_setup(c, &v, k ? X86_NONE : x86_of[insn->src_reg]);
	if (!k && sign) {
		c->p = x86_lea(c->p, w, RDX, x86_at(v.divisor, 1));
		c->p = x86_alu_imm(c->p, w, X86_CMP, RDX, 1);
		stub = jit_x86_stub(c, CC_BE, mod ? STUB_SMOD : STUB_SDIV, 0, w);
	} else if (!k) {
		c->p = x86_test(c->p, w, v.divisor, v.divisor);
		stub = jit_x86_stub(c, CC_E, mod ? STUB_MOD : STUB_DIV, 0, w);
	}
	if (sign) { /* cdq, cqo */
		c->p = x86_rex(c->p, w, 0, 0, 0, false);
		c->p = x86_1(c->p, 0x99);
		c->p = x86_f7(c->p, w, 7, v.divisor);
	} else {
		divide_unsigned(c, &v, narrow);
	}
	if (stub)
		stub->back = x86_off(c);
	x86_wrote(c, v.d, w == 4 ? 32 : sign ? 64 : bits);
	divide_result(c, &v, w);
	return 1;
}

#define DIVIDE(name, sign, mod)                                                                    \
	ROW(name##64_K) { return divide(c, pc, 8, true, sign, mod); }                              \
	ROW(name##64_X) { return divide(c, pc, 8, false, sign, mod); }                             \
	ROW(name##32_K) { return divide(c, pc, 4, true, sign, mod); }                              \
	ROW(name##32_X) { return divide(c, pc, 4, false, sign, mod); }
DIVIDE(DIV, false, false)
DIVIDE(MOD, false, true)
DIVIDE(SDIV, true, false)
DIVIDE(SMOD, true, true)

/* ---- moves ---- */

static u32 neg(struct x86 *c, u32 pc, u8 w)
{
	u8 d = c->insns[pc].dst_reg;

	c->p = x86_f7(c->p, w, 3, x86_of[d]);
	x86_flags(c, d, w);
	x86_wrote(c, d, w * 8);
	return 1;
}

ROW(NEG64) { return neg(c, pc, 8); }
ROW(NEG32) { return neg(c, pc, 4); }

static u32 mov_imm(struct x86 *c, u32 pc, u64 v)
{
	u8 d = c->insns[pc].dst_reg;

	c->p = x86_mov_imm(c->p, x86_of[d], v);
	x86_wrote(c, d, bits_of(v));
	return 1;
}

ROW(MOV64_K) { return mov_imm(c, pc, (u64)(s64)c->insns[pc].imm); }
ROW(MOV32_K) { return mov_imm(c, pc, (u32)c->insns[pc].imm); }

static u32 mov_reg(struct x86 *c, u32 pc, u8 w)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, s = insn->src_reg, *before;
	u32 n = 0;

	if (c->fuse && d != s) {
		n = jit_x86_rotate(c, pc);
		if (!n && w == 8)
			n = jit_x86_address(c, pc);
		if (n)
			return n;
		if (x86_joins(c, pc + 1) && c->in[pc + 1].op == (w == 8 ? ISA_MUL64_K : ISA_MUL32_K) &&
		    c->insns[pc + 1].dst_reg == d && c->insns[pc + 1].imm && !is_pow2(c->insns[pc + 1].imm)) {
			mul_imm(c, w, x86_of[d], x86_of[s], c->insns[pc + 1].imm);
			x86_wrote(c, d, w * 8);
			return 2;
		}
	}
	if (d == s)
		return unchanged(c, d, w);
	before = c->p;
	c->p = x86_mov(c->p, c->bits[s] <= 32 ? 4 : w, x86_of[d], x86_of[s]);
	x86_keeps_flags(c, before, d);
	x86_wrote(c, d, min_of(c->bits[s], (u8)(w * 8)));
	return 1;
}

ROW(MOV64_X) { return mov_reg(c, pc, 8); }
ROW(MOV32_X) { return mov_reg(c, pc, 4); }

static u32 movsx(struct x86 *c, u32 pc, u8 w, u8 from)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = x86_of[insn->dst_reg], s = x86_of[insn->src_reg];

	if (from == 1)
		c->p = x86_0f_rr(c->p, w, 0xbe, d, s, s >= 4);
	else if (from == 2)
		c->p = x86_0f_rr(c->p, w, 0xbf, d, s, false);
	else
		c->p = x86_rr(c->p, 8, 0x63, d, s);
	x86_wrote(c, insn->dst_reg, w * 8);
	return 1;
}

ROW(MOVSX8_64) { return movsx(c, pc, 8, 1); }
ROW(MOVSX16_64) { return movsx(c, pc, 8, 2); }
ROW(MOVSX32_64) { return movsx(c, pc, 8, 4); }
ROW(MOVSX8_32) { return movsx(c, pc, 4, 1); }
ROW(MOVSX16_32) { return movsx(c, pc, 4, 2); }

static u32 cut(struct x86 *c, u32 pc, u8 bits)
{
	u8 d = c->insns[pc].dst_reg, r = x86_of[d];

	if (bits == 64 || c->bits[d] <= bits)
		return 1;
	if (bits == 32)
		c->p = x86_mov(c->p, 4, r, r);
	else
		c->p = x86_0f_rr(c->p, 4, 0xb7, r, r, false);
	x86_wrote(c, d, bits);
	return 1;
}

static u32 swap(struct x86 *c, u32 pc, u8 bits)
{
	u8 d = c->insns[pc].dst_reg, r = x86_of[d];

	if (bits == 16) { /* ror r16, 8 */
		c->p = x86_1(c->p, 0x66);
		c->p = x86_shift_imm(c->p, 4, X86_ROR, r, 8);
		c->p = x86_0f_rr(c->p, 4, 0xb7, r, r, false);
	} else {
		c->p = x86_rex(c->p, bits / 8, 0, 0, r, false);
		c->p[0] = 0x0f;
		c->p[1] = 0xc8 | (r & 7);
		c->p += 2;
	}
	x86_wrote(c, d, bits);
	return 1;
}

ROW(LE16) { return cut(c, pc, 16); }
ROW(LE32) { return cut(c, pc, 32); }
ROW(LE64) { return cut(c, pc, 64); }
ROW(BE16) { return swap(c, pc, 16); }
ROW(BE32) { return swap(c, pc, 32); }
ROW(BE64) { return swap(c, pc, 64); }
ROW(BSWAP16) { return swap(c, pc, 16); }
ROW(BSWAP32) { return swap(c, pc, 32); }
ROW(BSWAP64) { return swap(c, pc, 64); }

/* A 64-bit constant, relative to the code where that is shorter. */
static u32 ld_imm64(struct x86 *c, u32 pc)
{
	u64 v = jit_imm64(c->j, pc);
	s64 dist = (s64)(v - (c->j->addr + x86_off(c) + 7));
	u8 d = c->insns[pc].dst_reg, r = x86_of[d];

	if (v != (u32)v && !x86_is_s32((s64)v) && x86_is_s32(dist)) {
		c->p = x86_rex(c->p, 8, r, 0, 0, false);
		c->p[0] = 0x8d;
		c->p[1] = (r & 7) << 3 | 5;
		c->p = x86_4(c->p + 2, (u32)dist);
	} else {
		c->p = x86_mov_imm(c->p, r, v);
	}
	x86_wrote(c, d, bits_of(v));
	return 2;
}

ROW(LD_IMM64) { return ld_imm64(c, pc); }
ROW(LD_MAP_FD) { return ld_imm64(c, pc); }
ROW(LD_MAP_VALUE) { return ld_imm64(c, pc); }
ROW(LD_BTF_ID) { return ld_imm64(c, pc); }
ROW(LD_FUNC) { return ld_imm64(c, pc); }
ROW(LD_MAP_IDX) { return ld_imm64(c, pc); }
ROW(LD_MAP_IDX_VALUE) { return ld_imm64(c, pc); }

/* ---- memory ---- */

static u32 load(struct x86 *c, u32 pc, u8 width, bool sx)
{
	const struct bpf_insn *insn = &c->insns[pc];
	struct x86_mem m = x86_at(x86_of[insn->src_reg], insn->off);
	u8 *before = c->p;

	c->p = sx ? x86_load_sx(c->p, width, x86_of[insn->dst_reg], m) : x86_load(c->p, width, x86_of[insn->dst_reg], m);
	x86_keeps_flags(c, before, insn->dst_reg);
	x86_wrote(c, insn->dst_reg, sx ? 64 : width * 8);
	return 1;
}

/* A load that may fault: the stub gives 0, whether the address is too low or the load did fault. */
static u32 probe(struct x86 *c, u32 pc, u8 width, bool sx)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 base = x86_of[insn->src_reg];
	struct jit_stub *stub;
	u32 fault;

	if (insn->off) {
		c->p = x86_lea(c->p, 8, TMP, x86_at(base, insn->off));
		base = TMP;
	}
	c->p = x86_alu_imm(c->p, 8, X86_CMP, base, NULL_GUARD);
	stub = jit_x86_stub(c, CC_B, STUB_PROBE, x86_of[insn->dst_reg], width);
	fault = x86_off(c);
	load(c, pc, width, sx);
	stub->fault = fault;
	stub->back = x86_off(c);
	return 1;
}

ROW(LDX_B) { return load(c, pc, 1, false); }
ROW(LDX_H) { return load(c, pc, 2, false); }
ROW(LDX_W) { return load(c, pc, 4, false); }
ROW(LDX_DW) { return load(c, pc, 8, false); }
ROW(LDSX_B) { return load(c, pc, 1, true); }
ROW(LDSX_H) { return load(c, pc, 2, true); }
ROW(LDSX_W) { return load(c, pc, 4, true); }
ROW(PROBE_B) { return probe(c, pc, 1, false); }
ROW(PROBE_H) { return probe(c, pc, 2, false); }
ROW(PROBE_W) { return probe(c, pc, 4, false); }
ROW(PROBE_DW) { return probe(c, pc, 8, false); }
ROW(PROBESX_B) { return probe(c, pc, 1, true); }
ROW(PROBESX_H) { return probe(c, pc, 2, true); }
ROW(PROBESX_W) { return probe(c, pc, 4, true); }

/* an aligned load or store is an acquire or release by itself */
ROW(LOAD_ACQ_B) { return load(c, pc, 1, false); }
ROW(LOAD_ACQ_H) { return load(c, pc, 2, false); }
ROW(LOAD_ACQ_W) { return load(c, pc, 4, false); }
ROW(LOAD_ACQ_DW) { return load(c, pc, 8, false); }

static u32 store(struct x86 *c, u32 pc, u8 width)
{
	const struct bpf_insn *insn = &c->insns[pc];

	u8 *before = c->p;

	c->p = x86_store(c->p, width, x86_at(x86_of[insn->dst_reg], insn->off), x86_of[insn->src_reg]);
	x86_keeps_flags(c, before, ISA_NR_REGS);
	return 1;
}

static u32 store_imm(struct x86 *c, u32 pc, u8 width)
{
	const struct bpf_insn *insn = &c->insns[pc];

	c->p = x86_store_imm(c->p, width, x86_at(x86_of[insn->dst_reg], insn->off), insn->imm);
	return 1;
}

ROW(STX_B) { return store(c, pc, 1); }
ROW(STX_H) { return store(c, pc, 2); }
ROW(STX_W) { return store(c, pc, 4); }
ROW(STX_DW) { return store(c, pc, 8); }
ROW(STORE_REL_B) { return store(c, pc, 1); }
ROW(STORE_REL_H) { return store(c, pc, 2); }
ROW(STORE_REL_W) { return store(c, pc, 4); }
ROW(STORE_REL_DW) { return store(c, pc, 8); }
ROW(ST_B) { return store_imm(c, pc, 1); }
ROW(ST_H) { return store_imm(c, pc, 2); }
ROW(ST_W) { return store_imm(c, pc, 4); }
ROW(ST_DW) { return store_imm(c, pc, 8); }

static u32 tls(struct x86 *c, u32 pc, u8 width)
{
	const struct bpf_insn *insn = &c->insns[pc];

	c->p = x86_load(c->p, width, x86_of[insn->dst_reg], x86_fs((s32)(c->tls + insn->off)));
	x86_wrote(c, insn->dst_reg, width * 8);
	return 1;
}

ROW(TLS_W) { return tls(c, pc, 4); }
ROW(TLS_DW) { return tls(c, pc, 8); }

ROW(MOV64_PERCPU)
{
	const struct bpf_insn *insn = &c->insns[pc];
	struct x86_mem sum = { .base = x86_of[insn->src_reg], .index = TMP };

	c->p = x86_load(c->p, 4, TMP, x86_fs((s32)(c->tls + offsetof(struct env_tls, cpu))));
	if (insn->imm > 0 && is_pow2(insn->imm)) {
		if (insn->imm <= 8)
			sum.scale = bits_of(insn->imm) - 1;
		else
			c->p = x86_shift_imm(c->p, 8, X86_SHL, TMP, bits_of(insn->imm) - 1);
	} else {
		mul_imm(c, 8, TMP, TMP, insn->imm);
	}
	c->p = x86_lea(c->p, 8, x86_of[insn->dst_reg], sum);
	x86_wrote(c, insn->dst_reg, 64);
	return 1;
}

/* ---- atomics ---- */

static struct x86_mem atomic_at(const struct x86 *c, u32 pc)
{
	return x86_at(x86_of[c->insns[pc].dst_reg], c->insns[pc].off);
}

/* lock op [mem], src */
static u32 locked(struct x86 *c, u32 pc, u8 w, enum x86_alu op)
{
	c->p = x86_1(c->p, 0xf0);
	c->p = x86_rm(c->p, 0, w, 0, op << 3 | 1, x86_of[c->insns[pc].src_reg], atomic_at(c, pc), false);
	return 1;
}

static u32 fetch_add(struct x86 *c, u32 pc, u8 w)
{
	u8 s = c->insns[pc].src_reg;

	c->p = x86_1(c->p, 0xf0);
	c->p = x86_rm(c->p, 0, w, 0x0f, 0xc1, x86_of[s], atomic_at(c, pc), false);
	x86_wrote(c, s, w * 8);
	return 1;
}

/* The machine has no fetching form: old in rax, new in TMP2, until nobody came between; r0 waits in TMP. */
static u32 fetch_loop(struct x86 *c, u32 pc, u8 w, enum x86_alu op)
{
	struct x86_mem m = atomic_at(c, pc);
	u8 s = c->insns[pc].src_reg, src = x86_of[s], *again;

	c->p = x86_mov(c->p, 8, TMP, RAX);
	if (m.base == RAX)
		m.base = TMP;
	c->p = x86_rm(c->p, 0, w, 0, 0x8b, RAX, m, false);
	again = c->p;
	c->p = x86_mov(c->p, w, TMP2, RAX);
	c->p = x86_alu(c->p, w, op, TMP2, src == RAX ? TMP : src);
	c->p = x86_1(c->p, 0xf0);
	c->p = x86_rm(c->p, 0, w, 0x0f, 0xb1, TMP2, m, false);
	c->p[0] = 0x70 | CC_NE;
	c->p[1] = again - (c->p + 2);
	c->p += 2;
	if (src != RAX) {
		c->p = x86_mov(c->p, w, src, RAX);
		c->p = x86_mov(c->p, 8, RAX, TMP);
	}
	x86_wrote(c, s, w * 8);
	return 1;
}

static u32 xchg(struct x86 *c, u32 pc, u8 w)
{
	u8 s = c->insns[pc].src_reg;

	c->p = x86_rm(c->p, 0, w, 0, 0x87, x86_of[s], atomic_at(c, pc), false);
	x86_wrote(c, s, w * 8);
	return 1;
}

static u32 cmpxchg(struct x86 *c, u32 pc, u8 w)
{
	c->p = x86_1(c->p, 0xf0);
	c->p = x86_rm(c->p, 0, w, 0x0f, 0xb1, x86_of[c->insns[pc].src_reg], atomic_at(c, pc), false);
	if (w == 4) /* where it succeeded, nothing was written to eax */
		c->p = x86_mov(c->p, 4, RAX, RAX);
	x86_wrote(c, 0, w * 8);
	return 1;
}

#define ATOMICS(bits, w)                                                                           \
	ROW(ATOMIC##bits##_ADD) { return locked(c, pc, w, X86_ADD); }                              \
	ROW(ATOMIC##bits##_OR) { return locked(c, pc, w, X86_OR); }                                \
	ROW(ATOMIC##bits##_AND) { return locked(c, pc, w, X86_AND); }                              \
	ROW(ATOMIC##bits##_XOR) { return locked(c, pc, w, X86_XOR); }                              \
	ROW(ATOMIC##bits##_FETCH_ADD) { return fetch_add(c, pc, w); }                              \
	ROW(ATOMIC##bits##_FETCH_OR) { return fetch_loop(c, pc, w, X86_OR); }                      \
	ROW(ATOMIC##bits##_FETCH_AND) { return fetch_loop(c, pc, w, X86_AND); }                    \
	ROW(ATOMIC##bits##_FETCH_XOR) { return fetch_loop(c, pc, w, X86_XOR); }                    \
	ROW(ATOMIC##bits##_XCHG) { return xchg(c, pc, w); }                                        \
	ROW(ATOMIC##bits##_CMPXCHG) { return cmpxchg(c, pc, w); }
ATOMICS(32, 4)
ATOMICS(64, 8)
#undef ATOMICS

/* ---- control ---- */

ROW(JA)
{
	jit_x86_jump(c, -1, pc, pc + 1 + c->insns[pc].off);
	return 1;
}

ROW(JA32)
{
	jit_x86_jump(c, -1, pc, pc + 1 + c->insns[pc].imm);
	return 1;
}

static u32 branch(struct x86 *c, u32 pc, enum x86_cc cc)
{
	jit_x86_jump(c, cc, pc, pc + 1 + c->insns[pc].off);
	return 1;
}

static u32 jmp_x(struct x86 *c, u32 pc, u8 w, enum x86_cc cc)
{
	const struct bpf_insn *insn = &c->insns[pc];

	c->p = x86_alu(c->p, w, X86_CMP, x86_of[insn->dst_reg], x86_of[insn->src_reg]);
	return branch(c, pc, cc);
}

static u32 jmp_k(struct x86 *c, u32 pc, u8 w, enum x86_cc cc)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, r = x86_of[d];

	if (insn->imm)
		c->p = x86_alu_imm(c->p, w, X86_CMP, r, insn->imm);
	else if (!(c->flags_at == c->p && c->flags_reg == d && c->flags_w == w && (cc == CC_E || cc == CC_NE)))
		c->p = x86_test(c->p, w, r, r);
	return branch(c, pc, cc);
}

static u32 jset_x(struct x86 *c, u32 pc, u8 w)
{
	const struct bpf_insn *insn = &c->insns[pc];

	c->p = x86_test(c->p, w, x86_of[insn->dst_reg], x86_of[insn->src_reg]);
	return branch(c, pc, CC_NE);
}

static u32 jset_k(struct x86 *c, u32 pc, u8 w)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 r = x86_of[insn->dst_reg];

	if (insn->imm >= 0 && insn->imm <= 0xff) {
		c->p = x86_rex(c->p, 4, 0, 0, r, r >= 4);
		c->p[0] = 0xf6;
		c->p[1] = 0xc0 | (r & 7);
		c->p[2] = insn->imm;
		c->p += 3;
	} else {
		c->p = x86_rr(c->p, insn->imm >= 0 ? 4 : w, 0xf7, 0, r);
		c->p = x86_4(c->p, insn->imm);
	}
	return branch(c, pc, CC_NE);
}

#define JMP(name, cc)                                                                              \
	ROW(name##64_K) { return jmp_k(c, pc, 8, cc); }                                            \
	ROW(name##64_X) { return jmp_x(c, pc, 8, cc); }                                            \
	ROW(name##32_K) { return jmp_k(c, pc, 4, cc); }                                            \
	ROW(name##32_X) { return jmp_x(c, pc, 4, cc); }
JMP(JEQ, CC_E)
JMP(JNE, CC_NE)
JMP(JGT, CC_A)
JMP(JGE, CC_AE)
JMP(JLT, CC_B)
JMP(JLE, CC_BE)
JMP(JSGT, CC_G)
JMP(JSGE, CC_GE)
JMP(JSLT, CC_L)
JMP(JSLE, CC_LE)
#undef JMP
ROW(JSET64_K) { return jset_k(c, pc, 8); }
ROW(JSET64_X) { return jset_x(c, pc, 8); }
ROW(JSET32_K) { return jset_k(c, pc, 4); }
ROW(JSET32_X) { return jset_x(c, pc, 4); }

/* The counter goes below 0 where it has run out, and the stub puts it back there. */
ROW(MAY_GOTO)
{
	struct jit_stub *stub;

	c->p = x86_rm(c->p, 0, 4, 0, 0x83, 5, jit_x86_counter(c), false);
	c->p = x86_1(c->p, 1);
	stub = jit_x86_stub(c, CC_S, STUB_MAY_GOTO, 0, 4);
	stub->to = pc + 1 + c->insns[pc].off;
	return 1;
}

static void called(struct x86 *c)
{
	u8 r;

	for (r = 0; r <= 5; r++)
		x86_wrote(c, r, 64);
	x86_wrote(c, ISA_REG_AX, 64);
}

ROW(CALL_HELPER)
{
	const struct insn_fact *fact = &c->j->text->facts[pc];

	if (fact->helper && fact->helper->flags & HELPER_TAIL_CALL)
		jit_x86_tail_call(c);
	else
		jit_x86_call(c, (u64)exec_callee(fact));
	called(c);
	return 1;
}

ROW(CALL_SUBPROG)
{
	struct jit *j = c->j;

	c->p = x86_4(x86_1(c->p, 0xe8), 0);
	j->ref[j->nr_refs++] =
		(struct jit_ref){ .at = x86_off(c) - 4, .to = j->text->facts[pc].subprog, .size = 4, .sub = true };
	called(c);
	return 1;
}

ROW(EXIT)
{
	jit_x86_leave(c);
	c->p = x86_1(c->p, 0xc3);
	return 1;
}

/* ---- the table ---- */

/* kinds that are claimed; a row of theirs without lower_<row>() ends the build here */
#define CLAIM_ALU(name)	      [ISA_##name] = lower_##name,
#define CLAIM_NEG	      CLAIM_ALU
#define CLAIM_MOV	      CLAIM_ALU
#define CLAIM_PERCPU	      CLAIM_ALU
#define CLAIM_TLS	      CLAIM_ALU
#define CLAIM_END	      CLAIM_ALU
#define CLAIM_LD_IMM64	      CLAIM_ALU
#define CLAIM_LDX	      CLAIM_ALU
#define CLAIM_ST	      CLAIM_ALU
#define CLAIM_STX	      CLAIM_ALU
#define CLAIM_LOAD_ACQ	      CLAIM_ALU
#define CLAIM_STORE_REL	      CLAIM_ALU
#define CLAIM_ATOMIC	      CLAIM_ALU
#define CLAIM_JA	      CLAIM_ALU
#define CLAIM_JMP	      CLAIM_ALU
#define CLAIM_MAY_GOTO	      CLAIM_ALU
#define CLAIM_EXIT	      CLAIM_ALU
#define CLAIM_CALL(name)      CLAIM_##name
#define CLAIM_CALL_HELPER     [ISA_CALL_HELPER] = lower_CALL_HELPER,
#define CLAIM_CALL_SUBPROG    [ISA_CALL_SUBPROG] = lower_CALL_SUBPROG,
/* not claimed: no kfuncs, no arenas, no packet loads */
#define CLAIM_CALL_KFUNC
#define CLAIM_CAST(name)
#define CLAIM_LD_ABS(name)
#define CLAIM_LD_IND(name)

const x86_lower jit_x86_rows[ISA_OP_MAX] = {
#define OP(name, kind, ...) CLAIM_##kind(name)
#include "isa/insn.def"
};
