/* SPDX-License-Identifier: BSD-2-Clause */
/* What passes ask of the control and data flow: where jumps lead, what a register holds, which ones are still read. */
#ifndef INLAY_REWRITE_FLOW_H
#define INLAY_REWRITE_FLOW_H

#include "object/prog.h"

/*
 * A byte per slot, not 0 where control may come from elsewhere than the slot before: targets of jumps, starts of
 * subprograms. The caller frees it; NULL: no memory.
 */
u8 *rw_targets(const struct prog *prog);

enum rw_value_kind {
	RW_UNKNOWN,
	RW_CONST, /* v */
	RW_FRAME, /* frame pointer + v */
	RW_FUNC,  /* the function loaded at slot v */
	RW_OBJ,	  /* the map, value or other object loaded at slot v */
};

struct rw_value {
	enum rw_value_kind kind;
	s64 v;
};

/* What reg holds before slot pc, as far as the straight line of code that leads there says. */
struct rw_value rw_value_of(const struct prog *prog, const u8 *targets, u32 pc, u8 reg);

/* The 4 bytes at frame pointer + off before slot pc, if that same line stored a constant there. */
bool rw_stack_const(const struct prog *prog, const u8 *targets, u32 pc, s64 off, u32 *ret_value);

/*
 * The store of exactly width bytes to frame pointer + off that a load there before slot pc reads, on that same line: its
 * slot; U32_MAX: not known. A register it stored still holds what it did.
 */
u32 rw_stack_store(const struct prog *prog, const u8 *targets, u32 pc, s64 off, u32 width);

/* The slot before pc that begins an instruction; pc > 0. */
u32 rw_prev(const struct prog *prog, u32 pc);

/* Registers, bit n for rn, the instruction at pc reads and writes, a call's arguments and losses included. */
u16 rw_regs_read(const struct prog *prog, u32 pc);
u16 rw_regs_written(const struct prog *prog, u32 pc);

/* The instruction at pc does nothing but set a register. */
bool rw_only_computes(const struct prog *prog, u32 pc);

/*
 * For slots [start, end), a whole number of subprograms: live[pc - start] is the set of registers that may still be
 * read behind the instruction at pc. 0 or -ENOMEM.
 */
int rw_live_after(const struct prog *prog, u32 start, u32 end, u16 *live);

/* The subprogram slot pc belongs to, and the slot behind its last. */
u32 rw_subprog_at(const struct prog *prog, u32 pc);
u32 rw_subprog_end(const struct prog *prog, u32 subprog);

#endif
