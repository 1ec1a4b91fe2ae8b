/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linux's structure, rebuilt from its description: an owner's storage is 16 cache pointers and a list of its elements, new
 * ones at the head. A map has one of the 16 for its own while there are no more maps than that; later ones share.
 *
 * Lookup: the cache pointer, if it is this map's; else the list is walked and what is found put in the cache under the
 * storage's lock. Only that fills the cache: creation does not.
 *
 * Recursion guard, task kind: a counter for the thread that drives the vCPU. A program that runs on top of another one's
 * storage operation looks up without filling the cache, creates nothing (NULL) and deletes nothing (-EBUSY if there is
 * something, else -ENOENT). bpf(2) and the ends of owners and maps raise it too.
 *
 * Who guards what: storage->lock the element list, cache pointers and an element's link state; bucket->lock the map's
 * list. Order: storage, then bucket. An owner's pointer goes NULL -> storage by compare and swap (who loses gets -EAGAIN),
 * and back to NULL under the storage's lock when its last element goes.
 */
#ifndef INLAY_MAPS_LOCAL_STORAGE_LINUX_H
#define INLAY_MAPS_LOCAL_STORAGE_LINUX_H

#include "maps/local_storage_int.h"

#define LINUX_CACHE 16

/* The key and what is looked up, on a cache line of their own as long as the value is not larger. */
struct linux_sdata {
	struct lstore_map *map; /* constant */
	u64 value[];
};

struct linux_elem {
	struct lstore_link link;
	struct linux_elem *next, **pprev; /* in the storage's list; RCU; pprev NULL: not in it any more */
	struct linux_storage *storage;	  /* constant */
	u64 pad[2];			  /* objects of the cache begin 8 bytes past a line */
	struct linux_sdata sdata;
};

_Static_assert((offsetof(struct linux_elem, sdata) + 8) % 64 == 0, "sdata begins a line");

struct linux_storage {
	struct linux_sdata *cache[LINUX_CACHE]; /* RCU */
	struct linux_elem *first;		/* RCU */
	struct env_owner *owner;		/* NULL: detached, takes no more elements */
	struct map_lock lock;
};

extern __thread int map_linux_busy[LSTORE_KINDS] __attribute__((tls_model("initial-exec")));

/*
 * False: the thread is in an operation of this kind already. Nobody else changes the counter and what interrupts us leaves
 * it as it was, so what Linux does by increments is a load and two stores of constants here.
 */
static inline bool linux_trylock(enum lstore_kind kind)
{
	if (unlikely(map_linux_busy[kind]))
		return false;
	map_linux_busy[kind] = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

/* After linux_trylock() that returned true. */
static inline void linux_tryunlock(enum lstore_kind kind)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	map_linux_busy[kind] = 0;
}

static inline void linux_lock(enum lstore_kind kind)
{
	map_linux_busy[kind]++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void linux_unlock(enum lstore_kind kind)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	map_linux_busy[kind]--;
}

static inline struct linux_storage *linux_storage_of(const struct env_owner *owner)
{
	return __atomic_load_n((struct linux_storage *const *)&owner->list, __ATOMIC_ACQUIRE);
}

/* The storage's lock is held. */
static inline void linux_cache_fill(struct linux_storage *s, struct lstore_map *map, struct linux_elem *e)
{
	/* taken out meanwhile it must not be found again */
	if (e->pprev)
		__atomic_store_n(&s->cache[map->index], &e->sdata, __ATOMIC_RELEASE);
}

/* local_storage_linux.c: what the three variants share */
int map_linux_update(struct env_owner *owner, struct lstore_map *map, const void *value, u64 flags, void **ret_value);
int map_linux_remove(struct env_owner *owner, struct lstore_map *map);
/* The end of a task_get that found nothing: creates if flags say so, and gives the guard back. */
u64 map_linux_task_miss(u64 task, struct lstore_map *map, const void *value, u64 flags);
/* The insertion into the cache when somebody else has the lock; mask: what map_mask() returned. Returns e's sdata. */
struct linux_sdata *map_linux_insert_wait(struct linux_storage *s, struct lstore_map *map, struct linux_elem *e, u8 mask)
	__attribute__((returns_nonnull));
u64 map_linux_task_delete(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5);
int map_linux_map_init(struct lstore_map *map);
void map_linux_map_drain(struct lstore_map *map);
void map_linux_map_fini(struct lstore_map *map);

#endif
