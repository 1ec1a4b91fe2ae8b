// SPDX-License-Identifier: BSD-2-Clause
/* The walk of meta.h. Every read goes through a cursor that knows where the bytes end. */
#include "replay/meta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "replay/replay_int.h"

/* Option and section numbers of trace.dat. */
enum {
	DAT_DONE = 0,
	DAT_BUFFER = 3,
	DAT_TRACECLOCK = 4,
	DAT_UNAME = 5,
	DAT_TIME_SHIFT = 12,
	DAT_EVENT_FORMATS = 18,
	DAT_BUFFER_TEXT = 22,
};

#define DAT_COMPRESSED 1
#define MAX_SECTIONS   1024
#define MAX_SYSTEMS    65536

static const char dat_magic[10] = "\x17\x08\x44tracing";

struct cursor {
	const u8 *p;
	u64 n, pos;
	u64 base; /* offset of p in the file, for messages */
	bool swap;
	bool bad; /* something did not fit; sticky */
	u64 bad_at;
};

static const u8 *cur_take(struct cursor *c, u64 n)
{
	const u8 *p = c->p + c->pos;

	if (c->bad || n > c->n - c->pos) {
		if (!c->bad)
			c->bad_at = c->base + c->pos;
		c->bad = true;
		return NULL;
	}
	c->pos += n;
	return p;
}

static u64 cur_uint(struct cursor *c, unsigned int size)
{
	const u8 *p = cur_take(c, size);
	u64 v = 0;
	unsigned int i;

	if (!p)
		return 0;
	for (i = 0; i < size; i++)
		v |= (u64)p[i] << 8 * (c->swap ? size - 1 - i : i);
	return v;
}

/* A NUL-terminated string; never NULL. */
static const char *cur_string(struct cursor *c)
{
	const u8 *nul = c->bad ? NULL : memchr(c->p + c->pos, '\0', c->n - c->pos);
	const char *s = (const char *)c->p + c->pos;

	if (!nul) {
		cur_take(c, U64_MAX);
		return "";
	}
	c->pos += nul - (c->p + c->pos) + 1;
	return s;
}

static bool cur_expect(struct cursor *c, const char *bytes, u64 n)
{
	const u8 *p = cur_take(c, n);

	if (p && memcmp(p, bytes, n)) {
		c->bad = true;
		c->bad_at = c->base + c->pos - n;
	}
	return !c->bad;
}

static int meta_damaged(struct recording *rec, const struct cursor *c, const char *what)
{
	return rec_fail(
		rec, EINVAL,
		"damaged or truncated: %s does not fit at offset %llu (the file has %llu bytes); "
		"copy or record it again",
		what, (unsigned long long)c->bad_at, (unsigned long long)rec->in.size);
}

void rec_meta_fini(struct rec_meta *m)
{
	free(m->unpacked);
	m->unpacked = NULL;
	free(m->extents);
	m->extents = NULL;
}

bool rec_meta_unpack(const char *compression, const u8 *z, u64 zn, u8 *out, u64 n)
{
	uLongf len = n;

	if (!strcmp(compression, "zstd"))
		return ZSTD_decompress(out, n, z, zn) == n;
	return !strcmp(compression, "zlib") && uncompress(out, &len, z, zn) == Z_OK && len == n;
}

/* Room for the extents of a buffer, empty ones at first. */
static int new_extents(struct recording *rec, struct rec_meta *m)
{
	if (!m->extents)
		m->extents = malloc(REC_MAX_CPUS * sizeof(*m->extents));
	if (!m->extents)
		return rec_fail(rec, ENOMEM, "out of memory");
	memset(m->extents, 0, REC_MAX_CPUS * sizeof(*m->extents));
	return 0;
}

/* "name: sched_switch" is the first line of a format file. */
static void take_format(struct rec_meta *m, const u8 *p, u64 n)
{
	const char *s = (const char *)p, *nl;
	enum rec_event_type type;

	if (n < 6 || memcmp(s, "name: ", 6))
		return;
	nl = memchr(s, '\n', n);
	if (!nl)
		return;
	type = rec_event_of_name(s + 6, nl - s - 6);
	if (type != REC_OTHER)
		m->text[type] = (struct rec_format_text){s, n};
}

static void walk_systems(struct rec_meta *m, struct cursor *c)
{
	u64 systems = cur_uint(c, 4), events, size, i, j;
	const char *name;
	const u8 *text;

	for (i = 0; i < systems && !c->bad && i < MAX_SYSTEMS; i++) {
		name = cur_string(c);
		events = cur_uint(c, 4);
		for (j = 0; j < events && !c->bad; j++) {
			size = cur_uint(c, 8);
			text = cur_take(c, size);
			if (text && !strcmp(name, "sched"))
				take_format(m, text, size);
		}
	}
}

/* header_page, header_event and ftrace's own formats: only stepped over. */
static void skip_headers(struct cursor *c)
{
	u64 n, i;

	cur_expect(c, "header_page", 12);
	cur_take(c, cur_uint(c, 8));
	cur_expect(c, "header_event", 13);
	cur_take(c, cur_uint(c, 8));
	n = cur_uint(c, 4);
	for (i = 0; i < n && !c->bad; i++)
		cur_take(c, cur_uint(c, 8));
}

static int meta_start(struct recording *rec, struct rec_meta *m, struct cursor *c,
		      const char **ret_version)
{
	u64 endian, long_size;

	memset(m, 0, sizeof(*m));
	cur_expect(c, dat_magic, sizeof(dat_magic));
	*ret_version = cur_string(c);
	endian = cur_uint(c, 1);
	long_size = cur_uint(c, 1);
	c->swap = endian == 1;
	m->page_size = cur_uint(c, 4);
	if (c->bad)
		return meta_damaged(rec, c, "the header");
	if (endian > 1 || (long_size != 4 && long_size != 8))
		return rec_fail(rec, EINVAL,
				"damaged: byte order %llu or size of long %llu at offset %llu is "
				"none that exists",
				(unsigned long long)endian, (unsigned long long)long_size,
				(unsigned long long)c->base + 10 + strlen(*ret_version) + 1);
	m->big_endian = endian;
	m->long_size = long_size;
	return 0;
}

int rec_meta_parse_perf(struct recording *rec, struct rec_meta *m, const u8 *p, u64 n, u64 base)
{
	struct cursor c = {.p = p, .n = n, .base = base};
	const char *version;
	int err = meta_start(rec, m, &c, &version);

	if (err)
		return err;
	skip_headers(&c);
	walk_systems(m, &c);
	return c.bad ? meta_damaged(rec, &c, "a part of its event formats") : 0;
}

/* Of "local [global] counter" the one in brackets; a bare name is itself. */
static void take_clock(struct rec_meta *m, const char *s, u64 n)
{
	const char *open = memchr(s, '[', n), *close;

	if (open) {
		close = memchr(open, ']', s + n - open);
		n = close ? (u64)(close - open - 1) : 0;
		s = open + 1;
	}
	n = min_of(strnlen(s, n), sizeof(m->clock) - 1);
	if (memchr(s, ' ', n))
		n = 0;
	memcpy(m->clock, s, n);
	m->clock[n] = '\0';
}

static void take_uname(struct rec_meta *m, const char *s, u64 n)
{
	n = min_of(strnlen(s, n), sizeof(m->uname) - 1);
	memcpy(m->uname, s, n);
	m->uname[n] = '\0';
}

static int check_extent(struct recording *rec, u32 cpu, u64 off, u64 size)
{
	if (!size || (off <= rec->in.size && size <= rec->in.size - off))
		return 0;
	return rec_fail(rec, EINVAL,
			"truncated: the data of CPU %u is %llu bytes at offset %llu, but the file "
			"has only %llu; "
			"copy or record it again",
			cpu, (unsigned long long)size, (unsigned long long)off,
			(unsigned long long)rec->in.size);
}

static int latency_text(struct recording *rec)
{
	return rec_fail(rec, EPROTONOSUPPORT,
			"a trace.dat of a latency tracer holds text, no events; give the output of "
			"`trace-cmd report` instead");
}

static void v6_option(struct rec_meta *m, u64 id, const char *data, u64 size)
{
	if (id == DAT_TRACECLOCK)
		take_clock(m, data, size);
	else if (id == DAT_UNAME)
		take_uname(m, data, size);
	else if (id == DAT_BUFFER)
		m->instances++;
	else if (id == DAT_TIME_SHIFT)
		m->time_shift = true;
}

static int v6_buffers(struct recording *rec, struct rec_meta *m, struct cursor *c)
{
	const u8 *kind = cur_take(c, 10);
	u64 id, size, off, i;
	const u8 *data;
	int err;

	if (kind && !memcmp(kind, "options  ", 10)) {
		while ((id = cur_uint(c, 2)) && !c->bad) {
			size = cur_uint(c, 4);
			data = cur_take(c, size);
			if (data)
				v6_option(m, id, (const char *)data, size);
		}
		kind = cur_take(c, 10);
	}
	if (kind && !memcmp(kind, "latency  ", 10))
		return latency_text(rec);
	if (kind && memcmp(kind, "flyrecord", 10)) {
		c->bad = true;
		c->bad_at = c->pos - 10;
	}
	err = new_extents(rec, m);
	if (err)
		return err;
	for (i = 0; i < m->cpus && !c->bad; i++) {
		off = cur_uint(c, 8);
		size = cur_uint(c, 8);
		if (c->bad)
			break;
		err = check_extent(rec, i, off, size);
		if (err)
			return err;
		m->extents[i] = (struct rec_extent){off, size};
		m->top_bytes += size;
	}
	if (!m->top_bytes) { /* then another buffer is read, whose data lies elsewhere */
		free(m->extents);
		m->extents = NULL;
	}
	return c->bad ? meta_damaged(rec, c, "the table of per-CPU data") : 0;
}

static int parse_v6(struct recording *rec, struct rec_meta *m, struct cursor *c)
{
	skip_headers(c);
	walk_systems(m, c);
	cur_take(c, cur_uint(c, 4)); /* kallsyms */
	cur_take(c, cur_uint(c, 4)); /* printk formats */
	cur_take(c, cur_uint(c, 8)); /* command lines */
	m->cpus = cur_uint(c, 4);
	if (c->bad)
		return meta_damaged(rec, c, "a part of the header");
	if (!m->cpus || m->cpus > REC_MAX_CPUS)
		return rec_fail(rec, EINVAL, "damaged: %u CPUs at offset %llu (at most %u can be)",
				m->cpus, (unsigned long long)c->pos - 4, REC_MAX_CPUS);
	return v6_buffers(rec, m, c);
}

/* The one compressed block of a v7 section into m->unpacked. */
static int unpack_section(struct recording *rec, struct rec_meta *m, struct cursor *c,
			  const char *compression, struct cursor *ret)
{
	u64 zsize = cur_uint(c, 4), size = cur_uint(c, 4);
	const u8 *z = cur_take(c, zsize);

	if (!z)
		return meta_damaged(rec, c, "a compressed section");
	if (size > REC_META_MAX_UNPACKED)
		return rec_fail(rec, EINVAL,
				"damaged: a section at offset %llu unpacks to %llu bytes",
				(unsigned long long)c->base, (unsigned long long)size);
	free(m->unpacked);
	m->unpacked = malloc(size ? size : 1);
	if (!m->unpacked)
		return rec_fail(rec, ENOMEM, "out of memory");
	if (strcmp(compression, "zstd") && strcmp(compression, "zlib"))
		return rec_fail(rec, EPROTONOSUPPORT,
				"compressed with '%.16s', which is not supported", compression);
	if (!rec_meta_unpack(compression, z, zsize, m->unpacked, size))
		return rec_fail(rec, EINVAL, "damaged: the section at offset %llu does not unpack",
				(unsigned long long)c->base);
	*ret = (struct cursor){.p = m->unpacked, .n = size, .base = c->base, .swap = c->swap};
	return 0;
}

/* A v7 section of that id at off: a cursor over its body. */
static int open_section(struct recording *rec, const struct cursor *file, u64 off, u32 want,
			struct cursor *ret, bool *ret_compressed)
{
	struct cursor c = *file;
	u64 id, flags, size;
	const u8 *body;

	if (off > c.n) {
		c.bad = true;
		c.bad_at = off;
		return meta_damaged(rec, &c, "a section");
	}
	c.pos = off;
	id = cur_uint(&c, 2);
	flags = cur_uint(&c, 2);
	cur_uint(&c, 4); /* a description */
	size = cur_uint(&c, 8);
	body = cur_take(&c, size);
	if (!body)
		return meta_damaged(rec, &c, "a section");
	if (id != want)
		return rec_fail(rec, EINVAL,
				"damaged: section %llu at offset %llu where %u should be",
				(unsigned long long)id, (unsigned long long)off, want);
	*ret_compressed = flags & DAT_COMPRESSED;
	*ret = (struct cursor){.p = body, .n = size, .base = body - file->p, .swap = c.swap};
	return 0;
}

static int v7_formats(struct recording *rec, struct rec_meta *m, const struct cursor *file, u64 off,
		      const char *compression)
{
	struct cursor c, plain;
	bool compressed;
	int err = open_section(rec, file, off, DAT_EVENT_FORMATS, &c, &compressed);

	if (!err && compressed) {
		err = unpack_section(rec, m, &c, compression, &plain);
		c = plain;
	}
	if (err)
		return err;
	walk_systems(m, &c);
	return c.bad ? meta_damaged(rec, &c, "an event format") : 0;
}

/* Compressed CPU data is a count of chunks and the chunks; the library believes both. */
static int check_chunks(struct recording *rec, const struct cursor *file, u64 off, u64 size)
{
	/* trace-cmd does not count the count. */
	u64 n = min_of(size + 4, file->n - off);
	struct cursor c = {.p = file->p + off, .n = n, .base = off, .swap = file->swap};
	u64 count = cur_uint(&c, 4), i, packed, unpacked;

	for (i = 0; i < count && !c.bad; i++) {
		packed = cur_uint(&c, 4);
		unpacked = cur_uint(&c, 4);
		cur_take(&c, packed);
		if (unpacked > REC_META_MAX_UNPACKED)
			return rec_fail(rec, EINVAL,
					"damaged: a chunk before offset %llu unpacks to %llu bytes",
					(unsigned long long)(c.base + c.pos),
					(unsigned long long)unpacked);
	}
	return c.bad ? meta_damaged(rec, &c, "a compressed chunk of CPU data") : 0;
}

static int v7_buffer(struct recording *rec, struct rec_meta *m, const struct cursor *file,
		     struct cursor *c)
{
	struct cursor section;
	const char *name, *clock;
	u64 cpus, cpu, off, size, i, bytes = 0;
	bool compressed, keep;
	int err;

	off = cur_uint(c, 8);
	if (c->bad)
		return meta_damaged(rec, c, "an option");
	err = open_section(rec, file, off, DAT_BUFFER, &section, &compressed);
	if (err)
		return err;
	name = cur_string(c);
	keep = *name ? !m->instances && !m->top_bytes : true;
	clock = cur_string(c);
	cur_uint(c, 4);
	cpus = cur_uint(c, 4);
	for (i = 0; i < cpus && !c->bad; i++) {
		cpu = cur_uint(c, 4);
		off = cur_uint(c, 8);
		size = cur_uint(c, 8);
		if (c->bad)
			break;
		if (cpu >= REC_MAX_CPUS)
			return rec_fail(rec, EINVAL,
					"damaged: CPU %llu at offset %llu (at most %u can be)",
					(unsigned long long)cpu,
					(unsigned long long)(c->base + c->pos - 20), REC_MAX_CPUS);
		err = check_extent(rec, cpu, off, size);
		if (!err && size && compressed)
			err = check_chunks(rec, file, off, size);
		if (!err && size && keep && !bytes) {
			err = new_extents(rec, m);
			m->packed = compressed;
		}
		if (err)
			return err;
		if (size && keep)
			m->extents[cpu] = (struct rec_extent){off, size};
		bytes += size;
		m->cpus = max_of(m->cpus, (u32)cpu + 1);
	}
	if (c->bad)
		return meta_damaged(rec, c, "the table of per-CPU data");
	if (*name) {
		m->instances++;
		return 0;
	}
	take_clock(m, clock, strlen(clock));
	m->top_bytes = bytes;
	return 0;
}

static int v7_option(struct recording *rec, struct rec_meta *m, const struct cursor *file, u64 id,
		     struct cursor *c, const char *compression)
{
	switch (id) {
	case DAT_BUFFER:
		return v7_buffer(rec, m, file, c);
	case DAT_BUFFER_TEXT:
		return latency_text(rec);
	case DAT_TRACECLOCK:
		if (!m->clock[0])
			take_clock(m, (const char *)c->p, c->n);
		return 0;
	case DAT_UNAME:
		take_uname(m, (const char *)c->p, c->n);
		return 0;
	case DAT_TIME_SHIFT:
		m->time_shift = true;
		return 0;
	case DAT_EVENT_FORMATS:
		return v7_formats(rec, m, file, cur_uint(c, 8), compression);
	default:
		return 0;
	}
}

static int parse_v7(struct recording *rec, struct rec_meta *m, struct cursor *file)
{
	const char *compression = cur_string(file);
	u64 off, id, size, sections;
	struct cursor c, opt;
	const u8 *data;
	bool compressed;
	int err;

	cur_string(file); /* version of the compression */
	off = cur_uint(file, 8);
	if (file->bad)
		return meta_damaged(rec, file, "the header");
	if (strlen(compression) < sizeof(m->compression))
		strcpy(m->compression, compression);
	for (sections = 0; off; sections++) {
		if (sections == MAX_SECTIONS)
			return rec_fail(rec, EINVAL, "damaged: its option sections form a loop");
		err = open_section(rec, file, off, DAT_DONE, &c, &compressed);
		if (err)
			return err;
		if (compressed)
			return rec_fail(rec, EINVAL,
					"damaged: the option section at offset %llu is compressed",
					(unsigned long long)off);
		for (off = 0, id = 1; id != DAT_DONE && c.pos < c.n;) {
			id = cur_uint(&c, 2);
			size = cur_uint(&c, 4);
			data = cur_take(&c, size);
			if (!data)
				return meta_damaged(rec, &c, "an option");
			opt = (struct cursor){
				.p = data, .n = size, .base = data - file->p, .swap = c.swap};
			if (id == DAT_DONE) {
				off = cur_uint(&opt, 8);
				break;
			}
			err = v7_option(rec, m, file, id, &opt, compression);
			if (err)
				return err;
			if (opt.bad)
				return meta_damaged(rec, &opt, "an option");
		}
	}
	return 0;
}

int rec_meta_parse_dat(struct recording *rec, struct rec_meta *m)
{
	struct cursor c = {.p = rec->in.map, .n = rec->in.size};
	const char *version;
	int err = meta_start(rec, m, &c, &version);

	if (err)
		return err;
	if (!strcmp(version, "6"))
		m->version = 6;
	else if (!strcmp(version, "7"))
		m->version = 7;
	else
		return rec_fail(rec, EPROTONOSUPPORT,
				"trace.dat version '%.8s' (6 and 7 can be read); `trace-cmd "
				"convert` may help",
				version);
	if (!is_pow2(m->page_size) || m->page_size < 1024 || m->page_size > (1 << 24))
		return rec_fail(rec, EINVAL, "damaged: page size %u in its header", m->page_size);
	return m->version == 6 ? parse_v6(rec, m, &c) : parse_v7(rec, m, &c);
}
