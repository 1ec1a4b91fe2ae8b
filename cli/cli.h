/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands, one cmd_*.c each. */
#ifndef INLAY_CLI_CLI_H
#define INLAY_CLI_CLI_H

#include "base/log.h"
#include "opt.h"

extern const struct cli_command cmd_runqslower, cmd_run, cmd_check, cmd_dump, cmd_conformance, cmd_bench;

/*
 * Where a reader's warnings go: a line each on standard error, from cli_warnings_release() on. Until then they are kept, so
 * that an input that cannot be read says one thing only: why.
 */
extern const struct log_sink cli_warnings;
void cli_warnings_release(void);

/* From now on no control character leaves through stdout or stderr (clean.c). Call before anything is printed. */
void cli_clean_output(void);

/* "inlay: …" on standard error, one line. Returns CLI_FAILED. */
int cli_fail(const char *fmt, ...) __printf_like(1, 2);
/* As cli_fail(), for a mistake on the command line. Returns CLI_USAGE. */
int cli_usage(const struct cli_command *cmd, const char *fmt, ...) __printf_like(2, 3);

/*
 * What an error code says: errno's, Linux's own ENOTSUPP (524), libbpf's from 4000. err may be negative. Valid until this
 * thread's next call.
 */
const char *cli_strerror(int err);

#endif
