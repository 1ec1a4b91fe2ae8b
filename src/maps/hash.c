// SPDX-License-Identifier: BSD-2-Clause
/*
 * The hash table, and the map type "hash".
 *
 * Buckets are singly linked lists of elements that never move. Readers take no lock; writers take
 * their stripe's lock (some buckets share one), with programs in signal handlers held off, so
 * nobody waits for the thread it interrupted.
 *
 * Guarantees
 *  1. A key that is present all the time is never missed, whatever happens to other keys, and
 *     while it is replaced a reader finds the old or the new element: replacing is one store to
 *     the link that led to the old one.
 *  2. Exactly max_entries elements fit; replacing works when full.
 *  3. Memory of a deleted or replaced element is reused at once, preallocated or not (so a program
 *     that churns keys inside one long run needs no more memory than the map's), as in Linux. A
 *     pointer to a value stays valid memory until the map is gone, but after deletion it may show
 *     another element's value.
 *  4. A lookup never matches a key made of parts of two keys, though key memory is rewritten while
 *     readers compare: hash_elem.seq tells.
 *
 * Why 1 holds although a reader may stand on an element that is reused, and be led astray into
 * another list or past its key: it can only stand on such an element if that one left the reader's
 * own bucket after the reader set out. Leaving changes the stripe's version before the memory is
 * given back; whoever reuses it writes hash, key and link with release, the reader reads them with
 * acquire; so a reader who saw any of the new contents also sees the new version, and one who found
 * nothing looks again if the version has changed. Every repeat means some writer got something
 * done. A hit needs no look at the version.
 */
#include "maps/hash_int.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "object/instance.h"
#include "rcu/mem.h"

#define HASH_STRIPES	   64	      /* at most; a power of two */
#define HASH_ELEM_OVERHEAD 48	      /* bytes of the kernel's element header, for its size limit */
#define HASH_MAX_BUCKETS   (1u << 28) /* fewer, as the kernel's 16-byte buckets must fit 32 bits */

static u32 hash_key(const struct hash_map *h, const void *key)
{
	u64 hash = XXH3_64bits_withSeed(key, h->map.key_size, h->seed);

	return hash ^ hash >> 32;
}

static struct hash_stripe *stripe_of(const struct hash_map *h, u32 hash)
{
	return &h->stripe[hash & h->stripe_mask];
}

static struct hash_elem **bucket_of(const struct hash_map *h, u32 hash)
{
	return &h->bucket[hash & h->mask];
}

/* Word i of a key, the last one filled up with zeros. */
static u64 key_word(const struct hash_map *h, const void *key, u32 i)
{
	u32 left = h->map.key_size - 8 * i;
	u64 word = 0;

	if (left >= 8)
		memcpy(&word, (const char *)key + 8 * i, 8);
	else if (left == 4)
		memcpy(&word, (const char *)key + 8 * i, 4);
	else
		memcpy(&word, (const char *)key + 8 * i, left);
	return word;
}

/* Guarantee 4: the same even seq before and after means that all of what was compared belongs to
 * one key. */
static inline bool matches(const struct hash_map *h, const struct hash_elem *e, u32 hash,
			   const void *key)
{
	u32 seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE), i;

	if (__atomic_load_n(&e->hash, __ATOMIC_ACQUIRE) != hash || seq & 1)
		return false;
	for (i = 0; i < h->key_words; i++)
		if (__atomic_load_n(&e->key[i], __ATOMIC_ACQUIRE) != key_word(h, key, i))
			return false;
	return __atomic_load_n(&e->seq, __ATOMIC_RELAXED) == seq;
}

bool hash_matches(const struct hash_map *h, const struct hash_elem *e, u32 hash, const void *key)
{
	return matches(h, e, hash, key);
}

struct hash_elem *hash_find(const struct hash_map *h, const void *key)
{
	u32 hash = hash_key(h, key), version;
	struct hash_stripe *stripe = stripe_of(h, hash);
	struct hash_elem *e;

	do {
		version = __atomic_load_n(&stripe->version, __ATOMIC_ACQUIRE);
		for (e = __atomic_load_n(bucket_of(h, hash), __ATOMIC_ACQUIRE); e;
		     e = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE))
			if (matches(h, e, hash, key))
				return e;
	} while (unlikely(__atomic_load_n(&stripe->version, __ATOMIC_RELAXED) != version));
	return NULL;
}

/* The link that leads to the key's element, or to NULL at the list's end. The stripe's lock is
 * held. */
static struct hash_elem **find_link(const struct hash_map *h, u32 hash, const void *key)
{
	struct hash_elem **link = bucket_of(h, hash);

	while (*link && !matches(h, *link, hash, key))
		link = &(*link)->next;
	return link;
}

/* Gives memory back whose element no link leads to any more. */
static void drop(struct hash_map *h, struct hash_stripe *stripe, struct hash_elem *e)
{
	__atomic_store_n(&stripe->version, stripe->version + 1, __ATOMIC_RELEASE);
	objcache_free(h->cache, e);
}

static bool take_room(struct hash_map *h)
{
	u32 nr = __atomic_load_n(&h->nr, __ATOMIC_RELAXED);

	do {
		if (nr >= h->map.max_entries)
			return false;
	} while (!__atomic_compare_exchange_n(&h->nr, &nr, nr + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

static void give_room(struct hash_map *h)
{
	__atomic_fetch_sub(&h->nr, 1, __ATOMIC_RELAXED);
}

/* A filled element that no link leads to yet, or NULL. */
static struct hash_elem *make_elem(struct hash_map *h, u32 hash, const void *key, const void *value,
				   hash_fill_fn fill)
{
	struct hash_elem *e = objcache_alloc(h->cache);
	u32 seq, i;

	if (!e)
		return NULL;
	seq = __atomic_load_n(&e->seq, __ATOMIC_RELAXED) | 1;
	__atomic_store_n(&e->seq, seq, __ATOMIC_RELAXED);
	/* release: see the top; the odd seq is visible before any of the new contents */
	__atomic_store_n(&e->hash, hash, __ATOMIC_RELEASE);
	for (i = 0; i < h->key_words; i++)
		__atomic_store_n(&e->key[i], key_word(h, key, i), __ATOMIC_RELEASE);
	fill(h, e, value, true);
	__atomic_store_n(&e->seq, seq + 1, __ATOMIC_RELEASE);
	return e;
}

static int insert(struct hash_map *h, u32 hash, const void *key, const void *value,
		  hash_fill_fn fill)
{
	struct hash_elem **head = bucket_of(h, hash), *e;

	if (!take_room(h))
		return -E2BIG;
	e = make_elem(h, hash, key, value, fill);
	if (!e) {
		give_room(h);
		return -ENOMEM;
	}
	/* at the head: a walk that inserts what it deletes comes to an end */
	__atomic_store_n(&e->next, *head, __ATOMIC_RELEASE);
	__atomic_store_n(head, e, __ATOMIC_RELEASE); /* pairs with the acquires in hash_find() */
	return 0;
}

static int replace(struct hash_map *h, struct hash_elem **link, u32 hash, const void *key,
		   const void *value, hash_fill_fn fill)
{
	struct hash_elem *old = *link, *e = make_elem(h, hash, key, value, fill);

	if (!e)
		return -ENOMEM;
	__atomic_store_n(&e->next, old->next, __ATOMIC_RELEASE);
	__atomic_store_n(link, e, __ATOMIC_RELEASE);
	drop(h, stripe_of(h, hash), old);
	return 0;
}

int hash_write(struct hash_map *h, const void *key, const void *value, u64 flags, hash_fill_fn fill,
	       bool in_place)
{
	u32 hash = hash_key(h, key);
	struct hash_stripe *stripe = stripe_of(h, hash);
	struct hash_elem **link;
	u8 mask;
	int err;

	if (map_check_update_flags(flags))
		return -EINVAL;
	mask = map_lock_take(&stripe->lock);
	link = find_link(h, hash, key);
	if (*link && flags == BPF_NOEXIST) {
		err = -EEXIST;
	} else if (!*link && flags == BPF_EXIST) {
		err = -ENOENT;
	} else if (!*link) {
		err = insert(h, hash, key, value, fill);
	} else if (in_place) {
		fill(h, *link, value, false);
		err = 0;
	} else {
		err = replace(h, link, hash, key, value, fill);
	}
	map_lock_release(&stripe->lock, mask);
	return err;
}

int hash_delete(struct hash_map *h, const void *key,
		void (*copy)(const struct hash_map *, struct hash_elem *, void *), void *out)
{
	u32 hash = hash_key(h, key);
	struct hash_stripe *stripe = stripe_of(h, hash);
	struct hash_elem **link, *e;
	u8 mask = map_lock_take(&stripe->lock);

	link = find_link(h, hash, key);
	e = *link;
	if (e) {
		if (copy)
			copy(h, e, out);
		__atomic_store_n(link, e->next, __ATOMIC_RELEASE);
		drop(h, stripe, e);
		give_room(h);
	}
	map_lock_release(&stripe->lock, mask);
	return e ? 0 : -ENOENT;
}

int hash_read(struct hash_map *h, const void *key,
	      void (*copy)(const struct hash_map *, struct hash_elem *, void *), void *out)
{
	u32 hash = hash_key(h, key);
	struct hash_stripe *stripe = stripe_of(h, hash);
	struct hash_elem *e;
	u8 mask = map_lock_take(&stripe->lock);

	e = *find_link(h, hash, key);
	if (e)
		copy(h, e, out);
	map_lock_release(&stripe->lock, mask);
	return e ? 0 : -ENOENT;
}

static void copy_key(const struct hash_map *h, const struct hash_elem *e, void *out)
{
	map_value_read(out, e->key, h->map.key_size);
}

/* First key of bucket b or a later one. */
static int first_key_from(struct hash_map *h, u64 b, void *next_key)
{
	struct hash_stripe *stripe;
	struct hash_elem *e;
	u8 mask;

	for (; b <= h->mask; b++) {
		if (!__atomic_load_n(&h->bucket[b], __ATOMIC_RELAXED))
			continue;
		stripe = stripe_of(h, b);
		mask = map_lock_take(&stripe->lock);
		e = h->bucket[b];
		if (e)
			copy_key(h, e, next_key);
		map_lock_release(&stripe->lock, mask);
		if (e)
			return 0;
	}
	return -ENOENT;
}

/* A key that is not there (any more): the first one, as Linux. */
int hash_next_key(struct map *map, const void *key, void *next_key)
{
	struct hash_map *h = hash_of(map);
	struct hash_stripe *stripe;
	struct hash_elem *e, *next = NULL;
	u32 hash;
	u8 mask;

	if (!key)
		return first_key_from(h, 0, next_key);
	hash = hash_key(h, key);
	stripe = stripe_of(h, hash);
	mask = map_lock_take(&stripe->lock);
	e = *find_link(h, hash, key);
	if (e)
		next = e->next;
	if (next)
		copy_key(h, next, next_key);
	map_lock_release(&stripe->lock, mask);
	if (next)
		return 0;
	return first_key_from(h, e ? (u64)(hash & h->mask) + 1 : 0, next_key);
}

/*
 * Visits what is in each bucket when it comes to it; the callback may change the map. The next
 * element is read before the callback, which may delete the present one; if that next one is reused
 * elsewhere meanwhile, the rest of the bucket is skipped (Linux would go on in the other bucket).
 */
long hash_for_each_elem(struct hash_map *h, struct bpf_func *cb, u64 cb_ctx, u64 flags,
			char *(*value_of)(const struct hash_map *h, struct hash_elem *e))
{
	struct hash_elem *e, *next;
	long nr = 0;
	u64 b;

	if (flags)
		return -EINVAL;
	for (b = 0; b <= h->mask; b++) {
		for (e = __atomic_load_n(&h->bucket[b], __ATOMIC_ACQUIRE); e; e = next) {
			if ((__atomic_load_n(&e->hash, __ATOMIC_ACQUIRE) & h->mask) != b)
				break;
			next = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE);
			nr++;
			if (cb->call(cb, (u64)&h->map, (u64)e->key, (u64)value_of(h, e), cb_ctx, 0))
				return nr;
		}
	}
	return nr;
}

long hash_remove(struct map *map, const void *key)
{
	return hash_delete(hash_of(map), key, NULL, NULL);
}

int hash_sys_remove(struct map *map, const void *key)
{
	return hash_delete(hash_of(map), key, NULL, NULL);
}

/* ---- life ---- */

int hash_check(const struct map_attr *attr, bool percpu)
{
	int err = map_check_flags(attr, BPF_F_NO_PREALLOC | BPF_F_NUMA_NODE | BPF_F_ZERO_SEED |
						BPF_F_RDONLY | BPF_F_WRONLY | BPF_F_RDONLY_PROG |
						BPF_F_WRONLY_PROG);

	if (err)
		return err;
	if (percpu && map_wants_node(attr))
		return -EINVAL;
	if (!attr->max_entries || !attr->key_size || !attr->value_size)
		return -EINVAL;
	if ((u64)attr->key_size + attr->value_size >= MAP_KMALLOC_MAX - HASH_ELEM_OVERHEAD)
		return -E2BIG;
	if (percpu && align_up(attr->value_size, 8) > MAP_PCPU_UNIT_MAX)
		return -E2BIG;
	return 0;
}

void hash_destroy(struct map *map)
{
	struct hash_map *h = hash_of(map);

	objcache_destroy(h->cache);
	rcu_mem_unmap(h->bucket, h->bucket_bytes);
	free(h->stripe);
	map_fini(map);
	free(h);
}

static void set_sizes(struct hash_map *h, bool percpu)
{
	const struct map *map = &h->map;
	u64 buckets = roundup_pow2(map->max_entries);

	h->mask = buckets - 1;
	h->bucket_bytes = buckets * sizeof(*h->bucket);
	h->stripe_mask = min_of(buckets, (u64)HASH_STRIPES) - 1;
	h->key_words = (map->key_size + 7) / 8;
	h->value_off = sizeof(struct hash_elem) + 8 * h->key_words;
	if (percpu) {
		h->nr_cpus = map_nr_cpus(map);
		/* few vCPUs: no two share a cache line; many: memory counts more */
		h->cpu_stride = align_up(map->value_size, h->nr_cpus <= 16 ? 64 : 8);
		h->elem_bytes = h->value_off + (u64)h->nr_cpus * h->cpu_stride;
	} else {
		h->elem_bytes = h->value_off + align_up(map->value_size, 8);
	}
}

static int take_memory(struct hash_map *h)
{
	u32 max = h->map.max_entries;

	/* beyond max_entries: one for each writer that replaces, before it gives the old one back
	 */
	h->cache = objcache_create(
		h->elem_bytes, 8,
		h->map.map_flags & BPF_F_NO_PREALLOC ? 0 : max + map_nr_cpus(&h->map));
	h->bucket = rcu_mem_map(h->bucket_bytes);
	h->stripe = rcu_mem_alloc((h->stripe_mask + 1) * sizeof(*h->stripe));
	return h->cache && h->bucket && h->stripe ? 0 : -ENOMEM;
}

int hash_create(struct inlay *inlay, const struct map_attr *attr, const struct map_ops *ops,
		bool percpu, struct map **ret_map)
{
	struct hash_map *h;
	int err;

	if (roundup_pow2(attr->max_entries) >= HASH_MAX_BUCKETS)
		return -E2BIG;
	err = map_check_btf(inlay, attr, BTF_KEY_ANY);
	if (err)
		return err;
	h = rcu_mem_alloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	map_init(&h->map, ops, inlay, attr);
	set_sizes(h, percpu);
	/* the same machine, map and input give the same order of elements, run after run */
	if (!(attr->map_flags & BPF_F_ZERO_SEED))
		h->seed = XXH3_64bits(attr->name, sizeof(attr->name)) ^
			  ((u64)attr->key_size << 32 | attr->max_entries);
	err = take_memory(h);
	if (err) {
		obj_abort(&h->map.obj);
		hash_destroy(&h->map);
		return err;
	}
	*ret_map = &h->map;
	return 0;
}

u64 hash_mem_usage(const struct map *map)
{
	const struct hash_map *h = hash_of(map);
	u64 nr = map->map_flags & BPF_F_NO_PREALLOC ? __atomic_load_n(&h->nr, __ATOMIC_RELAXED)
						    : map->max_entries;

	return sizeof(*h) + h->bucket_bytes + (h->stripe_mask + 1) * sizeof(*h->stripe) +
	       nr * h->elem_bytes;
}

/* ---- the map type "hash" ---- */

static int check(const struct map_attr *attr)
{
	return hash_check(attr, false);
}

static int create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	return hash_create(inlay, attr, &map_ops_hash, false, ret_map);
}

static void fill(const struct hash_map *h, struct hash_elem *e, const void *value, bool is_new)
{
	map_value_write(hash_value(h, e), value, h->map.value_size);
}

static void copy(const struct hash_map *h, struct hash_elem *e, void *out)
{
	map_value_read(out, hash_value(h, e), h->map.value_size);
}

static char *value_of(const struct hash_map *h, struct hash_elem *e)
{
	return hash_value(h, e);
}

static void *lookup(struct map *map, const void *key)
{
	struct hash_map *h = hash_of(map);
	struct hash_elem *e = hash_find(h, key);

	return e ? hash_value(h, e) : NULL;
}

static long update(struct map *map, const void *key, const void *value, u64 flags)
{
	return hash_write(hash_of(map), key, value, flags, fill, false);
}

static long for_each(struct map *map, struct bpf_func *cb, u64 cb_ctx, u64 flags)
{
	return hash_for_each_elem(hash_of(map), cb, cb_ctx, flags, value_of);
}

static int sys_lookup(struct map *map, const void *key, void *value, u64 flags)
{
	int err = map_check_lookup_flags(flags);

	return err ? err : hash_read(hash_of(map), key, copy, value);
}

static int sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	return hash_write(hash_of(map), key, value, flags, fill, false);
}

static int sys_lookup_and_delete(struct map *map, const void *key, void *value, u64 flags)
{
	int err = map_check_lookup_flags(flags);

	return err ? err : hash_delete(hash_of(map), key, copy, value);
}

const struct map_ops map_ops_hash = {
	.name = "hash",
	.type = BPF_MAP_TYPE_HASH,
	.flags = MAP_CAN_ITER_KEYS | MAP_SLEEPABLE_OK | MAP_IN_TRACING_OK,
	.check = check,
	.create = create,
	.destroy = hash_destroy,
	.lookup = lookup,
	.update = update,
	.remove = hash_remove,
	.for_each = for_each,
	.sys_lookup = sys_lookup,
	.sys_update = sys_update,
	.sys_remove = hash_sys_remove,
	.sys_lookup_and_delete = sys_lookup_and_delete,
	.sys_next_key = hash_next_key,
	.mem_usage = hash_mem_usage,
};
