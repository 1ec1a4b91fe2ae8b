// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// A section no loader knows.
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>

SEC("coffee/brew")
int brews(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
