// SPDX-License-Identifier: BSD-2-Clause
/*
 * `perf record -z` packs runs of records into COMPRESSED records of one zstd stream. They are
 * written out once, in place of what they came from, into a temporary file with all other records;
 * the reader then knows nothing of them. A packed record may go on in the next COMPRESSED one, with
 * plain records in between: a tail waits for its rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "replay/perf_int.h"

#define OUT_CHUNK  (128 << 10)
#define MAX_RECORD 65536

struct expander {
	struct recording *rec;
	struct rec_spool sp;
	ZSTD_DStream *z;
	u8 *buf; /* tail of a record, then fresh output */
	size_t have;
	u64 pos; /* of the COMPRESSED record, for messages */
};

/* Writes the whole records of buf and keeps the rest. */
static int drain(struct expander *ex)
{
	size_t off = 0;
	u16 size;
	int err = 0;

	while (ex->have - off >= 8) {
		size = perf_u16(ex->buf + off + 6);
		if (size < 8)
			return rec_fail(ex->rec, EINVAL,
					"damaged: a record of %u bytes in the compressed record at "
					"offset %llu",
					size, (unsigned long long)ex->pos);
		if (size > ex->have - off)
			break;
		off += size;
	}
	if (off)
		err = rec_spool_write(ex->rec, &ex->sp, ex->buf, off);
	memmove(ex->buf, ex->buf + off, ex->have - off);
	ex->have -= off;
	return err;
}

static int expand_one(struct expander *ex, const u8 *p, u64 n)
{
	ZSTD_inBuffer in = {p, n, 0};
	bool full = false;
	size_t left;
	int err;

	while (in.pos < in.size || full) {
		ZSTD_outBuffer out = {ex->buf + ex->have, MAX_RECORD + OUT_CHUNK - ex->have, 0};

		left = ZSTD_decompressStream(ex->z, &out, &in);
		if (ZSTD_isError(left))
			return rec_fail(ex->rec, EINVAL,
					"damaged: the compressed record at offset %llu does not "
					"unpack (%s)",
					(unsigned long long)ex->pos, ZSTD_getErrorName(left));
		full = out.pos == out.size;
		ex->have += out.pos;
		err = drain(ex);
		if (err)
			return err;
	}
	return 0;
}

static int expand_all(struct expander *ex, struct perf *pf)
{
	struct recording *rec = ex->rec;
	u64 pos, body, n;
	s64 span;
	u32 type;
	int err = 0;

	for (pos = pf->begin; pos < pf->end && !err; pos += span) {
		span = perf_record_span(rec, pf, pos);
		if (span < 0)
			return span;
		if (!span)
			break;
		type = perf_u32(pf->map + pos);
		ex->pos = pos;
		rec_progress(rec, "unpacking", pos - pf->begin, pf->end - pf->begin);
		if (type != PERF_USER_COMPRESSED && type != PERF_USER_COMPRESSED2) {
			err = rec_spool_write(rec, &ex->sp, pf->map + pos, span);
			continue;
		}
		body = 8;
		n = perf_u16(pf->map + pos + 6) - body;
		if (type == PERF_USER_COMPRESSED2) { /* says its length, for it is padded */
			if (n < 8 || perf_u64(pf->map + pos + 8) > n - 8)
				return rec_fail(rec, EINVAL,
						"damaged: the compressed record at offset %llu",
						(unsigned long long)pos);
			body = 16;
			n = perf_u64(pf->map + pos + 8);
		}
		err = expand_one(ex, pf->map + pos + body, n);
	}
	if (!err && ex->have)
		rec_warn(rec, "the compressed records end in the middle of one; %zu bytes left out",
			 ex->have);
	return err;
}

int perf_expand(struct recording *rec, struct perf *pf)
{
	struct expander ex = {.rec = rec};
	int err = rec_spool_init(rec, &ex.sp);

	if (err)
		return err;
	ex.z = ZSTD_createDStream();
	ex.buf = malloc(MAX_RECORD + OUT_CHUNK);
	if (!ex.z || !ex.buf)
		err = rec_fail(rec, ENOMEM, "out of memory");
	if (!err)
		err = expand_all(&ex, pf);
	if (!err)
		err = rec_spool_finish(rec, &ex.sp, &pf->plain);
	ZSTD_freeDStream(ex.z);
	free(ex.buf);
	rec_spool_fini(&ex.sp);
	if (err)
		return err;
	pf->map = pf->plain.map;
	pf->begin = 0;
	pf->end = pf->plain.size;
	return 0;
}
