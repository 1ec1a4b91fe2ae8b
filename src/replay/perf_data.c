// SPDX-License-Identifier: BSD-2-Clause
/*
 * The perf.data reader. Two passes over the records: the first checks every length, counts, and
 * notes the runs of ascending time (merge.h); the second merges the runs. Records of other kinds
 * are stepped over by their size.
 *
 * A file with more runs than are worth holding is ordered the way perf does it: what was read
 * before the last but one FINISHED_ROUND cannot be preceded by anything that comes later.
 */
#include <errno.h>
#include <stdlib.h>

#include "replay/perf_int.h"

#define MAX_RUNS (1u << 20)

s64 perf_odd_span(struct recording *rec, struct perf *pf, u64 pos)
{
	u64 left = pf->end - pos, span, extra = 0;
	const u8 *p = pf->map + pos;
	u32 type;

	if (left < 8)
		goto cut;
	type = perf_u32(p);
	span = perf_u16(p + 6);
	if (span < 8)
		return rec_fail(
			rec, EINVAL,
			"damaged: a record of %llu bytes at offset %llu; copy or record it again",
			(unsigned long long)span, (unsigned long long)pos);
	if (span > left)
		goto cut;
	if (type == PERF_USER_TRACING_DATA && span >= 12)
		extra = align_up(perf_u32(p + 8), 8);
	else if (type == PERF_USER_AUXTRACE && span >= 16)
		extra = perf_u64(p + 8);
	if (extra > left - span)
		goto cut;
	return span + extra;
cut:
	if (pf->is_pipe) {
		pf->truncated = true;
		pf->cut_bytes = left;
		return 0;
	}
	return rec_fail(rec, EINVAL,
			"damaged: the record at offset %llu reaches beyond the end of the data at "
			"%llu; copy or "
			"record it again",
			(unsigned long long)pos, (unsigned long long)pf->end);
}

/* A record that is no sample, for perf_look(). */
static int perf_look_aside(struct perf *pf, const u8 *p, u32 n, struct perf_record *r)
{
	r->layout = perf_layout_of(pf, r->kind, p, n);
	switch (r->kind) {
	case PERF_RECORD_COMM:
		if (n > 16)
			r->type = REC_TASK;
		break;
	case PERF_RECORD_FORK:
		if (n >= 32)
			r->type = REC_TASK;
		break;
	case PERF_RECORD_LOST:
		if (n >= 24)
			r->type = REC_LOST;
		break;
	case PERF_RECORD_THROTTLE:
		/* The kernel held an event back for the rest of a tick. Only tracepoints matter
		 * here. */
		if (r->layout && r->layout->is_tracepoint)
			r->type = REC_LOST;
		break;
	}
	if (r->layout && r->type != REC_NR_TYPES)
		r->time = perf_time(r->layout, r->kind, p, n);
	return 0;
}

/* Fills r from the record at pos, whose span is known to fit. Sets r->type to REC_NR_TYPES if it is
 * no event. */
static inline int perf_look(struct recording *rec, struct perf *pf, u64 pos, u64 span,
			    struct perf_record *r)
{
	const u8 *p = pf->map + pos;
	u32 n = perf_u16(p + 6);

	r->pos = pos;
	r->span = span;
	r->kind = perf_u32(p);
	r->type = REC_NR_TYPES;
	r->time = 0;
	r->layout = NULL;
	if (r->kind >= PERF_USER_HEADER_ATTR)
		return 0;
	if (likely(r->kind == PERF_RECORD_SAMPLE)) {
		r->layout = perf_sample_layout(pf, p, n);
		if (!r->layout)
			return 0;
		if (perf_take_sample(r->layout, p, n, &r->sample))
			return rec_fail(rec, EINVAL,
					"damaged: the sample at offset %llu does not hold what its "
					"event declares",
					(unsigned long long)pos);
		r->time = r->sample.time;
		r->type = perf_sample_type(pf, r->layout, &r->sample);
		return 0;
	}
	return perf_look_aside(pf, p, n, r);
}

static u64 lost_count(const struct perf *pf, const struct perf_record *r)
{
	return r->kind == PERF_RECORD_LOST ? perf_u64(pf->map + r->pos + 16) : 0;
}

static int take_cgroup(struct recording *rec, struct perf *pf, const u8 *p, u32 n)
{
	struct perf_cgroup *cg;
	u32 cap;

	if (n < 17)
		return 0;
	if (pf->nr_cgroups == pf->cap_cgroups) {
		cap = pf->cap_cgroups ? pf->cap_cgroups * 2 : 64;
		cg = reallocarray(pf->cgroups, cap, sizeof(*cg));
		if (!cg)
			return rec_fail(rec, ENOMEM, "out of memory");
		pf->cgroups = cg;
		pf->cap_cgroups = cap;
	}
	cg = &pf->cgroups[pf->nr_cgroups];
	cg->id = perf_u64(p + 8);
	cg->path = strndup((const char *)p + 16, n - 16);
	if (!cg->path)
		return rec_fail(rec, ENOMEM, "out of memory");
	pf->nr_cgroups++;
	return 0;
}

/* Records that are no events but say something: in pipe mode the header comes as such, too. */
static int scan_aside(struct recording *rec, struct perf *pf, u64 pos)
{
	const u8 *p = pf->map + pos;
	u32 type = perf_u32(p), n = perf_u16(p + 6);
	u64 size;
	int err;

	switch (type) {
	case PERF_RECORD_SAMPLE:
		pf->unknown_ids++;
		return 0;
	case PERF_RECORD_CGROUP:
		return take_cgroup(rec, pf, p, n);
	case PERF_RECORD_LOST_SAMPLES:
		if (n >= 16 && !(perf_u16(p + 4) &
				 1U << 15)) /* that bit: dropped by a BPF filter, on purpose */
			pf->lost_samples += perf_u64(p + 8);
		return 0;
	case PERF_USER_HEADER_ATTR:
		if (!pf->is_pipe)
			return 0;
		size = n >= 16 ? perf_u32(p + 12) : 0; /* perf_event_attr.size */
		if (size < 64 || size > n - 8)
			return rec_fail(rec, EINVAL,
					"damaged: an event attribute of %llu bytes at offset %llu",
					(unsigned long long)size, (unsigned long long)pos);
		pf->attrs_dirty = true;
		return perf_add_attr(rec, pf, p + 8, size, p + 8 + size, (n - 8 - size) / 8);
	case PERF_USER_TRACING_DATA:
		if (!pf->is_pipe || n < 12)
			return 0;
		err = perf_take_formats(rec, pf, p + n, perf_u32(p + 8), pos + n);
		pf->attrs_dirty = true;
		return err;
	case PERF_USER_HEADER_FEATURE:
		if (n >= 16 && perf_u64(p + 8) < PERF_FEAT_BITS)
			perf_take_host(rec, perf_u64(p + 8), p + 16, n - 16);
		return 0;
	default:
		return 0;
	}
}

static bool handed_out(const struct recording *rec, enum rec_event_type type)
{
	return type < REC_OTHER || (type == REC_OTHER && rec->opts.want_other);
}

/* Counts a record in the first pass. */
static int scan_event(struct recording *rec, struct perf *pf, struct perf_record *r)
{
	enum rec_event_type type;
	struct rec_event ev;

	if (r->type == REC_TASK) {
		rec->info.events[REC_TASK]++;
		return 0;
	}
	if (r->type == REC_LOST) {
		rec_count_lost(rec, lost_count(pf, r));
		pf->lost += lost_count(pf, r);
		return 0;
	}
	type = r->type;
	if (type < REC_NR_TRACEPOINTS && r->sample.raw_size < pf->formats.f[type].min_size)
		return rec_fail(
			rec, EINVAL, "damaged: the %s event at offset %llu has only %u bytes",
			rec_event_name(type), (unsigned long long)r->pos, r->sample.raw_size);
	if (type < REC_NR_TRACEPOINTS && pf->formats.can_fail[type]) {
		/* One without success is decided by its fields. */
		rec_decode(&pf->formats, type, r->sample.raw, r->sample.raw_size, &ev);
		type = (enum rec_event_type)ev.type;
	}
	return rec_count(rec, type, r->sample.cpu, r->time);
}

struct run_builder {
	struct rec_run run;
	u64 last; /* latest time in the run */
	bool open;
};

static int end_run(struct perf *pf, struct run_builder *b, u64 pos)
{
	if (!b->open)
		return 0;
	b->open = false;
	b->run.end = pos;
	return rec_merge_add(&pf->merge, b->run);
}

/*
 * What perf synthesises of threads that were there before has time 0 and goes before everything,
 * wherever it stands in the file. A loss without a time keeps its place among its neighbours.
 */
static int add_to_run(struct perf *pf, struct run_builder *b, u64 pos, const struct perf_record *r)
{
	u64 time = !r->time && r->type == REC_LOST && b->open ? b->last : r->time;
	int err;

	if (b->open && time < b->last) {
		err = end_run(pf, b, pos);
		if (err)
			return err;
	}
	if (!b->open) {
		b->open = true;
		b->run.pos = pos;
		b->run.ts = b->last = time;
	}
	b->last = max_of(b->last, time);
	return 0;
}

/* 1: the data must be expanded first. */
static int scan_all(struct recording *rec, struct perf *pf)
{
	struct rec_input *in = pf->plain.map ? &pf->plain : &rec->in;
	u32 max_runs = rec->opts.max_runs ? rec->opts.max_runs : MAX_RUNS;
	struct run_builder b = {};
	struct perf_record r;
	u32 type;
	u64 pos, n = 0;
	s64 span;
	int err = 0;

	for (pos = pf->begin; pos < pf->end; pos += span) {
		span = perf_record_span(rec, pf, pos);
		if (span <= 0) {
			err = span;
			break;
		}
		type = perf_u32(pf->map + pos);
		if (type == PERF_USER_COMPRESSED || type == PERF_USER_COMPRESSED2)
			return pf->plain.map ? rec_fail(rec, EINVAL,
							"damaged: compressed twice at offset %llu",
							(unsigned long long)pos)
					     : 1;
		if (type == PERF_RECORD_SAMPLE && pf->attrs_dirty) {
			err = perf_settle_attrs(rec, pf);
			pf->attrs_dirty = false;
		}
		if (!err)
			err = perf_look(rec, pf, pos, span, &r);
		if (err)
			break;
		if (r.type == REC_NR_TYPES)
			err = scan_aside(rec, pf, pos);
		else
			err = scan_event(rec, pf, &r);
		if (!err && handed_out(rec, r.type) && !pf->by_rounds &&
		    add_to_run(pf, &b, pos, &r))
			err = rec_fail(rec, ENOMEM, "out of memory");
		if (err)
			break;
		if (pf->merge.nr_runs > max_runs) {
			pf->by_rounds = true;
			rec_merge_fini(&pf->merge);
			b.open = false;
		}
		rec_input_used(in, span);
		if (!(++n & 0xffff))
			rec_progress(rec, "scanning", pos - pf->begin, pf->end - pf->begin);
	}
	if (!err && end_run(pf, &b, pos))
		err = rec_fail(rec, ENOMEM, "out of memory");
	return err;
}

/* By rounds: takes in the next round. 0, or -errno by rec_fail(). */
static int load_round(struct recording *rec, struct perf *pf)
{
	struct run_builder b = {};
	struct perf_record r;
	u64 pos, limit = pf->round_max;
	s64 span;
	int err = 0;

	for (pos = pf->round_pos; pos < pf->end; pos += span) {
		span = perf_record_span(rec, pf, pos);
		if (span <= 0) {
			err = span;
			pos = pf->end;
			break;
		}
		if (perf_u32(pf->map + pos) == PERF_USER_FINISHED_ROUND) {
			pos += span;
			break;
		}
		err = perf_look(rec, pf, pos, span, &r);
		if (!err && handed_out(rec, r.type)) {
			if (add_to_run(pf, &b, pos, &r))
				err = rec_fail(rec, ENOMEM, "out of memory");
			pf->round_max = max_of(pf->round_max, r.time);
		}
		if (err)
			return err;
	}
	if (err)
		return err;
	if (end_run(pf, &b, pos) || rec_merge_sort(&pf->merge))
		return rec_fail(rec, ENOMEM, "out of memory");
	pf->round_pos = pos;
	pf->round_limit = pos >= pf->end ? U64_MAX : limit;
	return 0;
}

static void emit_task(struct perf *pf, const struct perf_record *r, struct rec_event *ev)
{
	const u8 *p = pf->map + r->pos;
	u32 n = perf_u16(p + 6);
	struct perf_task_note *note;

	if (r->kind == PERF_RECORD_COMM) {
		ev->task.tgid = perf_u32(p + 8);
		ev->task.tid = perf_u32(p + 12);
		rec_copy_comm(ev->task.comm, (const char *)p + 16, n - 16);
		ev->task.born = false;
		return;
	}
	ev->task.tgid = perf_u32(p + 8);
	ev->task.tid = perf_u32(p + 16);
	ev->task.comm[0] = '\0';
	ev->task.born =
		r->time != 0; /* perf makes up FORK records of threads that were there before */
	note = &pf->notes[(u32)ev->task.tid & (PERF_NOTES - 1)];
	note->tid = ev->task.tid;
	note->tgid = ev->task.tgid;
}

static int emit(struct recording *rec, struct perf *pf, const struct perf_record *r,
		struct rec_event *ev)
{
	const struct perf_task_note *note;
	u32 cpu;

	ev->type = r->type;
	ev->cur_tid = ev->cur_tgid = -1;
	ev->cgroup_id = 0;
	if (r->kind == PERF_RECORD_SAMPLE) {
		ev->cpu = r->sample.cpu;
		ev->cur_tid = r->sample.tid;
		ev->cur_tgid = r->sample.pid;
		ev->cgroup_id = r->sample.cgroup;
		if (rec_decode(&pf->formats, r->type, r->sample.raw, r->sample.raw_size, ev) ||
		    (ev->cpu >= REC_MAX_CPUS && r->type != REC_OTHER))
			return rec_fail(rec, EINVAL, "changed while it was read, at offset %llu",
					(unsigned long long)r->pos);
		if (ev->cpu >= REC_MAX_CPUS) /* another event, recorded without its CPU */
			ev->cpu = 0;
		if (ev->type == REC_FORK) {
			note = &pf->notes[(u32)ev->fork.child_tid & (PERF_NOTES - 1)];
			if (note->tid == ev->fork.child_tid)
				ev->fork.child_tgid = note->tgid;
		}
		return 0;
	}
	cpu = r->layout ? perf_tail_cpu(r->layout, pf->map + r->pos, perf_u16(pf->map + r->pos + 6))
			: U32_MAX;
	ev->cpu = cpu < rec->info.nr_cpus ? cpu : 0;
	if (r->type == REC_TASK) {
		emit_task(pf, r, ev);
	} else {
		ev->lost.count = lost_count(pf, r);
		ev->lost.cpu = cpu < rec->info.nr_cpus ? (s32)cpu : -1;
	}
	return 0;
}

/* What LOST records did not account for is lost at the end; so is what a cut pipe-mode stream would
 * have held. */
static int emit_tail(struct recording *rec, struct perf *pf, struct rec_event *ev)
{
	u64 excess = pf->lost_samples > pf->lost ? pf->lost_samples - pf->lost : 0;

	if (pf->tail_done || (!excess && !pf->truncated))
		return 0;
	pf->tail_done = true;
	*ev = (struct rec_event){
		.ts_ns = rec->last_ts,
		.cur_tid = -1,
		.cur_tgid = -1,
		.type = REC_LOST,
		.lost = {.count = pf->truncated ? 0 : excess, .cpu = -1},
	};
	return 1;
}

/*
 * Where a record is kept from when its run is moved onto it until it is handed out, which may be
 * many other CPUs' events later. Two that meet in one place are only looked at again.
 */
static struct perf_record *record_slot(struct perf *pf, u64 pos)
{
	return &pf->slots[pos * 0x9e3779b97f4a7c15ULL >> (64 - PERF_SLOT_BITS)];
}

/* Moves a run to its first event at or behind pos. */
static int step(struct recording *rec, struct perf *pf, struct rec_run *run, u64 pos)
{
	struct perf_record *r;
	s64 span;
	int err;

	for (; pos < run->end; pos += span) {
		span = perf_record_span(rec, pf, pos);
		if (span <= 0)
			return span < 0 ? span : rec_fail(rec, EINVAL, "changed while it was read");
		r = record_slot(pf, pos);
		err = perf_look(rec, pf, pos, span, r);
		if (err) {
			r->pos = U64_MAX;
			return err;
		}
		if (handed_out(rec, r->type)) {
			run->pos = pos;
			run->ts = max_of(run->ts, r->time);
			return 0;
		}
	}
	run->pos = run->end;
	return 0;
}

static int perf_next_any(struct recording *rec, struct perf *pf, struct rec_event *ev)
{
	struct perf_record *r;
	struct rec_run *run;
	u64 next;
	int err;

	while ((!(run = rec_merge_top(&pf->merge)) || run->ts > pf->round_limit) && pf->by_rounds &&
	       pf->round_limit != U64_MAX) {
		err = load_round(rec, pf);
		if (err)
			return err;
	}
	if (!run)
		return emit_tail(rec, pf, ev);
	r = record_slot(pf, run->pos);
	if (r->pos != run->pos) {
		next = run->pos;
		err = step(rec, pf, run, next);
		if (err)
			return err;
		if (run->pos != next)
			return rec_fail(rec, EINVAL, "changed while it was read");
	}
	err = emit(rec, pf, r, ev);
	if (err)
		return err;
	ev->ts_ns = run->ts;
	rec_input_used(pf->plain.map ? &pf->plain : &rec->in, r->span);
	next = r->pos + r->span;
	err = step(rec, pf, run, next);
	if (err)
		return err;
	return rec_merge_advance(&pf->merge) ? rec_fail(rec, ENOMEM, "out of memory") : 1;
}

static int perf_next(struct recording *rec, struct rec_event *ev)
{
	int ret;

	do
		ret = perf_next_any(rec, rec->priv, ev);
	while (ret > 0 && !handed_out(rec, ev->type)); /* a wake-up that woke nobody */
	return ret;
}

static const char *perf_cgroup(const struct recording *rec, u64 id)
{
	const struct perf *pf = rec->priv;
	u32 i;

	for (i = pf->nr_cgroups; i-- > 0;) /* the last says what it is called now */
		if (pf->cgroups[i].id == id)
			return pf->cgroups[i].path;
	return NULL;
}

static void perf_close(struct recording *rec)
{
	struct perf *pf = rec->priv;
	u32 i;

	if (!pf)
		return;
	for (i = 0; i < pf->nr_cgroups; i++)
		free(pf->cgroups[i].path);
	free(pf->cgroups);
	free(pf->attrs);
	free(pf->id_keys);
	free(pf->id_vals);
	rec_merge_fini(&pf->merge);
	rec_input_fini(&pf->plain);
	free(pf);
	rec->priv = NULL;
}

static const struct rec_reader perf_reader = {
	.next = perf_next,
	.close = perf_close,
	.cgroup = perf_cgroup,
};

/* After the first pass: what it found, and what that means. */
static int perf_finish_scan(struct recording *rec, struct perf *pf)
{
	u32 i;

	for (i = 0; i < pf->nr_attrs && !pf->have_formats; i++)
		if (pf->attrs[i].is_tracepoint)
			return rec_fail(rec, ENODATA,
					"it has tracepoint events but not their formats (no "
					"tracing data); give the "
					"text of `perf script --ns` instead");
	if (pf->unknown_ids)
		rec_warn(rec,
			 "%llu samples belong to events that the header does not declare; left out",
			 (unsigned long long)pf->unknown_ids);
	if (pf->lost_samples > pf->lost)
		rec_count_lost(rec, pf->lost_samples - pf->lost);
	if (pf->truncated) {
		rec_count_lost(rec, 0);
		rec_warn(rec,
			 "the stream ends in the middle of a record; its last %llu bytes are left "
			 "out",
			 (unsigned long long)pf->cut_bytes);
	}
	rec->info.tgids_known = true;
	rec->info.ts_unit_ns = 1;
	for (i = 0; i < ARRAY_SIZE(pf->slots); i++)
		pf->slots[i].pos = U64_MAX;
	pf->round_limit = pf->by_rounds ? 0 : U64_MAX;
	pf->round_pos = pf->begin;
	if (rec_merge_sort(&pf->merge))
		return rec_fail(rec, ENOMEM, "out of memory");
	return 0;
}

int rec_perf_open(struct recording *rec)
{
	struct perf *pf = calloc(1, sizeof(*pf));
	int err;

	if (!pf)
		return rec_fail(rec, ENOMEM, "out of memory");
	pf->plain.fd = -1;
	rec->priv = pf;
	rec->reader = &perf_reader;
	err = perf_read_header(rec, pf);
	if (err)
		return err;
	rec->format = strdup(pf->is_pipe ? "perf.data (pipe)" : "perf.data");
	err = scan_all(rec, pf);
	if (err == 1) {
		/* Start again on the expanded copy; what pipe mode collected comes again there. */
		u64 events[REC_NR_TYPES] = {};

		err = perf_expand(rec, pf);
		if (err)
			return err;
		if (pf->is_pipe) {
			pf->nr_attrs = pf->nr_ids = 0;
			memset(pf->id_keys, 0, pf->id_cap * sizeof(*pf->id_keys));
			free(rec->host);
			rec->host = NULL;
		}
		memcpy(rec->info.events, events, sizeof(events));
		rec->info.lost = rec->info.lost_gaps_unknown = 0;
		pf->lost = pf->lost_samples = pf->unknown_ids = 0;
		rec_merge_fini(&pf->merge);
		err = scan_all(rec, pf);
	}
	return err ? err : perf_finish_scan(rec, pf);
}
