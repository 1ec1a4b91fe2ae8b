/* SPDX-License-Identifier: BSD-2-Clause */
/* The formats of bpf_trace_printk, bpf_snprintf and their kin: Linux's subset of printk. */
#ifndef INLAY_HELPERS_FORMAT_H
#define INLAY_HELPERS_FORMAT_H

#include "base/types.h"

#define FORMAT_MAX_ARGS 12
#define FORMAT_BUF 1024 /* longest text, NUL included */

/*
 * Formats into out (size bytes, always terminated when size > 0). fmt: fmt_size bytes, NUL-terminated inside or -EINVAL.
 * args: nr_args 64-bit values; %s and %pX read memory fault-safely. Bytes the whole text would take without its NUL, or
 * -EINVAL for a conversion Linux refuses or too few/many arguments. Async-signal-safe.
 */
int format_text(char *out, u32 size, const char *fmt, u32 fmt_size, const u64 *args, u32 nr_args);

#endif
