/* SPDX-License-Identifier: BSD-2-Clause */
/* What the readers of src/replay share and nobody else sees. */
#ifndef INLAY_REPLAY_REPLAY_INT_H
#define INLAY_REPLAY_REPLAY_INT_H

#include "replay/input.h"
#include "replay/recording.h"

#define NSEC_PER_SEC 1000000000ULL

struct rec_reader {
	int (*next)(struct recording *rec, struct rec_event *ev); /* as recording_next() */
	void (*close)(struct recording *rec); /* frees rec->priv, which may be NULL */
	const char *(*cgroup)(const struct recording *rec, u64 id); /* may be NULL */
};

struct recording {
	char *name; /* for messages: the path, or "standard input" */
	struct rec_input in;
	struct recording_opts opts;
	struct recording_info info;
	struct strbuf err; /* one line; set by rec_fail() */
	int error;	   /* sticky result of a failed recording_next() */
	bool ended;
	u64 last_ts;  /* of the event handed out last */
	u64 late;     /* events whose time stamp was raised to keep the order */
	char *format; /* owns info.format, info.host, info.clock */
	char *host;
	char *clock;
	const struct rec_reader *reader;
	void *priv;			 /* of the reader */
	u64 cpu_bits[REC_MAX_CPUS / 64]; /* CPUs with an event */
};

/* Readers: the input is mapped; on success they set rec->reader and fill rec->info. 0 or -errno by
 * rec_fail(). */
int rec_perf_open(struct recording *rec);
int rec_dat_open(struct recording *rec);
int rec_text_open(struct recording *rec);

/* Sets the reason, prefixed with the recording's name, and returns -err. */
int rec_fail(struct recording *rec, int err, const char *fmt, ...) __printf_like(3, 4);
void rec_warn(struct recording *rec, const char *fmt, ...) __printf_like(2, 3);
void rec_progress(struct recording *rec, const char *stage, u64 done, u64 total);

/* Counts an event of the first pass: type, CPU, first and last time. -errno by rec_fail() for an
 * impossible CPU. */
int rec_count(struct recording *rec, enum rec_event_type type, u32 cpu, u64 ts_ns);
/* Counts a gap of n events (0: unknown). */
void rec_count_lost(struct recording *rec, u64 n);

/* Copies at most n bytes up to a NUL and terminates. */
void rec_copy_comm(char dst[REC_COMM_LEN], const char *src, size_t n);

#endif
