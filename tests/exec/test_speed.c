// SPDX-License-Identifier: BSD-2-Clause
// The interpreter's pace on plain instructions: best of several short runs, so that a busy machine does not decide.
#include <time.h>

#include "bare.h"

#define WANT_MIPS 150

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SLOW_BUILD 1
#endif
#endif
#if !defined(__OPTIMIZE__) && !defined(SLOW_BUILD)
#define SLOW_BUILD 1
#endif

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

int main(void)
{
	/* a loop of 10 instructions: arithmetic, stack loads and stores, branches */
	struct prog *prog = bare_prog("r0 = 0; r2 = 0; l: r3 = r2; r3 &= 255; *(u64 *)(r10 - 8) = r3; r4 = *(u64 *)(r10 - 8);"
				      "r0 += r4; r0 ^= r2; if r4 > 256 goto out; r5 = r0; r5 >>= 3; r2 += 1;"
				      "if r2 != 300000 goto l; out: exit");
	double start, t, best = 1e9;
	int i;

	if (!prog)
		return !!ok(false, "the program loads");
	for (i = 0; i < 20; i++) {
		start = now();
		prog->entry(prog, NULL);
		t = now() - start;
		best = t < best ? t : best;
	}
	bare_free(prog);
	printf("# %.0f million instructions a second\n", 300000 * 11 / best / 1e6);
#ifdef SLOW_BUILD
	tap_skip("not an optimised build");
#else
	ok(300000 * 11 / best / 1e6 >= WANT_MIPS, "at least %d million instructions a second", WANT_MIPS);
#endif
	return tap_done();
}
