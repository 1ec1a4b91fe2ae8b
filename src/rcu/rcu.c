// SPDX-License-Identifier: BSD-2-Clause
// Read sections and deferred free over liburcu-memb.
#include "rcu/rcu.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static int init_err;
static __thread bool registered;

static void thread_end(void *unused)
{
	if (registered)
		urcu_memb_unregister_thread();
	registered = false;
}

static void init(void)
{
	sigset_t all, old;

	init_err = -pthread_key_create(&thread_key, thread_end);
	if (init_err)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* the worker inherits the mask: no handler ever runs on it */
	if (!urcu_memb_get_default_call_rcu_data())
		init_err = -ENOMEM;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!init_err)
		init_err = -pthread_atfork(urcu_memb_call_rcu_before_fork, urcu_memb_call_rcu_after_fork_parent,
					   urcu_memb_call_rcu_after_fork_child);
}

int rcu_init(void)
{
	pthread_once(&once, init);
	return init_err;
}

void rcu_thread_enter(void)
{
	sigset_t all, old;

	if (likely(registered))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	urcu_memb_register_thread();
	registered = true;
	pthread_setspecific(thread_key, &registered);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void run_cb(struct rcu_head *head)
{
	struct rcu_cb *cb = container_of_(head, struct rcu_cb, head);

	cb->fn(cb);
}

void rcu_defer(struct rcu_cb *cb, void (*fn)(struct rcu_cb *cb))
{
	cb->fn = fn;
	rcu_thread_enter();
	urcu_memb_call_rcu(&cb->head, run_cb);
}

void rcu_wait(void)
{
	rcu_thread_enter();
	urcu_memb_synchronize_rcu();
}

void rcu_barrier_all(void)
{
	rcu_thread_enter();
	urcu_memb_barrier();
}
