// SPDX-License-Identifier: BSD-2-Clause
/*
 * First touch: the storage of tasks never seen before, and what it costs that they go. On the user engine tasks are made
 * and exit; on the kernel a process makes threads, and a program at their birth times the creation alone.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/worker.h"
#include "env/env.h"
#include "object/instance.h"
#include "object/prog.h"
#include "rcu/rcu.h"

#define OWNERS	 1000
#define BATCHES	 8
#define TOGETHER 32 /* threads alive at a time: the selftests' batch */

static u64 clock_of(clockid_t which)
{
	struct timespec ts;

	clock_gettime(which, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int by_ns(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

/* 1,000 tasks touch and exit. making_ns gets the time it took to make them; each: the time of each run, or NULL. */
static int batch(struct env *env, struct prog *prog, u64 *each, u64 *making_ns)
{
	static struct env_task *task[OWNERS];
	u64 ctx[12] = { 0 }, start = bench_cpu_ns();
	u32 i, made;
	int err = 0;

	for (made = 0; made < OWNERS && !err; made++) {
		task[made] = env_task_create(env, 100000 + made, 100000 + made, "bench");
		if (!task[made]) {
			err = -ENOMEM;
			break;
		}
	}
	*making_ns += bench_cpu_ns() - start;
	for (i = 0; i < made && !err; i++) {
		u64 t0 = each ? clock_of(CLOCK_MONOTONIC) : 0;

		env_set_current(env, 0, task[i]);
		prog_run(prog, ctx);
		if (each)
			each[i] = clock_of(CLOCK_MONOTONIC) - t0;
	}
	env_set_current(env, 0, env_idle_task(env, 0));
	for (i = 0; i < made; i++)
		env_task_exit(task[i]);
	return err;
}

/*
 * The clock is the process's: what is freed after a grace period, on another thread, is on it too. Only making the tasks is
 * not. Every eighth time one batch more looks at the clock around each run, for the p99.
 */
static int user_piece(struct bench_worker *w, int fd)
{
	static u64 each[OWNERS];
	struct env *env = w->engine->inlay->env;
	struct env_tls saved = env_tls;
	struct obj *obj = NULL;
	struct prog *prog = bench_prog(w, fd, &obj);
	u64 making = 0, start;
	int err = 0, i;

	if (!prog)
		return -EBADF;
	env_enter(env, 0, env_idle_task(env, 0));
	if (fd == w->prog_fd && w->expect++ % 8 == 7) {
		err = batch(env, prog, each, &making);
		qsort(each, OWNERS, sizeof(*each), by_ns);
		w->p99_ns = each[OWNERS * 99 / 100];
	}
	rcu_barrier_all();
	making = 0;
	start = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	for (i = 0; i < BATCHES && !err; i++)
		err = batch(env, prog, NULL, &making);
	rcu_barrier_all();
	w->piece_ns = clock_of(CLOCK_PROCESS_CPUTIME_ID) - start;
	w->piece_ns -= making < w->piece_ns ? making : w->piece_ns;
	w->piece_ops = OWNERS * BATCHES;
	if (saved.env)
		env_tls = saved;
	else
		env_leave(env);
	obj_put(obj);
	return err;
}

static void *nothing(void *arg)
{
	return arg;
}

/* Sets piece_ns to what the program took around the creations, its looks at the clock taken off. */
static int kernel_piece(struct bench_worker *w)
{
	u32 *ns = bench_global(w, "ns"), i, n, made = 0;
	u64 *clock_ns = bench_global(w, "clock_ns"), sum = 0;
	pthread_t thread[TOGETHER];
	static u64 each[OWNERS];

	if (!ns || !clock_ns)
		return -ENOENT;
	w->count[0] = *clock_ns = 0;
	while (made < OWNERS) {
		for (n = 0; n < TOGETHER && made < OWNERS; n++, made++)
			if (pthread_create(&thread[n], NULL, nothing, NULL))
				return -EAGAIN;
		for (i = 0; i < n; i++)
			pthread_join(thread[i], NULL);
	}
	n = w->count[0] < OWNERS ? w->count[0] : OWNERS;
	if (!n)
		return -ENOENT; /* the program did not run */
	for (i = 0; i < n; i++)
		sum += each[i] = ns[i];
	qsort(each, n, sizeof(*each), by_ns);
	w->p99_ns = each[n * 99 / 100];
	w->piece_ns = sum > *clock_ns ? sum - *clock_ns : 1;
	w->piece_ops = n;
	return 0;
}

int bench_create_configure(struct bench_worker *w)
{
	return w->engine->inlay ? 0 : bench_set_const(w, "tgid", getpid());
}

int bench_create_fill(struct bench_worker *w)
{
	struct bpf_link *link;

	if (w->engine->inlay)
		return 0;
	link = bpf_program__attach(bpf_object__find_program_by_name(w->obj, w->program)); /* until the process ends */
	return link ? 0 : -errno;
}

int bench_create_piece(struct bench_worker *w, int fd)
{
	return w->engine->inlay ? user_piece(w, fd) : kernel_piece(w);
}

u64 bench_create_ops(const struct bench_params *p, u64 runs)
{
	return runs * OWNERS * BATCHES;
}

const char *bench_create_verify(struct bench_worker *w, u64 runs)
{
	return w->count && w->count[4] ? "an element was not made" : NULL;
}
