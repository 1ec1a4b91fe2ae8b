// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every reader of recordings on hostile bytes: opens what the seeds and their mutants are, reads
 * all events, and looks at each byte of them, so that uninitialised or out-of-range results show.
 * The bytes stay in the heap block, where a sanitizer sees an over-read; the libraries run in a
 * child, whose death is one more refusal.
 */
#include <stdlib.h>
#include <string.h>

#include "mutate.h"
#include "replay/recording.h"

/* The libraries in the child ask for whatever a file tells them to; no address space limit holds
 * under ASan. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=1024:detect_leaks=1";
}

static u64 sink; /* keeps the reads */

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void ignore(void *ctx, enum log_level level, const char *text)
{
	sink += strlen(text);
}

static void touch(const struct recording *rec, const struct rec_event *ev, u64 last)
{
	const struct recording_info *info = recording_info(rec);

	require(ev->type < REC_NR_TYPES && ev->ts_ns >= last && ev->cpu < REC_MAX_CPUS);
	require(ev->type == REC_OTHER || ev->type == REC_TASK || ev->cpu < info->nr_cpus ||
		(ev->type == REC_LOST && !ev->cpu));
	switch (ev->type) {
	case REC_SWITCH:
		sink += strlen(ev->sw.prev_comm) + strlen(ev->sw.next_comm) + ev->sw.preempt;
		require(!ev->sw.preempt || !ev->sw.prev_state);
		break;
	case REC_WAKEUP:
	case REC_WAKEUP_NEW:
	case REC_WAKING:
		sink += strlen(ev->wakeup.comm);
		break;
	case REC_FORK:
		sink += strlen(ev->fork.parent_comm) + strlen(ev->fork.child_comm);
		break;
	case REC_EXIT:
		sink += strlen(ev->exit.comm) + ev->exit.group_dead;
		break;
	case REC_MIGRATE:
		sink += strlen(ev->migrate.comm);
		break;
	case REC_TASK:
		sink += strlen(ev->task.comm) + ev->task.born;
		break;
	}
	sink += ev->cgroup_id && recording_cgroup(rec, ev->cgroup_id);
}

static void one(const u8 *data, size_t size)
{
	struct log_sink log = {.write = ignore};
	struct recording_opts opts = {
		.log = &log,
		.data = data,
		.data_size = size,
		.max_spool = 4 << 20,
		.want_other = mutate_random() & 1,
	};
	struct strbuf err = STRBUF_INIT;
	struct recording *rec;
	struct rec_event ev;
	u64 last = 0;
	int ret;

	if (recording_open("mutant", &opts, &err, &rec)) {
		/* One line with the name and a reason. */
		require(!strncmp(strbuf_str(&err), "mutant: ", 8) && !strchr(err.s, '\n'));
		strbuf_fini(&err);
		return;
	}
	require(!err.len);
	while ((ret = recording_next(rec, &ev)) > 0) {
		touch(rec, &ev, last);
		last = ev.ts_ns;
	}
	require(!ret || *recording_error(rec));
	require(recording_next(rec, &ev) == ret);
	recording_close(rec);
}

int main(int argc, char **argv)
{
	return mutate_main(argc, argv, one);
}
