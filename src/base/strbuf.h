/* SPDX-License-Identifier: BSD-2-Clause */
/* Growing text. A failed allocation is sticky: later appends do nothing and strbuf_failed() tells. */
#ifndef INLAY_BASE_STRBUF_H
#define INLAY_BASE_STRBUF_H

#include <stdarg.h>

#include "base/types.h"

struct strbuf {
	char *s;    /* NUL-terminated once anything was appended; NULL before */
	size_t len; /* bytes without the NUL */
	size_t cap;
	bool failed;
};

#define STRBUF_INIT                                                                                \
	{                                                                                          \
	}

void strbuf_fini(struct strbuf *b);
void strbuf_reset(struct strbuf *b); /* length 0, keeps memory */
void strbuf_add(struct strbuf *b, const char *s, size_t n);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_putc(struct strbuf *b, char c);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __printf_like(2, 3);
void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list args);

static inline bool strbuf_failed(const struct strbuf *b)
{
	return b->failed;
}

/* Never NULL. */
static inline const char *strbuf_str(const struct strbuf *b)
{
	return b->s ? b->s : "";
}

#endif
