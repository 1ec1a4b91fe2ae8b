/* SPDX-License-Identifier: BSD-2-Clause */
/* Where reasons go: the library never prints (invariant 6), it hands lines to the caller's sink. */
#ifndef INLAY_BASE_LOG_H
#define INLAY_BASE_LOG_H

#include "base/types.h"

enum log_level {
	LOG_ERR,   /* the operation failed, and why */
	LOG_WARN,  /* it went on, but the result is not what was asked */
	LOG_INFO,  /* what was decided */
	LOG_DEBUG, /* details for -v */
};

/* text: one line without a newline; lives only during the call. */
struct log_sink {
	void (*write)(void *ctx, enum log_level level, const char *text);
	void *ctx;
};

/* A sink of NULL, or one without write, drops the text. */
void log_to(const struct log_sink *sink, enum log_level level, const char *fmt, ...)
	__printf_like(3, 4);

#endif
