// SPDX-License-Identifier: BSD-2-Clause
/*
 * Several BPF instructions as one of the machine's: rotations and addresses (match.c), a shift and what its result is
 * added to or combined with, two shifts that cut out a field, a product and a sum; and a move before an operation, which
 * is left out because the operation can read another register than it writes.
 */
#include "exec/jit/arm64/arm64_int.h"
#include "exec/jit/match.h"

static bool dead(const struct a64 *c, u32 pc, u8 reg)
{
	return jit_dead(c->j, c->sub, pc, reg);
}

/* ---- rotations ---- */

/* The half that is not the result, if it is still wanted: from holds the value both are made of. */
static void leftover(struct a64 *c, u32 pc, u8 w, struct jit_half h, u8 from)
{
	if (dead(c, pc, h.reg))
		return;
	put(c, a64_shift_imm(w, h.left ? A64_LSL : A64_LSR, c->reg[h.reg], from, h.n));
	a64_wrote(c, h.reg, w * 8);
}

static void rotated(struct a64 *c, u8 w, struct jit_half h, u8 from)
{
	put(c, a64_shift_imm(w, A64_ROR, c->reg[h.reg], from, h.left ? w * 8 - h.n : h.n));
	a64_wrote(c, h.reg, w * 8);
}

static u32 rotate(struct a64 *c, u32 pc, u8 w)
{
	struct jit_rotation r;
	u8 from;

	if (!jit_find_rotation(c->j, c->sub, pc, w, &r) || r.from == ISA_REG_FP)
		return 0;
	from = c->reg[r.from];
	if (r.result.reg == r.from) { /* the value itself is rotated: the other half first */
		leftover(c, pc + r.slots, w, r.other, from);
		rotated(c, w, r.result, from);
	} else {
		rotated(c, w, r.result, from);
		leftover(c, pc + r.slots, w, r.other, from);
	}
	return r.slots;
}

/* ---- addresses ---- */

/* A plain load or store through d that ends d's use as an address. */
static bool is_last_access(const struct a64 *c, u32 pc, u8 d)
{
	const struct bpf_insn *insn = &c->insns[pc];
	enum isa_op op = c->in[pc].op;

	switch (isa_info[op].kind) {
	case ISA_K_LDX:
		return !isa_info[op].internal && insn->src_reg == d && (insn->dst_reg == d || dead(c, pc + 1, d));
	case ISA_K_STX:
		return insn->dst_reg == d && insn->src_reg != d && dead(c, pc + 1, d);
	case ISA_K_ST:
		return insn->dst_reg == d && dead(c, pc + 1, d);
	}
	return false;
}

/* What is stored, in a machine register. */
static u8 stored(struct a64 *c, u32 pc)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 width = isa_info[c->in[pc].op].width;
	u64 v = width == 8 ? (u64)(s64)insn->imm : (u32)insn->imm & (U32_MAX >> (32 - 8 * width));

	if (isa_info[c->in[pc].op].kind == ISA_K_STX)
		return jit_a64_use(c, insn->src_reg, TMP2);
	if (!v)
		return XZR;
	jit_a64_set(c, TMP2, v);
	return TMP2;
}

/* Base and index are added where the machine has no form for all of it. */
static void access_sum(struct a64 *c, u8 width, enum a64_access op, u8 t, const struct jit_address *sum, s64 disp)
{
	u8 base, index;

	if (sum->index == JIT_NO_REG) {
		jit_a64_mem(c, width, op, t, sum->base, disp, TMP);
		return;
	}
	base = jit_a64_use(c, sum->base, TMP);
	index = jit_a64_use(c, sum->index, TMP3);
	if (!disp && (!sum->scale || 1 << sum->scale == width)) {
		put(c, a64_mem_reg(width, op, t, base, index, sum->scale));
		return;
	}
	put(c, a64_sum(8, A64_ADD, TMP, base, index, A64_LSL, sum->scale));
	if (a64_is_scaled(width, disp)) {
		put(c, a64_mem(width, op, t, TMP, (u32)disp));
	} else if (a64_is_near(disp)) {
		put(c, a64_mem_near(width, op, t, TMP, (s32)disp));
	} else {
		jit_a64_set(c, TMP3, (u64)disp);
		put(c, a64_mem_reg(width, op, t, TMP, TMP3, false));
	}
}

u32 jit_a64_fuse_sum(struct a64 *c, u32 pc)
{
	const struct isa_info *info;
	u8 d = c->insns[pc].dst_reg, t;
	struct jit_address sum;
	u32 at;

	if (!a64_joins(c, pc + 1))
		return 0;
	at = jit_find_address(c->j, c->sub, pc, &sum);
	if (at == pc || !jit_joins(c->j, c->sub, at) || !is_last_access(c, at, d) || sum.base == JIT_NO_REG)
		return 0;
	info = &isa_info[c->in[at].op];
	if (info->kind == ISA_K_LDX) {
		bool sx = BPF_MODE(info->code) == BPF_MEMSX;

		t = c->insns[at].dst_reg;
		access_sum(c, info->width, sx ? A64_LDRS : A64_LDR, a64_def(c, t), &sum, (s64)sum.disp + c->insns[at].off);
		a64_wrote(c, t, sx ? 64 : info->width * 8);
	} else {
		t = stored(c, at);
		access_sum(c, info->width, A64_STR, t, &sum, (s64)sum.disp + c->insns[at].off);
	}
	return at + 1 - pc;
}

/* d = constant; d += s; then what is at d + off: at s from a constant that has the distance in it */
u32 jit_a64_fuse_const(struct a64 *c, u32 pc)
{
	const struct bpf_insn *sum = &c->insns[pc + 2], *use = sum + 1;
	const struct isa_info *info;
	u8 d = c->insns[pc].dst_reg, rd = a64_def(c, d), index, t;
	bool sx;

	if (!a64_joins(c, pc + 2) || !a64_joins(c, pc + 3) || c->in[pc + 2].op != ISA_ADD64_X || sum->dst_reg != d ||
	    sum->src_reg == d || !is_last_access(c, pc + 3, d))
		return 0;
	info = &isa_info[c->in[pc + 3].op];
	sx = BPF_MODE(info->code) == BPF_MEMSX;
	index = jit_a64_use(c, sum->src_reg, TMP3);
	jit_a64_set(c, rd, jit_imm64(c->j, pc) + (u64)(s64)use->off);
	a64_wrote(c, d, 64);
	if (info->kind == ISA_K_LDX) {
		t = use->dst_reg;
		put(c, a64_mem_reg(info->width, sx ? A64_LDRS : A64_LDR, a64_def(c, t), rd, index, false));
		a64_wrote(c, t, sx ? 64 : info->width * 8);
	} else {
		t = stored(c, pc + 3);
		put(c, a64_mem_reg(info->width, A64_STR, t, rd, index, false));
	}
	return 4;
}

/* ---- shifts ---- */

/* n <<= k; n >>= m, or s>>=: a field of n, extended, or its low bits moved up */
static u32 field(struct a64 *c, u32 pc, u8 w, u8 n, u8 k)
{
	u8 d = c->insns[pc].dst_reg, top = w * 8 - 1, m = c->insns[pc + 1].imm & top, rd = a64_def(c, d), bits = w * 8 - m;
	enum isa_op op = c->in[pc + 1].op;
	bool sx = op == (w == 8 ? ISA_ARSH64_K : ISA_ARSH32_K);

	if (c->insns[pc + 1].dst_reg != d || (!sx && op != (w == 8 ? ISA_RSH64_K : ISA_RSH32_K)))
		return 0;
	if (k == m && !sx && c->bits[n] <= bits) {
		jit_a64_unchanged(c, d, n, w);
		return 2;
	}
	if (w == 8 && k == 32 && m == 32 && !sx)
		put(c, a64_mov(4, rd, jit_a64_use(c, n, TMP)));
	else
		put(c, a64_field(w, sx ? A64_SBFM : A64_UBFM, rd, jit_a64_use(c, n, TMP), (m - k) & top, top - k));
	a64_wrote(c, d, sx ? w * 8 : bits);
	return 2;
}

/* n >>= k; n &= ones: a field */
static u32 masked(struct a64 *c, u32 pc, u8 w, u8 n, u8 k)
{
	u8 d = c->insns[pc].dst_reg, bits;
	enum isa_op op = c->in[pc + 1].op;
	s32 imm = c->insns[pc + 1].imm;

	if (c->insns[pc + 1].dst_reg != d || (op != ISA_AND64_K && op != ISA_AND32_K) || imm <= 0 || !is_pow2((u64)imm + 1))
		return 0;
	bits = a64_bits_of(imm);
	if (k + bits > w * 8)
		return 0;
	put(c, a64_field(w, A64_UBFM, a64_def(c, d), jit_a64_use(c, n, TMP), k, k + bits - 1));
	a64_wrote(c, d, bits);
	return 2;
}

struct shifted { /* t op= n shifted by k, in register d */
	u8 d, t, n, k;
	enum a64_shift shift;
};

/* BPF_ADD … of the instruction at pc if it is one of width w that has a form with a shifted operand. */
static int combining(const struct a64 *c, u32 pc, u8 w)
{
	u8 code = c->insns[pc].code;

	if (isa_info[c->in[pc].op].kind != ISA_K_ALU || code != ((w == 8 ? BPF_ALU64 : BPF_ALU) | BPF_X | BPF_OP(code)))
		return -1;
	switch (BPF_OP(code)) {
	case BPF_ADD:
	case BPF_SUB:
	case BPF_OR:
	case BPF_AND:
	case BPF_XOR:
		return BPF_OP(code);
	}
	return -1;
}

static void combine(struct a64 *c, u8 w, int op, const struct shifted *s)
{
	u8 rd = a64_def(c, s->d), rt = jit_a64_use(c, s->t, TMP2), rn = jit_a64_use(c, s->n, TMP);

	if (op == BPF_ADD || op == BPF_SUB) {
		put(c, a64_sum(w, op == BPF_ADD ? A64_ADD : A64_SUB, rd, rt, rn, s->shift, s->k));
	} else {
		put(c, a64_logic(w, op == BPF_OR ? A64_ORR : op == BPF_AND ? A64_AND : A64_EOR, false, rd, rt, rn, s->shift, s->k));
	}
	a64_wrote(c, s->d, w * 8);
}

u32 jit_a64_fuse_shift(struct a64 *c, u32 pc, u8 w, enum a64_shift op, u8 n)
{
	u8 d = c->insns[pc].dst_reg, k = c->insns[pc].imm & (w * 8 - 1);
	const struct bpf_insn *join = &c->insns[pc + 1];
	struct shifted s = { .n = n, .k = k, .shift = op };
	u32 done = 0;
	int how;

	if (!a64_joins(c, pc + 1))
		return 0;
	if (op == A64_LSL)
		done = field(c, pc, w, n, k);
	else if (op == A64_LSR)
		done = masked(c, pc, w, n, k);
	how = combining(c, pc + 1, w);
	if (done || how < 0 || join->src_reg == join->dst_reg)
		return done;
	if (join->dst_reg == d && how != BPF_SUB) {
		s.d = d;
		s.t = join->src_reg;
	} else if (join->src_reg == d && dead(c, pc + 2, d)) {
		s.d = s.t = join->dst_reg;
	} else {
		return 0;
	}
	combine(c, w, how, &s);
	return 2;
}

/* ---- products ---- */

/* d += t; or t += d, t -= d where d is not read again */
u32 jit_a64_fuse_mul(struct a64 *c, u32 pc, u8 w, u8 d, u8 rn, u8 rm)
{
	const struct bpf_insn *join = &c->insns[pc + 1];
	u8 t = join->src_reg, to = d;
	int how;

	if (!a64_joins(c, pc + 1))
		return 0;
	how = combining(c, pc + 1, w);
	if ((how != BPF_ADD && how != BPF_SUB) || join->src_reg == join->dst_reg)
		return 0;
	if (join->src_reg == d && dead(c, pc + 2, d))
		t = to = join->dst_reg;
	else if (join->dst_reg != d || how == BPF_SUB)
		return 0;
	put(c, a64_madd(w, how == BPF_SUB, a64_def(c, to), rn, rm, jit_a64_use(c, t, TMP3)));
	a64_wrote(c, to, w * 8);
	return 1;
}

/* ---- moves ---- */

/* The row at pc reads dst by a64_dst(), and after a move of w bytes it does what it would. */
static bool reads_via(const struct a64 *c, u32 pc, u8 w, u8 s)
{
	const struct isa_info *info = &isa_info[c->in[pc].op];

	switch (info->kind) {
	case ISA_K_ALU:
	case ISA_K_NEG:
		if (w == 8 || info->width == 4 || c->bits[s] <= 32)
			return true;
		/* what the move would cut off is shifted out */
		return c->in[pc].op == ISA_LSH64_K && (c->insns[pc].imm & 63) >= 32;
	case ISA_K_END:
		return w == 8 || c->bits[s] <= 32;
	}
	return false;
}

/* Behind the sum at pc, d = s op x, what it goes on to: t = d, and d is not read again. t, or A64_NONE. */
static u8 moves_on(const struct a64 *c, u32 pc, u8 d)
{
	const struct bpf_insn *mov = &c->insns[pc + 1];
	u8 code = c->insns[pc].code;

	if (BPF_CLASS(code) != BPF_ALU64 || !a64_joins(c, pc + 1) || c->in[pc + 1].op != ISA_MOV64_X || mov->src_reg != d ||
	    mov->dst_reg == d || !dead(c, pc + 2, d))
		return A64_NONE;
	switch (BPF_OP(code)) {
	case BPF_ADD:
	case BPF_SUB:
	case BPF_OR:
	case BPF_AND:
	case BPF_XOR:
		return mov->dst_reg;
	}
	return A64_NONE;
}

u32 jit_a64_fuse_mov(struct a64 *c, u32 pc, u8 w)
{
	u8 d = c->insns[pc].dst_reg, s = c->insns[pc].src_reg;
	u32 done, moved;

	if (!a64_joins(c, pc + 1))
		return 0;
	done = rotate(c, pc, w);
	if (!done && w == 8)
		done = jit_a64_fuse_sum(c, pc);
	if (done || c->insns[pc + 1].dst_reg != d || !reads_via(c, pc + 1, w, s))
		return done;
	c->via = s;
	c->to = moves_on(c, pc + 1, d);
	moved = c->to != A64_NONE;
	return 1 + jit_a64_rows[c->in[pc + 1].op](c, pc + 1) + moved;
}
