// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// One program that is fine and one that reads where it must not.
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>

SEC("raw_tp/sched_wakeup")
int fine(void *ctx)
{
	return 0;
}

SEC("raw_tp/sched_switch")
int reads_through_a_number(__u64 *ctx)
{
	__u64 *p = (void *)ctx[0];

	return *p; /* no pointer */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
