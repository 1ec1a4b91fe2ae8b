// SPDX-License-Identifier: BSD-2-Clause
/* Values of options: flags, numbers, times with units. */
#include "opt.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int cli_set_flag(const char *value, void *dst, struct strbuf *err)
{
	*(bool *)dst = true;
	return 0;
}

int cli_set_str(const char *value, void *dst, struct strbuf *err)
{
	*(const char **)dst = value;
	return 0;
}

static int parse_number(const char *value, u64 min, u64 max, u64 *ret, struct strbuf *err)
{
	char *end;
	u64 v;

	errno = 0;
	v = strtoull(value, &end, !strncmp(value, "0x", 2) ? 16 : 10);
	if (!isxdigit((unsigned char)value[0]) || *end || errno || v < min || v > max) {
		strbuf_printf(err, "is no number from %llu to %llu", (unsigned long long)min,
			      (unsigned long long)max);
		return -EINVAL;
	}
	*ret = v;
	return 0;
}

int cli_parse_u32(const char *value, void *dst, struct strbuf *err)
{
	u64 v;
	int ret = parse_number(value, 0, U32_MAX, &v, err);

	if (!ret)
		*(u32 *)dst = v;
	return ret;
}

int cli_parse_id(const char *value, void *dst, struct strbuf *err)
{
	u64 v;
	int ret = parse_number(value, 1, S32_MAX, &v, err);

	if (!ret)
		*(u32 *)dst = v;
	return ret;
}

int cli_parse_u64(const char *value, void *dst, struct strbuf *err)
{
	return parse_number(value, 0, U64_MAX, dst, err);
}

static const struct time_unit {
	const char *name;
	u64 ns;
} time_units[] = {
	{ "ns", 1 },	     { "us", 1000 },	   { "µs", 1000 },	   { "ms", 1000000 },
	{ "s", 1000000000 }, { "m", 60000000000 }, { "min", 60000000000 },
};

/*
 * digits[.digits] times unit, exactly: what is below a nanosecond is cut. -EINVAL, or -ERANGE past
 * 64 bits.
 */
static int scale(const char *digits, size_t len, u64 unit, u64 *ret)
{
	u64 whole = 0, part = 0, place = unit, ns;
	bool dot = false, any = false;

	for (size_t i = 0; i < len; i++) {
		if (digits[i] == '.' && !dot) {
			dot = true;
			continue;
		}
		if (!isdigit((unsigned char)digits[i]))
			return -EINVAL;
		any = true;
		if (!dot) {
			if (__builtin_mul_overflow(whole, 10, &whole) ||
			    __builtin_add_overflow(whole, digits[i] - '0', &whole))
				return -ERANGE;
		} else if (place % 10 == 0) {
			place /= 10;
			part += (digits[i] - '0') * place;
		}
	}
	if (!any)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit, &ns) || __builtin_add_overflow(ns, part, &ns))
		return -ERANGE;
	*ret = ns;
	return 0;
}

static int parse_time(const char *value, u64 bare, const char *bare_name, u64 *ret,
		      struct strbuf *err)
{
	size_t len = strspn(value, "0123456789.");
	const char *unit_name = value + len;
	u64 unit = 0;
	int rc;

	if (value[0] == '-') {
		strbuf_puts(err, "must not be negative");
		return -EINVAL;
	}
	while (*unit_name == ' ')
		unit_name++;
	if (!*unit_name)
		unit = bare;
	for (size_t i = 0; i < ARRAY_SIZE(time_units); i++)
		if (!strcmp(unit_name, time_units[i].name))
			unit = time_units[i].ns;
	rc = unit ? scale(value, len, unit, ret) : -EINVAL;
	if (rc == -ERANGE)
		strbuf_puts(err, "is too long");
	else if (rc)
		strbuf_printf(err,
			      "is no time: a number and ns, us, ms, s or m (e.g. 500us, 5ms); a "
			      "bare number is %s",
			      bare_name);
	return rc ? -EINVAL : 0;
}

int cli_parse_time_us(const char *value, void *dst, struct strbuf *err)
{
	return parse_time(value, 1000, "microseconds", dst, err);
}

int cli_parse_time_s(const char *value, void *dst, struct strbuf *err)
{
	u64 ns;
	int ret = parse_time(value, 1000000000, "seconds", &ns, err);

	if (!ret && !ns) {
		strbuf_puts(err, "must be more than 0");
		return -EINVAL;
	}
	if (!ret)
		*(u64 *)dst = ns;
	return ret;
}
