// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an element takes, value of 8 bytes (storage: 4): the resident memory of the process before and after many were made, index,
 * allocator's waste and all. storage-first: a task's first; storage-more: each up to 16; storage-beyond-16: the 17th.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bench/worker.h"
#include "env/env.h"
#include "object/instance.h"
#include "object/prog.h"

#define OWNERS	100000u
#define ENTRIES 1000000u
#define NEAR	16u /* maps whose elements lie together */
#define BATCH	10000u

static bool of_storage(const struct bench_params *p)
{
	return !strncmp(p->section, "storage", 7);
}

const char *bench_memory_choose(const struct bench_params *p, char *program, size_t size)
{
	snprintf(program, size, "storage_fill");
	return of_storage(p) ? "storage" : NULL;
}

int bench_memory_configure(struct bench_worker *w)
{
	return bench_set_const(w, "num_maps", NEAR + 1);
}

/* Bytes; < 0: unknown. */
static s64 resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long all, rss = -1;

	if (f && fscanf(f, "%ld %ld", &all, &rss) != 2)
		rss = -1;
	if (f)
		fclose(f);
	return rss < 0 ? -1 : (s64)rss * sysconf(_SC_PAGESIZE);
}

static int add_maps(struct bench_worker *w, u32 from, u32 to)
{
	int fd;

	for (; from < to; from++) {
		fd = bench_inner(w, from, 0, 0);
		if (fd < 0)
			return fd;
		close(fd); /* the outer map holds it */
	}
	return 0;
}

/* Every task gets what it has not yet in the maps there are. */
static int fill_owners(struct bench_worker *w, struct env_task *const *task)
{
	struct env *env = w->engine->inlay->env;
	struct env_tls saved = env_tls;
	u64 ctx[12] = { 0 };
	struct obj *obj = NULL;
	struct prog *prog = bench_prog(w, w->prog_fd, &obj);
	u32 i;

	if (!prog)
		return -EBADF;
	env_enter(env, 0, env_idle_task(env, 0));
	for (i = 0; i < OWNERS; i++) {
		env_set_current(env, 0, task[i]);
		prog_run(prog, ctx);
	}
	env_set_current(env, 0, env_idle_task(env, 0));
	if (saved.env)
		env_tls = saved;
	else
		env_leave(env);
	obj_put(obj);
	return 0;
}

static int storage_bytes(struct bench_worker *w)
{
	static struct env_task *task[OWNERS];
	static const u32 upto[] = { 0, 1, NEAR, NEAR + 1 };
	const char *const stage[] = { "storage-first", "storage-more", "storage-beyond-16" };
	struct env *env = w->engine->inlay->env;
	s64 before, after;
	u32 i, s, made;
	int err = 0;

	for (i = 0; i < OWNERS; i++) {
		task[i] = env_task_create(env, 100000 + i, 100000 + i, "bench");
		if (!task[i])
			return -ENOMEM;
	}
	for (s = 0; s < ARRAY_SIZE(stage) && !err; s++) {
		made = upto[s + 1] - upto[s];
		err = add_maps(w, upto[s], upto[s + 1]);
		before = resident();
		w->count[0] = 0;
		err = err ? err : fill_owners(w, task);
		after = resident();
		if (!err && w->count[0] != (u64)OWNERS * upto[s + 1])
			err = -ENOENT;
		if (!err && (before < 0 || after < before))
			err = -ENODATA;
		if (!err && !strcmp(stage[s], w->p.section)) {
			w->expect = (after - before) / made;
			return 0;
		}
	}
	return err;
}

static int hash_bytes(struct bench_worker *w)
{
	static u32 keys[BATCH];
	static u64 values[BATCH];
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = strcmp(w->p.section, "hash") ? BPF_F_NO_PREALLOC : 0);
	LIBBPF_OPTS(bpf_map_batch_opts, bo);
	s64 before, after;
	u32 i, j, n;
	int fd, err = 0;

	memset(keys, 1, sizeof(keys)); /* their pages are not the map's */
	memset(values, 1, sizeof(values));
	before = resident();
	fd = bpf_map_create(BPF_MAP_TYPE_HASH, "memory", 4, 8, ENTRIES, &o);
	if (fd < 0)
		return fd;
	for (i = 0; i < ENTRIES && !err; i += BATCH) {
		for (j = 0; j < BATCH; j++)
			values[j] = keys[j] = i + j;
		n = BATCH;
		err = bpf_map_update_batch(fd, keys, values, &n, &bo);
	}
	after = resident();
	if (!err && (before < 0 || after < before))
		err = -ENODATA;
	w->expect = err ? 0 : after - before;
	close(fd);
	return err;
}

int bench_memory_fill(struct bench_worker *w)
{
	return of_storage(&w->p) ? storage_bytes(w) : hash_bytes(w);
}

/* Measured once, when the maps were made: bytes where others have nanoseconds. */
int bench_memory_piece(struct bench_worker *w, int fd)
{
	w->piece_ns = w->expect;
	return w->expect ? 0 : -ENODATA;
}

u64 bench_memory_ops(const struct bench_params *p, u64 runs)
{
	return runs * (of_storage(p) ? OWNERS : ENTRIES);
}
