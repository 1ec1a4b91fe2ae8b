// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints a recording as one line an event, for tests to compare: rec_dump [-i] [-o] [-c] [-s BYTES]
 * [-r RUNS] [-l] FILE -l: recording_opts.by_library; -i: what recording_info() says, as key=value lines, instead; -o: REC_OTHER as
 * well; -c: only count; -s: spool limit; -r: recording_opts.max_runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/recording.h"

static void warn(void *ctx, enum log_level level, const char *text)
{
	fprintf(stderr, "warning: %s\n", text);
}

static const char *type_name(u32 type)
{
	static const char *const rest[] = {"task", "lost", "other"};
	const char *name = rec_event_name(type);

	return name ? name : rest[type - REC_TASK];
}

static void print_info(const struct recording_info *in)
{
	u32 i;

	printf("format=%s\ncompression=%s\nclock=%s\nhost=%s\n", in->format,
	       in->compression ? in->compression : "-", in->clock ? in->clock : "-",
	       in->host ? in->host : "-");
	printf("nr_cpus=%u\ncpus_seen=%u\nts_unit_ns=%u\ntgids_known=%d\ncgroups_known=%d\n",
	       in->nr_cpus, in->cpus_seen, in->ts_unit_ns, in->tgids_known, in->cgroups_known);
	for (i = 0; i < REC_NR_TYPES; i++)
		printf("%s=%llu\nrecorded.%s=%d\n", type_name(i), (unsigned long long)in->events[i],
		       type_name(i), in->recorded[i]);
	printf("lost_events=%llu\nlost_gaps_unknown=%llu\nfirst_ts=%llu\nlast_ts=%llu\nskipped_"
	       "lines=%llu\n",
	       (unsigned long long)in->lost, (unsigned long long)in->lost_gaps_unknown,
	       (unsigned long long)in->first_ts_ns, (unsigned long long)in->last_ts_ns,
	       (unsigned long long)in->skipped_lines);
	printf("by_library=%d\n", in->by_library);
}

static void print_event(const struct recording *rec, const struct rec_event *ev)
{
	const char *cg = ev->cgroup_id ? recording_cgroup(rec, ev->cgroup_id) : NULL;

	printf("%llu cpu=%u cur=%d/%d %s", (unsigned long long)ev->ts_ns, ev->cpu, ev->cur_tgid,
	       ev->cur_tid, type_name(ev->type));
	switch (ev->type) {
	case REC_SWITCH:
		printf(" [%s] %d %d 0x%x%s [%s] %d %d", ev->sw.prev_comm, ev->sw.prev_tid,
		       ev->sw.prev_prio, ev->sw.prev_state, ev->sw.preempt ? "+" : "",
		       ev->sw.next_comm, ev->sw.next_tid, ev->sw.next_prio);
		break;
	case REC_WAKEUP:
	case REC_WAKEUP_NEW:
	case REC_WAKING:
		printf(" [%s] %d %d %d", ev->wakeup.comm, ev->wakeup.tid, ev->wakeup.prio,
		       ev->wakeup.target_cpu);
		break;
	case REC_FORK:
		printf(" [%s] %d [%s] %d %d", ev->fork.parent_comm, ev->fork.parent_tid,
		       ev->fork.child_comm, ev->fork.child_tid, ev->fork.child_tgid);
		break;
	case REC_EXIT:
		printf(" [%s] %d %d %d", ev->exit.comm, ev->exit.tid, ev->exit.prio,
		       ev->exit.group_dead);
		break;
	case REC_MIGRATE:
		printf(" [%s] %d %d %d %d", ev->migrate.comm, ev->migrate.tid, ev->migrate.prio,
		       ev->migrate.orig_cpu, ev->migrate.dest_cpu);
		break;
	case REC_TASK:
		printf(" [%s] %d %d %d", ev->task.comm, ev->task.tid, ev->task.tgid, ev->task.born);
		break;
	case REC_LOST:
		printf(" %llu %d", (unsigned long long)ev->lost.count, ev->lost.cpu);
		break;
	}
	if (cg)
		printf(" cgroup=%s", cg);
	putchar(10);
}

int main(int argc, char **argv)
{
	struct log_sink sink = {.write = warn};
	struct recording_opts opts = {.log = &sink};
	struct strbuf err = STRBUF_INIT;
	bool info = false, count = false;
	struct recording *rec;
	struct rec_event ev;
	unsigned long long n = 0;
	u64 last = 0;
	int opt, ret;

	while ((opt = getopt(argc, argv, "ilocs:r:")) != -1) {
		info |= opt == 'i';
		count |= opt == 'c';
		opts.by_library |= opt == 'l';
		opts.want_other |= opt == 'o';
		if (opt == 's')
			opts.max_spool = strtoull(optarg, NULL, 0);
		if (opt == 'r')
			opts.max_runs = strtoul(optarg, NULL, 0);
	}
	if (optind != argc - 1)
		return 2;
	ret = recording_open(argv[optind], &opts, &err, &rec);
	if (ret) {
		fprintf(stderr, "%s\n", strbuf_str(&err));
		strbuf_fini(&err);
		return 1;
	}
	if (info)
		print_info(recording_info(rec));
	while (!info && (ret = recording_next(rec, &ev)) > 0) {
		n++;
		if (ev.ts_ns < last) {
			fprintf(stderr, "time goes back at event %llu\n", n);
			return 1;
		}
		last = ev.ts_ns;
		if (!count)
			print_event(rec, &ev);
	}
	if (count)
		printf("%llu\n", n);
	if (ret < 0)
		fprintf(stderr, "%s\n", recording_error(rec));
	recording_close(rec);
	return ret < 0;
}
