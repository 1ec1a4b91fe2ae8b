/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the perf.data reader only. */
#ifndef INLAY_REPLAY_PERF_INT_H
#define INLAY_REPLAY_PERF_INT_H

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "replay/format.h"
#include "replay/merge.h"
#include "replay/replay_int.h"

/* Records that perf itself adds to the kernel's (PERF_RECORD_USER_TYPE_START and up). */
enum {
	PERF_USER_HEADER_ATTR = 64,
	PERF_USER_TRACING_DATA = 66,
	PERF_USER_FINISHED_ROUND = 68,
	PERF_USER_AUXTRACE = 71,
	PERF_USER_HEADER_FEATURE = 80,
	PERF_USER_COMPRESSED = 81,
	PERF_USER_COMPRESSED2 = 83,
};

/* Bits of the feature table. */
enum {
	PERF_FEAT_TRACING_DATA = 1,
	PERF_FEAT_HOSTNAME = 3,
	PERF_FEAT_OSRELEASE = 4,
	PERF_FEAT_BITS = 256
};

#define PERF_MAX_ATTRS 65536
#define PERF_MAX_IDS   (16u << 20)

/* Where things are in the samples of one event; offsets from the end of the record's 8-byte header.
 */
struct perf_layout {
	u64 type;		/* sample_type */
	s16 tid, time, id, cpu; /* -1: not there */
	u16 dynamic;		/* where the parts of varying length begin */
	u64 read_format;
	u64 branch_type, regs_user, regs_intr; /* what decides the length of those parts */
	/* The same at the end of other records, offsets back from their end; -1: not there. */
	s16 tail_time, tail_cpu, tail_id, tail_tid;
	u16 tail_size;
	bool is_tracepoint;
	/* Samples have time, CPU and thread at fixed places, and nothing behind the fixed part that need be looked at … */
	bool plain;
	bool has_raw; /* … but the raw data */
	u64 config;
};

/* What a SAMPLE record holds that we need. */
struct perf_sample {
	u64 time, cgroup;
	u32 pid, tid, cpu;
	const u8 *raw; /* NULL: none */
	u32 raw_size;
};

struct perf_task_note { /* a FORK record not yet matched with its sched_process_fork */
	s32 tid, tgid;
};

/* The last id looked up among those that end in the same bits. */
struct perf_recent {
	u64 id; /* 0: none */
	const struct perf_layout *layout;
};

#define PERF_RECENT    64 /* power of two */
#define PERF_NOTES     256 /* power of two */
#define PERF_SLOT_BITS 7

/* A record of the data section, as far as it was looked at. */
struct perf_record {
	u64 pos, span, time; /* pos U64_MAX: none; time 0: it has none */
	u32 kind;	     /* PERF_RECORD_… */
	enum rec_event_type type;
	const struct perf_layout *layout;
	struct perf_sample sample;
};

struct perf {
	struct rec_input plain; /* the records with COMPRESSED ones expanded; fd -1: use rec->in */
	const u8 *map;		/* of the records */
	u64 begin, end;		/* data section */
	bool is_pipe;
	bool truncated; /* pipe mode: the last record is cut */
	u64 cut_bytes;
	struct perf_layout *attrs;
	u32 nr_attrs;
	bool one_layout; /* all attrs agree, or there is one: no id is needed */
	s16 id_offset;	 /* of the id in samples; -1: none */
	/* id -> attr, open addressing; key 0 is an empty slot */
	u64 *id_keys;
	u32 *id_vals;
	u32 nr_ids, id_cap;
	struct perf_recent recent[PERF_RECENT]; /* emptied by perf_settle_attrs() */
	u64 unknown_ids; /* samples whose id no attribute has */
	struct rec_formats formats;
	bool have_formats;
	struct rec_merge merge;
	bool by_rounds;		/* too many runs to hold: order within rounds */
	u64 round_pos;		/* by_rounds: where the next round begins */
	u64 round_limit;	/* events up to this time can go out */
	u64 round_max;		/* latest time up to the previous round */
	u64 lost, lost_samples; /* sums of LOST, and of LOST_SAMPLES, which counts the same again */
	bool tail_done;		/* the losses known only at the end were handed out */
	bool attrs_dirty;	/* pipe mode: attributes came since perf_settle_attrs() */
	struct perf_record slots[1 << PERF_SLOT_BITS];
	struct perf_task_note notes[PERF_NOTES];
	struct perf_cgroup {
		u64 id;
		char *path;
	} *cgroups;
	u32 nr_cgroups, cap_cgroups;
};

static inline u64 perf_u64(const u8 *p)
{
	u64 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline u32 perf_u32(const u8 *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline u16 perf_u16(const u8 *p)
{
	u16 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* perf_header.c: what stands before the records. All: 0 or -errno by rec_fail(). */
int perf_read_header(struct recording *rec, struct perf *pf);
int perf_add_attr(struct recording *rec, struct perf *pf, const u8 *attr, u64 attr_size,
		  const u8 *ids, u64 nr_ids);
int perf_take_formats(struct recording *rec, struct perf *pf, const u8 *p, u64 n, u64 off);
void perf_take_host(struct recording *rec, u32 feature, const u8 *p, u64 n);
/* After the attributes: how an id is found in a record. */
int perf_settle_attrs(struct recording *rec, struct perf *pf);

/* perf_sample.c */
void perf_layout_init(struct perf_layout *l, const struct perf_event_attr *attr);
const struct perf_layout *perf_layout_of_id(const struct perf *pf, u64 id);
/* Layout of the record of n bytes at p; NULL: of an event nobody declared. */
const struct perf_layout *perf_layout_of(struct perf *pf, u32 type, const u8 *p, u32 n);
/* Time of the record, 0 where it has none. */
u64 perf_time(const struct perf_layout *l, u32 type, const u8 *p, u32 n);
u32 perf_tail_cpu(const struct perf_layout *l, const u8 *p, u32 n);
/* 0, or -EINVAL: it does not hold what its event says. */
int perf_parse_sample(const struct perf_layout *l, const u8 *p, u32 n, struct perf_sample *s);
/* Type of a sample by its event and raw data. */
static inline enum rec_event_type perf_sample_type(const struct perf *pf, const struct perf_layout *l,
						   const struct perf_sample *s)
{
	if (!l->is_tracepoint || !s->raw || s->raw_size < 2 || !pf->have_formats)
		return REC_OTHER;
	return rec_type_of_id(&pf->formats, perf_u16(s->raw));
}

/* The layout of a sample of n bytes at p, as perf_layout_of(). */
static inline const struct perf_layout *perf_sample_layout(struct perf *pf, const u8 *p, u32 n)
{
	struct perf_recent *recent;
	u64 id;

	if (pf->one_layout || pf->id_offset < 0 || (u32)pf->id_offset + 16 > n)
		return perf_layout_of(pf, PERF_RECORD_SAMPLE, p, n);
	id = perf_u64(p + 8 + pf->id_offset);
	recent = &pf->recent[id % PERF_RECENT];
	if (likely(recent->id == id && id))
		return recent->layout;
	recent->layout = perf_layout_of_id(pf, id);
	recent->id = recent->layout ? id : 0;
	return recent->layout;
}

/* perf_parse_sample() for the usual layout. */
static inline int perf_take_sample(const struct perf_layout *l, const u8 *p, u32 n, struct perf_sample *s)
{
	const u8 *body = p + 8;

	if (unlikely(!l->plain || n < 8u + l->dynamic + 4 * l->has_raw))
		return perf_parse_sample(l, p, n, s);
	s->time = perf_u64(body + l->time);
	s->pid = perf_u32(body + l->tid);
	s->tid = perf_u32(body + l->tid + 4);
	s->cpu = perf_u32(body + l->cpu);
	s->cgroup = 0;
	if (!l->has_raw) {
		s->raw = NULL;
		s->raw_size = 0;
		return 0;
	}
	s->raw_size = perf_u32(body + l->dynamic);
	s->raw = body + l->dynamic + 4;
	return s->raw_size > n - 12 - l->dynamic ? -EINVAL : 0;
}

/* perf_expand.c: a copy of the data section with COMPRESSED records replaced by what is in them. */
int perf_expand(struct recording *rec, struct perf *pf);

/*
 * Length of the record at pos with what follows it (AUXTRACE, TRACING_DATA), checked against the
 * end. 0: it is cut off at the end of a pipe-mode stream. -errno by rec_fail().
 */
s64 perf_odd_span(struct recording *rec, struct perf *pf, u64 pos);

static inline s64 perf_record_span(struct recording *rec, struct perf *pf, u64 pos)
{
	const u8 *p = pf->map + pos;
	u64 left = pf->end - pos, span;

	if (likely(left >= 8 && perf_u32(p) < PERF_USER_HEADER_ATTR)) {
		span = perf_u16(p + 6);
		if (likely(span >= 8 && span <= left))
			return span;
	}
	return perf_odd_span(rec, pf, pos); /* perf's own record, or damage */
}

#endif
