// SPDX-License-Identifier: BSD-2-Clause
// Growing text.
#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strbuf_fini(struct strbuf *b)
{
	free(b->s);
	memset(b, 0, sizeof(*b));
}

void strbuf_reset(struct strbuf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->s)
		b->s[0] = 0;
}

static bool reserve(struct strbuf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 64;
	char *s;

	if (b->failed)
		return false;
	while (cap < b->len + n + 1)
		cap *= 2;
	if (cap == b->cap)
		return true;
	s = realloc(b->s, cap);
	if (!s) {
		b->failed = true;
		return false;
	}
	b->s = s;
	b->cap = cap;
	return true;
}

void strbuf_add(struct strbuf *b, const char *s, size_t n)
{
	if (!reserve(b, n))
		return;
	memcpy(b->s + b->len, s, n);
	b->len += n;
	b->s[b->len] = 0;
}

void strbuf_puts(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_putc(struct strbuf *b, char c)
{
	strbuf_add(b, &c, 1);
}

void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0 || !reserve(b, n))
		return;
	vsnprintf(b->s + b->len, n + 1, fmt, args);
	b->len += n;
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	strbuf_vprintf(b, fmt, args);
	va_end(args);
}
