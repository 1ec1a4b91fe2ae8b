// SPDX-License-Identifier: BSD-2-Clause
// printk-like formatting by hand: no locale, no malloc, every pointer argument read fault-safely.
#include "helpers/format.h"

#include <errno.h>
#include <string.h>

#include "base/probe.h"

struct out {
	char *buf;
	u32 size, len; /* len: what the whole text takes, whether or not it fits */
};

struct spec {
	bool minus, plus, space, zero;
	u32 width;
	u8 bytes; /* of the argument */
};

static void put(struct out *o, char c)
{
	if (o->len + 1 < o->size)
		o->buf[o->len] = c;
	o->len++;
}

static void put_padded(struct out *o, const struct spec *s, const char *prefix, const char *text, u32 n, bool number)
{
	u32 p = strlen(prefix), fill = s->width > n + p ? s->width - n - p : 0, i;
	bool zeros = s->zero && number && !s->minus;

	if (!s->minus && !zeros)
		for (i = 0; i < fill; i++)
			put(o, ' ');
	for (i = 0; i < p; i++)
		put(o, prefix[i]);
	if (zeros)
		for (i = 0; i < fill; i++)
			put(o, '0');
	for (i = 0; i < n; i++)
		put(o, text[i]);
	if (s->minus)
		for (i = 0; i < fill; i++)
			put(o, ' ');
}

static void put_number(struct out *o, const struct spec *s, u64 v, u32 base, bool is_signed, bool upper)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef", *prefix = "";
	char text[24];
	u32 n = sizeof(text);
	bool neg = false;

	if (s->bytes < 8) {
		v &= (1ULL << (s->bytes * 8)) - 1;
		if (is_signed && v >> (s->bytes * 8 - 1))
			v |= ~0ULL << (s->bytes * 8);
	}
	if (is_signed && (s64)v < 0) {
		neg = true;
		v = -v;
	}
	if (is_signed)
		prefix = neg ? "-" : s->plus ? "+" : s->space ? " " : "";
	do {
		text[--n] = digits[v % base];
		v /= base;
	} while (v);
	put_padded(o, s, prefix, text + n, sizeof(text) - n, true);
}

static void put_string(struct out *o, const struct spec *s, u64 addr)
{
	char text[512];
	long n = probe_read_str(text, (const void *)addr, sizeof(text));

	if (n < 0)
		put_padded(o, s, "", "", 0, false);
	else
		put_padded(o, s, "", text, n - 1, false);
}

/* %pi4 %pI4 %pi6 %pI6: an address in memory. Returns characters of the format used after 'p'; -EINVAL. */
static int put_ip(struct out *o, const struct spec *s, const char *fmt, u64 addr)
{
	static const struct spec plain = { .bytes = 1 }, hex2 = { .bytes = 1, .zero = true, .width = 2 };
	u8 ip[16] = { 0 };
	u32 i;

	if (fmt[1] == '4') {
		probe_read(ip, (const void *)addr, 4);
		for (i = 0; i < 4; i++) {
			put_number(o, fmt[0] == 'i' ? &(struct spec){ .bytes = 1, .zero = true, .width = 3 } : &plain,
				   ip[i], 10, false, false);
			if (i < 3)
				put(o, '.');
		}
		return 2;
	}
	if (fmt[1] != '6')
		return -EINVAL;
	probe_read(ip, (const void *)addr, 16);
	for (i = 0; i < 16; i++) {
		put_number(o, &hex2, ip[i], 16, false, false);
		if (fmt[0] == 'I' && i % 2 && i < 15)
			put(o, ':');
	}
	return 2;
}

static int put_pointer(struct out *o, struct spec *s, const char *fmt, u64 arg)
{
	if ((fmt[0] == 'k' || fmt[0] == 'u') && fmt[1] == 's') {
		put_string(o, s, arg);
		return 2;
	}
	if (fmt[0] == 'i' || fmt[0] == 'I')
		return put_ip(o, s, fmt, arg);
	if (fmt[0] == 'K' || fmt[0] == 'x' || fmt[0] == 's' || fmt[0] == 'S' || fmt[0] == 'B' || !fmt[0] ||
	    fmt[0] == ' ' || (fmt[0] >= '!' && fmt[0] <= '/') || (fmt[0] >= ':' && fmt[0] <= '@') || fmt[0] == '\n' ||
	    fmt[0] == '\t') {
		bool modifier = fmt[0] == 'K' || fmt[0] == 'x' || fmt[0] == 's' || fmt[0] == 'S' || fmt[0] == 'B';

		/* there are no kernel symbols here: every kind of pointer prints as its value */
		s->bytes = 8;
		s->zero = true;
		s->width = fmt[0] == 'x' ? s->width : 16;
		put_number(o, s, arg, 16, false, false);
		return modifier;
	}
	return -EINVAL;
}

static const char *parse_spec(const char *fmt, struct spec *s)
{
	*s = (struct spec){ .bytes = 4 };
	for (;; fmt++) {
		if (*fmt == '-')
			s->minus = true;
		else if (*fmt == '+')
			s->plus = true;
		else if (*fmt == ' ')
			s->space = true;
		else if (*fmt == '0')
			s->zero = true;
		else
			break;
	}
	for (; *fmt >= '0' && *fmt <= '9'; fmt++)
		s->width = min_of(s->width * 10 + (*fmt - '0'), 512u);
	if (*fmt == 'l') {
		s->bytes = 8;
		fmt++;
		if (*fmt == 'l')
			fmt++;
	}
	return fmt;
}

/* One conversion at fmt (after '%'); returns the character after it, NULL: refused. */
static const char *convert(struct out *o, const char *fmt, u64 arg)
{
	struct spec s;
	int n;

	fmt = parse_spec(fmt, &s);
	switch (*fmt) {
	case 'd':
	case 'i':
		put_number(o, &s, arg, 10, true, false);
		return fmt + 1;
	case 'u':
		put_number(o, &s, arg, 10, false, false);
		return fmt + 1;
	case 'x':
	case 'X':
		put_number(o, &s, arg, 16, false, *fmt == 'X');
		return fmt + 1;
	case 'c':
		put_padded(o, &s, "", &(char){ (char)arg }, 1, false);
		return fmt + 1;
	case 's':
		put_string(o, &s, arg);
		return fmt + 1;
	case 'p':
		n = put_pointer(o, &s, fmt + 1, arg);
		return n < 0 ? NULL : fmt + 1 + n;
	}
	return NULL;
}

int format_text(char *out, u32 size, const char *fmt, u32 fmt_size, const u64 *args, u32 nr_args)
{
	struct out o = { out, size, 0 };
	u32 used = 0;

	if (!fmt_size || strnlen(fmt, fmt_size) == fmt_size)
		return -EINVAL;
	while (*fmt) {
		/* UTF-8 may stand in the text; control characters other than white space may not */
		if (!(*fmt & 0x80) && *fmt < ' ' && !(*fmt >= '\t' && *fmt <= '\r'))
			return -EINVAL;
		if (*fmt != '%') {
			put(&o, *fmt++);
			continue;
		}
		if (fmt[1] == '%') {
			put(&o, '%');
			fmt += 2;
			continue;
		}
		if (used == nr_args)
			return -EINVAL;
		fmt = convert(&o, fmt + 1, args[used++]);
		if (!fmt)
			return -EINVAL;
	}
	if (size)
		out[min_of(o.len, size - 1)] = 0;
	return o.len;
}
