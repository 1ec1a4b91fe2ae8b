// SPDX-License-Identifier: BSD-2-Clause
// What bpf(2) answers for each map type: recorded answers of Linux 6.18, and the running kernel's
// where it may be asked.
#include "fixture.h"

static bool kernel_ok;

/* One create on both sides against a recorded result (0: made). */
static void creates(const char *what, const struct map_attr *attr, int want)
{
	int h = s_create(&inlay_side, attr, 0), k;

	is_int(h < 0 ? h : 0, want, "create %s", what);
	s_close(&inlay_side, h);
	if (!kernel_ok)
		return;
	k = s_create(&kernel_side, attr, 0);
	is_int(k < 0 ? k : 0, want, "create %s: the kernel says the same", what);
	s_close(&kernel_side, k);
}

#define ATTR(...)		 (&(struct map_attr){__VA_ARGS__})
#define CREATES(want, what, ...) creates(what, ATTR(__VA_ARGS__), want)
#define T(x)			 .map_type = BPF_MAP_TYPE_##x
#define SZ(k, v, m)		 .key_size = k, .value_size = v, .max_entries = m
#define F(x)			 .map_flags = x

static void create_array(void)
{
	CREATES(0, "array", T(ARRAY), SZ(4, 8, 4));
	CREATES(-EINVAL, "array, key_size 8", T(ARRAY), SZ(8, 8, 4));
	CREATES(-EINVAL, "array, max_entries 0", T(ARRAY), SZ(4, 8, 0));
	CREATES(-EINVAL, "array, value_size 0", T(ARRAY), SZ(4, 0, 1));
	CREATES(-E2BIG, "array, value_size 2^32-1", T(ARRAY), SZ(4, 0xffffffff, 1));
	CREATES(-E2BIG, "array, value_size 2^31", T(ARRAY), SZ(4, 0x80000000, 1));
	CREATES(-EINVAL, "array, NO_PREALLOC", T(ARRAY), SZ(4, 8, 1), F(BPF_F_NO_PREALLOC));
	CREATES(-EINVAL, "array, RDONLY_PROG and WRONLY_PROG", T(ARRAY), SZ(4, 8, 1),
		F(BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG));
	CREATES(0, "array, MMAPABLE and RDONLY_PROG", T(ARRAY), SZ(4, 8, 1),
		F(BPF_F_MMAPABLE | BPF_F_RDONLY_PROG));
	CREATES(0, "array, MMAPABLE, 3-byte values", T(ARRAY), SZ(4, 3, 1000), F(BPF_F_MMAPABLE));
	CREATES(0, "array, INNER_MAP", T(ARRAY), SZ(4, 8, 1), F(BPF_F_INNER_MAP));
	CREATES(-EINVAL, "array, PRESERVE_ELEMS", T(ARRAY), SZ(4, 8, 1), F(BPF_F_PRESERVE_ELEMS));
	CREATES(-EINVAL, "array, ZERO_SEED", T(ARRAY), SZ(4, 8, 1), F(BPF_F_ZERO_SEED));
	CREATES(0, "array, NUMA node 0", T(ARRAY), SZ(4, 8, 1), F(BPF_F_NUMA_NODE));
	CREATES(-EINVAL, "array, NUMA node 1000", T(ARRAY), SZ(4, 8, 1), F(BPF_F_NUMA_NODE),
		.numa_node = 1000);
	CREATES(0, "per-CPU array", T(PERCPU_ARRAY), SZ(4, 8, 4));
	CREATES(-EINVAL, "per-CPU array, MMAPABLE", T(PERCPU_ARRAY), SZ(4, 8, 4),
		F(BPF_F_MMAPABLE));
	CREATES(-EINVAL, "per-CPU array, NUMA node", T(PERCPU_ARRAY), SZ(4, 8, 4),
		F(BPF_F_NUMA_NODE));
	CREATES(0, "per-CPU array, 32 KiB values", T(PERCPU_ARRAY), SZ(4, 32768, 1));
	CREATES(-E2BIG, "per-CPU array, 32 KiB + 1", T(PERCPU_ARRAY), SZ(4, 32769, 1));
}

static void create_hash(void)
{
	CREATES(0, "hash", T(HASH), SZ(8, 8, 4));
	CREATES(-EINVAL, "hash, key_size 0", T(HASH), SZ(0, 8, 4));
	CREATES(-EINVAL, "hash, value_size 0", T(HASH), SZ(8, 0, 4));
	CREATES(-EINVAL, "hash, max_entries 0", T(HASH), SZ(8, 8, 0));
	CREATES(0, "hash, 1 MiB keys", T(HASH), SZ(1 << 20, 8, 1), F(BPF_F_NO_PREALLOC));
	CREATES(-E2BIG, "hash, 4 MiB values", T(HASH), SZ(8, 4 << 20, 1), F(BPF_F_NO_PREALLOC));
	CREATES(0, "hash, key and value just below the limit", T(HASH),
		SZ(8, (4 << 20) - 8 - 48 - 1, 1), F(BPF_F_NO_PREALLOC));
	CREATES(-E2BIG, "hash, key and value at the limit", T(HASH), SZ(8, (4 << 20) - 8 - 48, 1),
		F(BPF_F_NO_PREALLOC));
	CREATES(-E2BIG, "hash, 2^31 + 1 entries", T(HASH), SZ(8, 8, 0x80000001u),
		F(BPF_F_NO_PREALLOC));
	CREATES(-E2BIG, "hash, 2^27 + 1 entries", T(HASH), SZ(8, 8, (1u << 27) + 1),
		F(BPF_F_NO_PREALLOC));
	CREATES(0, "hash, ZERO_SEED", T(HASH), SZ(8, 8, 4), F(BPF_F_ZERO_SEED));
	CREATES(-EINVAL, "hash, MMAPABLE", T(HASH), SZ(8, 8, 4), F(BPF_F_MMAPABLE));
	CREATES(-EINVAL, "hash, NO_COMMON_LRU", T(HASH), SZ(8, 8, 4), F(BPF_F_NO_COMMON_LRU));
	CREATES(0, "hash, NUMA node 0", T(HASH), SZ(8, 8, 4), F(BPF_F_NUMA_NODE));
	CREATES(-EINVAL, "per-CPU hash, NUMA node", T(PERCPU_HASH), SZ(8, 8, 4),
		F(BPF_F_NUMA_NODE));
	CREATES(0, "per-CPU hash", T(PERCPU_HASH), SZ(8, 8, 4));
	CREATES(-E2BIG, "per-CPU hash, 32 KiB + 1", T(PERCPU_HASH), SZ(8, 32769, 4));
	CREATES(0, "per-CPU hash, NO_PREALLOC", T(PERCPU_HASH), SZ(8, 8, 4), F(BPF_F_NO_PREALLOC));
}

static void create_others(void)
{
	CREATES(0, "ringbuf, a page", T(RINGBUF), .max_entries = 4096);
	CREATES(-EINVAL, "ringbuf, size 0", T(RINGBUF), .max_entries = 0);
	CREATES(-EINVAL, "ringbuf, not a power of two", T(RINGBUF), .max_entries = 3 * 4096);
	CREATES(-EINVAL, "ringbuf, not whole pages", T(RINGBUF), .max_entries = 2048);
	CREATES(-EINVAL, "ringbuf, value_size 8", T(RINGBUF), .max_entries = 4096, .value_size = 8);
	CREATES(-EINVAL, "ringbuf, key_size 4", T(RINGBUF), .max_entries = 4096, .key_size = 4);
	CREATES(-EINVAL, "ringbuf, MMAPABLE", T(RINGBUF), .max_entries = 4096, F(BPF_F_MMAPABLE));
	CREATES(-EINVAL, "ringbuf, RDONLY", T(RINGBUF), .max_entries = 4096, F(BPF_F_RDONLY));
	CREATES(0, "perf event array", T(PERF_EVENT_ARRAY), SZ(4, 4, 2));
	CREATES(-EINVAL, "perf event array, value_size 8", T(PERF_EVENT_ARRAY), SZ(4, 8, 2));
	CREATES(-EINVAL, "perf event array, RDONLY_PROG", T(PERF_EVENT_ARRAY), SZ(4, 4, 2),
		F(BPF_F_RDONLY_PROG));
	CREATES(0, "perf event array, PRESERVE_ELEMS", T(PERF_EVENT_ARRAY), SZ(4, 4, 2),
		F(BPF_F_PRESERVE_ELEMS));
	CREATES(-EINVAL, "task storage without BTF", T(TASK_STORAGE), SZ(4, 8, 0),
		F(BPF_F_NO_PREALLOC));
}

/* ---- key and value types ---- */

struct typed {
	const char *what;
	struct map_attr attr;
	bool key_is_struct, lock_in_value;
	u32 value_bytes; /* of the value's type */
	int want, kernel;
};

static int typed_on(const struct side *s, const struct typed *t)
{
	struct btf_blob blob = {.nr = 0};
	struct map_attr attr = t->attr;
	u32 u32_id = blob_int(&blob, "int", 4), byte = blob_int(&blob, "char", 1), lock;
	char bytes[8192];
	int h, btf_fd = -1;

	attr.btf_key_type_id = t->key_is_struct ? blob_struct1(&blob, "k", 4, "a", u32_id) : u32_id;
	lock = blob_struct1(&blob, "bpf_spin_lock", 4, "val", u32_id);
	attr.btf_value_type_id = t->lock_in_value
					 ? blob_struct1(&blob, "v", t->value_bytes, "l", lock)
					 : blob_array(&blob, byte, u32_id, t->value_bytes);
	if (s->kernel) {
		union bpf_attr ba = {.btf = (u64)bytes, .btf_size = blob_pack(&blob, bytes)};

		btf_fd = sys_bpf_raw(BPF_BTF_LOAD, &ba);
	} else {
		attr.btf = blob_parse(&blob);
	}
	h = s_create(s, &attr, btf_fd);
	s_close(s, h);
	btf_put(attr.btf);
	close(btf_fd);
	return h < 0 ? h : 0;
}

static void key_and_value_types(void)
{
	static const struct typed rows[] = {
		{"hash", {T(HASH), SZ(4, 8, 1)}, false, false, 8, 0, 0},
		{"hash, struct key", {T(HASH), SZ(4, 8, 1)}, true, false, 8, 0, 0},
		{"hash, value type of another size",
		 {T(HASH), SZ(4, 8, 1)},
		 false,
		 false,
		 9,
		 -EINVAL,
		 -EINVAL},
		{"hash, key type of another size",
		 {T(HASH), SZ(8, 8, 1)},
		 false,
		 false,
		 8,
		 -EINVAL,
		 -EINVAL},
		{"per-CPU hash", {T(PERCPU_HASH), SZ(4, 8, 1)}, false, false, 8, 0, 0},
		{"array", {T(ARRAY), SZ(4, 8, 1)}, false, false, 8, 0, 0},
		{"array, struct key", {T(ARRAY), SZ(4, 8, 1)}, true, false, 8, -EINVAL, -EINVAL},
		{"per-CPU array, struct key",
		 {T(PERCPU_ARRAY), SZ(4, 8, 1)},
		 true,
		 false,
		 8,
		 -EINVAL,
		 -EINVAL},
		{"perf event array",
		 {T(PERF_EVENT_ARRAY), SZ(4, 4, 1)},
		 false,
		 false,
		 4,
		 -LINUX_ENOTSUPP,
		 -LINUX_ENOTSUPP},
		{"ringbuf", {T(RINGBUF), .max_entries = 4096}, false, false, 4, -EINVAL, -EINVAL},
		/* deliberate: a lock in the value is not supported, so it is refused and not taken
		   for plain bytes */
		{"hash, lock in the value", {T(HASH), SZ(4, 8, 1)}, false, true, 8, -EOPNOTSUPP, 0},
		{"array, lock in the value",
		 {T(ARRAY), SZ(4, 8, 1)},
		 false,
		 true,
		 8,
		 -EOPNOTSUPP,
		 0},
		{"task storage, lock in the value",
		 {T(TASK_STORAGE), SZ(4, 8, 0), F(BPF_F_NO_PREALLOC)},
		 false,
		 true,
		 8,
		 -EOPNOTSUPP,
		 0},
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		is_int(typed_on(&inlay_side, &rows[i]), rows[i].want, "typed %s", rows[i].what);
		if (kernel_ok)
			is_int(typed_on(&kernel_side, &rows[i]), rows[i].kernel,
			       "typed %s: in the kernel", rows[i].what);
	}
}

/* ---- element commands ---- */

struct step {
	const char *what;
	enum elem_cmd cmd;
	u64 key;
	u64 value; /* UPDATE: what is written; LOOKUP, TAKE, NEXT: what is expected where want is 0
		    */
	u64 flags;
	int want;
	bool any_value; /* do not look at value */
};

#define NO_KEY 0xbadbadbad0ULL

static void run_steps(const struct side *s, int h, const struct step *steps, int n)
{
	char value[64 * 8];
	u64 got;
	long ret;
	int i;

	for (i = 0; i < n; i++) {
		const struct step *st = &steps[i];

		memset(value, 0, sizeof(value));
		if (st->cmd == UPDATE)
			memcpy(value, &st->value, 8);
		ret = s_elem(s, st->cmd, h, st->key == NO_KEY ? NULL : &st->key, value, st->flags);
		is_int(ret, st->want, "%s: %s", s->name, st->what);
		if (ret || st->cmd == UPDATE || st->cmd == DELETE || st->any_value)
			continue;
		memcpy(&got, value, 8);
		is_u64(got, st->value, "%s: %s: value", s->name, st->what);
	}
}

static void both(const struct map_attr *attr, const struct step *steps, int n)
{
	int h = s_create(&inlay_side, attr, 0);

	ok(h >= 0, "map of type %u is made", attr->map_type);
	run_steps(&inlay_side, h, steps, n);
	s_close(&inlay_side, h);
	if (!kernel_ok)
		return;
	h = s_create(&kernel_side, attr, 0);
	run_steps(&kernel_side, h, steps, n);
	s_close(&kernel_side, h);
}

static const struct step array_steps[] = {
	{"array: initial value is zero", LOOKUP, 0, 0, 0, 0},
	{"array: lookup index == max_entries", LOOKUP, 4, 0, 0, -ENOENT},
	{"array: lookup index 2^32-1", LOOKUP, 0xffffffff, 0, 0, -ENOENT},
	{"array: update", UPDATE, 1, 77, BPF_ANY, 0},
	{"array: updated value", LOOKUP, 1, 77, 0, 0},
	{"array: update index == max_entries", UPDATE, 4, 1, BPF_ANY, -E2BIG},
	{"array: update index 2^32-1", UPDATE, 0xffffffff, 1, BPF_ANY, -E2BIG},
	{"array: update NOEXIST on an existing index", UPDATE, 1, 1, BPF_NOEXIST, -EEXIST},
	{"array: update EXIST", UPDATE, 1, 78, BPF_EXIST, 0},
	{"array: F_LOCK without a lock in the value", UPDATE, 1, 1, BPF_F_LOCK, -EINVAL},
	{"array: update flags 3", UPDATE, 1, 1, 3, -EINVAL},
	{"array: update flags 8", UPDATE, 1, 1, 8, -EINVAL},
	{"array: update flags 2^32", UPDATE, 1, 1, 1ULL << 32, -EINVAL},
	{"array: lookup flags 1", LOOKUP, 1, 0, 1, -EINVAL},
	{"array: lookup F_LOCK", LOOKUP, 1, 0, BPF_F_LOCK, -EINVAL},
	{"array: delete", DELETE, 1, 0, 0, -EINVAL},
	{"array: delete index 2^32-1", DELETE, 0xffffffff, 0, 0, -EINVAL},
	{"array: lookup_and_delete", TAKE, 1, 0, 0, -LINUX_ENOTSUPP},
	{"array: next_key(NULL)", NEXT, NO_KEY, 0, 0, 0},
	{"array: next_key(1)", NEXT, 1, 2, 0, 0},
	{"array: next_key(last)", NEXT, 3, 0, 0, -ENOENT},
	{"array: next_key(index out of range) gives first", NEXT, 99, 0, 0, 0},
	{"array: next_key(2^32-1) gives first", NEXT, 0xffffffff, 0, 0, 0},
};

static const struct step hash_steps[] = {
	{"hash: lookup missing", LOOKUP, 1, 0, 0, -ENOENT},
	{"hash: delete missing", DELETE, 1, 0, 0, -ENOENT},
	{"hash: next_key of an empty map", NEXT, NO_KEY, 0, 0, -ENOENT},
	{"hash: EXIST on missing", UPDATE, 1, 10, BPF_EXIST, -ENOENT},
	{"hash: insert", UPDATE, 1, 10, BPF_ANY, 0},
	{"hash: NOEXIST on present", UPDATE, 1, 11, BPF_NOEXIST, -EEXIST},
	{"hash: second insert", UPDATE, 2, 20, BPF_NOEXIST, 0},
	{"hash: insert when full", UPDATE, 3, 30, BPF_ANY, -E2BIG},
	{"hash: NOEXIST insert when full", UPDATE, 3, 30, BPF_NOEXIST, -E2BIG},
	{"hash: replace when full", UPDATE, 1, 12, BPF_ANY, 0},
	{"hash: replaced value", LOOKUP, 1, 12, 0, 0},
	{"hash: replace with EXIST", UPDATE, 2, 21, BPF_EXIST, 0},
	{"hash: flags NOEXIST|EXIST", UPDATE, 1, 1, 3, -EINVAL},
	{"hash: F_LOCK without a lock in the value", UPDATE, 1, 1, BPF_F_LOCK, -EINVAL},
	{"hash: lookup F_LOCK", LOOKUP, 1, 0, BPF_F_LOCK, -EINVAL},
	{"hash: lookup flags 2", LOOKUP, 1, 0, 2, -EINVAL},
	{"hash: lookup_and_delete flags 1", TAKE, 1, 0, 1, -EINVAL},
	{"hash: next_key(missing key) gives a first key", NEXT, 77, 0, 0, 0, true},
	{"hash: lookup_and_delete", TAKE, 1, 12, 0, 0},
	{"hash: lookup_and_delete of a deleted key", TAKE, 1, 0, 0, -ENOENT},
	{"hash: insert after a delete", UPDATE, 3, 33, BPF_ANY, 0},
	{"hash: delete", DELETE, 2, 0, 0, 0},
	{"hash: next_key(NULL) with one key", NEXT, NO_KEY, 3, 0, 0},
	{"hash: walk ends", NEXT, 3, 0, 0, -ENOENT},
	{"hash: deleted key is gone", LOOKUP, 2, 0, 0, -ENOENT},
};

static const struct step ringbuf_steps[] = {
	{"ringbuf: lookup with a key", LOOKUP, 1, 0, 0, -EINVAL},
	{"ringbuf: lookup", LOOKUP, NO_KEY, 0, 0, -LINUX_ENOTSUPP},
	{"ringbuf: update", UPDATE, NO_KEY, 0, 0, -LINUX_ENOTSUPP},
	{"ringbuf: delete", DELETE, NO_KEY, 0, 0, -LINUX_ENOTSUPP},
	{"ringbuf: next_key", NEXT, NO_KEY, 0, 0, -LINUX_ENOTSUPP},
	{"ringbuf: lookup_and_delete", TAKE, NO_KEY, 0, 0, -LINUX_ENOTSUPP},
};

static const struct step perf_steps[] = {
	{"perf event array: lookup", LOOKUP, 0, 0, 0, -LINUX_ENOTSUPP},
	{"perf event array: update with a bad descriptor", UPDATE, 0, 1000, 0, -EBADF},
	{"perf event array: update index == max_entries", UPDATE, 2, 1000, 0, -E2BIG},
	{"perf event array: update NOEXIST", UPDATE, 0, 1000, BPF_NOEXIST, -EINVAL},
	{"perf event array: delete of an empty entry", DELETE, 0, 0, 0, -ENOENT},
	{"perf event array: delete index == max_entries", DELETE, 2, 0, 0, -E2BIG},
	{"perf event array: next_key(NULL)", NEXT, NO_KEY, 0, 0, 0},
	{"perf event array: lookup_and_delete", TAKE, 0, 0, 0, -LINUX_ENOTSUPP},
};

static void elements(void)
{
	both(ATTR(T(ARRAY), SZ(4, 8, 4)), array_steps, ARRAY_SIZE(array_steps));
	both(ATTR(T(ARRAY), SZ(4, 8, 4), F(BPF_F_MMAPABLE)), array_steps, ARRAY_SIZE(array_steps));
	both(ATTR(T(PERCPU_ARRAY), SZ(4, 8, 4)), array_steps, ARRAY_SIZE(array_steps));
	both(ATTR(T(HASH), SZ(8, 8, 2)), hash_steps, ARRAY_SIZE(hash_steps));
	both(ATTR(T(HASH), SZ(8, 8, 2), F(BPF_F_NO_PREALLOC)), hash_steps, ARRAY_SIZE(hash_steps));
	both(ATTR(T(PERCPU_HASH), SZ(8, 8, 2)), hash_steps, ARRAY_SIZE(hash_steps));
	both(ATTR(T(PERCPU_HASH), SZ(8, 8, 2), F(BPF_F_NO_PREALLOC)), hash_steps,
	     ARRAY_SIZE(hash_steps));
	both(ATTR(T(RINGBUF), .max_entries = 4096), ringbuf_steps, ARRAY_SIZE(ringbuf_steps));
	both(ATTR(T(PERF_EVENT_ARRAY), SZ(4, 4, 2)), perf_steps, ARRAY_SIZE(perf_steps));
}

/* ---- random sequences, both sides in lock-step ---- */

#define RANDOM_OPS 20000

struct random_map {
	const char *what;
	struct map_attr attr;
};

static u32 value_bytes(const struct map_attr *a)
{
	bool percpu =
		a->map_type == BPF_MAP_TYPE_PERCPU_ARRAY || a->map_type == BPF_MAP_TYPE_PERCPU_HASH;

	return percpu ? align_up(a->value_size, 8) * possible_cpus() : a->value_size;
}

/* The keys a walk finds, as a sum that does not depend on their order; -1: it does not end. */
static s64 walk_sum(const struct side *s, int h, u32 key_size, u32 most)
{
	unsigned char key[64] = {0}, next[64] = {0};
	const void *from = NULL;
	s64 sum = 0;
	u32 n, i;

	for (n = 0; !s_elem(s, NEXT, h, from, next, 0); n++) {
		if (n > most)
			return -1;
		for (i = 0; i < key_size; i++)
			sum += (s64)next[i] * (i + 1) * 7919;
		memcpy(key, next, key_size);
		from = key;
	}
	return sum + n;
}

static void random_key(u64 *seed, const struct map_attr *attr, unsigned char *key)
{
	u64 r = rnd(seed) % 24;

	memset(key, 0, 64);
	key[0] = attr->map_type == BPF_MAP_TYPE_ARRAY || attr->map_type == BPF_MAP_TYPE_PERCPU_ARRAY
			 ? r
			 : r % 6;
	if (key[0] != r)
		key[attr->key_size - 1] =
			r; /* so that only the last byte tells some of them apart */
}

static void random_value(u64 *seed, u32 size, unsigned char *value)
{
	u32 i;

	for (i = 0; i < size; i++)
		value[i] = rnd(seed);
}

static void random_run(const struct random_map *m, u64 seed)
{
	static const u64 flags[] = {0, 0, 0, 1, 2, 3, 4};
	unsigned char key[64], va[4096] = {0}, vb[4096] = {0};
	int a = s_create(&inlay_side, &m->attr, 0), b = s_create(&kernel_side, &m->attr, 0), i,
	    differ = 0;
	u32 size = value_bytes(&m->attr), done = 0;
	u64 flag;
	long x, y;

	for (i = 0; i < RANDOM_OPS && !differ; i++) {
		enum elem_cmd cmd = rnd(&seed) % 5;

		random_key(&seed, &m->attr, key);
		flag = flags[rnd(&seed) % ARRAY_SIZE(flags)];
		if (cmd != UPDATE && rnd(&seed) % 4)
			flag = 0;
		if (cmd == NEXT) {
			if (i % 50)
				continue;
			x = walk_sum(&inlay_side, a, m->attr.key_size, 1000);
			y = walk_sum(&kernel_side, b, m->attr.key_size, 1000);
		} else {
			if (cmd == UPDATE)
				random_value(&seed, size, va);
			else
				memset(va, 0, size);
			memcpy(vb, va, size);
			x = s_elem(&inlay_side, cmd, a, key, va, flag);
			y = s_elem(&kernel_side, cmd, b, key, vb, flag);
		}
		done += !x;
		differ = x != y || memcmp(va, vb, size);
		if (differ)
			printf("# op %d, command %d, flags %llu: %ld here, %ld in the kernel\n", i,
			       cmd, (unsigned long long)flag, x, y);
	}
	ok(!differ, "%s: random commands get the kernel's answers", m->what);
	ok(done > RANDOM_OPS / 40, "%s: %u of them succeeded", m->what, done);
	s_close(&inlay_side, a);
	s_close(&kernel_side, b);
}

static void random_runs(void)
{
	static const struct random_map maps[] = {
		{"array", {T(ARRAY), SZ(4, 13, 20)}},
		{"mmapable array", {T(ARRAY), SZ(4, 13, 20), F(BPF_F_MMAPABLE)}},
		{"per-CPU array", {T(PERCPU_ARRAY), SZ(4, 13, 20)}},
		{"hash, 1-byte keys", {T(HASH), SZ(1, 5, 16)}},
		{"hash, 7-byte keys", {T(HASH), SZ(7, 12, 16)}},
		{"hash, 8-byte keys", {T(HASH), SZ(8, 8, 16), F(BPF_F_NO_PREALLOC)}},
		{"hash, 29-byte keys", {T(HASH), SZ(29, 100, 16), F(BPF_F_ZERO_SEED)}},
		{"hash, one entry", {T(HASH), SZ(4, 8, 1)}},
		{"per-CPU hash, 12-byte keys", {T(PERCPU_HASH), SZ(12, 20, 16)}},
		{"per-CPU hash, 3-byte keys", {T(PERCPU_HASH), SZ(3, 1, 16), F(BPF_F_NO_PREALLOC)}},
	};
	u32 i;

	if (!kernel_ok) {
		tap_skip("random sequences: no bpf(2) to compare with");
		return;
	}
	for (i = 0; i < ARRAY_SIZE(maps); i++)
		random_run(&maps[i], 1000 + i);
}

int main(void)
{
	kernel_ok = have_kernel();
	if (!kernel_ok)
		printf("# no bpf(2) here: only recorded answers are compared\n");
	fix_up(possible_cpus());
	create_array();
	create_hash();
	create_others();
	key_and_value_types();
	elements();
	random_runs();
	fix_down();
	return tap_done();
}
