// SPDX-License-Identifier: BSD-2-Clause
/*
 * The child of the trace.dat reader: a file's records, merged by time and decoded. Only code that may die.
 *
 * There are two ways to the records. The quick one reads the ring buffer pages itself (dat_pages.h). libtracecmd is asked for
 * each CPU's first record all the same, and where it says something else, or the times need a correction that changes along
 * the way, or the pages hold what kbuffer cannot read, the other way is taken: its record an event.
 */
#include <stdlib.h>
#include <string.h>

#include <trace-cmd.h>

#include "replay/child.h"
#include "replay/dat_int.h"
#include "replay/dat_pages.h"
#include "replay/tep.h"

/* A CPU's events in order, either way. */
struct stream {
	struct dat_pages pages;
	struct tep_record *record; /* libtracecmd's; NULL with the quick way */
};

struct dat_child {
	const struct dat_job *job;
	int out;
	struct tracecmd_input *handle, *top;
	struct tep_handle *tep;
	struct rec_formats formats;
	bool quick;
	struct stream *streams; /* one a CPU */
	struct stream **heap;
	u32 nr_heap;
	struct {
		struct dat_msg head;
		struct rec_event ev[DAT_BATCH];
	} batch;
	u32 nr_batch;
	u64 ticks;
};

static bool send(struct dat_child *dc, u32 kind, const void *data, u32 size)
{
	struct dat_msg head = {kind, size};

	return rec_child_write(dc->out, &head, sizeof(head)) &&
	       rec_child_write(dc->out, data, size);
}

static bool send_error(struct dat_child *dc, const char *fmt, ...) __printf_like(2, 3);
static bool send_error(struct dat_child *dc, const char *fmt, ...)
{
	struct strbuf b = STRBUF_INIT;
	va_list args;

	va_start(args, fmt);
	strbuf_vprintf(&b, fmt, args);
	va_end(args);
	send(dc, DAT_MSG_ERROR, strbuf_str(&b), min_of(b.len, (size_t)DAT_ERROR_MAX));
	strbuf_fini(&b);
	return false;
}

static inline bool tick(struct dat_child *dc, const struct dat_record *r)
{
	u64 offset = r->offset;

	dc->job->shared->offset = offset;
	return likely(++dc->ticks % DAT_TICK_EVERY) || send(dc, DAT_MSG_TICK, &offset, sizeof(offset));
}

static bool record_too_short(struct dat_child *dc, enum rec_event_type type,
			     const struct dat_record *r)
{
	return send_error(dc, "damaged: the %s event at offset %llu has only %u bytes",
			  rec_event_name(type), (unsigned long long)r->offset, r->size);
}

static u64 missed_count(const struct dat_record *r)
{
	return r->missed > 0 ? r->missed : 0; /* negative: the kernel does not know */
}

/* What every record begins with: type (2 bytes), flags, preempt count, thread (4). -1: it is too short for that. */
static s32 common_type(const struct dat_child *dc, const struct dat_record *r)
{
	u16 v;

	if (r->size < 8)
		return -1;
	memcpy(&v, r->data, sizeof(v));
	return dc->formats.swap ? __builtin_bswap16(v) : v;
}

static s32 common_pid(const struct dat_child *dc, const struct dat_record *r)
{
	u32 v;

	if (r->size < 8)
		return -1;
	memcpy(&v, (const u8 *)r->data + 4, sizeof(v));
	return dc->formats.swap ? __builtin_bswap32(v) : v;
}

static enum rec_event_type record_type(const struct dat_child *dc, const struct dat_record *r)
{
	return rec_type_of_id(&dc->formats, common_type(dc, r));
}

/* First pass, a CPU after the other: order does not matter for counting. */
static bool scan_record(struct dat_child *dc, const struct dat_record *r, struct dat_scan *scan)
{
	enum rec_event_type type = record_type(dc, r);
	struct rec_event ev;
	u32 cpu = r->cpu;

	if (!tick(dc, r))
		return false;
	if (cpu >= REC_MAX_CPUS)
		return send_error(dc, "damaged: an event on CPU %u at offset %llu", r->cpu,
				  (unsigned long long)r->offset);
	if (r->missed) {
		scan->events[REC_LOST]++;
		scan->lost += missed_count(r);
		scan->lost_gaps_unknown += !missed_count(r);
	}
	ev.type = type;
	if (type < REC_NR_TRACEPOINTS && dc->formats.can_fail[type] &&
	    rec_decode(&dc->formats, type, r->data, r->size, &ev))
		return record_too_short(dc, type, r);
	scan->events[ev.type]++;
	scan->cpu_bits[cpu / 64] |= 1ULL << cpu % 64;
	if (!scan->last_ts_ns || r->ts < scan->first_ts_ns)
		scan->first_ts_ns = r->ts;
	scan->last_ts_ns = max_of(scan->last_ts_ns, (u64)r->ts);
	return true;
}

/* What libtracecmd gave, or the end. */
static void take_tep(struct stream *s)
{
	const struct tep_record *r = s->record;

	s->pages.ended = !r;
	if (!r)
		return;
	s->pages.rec = (struct dat_record){
		.ts = r->ts, .data = r->data, .offset = r->offset, .missed = r->missed_events, .size = r->size, .cpu = r->cpu};
}

static void stream_first(struct dat_child *dc, struct stream *s, u32 cpu)
{
	if (dc->quick) {
		dat_pages_first(&s->pages, dc->job, cpu, tep_get_header_page_size(dc->tep), tep_is_old_format(dc->tep));
		return;
	}
	s->record = tracecmd_read_cpu_first(dc->handle, cpu);
	take_tep(s);
}

static inline void stream_next(struct dat_child *dc, struct stream *s)
{
	struct tep_record *old = s->record;

	if (dc->quick) {
		dat_pages_next(&s->pages);
		return;
	}
	s->record = tracecmd_read_data(dc->handle, old->cpu);
	tracecmd_free_record(old);
	take_tep(s);
}

static const struct dat_record *stream_at(const struct stream *s)
{
	return s->pages.ended ? NULL : &s->pages.rec;
}

/* Whether the library sees the same first event where we see it. */
static bool same_first(struct dat_child *dc, struct stream *s, u32 cpu)
{
	struct tep_record *r = tracecmd_read_cpu_first(dc->handle, cpu);
	const struct dat_record *at;
	bool same;

	stream_first(dc, s, cpu);
	at = stream_at(s);
	same = !s->pages.odd && !at == !r;
	if (same && r)
		same = at->ts == r->ts && at->size == (u32)r->size && at->missed == r->missed_events &&
		       (s->pages.chunk || (at->offset >= r->offset && at->offset - r->offset <= 8)); /* its is the header's */
	if (r)
		tracecmd_free_record(r);
	return same;
}

static void choose_way(struct dat_child *dc)
{
	const struct rec_meta *m = dc->job->meta;
	u32 cpu;

	dc->quick = !dc->job->by_library && m->extents && !m->time_shift && (!m->packed || m->compression[0]);
	for (cpu = 0; dc->quick && cpu < dc->job->cpus; cpu++)
		if (!same_first(dc, &dc->streams[cpu], cpu))
			dc->quick = false;
}

static bool scan_cpus(struct dat_child *dc, struct dat_scan *scan)
{
	const struct dat_record *r;
	struct stream *s;
	u32 cpu;

	for (cpu = 0; cpu < dc->job->cpus; cpu++) {
		s = &dc->streams[cpu];
		for (stream_first(dc, s, cpu); (r = stream_at(s)); stream_next(dc, s))
			if (!scan_record(dc, r, scan))
				return false;
		if (dc->quick && s->pages.odd) { /* the library may know what to make of it */
			dc->quick = false;
			memset(scan, 0, sizeof(*scan));
			return scan_cpus(dc, scan);
		}
	}
	return true;
}

static bool scan_all(struct dat_child *dc)
{
	struct dat_scan *scan = calloc(1, sizeof(*scan));
	bool good = scan && scan_cpus(dc, scan);

	if (good) {
		scan->by_library = !dc->quick;
		memcpy(scan->formats, dc->formats.f, sizeof(scan->formats));
		good = send(dc, DAT_MSG_SCAN, scan, sizeof(*scan));
	}
	free(scan);
	return good;
}

static bool flush_batch(struct dat_child *dc)
{
	u32 size = dc->nr_batch * sizeof(dc->batch.ev[0]);

	dc->batch.head = (struct dat_msg){DAT_MSG_EVENTS, size};
	dc->nr_batch = 0;
	return !size || rec_child_write(dc->out, &dc->batch, sizeof(dc->batch.head) + size);
}

static struct rec_event *batch_event(struct dat_child *dc, const struct dat_record *r)
{
	struct rec_event *ev;

	if (dc->nr_batch == DAT_BATCH && !flush_batch(dc))
		return NULL;
	ev = &dc->batch.ev[dc->nr_batch++];
	ev->ts_ns = r->ts;
	ev->cpu = r->cpu;
	ev->cur_tid = ev->cur_tgid = -1;
	ev->cgroup_id = 0;
	return ev;
}

static bool emit_record(struct dat_child *dc, const struct dat_record *r)
{
	enum rec_event_type type = record_type(dc, r);
	struct rec_event *ev;

	if (!tick(dc, r))
		return false;
	if (r->missed) {
		ev = batch_event(dc, r);
		if (!ev)
			return false;
		ev->type = REC_LOST;
		ev->lost.count = missed_count(r);
		ev->lost.cpu = r->cpu;
	}
	if (type == REC_OTHER && !dc->job->want_other)
		return true;
	ev = batch_event(dc, r);
	if (!ev)
		return false;
	if (rec_decode(&dc->formats, type, r->data, r->size, ev))
		return record_too_short(dc, type, r);
	ev->cur_tid = common_pid(dc, r);
	if (ev->type == REC_OTHER && !dc->job->want_other)
		dc->nr_batch--;
	return true;
}

/* Older first; at equal times the lower CPU, as the report of trace-cmd has it. */
static inline bool before(const struct stream *a, const struct stream *b)
{
	const struct dat_record *x = &a->pages.rec, *y = &b->pages.rec;

	return x->ts < y->ts || (x->ts == y->ts && a < b); /* streams lie in the order of CPUs */
}

static void sift_down(struct dat_child *dc, u32 i)
{
	struct stream **h = dc->heap, *s = h[i];
	u32 kid;

	while ((kid = 2 * i + 1) < dc->nr_heap) {
		if (kid + 1 < dc->nr_heap && before(h[kid + 1], h[kid]))
			kid++;
		if (!before(h[kid], s))
			break;
		h[i] = h[kid];
		i = kid;
	}
	h[i] = s;
}

static bool emit_all(struct dat_child *dc)
{
	struct stream *top;
	u32 cpu;

	for (cpu = 0; cpu < dc->job->cpus; cpu++) {
		top = &dc->streams[cpu];
		stream_first(dc, top, cpu);
		if (stream_at(top))
			dc->heap[dc->nr_heap++] = top;
	}
	for (cpu = dc->nr_heap / 2; cpu-- > 0;)
		sift_down(dc, cpu);
	while (dc->nr_heap) {
		top = dc->heap[0];
		if (!emit_record(dc, &top->pages.rec))
			return false;
		stream_next(dc, top);
		if (unlikely(top->pages.ended)) {
			if (dc->quick && top->pages.odd)
				return send_error(dc, "changed while it was read, at offset %llu",
						  (unsigned long long)top->pages.rec.offset);
			dc->heap[0] = dc->heap[--dc->nr_heap];
		}
		if (dc->nr_heap)
			sift_down(dc, 0);
	}
	return flush_batch(dc) && send(dc, DAT_MSG_END, NULL, 0);
}

int dat_child_run(int in_fd, int out_fd, void *arg)
{
	struct dat_child *dc = calloc(1, sizeof(*dc));

	if (!dc)
		return 1;
	dc->job = arg;
	dc->out = out_fd;
	dc->formats.swap = dc->job->swap;
	rec_tep_parse(dc->job->text, dc->formats.f);
	rec_formats_index(&dc->formats);
	rec_formats_states(&dc->formats, dc->job->text);
	tracecmd_set_loglevel(TEP_LOG_NONE);
	dc->top = dc->handle = tracecmd_open_fd(in_fd, TRACECMD_FL_LOAD_NO_PLUGINS);
	if (dc->job->instance && dc->top)
		dc->handle = tracecmd_buffer_instance_handle(dc->top, 0);
	dc->tep = dc->top ? tracecmd_get_tep(dc->top) : NULL;
	if (!dc->handle || !dc->tep) {
		send_error(dc, "input unreadable: libtracecmd cannot open it; record again");
		return 0;
	}
	dc->streams = calloc(dc->job->cpus + 1, sizeof(*dc->streams));
	dc->heap = calloc(dc->job->cpus + 1, sizeof(*dc->heap));
	if (!dc->streams || !dc->heap)
		return 1;
	choose_way(dc);
	/* Nothing is freed: the process ends, and freeing what a hostile file built is one more
	 * risk. */
	return scan_all(dc) && emit_all(dc) ? 0 : 1;
}
