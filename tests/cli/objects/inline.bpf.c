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

/* What the loader settles before the program runs. */
const volatile __u32 ways = 10;
const volatile __u32 first = 7, second = 9;
const volatile __u64 wide = 0x123456789abcULL;
const volatile bool never = false;

SEC("raw_tp/settled")
int settled(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 n = ctx->args[0];

	if (never)
		n = bpf_get_prandom_u32();
	return n % ways + n / ways * 100 + (wide >> 44) * 10000;
}

SEC("raw_tp/one_of")
int one_of(struct bpf_raw_tracepoint_args *ctx)
{
	const volatile __u32 *p = &first;

	if (ctx->args[0] & 1)
		p = &second;
	return *p;
}

SEC("raw_tp/no_rounds")
int no_rounds(struct bpf_raw_tracepoint_args *ctx)
{
	total = 3;
	bpf_loop(0, add, 0, 0);
	return total;
}

static int double_it(__u32 i, void *ctx)
{
	total *= 2;
	return 0;
}

SEC("raw_tp/some_rounds")
int some_rounds(struct bpf_raw_tracepoint_args *ctx)
{
	total = 3;
	bpf_loop(0, add, 0, 0);
	bpf_loop(2, double_it, 0, 0);
	return total;
}
