/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the simulated machine. */
#ifndef INLAY_ENV_ENV_INT_H
#define INLAY_ENV_ENV_INT_H

#include <pthread.h>

#include "env/env.h"
#include "rcu/rcu.h"

#define ENV_TID_BUCKETS 4096 /* power of two */

struct env_vcpu {
	u32 id;
	struct env_task *current; /* reference held; never NULL */
	struct env_task *idle;	  /* reference held */
	u64 rng;		  /* splitmix64 state */
};

/* Byte offsets inside task_struct, from the machine's BTF by name; U32_MAX: the BTF has no such field. */
struct env_task_layout {
	u32 size;
	u32 pid, tgid, comm, prio, state, on_cpu, cpu, real_parent, group_leader, cgroups;
};

/* css_set, cgroup and kernfs_node of one cgroup id, in one block. */
struct env_cgroup {
	u64 id;
	struct env_cgroup *next;
	char *css_set; /* what task_struct.cgroups points to; inside mem */
	char mem[];
};

struct env {
	struct btf *btf;
	u32 nr_cpus;
	enum env_clock clock_kind;
	u64 clock_ns; /* ENV_CLOCK_MANUAL; atomic */
	struct log_sink log;
	void (*printk)(void *ctx, u64 ts_ns, u32 cpu, s32 tid, const char *comm, const char *text);
	void *printk_ctx;

	struct env_task_layout task;
	u32 css_set_size, css_set_cgroup, cgroup_size, cgroup_kn, kn_size, kn_id;

	pthread_mutex_t lock; /* guards by_tid, cgroups, hooks and their client lists; not taken by running programs */
	struct env_task *by_tid[ENV_TID_BUCKETS];
	u32 nr_tasks;
	struct env_cgroup *cgroups;
	struct env_hook *hooks;
	void (*task_free)(struct env_task *task);
	struct env_vcpu *vcpus; /* nr_cpus */
};

/* A task block: what env_task_of() needs, then the object. */
int env_task_layout_init(struct env *env);
struct env_task *env_task_alloc(struct env *env, s32 tid, s32 tgid, const char *comm);
void env_tasks_fini(struct env *env);
void env_hooks_fini(struct env *env);

#endif
