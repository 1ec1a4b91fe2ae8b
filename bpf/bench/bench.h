/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * What the benchmark's BPF programs and the command share: how many iterations a run has, and the counters a run adds
 * to. BPF side: the types come from bench_bpf.h.
 */
#ifndef INLAY_BPF_BENCH_H
#define INLAY_BPF_BENCH_H

#define BENCH_LOOPS    10000 /* iterations of a run: the kernel selftests' */
#define BENCH_MAX_MAPS 1000
#define BENCH_FULL     4194304 /* entries of the control's hash map */

/* In .bss; a run adds to them once, at its end. */
struct bench_count {
	__u64 hits;	 /* lookups made */
	__u64 important; /* … of map 0 */
	__u64 sum;	 /* of the values read */
	__u64 want;	 /* what sum must be, where only the program knows (keys drawn at random) */
	__u64 misses;	 /* lookups that found nothing; operations that failed */
	__u64 base;	 /* input: first key, or what else a program needs */
};

#endif
