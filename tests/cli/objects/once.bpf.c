// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// Runs by itself: a raw tracepoint program that works on its arguments and counts its runs.
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>

enum colour { RED, GREEN = 5 };

struct state {
	__u32 runs;
	__s8 low;
	enum colour colour;
	bool yes;
	char text[8];
	__u16 list[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} states SEC(".maps");

SEC("raw_tp/sched_wakeup")
int sums(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 key = 0;
	struct state *s = bpf_map_lookup_elem(&states, &key);

	if (!s)
		return -1;
	s->runs++;
	s->low = -3;
	s->colour = GREEN;
	s->yes = true;
	__builtin_memcpy(s->text, "hello", 6);
	s->list[1] = 7;
	return ctx->args[0] + ctx->args[1];
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
