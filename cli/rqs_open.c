// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who waits right now: every live task is looked up in the map of stamps through bpf(2). Used at
 * the end, for the rows of tasks that still wait, and now and then to know which history can be
 * shortened.
 */
#include "rqs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* Tells stamp's owner; a stamp with ts 0 is none. */
static int look_up(struct rqs *rqs, s32 tid, struct rqs_stamp *stamp)
{
	struct rqs_bpf *bpf = &rqs->bpf[0];
	int fd, rc;

	memset(stamp, 0, sizeof(*stamp));
	if (bpf->storage != RQS_STORAGE_TASK) {
		rc = bpf_map_lookup_elem(bpf_map__fd(bpf->start), &tid, stamp);
		return rc == -ENOENT ? 0 : rc;
	}
	fd = cli_engine_pidfd(rqs->engine, tid);
	if (fd < 0)
		return fd == -ESRCH ? 0 : fd;
	rc = bpf_map_lookup_elem(bpf_map__fd(bpf->start), &fd, stamp);
	close(fd);
	return rc == -ENOENT || rc == -ESRCH ? 0 : rc;
}

struct starts {
	struct rqs *rqs;
	u64 *ts;
	u32 nr, cap;
};

static int collect_start(const struct cli_task *task, void *ctx)
{
	struct starts *s = ctx;
	struct rqs_stamp stamp;
	int rc = look_up(s->rqs, task->tid, &stamp);

	if (rc || !stamp.ts)
		return rc;
	if (s->nr == s->cap) {
		u32 cap = s->cap ? s->cap * 2 : 256;
		u64 *grown = realloc(s->ts, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->ts = grown;
		s->cap = cap;
	}
	s->ts[s->nr++] = stamp.ts;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

int rqs_maybe_reduce(struct rqs *rqs, u64 now)
{
	struct starts s = { .rqs = rqs };
	int rc;

	if (!rqs_history_full(rqs->history) || rqs->engine->threads_hidden)
		return 0;
	rc = cli_engine_each_task(rqs->engine, collect_start, &s);
	/* rows of waits that ended meanwhile need their history as well */
	if (!rc)
		rc = rqs_collect(rqs);
	if (!rc && !rqs->engine->threads_hidden) {
		if (s.nr)
			qsort(s.ts, s.nr, sizeof(*s.ts), by_time);
		rqs_history_reduce(rqs->history, s.ts, s.nr, now);
	}
	free(s.ts);
	return rc;
}

struct finding {
	struct rqs *rqs;
	u64 now;
	u32 cap;
};

/*
 * A stamp alone does not say that the task waits: one that was woken while it ran kept its stamp
 * when it went to sleep, or still runs. Where the history does not tell, the task must be runnable.
 */
static bool still_waits(struct rqs *rqs, const struct cli_task *task, const struct rqs_stamp *stamp)
{
	const struct rqs_history *h = rqs->history;

	if (!stamp->ts || rqs_history_runs_now(h, task->tid) ||
	    rqs_history_last_out(h, task->tid) > stamp->ts)
		return false;
	if (stamp->ts < rqs->start_ns) /* stamped while programs were still being attached: it may
					  have run unseen */
		return task->runnable && rqs_history_first_run(h, task->tid) == U64_MAX;
	return task->runnable || !rqs_history_lost(h);
}

static int note_task(const struct cli_task *task, void *ctx)
{
	struct rqs *rqs = ctx;
	struct rqs_runnable *grown;

	if (!task->runnable)
		return 0;
	grown = realloc(rqs->runnable, (rqs->nr_runnable + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	rqs->runnable = grown;
	grown[rqs->nr_runnable++] =
		(struct rqs_runnable){ task->tid, cli_engine_ran_ns(rqs->engine, task->tid) };
	return 0;
}

int rqs_note_runnable(struct rqs *rqs)
{
	return cli_engine_each_task(rqs->engine, note_task, rqs);
}

/*
 * The worst victim gives no sign at all: it was queued before the start and has not run since. It
 * was runnable then, is now, was never switched in, and has had no CPU time meanwhile (as one has
 * that runs alone on its CPU all the time).
 */
static bool waited_all_along(struct rqs *rqs, const struct cli_task *task)
{
	if (!task->runnable || rqs_history_first_run(rqs->history, task->tid) != U64_MAX ||
	    rqs_history_lost(rqs->history))
		return false;
	for (u32 i = 0; i < rqs->nr_runnable; i++)
		if (rqs->runnable[i].tid == task->tid)
			return rqs->runnable[i].ran_ns != U64_MAX &&
			       rqs->runnable[i].ran_ns == cli_engine_ran_ns(rqs->engine, task->tid);
	return false;
}

static bool filtered_out(const struct rqs *rqs, const struct cli_task *task, u32 cpu)
{
	const struct rqs_opts *o = rqs->opts;

	if (rqs->config.self_tgid && task->tgid == (s32)rqs->config.self_tgid)
		return true;
	if ((o->tgid && task->tgid != (s32)o->tgid) || (o->tid && task->tid != (s32)o->tid))
		return true;
	if (o->cpu_filter && (cpu >= RQS_MAX_CPUS || !(o->cpu_mask[cpu / 64] >> (cpu % 64) & 1)))
		return true;
	return !rqs_comm_wanted(rqs, task->comm);
}

static int find_one(const struct cli_task *task, void *ctx)
{
	struct finding *f = ctx;
	struct rqs *rqs = f->rqs;
	u32 cpu = task->cpu < 0 ? U32_MAX : (u32)task->cpu;
	struct rqs_stamp stamp;
	struct rqs_line *line;
	bool from_start;
	int rc;

	if (filtered_out(rqs, task, cpu))
		return 0;
	rc = look_up(rqs, task->tid, &stamp);
	if (rc)
		return rc;
	if (rqs->config.cgroup_id && cli_engine_cgroup(rqs->engine, task) != rqs->config.cgroup_id)
		return 0;
	from_start = !stamp.ts && waited_all_along(rqs, task);
	if (from_start)
		stamp.ts = rqs->start_ns;
	else if (!still_waits(rqs, task, &stamp))
		return 0;
	if (stamp.ts >= f->now || f->now - stamp.ts <= rqs->opts->min_ns)
		return 0;
	if (rqs->nr_open_end == f->cap) {
		u32 cap = f->cap ? f->cap * 2 : 16;
		struct rqs_line *grown = realloc(rqs->open_end, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		rqs->open_end = grown;
		f->cap = cap;
	}
	line = &rqs->open_end[rqs->nr_open_end++];
	memset(line, 0, sizeof(*line));
	line->to_end = true;
	line->from_start = from_start;
	line->row.ts = f->now;
	line->row.wait_ns = f->now - stamp.ts;
	line->row.tid = task->tid;
	line->row.tgid = task->tgid;
	line->row.cpu = cpu;
	line->row.kind = stamp.kind < RQS_NR_KINDS ? stamp.kind : RQS_WOKEN;
	memcpy(line->row.comm, task->comm, sizeof(line->row.comm));
	return 0; /* its shares when it is printed: all of them at once would be tasks times tasks */
}

static int by_wait(const void *a, const void *b)
{
	const struct rqs_line *x = a, *y = b;

	if (x->row.wait_ns != y->row.wait_ns)
		return x->row.wait_ns < y->row.wait_ns ? 1 : -1;
	return x->row.tid < y->row.tid ? -1 : x->row.tid > y->row.tid;
}

int rqs_find_open(struct rqs *rqs, u64 now)
{
	struct finding f = { .rqs = rqs, .now = now };
	int rc = cli_engine_each_task(rqs->engine, find_one, &f);

	if (rqs->nr_open_end)
		qsort(rqs->open_end, rqs->nr_open_end, sizeof(*rqs->open_end), by_wait);
	return rc;
}
