/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to local storage: a map's element list, the variants, the tests' hooks. */
#ifndef INLAY_MAPS_LOCAL_STORAGE_INT_H
#define INLAY_MAPS_LOCAL_STORAGE_INT_H

#include "maps/local_storage.h"

/*
 * Places where a test may hold up or interrupt the thread; nothing in any other build. lstore_early_free: the deliberately
 * broken variant, which gives elements back without a grace period.
 */
#ifdef MAP_TEST_HOOKS
extern void (*lstore_hook)(const char *where);
extern bool lstore_early_free;
#define LSTORE_HOOK(where)                   \
	do {                                 \
		if (lstore_hook)             \
			lstore_hook(where);  \
	} while (0)
#define LSTORE_EARLY_FREE lstore_early_free
#else
#define LSTORE_HOOK(where) ((void)0)
#define LSTORE_EARLY_FREE  false
#endif

extern const struct storage_ops map_storage_linux_outlined, map_storage_linux_slowpath, map_storage_linux_inlined, map_storage_slots,
	map_storage_jit;

/* linux-*: what local_storage_linux.c has for all three */
void map_linux_owner_free(struct env_owner *owner);
long map_linux_live(void);
/* slots and jit */
void map_slots_owner_free(struct env_owner *owner);
long map_slots_live(void);

static inline struct lstore_bucket *lstore_bucket_of(struct lstore_map *map, const void *elem)
{
	return &map->bucket[((uintptr_t)elem * 0x9e3779b97f4a7c15ULL) >> 61];
}

/* The lock of the element's storage is held: an element is in its storage and on its map's list, or in neither. */
static inline void lstore_link_add(struct lstore_map *map, struct lstore_link *l)
{
	struct lstore_bucket *b = lstore_bucket_of(map, l);
	u8 mask = map_lock_take(&b->lock);

	l->prev = NULL;
	l->next = b->first;
	if (b->first)
		b->first->prev = l;
	b->first = l;
	__atomic_store_n(&b->nr, b->nr + 1, __ATOMIC_RELAXED);
	map_lock_release(&b->lock, mask);
}

static inline void lstore_link_del(struct lstore_map *map, struct lstore_link *l)
{
	struct lstore_bucket *b = lstore_bucket_of(map, l);
	u8 mask = map_lock_take(&b->lock);

	if (l->prev)
		l->prev->next = l->next;
	else
		b->first = l->next;
	if (l->next)
		l->next->prev = l->prev;
	__atomic_store_n(&b->nr, b->nr - 1, __ATOMIC_RELAXED);
	map_lock_release(&b->lock, mask);
}

/* An element that readers may still see. */
static inline void lstore_elem_retire(struct lstore_map *map, void *elem)
{
	if (LSTORE_EARLY_FREE)
		objcache_free(map->cache, elem);
	else
		objcache_free_rcu(map->cache, elem);
}

static inline int lstore_check_flags(u64 flags, bool present)
{
	if (flags == BPF_NOEXIST && present)
		return -EEXIST;
	return flags == BPF_EXIST && !present ? -ENOENT : 0;
}

static inline void lstore_value_init(void *to, const void *value, u32 size)
{
	if (likely(size == 8)) {
		u64 word = 0;

		if (value)
			memcpy(&word, value, 8);
		memcpy(to, &word, 8);
	} else if (value) {
		memcpy(to, value, size);
	} else {
		memset(to, 0, size);
	}
}

#endif
