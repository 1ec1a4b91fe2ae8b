/* SPDX-License-Identifier: BSD-2-Clause */
/* Zeroed memory for maps and caches, with the test knob that makes the n-th allocation fail. */
#ifndef INLAY_RCU_MEM_H
#define INLAY_RCU_MEM_H

#include "base/types.h"

/* Zeroed, 64-byte aligned; NULL: no memory. Give back with free(). Not for signal handlers. */
void *rcu_mem_alloc(size_t size);

/*
 * Zeroed pages straight from the kernel (nothing is resident until touched); NULL: no memory, or
 * size 0. Give back with rcu_mem_unmap() and the same size. Async-signal-safe: a plain system call,
 * errno is kept.
 */
void *rcu_mem_map(size_t size);
void rcu_mem_unmap(void *mem, size_t size); /* takes NULL */

/* Test-only: the n-th allocation from now (1: the next) fails, once; 0: none. Counts this header's
 * and the caches'. */
void rcu_mem_fail_nth(long n);

extern long rcu_mem_fail_count; /* 0: knob off; atomic. Read through rcu_mem_fails() only */
bool rcu_mem_fails_slow(void);

/* True if the allocation about to be made shall fail. */
static inline bool rcu_mem_fails(void)
{
	return unlikely(__atomic_load_n(&rcu_mem_fail_count, __ATOMIC_RELAXED)) &&
	       rcu_mem_fails_slow();
}

#endif
