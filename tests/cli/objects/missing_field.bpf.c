// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// Wants a field of task_struct that no kernel has.
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>

struct task_struct___odd {
	int pid;
	int shoe_size;
} __attribute__((preserve_access_index));

SEC("tp_btf/sched_wakeup")
int wants_shoe_size(__u64 *ctx)
{
	struct task_struct___odd *p = (void *)ctx[0];

	return p->shoe_size;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
