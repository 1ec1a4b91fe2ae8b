/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a recording: a file mapped as it is, or unpacked first into an unlinked temporary
 * file. */
#ifndef INLAY_REPLAY_INPUT_H
#define INLAY_REPLAY_INPUT_H

#include "base/types.h"

struct recording;

struct rec_input {
	int fd;			 /* seekable; -1: none, map is the caller's memory */
	const u8 *map;		 /* whole file, read-only, shared; NULL when size is 0 */
	u64 size;		 /* bytes */
	const char *compression; /* outermost: "gzip", "xz", "zstd"; NULL: none */
	u64 used;		 /* bytes read since pages were given back */
};

/* A temporary file being written. */
struct rec_spool {
	int fd;	   /* -1: none */
	u64 size;  /* bytes written */
	u64 limit; /* most bytes */
	u8 *buf;   /* collects small writes */
	size_t used;
};

/* Opens path, unpacks if need be, maps. Fills rec->in; 0 or -errno by rec_fail(). */
int rec_input_open(struct recording *rec, const char *path);
void rec_input_fini(struct rec_input *in);

/* A descriptor of the input with a file offset of its own; -errno. The caller closes it. */
int rec_input_reopen(const struct rec_input *in);

/*
 * Counts bytes read of a mapped input, and from time to time gives all its pages back, so that
 * reading a large file keeps the process small; what is needed again comes from the page cache.
 */
void rec_input_used(struct rec_input *in, u64 bytes);

/* 0 or -errno by rec_fail(). */
int rec_spool_init(struct recording *rec, struct rec_spool *sp);
int rec_spool_write(struct recording *rec, struct rec_spool *sp, const void *data, size_t n);
/* Flushes, maps, and moves the file into in (which must be empty). */
int rec_spool_finish(struct recording *rec, struct rec_spool *sp, struct rec_input *in);
void rec_spool_fini(struct rec_spool *sp);

/*
 * Name of the compression the bytes begin with, or NULL; and unpacking of src into sp, chosen by
 * that name. (unpack.c)
 */
const char *rec_compression(const u8 *p, u64 n);
int rec_unpack(struct recording *rec, const char *compression, const struct rec_input *src,
	       struct rec_spool *sp);

#endif
