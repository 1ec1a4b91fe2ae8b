// SPDX-License-Identifier: BSD-2-Clause
// Slots: see local_storage_slots.h for how they work and what they promise.
#include "maps/local_storage_slots.h"

#include <pthread.h>
#include <stdlib.h>

#include "rcu/mem.h"

/* Leaf pointers of a storage of each size, the one to itself included. The first makes 192 bytes with the cache's own. */
static const u32 class_leaves[] = {5, 40, 320, 4096};

#define NR_CLASSES  ARRAY_SIZE(class_leaves)
#define SLOTS_STALE U32_MAX /* nr of a storage that was replaced: its pointers stay, for who still reads it */
#define SLOTS_MAX  (SLOTS_DIRECT + SLOTS_FANOUT * 4095u)

/*
 * Storages and leaves belong to owners, which outlive maps and come from any of them: one cache each for the process, made
 * with the first map and kept.
 */
static struct objcache *storages[NR_CLASSES], *leaves;
static const struct slots_leaf no_leaf __attribute__((aligned(64)));

/* Numbers in use, one set an owner kind. Maps come and go outside programs, so a plain mutex will do. */
static struct slot_set {
	u64 *used; /* bitmap of cap bits */
	u32 cap;
} sets[LSTORE_KINDS];
static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;

static int caches_init(void)
{
	u32 i;

	for (i = 0; i < NR_CLASSES; i++) {
		if (!storages[i])
			storages[i] = objcache_create(sizeof(struct slots_storage) + 8 * class_leaves[i], 64, 0);
		if (!storages[i])
			return -ENOMEM;
	}
	if (!leaves) {
		leaves = objcache_create(sizeof(struct slots_leaf), 8, 0);
		if (leaves && objcache_warm(storages[0]))
			return -ENOMEM; /* not again: it is for speed */
	}
	return leaves ? 0 : -ENOMEM;
}

static int set_grow(struct slot_set *set)
{
	u32 cap = set->cap ? set->cap * 2 : 64;
	u64 *used = rcu_mem_alloc(cap / 8);

	if (!used)
		return -ENOMEM;
	if (set->cap)
		memcpy(used, set->used, set->cap / 8);
	free(set->used);
	set->used = used;
	set->cap = cap;
	return 0;
}

static int slot_take(enum lstore_kind kind, u32 *ret_slot)
{
	struct slot_set *set = &sets[kind];
	u32 i, slot;
	int err;

	pthread_mutex_lock(&sets_lock);
	err = caches_init();
	for (i = 0; !err && i < set->cap / 64 && set->used[i] == U64_MAX; i++)
		;
	if (!err && i == set->cap / 64)
		err = set_grow(set);
	if (!err) {
		slot = 64 * i + __builtin_ctzll(~set->used[i]);
		err = slot < SLOTS_MAX ? 0 : -ENOSPC;
	}
	if (!err) {
		set->used[i] |= 1ULL << slot % 64;
		*ret_slot = slot;
	}
	pthread_mutex_unlock(&sets_lock);
	return err;
}

static int slots_map_init(struct lstore_map *map)
{
	u32 slot, leaf = 0, first = offsetof(struct slots_storage, slot);
	int err = slot_take(map->kind, &slot);

	if (err)
		return err;
	map->index = slot;
	if (slot >= SLOTS_DIRECT) {
		slot -= SLOTS_DIRECT;
		leaf = 1 + slot / SLOTS_FANOUT;
		slot %= SLOTS_FANOUT;
		first = 0;
	}
	map->leaf_off = offsetof(struct slots_storage, leaf) + 8 * leaf;
	map->slot_off = first + 8 * slot;
	return 0;
}

static void slots_map_fini(struct lstore_map *map)
{
	pthread_mutex_lock(&sets_lock);
	sets[map->kind].used[map->index / 64] &= ~(1ULL << map->index % 64);
	pthread_mutex_unlock(&sets_lock);
}

/* ---- storages; owner->lock held ---- */

static u32 leaf_index(const struct lstore_map *map)
{
	return (map->leaf_off - offsetof(struct slots_storage, leaf)) / 8;
}

static bool is_none(const void *s)
{
	return s == env_no_slots;
}

/*
 * What the end of an owner gives back is empty as a new one is, so it need not be made again: only fresh memory, and what
 * was replaced by a larger one.
 */
static struct slots_storage *make_storage(u32 class)
{
	struct slots_storage *s = objcache_alloc(storages[class]);
	u32 i;

	if (!s || likely(s->limit && !s->nr))
		return s;
	memset(s->slot, 0, sizeof(s->slot));
	s->limit = offsetof(struct slots_storage, leaf) + 8 * class_leaves[class];
	s->class = class;
	s->nr = s->nr_leaves = 0;
	s->leaf[0] = s;
	for (i = 1; i < class_leaves[class]; i++)
		s->leaf[i] = (void *)&no_leaf;
	return s;
}

/* A storage with room for that leaf, holding what old (env_no_slots: nothing) does. Readers see it from here on. */
static struct slots_storage *storage_with(struct env_owner *owner, struct slots_storage *old, u32 leaf)
{
	struct slots_storage *s;
	u32 class = 0;

	while (leaf >= class_leaves[class])
		class++;
	s = make_storage(class);
	if (!s)
		return NULL;
	if (!is_none(old)) {
		memcpy(s->slot, old->slot, sizeof(s->slot));
		memcpy(&s->leaf[1], &old->leaf[1], 8 * (class_leaves[old->class] - 1));
		s->nr = old->nr;
		s->nr_leaves = old->nr_leaves;
	}
	LSTORE_HOOK("slots: new storage");
	__atomic_store_n(&owner->slots, s, __ATOMIC_RELEASE); /* pairs with the acquire of slots_find() */
	if (!is_none(old)) {
		old->nr = SLOTS_STALE;
		objcache_free_rcu(storages[old->class], old);
	}
	return s;
}

/* Where the map's slot is, storage and leaf made for it. NULL: no memory. */
static void **slot_make(struct env_owner *owner, const struct lstore_map *map)
{
	struct slots_storage *s = owner->slots;
	struct slots_leaf *leaf;
	u32 i = leaf_index(map);

	if (map->leaf_off >= s->limit)
		s = storage_with(owner, s, i);
	if (!s)
		return NULL;
	leaf = s->leaf[i];
	if (leaf == &no_leaf) {
		leaf = objcache_alloc(leaves); /* given back with all its elements gone: zeros */
		if (!leaf)
			return NULL;
		s->nr_leaves++;
		__atomic_store_n(&s->leaf[i], leaf, __ATOMIC_RELEASE);
	}
	return (void **)((char *)leaf + map->slot_off);
}

/* Where it is, NULL: there is none. */
static void **slot_at(struct env_owner *owner, const struct lstore_map *map)
{
	struct slots_storage *s = owner->slots;

	if (map->leaf_off >= s->limit || s->leaf[leaf_index(map)] == &no_leaf)
		return NULL;
	return (void **)((char *)s->leaf[leaf_index(map)] + map->slot_off);
}

static struct slots_elem *elem_of(void *value)
{
	return container_of_(value, struct slots_elem, value);
}

/* Out of its slot already. */
static void drop_elem(struct slots_elem *e)
{
	struct lstore_map *map = e->map;

	lstore_link_del(map, &e->link);
	lstore_elem_retire(map, e);
}

/*
 * Puts e where the map's slot is, as flags allow. *ret_value: what was there, if -EEXIST. What e replaced is dropped after
 * the new one can be found.
 */
static int put_elem(struct env_owner *owner, struct lstore_map *map, struct slots_elem *e, u64 flags, void **ret_value)
{
	void **slot, *old;
	int err;

	if (__atomic_load_n(&owner->gone, __ATOMIC_RELAXED))
		return -ENOENT;
	slot = slot_make(owner, map);
	if (!slot)
		return -ENOMEM;
	old = *slot;
	err = lstore_check_flags(flags, old);
	if (err) {
		*ret_value = old;
		return err;
	}
	lstore_link_add(map, &e->link);
	LSTORE_HOOK("slots: before publish");
	__atomic_store_n(slot, e->value, __ATOMIC_RELEASE); /* pairs with the acquire of slots_find() */
	if (old)
		drop_elem(elem_of(old));
	else
		((struct slots_storage *)owner->slots)->nr++;
	*ret_value = e->value;
	return 0;
}

static struct map_lock *lock_of(struct env_owner *owner)
{
	return (struct map_lock *)&owner->lock;
}

static int slots_update(struct env_owner *owner, struct lstore_map *map, const void *value, u64 flags,
			void **ret_value)
{
	struct slots_elem *e;
	void *there;
	u8 mask;
	int err;

	if (flags != BPF_NOEXIST) {
		/* without making anything first; a change meanwhile is seen under the lock */
		err = lstore_check_flags(flags, slots_find(owner, map));
		if (err)
			return err;
	}
	e = objcache_alloc(map->cache);
	if (!e)
		return -ENOMEM;
	e->owner = owner;
	e->map = map;
	lstore_value_init(e->value, value, map->map.value_size);
	LSTORE_HOOK("slots: before lock");
	mask = map_lock_take(lock_of(owner));
	err = put_elem(owner, map, e, flags, &there);
	map_lock_release(lock_of(owner), mask);
	LSTORE_HOOK("slots: after lock");
	if (err)
		objcache_free(map->cache, e); /* nobody saw it */
	if (ret_value && (!err || err == -EEXIST))
		*ret_value = there;
	return err;
}

static int slots_remove(struct env_owner *owner, struct lstore_map *map)
{
	void **slot, *value = NULL;
	u8 mask;

	if (!slots_find(owner, map))
		return -ENOENT;
	LSTORE_HOOK("slots: before delete");
	mask = map_lock_take(lock_of(owner));
	slot = slot_at(owner, map);
	if (slot)
		value = *slot;
	if (value) {
		__atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
		((struct slots_storage *)owner->slots)->nr--;
		LSTORE_HOOK("slots: unlinked");
		drop_elem(elem_of(value));
	}
	map_lock_release(lock_of(owner), mask);
	return value ? 0 : -ENOENT;
}

static void drop_all(struct slots_storage *s, void **slot, u32 n)
{
	u32 i;

	for (i = 0; s->nr && i < n; i++) {
		void *value = slot[i];

		if (!value)
			continue;
		__atomic_store_n(&slot[i], NULL, __ATOMIC_RELEASE);
		s->nr--;
		drop_elem(elem_of(value));
	}
}

/* owner->gone is set: who takes the lock after us adds nothing. */
void map_slots_owner_free(struct env_owner *owner)
{
	struct slots_storage *s = __atomic_load_n(&owner->slots, __ATOMIC_ACQUIRE);
	u32 i, n;
	u8 mask = map_lock_take(lock_of(owner));

	s = owner->slots;
	if (is_none(s)) {
		map_lock_release(lock_of(owner), mask);
		return;
	}
	LSTORE_HOOK("slots: owner ends");
	__atomic_store_n(&owner->slots, (void *)env_no_slots, __ATOMIC_RELEASE);
	n = class_leaves[s->class];
	drop_all(s, s->slot, SLOTS_DIRECT);
	for (i = 1; s->nr && i < n; i++)
		drop_all(s, ((struct slots_leaf *)s->leaf[i])->slot, SLOTS_FANOUT);
	map_lock_release(lock_of(owner), mask);
	for (i = 1; s->nr_leaves; i++) {
		struct slots_leaf *leaf = s->leaf[i];

		if (leaf == &no_leaf)
			continue;
		s->nr_leaves--;
		__atomic_store_n(&s->leaf[i], (void *)&no_leaf, __ATOMIC_RELAXED); /* readers find NULLs in both */
		objcache_free_rcu(leaves, leaf);
	}
	objcache_free_rcu(storages[s->class], s);
}

static void slots_map_drain(struct lstore_map *map)
{
	u32 i;

	for (i = 0; i < LSTORE_BUCKETS; i++) {
		struct lstore_bucket *b = &map->bucket[i];
		struct env_owner *owner;

		do {
			/*
			 * An element on the list is in its slot, so its owner's teardown has not got to it, and the owner is
			 * not given back before our read section ends.
			 */
			u8 mask;

			rcu_enter();
			mask = map_lock_take(&b->lock);
			owner = b->first ? container_of_(b->first, struct slots_elem, link)->owner : NULL;
			map_lock_release(&b->lock, mask);
			LSTORE_HOOK("slots: map ends");
			if (owner)
				slots_remove(owner, map); /* or somebody else just did */
			rcu_leave();
		} while (owner);
	}
}

long map_slots_live(void)
{
	long n = leaves ? objcache_live(leaves) : 0;
	u32 i;

	for (i = 0; i < NR_CLASSES; i++)
		n += storages[i] ? objcache_live(storages[i]) : 0;
	return n;
}

/* ---- program side ---- */

static void *slots_find_op(struct env_owner *owner, struct lstore_map *map)
{
	return slots_find(owner, map);
}

/* Out of the way of a hit. */
static __attribute__((noinline)) u64 create(u64 r1, u64 r2, u64 r3)
{
	void *value = NULL;
	int err = slots_update(env_owner_of((void *)r2), lstore_map_of((struct map *)r1), (void *)r3, BPF_NOEXIST, &value);

	return err && err != -EEXIST ? 0 : (u64)value;
}

static u64 slots_task_get(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	void *value;

	if (unlikely(r4 & ~(u64)BPF_LOCAL_STORAGE_GET_F_CREATE || !r2))
		return 0;
	value = slots_find(env_owner_of((void *)r2), lstore_map_of((struct map *)r1));
	if (likely(value) || !r4)
		return (u64)value;
	return create(r1, r2, r3);
}

static u64 slots_task_delete(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	if (!r2)
		return -EINVAL;
	return slots_remove(env_owner_of((void *)r2), lstore_map_of((struct map *)r1));
}

#define SLOTS_OPS                                                                                              \
	.elem_size = sizeof(struct slots_elem), .elem_align = 8, .find = slots_find_op, .update = slots_update, \
	.remove = slots_remove, .task_get = slots_task_get, .task_delete = slots_task_delete,                  \
	.map_init = slots_map_init, .map_drain = slots_map_drain, .map_fini = slots_map_fini

const struct storage_ops map_storage_slots = {
	.name = "slots",
	.what = "a slot a map in every owner's storage, looked up by the helper",
	SLOTS_OPS,
};

const struct storage_ops map_storage_jit = {
	.name = "jit",
	.what = "slots, looked up in the program's own code",
	SLOTS_OPS,
};
