/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to rewrite/: passes, and the one function that moves instructions.
 *
 * A pass walks prog->insns and either changes a slot in place or notes an edit; at its end it hands the edits to
 * rw_patch(), which rebuilds the program in one sweep.
 */
#ifndef INLAY_REWRITE_REWRITE_INT_H
#define INLAY_REWRITE_REWRITE_INT_H

#include "isa/isa.h"
#include "rewrite/rewrite.h"

#define RW_NO_MAIN (-1)

/* Slots [pc, pc + nr_old) become nr_new others. */
struct rw_edit {
	u32 pc, nr_old, nr_new;
	u32 first; /* of the new ones in rw_edits.pool */
	s32 main;  /* which of them carries on the old one's facts and, if it is a jump, target; RW_NO_MAIN: none */
};

struct rw_edits {
	struct rw_edit *v; /* ascending pc, not overlapping */
	u32 nr, cap;
	struct bpf_insn *pool;
	u32 nr_pool, cap_pool;
	bool failed; /* out of memory; sticky until rw_patch() */
};

/*
 * Notes an edit; calls must come in ascending pc. Jumps among the new instructions, main excepted, count within
 * [0, nr_new]: nr_new is the instruction that follows.
 */
void rw_edit(struct rw_edits *e, u32 pc, u32 nr_old, const struct bpf_insn *insns, u32 nr_new, s32 main);

/*
 * Applies and empties e. Jumps, calls and function loads keep their targets (a target inside replaced slots must be the
 * first of them; inside removed slots it becomes what follows). Subprograms without instructions left go, with their
 * function info. 0, -ENOMEM, -ERANGE (a 16-bit jump no longer reaches, said in log) or -EFAULT (a jump into the middle
 * of an edit); then nothing has changed.
 */
int rw_patch(struct prog *prog, struct rw_edits *e, struct strbuf *log);

/* Empties e without applying it. */
void rw_edits_drop(struct rw_edits *e);

/* Passes: 0 or -errno. */
#define PASS(name, ...) int rw_pass_##name(struct prog *prog, struct strbuf *log);
#include "rewrite/passes.def"
#undef PASS

/* Distance to where a jump, call of a subprogram or load of a function leads; false: it is none of them. */
static inline bool rw_distance(const struct bpf_insn *insn, s32 *ret_dist)
{
	u8 class = BPF_CLASS(insn->code);

	if (insn->code == (BPF_JMP | BPF_CALL)) {
		*ret_dist = insn->imm;
		return insn->src_reg == BPF_PSEUDO_CALL;
	}
	if (insn->code == (BPF_LD | BPF_IMM | BPF_DW)) {
		*ret_dist = insn->imm;
		return insn->src_reg == BPF_PSEUDO_FUNC;
	}
	if ((class != BPF_JMP && class != BPF_JMP32) || insn->code == (BPF_JMP | BPF_EXIT))
		return false;
	*ret_dist = isa_jump_off(insn);
	return true;
}

#endif
