/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the program the verifier judged to the two that follow from it: *xlated*, what Linux's own fixups make of it, to
 * be shown; and *lowered*, what runs, with our own inlining. Reads the verifier's facts, keeps facts, subprograms, function
 * and line tables in step with the instructions.
 *
 * Loads of maps carry map ids, calls the helper's number; what they are at run time stands in the facts.
 */
#ifndef INLAY_REWRITE_REWRITE_H
#define INLAY_REWRITE_REWRITE_H

#include "base/strbuf.h"
#include "isa/disasm.h"
#include "object/gen.h"
#include "object/prog.h"

/*
 * The passes both texts share (passes.def), over a program vrf_check() has accepted; it could run as it is then. 0 or
 * -errno (-ERANGE: a jump no longer reaches), reason to log, which may be NULL. On error the program is still consistent,
 * but must not run. Not for a program that is visible to others yet.
 */
int rw_xlate(struct prog *prog, struct strbuf *log);

/*
 * After rw_xlate(): copies the text to prog->lowered and lowers it for an engine of these capabilities (can 0, or caps
 * NULL: the interpreter, for which nothing is inlined; what obj.inlay->inline_off switches off stays a call; where inlining fails there is none), then
 * finishes prog's own text to what Linux shows. prog->lowered borrows all but its text and tables from prog and goes with
 * it. 0 or -errno as rw_xlate().
 */
int rw_lower(struct prog *prog, const struct caps *caps, struct strbuf *log);

/* Only what runs: prog->lowered. The program's own text stays what rw_xlate() left. 0 or -ENOMEM. */
int rw_lower_run(struct prog *prog, const struct caps *caps);

/* Frees prog->lowered, whose code must be gone; prog->lowered_free points here. */
void rw_lowered_free(struct prog *prog);

/*
 * Facts and subprograms for a bare program nobody verified: everything is seen, memory is taken for plain, helpers are
 * found by number. Refuses what has no meaning at all (unknown instructions, jumps out of the program, a program that
 * does not end in a jump or exit), -EINVAL with a reason in log. For engines' tests and conformance suites only.
 */
int rw_assume(struct prog *prog, struct strbuf *log);

/* The xlated program as BPF_OBJ_GET_INFO_BY_FD shows it: no internal instructions. out: prog->nr_insns slots. */
void rw_user_insns(const struct prog *prog, struct bpf_insn *out);

/* For isa_disasm() of a slot of prog->insns: bpftool's words for callees and loads. The program must outlive it. */
struct isa_names rw_names(const struct prog *prog);

#endif
