// SPDX-License-Identifier: BSD-2-Clause
// How long a tick of the cycle counter is, measured against the kernel's clock.
#include "base/ticks.h"

#include <pthread.h>
#include <time.h>

#define MEASURE_NS 1000000u

u64 arch_ticks_scale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct moment {
	u64 ns, ticks;
};

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Both clocks at nearly the same time: of some readings the one that was interrupted least. */
static struct moment moment(void)
{
	struct moment m = { 0 };
	u64 before, ns, after, best = U64_MAX;
	u32 i;

	for (i = 0; i < 8; i++) {
		before = arch_ticks();
		ns = now_ns();
		after = arch_ticks();
		if (after - before >= best)
			continue;
		best = after - before;
		m = (struct moment){ .ns = ns, .ticks = before + best / 2 };
	}
	return m;
}

static void measure(void)
{
	struct moment a, b;

	if (!arch_ticks_steady())
		return;
	a = moment();
	do
		b = moment();
	while (b.ns - a.ns < MEASURE_NS);
	if (b.ticks > a.ticks)
		__atomic_store_n(&arch_ticks_scale, ((b.ns - a.ns) << 32) / (b.ticks - a.ticks), __ATOMIC_RELAXED);
}

void arch_ticks_init(void)
{
	pthread_once(&once, measure);
}
