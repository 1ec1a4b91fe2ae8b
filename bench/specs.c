// SPDX-License-Identifier: BSD-2-Clause
/* The benchmarks, a row each, and what is particular to them. To add one: a row here, its program in bpf/bench/. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include <linux/types.h>

#include "bench/worker.h"
#include "env/env.h"
#include "object/instance.h"
#include "object/prog.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define COMPUTE_CALL()	 0
#define COMPUTE_CELL(at) ((void)(at), (__u64 *)NULL)
#include "bench/compute.h"

/* ---- local-storage: the kernel selftests' local-storage-cache-{seq,int}-get ---- */

static int storage_configure(struct bench_worker *w)
{
	int err = bench_set_const(w, "num_maps", w->p.num_maps);

	return err ? err : bench_set_const(w, "interleave", w->p.interleaved);
}

static int storage_fill(struct bench_worker *w)
{
	struct bpf_program *fill = bpf_object__find_program_by_name(w->obj, "storage_fill");
	u32 i;
	int fd, err;

	/* exactly num_maps: Linux's list of an owner is as long as it has maps */
	for (i = 0; i < w->p.num_maps; i++) {
		fd = bench_inner(w, i, 0, 0);
		if (fd < 0)
			return fd;
		close(fd); /* the outer map holds it */
	}
	err = bench_run(bpf_program__fd(fill));
	if (err)
		return err;
	return w->count[0] == w->p.num_maps ? 0 : -ENOENT;
}

/* What a run must count: hits, of those important, sum of the values found (map i holds i + 1). */
static void storage_expect(const struct bench_params *p, u64 *hits, u64 *important, u64 *sum)
{
	u64 i;

	*hits = *important = *sum = 0;
	for (i = 0; i < BENCH_LOOPS; i++) {
		u32 m = i % p->num_maps;

		++*hits;
		*important += !m;
		*sum += m + 1;
		if (p->interleaved && m % 3 == 0) {
			++*hits;
			++*important;
			*sum += 1;
		}
	}
}

static const char *storage_verify(struct bench_worker *w, u64 runs)
{
	u64 hits, important, sum;

	storage_expect(&w->p, &hits, &important, &sum);
	if (w->count[0] != runs * hits || w->count[1] != runs * important)
		return "hits are not what the definition says";
	return w->count[2] == runs * sum ? NULL : "the values read do not add up";
}

static u64 storage_ops(const struct bench_params *p, u64 runs)
{
	u64 hits, important, sum;

	storage_expect(p, &hits, &important, &sum);
	return runs * hits;
}

/* ---- hashmap: the selftests' control; other keys through a list ---- */

static int hash_configure(struct bench_worker *w)
{
	struct bpf_map *outer = bpf_object__find_map_by_name(w->obj, "maps");
	struct bpf_map *list = bpf_object__find_map_by_name(w->obj, "list");
	u32 size = w->p.key_size ?: 4;

	bpf_map__set_key_size(bpf_map__inner_map(outer), size);
	if (w->p.key_size) {
		bpf_map__set_value_size(list, size);
		bpf_map__set_max_entries(list, w->p.num_keys);
	}
	return bench_set_const(w, "num_keys", w->p.num_keys);
}

/*
 * The n-th of 2^17 keys of 8 bytes whose XXH3_64bits() without a seed agree in the low 24 and the high 23 bits: for a
 * table that takes its place and its tag from there, one key. XXH3 of 8 bytes is a bijection, here run backwards.
 */
static u64 colliding_key(u64 n)
{
	const u64 mul = 0x9fb21c651e98df25ULL, flip = 0xc73ab174c5ecd5a2ULL; /* of the algorithm and its secret */
	u64 h = 0x5a5a5a0000a5a5a5ULL | n << 24, inverse = mul, half;
	u32 i;

	for (i = 0; i < 6; i++) /* Newton: the correct bits double each time */
		inverse *= 2 - mul * inverse;
	h ^= h >> 28 ^ h >> 56;
	h *= inverse;
	h ^= (h >> 35) + 8;
	h *= inverse;
	for (i = 1; i < 64; i *= 2) /* f(x) = x ^ rotl 49 ^ rotl 24 is its own inverse after 64 times: 63 more */
		h ^= (h << (49 * i & 63) | h >> (-49 * i & 63)) ^ (h << (24 * i & 63) | h >> (-24 * i & 63));
	h ^= flip;
	half = h >> 32;
	return h << 32 | half;
}

/* Key number n of the list: spread by a fixed function, the same on both engines; the upper half are those never put in. */
static void list_key(u8 *key, u32 size, u64 n)
{
	u64 x = n * 0x9e3779b97f4a7c15ULL + 0x1234567;
	u32 i;

	if (size == 4) { /* odd factor: no two the same */
		u32 key4 = (u32)n * 2654435761u;

		memcpy(key, &key4, 4);
		return;
	}
	for (i = 0; i < size; i += 8) {
		x ^= x >> 29;
		x *= 0xbf58476d1ce4e5b9ULL;
		memcpy(key + i, &x, size - i < 8 ? size - i : 8);
	}
	if (size >= 8)
		memcpy(key, &n, 4); /* no two the same */
}

static int fill_batch(int fd, const void *keys, const void *values, u32 n)
{
	u32 count = n;
	LIBBPF_OPTS(bpf_map_batch_opts, o);

	return bpf_map_update_batch(fd, keys, values, &count, &o);
}

#define BATCH 4096

static int hash_fill(struct bench_worker *w)
{
	static u32 values[BATCH];
	u32 size = w->p.key_size ?: 4, n = w->p.key_size ? w->p.num_keys : BENCH_FULL, i, j, part;
	u8 *keys = calloc(BATCH, size), *listed = calloc(BATCH, size);
	int list = bpf_object__find_map_fd_by_name(w->obj, "list");
	int fd = bench_inner(w, 0, size, w->inner.max_entries), err = fd < 0 ? fd : 0;

	for (i = 0; i < n && !err; i += part) {
		part = n - i < BATCH ? n - i : BATCH;
		for (j = 0; j < part; j++) {
			u32 index = i + j;

			values[j] = index;
			if (!w->p.key_size) {
				memcpy(keys + j * size, &index, 4);
				continue;
			}
			if (w->p.colliding) {
				u64 key = colliding_key(index);

				memcpy(keys + j * size, &key, size);
				memcpy(listed, &key, size);
			} else {
				list_key(keys + j * size, size, index);
				list_key(listed, size, w->p.absent ? index + (u64)n : index);
			}
			err = bpf_map_update_elem(list, &index, listed, 0);
			if (err)
				break;
		}
		if (!err)
			err = fill_batch(fd, keys, values, part);
	}
	free(keys);
	free(listed);
	if (fd >= 0)
		close(fd);
	return err;
}

static const char *hash_verify(struct bench_worker *w, u64 runs)
{
	if (w->count[0] != runs * BENCH_LOOPS)
		return "hits are not what the definition says";
	if (w->p.absent)
		return w->count[4] == runs * BENCH_LOOPS ? NULL : "a key that is not there was found";
	if (w->count[4])
		return "a key that is there was not found";
	return w->count[2] == w->count[3] ? NULL : "the values read do not add up";
}

/* ---- local-storage-direct ---- */

static int direct_fill(struct bench_worker *w)
{
	int err = bench_run(bpf_program__fd(bpf_object__find_program_by_name(w->obj, "touch")));

	return err;
}

static const char *direct_verify(struct bench_worker *w, u64 runs)
{
	if (w->count[0] != runs * BENCH_LOOPS)
		return "hits are not what the definition says";
	return w->count[2] && w->count[2] % (runs * BENCH_LOOPS) == 0 ? NULL : "the values read do not add up";
}

/* ---- hashmap-insert, hashmap-full-update, hashmap-lookup ---- */

#define INSERT_ENTRIES 1000000u

static int table_configure(struct bench_worker *w)
{
	return bpf_map__set_max_entries(bpf_object__find_map_by_name(w->obj, "table"), w->p.num_keys);
}

/* Inserts 10,000 new keys; takes them out again once the table is full, off the clock. */
static int insert_piece(struct bench_worker *w, int fd)
{
	int out = bpf_program__fd(bpf_object__find_program_by_name(w->obj, "table_remove"));
	u64 start, base;
	int err;

	w->count[5] = w->key_base;
	start = bench_cpu_ns();
	err = bench_run(fd);
	w->piece_ns = bench_cpu_ns() - start;
	w->key_base += BENCH_LOOPS;
	if (err || w->key_base % w->p.num_keys)
		return err;
	for (base = w->key_base - w->p.num_keys; base < w->key_base && !err; base += BENCH_LOOPS) {
		w->count[5] = base;
		err = bench_run(out);
	}
	return err;
}

static u64 loops_ops(const struct bench_params *p, u64 runs)
{
	return runs * BENCH_LOOPS;
}

static const char *no_misses(struct bench_worker *w, u64 runs)
{
	return w->count[4] ? "an operation failed" : NULL;
}

static int full_configure(struct bench_worker *w)
{
	return 0; /* 1,000 entries, as it stands */
}

static int full_fill(struct bench_worker *w)
{
	int fd = bpf_object__find_map_fd_by_name(w->obj, "table"), err = 0;
	u64 value = 1;
	u32 i;

	for (i = 0; i < 1000 && !err; i++)
		err = bpf_map_update_elem(fd, &i, &value, 0);
	return err;
}

static int full_piece(struct bench_worker *w, int fd)
{
	w->count[5] = 1000;
	return bench_run(fd);
}

static const char *all_refused(struct bench_worker *w, u64 runs)
{
	return w->count[4] == runs * BENCH_LOOPS ? NULL : "an update of a full map was taken";
}

static int lookup_fill(struct bench_worker *w)
{
	int fd = bpf_object__find_map_fd_by_name(w->obj, "table"), err = 0;
	u64 value;
	u32 i;

	for (i = 1; i <= 500 && !err; i++) {
		value = i;
		err = bpf_map_update_elem(fd, &i, &value, 0);
	}
	return err;
}

static u64 lookup_ops(const struct bench_params *p, u64 runs)
{
	return runs * 1000000;
}

static const char *lookup_verify(struct bench_worker *w, u64 runs)
{
	if (w->count[0] != runs * 1000000)
		return "a key that is there was not found";
	return w->count[2] == runs * 2000 * (500 * 501 / 2) ? NULL : "the values read do not add up";
}

/* ---- what only the user engine can do: runs with another task each time ---- */

#define OWNERS 1000

struct prog *bench_prog(struct bench_worker *w, int fd, struct obj **ret)
{
	struct inlay *inlay = w->engine->inlay;

	return inlay->fds->get(inlay, fd, ret) ? NULL : prog_of(*ret);
}

static u64 owners_ops(const struct bench_params *p, u64 runs)
{
	return runs * OWNERS;
}

/* 1,000 tasks in rotation, each with its value. */
static int owners_piece(struct bench_worker *w, int fd)
{
	static struct env_task *task[OWNERS];
	struct env *env = w->engine->inlay->env;
	struct env_tls saved = env_tls;
	u64 ctx[12] = { 0 }, start;
	struct obj *obj = NULL, *touch = NULL;
	struct prog *prog = bench_prog(w, fd, &obj);
	struct prog *make = bench_prog(w, bpf_program__fd(bpf_object__find_program_by_name(w->obj, "touch")), &touch);
	bool first = !task[0];
	u32 i;
	int err = prog && make ? 0 : -EBADF;

	for (i = 0; i < OWNERS && first && !err; i++) {
		task[i] = env_task_create(env, 200000 + i, 200000 + i, "bench");
		err = task[i] ? 0 : -ENOMEM;
	}
	if (err)
		return err;
	env_enter(env, 0, task[0]);
	for (i = 0; i < OWNERS && first; i++) {
		env_set_current(env, 0, task[i]);
		prog_run(make, ctx);
	}
	start = bench_cpu_ns();
	for (i = 0; i < OWNERS && !err; i++) {
		env_set_current(env, 0, task[i]);
		err = prog_run(prog, ctx) == 1 ? 0 : -ENOENT;
	}
	w->piece_ns = bench_cpu_ns() - start;
	if (saved.env)
		env_tls = saved;
	else
		env_leave(env);
	obj_put(obj);
	obj_put(touch);
	return err;
}

/* ---- entry: an empty program entered and left ---- */

#define ENTRY_RUNS 1000000

static int entry_piece(struct bench_worker *w, int fd)
{
	struct obj *obj = NULL;
	struct prog *prog;
	struct env_tls saved = env_tls;
	u64 ctx[12] = { 0 }, start;
	u32 i;

	if (!w->engine->inlay) { /* entered over and over by the kernel; a raw_tp it would not */
		char packet[64] = { 0 };
		LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = packet, .data_size_in = sizeof(packet), .repeat = ENTRY_RUNS);

		w->piece_ops = ENTRY_RUNS;
		return bpf_prog_test_run_opts(fd, &t);
	}
	w->piece_ops = BENCH_LOOPS;
	prog = bench_prog(w, fd, &obj);
	if (!prog)
		return -EBADF;
	env_enter(w->engine->inlay->env, 0, env_task_self(w->engine->inlay->env));
	start = bench_cpu_ns();
	for (i = 0; i < BENCH_LOOPS; i++)
		prog_run(prog, ctx);
	w->piece_ns = bench_cpu_ns() - start;
	if (saved.env)
		env_tls = saved;
	else
		env_leave(w->engine->inlay->env);
	obj_put(obj);
	return 0;
}

/* ---- compute ---- */

static int compute_fill(struct bench_worker *w)
{
	struct compute_data *d = bench_global(w, "data");

	if (!d)
		return -ENOENT;
	bench_compute_data(d);
	w->count[5] = 1;
	return 0;
}

/* Every run begins anew: what the last one returned is what the C compiler's code does. */
static const char *compute_verify(struct bench_worker *w, u64 runs)
{
	u64 want;

	return !bench_native_result(w->p.section, BENCH_LOOPS, &want) || w->count[2] == want ? NULL :
											  "not the answer of the same C code";
}

static const char *compute_choose(const struct bench_params *p, char *program, size_t size)
{
	snprintf(program, size, "compute_%s_run", p->section);
	return "compute";
}

static int compute_configure(struct bench_worker *w)
{
	return bench_set_const(w, "rounds", BENCH_LOOPS);
}

/* ---- the rows of each benchmark ---- */

#define BOTH_ORDERS(n) { .num_maps = (n) }, { .num_maps = (n), .interleaved = true }
static const struct bench_params storage_rows[] = {
	BOTH_ORDERS(1), BOTH_ORDERS(10), BOTH_ORDERS(16), BOTH_ORDERS(17), BOTH_ORDERS(24), BOTH_ORDERS(32), BOTH_ORDERS(100),
	BOTH_ORDERS(1000),
};

#define KEYS(n) { .num_maps = 1, .num_keys = (n) }
static const struct bench_params hash_rows[] = { KEYS(10), KEYS(1000), KEYS(10000), KEYS(100000), KEYS(BENCH_FULL) };

#define SIZE(n) { .num_maps = 1, .num_keys = 100000, .key_size = (n) }, \
		{ .num_maps = 1, .num_keys = 100000, .key_size = (n), .absent = true }
static const struct bench_params size_rows[] = {
	SIZE(4), SIZE(8), SIZE(16), SIZE(40), { .num_maps = 1, .num_keys = 100000, .key_size = 8, .colliding = true },
};

static const struct bench_params insert_rows[] = { { .num_keys = INSERT_ENTRIES } }; /* a multiple of a run's */

static const struct bench_params compute_rows[] = {
#define ROW(name_, text, pure) { .section = #name_ },
	COMPUTE_ROWS(ROW)
#undef ROW
};

static const struct bench_params compile_rows[] = { { .num_insns = 2 }, { .num_insns = 100 }, { .num_insns = 1000 }, { .num_insns = 10000 } };

#define ONE_AND_TWO(name_) { .section = (name_), .num_threads = 1 }, { .section = (name_), .num_threads = 2 }
static const struct bench_params threads_rows[] = {
	ONE_AND_TWO("empty"), ONE_AND_TWO("storage"), ONE_AND_TWO("lookup"), ONE_AND_TWO("update"), ONE_AND_TWO("update-large"),
};

static const struct bench_params memory_rows[] = {
	{ .section = "storage-first" }, { .section = "storage-more" }, { .section = "storage-beyond-16" },
	{ .section = "hash" }, { .section = "hash-noprealloc" },
};

#define ROWS(of) .rows = of##_rows, .nr_rows = ARRAY_SIZE(of##_rows)

#define USER_ONLY "the kernel runs a program with the task that is there: it cannot be given others"

const struct bench_spec bench_specs[] = {
	{ .name = "local-storage", ROWS(storage), .object = "storage", .program = "storage_get", .empty = "storage_empty", .storage = true,
	  .ops = storage_ops, .configure = storage_configure, .fill = storage_fill, .verify = storage_verify },
	{ .name = "hashmap", ROWS(hash), .object = "hash", .program = "hash_get", .empty = "hash_empty", .storage = true, .control = true,
	  .ops = loops_ops, .configure = hash_configure, .fill = hash_fill, .verify = hash_verify },
	{ .name = "hashmap-keys", ROWS(size), .object = "hash", .program = "list_get", .empty = "list_empty", .ops = loops_ops,
	  .configure = hash_configure, .fill = hash_fill, .verify = hash_verify },
	{ .name = "local-storage-direct", .object = "direct", .program = "direct_get", .empty = "direct_empty", .storage = true,
	  .ops = loops_ops, .fill = direct_fill, .verify = direct_verify },
	{ .name = "local-storage-owners", .object = "direct", .program = "owner_get", .empty = "owner_empty", .storage = true,
	  .ops = owners_ops, .piece = owners_piece, .user_only = USER_ONLY },
	{ .name = "local-storage-create", .object = "direct", .program = "touch", .empty = "owner_empty", .storage = true,
	  .kernel_object = "born", .kernel_program = "born", .ops = bench_create_ops, .configure = bench_create_configure,
	  .fill = bench_create_fill, .piece = bench_create_piece, .verify = bench_create_verify },
	{ .name = "hashmap-insert", ROWS(insert), .object = "update", .program = "table_insert", .ops = loops_ops,
	  .configure = table_configure, .piece = insert_piece, .verify = no_misses },
	{ .name = "hashmap-lookup", .object = "lookup", .program = "lookup_get", .empty = "lookup_empty", .ops = lookup_ops,
	  .fill = lookup_fill, .verify = lookup_verify },
	{ .name = "hashmap-full-update", .object = "update", .program = "table_full", .ops = loops_ops,
	  .configure = full_configure, .fill = full_fill, .piece = full_piece, .verify = all_refused },
	{ .name = "entry", .object = "entry", .program = "entry_raw", .kernel_program = "entry_socket", .piece = entry_piece },
	{ .name = "compute", ROWS(compute), .object = "compute", .choose = compute_choose, .native = true, .ops = loops_ops, .configure = compute_configure, .fill = compute_fill,
	  .verify = compute_verify },
	{ .name = "compile", ROWS(compile), .choose = bench_compile_choose, .ops = bench_compile_ops, .fill = bench_compile_fill,
	  .piece = bench_compile_piece, .user_only = "the kernel compiles as a part of loading, which cannot be timed alone" },
	{ .name = "threads", ROWS(threads), .choose = bench_threads_choose, .ops = bench_threads_ops, .configure = bench_threads_configure,
	  .fill = bench_threads_fill, .piece = bench_threads_piece, .verify = bench_threads_verify },
	{ .name = "memory", ROWS(memory), .choose = bench_memory_choose, .bytes = true, .ops = bench_memory_ops,
	  .configure = bench_memory_configure, .fill = bench_memory_fill, .piece = bench_memory_piece,
	  .user_only = "what an element takes is hidden in the kernel's slabs" },
	{ 0 },
};

/* --obj: a program of a file, run over and over */
const struct bench_spec bench_spec_object = { .name = "object", .piece = bench_object_piece };

const struct bench_spec *bench_find(const char *name)
{
	const struct bench_spec *s;

	for (s = bench_specs; s->name; s++)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

bool bench_params_at(const struct bench_spec *spec, u32 i, struct bench_params *ret)
{
	if (i < spec->nr_rows)
		*ret = spec->rows[i];
	else
		*ret = (struct bench_params){ 0 };
	return i < max_of(spec->nr_rows, 1u);
}
