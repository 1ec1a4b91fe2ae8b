/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judges a program by Linux 6.18's rules. What it cannot prove it refuses, in the kernel's words. Everything it knows
 * about helpers, maps and program types comes from descriptors; its result is the table prog->facts and prog->subprogs.
 */
#ifndef INLAY_VERIFIER_VERIFIER_H
#define INLAY_VERIFIER_VERIFIER_H

#include "base/strbuf.h"
#include "object/prog.h"

struct inlay;

/* Log levels of PROG_LOAD: 1 errors and state at branches, 2 every instruction, 4 statistics only; 0: nothing. */
struct vrf_opts {
	u32 log_level;
	struct strbuf *log;	 /* text in the kernel's words; may be NULL with log_level 0 */
	const s32 *fd_array;	 /* PROG_LOAD's, copied; NULL: none */
	u32 fd_array_cnt;
	bool strict_alignment, test_state_freq, test_reg_invariants, any_alignment;
};

struct vrf_stats {
	u32 insns_processed, max_states_per_insn, total_states, peak_states, longest_mark_read;
	u64 time_ns;
};

/*
 * prog: insns, type, BTF and line tables filled in by the caller; attach_* set by its type. Resolves map descriptors
 * (references go to prog->maps), fills facts, subprogs, stack depths. 0, or -errno as Linux gives. Thread-safe for
 * different programs; memory is bounded (1,000,000 processed instructions).
 */
int vrf_check(struct prog *prog, const struct vrf_opts *opts, struct vrf_stats *ret_stats);

#endif
