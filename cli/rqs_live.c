// SPDX-License-Identifier: BSD-2-Clause
/*
 * runqslower on the running kernel: attaches, reads until the time is up or a signal says so, looks
 * who still waits.
 */
#include "rqs.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "cgroup.h"
#include "cli.h"

#define LIVE_ROW_BYTES (1u << 22)
#define POLL_MAX_MS    100
#define POLL_MIN_MS    5

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = 1;
}

/*
 * SIGPIPE is ignored everywhere (main.c): a reader that goes away ends the run as a signal does, in
 * order. SA_RESTART, so that a signal never cuts a row in two.
 */
static void catch_signals(void)
{
	struct sigaction stop = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
}

static u64 clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/*
 * Whoever is listed with -p or -t must exist: a filter that matches nothing looks like a quiet
 * machine.
 */
static int check_target(const struct rqs_opts *o)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u", o->tgid ? o->tgid : o->tid);
	if ((o->tgid || o->tid) && access(path, F_OK))
		return cli_fail("no %s %u is running (%s)", o->tgid ? "process" : "task",
				o->tgid ? o->tgid : o->tid, o->tgid ? "-p" : "-t");
	if (o->tgid) {
		snprintf(path, sizeof(path), "/proc/%u/task/%u", o->tgid, o->tgid);
		if (access(path, F_OK))
			return cli_fail("%u is a thread, not a process: use -t %u", o->tgid,
					o->tgid);
	}
	return CLI_OK;
}

/* A cgroup's id is its directory's inode number; a number is taken as the id. */
static int find_cgroup(struct rqs *rqs)
{
	const char *name = rqs->opts->cgroup;
	struct strbuf why = STRBUF_INIT;
	int rc = CLI_OK;

	if (!name)
		return CLI_OK;
	rqs->config.cgroup_id = cli_cgroup_id(name);
	if (!rqs->config.cgroup_id && cli_parse_u64(name, &rqs->config.cgroup_id, &why))
		rc = cli_fail("--cgroup: no cgroup %s below %s", name, cli_cgroup_root());
	strbuf_fini(&why);
	return rc;
}

/* May this process load BPF at all? Said in one line before libbpf says it in four. */
static int check_privilege(void)
{
	char text[4096];
	unsigned long long caps = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(text, sizeof(text), f))
		if (sscanf(text, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	/* CAP_SYS_ADMIN 21, or CAP_PERFMON 38 and CAP_BPF 39 */
	if (caps >> 21 & 1 || ((caps >> 38 & 1) && (caps >> 39 & 1)))
		return CLI_OK;
	return cli_fail("a live run loads BPF into the kernel, which needs root (or CAP_BPF and "
			"CAP_PERFMON); a recording needs nothing: inlay runqslower -i FILE");
}

/* Nobody will read what is written: said by poll() even while there is nothing to write. */
static bool reader_gone(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return poll(&out, 1, 0) > 0 && out.revents & POLLERR;
}

/* How full the fullest history ring got since the last look, 0..1. */
static double ring_fill(const struct rqs *rqs, u64 *last)
{
	double fill = 0;

	for (u32 i = 0; i < rqs->nr_cpus; i++) {
		u64 pos = rqs_bpf_cpu(&rqs->bpf[0], i)->pos;
		double f = (double)(pos - last[i]) / (rqs->bpf[0].ring_mask + 1);

		fill = max_of(fill, f);
		last[i] = pos;
	}
	return fill;
}

static int live_loop(struct rqs *rqs, u64 until)
{
	u64 last[1024] = {};
	int wait = POLL_MAX_MS / 2, rc = 0;

	while (!rc && !stopped) {
		u64 now = clock_ns(CLOCK_MONOTONIC);
		double fill;

		if (until && now >= until)
			break;
		if (until && until - now < wait * 1000000ULL)
			rc = ring_buffer__poll(rqs->bpf[0].ring, (until - now) / 1000000 + 1);
		else
			rc = ring_buffer__poll(rqs->bpf[0].ring, wait);
		rc = rc < 0 && rc != -EINTR ? rc : rqs_collect(rqs);
		if (!rc)
			rc = rqs_maybe_reduce(rqs, now);
		if (fflush(stdout) || reader_gone())
			stopped = 1;
		fill = rqs->nr_cpus <= ARRAY_SIZE(last) ? ring_fill(rqs, last) : 1;
		if (fill > 0.25 && wait > POLL_MIN_MS)
			wait = max_of(wait / 2, POLL_MIN_MS);
		else if (fill < 0.05 && wait < POLL_MAX_MS)
			wait = min_of(wait * 2, POLL_MAX_MS);
	}
	return rc;
}

/* 1 MiB of history a CPU, less where there may be many CPUs: the kernel cannot swap it. */
static u32 ring_entries(u32 nr_cpus)
{
	return nr_cpus <= 16 ? 1u << 15 : nr_cpus <= 64 ? 1u << 14 : 1u << 13;
}

static int live_run(struct rqs *rqs)
{
	int status = rqs_start(rqs, ring_entries(rqs->nr_cpus), LIVE_ROW_BYTES), rc;

	if (status)
		return status;
	rqs->start_ns = clock_ns(CLOCK_MONOTONIC);
	rqs->wall_offset = clock_ns(CLOCK_REALTIME) - rqs->start_ns;
	rqs->history = rqs_history_create(rqs->nr_cpus, rqs->start_ns);
	if (!rqs->history)
		return cli_fail("out of memory");
	rqs_output(rqs)->header(rqs);
	fflush(stdout);
	rc = rqs_note_runnable(rqs);
	if (!rc)
		rc = live_loop(rqs,
			       rqs->opts->duration_ns ? rqs->start_ns + rqs->opts->duration_ns : 0);
	for (u32 i = 0; i < rqs->nr_bpf; i++)
		rqs_bpf_detach(&rqs->bpf[i]);
	rqs->end_ns = clock_ns(CLOCK_MONOTONIC);
	if (!rc)
		rc = rqs_collect(rqs);
	if (!rc)
		rc = rqs_find_open(rqs, rqs->end_ns);
	if (rc)
		return cli_fail("reading the rows: %s", cli_strerror(rc));
	return rqs_finish(rqs);
}

int rqs_run_live(struct rqs *rqs)
{
	int status = cli_engine_create(rqs->g, "kernel", NULL, &rqs->engine), nr;

	if (status)
		return status;
	if (rqs->engine->inlay)
		status = cli_usage(NULL, "--engine user runs nothing by itself: runqslower needs a "
					 "recording (-i FILE)");
	if (!status)
		status = check_privilege();
	if (!status)
		status = check_target(rqs->opts);
	if (!status)
		status = find_cgroup(rqs);
	if (status)
		goto out;
	nr = libbpf_num_possible_cpus();
	if (nr < 0) {
		status = cli_fail("number of CPUs: %s", cli_strerror(nr));
		goto out;
	}
	rqs->live = true;
	rqs->nr_cpus = nr;
	rqs->waking = rqs->opts->metric == RQS_METRIC_WAKING;
	rqs->ts_decimals = 6;
	rqs->config.self_tgid = getpid();
	rqs_configure(rqs);
	catch_signals();
	cli_engine_enter(rqs->engine);
	status = live_run(rqs);
	rqs_fini(rqs);
	cli_engine_leave(rqs->engine);
out:
	cli_engine_destroy(rqs->engine);
	return status;
}
