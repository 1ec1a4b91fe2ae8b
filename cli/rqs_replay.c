// SPDX-License-Identifier: BSD-2-Clause
/*
 * runqslower on a recording: the events are replayed on the user engine's machine and the same BPF
 * object measures. The history and rows it writes are taken over every few hundred switches, so
 * nothing it says is ever lost.
 */
#include "rqs.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cgroup.h"
#include "cli.h"
#include "object/instance.h"
#include "progress.h"
#include "replay/recording.h"
#include "replay/replay.h"

#define ROW_BYTES (1u << 20)

struct replay_run {
	struct rqs *rqs;
	struct recording *rec;
	struct replay *replay;
	u32 switches, batch; /* since the last collection, and when to collect */
	bool target_seen;    /* the process or thread of -p, -t occurs */
	bool begun;	     /* the header is printed */
	int error;	     /* sticky */
};

static volatile int stop;

/* Output begins when it is known that there will be any: not for a -p or -t that never occurs. */
static void begin_output(struct replay_run *run)
{
	const struct rqs_opts *o = run->rqs->opts;

	if (run->begun || ((o->tgid || o->tid) && !run->target_seen))
		return;
	run->begun = true;
	rqs_output(run->rqs)->header(run->rqs);
}

static void on_signal(int sig)
{
	stop = 1;
}

static void collect(struct replay_run *run, u64 now)
{
	int rc;

	begin_output(run);
	rc = rqs_collect(run->rqs);
	run->switches = 0;
	cli_progress(NULL, "replaying", now - run->rqs->start_ns,
		     run->rqs->info->last_ts_ns - run->rqs->start_ns);
	if (!rc)
		rc = rqs_maybe_reduce(run->rqs, now);
	if (rc) {
		run->error = rc;
		stop = 1;
	}
	if (ferror(stdout)) /* the reader went away */
		stop = 1;
}

/* Signs of life and of the task asked for that the programs do not see. */
static void look_at(struct replay_run *run, const struct rec_event *ev)
{
	const struct rqs_opts *o = run->rqs->opts;
	struct rqs_history *h = run->rqs->history;
	u64 before = ev->ts_ns ? ev->ts_ns - 1 : 0; /* a switch at the same time comes after it */

	switch ((enum rec_event_type)ev->type) {
	case REC_SWITCH:
		run->target_seen |= o->tid && (o->tid == (u32)ev->sw.next_tid ||
					       o->tid == (u32)ev->sw.prev_tid);
		break;
	case REC_WAKEUP:
	case REC_WAKEUP_NEW:
	case REC_WAKING:
		if ((ev->type == REC_WAKEUP && run->rqs->waking) ||
		    (ev->type == REC_WAKING && !run->rqs->waking))
			break;
		rqs_history_saw(h, ev->wakeup.tid, before);
		run->target_seen |= o->tid && o->tid == (u32)ev->wakeup.tid;
		break;
	case REC_FORK:
		rqs_history_saw(h, ev->fork.child_tid, before);
		run->target_seen |= o->tgid && o->tgid == (u32)ev->fork.child_tgid;
		break;
	case REC_TASK:
		run->target_seen |= o->tgid && o->tgid == (u32)ev->task.tgid;
		break;
	case REC_LOST:
		/* from here on a task nobody saw being queued may simply have been missed */
		run->rqs->no_open_start = true;
		break;
	case REC_EXIT:
	case REC_MIGRATE:
	case REC_OTHER:
	case REC_NR_TYPES:
		break;
	}
	run->target_seen |= o->tgid && o->tgid == (u32)ev->cur_tgid;
}

static void after_event(void *ctx, const struct rec_event *ev)
{
	struct replay_run *run = ctx;

	look_at(run, ev);
	if (ev->type == REC_SWITCH && ++run->switches >= run->batch)
		collect(run, ev->ts_ns);
}

/* ---- before the first event ---- */

static void warn_no_wakeups(const struct rqs *rqs)
{
	fprintf(stderr,
		"inlay: %s holds no wake-ups (sched_wakeup, sched_waking): only tasks that were "
		"switched out while they could run are seen to wait. Record them with\n"
		"inlay:   perf record -a -e "
		"sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_migrate_"
		"task,sched:sched_process_fork,sched:sched_process_exit -- sleep 10\n"
		"inlay: or trace-cmd record with the same -e options\n",
		rqs->opts->input);
}

static int choose_metric(struct rqs *rqs)
{
	const u64 *n = rqs->info->events;

	switch (rqs->opts->metric) {
	case RQS_METRIC_WAKEUP:
		break;
	case RQS_METRIC_WAKING:
		rqs->waking = true;
		break;
	case RQS_METRIC_AUTO:
		rqs->waking = !n[REC_WAKEUP] && n[REC_WAKING];
		break;
	}
	if (!n[REC_SWITCH])
		return cli_fail("%s holds no sched_switch events: nothing says when a task began "
				"to run. Record with perf record -a -e "
				"sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new",
				rqs->opts->input);
	if (n[rqs->waking ? REC_WAKING : REC_WAKEUP])
		return CLI_OK;
	rqs->no_open_start = true;
	if (rqs->opts->metric != RQS_METRIC_AUTO && n[REC_WAKEUP] + n[REC_WAKING])
		return cli_fail("%s holds no sched_%s events, but sched_%s: use --metric %s",
				rqs->opts->input, rqs->waking ? "waking" : "wakeup",
				rqs->waking ? "wakeup" : "waking",
				rqs->waking ? "wakeup" : "waking");
	warn_no_wakeups(rqs);
	return CLI_OK;
}

/*
 * Looks for the id of a cgroup the recording names: only events say which ids occur, so they are
 * read once more.
 */
static int find_cgroup_id(struct rqs *rqs, const char *name)
{
	struct strbuf err = STRBUF_INIT;
	struct recording *rec;
	struct rec_event ev;
	int rc = recording_open(rqs->opts->input, NULL, &err, &rec);

	if (rc) {
		rc = cli_fail("%s", strbuf_str(&err));
		strbuf_fini(&err);
		return rc;
	}
	while (!rqs->config.cgroup_id && recording_next(rec, &ev) == 1) {
		const char *path = ev.cgroup_id ? recording_cgroup(rec, ev.cgroup_id) : NULL;

		if (path && !strcmp(cli_cgroup_name(path), cli_cgroup_name(name)))
			rqs->config.cgroup_id = ev.cgroup_id;
	}
	recording_close(rec);
	if (!rqs->config.cgroup_id)
		return cli_fail("--cgroup: no cgroup %s in %s", name, rqs->opts->input);
	return CLI_OK;
}

static int check_filters(struct rqs *rqs)
{
	const struct rqs_opts *o = rqs->opts;
	struct strbuf why = STRBUF_INIT;
	int status = CLI_OK;

	if (o->tgid && !rqs->info->tgids_known)
		return cli_fail("-p: %s does not say which process a thread belongs to; choose "
				"threads with -t or -c",
				o->input);
	if (!o->cgroup)
		return CLI_OK;
	if (!rqs->info->cgroups_known)
		return cli_fail(
			"--cgroup: %s holds no cgroups; perf record --all-cgroups records them",
			o->input);
	if (cli_parse_u64(o->cgroup, &rqs->config.cgroup_id, &why)) {
		rqs->config.cgroup_id = 0;
		status = !strcmp(o->input, "-") ?
				 cli_usage(&cmd_runqslower,
					   "--cgroup needs the id where the recording is read from "
					   "standard input") :
				 find_cgroup_id(rqs, o->cgroup);
	}
	strbuf_fini(&why);
	return status;
}

/* ---- the replay ---- */

static int replay_all(struct replay_run *run)
{
	struct rqs *rqs = run->rqs;
	u64 until = rqs->opts->duration_ns ? rqs->start_ns + rqs->opts->duration_ns : 0;
	int rc = replay_run(run->replay, until, &stop), end_rc;
	const struct replay_stats *st = replay_stats(run->replay);

	cli_progress_clear();
	if (rc < 0 && !run->error)
		run->error = rc;
	begin_output(run);
	end_rc = rqs_collect(rqs);
	if (end_rc && !run->error)
		run->error = end_rc;
	if (!rc)
		rqs->end_ns = rqs->info->last_ts_ns;
	else
		rqs->end_ns = rc > 0 && !stop && until ? until : st->last_ts_ns;
	rqs->lost = rc ? st->lost : rqs->info->lost;
	rqs->lost_gaps = rc ? st->lost_gaps_unknown : rqs->info->lost_gaps_unknown;
	rqs->unknown_tgids = st->unknown_tgid;
	end_rc = rqs_find_open(rqs, rqs->end_ns);
	if (end_rc && !run->error)
		run->error = end_rc;
	return rc;
}

static int finish(struct replay_run *run, int rc)
{
	const struct rqs_opts *o = run->rqs->opts;
	int status;

	if (!rc && !run->error && (o->tgid || o->tid) && !run->target_seen)
		return cli_fail("no %s %u in %s (%s)", o->tgid ? "process" : "task",
				o->tgid ? o->tgid : o->tid, o->input, o->tgid ? "-p" : "-t");
	begin_output(run);
	status = rqs_finish(run->rqs);
	if (rc < 0)
		return cli_fail("%s", replay_error(run->replay));
	if (run->error)
		return cli_fail("reading the rows: %s", cli_strerror(run->error));
	return status;
}

static int replay_with_engine(struct rqs *rqs, struct recording *rec)
{
	u32 entries = rqs->nr_cpus <= 16 ? 4096 : 1024;
	struct replay_run run = { .rqs = rqs, .rec = rec, .batch = entries / 4 };
	struct replay_opts ro = { .after = after_event, .ctx = &run };
	int status = rqs_start(rqs, entries, ROW_BYTES), rc;

	if (status)
		return status;
	rqs->history = rqs_history_create(rqs->nr_cpus, rqs->start_ns);
	if (!rqs->history)
		return cli_fail("out of memory");
	rc = replay_create(rqs->engine->inlay->env, rec, &ro, &run.replay);
	if (rc)
		return cli_fail("cannot replay %s: %s", rqs->opts->input, cli_strerror(rc));
	begin_output(&run);
	rc = replay_all(&run);
	status = finish(&run, rc);
	replay_destroy(run.replay);
	return status;
}

static int run_engine(struct rqs *rqs, struct recording *rec)
{
	struct cli_engine_opts eo = { .nr_cpus = rqs->nr_cpus, .manual_clock = true };
	int status = cli_engine_create(rqs->g, "user", &eo, &rqs->engine);

	if (status)
		return status;
	if (!rqs->engine->inlay) {
		status = cli_usage(&cmd_runqslower,
				   "a recording is replayed on the user engine, not in the kernel");
	} else {
		cli_engine_enter(rqs->engine);
		status = replay_with_engine(rqs, rec);
		rqs_fini(rqs);
		cli_engine_leave(rqs->engine);
	}
	cli_engine_destroy(rqs->engine);
	return status;
}

int rqs_run_replay(struct rqs *rqs)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct recording_opts ro = { .progress = cli_progress, .log = &cli_warnings };
	struct strbuf err = STRBUF_INIT;
	struct recording *rec;
	int status;

	/* before any thread is there: readers of some formats fork a child */
	if (recording_open(rqs->opts->input, &ro, &err, &rec)) {
		cli_progress_clear();
		status = cli_fail("%s", strbuf_str(&err));
		strbuf_fini(&err);
		return status;
	}
	cli_progress_clear();
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	rqs->info = recording_info(rec);
	rqs->nr_cpus = max_of(rqs->info->nr_cpus, 1u);
	rqs->start_ns = rqs->info->first_ts_ns;
	rqs->end_ns = rqs->info->last_ts_ns;
	rqs->ts_decimals = rqs->info->ts_unit_ns < 1000 ? 9 : 6;
	status = choose_metric(rqs);
	if (!status)
		status = check_filters(rqs);
	if (!status) {
		cli_warnings_release();
		rqs_configure(rqs);
		status = run_engine(rqs, rec);
	}
	recording_close(rec);
	strbuf_fini(&err);
	return status;
}
