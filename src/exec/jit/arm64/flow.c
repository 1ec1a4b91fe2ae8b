// SPDX-License-Identifier: BSD-2-Clause
/*
 * Jumps, calls, and the sizes the emission relies on.
 *
 * A jump back knows its distance. A conditional jump forward is one word if all the code, by the bounds below, is shorter
 * than such a branch reaches; else it is turned, and jumps over one that reaches everywhere. What it names is filled in at
 * the end. So every bound must hold: the emission compares where it is with where it may be at every instruction.
 */
#include "exec/jit/arm64/arm64_int.h"

/* of functions of arm64_int.h that say how many words they take at most */
#define USE	2
#define MEM	3
#define ADDRESS 3
#define JUMP	3
#define CALL	5
#define LEAVE	8
#define IMM	2 /* s32 */

static u8 alu_words(const struct bpf_insn *insn)
{
	switch (BPF_OP(insn->code)) {
	case BPF_DIV:
	case BPF_MOD:
		/* by a constant: a shift before, the reciprocal, product, two for its 65th bit, a shift, and the remainder's */
		return insn->code & BPF_X ? 2 * USE + 2 : USE + 1 + 4 + 1 + 2 + 1 + IMM + 1;
	}
	return insn->code & BPF_X ? 2 * USE + 1 : USE + IMM + 1;
}

static u8 call_words(const struct insn_fact *fact)
{
	return fact && fact->helper && fact->helper->flags & HELPER_TAIL_CALL ? 8 + CALL + LEAVE : CALL + 1;
}

static u8 words(enum isa_op op, const struct bpf_insn *insn, const struct insn_fact *fact)
{
	switch ((enum isa_kind)isa_info[op].kind) {
	case ISA_K_ALU:
		return alu_words(insn);
	case ISA_K_NEG:
		return USE + 1;
	case ISA_K_MOV:
		return USE + 1;
	case ISA_K_END:
		return USE + 2;
	case ISA_K_LD_IMM64:
		return 4;
	case ISA_K_LDX:
		return isa_info[op].internal ? ADDRESS + 5 : MEM;
	case ISA_K_TLS:
		return 3;
	case ISA_K_PERCPU:
		return USE + 3 + IMM + 1;
	case ISA_K_ST:
		return IMM + MEM;
	case ISA_K_STX:
		return USE + MEM;
	case ISA_K_STORE_REL:
	case ISA_K_LOAD_ACQ:
		return USE + ADDRESS + 1;
	case ISA_K_ATOMIC:
		return USE + ADDRESS + 7;
	case ISA_K_JA:
		return 1;
	case ISA_K_JMP:
		return (insn->code & BPF_X ? 2 * USE : USE + IMM) + 1 + JUMP;
	case ISA_K_MAY_GOTO:
		return 4 + JUMP;
	case ISA_K_CALL:
		return call_words(fact);
	case ISA_K_EXIT:
		return 1 + LEAVE + 1;
	case ISA_K_CAST:
	case ISA_K_LD_ABS:
	case ISA_K_LD_IND:
		break;
	}
	return 0;
}

u8 jit_a64_bound(enum isa_op op, const struct bpf_insn *insn, const struct insn_fact *fact)
{
	return words(op, insn, fact) * A64_WORD;
}

/* Slot that is emitted after the one before pc, U32_MAX if that is the last. */
static u32 next(const struct a64 *c, u32 pc)
{
	if (!c->sub->cold)
		return pc;
	while (pc < c->sub->end && (c->in[pc].flags & JIT_COLD) != c->cold)
		pc++;
	return pc < c->sub->end ? pc : U32_MAX;
}

static bool reaches(const struct a64 *c, u32 word, u32 to)
{
	if (c->off[to])
		return a64_off(c) - c->off[to] <= a64_reach(word);
	return a64_reach(word) > a64_reach(A64_TBZ) ? c->near : c->near_bit;
}

static void jump(struct a64 *c, u32 word, u32 to)
{
	struct jit *j = c->j;

	if (word != A64_B && !reaches(c, word, to)) {
		put(c, a64_aim(a64_turn(word), 2 * A64_WORD));
		word = A64_B;
	}
	if (c->off[to]) {
		put(c, a64_aim(word, (s64)c->off[to] - a64_off(c)));
		return;
	}
	j->ref[j->nr_refs++] = (struct jit_ref){ .at = a64_off(c), .to = to, .size = A64_WORD };
	put(c, word);
}

void jit_a64_jump(struct a64 *c, u32 word, u32 pc, u32 to)
{
	u32 fall = pc + isa_slots(c->insns[pc].code), after = next(c, fall);

	if (word != A64_B && to != fall) {
		if (to == after) { /* what falls through is elsewhere: jump there instead */
			jump(c, a64_turn(word), fall);
			return;
		}
		jump(c, word, to);
		to = fall;
	}
	if (to != after)
		jump(c, A64_B, to);
}

void jit_a64_call(struct a64 *c, u64 fn)
{
	s64 dist = (s64)(fn - (c->j->addr + a64_off(c)));

	if (dist >= -(s64)a64_reach(A64_BL) && dist <= (s64)a64_reach(A64_BL) && !(dist & 3) && !jit_knobs.far_calls) {
		put(c, a64_aim(A64_BL, dist));
		return;
	}
	jit_a64_set(c, FAR, fn);
	put(c, a64_blr(FAR));
}

void jit_a64_call_sub(struct a64 *c, u32 sub)
{
	struct jit *j = c->j;

	j->ref[j->nr_refs++] = (struct jit_ref){ .at = a64_off(c), .to = sub, .size = A64_WORD, .sub = true };
	put(c, A64_BL);
}
