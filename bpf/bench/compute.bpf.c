// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* The computations of compute.h as programs: a run is `rounds` calls of one. */
#include "bench_bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u64);
} cells SEC(".maps");

#define COMPUTE_CALL()	  bpf_get_numa_node_id()
#define COMPUTE_CELL(at)  bpf_map_lookup_elem(&cells, &at)
#include "compute.h"

struct compute_data data;
const volatile __u32 rounds = 100;

struct loop {
	__u64 x;
};

#define ROW(name, text, pure)                                            \
	static long name##_each(__u32 index, void *ctx)                  \
	{                                                                \
		struct loop *l = ctx;                                    \
                                                                         \
		l->x = compute_##name(&data, l->x + index);              \
		return 0;                                                \
	}                                                                \
                                                                         \
	SEC("raw_tp")                                                    \
	int compute_##name##_run(void *ctx)                              \
	{                                                                \
		struct loop l = { .x = count.base };                     \
                                                                         \
		bpf_loop(rounds, name##_each, &l, 0);                    \
		count_add(rounds, 0, 0, 0, 0);                           \
		count.sum = l.x;                                         \
		return 0;                                                \
	}

COMPUTE_ROWS(ROW)
