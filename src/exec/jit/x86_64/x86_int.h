/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the x86-64 compiler: the state of an emission, shared by lower.c (rows), fuse.c (several rows) and abi.c. */
#ifndef INLAY_EXEC_JIT_X86_64_X86_INT_H
#define INLAY_EXEC_JIT_X86_64_X86_INT_H

#include "exec/jit/jit.h"
#include "exec/jit/x86_64/enc.h"

/* Registers no BPF register lives in, and no code relies on from one instruction to the next. */
#define TMP  R11
#define TMP2 R9

/* Where BPF registers live: arguments and results as in C, so that a call of a helper moves nothing. */
static const u8 x86_of[ISA_NR_REGS] = { RAX, RDI, RSI, RDX, RCX, R8, RBX, R13, R14, R15, RBP, R10 };

struct x86 {
	u8 *p; /* next byte */
	struct jit *j;
	const struct bpf_insn *insns;
	const struct jit_insn *in;
	u32 *off;	     /* jit_image.insn_off */
	struct jit_sub *sub; /* being emitted */
	u8 cold;	     /* JIT_COLD while its cold code is */
	bool fuse;
	bool bmi2, slow_div;
	bool overrun; /* sticky */
	s64 tls; /* env_tls, from the thread pointer */

	/* of the subprogram's frame (abi.c) */
	bool frame;	 /* rbp is set up */
	u32 frame_size;	 /* bytes below rbp, saved registers not counted */
	u8 nr_saved, saved[5];
	u32 sub_nr;

	/* what is known where code is emitted now; nothing where control comes from elsewhere */
	u8 bits[ISA_NR_REGS]; /* of the register's value, all above are 0 */
	u8 *flags_at;	      /* ZF tells of flags_reg at width flags_w if nothing was emitted since */
	u8 flags_reg, flags_w;
};

/* Emits the instruction at pc, perhaps some after it; returns the slots it has done. */
typedef u32 (*x86_lower)(struct x86 *c, u32 pc);
extern const x86_lower jit_x86_rows[ISA_OP_MAX];
u8 jit_x86_bound(enum isa_op op, const struct bpf_insn *insn, const struct insn_fact *fact);

static inline u32 x86_off(const struct x86 *c)
{
	return (u32)(c->p - c->j->code);
}

/* A register got a new value of at most this many bits. */
static inline void x86_wrote(struct x86 *c, u8 reg, u8 bits)
{
	c->bits[reg] = bits;
}

static inline void x86_forget(struct x86 *c)
{
	memset(c->bits, 64, sizeof(c->bits));
	c->flags_at = NULL;
}

/* What was just emitted set ZF by the result in BPF register reg. */
static inline void x86_flags(struct x86 *c, u8 reg, u8 w)
{
	c->flags_at = c->p;
	c->flags_reg = reg;
	c->flags_w = w;
}

/* What was emitted since before changed register reg (ISA_NR_REGS: none) and no flags: what they tell stays told. */
static inline void x86_keeps_flags(struct x86 *c, const u8 *before, u8 reg)
{
	if (c->flags_at == before && c->flags_reg != reg)
		c->flags_at = c->p;
}

/* The instruction at pc may be done together with the one before it: control comes only from there. */
static inline bool x86_joins(const struct x86 *c, u32 pc)
{
	return c->fuse && pc < c->sub->end && !(c->in[pc].flags & (JIT_TARGET | JIT_SECOND));
}

/* flow.c: a jump (cc -1: always) to a slot. */
void jit_x86_jump(struct x86 *c, int cc, u32 pc, u32 to);
/* Slot that is emitted after the one before pc, U32_MAX if that is the last. */
u32 jit_x86_next(const struct x86 *c, u32 pc);
/* A call of a C function. */
void jit_x86_call(struct x86 *c, u64 fn);

/* A stub reached by a jcc (cc) or jmp (-1) emitted here. NULL-free: the lists are large enough by analysis. */
struct jit_stub *jit_x86_stub(struct x86 *c, int cc, u8 kind, u8 reg, u8 w);
/* Emits the subprogram's stubs: behind all its other code. */
void jit_x86_stubs(struct x86 *c);
enum { STUB_PROBE, STUB_MAY_GOTO, STUB_DIV, STUB_MOD, STUB_SDIV, STUB_SMOD };

/* fuse.c: slots done, 0 if nothing fits. */
u32 jit_x86_rotate(struct x86 *c, u32 pc);
u32 jit_x86_address(struct x86 *c, u32 pc);
/* No path reads reg after pc - 1 before it is written; false where that is not soon clear. */
bool jit_x86_dead(const struct x86 *c, u32 pc, u8 reg);

/* abi.c */
u32 jit_x86_sub_bound(const struct jit *j, const struct jit_sub *sub);
void jit_x86_enter(struct x86 *c, u32 nr); /* thunks and prologue of a subprogram */
void jit_x86_leave(struct x86 *c);	   /* undoes the prologue; a ret or jmp follows */
void jit_x86_tail_call(struct x86 *c);
/* Where the may_goto counter of the subprogram stands. */
struct x86_mem jit_x86_counter(const struct x86 *c);

#endif
