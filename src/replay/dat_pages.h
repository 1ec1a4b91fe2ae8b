/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CPU's events straight out of its ring buffer pages, for the child of the trace.dat reader: the pages are the mapped
 * file's, or chunks of it unpacked one at a time, and libtraceevent's kbuffer steps through each. It gives what libtracecmd
 * gives where no times need a correction, without a heap object an event.
 */
#ifndef INLAY_REPLAY_DAT_PAGES_H
#define INLAY_REPLAY_DAT_PAGES_H

#include "replay/dat_int.h"

struct kbuffer;

/* An event of any source. */
struct dat_record {
	u64 ts;
	const u8 *data;
	u64 offset; /* in the file: of data, or of the chunk it was unpacked from */
	s64 missed; /* events lost before it; negative: some, nobody knows how many */
	u32 size, cpu;
};

struct dat_pages {
	struct dat_record rec; /* the present event, unless ended */
	bool ended;
	bool odd; /* it ended at something that only libtracecmd can say more about */
	const struct dat_job *job;
	struct kbuffer *kbuf;
	const u8 *page, *end; /* the next page, and the end of those at hand */
	u64 pos, left;	      /* chunks not unpacked yet: where, and how many */
	u8 *chunk;	      /* NULL: pages are the file's own */
	u64 chunk_size, chunk_cap;
	u64 chunk_pos;
};

/* Moves to the first event. long_size: of the recording kernel, as its page header says. Never freed: the child ends. */
void dat_pages_first(struct dat_pages *s, const struct dat_job *job, u32 cpu, int long_size, bool old_format);
/* Takes in the next page that holds an event; dat_pages_next()'s. */
void dat_pages_turn(struct dat_pages *s);
void dat_pages_next(struct dat_pages *s);

#endif
