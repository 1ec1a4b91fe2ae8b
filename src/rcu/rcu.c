// SPDX-License-Identifier: BSD-2-Clause
// Read sections and deferred free over liburcu-memb: the worker, threads that come and go, and
// fork.
#include "rcu/rcu.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <urcu/list.h>

#include "rcu/objcache.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static int init_err;
static __thread bool registered;
static long nr_deferred; /* atomic: callbacks that have not returned yet */

char rcu_tsan_readers;
bool rcu_fenced = true;
static char tsan_callbacks; /* released when a callback returns, acquired by the barrier */

/*
 * liburcu keeps its registry to itself, and in a forked child that list still names threads that
 * were not copied: one of them inside a read section would hold up every grace period for ever. So
 * the registered threads are listed here too and the child takes the others out.
 */
struct thread {
	struct thread *prev, *next;
	struct urcu_reader *reader;
};

static __thread struct thread self;
static struct thread *threads; /* guarded by threads_lock */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
/* Read-held by whoever may hold liburcu's internal locks, write-held across fork, so that the child
 * finds them free. */
static pthread_rwlock_t fork_lock = PTHREAD_RWLOCK_INITIALIZER;
static __thread bool forked_in_section;

static void list_self(void)
{
	self.reader = &URCU_TLS(urcu_memb_reader);
	pthread_mutex_lock(&threads_lock);
	self.prev = NULL;
	self.next = threads;
	if (threads)
		threads->prev = &self;
	threads = &self;
	pthread_mutex_unlock(&threads_lock);
}

static void unlist_self(void)
{
	pthread_mutex_lock(&threads_lock);
	if (self.prev)
		self.prev->next = self.next;
	else
		threads = self.next;
	if (self.next)
		self.next->prev = self.prev;
	pthread_mutex_unlock(&threads_lock);
}

static void thread_end(void *unused)
{
	sigset_t all, old;

	if (!registered)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_rwlock_rdlock(&fork_lock);
	objcache_thread_end();
	unlist_self();
	urcu_memb_unregister_thread();
	registered = false;
	pthread_rwlock_unlock(&fork_lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void fork_prepare(void)
{
	/* Inside a read section the lock could wait for a grace period that waits for this very
	 * section. */
	forked_in_section = urcu_memb_read_ongoing();
	if (forked_in_section)
		return;
	pthread_rwlock_wrlock(&fork_lock);
	pthread_mutex_lock(&threads_lock);
	urcu_memb_call_rcu_before_fork();
}

static void fork_parent(void)
{
	if (forked_in_section)
		return;
	urcu_memb_call_rcu_after_fork_parent();
	pthread_mutex_unlock(&threads_lock);
	pthread_rwlock_unlock(&fork_lock);
}

static void fork_child(void)
{
	static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;
	struct thread *t;

	if (forked_in_section)
		return;
	for (t = threads; t; t = t->next)
		if (t != &self)
			cds_list_del(&t->reader->node);
	self.prev = self.next = NULL;
	threads = registered ? &self : NULL;
	pthread_mutex_unlock(&threads_lock);
	fork_lock = fresh; /* its owner was the parent's thread: unlocking by another thread id is
			      not defined */
	urcu_memb_call_rcu_after_fork_child();
}

static void init(void)
{
	sigset_t all, old;

	init_err = -pthread_key_create(&thread_key, thread_end);
	if (init_err)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all,
			&old); /* the worker inherits the mask: no handler ever runs on it */
	if (!urcu_memb_get_default_call_rcu_data())
		init_err = -ENOMEM;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!init_err)
		init_err = -pthread_atfork(fork_prepare, fork_parent, fork_child);
}

int rcu_init(void)
{
	pthread_once(&once, init);
	/* liburcu's constructor has asked the kernel */
	__atomic_store_n(&rcu_fenced, !urcu_memb_has_sys_membarrier, __ATOMIC_RELAXED);
	return init_err;
}

void rcu_thread_enter(void)
{
	sigset_t all, old;

	if (likely(registered))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_rwlock_rdlock(&fork_lock);
	urcu_memb_register_thread();
	list_self();
	objcache_thread_enter();
	registered = true;
	pthread_setspecific(thread_key, &registered);
	pthread_rwlock_unlock(&fork_lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void rcu_wake(void)
{
#ifdef CONFIG_RCU_TLS
	int saved = errno; /* a program runs inside signal handlers, too */

	urcu_common_wake_up_gp(&urcu_memb_gp);
	errno = saved;
#endif
}

static void run_cb(struct rcu_head *head)
{
	struct rcu_cb *cb = container_of_(head, struct rcu_cb, head);

	registered = true; /* the worker: liburcu has registered it */
	rcu_tsan_acquire(&rcu_tsan_readers);
	cb->fn(cb);
	rcu_tsan_release(&tsan_callbacks);
	__atomic_sub_fetch(&nr_deferred, 1, __ATOMIC_RELEASE);
}

void rcu_defer(struct rcu_cb *cb, void (*fn)(struct rcu_cb *cb))
{
	int saved = errno; /* a signal handler must not change it; waking the worker may */

	cb->fn = fn;
	rcu_thread_enter();
	__atomic_add_fetch(&nr_deferred, 1, __ATOMIC_RELAXED);
	rcu_tsan_release(&rcu_tsan_readers);
	urcu_memb_call_rcu(&cb->head, run_cb);
	errno = saved;
}

void rcu_wait(void)
{
	rcu_thread_enter();
	pthread_rwlock_rdlock(&fork_lock);
	urcu_memb_synchronize_rcu();
	pthread_rwlock_unlock(&fork_lock);
	rcu_tsan_acquire(&rcu_tsan_readers);
}

/* The worker takes callbacks in the order they were deferred: once this one runs, the earlier ones
 * have returned. */
struct barrier {
	struct rcu_head head;
	pthread_mutex_t lock;
	pthread_cond_t reached_cond;
	bool reached; /* lock */
};

static void reach(struct rcu_head *head)
{
	struct barrier *b = container_of_(head, struct barrier, head);

	rcu_tsan_acquire(&rcu_tsan_readers);
	pthread_mutex_lock(&b->lock);
	b->reached = true;
	pthread_cond_signal(&b->reached_cond);
	pthread_mutex_unlock(&b->lock);
}

static void barrier(void)
{
	struct barrier b = {.lock = PTHREAD_MUTEX_INITIALIZER,
			    .reached_cond = PTHREAD_COND_INITIALIZER};

	rcu_tsan_release(&rcu_tsan_readers);
	urcu_memb_call_rcu(&b.head, reach);
	pthread_mutex_lock(&b.lock);
	while (!b.reached)
		pthread_cond_wait(&b.reached_cond, &b.lock);
	pthread_mutex_unlock(&b.lock);
	pthread_mutex_destroy(&b.lock);
	pthread_cond_destroy(&b.reached_cond);
}

void rcu_barrier_all(void)
{
	int round;

	rcu_thread_enter();
	for (round = 0; round < 8 && __atomic_load_n(&nr_deferred, __ATOMIC_ACQUIRE); round++)
		barrier();
	rcu_tsan_acquire(&tsan_callbacks);
}
