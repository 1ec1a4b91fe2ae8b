// SPDX-License-Identifier: BSD-2-Clause
// Local storage: see local_storage.h for how it works and what it promises.
#include "maps/local_storage.h"

#include <pthread.h>
#include <stdlib.h>

#include "object/instance.h"
#include "rcu/mem.h"

/* Sizes of slot space covered by the direct slots and each tree. */
#define SLOTS_MAX (LSTORE_DIRECT + 64u + 64u * 64u + 64u * 64u * 64u)

/*
 * Storages and nodes belong to owners, which outlive maps and come from any of them: one cache each
 * for the process, made with the first map and kept.
 */
static struct objcache *storages, *nodes;

/* Numbers in use, one set an owner kind. Maps come and go outside programs, so a plain mutex will
 * do. */
static struct slot_set {
	u64 *used; /* bitmap of cap bits */
	u32 cap;
} slots[LSTORE_KINDS];
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

static int caches_init(void)
{
	if (!storages)
		storages = objcache_create(sizeof(struct lstore), 64, 0);
	if (!nodes)
		nodes = objcache_create(sizeof(struct lstore_node), 64, 0);
	return storages && nodes ? 0 : -ENOMEM;
}

static int slots_grow(struct slot_set *set)
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
	struct slot_set *set = &slots[kind];
	u32 i, slot;
	int err;

	pthread_mutex_lock(&slots_lock);
	err = caches_init();
	for (i = 0; !err && i < set->cap / 64 && set->used[i] == U64_MAX; i++)
		;
	if (!err && i == set->cap / 64)
		err = slots_grow(set);
	if (!err) {
		slot = 64 * i + __builtin_ctzll(~set->used[i]);
		err = slot < SLOTS_MAX ? 0 : -ENOSPC;
	}
	if (!err) {
		set->used[i] |= 1ULL << slot % 64;
		*ret_slot = slot;
	}
	pthread_mutex_unlock(&slots_lock);
	return err;
}

static void slot_give(enum lstore_kind kind, u32 slot)
{
	pthread_mutex_lock(&slots_lock);
	slots[kind].used[slot / 64] &= ~(1ULL << slot % 64);
	pthread_mutex_unlock(&slots_lock);
}

/* ---- the tree beyond the direct slots ---- */

/* Which tree slot (>= LSTORE_DIRECT) lies in; its number within that tree goes to *ret_nr. */
static u32 tree_of(u32 slot, u32 *ret_nr)
{
	u32 level, size = LSTORE_FANOUT;

	slot -= LSTORE_DIRECT;
	for (level = 0; slot >= size; level++, size *= LSTORE_FANOUT)
		slot -= size;
	*ret_nr = slot;
	return level;
}

static u32 child_at(u32 nr, u32 level)
{
	return nr >> 6 * level & (LSTORE_FANOUT - 1);
}

struct lstore_elem *lstore_find_far(const struct lstore *s, u32 slot)
{
	u32 nr, level = tree_of(slot, &nr);
	struct lstore_node *node = __atomic_load_n(&s->tree[level], __ATOMIC_ACQUIRE);

	for (; node && level; level--)
		node = __atomic_load_n(&node->child[child_at(nr, level)], __ATOMIC_ACQUIRE);
	return node ? __atomic_load_n(&node->child[child_at(nr, 0)], __ATOMIC_ACQUIRE) : NULL;
}

static struct lstore_node *make_node(void)
{
	struct lstore_node *node = objcache_alloc(nodes);

	if (node)
		memset(node, 0, sizeof(*node));
	return node;
}

/* Where the element of a slot is kept; make: nodes on the way are made. NULL: there is none, or no
 * memory. s->lock held. */
static struct lstore_elem **slot_of(struct lstore *s, u32 slot, bool make)
{
	struct lstore_node **link, *node;
	u32 nr, level;

	if (slot < LSTORE_DIRECT)
		return &s->direct[slot];
	level = tree_of(slot, &nr);
	for (link = &s->tree[level];; level--) {
		node = *link;
		if (!node) {
			node = make ? make_node() : NULL;
			if (!node)
				return NULL;
			__atomic_store_n(link, node, __ATOMIC_RELEASE);
		}
		if (!level)
			return (struct lstore_elem **)&node->child[child_at(nr, 0)];
		link = (struct lstore_node **)&node->child[child_at(nr, level)];
	}
}

static void free_tree(struct lstore_node *node, u32 level)
{
	u32 i;

	if (!node)
		return;
	for (i = 0; level && i < LSTORE_FANOUT; i++)
		free_tree(node->child[i], level - 1);
	objcache_free_rcu(nodes, node);
}

/* ---- elements ---- */

static struct lstore_bucket *bucket_of(struct lstore_map *map, const struct lstore_elem *e)
{
	return &map->bucket[((uintptr_t)e * 0x9e3779b97f4a7c15ULL) >> 61];
}

static struct lstore_elem *make_elem(struct lstore_map *map, const void *value)
{
	struct lstore_elem *e = objcache_alloc(map->cache);

	if (!e)
		return NULL;
	e->map = &map->map;
	if (value)
		memcpy(e->value, value, map->map.value_size);
	else
		memset(e->value, 0, map->map.value_size);
	return e;
}

/* Puts e in place of old (NULL: none) in *slot. s->lock held. */
static void link_elem(struct lstore *s, struct lstore_map *map, struct lstore_elem **slot,
		      struct lstore_elem *e)
{
	struct lstore_bucket *b = bucket_of(map, e);
	u8 mask = map_lock_take(&b->lock);

	e->storage = s;
	e->prev = NULL;
	e->next = b->first;
	if (b->first)
		b->first->prev = e;
	b->first = e;
	map_lock_release(&b->lock, mask);
	__atomic_store_n(slot, e, __ATOMIC_RELEASE); /* pairs with the acquires of lstore_find() */
}

/* Off its map's list, and given back; it is in no slot any more. s->lock held. */
static void drop_elem(struct lstore_elem *e)
{
	struct lstore_map *map = lstore_map_of(e->map);
	struct lstore_bucket *b = bucket_of(map, e);
	u8 mask = map_lock_take(&b->lock);

	if (e->prev)
		e->prev->next = e->next;
	else
		b->first = e->next;
	if (e->next)
		e->next->prev = e->prev;
	map_lock_release(&b->lock, mask);
	objcache_free_rcu(map->cache, e);
}

/* ---- storages ---- */

/* The owner's storage, made if it has none. NULL: no memory, or the owner is gone. */
static struct lstore *get_storage(void **owner)
{
	struct lstore *s = __atomic_load_n(owner, __ATOMIC_ACQUIRE);
	void *none = NULL;

	if (s)
		return s == LSTORE_DEAD ? NULL : s;
	s = objcache_alloc(storages);
	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	if (__atomic_compare_exchange_n(owner, &none, s, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return s;
	objcache_free(storages, s); /* nobody saw it */
	return none == LSTORE_DEAD ? NULL : none;
}

static int check_flags(u64 flags, bool present)
{
	if (flags == BPF_NOEXIST && present)
		return -EEXIST;
	return flags == BPF_EXIST && !present ? -ENOENT : 0;
}

/*
 * Under the storage's lock: puts e into the map's slot as flags allow. *ret_present: what was
 * there, which stays unless e replaced it (0 returned).
 */
static int put_elem(struct lstore *s, struct lstore_map *map, struct lstore_elem *e, u64 flags,
		    struct lstore_elem **ret_present)
{
	struct lstore_elem **slot, *old;
	int err;

	*ret_present = NULL;
	if (s->dead)
		return -ENOENT;
	slot = slot_of(s, map->slot, true);
	if (!slot)
		return -ENOMEM;
	old = *slot;
	*ret_present = old;
	err = check_flags(flags, old);
	if (err)
		return err;
	link_elem(s, map, slot, e);
	if (old)
		drop_elem(old);
	else
		s->nr++;
	return 0;
}

struct lstore_elem *lstore_get_or_create(void **owner, struct lstore_map *map, const void *value)
{
	struct lstore_elem *e = lstore_find(owner, map), *present;
	struct lstore *s;
	u8 mask;
	int err;

	if (e)
		return e;
	s = get_storage(owner);
	e = s ? make_elem(map, value) : NULL;
	if (!e)
		return NULL;
	mask = map_lock_take(&s->lock);
	err = put_elem(s, map, e, BPF_NOEXIST, &present);
	map_lock_release(&s->lock, mask);
	if (!err)
		return e;
	objcache_free(map->cache, e);
	return present;
}

int lstore_update(void **owner, struct lstore_map *map, const void *value, u64 flags)
{
	struct lstore_elem *e, *present;
	struct lstore *s;
	u8 mask;
	int err = map_check_update_flags(flags);

	if (err)
		return err;
	/* without making anything first; a change meanwhile is seen under the lock */
	err = check_flags(flags, lstore_find(owner, map));
	if (err)
		return err;
	s = get_storage(owner);
	if (!s)
		return __atomic_load_n(owner, __ATOMIC_RELAXED) == LSTORE_DEAD ? -ENOENT : -ENOMEM;
	e = make_elem(map, value);
	if (!e)
		return -ENOMEM;
	mask = map_lock_take(&s->lock);
	err = put_elem(s, map, e, flags, &present);
	map_lock_release(&s->lock, mask);
	if (err)
		objcache_free(map->cache, e);
	return err;
}

/* Takes the map's element out of s. Whether there was one. */
static bool take_out(struct lstore *s, struct lstore_map *map)
{
	struct lstore_elem **slot, *e;
	u8 mask = map_lock_take(&s->lock);

	slot = slot_of(s, map->slot, false);
	e = slot ? *slot : NULL;
	if (e) {
		__atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
		s->nr--;
		drop_elem(e);
	}
	map_lock_release(&s->lock, mask);
	return e;
}

int lstore_remove(void **owner, struct lstore_map *map)
{
	struct lstore *s = __atomic_load_n(owner, __ATOMIC_ACQUIRE);

	if ((uintptr_t)s <= (uintptr_t)LSTORE_DEAD)
		return -ENOENT;
	return take_out(s, map) ? 0 : -ENOENT;
}

/* Drops the elements below a node, or in a leaf. s->lock held. */
static void drop_below(struct lstore *s, struct lstore_node *node, u32 level)
{
	u32 i;

	for (i = 0; node && s->nr && i < LSTORE_FANOUT; i++) {
		void *child = node->child[i];

		if (!child)
			continue;
		if (level) {
			drop_below(s, child, level - 1);
			continue;
		}
		__atomic_store_n(&node->child[i], NULL, __ATOMIC_RELEASE);
		s->nr--;
		drop_elem(child);
	}
}

void lstore_owner_free(void **owner)
{
	struct lstore *s = __atomic_exchange_n(owner, LSTORE_DEAD, __ATOMIC_ACQ_REL);
	struct lstore_elem *e;
	u32 i;
	u8 mask;

	if ((uintptr_t)s <= (uintptr_t)LSTORE_DEAD)
		return;
	/* a map that finds its last element gone waits a grace period: so it is there until we have
	 * given that one back */
	rcu_thread_enter();
	rcu_enter();
	mask = map_lock_take(&s->lock);
	s->dead = true; /* for creators that loaded the pointer before */
	for (i = 0; i < LSTORE_DIRECT; i++) {
		e = s->direct[i];
		if (!e)
			continue;
		__atomic_store_n(&s->direct[i], NULL, __ATOMIC_RELEASE);
		s->nr--;
		drop_elem(e);
	}
	for (i = 0; i < LSTORE_LEVELS; i++)
		drop_below(s, s->tree[i], i);
	map_lock_release(&s->lock, mask);
	for (i = 0; i < LSTORE_LEVELS; i++)
		free_tree(s->tree[i], i);
	objcache_free_rcu(storages, s);
	rcu_leave();
}

/* ---- maps ---- */

int lstore_check(const struct map_attr *attr)
{
	if (attr->map_flags & ~(u32)(BPF_F_NO_PREALLOC | BPF_F_CLONE) ||
	    !(attr->map_flags & BPF_F_NO_PREALLOC))
		return -EINVAL;
	if (attr->max_entries || attr->key_size != sizeof(int) || !attr->value_size)
		return -EINVAL;
	if (!attr->btf_key_type_id || !attr->btf_value_type_id)
		return -EINVAL;
	return attr->value_size > LSTORE_VALUE_MAX ? -E2BIG : 0;
}

int lstore_map_create(struct inlay *inlay, const struct map_attr *attr, const struct map_ops *ops,
		      enum lstore_kind kind, struct map **ret_map)
{
	struct lstore_map *map;
	int err = map_check_btf(inlay, attr, BTF_KEY_INT_FD);

	if (err)
		return err;
	map = rcu_mem_alloc(sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->cache = objcache_create(sizeof(struct lstore_elem) + attr->value_size, 64, 0);
	err = map->cache ? slot_take(kind, &map->slot) : -ENOMEM;
	if (err) {
		objcache_destroy(map->cache);
		free(map);
		return err;
	}
	map->kind = kind;
	map_init(&map->map, ops, inlay, attr);
	*ret_map = &map->map;
	return 0;
}

/* A grace period after the last element went: nobody can find anything of this map under its
 * number. */
static void map_free(struct rcu_cb *cb)
{
	struct lstore_map *map = container_of_(cb, struct lstore_map, rcu);

	objcache_destroy(map->cache);
	slot_give(map->kind, map->slot);
	map_fini(&map->map);
	free(map);
}

void lstore_map_destroy(struct map *m)
{
	struct lstore_map *map = lstore_map_of(m);
	struct lstore_elem *e;
	struct lstore *s;
	u32 i;
	u8 mask;

	for (i = 0; i < LSTORE_BUCKETS; i++) {
		struct lstore_bucket *b = &map->bucket[i];

		for (;;) {
			/*
			 * An element on the list is in its slot, so its owner's teardown has not
			 * got to it and the storage is not given back before our read section ends.
			 */
			rcu_enter();
			mask = map_lock_take(&b->lock);
			e = b->first;
			s = e ? e->storage : NULL;
			map_lock_release(&b->lock, mask);
			if (e)
				take_out(s, map); /* or somebody else just did */
			rcu_leave();
			if (!e)
				break;
		}
	}
	rcu_defer(&map->rcu, map_free);
}

u64 lstore_mem_usage(const struct map *map)
{
	const struct lstore_map *m = lstore_map_of(map);

	return sizeof(*m) +
	       objcache_live(m->cache) * (sizeof(struct lstore_elem) + map->value_size);
}

long lstore_live(void)
{
	return (storages ? objcache_live(storages) : 0) + (nodes ? objcache_live(nodes) : 0);
}
