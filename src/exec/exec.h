/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes an xlated program executable: sets prog->entry, prog->funcs and prog->image. In this release by the
 * interpreter: the program is decoded once into a dense form whose instructions know their handlers, and
 * run by threaded code that is generated, instruction by instruction, from isa/insn.def and isa/eval.h.
 *
 * Memory safety is the verifier's proof (invariant 1); what the engine adds: frames of their own for
 * subprograms, zeroed when entered so that runs are repeatable, at most PROG_MAX_FRAMES of them; loads
 * through pointers that may be stale read zero where a fault would be; may_goto is taken for good after
 * EXEC_MAY_GOTO_MAX rounds.
 */
#ifndef INLAY_EXEC_EXEC_H
#define INLAY_EXEC_EXEC_H

#include "base/strbuf.h"
#include "object/prog.h"

/*
 * Rounds a may_goto lets through in one call of its function: BPF_MAX_LOOPS of Linux, where it does not
 * measure time. A count makes a run repeatable.
 */
#define EXEC_MAY_GOTO_MAX (8u << 20)

/*
 * prog: rewritten, not visible to others. Functions loaded by ld_imm64 become pointers to prog->funcs[],
 * whose call may be used by helpers while the program runs. 0, -ENOMEM, or -EOPNOTSUPP with the reason in
 * log (may be NULL): an instruction or helper this engine cannot execute. The program then runs in any
 * thread, signal handlers included, any number at once.
 */
int exec_prepare(struct prog *prog, struct strbuf *log);

#endif
