/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The container that trace.dat files and perf.data's TRACING_DATA share: magic, then header_page,
 * header_event and the format files. Our own bounds-checked walk: it finds the texts the formats
 * are parsed from, what there is to say about the recording, and damage (truncation above all) with
 * its offset, before any library sees the file.
 */
#ifndef INLAY_REPLAY_META_H
#define INLAY_REPLAY_META_H

#include "replay/format.h"

struct recording;

#define REC_META_MAX_UNPACKED (256u << 20) /* a format section holds a few MiB at most */

/* Where in the file the ring buffer pages of a CPU lie. */
struct rec_extent {
	u64 off, size; /* size 0: none */
};

struct rec_meta {
	u32 version; /* 6 or 7 */
	bool big_endian;
	u8 long_size;  /* bytes, 4 or 8 */
	u32 page_size; /* bytes */
	struct rec_format_text text[REC_NR_TRACEPOINTS];
	char clock[32];	 /* "": unknown */
	char uname[256]; /* "": unknown */
	u32 cpus;	 /* highest CPU number of any buffer, + 1 */
	u64 top_bytes;	 /* of ring buffer data in the top buffer */
	u32 instances;	 /* further buffers */
	/*
	 * By CPU, of the buffer that is read: the top one, or the first of the others where that is empty. NULL: not known
	 * (the others of version 6).
	 */
	struct rec_extent *extents;
	bool packed;		  /* they hold compressed chunks, not pages */
	char compression[8];	  /* of the chunks: "zstd", "zlib"; "": none, or one that is not known here */
	bool time_shift;	  /* times need a correction that changes along the recording */
	u8 *unpacked;	 /* what text points into, where the section was compressed */
};

void rec_meta_fini(struct rec_meta *m);

/*
 * Unpacks exactly n bytes into out; false: the bytes are not that, or the compression ("zstd", "zlib") is unknown. Safe on
 * hostile bytes as far as its library is.
 */
bool rec_meta_unpack(const char *compression, const u8 *z, u64 zn, u8 *out, u64 n);

/* A whole trace.dat file. 0 or -errno by rec_fail(). */
int rec_meta_parse_dat(struct recording *rec, struct rec_meta *m);

/* perf's TRACING_DATA: n bytes at p, which lie at offset base of the file. Fills long_size,
 * big_endian and text. */
int rec_meta_parse_perf(struct recording *rec, struct rec_meta *m, const u8 *p, u64 n, u64 base);

#endif
