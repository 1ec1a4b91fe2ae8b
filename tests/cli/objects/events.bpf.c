// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// What a user's own object looks like: counts switches by name, keeps a histogram of wake-up waits, prints, has globals.
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>

struct name {
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct name);
	__type(value, __u64);
} switches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} woken_at SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
} waits SEC(".maps"); /* index: decimal digits of the wait in us */

__u64 nr_wakeups, nr_new, nr_forks, nr_exits, nr_migrations;
int last_tid;

SEC("tp_btf/sched_switch")
int count_switch(__u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];
	struct name name = {};
	__u64 one = 1, *n, *ts, us;
	__u32 digits = 0;

	bpf_probe_read_kernel(name.comm, sizeof(name.comm), next->comm);
	n = bpf_map_lookup_elem(&switches, &name);
	if (n)
		(*n)++;
	else
		bpf_map_update_elem(&switches, &name, &one, BPF_ANY);
	last_tid = next->pid;
	ts = bpf_task_storage_get(&woken_at, next, 0, 0);
	if (!ts || !*ts)
		return 0;
	us = (bpf_ktime_get_ns() - *ts) / 1000;
	*ts = 0;
	for (int i = 0; i < 7 && us; i++) {
		us /= 10;
		digits++;
	}
	n = bpf_map_lookup_elem(&waits, &digits);
	if (n)
		(*n)++;
	return 0;
}

SEC("tp_btf/sched_wakeup")
int count_wakeup(__u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	__u64 *ts = bpf_task_storage_get(&woken_at, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (ts)
		*ts = bpf_ktime_get_ns();
	nr_wakeups++;
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int count_new(__u64 *ctx)
{
	nr_new++;
	return 0;
}

SEC("raw_tp/sched_process_fork")
int say_fork(struct bpf_raw_tracepoint_args *ctx)
{
	nr_forks++;
	/* computed, so that no register happens to hold them already */
	bpf_printk("fork number %d, %llu and %d", (int)nr_forks, nr_forks * 1000003ULL, 7 - (int)nr_forks);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int count_exit(void *ctx)
{
	nr_exits++;
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int count_migrate(__u64 *ctx)
{
	nr_migrations++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
