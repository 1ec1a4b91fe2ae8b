/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What several instructions of a text amount to, for compilers that have one of the machine's for them. A pattern is found
 * here, from its first instruction on; how it is emitted is the target's.
 */
#ifndef INLAY_EXEC_JIT_MATCH_H
#define INLAY_EXEC_JIT_MATCH_H

#include "exec/jit/jit.h"

/* The instruction at pc may be done together with the one before it: control comes only from there. */
static inline bool jit_joins(const struct jit *j, const struct jit_sub *sub, u32 pc)
{
	return pc < sub->end && !(j->insn[pc].flags & (JIT_TARGET | JIT_SECOND));
}

/* No path reads reg after pc - 1 before it is written; false where that is not soon clear. */
bool jit_dead(const struct jit *j, const struct jit_sub *sub, u32 pc, u8 reg);

struct jit_half { /* BPF register reg shifted by n */
	u8 reg, n;
	bool left;
};

/*
 * A value in two halves that are joined: result is its register `from` rotated, other the half that is left over. They may
 * be the same register as from, but not both.
 */
struct jit_rotation {
	u8 from;
	struct jit_half result, other;
	u32 slots;
};

/* w: 8 or 4, of the move at pc. */
bool jit_find_rotation(const struct jit *j, const struct jit_sub *sub, u32 pc, u8 w, struct jit_rotation *ret_rotation);

#define JIT_NO_REG 0xff

struct jit_address { /* base + (index << scale) + disp; BPF registers, JIT_NO_REG: none */
	u8 base, index, scale;
	s32 disp;
};

/* The instruction that uses it is at the slot returned: what stands before it makes the address in pc's dst. pc: none does. */
u32 jit_find_address(const struct jit *j, const struct jit_sub *sub, u32 pc, struct jit_address *ret_address);

#endif
