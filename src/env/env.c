// SPDX-License-Identifier: BSD-2-Clause
// The machine itself: vCPUs, clock, random numbers, and which thread runs which vCPU.
#include "env/env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/probe.h"
#include "btf/btf.h"
#include "env/env_int.h"

__thread struct env_tls env_tls __attribute__((tls_model("initial-exec")));

static int init_vcpus(struct env *env, u64 seed)
{
	char comm[ENV_COMM_LEN + 16];
	u32 i;

	env->vcpus = calloc(env->nr_cpus, sizeof(*env->vcpus));
	if (!env->vcpus)
		return -ENOMEM;
	for (i = 0; i < env->nr_cpus; i++) {
		struct env_vcpu *vcpu = &env->vcpus[i];

		vcpu->id = i;
		vcpu->rng = seed + i * 0x9e3779b97f4a7c15ULL;
		snprintf(comm, sizeof(comm), "swapper/%u", i);
		vcpu->idle = env_task_alloc(env, 0, 0, comm);
		if (!vcpu->idle)
			return -ENOMEM;
		vcpu->idle->idle = true;
		env_task_set_cpu(vcpu->idle, i);
		env_task_set_on_cpu(vcpu->idle, true);
		env_task_set_prio(vcpu->idle, 120);
		env_task_get(vcpu->idle);
		vcpu->current = vcpu->idle;
	}
	return 0;
}

_Static_assert(sizeof(struct env_tls) <= 64, "one cache line: compiled code reads it through one base");

int env_create(const struct env_opts *opts, struct env **ret_env)
{
	struct env *env;
	int err;

	if (!opts->nr_cpus || opts->nr_cpus > ENV_MAX_CPUS || !opts->btf)
		return -EINVAL;
	err = rcu_init();
	if (!err)
		err = probe_init();
	if (err)
		return err;
	env = calloc(1, sizeof(*env));
	if (!env)
		return -ENOMEM;
	pthread_mutex_init(&env->lock, NULL);
	env->btf = btf_get(opts->btf);
	env->nr_cpus = opts->nr_cpus;
	env->clock_kind = opts->clock;
	env->log = opts->log;
	env->printk = opts->printk;
	env->printk_ctx = opts->printk_ctx;
	err = env_task_layout_init(env);
	if (!err)
		err = init_vcpus(env, opts->seed);
	if (err) {
		env_destroy(env);
		return err;
	}
	*ret_env = env;
	return 0;
}

void env_destroy(struct env *env)
{
	u32 i;

	if (!env)
		return;
	if (env_tls.env == env)
		env_leave(env);
	for (i = 0; env->vcpus && i < env->nr_cpus; i++) {
		if (env->vcpus[i].current)
			env_task_put(env->vcpus[i].current);
		if (env->vcpus[i].idle)
			env_task_exit(env->vcpus[i].idle);
	}
	env_tasks_fini(env);
	env_hooks_fini(env);
	rcu_barrier_all();
	free(env->vcpus);
	btf_put(env->btf);
	pthread_mutex_destroy(&env->lock);
	free(env);
}

u32 env_nr_cpus(const struct env *env)
{
	return env->nr_cpus;
}

struct btf *env_btf(const struct env *env)
{
	return env->btf;
}

enum env_clock env_clock_kind(const struct env *env)
{
	return env->clock_kind;
}

u64 env_clock_ns(const struct env *env)
{
	struct timespec ts;

	if (env->clock_kind == ENV_CLOCK_MANUAL)
		return __atomic_load_n(&env->clock_ns, __ATOMIC_RELAXED);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

void env_clock_set(struct env *env, u64 ns)
{
	if (ns > env->clock_ns)
		__atomic_store_n(&env->clock_ns, ns, __ATOMIC_RELAXED);
}

/* splitmix64 (Steele, Lea, Flood 2014) */
const struct env_prandom env_prandom = {
	.off = offsetof(struct env_vcpu, rng),
	.add = 0x9e3779b97f4a7c15ULL,
	.mul1 = 0xbf58476d1ce4e5b9ULL,
	.mul2 = 0x94d049bb133111ebULL,
};

u32 env_prandom_u32(struct env *env)
{
	struct env_vcpu *vcpu = env_tls.vcpu ? env_tls.vcpu : &env->vcpus[0];
	u64 z = vcpu->rng += env_prandom.add;

	z = (z ^ (z >> 30)) * env_prandom.mul1;
	z = (z ^ (z >> 27)) * env_prandom.mul2;
	return (z ^ (z >> 31)) >> 32;
}

void env_printk(struct env *env, const char *text)
{
	struct env_task *task = env_tls.current;

	if (env->printk)
		env->printk(env->printk_ctx, env_clock_ns(env), env_tls.cpu, task ? task->tid : 0,
			    task ? env_task_comm(task) : "", text);
}

void env_enter(struct env *env, u32 cpu, struct env_task *task)
{
	rcu_thread_enter();
	if (task)
		env_set_current(env, cpu, task);
	env_tls.env = env;
	env_tls.vcpu = &env->vcpus[cpu];
	env_tls.cpu = cpu;
	env_tls.current = env->vcpus[cpu].current;
}

void env_set_current(struct env *env, u32 cpu, struct env_task *task)
{
	struct env_vcpu *vcpu = &env->vcpus[cpu];
	struct env_task *old = vcpu->current;

	if (old == task)
		return;
	env_task_get(task);
	vcpu->current = task;
	if (env_tls.vcpu == vcpu)
		env_tls.current = task;
	env_task_put(old);
}

struct env_task *env_current_of(struct env *env, u32 cpu)
{
	return env->vcpus[cpu].current;
}

void env_leave(struct env *env)
{
	env_tls.current = NULL;
	env_tls.vcpu = NULL;
	env_tls.env = NULL;
	env_tls.cpu = 0;
}
