/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers and text into a buffer, without printf: a row may name a thousand tasks, and a recording
 * may have a hundred thousand rows. Each returns where the next byte goes; nothing is terminated.
 */
#ifndef INLAY_CLI_PUT_H
#define INLAY_CLI_PUT_H

#include <string.h>

#include "base/types.h"

#define PUT_U64_MAX 20 /* bytes */

static inline char *put_u64(char *p, u64 v)
{
	char digits[PUT_U64_MAX], *d = digits + sizeof(digits);

	do {
		*--d = '0' + v % 10;
		v /= 10;
	} while (v);
	memcpy(p, d, digits + sizeof(digits) - d);
	return p + (digits + sizeof(digits) - d);
}

static inline char *put_str(char *p, const char *s)
{
	size_t n = strlen(s);

	memcpy(p, s, n);
	return p + n;
}

/* "12.345 ms", cut: what is listed over 5 ms never reads as less. */
static inline char *put_ms(char *p, u64 ns)
{
	u32 us = ns / 1000 % 1000;

	p = put_u64(p, ns / 1000000);
	*p++ = '.';
	*p++ = '0' + us / 100;
	*p++ = '0' + us / 10 % 10;
	*p++ = '0' + us % 10;
	return put_str(p, " ms");
}

#endif
