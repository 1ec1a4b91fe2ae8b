/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to exec/: what the engines share, and the interpreter's decoded form (made by predecode.c, run by interp.c). */
#ifndef INLAY_EXEC_EXEC_INT_H
#define INLAY_EXEC_EXEC_INT_H

#include "exec/exec.h"
#include "isa/isa.h"
#include "object/helper.h"

/* How every prog->image begins. */
struct exec_head {
	const struct exec_impl *impl;
	/*
	 * Where a tail call of compiled code jumps to: first argument the context, second the program. What runs there
	 * goes on counting tail calls (env_tls.tail_calls), prog->entry begins to.
	 */
	u64 (*tail_entry)(void *ctx, struct prog *prog);
};

struct exec_impl {
	const struct caps *caps;
	int (*prepare)(struct prog *prog, struct strbuf *log);
};

extern const struct exec_impl exec_interp;

/* Instructions that run. */
static inline const struct prog *exec_text(const struct prog *prog)
{
	return prog->lowered ? prog->lowered : prog;
}

/* The instruction leaves the program for its exception callback. op: of the instruction whose fact it is. */
static inline bool exec_throws(int op, const struct insn_fact *fact)
{
	return op == ISA_CALL_KFUNC && fact->kfunc && fact->kfunc->flags & KFUNC_THROWS;
}

/* Subprogram that exceptions go on with; PROG_NO_SUBPROG: none. */
u32 exec_exception_cb(const struct prog *text);

/* What a call of a helper or kernel function calls, NULL: nothing that could run. */
static inline helper_fn exec_callee(const struct insn_fact *fact)
{
	if (fact->fn) /* of a kernel function always */
		return fact->fn;
	return fact->helper ? fact->helper->fn : NULL;
}

/* The program a tail call goes on with, or NULL: none there, or the run has had its share. Counts it. */
struct prog *exec_tail_target(struct map *map, u64 index);

/* Fills prog->funcs (nr: subprograms of the text); -ENOMEM. */
int exec_make_funcs(struct prog *prog, u32 nr);

/* One instruction, both slots of a constant together. 16 bytes, so that four share a cache line. */
struct exec_insn {
	s32 handler; /* of the operation, as a distance: exec_handlers() */
	u8 dst, src;
	s16 off; /* memory: as encoded */
	union {
		u64 imm; /* second operand; constant; address of the helper; struct exec_sub of the subprogram */
		struct {
			s32 imm32; /* comparison: second operand */
			s32 jump;  /* jump: instructions from this one */
		};
	};
};

struct exec_sub {
	const struct exec_insn *code;
	u32 depth; /* bytes of stack it uses, at most PROG_STACK, 8-aligned */
};

struct exec_image {
	struct exec_head head;
	struct exec_insn *code;
	struct exec_sub *subs; /* of the text */
};

#define EXEC_TAIL_CALL ISA_OP_MAX /* index of the handler of a helper call that is a tail call */

#define EXEC_THROW     (ISA_OP_MAX + 1) /* … of a call that throws; imm: struct exec_sub of the exception callback */

/* By enum isa_op, EXEC_TAIL_CALL and EXEC_THROW: the handler, 0 if the interpreter has none. */
const s32 *exec_handlers(void);

/* Runs a subprogram with these arguments. */
u64 exec_run(const struct exec_sub *sub, u64 r1, u64 r2, u64 r3, u64 r4, u64 r5);

#endif
