// SPDX-License-Identifier: BSD-2-Clause
/*
 * Exceptions in compiled code. Only a program that can throw has any of this.
 *
 * Its prologue saves every register that a function of it may have changed by the time one throws, and then puts the stack
 * pointer in env_tls.throw_to, having pushed what was there: a run inside this one, of another program or of this, has a
 * place of its own, and gives the old one back when it ends. A throw is a jump to the pad, which goes back to that stack,
 * whatever was called since, calls the exception callback with the cookie (r1, where it is already), and leaves by the
 * program's own epilogue. No frame of anybody else's can lie between: callbacks do not throw (verifier/throw.c).
 */
#include "exec/jit/x86_64/x86_int.h"

#include "env/env.h"

static struct x86_mem place(const struct x86 *c)
{
	return x86_fs((s32)(c->tls + offsetof(struct env_tls, throw_to)));
}

void jit_x86_keep(struct x86 *c)
{
	c->p = x86_rm(c->p, 0, 4, 0, 0xff, 6, place(c), false);
	c->p = x86_store(c->p, 8, place(c), RSP);
}

void jit_x86_unkeep(struct x86 *c)
{
	c->p = x86_rm(c->p, 0, 4, 0, 0x8f, 0, place(c), false);
}

void jit_x86_pad(struct x86 *c)
{
	struct jit *j = c->j;
	u8 *over = c->p;

	c->p = x86_4(x86_1(c->p, 0xe9), 0); /* who comes from the thunk goes on behind */
	c->pad = x86_off(c);
	c->p = x86_load(c->p, 8, RSP, place(c));
	c->p = x86_lea(c->p, 8, RBP, x86_at(RSP, (s32)(c->frame_size + 8 * c->nr_saved + 8)));
	c->p = x86_4(x86_1(c->p, 0xe8), 0);
	j->ref[j->nr_refs++] = (struct jit_ref){ .at = x86_off(c) - 4, .to = j->exception_cb, .size = 4, .sub = true };
	jit_x86_leave(c);
	c->p = x86_1(c->p, 0xc3);
	x86_4(over + 1, (u32)(c->p - over - 5));
}

void jit_x86_throw(struct x86 *c)
{
	c->p = x86_1(c->p, 0xe9);
	c->p = x86_4(c->p, (u32)((s64)c->pad - x86_off(c) - 4));
}
