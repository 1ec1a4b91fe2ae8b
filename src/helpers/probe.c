// SPDX-License-Identifier: BSD-2-Clause
// Reads of memory that may not be there. The machine's kernel memory is this process; its user memory is this process
// too where a host embeds the engine, and does not exist in a replay.
#include <errno.h>
#include <string.h>

#include "base/probe.h"
#include "env/env.h"
#include "helpers/helpers_int.h"

/* As Linux: on a fault the destination is zeroed. */
static u64 read_mem(u64 dst, u64 size, u64 src)
{
	int err = probe_read((void *)dst, (const void *)src, (u32)size);

	if (err)
		memset((void *)dst, 0, (u32)size);
	return err;
}

static u64 read_str(u64 dst, u64 size, u64 src)
{
	long n;

	if (!(u32)size)
		return 0;
	n = probe_read_str((char *)dst, (const void *)src, (u32)size);
	if (n < 0)
		memset((void *)dst, 0, (u32)size);
	return n;
}

static bool no_user_memory(void)
{
	return env_clock_kind(env_tls.env) == ENV_CLOCK_MANUAL;
}

static u64 fail(u64 dst, u64 size)
{
	memset((void *)dst, 0, (u32)size);
	return -EFAULT;
}

static u64 probe_read_kernel(u64 dst, u64 size, u64 src, u64 r4, u64 r5)
{
	return read_mem(dst, size, src);
}

static u64 probe_read_kernel_str(u64 dst, u64 size, u64 src, u64 r4, u64 r5)
{
	return read_str(dst, size, src);
}

static u64 probe_read_user(u64 dst, u64 size, u64 src, u64 r4, u64 r5)
{
	return no_user_memory() ? fail(dst, size) : read_mem(dst, size, src);
}

static u64 probe_read_user_str(u64 dst, u64 size, u64 src, u64 r4, u64 r5)
{
	return no_user_memory() ? fail(dst, size) : read_str(dst, size, src);
}

#define PROBE_HELPER(name_, id_, fn_, flags_)                                                      \
	const struct helper_desc helper_##name_ = {                                                \
		HELPER_IS(name_, id_),                                                             \
		.fn = fn_,                                                                         \
		.flags = flags_,                                                                   \
		.ret = RET_INTEGER,                                                                \
		.arg = { ARG_PTR_TO_MEM | MEM_UNINIT | MEM_WRITE, ARG_CONST_SIZE_OR_ZERO, ARG_ANYTHING },      \
	}

PROBE_HELPER(probe_read, 4, probe_read_kernel, HELPER_GPL);
PROBE_HELPER(probe_read_str, 45, probe_read_kernel_str, HELPER_GPL | HELPER_RET_SIZE);
PROBE_HELPER(probe_read_kernel, 113, probe_read_kernel, HELPER_GPL);
PROBE_HELPER(probe_read_kernel_str, 115, probe_read_kernel_str, HELPER_GPL | HELPER_RET_SIZE);
PROBE_HELPER(probe_read_user, 112, probe_read_user, HELPER_GPL);
PROBE_HELPER(probe_read_user_str, 114, probe_read_user_str, HELPER_GPL | HELPER_RET_SIZE);
