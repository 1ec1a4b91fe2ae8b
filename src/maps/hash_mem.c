// SPDX-License-Identifier: BSD-2-Clause
/*
 * A hash map's memory: two areas of address space, taken when the map is made and filled with memory as it is touched:
 * groups, and elements. Large ones are backed by huge pages, as a lookup in a large map is little more than its cache and
 * TLB misses.
 *
 * Exactly max_entries elements can be in groups. They are handed out in order, then through free lists, one a vCPU, so
 * that threads that insert and delete do not share a line; a vCPU whose own is empty takes from the others'. Each vCPU has
 * one element beyond that, to fill when it replaces; what it replaced is the next one's.
 *
 * An overflow group exists only while it names an element, so as many as there are elements are enough, whatever happens.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "maps/hash_key.h"
#include "object/instance.h"
#include "rcu/mem.h"

#define HASH_ELEM_OVERHEAD 48	      /* bytes of the kernel's element header, for its size limit */
#define HASH_MAX_BUCKETS   (1u << 28) /* fewer, as the kernel's 16-byte buckets must fit 32 bits */
#define HUGE_PAGE	   (2ull << 20)
#define FRESH_BATCH	   32 /* elements a pool takes at once */

/* ---- pools ---- */

static struct hash_pool *own_pool(struct hash_map *h)
{
	u32 cpu = env_tls.cpu;

	return &h->pool[cpu < h->nr_pools ? cpu : 0];
}

static void lock_pool(struct hash_pool *pool)
{
	while (unlikely(__atomic_exchange_n(&pool->lock.held, 1, __ATOMIC_ACQUIRE)))
		map_wait_bit(&pool->lock.held);
}

struct hash_pool *hash_pool_lock(struct hash_map *h)
{
	struct hash_pool *pool = own_pool(h);

	lock_pool(pool);
	return pool;
}

static void set(u32 *field, u32 value)
{
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static u32 get(const u32 *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

static u32 take_from(struct hash_map *h, struct hash_pool *pool)
{
	u32 elem = pool->free;

	if (elem != HASH_NONE) {
		pool->free = get((u32 *)hash_elem_at(h, elem));
		set(&pool->nr_free, pool->nr_free - 1);
		return elem;
	}
	if (pool->next_fresh == pool->end_fresh)
		return HASH_NONE;
	elem = pool->next_fresh;
	set(&pool->next_fresh, pool->next_fresh + 1);
	return elem;
}

/* Some elements never used yet, if there are any left. */
static void take_fresh(struct hash_map *h, struct hash_pool *pool)
{
	u64 max = h->map.max_entries, first;

	if (__atomic_load_n(&h->fresh, __ATOMIC_RELAXED) >= max)
		return;
	first = __atomic_fetch_add(&h->fresh, FRESH_BATCH, __ATOMIC_RELAXED);
	if (first >= max)
		return;
	set(&pool->next_fresh, first);
	set(&pool->end_fresh, min_of(first + FRESH_BATCH, max));
}

static u32 steal(struct hash_map *h, struct hash_pool *own)
{
	u32 first = own - h->pool, i, elem;

	for (i = 1; i < h->nr_pools; i++) {
		struct hash_pool *pool = &h->pool[(first + i) % h->nr_pools];

		if (!get(&pool->nr_free) && get(&pool->next_fresh) == get(&pool->end_fresh))
			continue;
		lock_pool(pool);
		elem = take_from(h, pool);
		hash_pool_unlock(pool);
		if (elem != HASH_NONE)
			return elem;
	}
	return HASH_NONE;
}

u32 hash_take(struct hash_map *h)
{
	struct hash_pool *pool = hash_pool_lock(h);
	u32 elem = take_from(h, pool);

	if (unlikely(elem == HASH_NONE)) {
		take_fresh(h, pool);
		elem = take_from(h, pool);
	}
	hash_pool_unlock(pool);
	return unlikely(elem == HASH_NONE) ? steal(h, pool) : elem;
}

void hash_give(struct hash_map *h, u32 elem)
{
	struct hash_pool *pool = hash_pool_lock(h);

	/* release: readers may be looking at it (hash.c) */
	__atomic_store_n((u32 *)hash_elem_at(h, elem), pool->free, __ATOMIC_RELEASE);
	pool->free = elem;
	set(&pool->nr_free, pool->nr_free + 1);
	hash_pool_unlock(pool);
}

u32 hash_count(const struct hash_map *h)
{
	u64 fresh = __atomic_load_n(&h->fresh, __ATOMIC_RELAXED);
	s64 nr = min_of(fresh, (u64)h->map.max_entries);
	u32 i;

	for (i = 0; i < h->nr_pools; i++) {
		const struct hash_pool *pool = &h->pool[i];

		nr -= get(&pool->nr_free) + (get(&pool->end_fresh) - get(&pool->next_fresh));
	}
	return max_of(nr, (s64)0);
}

/* ---- overflow groups ---- */

u32 hash_overflow_take(struct hash_map *h)
{
	u8 mask = map_lock_take(&h->overflow_lock);
	u32 group = h->overflow_free;

	if (group) {
		h->overflow_free = h->group[group].next;
		__atomic_store_n(&h->group[group].next, 0, __ATOMIC_RELEASE);
	} else {
		group = h->nr_groups + h->overflow_fresh++;
	}
	map_lock_release(&h->overflow_lock, mask);
	return group;
}

/* A reader that still stands on it is led astray through other free groups, to their end, and finds seq changed. */
void hash_overflow_give(struct hash_map *h, u32 group)
{
	u8 mask = map_lock_take(&h->overflow_lock);

	__atomic_store_n(&h->group[group].next, h->overflow_free, __ATOMIC_RELEASE);
	h->overflow_free = group;
	map_lock_release(&h->overflow_lock, mask);
}

/* ---- life ---- */

int hash_check(const struct map_attr *attr, bool percpu)
{
	int err = map_check_flags(attr, BPF_F_NO_PREALLOC | BPF_F_NUMA_NODE | BPF_F_ZERO_SEED | BPF_F_RDONLY | BPF_F_WRONLY |
						BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG);

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

	rcu_mem_unmap(h->group_mem, h->group_bytes + HUGE_PAGE);
	rcu_mem_unmap(h->elem_mem, h->all_elem_bytes + HUGE_PAGE);
	free(h->pool);
	map_fini(map);
	free(h);
}

/* Few vCPUs: no two share a cache line; many: memory counts more. */
u32 hash_cpu_stride(const struct map *map)
{
	return align_up(map->value_size, map_nr_cpus(map) <= 16 ? 64 : 8);
}

static void set_sizes(struct hash_map *h, bool percpu)
{
	const struct map *map = &h->map;
	u64 all = (u64)map->max_entries + h->nr_pools;

	h->nr_groups = max_of(map->max_entries / HASH_LOAD + !!(map->max_entries % HASH_LOAD), 1u);
	h->group_bytes = ((u64)h->nr_groups + map->max_entries) * sizeof(*h->group);
	h->key_words = (map->key_size + 7) / 8;
	h->value_off = 8 * h->key_words;
	if (percpu) {
		h->nr_cpus = h->nr_pools;
		h->cpu_stride = hash_cpu_stride(map);
		h->elem_bytes = h->value_off + (u64)h->nr_cpus * h->cpu_stride;
	} else {
		h->elem_bytes = h->value_off + align_up(map->value_size, 8);
	}
	h->all_elem_bytes = all * h->elem_bytes;
}

/*
 * Zeroed address space that starts on a huge page's boundary; *ret_mem is what was mapped. lazy: no promise that there is
 * memory for all of it. huge: bytes from its start that are worth huge pages.
 */
static char *map_area(u64 size, bool lazy, u64 huge, void **ret_mem)
{
	char *mem, *area;

	if (rcu_mem_fails())
		return NULL;
	mem = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (lazy ? MAP_NORESERVE : 0), -1,
		   0);
	if (mem == MAP_FAILED)
		return NULL;
	*ret_mem = mem;
	area = (char *)align_up((u64)mem, HUGE_PAGE);
	if (huge >= HUGE_PAGE)
		madvise(area, huge, MADV_HUGEPAGE); /* without it all is slower, no more */
	return area;
}

static int take_memory(struct hash_map *h)
{
	bool lazy = h->map.map_flags & BPF_F_NO_PREALLOC;
	u32 i;

	/* many more overflow groups than will ever be used: lazily */
	h->group = (struct hash_group *)map_area(h->group_bytes, true, (u64)h->nr_groups * sizeof(*h->group), &h->group_mem);
	if (!h->group)
		return -ENOMEM;
	h->elem = map_area(h->all_elem_bytes, lazy, h->all_elem_bytes, &h->elem_mem);
	if (!h->elem)
		return -ENOMEM;
	h->pool = rcu_mem_alloc(h->nr_pools * sizeof(*h->pool));
	if (!h->pool)
		return -ENOMEM;
	for (i = 0; i < h->nr_pools; i++) {
		h->pool[i].free = HASH_NONE;
		h->pool[i].spare = h->map.max_entries + i;
	}
	return 0;
}

/*
 * Random, so that nobody can send keys that collide. In a replay, however, the same machine, map and input give the same
 * order of elements, run after run.
 */
static void make_seed(struct hash_map *h, const struct map_attr *attr)
{
	u32 i;

	if (!(attr->map_flags & BPF_F_ZERO_SEED)) {
		if (env_clock_kind(h->map.obj.inlay->env) == ENV_CLOCK_MANUAL ||
		    getrandom(h->seed, sizeof(h->seed), 0) != sizeof(h->seed))
			h->seed[0] = XXH3_64bits(attr->name, sizeof(attr->name)) ^
				     ((u64)attr->key_size << 32 | attr->max_entries);
	}
	/* the multipliers: never few bits */
	for (i = 1; i < 4; i++)
		h->seed[i] = XXH3_64bits_withSeed(&h->seed[i], sizeof(h->seed[i]), h->seed[0] + i);
	h->seed[1] |= 1;
	h->seed[3] |= 1;
}

int hash_create(struct inlay *inlay, const struct map_attr *attr, const struct map_ops *ops, bool percpu,
		struct map **ret_map)
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
	h->nr_pools = map_nr_cpus(&h->map);
	set_sizes(h, percpu);
	make_seed(h, attr);
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
	u64 nr = (map->map_flags & BPF_F_NO_PREALLOC ? hash_count(h) : map->max_entries) + h->nr_pools;
	u64 groups = (u64)h->nr_groups + __atomic_load_n(&h->overflow_fresh, __ATOMIC_RELAXED);

	return sizeof(*h) + groups * sizeof(*h->group) + h->nr_pools * sizeof(*h->pool) + nr * h->elem_bytes;
}
