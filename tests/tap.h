/* SPDX-License-Identifier: BSD-2-Clause */
/* Test Anything Protocol for C tests: ok() a line a check, tap_done() the plan and the exit status. */
#ifndef INLAY_TESTS_TAP_H
#define INLAY_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_run, tap_failed;

/* Prints one result line; the name says the behaviour, printf-style. Returns cond. */
__attribute__((format(printf, 2, 3), unused)) static bool ok(bool cond, const char *fmt, ...)
{
	va_list args;

	printf("%sok %d - ", cond ? "" : "not ", ++tap_run);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout); /* a crash must not take the lines before it along */
	tap_failed += !cond;
	return cond;
}

/* As ok(), and on failure shows both values. */
#define is_u64(got, want, ...)                                                                     \
	do {                                                                                       \
		unsigned long long g_ = (got), w_ = (want);                                        \
		if (!ok(g_ == w_, __VA_ARGS__))                                                    \
			printf("# got 0x%llx, want 0x%llx (%s:%d)\n", g_, w_, __FILE__, __LINE__); \
	} while (0)

#define is_int(got, want, ...)                                                                     \
	do {                                                                                       \
		long long g_ = (got), w_ = (want);                                                 \
		if (!ok(g_ == w_, __VA_ARGS__))                                                    \
			printf("# got %lld, want %lld (%s:%d)\n", g_, w_, __FILE__, __LINE__);     \
	} while (0)

__attribute__((format(printf, 1, 2), unused)) static void tap_skip(const char *fmt, ...)
{
	va_list args;

	printf("ok %d # SKIP ", ++tap_run);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

/* Prints the plan; use as `return tap_done();`. */
__attribute__((unused)) static int tap_done(void)
{
	printf("1..%d\n", tap_run);
	return tap_failed ? 1 : 0;
}

#endif
