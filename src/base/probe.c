// SPDX-License-Identifier: BSD-2-Clause
// Fault-safe memory access: a copy loop whose instructions are known, and handlers that resume after it.
#include "base/probe.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/arch.h"

ARCH_COPY_ASM;

#define PROBE_RANGES 8

static struct probe_range {
	u64 begin, end;
	bool (*resume)(u64 pc, void *uc);
} ranges[PROBE_RANGES];
static int nr_ranges; /* published after the row it counts */

static struct sigaction old_segv, old_bus;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int init_err;

static void pass_on(const struct sigaction *old, int sig, siginfo_t *si, void *ucv)
{
	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(sig, si, ucv);
	} else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN) {
		/* a synchronous fault cannot be ignored: restore the default and let it happen again */
		signal(sig, SIG_DFL);
	} else {
		old->sa_handler(sig);
	}
}

static void on_fault(int sig, siginfo_t *si, void *ucv)
{
	ucontext_t *uc = ucv;
	u64 pc = ARCH_UC_PC(uc);
	int i, n = __atomic_load_n(&nr_ranges, __ATOMIC_ACQUIRE);

	if (pc >= (u64)arch_copy_begin && pc < (u64)arch_copy_end) {
		ARCH_UC_PC(uc) = (u64)arch_copy_fixup;
		return;
	}
	for (i = 0; i < n; i++)
		if (pc >= ranges[i].begin && pc < ranges[i].end && ranges[i].resume(pc, ucv))
			return;
	pass_on(sig == SIGSEGV ? &old_segv : &old_bus, sig, si, ucv);
}

static void install(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };

	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGSEGV, &sa, &old_segv) || sigaction(SIGBUS, &sa, &old_bus))
		init_err = -errno;
}

int probe_init(void)
{
	pthread_once(&once, install);
	return init_err;
}

int probe_add_range(const void *begin, const void *end, bool (*resume)(u64 pc, void *uc))
{
	int n = nr_ranges;

	if (n == PROBE_RANGES)
		return -ENOSPC;
	ranges[n] = (struct probe_range){ (u64)begin, (u64)end, resume };
	__atomic_store_n(&nr_ranges, n + 1, __ATOMIC_RELEASE);
	return 0;
}

int probe_read(void *dst, const void *src, size_t n)
{
	return arch_copy_bytes(dst, src, n) ? -EFAULT : 0;
}

int probe_write(void *dst, const void *src, size_t n)
{
	return arch_copy_bytes(dst, src, n) ? -EFAULT : 0;
}

long probe_read_str(char *dst, const void *src, size_t n)
{
	const char *s = src;
	size_t i;

	for (i = 0; i < n; i++) {
		if (arch_copy_bytes(dst + i, s + i, 1)) {
			dst[0] = 0;
			return -EFAULT;
		}
		if (!dst[i])
			return i + 1;
	}
	if (n)
		dst[n - 1] = 0;
	return n;
}
