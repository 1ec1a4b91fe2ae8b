// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each row of insn.def is on x86-64: one small function a row, jit_x86_lower_<row>(), most of them one line that names
 * the function of a family. Here stand arithmetic, moves and control; memory.c has loads, stores and atomics, divide.c and
 * divide_k.c divisions. The table at the end is made from insn.def: a row of a kind that is claimed and has no function
 * anywhere does not build.
 *
 * Emission keeps two bits of knowledge that make code shorter: how many bits of a register can be other than zero, so
 * that nothing is cleared twice, and of which register the flags tell. Both are forgotten where control joins.
 */
#include "exec/jit/claims.h"
#include "exec/jit/x86_64/x86_int.h"

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
		x86_set_zero(c, d);
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

u32 jit_x86_and_imm(struct x86 *c, u8 d, u8 w, s32 imm)
{
	u8 r = x86_of[d], bits = imm >= 0 ? x86_bits_of(imm) : w * 8;

	if (imm == -1)
		return x86_unchanged(c, d, w);
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
	u8 d = insn->dst_reg, bits = min_of(c->bits[d], (u8)(w * 8)), imm_bits = insn->imm < 0 ? w * 8 : x86_bits_of(insn->imm);

	if (op == X86_AND)
		return jit_x86_and_imm(c, d, w, insn->imm);
	if (!insn->imm)
		return x86_unchanged(c, d, w);
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
	X86_ROW(name##64_K) { return bin_imm(c, pc, 8, op); }                                          \
	X86_ROW(name##64_X) { return bin_reg(c, pc, 8, op); }                                          \
	X86_ROW(name##32_K) { return bin_imm(c, pc, 4, op); }                                          \
	X86_ROW(name##32_X) { return bin_reg(c, pc, 4, op); }
BIN(ADD, X86_ADD)
BIN(SUB, X86_SUB)
BIN(OR, X86_OR)
BIN(AND, X86_AND)
BIN(XOR, X86_XOR)

/* ---- products ---- */

void jit_x86_mul_imm(struct x86 *c, u8 w, u8 dst, u8 src, s32 imm)
{
	if (imm == 3 || imm == 5 || imm == 9) {
		struct x86_mem m = { .base = src, .index = src, .scale = imm == 3 ? 1 : imm == 5 ? 2 : 3 };

		c->p = x86_lea(c->p, w, dst, m);
	} else if (x86_is_s8(imm)) {
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
		return x86_unchanged(c, d, w);
	if (!imm) {
		x86_set_zero(c, d);
		return 1;
	}
	if (imm > 0 && is_pow2(imm)) {
		c->p = x86_shift_imm(c->p, w, X86_SHL, r, x86_bits_of(imm) - 1);
	} else {
		jit_x86_mul_imm(c, w, r, r, imm);
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

X86_ROW(MUL64_K) { return mul_k(c, pc, 8); }
X86_ROW(MUL64_X) { return mul_x(c, pc, 8); }
X86_ROW(MUL32_K) { return mul_k(c, pc, 4); }
X86_ROW(MUL32_X) { return mul_x(c, pc, 4); }

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
		x86_zext(c, d);
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
		return x86_unchanged(c, d, w);
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
	X86_ROW(name##64_K) { return shift_k(c, pc, 8, op); }                                          \
	X86_ROW(name##64_X) { return shift_x(c, pc, 8, op); }                                          \
	X86_ROW(name##32_K) { return shift_k(c, pc, 4, op); }                                          \
	X86_ROW(name##32_X) { return shift_x(c, pc, 4, op); }
SHIFT(LSH, X86_SHL)
SHIFT(RSH, X86_SHR)
SHIFT(ARSH, X86_SAR)

/* ---- moves ---- */

static u32 neg(struct x86 *c, u32 pc, u8 w)
{
	u8 d = c->insns[pc].dst_reg;

	c->p = x86_f7(c->p, w, 3, x86_of[d]);
	x86_flags(c, d, w);
	x86_wrote(c, d, w * 8);
	return 1;
}

X86_ROW(NEG64) { return neg(c, pc, 8); }
X86_ROW(NEG32) { return neg(c, pc, 4); }

static u32 mov_imm(struct x86 *c, u32 pc, u64 v)
{
	u8 d = c->insns[pc].dst_reg;

	c->p = x86_mov_imm(c->p, x86_of[d], v);
	x86_wrote(c, d, x86_bits_of(v));
	return 1;
}

X86_ROW(MOV64_K) { return mov_imm(c, pc, (u64)(s64)c->insns[pc].imm); }
X86_ROW(MOV32_K) { return mov_imm(c, pc, (u32)c->insns[pc].imm); }

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
			jit_x86_mul_imm(c, w, x86_of[d], x86_of[s], c->insns[pc + 1].imm);
			x86_wrote(c, d, w * 8);
			return 2;
		}
	}
	if (d == s)
		return x86_unchanged(c, d, w);
	before = c->p;
	c->p = x86_mov(c->p, c->bits[s] <= 32 ? 4 : w, x86_of[d], x86_of[s]);
	x86_keeps_flags(c, before, d);
	x86_wrote(c, d, min_of(c->bits[s], (u8)(w * 8)));
	return 1;
}

X86_ROW(MOV64_X) { return mov_reg(c, pc, 8); }
X86_ROW(MOV32_X) { return mov_reg(c, pc, 4); }

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

X86_ROW(MOVSX8_64) { return movsx(c, pc, 8, 1); }
X86_ROW(MOVSX16_64) { return movsx(c, pc, 8, 2); }
X86_ROW(MOVSX32_64) { return movsx(c, pc, 8, 4); }
X86_ROW(MOVSX8_32) { return movsx(c, pc, 4, 1); }
X86_ROW(MOVSX16_32) { return movsx(c, pc, 4, 2); }

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

X86_ROW(LE16) { return cut(c, pc, 16); }
X86_ROW(LE32) { return cut(c, pc, 32); }
X86_ROW(LE64) { return cut(c, pc, 64); }
X86_ROW(BE16) { return swap(c, pc, 16); }
X86_ROW(BE32) { return swap(c, pc, 32); }
X86_ROW(BE64) { return swap(c, pc, 64); }
X86_ROW(BSWAP16) { return swap(c, pc, 16); }
X86_ROW(BSWAP32) { return swap(c, pc, 32); }
X86_ROW(BSWAP64) { return swap(c, pc, 64); }

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
	x86_wrote(c, d, x86_bits_of(v));
	return 2;
}

X86_ROW(LD_IMM64) { return ld_imm64(c, pc); }
X86_ROW(LD_MAP_FD) { return ld_imm64(c, pc); }
X86_ROW(LD_MAP_VALUE) { return ld_imm64(c, pc); }
X86_ROW(LD_BTF_ID) { return ld_imm64(c, pc); }
X86_ROW(LD_FUNC) { return ld_imm64(c, pc); }
X86_ROW(LD_MAP_IDX) { return ld_imm64(c, pc); }
X86_ROW(LD_MAP_IDX_VALUE) { return ld_imm64(c, pc); }

/* ---- control ---- */

X86_ROW(JA)
{
	jit_x86_jump(c, -1, pc, pc + 1 + c->insns[pc].off);
	return 1;
}

X86_ROW(JA32)
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
	X86_ROW(name##64_K) { return jmp_k(c, pc, 8, cc); }                                            \
	X86_ROW(name##64_X) { return jmp_x(c, pc, 8, cc); }                                            \
	X86_ROW(name##32_K) { return jmp_k(c, pc, 4, cc); }                                            \
	X86_ROW(name##32_X) { return jmp_x(c, pc, 4, cc); }
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
X86_ROW(JSET64_K) { return jset_k(c, pc, 8); }
X86_ROW(JSET64_X) { return jset_x(c, pc, 8); }
X86_ROW(JSET32_K) { return jset_k(c, pc, 4); }
X86_ROW(JSET32_X) { return jset_x(c, pc, 4); }

/* The counter goes below 0 where it has run out, and the stub puts it back there. */
X86_ROW(MAY_GOTO)
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

X86_ROW(CALL_HELPER)
{
	const struct insn_fact *fact = &c->j->text->facts[pc];

	if (fact->helper && fact->helper->flags & HELPER_TAIL_CALL)
		jit_x86_tail_call(c);
	else
		jit_x86_call(c, (u64)exec_callee(fact));
	called(c);
	return 1;
}

X86_ROW(CALL_KFUNC)
{
	const struct insn_fact *fact = &c->j->text->facts[pc];

	if (exec_throws(ISA_CALL_KFUNC, fact))
		jit_x86_throw(c);
	else
		jit_x86_call(c, (u64)exec_callee(fact));
	called(c);
	return 1;
}

X86_ROW(CALL_SUBPROG)
{
	struct jit *j = c->j;

	c->p = x86_4(x86_1(c->p, 0xe8), 0);
	j->ref[j->nr_refs++] =
		(struct jit_ref){ .at = x86_off(c) - 4, .to = j->text->facts[pc].subprog, .size = 4, .sub = true };
	called(c);
	return 1;
}

X86_ROW(EXIT)
{
	jit_x86_leave(c);
	c->p = x86_1(c->p, 0xc3);
	return 1;
}

/* ---- the table ---- */

#define JIT_LOWER(name) jit_x86_lower_##name
const x86_lower jit_x86_rows[ISA_OP_MAX] = {
#define OP(name, kind, ...) JIT_CLAIM_##kind(name)
#include "isa/insn.def"
};
