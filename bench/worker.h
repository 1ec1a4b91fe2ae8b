/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to bench/: one loaded object of a contender, in the process that measures it. */
#ifndef INLAY_BENCH_WORKER_H
#define INLAY_BENCH_WORKER_H

#include <bpf/libbpf.h>

#include "bench/bench.h"

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

#endif
