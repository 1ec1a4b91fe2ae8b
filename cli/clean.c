// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is printed may come from anybody: names in an object file, text of a recording, arguments. A terminal obeys control
 * characters, so none passes: standard output and standard error go through a filter that lets text (UTF-8 or ASCII),
 * newlines and tabs through, and prints '?' for all else. The progress line, which needs them, writes past it.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
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

/* Eight bytes that are all printable ASCII. */
static bool all_print(const char *p)
{
	const u64 ones = 0x0101010101010101ULL, high = ones << 7;
	u64 v;

	memcpy(&v, p, sizeof(v));
	/* with no high bit anywhere: v - 0x20 borrows into it below a space, v + 1 carries into it at 0x7f */
	return !((v | (((v | high) - 0x20 * ones) ^ high) | (v + ones)) & high);
}

/* How many bytes from p on need no look at each: most of what is printed is whole lines of printable ASCII. */
static size_t clean_len(const struct cleaner *c, const char *p, size_t n)
{
	size_t i = 0;

	if (c->follow)
		return 0;
	while (i < n) {
		if (i + 8 <= n && all_print(p + i))
			i += 8;
		else if (p[i] == '\n' || ((u8)p[i] >= 0x20 && (u8)p[i] < 0x7f))
			i++;
		else
			break;
	}
	return i;
}

static bool write_all(int fd, const char *buf, size_t size)
{
	size_t sent = 0;

	while (sent < size) {
		ssize_t w = write(fd, buf + sent, size - sent);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return false;
		sent += w;
	}
	return true;
}

static ssize_t clean_write(void *cookie, const char *buf, size_t size)
{
	struct cleaner *c = cookie;
	char out[4096];
	size_t done = 0, n;

	while (done < size) {
		n = clean_len(c, buf + done, size - done);
		if (n && !write_all(c->fd, buf + done, n))
			return 0; /* stdio's sign of an error */
		done += n;
		for (n = 0; n < sizeof(out) && done + n < size; n++)
			out[n] = clean_byte(c, (u8)buf[done + n]);
		if (n && !write_all(c->fd, out, n))
			return 0;
		done += n;
	}
	return (ssize_t)size;
}

static FILE *cleaned(struct cleaner *c, bool by_line)
{
	FILE *f = fopencookie(c, "w", (cookie_io_functions_t){ .write = clean_write });

	if (f)
		setvbuf(f, NULL, by_line ? _IOLBF : _IOFBF, 65536);
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
