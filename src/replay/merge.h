/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordering by time with little memory. A recording is a few long stretches in which time does not
 * go back (a CPU's buffer copied out in one go; a whole sorted text), so instead of sorting events,
 * stretches ("runs") are merged: the run whose next event is oldest gives it. Equal times keep the
 * order of the file.
 *
 * Runs that begin later than everything merged so far wait in a sorted backlog, so the heap holds
 * about one a CPU.
 */
#ifndef INLAY_REPLAY_MERGE_H
#define INLAY_REPLAY_MERGE_H

#include "base/types.h"

struct rec_run {
	u64 pos; /* offset of the next record */
	u64 end; /* offset behind the last */
	u64 ts;	 /* time of the record at pos */
};

struct rec_merge {
	struct rec_run *runs; /* backlog in [next_run, nr_runs), by (ts, pos) once sorted */
	size_t nr_runs, cap_runs, next_run;
	struct rec_run *heap; /* heap[0] is the run that comes next */
	size_t nr_heap, cap_heap;
	u64 bound_ts, bound_pos; /* the first run after heap[0], in that order */
};

void rec_merge_fini(struct rec_merge *m);

/* Adds a run to the backlog; rec_merge_sort() before the next rec_merge_top(). 0 or -ENOMEM. */
int rec_merge_add(struct rec_merge *m, struct rec_run run);
/* Sorts the backlog and makes the top known. 0 or -ENOMEM. */
int rec_merge_sort(struct rec_merge *m);
/* Drops all runs, keeps the memory. */
void rec_merge_reset(struct rec_merge *m);

/* The run to take a record from; NULL: all are empty. Valid until the next call on m. */
static inline struct rec_run *rec_merge_top(struct rec_merge *m)
{
	return m->nr_heap ? &m->heap[0] : NULL;
}

/* The top's record was taken and its pos and ts moved on to the next one (pos == end: there is
 * none). 0 or -ENOMEM. */
int rec_merge_slow(struct rec_merge *m);
static inline int rec_merge_advance(struct rec_merge *m)
{
	const struct rec_run *top = &m->heap[0];

	if (likely(top->pos < top->end &&
		   (top->ts < m->bound_ts || (top->ts == m->bound_ts && top->pos < m->bound_pos))))
		return 0;
	return rec_merge_slow(m);
}

#endif
