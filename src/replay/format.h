/* SPDX-License-Identifier: BSD-2-Clause */
/* Binary tracepoint records to struct rec_event, by the field offsets of the recording's own format
 * files. */
#ifndef INLAY_REPLAY_FORMAT_H
#define INLAY_REPLAY_FORMAT_H

#include "replay/recording.h"
#include "replay/state.h"

#define REC_NR_TRACEPOINTS (REC_MIGRATE + 1) /* the first types of enum rec_event_type */
#define REC_MAX_FIELDS	   8
#define REC_NEAR_IDS	   1024

enum rec_field_kind {
	REC_FIELD_NONE,
	REC_FIELD_INT,
	REC_FIELD_CHARS,
	REC_FIELD_DATA_LOC,
	REC_FIELD_REL_LOC
};

struct rec_field {
	u16 offset, size;
	u8 kind;      /* enum rec_field_kind */
	u8 is_signed; /* 0 or 1; no bool, a hostile child may send any byte */
};

/* One event's layout; how the child reports it as well, so it holds no pointers. */
struct rec_format {
	u8 known;     /* the recording has this format */
	u32 id;	      /* common_type */
	u32 min_size; /* bytes that the fixed fields need */
	struct rec_field fields[REC_MAX_FIELDS];
	char missing[32]; /* first needed field that is absent or of an odd shape; "": none */
};

struct rec_formats {
	struct rec_format f[REC_NR_TRACEPOINTS];
	u32 ids[REC_NR_TRACEPOINTS]; /* of f, close together; U32_MAX: not known
					(rec_formats_index()) */
	u8 by_id[REC_NEAR_IDS];	     /* enum rec_event_type of small ids, the usual ones */
	bool plain[REC_NR_TRACEPOINTS]; /* our byte order, numbers and names of the usual sizes */
	bool can_fail[REC_NR_TRACEPOINTS]; /* a field says whether it woke anybody */
	struct rec_states states;
	bool swap; /* the records are of the other endianness */
};

/* Text of one format file, not terminated; p is NULL where there is none. */
struct rec_format_text {
	const char *p;
	size_t n;
};

/* Names of the fields a tracepoint needs, in the order of rec_format.fields; NULL after the last.
 */
const char *rec_field_name(enum rec_event_type type, unsigned int field);
bool rec_field_is_optional(enum rec_event_type type, unsigned int field);

/* The tracepoint of that name in system "sched", or REC_OTHER. */
enum rec_event_type rec_event_of_name(const char *name, size_t n);

/* Fills states from the text of sched_switch. -ENOENT: it names none, and those of 4.14 and later
 * are taken. */
int rec_formats_states(struct rec_formats *fmts,
		       const struct rec_format_text text[REC_NR_TRACEPOINTS]);

/* Once f is filled, before the lookups below. */
void rec_formats_index(struct rec_formats *fmts);

/* Type of the record with this common_type; REC_OTHER: none of ours. */
static inline enum rec_event_type rec_type_of_id(const struct rec_formats *fmts, u32 id)
{
	u32 t;

	if (likely(id < REC_NEAR_IDS))
		return (enum rec_event_type)fmts->by_id[id];
	for (t = 0; t < REC_NR_TRACEPOINTS; t++)
		if (fmts->ids[t] == id)
			return (enum rec_event_type)t;
	return REC_OTHER;
}

/*
 * Fills the event's union from the record's n bytes; ev->type may become REC_OTHER (a wake-up that
 * was none). 0, or -EINVAL when the record is too short for its format.
 */
int rec_decode(const struct rec_formats *fmts, enum rec_event_type type, const u8 *raw, u32 n,
	       struct rec_event *ev);

#endif
