// SPDX-License-Identifier: BSD-2-Clause
/* `inlay runqslower`: its options, and which of the two sources it reads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "rqs.h"

#define O(field) offsetof(struct rqs_opts, field)

/* The index of value in names[nr], into *dst (an enum); the names are the message. */
static int choose(const char *value, const char *const *names, int nr, int *dst, struct strbuf *err)
{
	for (int i = 0; i < nr; i++) {
		if (!strcmp(value, names[i])) {
			*dst = i;
			return 0;
		}
	}
	strbuf_puts(err, "is none of ");
	for (int i = 0; i < nr; i++)
		strbuf_printf(err, "%s%s", i ? ", " : "", names[i]);
	return -EINVAL;
}

static int set_storage(const char *value, void *dst, struct strbuf *err)
{
	struct rqs_opts *o = dst;
	int i, rc = choose(value, rqs_storage_names, RQS_NR_STORAGES, &i, err);

	if (rc)
		return rc;
	o->storage = i;
	o->storage_given = true;
	return 0;
}

static int set_attach(const char *value, void *dst, struct strbuf *err)
{
	static const char *const names[] = { "auto", "tp_btf", "raw_tp" };
	int i, rc = choose(value, names, ARRAY_SIZE(names), &i, err);

	if (!rc)
		*(enum rqs_attach *)dst = i;
	return rc;
}

static int set_metric(const char *value, void *dst, struct strbuf *err)
{
	static const char *const names[] = { "auto", "wakeup", "waking" };
	int i, rc = choose(value, names, ARRAY_SIZE(names), &i, err);

	if (!rc)
		*(enum rqs_metric *)dst = i;
	return rc;
}

/* 0-3,7 */
static int set_cpus(const char *value, void *dst, struct strbuf *err)
{
	struct rqs_opts *o = dst;
	const char *c = value;

	do {
		char *end;
		unsigned long from, to;

		from = to = strtoul(c, &end, 10);
		if (end != c && *end == '-') {
			c = end + 1;
			to = strtoul(c, &end, 10);
		}
		if (end == c || strspn(c, "0123456789") != (size_t)(end - c) ||
		    (*end && *end != ',') || (*end && !end[1]) || to < from || to >= RQS_MAX_CPUS) {
			strbuf_printf(err, "is no list of CPUs below %d, e.g. 2 or 0-3,7",
				      RQS_MAX_CPUS);
			return -EINVAL;
		}
		for (; from <= to; from++)
			o->cpu_mask[from / 64] |= 1ULL << (from % 64);
		c = end + (*end == ',');
	} while (*c);
	o->cpu_filter = true;
	return 0;
}

static const struct cli_option runqslower_options[] = {
	{ 'i', "input", "FILE", cli_set_str, O(input),
	  "read a recording (- is standard input): perf.data, trace.dat, the text of perf script, "
	  "trace-cmd report or ftrace, each also compressed with gzip, xz or zstd. Without it: the "
	  "running kernel" },
	{ 'd', "duration", "TIME", cli_parse_time_s, O(duration_ns),
	  "end after TIME (e.g. 500ms, 10s; a bare number is seconds), in a recording: of its "
	  "clock" },
	{ 'p', "pid", "PID", cli_parse_id, O(tgid), "waits of this process's threads only" },
	{ 't', "tid", "TID", cli_parse_id, O(tid), "waits of this thread only" },
	{ 'c', "comm", "GLOB", cli_set_str, O(comm),
	  "waits of tasks with such a name only, e.g. 'nginx*'" },
	{ 'C', "cpu", "CPUS", set_cpus, 0, "waits that end on these CPUs only, e.g. 2 or 0-3,7" },
	{ 0, "cgroup", "CGROUP", cli_set_str, O(cgroup),
	  "waits of tasks in this cgroup only (not in those below it): its path under "
	  "/sys/fs/cgroup, or its id" },
	{ 0, "metric", "NAME", set_metric, O(metric),
	  "where a wait for the CPU begins: wakeup (sched_wakeup: put on a run queue), waking "
	  "(sched_waking: the waker decided to), auto (default): wakeup if it was recorded" },
	{ 0, "summary", NULL, cli_set_flag, O(summary),
	  "a line a task instead of a line a wait: how often and how long it waited, and mostly "
	  "for whom" },
	{ 0, "hist", NULL, cli_set_flag, O(hist), "a histogram of all waits at the end" },
	{ 0, "json", NULL, cli_set_flag, O(json),
	  "print JSON, an object a line, the last one a summary" },
	{ 0, "storage", "NAME", set_storage, 0,
	  "where the BPF program keeps the time a task was queued: task (task local storage, "
	  "default), hash (10,240 entries, preallocated) or hash-noprealloc" },
	{ 0, "attach", "NAME", set_attach, O(attach),
	  "kind of tracepoint program: tp_btf, raw_tp (with a hash only), auto (default): tp_btf "
	  "if there is" },
	{ 0, "profile", NULL, cli_set_flag, O(profile),
	  "run all three storages at once and print how often each handler ran and its mean time" },
	{ 0, "max-lost", "N", cli_parse_u64, O(max_lost),
	  "fail (exit status 1) if more than N events were lost" },
	{},
};

static void defaults(void *opts)
{
	struct rqs_opts *o = opts;

	o->min_ns = 10000000;
	o->max_lost = U64_MAX;
}

static int run(const struct cli_globals *g, void *opts, int argc, char **argv)
{
	struct rqs_opts *o = opts;
	struct rqs rqs = { .opts = o, .g = g };
	struct strbuf why = STRBUF_INIT;

	if (argc && cli_parse_time_us(argv[0], &o->min_ns, &why)) {
		int status = cli_usage(&cmd_runqslower, "MIN: '%s' %s", argv[0], strbuf_str(&why));

		strbuf_fini(&why);
		return status;
	}
	if (o->attach == RQS_ATTACH_RAW_TP && o->storage_given && o->storage == RQS_STORAGE_TASK)
		return cli_usage(&cmd_runqslower,
				 "--attach raw_tp gives no typed tasks, as --storage task needs");
	if (o->summary) {
		rqs.summary = rqs_summary_create();
		if (!rqs.summary)
			return cli_fail("out of memory");
	}
	return o->input ? rqs_run_replay(&rqs) : rqs_run_live(&rqs);
}

const struct cli_command cmd_runqslower = {
	.name = "runqslower",
	.args = "[MIN]",
	.summary = "Who waited for a CPU, how long, and who ran meanwhile",
	.text = "Lists every wait on a run queue longer than MIN: a number with ns, us,\n"
		"ms or s, a bare number is microseconds, 10ms by default; 0 lists all.\n"
		"A wait begins when a task is woken, made, or switched out while it\n"
		"could still run, and ends when it is switched in. Reads the running\n"
		"kernel (as root), or with -i a recording (as anybody).",
	.options = runqslower_options,
	.opts_size = sizeof(struct rqs_opts),
	.defaults = defaults,
	.max_args = 1,
	.run = run,
};
