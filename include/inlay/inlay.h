/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inlay: Linux BPF in user space, behind the kernel's own contract.
 *
 * An engine (struct inlay) is one simulated machine and one bpf(2). Several may exist in a process;
 * all functions are thread-safe for different engines, and for one engine except inlay_destroy().
 * Nothing here prints or exits; reasons go to the caller's log.
 */
#ifndef INLAY_INLAY_H
#define INLAY_INLAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct inlay;
union bpf_attr;
struct perf_event_attr;

enum inlay_log_level {
	INLAY_LOG_ERR,
	INLAY_LOG_WARN,
	INLAY_LOG_INFO,
	INLAY_LOG_DEBUG,
};

enum inlay_clock {
	INLAY_CLOCK_REAL,   /* the host's CLOCK_MONOTONIC */
	INLAY_CLOCK_MANUAL, /* stands until the embedder moves it: a recording's clock */
};

/* Zero means the default for every field. Grows at its end; size says how much of it the caller
 * knows. */
struct inlay_opts {
	size_t size;	  /* sizeof(struct inlay_opts) */
	uint32_t nr_cpus; /* simulated CPUs, 1..4096; 0: as many as the host has */
	enum inlay_clock clock;
	uint64_t seed;	 /* of bpf_get_prandom_u32() and friends */
	const void *btf; /* types of the simulated kernel, raw BTF, copied; NULL: inlay's built-in
			    model */
	size_t btf_size; /* bytes */
	/* one line without a newline, valid during the call; NULL: dropped */
	void (*log)(void *ctx, enum inlay_log_level level, const char *text);
	void *log_ctx;
	/* text of bpf_printk() without its last newline, with the clock, CPU and task it came from;
	 * NULL: dropped */
	void (*printk)(void *ctx, uint64_t ts_ns, uint32_t cpu, int32_t tid, const char *comm,
		       const char *text);
	void *printk_ctx;
	int interp; /* non-zero: never compile, interpret */
};

/*
 * A new engine in *ret, to be given back with inlay_destroy(). opts may be NULL.
 * 0 or -errno: EINVAL an option out of range or BTF that is none, ENOENT the BTF lacks a type the
 * machine is made of, ENOMEM, EMFILE …; the reason is in the log.
 */
int inlay_create(const struct inlay_opts *opts, struct inlay **ret);

/* Takes NULL. Descriptors still open stay valid for close() only. No other thread may be inside the
 * engine. */
void inlay_destroy(struct inlay *inlay);

/*
 * bpf(2): commands, structures, flags, results and errno of Linux 6.18. attr: size bytes of the
 * caller's memory. The result of the command (descriptors are real, close-on-exec ones), or -errno.
 */
long inlay_bpf(struct inlay *inlay, int cmd, union bpf_attr *attr, unsigned int size);

/*
 * perf_event_open(2) for software BPF_OUTPUT events of one simulated CPU (pid -1, cpu >= 0,
 * group_fd -1). A descriptor or -errno.
 */
long inlay_perf_event_open(struct inlay *inlay, struct perf_event_attr *attr, int pid, int cpu,
			   int group_fd, unsigned long flags);

/* ioctl(2) on a descriptor of the engine (PERF_EVENT_IOC_*). Result or -errno (EBADF, ENOTTY: not
 * the engine's). */
long inlay_ioctl(struct inlay *inlay, int fd, unsigned long request, unsigned long arg);

/*
 * mmap(2) of a descriptor of the engine: addr, len, prot, flags and off as there. The address, or
 * -errno. Plain mmap() of the descriptor maps the same pages where an object always has memory
 * (maps); this one also judges as Linux would and gives perf events their ring.
 */
long inlay_mmap(struct inlay *inlay, void *addr, size_t len, int prot, int flags, int fd,
		int64_t off);

/*
 * pidfd_open(2) for a task of the simulated machine: the key of task storage in bpf(2). A
 * descriptor or -errno (ESRCH no such task, EINVAL tid < 1 or flags).
 */
long inlay_pidfd_open(struct inlay *inlay, int tid, unsigned int flags);

#ifdef __cplusplus
}
#endif

#endif
