// SPDX-License-Identifier: BSD-2-Clause
// Zeroed memory and the knob that fails it.
#include "rcu/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

long rcu_mem_fail_count;

bool rcu_mem_fails_slow(void)
{
	long n = __atomic_load_n(&rcu_mem_fail_count, __ATOMIC_RELAXED);

	while (n > 0)
		if (__atomic_compare_exchange_n(&rcu_mem_fail_count, &n, n - 1, true,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return n == 1;
	return false;
}

void rcu_mem_fail_nth(long n)
{
	__atomic_store_n(&rcu_mem_fail_count, n, __ATOMIC_RELAXED);
}

void *rcu_mem_alloc(size_t size)
{
	void *mem;

	if (rcu_mem_fails() || size > SIZE_MAX / 2)
		return NULL;
	size = align_up(size ? size : 1, 64);
	mem = aligned_alloc(64, size);
	return mem ? memset(mem, 0, size) : NULL;
}

void *rcu_mem_map(size_t size)
{
	int saved = errno;
	void *mem;

	if (rcu_mem_fails())
		return NULL;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved;
	return mem == MAP_FAILED ? NULL : mem;
}

void rcu_mem_unmap(void *mem, size_t size)
{
	int saved = errno;

	if (mem)
		munmap(mem, size);
	errno = saved;
}
