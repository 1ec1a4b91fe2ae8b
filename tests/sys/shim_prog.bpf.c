// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* One of each thing libbpf does for a CO-RE tracing object: typed tracepoints, local storage, both
 * rings, .rodata, .bss. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "shim_prog.h"

struct task_struct {
	int pid;
	int tgid;
	char comm[16];
} __attribute__((preserve_access_index));

const volatile unsigned long long min_ns = 0;
const volatile int only_pid = 0;
unsigned long long wakeups, switches, reserved;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, unsigned long long);
} start SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

static int enqueue(struct task_struct *p)
{
	unsigned long long *ts;

	if (!p->pid || (only_pid && p->pid != only_pid))
		return 0;
	wakeups++;
	ts = bpf_task_storage_get(&start, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (ts)
		*ts = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	return enqueue(p);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	return enqueue(p);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct shim_event event = {}, *rec;
	unsigned long long *ts;

	switches++;
	ts = bpf_task_storage_get(&start, next, 0, 0);
	if (!ts)
		return 0;
	event.delta_ns = bpf_ktime_get_ns() - *ts;
	if (event.delta_ns <= min_ns)
		return 0;
	event.pid = next->pid;
	event.cpu = bpf_get_smp_processor_id();
	bpf_probe_read_kernel_str(&event.comm, sizeof(event.comm), next->comm);
	bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &event, sizeof(event));
	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	if (rec) {
		*rec = event;
		reserved++;
		bpf_ringbuf_submit(rec, 0);
	}
	bpf_task_storage_delete(&start, next);
	return 0;
}

/* Tail calls from functions: their callers get the other program's result, or the function's own where there is none. */
int target(void *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__array(values, int(void *));
} progs SEC(".maps") = {.values = {[1] = (void *)&target}};

static __attribute__((noinline)) int leave(void *ctx, unsigned int i)
{
	int ret;

	bpf_tail_call(ctx, &progs, i);
	asm volatile("%0 = 5" : "=r"(ret));
	return ret;
}

SEC("raw_tp") int target(void *ctx)
{
	volatile char own[64];

	own[1] = 42;
	return own[1];
}

SEC("raw_tp") int call_away(void *ctx)
{
	volatile char own[64];
	int sum;

	own[3] = 7;
	sum = leave(ctx, 1) * 10000 + leave(ctx, 2) * 100;
	return sum + leave(ctx, 1) + own[3];
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
