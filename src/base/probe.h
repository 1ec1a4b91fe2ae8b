/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads memory that may not be there. Faults are found by program counter (a non-canonical address reports none), for
 * SIGSEGV and SIGBUS; faults of anybody else are passed on to whoever handled them before.
 */
#ifndef INLAY_BASE_PROBE_H
#define INLAY_BASE_PROBE_H

#include "base/types.h"

/* Installs the handlers once a process; thread-safe. 0 or -errno. */
int probe_init(void);

/* 0, or -EFAULT with dst[0..n) partly written. src may be any address. Async-signal-safe. */
int probe_read(void *dst, const void *src, size_t n);
int probe_write(void *dst, const void *src, size_t n);

/*
 * Copies up to n bytes including the NUL; the result is always terminated when n > 0.
 * Length with the NUL, or -EFAULT.
 */
long probe_read_str(char *dst, const void *src, size_t n);

/*
 * Another range of code (a JIT's) whose faults resume elsewhere: resume(pc, uc) changes uc and returns true if the fault
 * was its own. At most 8 ranges; 0 or -ENOSPC.
 */
int probe_add_range(const void *begin, const void *end, bool (*resume)(u64 pc, void *uc));

#endif
