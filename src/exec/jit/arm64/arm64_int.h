/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the arm64 compiler: the state of an emission, shared by its files. */
#ifndef INLAY_EXEC_JIT_ARM64_ARM64_INT_H
#define INLAY_EXEC_JIT_ARM64_ARM64_INT_H

#include <string.h>

#include "exec/jit/arm64/enc.h"
#include "exec/jit/jit.h"

/* Registers no BPF register lives in, and no code relies on from one instruction to the next. */
#define TMP  X8
#define TMP2 X9
#define TMP3 X10
#define TMP4 X11
#define FAR  X16 /* holds the address of a call that bl does not reach */

#define A64_WORD 4 /* bytes */

struct a64 {
	u8 *p; /* next byte */
	struct jit *j;
	const struct bpf_insn *insns;
	const struct jit_insn *in;
	u32 *off;	     /* jit_image.insn_off */
	struct jit_sub *sub; /* being emitted */
	u8 cold;	     /* JIT_COLD while its cold code is */
	u32 limit;	     /* offset that was reckoned for what has been emitted */
	bool fuse;
	bool lse;
	bool near, near_bit; /* all the code is within reach of a conditional branch, of tbz */
	bool overrun;	     /* sticky */
	s64 tls;	     /* env_tls, from the thread pointer */

	/* of the subprogram's frame (abi.c) */
	u8 reg[ISA_NR_REGS]; /* where BPF registers live; r10, which is sp + frame_size, in none: TMP4 */
	bool record;	     /* the frame begins with x29 and x30 */
	u32 frame_size;
	u8 nr_saved, saved[4];
	u32 counter, kept;   /* may_goto's rounds, env_tls.throw_to of before: offsets from sp */
	u32 sub_nr;
	bool keeps; /* it is the one a throw lands on */
	u32 pad;    /* where throws jump to */

	/* what is known where code is emitted now; nothing where control comes from elsewhere */
	u8 bits[ISA_NR_REGS]; /* of the register's value, all above are 0 */
	/* the next instruction finds the value of its dst in this BPF register still: the move before it was left out */
	u8 via; /* A64_NONE: in dst */
	/* and its result goes to this BPF register: the move behind it is left out as well. A64_NONE: to dst */
	u8 to;
	const u8 *result; /* if this is where code is emitted, the word before does nothing but set r0 */
};

/* Emits the instruction at pc, perhaps some after it; returns the slots it has done. */
typedef u32 (*a64_lower)(struct a64 *c, u32 pc);
#define A64_ROW(name) u32 jit_a64_lower_##name(struct a64 *c, u32 pc)
/* one a row of insn.def; those of rows that are not claimed stand nowhere */
#define OP(name, ...) A64_ROW(name);
#include "isa/insn.def"
extern const a64_lower jit_a64_rows[ISA_OP_MAX];
u8 jit_a64_bound(enum isa_op op, const struct bpf_insn *insn, const struct insn_fact *fact);

static inline u32 a64_off(const struct a64 *c)
{
	return (u32)(c->p - c->j->code);
}

static inline void put(struct a64 *c, u32 word)
{
	memcpy(c->p, &word, 4);
	c->p += 4;
}

/* A register got a new value of at most this many bits. */
static inline void a64_wrote(struct a64 *c, u8 reg, u8 bits)
{
	c->bits[reg] = bits;
}

static inline void a64_forget(struct a64 *c)
{
	memset(c->bits, 64, sizeof(c->bits));
	c->result = NULL;
}

/* The instruction at pc may be done together with the one before it: control comes only from there. */
static inline bool a64_joins(const struct a64 *c, u32 pc)
{
	return c->fuse && pc < c->sub->end && !(c->in[pc].flags & (JIT_TARGET | JIT_SECOND));
}

/* Bits needed to write v. */
static inline u8 a64_bits_of(u64 v)
{
	return v ? 64 - __builtin_clzll(v) : 0;
}

/* ---- constants and operands: value.c ---- */

/* The shortest sequence; at most 4 words, 2 if v is a sign-extended s32. */
void jit_a64_set(struct a64 *c, u8 d, u64 v);
/* d = n + v, at most 3 words for 32 bits of v; scratch, not n, may be lost. n or d may be sp. */
void jit_a64_add(struct a64 *c, u8 w, u8 d, u8 n, s64 v, u8 scratch);
/* Machine register with the value of a BPF register: its own, or for r10 scratch. At most 3 words. */
u8 jit_a64_use(struct a64 *c, u8 reg, u8 scratch);
/* Where a BPF register's new value goes: its own register; of r10, which no program writes, one that nobody reads. */
static inline u8 a64_def(const struct a64 *c, u8 reg)
{
	return reg == ISA_REG_FP ? TMP4 : c->reg[reg];
}

/* A load or store at BPF register base + off, with scratch for the address; at most 3 words. */
void jit_a64_mem(struct a64 *c, u8 width, enum a64_access op, u8 t, u8 base, s64 off, u8 scratch);
/* The address itself in a machine register: base's own or scratch. At most 3 words. */
u8 jit_a64_address(struct a64 *c, u8 base, s64 off, u8 scratch);
/* t = field of env_tls, or the other way; scratch gets the thread pointer. At most 3 words. */
void jit_a64_tls(struct a64 *c, u8 width, enum a64_access op, u8 t, s64 off, u8 scratch);

/* The BPF register that holds dst's value: dst, or what a move that was left out names. Once an instruction. */
static inline u8 a64_dst(struct a64 *c, u32 pc)
{
	u8 via = c->via;

	c->via = A64_NONE;
	return via == A64_NONE ? c->insns[pc].dst_reg : via;
}

/* The BPF register that gets its result; of sums and logic, which are all that asks. */
static inline u8 a64_out(struct a64 *c, u8 d)
{
	u8 to = c->to;

	c->to = A64_NONE;
	return to == A64_NONE ? d : to;
}

/* The upper half becomes 0. */
static inline void a64_zext(struct a64 *c, u8 d)
{
	if (c->bits[d] > 32) {
		put(c, a64_mov(4, a64_def(c, d), a64_def(c, d)));
		a64_wrote(c, d, 32);
	}
}

/* What an operation that changes nothing in its own width still does: 1 slot. n: where dst's value is. */
u32 jit_a64_unchanged(struct a64 *c, u8 d, u8 n, u8 w);

static inline u32 a64_set_zero(struct a64 *c, u8 d)
{
	jit_a64_set(c, a64_def(c, d), 0);
	a64_wrote(c, d, 0);
	return 1;
}

/* flow.c: a branch (A64_B: always) without its distance, to a slot. At most 3 words. */
void jit_a64_jump(struct a64 *c, u32 word, u32 pc, u32 to);
/* A call of a C function. At most 4 words. */
void jit_a64_call(struct a64 *c, u64 fn);
/* A call of a subprogram. */
void jit_a64_call_sub(struct a64 *c, u32 sub);

/*
 * fuse.c: slots done, 0 if nothing fits. From a move on; from a sum or shift of 64 bits that an address may begin with;
 * from a shift by a constant of the value in BPF register n; from a constant of two slots. Of a product, BPF register d = rn * rm: slots beyond its own.
 */
u32 jit_a64_fuse_mov(struct a64 *c, u32 pc, u8 w);
u32 jit_a64_fuse_sum(struct a64 *c, u32 pc);
u32 jit_a64_fuse_shift(struct a64 *c, u32 pc, u8 w, enum a64_shift op, u8 n);
u32 jit_a64_fuse_const(struct a64 *c, u32 pc);
u32 jit_a64_fuse_mul(struct a64 *c, u32 pc, u8 w, u8 d, u8 rn, u8 rm);

/* abi.c */
u32 jit_a64_sub_bound(const struct jit *j, const struct jit_sub *sub);
void jit_a64_enter(struct a64 *c, u32 nr); /* thunks and prologue of a subprogram */
void jit_a64_leave(struct a64 *c);	   /* undoes the prologue; a ret or br follows */
void jit_a64_tail_call(struct a64 *c);
/* throw.c: of programs that can throw */
#define A64_UNKEEP (4 * A64_WORD)  /* jit_a64_unkeep() */
#define A64_PAD	   (26 * A64_WORD) /* all the others, and registers saved for others */
void jit_a64_pad(struct a64 *c);   /* where throws land; before the program's prologue, whose frame is planned */
void jit_a64_keep(struct a64 *c);  /* end of the program's prologue, and what undoes it */
void jit_a64_unkeep(struct a64 *c);
void jit_a64_throw(struct a64 *c);

#endif
