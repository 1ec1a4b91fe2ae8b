// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rows that touch memory: loads (those that may fault too), stores, the vCPU's block, per-CPU addresses, atomics.
 *
 * Atomics are ordered as Linux orders them: those that give back the old value are full barriers, the others order nothing.
 * Where the processor has them they are one instruction (LSE); elsewhere a load and a store in a loop, with the barrier that
 * a loop of acquire and release lacks: it lets what comes after it go before its store.
 */
#include "env/env.h"
#include "exec/jit/arm64/arm64_int.h"

#define NULL_GUARD 65536 /* as the interpreter's: nothing is mapped below */

static u32 load(struct a64 *c, u32 pc, u8 width, bool sx)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 d = insn->dst_reg, *before = c->p;

	jit_a64_mem(c, width, sx ? A64_LDRS : A64_LDR, a64_def(c, d), insn->src_reg, insn->off, TMP);
	a64_wrote(c, d, sx ? 64 : width * 8);
	if (d == 0 && c->p == before + A64_WORD)
		c->result = c->p;
	return 1;
}

/* A load that may fault: 0 is there already, whether the address is too low or the load does fault. */
static u32 probe(struct a64 *c, u32 pc, u8 width, bool sx)
{
	const struct bpf_insn *insn = &c->insns[pc];
	struct jit *j = c->j;
	u8 rd = a64_def(c, insn->dst_reg), n = jit_a64_address(c, insn->src_reg, insn->off, TMP);

	if (n == rd) {
		put(c, a64_mov(8, TMP, n));
		n = TMP;
	}
	put(c, a64_sum_imm(8, A64_SUBS, XZR, n, NULL_GUARD));
	put(c, a64_wide(4, A64_MOVZ, rd, 0, 0));
	put(c, a64_aim(a64_bcc(CC_LO), 2 * A64_WORD));
	j->fixup[j->nr_fixups++] = (struct jit_fixup){ .fault = a64_off(c), .resume = a64_off(c) + A64_WORD };
	put(c, a64_mem(width, sx ? A64_LDRS : A64_LDR, rd, n, 0));
	a64_wrote(c, insn->dst_reg, sx ? 64 : width * 8);
	return 1;
}

A64_ROW(LDX_B) { return load(c, pc, 1, false); }
A64_ROW(LDX_H) { return load(c, pc, 2, false); }
A64_ROW(LDX_W) { return load(c, pc, 4, false); }
A64_ROW(LDX_DW) { return load(c, pc, 8, false); }
A64_ROW(LDSX_B) { return load(c, pc, 1, true); }
A64_ROW(LDSX_H) { return load(c, pc, 2, true); }
A64_ROW(LDSX_W) { return load(c, pc, 4, true); }
A64_ROW(PROBE_B) { return probe(c, pc, 1, false); }
A64_ROW(PROBE_H) { return probe(c, pc, 2, false); }
A64_ROW(PROBE_W) { return probe(c, pc, 4, false); }
A64_ROW(PROBE_DW) { return probe(c, pc, 8, false); }
A64_ROW(PROBESX_B) { return probe(c, pc, 1, true); }
A64_ROW(PROBESX_H) { return probe(c, pc, 2, true); }
A64_ROW(PROBESX_W) { return probe(c, pc, 4, true); }

static u32 load_acquire(struct a64 *c, u32 pc, u8 width)
{
	const struct bpf_insn *insn = &c->insns[pc];

	put(c, a64_ldar(width, a64_def(c, insn->dst_reg), jit_a64_address(c, insn->src_reg, insn->off, TMP)));
	a64_wrote(c, insn->dst_reg, width * 8);
	return 1;
}

A64_ROW(LOAD_ACQ_B) { return load_acquire(c, pc, 1); }
A64_ROW(LOAD_ACQ_H) { return load_acquire(c, pc, 2); }
A64_ROW(LOAD_ACQ_W) { return load_acquire(c, pc, 4); }
A64_ROW(LOAD_ACQ_DW) { return load_acquire(c, pc, 8); }

static u32 store(struct a64 *c, u32 pc, u8 width)
{
	const struct bpf_insn *insn = &c->insns[pc];

	jit_a64_mem(c, width, A64_STR, jit_a64_use(c, insn->src_reg, TMP2), insn->dst_reg, insn->off, TMP);
	return 1;
}

static u32 store_release(struct a64 *c, u32 pc, u8 width)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 src = jit_a64_use(c, insn->src_reg, TMP2);

	put(c, a64_stlr(width, src, jit_a64_address(c, insn->dst_reg, insn->off, TMP)));
	return 1;
}

/* What is stored is cut to the width, so that it takes fewer words. */
static u32 store_imm(struct a64 *c, u32 pc, u8 width)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u64 v = width == 8 ? (u64)(s64)insn->imm : (u32)insn->imm & (U32_MAX >> (32 - 8 * width));

	if (v)
		jit_a64_set(c, TMP2, v);
	jit_a64_mem(c, width, A64_STR, v ? TMP2 : XZR, insn->dst_reg, insn->off, TMP);
	return 1;
}

A64_ROW(STX_B) { return store(c, pc, 1); }
A64_ROW(STX_H) { return store(c, pc, 2); }
A64_ROW(STX_W) { return store(c, pc, 4); }
A64_ROW(STX_DW) { return store(c, pc, 8); }
A64_ROW(STORE_REL_B) { return store_release(c, pc, 1); }
A64_ROW(STORE_REL_H) { return store_release(c, pc, 2); }
A64_ROW(STORE_REL_W) { return store_release(c, pc, 4); }
A64_ROW(STORE_REL_DW) { return store_release(c, pc, 8); }
A64_ROW(ST_B) { return store_imm(c, pc, 1); }
A64_ROW(ST_H) { return store_imm(c, pc, 2); }
A64_ROW(ST_W) { return store_imm(c, pc, 4); }
A64_ROW(ST_DW) { return store_imm(c, pc, 8); }

static u32 tls(struct a64 *c, u32 pc, u8 width)
{
	const struct bpf_insn *insn = &c->insns[pc];

	jit_a64_tls(c, width, A64_LDR, a64_def(c, insn->dst_reg), insn->off, TMP);
	a64_wrote(c, insn->dst_reg, width * 8);
	return 1;
}

A64_ROW(TLS_W) { return tls(c, pc, 4); }
A64_ROW(TLS_DW) { return tls(c, pc, 8); }

A64_ROW(MOV64_PERCPU)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 rd = a64_def(c, insn->dst_reg), base = jit_a64_use(c, insn->src_reg, TMP2);

	jit_a64_tls(c, 4, A64_LDR, TMP, offsetof(struct env_tls, cpu), TMP);
	if (insn->imm > 0 && is_pow2(insn->imm)) {
		put(c, a64_sum(8, A64_ADD, rd, base, TMP, A64_LSL, a64_bits_of(insn->imm) - 1));
	} else {
		jit_a64_set(c, TMP3, (u64)(s64)insn->imm);
		put(c, a64_madd(8, false, rd, TMP, TMP3, base));
	}
	a64_wrote(c, insn->dst_reg, 64);
	return 1;
}

/* ---- atomics ---- */

enum rmw {
	RMW_ADD, RMW_OR, RMW_AND, RMW_XOR, RMW_XCHG,
};

static void rmw_one(struct a64 *c, u8 w, enum rmw op, bool fetch, u8 src, u8 at)
{
	static const enum a64_lse lse[] = { A64_LDADD, A64_LDSET, A64_LDCLR, A64_LDEOR, A64_SWP };
	u8 arg = src;

	if (op == RMW_AND) { /* what is cleared is the rest */
		put(c, a64_logic(w, A64_ORR, true, TMP3, XZR, src, A64_LSL, 0));
		arg = TMP3;
	}
	put(c, a64_lse(w, lse[op], fetch, arg, fetch ? src : XZR, at));
}

static void rmw_loop(struct a64 *c, u8 w, enum rmw op, bool fetch, u8 src, u8 at)
{
	const u8 *again = c->p;
	u8 new = op == RMW_XCHG ? src : TMP3;

	put(c, a64_ldxr(w, TMP2, at));
	switch (op) {
	case RMW_ADD:
		put(c, a64_sum(w, A64_ADD, new, TMP2, src, A64_LSL, 0));
		break;
	case RMW_OR:
		put(c, a64_logic(w, A64_ORR, false, new, TMP2, src, A64_LSL, 0));
		break;
	case RMW_AND:
		put(c, a64_logic(w, A64_AND, false, new, TMP2, src, A64_LSL, 0));
		break;
	case RMW_XOR:
		put(c, a64_logic(w, A64_EOR, false, new, TMP2, src, A64_LSL, 0));
		break;
	case RMW_XCHG:
		break;
	}
	put(c, fetch ? a64_stlxr(w, TMP4, new, at) : a64_stxr(w, TMP4, new, at));
	put(c, a64_aim(a64_cbz(4, true, TMP4), again - c->p));
	if (fetch) {
		put(c, A64_DMB_ISH);
		put(c, a64_mov(w, src, TMP2));
	}
}

static u32 rmw(struct a64 *c, u32 pc, u8 w, enum rmw op, bool fetch)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 at = jit_a64_address(c, insn->dst_reg, insn->off, TMP), src = c->reg[insn->src_reg];

	if (insn->src_reg == ISA_REG_FP) { /* only stored: a fetch would write it */
		src = FAR;
		jit_a64_use(c, insn->src_reg, src);
	}
	if (c->lse)
		rmw_one(c, w, op, fetch, src, at);
	else
		rmw_loop(c, w, op, fetch, src, at);
	if (fetch)
		a64_wrote(c, insn->src_reg, w * 8);
	return 1;
}

static u32 cmpxchg(struct a64 *c, u32 pc, u8 w)
{
	const struct bpf_insn *insn = &c->insns[pc];
	u8 at = jit_a64_address(c, insn->dst_reg, insn->off, TMP), r0 = c->reg[0], src = jit_a64_use(c, insn->src_reg, FAR);
	const u8 *again;

	a64_wrote(c, 0, w * 8);
	if (c->lse) {
		put(c, a64_casal(w, r0, src, at));
		return 1;
	}
	again = c->p;
	put(c, a64_ldxr(w, TMP2, at));
	put(c, a64_logic(w, A64_EOR, false, TMP3, TMP2, r0, A64_LSL, 0));
	put(c, a64_aim(a64_cbz(w, true, TMP3), 3 * A64_WORD));
	put(c, a64_stlxr(w, TMP4, src, at));
	put(c, a64_aim(a64_cbz(4, true, TMP4), again - c->p));
	put(c, A64_DMB_ISH);
	put(c, a64_mov(w, r0, TMP2));
	return 1;
}

#define ATOMICS(bits, w)                                                                           \
	A64_ROW(ATOMIC##bits##_ADD) { return rmw(c, pc, w, RMW_ADD, false); }                          \
	A64_ROW(ATOMIC##bits##_OR) { return rmw(c, pc, w, RMW_OR, false); }                            \
	A64_ROW(ATOMIC##bits##_AND) { return rmw(c, pc, w, RMW_AND, false); }                          \
	A64_ROW(ATOMIC##bits##_XOR) { return rmw(c, pc, w, RMW_XOR, false); }                          \
	A64_ROW(ATOMIC##bits##_FETCH_ADD) { return rmw(c, pc, w, RMW_ADD, true); }                     \
	A64_ROW(ATOMIC##bits##_FETCH_OR) { return rmw(c, pc, w, RMW_OR, true); }                       \
	A64_ROW(ATOMIC##bits##_FETCH_AND) { return rmw(c, pc, w, RMW_AND, true); }                     \
	A64_ROW(ATOMIC##bits##_FETCH_XOR) { return rmw(c, pc, w, RMW_XOR, true); }                     \
	A64_ROW(ATOMIC##bits##_XCHG) { return rmw(c, pc, w, RMW_XCHG, true); }                         \
	A64_ROW(ATOMIC##bits##_CMPXCHG) { return cmpxchg(c, pc, w); }
ATOMICS(32, 4)
ATOMICS(64, 8)
#undef ATOMICS
