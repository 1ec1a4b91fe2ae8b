/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read sections, grace periods and deferred free, over liburcu (memb flavour).
 *
 * Read sections nest and cost a few instructions. A thread must have called rcu_thread_enter() once before its first
 * read section (env_enter() does it); signal handlers may enter read sections on threads that did.
 */
#ifndef INLAY_RCU_RCU_H
#define INLAY_RCU_RCU_H

#include <urcu/urcu-memb.h>

#include "base/types.h"

/* Embedded in what is to be freed later. */
struct rcu_cb {
	struct rcu_head head;
	void (*fn)(struct rcu_cb *cb);
};

/* Once a process (idempotent, thread-safe): starts the call_rcu worker with signals blocked, installs fork hooks. 0/-errno. */
int rcu_init(void);

/* Registers the calling thread (idempotent; signals are blocked meanwhile); it is unregistered when it ends. */
void rcu_thread_enter(void);

static inline void rcu_enter(void)
{
	urcu_memb_read_lock();
}

static inline void rcu_leave(void)
{
	urcu_memb_read_unlock();
}

/* Runs fn(cb) after a grace period, on the worker thread. Not for signal handlers. */
void rcu_defer(struct rcu_cb *cb, void (*fn)(struct rcu_cb *cb));

/* Waits for a grace period. Not inside a read section. */
void rcu_wait(void);

/* Waits until every rcu_defer() made before has run. Not inside a read section. */
void rcu_barrier_all(void);

#endif
