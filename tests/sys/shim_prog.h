/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What shim_prog.bpf.c reports. */
#ifndef INLAY_TESTS_SYS_SHIM_PROG_H
#define INLAY_TESTS_SYS_SHIM_PROG_H

struct shim_event {
	char comm[16];
	unsigned long long delta_ns;
	int pid;
	unsigned int cpu;
};

#endif
