// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Programs that do nothing: what entering and leaving one costs. */
#include "bench_bpf.h"

SEC("raw_tp")
int entry_raw(void *ctx)
{
	return 0;
}

SEC("socket")
int entry_socket(void *ctx)
{
	return 0;
}
