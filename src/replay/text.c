// SPDX-License-Identifier: BSD-2-Clause
/*
 * The text reader. A first pass parses everything once: it counts, finds what the numbers in
 * prev_state mean, and notes the runs of ascending time (merge.h), for trace_pipe and hand-joined
 * files are not always in order. The second pass merges the runs; of a file in order there is one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/merge.h"
#include "replay/replay_int.h"
#include "replay/text_int.h"

#define MAX_RUNS (4u << 20) /* 96 MiB of them */

struct text {
	struct rec_merge merge;
	struct rec_states states;
	bool dash, trace_cmd; /* what the lines look like */
	u64 lines, bad_lines,
		bad_at; /* event lines whose fields do not parse; the first one's number */
	/* The line the reading pass looked at last; pos U64_MAX: none. */
	u64 cur_pos, cur_next;
	struct text_line cur;
};

static const char *line_end(const struct recording *rec, u64 pos)
{
	const char *p = (const char *)rec->in.map + pos;
	const char *nl = memchr(p, '\n', rec->in.size - pos);

	return nl ? nl : (const char *)rec->in.map + rec->in.size;
}

/* Parses the line at pos; the offset of the next one. */
static u64 look(const struct recording *rec, u64 pos, struct text_line *line)
{
	const char *end = line_end(rec, pos);

	text_parse_line((const char *)rec->in.map + pos, end, line);
	return end - (const char *)rec->in.map + 1;
}

static bool handed_out(const struct recording *rec, const struct text_line *line)
{
	if (line->kind == TEXT_LOST)
		return true;
	return line->kind == TEXT_EVENT && (line->type != REC_OTHER || rec->opts.want_other);
}

/* Lines of trace-cmd report that are no events. */
static bool is_boilerplate(const char *p, const char *end)
{
	static const char *const known[] = {"cpus=", "version = ", "CPU "};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (text_lit(&p, end, known[i]))
			return true;
	return false;
}

static int scan_event(struct recording *rec, struct text *t, const struct text_line *line,
		      struct rec_state_evidence *evidence, u64 *max_digits)
{
	struct rec_event ev;
	u64 raw;

	if (line->no_time && line->type != REC_OTHER)
		return rec_fail(rec, EPROTONOSUPPORT,
				"line %llu: its time stamps are counters, not seconds (trace_clock "
				"'counter' or a "
				"raw TSC); record with trace_clock 'local' or 'mono'",
				(unsigned long long)t->lines);
	if (!text_parse_fields(line, &ev, &raw)) {
		if (!t->bad_lines++)
			t->bad_at = t->lines;
		rec_count_lost(rec, 1);
		return 0;
	}
	if (ev.type == REC_SWITCH && raw != U64_MAX)
		rec_state_witness(evidence, raw);
	*max_digits = max_of(*max_digits, (u64)line->frac_digits);
	rec->info.tgids_known |= line->tgid >= 0;
	t->dash |= line->dash;
	return rec_count(rec, ev.type, line->cpu, line->ts_ns);
}

static int scan_line(struct recording *rec, struct text *t, const struct text_line *line, u64 pos,
		     struct rec_state_evidence *evidence, u64 *digits)
{
	const char *p = (const char *)rec->in.map + pos;

	switch (line->kind) {
	case TEXT_NONE:
		return 0;
	case TEXT_UNKNOWN:
		if (!text_lit(&p, line_end(rec, pos), "cpus="))
			rec->info.skipped_lines += !is_boilerplate(p, line_end(rec, pos));
		else
			t->trace_cmd = true;
		return 0;
	case TEXT_LOST:
		rec_count_lost(rec, line->lost);
		return 0;
	case TEXT_EVENT:
		return scan_event(rec, t, line, evidence, digits);
	}
	return 0;
}

static int add_run(struct recording *rec, struct text *t, struct rec_run *run, u64 end)
{
	u32 max_runs = rec->opts.max_runs ? rec->opts.max_runs : MAX_RUNS;

	run->end = end;
	if (t->merge.nr_runs == max_runs)
		return rec_fail(
			rec, EFBIG,
			"too far out of order (time goes back %u times by line %llu); sort it by "
			"time first",
			max_runs, (unsigned long long)t->lines);
	return rec_merge_add(&t->merge, *run) ? rec_fail(rec, ENOMEM, "out of memory") : 0;
}

static int scan_all(struct recording *rec, struct text *t)
{
	struct rec_state_evidence evidence = {};
	struct rec_run run = {.pos = U64_MAX};
	struct text_line line;
	u64 pos, next, last = 0, digits = 0;
	int err = 0;

	for (pos = 0; pos < rec->in.size && !err; pos = next) {
		t->lines++;
		next = look(rec, pos, &line);
		err = scan_line(rec, t, &line, pos, &evidence, &digits);
		rec_input_used(&rec->in, next - pos);
		if (!(t->lines & 0xffff))
			rec_progress(rec, "scanning", pos, rec->in.size);
		if (err || !handed_out(rec, &line))
			continue;
		if (run.pos != U64_MAX && line.ts_ns && line.ts_ns < last) {
			err = add_run(rec, t, &run, pos);
			run.pos = U64_MAX;
		}
		if (run.pos == U64_MAX) {
			run = (struct rec_run){.pos = pos, .ts = line.ts_ns};
			last = line.ts_ns;
		}
		last = max_of(last, line.ts_ns);
	}
	if (!err && run.pos != U64_MAX)
		err = add_run(rec, t, &run, rec->in.size);
	rec_states_infer(&t->states, &evidence);
	rec->info.ts_unit_ns = digits > 6 ? 1 : 1000;
	return err;
}

/* Moves the top run to its next event and leaves that in t->cur. */
static void step(struct recording *rec, struct text *t, struct rec_run *run, u64 pos)
{
	while (pos < run->end) {
		t->cur_pos = pos;
		t->cur_next = look(rec, pos, &t->cur);
		if (handed_out(rec, &t->cur)) {
			run->pos = pos;
			run->ts = max_of(run->ts, t->cur.ts_ns);
			return;
		}
		pos = t->cur_next;
	}
	run->pos = run->end;
	t->cur_pos = U64_MAX;
}

static void emit(const struct recording *rec, const struct text *t, struct rec_event *ev)
{
	const struct text_line *line = &t->cur;
	bool cpu_known = line->cpu < rec->info.nr_cpus;
	u64 raw;

	ev->cgroup_id = 0;
	ev->cpu = cpu_known ? line->cpu : 0;
	ev->cur_tid = line->tid;
	ev->cur_tgid = line->tgid;
	if (line->kind == TEXT_EVENT && text_parse_fields(line, ev, &raw)) {
		if (ev->type == REC_SWITCH && raw != U64_MAX)
			ev->sw.prev_state = rec_state_of_raw(&t->states, raw, &ev->sw.preempt);
		return;
	}
	/* A loss notice, or an event that is there but cannot be read. */
	ev->type = REC_LOST;
	ev->lost.count = line->kind == TEXT_LOST ? line->lost : 1;
	ev->lost.cpu = cpu_known ? (s32)line->cpu : -1;
}

static int text_next(struct recording *rec, struct rec_event *ev)
{
	struct text *t = rec->priv;
	struct rec_run *run;

	do {
		run = rec_merge_top(&t->merge);
		if (!run)
			return 0;
		if (t->cur_pos != run->pos)
			step(rec, t, run, run->pos);
		if (t->cur_pos == U64_MAX)
			return rec_fail(rec, EINVAL, "changed while it was read");
		emit(rec, t, ev);
		ev->ts_ns = run->ts;
		rec_input_used(&rec->in, t->cur_next - t->cur_pos);
		step(rec, t, run, t->cur_next);
		if (rec_merge_advance(&t->merge))
			return rec_fail(rec, ENOMEM, "out of memory");
	} while (ev->type == REC_OTHER && !rec->opts.want_other);
	return 1;
}

static void text_close(struct recording *rec)
{
	struct text *t = rec->priv;

	if (!t)
		return;
	rec_merge_fini(&t->merge);
	free(t);
	rec->priv = NULL;
}

static const struct rec_reader text_reader = {.next = text_next, .close = text_close};

static int no_events(struct recording *rec, const struct text *t)
{
	const struct rec_input *in = &rec->in;

	if (t->bad_lines)
		return rec_fail(rec, EPROTONOSUPPORT,
				"line %llu: the fields of this scheduler event have no known form "
				"(nor have %llu "
				"others); `perf script --ns`, `trace-cmd report -t` and ftrace's "
				"own text are known",
				(unsigned long long)t->bad_at,
				(unsigned long long)t->bad_lines - 1);
	if (memmem(in->map, in->size, "sched_switch", 12) && !rec->info.events[REC_OTHER])
		return rec_fail(
			rec, EPROTONOSUPPORT,
			"it mentions sched_switch, but no line has the form `comm-tid [cpu] time: "
			"event: …`; "
			"make it with `perf script --ns -F comm,tid,cpu,time,event,trace` or "
			"`trace-cmd report -t`");
	if (!rec->info.events[REC_OTHER])
		return rec_fail(rec, EINVAL,
				"not a recording: text without a single line of the form "
				"`comm-tid [cpu] time: event: …` among %llu",
				(unsigned long long)t->lines);
	return 0; /* other events only; said by recording_open() */
}

int rec_text_open(struct recording *rec)
{
	struct text *t = calloc(1, sizeof(*t));
	u64 ours = 0;
	u32 i;
	int err;

	if (!t)
		return rec_fail(rec, ENOMEM, "out of memory");
	t->cur_pos = U64_MAX;
	rec->priv = t;
	rec->reader = &text_reader;
	err = scan_all(rec, t);
	if (err)
		return err;
	for (i = 0; i < REC_OTHER; i++)
		ours += i < REC_TASK ? rec->info.events[i] : 0;
	if (!ours) {
		err = no_events(rec, t);
		if (err)
			return err;
	}
	if (t->bad_lines)
		rec_warn(rec,
			 "%llu scheduler events cannot be read and count as lost, the first in "
			 "line %llu",
			 (unsigned long long)t->bad_lines, (unsigned long long)t->bad_at);
	if (rec->in.size && rec->in.map[rec->in.size - 1] != '\n')
		rec_warn(rec, "the text ends within line %llu: it may have been cut there",
			 (unsigned long long)t->lines);
	rec->format = strdup(t->trace_cmd ? "trace-cmd report text"
			     : t->dash	  ? "ftrace text"
					  : "perf script text");
	if (rec_merge_sort(&t->merge))
		return rec_fail(rec, ENOMEM, "out of memory");
	return 0;
}
