/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/* What all benchmark programs include: types, helpers, the counters. */
#ifndef INLAY_BPF_BENCH_BPF_H
#define INLAY_BPF_BENCH_BPF_H

#include "../vmlinux_min.h"
#include <bpf/bpf_helpers.h>

#include "bench.h"

#define BPF_MAP_TYPE_ARRAY_OF_MAPS 12 /* <linux/bpf.h>'s numbers */
#define BPF_NOEXIST 1

struct bench_count count;

/* One atomic addition a counter and run, as the selftests do. */
static __always_inline void count_add(__u64 hits, __u64 important, __u64 sum, __u64 want, __u64 misses)
{
	__sync_fetch_and_add(&count.hits, hits);
	__sync_fetch_and_add(&count.important, important);
	__sync_fetch_and_add(&count.sum, sum);
	__sync_fetch_and_add(&count.want, want);
	__sync_fetch_and_add(&count.misses, misses);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
