// SPDX-License-Identifier: BSD-2-Clause
/* Opening a recording: what the bytes are, which reader takes them, and what all readers have in
 * common. */
#include "replay/recording.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/replay_int.h"

#define NEEDED                                                                                     \
	", not a recording; perf.data, trace.dat or the text of perf script, trace-cmd report or " \
	"ftrace "                                                                                  \
	"is needed"
#define RECORD_HINT                                                                                \
	"record with `perf record -e "                                                             \
	"sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new -a`"

int rec_fail(struct recording *rec, int err, const char *fmt, ...)
{
	va_list args;
	size_t i;

	strbuf_reset(&rec->err);
	strbuf_printf(&rec->err, "%s: ", rec->name);
	va_start(args, fmt);
	strbuf_vprintf(&rec->err, fmt, args);
	va_end(args);
	/* Parts of the message may come from a hostile file. */
	for (i = 0; i < rec->err.len; i++)
		if (iscntrl((u8)rec->err.s[i]))
			rec->err.s[i] = '?';
	return err ? -err : -EINVAL;
}

void rec_warn(struct recording *rec, const char *fmt, ...)
{
	struct strbuf b = STRBUF_INIT;
	va_list args;

	va_start(args, fmt);
	strbuf_vprintf(&b, fmt, args);
	va_end(args);
	log_to(rec->opts.log, LOG_WARN, "%s: %s", rec->name, strbuf_str(&b));
	strbuf_fini(&b);
}

void rec_progress(struct recording *rec, const char *stage, u64 done, u64 total)
{
	if (rec->opts.progress)
		rec->opts.progress(rec->opts.progress_ctx, stage, done, total);
}

int rec_count(struct recording *rec, enum rec_event_type type, u32 cpu, u64 ts_ns)
{
	struct recording_info *info = &rec->info;

	info->events[type]++;
	if (unlikely(cpu >= REC_MAX_CPUS)) {
		if (type == REC_OTHER)
			return 0;
		return rec_fail(rec, EINVAL, "damaged: an event on CPU %u (at most %u can be)", cpu,
				REC_MAX_CPUS);
	}
	rec->cpu_bits[cpu / 64] |= 1ULL << cpu % 64;
	if (unlikely(cpu >= info->nr_cpus))
		info->nr_cpus = cpu + 1;
	if (!info->last_ts_ns || ts_ns < info->first_ts_ns)
		info->first_ts_ns = ts_ns;
	info->last_ts_ns = max_of(info->last_ts_ns, ts_ns);
	return 0;
}

void rec_count_lost(struct recording *rec, u64 n)
{
	rec->info.events[REC_LOST]++;
	rec->info.lost += n;
	rec->info.lost_gaps_unknown += !n;
}

void rec_copy_comm(char dst[REC_COMM_LEN], const char *src, size_t n)
{
	n = strnlen(src, min_of(n, (size_t)REC_COMM_LEN - 1));
	memcpy(dst, src, n);
	memset(dst + n, 0, REC_COMM_LEN - n);
}

/* One row a binary format: what the file begins with, and who reads it. Text is what nothing else
 * is. */
static const struct {
	const char *magic;
	u8 len;
	int (*open)(struct recording *rec);
} readers[] = {
	{"PERFILE2", 8, rec_perf_open},
	{"\x17\x08\x44tracing", 10, rec_dat_open},
};

/* What cannot be read, by its first bytes: files people confuse with recordings, and recordings of
 * other kinds. */
static const struct {
	const char *magic;
	u8 len;
	int err;
	const char *what;
} foreign[] = {
	{"2ELIFREP", 8, EPROTONOSUPPORT,
	 "a perf.data of a machine of the other byte order; give the text of `perf script --ns` "
	 "instead"},
	{"PERFFILE", 8, EPROTONOSUPPORT,
	 "a perf.data of before Linux 2.6.37; give the text of `perf script` instead"},
	{"\xc1\x1f\xfc\xc1", 4, EPROTONOSUPPORT,
	 "a CTF stream; give the perf.data it was made from"},
	{"wprof.data", 10, EPROTONOSUPPORT, "a recording only wprof reads"},
	{"\x7f"
	 "ELF",
	 4, EINVAL, "an ELF file" NEEDED},
	{"\x89PNG", 4, EINVAL, "a PNG image" NEEDED},
	{"\xff\xd8\xff", 3, EINVAL, "a JPEG image" NEEDED},
	{"GIF8", 4, EINVAL, "a GIF image" NEEDED},
	{"%PDF", 4, EINVAL, "a PDF document" NEEDED},
	{"PK\x03\x04", 4, EINVAL, "a zip archive; unpack it first"},
	{"BZh", 3, EINVAL, "bzip2-compressed; unpack it first"},
	{"\x04\x22\x4d\x18", 4, EINVAL, "lz4-compressed; unpack it first"},
	{"!<arch>", 7, EINVAL, "an ar archive" NEEDED},
	{"SQLite format 3", 15, EINVAL, "a SQLite database" NEEDED},
	{"\xd4\xc3\xb2\xa1", 4, EINVAL, "a packet capture" NEEDED},
};

static bool has_magic(const struct rec_input *in, const char *magic, size_t n)
{
	return in->size >= n && !memcmp(in->map, magic, n);
}

/* Text has no NUL and hardly any control characters at its beginning. */
static bool looks_like_text(const struct rec_input *in)
{
	size_t n = min_of(in->size, (u64)4096), i, odd = 0;

	for (i = 0; i < n; i++) {
		if (!in->map[i])
			return false;
		odd += iscntrl(in->map[i]) && !isspace(in->map[i]) && in->map[i] != 0x1b;
	}
	return odd <= n / 64;
}

static int open_by_content(struct recording *rec)
{
	const struct rec_input *in = &rec->in;
	size_t i;

	if (!in->size)
		return rec_fail(rec, EINVAL, "empty; " RECORD_HINT);
	for (i = 0; i < ARRAY_SIZE(readers); i++)
		if (has_magic(in, readers[i].magic, readers[i].len))
			return readers[i].open(rec);
	for (i = 0; i < ARRAY_SIZE(foreign); i++)
		if (has_magic(in, foreign[i].magic, foreign[i].len))
			return rec_fail(rec, foreign[i].err, "%s", foreign[i].what);
	if (!looks_like_text(in))
		return rec_fail(rec, EINVAL,
				"not a recording: neither perf.data nor trace.dat (by its first "
				"bytes), nor text");
	return rec_text_open(rec);
}

/* Things every recording must have, and the numbers derived from the first pass. */
static int finish_open(struct recording *rec)
{
	struct recording_info *info = &rec->info;
	bool any = false;
	size_t i;

	for (i = 0; i < REC_OTHER; i++) {
		if (!rec_event_name(i))
			continue;
		info->recorded[i] |= info->events[i] > 0;
		any |= info->recorded[i];
	}
	if (!any)
		return rec_fail(rec, ENODATA,
				"no scheduler events in it (%llu others); " RECORD_HINT,
				(unsigned long long)info->events[REC_OTHER]);
	for (i = 0; i < ARRAY_SIZE(rec->cpu_bits); i++)
		info->cpus_seen += __builtin_popcountll(rec->cpu_bits[i]);
	info->format = rec->format ? rec->format : "recording";
	info->host = rec->host;
	info->clock = rec->clock && *rec->clock ? rec->clock : NULL;
	info->compression = rec->in.compression;
	info->size = rec->in.size;
	return 0;
}

int recording_open(const char *path, const struct recording_opts *opts, struct strbuf *err,
		   struct recording **ret_rec)
{
	struct recording *rec = calloc(1, sizeof(*rec));
	int ret;

	if (!rec)
		goto no_memory;
	rec->in.fd = -1;
	if (opts)
		rec->opts = *opts;
	rec->name = strdup(strcmp(path, "-") ? path : "standard input");
	if (!rec->name)
		goto no_memory;
	ret = rec_input_open(rec, path);
	if (!ret)
		ret = open_by_content(rec);
	if (!ret)
		ret = finish_open(rec);
	if (ret) {
		strbuf_puts(err, strbuf_str(&rec->err));
		recording_close(rec);
		return ret;
	}
	*ret_rec = rec;
	return 0;
no_memory:
	strbuf_puts(err, "out of memory");
	recording_close(rec);
	return -ENOMEM;
}

int recording_next(struct recording *rec, struct rec_event *ev)
{
	int ret;

	if (unlikely(rec->ended || rec->error))
		return rec->error;
	ret = rec->reader->next(rec, ev);
	if (unlikely(ret <= 0)) {
		rec->ended = true;
		rec->error = ret;
		if (rec->late)
			rec_warn(rec,
				 "%llu events came too late to be put in order; their times were "
				 "raised",
				 (unsigned long long)rec->late);
		return ret;
	}
	if (unlikely(ev->ts_ns < rec->last_ts)) {
		/* What the recording says of threads that were there before it has no time of its
		 * own. */
		rec->late += ev->type != REC_TASK;
		ev->ts_ns = rec->last_ts;
	}
	if (unlikely(ev->ts_ns < rec->info.first_ts_ns))
		ev->ts_ns = rec->info.first_ts_ns;
	rec->last_ts = ev->ts_ns;
	return 1;
}

const struct recording_info *recording_info(const struct recording *rec)
{
	return &rec->info;
}

const char *recording_error(const struct recording *rec)
{
	return strbuf_str(&rec->err);
}

const char *recording_cgroup(const struct recording *rec, u64 cgroup_id)
{
	return rec->reader && rec->reader->cgroup ? rec->reader->cgroup(rec, cgroup_id) : NULL;
}

void recording_close(struct recording *rec)
{
	if (!rec)
		return;
	if (rec->reader)
		rec->reader->close(rec);
	rec_input_fini(&rec->in);
	strbuf_fini(&rec->err);
	free(rec->name);
	free(rec->format);
	free(rec->host);
	free(rec->clock);
	free(rec);
}
