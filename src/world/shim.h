/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libbpf against an engine. Our programs link a private copy of libbpf whose calls of libc that
 * reach the kernel are renamed (shim.syms) to the functions of shim.c; nothing else in the process
 * is diverted. Which kernel they mean is the calling thread's: an engine entered, or by default the
 * running one, to which everything passes through.
 *
 * Per process, libbpf remembers the features it probed and the number of CPUs: do not mix engines
 * that differ in these.
 */
#ifndef INLAY_WORLD_SHIM_H
#define INLAY_WORLD_SHIM_H

struct inlay;

#define SHIM_DEPTH 8

/* From here on libbpf's calls on this thread go to the engine (NULL: to the running kernel). Nests,
 * SHIM_DEPTH deep. */
void shim_enter(struct inlay *inlay);
/* Back to what it was before the last shim_enter(). */
void shim_leave(void);
/* NULL: the running kernel. */
struct inlay *shim_current(void);

#endif
