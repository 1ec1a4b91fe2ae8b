// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* One task storage map, named in the program: no outer map, no modulo. Also what single runs do (owners, first touch). */
#include "bench_bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} one SEC(".maps");

struct loop {
	struct task_struct *task;
	__u64 hits, sum;
};

static long direct_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;
	__u64 *value = bpf_task_storage_get(&one, l->task, 0, 0);

	if (value)
		l->sum += *value;
	l->hits++;
	return 0;
}

static long empty_each(__u32 index, void *ctx)
{
	struct loop *l = ctx;

	l->hits++;
	return 0;
}

SEC("raw_tp")
int direct_get(void *ctx)
{
	struct loop l = { .task = bpf_get_current_task_btf() };

	bpf_loop(BENCH_LOOPS, direct_each, &l, 0);
	count_add(l.hits, 0, l.sum, 0, 0);
	return 0;
}

SEC("raw_tp")
int direct_empty(void *ctx)
{
	struct loop l = { .task = bpf_get_current_task_btf() };

	bpf_loop(BENCH_LOOPS, empty_each, &l, 0);
	count_add(l.hits, 0, l.sum, 0, 0);
	return 0;
}

/* ---- a run each: current is another task each time ---- */

SEC("raw_tp")
int touch(void *ctx)
{
	__u64 *value = bpf_task_storage_get(&one, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!value)
		return 1;
	*value += 1;
	return 0;
}

SEC("raw_tp")
int owner_get(void *ctx)
{
	__u64 *value = bpf_task_storage_get(&one, bpf_get_current_task_btf(), 0, 0);

	return value ? *value : 0;
}

/* What both leave out. */
SEC("raw_tp")
int owner_empty(void *ctx)
{
	return bpf_get_current_task_btf() ? 1 : 0;
}
