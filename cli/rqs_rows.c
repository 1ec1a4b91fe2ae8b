// SPDX-License-Identifier: BSD-2-Clause
/*
 * Takes rows as the BPF object emits them: filters by name, adds who ran, counts, hands them to the
 * output.
 */
#include "rqs.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

const char *const rqs_kind_names[RQS_NR_KINDS] = {
	[RQS_WOKEN] = "woken",	     [RQS_NEW] = "new",		  [RQS_PREEMPTED] = "preempted",
	[RQS_REQUEUED] = "requeued", [RQS_MIGRATED] = "migrated",
};

const char *rqs_kind_of(const struct rqs_line *line)
{
	return line->from_start ? "queued" : rqs_kind_names[line->row.kind % RQS_NR_KINDS];
}

bool rqs_is_doubtful(const struct rqs_line *line)
{
	for (u32 i = 0; i < line->ran.nr && (line->from_start || line->to_end); i++)
		if (!line->ran.s[i].tid && line->ran.s[i].ns)
			return true;
	return false;
}

/* The same buckets as bucket_of() in runqslower.bpf.c. */
u32 rqs_bucket_of(u64 ns)
{
	u32 e;

	if (ns < RQS_SUB)
		return ns;
	e = 63 - __builtin_clzll(ns);
	return (e - RQS_SUB_BITS + 1) * RQS_SUB + (ns >> (e - RQS_SUB_BITS) & (RQS_SUB - 1));
}

void rqs_bucket_range(u32 bucket, u64 *ret_from, u64 *ret_to)
{
	u32 octave = bucket / RQS_SUB;

	if (!octave) {
		*ret_from = bucket;
		*ret_to = bucket + 1;
		return;
	}
	*ret_from = (u64)(RQS_SUB + bucket % RQS_SUB) << (octave - 1);
	*ret_to = *ret_from + (1ULL << (octave - 1));
}

u64 rqs_quantile(const struct rqs_totals *t, double q)
{
	u64 rank = (u64)(q * t->waits), seen = 0, from, to;

	rank += rank < q * t->waits; /* the smallest wait with at least q of them at or below it */
	for (u32 i = 0; i < RQS_NR_BUCKETS; i++) {
		seen += t->hist[i];
		if (!seen || seen < rank)
			continue;
		rqs_bucket_range(i, &from, &to);
		return min_of(to - 1, t->longest);
	}
	return t->longest;
}

bool rqs_comm_wanted(const struct rqs *rqs, const char *comm)
{
	return !rqs->opts->comm || !fnmatch(rqs->opts->comm, comm, 0);
}

static void count(struct rqs_totals *t, u64 wait, bool over)
{
	t->waits++;
	t->over += over;
	t->wait_ns += wait;
	t->longest = max_of(t->longest, wait);
	t->hist[rqs_bucket_of(wait)]++;
}

static void swap_lines(struct rqs_line *a, struct rqs_line *b)
{
	struct rqs_line t = *a;

	*a = *b;
	*b = t;
}

static int take_wait(struct rqs *rqs, const struct rqs_row *row)
{
	struct rqs_line *line = &rqs->line;
	u64 wait = row->wait_ns;
	bool over = wait > rqs->opts->min_ns || !rqs->opts->min_ns;
	int rc = 0;

	if (rqs->user_filter)
		count(&rqs->totals, wait, over);
	if (!over && wait <= rqs->longest.row.wait_ns && !rqs->summary)
		return 0;
	line->row = *row;
	line->from_start = line->to_end = false;
	if (over || wait > rqs->longest.row.wait_ns)
		rc = rqs_history_ran(rqs->history, row->cpu, row->ts - wait, row->ts, row->pos,
				     &line->ran);
	if (!rc && rqs->summary)
		rc = rqs_summary_add(rqs->summary, line, over);
	if (rc)
		return rc;
	if (over && !rqs->opts->summary)
		rqs_output(rqs)->line(rqs, line);
	if (wait > rqs->longest.row.wait_ns)
		swap_lines(line, &rqs->longest);
	return 0;
}

/*
 * A task was switched in and nobody saw it being queued. If it had given no sign of life before, it
 * has waited since before the start; else the wake-up was missed.
 */
static int take_missed(struct rqs *rqs, const struct rqs_row *row)
{
	struct rqs_line *line = &rqs->line;
	int rc;

	if (rqs->user_filter)
		rqs->totals.missed++;
	if (rqs->no_open_start || row->ts <= rqs->start_ns || rqs_history_lost(rqs->history) ||
	    rqs_history_first_run(rqs->history, row->tid) < row->ts)
		return 0;
	line->row = *row;
	line->row.wait_ns = row->ts - rqs->start_ns;
	if (line->row.wait_ns <= rqs->opts->min_ns)
		return 0;
	line->from_start = true;
	line->to_end = false;
	rqs->nr_open_start++;
	rc = rqs_history_ran(rqs->history, row->cpu, rqs->start_ns, row->ts, row->pos, &line->ran);
	if (!rc)
		rqs_output(rqs)->line(rqs, line);
	return rc;
}

int rqs_take_row(void *ctx, void *data, size_t size)
{
	const struct rqs_row *row = data;
	struct rqs *rqs = ctx;
	int rc;

	if (rqs->error || size < sizeof(*row) || row->cpu >= rqs->nr_cpus)
		return 0;
	if (rqs->user_filter && !rqs_comm_wanted(rqs, row->comm))
		return 0;
	/* a row may be newer than the history taken over so far */
	rc = rqs_history_drain_cpu(rqs->history, &rqs->bpf[0], row->cpu);
	if (!rc)
		rc = row->type == RQS_ROW_WAIT ? take_wait(rqs, row) : take_missed(rqs, row);
	if (rc)
		rqs->error = rc;
	return 0;
}
