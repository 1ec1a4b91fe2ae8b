/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read sections, grace periods and deferred free, over liburcu (memb flavour).
 *
 * Guarantees
 *  1. What a read section reached through an acquire load stays valid memory until the section
 *     ends, if it is given back with rcu_defer() (or objcache_free_rcu()) after it was made
 *     unreachable.
 *  2. Read sections nest, cost a few instructions, and work in a signal handler that interrupted
 *     another one.
 *  3. rcu_defer() may be called anywhere a read section may be, signal handlers and read sections
 *     included.
 *  4. Callbacks run on one worker thread that blocks all signals, one after the other, outside any
 *     read section. They may call rcu_defer() again and take ordinary locks; they must not call
 *     rcu_wait() or rcu_barrier_all().
 *  5. After fork() in the child every other thread's read section is over: grace periods do not
 *     wait for threads that were not copied. (A child of a thread that forked inside a read
 *     section may only exec.)
 *
 * A thread must have called rcu_thread_enter() once before its first read section (env_enter() does
 * it).
 */
#ifndef INLAY_RCU_RCU_H
#define INLAY_RCU_RCU_H

/*
 * liburcu inlines its read side into code whose licence goes with the LGPL, as BSD-2-Clause does; otherwise each end of a
 * read section is a call through the PLT that looks up thread-local storage: 15 ns where the instructions take 1.
 */
#ifndef _LGPL_SOURCE
#define _LGPL_SOURCE
#endif
#include <urcu/config.h>
#ifdef CONFIG_RCU_TLS
/* Before liburcu declares it: the reader's state is found at a fixed offset from the thread pointer, with no call. */
#include <urcu/static/urcu-common.h>
extern __thread struct urcu_reader urcu_memb_reader __attribute__((tls_model("initial-exec")));
#endif
#include <urcu/urcu-memb.h>

#include "base/types.h"

/* The thread sanitizer does not see into liburcu: these tell it what a grace period orders. */
#if defined(__SANITIZE_THREAD__)
#define RCU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RCU_TSAN 1
#endif
#endif
#ifdef RCU_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define rcu_tsan_acquire(addr) __tsan_acquire(addr)
#define rcu_tsan_release(addr) __tsan_release(addr)
#else
#define rcu_tsan_acquire(addr) ((void)(addr))
#define rcu_tsan_release(addr) ((void)(addr))
#endif

extern char rcu_tsan_readers; /* released by read sections and rcu_defer(), acquired after a grace
				 period */

/* Embedded in what is to be freed later. */
struct rcu_cb {
	struct rcu_head head;
	void (*fn)(struct rcu_cb *cb);
};

/* Once a process (idempotent, thread-safe): starts the call_rcu worker with signals blocked,
 * installs fork hooks. 0/-errno. */
int rcu_init(void);

/* Registers the calling thread (idempotent; signals are blocked meanwhile); it is unregistered when
 * it ends. */
void rcu_thread_enter(void);

/* rcu_begin_outer()'s: readers need fences of their own. Set until rcu_init() knows better. */
extern bool rcu_fenced __attribute__((visibility("hidden")));
void rcu_wake(void); /* rcu_end_outer()'s: a grace period sleeps until this reader is out */

static inline void rcu_enter(void)
{
	urcu_memb_read_lock();
}

static inline void rcu_leave(void)
{
	rcu_tsan_release(&rcu_tsan_readers);
	urcu_memb_read_unlock();
}

/*
 * The same for an outermost section, in fewer instructions and without a load that waits for the store before it: true and
 * the section is open until rcu_end_outer(), or false and nothing was done (this thread is in a section already, or the
 * kernel has no membarrier(2)): rcu_enter() then. A word that counts no nesting means "in no section" to liburcu whatever
 * its phase bit says, so the end may store 0.
 */
static inline bool rcu_begin_outer(void)
{
#ifdef CONFIG_RCU_TLS
	if (unlikely(rcu_fenced || urcu_memb_reader.ctr & URCU_GP_CTR_NEST_MASK))
		return false;
	cmm_barrier();
	_CMM_STORE_SHARED(urcu_memb_reader.ctr, _CMM_LOAD_SHARED(urcu_memb_gp.ctr));
	cmm_barrier(); /* membarrier(2) on the writers' side makes it a full one */
	return true;
#else
	return false;
#endif
}

/* Ends it; true: the caller must rcu_wake() now. */
static inline bool rcu_end_outer(void)
{
#ifdef CONFIG_RCU_TLS
	rcu_tsan_release(&rcu_tsan_readers);
	cmm_barrier();
	_CMM_STORE_SHARED(urcu_memb_reader.ctr, 0);
	cmm_barrier();
	return unlikely(uatomic_read(&urcu_memb_gp.futex) == -1);
#else
	return false;
#endif
}

/* Runs fn(cb) after a grace period, on the worker thread. Async-signal-safe on a thread that
 * rcu_thread_enter() knows. */
void rcu_defer(struct rcu_cb *cb, void (*fn)(struct rcu_cb *cb));

/* Waits for a grace period. Not inside a read section. */
void rcu_wait(void);

/*
 * Waits until every rcu_defer() made before has run, and those its callbacks made, and theirs (to a
 * depth of 8). Not inside a read section.
 */
void rcu_barrier_all(void);

#endif
