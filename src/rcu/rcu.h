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

static inline void rcu_enter(void)
{
	urcu_memb_read_lock();
}

static inline void rcu_leave(void)
{
	rcu_tsan_release(&rcu_tsan_readers);
	urcu_memb_read_unlock();
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
