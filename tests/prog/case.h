/* SPDX-License-Identifier: BSD-2-Clause */
/* A case of a .bpft file, and what running it in one configuration gives. README.md says what the files look like. */
#ifndef INLAY_TESTS_PROG_CASE_H
#define INLAY_TESTS_PROG_CASE_H

#include "base/strbuf.h"
#include "base/types.h"

#define CASE_MAX_MAPS  8
#define CASE_MAX_PROGS 4
#define CASE_MAX_LINES 32

struct case_map {
	char name[16], inner[16];
	u32 type, key, value, max, flags;
};

struct case_prog {
	char name[16]; /* "main", or another's */
	char *text;
};

struct bpft_case {
	char name[96], file[64];
	u32 prog_type, runs;
	bool types; /* functions have BTF, as clang gives them */
	char catch[16]; /* exception callback; "" none */
	struct case_map maps[CASE_MAX_MAPS];
	u32 nr_maps;
	struct case_prog progs[CASE_MAX_PROGS];
	u32 nr_progs;
	char *fill[CASE_MAX_LINES], *want_map[CASE_MAX_LINES]; /* "MAP KEY = …" */
	u32 nr_fill, nr_want;
	char *log; /* what the refusal says; NULL: it is accepted */
	bool has_r0;
	u64 r0;
};

struct case_config {
	bool interp, no_inline;
	const char *storage; /* NULL: the default */
};

struct case_result {
	int err;	   /* of loading */
	struct strbuf log; /* the verifier's */
	u64 r0;
	struct strbuf state; /* context and maps after the run, a line each, in an order of their own */
	struct strbuf wrong; /* lines of want_map that do not hold */
	char why[160];	   /* the case itself is broken; "" */
};

/* Calls fn for each case of the file; false, said, if it cannot be read or is malformed. */
bool case_read_file(const char *path, void (*fn)(struct bpft_case *c));

/* Engines are made when first needed, one a configuration, and stay until case_engines_fini(). */
void case_run(const struct bpft_case *c, const struct case_config *config, struct case_result *ret);
void case_result_fini(struct case_result *r);
void case_engines_fini(void);

#endif
