/* SPDX-License-Identifier: BSD-2-Clause */
/* The hash table behind hash, percpu_hash and hash_of_maps: see hash.c for how it works. */
#ifndef INLAY_MAPS_HASH_INT_H
#define INLAY_MAPS_HASH_INT_H

#include "maps/maps_int.h"

#define HASH_GROUP 11	       /* elements a group names */
#define HASH_LOAD  4	       /* elements a home group has on average when the map is full */
#define HASH_NONE  U32_MAX     /* no element */

/*
 * One cache line. A home group guards itself and the overflow groups that hang on it: seq bit 0 is the writers' lock, the
 * other bits change whenever an element leaves (deleted or replaced) or a group does.
 */
struct hash_group {
	u8 tag[HASH_GROUP]; /* 0: nothing here; atomic, written with the lock held */
	u8 unused;
	u32 seq;	       /* home groups only; atomic */
	u32 next;	       /* number of the next overflow group, 0: none; atomic, as tag */
	u32 elem[HASH_GROUP];  /* the element's number; always one of the map, means something where tag is not 0 */
} __attribute__((aligned(64)));

/* Elements no group names, of one vCPU; others take from it when they have none. */
struct hash_pool {
	struct map_lock lock; /* taken after a group's */
	u32 free;	      /* first of a list through the elements' first four bytes; HASH_NONE: empty */
	u32 nr_free;	      /* atomic, as next_fresh and end_fresh: others look before they lock */
	u32 next_fresh, end_fresh; /* numbers of elements never used yet */
	u32 spare;	      /* what the next replacing writer fills */
} __attribute__((aligned(64)));

struct hash_map {
	struct map map;
	/* all a lookup reads of the map, in one line */
	struct hash_group *group __attribute__((aligned(64))); /* nr_groups home groups, then the overflow groups */
	char *elem;	/* elem_bytes each; key at 0, value at value_off */
	u64 seed[4];	/* seed[1] and seed[3] are odd */
	u64 elem_bytes;	/* a function of the sizes of key and value */
	u32 nr_groups;

	struct hash_pool *pool __attribute__((aligned(64))); /* one a vCPU */
	u32 nr_pools;
	u32 key_words;	/* of 8 bytes; in an element the rest of the last one is zero */
	u32 value_off;
	u32 cpu_stride, nr_cpus; /* per-CPU values: bytes from one vCPU's slot to the next; else 0 */
	u64 group_bytes, all_elem_bytes; /* of all groups, of all elements */
	void *group_mem, *elem_mem; /* as mapped */
	struct map_lock overflow_lock; /* taken last */
	u32 overflow_free;    /* first of a list through next, 0: empty */
	u32 overflow_fresh;   /* overflow groups handed out so far */
	u64 fresh __attribute__((aligned(64))); /* elements given to pools so far, may pass max_entries; atomic */
};

static inline struct hash_map *hash_of(const struct map *map)
{
	return container_of_(map, struct hash_map, map);
}

static inline char *hash_elem_at(const struct hash_map *h, u32 elem)
{
	return h->elem + elem * h->elem_bytes;
}

static inline char *hash_value(const struct hash_map *h, char *e)
{
	return e + h->value_off;
}

/* What a write puts into the value: of a new element (is_new) or of one that is there. */
typedef void (*hash_fill_fn)(const struct hash_map *h, char *e, const void *value, bool is_new);
typedef void (*hash_copy_fn)(const struct hash_map *h, char *e, void *out);

/* ---- hash_mem.c: life, memory ---- */

int hash_check(const struct map_attr *attr, bool percpu);
int hash_create(struct inlay *inlay, const struct map_attr *attr, const struct map_ops *ops, bool percpu,
		struct map **ret_map);
void hash_destroy(struct map *map);
u64 hash_mem_usage(const struct map *map);
/* Bytes from one vCPU's slot to the next, of a per-CPU map or a map of that shape. */
u32 hash_cpu_stride(const struct map *map);
/* Elements in the map; exact when nobody is at work. */
u32 hash_count(const struct hash_map *h);

/*
 * The pool of the calling thread's vCPU, locked, and the spare one in it the caller's to fill. Interrupts are masked
 * already (a group's lock is held).
 */
struct hash_pool *hash_pool_lock(struct hash_map *h);
static inline void hash_pool_unlock(struct hash_pool *pool)
{
	__atomic_store_n(&pool->lock.held, 0, __ATOMIC_RELEASE);
}
/* An element to fill, HASH_NONE: max_entries are in use. As hash_pool_lock(). */
u32 hash_take(struct hash_map *h);
/* No group names it any more, and the home group's seq says so. */
void hash_give(struct hash_map *h, u32 elem);
/* An empty overflow group's number; there is one for every element. */
u32 hash_overflow_take(struct hash_map *h);
void hash_overflow_give(struct hash_map *h, u32 group);

/* ---- hash.c: the table ---- */

/* Lock-free. The caller is in a read section. NULL: not there. */
char *hash_find(const struct hash_map *h, const void *key);
/* The same for a key whose hash is known; tests look for one key under another's. */
char *hash_find_hashed(const struct hash_map *h, u64 hash, const void *key);
/* The first word of the key's value, read while the element was in the map; 0: not there. As hash_find(). */
u64 hash_find_word(const struct hash_map *h, const void *key);
u64 hash_key(const struct hash_map *h, const void *key);

/*
 * in_place: a present element is filled where it is (per-CPU values); else it is replaced by a new one in one store. 0 or
 * -errno. was, if given, is called with the element that is replaced while it is still whole.
 */
int hash_write(struct hash_map *h, const void *key, const void *value, u64 flags, hash_fill_fn fill, bool in_place,
	       hash_copy_fn was, void *out);
/* copy NULL: just delete; else it gives the value to the caller first. */
int hash_delete(struct hash_map *h, const void *key, hash_copy_fn copy, void *out);
/* A copy of the value that no replacing writer changes under us: holds the lock. 0 or -ENOENT. */
int hash_read(struct hash_map *h, const void *key, hash_copy_fn copy, void *out);

long hash_remove(struct map *map, const void *key);
int hash_sys_remove(struct map *map, const void *key);

/* Twins of bpf_map_lookup_elem for maps of that shape: address of the value, of per-CPU ones vCPU 0's. */
u64 (*hash_twin(const struct map *map))(u64, u64, u64, u64, u64);

/* Locks the home group; interrupts are masked until it is unlocked. */
u8 hash_lock(struct hash_group *home);
void hash_unlock(struct hash_group *home, u8 mask);

struct hash_place {
	struct hash_group *g;
	u32 i;
};

/* Where the key's element is; the home group is locked. False: nowhere. */
bool hash_locate(const struct hash_map *h, u64 hash, const void *key, struct hash_place *ret_place);

/* ---- hash_walk.c ---- */

int hash_next_key(struct map *map, const void *key, void *next_key);
/* value_of: what the callback gets. */
long hash_for_each_elem(struct hash_map *h, struct bpf_func *cb, u64 cb_ctx, u64 flags,
			char *(*value_of)(const struct hash_map *h, char *e));

#endif
