// SPDX-License-Identifier: BSD-2-Clause
/* inlay bench: what local storage, inlining and the maps cost, one engine against the other. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "cli.h"
#include "maps/local_storage.h"

struct bench_args {
	const char *engines, *variants, *plot, *object, *compare;
	u64 warmup, duration;
	u32 trials;
	bool json, quick;
};

static void defaults(void *opts)
{
	struct bench_args *a = opts;

	a->warmup = 1000000000;
	a->duration = 5000000000;
	a->trials = 1;
}

#define O(field) offsetof(struct bench_args, field)
static const struct cli_option options[] = {
	{ 0, "engine", "LIST", cli_set_str, O(engines), "engines to measure, of user,kernel (default: both)" },
	{ 0, "variant", "LIST", cli_set_str, O(variants), "storage variants of the user engine (default: all)" },
	{ 'w', "warmup", "TIME", cli_parse_time_s, O(warmup), "before measuring, each contender (default 1 s)" },
	{ 'd', "duration", "TIME", cli_parse_time_s, O(duration), "measured, each contender of each row (default 5 s)" },
	{ 0, "trials", "N", cli_parse_u32, O(trials), "repeat in fresh processes, medians over them (default 1)" },
	{ 0, "quick", NULL, cli_set_flag, O(quick), "0.1 s and 0.5 s: for a look" },
	{ 0, "json", NULL, cli_set_flag, O(json), "one JSON object" },
	{ 0, "plot", "FILE", cli_set_str, O(plot), "write hits/s over number of maps as SVG" },
	{ 0, "obj", "FILE", cli_set_str, O(object), "time a program of this object instead; NAME is the program's" },
	{ 0, "compare", "FILE", cli_set_str, O(compare), "measure nothing: FILE and NAME, both kept with --json, row by row" },
	{ 0 },
};

/* Bits of the names in a comma-separated list; name_at(i) NULL past the end. -1: some name is none, which is copied to bad. */
static long bits_of(const char *list, const char *(*name_at)(u32 i), char *bad, size_t n)
{
	long bits = 0;
	u32 i;

	while (*list) {
		size_t len = strcspn(list, ",");

		for (i = 0; name_at(i); i++)
			if (strlen(name_at(i)) == len && !strncmp(name_at(i), list, len))
				break;
		if (!name_at(i)) {
			snprintf(bad, n, "%.*s", (int)len, list);
			return -1;
		}
		bits |= 1L << i;
		list += len + (list[len] == ',');
	}
	return bits;
}

static const char *engine_at(u32 i)
{
	return i == 0 ? "user" : i == 1 ? "kernel" : NULL;
}

static const char *variant_at(u32 i)
{
	const struct storage_ops *impl = map_storage_impl_at(i);

	return impl ? impl->name : NULL;
}

static void contenders(const struct bench_opts *o, struct bench_row *row)
{
	u32 i;

	for (i = 0; o->engines & 1 && (row->spec->storage ? variant_at(i) != NULL : i < 1); i++)
		if (!row->spec->storage || o->variants >> i & 1)
			row->c[row->nr++] = (struct bench_contender){ .engine = "user",
								      .variant = row->spec->storage ? variant_at(i) : NULL,
								      .empty_ns = -1, .p99_ns = -1, .share_important = -1 };
	if (row->spec->native)
		row->c[row->nr++] = (struct bench_contender){ .engine = "native", .empty_ns = -1, .p99_ns = -1, .share_important = -1 };
	if (o->engines & 2)
		row->c[row->nr++] = (struct bench_contender){ .engine = "kernel", .why_not = row->spec->user_only, .empty_ns = -1,
							      .p99_ns = -1, .share_important = -1 };
}

/* The control's variants do the same: a run in which they differ by over 2 % and their intervals says nothing. */
static void judge_control(struct bench_row *row)
{
	u32 i, j;

	for (i = 0; i < row->nr && row->spec->control; i++)
		for (j = 0; j < i; j++) {
			const struct bench_contender *a = &row->c[i], *b = &row->c[j];

			if (a->why_not || b->why_not || !a->variant || !b->variant)
				continue;
			if (fabs(a->ns / b->ns - 1) > 0.02 && fabs(a->ns - b->ns) > a->spread + b->spread)
				row->is_void = true;
		}
}

static int measure_row(const struct cli_globals *g, const struct bench_opts *o, const struct bench_spec *spec,
		       const struct bench_params *p, struct bench_row **rows, u32 *nr)
{
	struct bench_row *grown = realloc(*rows, (*nr + 1) * sizeof(**rows)), *row;
	int err;

	if (!grown)
		return -ENOMEM;
	*rows = grown;
	row = &grown[*nr];
	*row = (struct bench_row){ .spec = spec, .params = *p };
	contenders(o, row);
	err = bench_measure(g, o, row);
	if (err)
		return err;
	judge_control(row);
	++*nr;
	return 0;
}

static int measure_all(const struct cli_globals *g, const struct bench_opts *o, const struct bench_spec *spec, struct bench_row **rows,
		       u32 *nr)
{
	struct bench_params p;
	bool any_void = false;
	u32 i, first = *nr;

	for (i = 0; bench_params_at(spec, i, &p); i++) {
		int err = measure_row(g, o, spec, &p, rows, nr);

		if (err)
			return err;
		any_void |= (*rows)[*nr - 1].is_void;
	}
	for (i = first; i < *nr; i++)
		(*rows)[i].is_void |= any_void;
	return 0;
}

/* Nothing is measured. */
static int compare(const struct bench_args *a, int argc, char **argv)
{
	struct strbuf err = STRBUF_INIT;
	int status = CLI_OK;

	if (argc != 1)
		return cli_usage(&cmd_bench, "--compare BEFORE.json AFTER.json: one file more");
	if (bench_compare(a->compare, argv[0], &err))
		status = cli_fail("%s", strbuf_str(&err));
	strbuf_fini(&err);
	return status;
}

static bool any_figure(const struct bench_row *row)
{
	u32 i;

	for (i = 0; i < row->nr; i++)
		if (!row->c[i].why_not)
			return true;
	return false;
}

static int measure_object(const struct cli_globals *g, const struct bench_opts *o, const char *file, const char *prog,
			  struct bench_row **rows, u32 *nr)
{
	struct bench_params p = { .file = file, .section = prog };

	return measure_row(g, o, &bench_spec_object, &p, rows, nr);
}

static int run(const struct cli_globals *g, void *opts, int argc, char **argv)
{
	struct bench_args *a = opts;
	struct bench_opts o = { .warmup_ns = a->quick ? 100000000 : a->warmup, .duration_ns = a->quick ? 500000000 : a->duration,
				.trials = a->trials, .json = a->json, .progress = isatty(2) };
	const char *engines = g->engine ? g->engine : a->engines ? a->engines : "user,kernel";
	struct bench_row *rows = NULL;
	char bad[64];
	u32 nr = 0;
	long bits;
	int i, err = 0;

	if (a->compare)
		return compare(a, argc, argv);
	if (!a->trials || a->trials > 64)
		return cli_usage(&cmd_bench, "--trials %u: 1 to 64", a->trials);
	bits = bits_of(engines, engine_at, bad, sizeof(bad));
	if (bits <= 0)
		return cli_usage(&cmd_bench, "--engine: \"%s\" is no engine: user or kernel", bits ? bad : "");
	o.engines = bits;
	bits = a->variants ? bits_of(a->variants, variant_at, bad, sizeof(bad)) : 0xff;
	if (bits <= 0)
		return cli_usage(&cmd_bench, "--variant: \"%s\" is no storage variant", bits ? bad : "");
	o.variants = bits;
	if (a->object && argc > 1)
		return cli_usage(&cmd_bench, "--obj FILE: one program at a time");
	for (i = 0; i < argc && !a->object; i++)
		if (!bench_find(argv[i]))
			return cli_usage(&cmd_bench, "no benchmark \"%s\": see --help", argv[i]);
	if (a->object)
		err = measure_object(g, &o, a->object, argc ? argv[0] : NULL, &rows, &nr);
	for (i = 0; i < argc && !a->object && !err; i++)
		err = measure_all(g, &o, bench_find(argv[i]), &rows, &nr);
	for (i = 0; !argc && !a->object && bench_specs[i].name && !err; i++)
		err = measure_all(g, &o, &bench_specs[i], &rows, &nr);
	if (err)
		return cli_fail("bench: %s", cli_strerror(err));
	if (a->json)
		bench_print_json(rows, nr);
	else
		bench_print_text(rows, nr);
	if (a->object && rows && !any_figure(rows)) {
		free(rows);
		return CLI_FAILED; /* the rows say why */
	}
	err = a->plot ? bench_plot(a->plot, rows, nr) : 0;
	free(rows);
	return err ? cli_fail("%s: %s", a->plot, cli_strerror(err)) : CLI_OK;
}

const struct cli_command cmd_bench = {
	.name = "bench",
	.args = "[NAME…]",
	.summary = "Measure local storage, maps and compiled code, engine against engine",
	.text = "Benchmarks: local-storage, hashmap, hashmap-keys, local-storage-direct, local-storage-owners,\n"
		"local-storage-create, hashmap-insert, hashmap-lookup, hashmap-full-update, entry, compute,\n"
		"compile, threads, memory;\n"
		"none named: all. The contenders of a row (the five storage variants, the kernel) run in processes\n"
		"of their own and take turns; figures are CPU time, medians of 50 ms slices.",
	.options = options,
	.opts_size = sizeof(struct bench_args),
	.defaults = defaults,
	.max_args = -1,
	.run = run,
};
