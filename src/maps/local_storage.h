/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local storage: values that maps keep in an owner (a task; other kinds later), found without a
 * hash and without a lock.
 *
 * Each map has a dense number, its slot, within its owner kind. An owner's storage object holds 16
 * slots directly and the others in a radix tree of 64-slot nodes; a lookup is a load of the
 * storage, a load of the slot, a comparison.
 *
 * Guarantees
 *  1. Lookup takes no lock and writes nothing. Creation, update and removal may happen in any
 *     context.
 *  2. A value found in a read section stays valid memory, with nobody else's value in it, until
 *     the section ends: elements and storages are given back after a grace period. An update makes
 *     a new element; the old one stays as it is.
 *  3. Who loses the race to create an element gets the winner's.
 *  4. Map and owner may go in any order, also at the same time: each element is given back exactly
 *     once.
 *  5. A slot number is reused only when every element of its last map is gone and a grace period
 *     has passed.
 *  6. An owner that has been torn down takes no new elements.
 *
 * Who guards what: storage->lock its slots, its node pointers and nr; bucket->lock the map's
 * element list. An element is in its slot and on its map's list or in neither, for whoever holds
 * its storage's lock. Order: storage, then bucket.
 */
#ifndef INLAY_MAPS_LOCAL_STORAGE_H
#define INLAY_MAPS_LOCAL_STORAGE_H

#include "maps/maps_int.h"
#include "rcu/objcache.h"

#define LSTORE_DIRECT	 16
#define LSTORE_FANOUT	 64
#define LSTORE_LEVELS	 3 /* trees of 64, 64^2 and 64^3 slots beyond the direct ones */
#define LSTORE_BUCKETS	 8
#define LSTORE_VALUE_MAX 65407 /* Linux's limit on the value of a local storage map */

struct lstore;

struct lstore_elem {
	struct lstore_elem *prev, *next; /* of its bucket; bucket's lock */
	struct lstore *storage;		 /* constant */
	struct map *map;		 /* constant; what lookups compare */
	u64 value[];
};

struct lstore_node {
	void *child[LSTORE_FANOUT]; /* elements in a leaf, else nodes; RCU */
};

/* An owner's. */
struct lstore {
	struct lstore_elem *direct[LSTORE_DIRECT]; /* RCU */
	struct lstore_node *tree[LSTORE_LEVELS];   /* RCU; tree[i] has i + 1 levels of nodes */
	struct map_lock lock;
	u32 nr;	   /* elements */
	bool dead; /* the owner is gone */
};

/* The owner's pointer to its storage: NULL none yet, LSTORE_DEAD the owner has been torn down. */
#define LSTORE_DEAD ((void *)1)

struct lstore_bucket {
	struct map_lock lock;
	struct lstore_elem *first;
} __attribute__((aligned(64)));

enum lstore_kind { LSTORE_TASK, LSTORE_KINDS };

/* A map of local storage; the map types' files embed nothing else. */
struct lstore_map {
	struct map map;
	u32 slot;
	enum lstore_kind kind;
	struct objcache *cache; /* its elements */
	struct rcu_cb rcu;
	struct lstore_bucket bucket[LSTORE_BUCKETS];
};

static inline struct lstore_map *lstore_map_of(const struct map *map)
{
	return container_of_(map, struct lstore_map, map);
}

/* MAP_CREATE's rules for all owner kinds: 0 or -errno. */
int lstore_check(const struct map_attr *attr);
int lstore_map_create(struct inlay *inlay, const struct map_attr *attr, const struct map_ops *ops,
		      enum lstore_kind kind, struct map **ret_map);
void lstore_map_destroy(struct map *map);
u64 lstore_mem_usage(const struct map *map);

struct lstore_elem *lstore_find_far(const struct lstore *s, u32 slot);

/* The element of map in the owner whose storage pointer this is, or NULL. Inside a read section. */
static inline struct lstore_elem *lstore_find(void *const *owner, const struct lstore_map *map)
{
	struct lstore *s = __atomic_load_n(owner, __ATOMIC_ACQUIRE);
	struct lstore_elem *e;

	if ((uintptr_t)s <= (uintptr_t)LSTORE_DEAD)
		return NULL;
	if (likely(map->slot < LSTORE_DIRECT))
		e = __atomic_load_n(&s->direct[map->slot], __ATOMIC_ACQUIRE);
	else
		e = lstore_find_far(s, map->slot);
	return e && e->map == &map->map ? e : NULL;
}

/*
 * The element of map in the owner, made if there is none: value NULL means zeros. NULL: no memory,
 * or the owner is gone. Inside a read section.
 */
struct lstore_elem *lstore_get_or_create(void **owner, struct lstore_map *map, const void *value);

/* flags: BPF_ANY, BPF_NOEXIST, BPF_EXIST. 0, -EINVAL, -EEXIST, -ENOENT, -ENOMEM. Inside a read
 * section. */
int lstore_update(void **owner, struct lstore_map *map, const void *value, u64 flags);

/* 0 or -ENOENT. Inside a read section. */
int lstore_remove(void **owner, struct lstore_map *map);

/* The owner goes: all of its elements and its storage are given back, and no new ones taken. */
void lstore_owner_free(void **owner);

/* Storage objects and nodes in use, for tests. */
long lstore_live(void);

#endif
