/* SPDX-License-Identifier: BSD-2-Clause */
/* The caller's memory: the only way sys/ touches it. Addresses are the caller's and may be
 * anything. */
#ifndef INLAY_SYS_USER_MEM_H
#define INLAY_SYS_USER_MEM_H

#include "base/types.h"

struct user_mem {
	/* n bytes; 0 or -EFAULT */
	int (*read)(const struct user_mem *um, void *dst, u64 src, size_t n);
	int (*write)(const struct user_mem *um, u64 dst, const void *src, size_t n);
};

/* The calling process itself; faults are caught. */
extern const struct user_mem user_mem_self;

static inline int user_read(const struct user_mem *um, void *dst, u64 src, size_t n)
{
	return n ? um->read(um, dst, src, n) : 0;
}

static inline int user_write(const struct user_mem *um, u64 dst, const void *src, size_t n)
{
	return n ? um->write(um, dst, src, n) : 0;
}

/* A string of less than cap bytes; longer ones are cut there. Always terminated. Its length, or
 * -EFAULT. */
long user_read_str(const struct user_mem *um, char *dst, u64 src, size_t cap);

/* n bytes in new memory (at least one byte is allocated) that the caller frees. 0, -EFAULT or
 * -ENOMEM. */
int user_dup(const struct user_mem *um, u64 src, size_t n, void **ret_mem);

/*
 * A user structure of usize bytes of which we know ksize: bytes beyond must be zero. 0, -E2BIG
 * (also if usize is above a page) or -EFAULT.
 */
int user_check_tail(const struct user_mem *um, u64 addr, size_t ksize, size_t usize);

#endif
