// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each row of insn.def is on arm64: one small function a row, jit_a64_lower_<row>(), most of them one line that names
 * the function of a family. Here stand arithmetic, moves and control; memory.c has loads, stores and atomics, divide.c
 * divisions, fuse.c what is made of several rows at once. The table at the end is made from insn.def: a row of a kind that
 * is claimed and has no function anywhere does not build.
 *
 * Arithmetic has three operands, so a move before it is left out where fuse.c says so: a64_dst() is the register that holds
 * the value of dst at the moment. r10 is no register but a distance from the stack pointer. Which bits of a register can be
 * other than zero is known until control joins, so that nothing is cleared twice.
 */
#include "exec/jit/arm64/arm64_int.h"
#include "exec/jit/claims.h"

/* What was emitted since before is one word that does nothing but set r0: if the program ends here it can set x0 instead. */
static void only_result(struct a64 *c, u8 d, const u8 *before)
{
	if (d == 0 && c->p == before + A64_WORD)
		c->result = c->p;
}

/* ---- sums and logic ---- */

enum bin {
	BIN_ADD, BIN_SUB, BIN_OR, BIN_AND, BIN_XOR,
};

static enum a64_logic logic_of(enum bin op)
{
	return op == BIN_OR ? A64_ORR : op == BIN_AND ? A64_AND : A64_EOR;
}

static u8 bin_bits(enum bin op, u8 a, u8 b, u8 w)
{
	switch (op) {
	case BIN_AND:
		return min_of(a, b);
	case BIN_OR:
	case BIN_XOR:
		return max_of(a, b);
	case BIN_ADD:
		return min_of(max_of(a, b) + 1, w * 8);
	case BIN_SUB:
		break;
	}
	return w * 8;
}

static u32 bin_reg(struct a64 *c, u32 pc, u8 w, enum bin op)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, s = insn->src_reg, n, rd, rn, rm, bits, *before = c->p;
	u32 done;

	if (op == BIN_ADD && w == 8 && c->via == A64_NONE) {
		done = jit_a64_fuse_sum(c, pc);
		if (done)
			return done;
	}
	n = a64_dst(c, pc);
	if (s == d)
		s = n;
	d = a64_out(c, d);
	rd = a64_def(c, d);
	if (s == n && (op == BIN_XOR || op == BIN_SUB))
		return a64_set_zero(c, d);
	bits = bin_bits(op, min_of(c->bits[n], (u8)(w * 8)), min_of(c->bits[s], (u8)(w * 8)), w);
	rn = jit_a64_use(c, n, TMP);
	rm = jit_a64_use(c, s, TMP2);
	if (op == BIN_ADD || op == BIN_SUB)
		put(c, a64_sum(w, op == BIN_ADD ? A64_ADD : A64_SUB, rd, rn, rm, A64_LSL, 0));
	else
		put(c, a64_logic(w, logic_of(op), false, rd, rn, rm, A64_LSL, 0));
	a64_wrote(c, d, bits);
	only_result(c, d, before);
	return 1;
}

static void logic_imm(struct a64 *c, u8 w, enum a64_logic op, u8 rd, u8 rn, u64 v)
{
	u32 mask = a64_mask(w, v);

	if (mask) {
		put(c, a64_logic_imm(w, op, rd, rn, mask));
	} else {
		jit_a64_set(c, TMP, v);
		put(c, a64_logic(w, op, false, rd, rn, TMP, A64_LSL, 0));
	}
}

static u32 and_imm(struct a64 *c, u8 d, u8 n, u8 w, s32 imm)
{
	u8 bits = imm >= 0 ? a64_bits_of(imm) : w * 8, *before = c->p;

	if (imm == -1)
		return jit_a64_unchanged(c, d, n, w);
	if (!imm)
		return a64_set_zero(c, d);
	/* a mask of ones that all of the value passes */
	if (imm > 0 && is_pow2((u64)imm + 1) && c->bits[n] <= bits)
		return jit_a64_unchanged(c, d, n, w);
	w = imm >= 0 ? 4 : w;
	logic_imm(c, w, A64_AND, a64_def(c, d), jit_a64_use(c, n, TMP2), w == 4 ? (u32)imm : (u64)(s64)imm);
	a64_wrote(c, d, min_of(c->bits[n], bits));
	only_result(c, d, before);
	return 1;
}

static u32 bin_imm(struct a64 *c, u32 pc, u8 w, enum bin op)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, rd, n, bits, *before = c->p;
	s64 imm = insn->imm;
	u32 done;

	if (op == BIN_ADD && w == 8 && c->via == A64_NONE) {
		done = jit_a64_fuse_sum(c, pc);
		if (done)
			return done;
	}
	n = a64_dst(c, pc);
	d = a64_out(c, d);
	rd = a64_def(c, d);
	if (op == BIN_AND)
		return and_imm(c, d, n, w, insn->imm);
	if (!imm)
		return jit_a64_unchanged(c, d, n, w);
	bits = bin_bits(op, min_of(c->bits[n], (u8)(w * 8)), imm < 0 ? w * 8 : a64_bits_of(imm), w);
	if (op == BIN_ADD || op == BIN_SUB) {
		imm = op == BIN_SUB ? -imm : imm;
		if (n == ISA_REG_FP && w == 8)
			jit_a64_add(c, w, rd, A64_SP, c->frame_size + imm, TMP);
		else
			jit_a64_add(c, w, rd, jit_a64_use(c, n, TMP2), imm, TMP);
	} else if (op == BIN_XOR && imm == -1) {
		put(c, a64_logic(w, A64_ORR, true, rd, XZR, jit_a64_use(c, n, TMP2), A64_LSL, 0));
	} else {
		logic_imm(c, w, logic_of(op), rd, jit_a64_use(c, n, TMP2), w == 4 ? (u32)imm : (u64)imm);
	}
	a64_wrote(c, d, bits);
	only_result(c, d, before);
	return 1;
}

#define BIN(name, op)                                                                              \
	A64_ROW(name##64_K) { return bin_imm(c, pc, 8, op); }                                          \
	A64_ROW(name##64_X) { return bin_reg(c, pc, 8, op); }                                          \
	A64_ROW(name##32_K) { return bin_imm(c, pc, 4, op); }                                          \
	A64_ROW(name##32_X) { return bin_reg(c, pc, 4, op); }
BIN(ADD, BIN_ADD)
BIN(SUB, BIN_SUB)
BIN(OR, BIN_OR)
BIN(AND, BIN_AND)
BIN(XOR, BIN_XOR)
#undef BIN

/* ---- products ---- */

/* d = rn * rm, perhaps with the sum behind it */
static u32 product(struct a64 *c, u32 pc, u8 w, u8 d, u8 rn, u8 rm)
{
	u32 more = jit_a64_fuse_mul(c, pc, w, d, rn, rm);

	if (more)
		return 1 + more;
	put(c, a64_mul(w, a64_def(c, d), rn, rm));
	a64_wrote(c, d, w * 8);
	return 1;
}

static u32 mul_k(struct a64 *c, u32 pc, u8 w)
{
	u8 d = c->insns[pc].dst_reg, n = a64_dst(c, pc), rd = a64_def(c, d), rn;
	s32 imm = c->insns[pc].imm;

	if (imm == 1)
		return jit_a64_unchanged(c, d, n, w);
	if (!imm)
		return a64_set_zero(c, d);
	rn = jit_a64_use(c, n, TMP2);
	if (imm > 0 && is_pow2(imm)) {
		put(c, a64_shift_imm(w, A64_LSL, rd, rn, a64_bits_of(imm) - 1));
	} else if (imm > 2 && is_pow2(imm - 1)) {
		put(c, a64_sum(w, A64_ADD, rd, rn, rn, A64_LSL, a64_bits_of(imm) - 1));
	} else {
		jit_a64_set(c, TMP, w == 4 ? (u32)imm : (u64)(s64)imm);
		return product(c, pc, w, d, rn, TMP);
	}
	a64_wrote(c, d, w * 8);
	return 1;
}

static u32 mul_x(struct a64 *c, u32 pc, u8 w)
{
	u8 d = c->insns[pc].dst_reg, s = c->insns[pc].src_reg, n = a64_dst(c, pc);

	return product(c, pc, w, d, jit_a64_use(c, n, TMP), jit_a64_use(c, s == d ? n : s, TMP2));
}

A64_ROW(MUL64_K) { return mul_k(c, pc, 8); }
A64_ROW(MUL64_X) { return mul_x(c, pc, 8); }
A64_ROW(MUL32_K) { return mul_k(c, pc, 4); }
A64_ROW(MUL32_X) { return mul_x(c, pc, 4); }

/* ---- shifts ---- */

static u32 shift_k(struct a64 *c, u32 pc, u8 w, enum a64_shift op)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, n, k = insn->imm & (w * 8 - 1), bits, *before = c->p;
	u32 done;

	if (op == A64_LSL && w == 8 && c->via == A64_NONE) {
		done = jit_a64_fuse_sum(c, pc);
		if (done)
			return done;
	}
	n = a64_dst(c, pc);
	if (!k)
		return jit_a64_unchanged(c, d, n, w);
	done = jit_a64_fuse_shift(c, pc, w, op, n);
	if (done)
		return done;
	bits = min_of(c->bits[n], (u8)(w * 8));
	put(c, a64_shift_imm(w, op, a64_def(c, d), jit_a64_use(c, n, TMP), k));
	if (op == A64_LSL)
		a64_wrote(c, d, min_of(bits + k, w * 8));
	else if (op == A64_LSR || bits < w * 8)
		a64_wrote(c, d, bits > k ? bits - k : 0);
	else
		a64_wrote(c, d, w * 8);
	only_result(c, d, before);
	return 1;
}

static u32 shift_x(struct a64 *c, u32 pc, u8 w, enum a64_shift op)
{
	u8 d = c->insns[pc].dst_reg, s = c->insns[pc].src_reg, n = a64_dst(c, pc);

	put(c, a64_shift(w, op, a64_def(c, d), jit_a64_use(c, n, TMP), jit_a64_use(c, s == d ? n : s, TMP2)));
	a64_wrote(c, d, w * 8);
	return 1;
}

#define SHIFT(name, op)                                                                            \
	A64_ROW(name##64_K) { return shift_k(c, pc, 8, op); }                                          \
	A64_ROW(name##64_X) { return shift_x(c, pc, 8, op); }                                          \
	A64_ROW(name##32_K) { return shift_k(c, pc, 4, op); }                                          \
	A64_ROW(name##32_X) { return shift_x(c, pc, 4, op); }
SHIFT(LSH, A64_LSL)
SHIFT(RSH, A64_LSR)
SHIFT(ARSH, A64_ASR)
#undef SHIFT

/* ---- moves ---- */

static u32 neg(struct a64 *c, u32 pc, u8 w)
{
	u8 d = c->insns[pc].dst_reg, n = a64_dst(c, pc), *before = c->p;

	put(c, a64_sum(w, A64_SUB, a64_def(c, d), XZR, jit_a64_use(c, n, TMP), A64_LSL, 0));
	a64_wrote(c, d, w * 8);
	only_result(c, d, before);
	return 1;
}

A64_ROW(NEG64) { return neg(c, pc, 8); }
A64_ROW(NEG32) { return neg(c, pc, 4); }

static u32 mov_imm(struct a64 *c, u32 pc, u64 v)
{
	u8 d = c->insns[pc].dst_reg, *before = c->p;

	jit_a64_set(c, a64_def(c, d), v);
	a64_wrote(c, d, a64_bits_of(v));
	only_result(c, d, before);
	return 1;
}

A64_ROW(MOV64_K) { return mov_imm(c, pc, (u64)(s64)c->insns[pc].imm); }
A64_ROW(MOV32_K) { return mov_imm(c, pc, (u32)c->insns[pc].imm); }

static u32 mov_reg(struct a64 *c, u32 pc, u8 w)
{
	u8 d = c->insns[pc].dst_reg, s = c->insns[pc].src_reg, *before;
	u32 done = d == s ? 0 : jit_a64_fuse_mov(c, pc, w);

	if (done)
		return done;
	before = c->p;
	jit_a64_unchanged(c, d, s, w);
	only_result(c, d, before);
	return 1;
}

A64_ROW(MOV64_X) { return mov_reg(c, pc, 8); }
A64_ROW(MOV32_X) { return mov_reg(c, pc, 4); }

static u32 movsx(struct a64 *c, u32 pc, u8 w, u8 bits)
{
	u8 d = c->insns[pc].dst_reg, s = c->insns[pc].src_reg, *before = c->p;

	put(c, a64_field(w, A64_SBFM, a64_def(c, d), jit_a64_use(c, s, TMP), 0, bits - 1));
	a64_wrote(c, d, w * 8);
	only_result(c, d, before);
	return 1;
}

A64_ROW(MOVSX8_64) { return movsx(c, pc, 8, 8); }
A64_ROW(MOVSX16_64) { return movsx(c, pc, 8, 16); }
A64_ROW(MOVSX32_64) { return movsx(c, pc, 8, 32); }
A64_ROW(MOVSX8_32) { return movsx(c, pc, 4, 8); }
A64_ROW(MOVSX16_32) { return movsx(c, pc, 4, 16); }

static u32 cut(struct a64 *c, u32 pc, u8 bits)
{
	u8 d = c->insns[pc].dst_reg, n = a64_dst(c, pc);

	if (bits >= 32 || c->bits[n] <= bits)
		return jit_a64_unchanged(c, d, n, max_of(bits, (u8)32) / 8);
	put(c, a64_field(4, A64_UBFM, a64_def(c, d), jit_a64_use(c, n, TMP), 0, bits - 1));
	a64_wrote(c, d, bits);
	return 1;
}

static u32 swap(struct a64 *c, u32 pc, u8 bits)
{
	u8 d = c->insns[pc].dst_reg, n = a64_dst(c, pc), rd = a64_def(c, d);

	put(c, a64_rev(bits == 64 ? 8 : 4, rd, jit_a64_use(c, n, TMP)));
	if (bits == 16)
		put(c, a64_shift_imm(4, A64_LSR, rd, rd, 16));
	a64_wrote(c, d, bits);
	return 1;
}

A64_ROW(LE16) { return cut(c, pc, 16); }
A64_ROW(LE32) { return cut(c, pc, 32); }
A64_ROW(LE64) { return cut(c, pc, 64); }
A64_ROW(BE16) { return swap(c, pc, 16); }
A64_ROW(BE32) { return swap(c, pc, 32); }
A64_ROW(BE64) { return swap(c, pc, 64); }
A64_ROW(BSWAP16) { return swap(c, pc, 16); }
A64_ROW(BSWAP32) { return swap(c, pc, 32); }
A64_ROW(BSWAP64) { return swap(c, pc, 64); }

static u32 ld_imm64(struct a64 *c, u32 pc)
{
	u32 done = jit_a64_fuse_const(c, pc);

	if (done)
		return done;
	mov_imm(c, pc, jit_imm64(c->j, pc));
	return 2;
}

A64_ROW(LD_IMM64) { return ld_imm64(c, pc); }
A64_ROW(LD_MAP_FD) { return ld_imm64(c, pc); }
A64_ROW(LD_MAP_VALUE) { return ld_imm64(c, pc); }
A64_ROW(LD_BTF_ID) { return ld_imm64(c, pc); }
A64_ROW(LD_FUNC) { return ld_imm64(c, pc); }
A64_ROW(LD_MAP_IDX) { return ld_imm64(c, pc); }
A64_ROW(LD_MAP_IDX_VALUE) { return ld_imm64(c, pc); }

/* ---- control ---- */

A64_ROW(JA)
{
	jit_a64_jump(c, A64_B, pc, pc + 1 + c->insns[pc].off);
	return 1;
}

A64_ROW(JA32)
{
	jit_a64_jump(c, A64_B, pc, pc + 1 + c->insns[pc].imm);
	return 1;
}

static u32 branch(struct a64 *c, u32 pc, u32 word)
{
	jit_a64_jump(c, word, pc, pc + 1 + c->insns[pc].off);
	return 1;
}

static u32 jmp_x(struct a64 *c, u32 pc, u8 w, enum a64_cc cc)
{
	const struct bpf_insn *insn = &c->insns[pc];

	put(c, a64_sum(w, A64_SUBS, XZR, jit_a64_use(c, insn->dst_reg, TMP), jit_a64_use(c, insn->src_reg, TMP2), A64_LSL, 0));
	return branch(c, pc, a64_bcc(cc));
}

/* A comparison that is one of zero, or of the sign: the branch that tests it, 0 if it is none. */
static u32 test_branch(u8 w, enum a64_cc cc, u8 rn, s32 imm)
{
	u8 sign = w * 8 - 1;

	if (imm == 1 && (cc == CC_LO || cc == CC_HS))
		return a64_cbz(w, cc == CC_HS, rn);
	if (imm == -1 && (cc == CC_GT || cc == CC_LE))
		return a64_tbz(cc == CC_LE, rn, sign);
	if (imm)
		return 0;
	switch (cc) {
	case CC_EQ:
	case CC_LS:
		return a64_cbz(w, false, rn);
	case CC_NE:
	case CC_HI:
		return a64_cbz(w, true, rn);
	case CC_GE:
		return a64_tbz(false, rn, sign);
	case CC_LT:
		return a64_tbz(true, rn, sign);
	case CC_HS:
	case CC_LO:
	case CC_GT:
	case CC_LE:
	case CC_MI:
	case CC_PL:
	case CC_VS:
	case CC_VC:
		break;
	}
	return 0;
}

static u32 jmp_k(struct a64 *c, u32 pc, u8 w, enum a64_cc cc)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 rn = jit_a64_use(c, insn->dst_reg, TMP2);
	s64 imm = insn->imm;
	u32 word = test_branch(w, cc, rn, insn->imm);

	if (word)
		return branch(c, pc, word);
	if (imm >= 0 && a64_is_sum_imm((u64)imm)) {
		put(c, a64_sum_imm(w, A64_SUBS, XZR, rn, (u32)imm));
	} else if (imm < 0 && a64_is_sum_imm((u64)-imm)) {
		put(c, a64_sum_imm(w, A64_ADDS, XZR, rn, (u32)-imm));
	} else {
		jit_a64_set(c, TMP, w == 4 ? (u32)imm : (u64)imm);
		put(c, a64_sum(w, A64_SUBS, XZR, rn, TMP, A64_LSL, 0));
	}
	return branch(c, pc, a64_bcc(cc));
}

static u32 jset_x(struct a64 *c, u32 pc, u8 w)
{
	const struct bpf_insn *insn = &c->insns[pc];

	put(c, a64_logic(w, A64_ANDS, false, XZR, jit_a64_use(c, insn->dst_reg, TMP), jit_a64_use(c, insn->src_reg, TMP2), A64_LSL, 0));
	return branch(c, pc, a64_bcc(CC_NE));
}

static u32 jset_k(struct a64 *c, u32 pc, u8 w)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 rn = jit_a64_use(c, insn->dst_reg, TMP2);
	u64 mask = w == 4 || insn->imm >= 0 ? (u32)insn->imm : (u64)(s64)insn->imm;

	if (is_pow2(mask))
		return branch(c, pc, a64_tbz(true, rn, a64_bits_of(mask) - 1));
	logic_imm(c, mask <= U32_MAX ? 4 : 8, A64_ANDS, XZR, rn, mask);
	return branch(c, pc, a64_bcc(CC_NE));
}

#define JMP(name, cc)                                                                              \
	A64_ROW(name##64_K) { return jmp_k(c, pc, 8, cc); }                                            \
	A64_ROW(name##64_X) { return jmp_x(c, pc, 8, cc); }                                            \
	A64_ROW(name##32_K) { return jmp_k(c, pc, 4, cc); }                                            \
	A64_ROW(name##32_X) { return jmp_x(c, pc, 4, cc); }
JMP(JEQ, CC_EQ)
JMP(JNE, CC_NE)
JMP(JGT, CC_HI)
JMP(JGE, CC_HS)
JMP(JLT, CC_LO)
JMP(JLE, CC_LS)
JMP(JSGT, CC_GT)
JMP(JSGE, CC_GE)
JMP(JSLT, CC_LT)
JMP(JSLE, CC_LE)
#undef JMP
A64_ROW(JSET64_K) { return jset_k(c, pc, 8); }
A64_ROW(JSET64_X) { return jset_x(c, pc, 8); }
A64_ROW(JSET32_K) { return jset_k(c, pc, 4); }
A64_ROW(JSET32_X) { return jset_x(c, pc, 4); }

/* The counter stays at 0 where it has run out. It is counted down first: what follows may be elsewhere. */
A64_ROW(MAY_GOTO)
{
	put(c, a64_mem(4, A64_LDR, TMP, A64_SP, c->counter));
	put(c, a64_sum_imm(4, A64_SUBS, TMP2, TMP, 1));
	put(c, a64_csel(4, TMP2, TMP2, XZR, CC_HS));
	put(c, a64_mem(4, A64_STR, TMP2, A64_SP, c->counter));
	return branch(c, pc, a64_bcc(CC_LO));
}

/* A C function's result is in x0, which is r1. */
static void called(struct a64 *c)
{
	u8 r;

	put(c, a64_mov(8, a64_def(c, 0), X0));
	for (r = 0; r <= 5; r++)
		a64_wrote(c, r, 64);
	a64_wrote(c, ISA_REG_AX, 64);
	c->result = c->p;
}

A64_ROW(CALL_HELPER)
{
	const struct insn_fact *fact = &c->j->text->facts[pc];

	if (fact->helper && fact->helper->flags & HELPER_TAIL_CALL) {
		jit_a64_tail_call(c);
		a64_forget(c);
	} else {
		jit_a64_call(c, (u64)exec_callee(fact));
		called(c);
	}
	return 1;
}

A64_ROW(CALL_KFUNC)
{
	const struct insn_fact *fact = &c->j->text->facts[pc];

	if (exec_throws(ISA_CALL_KFUNC, fact)) {
		jit_a64_throw(c);
		a64_forget(c);
	} else {
		jit_a64_call(c, (u64)exec_callee(fact));
		called(c);
	}
	return 1;
}

A64_ROW(CALL_SUBPROG)
{
	jit_a64_call_sub(c, c->j->text->facts[pc].subprog);
	called(c);
	return 1;
}

A64_ROW(EXIT)
{
	u32 word;

	if (c->result == c->p) {
		memcpy(&word, c->p - A64_WORD, sizeof(word));
		c->p -= A64_WORD;
		c->off[pc] = a64_off(c);
		word = (word & ~31u) | X0;
		if (word != a64_mov(8, X0, X0))
			put(c, word);
	} else {
		put(c, a64_mov(8, X0, a64_def(c, 0)));
	}
	jit_a64_leave(c);
	put(c, A64_RET);
	return 1;
}

/* ---- the table ---- */

#define JIT_LOWER(name) jit_a64_lower_##name
const a64_lower jit_a64_rows[ISA_OP_MAX] = {
#define OP(name, kind, ...) JIT_CLAIM_##kind(name)
#include "isa/insn.def"
};
