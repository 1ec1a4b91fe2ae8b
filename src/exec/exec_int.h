/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to exec/: the decoded form of a program, made by predecode.c, run by interp.c. */
#ifndef INLAY_EXEC_EXEC_INT_H
#define INLAY_EXEC_EXEC_INT_H

#include "exec/exec.h"
#include "isa/isa.h"

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
	struct exec_insn *code;
	struct exec_sub *subs; /* prog->nr_subprogs */
};

/* By enum isa_op: the handler, 0 if the interpreter has none. */
const s32 *exec_handlers(void);

/* Runs a subprogram with these arguments. */
u64 exec_run(const struct exec_sub *sub, u64 r1, u64 r2, u64 r3, u64 r4, u64 r5);

#endif
