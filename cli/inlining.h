/* SPDX-License-Identifier: BSD-2-Clause */
/* `inlay run --show-inlining`. */
#ifndef INLAY_CLI_INLINING_H
#define INLAY_CLI_INLINING_H

#include "engine.h"

struct bpf_object;

/* Prints what became of each helper call of the loaded programs, a line or a JSON object each. enum cli_exit. */
int cli_inlining_show(struct cli_engine *engine, struct bpf_object *open, bool json);

#endif
