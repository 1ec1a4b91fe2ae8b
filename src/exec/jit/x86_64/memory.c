// SPDX-License-Identifier: BSD-2-Clause
// Rows that touch memory: loads (those that may fault too), stores, the vCPU's block, per-CPU addresses, atomics.
#include "env/env.h"
#include "exec/jit/x86_64/x86_int.h"

#define NULL_GUARD 65536 /* as the interpreter's: nothing is mapped below */

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

X86_ROW(LDX_B) { return load(c, pc, 1, false); }
X86_ROW(LDX_H) { return load(c, pc, 2, false); }
X86_ROW(LDX_W) { return load(c, pc, 4, false); }
X86_ROW(LDX_DW) { return load(c, pc, 8, false); }
X86_ROW(LDSX_B) { return load(c, pc, 1, true); }
X86_ROW(LDSX_H) { return load(c, pc, 2, true); }
X86_ROW(LDSX_W) { return load(c, pc, 4, true); }
X86_ROW(PROBE_B) { return probe(c, pc, 1, false); }
X86_ROW(PROBE_H) { return probe(c, pc, 2, false); }
X86_ROW(PROBE_W) { return probe(c, pc, 4, false); }
X86_ROW(PROBE_DW) { return probe(c, pc, 8, false); }
X86_ROW(PROBESX_B) { return probe(c, pc, 1, true); }
X86_ROW(PROBESX_H) { return probe(c, pc, 2, true); }
X86_ROW(PROBESX_W) { return probe(c, pc, 4, true); }

/* an aligned load or store is an acquire or release by itself */
X86_ROW(LOAD_ACQ_B) { return load(c, pc, 1, false); }
X86_ROW(LOAD_ACQ_H) { return load(c, pc, 2, false); }
X86_ROW(LOAD_ACQ_W) { return load(c, pc, 4, false); }
X86_ROW(LOAD_ACQ_DW) { return load(c, pc, 8, false); }

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

X86_ROW(STX_B) { return store(c, pc, 1); }
X86_ROW(STX_H) { return store(c, pc, 2); }
X86_ROW(STX_W) { return store(c, pc, 4); }
X86_ROW(STX_DW) { return store(c, pc, 8); }
X86_ROW(STORE_REL_B) { return store(c, pc, 1); }
X86_ROW(STORE_REL_H) { return store(c, pc, 2); }
X86_ROW(STORE_REL_W) { return store(c, pc, 4); }
X86_ROW(STORE_REL_DW) { return store(c, pc, 8); }
X86_ROW(ST_B) { return store_imm(c, pc, 1); }
X86_ROW(ST_H) { return store_imm(c, pc, 2); }
X86_ROW(ST_W) { return store_imm(c, pc, 4); }
X86_ROW(ST_DW) { return store_imm(c, pc, 8); }

static u32 tls(struct x86 *c, u32 pc, u8 width)
{
	const struct bpf_insn *insn = &c->insns[pc];

	c->p = x86_load(c->p, width, x86_of[insn->dst_reg], x86_fs((s32)(c->tls + insn->off)));
	x86_wrote(c, insn->dst_reg, width * 8);
	return 1;
}

X86_ROW(TLS_W) { return tls(c, pc, 4); }
X86_ROW(TLS_DW) { return tls(c, pc, 8); }

X86_ROW(MOV64_PERCPU)
{
	const struct bpf_insn *insn = &c->insns[pc];
	struct x86_mem sum = { .base = x86_of[insn->src_reg], .index = TMP };

	c->p = x86_load(c->p, 4, TMP, x86_fs((s32)(c->tls + offsetof(struct env_tls, cpu))));
	if (insn->imm > 0 && is_pow2(insn->imm)) {
		if (insn->imm <= 8)
			sum.scale = x86_bits_of(insn->imm) - 1;
		else
			c->p = x86_shift_imm(c->p, 8, X86_SHL, TMP, x86_bits_of(insn->imm) - 1);
	} else {
		jit_x86_mul_imm(c, 8, TMP, TMP, insn->imm);
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
	X86_ROW(ATOMIC##bits##_ADD) { return locked(c, pc, w, X86_ADD); }                              \
	X86_ROW(ATOMIC##bits##_OR) { return locked(c, pc, w, X86_OR); }                                \
	X86_ROW(ATOMIC##bits##_AND) { return locked(c, pc, w, X86_AND); }                              \
	X86_ROW(ATOMIC##bits##_XOR) { return locked(c, pc, w, X86_XOR); }                              \
	X86_ROW(ATOMIC##bits##_FETCH_ADD) { return fetch_add(c, pc, w); }                              \
	X86_ROW(ATOMIC##bits##_FETCH_OR) { return fetch_loop(c, pc, w, X86_OR); }                      \
	X86_ROW(ATOMIC##bits##_FETCH_AND) { return fetch_loop(c, pc, w, X86_AND); }                    \
	X86_ROW(ATOMIC##bits##_FETCH_XOR) { return fetch_loop(c, pc, w, X86_XOR); }                    \
	X86_ROW(ATOMIC##bits##_XCHG) { return xchg(c, pc, w); }                                        \
	X86_ROW(ATOMIC##bits##_CMPXCHG) { return cmpxchg(c, pc, w); }
ATOMICS(32, 4)
ATOMICS(64, 8)
#undef ATOMICS
