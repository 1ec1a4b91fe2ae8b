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
#include "object/gen.h"
#include "object/instance.h"
#include "rewrite/rewrite.h"

#define RW_NO_MAIN (-1)
#define RW_OWN	   U32_MAX /* an instruction an edit brought: its jumps are its own */

/* Slots [pc, pc + nr_old) become nr_new others. */
struct rw_edit {
	u32 pc, nr_old, nr_new;
	u32 first; /* of the new ones in rw_edits.pool */
	s32 main;  /* which of them carries on the old one's facts and, if it is a jump, target; RW_NO_MAIN: none */
	u32 told; /* of the new ones in rw_edits.facts and from; U32_MAX: nothing was told of them */
};

struct rw_edits {
	struct rw_edit *v; /* ascending pc, not overlapping */
	u32 nr, cap;
	struct bpf_insn *pool;
	u32 nr_pool, cap_pool;
	struct insn_fact *facts; /* of the instructions of rw_edit_told() */
	u32 *from;
	u32 nr_told, cap_told;
	bool failed; /* out of memory; sticky until rw_patch() */
};

/*
 * Notes an edit; calls must come in ascending pc. Jumps among the new instructions, main excepted, count within
 * [0, nr_new]: nr_new is the instruction that follows.
 */
void rw_edit(struct rw_edits *e, u32 pc, u32 nr_old, const struct bpf_insn *insns, u32 nr_new, s32 main);

/*
 * The same for instructions that come with facts of their own. from: the old slot whose target a call of a subprogram,
 * load of a function or jump keeps; RW_OWN for all others.
 */
void rw_edit_told(struct rw_edits *e, u32 pc, u32 nr_old, const struct bpf_insn *insns, const struct insn_fact *facts,
		  const u32 *from, u32 nr_new);

/*
 * Applies and empties e. Jumps, calls and function loads keep their targets (a target inside replaced slots must be the
 * first of them; inside removed slots it becomes what follows). Subprograms without instructions left go, with their
 * function info. 0, -ENOMEM, -ERANGE (a 16-bit jump no longer reaches, said in log) or -EFAULT (a jump into the middle
 * of an edit); then nothing has changed.
 */
int rw_patch(struct prog *prog, struct rw_edits *e, struct strbuf *log);

/* Code being made for one edit. */
struct rw_text {
	struct bpf_insn *insns;
	struct insn_fact *facts;
	u32 *from; /* rw_edit_told() */
	u32 nr, cap;
	bool failed; /* out of memory; sticky */
};

/* Appends; returns its index. fact NULL: that of an instruction somewhere inside the code of orig. */
u32 rw_text_add(struct rw_text *t, struct bpf_insn insn, const struct insn_fact *fact, u32 orig, u32 from);
/* The jump at index leads to what is added next. */
void rw_text_land(struct rw_text *t, u32 jump);
void rw_text_fini(struct rw_text *t);
/* The text in place of nr_old slots at pc. */
void rw_edit_text(struct rw_edits *e, u32 pc, u32 nr_old, const struct rw_text *t);

/* Empties e without applying it. */
void rw_edits_drop(struct rw_edits *e);

/*
 * The call at pc loses no register but r0: the spills before it (or the fills behind it) that guard others are removed.
 * As with all edits, those before it must be noted before any of the call's.
 */
void rw_drop_spills(struct rw_edits *edits, const struct prog *prog, u32 pc, bool behind);

/*
 * Passes: 0 or -errno. caps: of the engine that will run the program; never NULL. A LOWERED pass that fails is no error
 * of the program's: the text without any of them runs.
 */
#define PASS(stage, name, ...) int rw_pass_##name(struct prog *prog, const struct caps *caps, struct strbuf *log);
#include "rewrite/passes.def"
#undef PASS

/* Which kinds of inlining are switched off: enum inline_kind. */
static inline u32 rw_inline_off(const struct prog *prog)
{
	return prog->obj.inlay ? prog->obj.inlay->inline_off : 0;
}

/* known.c: puts numbers in registers into what reads them, in place. Jumps may then lead to what follows. 0 or -ENOMEM. */
int rw_fold_known(struct prog *prog);

/* Notes what became of a call (shadow programs; what is static text). 0 or -ENOMEM. */
int rw_note(struct prog *prog, const struct insn_fact *call, bool done, const char *what);

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
