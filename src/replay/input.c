// SPDX-License-Identifier: BSD-2-Clause
/* Opening, spooling and mapping a recording, so that every reader has one seekable mapped file. */
#include "replay/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/replay_int.h"

#define SPOOL_LIMIT  (64ULL << 30)
#define SPOOL_BUF    (256 << 10)
#define FORGET_EVERY (32ULL << 20)
#define MAX_LAYERS   3 /* a .gz inside an .xz is odd, more is an attack */

static const char *spool_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

int rec_spool_init(struct recording *rec, struct rec_spool *sp)
{
	struct strbuf path = STRBUF_INIT;

	memset(sp, 0, sizeof(*sp));
	sp->limit = rec->opts.max_spool ? rec->opts.max_spool : SPOOL_LIMIT;
	sp->fd = open(spool_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (sp->fd < 0) { /* file systems without O_TMPFILE */
		strbuf_printf(&path, "%s/inlay-XXXXXX", spool_dir());
		sp->fd = strbuf_failed(&path) ? -1 : mkostemp(path.s, O_CLOEXEC);
		if (sp->fd >= 0)
			unlink(path.s);
		strbuf_fini(&path);
	}
	if (sp->fd < 0)
		return rec_fail(rec, errno,
				"no temporary file in %s to unpack into: %s; set TMPDIR",
				spool_dir(), strerror(errno));
	sp->buf = malloc(SPOOL_BUF);
	if (!sp->buf) {
		rec_spool_fini(sp);
		return rec_fail(rec, ENOMEM, "out of memory");
	}
	return 0;
}

static int spool_flush(struct recording *rec, struct rec_spool *sp)
{
	size_t done = 0;
	ssize_t n;

	while (done < sp->used) {
		n = write(sp->fd, sp->buf + done, sp->used - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rec_fail(rec, errno,
					"unpacking into %s after %llu bytes: %s; set TMPDIR to "
					"where there is room",
					spool_dir(), (unsigned long long)sp->size, strerror(errno));
		done += n;
	}
	sp->used = 0;
	return 0;
}

int rec_spool_write(struct recording *rec, struct rec_spool *sp, const void *data, size_t n)
{
	const u8 *p = data;
	size_t part;
	int err;

	if (n > sp->limit - sp->size)
		return rec_fail(
			rec, EFBIG,
			"unpacks to more than %llu bytes; unpack it yourself to read it anyway",
			(unsigned long long)sp->limit);
	sp->size += n;
	while (n) {
		part = min_of(n, (size_t)SPOOL_BUF - sp->used);
		memcpy(sp->buf + sp->used, p, part);
		sp->used += part;
		p += part;
		n -= part;
		if (sp->used < SPOOL_BUF)
			continue;
		err = spool_flush(rec, sp);
		if (err)
			return err;
	}
	return 0;
}

static int input_map(struct recording *rec, struct rec_input *in)
{
	void *p;

	if (!in->size)
		return 0;
	if (in->size > SIZE_MAX / 2)
		return rec_fail(rec, EFBIG, "too large to map");
	p = mmap(NULL, in->size, PROT_READ, MAP_SHARED, in->fd, 0);
	if (p == MAP_FAILED)
		return rec_fail(rec, errno, "mmap of %llu bytes: %s", (unsigned long long)in->size,
				strerror(errno));
	in->map = p;
	return 0;
}

int rec_spool_finish(struct recording *rec, struct rec_spool *sp, struct rec_input *in)
{
	int err = spool_flush(rec, sp);

	if (err)
		return err;
	in->fd = sp->fd;
	in->size = sp->size;
	sp->fd = -1;
	return input_map(rec, in);
}

void rec_spool_fini(struct rec_spool *sp)
{
	if (sp->fd >= 0)
		close(sp->fd);
	sp->fd = -1;
	free(sp->buf);
	sp->buf = NULL;
}

void rec_input_fini(struct rec_input *in)
{
	if (in->map && in->fd >= 0)
		munmap((void *)in->map, in->size);
	if (in->fd >= 0)
		close(in->fd);
	*in = (struct rec_input){.fd = -1};
}

void rec_input_used(struct rec_input *in, u64 bytes)
{
	in->used += bytes;
	if (likely(in->used < FORGET_EVERY) || in->fd < 0)
		return;
	madvise((void *)in->map, in->size, MADV_DONTNEED);
	in->used = 0;
}

/* A copy of the caller's memory in a file. */
static int input_copy(const struct rec_input *in)
{
	int fd = memfd_create("inlay-recording", MFD_CLOEXEC);
	u64 done = 0;
	ssize_t n;

	while (fd >= 0 && done < in->size) {
		n = write(fd, in->map + done, in->size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			close(fd);
			return -ENOSPC;
		}
		done += n;
	}
	if (fd < 0)
		return -errno;
	lseek(fd, 0, SEEK_SET);
	return fd;
}

int rec_input_reopen(const struct rec_input *in)
{
	char path[32];
	int fd;

	if (in->fd < 0)
		return input_copy(in);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", in->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) { /* no /proc, or no right to open it again: share the offset, which nobody else
			 uses */
		fd = fcntl(in->fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return -errno;
		lseek(fd, 0, SEEK_SET);
	}
	return fd;
}

/* A pipe or a device: its bytes go into the temporary file. */
static int spool_stream(struct recording *rec, int fd, struct rec_input *in)
{
	struct rec_spool sp;
	u8 *buf = NULL;
	ssize_t n;
	int err = rec_spool_init(rec, &sp);

	if (err)
		return err;
	buf = malloc(SPOOL_BUF);
	if (!buf)
		err = rec_fail(rec, ENOMEM, "out of memory");
	while (!err) {
		n = read(fd, buf, SPOOL_BUF);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = rec_fail(rec, errno, "read: %s", strerror(errno));
		if (n <= 0)
			break;
		err = rec_spool_write(rec, &sp, buf, n);
		rec_progress(rec, "unpacking", sp.size, 0);
	}
	if (!err)
		err = rec_spool_finish(rec, &sp, in);
	free(buf);
	rec_spool_fini(&sp);
	return err;
}

/* Replaces a compressed input by what is in it. */
static int unpack_layer(struct recording *rec, const char *compression)
{
	struct rec_input out = {.fd = -1};
	struct rec_spool sp;
	int err = rec_spool_init(rec, &sp);

	if (err)
		return err;
	err = rec_unpack(rec, compression, &rec->in, &sp);
	if (!err)
		err = rec_spool_finish(rec, &sp, &out);
	rec_spool_fini(&sp);
	if (err) {
		rec_input_fini(&out);
		return err;
	}
	out.compression = rec->in.compression ? rec->in.compression : compression;
	rec_input_fini(&rec->in);
	rec->in = out;
	return 0;
}

static int input_from_fd(struct recording *rec, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return rec_fail(rec, errno, "fstat: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return rec_fail(
			rec, EISDIR,
			"a directory (`perf record --threads` makes one); give the output of "
			"`perf script --ns -i DIR` instead");
	if (!S_ISREG(st.st_mode) || lseek(fd, 0, SEEK_CUR) != 0)
		return spool_stream(rec, fd, &rec->in); /* a file read from the middle, too */
	rec->in.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (rec->in.fd < 0)
		return rec_fail(rec, errno, "dup: %s", strerror(errno));
	rec->in.size = st.st_size;
	return input_map(rec, &rec->in);
}

static int unpack_layers(struct recording *rec)
{
	const char *compression;
	int err, layers;

	for (layers = 0;; layers++) {
		compression = rec_compression(rec->in.map, rec->in.size);
		if (!compression)
			return 0;
		if (layers == MAX_LAYERS)
			return rec_fail(rec, EINVAL, "compressed more than %d times", MAX_LAYERS);
		err = unpack_layer(rec, compression);
		if (err)
			return err;
	}
}

int rec_input_open(struct recording *rec, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	int fd, err;

	if (rec->opts.data) {
		rec->in.map = rec->opts.data;
		rec->in.size = rec->opts.data_size;
		return unpack_layers(rec);
	}
	if (!*path)
		return rec_fail(rec, ENOENT, "the name given is empty: give the recording's file, or - for standard input");
	fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return rec_fail(rec, errno, "%s", strerror(errno));
	err = input_from_fd(rec, fd);
	if (!is_stdin)
		close(fd);
	return err ? err : unpack_layers(rec);
}
