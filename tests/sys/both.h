/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario is run twice, on an engine of ours and on the kernel, and notes what it sees; the
 * notes must agree. Without a kernel to ask only expect() counts: what must hold on both.
 */
#ifndef INLAY_TESTS_SYS_BOTH_H
#define INLAY_TESTS_SYS_BOTH_H

#include "engine.h"

#define NOTES 1024

struct note {
	char what[96];
	long long value;
};

static struct note notes[2][NOTES];
static int nr_notes[2], cur_side;

__attribute__((format(printf, 2, 3), unused)) static void note(long long value, const char *fmt,
							       ...)
{
	struct note *n = &notes[cur_side][nr_notes[cur_side]++];
	va_list args;

	if (nr_notes[cur_side] >= NOTES)
		abort();
	va_start(args, fmt);
	vsnprintf(n->what, sizeof(n->what), fmt, args);
	va_end(args);
	n->value = value;
}

/* Runs the scenario; ctx is the engine or NULL. */
__attribute__((unused)) static void both(struct inlay *in, const char *name,
					 void (*scenario)(struct inlay *in))
{
	static int oracle = -1;
	int i, bad = 0;

	if (oracle < 0)
		oracle = have_oracle();
	nr_notes[0] = nr_notes[1] = 0;
	cur_side = 0;
	scenario(in);
	if (!oracle) {
		tap_skip("%s: no Linux 6.18 that lets us ask", name);
		return;
	}
	cur_side = 1;
	scenario(NULL);
	for (i = 0; i < nr_notes[0] && i < nr_notes[1]; i++) {
		if (notes[0][i].value == notes[1][i].value &&
		    !strcmp(notes[0][i].what, notes[1][i].what))
			continue;
		if (bad++ >= 8 && !getenv("INLAY_TEST_LOG"))
			continue;
		printf("# %s: %s: got %lld, kernel %lld\n", name, notes[0][i].what,
		       notes[0][i].value, notes[1][i].value);
	}
	ok(!bad && nr_notes[0] == nr_notes[1] && nr_notes[0] > 0,
	   "%s: as in the kernel (%d answers)", name, nr_notes[0]);
}

#endif
