// SPDX-License-Identifier: BSD-2-Clause
/*
 * How compiled code is entered and left.
 *
 * A subprogram is a C function of r1..r5 (x0..x4) that returns r0 in x0: BPF-to-BPF calls and calls of helpers are plain
 * calls. Within it r0 is x7, which a return moves. Before it stand, where it needs them, thunks that fall into it:
 *   entry(prog, ctx)		 of the program: moves ctx to x0; a program with tail calls counts them anew
 *   func->call(func, r1..r5)	 of a function that is passed by pointer: moves what is read down by one
 *
 * The frame, of a fixed size below what the stack pointer was: at its top the BPF stack, so that r10 is sp + frame_size and
 * needs no register; at its bottom x29 and x30, if anything is called, with x29 pointing to them as profilers want it; the
 * saved registers; the may_goto counter; what a throw restores. A function that calls nothing keeps r6 to r9 in registers
 * that nobody has to save, and has no frame without a stack.
 *
 * A tail call leaves its own frame and jumps to where the target's thunk ends, so that the target returns to whoever
 * called this function, and a subprogram's tail call returns to the subprogram's caller.
 */
#include "exec/jit/arm64/arm64_int.h"
#include "exec/jit/match.h"

#include "env/env.h"

#define PAIR_MAX 504 /* distance of a pair, at most; of a negative one 8 more */

/* What was asked for and is not needed is given back, but only a hole of this size will do: so it is reckoned closely. */
u32 jit_a64_sub_bound(const struct jit *j, const struct jit_sub *sub)
{
	const struct prog_subprog *info = &j->text->subprogs[sub - j->sub];
	bool stack = sub->regs & 1 << ISA_REG_FP;
	u32 words = 1 + (sub->calls ? 2 : 0) + (sub->regs & 0x3c0 ? 2 : 0) + (sub->may_goto ? 2 : 0);

	if (sub == j->sub)
		words += j->tail_calls ? 17 : 1;
	else if (sub->by_pointer)
		words += 5;
	if (info->reads_stale && stack)
		words += 1 + (u32)align_up(info->stack_depth, 32) / 32 + 1;
	if (sub == j->sub && !j->prog->verified_insns)
		words += __builtin_popcount(sub->regs & 0x3fd);
	return words * A64_WORD + (sub == j->sub && j->throws ? A64_PAD : 0);
}

/* x0 = func, the rest one place too far: only what is read needs to move. */
static void emit_func_thunk(struct a64 *c)
{
	u8 i;

	c->sub->thunk = a64_off(c);
	for (i = 0; i < 5; i++)
		if (c->sub->args & 2 << i && !jit_dead(c->j, c->sub, c->sub->start, 1 + i))
			put(c, a64_mov(8, X0 + i, X0 + i + 1));
}

/* Calls the body with env_tls.tail_calls 0, and puts back what it was. */
static void emit_counting_thunk(struct a64 *c)
{
	const s64 count = offsetof(struct env_tls, tail_calls);
	u8 *call;
	u32 word;

	put(c, a64_pair(A64_STP_PRE, X29, X30, A64_SP, -32));
	put(c, a64_mov_sp(X29, A64_SP));
	jit_a64_tls(c, 8, A64_LDR, TMP2, count, TMP);
	put(c, a64_mem(8, A64_STR, TMP2, A64_SP, 16));
	jit_a64_tls(c, 8, A64_STR, XZR, count, TMP);
	put(c, a64_mov(8, X0, X1));
	call = c->p;
	put(c, A64_BL);
	put(c, a64_mem(8, A64_LDR, TMP2, A64_SP, 16));
	jit_a64_tls(c, 8, A64_STR, TMP2, count, TMP);
	put(c, a64_pair(A64_LDP_POST, X29, X30, A64_SP, 32));
	put(c, A64_RET);
	word = a64_aim(A64_BL, c->p - call);
	memcpy(call, &word, sizeof(word));
}

static void zero_stack(struct a64 *c, u32 depth)
{
	u32 at = c->frame_size - depth;

	put(c, A64_MOVI_V0);
	for (; at + 32 <= c->frame_size; at += 32)
		put(c, a64_stp_v0(A64_SP, (s32)at));
	if (at < c->frame_size && depth >= 32) /* some of it again */
		put(c, a64_stp_v0(A64_SP, (s32)c->frame_size - 32));
	else if (at < c->frame_size)
		put(c, a64_pair(A64_STP, XZR, XZR, A64_SP, (s32)at));
}

static void plan_registers(struct a64 *c, u16 regs)
{
	static const u8 fixed[ISA_NR_REGS] = { [0] = X7, [1] = X0, [2] = X1, [3] = X2, [4] = X3, [5] = X4,
					       [ISA_REG_FP] = TMP4, [ISA_REG_AX] = X5 };
	/* what nobody verified may read in a function what its caller left in r6 to r9 */
	bool anyone = !c->record && (!c->sub_nr || c->j->prog->verified_insns);
	u8 r;

	memcpy(c->reg, fixed, sizeof(fixed));
	c->nr_saved = 0;
	for (r = 6; r <= 9; r++) {
		c->reg[r] = (anyone ? X12 : X19) + (r - 6);
		if (!anyone && regs & 1 << r)
			c->saved[c->nr_saved++] = c->reg[r];
	}
}

static void plan_frame(struct a64 *c)
{
	u32 i, size, depth = (u32)align_up(c->j->text->subprogs[c->sub_nr].stack_depth, 16);
	u16 regs = c->sub->regs;

	c->keeps = !c->sub_nr && c->j->throws;
	/* a throw leaves functions that saved registers without restoring them */
	for (i = 0; c->keeps && i < c->j->text->nr_subprogs; i++)
		regs |= c->j->sub[i].regs;
	c->record = c->sub->calls;
	plan_registers(c, regs);
	size = (c->record ? 16 : 0) + c->nr_saved * 8;
	c->counter = size;
	size += c->sub->may_goto ? 8 : 0;
	c->kept = size;
	size += c->keeps ? 8 : 0;
	c->frame_size = (u32)align_up(size, 16) + (c->sub->regs & 1 << ISA_REG_FP ? depth : 0);
}

/* x19 and on, or back. */
static void saved_registers(struct a64 *c, bool store)
{
	u32 i, at = c->record ? 16 : 0;

	for (i = 0; i + 1 < c->nr_saved; i += 2, at += 16)
		put(c, a64_pair(store ? A64_STP : A64_LDP, c->saved[i], c->saved[i + 1], A64_SP, (s32)at));
	if (i < c->nr_saved)
		put(c, a64_mem(8, store ? A64_STR : A64_LDR, c->saved[i], A64_SP, at));
}

/* A program nobody verified may read registers before it writes them: they are 0, as the interpreter's. */
static void zero_regs(struct a64 *c)
{
	u8 r;

	for (r = 0; r <= 9; r++)
		if (r != 1 && c->sub->regs & 1 << r)
			jit_a64_set(c, c->reg[r], 0);
}

static void prologue(struct a64 *c)
{
	const struct prog_subprog *info = &c->j->text->subprogs[c->sub_nr];

	if (c->record && c->frame_size <= PAIR_MAX) {
		put(c, a64_pair(A64_STP_PRE, X29, X30, A64_SP, -(s32)c->frame_size));
	} else if (c->frame_size) {
		put(c, a64_sum_imm(8, A64_SUB, A64_SP, A64_SP, c->frame_size));
		if (c->record)
			put(c, a64_pair(A64_STP, X29, X30, A64_SP, 0));
	}
	if (c->record)
		put(c, a64_mov_sp(X29, A64_SP));
	saved_registers(c, true);
	if (c->keeps)
		jit_a64_keep(c);
	if (c->sub->regs & 1 << ISA_REG_FP && info->reads_stale && info->stack_depth)
		zero_stack(c, (u32)align_up(info->stack_depth, 16));
	if (c->sub->may_goto) {
		jit_a64_set(c, TMP, EXEC_MAY_GOTO_MAX);
		put(c, a64_mem(4, A64_STR, TMP, A64_SP, c->counter));
	}
	if (!c->sub_nr && !c->j->prog->verified_insns)
		zero_regs(c);
}

void jit_a64_enter(struct a64 *c, u32 nr)
{
	struct jit *j = c->j;

	c->sub_nr = nr;
	c->sub = &j->sub[nr];
	plan_frame(c);
	j->image->sub_off[nr] = a64_off(c);
	if (nr && c->sub->by_pointer)
		emit_func_thunk(c);
	if (!nr) {
		u64 body;

		if (j->tail_calls)
			emit_counting_thunk(c);
		else if (!c->frame_size || !jit_dead(j, c->sub, c->sub->start, 1)) /* no instruction begins at 0 */
			put(c, a64_mov(8, X0, X1));
		if (c->keeps)
			jit_a64_pad(c);
		body = j->addr + a64_off(c);
		memcpy(&j->image->head.tail_entry, &body, sizeof(body));
	}
	/* calls by name enter here */
	j->sub[nr].entry = a64_off(c);
	prologue(c);
}

void jit_a64_leave(struct a64 *c)
{
	if (c->keeps)
		jit_a64_unkeep(c);
	saved_registers(c, false);
	if (c->record && c->frame_size <= PAIR_MAX) {
		put(c, a64_pair(A64_LDP_POST, X29, X30, A64_SP, (s32)c->frame_size));
	} else if (c->frame_size) {
		if (c->record)
			put(c, a64_pair(A64_LDP, X29, X30, A64_SP, 0));
		put(c, a64_sum_imm(8, A64_ADD, A64_SP, A64_SP, c->frame_size));
	}
}

/* r1 is kept over the call that finds the target: it is the target's context. The target's program comes in x1 already. */
void jit_a64_tail_call(struct a64 *c)
{
	u8 r0 = c->reg[0], *skip;
	u32 word;

	put(c, a64_push(X0, A64_SP, 16));
	put(c, a64_mov(8, X0, X1));
	put(c, a64_mov(8, X1, X2));
	jit_a64_call(c, (u64)jit_tail_jump);
	put(c, a64_mov(8, r0, X0));
	put(c, a64_pop(X0, A64_SP, 16));
	skip = c->p;
	put(c, 0);
	jit_a64_leave(c);
	put(c, a64_br(r0));
	word = a64_aim(a64_cbz(8, false, r0), c->p - skip);
	memcpy(skip, &word, sizeof(word));
}
