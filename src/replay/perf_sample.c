// SPDX-License-Identifier: BSD-2-Clause
/* Layout of perf samples: where the time, CPU, thread and raw data are, for each event's own
 * sample_type. */
#include "replay/perf_int.h"

#define HDR 8 /* struct perf_event_header */

static s16 place(u64 type, u64 bit, u16 *off)
{
	s16 at = *off;

	if (!(type & bit))
		return -1;
	*off += 8;
	return at;
}

void perf_layout_init(struct perf_layout *l, const struct perf_event_attr *attr)
{
	u64 type = attr->sample_type;
	u16 off = 0;

	memset(l, 0, sizeof(*l));
	l->type = type;
	l->read_format = attr->read_format;
	l->branch_type = attr->branch_sample_type;
	l->regs_user = attr->sample_regs_user;
	l->regs_intr = attr->sample_regs_intr;
	l->is_tracepoint = attr->type == PERF_TYPE_TRACEPOINT;
	l->config = attr->config;
	l->id = place(type, PERF_SAMPLE_IDENTIFIER, &off);
	place(type, PERF_SAMPLE_IP, &off);
	l->tid = place(type, PERF_SAMPLE_TID, &off);
	l->time = place(type, PERF_SAMPLE_TIME, &off);
	place(type, PERF_SAMPLE_ADDR, &off);
	if (type & PERF_SAMPLE_ID)
		l->id = l->id >= 0 ? (off += 8, l->id) : place(type, PERF_SAMPLE_ID, &off);
	place(type, PERF_SAMPLE_STREAM_ID, &off);
	l->cpu = place(type, PERF_SAMPLE_CPU, &off);
	place(type, PERF_SAMPLE_PERIOD, &off);
	l->dynamic = off;
	l->has_raw = type & PERF_SAMPLE_RAW;
	l->plain = l->tid >= 0 && l->time >= 0 && l->cpu >= 0 &&
		   !(type & (PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CGROUP));

	/* The tail of other records: the same order, counted from the end. */
	l->tail_time = l->tail_cpu = l->tail_id = l->tail_tid = -1;
	if (!attr->sample_id_all)
		return;
	off = 0;
	if (type & PERF_SAMPLE_IDENTIFIER)
		l->tail_id = (off += 8);
	if (type & PERF_SAMPLE_CPU)
		l->tail_cpu = (off += 8);
	if (type & PERF_SAMPLE_STREAM_ID)
		off += 8;
	if (type & PERF_SAMPLE_ID) {
		off += 8;
		if (l->tail_id < 0)
			l->tail_id = off;
	}
	if (type & PERF_SAMPLE_TIME)
		l->tail_time = (off += 8);
	if (type & PERF_SAMPLE_TID)
		l->tail_tid = (off += 8);
	l->tail_size = off;
}

const struct perf_layout *perf_layout_of_id(const struct perf *pf, u64 id)
{
	u64 i;

	if (!pf->id_cap || !id)
		return NULL;
	for (i = (id * 0x9e3779b97f4a7c15ULL) >> 32;; i++) {
		i &= pf->id_cap - 1;
		if (pf->id_keys[i] == id)
			return &pf->attrs[pf->id_vals[i]];
		if (!pf->id_keys[i])
			return NULL;
	}
}

const struct perf_layout *perf_layout_of(struct perf *pf, u32 type, const u8 *p, u32 n)
{
	const struct perf_layout *l;
	s32 at;

	if (!pf->nr_attrs)
		return NULL;
	if (pf->one_layout)
		return &pf->attrs[0];
	if (type == PERF_RECORD_SAMPLE)
		at = pf->id_offset < 0 ? -1 : HDR + pf->id_offset;
	else if (pf->attrs[0].tail_id >= 0)
		at = (s32)n - pf->attrs[0].tail_id;
	else
		at = -1;
	if (at < HDR || at + 8 > (s32)n)
		return type == PERF_RECORD_SAMPLE ? NULL : &pf->attrs[0];
	l = perf_layout_of_id(pf, perf_u64(p + at));
	/* What perf synthesises at the start bears id 0; its tail is laid out as the first event's.
	 */
	return l || type == PERF_RECORD_SAMPLE ? l : &pf->attrs[0];
}

u64 perf_time(const struct perf_layout *l, u32 type, const u8 *p, u32 n)
{
	s32 at;
	u64 t;

	if (type == PERF_RECORD_SAMPLE)
		at = l->time < 0 ? -1 : HDR + l->time;
	else
		at = l->tail_time < 0 ? -1 : (s32)n - l->tail_time;
	if (at < HDR || at + 8 > (s32)n)
		return 0;
	t = perf_u64(p + at);
	return t == U64_MAX ? 0 : t;
}

u32 perf_tail_cpu(const struct perf_layout *l, const u8 *p, u32 n)
{
	return l->tail_cpu < 0 || n < HDR + (u32)l->tail_size ? U32_MAX
							      : perf_u32(p + n - l->tail_cpu);
}

/* A reader over the parts of varying length; bad once something does not fit. */
struct tail {
	const u8 *p;
	u32 pos, n;
	bool bad;
};

static u64 tail_u64(struct tail *t)
{
	u64 v;

	if (t->bad || t->n - t->pos < 8) {
		t->bad = true;
		return 0;
	}
	v = perf_u64(t->p + t->pos);
	t->pos += 8;
	return v;
}

static void tail_skip(struct tail *t, u64 count, u32 size)
{
	if (t->bad || count > (t->n - t->pos) / size)
		t->bad = true;
	else
		t->pos += count * size;
}

static void skip_read(const struct perf_layout *l, struct tail *t)
{
	u64 rf = l->read_format;
	u64 nr = 1, each = 1;

	if (rf & PERF_FORMAT_GROUP)
		nr = tail_u64(t);
	each += !!(rf & PERF_FORMAT_ID) + !!(rf & (1U << 4) /* PERF_FORMAT_LOST */);
	if (rf & PERF_FORMAT_TOTAL_TIME_ENABLED)
		tail_u64(t);
	if (rf & PERF_FORMAT_TOTAL_TIME_RUNNING)
		tail_u64(t);
	tail_skip(t, nr, each * 8);
}

static void skip_regs(u64 mask, struct tail *t)
{
	if (tail_u64(t)) /* abi; 0: no registers follow */
		tail_skip(t, __builtin_popcountll(mask), 8);
}

/* What stands between the raw data and the cgroup id. */
static u64 read_cgroup(const struct perf_layout *l, struct tail *t)
{
	u64 type = l->type, n;

	if (type & PERF_SAMPLE_BRANCH_STACK) {
		n = tail_u64(t);
		if (l->branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
			tail_u64(t);
		tail_skip(t, n, 24);
	}
	if (type & PERF_SAMPLE_REGS_USER)
		skip_regs(l->regs_user, t);
	if (type & PERF_SAMPLE_STACK_USER) {
		n = tail_u64(t);
		tail_skip(t, n, 1);
		if (n)
			tail_u64(t);
	}
	n = !!(type & (PERF_SAMPLE_WEIGHT | (1U << 24) /* PERF_SAMPLE_WEIGHT_STRUCT */));
	n += !!(type & PERF_SAMPLE_DATA_SRC) + !!(type & PERF_SAMPLE_TRANSACTION);
	tail_skip(t, n, 8);
	if (type & PERF_SAMPLE_REGS_INTR)
		skip_regs(l->regs_intr, t);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		tail_u64(t);
	return tail_u64(t);
}

int perf_parse_sample(const struct perf_layout *l, const u8 *p, u32 n, struct perf_sample *s)
{
	const u8 *body = p + HDR;
	struct tail t = {.p = body, .pos = l->dynamic, .n = n - HDR};

	if (t.n < l->dynamic)
		return -EINVAL;
	s->time = l->time < 0 ? 0 : perf_u64(body + l->time);
	s->pid = l->tid < 0 ? U32_MAX : perf_u32(body + l->tid);
	s->tid = l->tid < 0 ? U32_MAX : perf_u32(body + l->tid + 4);
	s->cpu = l->cpu < 0 ? U32_MAX : perf_u32(body + l->cpu);
	s->raw = NULL;
	s->raw_size = 0;
	s->cgroup = 0;
	if (l->type & PERF_SAMPLE_READ)
		skip_read(l, &t);
	if (l->type & PERF_SAMPLE_CALLCHAIN)
		tail_skip(&t, tail_u64(&t), 8);
	if (l->type & PERF_SAMPLE_RAW) {
		if (t.bad || t.n - t.pos < 4)
			return -EINVAL;
		s->raw_size = perf_u32(t.p + t.pos);
		t.pos += 4;
		if (s->raw_size > t.n - t.pos)
			return -EINVAL;
		s->raw = t.p + t.pos;
		t.pos += s->raw_size;
	}
	if (l->type & PERF_SAMPLE_CGROUP)
		s->cgroup = read_cgroup(l, &t);
	return t.bad ? -EINVAL : 0;
}
