/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The benchmarks. A benchmark is a row of bench_specs[]: an object of bpf/bench/, its program, the program that does the same
 * without the work (the empty body), and how the maps are made ready. Each row is measured for each contender (an engine, in
 * the user engine a storage variant) in a process of its own; the contenders of a row take turns in short slices.
 *
 * Figures are CPU time of the thread that runs the programs, so that a busy machine moves them less; medians over slices.
 */
#ifndef INLAY_BENCH_BENCH_H
#define INLAY_BENCH_BENCH_H

#include <stdio.h>

#include "engine.h"

#define BENCH_SLICES_MAX 4096
#define BENCH_CONTENDERS 8

/* What one row varies. */
struct bench_params {
	u32 num_maps, num_keys, key_size, num_threads, num_insns;
	bool interleaved, absent, colliding;
	const char *section; /* compute, threads, memory: which; NULL */
	const char *file;    /* --obj: section is its program, NULL the only one */
};

struct bench_worker; /* worker.c: one loaded object */

struct bench_spec {
	const char *name;
	const struct bench_params *rows; /* nr_rows of them; none: one row that varies nothing */
	u32 nr_rows;
	const char *object;   /* bench_obj_<object> */
	const char *program;  /* NULL: by section, or no object */
	/* the object and the program of a section, where they are not the spec's */
	const char *(*choose)(const struct bench_params *p, char *program, size_t size);
	const char *kernel_object, *kernel_program; /* on the kernel engine, if others; no empty body then */
	const char *empty;    /* the same without the work; NULL: there is none */
	bool storage;	      /* its figure depends on the storage variant */
	bool control;	      /* the hash control: must not move between variants */
	u64 (*ops)(const struct bench_params *p, u64 runs); /* operations of so many runs; NULL: hits the program counted */
	/* before load: sizes and constants; 0 or -errno */
	int (*configure)(struct bench_worker *w);
	/* after load: maps made and filled; 0 or -errno, reason in w->why */
	int (*fill)(struct bench_worker *w);
	/* one timed piece of work, at least; NULL: one run of the program */
	int (*piece)(struct bench_worker *w, int prog_fd);
	/* hits, sums after runs: NULL or what is wrong */
	const char *(*verify)(struct bench_worker *w, u64 runs);
	bool native;	       /* also as the C compiler makes it */
	bool bytes;	       /* a figure is bytes an element, not ns */
	const char *user_only; /* reason why the kernel engine has no figure; NULL: it has */
};

struct bench_contender {
	const char *engine, *variant; /* "user", "kernel", "native" (no engine: the C compiler's code); variant NULL: none */
	const char *why_not;	      /* no figure, and why */
	double ns, empty_ns;	      /* an operation; empty_ns < 0: none */
	double spread;		      /* half the distance of the quartiles of ns */
	double mops, mops_stddev;
	double share_important; /* important hits of all; < 0: not counted */
	double p99_ns;		/* < 0: none */
};

struct bench_row {
	const struct bench_spec *spec;
	struct bench_params params;
	struct bench_contender c[BENCH_CONTENDERS];
	u32 nr;
	bool is_void; /* the control moved between variants */
};

struct bench_opts {
	u64 warmup_ns, duration_ns;
	u32 trials;
	u32 engines; /* bit 0 user, bit 1 kernel */
	u32 variants; /* bit i: map_storage_impl_at(i) */
	bool json, progress;
	const char *plot;
};

extern const struct bench_spec bench_specs[], bench_spec_object;
const struct bench_spec *bench_find(const char *name);
/* The i-th row of a benchmark; false: there are no more. */
bool bench_params_at(const struct bench_spec *spec, u32 i, struct bench_params *ret);

/* Measures one row: fills row->c. 0 or -errno (a fork or pipe failed). */
int bench_measure(const struct cli_globals *g, const struct bench_opts *o, struct bench_row *row);

/* report.c */
void bench_print_text(const struct bench_row *rows, u32 nr);
void bench_print_json(const struct bench_row *rows, u32 nr);
int bench_plot(const char *path, const struct bench_row *rows, u32 nr);
/* compare.c: two files of --json, row by row. 0, or -errno with a line in err. */
struct strbuf;
int bench_compare(const char *before, const char *after, struct strbuf *err);
void bench_param_text(const struct bench_row *row, char *buf, size_t n);

/* native.c: compute rows by the C compiler. So many calls of one; false: no such row. */
bool bench_native_run(const char *section, u32 calls);
/* What a run of so many calls returns; false: no such row, or its answer is the machine's (calls out). */
bool bench_native_result(const char *section, u32 calls, u64 *ret);
struct compute_data;
void bench_compute_data(struct compute_data *d);

#endif
