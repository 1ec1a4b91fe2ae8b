// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// Has a map of a type that inlay lacks.
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, 16); /* BPF_MAP_TYPE_CPUMAP */
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u32);
} odd_map SEC(".maps");

SEC("raw_tp/sched_wakeup")
int uses_odd_map(void *ctx)
{
	__u32 key = 0;

	return bpf_map_delete_elem(&odd_map, &key);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
