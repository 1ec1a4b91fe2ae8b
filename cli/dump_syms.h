/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the kernel functions that xlated programs of the kernel engine call. */
#ifndef INLAY_CLI_DUMP_SYMS_H
#define INLAY_CLI_DUMP_SYMS_H

#include "base/types.h"

struct dump_syms;

/* From /proc/kallsyms; NULL: it cannot be read, or hides addresses. */
struct dump_syms *dump_syms_open(void);
void dump_syms_close(struct dump_syms *s); /* takes NULL */

/* The function a call's immediate means: its distance from __bpf_call_base. False: unknown. */
bool dump_syms_call(const struct dump_syms *s, s32 imm, char *buf, size_t n);

#endif
