/* SPDX-License-Identifier: BSD-2-Clause */
/* A program run many times, and how long a run takes. */
#ifndef INLAY_CLI_RUN_REPEAT_H
#define INLAY_CLI_RUN_REPEAT_H

#include "engine.h"

struct bpf_test_run_opts;

struct cli_timing {
	u64 runs;
	double ns; /* a run, by a clock around all of them; 0: not measured */
};

/*
 * BPF_PROG_TEST_RUN of fd, repeat times (0: once). Of types that take no repeat count in Linux (raw tracepoints) the user
 * engine runs the rest without a system call each; in the kernel each is one, and nothing is
 * measured there (its own run statistics know). 0 or -errno; t has the last result. Inside
 * cli_engine_enter().
 */
int cli_run_repeat(struct cli_engine *engine, int fd, u32 repeat, struct bpf_test_run_opts *t,
		   struct cli_timing *ret_timing);

#endif
