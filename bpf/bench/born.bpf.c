// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* First touch in the running kernel: the storage of every task that a process forks is made, and timed. */
#include "bench_bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} one SEC(".maps");

const volatile int tgid = 0; /* whose children */
__u32 ns[131072];	     /* a creation each, clock included */
__u64 clock_ns;		     /* two looks at the clock with nothing in between, summed */

SEC("tp_btf/sched_process_fork")
int born(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u64 t0, t1, t2, *value, at;

	if (parent->tgid != tgid)
		return 0;
	t0 = bpf_ktime_get_ns();
	t1 = bpf_ktime_get_ns();
	value = bpf_task_storage_get(&one, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	t2 = bpf_ktime_get_ns();
	if (!value) {
		__sync_fetch_and_add(&count.misses, 1);
		return 0;
	}
	*value = 1;
	__sync_fetch_and_add(&clock_ns, t1 - t0);
	at = __sync_fetch_and_add(&count.hits, 1);
	if (at < sizeof(ns) / sizeof(ns[0]))
		ns[at] = t2 - t1;
	return 0;
}
