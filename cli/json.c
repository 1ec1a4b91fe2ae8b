// SPDX-License-Identifier: BSD-2-Clause
#include "json.h"

#include <stddef.h>

/* Length of the well-formed UTF-8 sequence at s (RFC 3629: shortest form, no surrogates), or 0. */
static size_t utf8_len(const unsigned char *s)
{
	unsigned int lo = 0x80, hi = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		lo = 0xa0;
	if (s[0] == 0xed)
		hi = 0x9f;
	if (s[0] == 0xf0)
		lo = 0x90;
	if (s[0] == 0xf4)
		hi = 0x8f;
	if (s[1] < lo || s[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return n;
}

/* How many bytes from s on stand for themselves. */
static size_t plain_len(const unsigned char *s)
{
	size_t n = 0;

	while (s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

void cli_json_str(FILE *f, const char *s)
{
	const unsigned char *c = (const unsigned char *)s;

	fputc_unlocked('"', f);
	while (*c) {
		size_t n = plain_len(c);

		if (n) {
			fwrite_unlocked(c, 1, n, f);
			c += n;
			continue;
		}
		n = utf8_len(c);
		if (!n)
			fprintf(f, "\\udc%02x", *c);
		else if (*c == '"' || *c == '\\')
			fprintf(f, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(f, "\\u%04x", *c);
		else
			fwrite_unlocked(c, 1, n, f);
		c += n ? n : 1;
	}
	fputc_unlocked('"', f);
}
