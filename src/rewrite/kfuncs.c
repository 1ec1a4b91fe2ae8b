// SPDX-License-Identifier: BSD-2-Clause
// Kernel functions that are no functions: a cast is a move; what a throw goes on with, if the program names nothing, returns
// the cookie, and stands behind all else, as Linux puts it there.
#include <errno.h>
#include <stdlib.h>

#include "object/helper.h"
#include "rewrite/rewrite_int.h"

static int add_callback(struct prog *prog)
{
	struct prog_subprog *subs = reallocarray(prog->subprogs, prog->nr_subprogs + 1, sizeof(*subs));
	struct bpf_insn *insns = reallocarray(prog->insns, prog->nr_insns + 2, sizeof(*insns));
	struct insn_fact *facts = reallocarray(prog->facts, prog->nr_insns + 2, sizeof(*facts));
	u32 at = prog->nr_insns;

	/* each that could be had is the program's: the old one is gone */
	prog->subprogs = subs ? subs : prog->subprogs;
	prog->insns = insns ? insns : prog->insns;
	prog->facts = facts ? facts : prog->facts;
	if (!subs || !insns || !facts)
		return -ENOMEM;
	insns[at] = ISA_MOV_REG(0, 1);
	insns[at + 1] = ISA_RETURN();
	facts[at] = facts[at + 1] = (struct insn_fact){ .seen = 1, .orig = facts[at - 1].orig };
	subs[prog->nr_subprogs++] = (struct prog_subprog){ .start = at, .func_info = -1, .is_exception_cb = true };
	prog->nr_insns += 2;
	return 0;
}

/* Needs kfunc, fastcall_spills, throws. Leaves no casts as calls, and an exception callback in every program that throws. */
int rw_pass_kfuncs(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	const struct bpf_insn move = ISA_MOV_REG(0, 1);
	struct rw_edits edits = { 0 };
	bool has_cb = false;
	u32 pc, i;
	int err;

	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		const struct insn_fact *fact = &prog->facts[pc];

		if (prog->insns[pc].code != (BPF_JMP | BPF_CALL) || prog->insns[pc].src_reg != BPF_PSEUDO_KFUNC_CALL ||
		    !fact->kfunc || !(fact->kfunc->flags & KFUNC_CAST))
			continue;
		rw_drop_spills(&edits, prog, pc, false);
		rw_edit(&edits, pc, 1, &move, 1, RW_NO_MAIN);
		rw_drop_spills(&edits, prog, pc, true);
	}
	err = rw_patch(prog, &edits, log);
	for (i = 0; i < prog->nr_subprogs; i++)
		has_cb |= prog->subprogs[i].is_exception_cb;
	return err || !prog->throws || has_cb ? err : add_callback(prog);
}
