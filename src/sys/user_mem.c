// SPDX-License-Identifier: BSD-2-Clause
// Access to the caller's memory, and what is built on it.
#include "sys/user_mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/probe.h"

#define LINUX_PAGE 4096

static int self_read(const struct user_mem *um, void *dst, u64 src, size_t n)
{
	return probe_read(dst, (const void *)(uintptr_t)src, n);
}

static int self_write(const struct user_mem *um, u64 dst, const void *src, size_t n)
{
	return probe_write((void *)(uintptr_t)dst, src, n);
}

const struct user_mem user_mem_self = {.read = self_read, .write = self_write};

long user_read_str(const struct user_mem *um, char *dst, u64 src, size_t cap)
{
	size_t i;

	for (i = 0; i + 1 < cap; i++) {
		if (um->read(um, dst + i, src + i, 1)) {
			dst[0] = 0;
			return -EFAULT;
		}
		if (!dst[i])
			return i;
	}
	dst[cap - 1] = 0;
	return cap - 1;
}

int user_dup(const struct user_mem *um, u64 src, size_t n, void **ret_mem)
{
	void *mem = malloc(n ? n : 1);
	int err;

	if (!mem)
		return -ENOMEM;
	err = user_read(um, mem, src, n);
	if (err) {
		free(mem);
		return err;
	}
	*ret_mem = mem;
	return 0;
}

int user_check_tail(const struct user_mem *um, u64 addr, size_t ksize, size_t usize)
{
	char tail[LINUX_PAGE];
	size_t i, n;

	if (usize > LINUX_PAGE)
		return -E2BIG;
	if (usize <= ksize)
		return 0;
	n = usize - ksize;
	if (user_read(um, tail, addr + ksize, n))
		return -EFAULT;
	for (i = 0; i < n; i++)
		if (tail[i])
			return -E2BIG;
	return 0;
}
