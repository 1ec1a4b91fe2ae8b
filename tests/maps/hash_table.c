// SPDX-License-Identifier: BSD-2-Clause
// The hash table itself: against a simple reference, tags compared two ways, long lists of groups, churn, memory, keys
// made to collide.
#include <math.h>
#include <sys/mman.h>

#include "fixture.h"
#include "maps/hash_key.h"

/* ---- tags ---- */

static void tags(void)
{
	struct hash_group g;
	u64 seed = 5, bad = 0, n, i;
	u32 want;
	u8 tag;

	for (n = 0; n < 200000; n++) {
		memset(&g, n & 1 ? 0xff : 0, sizeof(g));
		for (i = 0; i < HASH_GROUP; i++)
			g.tag[i] = rnd(&seed) % (n & 2 ? 3 : 256);
		tag = n & 4 ? g.tag[rnd(&seed) % HASH_GROUP] : rnd(&seed);
		for (want = 0, i = 0; i < HASH_GROUP; i++)
			want |= (u32)(g.tag[i] == tag) << i;
		bad += (hash_match_plain(&g, tag) & HASH_SLOTS) != want;
#ifdef ARCH_SSE2
		bad += (hash_match_sse2(&g, tag) & HASH_SLOTS) != want;
#endif
	}
	is_u64(bad, 0, "tags compared one by one, in plain C words and by SIMD: the same places");
}

/* ---- comparison ---- */

/* Of a constant size the comparison is another text than of one that is read: what it takes for equal, byte by byte. */
#define COMPARE(size_)                                                                            \
	do {                                                                                      \
		char e[80] __attribute__((aligned(8))) = {}, key[size_];                          \
		volatile u32 size = size_;                                                        \
		u32 i_;                                                                           \
                                                                                                  \
		for (i_ = 0; i_ < (size_); i_++)                                                  \
			e[i_] = key[i_] = rnd(&seed);                                             \
		bad += !hash_equal(e, key, size_) + !hash_equal(e, key, size);                    \
		for (i_ = 0; i_ < (size_); i_++) {                                                \
			key[i_] ^= 1u << rnd(&seed) % 8;                                          \
			bad += hash_equal(e, key, size_) + hash_equal(e, key, size);              \
			key[i_] = e[i_];                                                          \
		}                                                                                 \
	} while (0)

static void comparison(void)
{
	u64 seed = 11, bad = 0, n;

	for (n = 0; n < 100; n++) {
		COMPARE(1);
		COMPARE(3);
		COMPARE(4);
		COMPARE(5);
		COMPARE(8);
		COMPARE(12);
		COMPARE(16);
		COMPARE(20);
		COMPARE(24);
		COMPARE(32);
		COMPARE(40);
		COMPARE(48);
		COMPARE(64);
		COMPARE(68);
		COMPARE(72);
	}
	is_u64(bad, 0, "keys of every size compared with one that differs in one bit of one byte");
}

/* ---- against a reference ---- */

#define MODEL_KEYS 64
#define MODEL_OPS  60000

struct model {
	bool there[MODEL_KEYS];
	u64 value[MODEL_KEYS];
	u32 nr;
};

static void model_key(unsigned char *key, u32 size, u32 nr)
{
	memset(key, 0xa5, size);
	key[nr & 1 ? 0 : size - 1] = nr;
}

static long model_update(struct model *m, u32 max, u32 nr, u64 value, u64 flags)
{
	if (m->there[nr] && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!m->there[nr] && flags == BPF_EXIST)
		return -ENOENT;
	if (!m->there[nr] && m->nr == max)
		return -E2BIG;
	m->nr += !m->there[nr];
	m->there[nr] = true;
	m->value[nr] = value;
	return 0;
}

static bool lookup_agrees(struct map *map, const struct model *m, u32 nr, const unsigned char *key)
{
	u64 *value = map->ops->lookup(map, key);
	u64 twin = map->ops->direct(map, BPF_FUNC_map_lookup_elem)((u64)map, (u64)key, 0, 0, 0);

	if ((u64)value != twin || !value != !m->there[nr])
		return false;
	return !value || *value == m->value[nr];
}

static bool model_step(struct map *map, struct model *m, u64 *seed)
{
	u32 nr = rnd(seed) % MODEL_KEYS;
	unsigned char key[64];
	u64 value = rnd(seed), flags = rnd(seed) % 3;
	bool there = m->there[nr];

	model_key(key, map->key_size, nr);
	switch (rnd(seed) % 4) {
	case 0:
		if (map->ops->remove(map, key) != (there ? 0 : -ENOENT))
			return false;
		m->there[nr] = false;
		m->nr -= there;
		break;
	case 1:
	case 2:
		if (map->ops->update(map, key, &value, flags) !=
		    model_update(m, map->max_entries, nr, value, flags))
			return false;
		break;
	}
	return lookup_agrees(map, m, nr, key) && hash_count(hash_of(map)) == m->nr;
}

/* groups: made that few, so that lists of groups are long. */
static void model(u32 key_size, u32 groups, u32 flags)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, key_size, 8, 48, flags);
	struct model m = {.nr = 0};
	u64 seed = key_size * 131 + groups;
	u32 i, walked = 0, bad = 0;
	unsigned char key[64], next[64];

	if (groups)
		hash_of(map)->nr_groups = groups;
	rcu_enter();
	for (i = 0; i < MODEL_OPS && model_step(map, &m, &seed); i++)
		;
	is_u64(i, MODEL_OPS, "%u-byte keys, %u groups: random operations give the reference's results", key_size,
	       hash_of(map)->nr_groups);
	for (i = 0; i < MODEL_KEYS; i++) {
		model_key(key, key_size, i);
		bad += !lookup_agrees(map, &m, i, key);
	}
	for (i = 0; i < 100 && !map->ops->sys_next_key(map, i ? key : NULL, next); i++, walked++)
		memcpy(key, next, key_size);
	ok(!bad && walked == m.nr, "%u-byte keys: and the same elements at the end", key_size);
	for (i = 0; i < MODEL_KEYS; i++) {
		model_key(key, key_size, i);
		map->ops->remove(map, key);
	}
	rcu_leave();
	for (i = 0; i < hash_of(map)->nr_groups; i++)
		bad += hash_of(map)->group[i].next != 0;
	is_u64(bad, 0, "%u-byte keys: an emptied map has no overflow group", key_size);
	if (groups)
		hash_of(map)->nr_groups = 12; /* what was mapped */
	obj_put(&map->obj);
}

/* ---- exactly max_entries, wherever they are freed and inserted ---- */

static void exact(u32 max, u32 flags)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, 4, 8, max, flags);
	u64 seed = max, value = 1;
	u32 fits = 0, more = 0, bad = 0, i, round, key;

	for (i = 0; i < max + 50; i++) {
		env_enter(fix.env, i % 3, NULL);
		if (!map->ops->update(map, &i, &value, BPF_ANY))
			fits++;
	}
	for (round = 0; round < 2000; round++) {
		env_enter(fix.env, rnd(&seed) % 3, NULL);
		key = rnd(&seed) % max;
		bad += map->ops->remove(map, &key) != 0;
		env_enter(fix.env, rnd(&seed) % 3, NULL);
		bad += map->ops->update(map, &key, &value, BPF_NOEXIST) != 0;
		bad += map->ops->update(map, &key, &value, BPF_EXIST) != 0;
		more += map->ops->update(map, &(u32){max + round}, &value, BPF_ANY) != -E2BIG;
	}
	env_enter(fix.env, 0, NULL);
	ok(fits == max && !bad && !more && hash_count(hash_of(map)) == max,
	   "exactly %u elements fit, whichever vCPU inserts, deletes or replaces", max);
	obj_put(&map->obj);
}

/* ---- churn ---- */

static u64 ns_of_lookups(struct map *map, u64 first, u64 nr)
{
	u64 (*twin)(u64, u64, u64, u64, u64) = map->ops->direct(map, BPF_FUNC_map_lookup_elem);
	u64 best = ~0ULL, round, i, start, found = 0, key;

	for (round = 0; round < 7; round++) {
		start = now_ns();
		for (i = 0; i < 200000; i++) {
			key = first + i * 7919 % nr;
			found += !!twin((u64)map, (u64)&key, 0, 0, 0);
		}
		best = min_of(best, now_ns() - start);
	}
	__asm__ volatile("" : : "r"(found));
	return best;
}

static u32 overflow_groups(const struct hash_map *h)
{
	u32 nr = 0, i, at;

	for (i = 0; i < h->nr_groups; i++)
		for (at = h->group[i].next; at; at = h->group[at].next)
			nr++;
	return nr;
}

#define CHURN_MAX 20000ULL

static void churn(void)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, 8, 8, CHURN_MAX, 0);
	struct hash_map *h = hash_of(map);
	u64 i, before, after, bad = 0;

	for (i = 0; i < CHURN_MAX; i++)
		bad += map->ops->update(map, &i, &i, BPF_ANY) != 0;
	before = ns_of_lookups(map, 1ULL << 40, CHURN_MAX); /* of absent keys */
	for (i = CHURN_MAX; i < 150 * CHURN_MAX; i++) {
		bad += map->ops->remove(map, &(u64){i - CHURN_MAX}) != 0;
		bad += map->ops->update(map, &i, &i, BPF_NOEXIST) != 0;
	}
	after = ns_of_lookups(map, 1ULL << 40, CHURN_MAX);
	is_u64(bad, 0, "a full map takes every new key in the place of an old one, 150 times over");
	printf("# absent keys: %.2f ns before, %.2f ns after; %u overflow groups, %u ever\n", before / 200000.0,
	       after / 200000.0, overflow_groups(h), h->overflow_fresh);
	ok(overflow_groups(h) * 100 < h->nr_groups && h->overflow_fresh * 50 < h->nr_groups,
	   "which leaves few overflow groups behind");
	ok(after < 2 * before, "and does not make absent keys dearer");
	obj_put(&map->obj);
}

/* ---- memory ---- */

static u64 resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long long all, rss = 0;

	if (f && fscanf(f, "%llu %llu", &all, &rss) != 2)
		rss = 0;
	if (f)
		fclose(f);
	return rss * sysconf(_SC_PAGESIZE);
}

#define MEM_MAX 1000000u

static void memory(u32 key_size, u32 flags)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, key_size, 8, MEM_MAX, flags);
	u64 before = resident(), bytes, key[8] = {0}, i, bad = 0;

	for (i = 0; i < MEM_MAX; i++) {
		key[0] = i;
		bad += map->ops->update(map, key, &i, BPF_ANY) != 0;
	}
	bytes = resident() - before;
	printf("# %u-byte keys: %.1f bytes an element resident, mem_usage says %.1f\n", key_size, (double)bytes / MEM_MAX,
	       (double)map->ops->mem_usage(map) / MEM_MAX);
	ok(!bad && bytes <= (24ull + key_size + 8) * MEM_MAX, "a full map takes at most 24 bytes beyond key (%u) and value",
	   key_size);
	ok(map->ops->mem_usage(map) <= (24ull + key_size + 8) * MEM_MAX, "as it says itself");
	obj_put(&map->obj);
	rcu_barrier_all();
}

/* ---- keys made to collide ---- */

#define COLLIDING 100000u

/* Keys of 40 bytes that all belong to 64 of the groups of a map whose hash has no seed. */
static u64 *make_colliding(const struct hash_map *unseeded)
{
	u64 *keys = malloc(COLLIDING * 40ull), seed = 1, key[5] = {0};
	u32 nr = 0;

	while (nr < COLLIDING) {
		key[1] = rnd(&seed);
		if (hash_home(unseeded, XXH3_64bits_withSeed(key, 40, 0)) - unseeded->group >= unseeded->nr_groups / 390)
			continue;
		memcpy(&keys[5ull * nr++], key, 40);
	}
	return keys;
}

static double ns_of_keys(struct map *map, const u64 *keys)
{
	u64 (*twin)(u64, u64, u64, u64, u64) = map->ops->direct(map, BPF_FUNC_map_lookup_elem);
	u64 best = ~0ULL, start, missed = 0;
	u32 i, round;

	for (round = 0; round < 5; round++) {
		start = now_ns();
		for (i = 0; i < COLLIDING; i++)
			missed += !twin((u64)map, (u64)&keys[5 * (i * 7919ull % COLLIDING)], 0, 0, 0);
		best = min_of(best, now_ns() - start);
	}
	is_u64(missed, 0, "all of them are found");
	return (double)best / COLLIDING;
}

static u32 longest_list(const struct hash_map *h)
{
	u32 longest = 0, i, at, nr;

	for (i = 0; i < h->nr_groups; i++) {
		for (nr = 1, at = h->group[i].next; at; at = h->group[at].next)
			nr++;
		longest = max_of(longest, nr);
	}
	return longest;
}

static void colliding(void)
{
	struct map *plain = make_map(BPF_MAP_TYPE_HASH, 40, 8, COLLIDING, BPF_F_ZERO_SEED), *seeded, *other;
	u64 *keys = make_colliding(hash_of(plain)), *random = malloc(COLLIDING * 40ull), seed = 77, bad = 0;
	double ns, ns_random;
	u32 i;

	seeded = make_map(BPF_MAP_TYPE_HASH, 40, 8, COLLIDING, 0);
	other = make_map(BPF_MAP_TYPE_HASH, 40, 8, COLLIDING, 0);
	for (i = 0; i < 5 * COLLIDING; i++)
		random[i] = rnd(&seed);
	for (i = 0; i < COLLIDING; i++) {
		bad += seeded->ops->update(seeded, &keys[5 * i], &seed, BPF_NOEXIST) != 0;
		bad += other->ops->update(other, &random[5 * i], &seed, BPF_NOEXIST) != 0;
		if (i < COLLIDING / 20)
			bad += plain->ops->update(plain, &keys[5 * i], &seed, BPF_NOEXIST) != 0;
	}
	is_u64(bad, 0, "%u keys that collide without a seed fit", COLLIDING);
	ok(longest_list(hash_of(plain)) > 5, "in a map without a seed they hang on lists of %u groups",
	   longest_list(hash_of(plain)));
	ok(longest_list(hash_of(seeded)) <= 3, "in one with a seed on lists of at most %u",
	   longest_list(hash_of(seeded)));
	/* in turns, the best of each: on a busy machine one may be slowed all through its turn */
	for (i = 0, ns = ns_random = INFINITY; i < 10 && !(i && ns < 2 * ns_random); i++) {
		ns = min_of(ns, ns_of_keys(seeded, keys));
		ns_random = min_of(ns_random, ns_of_keys(other, random));
	}
	printf("# %.1f ns a lookup, of random keys %.1f\n", ns, ns_random);
	ok(ns < 2 * ns_random, "they cost at most twice what random keys cost");
	free(keys);
	free(random);
	obj_put(&plain->obj);
	obj_put(&seeded->obj);
	obj_put(&other->obj);
}

/* Keys people use: spread as random ones would be. */
static void spread(u32 size, u64 step, const char *what)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, size, 8, 1 << 16, 0);
	struct hash_map *h = hash_of(map);
	u64 key[2] = {0}, i, same_tag = 0, j;
	u32 bad = 0;

	for (i = 0; i < 1 << 16; i++) {
		key[size == 16] = i * step;
		bad += map->ops->update(map, key, &i, BPF_ANY) != 0;
	}
	for (i = 0; i < h->nr_groups; i++)
		for (j = 1; j < HASH_GROUP; j++)
			same_tag += h->group[i].tag[j] && h->group[i].tag[j] == h->group[i].tag[j - 1];
	printf("# %s: %u overflow groups of %u, %llu neighbours with one tag\n", what, overflow_groups(h), h->nr_groups,
	       (unsigned long long)same_tag);
	/* of 16384 groups with 4 on average about 15 have more than 11; of 50,000 neighbours about 200 have one tag */
	ok(!bad && overflow_groups(h) < 80 && same_tag < 600, "%u-byte keys, %s: spread well", size, what);
	obj_put(&map->obj);
}

int main(void)
{
	static const u32 sizes[] = {1, 3, 4, 7, 8, 12, 16, 20, 24, 29, 32, 40, 48, 64};
	u32 i;

	fix_up(3);
	tags();
	comparison();
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		model(sizes[i], 0, 0);
		model(sizes[i], 1, i & 1 ? BPF_F_NO_PREALLOC : 0);
	}
	model(8, 2, BPF_F_ZERO_SEED);
	exact(1, 0);
	exact(16, 0);
	exact(1000, BPF_F_NO_PREALLOC);
	churn();
	memory(4, 0);
	memory(8, 0);
	memory(8, BPF_F_NO_PREALLOC);
	memory(16, 0);
	colliding();
	for (i = 0; i < 3; i++) {
		static const u32 common[] = {4, 8, 16};

		spread(common[i], 1, "0, 1, 2 …");
		spread(common[i], 4096, "multiples of 4096");
		spread(common[i], 1 << 16, "multiples of 65536");
		spread(common[i], 1000003, "multiples of a prime");
	}
	spread(8, 1ULL << 32, "multiples of 2^32");
	spread(8, 1ULL << 48, "multiples of 2^48");
	fix_down();
	is_int(fix.nr_objs[OBJ_MAP], 0, "no map is left");
	return tap_done();
}
