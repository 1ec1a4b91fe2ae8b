/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the x86-64 compiler: the state of an emission, shared by its files. */
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
	u32 limit;	     /* offset that was reckoned for what has been emitted */
	bool fuse;
	bool bmi2, slow_div;
	bool overrun; /* sticky */
	s64 tls; /* env_tls, from the thread pointer */

	/* of the subprogram's frame (abi.c) */
	bool frame;	 /* rbp is set up */
	u32 frame_size;	 /* bytes below rbp, saved registers not counted */
	u8 nr_saved, saved[5];
	u32 sub_nr;
	bool keeps; /* it is the one a throw lands on: the last thing pushed is env_tls.throw_to */
	u32 pad;    /* where throws jump to */

	/* what is known where code is emitted now; nothing where control comes from elsewhere */
	u8 bits[ISA_NR_REGS]; /* of the register's value, all above are 0 */
	u8 *flags_at;	      /* ZF tells of flags_reg at width flags_w if nothing was emitted since */
	u8 flags_reg, flags_w;
};

/* Emits the instruction at pc, perhaps some after it; returns the slots it has done. */
typedef u32 (*x86_lower)(struct x86 *c, u32 pc);
#define X86_ROW(name) u32 jit_x86_lower_##name(struct x86 *c, u32 pc)
/* one a row of insn.def; those of rows that are not claimed stand nowhere */
#define OP(name, ...) X86_ROW(name);
#include "isa/insn.def"
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

/* Bits needed to write v. */
static inline u8 x86_bits_of(u64 v)
{
	return v ? 64 - __builtin_clzll(v) : 0;
}

/* The upper half becomes 0. */
static inline void x86_zext(struct x86 *c, u8 d)
{
	if (c->bits[d] > 32) {
		c->p = x86_mov(c->p, 4, x86_of[d], x86_of[d]);
		x86_wrote(c, d, 32);
	}
}

/* What an operation that changes nothing in its own width still does: 1 slot. */
static inline u32 x86_unchanged(struct x86 *c, u8 d, u8 w)
{
	if (w == 4)
		x86_zext(c, d);
	return 1;
}

static inline void x86_set_zero(struct x86 *c, u8 d)
{
	c->p = x86_zero(c->p, x86_of[d]);
	x86_wrote(c, d, 0);
}

/* lower.c: BPF register d &= imm; 1 slot. Machine registers: dst = src * imm. */
u32 jit_x86_and_imm(struct x86 *c, u8 d, u8 w, s32 imm);
void jit_x86_mul_imm(struct x86 *c, u8 w, u8 dst, u8 src, s32 imm);

/* divide_k.c: BPF register d divided by v (of w bytes, not 0), or the remainder, without dividing. */
u32 jit_x86_divide_k(struct x86 *c, u32 pc, u8 w, bool sign, bool mod);

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
u32 jit_x86_sum(struct x86 *c, u32 pc);

/* The same; what follows shows for most sums at once that they are no address. */
static inline u32 jit_x86_address(struct x86 *c, u32 pc)
{
	u8 code;

	if (!x86_joins(c, pc + 1))
		return 0;
	code = c->insns[pc + 1].code;
	if (BPF_CLASS(code) != BPF_LDX && code != (BPF_ALU64 | BPF_ADD | BPF_X) && code != (BPF_ALU64 | BPF_ADD | BPF_K) &&
	    code != (BPF_ALU64 | BPF_LSH | BPF_K))
		return 0;
	return jit_x86_sum(c, pc);
}

/* No path reads reg after pc - 1 before it is written; false where that is not soon clear. */
bool jit_x86_dead(const struct x86 *c, u32 pc, u8 reg);

/* abi.c */
u32 jit_x86_sub_bound(const struct jit *j, const struct jit_sub *sub);
void jit_x86_enter(struct x86 *c, u32 nr); /* thunks and prologue of a subprogram */
void jit_x86_leave(struct x86 *c);	   /* undoes the prologue; a ret or jmp follows */
void jit_x86_tail_call(struct x86 *c);
/* throw.c: of programs that can throw. X86_UNKEEP: bytes of jit_x86_unkeep(); X86_PAD: of all the others */
#define X86_UNKEEP 9
#define X86_PAD	   96
void jit_x86_pad(struct x86 *c);    /* where throws land; before the program's prologue, whose frame is planned */
void jit_x86_keep(struct x86 *c);   /* end of the program's prologue, and what undoes it */
void jit_x86_unkeep(struct x86 *c);
void jit_x86_throw(struct x86 *c);
/* Where the may_goto counter of the subprogram stands. */
struct x86_mem jit_x86_counter(const struct x86 *c);

#endif
