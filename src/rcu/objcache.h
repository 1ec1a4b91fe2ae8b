/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache of equal-sized objects that can be taken and given back in any context: programs, signal
 * handlers that interrupted a program, bpf(2), the call_rcu worker.
 *
 * Guarantees
 *  1. objcache_alloc(), objcache_free() and objcache_free_rcu() are async-signal-safe and lock-
 *     free: whoever is interrupted in the middle of one holds up nobody.
 *  2. Memory of an object stays readable until objcache_destroy(), also after it was given back: a
 *     reader that follows a stale pointer reads some object of this cache, never unmapped memory.
 *  3. objcache_free_rcu() recycles the object only after every read section that was open when it
 *     was called has ended. objcache_free() recycles at once: the caller's readers must cope with
 *     an object that changes under them.
 *  4. Objects start at 8 bytes past a multiple of the alignment asked for. One that is handed out for the first time is
 *     zeros, any other has in it what it had when it was given back.
 *  5. The first `first` objects cannot fail to be allocated for lack of memory (address space is
 *     taken at creation).
 *
 * How: objects are numbered; free ones hang on stacks. Each of the first 16 threads known to RCU has a magazine of its own
 * in every cache, a stack that takes no atomic operation, and one of objects that are to wait for a grace period. What does
 * not fit there, other threads, and handlers that interrupted an operation on it use lock-free stacks whose heads carry a
 * tag that changes with every push and pop, so that a head that went A, B, A is told apart. Memory comes in chunks, each
 * twice as large as the one before, straight from mmap(2), is made resident in steps, and is handed out in order once no
 * stack at hand has anything. Objects that wait for a grace period come from the magazines in batches and hang on more
 * stacks; one deferred callback a grace period recycles them all, a stack as a whole and untouched. A batch that never
 * gets full stays where it is: up to 31 objects a thread.
 */
#ifndef INLAY_RCU_OBJCACHE_H
#define INLAY_RCU_OBJCACHE_H

#include "base/types.h"

struct objcache;

/* size: bytes of an object; align: power of two >= 8. NULL: no memory, or sizes too large. */
struct objcache *objcache_create(u64 size, u32 align, u32 first);

/* Also takes NULL. Nobody may use the cache or a reader reach its objects any more; objects still
 * allocated go with it. */
void objcache_destroy(struct objcache *cache);

/* NULL: no memory. */
void *objcache_alloc(struct objcache *cache);
void objcache_free(struct objcache *cache, void *obj);
/* The calling thread is known to RCU (rcu_thread_enter()). */
void objcache_free_rcu(struct objcache *cache, void *obj);

/* Makes memory for the first objects resident (64 KiB at most). 0 or -ENOMEM. Outside programs, before the first object. */
int objcache_warm(struct objcache *cache);

/* Objects allocated and not given back; those that wait for a grace period may count. Exact when nobody
 * else is at work and rcu_barrier_all() has returned. Takes time: it counts the free ones. */
long objcache_live(const struct objcache *cache);
/* Different objects ever handed out: what the cache has taken of memory. */
u64 objcache_taken(const struct objcache *cache);

/* rcu.c's, for every thread that comes to be known to RCU and ends; idempotent; signals are blocked. */
void objcache_thread_enter(void);
void objcache_thread_end(void);

#endif
