// SPDX-License-Identifier: BSD-2-Clause
// An engine's common state.
#include "object/instance.h"

#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"
#include "env/env.h"
#include "rcu/rcu.h"

int inlay_init(struct inlay *inlay, struct env *env, struct btf *vmlinux, const struct log_sink *log)
{
	memset(inlay, 0, sizeof(*inlay));
	inlay->env = env;
	inlay->vmlinux = vmlinux;
	if (log)
		inlay->log = *log;
	pthread_mutex_init(&inlay->lock, NULL);
	pthread_mutex_init(&inlay->run_lock, NULL);
	return rcu_init();
}

void inlay_fini(struct inlay *inlay)
{
	int kind;

	rcu_barrier_all();
	rcu_barrier_all(); /* what the first round freed may have deferred more: a program its maps */
	for (kind = 0; kind < OBJ_KINDS; kind++)
		free(inlay->table[kind].slot);
	btf_put(inlay->vmlinux);
	pthread_mutex_destroy(&inlay->run_lock);
	pthread_mutex_destroy(&inlay->lock);
}
