// SPDX-License-Identifier: BSD-2-Clause
// Nanoseconds of hash map operations, without programs around them: `meson test --benchmark maps_hash_bench`. The loop's
// own cost (a random number, a key made of it) is measured by itself and taken off.
#include "fixture.h"
#include "maps/hash_int.h"

#define ENTRIES 4194304u
#define ROUNDS	3

typedef u64 (*twin_fn)(u64, u64, u64, u64, u64);

struct key {
	u64 part[5];
};

/* Of this thread: others may be at work on this machine. */
static u64 cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static u64 state = 88172645463325252ULL;

static inline u64 next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Key number nr: of 4 bytes the number itself, else as good as random. */
static inline void make_key(struct key *key, u32 size, u64 nr)
{
	u32 i;

	if (size == 4) {
		key->part[0] = nr;
		return;
	}
	nr = (nr + 1) * 0x9e3779b97f4a7c15ULL;
	for (i = 0; i < size / 8; i++)
		key->part[i] = nr * (2 * i + 1);
}

static u64 none(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	static u64 value;

	return (u64)&value;
}

/* Nanoseconds of one, best of some rounds. */
static double loop(twin_fn fn, struct map *map, u32 size, u64 base, u64 range, u64 n)
{
	double best = 1e9;
	u64 sum = 0, i, start;
	struct key key;
	u32 round;

	for (round = 0; round < ROUNDS; round++) {
		start = cpu_ns();
		for (i = 0; i < n; i++) {
			u64 *value;

			make_key(&key, size, base + ((next_random() >> 32) * range >> 32));
			value = (u64 *)fn((u64)map, (u64)&key, 0, 0, 0);
			sum += value ? *value : 1;
		}
		best = min_of(best, (double)(cpu_ns() - start) / n);
	}
	__asm__ volatile("" : : "r"(sum));
	return best;
}

static void fill(struct map *map, u32 size, u64 n, const char *what)
{
	struct key key;
	u64 i, start = cpu_ns(), bad = 0, round;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < n; i++) {
			make_key(&key, size, i);
			bad += map->ops->update(map, &key, &i, BPF_ANY) != 0;
		}
		printf("# %s, %u-byte keys, %s: %.1f ns\n", what, size, round ? "full update" : "insert",
		       (double)(cpu_ns() - start) / n);
		start = cpu_ns();
	}
	ok(!bad, "%s: %llu elements fit", what, (unsigned long long)n);
}

static void lookups(u32 size)
{
	static const u64 ranges[] = {10, 1000, 10000, 100000, ENTRIES};
	struct map *map = make_map(BPF_MAP_TYPE_HASH, size, 8, ENTRIES, 0);
	twin_fn twin = map->ops->direct(map, BPF_FUNC_map_lookup_elem);
	double empty = loop(none, map, size, 0, 1000, 20000000);
	u32 i;

	fill(map, size, ENTRIES, "preallocated");
	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		printf("# %u-byte keys, %llu of %u: %.2f ns a lookup\n", size, (unsigned long long)ranges[i], ENTRIES,
		       loop(twin, map, size, 0, ranges[i], ranges[i] > 1000000 ? 4000000 : 10000000) - empty);
	for (i = 1; i < ARRAY_SIZE(ranges); i++)
		printf("# %u-byte keys, %llu absent: %.2f ns a lookup\n", size, (unsigned long long)ranges[i],
		       loop(twin, map, size, ENTRIES, ranges[i], ranges[i] > 1000000 ? 4000000 : 10000000) - empty);
	obj_put(&map->obj);
	rcu_barrier_all();
}

/* Two threads on two vCPUs against one: lookups and full updates of keys of their own. */
struct worker {
	struct map *map;
	u64 base, done, ns;
	bool update;
	u32 cpu;
	pthread_barrier_t *start;
};

#define WORK 3000000u

static void *work(void *arg)
{
	struct worker *w = arg;
	twin_fn twin = w->map->ops->direct(w->map, BPF_FUNC_map_lookup_elem);
	u64 i, start, key, bad = 0;

	env_enter(fix.env, w->cpu, NULL);
	for (i = 0; i < 1000; i++)
		w->map->ops->update(w->map, &(u64){w->base + i}, &i, BPF_ANY);
	pthread_barrier_wait(w->start);
	start = cpu_ns();
	for (i = 0; i < WORK; i++) {
		key = w->base + i % 1000;
		if (w->update)
			bad += w->map->ops->update(w->map, &key, &i, BPF_ANY) != 0;
		else
			bad += !twin((u64)w->map, (u64)&key, 0, 0, 0);
	}
	w->ns = cpu_ns() - start;
	w->done = WORK - bad;
	env_leave(fix.env);
	return NULL;
}

static double ns_of(u32 threads, bool update)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, 8, 8, 100000, 0);
	pthread_barrier_t start;
	struct worker w[2];
	pthread_t thread[2];
	double ns = 0;
	u32 i;

	pthread_barrier_init(&start, NULL, threads);
	for (i = 0; i < threads; i++) {
		w[i] = (struct worker){map, i * 1000, 0, 0, update, i, &start};
		pthread_create(&thread[i], NULL, work, &w[i]);
	}
	for (i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		ns += (double)w[i].ns / w[i].done / threads;
	}
	pthread_barrier_destroy(&start);
	obj_put(&map->obj);
	return ns;
}

static void threads(void)
{
	u32 update;

	for (update = 0; update < 2; update++) {
		double one = ns_of(1, update), two = ns_of(2, update);

		printf("# %s, keys of its own: one thread %.2f ns, each of two %.2f ns (x %.2f)\n", update ? "update" : "lookup", one,
		       two, 2 * one / two);
	}
}

int main(int argc, char **argv)
{
	static const u32 sizes[] = {4, 8, 16, 40};
	struct map *map;
	u32 i;

	fix_up(2);
	threads();
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		if (argc < 2 || (u32)atoi(argv[1]) == sizes[i])
			lookups(sizes[i]);
	map = make_map(BPF_MAP_TYPE_HASH, 4, 8, ENTRIES, BPF_F_NO_PREALLOC);
	fill(map, 4, ENTRIES, "not preallocated");
	obj_put(&map->obj);
	map = make_map(BPF_MAP_TYPE_HASH, 4, 8, 100000, 0);
	fill(map, 4, 100000, "small, preallocated");
	obj_put(&map->obj);
	fix_down();
	return tap_done();
}
