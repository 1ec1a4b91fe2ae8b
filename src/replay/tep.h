/* SPDX-License-Identifier: BSD-2-Clause */
/* Field offsets out of the text of format files, by libtraceevent. */
#ifndef INLAY_REPLAY_TEP_H
#define INLAY_REPLAY_TEP_H

#include "replay/format.h"

struct recording;

/*
 * Parses in this process: only for a child (child.h), the library is not safe on hostile text. An
 * event that cannot be parsed or lacks a field says so in rec_format.missing.
 */
void rec_tep_parse(const struct rec_format_text text[REC_NR_TRACEPOINTS],
		   struct rec_format fmt[REC_NR_TRACEPOINTS]);

/*
 * The same in a child of its own, results checked, and the state letters added. where: what holds
 * the formats, for messages. 0 or -errno by rec_fail().
 */
int rec_tep_parse_in_child(struct recording *rec, const char *where,
			   const struct rec_format_text text[REC_NR_TRACEPOINTS],
			   struct rec_formats *ret_fmts);

/* Refuses results no sane parser gives: offsets outside a record, fields of odd sizes. */
bool rec_format_is_sane(const struct rec_format *fmt, enum rec_event_type type);

/* -ENODATA by rec_fail() naming the field if the event's format lacks one that is needed; else 0.
 */
int rec_format_check(struct recording *rec, const struct rec_format *fmt, enum rec_event_type type);

#endif
