/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the text reader only. */
#ifndef INLAY_REPLAY_TEXT_INT_H
#define INLAY_REPLAY_TEXT_INT_H

#include "replay/recording.h"
#include "replay/state.h"

enum text_kind {
	TEXT_NONE,    /* nothing: empty, a callchain, a comment */
	TEXT_UNKNOWN, /* a line of no known form */
	TEXT_EVENT,   /* prefix understood; type says which */
	TEXT_LOST,    /* a loss notice; lost and cpu are set */
};

/* One line, as far as its prefix goes. */
struct text_line {
	enum text_kind kind;
	enum rec_event_type type;
	u64 ts_ns;     /* 0 for a loss notice without a time */
	u32 cpu;       /* U32_MAX: unknown (loss notices) */
	s32 tid, tgid; /* of the current thread; -1: unknown */
	u64 lost;
	u8 frac_digits;		  /* of the time stamp */
	bool dash;		  /* comm-pid, as ftrace and trace-cmd write it */
	bool no_time;		  /* the stamp is a bare counter */
	const char *fields, *end; /* what follows the event's name */
};

/* [p, end): without the newline. */
void text_parse_line(const char *p, const char *end, struct text_line *ret_line);

/*
 * Fills the union of ev from the fields. prev_state as a number is kept in *ret_raw (U64_MAX: it
 * was letters), for the caller to translate. May turn ev->type into REC_OTHER. false: they are none
 * of the known forms.
 */
bool text_parse_fields(const struct text_line *line, struct rec_event *ev, u64 *ret_raw);

/* Small scanners: advance *p past what they accept and return true, or leave it. (text_fields.c) */
bool text_lit(const char **p, const char *end, const char *lit);
bool text_int(const char **p, const char *end, s64 *ret_value);

#endif
