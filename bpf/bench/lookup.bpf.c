// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Lookups of keys that are there, one after the other, in a hash map named in the program: the work of the kernel
 * selftests' bpf-hashmap-lookup. Word 0 of a key is its number, counted from 1.
 */
#include "bench_bpf.h"

#define KEY_WORDS 256 /* the selftests' limit: 1024 bytes */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1000);
	__uint(key_size, 4);
	__uint(value_size, 8);
} table SEC(".maps");

__u32 key[KEY_WORDS];
const volatile __u32 nr_entries = 500;
const volatile __u32 nr_loops = 1000000;

struct loop {
	__u64 hits, sum;
};

static long lookup_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;
	__u64 *value;

	key[0] = index + 1;
	value = bpf_map_lookup_elem(&table, key);
	if (!value)
		return 1;
	l->sum += *value;
	l->hits++;
	return 0;
}

static long lookup_pass(__u32 index, void *ctx)
{
	bpf_loop(nr_entries, lookup_each, ctx, 0);
	return 0;
}

static long empty_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;

	key[0] = index + 1;
	l->hits++;
	return 0;
}

static long empty_pass(__u32 index, void *ctx)
{
	bpf_loop(nr_entries, empty_each, ctx, 0);
	return 0;
}

SEC("raw_tp")
int lookup_get(void *ctx)
{
	struct loop l = {};

	bpf_loop(nr_loops / nr_entries, lookup_pass, &l, 0);
	count_add(l.hits, 0, l.sum, 0, 0);
	return 0;
}

SEC("raw_tp")
int lookup_empty(void *ctx)
{
	struct loop l = {};

	bpf_loop(nr_loops / nr_entries, empty_pass, &l, 0);
	count_add(l.hits, 0, l.sum, 0, 0);
	return 0;
}
