// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Task storage found through an outer array of maps, in order or with map 0 in between: the work of the kernel
 * selftests' local-storage-cache-seq-get and -int-get. Every value found is read into a checksum.
 */
#include "bench_bpf.h"

struct storage {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, int);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, BENCH_MAX_MAPS);
	__type(key, int);
	__type(value, int);
	__array(values, struct storage);
} maps SEC(".maps");

const volatile __u32 num_maps = 1;
const volatile bool interleave = false;

struct loop {
	struct task_struct *task;
	__u64 hits, important, sum;
};

static const int zero = 0;

static __always_inline void get(int elem, struct loop *l)
{
	void *inner = bpf_map_lookup_elem(&maps, &elem);
	int *value;

	if (!inner)
		return;
	value = bpf_task_storage_get(inner, l->task, (void *)&zero, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (value)
		l->sum += *value;
	l->hits++;
	if (!elem)
		l->important++;
}

static long get_each(__u32 index, void *ctx)
{
	__u32 elem = index % num_maps;

	get(elem, ctx);
	if (interleave && elem % 3 == 0)
		get(0, ctx);
	return 0;
}

/* The same without the lookup in the storage. */
static __always_inline void skip(int elem, struct loop *l)
{
	void *inner = bpf_map_lookup_elem(&maps, &elem);

	if (!inner)
		return;
	l->hits++;
	if (!elem)
		l->important++;
}

static long skip_each(__u32 index, void *ctx)
{
	__u32 elem = index % num_maps;

	skip(elem, ctx);
	if (interleave && elem % 3 == 0)
		skip(0, ctx);
	return 0;
}

/* Gives map i the value i + 1. */
static long fill_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;
	int elem = index, *value;
	void *inner = bpf_map_lookup_elem(&maps, &elem);

	if (!inner)
		return 0;
	value = bpf_task_storage_get(inner, l->task, (void *)&zero, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!value)
		return 0;
	*value = elem + 1;
	l->hits++;
	return 0;
}

#define PROGRAM(name, fn, loops)                                     \
	SEC("raw_tp")                                                \
	int name(void *ctx)                                          \
	{                                                            \
		struct loop l = { .task = bpf_get_current_task_btf() }; \
                                                                     \
		bpf_loop(loops, fn, &l, 0);                          \
		count_add(l.hits, l.important, l.sum, 0, 0);         \
		return 0;                                            \
	}

PROGRAM(storage_get, get_each, BENCH_LOOPS)
PROGRAM(storage_empty, skip_each, BENCH_LOOPS)
PROGRAM(storage_fill, fill_each, num_maps)
