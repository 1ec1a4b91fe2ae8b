// SPDX-License-Identifier: BSD-2-Clause
/*
 * runqslower's text: a line on the source, a line a wait, histogram and tables on request, a last
 * line of totals.
 */
#include "rqs.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "progress.h"
#include "put.h"
#include "rqs_text.h"

static void print_ms(u64 ns, int width)
{
	char buf[PUT_U64_MAX + 8];

	*put_ms(buf, ns) = 0;
	printf("%*s", width, buf);
}

/* A task's name may hold anything: what would steer a terminal is shown as '?'. */
static void print_comm(const char *comm, int width)
{
	char buf[64];
	size_t i;

	for (i = 0; comm[i] && i < sizeof(buf) - 1; i++)
		buf[i] = iscntrl((unsigned char)comm[i]) ? '?' : comm[i];
	buf[i] = 0;
	printf("%-*s", width, buf);
}

static void print_id(s32 id, int width)
{
	if (id < 0)
		printf(" %*s", width, "?");
	else
		printf(" %*d", width, id);
}

static void print_time(const struct rqs *rqs, u64 ts)
{
	u64 sec, frac;
	char buf[32];

	if (rqs->live) {
		time_t wall = (ts + rqs->wall_offset) / 1000000000ULL;
		struct tm tm;

		localtime_r(&wall, &tm);
		printf("%02d:%02d:%02d.%06llu ", tm.tm_hour, tm.tm_min, tm.tm_sec,
		       (unsigned long long)((ts + rqs->wall_offset) % 1000000000ULL / 1000));
		return;
	}
	sec = ts / 1000000000ULL;
	frac = ts % 1000000000ULL;
	if (rqs->ts_decimals < 9)
		snprintf(buf, sizeof(buf), "%llu.%06llu", (unsigned long long)sec,
			 (unsigned long long)frac / 1000);
	else
		snprintf(buf, sizeof(buf), "%llu.%09llu", (unsigned long long)sec,
			 (unsigned long long)frac);
	printf("%16s", buf);
}

static void column_heads(struct rqs *rqs)
{
	if (rqs->header_done)
		return;
	rqs->header_done = true;
	printf("%-16s %-15s %7s %7s %3s %15s %-9s %s\n", "TIME", "TASK", "TID", "TGID", "CPU",
	       "WAIT", "KIND", "RAN ON THIS CPU MEANWHILE");
}

static void print_ran(const struct rqs_line *line)
{
	char buf[4096], *p = buf;

	for (u32 i = 0; i < line->ran.nr; i++) {
		const struct rqs_share *s = &line->ran.s[i];
		char name[24];
		const char *c = rqs_task_name(s->tid, s->comm, line->row.cpu, name);

		if (p > buf + sizeof(buf) - (24 + 4 * PUT_U64_MAX)) {
			fwrite_unlocked(buf, 1, p - buf, stdout);
			p = buf;
		}

		if (i)
			p = put_str(p, ", ");
		for (; *c; c++)
			*p++ = iscntrl((unsigned char)*c) ? '?' : *c;
		if (s->tid > 0) {
			*p++ = '/';
			p = put_u64(p, s->tid);
		}
		*p++ = ' ';
		p = put_ms(p, s->ns);
	}
	*p++ = '\n';
	fwrite_unlocked(buf, 1, p - buf, stdout);
}

static void print_row(struct rqs *rqs, const struct rqs_line *line)
{
	const struct rqs_row *row = &line->row;
	bool open = line->from_start || line->to_end;
	char wait[40], kind[16];

	print_time(rqs, row->ts);
	putchar(' ');
	print_comm(row->comm, 15);
	print_id(row->tid, 7);
	print_id(row->tgid, 7);
	if (row->cpu == U32_MAX)
		printf("   ?");
	else
		printf(" %3u", row->cpu);
	/* printf's width counts bytes, and the sign has three */
	snprintf(wait, sizeof(wait), "%s%llu.%03llu ms", open ? "≥ " : "",
		 (unsigned long long)(row->wait_ns / 1000000),
		 (unsigned long long)(row->wait_ns / 1000 % 1000));
	snprintf(kind, sizeof(kind), "%s%s", rqs_kind_of(line), rqs_is_doubtful(line) ? "?" : "");
	printf(" %*s %-10s", open ? 17 : 15, wait, kind);
	print_ran(line);
}

static void text_header(struct rqs *rqs)
{
	if (!rqs->live) {
		rqs_describe(rqs, stdout);
		return;
	}
	rqs_describe(rqs, stderr);
	if (!rqs->opts->summary)
		column_heads(rqs);
}

static void text_line(struct rqs *rqs, const struct rqs_line *line)
{
	cli_progress_clear();
	column_heads(rqs);
	print_row(rqs, line);
}

/* A bucket a power of two, those from the first to the last that is not empty. */
static void print_hist(const struct rqs_totals *t)
{
	u64 octave[64] = {}, most = 0;
	u32 first = 64, last = 0;

	for (u32 i = 0; i < RQS_NR_BUCKETS; i++) {
		u64 from, to;
		u32 o;

		if (!t->hist[i])
			continue;
		rqs_bucket_range(i, &from, &to);
		o = from ? 63 - __builtin_clzll(from) : 0;
		octave[o] += t->hist[i];
		first = min_of(first, o);
		last = max_of(last, o);
		most = max_of(most, octave[o]);
	}
	printf("\n%24s %10s\n", "WAIT", "COUNT");
	for (u32 o = first; o <= last; o++) {
		char from[16], to[16];

		rqs_print_short(o ? 1ULL << o : 0, from, sizeof(from));
		rqs_print_short(o == 63 ? U64_MAX : 2ULL << o, to, sizeof(to));
		printf("%10s .. %10s %10llu |", from, to, (unsigned long long)octave[o]);
		for (u64 star = 0; star < (octave[o] * 40 + most - 1) / most; star++)
			putchar('*');
		putchar('\n');
	}
}

void rqs_print_short(u64 ns, char *buf, size_t size)
{
	if (ns < 1000)
		snprintf(buf, size, "%llu ns", (unsigned long long)ns);
	else if (ns < 1000000)
		snprintf(buf, size, "%.2f us", ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, size, "%.2f ms", ns / 1e6);
	else
		snprintf(buf, size, "%.2f s", ns / 1e9);
}

static void print_tasks(struct rqs *rqs)
{
	const struct rqs_task_sum *t;
	u32 nr = rqs_summary_tasks(rqs->summary, &t);

	printf("\n%-15s %7s %7s %9s %9s %15s %15s  %s\n", "TASK", "TID", "TGID", "WAITS",
	       "OVER MIN", "WAITED", "LONGEST", "MOST BECAUSE OF");
	for (u32 i = 0; i < nr; i++) {
		char buf[24];

		print_comm(t[i].comm, 15);
		print_id(t[i].tid, 7);
		print_id(t[i].tgid, 7);
		printf(" %9llu %9llu ", (unsigned long long)t[i].waits,
		       (unsigned long long)t[i].over);
		print_ms(t[i].wait_ns, 15);
		putchar(' ');
		print_ms(t[i].longest, 15);
		printf("  ");
		if (t[i].from_ns) {
			print_comm(t[i].by_tid ? rqs_task_name(t[i].by_tid, t[i].by_comm, 0, buf) :
						 "idle",
				   0);
			if (t[i].by_tid > 0)
				printf("/%d", t[i].by_tid);
			putchar(' ');
			print_ms(t[i].from_ns, 0);
		}
		putchar('\n');
	}
}

static void print_profile(struct rqs *rqs)
{
	struct rqs_prof_cell cell[RQS_NR_HANDLERS][RQS_NR_STORAGES];

	rqs_profile_read(rqs, cell);
	printf("\n%-20s %10s", "HANDLER, mean ns", "RUNS");
	for (u32 s = 0; s < RQS_NR_STORAGES; s++)
		printf(" %24s", rqs_storage_names[s]);
	putchar('\n');
	for (u32 h = 0; h < RQS_NR_HANDLERS; h++) {
		bool any = false;
		u64 runs = 0;

		for (u32 s = 0; s < RQS_NR_STORAGES; s++) {
			any = any || cell[h][s].known;
			runs = max_of(runs, cell[h][s].runs);
		}
		if (!any)
			continue;
		printf("%-20s %10llu", rqs_handler_names[h], (unsigned long long)runs);
		for (u32 s = 0; s < RQS_NR_STORAGES; s++) {
			const struct rqs_prof_cell *c = &cell[h][s];
			char buf[64] = "-";

			if (c->known && c->runs && c->p50_ns)
				snprintf(buf, sizeof(buf), "%.0f (p50 %llu, p99 %llu)", c->mean_ns,
					 (unsigned long long)c->p50_ns,
					 (unsigned long long)c->p99_ns);
			else if (c->known && c->runs)
				snprintf(buf, sizeof(buf), "%.0f", c->mean_ns);
			printf(" %24s", buf);
		}
		putchar('\n');
	}
}

static void print_totals(struct rqs *rqs)
{
	const struct rqs_totals *t = &rqs->totals;
	const struct rqs_opts *o = rqs->opts;

	printf("%llu waits over ", (unsigned long long)t->over);
	print_ms(o->min_ns, 0);
	printf(" of %llu, p99 ", (unsigned long long)t->waits);
	if (t->waits)
		print_ms(rqs_quantile(t, 0.99), 0);
	else
		putchar('-');
	if (rqs->nr_open + rqs->nr_open_start)
		printf(", %llu open", (unsigned long long)(rqs->nr_open + rqs->nr_open_start));
	printf(", %llu missed enqueues, %llu storage failures, ", (unsigned long long)t->missed,
	       (unsigned long long)t->failures);
	if (rqs->lost_gaps)
		printf("at least ");
	printf("%llu events lost", (unsigned long long)(rqs->lost + t->rows_lost));
	if (rqs->unknown_tgids)
		printf(", %llu tasks of unknown process", (unsigned long long)rqs->unknown_tgids);
	putchar('\n');
}

static void text_end(struct rqs *rqs)
{
	const struct rqs_totals *t = &rqs->totals;

	if (rqs->opts->summary && t->waits)
		print_tasks(rqs);
	else if (!t->over && !rqs->nr_open && !rqs->nr_open_start && t->waits) {
		printf("no wait over ");
		print_ms(rqs->opts->min_ns, 0);
		printf("; the longest:\n");
		column_heads(rqs);
		print_row(rqs, &rqs->longest);
	}
	if (rqs->opts->hist && t->waits)
		print_hist(t);
	if (rqs->opts->profile)
		print_profile(rqs);
	if (rqs->opts->hist || rqs->opts->profile || rqs->opts->summary)
		putchar('\n');
	print_totals(rqs);
}

const struct rqs_output rqs_text = { text_header, text_line, text_end };
