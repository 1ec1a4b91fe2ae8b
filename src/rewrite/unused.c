// SPDX-License-Identifier: BSD-2-Clause
// What the passes before leave over: registers set for a call that is no more, constants that went into what reads them,
// jumps of which the outcome is known, or to what follows.
#include <errno.h>
#include <stdlib.h>

#include "rewrite/flow.h"
#include "rewrite/rewrite_int.h"

/* Jumps to what follows, whatever they compare. */
static int drop_jumps(struct prog *prog, struct strbuf *log)
{
	struct rw_edits edits = { 0 };
	u32 pc;

	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		int op = isa_decode(&prog->insns[pc]);

		if (op >= 0 && (isa_info[op].kind == ISA_K_JMP || isa_info[op].kind == ISA_K_JA) &&
		    !isa_jump_off(&prog->insns[pc]))
			rw_edit(&edits, pc, 1, NULL, 0, RW_NO_MAIN);
	}
	return rw_patch(prog, &edits, log);
}

static int drop_computations(struct prog *prog, struct strbuf *log)
{
	u16 *live = calloc(prog->nr_insns + 1, sizeof(*live));
	struct rw_edits edits = { 0 };
	u32 pc;
	int err;

	if (!live)
		return -ENOMEM;
	err = rw_live_after(prog, 0, prog->nr_insns, live);
	for (pc = 0; !err && pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code))
		if (rw_only_computes(prog, pc) && !(rw_regs_written(prog, pc) & live[pc]))
			rw_edit(&edits, pc, isa_slots(prog->insns[pc].code), NULL, 0, RW_NO_MAIN);
	free(live);
	if (!err)
		return rw_patch(prog, &edits, log);
	rw_edits_drop(&edits);
	return err;
}

/*
 * Needs helper (what a call reads). Leaves no computation whose result nobody reads, and no jump whose outcome is known.
 * Where what a jump went around is gone the jump is next, and then what it compared: chains are short, and end.
 */
int rw_pass_unused(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	int err = rw_fold_known(prog);
	u32 before;

	do {
		before = prog->nr_insns;
		err = err ? err : drop_jumps(prog, log);
		err = err ? err : drop_computations(prog, log);
	} while (!err && prog->nr_insns < before);
	return err;
}
