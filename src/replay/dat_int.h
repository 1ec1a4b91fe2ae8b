/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the two halves of the trace.dat reader. The child runs libtracecmd: it sends what a first
 * pass found (one DAT_SCAN), then the events in order, then DAT_END. The parent believes nothing it
 * gets.
 */
#ifndef INLAY_REPLAY_DAT_INT_H
#define INLAY_REPLAY_DAT_INT_H

#include "replay/format.h"
#include "replay/meta.h"
#include "replay/replay_int.h"

enum dat_msg_kind { DAT_MSG_ERROR = 1, DAT_MSG_TICK, DAT_MSG_SCAN, DAT_MSG_EVENTS, DAT_MSG_END };

struct dat_msg {
	u32 kind; /* enum dat_msg_kind */
	u32 size; /* bytes that follow */
};

#define DAT_BATCH      2048 /* events in one message at most */
#define DAT_ERROR_MAX  512
#define DAT_TICK_EVERY 65536 /* records between signs of life */

struct dat_scan {
	struct rec_format formats[REC_NR_TRACEPOINTS];
	u64 events[REC_NR_TYPES];
	u64 lost, lost_gaps_unknown;
	u64 first_ts_ns, last_ts_ns;
	u64 cpu_bits[REC_MAX_CPUS / 64];
	u32 by_library; /* recording_info's */
	u32 unused;
};

/* Written by the child, read by the parent: where in the file it is. */
struct dat_shared {
	u64 offset;
};

struct dat_job {
	struct rec_format_text text[REC_NR_TRACEPOINTS];
	const struct rec_input *in;
	const struct rec_meta *meta;
	bool swap, want_other;
	bool by_library; /* recording_opts' */
	bool instance; /* read the first instance, the top buffer is empty */
	u32 cpus;      /* CPU numbers to try */
	volatile struct dat_shared *shared;
};

/* trace_dat_child.c; a rec_child_job.run. arg: struct dat_job. */
int dat_child_run(int in_fd, int out_fd, void *arg);

#endif
