/* SPDX-License-Identifier: BSD-2-Clause */
/* Text that both outputs of runqslower need. */
#ifndef INLAY_CLI_RQS_TEXT_H
#define INLAY_CLI_RQS_TEXT_H

#include "rqs.h"

/* One line on where the rows come from. */
void rqs_describe(struct rqs *rqs, FILE *f);
/* "1.02 ms": a time at a glance. */
void rqs_print_short(u64 ns, char *buf, size_t size);

#endif
