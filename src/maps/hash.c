// SPDX-License-Identifier: BSD-2-Clause
/*
 * The hash table, and the map type "hash".
 *
 * A key's hash chooses its home group, one cache line that holds up to 11 one-byte tags (a piece of the hash, 0: nothing
 * here) and where the 11 elements lie. A lookup compares all tags at once and touches an element only where one agrees, so
 * it costs two cache lines for a key that is there and one for a key that is not. Elements never move; nor do the places
 * that name them. Where 11 are not enough (a group has 4 on average in a full map) overflow groups hang on the home group;
 * one that becomes empty is taken off at once, so churning leaves nothing behind that would have to be cleaned up.
 *
 * Readers take no lock. Writers lock the home group (bit 0 of seq) with interrupts masked, so that nobody waits for the
 * thread it interrupted.
 *
 * Guarantees
 *  1. A key that is present all the time is never missed, whatever happens to other keys, and while it is replaced a
 *     reader finds the old or the new element: replacing is one store to where the old one was named.
 *  2. Exactly max_entries elements fit; replacing works when full.
 *  3. Memory of a deleted or replaced element is reused at once, preallocated or not (so a program that churns keys inside
 *     one long run needs no more memory than the map's), as in Linux. A pointer to a value stays valid memory until the
 *     map is gone, but after deletion it may show another element's value.
 *  4. A lookup never matches a key made of parts of two keys, or of what free memory holds, though key memory is rewritten
 *     while readers compare.
 *
 * Why 1 and 4 hold: an element or overflow group is given back only after its place is cleared, and after that the home
 * group's seq has changed. Whoever reuses the memory writes it with release stores; readers load it with acquire. So a
 * reader who saw any of the new contents also sees the new seq, and one who found a changed seq looks again, hit or miss.
 * Every repeat means some writer got something done. Inserting changes no seq: nobody can miss what was not there.
 */
#include "maps/hash_key.h"

u64 hash_key(const struct hash_map *h, const void *key)
{
	return hash_bytes(h, key, h->map.key_size);
}

/* ---- readers ---- */

/* ret_word, if not NULL: the first word of the value as it was while the element was in the map. */
static __attribute__((noinline)) char *find_any(const struct hash_map *h, u64 hash, const void *key, u64 *ret_word)
{
	struct hash_group *home = hash_home(h, hash), *g;
	u8 tag = hash_tag(hash);
	u32 seq, bits, next;
	char *e;

again:
	seq = __atomic_load_n(&home->seq, __ATOMIC_ACQUIRE);
	for (g = home;; g = &h->group[next]) {
		for (bits = hash_match(g, tag); bits; bits &= bits - 1) {
			e = hash_elem_at(h, hash_elem_of(g, bits));
			if (!hash_equal(e, key, h->map.key_size))
				continue;
			if (ret_word)
				*ret_word = __atomic_load_n((u64 *)(e + h->value_off), __ATOMIC_ACQUIRE);
			if (unlikely(__atomic_load_n(&home->seq, __ATOMIC_RELAXED) != seq))
				goto again;
			return e;
		}
		next = __atomic_load_n(&g->next, __ATOMIC_ACQUIRE);
		if (!next)
			break;
	}
	if (unlikely(__atomic_load_n(&home->seq, __ATOMIC_RELAXED) != seq))
		goto again;
	return NULL;
}

/*
 * The same where it is as easy as nearly always: the first tag that agrees is the key's, or none does and there is no overflow.
 * Free of loops, it needs no register saved. size, elem_bytes: h's, constants in the twins.
 */
static inline __attribute__((always_inline)) char *find(const struct hash_map *h, u64 hash, const void *key, u32 size,
							u64 elem_bytes, u64 *ret_word)
{
	const struct hash_group *home = hash_home(h, hash);
	u32 seq = __atomic_load_n(&home->seq, __ATOMIC_ACQUIRE), bits = hash_match_any(home, hash_tag(hash));
	char *e;

	if (bits & HASH_SLOTS) {
		e = h->elem + hash_elem_of(home, bits) * elem_bytes;
		if (likely(hash_equal(e, key, size))) {
			if (ret_word)
				*ret_word = __atomic_load_n((u64 *)(e + h->value_off), __ATOMIC_ACQUIRE);
			if (likely(__atomic_load_n(&home->seq, __ATOMIC_RELAXED) == seq)) {
				if (!e)
					__builtin_unreachable();
				return e;
			}
		}
	} else if (likely(!__atomic_load_n(&home->next, __ATOMIC_ACQUIRE)) &&
		   likely(__atomic_load_n(&home->seq, __ATOMIC_RELAXED) == seq)) {
		return NULL;
	}
	return find_any(h, hash, key, ret_word);
}

char *hash_find_hashed(const struct hash_map *h, u64 hash, const void *key)
{
	return find(h, hash, key, h->map.key_size, h->elem_bytes, NULL);
}

char *hash_find(const struct hash_map *h, const void *key)
{
	return hash_find_hashed(h, hash_key(h, key), key);
}

u64 hash_find_word(const struct hash_map *h, const void *key)
{
	u64 word;

	return find(h, hash_key(h, key), key, h->map.key_size, h->elem_bytes, &word) ? word : 0;
}

/* One twin a size; all but the general one have constants for what depends on it. */
#define TWIN(name_, size_, value_off_, elem_bytes_)                                                \
	static u64 name_(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)                                   \
	{                                                                                          \
		const struct hash_map *h = hash_of((const struct map *)r1);                        \
		const void *key = (const void *)r2;                                                \
		char *e = find(h, hash_bytes(h, key, size_), key, size_, elem_bytes_, NULL);       \
                                                                                                   \
		return e ? (u64)e + (value_off_) : 0;                                              \
	}

/* Words, addresses of both families with and without ports, what programs make of them and a process or a device. */
#define SIZES(ROW) ROW(4) ROW(8) ROW(12) ROW(16) ROW(20) ROW(24) ROW(32) ROW(40) ROW(48) ROW(64)

#define SIZED_TWIN(size_) TWIN(twin_##size_, size_, ((size_) + 7) / 8 * 8, h->elem_bytes)
SIZES(SIZED_TWIN)
TWIN(twin_4_small, 4, 8, 16ull)
TWIN(twin_8_small, 8, 8, 16ull)
TWIN(twin_any, h->map.key_size, h->value_off, h->elem_bytes)

u64 (*hash_twin(const struct map *map))(u64, u64, u64, u64, u64)
{
	bool small = map->value_size <= 8 && !(map->ops->flags & MAP_PERCPU);

	if (small && map->key_size == 4)
		return twin_4_small;
	if (small && map->key_size == 8)
		return twin_8_small;
	switch (map->key_size) {
#define CASE(size_) \
	case size_: \
		return twin_##size_;
		SIZES(CASE)
#undef CASE
	}
	return twin_any;
}

/* ---- writers ---- */

u8 hash_lock(struct hash_group *home)
{
	u8 mask = map_mask();

	/* no look at it before: the line would come twice, shared and to own, if another processor has it */
	while (unlikely(__atomic_fetch_or(&home->seq, 1, __ATOMIC_ACQUIRE) & 1))
		map_wait_bit(&home->seq);
	return mask;
}

void hash_unlock(struct hash_group *home, u8 mask)
{
	__atomic_store_n(&home->seq, __atomic_load_n(&home->seq, __ATOMIC_RELAXED) & ~1u, __ATOMIC_RELEASE);
	map_unmask(mask);
}

/* Something has left: before its memory is given back. Pairs with the readers' second look at seq. */
static void left(struct hash_group *home)
{
	__atomic_store_n(&home->seq, __atomic_load_n(&home->seq, __ATOMIC_RELAXED) + 2, __ATOMIC_RELEASE);
}

bool hash_locate(const struct hash_map *h, u64 hash, const void *key, struct hash_place *ret_place)
{
	struct hash_group *g = hash_home(h, hash);
	u8 tag = hash_tag(hash);
	u32 bits;

	for (;; g = &h->group[g->next]) {
		for (bits = hash_match(g, tag); bits; bits &= bits - 1) {
			u32 i = __builtin_ctz(bits);

			if (!hash_equal(hash_elem_at(h, g->elem[i]), key, h->map.key_size))
				continue;
			*ret_place = (struct hash_place){g, i};
			return true;
		}
		if (!g->next)
			return false;
	}
}

/* Key and value; no group names the element yet. */
static void fill_elem(const struct hash_map *h, char *e, const void *key, const void *value, hash_fill_fn fill)
{
	u32 size = h->map.key_size, i;

	/* release: see the top */
	if (size == 4)
		__atomic_store_n((u32 *)e, hash_load32(key), __ATOMIC_RELEASE);
	else
		for (i = 0; i < h->key_words; i++)
			__atomic_store_n((u64 *)e + i, hash_key_word(key, i, size), __ATOMIC_RELEASE);
	fill(h, e, value, true);
}

/* A place for one more: the first that is free, and if none is, in a new group at the end. */
static int insert(struct hash_map *h, struct hash_group *home, u64 hash, const void *key, const void *value,
		  hash_fill_fn fill)
{
	struct hash_group *g = home, *last;
	u32 elem = hash_take(h), group = 0, hole;

	if (elem == HASH_NONE)
		return -E2BIG;
	fill_elem(h, hash_elem_at(h, elem), key, value, fill);
	while (!(hole = hash_match(g, 0)) && g->next)
		g = &h->group[g->next];
	last = g;
	if (!hole) {
		group = hash_overflow_take(h);
		g = &h->group[group];
		hole = 1;
	}
	hole = __builtin_ctz(hole);
	/* both pair with the acquires in find() */
	__atomic_store_n(&g->elem[hole], elem, __ATOMIC_RELEASE);
	__atomic_store_n(&g->tag[hole], hash_tag(hash), __ATOMIC_RELEASE);
	if (group)
		__atomic_store_n(&last->next, group, __ATOMIC_RELEASE);
	return 0;
}

static void replace(struct hash_map *h, struct hash_group *home, struct hash_place at, const void *key, const void *value,
		    hash_fill_fn fill)
{
	struct hash_pool *pool = hash_pool_lock(h);
	u32 old = at.g->elem[at.i];

	fill_elem(h, hash_elem_at(h, pool->spare), key, value, fill);
	__atomic_store_n(&at.g->elem[at.i], pool->spare, __ATOMIC_RELEASE);
	left(home);
	pool->spare = old;
	hash_pool_unlock(pool);
}

int hash_write(struct hash_map *h, const void *key, const void *value, u64 flags, hash_fill_fn fill, bool in_place,
	       hash_copy_fn was, void *out)
{
	u64 hash = hash_key(h, key);
	struct hash_group *home = hash_home(h, hash);
	struct hash_place at;
	bool there;
	u8 mask;
	int err = 0;

	if (map_check_update_flags(flags))
		return -EINVAL;
	mask = hash_lock(home);
	there = hash_locate(h, hash, key, &at);
	if (there && was)
		was(h, hash_elem_at(h, at.g->elem[at.i]), out);
	if (there && flags == BPF_NOEXIST)
		err = -EEXIST;
	else if (!there && flags == BPF_EXIST)
		err = -ENOENT;
	else if (!there)
		err = insert(h, home, hash, key, value, fill);
	else if (in_place)
		fill(h, hash_elem_at(h, at.g->elem[at.i]), value, false);
	else
		replace(h, home, at, key, value, fill);
	hash_unlock(home, mask);
	return err;
}

/* Takes an empty overflow group out of its list. */
static void unlink_group(struct hash_map *h, struct hash_group *home, struct hash_group *g)
{
	u32 group = g - h->group;
	struct hash_group *prev = home;

	while (prev->next != group)
		prev = &h->group[prev->next];
	__atomic_store_n(&prev->next, g->next, __ATOMIC_RELEASE);
	left(home);
	hash_overflow_give(h, group);
}

int hash_delete(struct hash_map *h, const void *key, hash_copy_fn copy, void *out)
{
	u64 hash = hash_key(h, key);
	struct hash_group *home = hash_home(h, hash);
	struct hash_place at;
	u8 mask = hash_lock(home);
	u32 elem;

	if (!hash_locate(h, hash, key, &at)) {
		hash_unlock(home, mask);
		return -ENOENT;
	}
	elem = at.g->elem[at.i];
	if (copy)
		copy(h, hash_elem_at(h, elem), out);
	__atomic_store_n(&at.g->tag[at.i], 0, __ATOMIC_RELEASE);
	left(home);
	if (at.g != home && hash_match(at.g, 0) == HASH_SLOTS)
		unlink_group(h, home, at.g);
	hash_give(h, elem);
	hash_unlock(home, mask);
	return 0;
}

int hash_read(struct hash_map *h, const void *key, hash_copy_fn copy, void *out)
{
	u64 hash = hash_key(h, key);
	struct hash_group *home = hash_home(h, hash);
	struct hash_place at;
	u8 mask = hash_lock(home);
	bool there = hash_locate(h, hash, key, &at);

	if (there)
		copy(h, hash_elem_at(h, at.g->elem[at.i]), out);
	hash_unlock(home, mask);
	return there ? 0 : -ENOENT;
}

long hash_remove(struct map *map, const void *key)
{
	return hash_delete(hash_of(map), key, NULL, NULL);
}

int hash_sys_remove(struct map *map, const void *key)
{
	return hash_delete(hash_of(map), key, NULL, NULL);
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

static void fill(const struct hash_map *h, char *e, const void *value, bool is_new)
{
	map_value_write(hash_value(h, e), value, h->map.value_size);
}

static void copy(const struct hash_map *h, char *e, void *out)
{
	map_value_read(out, hash_value(h, e), h->map.value_size);
}

static char *value_of(const struct hash_map *h, char *e)
{
	return hash_value(h, e);
}

static void *lookup(struct map *map, const void *key)
{
	struct hash_map *h = hash_of(map);
	char *e = hash_find(h, key);

	return e ? hash_value(h, e) : NULL;
}

static long update(struct map *map, const void *key, const void *value, u64 flags)
{
	return hash_write(hash_of(map), key, value, flags, fill, false, NULL, NULL);
}

static u64 update_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return update((struct map *)r1, (const void *)r2, (const void *)r3, r4);
}

static u64 remove_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return hash_remove((struct map *)r1, (const void *)r2);
}

static long for_each(struct map *map, struct bpf_func *cb, u64 cb_ctx, u64 flags)
{
	return hash_for_each_elem(hash_of(map), cb, cb_ctx, flags, value_of);
}

/* What they are depends on the sizes of key and value only: for inner maps as well. */
static u64 (*direct(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64)
{
	switch (helper_id) {
	case BPF_FUNC_map_lookup_elem:
		return hash_twin(map);
	case BPF_FUNC_map_update_elem:
		return update_twin;
	case BPF_FUNC_map_delete_elem:
		return remove_twin;
	}
	return NULL;
}

static int sys_lookup(struct map *map, const void *key, void *value, u64 flags)
{
	int err = map_check_lookup_flags(flags);

	return err ? err : hash_read(hash_of(map), key, copy, value);
}

static int sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	return update(map, key, value, flags);
}

static int sys_lookup_and_delete(struct map *map, const void *key, void *value, u64 flags)
{
	int err = map_check_lookup_flags(flags);

	return err ? err : hash_delete(hash_of(map), key, copy, value);
}

const struct map_ops map_ops_hash = {
	.name = "hash",
	.shown = MAP_SHOWN_HASH,
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
	.direct = direct,
};
