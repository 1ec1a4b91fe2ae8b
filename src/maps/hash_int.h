/* SPDX-License-Identifier: BSD-2-Clause */
/* The hash table behind hash and percpu_hash: see hash.c for how it works. */
#ifndef INLAY_MAPS_HASH_INT_H
#define INLAY_MAPS_HASH_INT_H

#include "maps/maps_int.h"
#include "rcu/objcache.h"

/* Value at hash_map.value_off; key and value start on 8 bytes. */
struct hash_elem {
	struct hash_elem *next; /* RCU, acquire; writers hold the stripe's lock */
	u32 hash;		/* atomic */
	u32 seq;		/* odd: being filled; changes with every reuse; atomic */
	u64 key[];		/* key_size bytes, the rest of the last word zero; atomic words */
};

/* Guards the buckets whose number ends in its own. */
struct hash_stripe {
	struct map_lock lock;
	u32 version; /* changes whenever an element leaves one of the buckets; atomic, lock held */
} __attribute__((aligned(64)));

struct hash_map {
	struct map map;
	struct hash_elem **bucket; /* heads; as hash_elem.next */
	struct hash_stripe *stripe;
	struct objcache *cache;
	u32 mask, stripe_mask; /* number of buckets and stripes, both powers of two, minus 1 */
	u32 key_words, value_off;
	u32 cpu_stride,
		nr_cpus; /* per-CPU values: bytes from one vCPU's slot to the next; else 0 */
	u64 seed;
	u64 bucket_bytes, elem_bytes;
	u32 nr __attribute__((aligned(64))); /* elements in the map, at most max_entries; atomic */
};

static inline struct hash_map *hash_of(const struct map *map)
{
	return container_of_(map, struct hash_map, map);
}

static inline char *hash_value(const struct hash_map *h, struct hash_elem *e)
{
	return (char *)e + h->value_off;
}

/* What a write puts into the value: of a new element (is_new) or of one that is there. */
typedef void (*hash_fill_fn)(const struct hash_map *h, struct hash_elem *e, const void *value,
			     bool is_new);

int hash_check(const struct map_attr *attr, bool percpu);
int hash_create(struct inlay *inlay, const struct map_attr *attr, const struct map_ops *ops,
		bool percpu, struct map **ret_map);
void hash_destroy(struct map *map);
u64 hash_mem_usage(const struct map *map);

/* e holds this key now; e may be an element that somebody is reusing. */
bool hash_matches(const struct hash_map *h, const struct hash_elem *e, u32 hash, const void *key);

/* Lock-free. The caller is in a read section. */
struct hash_elem *hash_find(const struct hash_map *h, const void *key);

/*
 * in_place: a present element is filled where it is (per-CPU values); else it is replaced by a new
 * one in one store. 0 or -errno.
 */
int hash_write(struct hash_map *h, const void *key, const void *value, u64 flags, hash_fill_fn fill,
	       bool in_place);
/* out NULL: just delete; else copy gives the value to the caller first. */
int hash_delete(struct hash_map *h, const void *key,
		void (*copy)(const struct hash_map *, struct hash_elem *, void *), void *out);
/* A copy of the value that no replacing writer changes under us: holds the stripe's lock. 0 or
 * -ENOENT. */
int hash_read(struct hash_map *h, const void *key,
	      void (*copy)(const struct hash_map *, struct hash_elem *, void *), void *out);
int hash_next_key(struct map *map, const void *key, void *next_key);
/* value_of: what the callback gets. */
long hash_for_each_elem(struct hash_map *h, struct bpf_func *cb, u64 cb_ctx, u64 flags,
			char *(*value_of)(const struct hash_map *h, struct hash_elem *e));

long hash_remove(struct map *map, const void *key);
int hash_sys_remove(struct map *map, const void *key);

#endif
