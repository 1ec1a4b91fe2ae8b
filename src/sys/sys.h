/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf(2), perf_event_open(2) and the other calls that end at objects. cmds.def lists the commands,
 * one file an object kind holds their handlers. All results: 0/positive or -errno, the errno
 * Linux 6.18 gives. Thread-safe.
 */
#ifndef INLAY_SYS_SYS_H
#define INLAY_SYS_SYS_H

#include "object/instance.h"
#include "sys/user_mem.h"

/* Once an engine, after inlay_init() and once it has descriptors (inlay->fds): the machine's BTF
 * becomes object 1. */
int sys_init(struct inlay *inlay);
/* Gives back what sys_init took. Descriptors are still there. */
void sys_fini(struct inlay *inlay);

/* bpf(2) for a caller whose memory is um; attr: size bytes there. */
long sys_bpf(struct inlay *inlay, const struct user_mem *um, int cmd, u64 attr, u32 size);

/* perf_event_open(2), as far as struct perf_event goes: EOPNOTSUPP for any other event. */
long sys_perf_event_open(struct inlay *inlay, const struct user_mem *um, u64 attr, int pid, int cpu,
			 int group_fd, unsigned long flags);

/* pidfd_open(2) of a simulated task. */
long sys_pidfd_open(struct inlay *inlay, int tid, unsigned int flags);

/* ioctl(2) on an engine's descriptor. EBADF, EINVAL not the engine's, ENOTTY. */
long sys_ioctl(struct inlay *inlay, int fd, unsigned long req, unsigned long arg);

/*
 * May [off, off + len) of fd be mapped with prot and flags (PROT_*, MAP_*)? Judges as Linux for
 * that object and prepares its memory. The caller holds inlay->lock until it has mapped, so that a
 * map is not frozen in between. 0 or -errno.
 */
int sys_mmap_check(struct inlay *inlay, int fd, struct obj *obj, u64 off, u64 len, int prot,
		   int flags);

/* Name of the command ("MAP_CREATE"), NULL: no such number. */
const char *sys_cmd_name(int cmd);

#endif
