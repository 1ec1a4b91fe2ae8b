// SPDX-License-Identifier: BSD-2-Clause
/*
 * Strings anywhere in memory. Pointers may be any number: bytes are read with faults caught. Results are Linux 6.18's: an
 * index, a comparison's sign, or -ENOENT (not found), -ERANGE (an address where no memory can be), -EFAULT (none is there),
 * -E2BIG (no end within 64 KiB). They are ints. A char is unsigned to Linux, on every machine.
 */
#include <errno.h>

#include "base/probe.h"
#include "helpers/kfuncs_int.h"

#define STR_MAX	   65536
#define ADDR_FIRST 65536	/* below nothing is mapped: a NULL and what is near it */
#define ADDR_END   (1ULL << 47) /* of what a process can map */

#define INT(x) ((u64)(u32)(x))

static bool in_reach(u64 addr)
{
	return addr >= ADDR_FIRST && addr < ADDR_END;
}

/* Byte i of the string, 0..255; negative: there is none. */
static inline int at(u64 s, u32 i)
{
	u8 c;

	return probe_read(&c, (const void *)(s + i), 1) ? -EFAULT : c;
}

static int lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

static int compare(u64 s1, u64 s2, bool ignore_case)
{
	if (!in_reach(s1) || !in_reach(s2))
		return -ERANGE;
	for (u32 i = 0; i < STR_MAX; i++) {
		int a = at(s1, i), b = at(s2, i);

		if (a < 0 || b < 0)
			return -EFAULT;
		if (ignore_case) {
			a = lower(a);
			b = lower(b);
		}
		if (a != b)
			return a < b ? -1 : 1;
		if (!a)
			return 0;
	}
	return -E2BIG;
}

/* Index of c among the first count bytes; or_end: the end will do. */
static int find(u64 s, u64 count, u8 c, bool or_end)
{
	u32 i;

	if (!in_reach(s))
		return -ERANGE;
	for (i = 0; i < count && i < STR_MAX; i++) {
		int b = at(s, i);

		if (b < 0)
			return b;
		if (b == c)
			return (int)i;
		if (!b)
			return or_end ? (int)i : -ENOENT;
	}
	return i == STR_MAX ? -E2BIG : -ENOENT;
}

static int length(u64 s, u64 count)
{
	u32 i;

	if (!in_reach(s))
		return -ERANGE;
	for (i = 0; i < count && i < STR_MAX; i++) {
		int b = at(s, i);

		if (b <= 0)
			return b ? b : (int)i;
	}
	return i == STR_MAX ? -E2BIG : (int)i;
}

/* How many bytes at the start are (in: or are not) among those of set. */
static int span(u64 s, u64 set, bool in)
{
	if (!in_reach(s) || !in_reach(set))
		return -ERANGE;
	for (u32 i = 0; i < STR_MAX; i++) {
		int a = at(s, i), b = 0;
		u32 k;

		if (a <= 0)
			return a ? a : (int)i;
		for (k = 0; k < STR_MAX; k++) {
			b = at(set, k);
			if (b < 0)
				return b;
			if (!b || a == b)
				break;
		}
		if (k == STR_MAX)
			return -E2BIG;
		if (!b == in)
			return (int)i;
	}
	return -E2BIG;
}

/* Where s2 begins in the first len bytes of s1. */
static int find_text(u64 s1, u64 s2, u64 len)
{
	if (!in_reach(s1) || !in_reach(s2))
		return -ERANGE;
	for (u32 i = 0; i < STR_MAX; i++) {
		u64 k;

		for (k = 0; i + k <= len && k < STR_MAX; k++) {
			int b = at(s2, (u32)k), a;

			if (b <= 0)
				return b ? b : (int)i;
			/* (a byte more of s2 than of s1 is looked at: it may end there) */
			if (i + k == len)
				break;
			a = at(s1 + i, (u32)k);
			if (a <= 0)
				return a ? a : -ENOENT;
			if (a != b)
				break;
		}
		if (k == STR_MAX)
			return -E2BIG;
		if (i + k == len)
			return -ENOENT;
	}
	return -E2BIG;
}

static u64 str_strcmp(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(compare(r1, r2, false));
}

static u64 str_strcasecmp(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(compare(r1, r2, true));
}

static u64 str_strnchr(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(find(r1, r2, (u8)r3, false));
}

static u64 str_strchr(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(find(r1, STR_MAX, (u8)r2, false));
}

static u64 str_strchrnul(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(find(r1, STR_MAX, (u8)r2, true));
}

/* Its character is an int, of which all bits count. */
static u64 str_strrchr(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	int last = -ENOENT;

	if (!in_reach(r1))
		return INT(-ERANGE);
	for (u32 i = 0; i < STR_MAX; i++) {
		int b = at(r1, i);

		if (b < 0)
			return INT(b);
		if (b == (s32)r2)
			last = (int)i;
		if (!b)
			return INT(last);
	}
	return INT(-E2BIG);
}

static u64 str_strnlen(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(length(r1, r2));
}

static u64 str_strlen(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(length(r1, STR_MAX));
}

static u64 str_strspn(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(span(r1, r2, true));
}

static u64 str_strcspn(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(span(r1, r2, false));
}

static u64 str_strnstr(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(find_text(r1, r2, r3));
}

static u64 str_strstr(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INT(find_text(r1, r2, STR_MAX));
}

#define STR(name_, proto_) \
	const struct kfunc_desc kfunc_bpf_##name_ = { .name = "bpf_" #name_, .fn = str_##name_, .proto = proto_ }

STR(strcasecmp, "i p p");
STR(strchr, "i p i");
STR(strchrnul, "i p i");
STR(strcmp, "i p p");
STR(strcspn, "i p p");
STR(strlen, "i p");
STR(strnchr, "i p i i");
STR(strnlen, "i p i");
STR(strnstr, "i p p i");
STR(strrchr, "i p i");
STR(strspn, "i p p");
STR(strstr, "i p p");
