// SPDX-License-Identifier: BSD-2-Clause
/* A row's contenders, a process each, taking turns: the parent asks for a slice, the child runs it and answers. */
#include "bench/worker.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "object.h"

#define OBJ(name) extern const char bench_obj_##name[], bench_obj_##name##_end[];
OBJ(storage)
OBJ(direct)
OBJ(born)
OBJ(hash)
OBJ(update)
OBJ(lookup)
OBJ(entry)
OBJ(compute)
#undef OBJ

static const struct {
	const char *name, *begin, *end;
} objects[] = {
#define OBJ(name) { #name, bench_obj_##name, bench_obj_##name##_end },
	OBJ(storage) OBJ(direct) OBJ(born) OBJ(hash) OBJ(update) OBJ(lookup) OBJ(entry) OBJ(compute)
#undef OBJ
};

u64 bench_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

int bench_run(int fd)
{
	u64 args[12] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, t, .ctx_in = args, .ctx_size_in = sizeof(args));

	return bpf_prog_test_run_opts(fd, &t);
}

/* Offset and size of a variable in a data section of the object. */
static int variable(struct bench_worker *w, const char *section, const char *name, u32 *ret_off, u32 *ret_size)
{
	struct btf *btf = bpf_object__btf(w->obj);
	int id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	const struct btf_type *sec = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_var_secinfo *v = sec ? btf_var_secinfos(sec) : NULL;
	u32 i;

	for (i = 0; sec && i < btf_vlen(sec); i++) {
		const struct btf_type *t = btf__type_by_id(btf, v[i].type);

		if (strcmp(btf__name_by_offset(btf, t->name_off), name))
			continue;
		*ret_off = v[i].offset;
		*ret_size = v[i].size;
		return 0;
	}
	return -ENOENT;
}

/* .bss and .rodata come with the object's name before them, cut. */
static struct bpf_map *section_map(struct bench_worker *w, const char *section)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, w->obj) {
		const char *name = bpf_map__name(map);
		size_t n = strlen(name), m = strlen(section);

		if (bpf_map__is_internal(map) && n >= m && !strcmp(name + n - m, section))
			return map;
	}
	return NULL;
}

static char *section_memory(struct bench_worker *w, const char *section)
{
	struct bpf_map *map = section_map(w, section);
	size_t size;

	return map ? (char *)bpf_map__initial_value(map, &size) : NULL;
}

int bench_set_const(struct bench_worker *w, const char *name, u64 value)
{
	u32 off, size;
	char *mem = section_memory(w, ".rodata");

	if (!mem || variable(w, ".rodata", name, &off, &size))
		return -ENOENT;
	memcpy(mem + off, &value, size < 8 ? size : 8);
	return 0;
}

/* The map's own memory, as the programs see it; mapped once. */
static char *bss_memory(struct bench_worker *w)
{
	struct bpf_map *map = section_map(w, ".bss");
	size_t page = sysconf(_SC_PAGESIZE), size;

	if (!map || w->bss)
		return w->bss;
	size = (bpf_map__value_size(map) + page - 1) / page * page;
	w->bss = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (w->bss == MAP_FAILED)
		w->bss = NULL;
	return w->bss;
}

void *bench_global(struct bench_worker *w, const char *name)
{
	u32 off, size;
	char *mem = bss_memory(w);

	return mem && !variable(w, ".bss", name, &off, &size) ? mem + off : NULL;
}

int bench_inner(struct bench_worker *w, u32 index, u32 key_size, u32 max_entries)
{
	int outer = bpf_object__find_map_fd_by_name(w->obj, "maps"), fd, err;
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = w->inner.flags, .btf_key_type_id = w->inner.btf_key,
		    .btf_value_type_id = w->inner.btf_value);

	if (o.btf_key_type_id)
		o.btf_fd = bpf_object__btf_fd(w->obj);
	fd = bpf_map_create(w->inner.type, "inner", key_size ?: w->inner.key_size, w->inner.value_size,
			    max_entries ?: w->inner.max_entries, &o);
	if (fd < 0)
		return fd;
	err = bpf_map_update_elem(outer, &index, &fd, 0);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static void keep_pattern(struct bench_worker *w)
{
	struct bpf_map *outer = bpf_object__find_map_by_name(w->obj, "maps"), *like = outer ? bpf_map__inner_map(outer) : NULL;

	if (!like)
		return;
	w->inner.type = bpf_map__type(like);
	w->inner.key_size = bpf_map__key_size(like);
	w->inner.value_size = bpf_map__value_size(like);
	w->inner.max_entries = bpf_map__max_entries(like);
	w->inner.flags = bpf_map__map_flags(like);
	w->inner.btf_key = bpf_map__btf_key_type_id(like);
	w->inner.btf_value = bpf_map__btf_value_type_id(like);
}

/* ---- the child ---- */

static int say(struct bench_worker *w, int err, const char *what)
{
	if (!w->why[0])
		snprintf(w->why, sizeof(w->why), "%s: %s", what, strerror(-err));
	return err;
}

/* --obj: no constants, no maps to fill; one program of it. */
static int open_file(struct bench_worker *w)
{
	struct cli_object file;
	struct strbuf err = STRBUF_INIT;
	struct bpf_program *prog, *found = NULL;
	u32 nr = 0;
	int rc = cli_object_read(w->p.file, &file, &err);

	if (!rc)
		rc = cli_object_open(&file, w->engine, &w->obj, &err);
	if (rc) {
		snprintf(w->why, sizeof(w->why), "%s", strbuf_str(&err));
		strbuf_fini(&err);
		return rc;
	}
	bpf_object__for_each_program(prog, w->obj) {
		bool wanted = !w->p.section || !strcmp(bpf_program__name(prog), w->p.section);

		bpf_program__set_autoload(prog, wanted);
		nr += wanted;
		if (wanted)
			found = prog;
	}
	if (nr != 1) {
		snprintf(w->why, sizeof(w->why), nr ? "it holds %u programs: name one" : "no such program in it", nr);
		return nr ? -EINVAL : -ENOENT;
	}
	snprintf(w->program, sizeof(w->program), "%s", bpf_program__name(found));
	return 0;
}

static int load_object(struct bench_worker *w)
{
	struct strbuf scratch = STRBUF_INIT;
	int err;

	cli_libbpf_log_reset();
	err = bpf_object__load(w->obj);
	if (err)
		snprintf(w->why, sizeof(w->why), "does not load: %s", cli_object_reason(&scratch));
	strbuf_fini(&scratch);
	return err;
}

static int open_object(struct bench_worker *w, const char *name)
{
	struct bpf_program *prog;
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(objects) && strcmp(objects[i].name, name); i++)
		;
	if (i == ARRAY_SIZE(objects))
		return say(w, -ENOENT, name);
	LIBBPF_OPTS(bpf_object_open_opts, o, .object_name = "bench");
	w->obj = bpf_object__open_mem(objects[i].begin, objects[i].end - objects[i].begin, &o);
	if (!w->obj)
		return say(w, -errno, "the object does not open");
	bpf_object__for_each_program(prog, w->obj) {
		const char *name = bpf_program__name(prog);

		bpf_program__set_autoload(prog, !strcmp(name, w->program) ||
						(w->spec->empty && !strcmp(name, w->spec->empty)) ||
						!strcmp(name, "storage_fill") || !strcmp(name, "touch") ||
						!strcmp(name, "table_remove") || !strcmp(name, "table_insert"));
	}
	err = w->spec->configure ? w->spec->configure(w) : 0;
	if (err)
		return say(w, err, "the object's constants");
	keep_pattern(w);
	return load_object(w);
}

static int make_ready(struct bench_worker *w)
{
	bool kernel = !w->engine->inlay;
	const char *object = w->spec->object;
	struct bpf_program *prog;
	int err;

	if (w->spec->program)
		snprintf(w->program, sizeof(w->program), "%s", w->spec->program);
	if (w->spec->choose)
		object = w->spec->choose(&w->p, w->program, sizeof(w->program));
	if (kernel && w->spec->kernel_object)
		object = w->spec->kernel_object;
	if (kernel && w->spec->kernel_program)
		snprintf(w->program, sizeof(w->program), "%s", w->spec->kernel_program);
	if (w->p.file) {
		err = open_file(w);
		err = err ? err : load_object(w);
	} else {
		err = object ? open_object(w, object) : 0;
	}
	if (err)
		return err;
	if (!object && !w->p.file) /* it makes its programs itself */
		goto fill;
	prog = bpf_object__find_program_by_name(w->obj, w->program);
	w->prog_fd = prog ? bpf_program__fd(prog) : -1;
	prog = w->spec->empty ? bpf_object__find_program_by_name(w->obj, w->spec->empty) : NULL;
	w->empty_fd = prog ? bpf_program__fd(prog) : -1;
	w->count = w->p.file ? NULL : bench_global(w, "count");
	if (w->prog_fd < 0)
		return say(w, -ENOENT, "no such program");
fill:
	err = w->spec->fill ? w->spec->fill(w) : 0;
	return err ? say(w, err, "filling the maps") : 0;
}

struct slice {
	u64 ns, ops, hits, important;
	double p99_ns;
	int err;
	char why[256];
};

static int piece(struct bench_worker *w, int fd)
{
	if (w->native)
		return bench_native_run(w->p.section, BENCH_LOOPS) ? 0 : -ENOENT;
	return w->spec->piece ? w->spec->piece(w, fd) : bench_run(fd);
}

static void clear_counts(struct bench_worker *w)
{
	for (int i = 0; w->count && i < 5; i++)
		w->count[i] = 0;
}

static void run_slice(struct bench_worker *w, bool empty, u64 ns, struct slice *s)
{
	int fd = empty ? w->empty_fd : w->prog_fd;
	u64 runs = 0, start, now;
	const char *wrong;

	memset(s, 0, sizeof(*s));
	piece(w, fd); /* the others' turns have emptied the caches */
	clear_counts(w);
	w->piece_ns = 0;
	start = now = bench_cpu_ns();
	do {
		u64 t0 = bench_cpu_ns();

		s->err = piece(w, fd);
		now = bench_cpu_ns();
		s->ns += w->piece_ns ? w->piece_ns : now - t0;
		s->ops += w->piece_ops;
		w->piece_ns = w->piece_ops = 0;
		runs++;
	} while (!s->err && now - start < ns && s->ns < ns);
	s->ops = s->ops ? s->ops : w->spec->ops ? w->spec->ops(&w->p, runs) : w->count ? w->count[0] : runs;
	s->hits = w->count ? w->count[0] : 0;
	s->important = w->count ? w->count[1] : 0;
	s->p99_ns = w->p99_ns;
	if (s->err > 0)
		s->err = 0;
	wrong = !empty && !w->native && !s->err && w->spec->verify ? w->spec->verify(w, runs) : NULL;
	if (s->err)
		snprintf(s->why, sizeof(s->why), "%.200s: %s", w->why[0] ? w->why : "a run", strerror(-s->err));
	if (wrong) {
		s->err = -EBADMSG;
		snprintf(s->why, sizeof(s->why), "%s (%llu runs: %llu hits, %llu important, sum %llu)", wrong, (unsigned long long)runs,
			 (unsigned long long)w->count[0], (unsigned long long)w->count[1], (unsigned long long)w->count[2]);
	}
}

static void child(const struct cli_globals *g, const struct bench_row *row, const struct bench_contender *c, int in, int out)
{
	struct bench_worker w = { .spec = row->spec, .p = row->params, .prog_fd = -1, .empty_fd = -1, .p99_ns = -1 };
	struct cli_globals mine = *g;
	struct slice s = { 0 };
	u64 ask[2];

	signal(SIGINT, SIG_IGN);
	mine.engine = c->engine;
	if (c->variant)
		mine.storage_impl = c->variant;
	w.native = !strcmp(c->engine, "native");
	if (!w.native) {
		cli_libbpf_log(false);
		if (cli_engine_create(&mine, "user", NULL, &w.engine))
			_exit(1);
		cli_engine_enter(w.engine);
		s.err = make_ready(&w);
	}
	snprintf(s.why, sizeof(s.why), "%s", w.why);
	if (write(out, &s, sizeof(s)) != sizeof(s))
		_exit(1);
	while (read(in, ask, sizeof(ask)) == sizeof(ask)) {
		if (ask[0] && w.empty_fd < 0) {
			memset(&s, 0, sizeof(s));
		} else {
			run_slice(&w, ask[0], ask[1], &s);
		}
		if (write(out, &s, sizeof(s)) != sizeof(s))
			break;
	}
	_exit(0);
}

/* ---- the parent ---- */

struct side {
	pid_t pid;
	int in, out;
	double ns[BENCH_SLICES_MAX], empty[BENCH_SLICES_MAX];
	u32 nr, nr_empty;
	u64 hits, important;
	double p99;
};

static int start(const struct cli_globals *g, const struct bench_row *row, struct side *sides, u32 i)
{
	struct side *s = &sides[i];
	int to[2], from[2];
	u32 other;

	if (pipe(to) || pipe(from))
		return -errno;
	fflush(stdout);
	s->pid = fork();
	if (s->pid < 0)
		return -errno;
	if (!s->pid) {
		close(to[1]);
		close(from[0]);
		for (other = 0; other < i; other++) /* else they would not see their parent go */
			if (sides[other].pid) {
				close(sides[other].in);
				close(sides[other].out);
			}
		child(g, row, &row->c[i], to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	s->in = to[1];
	s->out = from[0];
	return 0;
}

static bool answer(struct side *s, struct slice *ret)
{
	size_t got = 0;

	while (got < sizeof(*ret)) {
		ssize_t n = read(s->out, (char *)ret + got, sizeof(*ret) - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += n;
	}
	return true;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *v, u32 nr, double q)
{
	qsort(v, nr, sizeof(*v), by_value);
	return nr ? v[(u32)(q * (nr - 1) + 0.5)] : -1;
}

static void give_up(struct bench_contender *c, const char *why)
{
	c->why_not = strdup(why && *why ? why : "the process that measured it died");
}

/* One slice of a contender; false: it has given up. */
static bool slice(struct bench_contender *c, struct side *s, bool empty, u64 ns, bool keep)
{
	u64 ask[2] = { empty, ns };
	struct slice r;

	if (write(s->in, ask, sizeof(ask)) != sizeof(ask) || !answer(s, &r)) {
		give_up(c, NULL);
		return false;
	}
	if (r.err) {
		give_up(c, r.why);
		return false;
	}
	if (!keep || !r.ops)
		return true;
	if (empty && s->nr_empty < BENCH_SLICES_MAX)
		s->empty[s->nr_empty++] = (double)r.ns / r.ops;
	if (!empty && s->nr < BENCH_SLICES_MAX) {
		s->ns[s->nr++] = (double)r.ns / r.ops;
		s->hits += r.hits;
		s->important += r.important;
		s->p99 = r.p99_ns;
	}
	return true;
}

static void conclude(struct bench_contender *c, struct side *s)
{
	double q1, q3, mean = 0, var = 0;
	u32 i;

	if (c->why_not)
		return;
	if (!s->nr) {
		give_up(c, "no slice came to its end");
		return;
	}
	for (i = 0; i < s->nr; i++)
		mean += 1000 / s->ns[i] / s->nr;
	for (i = 0; i < s->nr; i++)
		var += (1000 / s->ns[i] - mean) * (1000 / s->ns[i] - mean);
	q1 = quantile(s->ns, s->nr, 0.25);
	q3 = quantile(s->ns, s->nr, 0.75);
	c->ns = quantile(s->ns, s->nr, 0.5);
	c->spread = (q3 - q1) / 2;
	c->mops = 1000 / c->ns;
	c->mops_stddev = s->nr > 1 ? sqrt(var / (s->nr - 1)) : 0;
	c->empty_ns = s->nr_empty ? quantile(s->empty, s->nr_empty, 0.5) : -1;
	c->share_important = s->hits ? (double)s->important / s->hits : -1;
	c->p99_ns = s->p99;
}

static void take_turns(const struct bench_opts *o, struct bench_row *row, struct side *sides)
{
	u64 slice_ns = 50000000, rounds, warm, n;
	u32 i;

	if (slice_ns > o->duration_ns)
		slice_ns = o->duration_ns;
	rounds = o->duration_ns / slice_ns;
	warm = o->warmup_ns / slice_ns;
	for (n = 0; n < rounds + warm; n++) {
		for (i = 0; i < row->nr; i++) {
			struct bench_contender *c = &row->c[i];

			if (c->why_not)
				continue;
			if (slice(c, &sides[i], false, slice_ns, n >= warm) && row->spec->empty)
				slice(c, &sides[i], true, slice_ns / 4, n >= warm);
		}
		if (o->progress)
			fprintf(stderr, "\r%s: slice %llu of %llu ", row->spec->name, (unsigned long long)n + 1,
				(unsigned long long)(rounds + warm));
	}
	if (o->progress)
		fprintf(stderr, "\r\33[K");
}

static int one_trial(const struct cli_globals *g, const struct bench_opts *o, struct bench_row *row)
{
	struct side *sides = calloc(row->nr, sizeof(*sides));
	struct slice first;
	int err = sides ? 0 : -ENOMEM;
	u32 i;

	for (i = 0; i < row->nr && !err; i++) {
		struct bench_contender *c = &row->c[i];

		if (c->why_not)
			continue;
		err = start(g, row, sides, i);
		if (!err && (!answer(&sides[i], &first) || first.err))
			give_up(c, first.err ? first.why : NULL);
	}
	if (!err)
		take_turns(o, row, sides);
	for (i = 0; sides && i < row->nr; i++) {
		if (!sides[i].pid)
			continue;
		close(sides[i].in);
		close(sides[i].out);
		waitpid(sides[i].pid, NULL, 0);
		conclude(&row->c[i], &sides[i]);
	}
	free(sides);
	return err;
}

int bench_measure(const struct cli_globals *g, const struct bench_opts *o, struct bench_row *row)
{
	double ns[BENCH_CONTENDERS][64];
	u32 t, i, trials = o->trials < 64 ? o->trials : 64;
	int err = 0;

	signal(SIGPIPE, SIG_IGN);
	for (t = 0; t < trials && !err; t++) {
		err = one_trial(g, o, row);
		for (i = 0; i < row->nr; i++)
			ns[i][t] = row->c[i].ns;
	}
	for (i = 0; i < row->nr && trials > 1 && !err; i++) {
		if (row->c[i].why_not)
			continue;
		row->c[i].spread = (quantile(ns[i], trials, 0.75) - quantile(ns[i], trials, 0.25)) / 2;
		row->c[i].ns = quantile(ns[i], trials, 0.5);
		row->c[i].mops = 1000 / row->c[i].ns;
	}
	return err;
}
