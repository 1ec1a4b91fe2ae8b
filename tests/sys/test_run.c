// SPDX-License-Identifier: BSD-2-Clause
// PROG_TEST_RUN: what may be asked of which type, runs of several threads at once, and their end when interrupted; maps of
// programs and maps of maps through bpf(2), and programs that use them.
#include <pthread.h>
#include <time.h>

#include "both.h"
#include "env/env.h"

#define LDMAP(dst, fd)	   {BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_MAP_FD, 0, fd}, {}
#define LDVALUE(dst, fd)   {BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_MAP_VALUE, 0, fd}, {}
#define MOV(dst, src)	   {BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0}
#define MOVI(dst, v)	   {BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, v}
#define ADDI(dst, v)	   {BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, v}
#define LDX(dst, src, off) {BPF_LDX | BPF_MEM | BPF_DW, dst, src, off, 0}
#define STX(dst, src, off) {BPF_STX | BPF_MEM | BPF_DW, dst, src, off, 0}
#define STI(dst, off, v)   {BPF_ST | BPF_MEM | BPF_DW, dst, 0, off, v}
#define STW(dst, off, v)   {BPF_ST | BPF_MEM | BPF_W, dst, 0, off, v}
#define JEQI(dst, v, off)  {BPF_JMP | BPF_JEQ | BPF_K, dst, 0, off, v}
#define JNEI(dst, v, off)  {BPF_JMP | BPF_JNE | BPF_K, dst, 0, off, v}
#define JA(off)		   {BPF_JMP | BPF_JA, 0, 0, off, 0}
#define MAY_GOTO(off)	   {BPF_JMP | 0xe0, 0, 0, off, 0}
#define CALL(id)	   {BPF_JMP | BPF_CALL, 0, 0, 0, id}
#define XADD(dst, src)	   {BPF_STX | BPF_ATOMIC | BPF_DW, dst, src, 0, BPF_ADD}
#define RET		   {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}
#define LOAD(in, type, insns) (int)prog_load(in, BPF_PROG_TYPE_##type, insns, ARRAY_SIZE(insns))

static struct inlay *engine;

static u64 value_at(struct inlay *in, int map, u32 key)
{
	u64 v = 0;

	elem(in, BPF_MAP_LOOKUP_ELEM, map, &key, &v, 0);
	return v;
}

static void set_value(struct inlay *in, int map, u32 key, u64 v)
{
	elem(in, BPF_MAP_UPDATE_ELEM, map, &key, &v, 0);
}

/* A raw tracepoint program, called with one argument; *ret_r0 is its result. */
static long run_raw(struct inlay *in, int prog, u64 arg, u32 flags, u32 cpu, u32 *ret_r0)
{
	union bpf_attr a = {};
	long err;

	a.test.prog_fd = prog;
	a.test.ctx_in = U64(&arg);
	a.test.ctx_size_in = sizeof(arg);
	a.test.flags = flags;
	a.test.cpu = cpu;
	err = do_bpf(in, BPF_PROG_TEST_RUN, &a, sizeof(a));
	if (ret_r0)
		*ret_r0 = a.test.retval;
	return err;
}

/* ---- what may be asked ---- */

static void questions(struct inlay *in)
{
	static const u32 flags[] = {0, BPF_F_TEST_RUN_ON_CPU, 2, 4, 8, 5}, cpus[] = {0, 1, 100000}, sizes[] = {0, 8, 16, 96, 104};
	const struct bpf_insn raw[] = {LDX(0, 1, 8), RET}, skb[] = {MOVI(0, 3), RET};
	int progs[] = {LOAD(in, RAW_TRACEPOINT, raw), LOAD(in, SOCKET_FILTER, skb)};
	char data[256] = {}, out[256];
	size_t p, f, c, s, k;
	union bpf_attr a;
	long ret;

	for (p = 0; p < 2; p++) {
		for (f = 0; f < ARRAY_SIZE(flags); f++)
			for (c = 0; c < ARRAY_SIZE(cpus); c++)
				for (s = 0; s < ARRAY_SIZE(sizes); s++) {
					memset(&a, 0, sizeof(a));
					a.test.prog_fd = progs[p];
					a.test.flags = flags[f];
					a.test.cpu = cpus[c];
					a.test.retval = a.test.duration = 77;
					if (p) {
						a.test.data_in = U64(data);
						a.test.data_size_in = sizes[s];
					} else if (sizes[s]) {
						a.test.ctx_in = U64(data);
						a.test.ctx_size_in = sizes[s];
					}
					ret = do_bpf(in, BPF_PROG_TEST_RUN, &a, sizeof(a));
					note(ret, "type %zu flags %u cpu %u size %u", p, flags[f], cpus[c], sizes[s]);
					note(a.test.retval, "its result");
				}
		for (k = 0; k < 6; k++) {
			memset(&a, 0, sizeof(a));
			a.test.prog_fd = progs[p];
			a.test.duration = 77;
			if (p || k == 5) {
				a.test.data_in = U64(data);
				a.test.data_size_in = 64;
			}
			if (!p) {
				a.test.ctx_in = U64(data);
				a.test.ctx_size_in = 16;
			}
			a.test.repeat = k == 0 ? 1 : k == 1 ? 1000 : 0;
			a.test.batch_size = k == 2 ? 4 : 0;
			a.test.data_out = k == 3 ? U64(out) : 0;
			a.test.data_size_out = k == 3 || k == 4 ? sizeof(out) : 0;
			ret = do_bpf(in, BPF_PROG_TEST_RUN, &a, sizeof(a));
			note(ret, "type %zu question %zu", p, k);
			note(a.test.data_size_out, "bytes out");
			note(p && !ret ? a.test.duration < 77 * 1000 : a.test.duration, "its duration");
		}
		close(progs[p]);
	}
}

static void repeated(struct inlay *in)
{
	int map = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	const struct bpf_insn insns[] = {LDVALUE(1, map), MOVI(0, 1), XADD(1, 0), LDX(0, 1, 0), RET};
	int prog = LOAD(in, SOCKET_FILTER, insns);
	char data[64] = {};
	union bpf_attr a = {};

	a.test.prog_fd = prog;
	a.test.data_in = U64(data);
	a.test.data_size_in = sizeof(data);
	a.test.repeat = 100000;
	note(do_bpf(in, BPF_PROG_TEST_RUN, &a, sizeof(a)), "repeated");
	note(a.test.retval, "the last result");
	note(value_at(in, map, 0), "so often");
	close(prog);
	close(map);
}

/* ---- threads ---- */

struct job {
	pthread_t thread;
	int prog, rounds;
	u64 arg;
	u32 flags, cpu, r0;
	long err;
};

static void *work(void *ctx)
{
	struct job *j = ctx;
	int i;

	for (i = 0; i < j->rounds; i++)
		j->err |= run_raw(engine, j->prog, j->arg, j->flags, j->cpu, &j->r0);
	return NULL;
}

static void start(struct job *j)
{
	pthread_create(&j->thread, NULL, work, j);
}

/*
 * Argument 0 waits, as long as may_goto lets it, until value 1 is set, and says so in value 0; argument 1 sets it. Only if
 * both run at once does the first see it.
 */
static void at_once(void)
{
	int map = map_create(engine, BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0), i;
	const struct bpf_insn insns[] = {
		LDVALUE(2, map), LDX(3, 1, 0), JEQI(3, 1, 7),
		STI(2, 0, 1),		     /* here I am */
		MAY_GOTO(3), LDX(0, 2, 8), JEQI(0, 0, -3), RET,
		MOVI(0, 9), RET,	     /* nobody came */
		STI(2, 8, 7), MOVI(0, 0), RET,
	};
	int prog = LOAD(engine, RAW_TRACEPOINT, insns), seen = 0;
	struct job waits = {.prog = prog, .rounds = 1}, sets = {.prog = prog, .rounds = 1, .arg = 1};
	u64 v[2];
	u32 key = 0;

	ok(prog >= 0, "a program that waits for another is loaded");
	/* whether the second thread gets a processor in time is luck: a few attempts */
	for (i = 0; i < 20 && !seen; i++) {
		memset(v, 0, sizeof(v));
		elem(engine, BPF_MAP_UPDATE_ELEM, map, &key, v, 0);
		waits.r0 = 0;
		start(&waits);
		while (!v[0])
			elem(engine, BPF_MAP_LOOKUP_ELEM, map, &key, v, 0);
		start(&sets);
		pthread_join(sets.thread, NULL);
		pthread_join(waits.thread, NULL);
		seen = waits.r0 == 7;
	}
	ok(seen && !waits.err && !sets.err, "two threads run programs at once (attempt %d)", i);
	close(prog);
	close(map);
}

/* Counts itself in and out without atomics: two at once on one vCPU would be seen. Results name the vCPU. */
static void one_cpu(void)
{
	int map = map_create(engine, BPF_MAP_TYPE_ARRAY, 4, 24, 1, 0);
	const struct bpf_insn insns[] = {
		LDVALUE(6, map), LDX(1, 6, 0), JEQI(1, 0, 3),
		LDX(1, 6, 8), ADDI(1, 1), STX(6, 1, 8), /* somebody is inside */
		STI(6, 0, 1), MOVI(1, 0),
		JEQI(1, 200, 2), ADDI(1, 1), JA(-3),
		STI(6, 0, 0), LDX(1, 6, 16), ADDI(1, 1), STX(6, 1, 16), CALL(8), RET,
	};
	int prog = LOAD(engine, RAW_TRACEPOINT, insns);
	struct job jobs[4];
	u64 v[3] = {};
	u32 key = 0, wrong = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		jobs[i] = (struct job){.prog = prog, .rounds = 2000, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = 1};
		start(&jobs[i]);
	}
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		pthread_join(jobs[i].thread, NULL);
		wrong += jobs[i].err || jobs[i].r0 != 1;
	}
	elem(engine, BPF_MAP_LOOKUP_ELEM, map, &key, v, 0);
	ok(!wrong, "BPF_F_TEST_RUN_ON_CPU: on that vCPU");
	ok(!v[1] && v[2] == 8000, "a vCPU is one thread's at a time (%llu overlaps, %llu runs)", (unsigned long long)v[1],
	   (unsigned long long)v[2]);
	close(prog);
	close(map);
}

static void *repeat_long(void *ctx)
{
	const struct bpf_insn insns[] = {MOVI(0, 3), RET};
	int prog = LOAD(engine, SOCKET_FILTER, insns);
	char data[64] = {};
	union bpf_attr a = {};
	long *ret = ctx;

	a.test.prog_fd = prog;
	a.test.data_in = U64(data);
	a.test.data_size_in = sizeof(data);
	a.test.repeat = -1u;
	*ret = do_bpf(engine, BPF_PROG_TEST_RUN, &a, sizeof(a));
	close(prog);
	return NULL;
}

static void interrupted(void)
{
	struct timespec pause = {.tv_nsec = 50000000};
	pthread_t thread;
	long ret = 1;

	pthread_create(&thread, NULL, repeat_long, &ret);
	nanosleep(&pause, NULL);
	while (ret == 1) {
		inlay_interrupt(engine);
		nanosleep(&pause, NULL);
		if (__atomic_load_n(&ret, __ATOMIC_RELAXED) != 1)
			break;
	}
	pthread_join(thread, NULL);
	ok(ret == -EINTR, "four thousand million runs end when interrupted");
}

/* ---- maps of maps ---- */

static long map_of(struct inlay *in, u32 type, int inner, u32 key, u32 value, u32 max, u32 flags)
{
	union bpf_attr a = {.map_type = type, .key_size = key, .value_size = value, .max_entries = max, .map_flags = flags};

	a.inner_map_fd = inner;
	return do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
}

static long note_made(long fd, const char *what, u32 type)
{
	note(fd < 0 ? fd : 0, "%s, type %u", what, type);
	if (fd >= 0)
		close(fd);
	return fd;
}

static u32 id_of(struct inlay *in, int fd)
{
	struct bpf_map_info info = {};
	union bpf_attr a = {};

	a.info.bpf_fd = fd;
	a.info.info = U64(&info);
	a.info.info_len = sizeof(info);
	return do_bpf(in, BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a)) ? 0 : info.id;
}

static void batches(struct inlay *in, int map, const char *what)
{
	static const int cmds[] = {BPF_MAP_LOOKUP_BATCH, BPF_MAP_LOOKUP_AND_DELETE_BATCH, BPF_MAP_UPDATE_BATCH,
				   BPF_MAP_DELETE_BATCH};
	char keys[64], values[512], out[16];
	union bpf_attr a;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		memset(&a, 0, sizeof(a));
		memset(keys, 0, sizeof(keys));
		memset(values, 0xff, sizeof(values)); /* no descriptor */
		a.batch.map_fd = map;
		a.batch.keys = U64(keys);
		a.batch.values = U64(values);
		a.batch.out_batch = U64(out);
		a.batch.count = cmds[i] == BPF_MAP_UPDATE_BATCH || cmds[i] == BPF_MAP_DELETE_BATCH ? 1 : 8;
		note(do_bpf(in, cmds[i], &a, sizeof(a)), "%s: batch command %d", what, cmds[i]);
		note(a.batch.count, "count");
	}
}

static void maps_of(struct inlay *in, u32 type)
{
	int array = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, 0), hash = map_create(in, BPF_MAP_TYPE_HASH, 4, 8, 4, 0);
	int bigger = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 5, 0), wider = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0);
	int loose = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, BPF_F_INNER_MAP), hash5 = map_create(in, BPF_MAP_TYPE_HASH, 4, 8, 5, 0);
	int loose9 = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 9, BPF_F_INNER_MAP);
	int percpu = map_create(in, BPF_MAP_TYPE_PERCPU_HASH, 4, 8, 4, 0), ring = map_create(in, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
	int progs = map_create(in, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0), perf = map_create(in, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2, 0);
	int outer = map_of(in, type, array, 4, 4, 3, 0), of_hash = map_of(in, type, hash, 4, 4, 3, 0),
	    of_loose = map_of(in, type, loose, 4, 4, 3, 0);
	const struct bpf_insn ret0[] = {MOVI(0, 0), RET};
	int prog = LOAD(in, RAW_TRACEPOINT, ret0), file = open("/dev/null", O_RDONLY);
	int fds[] = {array, bigger, wider, hash, hash5, loose, loose9, percpu, ring, progs, outer, prog, file, -1, 4000};
	u32 key, next, id;
	size_t i;
	long ret;

	note(outer < 0, "an outer map");
	note_made(map_of(in, type, -1, 4, 4, 3, 0), "no inner map", type);
	note_made(map_of(in, type, 0, 4, 4, 3, 0), "descriptor 0", type);
	note_made(map_of(in, type, file, 4, 4, 3, 0), "a file", type);
	note_made(map_of(in, type, prog, 4, 4, 3, 0), "a program", type);
	note_made(map_of(in, type, outer, 4, 4, 3, 0), "a map of maps of maps", type);
	note_made(map_of(in, type, progs, 4, 4, 3, 0), "of program arrays", type);
	note_made(map_of(in, type, percpu, 4, 4, 3, 0), "of per-CPU maps", type);
	note_made(map_of(in, type, ring, 4, 4, 3, 0), "of rings", type);
	note_made(map_of(in, type, perf, 4, 4, 3, 0), "of perf event arrays", type);
	note_made(map_of(in, type, array, 4, 8, 3, 0), "value of 8 bytes", type);
	note_made(map_of(in, type, array, 8, 4, 3, 0), "key of 8 bytes", type);
	note_made(map_of(in, type, array, 4, 4, 0, 0), "no entries", type);
	note_made(map_of(in, type, array, 4, 4, 3, BPF_F_RDONLY_PROG), "read-only from programs", type);
	note_made(map_of(in, type, array, 4, 4, 3, BPF_F_MMAPABLE), "to be mapped", type);
	note_made(map_of(in, type, array, 4, 4, 3, BPF_F_INNER_MAP), "inner itself", type);
	note_made(map_of(in, type, array, 4, 4, 3, BPF_F_NO_PREALLOC), "not preallocated", type);
	note_made(map_of(in, BPF_MAP_TYPE_ARRAY, -1, 4, 4, 3, 0), "an array does not look at it", type);
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		for (key = 0; key < 4; key++)
			note(elem(in, BPF_MAP_UPDATE_ELEM, outer, &key, &fds[i], 0), "outer[%u] = map %zu", key, i);
		key = 1;
		note(elem(in, BPF_MAP_UPDATE_ELEM, of_hash, &key, &fds[i], 0), "of_hash[1] = map %zu", i);
		note(elem(in, BPF_MAP_UPDATE_ELEM, of_loose, &key, &fds[i], 0), "of_loose[1] = map %zu", i);
		note(elem(in, BPF_MAP_UPDATE_ELEM, outer, &key, &fds[i], BPF_NOEXIST), "NOEXIST");
		note(elem(in, BPF_MAP_UPDATE_ELEM, outer, &key, &fds[i], BPF_EXIST), "EXIST");
		note(elem(in, BPF_MAP_UPDATE_ELEM, outer, &key, &fds[i], 9), "flags 9");
	}
	for (key = 0; key < 4; key++) {
		id = 0;
		ret = elem(in, BPF_MAP_LOOKUP_ELEM, outer, &key, &id, 0);
		note(ret, "outer[%u]", key);
		note(!ret && id == id_of(in, array), "the array's id");
		note(elem(in, BPF_MAP_LOOKUP_ELEM, outer, &key, &id, BPF_F_LOCK), "with a lock");
		note(elem(in, BPF_MAP_LOOKUP_AND_DELETE_ELEM, outer, &key, &id, 0), "taken out");
	}
	/* the order of a hash is its own */
	for (key = 0; key < 4 && type == BPF_MAP_TYPE_ARRAY_OF_MAPS; key++)
		note(elem(in, BPF_MAP_GET_NEXT_KEY, outer, &key, &next, 0) ? -1 : 0, "next of %u", key);
	batches(in, outer, "map of maps");
	for (key = 0; key < 4; key++) {
		note(elem(in, BPF_MAP_DELETE_ELEM, outer, &key, NULL, 0), "delete %u", key);
		note(elem(in, BPF_MAP_DELETE_ELEM, outer, &key, NULL, 0), "once more");
		note(elem(in, BPF_MAP_LOOKUP_ELEM, outer, &key, &id, 0), "then");
	}
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	close(of_hash);
	close(of_loose);
	close(perf);
}

static void arrays_of_maps(struct inlay *in)
{
	maps_of(in, BPF_MAP_TYPE_ARRAY_OF_MAPS);
}

static void hashes_of_maps(struct inlay *in)
{
	maps_of(in, BPF_MAP_TYPE_HASH_OF_MAPS);
}

/* A program finds an inner array and adds to its value; replaced, it finds the other. */
static void use_inner(struct inlay *in)
{
	int a = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), b = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	int outer = map_of(in, BPF_MAP_TYPE_ARRAY_OF_MAPS, a, 4, 4, 2, 0);
	const struct bpf_insn insns[] = {
		LDX(6, 1, 0), STX(10, 6, -8), LDMAP(1, outer), MOV(2, 10), ADDI(2, -8), CALL(1), JEQI(0, 0, 10),
		STW(10, -4, 0), MOV(1, 0), MOV(2, 10), ADDI(2, -4), CALL(1), JEQI(0, 0, 4),
		MOVI(1, 5), XADD(0, 1), LDX(0, 0, 0), RET, MOVI(0, 99), RET,
	};
	int prog = LOAD(in, RAW_TRACEPOINT, insns);
	u32 r0, key = 1, i;

	note(prog < 0 ? prog : 0, "a program that uses an inner map");
	for (i = 0; i < 6; i++) {
		if (i == 1)
			note(elem(in, BPF_MAP_UPDATE_ELEM, outer, &key, &a, 0), "first");
		if (i == 3)
			note(elem(in, BPF_MAP_UPDATE_ELEM, outer, &key, &b, 0), "another");
		if (i == 5)
			note(elem(in, BPF_MAP_DELETE_ELEM, outer, &key, NULL, 0), "none");
		note(run_raw(in, prog, 1, 0, 0, &r0), "run %u", i);
		note(r0, "its result");
	}
	note(run_raw(in, prog, 2, 0, 0, &r0), "beyond the end");
	note(r0, "its result");
	note(value_at(in, a, 0), "a");
	note(value_at(in, b, 0), "b");
	close(a);
	close(b);
	close(outer);
	note(run_raw(in, prog, 1, 0, 0, &r0), "all descriptors closed");
	close(prog);
}

/* ---- program arrays ---- */

static void tail_calls(struct inlay *in)
{
	int progs = map_create(in, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0), count = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	const struct bpf_insn caller[] = {LDX(3, 1, 0), LDMAP(2, progs), CALL(12), MOVI(0, 11), RET}, seven[] = {MOVI(0, 7), RET};
	const struct bpf_insn itself[] = {LDVALUE(2, count), MOVI(0, 1), XADD(2, 0), LDMAP(2, progs), MOVI(3, 2), CALL(12),
					  LDVALUE(2, count), LDX(0, 2, 0), RET};
	int a = LOAD(in, RAW_TRACEPOINT, caller), b = LOAD(in, RAW_TRACEPOINT, seven), c = LOAD(in, RAW_TRACEPOINT, itself);
	int other = LOAD(in, SOCKET_FILTER, seven), file = open("/dev/null", O_RDONLY), fds[] = {b, other, count, progs, file, -1, 4000};
	u32 key, id, r0;
	size_t i;

	note(a < 0 || b < 0 || c < 0, "all load");
	note(LOAD(in, SOCKET_FILTER, caller), "a program of another type that uses the array");
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		for (key = 1; key < 6; key += 3) {
			note(elem(in, BPF_MAP_UPDATE_ELEM, progs, &key, &fds[i], 0), "progs[%u] = %zu", key, i);
			note(elem(in, BPF_MAP_UPDATE_ELEM, progs, &key, &fds[i], BPF_NOEXIST), "progs[%u] = %zu, NOEXIST", key, i);
		}
	key = 2;
	note(elem(in, BPF_MAP_UPDATE_ELEM, progs, &key, &c, 0), "one that calls itself");
	for (key = 0; key < 5; key++) {
		note(elem(in, BPF_MAP_LOOKUP_ELEM, progs, &key, &id, 0), "lookup %u", key);
		set_value(in, count, 0, 0);
		note(run_raw(in, a, key, 0, 0, &r0), "tail call %u", key);
		note(r0, "its result");
	}
	set_value(in, count, 0, 0);
	note(run_raw(in, a, (1ULL << 32) + 1, 0, 0, &r0), "the upper half of an index");
	note(r0, "its result");
	note(run_raw(in, c, 0, 0, 0, &r0), "one that calls itself");
	note(r0, "so often");
	batches(in, progs, "program array");
	for (key = 0; key < 5; key++)
		note(elem(in, BPF_MAP_DELETE_ELEM, progs, &key, NULL, 0), "delete %u", key);
	note(run_raw(in, a, 1, 0, 0, &r0), "after it");
	note(r0, "its result");
	close(a);
	close(b);
	close(other);
	close(file);
	close(count);
	key = 2;
	note(elem(in, BPF_MAP_UPDATE_ELEM, progs, &key, &c, 0), "a circle");
	close(progs); /* the circle of array and program that uses it ends here */
	for (i = 0; i < 400; i++) {  /* in Linux some worker empties it */
		run_raw(in, c, 0, 0, 0, &r0);
		if (i && r0 - id == 1)
			break;
		id = r0;
		usleep(5000);
	}
	note(i < 400, "the array is empty after its last descriptor");
	close(c);
}

/* Machine code: as much as is said, twice the same, in one function; what is asked for and no more is written. */
static void machine_code(struct inlay *in)
{
	const struct bpf_insn insns[] = {MOVI(0, 3), RET};
	int prog = LOAD(in, SOCKET_FILTER, insns);
	u8 code[4096], again[4096];
	u32 lens[2] = {7, 7}, len;
	struct bpf_prog_info info = {};
	union bpf_attr a = {};
	u64 at[2] = {7, 7};

	a.info.bpf_fd = prog;
	a.info.info = U64(&info);
	a.info.info_len = sizeof(info);
	note(do_bpf(in, BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a)), "info");
	len = info.jited_prog_len;
	note(len > 0 && len < sizeof(code), "there is machine code");
	note(info.nr_jited_ksyms, "functions");
	note(info.nr_jited_func_lens, "lengths");
	memset(&info, 0, sizeof(info));
	memset(code, 0x77, sizeof(code));
	info.jited_prog_insns = U64(code);
	info.jited_prog_len = len;
	info.jited_ksyms = U64(at);
	info.nr_jited_ksyms = 2;
	info.jited_func_lens = U64(lens);
	info.nr_jited_func_lens = 2;
	note(do_bpf(in, BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a)), "with room");
	note(info.jited_prog_len == len && lens[0] == len, "the same length");
	note(lens[1] + at[1], "no second function");
	note(at[0] > 7, "an address");
	note(code[len], "not one byte more");
	memset(&info, 0, sizeof(info));
	memset(again, 0x77, sizeof(again));
	info.jited_prog_insns = U64(again);
	info.jited_prog_len = 2;
	note(do_bpf(in, BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a)), "with room for two bytes");
	note(info.jited_prog_len == len, "all are counted");
	note(!memcmp(again, code, 2) && again[2] == 0x77, "two are written");
	close(prog);
}

static void other_batches(struct inlay *in)
{
	int percpu = map_create(in, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0), phash = map_create(in, BPF_MAP_TYPE_PERCPU_HASH, 4, 8, 1, 0);
	int array = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), ring = map_create(in, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
	int perf = map_create(in, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0);

	batches(in, percpu, "per-CPU array");
	batches(in, phash, "per-CPU hash");
	batches(in, array, "array");
	batches(in, ring, "ring");
	batches(in, perf, "perf event array");
	close(percpu);
	close(phash);
	close(array);
	close(ring);
	close(perf);
}

int main(void)
{
	engine = engine_start();
	both(engine, "questions to PROG_TEST_RUN", questions);
	both(engine, "repeated runs", repeated);
	both(engine, "arrays of maps", arrays_of_maps);
	both(engine, "hashes of maps", hashes_of_maps);
	both(engine, "a program that uses inner maps", use_inner);
	both(engine, "tail calls", tail_calls);
	both(engine, "batches of other maps", other_batches);
	both(engine, "machine code", machine_code);
	at_once();
	one_cpu();
	interrupted();
	is_int(objects_settled(engine, OBJ_PROG, 0), 0, "no program is left");
	is_int(objects_settled(engine, OBJ_MAP, 0), 0, "no map");
	inlay_destroy(engine);
	return tap_done();
}
