/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local storage: values that maps keep in an owner (a task; other kinds later), found without a hash and without a lock.
 *
 * It exists more than once behind struct storage_ops, chosen when the engine is made (inlay->storage_impl):
 *
 *   linux-outlined, linux-slowpath, linux-inlined   Linux's structure (local_storage_linux.c), one text compiled three
 *	times with other inlining attributes (local_storage_lookup.h)
 *   slots, jit   our own (local_storage_slots.c); jit brings code for the program's own text besides
 *
 * Guarantees, all variants
 *  1. Lookup takes no lock, but that a slow hit of linux-* fills its cache under one. Creation, update and removal may
 *     happen in any context.
 *  2. A value found in a read section stays valid memory, with nobody else's value in it, until the section ends: elements
 *     and storages are given back after a grace period. An update makes a new element; the old one stays as it is.
 *  3. Who loses the race to create an element gets the winner's (slots, jit), or NULL as in Linux (linux-*).
 *  4. Map and owner may go in any order, also at the same time: each element is given back exactly once.
 *  5. An owner that has been torn down takes no new elements.
 *
 * To add a variant: a struct storage_ops, its row in local_storage.c, its map_ops in task_storage.c.
 */
#ifndef INLAY_MAPS_LOCAL_STORAGE_H
#define INLAY_MAPS_LOCAL_STORAGE_H

#include "maps/maps_int.h"
#include "rcu/objcache.h"

#define LSTORE_BUCKETS	 8
#define LSTORE_VALUE_MAX 65407 /* Linux's limit on the value of a local storage map */

enum lstore_kind { LSTORE_TASK, LSTORE_KINDS };

struct lstore_map;

/* owner, map: valid for the call; inside a read section unless said otherwise. Any context. */
struct storage_ops {
	const char *name; /* --storage-impl */
	const char *what; /* one line for people */
	bool loser_null;  /* who loses a race to create gets NULL */
	u32 elem_size;	  /* bytes of an element, value excluded */
	u32 elem_align;

	/* The value, or NULL. */
	void *(*find)(struct env_owner *owner, struct lstore_map *map);
	/* flags: BPF_ANY, BPF_NOEXIST, BPF_EXIST. value NULL: zeros. *ret_value (may be NULL): the value now there, also on
	 * -EEXIST. 0, -EEXIST, -ENOENT (also: the owner is gone), -ENOMEM, -EAGAIN (linux-*: a race was lost). */
	int (*update)(struct env_owner *owner, struct lstore_map *map, const void *value, u64 flags, void **ret_value);
	int (*remove)(struct env_owner *owner, struct lstore_map *map); /* 0 or -ENOENT */

	/* What bpf_task_storage_get and _delete call. */
	u64 (*task_get)(u64 map, u64 task, u64 value, u64 flags, u64 gfp);
	u64 (*task_delete)(u64 map, u64 task, u64 r3, u64 r4, u64 r5);

	/* Outside programs and read sections. */
	int (*map_init)(struct lstore_map *map); /* 0 or -errno */
	void (*map_drain)(struct lstore_map *map); /* nobody can add: takes out all elements */
	void (*map_fini)(struct lstore_map *map); /* a grace period later */
};

/* Links of a map's list; first in an element of every variant. */
struct lstore_link {
	struct lstore_link *prev, *next; /* its bucket's lock */
};

struct lstore_bucket {
	struct map_lock lock;
	struct lstore_link *first;
	u64 nr; /* elements; written under lock, read by anybody */
} __attribute__((aligned(64)));

/* A map of local storage; the map types' files embed nothing else. */
struct lstore_map {
	struct map map;
	/* slots: where its pointer is found, as bytes; code in place of calls reads them */
	u32 leaf_off; /* of the leaf's pointer in the storage */
	u32 slot_off; /* of the slot in the leaf */
	u32 index;    /* slots: the slot number; linux-*: which of the 16 cache pointers */
	enum lstore_kind kind;
	const struct storage_ops *ops;
	struct objcache *cache; /* elements of its size, other maps' too */
	struct rcu_cb rcu;
	struct lstore_bucket bucket[LSTORE_BUCKETS];
};

static inline struct lstore_map *lstore_map_of(const struct map *map)
{
	return container_of_(map, struct lstore_map, map);
}

/* The variant of that name, NULL: there is none. name NULL: the default. */
const struct storage_ops *map_storage_impl_find(const char *name);
/* i-th, for lists; NULL past the end. */
const struct storage_ops *map_storage_impl_at(u32 i);

/* MAP_CREATE's rules for all owner kinds: 0 or -errno. */
int lstore_check(const struct map_attr *attr);
int lstore_map_create(struct inlay *inlay, const struct map_attr *attr, const struct map_ops *ops,
		      const struct storage_ops *impl, enum lstore_kind kind, struct map **ret_map);
void lstore_map_destroy(struct map *map);
u64 lstore_mem_usage(const struct map *map);
/* Elements the map has in all owners. */
u64 lstore_elems(const struct lstore_map *map);

static inline void *lstore_find(struct env_owner *owner, struct lstore_map *map)
{
	return map->ops->find(owner, map);
}

/*
 * The value of map in the owner, made if there is none: value NULL means zeros. NULL: no memory, the owner is gone, or
 * (ops->loser_null) somebody else was first.
 */
void *lstore_get_or_create(struct env_owner *owner, struct lstore_map *map, const void *value);

/* The same errors as storage_ops.update, and -EINVAL for unknown flags. */
int lstore_update(struct env_owner *owner, struct lstore_map *map, const void *value, u64 flags);

static inline int lstore_remove(struct env_owner *owner, struct lstore_map *map)
{
	return map->ops->remove(owner, map);
}

/* The owner goes: all of its elements and its storage are given back, and no new ones taken. Not in a read section's way. */
void lstore_owner_free(struct env_owner *owner);

/* Storage objects and leaves in use, for tests. */
long lstore_live(void);

#endif
