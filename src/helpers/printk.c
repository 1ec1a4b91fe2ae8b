// SPDX-License-Identifier: BSD-2-Clause
// Text out of programs: trace_printk, trace_vprintk, snprintf; and strncmp.
#include <errno.h>
#include <string.h>

#include "env/env.h"
#include "helpers/format.h"
#include "helpers/helpers_int.h"

#define TRACE_PRINTK_ARGS 3

static u64 emit(const char *fmt, u32 fmt_size, const u64 *args, u32 nr_args)
{
	char text[FORMAT_BUF];
	int n = format_text(text, sizeof(text), fmt, fmt_size, args, nr_args);
	u32 len;

	if (n < 0)
		return n;
	n = min_of(n, FORMAT_BUF - 1);
	len = n;
	if (len && text[len - 1] == '\n')
		text[--len] = 0;
	env_printk(env_tls.env, text);
	return n;
}

static u64 trace_printk(u64 fmt, u64 fmt_size, u64 a1, u64 a2, u64 a3)
{
	u64 args[TRACE_PRINTK_ARGS] = { a1, a2, a3 };

	return emit((const char *)fmt, fmt_size, args, TRACE_PRINTK_ARGS);
}

const struct helper_desc helper_trace_printk = {
	HELPER_IS(trace_printk, 6),
	.fn = trace_printk,
	.flags = HELPER_GPL | HELPER_VARIADIC,
	.ret = RET_INTEGER,
	.arg = { ARG_PTR_TO_MEM | MEM_RDONLY, ARG_CONST_SIZE },
};

static bool bad_data(u64 data, u64 data_len)
{
	return data_len % 8 || data_len > FORMAT_MAX_ARGS * 8 || (data_len && !data);
}

static u64 trace_vprintk(u64 fmt, u64 fmt_size, u64 data, u64 data_len, u64 r5)
{
	if (bad_data(data, data_len))
		return -EINVAL;
	return emit((const char *)fmt, fmt_size, (const u64 *)data, data_len / 8);
}

const struct helper_desc helper_trace_vprintk = {
	HELPER_IS(trace_vprintk, 177),
	.fn = trace_vprintk,
	.flags = HELPER_GPL,
	.ret = RET_INTEGER,
	.arg = { ARG_PTR_TO_MEM | MEM_RDONLY, ARG_CONST_SIZE, ARG_PTR_TO_MEM | PTR_MAYBE_NULL | MEM_RDONLY,
		 ARG_CONST_SIZE_OR_ZERO },
};

/* fmt: the verifier proved a NUL-terminated constant. */
static u64 snprintf_(u64 str, u64 str_size, u64 fmt, u64 data, u64 data_len)
{
	int n;

	if (bad_data(data, data_len))
		return -EINVAL;
	n = format_text((char *)str, str_size, (const char *)fmt, strlen((const char *)fmt) + 1, (const u64 *)data,
			data_len / 8);
	return n < 0 ? n : n + 1;
}

/* At load: does the format fit that many bytes of arguments? */
static int check_format(const char *text, u64 size)
{
	static const u64 none[FORMAT_MAX_ARGS];
	char out[1];
	int n;

	if (size % 8 || size > sizeof(none))
		return -EINVAL;
	n = format_text(out, sizeof(out), text, strlen(text) + 1, none, size / 8);
	return n < 0 ? n : 0;
}

const struct helper_desc helper_snprintf = {
	HELPER_IS(snprintf, 165),
	.fn = snprintf_,
	.flags = HELPER_GPL,
	.ret = RET_INTEGER,
	.arg = { ARG_PTR_TO_MEM | PTR_MAYBE_NULL | MEM_UNINIT | MEM_WRITE, ARG_CONST_SIZE_OR_ZERO,
		 ARG_PTR_TO_CONST_STR, ARG_PTR_TO_MEM | PTR_MAYBE_NULL | MEM_RDONLY, ARG_CONST_SIZE_OR_ZERO },
	.check_str = check_format,
};

static u64 strncmp_(u64 s1, u64 s1_size, u64 s2, u64 r4, u64 r5)
{
	return (u64)strncmp((const char *)s1, (const char *)s2, (u32)s1_size);
}

const struct helper_desc helper_strncmp = {
	HELPER_IS(strncmp, 182),
	.fn = strncmp_,
	.ret = RET_INTEGER,
	.arg = { ARG_PTR_TO_MEM | MEM_RDONLY, ARG_CONST_SIZE, ARG_PTR_TO_CONST_STR },
};
