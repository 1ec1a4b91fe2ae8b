// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is printed may come from anybody: names in an object file, text of a recording, arguments. A terminal obeys control
 * characters, so none passes: standard output and standard error go through a filter that lets text (UTF-8 or ASCII),
 * newlines and tabs through, and prints '?' for all else. The progress line, which needs them, writes past it.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

struct cleaner {
	int fd;
	int follow; /* continuation bytes of a UTF-8 character still to come */
	u8 lead;
};

static char clean_byte(struct cleaner *c, u8 b)
{
	if (b < 0x80) {
		c->follow = 0;
		return b == '\n' || b == '\t' || (b >= 0x20 && b != 0x7f) ? (char)b : '?';
	}
	if (b < 0xc0 && c->follow) {
		c->follow--;
		/* U+0080 to U+009F are control characters too: move them to printable ones */
		return c->lead == 0xc2 && b < 0xa0 ? (char)(b | 0x20) : (char)b;
	}
	c->follow = b >= 0xf0 && b < 0xf5 ? 3 : b >= 0xe0 && b < 0xf0 ? 2 : b >= 0xc2 && b < 0xe0 ? 1 : 0;
	c->lead = b;
	return c->follow ? (char)b : '?';
}

static ssize_t clean_write(void *cookie, const char *buf, size_t size)
{
	struct cleaner *c = cookie;
	char out[4096];
	size_t done = 0;

	while (done < size) {
		size_t n = 0, sent = 0;

		while (n < sizeof(out) && done + n < size) {
			out[n] = clean_byte(c, (u8)buf[done + n]);
			n++;
		}
		while (sent < n) {
			ssize_t w = write(c->fd, out + sent, n - sent);

			if (w < 0 && errno == EINTR)
				continue;
			if (w < 0)
				return 0; /* stdio's sign of an error */
			sent += w;
		}
		done += n;
	}
	return (ssize_t)size;
}

static FILE *cleaned(struct cleaner *c, bool by_line)
{
	FILE *f = fopencookie(c, "w", (cookie_io_functions_t){ .write = clean_write });

	if (f)
		setvbuf(f, NULL, by_line ? _IOLBF : _IOFBF, 16384);
	return f;
}

void cli_clean_output(void)
{
	static struct cleaner out = { .fd = STDOUT_FILENO }, err = { .fd = STDERR_FILENO };
	FILE *o = cleaned(&out, isatty(STDOUT_FILENO)), *e = cleaned(&err, true);

	if (o)
		stdout = o;
	if (e)
		stderr = e;
}
