// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Lookups in a hash map found through an outer array of maps: hash_get draws integer keys at random (the kernel
 * selftests' hashmap control), list_get takes them, of any size, from a list in an array. Values are read into a
 * checksum; the key drawn, or its place in the list, says what it must be.
 */
#include "bench_bpf.h"

struct hash {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BENCH_FULL);
	__uint(key_size, 4);
	__uint(value_size, 4);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, BENCH_MAX_MAPS);
	__type(key, int);
	__type(value, int);
	__array(values, struct hash);
} maps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 4);
} list SEC(".maps");

const volatile __u32 num_maps = 1;
const volatile __u32 num_keys = 10;
const volatile __u32 from_key = 0; /* list_own: keys of other threads come before */

struct loop {
	__u64 hits, important, sum, want, misses;
};

static __always_inline void *outer(int elem, struct loop *l)
{
	void *inner = bpf_map_lookup_elem(&maps, &elem);

	if (!inner)
		return 0;
	l->hits++;
	if (!elem)
		l->important++;
	return inner;
}

static __always_inline void found(const __u32 *value, __u32 key, struct loop *l)
{
	if (!value) {
		l->misses++;
		return;
	}
	l->sum += *value;
	l->want += key;
}

static long hash_each(__u32 index, void *ctx)
{
	void *inner = outer(index % num_maps, ctx);
	__u32 key;

	if (!inner)
		return 0;
	key = bpf_get_prandom_u32() % num_keys;
	found(bpf_map_lookup_elem(inner, &key), key, ctx);
	return 0;
}

static long hash_skip(__u32 index, void *ctx)
{
	struct loop *l = ctx;

	if (outer(index % num_maps, ctx))
		l->sum += bpf_get_prandom_u32() % num_keys;
	return 0;
}

static long list_each(__u32 index, void *ctx)
{
	void *inner = outer(index % num_maps, ctx), *key;
	__u32 at;

	if (!inner)
		return 0;
	at = bpf_get_prandom_u32() % num_keys;
	key = bpf_map_lookup_elem(&list, &at);
	if (key)
		found(bpf_map_lookup_elem(inner, key), at, ctx);
	return 0;
}

/* Reads the key, so that its cache miss is in here too. */
static long list_skip(__u32 index, void *ctx)
{
	struct loop *l = ctx;
	__u32 at, *key;

	if (!outer(index % num_maps, ctx))
		return 0;
	at = bpf_get_prandom_u32() % num_keys;
	key = bpf_map_lookup_elem(&list, &at);
	if (key)
		l->sum += *key;
	return 0;
}

#define PROGRAM(name, fn)                                                    \
	SEC("raw_tp")                                                        \
	int name(void *ctx)                                                  \
	{                                                                    \
		struct loop l = {};                                          \
                                                                             \
		bpf_loop(BENCH_LOOPS, fn, &l, 0);                            \
		count_add(l.hits, l.important, l.sum, l.want, l.misses);     \
		return 0;                                                    \
	}

PROGRAM(hash_get, hash_each)
PROGRAM(hash_empty, hash_skip)
PROGRAM(list_get, list_each)
PROGRAM(list_empty, list_skip)
