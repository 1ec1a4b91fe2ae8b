// SPDX-License-Identifier: BSD-2-Clause
/* The first line: what the rows come from. */
#include "rqs.h"

#include <unistd.h>

#include "replay/recording.h"
#include "rqs_text.h"

static void describe_live(struct rqs *rqs, FILE *f)
{
	char min[16];

	rqs_print_short(rqs->opts->min_ns, min, sizeof(min));
	fprintf(f,
		"running kernel, %u CPUs, waits over %s from sched_%s, %s storage, bpf(2) of the "
		"kernel",
		rqs->nr_cpus, min, rqs->waking ? "waking" : "wakeup",
		rqs_storage_names[rqs->bpf[0].storage]);
	if (rqs->bpf[0].raw_tp)
		fputs(", raw tracepoints", f);
	fputs(rqs->opts->duration_ns ? "\n" : "; Ctrl-C ends\n", f);
}

static void describe_recording(struct rqs *rqs, FILE *f)
{
	const struct recording_info *info = rqs->info;
	u64 events = 0, length = rqs->end_ns - rqs->start_ns;

	for (int t = 0; t < REC_NR_TYPES; t++)
		if (t != REC_TASK && t != REC_LOST)
			events += info->events[t];
	fprintf(f, "%s: %s", rqs->opts->input, info->format);
	if (info->compression)
		fprintf(f, " in %s", info->compression);
	fprintf(f, ", %llu.%03llu s, %u CPUs, %llu events, ",
		(unsigned long long)(length / 1000000000),
		(unsigned long long)(length / 1000000 % 1000), info->cpus_seen,
		(unsigned long long)events);
	if (info->lost_gaps_unknown)
		fprintf(f, "at least ");
	fprintf(f, "%llu lost; waits from sched_%s; uid %u, bpf(2) %s\n",
		(unsigned long long)info->lost, rqs->waking ? "waking" : "wakeup", getuid(),
		rqs->engine->inlay ? "not used" : "of the kernel");
}

void rqs_describe(struct rqs *rqs, FILE *f)
{
	if (rqs->live)
		describe_live(rqs, f);
	else
		describe_recording(rqs, f);
}
