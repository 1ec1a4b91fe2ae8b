// SPDX-License-Identifier: BSD-2-Clause
/*
 * Exceptions in compiled code. Only a program that can throw has any of this.
 *
 * Its prologue saves every register that a function of it may have changed by the time one throws, and then puts the stack
 * pointer in env_tls.throw_to, having kept what was there: a run inside this one, of another program or of this, has a
 * place of its own, and gives the old one back when it ends. A throw is a jump to the pad, which goes back to that stack,
 * whatever was called since, calls the exception callback with the cookie (r1, where it is already), and leaves by the
 * program's own epilogue. No frame of anybody else's can lie between: callbacks do not throw (verifier/throw.c).
 */
#include "exec/jit/arm64/arm64_int.h"

#include "env/env.h"

#define PLACE offsetof(struct env_tls, throw_to)

void jit_a64_keep(struct a64 *c)
{
	jit_a64_tls(c, 8, A64_LDR, TMP2, PLACE, TMP);
	put(c, a64_mem(8, A64_STR, TMP2, A64_SP, c->kept));
	put(c, a64_mov_sp(TMP2, A64_SP));
	jit_a64_tls(c, 8, A64_STR, TMP2, PLACE, TMP);
}

void jit_a64_unkeep(struct a64 *c)
{
	put(c, a64_mem(8, A64_LDR, TMP2, A64_SP, c->kept));
	jit_a64_tls(c, 8, A64_STR, TMP2, PLACE, TMP);
}

void jit_a64_pad(struct a64 *c)
{
	u8 *over = c->p;
	u32 word;

	put(c, A64_B); /* who comes from the thunk goes on behind */
	c->pad = a64_off(c);
	jit_a64_tls(c, 8, A64_LDR, TMP2, PLACE, TMP);
	put(c, a64_mov_sp(A64_SP, TMP2));
	put(c, a64_mov_sp(X29, A64_SP));
	jit_a64_call_sub(c, c->j->exception_cb);
	jit_a64_leave(c);
	put(c, A64_RET);
	word = a64_aim(A64_B, c->p - over);
	memcpy(over, &word, sizeof(word));
}

void jit_a64_throw(struct a64 *c)
{
	put(c, a64_aim(A64_B, (s64)c->pad - a64_off(c)));
}
