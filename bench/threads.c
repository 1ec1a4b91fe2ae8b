// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread and two, each at keys or a task of its own: what sharing a map costs. Time is the wall's. "empty" is the
 * loop alone: what this machine gives two threads at all.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

#include "bench/worker.h"

#define KEYS	 1000u /* a thread's: the object's num_keys */
#define THREADS	 2
#define SMALL	 (4 * THREADS * KEYS) /* a replacement takes its own element before it gives the old one back */

static const struct {
	const char *section, *object, *program;
	u32 runs; /* of a piece: some 20 ms, so that starting threads is not seen */
	u32 entries; /* of the map */
} kinds[] = {
	{ "empty", "direct", "direct_empty", 2000, 0 },
	{ "storage", "direct", "direct_get", 1000, 0 },
	{ "lookup", "update", "table_own", 200, SMALL },
	/* in a small map keys of both threads have many home groups in common, in a large one hardly any */
	{ "update", "update", "table_replace", 50, SMALL },
	{ "update-large", "update", "table_replace", 50, BENCH_FULL },
};

static u32 kind_of(const struct bench_params *p)
{
	u32 i;

	for (i = 0; i + 1 < ARRAY_SIZE(kinds) && strcmp(kinds[i].section, p->section); i++)
		;
	return i;
}

const char *bench_threads_choose(const struct bench_params *p, char *program, size_t size)
{
	snprintf(program, size, "%s", kinds[kind_of(p)].program);
	return kinds[kind_of(p)].object;
}

int bench_threads_configure(struct bench_worker *w)
{
	struct bpf_map *table = bpf_object__find_map_by_name(w->obj, "table");

	return table ? bpf_map__set_max_entries(table, kinds[kind_of(&w->p)].entries) : 0;
}

int bench_threads_fill(struct bench_worker *w)
{
	int fd = bpf_object__find_map_fd_by_name(w->obj, "table"), err = 0;
	u64 value;
	u32 i;

	for (i = 0; fd >= 0 && i < THREADS * KEYS && !err; i++) {
		value = i;
		err = bpf_map_update_elem(fd, &i, &value, 0);
	}
	return err;
}

struct member {
	struct bench_worker *w;
	pthread_barrier_t *gate;
	int fd, touch_fd, err;
	u32 runs;
	u64 base, from, to;
};

static u64 wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int run_from(int fd, u64 base)
{
	u64 args[12] = { base };
	LIBBPF_OPTS(bpf_test_run_opts, t, .ctx_in = args, .ctx_size_in = sizeof(args));

	return bpf_prog_test_run_opts(fd, &t);
}

static void *work(void *arg)
{
	struct member *m = arg;
	u32 i;

	cli_engine_enter(m->w->engine);
	if (m->touch_fd >= 0)
		m->err = run_from(m->touch_fd, 0);
	if (!m->err)
		m->err = run_from(m->fd, m->base); /* pages and caches */
	pthread_barrier_wait(m->gate);
	m->from = wall_ns();
	for (i = 0; i < m->runs && !m->err; i++)
		m->err = run_from(m->fd, m->base);
	m->to = wall_ns();
	cli_engine_leave(m->w->engine);
	return NULL;
}

int bench_threads_piece(struct bench_worker *w, int fd)
{
	struct bpf_program *touch = bpf_object__find_program_by_name(w->obj, "touch");
	struct member m[THREADS];
	pthread_t thread[THREADS];
	pthread_barrier_t gate;
	u32 i, n = w->p.num_threads;
	u64 from = ~0ULL, to = 0;
	int err;

	err = -pthread_barrier_init(&gate, NULL, n);
	for (i = 0; i < n && !err; i++) {
		m[i] = (struct member){ .w = w, .gate = &gate, .fd = fd, .base = i * KEYS, .runs = kinds[kind_of(&w->p)].runs,
					.touch_fd = touch ? bpf_program__fd(touch) : -1 };
		err = -pthread_create(&thread[i], NULL, work, &m[i]);
		if (err && i) /* the others wait for it for ever */
			return err;
	}
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		pthread_join(thread[i], NULL);
		err = err ? err : m[i].err;
		from = m[i].from < from ? m[i].from : from;
		to = m[i].to > to ? m[i].to : to;
	}
	pthread_barrier_destroy(&gate);
	w->piece_ns = to - from;
	return err;
}

u64 bench_threads_ops(const struct bench_params *p, u64 runs)
{
	return runs * p->num_threads * kinds[kind_of(p)].runs * BENCH_LOOPS;
}

const char *bench_threads_verify(struct bench_worker *w, u64 runs)
{
	if (w->count[4])
		return "an operation failed";
	return w->count[0] == runs * w->p.num_threads * (kinds[kind_of(&w->p)].runs + 1) * BENCH_LOOPS ? NULL : "hits are not what the definition says";
}
