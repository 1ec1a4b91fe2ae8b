/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots: each map has a dense number within its owner kind, and an owner's storage a pointer for every number.
 *
 * The storage holds 16 of them itself and pointers to leaves of 64 for the others. Its own 16 count as leaf 0, so that a
 * map need not know which it is: a lookup is
 *
 *	storage = owner->slots		never NULL: an owner without storage has a static one, where limit is 0
 *	leaf = *(storage + leaf_off)	if leaf_off < limit; never NULL: a leaf not made yet is a static one of NULLs
 *	value = *(leaf + slot_off)	NULL: there is none
 *
 * and for maps 0 to 15, known while code is made, storage and value alone. With 1,000 maps it is the same as with one.
 *
 * Guarantees (besides local_storage.h's)
 *  1. A slot number is reused only when every element of its last map is gone and a grace period has passed. So what
 *     stands in a slot is of the one map that has the number: nothing has to be compared.
 *  2. The first element beyond slot 15 costs a leaf, 520 bytes; the storage grows (is replaced by a larger copy, the old
 *     one given back after a grace period) when leaves beyond those it has room for are needed. A reader that still sees
 *     the old one sees it as it was when it was replaced.
 *
 * Who guards what: owner->lock the storage pointer, slots and leaf pointers; bucket->lock the map's element list. Order:
 * owner, then bucket.
 */
#ifndef INLAY_MAPS_LOCAL_STORAGE_SLOTS_H
#define INLAY_MAPS_LOCAL_STORAGE_SLOTS_H

#include "maps/local_storage_int.h"

#define SLOTS_DIRECT 16
#define SLOTS_FANOUT 64

struct slots_leaf {
	void *slot[SLOTS_FANOUT]; /* addresses of values; RCU */
};

/* An owner's. */
struct slots_storage {
	u64 limit;		  /* bytes: offset behind the last leaf pointer; constant */
	u16 class;		  /* which size it has */
	u16 nr_leaves;		  /* made, itself not counted */
	u32 nr;			  /* elements */
	void *slot[SLOTS_DIRECT]; /* addresses of values; RCU. The first few lie on the line of what is above */
	void *leaf[];		  /* struct slots_leaf; [0] is the storage itself, never used as more than 16 slots; RCU */
};

struct slots_elem {
	struct lstore_link link;
	struct env_owner *owner; /* constant */
	struct lstore_map *map;	 /* constant */
	u64 value[];
};

_Static_assert(offsetof(struct slots_storage, leaf) <= ENV_NO_SLOTS_BYTES, "code in place looks as far as limit");

static inline void *slots_find(const struct env_owner *owner, const struct lstore_map *map)
{
	const char *s = __atomic_load_n(&owner->slots, __ATOMIC_ACQUIRE), *leaf;

	if (unlikely(map->leaf_off >= ((const struct slots_storage *)s)->limit))
		return NULL;
	leaf = __atomic_load_n((char *const *)(s + map->leaf_off), __ATOMIC_ACQUIRE);
	return __atomic_load_n((void *const *)(leaf + map->slot_off), __ATOMIC_ACQUIRE);
}

#endif
