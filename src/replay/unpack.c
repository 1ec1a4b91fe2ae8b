// SPDX-License-Identifier: BSD-2-Clause
/* gzip, xz and zstd into a spool; which one it is comes from the bytes, never from the file's name.
 */
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "replay/replay_int.h"

#define OUT_CHUNK (256 << 10)
#define IN_CHUNK  (4 << 20)
#define XZ_MEMORY (256ULL << 20) /* xz -9 needs 65 MiB */

const char *rec_compression(const u8 *p, u64 n)
{
	if (n >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8)
		return "gzip";
	if (n >= 6 && !memcmp(p,
			      "\xfd"
			      "7zXZ\0",
			      6))
		return "xz";
	if (n >= 4 && !memcmp(p, "\x28\xb5\x2f\xfd", 4))
		return "zstd";
	return NULL;
}

static int unpack_broken(struct recording *rec, const char *how, u64 off, const char *why)
{
	return rec_fail(rec, EINVAL,
			"%s data damaged near offset %llu of %llu: %s; copy or record it again",
			how, (unsigned long long)off, (unsigned long long)rec->in.size, why);
}

static int unpack_gzip(struct recording *rec, const struct rec_input *src, struct rec_spool *sp,
		       u8 *out)
{
	z_stream z = {};
	u64 done = 0;
	int zerr, err = 0;
	bool in_member = true; /* a gzip file may be several, one after the other */

	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return rec_fail(rec, ENOMEM, "out of memory");
	while (!err) {
		if (!z.avail_in && done < src->size) {
			z.next_in = (u8 *)src->map + done;
			z.avail_in = min_of(src->size - done, (u64)IN_CHUNK);
			done += z.avail_in;
			rec_progress(rec, "unpacking", done, src->size);
		}
		if (!in_member) {
			/* Zeros after the last member are padding of tapes and of some writers. */
			while (z.avail_in && !*z.next_in)
				z.next_in++, z.avail_in--;
			if (!z.avail_in && done >= src->size)
				break;
			if (!z.avail_in)
				continue;
			inflateReset(&z);
			in_member = true;
		}
		if (!z.avail_in) {
			err = unpack_broken(rec, "gzip", done, "it ends in the middle");
			break;
		}
		z.next_out = out;
		z.avail_out = OUT_CHUNK;
		zerr = inflate(&z, Z_NO_FLUSH);
		if (zerr != Z_OK && zerr != Z_STREAM_END && zerr != Z_BUF_ERROR)
			err = unpack_broken(rec, "gzip", done - z.avail_in,
					    z.msg ? z.msg : "inflate");
		else
			err = rec_spool_write(rec, sp, out, OUT_CHUNK - z.avail_out);
		if (zerr == Z_STREAM_END)
			in_member = false;
	}
	inflateEnd(&z);
	return err;
}

static int unpack_xz(struct recording *rec, const struct rec_input *src, struct rec_spool *sp,
		     u8 *out)
{
	lzma_stream z = LZMA_STREAM_INIT;
	u64 done = 0;
	lzma_ret zerr = LZMA_OK;
	int err = 0;

	if (lzma_stream_decoder(&z, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
		return rec_fail(rec, ENOMEM, "out of memory");
	while (!err && zerr != LZMA_STREAM_END) {
		if (!z.avail_in && done < src->size) {
			z.next_in = src->map + done;
			z.avail_in = min_of(src->size - done, (u64)IN_CHUNK);
			done += z.avail_in;
			rec_progress(rec, "unpacking", done, src->size);
		}
		z.next_out = out;
		z.avail_out = OUT_CHUNK;
		zerr = lzma_code(&z, done < src->size ? LZMA_RUN : LZMA_FINISH);
		if (zerr == LZMA_MEMLIMIT_ERROR)
			err = rec_fail(rec, ENOMEM, "xz data needs more than %llu MiB to unpack",
				       XZ_MEMORY >> 20);
		else if (zerr == LZMA_BUF_ERROR)
			err = unpack_broken(rec, "xz", done, "it ends in the middle");
		else if (zerr != LZMA_OK && zerr != LZMA_STREAM_END)
			err = unpack_broken(rec, "xz", done - z.avail_in, "corrupt");
		else
			err = rec_spool_write(rec, sp, out, OUT_CHUNK - z.avail_out);
	}
	lzma_end(&z);
	return err;
}

static int unpack_zstd(struct recording *rec, const struct rec_input *src, struct rec_spool *sp,
		       u8 *out)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_inBuffer in = {src->map, 0, 0};
	size_t left = 1;
	int err = 0;

	if (!z)
		return rec_fail(rec, ENOMEM, "out of memory");
	while (!err) {
		ZSTD_outBuffer ob = {out, OUT_CHUNK, 0};

		if (in.pos == in.size) {
			if (in.size == src->size)
				break;
			in.size += min_of(src->size - in.size, (u64)IN_CHUNK);
			rec_progress(rec, "unpacking", in.size, src->size);
		}
		left = ZSTD_decompressStream(z, &ob, &in);
		if (ZSTD_isError(left))
			err = unpack_broken(rec, "zstd", in.pos, ZSTD_getErrorName(left));
		else
			err = rec_spool_write(rec, sp, out, ob.pos);
		/* All input taken but the frame not drained: go on with what the decoder still
		 * holds. */
		while (!err && left && in.pos == src->size && ob.pos == ob.size) {
			ob.pos = 0;
			left = ZSTD_decompressStream(z, &ob, &in);
			if (ZSTD_isError(left))
				err = unpack_broken(rec, "zstd", in.pos, ZSTD_getErrorName(left));
			else
				err = rec_spool_write(rec, sp, out, ob.pos);
		}
	}
	if (!err && left)
		err = unpack_broken(rec, "zstd", in.pos, "it ends in the middle");
	ZSTD_freeDStream(z);
	return err;
}

int rec_unpack(struct recording *rec, const char *compression, const struct rec_input *src,
	       struct rec_spool *sp)
{
	u8 *out = malloc(OUT_CHUNK);
	int err;

	if (!out)
		return rec_fail(rec, ENOMEM, "out of memory");
	if (!strcmp(compression, "gzip"))
		err = unpack_gzip(rec, src, sp, out);
	else if (!strcmp(compression, "xz"))
		err = unpack_xz(rec, src, sp, out);
	else
		err = unpack_zstd(rec, src, sp, out);
	free(out);
	return err;
}
