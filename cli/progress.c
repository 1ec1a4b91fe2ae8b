// SPDX-License-Identifier: BSD-2-Clause
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static u64 first_ms, last_ms;
static bool shown;

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

void cli_progress(void *ctx, const char *stage, u64 done, u64 total)
{
	static int terminal = -1;
	u64 now;

	if (terminal < 0)
		terminal = isatty(STDERR_FILENO);
	if (!terminal)
		return;
	now = now_ms();
	if (!first_ms)
		first_ms = now;
	if (now - first_ms < 500 || now - last_ms < 200)
		return;
	last_ms = now;
	shown = true;
	if (total)
		dprintf(STDERR_FILENO, "\r\033[K%s: %llu %%", stage,
			(unsigned long long)(100.0 * done / total));
	else
		dprintf(STDERR_FILENO, "\r\033[K%s: %llu MiB", stage, (unsigned long long)(done >> 20));
	fflush(stderr);
}

void cli_progress_clear(void)
{
	if (!shown)
		return;
	shown = false;
	dprintf(STDERR_FILENO, "\r\033[K");
	fflush(stderr);
}
