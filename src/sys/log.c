// SPDX-License-Identifier: BSD-2-Clause
// The log buffer of PROG_LOAD and BTF_LOAD: the tail of a text too long for it, or with
// BPF_LOG_FIXED its head.
#include <errno.h>
#include <string.h>

#include "sys/sys_int.h"

#define LOG_LEVELS 15 /* bits of the level: 1, 2, statistics, fixed */

int sys_log_init(struct sys_log *log, u32 level, u32 size, u64 ubuf)
{
	*log = (struct sys_log){.level = level, .size = size, .ubuf = ubuf};
	if (!ubuf != !size || (ubuf && !level) || level & ~LOG_LEVELS || size > U32_MAX >> 2)
		return -EINVAL;
	return 0;
}

void sys_log_fini(struct sys_log *log)
{
	strbuf_fini(&log->text);
}

int sys_log_finish(struct sys_call *c, struct sys_log *log, int err, u32 *ret_true_size)
{
	const char *text = strbuf_str(&log->text), nul = 0;
	size_t len = log->text.len, keep;

	*ret_true_size = 0;
	if (!log->level || !len)
		return err;
	*ret_true_size = len + 1 > U32_MAX ? U32_MAX : len + 1;
	if (!log->ubuf)
		return err; /* asked only how much there would be */
	keep = min_of(len, (size_t)log->size - 1);
	if (!(log->level & SYS_LOG_FIXED))
		text += len - keep;
	if (user_write(c->um, log->ubuf, text, keep) ||
	    user_write(c->um, log->ubuf + keep, &nul, 1))
		return -EFAULT;
	return len + 1 > log->size ? -ENOSPC : err;
}
