// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who waits right now: every live task is looked up in the map of stamps through bpf(2). Used at the end, for the rows
 * of tasks that still wait, and now and then to know which history can be shortened.
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
 * A stamp alone does not say that the task waits: one that was woken while it ran kept its stamp when it went to sleep,
 * or still runs.
 */
static bool still_waits(struct rqs *rqs, const struct cli_task *task, const struct rqs_stamp *stamp)
{
	if (!stamp->ts || !task->runnable || rqs_history_runs_now(rqs->history, task->tid))
		return false;
	return rqs_history_last_out(rqs->history, task->tid) <= stamp->ts;
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
	int rc;

	if (filtered_out(rqs, task, cpu))
		return 0;
	rc = look_up(rqs, task->tid, &stamp);
	if (rc)
		return rc;
	if (rqs->config.cgroup_id && cli_engine_cgroup(rqs->engine, task) != rqs->config.cgroup_id)
		return 0;
	if (!still_waits(rqs, task, &stamp) || stamp.ts >= f->now || f->now - stamp.ts <= rqs->opts->min_ns)
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
	line->open = true;
	line->row.ts = f->now;
	line->row.wait_ns = f->now - stamp.ts;
	line->row.tid = task->tid;
	line->row.tgid = task->tgid;
	line->row.cpu = cpu;
	line->row.kind = stamp.kind < RQS_NR_KINDS ? stamp.kind : RQS_WOKEN;
	memcpy(line->row.comm, task->comm, sizeof(line->row.comm));
	return rqs_history_ran(rqs->history, cpu, stamp.ts, f->now, U64_MAX, &line->ran);
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
