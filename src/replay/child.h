/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child process for code that may crash on what it reads. It is a fork with everything taken
 * away: one pipe to write its results into, one descriptor to read the recording from, no other
 * files, limited memory and CPU time, and a system call filter that leaves it reading, writing and
 * memory. Whatever happens to it, the parent sees only a pipe that ends early, or one that stays
 * silent.
 */
#ifndef INLAY_REPLAY_CHILD_H
#define INLAY_REPLAY_CHILD_H

#include <sys/types.h>

#include "base/strbuf.h"
#include "base/types.h"

struct rec_child {
	pid_t pid;  /* 0: none */
	int fd;	    /* read end of its pipe */
	bool hung;  /* it was ended because it made no progress */
	int status; /* as waitpid(2) gives it, once pid is 0 again */
};

struct rec_child_job {
	/* Runs in the child: reads in_fd, writes out_fd; what it returns is the exit status. */
	int (*run)(int in_fd, int out_fd, void *arg);
	void *arg;
	int in_fd; /* -1: none; has its own file offset there only if the caller opened it so */
	u64 max_memory;	 /* bytes beyond what the process has mapped now */
	u32 cpu_seconds; /* most CPU time it may take in all; 0: any */
};

/* 0 or -errno. */
int rec_child_start(struct rec_child *c, const struct rec_child_job *job);

/* cpu_seconds: most CPU time it may take without writing anything. Bytes read: n, or fewer at the end of the pipe; -ETIMEDOUT: it made no progress and was ended;
 * -errno. */
ssize_t rec_child_read(struct rec_child *c, void *buf, size_t n, u32 cpu_seconds);

/* Ends it, if it still runs. Takes one never started (all zero). */
void rec_child_stop(struct rec_child *c);

/* Waits for one whose pipe has ended; 0: it ended well; otherwise how it ended is appended to why.
 */
int rec_child_reap(struct rec_child *c, struct strbuf *why);

/* For the child: all of buf, or false. */
bool rec_child_write(int fd, const void *buf, size_t n);

#endif
