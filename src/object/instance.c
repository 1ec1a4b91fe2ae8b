// SPDX-License-Identifier: BSD-2-Clause
// An engine's common state.
#include "object/instance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"
#include "env/env.h"
#include "rcu/rcu.h"

int inlay_init(struct inlay *inlay, struct env *env, struct btf *vmlinux, const struct log_sink *log)
{
	u32 cpu;

	memset(inlay, 0, sizeof(*inlay));
	inlay->env = env;
	inlay->vmlinux = vmlinux;
	if (log)
		inlay->log = *log;
	pthread_mutex_init(&inlay->lock, NULL);
	inlay->cpu_lock = calloc(env_nr_cpus(env), sizeof(*inlay->cpu_lock));
	if (!inlay->cpu_lock)
		return -ENOMEM;
	for (cpu = 0; cpu < env_nr_cpus(env); cpu++)
		pthread_mutex_init(&inlay->cpu_lock[cpu], NULL);
	inlay->nr_cpu_locks = env_nr_cpus(env);
	return rcu_init();
}

void inlay_fini(struct inlay *inlay)
{
	int kind;
	u32 cpu;

	rcu_barrier_all();
	rcu_barrier_all(); /* what the first round freed may have deferred more: a program its maps */
	for (kind = 0; kind < OBJ_KINDS; kind++)
		free(inlay->table[kind].slot);
	btf_put(inlay->vmlinux);
	for (cpu = 0; cpu < inlay->nr_cpu_locks; cpu++)
		pthread_mutex_destroy(&inlay->cpu_lock[cpu]);
	free(inlay->cpu_lock);
	pthread_mutex_destroy(&inlay->lock);
}

u32 inlay_cpu_take(struct inlay *inlay, u32 want)
{
	static __thread u32 last; /* of whichever instance: no more than a hint */
	u32 i, cpu = want;

	if (want == U32_MAX) {
		for (i = 0; i < inlay->nr_cpu_locks; i++) {
			cpu = (last + i) % inlay->nr_cpu_locks;
			if (!pthread_mutex_trylock(&inlay->cpu_lock[cpu]))
				return last = cpu;
		}
		cpu = last % inlay->nr_cpu_locks;
	}
	pthread_mutex_lock(&inlay->cpu_lock[cpu]);
	return cpu;
}

void inlay_cpu_give(struct inlay *inlay, u32 cpu)
{
	pthread_mutex_unlock(&inlay->cpu_lock[cpu]);
}

void inlay_interrupt(struct inlay *inlay)
{
	__atomic_add_fetch(&inlay->interrupts, 1, __ATOMIC_RELAXED);
}
