// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_prog [--count N] [--seed S] [--jobs J] [--print]: programs the verifier accepts, run by every engine.
 *
 * Each program is loaded compiled with inlining, compiled without, and interpreted, and where it uses local storage also
 * compiled with another variant of that (which one, the seed says); each starts from the same maps, context, random numbers and clock, and must leave the
 * same r0, context and maps. A disagreement is made small by leaving statements out, and printed with its seed.
 * Exit status 1: engines disagree, or far fewer programs are accepted than should be.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "diffgen.h"
#include "env/env.h"
#include "inlay/inlay.h"
#include "isa/disasm.h"
#include "maps/local_storage.h"
#include "object/instance.h"
#include "object/map.h"
#include "object/prog.h"

#define U64(p)	    ((u64)(uintptr_t)(p))
#define NR_CPUS	    2
#define CTX_WORDS   12
#define MAX_VARIANTS 8
#define STATE_BYTES 4096

struct machine {
	const char *storage;
	struct inlay *in;
	int fd[DIFF_MAPS], func_btf, task_fd;
	struct map *map[DIFF_MAPS]; /* borrowed of the descriptors */
};

struct outcome {
	int err;
	u64 r0, ctx[CTX_WORDS];
	u8 state[STATE_BYTES];
	u32 len;
};

static struct machine machines[MAX_VARIANTS];
static u32 nr_machines;

static void die(const char *what, long err)
{
	fprintf(stderr, "fuzz_prog: %s: %s\n", what, strerror((int)-err));
	exit(2);
}

/* ---- a machine and its maps ---- */

/* Types: "int"; a value of 16 bytes; a static function. */
static long load_types(struct inlay *in)
{
	static const char strings[] = "\0int\0value\0f";
	const u32 types[] = { 1, BTF_KIND_INT << 24, 4, BTF_INT_SIGNED << 24 | 32,
			      5, BTF_KIND_STRUCT << 24, 16,
			      0, BTF_KIND_FUNC_PROTO << 24, 1,
			      11, BTF_KIND_FUNC << 24, 3 };
	struct {
		struct btf_header h;
		u32 types[ARRAY_SIZE(types)];
		char strings[sizeof(strings)];
	} raw = { .h = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(raw.h), .type_len = sizeof(types),
			 .str_off = sizeof(types), .str_len = sizeof(strings) } };
	union bpf_attr a = { 0 };

	memcpy(raw.types, types, sizeof(types));
	memcpy(raw.strings, strings, sizeof(strings));
	a.btf = U64(&raw);
	a.btf_size = offsetof(typeof(raw), strings) + sizeof(strings);
	return inlay_bpf(in, BPF_BTF_LOAD, &a, sizeof(a));
}

static void make_map(struct machine *m, enum diff_map n, u32 type, u32 key, u32 value, u32 max, int inner)
{
	union bpf_attr a = { .map_type = type, .key_size = key, .value_size = value, .max_entries = max };
	struct obj *obj;
	long fd;

	if (inner)
		a.inner_map_fd = m->fd[inner];
	if (type == BPF_MAP_TYPE_TASK_STORAGE) {
		a.map_flags = BPF_F_NO_PREALLOC;
		a.btf_fd = m->func_btf;
		a.btf_key_type_id = 1;
		a.btf_value_type_id = 2;
	}
	fd = inlay_bpf(m->in, BPF_MAP_CREATE, &a, sizeof(a));
	if (fd < 0)
		die("map", fd);
	m->fd[n] = (int)fd;
	if (m->in->fds->get(m->in, m->fd[n], &obj))
		die("map", -EBADF);
	m->map[n] = map_of(obj);
}

static void set_inner(struct machine *m, enum diff_map outer, u32 key, enum diff_map inner)
{
	union bpf_attr a = { .map_fd = m->fd[outer] };
	long err;

	a.key = U64(&key);
	a.value = U64(&m->fd[inner]);
	err = inlay_bpf(m->in, BPF_MAP_UPDATE_ELEM, &a, sizeof(a));
	if (err)
		die("map of maps", err);
}

static void make_machine(struct machine *m, const char *storage)
{
	struct inlay_opts o = { .size = sizeof(o), .nr_cpus = NR_CPUS, .clock = INLAY_CLOCK_MANUAL, .seed = 1 };
	int err = inlay_create(&o, &m->in);

	if (err)
		die("engine", err);
	m->storage = storage;
	m->in->storage_impl = storage;
	m->func_btf = (int)load_types(m->in);
	if (m->func_btf < 0)
		die("types", m->func_btf);
	make_map(m, DIFF_VALUE, BPF_MAP_TYPE_ARRAY, 4, 64, 1, 0);
	make_map(m, DIFF_HASH, BPF_MAP_TYPE_HASH, 8, 16, DIFF_KEYS, 0);
	make_map(m, DIFF_ARRAY, BPF_MAP_TYPE_ARRAY, 4, 24, 7, 0);
	make_map(m, DIFF_PERCPU, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 4, 0);
	make_map(m, DIFF_PHASH, BPF_MAP_TYPE_PERCPU_HASH, 8, 8, DIFF_KEYS / 2, 0);
	make_map(m, DIFF_OUTER, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 3, DIFF_HASH);
	make_map(m, DIFF_STORAGE, BPF_MAP_TYPE_TASK_STORAGE, 4, 16, 0, 0);
	make_map(m, DIFF_STORAGES, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 3, DIFF_STORAGE);
	set_inner(m, DIFF_OUTER, 1, DIFF_HASH);
	set_inner(m, DIFF_OUTER, 2, DIFF_HASH);
	set_inner(m, DIFF_STORAGES, 0, DIFF_STORAGE);
	set_inner(m, DIFF_STORAGES, 1, DIFF_STORAGE);
	if (!env_task_self(m->in->env))
		die("task", -ENOMEM);
	m->task_fd = (int)inlay_pidfd_open(m->in, (int)syscall(SYS_gettid), 0);
	if (m->task_fd < 0)
		die("task", m->task_fd);
}

/* ---- one run ---- */

static u64 noise(u64 seed, u64 n)
{
	u64 z = (seed + n) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9ULL;
	z ^= z >> 32;
	return n % 3 ? z : (u64)(s64)(s8)z; /* small ones, too */
}

/* Everything as it is before a run, made of the seed. The caller has entered the machine. */
static void reset(struct machine *m, u64 seed)
{
	union bpf_attr a = { .map_fd = m->fd[DIFF_STORAGE] };
	u64 v[8], key;
	u32 i, k;
	long err;

	for (i = 0; i < 8; i++)
		v[i] = noise(seed, i);
	k = 0;
	m->map[DIFF_VALUE]->ops->update(m->map[DIFF_VALUE], &k, v, BPF_ANY);
	for (k = 0; k < 7; k++)
		m->map[DIFF_ARRAY]->ops->update(m->map[DIFF_ARRAY], &k, &v[k & 3], BPF_ANY);
	for (k = 0; k < 4; k++)
		for (i = 0; i < NR_CPUS; i++)
			*(u64 *)m->map[DIFF_PERCPU]->ops->lookup_percpu(m->map[DIFF_PERCPU], &k, i) = noise(seed, 10 + k);
	for (key = 0; key < DIFF_KEYS; key++) {
		m->map[DIFF_HASH]->ops->remove(m->map[DIFF_HASH], &key);
		m->map[DIFF_PHASH]->ops->remove(m->map[DIFF_PHASH], &key);
	}
	for (key = 0; key < DIFF_KEYS; key += 2) {
		m->map[DIFF_HASH]->ops->update(m->map[DIFF_HASH], &key, &v[key & 3], BPF_ANY);
		if (key < DIFF_KEYS / 2)
			m->map[DIFF_PHASH]->ops->update(m->map[DIFF_PHASH], &key, &v[key], BPF_ANY);
	}
	a.key = U64(&m->task_fd);
	err = inlay_bpf(m->in, BPF_MAP_DELETE_ELEM, &a, sizeof(a));
	a.value = U64(v);
	if (seed & 1 && (!err || err == -ENOENT))
		err = inlay_bpf(m->in, BPF_MAP_UPDATE_ELEM, &a, sizeof(a));
	if (err && err != -ENOENT)
		die("task storage", err);
	*(u64 *)((char *)env_tls.vcpu + env_prandom.off) = seed;
}

static void note(struct outcome *o, const void *p, u32 n)
{
	if (!p)
		memset(o->state + o->len, 0xee, n);
	else
		memcpy(o->state + o->len, p, n);
	o->len += n;
}

static void take_state(struct machine *m, struct outcome *o)
{
	union bpf_attr a = { .map_fd = m->fd[DIFF_STORAGE] };
	u64 key, v[2];
	u32 k, cpu;

	o->len = k = 0;
	note(o, m->map[DIFF_VALUE]->ops->lookup(m->map[DIFF_VALUE], &k), 64);
	for (k = 0; k < 7; k++)
		note(o, m->map[DIFF_ARRAY]->ops->lookup(m->map[DIFF_ARRAY], &k), 24);
	for (cpu = 0; cpu < NR_CPUS; cpu++) {
		for (k = 0; k < 4; k++)
			note(o, m->map[DIFF_PERCPU]->ops->lookup_percpu(m->map[DIFF_PERCPU], &k, cpu), 8);
		for (key = 0; key < DIFF_KEYS; key++)
			note(o, m->map[DIFF_PHASH]->ops->lookup_percpu(m->map[DIFF_PHASH], &key, cpu), 8);
	}
	for (key = 0; key < DIFF_KEYS; key++)
		note(o, m->map[DIFF_HASH]->ops->lookup(m->map[DIFF_HASH], &key), 16);
	a.key = U64(&m->task_fd);
	a.value = U64(v);
	note(o, inlay_bpf(m->in, BPF_MAP_LOOKUP_ELEM, &a, sizeof(a)) ? NULL : v, sizeof(v));
}

static long load(struct machine *m, const struct diff_prog *p, char *log, u32 log_size)
{
	static struct bpf_insn insns[DIFF_MAX_INSNS];
	struct bpf_func_info info[DIFF_MAX_FUNCS];
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insn_cnt = p->nr };

	memcpy(insns, p->insns, p->nr * sizeof(*insns));
	for (u32 i = 0; i < p->nr; i++)
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW)) {
			if (insns[i].src_reg == BPF_PSEUDO_MAP_FD || insns[i].src_reg == BPF_PSEUDO_MAP_VALUE)
				insns[i].imm = m->fd[insns[i].imm];
			i++;
		}
	a.insns = U64(insns);
	a.license = U64("GPL");
	if (log) {
		a.log_buf = U64(log);
		a.log_size = log_size;
		a.log_level = 1;
	}
	if (p->has_callback) {
		for (u32 i = 0; i < p->nr_funcs; i++)
			info[i] = (struct bpf_func_info){ .insn_off = p->funcs[i], .type_id = 4 };
		a.prog_btf_fd = m->func_btf;
		a.func_info = U64(info);
		a.func_info_cnt = p->nr_funcs;
		a.func_info_rec_size = sizeof(info[0]);
	}
	return inlay_bpf(m->in, BPF_PROG_LOAD, &a, sizeof(a));
}

static void run_one(struct machine *m, const struct diff_prog *p, bool interp, bool no_inline, u64 seed, struct outcome *o)
{
	struct obj *obj;
	long fd;

	m->in->interp = interp;
	m->in->inline_off = no_inline ? INLINE_ALL : 0;
	fd = load(m, p, NULL, 0);
	o->err = (int)min_of(fd, 0L);
	if (fd < 0)
		return;
	if (m->in->fds->get(m->in, (int)fd, &obj))
		die("program", -EBADF);
	env_enter(m->in->env, 1, env_task_self(m->in->env));
	reset(m, seed);
	for (u32 i = 0; i < CTX_WORDS; i++)
		o->ctx[i] = noise(seed, 100 + i);
	o->r0 = prog_run(prog_of(obj), o->ctx);
	take_state(m, o);
	env_leave(m->in->env);
	obj_put(obj);
	close((int)fd);
}

static const char *differ(const struct outcome *a, const struct outcome *b)
{
	if (a->err != b->err)
		return "verdict";
	if (a->err)
		return NULL;
	if (a->r0 != b->r0)
		return "r0";
	if (memcmp(a->ctx, b->ctx, sizeof(a->ctx)))
		return "context";
	return a->len != b->len || memcmp(a->state, b->state, a->len) ? "maps" : NULL;
}

/* 0 agreed, 1 refused, 2 disagreed: who and on what in ret_what. */
static int try(const struct diff_prog *p, u64 seed, char ret_what[128])
{
	static struct outcome first, other;
	const char *what;

	run_one(&machines[0], p, false, false, seed, &first);
	if (first.err)
		return 1;
	run_one(&machines[0], p, false, true, seed, &other);
	what = differ(&first, &other);
	snprintf(ret_what, 128, "compiled with and without inlining: %s", what ? what : "");
	if (what)
		return 2;
	run_one(&machines[0], p, true, false, seed, &other);
	what = differ(&first, &other);
	snprintf(ret_what, 128, "compiled and interpreted: %s", what ? what : "");
	if (what)
		return 2;
	if (p->uses_storage && nr_machines > 1) { /* one of them, or verifying would take all the time */
		struct machine *m = &machines[1 + seed / 2 % (nr_machines - 1)];

		run_one(m, p, false, false, seed, &other);
		what = differ(&first, &other);
		snprintf(ret_what, 128, "storage of %s and %s: %s", machines[0].storage, m->storage, what ? what : "");
		if (what)
			return 2;
	}
	return 0;
}

static void print_prog(const struct diff_prog *p)
{
	struct strbuf t = STRBUF_INIT;

	for (u32 pc = 0; pc < p->nr;) {
		strbuf_printf(&t, "# %3u: ", pc);
		pc += isa_disasm(&t, &p->insns[pc], p->nr - pc, NULL);
		strbuf_putc(&t, '\n');
	}
	fputs(strbuf_str(&t), stdout);
	strbuf_fini(&t);
}

static void report(u64 seed, const char *what)
{
	static struct diff_prog p;
	char now[128], last[128];
	u32 skip = 0;

	snprintf(last, sizeof(last), "%s", what);
	for (u32 i = 0; i < DIFF_STATEMENTS; i++) {
		diff_generate(&p, seed, skip | 1u << i);
		if (try(&p, seed, now) != 2)
			continue;
		skip |= 1u << i;
		memcpy(last, now, sizeof(last));
	}
	diff_generate(&p, seed, skip);
	printf("# seed %llu: %s; made small (statements left out: %#x): %s\n", (unsigned long long)seed, what, skip, last);
	print_prog(&p);
	fflush(stdout);
}

struct counts {
	u64 done, refused, disagreed;
};

static void work(u64 seed, u64 count, u64 step, struct counts *c)
{
	static struct diff_prog p;
	char what[128];

	for (u64 i = 0; i < count; i++, seed += step) {
		diff_generate(&p, seed, 0);
		c->done++;
		switch (try(&p, seed, what)) {
		case 1:
			c->refused++;
			break;
		case 2:
			if (c->disagreed++ < 5)
				report(seed, what);
			break;
		}
	}
}

static void start_machines(void)
{
	const struct storage_ops *def = map_storage_impl_find(NULL), *impl;

	make_machine(&machines[nr_machines++], def->name);
	for (u32 i = 0; (impl = map_storage_impl_at(i)) && nr_machines < MAX_VARIANTS; i++)
		if (impl != def)
			make_machine(&machines[nr_machines++], impl->name);
}

static void stop_machines(void)
{
	while (nr_machines) {
		struct machine *m = &machines[--nr_machines];

		for (u32 i = 1; i < DIFF_MAPS; i++) {
			obj_put(&m->map[i]->obj);
			close(m->fd[i]);
		}
		close(m->func_btf);
		close(m->task_fd);
		inlay_destroy(m->in);
	}
}

static void show(u64 seed)
{
	static struct diff_prog p;
	static char log[1 << 20];
	char what[128] = "";
	long fd;
	int verdict;

	diff_generate(&p, seed, 0);
	print_prog(&p);
	fd = load(&machines[0], &p, log, sizeof(log));
	if (fd >= 0)
		close((int)fd);
	verdict = try(&p, seed, what);
	printf("%s# %s %s\n", fd < 0 ? log : "", verdict == 0 ? "agreed" : verdict == 1 ? "refused" : "disagreed",
	       verdict == 2 ? what : "");
}

/* Each job a process of its own, since a crash is a finding, too. */
static int run_jobs(u64 seed, u64 count, u32 jobs, struct counts *sum)
{
	int pipes[64][2], status, bad = 0;

	for (u32 j = 0; j < jobs; j++) {
		pid_t pid;

		if (pipe(pipes[j]))
			die("pipe", -errno);
		pid = fork();
		if (pid < 0)
			die("fork", -errno);
		if (!pid) {
			struct counts c = { 0 };

			start_machines();
			work(seed + j, count / jobs + (j < count % jobs), jobs, &c);
			stop_machines();
			_exit(write(pipes[j][1], &c, sizeof(c)) == sizeof(c) ? 0 : 2);
		}
		close(pipes[j][1]);
	}
	for (u32 j = 0; j < jobs; j++) {
		struct counts c = { 0 };

		if (read(pipes[j][0], &c, sizeof(c)) != sizeof(c))
			bad++;
		sum->done += c.done;
		sum->refused += c.refused;
		sum->disagreed += c.disagreed;
		close(pipes[j][0]);
	}
	while (wait(&status) > 0)
		if (status) {
			printf("# a job ended with status %#x\n", status);
			bad++;
		}
	return bad;
}

int main(int argc, char **argv)
{
	u64 seed = 1, count = 20000;
	struct counts c = { 0 };
	struct timespec from, to;
	bool print = false, good;
	u32 jobs = 1;
	double took;
	int bad;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--print"))
			print = true;
		else if (i + 1 < argc && !strcmp(argv[i], "--count"))
			count = strtoull(argv[++i], NULL, 0);
		else if (i + 1 < argc && !strcmp(argv[i], "--seed"))
			seed = strtoull(argv[++i], NULL, 0);
		else if (i + 1 < argc && !strcmp(argv[i], "--jobs"))
			jobs = (u32)strtoul(argv[++i], NULL, 0);
		else
			jobs = 0;
	}
	if (!jobs || jobs > 64 || !count) {
		fprintf(stderr, "usage: fuzz_prog [--count N] [--seed S] [--jobs 1..64] [--print]\n");
		return 2;
	}
	if (print) {
		start_machines();
		show(seed);
		stop_machines();
		return 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	bad = run_jobs(seed, count, jobs, &c);
	clock_gettime(CLOCK_MONOTONIC, &to);
	took = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	good = !bad && !c.disagreed && c.done == count && c.refused * 4 <= count;
	printf("# %llu programs from seed %llu, %llu refused, %llu disagreements, %d jobs lost, %.0f programs/s\n",
	       (unsigned long long)c.done, (unsigned long long)seed, (unsigned long long)c.refused,
	       (unsigned long long)c.disagreed, bad, (double)c.done / took);
	printf("%sok 1 - engines, inlining and storage variants agree on generated programs\n1..1\n", good ? "" : "not ");
	return good ? 0 : 1;
}
