/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs one generated program in every configuration and says whether they agree. One thread a process. */
#ifndef INLAY_FUZZ_DIFFRUN_H
#define INLAY_FUZZ_DIFFRUN_H

#include "diffgen.h"

enum diff_verdict { DIFF_AGREED, DIFF_REFUSED, DIFF_DISAGREED };

#define DIFF_WHAT 160

/* Machines, one a storage variant, with their maps; they stay until diff_stop(). Ends the process, said, if it cannot. */
void diff_start(void);
void diff_stop(void);

/* Verifies once, then compiles and runs each configuration from a state made of seed. ret_what: who disagrees, on what. */
enum diff_verdict diff_try(const struct diff_prog *p, u64 seed, char ret_what[DIFF_WHAT]);

/* The verifier's log, at level 1; valid until the next call. */
const char *diff_log(const struct diff_prog *p);

/* Since diff_start(): instructions the verifier walked, runs, and runs the compiler was to make but refused. */
struct diff_stats {
	u64 walked, runs, not_compiled;
};
struct diff_stats diff_stats(void);

#endif
