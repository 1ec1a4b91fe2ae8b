// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// Calls that are inlined, a kind each.
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} numbers SEC(".maps");

static __u64 total;

static int add(__u32 i, void *ctx)
{
	total += i;
	return 0;
}

SEC("raw_tp/loops")
int loops(struct bpf_raw_tracepoint_args *ctx)
{
	total = 0;
	bpf_loop(10, add, 0, 0);
	return total;
}

SEC("raw_tp/looks_up")
int looks_up(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 key = 2;
	__u64 *value = bpf_map_lookup_elem(&numbers, &key);

	if (!value)
		return -1;
	*value += 5;
	return bpf_get_smp_processor_id() > 100000 ? -2 : *value;
}
