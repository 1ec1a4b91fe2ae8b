/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to bench/: one loaded object of a contender, in the process that measures it. */
#ifndef INLAY_BENCH_WORKER_H
#define INLAY_BENCH_WORKER_H

#include <bpf/libbpf.h>

#include "bench/bench.h"
#include "bpf/bench/bench.h"

struct bench_worker {
	const struct bench_spec *spec;
	struct bench_params p;
	struct cli_engine *engine;
	struct bpf_object *obj;
	int prog_fd, empty_fd; /* -1: none */
	char program[64];
	volatile u64 *count;   /* struct bench_count of the object's .bss */
	struct {
		u32 type, key_size, value_size, max_entries, flags, btf_key, btf_value;
	} inner; /* the pattern of map "maps"; libbpf forgets it once loaded */
	char *bss;
	u64 expect;	       /* fill()'s, for verify() */
	double p99_ns;
	u64 piece_ns; /* of the last piece, if it took the time itself */
	u64 piece_ops; /* … and its operations, if only it knows */
	bool native; /* the C compiler's code: no engine, no object */
	u64 key_base;
	char why[256];
};

/* Gives a constant of .rodata a value before load; 0 or -ENOENT. */
int bench_set_const(struct bench_worker *w, const char *name, u64 value);
/* Where a global variable of .bss is after load; NULL: there is none. */
void *bench_global(struct bench_worker *w, const char *name);
/* One run of a program; 0 or -errno. */
int bench_run(int fd);
/* CPU time of this thread. */
u64 bench_cpu_ns(void);
/* A map like the outer map's pattern, max_entries (0: the pattern's) and key size as given, put at index; its descriptor or -errno. */
int bench_inner(struct bench_worker *w, u32 index, u32 key_size, u32 max_entries);


struct inlay;
struct prog;
struct obj;
/* The program behind a descriptor of the user engine, with a reference in *ret: obj_put() it. NULL: none. */
struct prog *bench_prog(struct bench_worker *w, int fd, struct obj **ret);

/* threads.c: two threads at their own keys and tasks, by the clock on the wall */
const char *bench_threads_choose(const struct bench_params *p, char *program, size_t size);
int bench_threads_configure(struct bench_worker *w);
int bench_threads_fill(struct bench_worker *w);
int bench_threads_piece(struct bench_worker *w, int fd);
u64 bench_threads_ops(const struct bench_params *p, u64 runs);
const char *bench_threads_verify(struct bench_worker *w, u64 runs);

/* memory.c: what an element takes, from what the process holds before and after */
const char *bench_memory_choose(const struct bench_params *p, char *program, size_t size);
int bench_memory_configure(struct bench_worker *w);
int bench_memory_fill(struct bench_worker *w);
int bench_memory_piece(struct bench_worker *w, int fd);
u64 bench_memory_ops(const struct bench_params *p, u64 runs);

/* create.c: first touch */
int bench_create_configure(struct bench_worker *w);
int bench_create_fill(struct bench_worker *w);
int bench_create_piece(struct bench_worker *w, int fd);
u64 bench_create_ops(const struct bench_params *p, u64 runs);
const char *bench_create_verify(struct bench_worker *w, u64 runs);

/* compile.c: the compiler itself; any other object */
const char *bench_compile_choose(const struct bench_params *p, char *program, size_t size);
int bench_compile_fill(struct bench_worker *w);
int bench_compile_piece(struct bench_worker *w, int fd);
u64 bench_compile_ops(const struct bench_params *p, u64 runs);
int bench_object_piece(struct bench_worker *w, int fd);

#endif
