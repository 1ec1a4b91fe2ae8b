/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lookup of the linux-* variants: one text, compiled once for each with the same flags. Only these differ, which the
 * includer defines before:
 *
 *	LS(name)	a name of the variant's own
 *	LS_LOOKUP	attributes of the whole lookup
 *	LS_SLOWPATH	… of the walk of the list, the insertion into the cache included
 *	LS_INSERT	… of that insertion
 *
 * each LS_INLINE or LS_OUTLINE. Outlined is a function behind a call, as one of another file would be: nothing of it is
 * known where it is called.
 *
 * Everything is a static function or object of the includer but its struct storage_ops.
 */
#ifndef INLAY_MAPS_LOCAL_STORAGE_LOOKUP_H
#define INLAY_MAPS_LOCAL_STORAGE_LOOKUP_H

#include "maps/local_storage_linux.h"

#define LS_INLINE __attribute__((always_inline)) inline
#if __has_attribute(noipa)
#define LS_OUTLINE __attribute__((noipa, noinline))
#else
#define LS_OUTLINE __attribute__((noinline))
#endif

#ifdef LS

static LS_INSERT __attribute__((returns_nonnull)) struct linux_sdata *
LS(insert)(struct linux_storage *s, struct lstore_map *map, struct linux_elem *e)
{
	u8 mask = map_mask();

	/* the call that waits is the last thing done: no register has to be kept over it, hits save none */
	if (unlikely(__atomic_exchange_n(&s->lock.held, 1, __ATOMIC_ACQUIRE)))
		return map_linux_insert_wait(s, map, e, mask);
	linux_cache_fill(s, map, e);
	map_lock_release(&s->lock, mask);
	return &e->sdata;
}

static LS_SLOWPATH struct linux_sdata *LS(slowpath)(struct linux_storage *s, struct lstore_map *map, bool cacheit)
{
	struct linux_elem *e = __atomic_load_n(&s->first, __ATOMIC_ACQUIRE);

	while (e && e->sdata.map != map)
		e = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE);
	if (!e)
		return NULL;
	if (cacheit)
		return LS(insert)(s, map, e);
	return &e->sdata;
}

static LS_LOOKUP struct linux_sdata *LS(lookup)(struct linux_storage *s, struct lstore_map *map, bool cacheit)
{
	struct linux_sdata *sdata = __atomic_load_n(&s->cache[map->index], __ATOMIC_ACQUIRE);

	if (likely(sdata && sdata->map == map))
		return sdata;
	return LS(slowpath)(s, map, cacheit);
}

static LS_INLINE struct linux_sdata *LS(owner_lookup)(struct env_owner *owner, struct lstore_map *map, bool cacheit)
{
	struct linux_storage *s = linux_storage_of(owner);

	return s ? LS(lookup)(s, map, cacheit) : NULL;
}

/* On top of another operation, and what the helper refuses: the guard is not taken. */
static __attribute__((noinline, cold)) u64 LS(get_unguarded)(struct lstore_map *map, u64 task, u64 flags)
{
	struct linux_sdata *sdata;

	if (flags & ~(u64)BPF_LOCAL_STORAGE_GET_F_CREATE || !task)
		return 0;
	sdata = LS(owner_lookup)(env_owner_of((void *)task), map, false);
	return sdata ? (u64)sdata->value : 0;
}

/* The helper. */
static u64 LS(task_get)(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	struct lstore_map *map = lstore_map_of((struct map *)r1);
	struct linux_sdata *sdata;

	if (unlikely(r4 & ~(u64)BPF_LOCAL_STORAGE_GET_F_CREATE || !r2 || !linux_trylock(LSTORE_TASK)))
		return LS(get_unguarded)(map, r2, r4);
	sdata = LS(owner_lookup)(env_owner_of((void *)r2), map, true);
	if (unlikely(!sdata))
		return map_linux_task_miss(r2, map, (void *)r3, r4);
	linux_tryunlock(LSTORE_TASK);
	return (u64)sdata->value;
}

/* bpf(2)'s. */
static void *LS(find)(struct env_owner *owner, struct lstore_map *map)
{
	struct linux_sdata *sdata;

	linux_lock(map->kind);
	sdata = LS(owner_lookup)(owner, map, true);
	linux_unlock(map->kind);
	return sdata ? sdata->value : NULL;
}

#define LS_OPS                                                                                           \
	.loser_null = true, .elem_size = sizeof(struct linux_elem), .elem_align = 64, .find = LS(find), \
	.update = map_linux_update, .remove = map_linux_remove, .task_get = LS(task_get),                       \
	.task_delete = map_linux_task_delete, .map_init = map_linux_map_init, .map_drain = map_linux_map_drain,    \
	.map_fini = map_linux_map_fini

#endif
#endif
