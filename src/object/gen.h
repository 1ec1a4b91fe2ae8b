/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A map type's or helper's own inline code: what it would have run in a program in place of a call of a helper.
 *
 * A generator is a function of the map type (map_ops->gen) or the helper (helper_desc->gen) that fills a struct gen with
 * plain and internal instructions. rewrite/ puts them where the call stands; exec/ need not know what they are for.
 *
 * Contract of the generated code
 *  1. It finds r1..r5 as the call would and leaves in r0 what the call would; r1..r5 and AX are free, r6..r9 must stay,
 *     the stack is not touched.
 *  2. It has the same effects as the outlined body: nothing may differ but time.
 *  3. Control enters at its first and leaves behind its last instruction: jumps stay within [0, nr].
 *  4. gen_call() stands for the call itself (or a twin of it), with r1..r5 as they were at the beginning; mark what is
 *     rarely reached cold, and put it last with a jump back before it, so that the way taken most falls through.
 */
#ifndef INLAY_OBJECT_GEN_H
#define INLAY_OBJECT_GEN_H

#include "isa/isa.h"
#include "object/prog.h"

#define GEN_MAX 48 /* instruction slots */

/* What the engine that will run the code can do; rewriting makes no instruction it cannot. */
enum cap {
	CAP_PERCPU = 1u << 0,	/* MOV64_PERCPU */
	CAP_TLS = 1u << 1,	/* TLS_W, TLS_DW */
	CAP_DIRECT = 1u << 2,	/* insn_fact.fn: a call of any C function */
	CAP_COLD = 1u << 3,	/* places cold code out of the way */
};

/* --no-inline[=storage,irq,map,helper,loop] switches these off. */
enum inline_kind {
	INLINE_STORAGE = 1u << 0, /* local storage */
	INLINE_IRQ = 1u << 1,	  /* irq save and restore */
	INLINE_MAP = 1u << 2,	  /* other maps */
	INLINE_HELPER = 1u << 3,  /* current task, ids, cpu, random numbers … */
	INLINE_LOOP = 1u << 4,	  /* bpf_loop with its callback in place */
	INLINE_ALL = (1u << 5) - 1,
};

struct caps {
	const char *name; /* of the engine */
	u32 can;	  /* enum cap */
};

/* One call to be generated for. */
struct gen_call {
	const struct helper_desc *helper;
	const struct insn_fact *fact; /* of the call */
	struct map *map; /* what it gets; a pattern if fact->inner_map. NULL: helper takes none, or it is not one map */
	u32 can;	 /* enum cap */
	bool key_known;	 /* the key argument points to a constant: key_value holds it (keys of 4 bytes) */
	u32 key_value;
	u32 known;	 /* bit n: argument rn is the constant arg[n] */
	u64 arg[6];
};

struct gen {
	struct bpf_insn insn[GEN_MAX];
	struct gen_note {
		u64 imm64; /* constant of a two-slot load */
		u64 (*fn)(u64, u64, u64, u64, u64);
		bool is_call, cold;
	} note[GEN_MAX];
	u32 nr;
	bool cold;   /* what is emitted next is cold */
	bool failed; /* did not fit; sticky */
};

/* gen: 1 code made, 0 nothing made (the call stays), never an error. */
typedef int (*gen_fn)(const struct gen_call *call, struct gen *g);

static inline u32 gen_insn(struct gen *g, struct bpf_insn insn)
{
	if (g->nr >= GEN_MAX) {
		g->failed = true;
		return GEN_MAX - 1;
	}
	g->insn[g->nr] = insn;
	g->note[g->nr] = (struct gen_note){ .cold = g->cold };
	return g->nr++;
}

/* The call, to fn (NULL: the helper itself). Returns its index. */
static inline u32 gen_call(struct gen *g, u64 (*fn)(u64, u64, u64, u64, u64))
{
	u32 at = gen_insn(g, (struct bpf_insn){ .code = BPF_JMP | BPF_CALL });

	g->note[at].is_call = true;
	g->note[at].fn = fn;
	return at;
}

/* dst = a 64-bit constant, in two slots. */
static inline void gen_imm64(struct gen *g, u8 dst, u64 value)
{
	u32 at = gen_insn(g, (struct bpf_insn){ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = dst, .imm = (s32)value });

	gen_insn(g, (struct bpf_insn){ .imm = (s32)(value >> 32) });
	g->note[at].imm64 = value;
}

static inline void gen_mov(struct gen *g, u8 dst, u8 src)
{
	gen_insn(g, (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = dst, .src_reg = src });
}

static inline void gen_alu_imm(struct gen *g, u8 op, u8 dst, s32 imm)
{
	gen_insn(g, (struct bpf_insn){ .code = BPF_ALU64 | op | BPF_K, .dst_reg = dst, .imm = imm });
}

static inline void gen_alu(struct gen *g, u8 op, u8 dst, u8 src)
{
	gen_insn(g, (struct bpf_insn){ .code = BPF_ALU64 | op | BPF_X, .dst_reg = dst, .src_reg = src });
}

/* dst = *(size *)(src + off); size BPF_B, BPF_H, BPF_W, BPF_DW */
static inline void gen_load(struct gen *g, u8 size, u8 dst, u8 src, s16 off)
{
	gen_insn(g, (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | size, .dst_reg = dst, .src_reg = src, .off = off });
}

/* dst = field of env_tls at off; size BPF_W or BPF_DW */
static inline void gen_tls(struct gen *g, u8 size, u8 dst, s16 off)
{
	gen_insn(g, (struct bpf_insn){ .code = BPF_LDX | ISA_TLS_MEM | size, .dst_reg = dst, .off = off });
}

/* A jump to be aimed by gen_land(); op BPF_JA or a comparison with imm. */
static inline u32 gen_jump(struct gen *g, u8 op, u8 dst, s32 imm)
{
	return gen_insn(g, (struct bpf_insn){ .code = BPF_JMP | op | BPF_K, .dst_reg = dst, .imm = op == BPF_JA ? 0 : imm });
}

/* The jump at index leads to what is emitted next. */
static inline void gen_land(struct gen *g, u32 jump)
{
	g->insn[jump].off = (s16)(g->nr - jump - 1);
}

#endif
