// SPDX-License-Identifier: BSD-2-Clause
/* The heap and the backlog of merge.h. */
#include "replay/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void rec_merge_fini(struct rec_merge *m)
{
	free(m->runs);
	free(m->heap);
	memset(m, 0, sizeof(*m));
}

void rec_merge_reset(struct rec_merge *m)
{
	m->nr_runs = m->next_run = m->nr_heap = 0;
}

static int grow(struct rec_run **runs, size_t *cap, size_t need)
{
	size_t n = *cap ? *cap * 2 : 64;
	struct rec_run *p;

	if (need <= *cap)
		return 0;
	p = reallocarray(*runs, n, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*runs = p;
	*cap = n;
	return 0;
}

int rec_merge_add(struct rec_merge *m, struct rec_run run)
{
	int err;

	if (m->next_run >
	    m->cap_runs / 2) { /* the front of the backlog is used up: take its room */
		m->nr_runs -= m->next_run;
		memmove(m->runs, m->runs + m->next_run, m->nr_runs * sizeof(run));
		m->next_run = 0;
	}
	err = grow(&m->runs, &m->cap_runs, m->nr_runs + 1);
	if (!err)
		m->runs[m->nr_runs++] = run;
	return err;
}

static inline bool run_before(const struct rec_run *a, const struct rec_run *b)
{
	return a->ts < b->ts || (a->ts == b->ts && a->pos < b->pos);
}

static int run_cmp(const void *a, const void *b)
{
	return run_before(a, b) ? -1 : run_before(b, a);
}

static void sift_down(struct rec_merge *m)
{
	struct rec_run *h = m->heap, run = h[0];
	size_t i = 0, kid;

	while ((kid = 2 * i + 1) < m->nr_heap) {
		if (kid + 1 < m->nr_heap && run_before(&h[kid + 1], &h[kid]))
			kid++;
		if (!run_before(&h[kid], &run))
			break;
		h[i] = h[kid];
		i = kid;
	}
	h[i] = run;
}

static int heap_push(struct rec_merge *m, struct rec_run run)
{
	size_t i = m->nr_heap, up;
	int err = grow(&m->heap, &m->cap_heap, m->nr_heap + 1);

	if (err)
		return err;
	m->nr_heap++;
	for (; i && run_before(&run, &m->heap[up = (i - 1) / 2]); i = up)
		m->heap[i] = m->heap[up];
	m->heap[i] = run;
	return 0;
}

/* Moves runs of the backlog that come before the heap's top into the heap, and says who is second.
 */
static int settle(struct rec_merge *m)
{
	const struct rec_run *second = NULL;
	size_t i;
	int err;

	while (m->next_run < m->nr_runs &&
	       (!m->nr_heap || run_before(&m->runs[m->next_run], &m->heap[0]))) {
		err = heap_push(m, m->runs[m->next_run]);
		if (err)
			return err;
		m->next_run++;
	}
	for (i = 1; i <= 2 && i < m->nr_heap; i++)
		if (!second || run_before(&m->heap[i], second))
			second = &m->heap[i];
	if (m->next_run < m->nr_runs && (!second || run_before(&m->runs[m->next_run], second)))
		second = &m->runs[m->next_run];
	m->bound_ts = second ? second->ts : U64_MAX;
	m->bound_pos = second ? second->pos : U64_MAX;
	return 0;
}

int rec_merge_sort(struct rec_merge *m)
{
	if (m->nr_runs > m->next_run)
		qsort(m->runs + m->next_run, m->nr_runs - m->next_run, sizeof(*m->runs), run_cmp);
	return settle(m);
}

int rec_merge_slow(struct rec_merge *m)
{
	if (m->heap[0].pos >= m->heap[0].end) {
		m->heap[0] = m->heap[--m->nr_heap];
		if (!m->nr_heap)
			return settle(m);
	}
	sift_down(m);
	return settle(m);
}
