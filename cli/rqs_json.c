// SPDX-License-Identifier: BSD-2-Clause
/* runqslower's JSON: an object a line, the last one a summary. Its schema is in the man page. */
#include "rqs.h"

#include <string.h>

#include "json.h"
#include "progress.h"
#include "put.h"
#include "rqs_text.h"

static void print_ids(s32 tid, s32 tgid)
{
	printf(",\"tid\":%d", tid);
	if (tgid < 0)
		printf(",\"tgid\":null");
	else
		printf(",\"tgid\":%d", tgid);
}

static void print_ran(const struct rqs_line *line)
{
	printf(",\"ran\":[");
	for (u32 i = 0; i < line->ran.nr; i++) {
		const struct rqs_share *s = &line->ran.s[i];
		char buf[64 + 2 * PUT_U64_MAX], name[24], *p = buf;

		fputs_unlocked(i ? ",{\"comm\":" : "{\"comm\":", stdout);
		cli_json_str(stdout, rqs_task_name(s->tid, s->comm, line->row.cpu, name));
		p = put_str(p, s->tid < 0 ? ",\"tid\":-" : ",\"tid\":");
		p = put_u64(p, s->tid < 0 ? -(s64)s->tid : s->tid);
		p = put_str(p, ",\"ns\":");
		p = put_u64(p, s->ns);
		*p++ = '}';
		fwrite_unlocked(buf, 1, p - buf, stdout);
	}
	putchar(']');
}

static void print_row(const struct rqs_line *line)
{
	const struct rqs_row *row = &line->row;

	printf("{\"ts_ns\":%llu,\"comm\":", (unsigned long long)row->ts);
	cli_json_str(stdout, row->comm);
	print_ids(row->tid, row->tgid);
	if (row->cpu == U32_MAX)
		printf(",\"cpu\":null");
	else
		printf(",\"cpu\":%u", row->cpu);
	printf(",\"wait_ns\":%llu,\"kind\":\"%s\"", (unsigned long long)row->wait_ns, rqs_kind_of(line));
	if (line->from_start || line->to_end)
		printf(",\"open\":\"%s\"", !line->to_end    ? "start" :
					   line->from_start ? "both" :
							      "end");
	if (rqs_is_doubtful(line))
		printf(",\"doubtful\":true");
	print_ran(line);
	putchar('}');
}

static void json_header(struct rqs *rqs)
{
	rqs_describe(rqs, stderr);
}

static void json_line(struct rqs *rqs, const struct rqs_line *line)
{
	cli_progress_clear();
	print_row(line);
	putchar('\n');
}

static void print_hist(const struct rqs_totals *t)
{
	const char *comma = "";

	printf(",\"hist\":[");
	for (u32 i = 0; i < RQS_NR_BUCKETS; i++) {
		u64 from, to;

		if (!t->hist[i])
			continue;
		rqs_bucket_range(i, &from, &to);
		printf("%s{\"from_ns\":%llu,\"to_ns\":%llu,\"count\":%llu}", comma,
		       (unsigned long long)from, (unsigned long long)to,
		       (unsigned long long)t->hist[i]);
		comma = ",";
	}
	putchar(']');
}

static void print_tasks(struct rqs *rqs)
{
	const struct rqs_task_sum *t;
	u32 nr = rqs_summary_tasks(rqs->summary, &t);

	printf(",\"tasks\":[");
	for (u32 i = 0; i < nr; i++) {
		printf("%s{\"comm\":", i ? "," : "");
		cli_json_str(stdout, t[i].comm);
		print_ids(t[i].tid, t[i].tgid);
		printf(",\"waits\":%llu,\"over\":%llu,\"wait_ns\":%llu,\"longest_ns\":%llu",
		       (unsigned long long)t[i].waits, (unsigned long long)t[i].over,
		       (unsigned long long)t[i].wait_ns, (unsigned long long)t[i].longest);
		if (t[i].from_ns) {
			printf(",\"most_by\":{\"comm\":");
			cli_json_str(stdout, t[i].by_tid ? t[i].by_comm : "idle");
			printf(",\"tid\":%d,\"ns\":%llu}", t[i].by_tid,
			       (unsigned long long)t[i].from_ns);
		}
		putchar('}');
	}
	putchar(']');
}

static void print_profile(struct rqs *rqs)
{
	struct rqs_prof_cell cell[RQS_NR_HANDLERS][RQS_NR_STORAGES];
	const char *comma = "";

	rqs_profile_read(rqs, cell);
	printf(",\"profile\":[");
	for (u32 h = 0; h < RQS_NR_HANDLERS; h++) {
		for (u32 s = 0; s < RQS_NR_STORAGES; s++) {
			const struct rqs_prof_cell *c = &cell[h][s];

			if (!c->known)
				continue;
			printf("%s{\"handler\":\"%s\",\"storage\":\"%s\",\"runs\":%llu", comma,
			       rqs_handler_names[h], rqs_storage_names[s],
			       (unsigned long long)c->runs);
			if (c->runs)
				printf(",\"mean_ns\":%.1f", c->mean_ns);
			if (c->p50_ns)
				printf(",\"p50_ns\":%llu,\"p99_ns\":%llu",
				       (unsigned long long)c->p50_ns,
				       (unsigned long long)c->p99_ns);
			putchar('}');
			comma = ",";
		}
	}
	putchar(']');
}

static void json_end(struct rqs *rqs)
{
	const struct rqs_totals *t = &rqs->totals;

	printf("{\"summary\":{\"metric\":\"%s\",\"min_ns\":%llu,\"start_ns\":%llu,\"end_ns\":%llu,"
	       "\"cpus\":%u",
	       rqs->waking ? "waking" : "wakeup", (unsigned long long)rqs->opts->min_ns,
	       (unsigned long long)rqs->start_ns, (unsigned long long)rqs->end_ns, rqs->nr_cpus);
	printf(",\"storage\":\"%s\",\"waits\":%llu,\"over\":%llu,\"wait_ns\":%llu,\"p99_ns\":%llu,"
	       "\"longest_ns\":%llu",
	       rqs_storage_names[rqs->bpf[0].storage], (unsigned long long)t->waits,
	       (unsigned long long)t->over, (unsigned long long)t->wait_ns,
	       (unsigned long long)(t->waits ? rqs_quantile(t, 0.99) : 0),
	       (unsigned long long)t->longest);
	printf(",\"open\":%llu,\"open_start\":%llu,\"missed\":%llu,\"storage_failures\":%llu,"
	       "\"lost\":%llu",
	       (unsigned long long)rqs->nr_open, (unsigned long long)rqs->nr_open_start,
	       (unsigned long long)t->missed, (unsigned long long)t->failures,
	       (unsigned long long)(rqs->lost + t->rows_lost));
	printf(",\"lost_gaps_unknown\":%llu,\"history_lost\":%llu,\"unknown_tgids\":%llu",
	       (unsigned long long)rqs->lost_gaps,
	       (unsigned long long)(rqs->history ? rqs_history_lost(rqs->history) : 0),
	       (unsigned long long)rqs->unknown_tgids);
	if (rqs->longest.row.wait_ns) {
		printf(",\"longest\":");
		print_row(&rqs->longest);
	}
	if (rqs->opts->hist)
		print_hist(t);
	if (rqs->opts->summary)
		print_tasks(rqs);
	if (rqs->opts->profile)
		print_profile(rqs);
	printf("}}\n");
}

const struct rqs_output rqs_json = { json_header, json_line, json_end };
