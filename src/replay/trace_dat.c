// SPDX-License-Identifier: BSD-2-Clause
/*
 * The trace.dat reader: our own walk over the file's structure (meta.h) refuses what is truncated
 * or of a kind that cannot be read; then libtracecmd reads the ring buffer pages in a child
 * process, which hands over decoded events.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/child.h"
#include "replay/dat_int.h"
#include "replay/meta.h"
#include "replay/tep.h"

/*
 * CPU time of the child: without a sign of life (a sane file gives one every few hundredths of a second; opening one with
 * large tables takes longer), and in all, many times what the slowest way through a file takes. A small file that makes the
 * library go round in circles is to be told from a large one in about a second.
 */
#define SILENT_SECONDS(size) min_of(1 + ((size) >> 22), (u64)20)
#define TOTAL_SECONDS(size)  min_of(10 + ((size) >> 18), (u64)1 << 30)
#define CHILD_MEMORY (1ULL << 30)

struct dat {
	struct rec_meta meta;
	struct dat_job job;
	struct rec_child child;
	struct rec_event batch[DAT_BATCH];
	u32 nr, next;
	bool ended;
};

/* The child is gone or talks nonsense. */
static int dat_died(struct recording *rec, struct dat *dat, ssize_t n)
{
	struct strbuf why = STRBUF_INIT;
	int err;

	if (n >= 0 || dat->child.hung)
		rec_child_reap(&dat->child, &why);
	else
		strbuf_puts(&why, strerror(-n));
	if (!why.len)
		strbuf_puts(&why, "it ended early");
	err = rec_fail(rec, EINVAL,
		       "input unreadable: libtracecmd failed near offset %llu of %llu (%s); the "
		       "file is damaged, "
		       "record again",
		       (unsigned long long)dat->job.shared->offset,
		       (unsigned long long)rec->in.size, strbuf_str(&why));
	strbuf_fini(&why);
	return err;
}

static int dat_nonsense(struct recording *rec, struct dat *dat)
{
	rec_child_stop(&dat->child);
	return dat_died(rec, dat, 0);
}

static int dat_read(struct recording *rec, struct dat *dat, void *buf, size_t n)
{
	ssize_t got = rec_child_read(&dat->child, buf, n, SILENT_SECONDS(rec->in.size));

	return got == (ssize_t)n ? 0 : dat_died(rec, dat, got);
}

static int dat_child_error(struct recording *rec, struct dat *dat, u32 size)
{
	char text[DAT_ERROR_MAX + 1];
	int err;

	if (size > DAT_ERROR_MAX)
		return dat_nonsense(rec, dat);
	err = dat_read(rec, dat, text, size);
	if (err)
		return err;
	text[size] = '\0';
	rec_child_stop(&dat->child);
	return rec_fail(rec, EINVAL, "%s", text);
}

/* The next message that is more than a sign of life. */
static int dat_message(struct recording *rec, struct dat *dat, const char *stage,
		       struct dat_msg *msg)
{
	u64 offset;
	int err;

	for (;;) {
		err = dat_read(rec, dat, msg, sizeof(*msg));
		if (err)
			return err;
		if (msg->kind == DAT_MSG_ERROR)
			return dat_child_error(rec, dat, msg->size);
		if (msg->kind != DAT_MSG_TICK)
			return 0;
		if (msg->size != sizeof(offset))
			return dat_nonsense(rec, dat);
		err = dat_read(rec, dat, &offset, sizeof(offset));
		if (err)
			return err;
		rec_progress(rec, stage, min_of(offset, rec->in.size), rec->in.size);
	}
}

static void terminate(char comm[REC_COMM_LEN])
{
	comm[REC_COMM_LEN - 1] = '\0';
}

/* Bytes from the child become a valid event, or false. */
static bool sanitize(const struct recording *rec, struct rec_event *ev)
{
	u8 flag;

	if (ev->type >= REC_NR_TYPES || ev->cpu >= rec->info.nr_cpus)
		return false;
	switch (ev->type) {
	case REC_SWITCH:
		terminate(ev->sw.prev_comm);
		terminate(ev->sw.next_comm);
		memcpy(&flag, &ev->sw.preempt, 1);
		return flag <= 1 && (!flag || !ev->sw.prev_state);
	case REC_WAKEUP:
	case REC_WAKEUP_NEW:
	case REC_WAKING:
		terminate(ev->wakeup.comm);
		return true;
	case REC_FORK:
		terminate(ev->fork.parent_comm);
		terminate(ev->fork.child_comm);
		return true;
	case REC_EXIT:
		terminate(ev->exit.comm);
		return true;
	case REC_MIGRATE:
		terminate(ev->migrate.comm);
		return true;
	case REC_TASK: /* this format has none */
		return false;
	case REC_OTHER:
		return rec->opts.want_other;
	default:
		return true;
	}
}

static int dat_fill(struct recording *rec, struct dat *dat)
{
	struct dat_msg msg;
	int err = dat_message(rec, dat, "reading", &msg);
	u32 i;

	if (err)
		return err;
	if (msg.kind == DAT_MSG_END && !msg.size) {
		dat->ended = true;
		rec_child_stop(&dat->child);
		return 0;
	}
	if (msg.kind != DAT_MSG_EVENTS || !msg.size || msg.size > sizeof(dat->batch) ||
	    msg.size % sizeof(dat->batch[0]))
		return dat_nonsense(rec, dat);
	err = dat_read(rec, dat, dat->batch, msg.size);
	if (err)
		return err;
	dat->nr = msg.size / sizeof(dat->batch[0]);
	dat->next = 0;
	for (i = 0; i < dat->nr; i++)
		if (!sanitize(rec, &dat->batch[i]))
			return dat_nonsense(rec, dat);
	return 0;
}

static int dat_next(struct recording *rec, struct rec_event *ev)
{
	struct dat *dat = rec->priv;
	int err;

	if (dat->next == dat->nr) {
		if (dat->ended)
			return 0;
		err = dat_fill(rec, dat);
		if (err || dat->ended)
			return err;
	}
	*ev = dat->batch[dat->next++];
	return 1;
}

static void dat_close(struct recording *rec)
{
	struct dat *dat = rec->priv;

	if (!dat)
		return;
	rec_child_stop(&dat->child);
	if (dat->job.shared)
		munmap((void *)dat->job.shared, sizeof(*dat->job.shared));
	rec_meta_fini(&dat->meta);
	free(dat);
	rec->priv = NULL;
}

static const struct rec_reader dat_reader = {.next = dat_next, .close = dat_close};

static int dat_take_scan(struct recording *rec, struct dat *dat)
{
	struct dat_msg msg;
	struct dat_scan *scan;
	int err = dat_message(rec, dat, "scanning", &msg);
	u32 i;

	if (err)
		return err;
	if (msg.kind != DAT_MSG_SCAN || msg.size != sizeof(*scan))
		return dat_nonsense(rec, dat);
	scan = malloc(sizeof(*scan));
	if (!scan)
		return rec_fail(rec, ENOMEM, "out of memory");
	err = dat_read(rec, dat, scan, sizeof(*scan));
	for (i = 0; i < REC_NR_TRACEPOINTS && !err; i++) {
		if (!rec_format_is_sane(&scan->formats[i], (enum rec_event_type)i))
			err = dat_nonsense(rec, dat);
		else if (scan->events[i])
			err = rec_format_check(rec, &scan->formats[i], (enum rec_event_type)i);
	}
	if (!err) {
		memcpy(rec->info.events, scan->events, sizeof(scan->events));
		rec->info.by_library = scan->by_library;
		rec->info.lost = scan->lost;
		rec->info.lost_gaps_unknown = scan->lost_gaps_unknown;
		rec->info.first_ts_ns = scan->first_ts_ns;
		rec->info.last_ts_ns = scan->last_ts_ns;
		memcpy(rec->cpu_bits, scan->cpu_bits, sizeof(scan->cpu_bits));
		for (i = 0; i < REC_MAX_CPUS; i++)
			if (rec->cpu_bits[i / 64] & 1ULL << i % 64)
				rec->info.nr_cpus = i + 1;
	}
	free(scan);
	return err;
}

static int dat_start(struct recording *rec, struct dat *dat)
{
	struct rec_child_job job = {
		.run = dat_child_run,
		.arg = &dat->job,
		.max_memory = CHILD_MEMORY,
		.cpu_seconds = TOTAL_SECONDS(rec->in.size),
	};
	void *shared = mmap(NULL, sizeof(*dat->job.shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err;

	if (shared == MAP_FAILED)
		return rec_fail(rec, ENOMEM, "out of memory");
	dat->job.shared = shared;
	memcpy(dat->job.text, dat->meta.text, sizeof(dat->job.text));
	dat->job.in = &rec->in;
	dat->job.meta = &dat->meta;
	dat->job.swap = dat->meta.big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	dat->job.want_other = rec->opts.want_other;
	dat->job.by_library = rec->opts.by_library;
	dat->job.instance = !dat->meta.top_bytes && dat->meta.instances;
	dat->job.cpus = dat->meta.cpus;
	job.in_fd = rec_input_reopen(&rec->in);
	if (job.in_fd < 0)
		return rec_fail(rec, -job.in_fd, "opening it for the process that reads it: %s",
				strerror(-job.in_fd));
	err = rec_child_start(&dat->child, &job);
	close(job.in_fd);
	if (err)
		return rec_fail(rec, -err, "starting a process to read it: %s", strerror(-err));
	return 0;
}

int rec_dat_open(struct recording *rec)
{
	struct dat *dat = calloc(1, sizeof(*dat));
	struct rec_states states;
	struct strbuf b = STRBUF_INIT;
	int err;

	if (!dat)
		return rec_fail(rec, ENOMEM, "out of memory");
	dat->child.fd = -1;
	rec->priv = dat;
	rec->reader = &dat_reader;
	err = rec_meta_parse_dat(rec, &dat->meta);
	if (!err && (dat->meta.instances > 1 || (dat->meta.instances && dat->meta.top_bytes)))
		rec_warn(rec, "%u more trace buffers (instances) in it; only the %s one is read",
			 dat->meta.instances - !dat->meta.top_bytes,
			 dat->meta.top_bytes ? "top" : "first");
	if (!err)
		err = dat_start(rec, dat);
	if (!err)
		err = dat_take_scan(rec, dat);
	if (err)
		return err;
	if (rec->info.events[REC_SWITCH] && dat->meta.text[REC_SWITCH].p &&
	    rec_states_parse(&states, dat->meta.text[REC_SWITCH].p, dat->meta.text[REC_SWITCH].n))
		rec_warn(rec, "its format of sched_switch has no table of state letters; taking "
			      "that of Linux 4.14 "
			      "and later");
	strbuf_printf(&b, "trace.dat v%u", dat->meta.version);
	rec->format = b.s;
	rec->host = dat->meta.uname[0] ? strdup(dat->meta.uname) : NULL;
	rec->clock = dat->meta.clock[0] ? strdup(dat->meta.clock) : NULL;
	rec->info.ts_unit_ns = 1;
	return 0;
}
