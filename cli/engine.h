/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which bpf(2) the commands' libbpf talks to: the running kernel's, or that of an engine in this
 * process. Between cli_engine_enter() and cli_engine_leave() every libbpf call of the thread goes
 * to the engine; everything else of a command is the same for both.
 */
#ifndef INLAY_CLI_ENGINE_H
#define INLAY_CLI_ENGINE_H

#include "opt.h"

struct inlay;

struct cli_engine {
	const char *name;    /* "user", "kernel" */
	struct inlay *inlay; /* NULL: the kernel */
	void *btf;	     /* raw types given with --btf, or NULL */
	size_t btf_size;
	bool threads_hidden;  /* some thread had no pidfd: an old kernel */
	const char *btf_path; /* the same as a path, for libbpf's relocations on the kernel engine;
				 or NULL */
};

struct cli_engine_opts {
	u32 nr_cpus;	   /* 0: the machine's */
	bool manual_clock; /* a recording's */
	/* bpf_printk() text; NULL: dropped */
	void (*printk)(void *ctx, u64 ts_ns, u32 cpu, s32 tid, const char *comm, const char *text);
	void *printk_ctx;
	const char *btf; /* types to use instead of the command line's; NULL */
};

/*
 * The engine the command line names, else `def`. opts may be NULL. CLI_OK, or the exit status after
 * the reason went to standard error.
 */
int cli_engine_create(const struct cli_globals *g, const char *def,
		      const struct cli_engine_opts *opts, struct cli_engine **ret_engine);
void cli_engine_destroy(struct cli_engine *engine); /* takes NULL */

void cli_engine_enter(struct cli_engine *engine);
void cli_engine_leave(struct cli_engine *engine);

/* A live task, as the engine's machine sees it. */
struct cli_task {
	s32 tid, tgid; /* tgid -1: unknown */
	s32 cpu;       /* last known; -1: unknown */
	bool runnable; /* false: it sleeps; true also where that cannot be told */
	u64 cgroup_id; /* 0: unknown, or not asked for (cli_task_cgroup()) */
	char comm[16];
};

/* Calls fn for every live task but idle ones until it returns non-zero, which is returned. */
int cli_engine_each_task(struct cli_engine *engine,
			 int (*fn)(const struct cli_task *task, void *ctx), void *ctx);

/* The id of the cgroup a task is in; 0: unknown. */
u64 cli_engine_cgroup(struct cli_engine *engine, const struct cli_task *task);

/* CPU time of a task of the running kernel, ns; U64_MAX: unknown. */
u64 cli_engine_ran_ns(struct cli_engine *engine, s32 tid);

/* A descriptor that stands for the task: the key of task storage; or -errno. */
int cli_engine_pidfd(struct cli_engine *engine, s32 tid);

/*
 * Upper bounds in ns of half, and of 99 %, of a program's runs. 0, or -EOPNOTSUPP: the engine does
 * not know.
 */
int cli_engine_run_quantiles(struct cli_engine *engine, int prog_fd, u64 *ret_p50, u64 *ret_p99);

/*
 * Starts collecting libbpf's warnings (at most 64 KiB of text); with verbose they also go to
 * standard error at once.
 */
void cli_libbpf_log(bool verbose);
/* What was collected since the last call of cli_libbpf_log_reset(); never NULL. */
const char *cli_libbpf_text(void);
void cli_libbpf_log_reset(void);

#endif
