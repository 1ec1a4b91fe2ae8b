// SPDX-License-Identifier: BSD-2-Clause
/*
 * Verifying and setting up would take most of the time, so both are done once: machines and maps live as long as the
 * process and are put back by writing what programs can write, and a program is verified for the first machine only. For
 * each configuration the verified text and its facts are copied, aimed at that machine's maps, lowered and compiled.
 */
#include "diffrun.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "btf/btf.h"
#include "env/env.h"
#include "exec/exec.h"
#include "inlay/inlay.h"
#include "maps/local_storage.h"
#include "object/instance.h"
#include "object/map.h"
#include "object/prog.h"
#include "object/progtype.h"
#include "rewrite/rewrite.h"
#include "sys/sys_int.h"
#include "verifier/verifier.h"

#define U64(p)	     ((u64)(uintptr_t)(p))
#define NR_CPUS	     2
#define CPU	     1 /* where programs run */
#define CTX_WORDS    12
#define MAX_MACHINES 8
#define STATE_BYTES  1024

struct machine {
	const char *storage;
	struct inlay *in;
	int fd[DIFF_MAPS], func_btf;
	struct map *map[DIFF_MAPS]; /* references */
	struct map *tail_interp;    /* DIFF_TAIL of interpreted programs: both sorts do not mix in one array */
	int tail_interp_fd;
	struct env_task *self;
};

struct outcome {
	u64 r0, ctx[CTX_WORDS];
	u8 state[STATE_BYTES];
	u32 len;
};

static struct machine machines[MAX_MACHINES];
static u32 nr_machines;
static struct btf *func_types;
static struct fd_ops quick_fds;
static const struct fd_ops *world_fds;
static struct strbuf log_text = STRBUF_INIT;
static struct diff_stats stats;

static void __attribute__((noreturn)) die(const char *what, long err)
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

static struct obj *object_of(struct inlay *in, int fd)
{
	struct obj *obj;

	if (in->fds->get(in, fd, &obj))
		die("descriptor", -EBADF);
	return obj;
}

static int create_map(struct machine *m, union bpf_attr *a)
{
	long fd = inlay_bpf(m->in, BPF_MAP_CREATE, a, sizeof(*a));

	if (fd < 0)
		die("map", fd);
	return (int)fd;
}

static void make_map(struct machine *m, enum diff_map n, u32 type, u32 key, u32 value, u32 max, int inner)
{
	union bpf_attr a = { .map_type = type, .key_size = key, .value_size = value, .max_entries = max };

	if (inner)
		a.inner_map_fd = m->fd[inner];
	if (type == BPF_MAP_TYPE_TASK_STORAGE) {
		a.map_flags = BPF_F_NO_PREALLOC;
		a.btf_fd = m->func_btf;
		a.btf_key_type_id = 1;
		a.btf_value_type_id = 2;
	}
	m->fd[n] = create_map(m, &a);
	m->map[n] = map_of(object_of(m->in, m->fd[n]));
	if (type == BPF_MAP_TYPE_PROG_ARRAY) {
		m->tail_interp_fd = create_map(m, &a);
		m->tail_interp = map_of(object_of(m->in, m->tail_interp_fd));
	}
}

static void set_fd(struct machine *m, int map, u32 key, int fd)
{
	union bpf_attr a = { .map_fd = map };
	long err;

	a.key = U64(&key);
	a.value = U64(&fd);
	err = inlay_bpf(m->in, BPF_MAP_UPDATE_ELEM, &a, sizeof(a));
	if (err)
		die("map of maps or programs", err);
}

/* What tail calls reach: it changes the map value and returns what tells that it ran. */
static void make_tail_target(struct machine *m, bool interp)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 0, .src_reg = 1, .off = 8 },
		{ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 2, .src_reg = BPF_PSEUDO_MAP_VALUE, .imm = m->fd[DIFF_VALUE] },
		{ 0 },
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 3, .src_reg = 2, .off = 16 },
		{ .code = BPF_ALU64 | BPF_MUL | BPF_K, .dst_reg = 3, .imm = 31 },
		{ .code = BPF_ALU64 | BPF_XOR | BPF_X, .dst_reg = 3, .src_reg = 0 },
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 2, .src_reg = 3, .off = 16 },
		{ .code = BPF_ALU | BPF_ADD | BPF_K, .dst_reg = 0, .imm = 77 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insn_cnt = ARRAY_SIZE(insns) };
	long fd;

	a.insns = U64(insns);
	a.license = U64("GPL");
	m->in->interp = interp;
	fd = inlay_bpf(m->in, BPF_PROG_LOAD, &a, sizeof(a));
	m->in->interp = false;
	if (fd < 0)
		die("target of tail calls", fd);
	for (u32 k = 0; k < 2; k++)
		set_fd(m, interp ? m->tail_interp_fd : m->fd[DIFF_TAIL], 2 * k, (int)fd);
	close((int)fd);
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
	make_map(m, DIFF_STORAGE_2, BPF_MAP_TYPE_TASK_STORAGE, 4, 16, 0, 0);
	make_map(m, DIFF_STORAGES, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 3, DIFF_STORAGE);
	make_map(m, DIFF_TAIL, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0);
	set_fd(m, m->fd[DIFF_OUTER], 1, m->fd[DIFF_HASH]);
	set_fd(m, m->fd[DIFF_OUTER], 2, m->fd[DIFF_HASH]);
	set_fd(m, m->fd[DIFF_STORAGES], 0, m->fd[DIFF_STORAGE]);
	set_fd(m, m->fd[DIFF_STORAGES], 1, m->fd[DIFF_STORAGE_2]);
	make_tail_target(m, false);
	make_tail_target(m, true);
	m->self = env_task_self(m->in->env);
	if (!m->self)
		die("task", -ENOMEM);
}

/* The world asks the system what a descriptor is; the verifier asks that for every map of every program. */
static int quick_get(struct inlay *in, int fd, struct obj **ret_obj)
{
	const struct machine *m = &machines[0];

	for (u32 i = 1; in == m->in && i < DIFF_MAPS; i++)
		if (m->fd[i] == fd) {
			obj_get(&m->map[i]->obj);
			*ret_obj = &m->map[i]->obj;
			return 0;
		}
	return world_fds->get(in, fd, ret_obj);
}

static void layout_of_tasks(struct inlay *in)
{
	u32 parent, pid, flags;

	if (!btf_find_field_offset(in->vmlinux, "task_struct", "real_parent", &parent, NULL) &&
	    !btf_find_field_offset(in->vmlinux, "task_struct", "pid", &pid, NULL) &&
	    !btf_find_field_offset(in->vmlinux, "task_struct", "tgid", &flags, NULL))
		diff_task_layout((s16)parent, (s16)pid, (s16)flags);
}

void diff_start(void)
{
	const struct storage_ops *def = map_storage_impl_find(NULL), *impl;
	struct obj *types;

	/* memory of a program goes before the next one's is asked for: it need not go back to the system */
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	mallopt(M_TOP_PAD, 4 << 20);
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	make_machine(&machines[nr_machines++], def->name);
	for (u32 i = 0; (impl = map_storage_impl_at(i)) && nr_machines < MAX_MACHINES; i++)
		if (impl != def)
			make_machine(&machines[nr_machines++], impl->name);
	types = object_of(machines[0].in, machines[0].func_btf);
	func_types = btf_get(btf_obj_of(types)->btf);
	obj_put(types);
	world_fds = machines[0].in->fds;
	quick_fds = *world_fds;
	quick_fds.get = quick_get;
	machines[0].in->fds = &quick_fds;
	layout_of_tasks(machines[0].in);
	stats = (struct diff_stats){ 0 };
}

void diff_stop(void)
{
	btf_put(func_types);
	strbuf_fini(&log_text);
	if (nr_machines)
		machines[0].in->fds = world_fds;
	while (nr_machines) {
		struct machine *m = &machines[--nr_machines];

		for (u32 i = 1; i < DIFF_MAPS; i++) {
			obj_put(&m->map[i]->obj);
			close(m->fd[i]);
		}
		obj_put(&m->tail_interp->obj);
		close(m->tail_interp_fd);
		close(m->func_btf);
		inlay_destroy(m->in);
	}
}

struct diff_stats diff_stats(void)
{
	return stats;
}

/* ---- state before and after a run ---- */

static u64 noise(u64 seed, u64 n)
{
	u64 z = (seed + n) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9ULL;
	z ^= z >> 32;
	return n % 3 ? z : (u64)(s64)(s8)z; /* small ones, too */
}

static void set_storage(struct machine *m, enum diff_map n, const u64 *value)
{
	struct lstore_map *map = container_of_(m->map[n], struct lstore_map, map);
	struct env_owner *owner = env_owner_of(m->self->obj);

	if (value)
		map->ops->update(owner, map, value, BPF_ANY, NULL);
	else
		map->ops->remove(owner, map);
}

/* Everything as it is before a run, made of the seed. The caller has entered the machine and a read section. */
static void reset(struct machine *m, u64 seed, bool storage)
{
	struct map *hash = m->map[DIFF_HASH], *phash = m->map[DIFF_PHASH];
	u64 v[8], key;
	u32 i, k = 0;

	for (i = 0; i < 8; i++)
		v[i] = noise(seed, i);
	m->map[DIFF_VALUE]->ops->update(m->map[DIFF_VALUE], &k, v, BPF_ANY);
	for (k = 0; k < 7; k++)
		m->map[DIFF_ARRAY]->ops->update(m->map[DIFF_ARRAY], &k, &v[k & 3], BPF_ANY);
	for (k = 0; k < 4; k++)
		for (i = 0; i < NR_CPUS; i++)
			*(u64 *)m->map[DIFF_PERCPU]->ops->lookup_percpu(m->map[DIFF_PERCPU], &k, i) = noise(seed, 10 + k);
	for (key = 0; key < DIFF_KEYS; key++) {
		hash->ops->remove(hash, &key);
		phash->ops->remove(phash, &key);
	}
	for (key = 0; key < DIFF_KEYS; key += 2) {
		hash->ops->update(hash, &key, &v[key & 3], BPF_ANY);
		if (key < DIFF_KEYS / 2)
			phash->ops->update(phash, &key, &v[key], BPF_ANY);
	}
	if (storage) {
		set_storage(m, DIFF_STORAGE, NULL);
		set_storage(m, DIFF_STORAGE_2, NULL);
	}
	if (storage && seed & 1)
		set_storage(m, DIFF_STORAGE, v);
	if (storage && seed & 2)
		set_storage(m, DIFF_STORAGE_2, v + 2);
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

static void note_storage(struct machine *m, enum diff_map n, struct outcome *o)
{
	struct lstore_map *map = container_of_(m->map[n], struct lstore_map, map);

	note(o, map->ops->find(env_owner_of(m->self->obj), map), 16);
}

static void take_state(struct machine *m, struct outcome *o)
{
	u64 key;
	u32 k = 0, cpu;

	o->len = 0;
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
	note_storage(m, DIFF_STORAGE, o);
	note_storage(m, DIFF_STORAGE_2, o);
}

/* ---- a program ---- */

static void *copy(const void *from, size_t size)
{
	void *to = malloc(size + 1);

	if (!to)
		die("program", -ENOMEM);
	if (size)
		memcpy(to, from, size);
	return to;
}

static void free_prog(struct prog *p, bool owns_maps)
{
	if (p->image_free)
		p->image_free(p);
	if (p->lowered_free)
		p->lowered_free(p);
	for (u32 i = 0; owns_maps && i < p->nr_maps; i++)
		obj_put(&p->maps[i]->obj);
	if (owns_maps)
		free(p->maps);
	free(p->funcs);
	free(p->insns);
	free(p->facts);
	free(p->subprogs);
	free(p->func_info);
	free(p);
}

/* As PROG_LOAD leaves it to the verifier, for the first machine. 0, or the verifier's error: then *ret is NULL. */
static int verify(const struct diff_prog *p, u32 log_level, struct prog **ret)
{
	const struct machine *m = &machines[0];
	struct vrf_opts opts = { .log_level = log_level, .log = &log_text };
	struct vrf_stats st = { 0 };
	struct prog *prog = calloc(1, sizeof(*prog));
	int err;

	if (!prog)
		die("program", -ENOMEM);
	prog->obj.inlay = m->in;
	prog->type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	prog->ops = prog_type_ops(prog->type);
	prog->gpl_compatible = true;
	prog->insns = copy(p->insns, p->nr * sizeof(*p->insns));
	prog->nr_insns = prog->nr_orig = p->nr;
	for (u32 i = 0; i < p->nr; i++)
		if (prog->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW)) {
			if (prog->insns[i].src_reg == BPF_PSEUDO_MAP_FD || prog->insns[i].src_reg == BPF_PSEUDO_MAP_VALUE)
				prog->insns[i].imm = m->fd[prog->insns[i].imm];
			i++;
		}
	if (p->has_callback) {
		prog->btf = func_types;
		prog->func_info = calloc(p->nr_funcs, sizeof(*prog->func_info));
		if (!prog->func_info)
			die("program", -ENOMEM);
		for (u32 i = 0; i < p->nr_funcs; i++)
			prog->func_info[i] = (struct prog_func_info){ .insn_off = p->funcs[i], .type_id = 4 };
		prog->nr_func_info = p->nr_funcs;
	}
	strbuf_reset(&log_text);
	err = vrf_check(prog, &opts, &st);
	stats.walked += st.insns_processed;
	if (!err)
		err = rw_xlate(prog, NULL);
	*ret = err ? NULL : prog;
	if (err)
		free_prog(prog, true);
	return err;
}

/* The first machine's map is this one's; a map's value, too. */
static void aim(struct insn_fact *f, const struct bpf_insn *insn, const struct machine *m, bool interp)
{
	struct map *to;
	u32 i = 1, left;

	while (i < DIFF_MAPS && machines[0].map[i] != f->map && machines[0].map[i]->inner != f->map)
		i++;
	if (i == DIFF_MAPS)
		die("a map of nobody", -EINVAL);
	to = i == DIFF_TAIL && interp ? m->tail_interp : m->map[i];
	if (f->map != machines[0].map[i]) /* the shape of maps in a map of maps */
		to = to->inner;
	if (f->imm64 == U64(f->map))
		f->imm64 = U64(to);
	else if (insn->code == (BPF_LD | BPF_IMM | BPF_DW) && to->ops->direct_value(to, (u32)insn[1].imm, &f->imm64, &left))
		die("value of a map", -EINVAL);
	f->map = to;
}

static struct prog *make_twin(const struct prog *of, struct machine *m, bool interp, bool no_inline)
{
	struct prog *p = copy(of, sizeof(*of));
	int err;

	p->obj.inlay = m->in;
	p->insns = copy(of->insns, of->nr_insns * sizeof(*of->insns));
	p->facts = copy(of->facts, of->nr_insns * sizeof(*of->facts));
	p->subprogs = copy(of->subprogs, of->nr_subprogs * sizeof(*of->subprogs));
	p->func_info = copy(of->func_info, of->nr_func_info * sizeof(*of->func_info));
	if (m != &machines[0] || interp)
		for (u32 pc = 0; pc < p->nr_insns; pc++)
			if (p->facts[pc].map)
				aim(&p->facts[pc], &p->insns[pc], m, interp);
	m->in->interp = interp;
	m->in->inline_off = no_inline ? INLINE_ALL : 0;
	strbuf_reset(&log_text);
	/* what would be shown is the same for all: it is made once */
	err = m != &machines[0] || interp || no_inline ? rw_lower_run(p, exec_caps(m->in)) :
							 rw_lower(p, exec_caps(m->in), &log_text);
	if (!err)
		err = exec_prepare_as(p, interp ? EXEC_INTERP : EXEC_JIT, &log_text);
	if (err == -EOPNOTSUPP && !interp) { /* as PROG_LOAD does; but such programs test no compiler and are counted */
		stats.not_compiled++;
		err = exec_prepare_as(p, EXEC_INTERP, &log_text);
	}
	m->in->interp = false;
	m->in->inline_off = 0;
	if (err)
		fprintf(stderr, "fuzz_prog: accepted, but: %s", strbuf_str(&log_text)), die("running", err);
	return p;
}

static void run_one(const struct prog *prog, struct machine *m, bool interp, bool no_inline, u64 seed, bool storage,
		    struct outcome *o)
{
	struct prog *p = make_twin(prog, m, interp, no_inline);

	env_enter(m->in->env, CPU, m->self);
	rcu_enter();
	reset(m, seed, storage);
	rcu_leave();
	for (u32 i = 0; i < CTX_WORDS; i++)
		o->ctx[i] = noise(seed, 100 + i);
	o->r0 = prog_run(p, o->ctx);
	rcu_enter();
	take_state(m, o);
	rcu_leave();
	env_leave(m->in->env);
	free_prog(p, false);
	stats.runs++;
}

static const char *differ(const struct outcome *a, const struct outcome *b)
{
	if (a->r0 != b->r0)
		return "r0";
	if (memcmp(a->ctx, b->ctx, sizeof(a->ctx)))
		return "context";
	return a->len != b->len || memcmp(a->state, b->state, a->len) ? "maps" : NULL;
}

static enum diff_verdict compare(const struct prog *prog, u64 seed, bool storage, char ret_what[DIFF_WHAT])
{
	static struct outcome first, other;
	const char *what;

	run_one(prog, &machines[0], false, false, seed, storage, &first);
	run_one(prog, &machines[0], true, false, seed, storage, &other);
	what = differ(&first, &other);
	if (what) {
		snprintf(ret_what, DIFF_WHAT, "compiled and interpreted: %s", what);
		return DIFF_DISAGREED;
	}
	run_one(prog, &machines[0], false, true, seed, storage, &other);
	what = differ(&first, &other);
	if (what) {
		snprintf(ret_what, DIFF_WHAT, "compiled with and without inlining: %s", what);
		return DIFF_DISAGREED;
	}
	for (u32 i = 1; storage && i < nr_machines; i++) {
		run_one(prog, &machines[i], false, false, seed, storage, &other);
		what = differ(&first, &other);
		if (!what)
			continue;
		snprintf(ret_what, DIFF_WHAT, "storage of %s and %s: %s", machines[0].storage, machines[i].storage, what);
		return DIFF_DISAGREED;
	}
	return DIFF_AGREED;
}

enum diff_verdict diff_try(const struct diff_prog *p, u64 seed, char ret_what[DIFF_WHAT])
{
	struct prog *prog;
	enum diff_verdict verdict;

	ret_what[0] = 0;
	if (verify(p, 0, &prog))
		return DIFF_REFUSED;
	verdict = compare(prog, seed, p->uses_storage, ret_what);
	free_prog(prog, true);
	return verdict;
}

const char *diff_log(const struct diff_prog *p)
{
	struct prog *prog;

	if (!verify(p, 1, &prog))
		free_prog(prog, true);
	return strbuf_str(&log_text);
}
