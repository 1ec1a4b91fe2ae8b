// SPDX-License-Identifier: BSD-2-Clause
// Linux's structure: everything but the lookup, which local_storage_lookup.h has. See local_storage_linux.h.
#include "maps/local_storage_linux.h"

#include <pthread.h>
#include <stdlib.h>

__thread int map_linux_busy[LSTORE_KINDS] __attribute__((tls_model("initial-exec")));

static struct objcache *storages; /* the process's: owners outlive maps; made with the first map and kept */

/* Maps that use each cache pointer, by owner kind. */
static u64 users[LSTORE_KINDS][LINUX_CACHE];
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;

/* The cache pointer with the fewest users, the lowest of those. */
int map_linux_map_init(struct lstore_map *map)
{
	u64 *n = users[map->kind];
	u32 i, best = 0;
	int err = 0;

	pthread_mutex_lock(&users_lock);
	if (!storages)
		storages = objcache_create(sizeof(struct linux_storage), 64, 0);
	if (!storages)
		err = -ENOMEM;
	for (i = 1; i < LINUX_CACHE; i++)
		if (n[i] < n[best])
			best = i;
	if (!err) {
		n[best]++;
		map->index = best;
	}
	pthread_mutex_unlock(&users_lock);
	return err;
}

void map_linux_map_fini(struct lstore_map *map)
{
}

/* ---- elements; the storage's lock is held ---- */

static struct linux_elem *elem_in(const struct linux_storage *s, const struct lstore_map *map)
{
	struct linux_elem *e;

	for (e = s->first; e && e->sdata.map != map; e = e->next)
		;
	return e;
}

/* Of a storage that others may see, or not yet. */
static void link_elem(struct linux_storage *s, struct linux_elem *e)
{
	e->storage = s;
	lstore_link_add(e->sdata.map, &e->link);
	e->next = s->first;
	e->pprev = &s->first;
	if (s->first)
		s->first->pprev = &e->next;
	__atomic_store_n(&s->first, e, __ATOMIC_RELEASE); /* pairs with the acquires of the walk */
}

/* Out of storage and map; memory is the caller's to give back. True: it was the last, the storage is the caller's too. */
static bool unlink_elem(struct linux_storage *s, struct linux_elem *e)
{
	struct lstore_map *map = e->sdata.map;
	bool last = s->first == e && !e->next;

	lstore_link_del(map, &e->link);
	if (last) {
		if (s->owner)
			__atomic_store_n(&s->owner->list, NULL, __ATOMIC_RELEASE);
		s->owner = NULL;
	}
	if (e->next)
		e->next->pprev = e->pprev;
	__atomic_store_n(e->pprev, e->next, __ATOMIC_RELEASE);
	e->pprev = NULL;
	if (s->cache[map->index] == &e->sdata)
		__atomic_store_n(&s->cache[map->index], NULL, __ATOMIC_RELEASE);
	return last;
}

/* Takes the lock; does nothing if somebody else was first. */
static int take_out(struct linux_storage *s, struct linux_elem *e)
{
	u8 mask = map_lock_take(&s->lock);
	bool linked = e->pprev, last = linked && unlink_elem(s, e);

	map_lock_release(&s->lock, mask);
	LSTORE_HOOK("linux: unlinked");
	if (linked)
		lstore_elem_retire(e->sdata.map, e);
	if (last)
		objcache_free_rcu(storages, s);
	return linked ? 0 : -ENOENT;
}

static struct linux_elem *make_elem(struct lstore_map *map, const void *value)
{
	struct linux_elem *e = objcache_alloc(map->cache);

	if (!e)
		return NULL;
	e->pprev = NULL;
	e->sdata.map = map;
	lstore_value_init(e->sdata.value, value, map->map.value_size);
	return e;
}

/* The owner's first element, with a storage of its own. */
static int first_elem(struct env_owner *owner, struct linux_elem *e)
{
	struct linux_storage *s = objcache_alloc(storages);
	void *none = NULL;
	u8 mask;

	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->owner = owner;
	/* under its lock: with the map at its end the element may be taken out before anybody finds it by the owner */
	mask = map_lock_take(&s->lock);
	link_elem(s, e);
	LSTORE_HOOK("linux: before publish");
	if (!__atomic_load_n(&owner->gone, __ATOMIC_SEQ_CST) &&
	    __atomic_compare_exchange_n(&owner->list, &none, s, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) {
		map_lock_release(&s->lock, mask);
		return 0;
	}
	s->owner = NULL; /* not this one's: another storage is */
	unlink_elem(s, e);
	map_lock_release(&s->lock, mask);
	objcache_free_rcu(storages, s); /* seen through the map's list, perhaps */
	return none ? -EAGAIN : -ENOENT;
}

/* With the storage's lock held: 0 and *ret_old what e replaces. */
static int place_elem(struct linux_storage *s, struct lstore_map *map, struct linux_elem *e, u64 flags,
		      struct linux_elem **ret_old)
{
	struct linux_elem *old;
	int err;

	if (!s->owner) /* its last element went meanwhile */
		return -EAGAIN;
	old = elem_in(s, map);
	err = lstore_check_flags(flags, old);
	if (err)
		return err;
	link_elem(s, e);
	LSTORE_HOOK("linux: new linked");
	if (old)
		unlink_elem(s, old); /* never the last: e is there */
	*ret_old = old;
	return 0;
}

static int update(struct env_owner *owner, struct lstore_map *map, const void *value, u64 flags, void **ret_value)
{
	struct linux_storage *s = linux_storage_of(owner);
	struct linux_elem *e, *old = NULL;
	bool seen = false;
	u8 mask;
	int err;

	if (!s && flags == BPF_EXIST)
		return -ENOENT;
	if (__atomic_load_n(&owner->gone, __ATOMIC_RELAXED))
		return -ENOENT;
	e = make_elem(map, value);
	if (!e)
		return -ENOMEM;
	LSTORE_HOOK("linux: before lock");
	if (!s) {
		err = first_elem(owner, e);
		seen = err == -EAGAIN || err == -ENOENT;
	} else {
		mask = map_lock_take(&s->lock);
		err = place_elem(s, map, e, flags, &old);
		map_lock_release(&s->lock, mask);
	}
	LSTORE_HOOK("linux: after lock");
	if (err && seen)
		objcache_free_rcu(map->cache, e);
	else if (err)
		objcache_free(map->cache, e);
	if (old)
		lstore_elem_retire(map, old);
	/* an owner that ends now has looked for its storage before or after the exchange above; then we have to */
	if (!err && __atomic_load_n(&owner->gone, __ATOMIC_SEQ_CST)) {
		map_linux_owner_free(owner);
		return -ENOENT;
	}
	if (!err && ret_value)
		*ret_value = e->sdata.value;
	return err;
}

int map_linux_update(struct env_owner *owner, struct lstore_map *map, const void *value, u64 flags, void **ret_value)
{
	int err;

	linux_lock(map->kind);
	err = update(owner, map, value, flags, ret_value);
	linux_unlock(map->kind);
	return err;
}

/* The element, found without the lock and without the cache being filled. */
static struct linux_elem *find_elem(struct env_owner *owner, struct lstore_map *map)
{
	struct linux_storage *s = linux_storage_of(owner);
	struct linux_elem *e = s ? __atomic_load_n(&s->first, __ATOMIC_ACQUIRE) : NULL;

	while (e && e->sdata.map != map)
		e = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE);
	return e;
}

int map_linux_remove(struct env_owner *owner, struct lstore_map *map)
{
	struct linux_elem *e;
	int err = -ENOENT;

	linux_lock(map->kind);
	e = find_elem(owner, map);
	LSTORE_HOOK("linux: before delete");
	if (e)
		err = take_out(e->storage, e);
	linux_unlock(map->kind);
	return err;
}

/* ---- program side ---- */

/* Any error is NULL, a lost race to create too. */
u64 map_linux_task_miss(u64 task, struct lstore_map *map, const void *value, u64 flags)
{
	void *there = NULL;

	if (flags & BPF_LOCAL_STORAGE_GET_F_CREATE && update(env_owner_of((void *)task), map, value, BPF_NOEXIST, &there))
		there = NULL;
	linux_tryunlock(LSTORE_TASK);
	return (u64)there;
}

struct linux_sdata *map_linux_insert_wait(struct linux_storage *s, struct lstore_map *map, struct linux_elem *e, u8 mask)
{
	do
		map_wait_bit(&s->lock.held);
	while (__atomic_exchange_n(&s->lock.held, 1, __ATOMIC_ACQUIRE));
	linux_cache_fill(s, map, e);
	map_lock_release(&s->lock, mask);
	return &e->sdata;
}

u64 map_linux_task_delete(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	struct lstore_map *map = lstore_map_of((struct map *)r1);
	struct env_owner *owner = env_owner_of((void *)r2);
	int err;

	if (!r2)
		return -EINVAL;
	if (!linux_trylock(LSTORE_TASK))
		return find_elem(owner, map) ? -EBUSY : -ENOENT;
	err = map_linux_remove(owner, map);
	linux_tryunlock(LSTORE_TASK);
	return err;
}

/* ---- the ends of owners and maps ---- */

/* owner->gone is set. In a read section. */
void map_linux_owner_free(struct env_owner *owner)
{
	struct linux_storage *s = NULL;
	struct linux_elem *e, *next, *out = NULL;
	bool last = false;
	u8 mask;

	/* a creator that comes after this load sees that the owner is gone */
	if (__atomic_load_n(&owner->list, __ATOMIC_SEQ_CST))
		s = __atomic_exchange_n((struct linux_storage **)&owner->list, NULL, __ATOMIC_SEQ_CST);
	if (!s)
		return;
	linux_lock(LSTORE_TASK);
	LSTORE_HOOK("linux: owner ends");
	mask = map_lock_take(&s->lock);
	s->owner = NULL;
	while ((e = s->first)) {
		last = unlink_elem(s, e);
		e->link.next = (void *)out; /* in no list any more: ours */
		out = e;
	}
	map_lock_release(&s->lock, mask);
	for (e = out; e; e = next) {
		next = (void *)e->link.next;
		lstore_elem_retire(e->sdata.map, e);
	}
	if (last) /* else who took the last one out gives it back */
		objcache_free_rcu(storages, s);
	linux_unlock(LSTORE_TASK);
}

void map_linux_map_drain(struct lstore_map *map)
{
	struct linux_elem *e;
	u32 i;
	u8 mask;

	pthread_mutex_lock(&users_lock);
	users[map->kind][map->index]--;
	pthread_mutex_unlock(&users_lock);
	for (i = 0; i < LSTORE_BUCKETS; i++) {
		struct lstore_bucket *b = &map->bucket[i];

		do {
			/* on the list, so linked in its storage when we looked: both stay memory for this read section */
			rcu_enter();
			mask = map_lock_take(&b->lock);
			e = b->first ? container_of_(b->first, struct linux_elem, link) : NULL;
			map_lock_release(&b->lock, mask);
			LSTORE_HOOK("linux: map ends");
			if (e) {
				linux_lock(map->kind);
				take_out(e->storage, e);
				linux_unlock(map->kind);
			}
			rcu_leave();
		} while (e);
	}
}

long map_linux_live(void)
{
	return storages ? objcache_live(storages) : 0;
}
