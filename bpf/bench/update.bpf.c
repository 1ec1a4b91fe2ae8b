// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Work on one hash map named in the program: insertion, removal, updates that find it full, lookups of present keys. */
#include "bench_bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1000);
	__type(key, __u32);
	__type(value, __u64);
} table SEC(".maps");

const volatile __u32 num_keys = 1000;

struct loop {
	__u64 hits, misses;
	__u32 base;
};

static long insert_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;
	__u32 key = l->base + index;
	__u64 value = key;

	if (bpf_map_update_elem(&table, &key, &value, BPF_NOEXIST))
		l->misses++;
	l->hits++;
	return 0;
}

static long remove_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;
	__u32 key = l->base + index;

	if (bpf_map_delete_elem(&table, &key))
		l->misses++;
	l->hits++;
	return 0;
}

/* The key is never there and there is no room for it. */
static long full_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;
	__u32 key = l->base;
	__u64 value = key;

	if (bpf_map_update_elem(&table, &key, &value, BPF_ANY))
		l->misses++;
	l->hits++;
	return 0;
}

/* Keys of one thread: base … base + num_keys. */
static long replace_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;
	__u32 key = l->base + index % num_keys;
	__u64 value = key;

	if (bpf_map_update_elem(&table, &key, &value, BPF_ANY))
		l->misses++;
	l->hits++;
	return 0;
}

static long own_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;
	__u32 key = l->base + index % num_keys;
	__u64 *value = bpf_map_lookup_elem(&table, &key);

	if (!value || *value != key)
		l->misses++;
	l->hits++;
	return 0;
}

/* The first key: what the command put into count.base, or the caller's first argument. */
#define PROGRAM(name, fn, first)                                 \
	SEC("raw_tp")                                            \
	int name(__u64 *ctx)                                     \
	{                                                        \
		struct loop l = { .base = first };               \
                                                                 \
		bpf_loop(BENCH_LOOPS, fn, &l, 0);                \
		count_add(l.hits, 0, 0, 0, l.misses);            \
		return 0;                                        \
	}

PROGRAM(table_insert, insert_each, count.base)
PROGRAM(table_remove, remove_each, count.base)
PROGRAM(table_full, full_each, count.base)
PROGRAM(table_replace, replace_each, ctx[0])
PROGRAM(table_own, own_each, ctx[0])
