// SPDX-License-Identifier: BSD-2-Clause
/*
 * How compiled code is entered and left.
 *
 * A subprogram is a C function of r1..r5 (rdi, rsi, rdx, rcx, r8) that returns r0 (rax): BPF-to-BPF calls and calls of
 * helpers are plain calls. Before it stand, where it needs them, thunks that fall into it:
 *   entry(prog, ctx)		 of the program: moves ctx to rdi; a program with tail calls counts them anew
 *   func->call(func, r1..r5)	 of a function that is passed by pointer: moves everything down by one
 *
 * The frame: rbp is r10, the end of the BPF stack, and so the native frame pointer as well; below it the BPF stack, the
 * may_goto counter, then the callee-saved registers that are used. Without a stack there is no frame.
 *
 * A tail call leaves its own frame and jumps to where the target's thunk ends, so that the target returns to whoever
 * called this function, and a subprogram's tail call returns to the subprogram's caller.
 */
#include "exec/jit/x86_64/x86_int.h"

#include "env/env.h"

/* What was asked for and is not needed is given back, but only a hole of this size will do: so it is reckoned closely. */
u32 jit_x86_sub_bound(const struct jit *j, const struct jit_sub *sub)
{
	const struct prog_subprog *info = &j->text->subprogs[sub - j->sub];
	u32 size = 4 + 7 + 4 * 2 + (sub->may_goto ? 12 : 0);

	if (sub == j->sub)
		size += (j->tail_calls ? 48 : 3) + (j->throws ? X86_PAD : 0);
	else
		size += 15 + (sub->by_pointer || info->is_cb ? 5 * 3 : 0);
	if (info->reads_stale)
		size += 3 + (u32)align_up(info->stack_depth, 16) / 16 * 8;
	if (sub == j->sub && !j->prog->verified_insns)
		size += 9 * 3;
	return size;
}

struct x86_mem jit_x86_counter(const struct x86 *c)
{
	u32 depth = (u32)align_up(c->j->text->subprogs[c->sub_nr].stack_depth, 16);

	return x86_at(RBP, -(s32)depth - 8);
}

/* rdi = func, the rest one place too far: only what is read needs to move. */
static void emit_func_thunk(struct x86 *c)
{
	static const u8 from[] = { RSI, RDX, RCX, R8, R9 };
	u32 i;

	c->sub->thunk = x86_off(c);
	for (i = 0; i < ARRAY_SIZE(from); i++)
		if (c->sub->args & 2 << i)
			c->p = x86_mov(c->p, 8, x86_of[1 + i], from[i]);
}

/* push %fs:tail_calls; movq $0, %fs:tail_calls; call body; pop %fs:tail_calls; ret */
static void emit_counting_thunk(struct x86 *c)
{
	struct x86_mem count = x86_fs((s32)(c->tls + offsetof(struct env_tls, tail_calls)));
	u8 *call;

	c->p = x86_rm(c->p, 0, 4, 0, 0xff, 6, count, false);
	c->p = x86_store_imm(c->p, 8, count, 0);
	c->p = x86_mov(c->p, 8, RDI, RSI);
	call = c->p;
	c->p = x86_4(x86_1(c->p, 0xe8), 0);
	c->p = x86_rm(c->p, 0, 4, 0, 0x8f, 0, count, false);
	c->p = x86_1(c->p, 0xc3);
	x86_4(call + 1, (u32)(c->p - call - 5));
}

static void zero_stack(struct x86 *c, u32 depth)
{
	s32 at;

	c->p[0] = 0x0f; /* xorps xmm0, xmm0 */
	c->p[1] = 0x57;
	c->p[2] = 0xc0;
	c->p += 3;
	for (at = -16; at >= -(s32)depth; at -= 16) /* movaps [rbp + at], xmm0: the frame is aligned */
		c->p = x86_rm(c->p, 0, 4, 0x0f, 0x29, 0, x86_at(RBP, at), false);
}

static void plan_frame(struct x86 *c)
{
	static const u8 kept[] = { 6, 7, 8, 9 };
	u32 i, depth = (u32)align_up(c->j->text->subprogs[c->sub_nr].stack_depth, 16);
	u16 regs = c->sub->regs;

	c->keeps = !c->sub_nr && c->j->throws;
	/* a throw leaves functions that saved registers without restoring them */
	for (i = 0; c->keeps && i < c->j->text->nr_subprogs; i++)
		regs |= c->j->sub[i].regs;
	c->nr_saved = 0;
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		if (regs & 1 << kept[i])
			c->saved[c->nr_saved++] = x86_of[kept[i]];
	c->frame = c->sub->regs & 1 << ISA_REG_FP || c->sub->may_goto || c->keeps;
	c->frame_size = c->frame ? depth + (c->sub->may_goto ? 16 : 0) : 0;
	/* the return address and rbp make 16 bytes; without rbp the address alone is there */
	if (c->sub->calls && (c->nr_saved + !c->frame + c->keeps) % 2)
		c->frame_size += 8;
}

/* A program nobody verified may read registers before it writes them: they are 0, as the interpreter's. */
static void zero_regs(struct x86 *c)
{
	u8 r;

	for (r = 0; r <= 9; r++)
		if (r != 1 && c->sub->regs & 1 << r)
			c->p = x86_zero(c->p, x86_of[r]);
}

static void prologue(struct x86 *c)
{
	const struct prog_subprog *info = &c->j->text->subprogs[c->sub_nr];
	u32 i;

	if (c->frame) {
		c->p = x86_push(c->p, RBP);
		c->p = x86_mov(c->p, 8, RBP, RSP);
	}
	if (c->frame_size)
		c->p = x86_alu_imm(c->p, 8, X86_SUB, RSP, c->frame_size);
	for (i = 0; i < c->nr_saved; i++)
		c->p = x86_push(c->p, c->saved[i]);
	if (c->keeps)
		jit_x86_keep(c);
	if (c->frame && info->reads_stale && info->stack_depth)
		zero_stack(c, (u32)align_up(info->stack_depth, 16));
	if (c->sub->may_goto)
		c->p = x86_store_imm(c->p, 4, jit_x86_counter(c), EXEC_MAY_GOTO_MAX);
	if (!c->sub_nr && !c->j->prog->verified_insns)
		zero_regs(c);
}

void jit_x86_enter(struct x86 *c, u32 nr)
{
	struct jit *j = c->j;

	c->sub_nr = nr;
	c->sub = &j->sub[nr];
	plan_frame(c);
	if (nr)
		c->p = x86_nops(c->p, -x86_off(c) & 15);
	j->image->sub_off[nr] = x86_off(c);
	if (nr && (c->sub->by_pointer || j->text->subprogs[nr].is_cb))
		emit_func_thunk(c);
	if (!nr) {
		u64 body;

		if (j->tail_calls)
			emit_counting_thunk(c);
		else
			c->p = x86_mov(c->p, 8, RDI, RSI);
		if (c->keeps)
			jit_x86_pad(c);
		body = j->addr + x86_off(c);
		memcpy(&j->image->head.tail_entry, &body, sizeof(body));
	}
	/* calls by name enter here */
	j->sub[nr].entry = x86_off(c);
	prologue(c);
}

void jit_x86_leave(struct x86 *c)
{
	u32 i;

	if (c->keeps)
		jit_x86_unkeep(c);
	for (i = c->nr_saved; i-- > 0;)
		c->p = x86_pop(c->p, c->saved[i]);
	if (c->frame)
		c->p = c->frame_size ? x86_1(c->p, 0xc9) : x86_pop(c->p, RBP);
	else if (c->frame_size)
		c->p = x86_alu_imm(c->p, 8, X86_ADD, RSP, c->frame_size);
}

/* rdi is kept over the call that finds the target: it is the target's context. */
void jit_x86_tail_call(struct x86 *c)
{
	u8 *skip;

	c->p = x86_push(c->p, RDI);
	c->p = x86_push(c->p, RDI);
	c->p = x86_mov(c->p, 8, RDI, RSI);
	c->p = x86_mov(c->p, 8, RSI, RDX);
	jit_x86_call(c, (u64)jit_tail_jump);
	c->p = x86_pop(c->p, RDI);
	c->p = x86_pop(c->p, RDI);
	c->p = x86_test(c->p, 8, RAX, RAX);
	skip = c->p;
	c->p += 2;
	c->p = x86_mov(c->p, 8, RSI, RDX);
	jit_x86_leave(c);
	c->p[0] = 0xff; /* jmp *rax */
	c->p[1] = 0xe0;
	c->p += 2;
	skip[0] = 0x70 | CC_E;
	skip[1] = c->p - skip - 2;
}
