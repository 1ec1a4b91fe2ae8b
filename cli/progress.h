/* SPDX-License-Identifier: BSD-2-Clause */
/* A line on a terminal while a long input is read; nothing anywhere else. */
#ifndef INLAY_CLI_PROGRESS_H
#define INLAY_CLI_PROGRESS_H

#include "base/types.h"

/*
 * Shows how far stage is, at most five times a second, once half a second has passed. total 0:
 * unknown.
 */
void cli_progress(void *ctx, const char *stage, u64 done, u64 total);
/* Takes the line away: before anything else is printed, and at the end. */
void cli_progress_clear(void);

#endif
