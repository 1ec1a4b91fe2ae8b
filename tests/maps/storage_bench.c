// SPDX-License-Identifier: BSD-2-Clause
// What the storage variants cost, called from C as compiled programs call them: a hit over the number of maps, a creation
// with what follows it, memory. A measurement, so the only checks are that values are the right ones. TAP with diagnostics.
#include "fixture.h"
#include "maps/task_storage.h"

#define MAX_MAPS 1000

static struct map *maps[MAX_MAPS];
static struct env_task *task;
static u64 sum;

/* The lookup of linux-outlined, compiled once more: what is left without a helper's duties. */
#define LS(name)    plain_##name
#define LS_LOOKUP   LS_OUTLINE
#define LS_SLOWPATH LS_INLINE
#define LS_INSERT   LS_INLINE
#include "maps/local_storage_lookup.h"

static const struct storage_ops plain_ops __attribute__((unused)) = {LS_OPS};

typedef u64 (*get_fn)(u64, u64, u64, u64, u64);

/* The documents' loop: modulo, outer table, get. */
static double hit_ns(u32 n, get_fn get, bool raw)
{
	const u32 loops = n > 64 ? 10000 : 100000, trials = n > 100 ? 10 : 50; /* short ones: some are left alone by others */
	volatile u32 num = n;
	u64 t, best = U64_MAX, bad = 0, obj = (u64)task->obj;
	u32 trial, i;

	/* no more elements than maps in use: a list has no others to walk past */
	rcu_enter();
	for (i = 0; i < n; i++)
		*(u64 *)task_storage_get_or_create(maps[i], task, NULL) = i + 1;
	rcu_leave();
	for (trial = 0; trial < trials; trial++) {
		rcu_enter();
		t = now_ns();
		for (i = 0; i < loops; i++) {
			struct map *map = maps[i % num];
			u64 *v;

			if (raw)
				v = plain_lookup(linux_storage_of(env_owner_of((void *)obj)), lstore_map_of(map), true)->value;
			else
				v = (u64 *)get((u64)map, obj, 0, 1, 0);
			sum += *v;
		}
		t = now_ns() - t;
		rcu_leave();
		best = t < best ? t : best;
	}
	rcu_enter();
	for (i = 0; i < n; i++)
		bad += *(u64 *)get((u64)maps[i], obj, 0, 0, 0) != i + 1;
	rcu_leave();
	if (bad)
		ok(false, "values at %u maps", n);
	return (double)best / loops;
}

static u64 cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

enum { OWNERS = 200000, BATCH = 1000 };

static struct block {
	u64 pad[4];
	struct env_owner owner;
	u64 obj[8];
} owners[OWNERS];

static void touch(u32 from, u32 n, get_fn get, u32 *failed)
{
	u32 i;

	for (i = from; i < from + n; i++) {
		rcu_enter();
		*failed += !get((u64)maps[0], (u64)owners[i].obj, 0, 1, 0);
		rcu_leave();
	}
}

static void end(u32 from, u32 n)
{
	u32 i;

	for (i = from; i < from + n; i++)
		lstore_owner_free(&owners[i].owner);
}

/* Owners never seen before, gone soon after: creation with its refills, and the ends. In CPU time. */
static void churn(const struct storage_ops *impl, get_fn get)
{
	u64 t0, t1, t2, create = 0, ends = 0;
	u32 i, failed = 0;

	for (i = 0; i < OWNERS; i++)
		env_owner_init(&owners[i].owner, NULL);
	for (i = 0; i < OWNERS; i += BATCH) {
		t0 = cpu_ns();
		touch(i, BATCH, get, &failed);
		t1 = cpu_ns();
		end(i, BATCH);
		t2 = cpu_ns();
		create += t1 - t0;
		ends += t2 - t1;
	}
	printf("# %-15s create %.1f ns, the owner's end %.1f ns", impl->name, (double)create / OWNERS,
	       (double)ends / OWNERS);
	rcu_barrier_all();
	for (i = 0; i < OWNERS; i++)
		env_owner_init(&owners[i].owner, NULL);
	t0 = cpu_ns();
	touch(0, OWNERS, get, &failed);
	t1 = cpu_ns();
	end(0, OWNERS);
	t2 = cpu_ns();
	printf("; %u at once: %.1f and %.1f ns\n", OWNERS, (double)(t1 - t0) / OWNERS, (double)(t2 - t1) / OWNERS);
	ok(!failed, "%s: every owner got its value", impl->name);
	rcu_barrier_all();
}

int main(int argc, char **argv)
{
	static const u32 sizes[] = {1, 10, 16, 17, 24, 32, 100, 1000};
	const struct storage_ops *impl;
	u32 k, i, v;

	for (k = 0; (impl = map_storage_impl_at(k)); k++) {
		if (argc > 1 && strcmp(argv[1], impl->name))
			continue;
		fix_up(2);
		fix.storage_impl = impl->name;
		task = env_task_create(fix.env, 7, 7, "t");
		rcu_enter();
		for (i = 0; i < MAX_MAPS; i++)
			maps[i] = make_task_map(8);
		rcu_leave();
		printf("# %-15s", impl->name);
		if (!strcmp(impl->name, "linux-outlined"))
			printf(" (in plain C 1: %.2f 16: %.2f)", hit_ns(1, impl->task_get, true),
			       hit_ns(16, impl->task_get, true));
		for (v = 0; v < ARRAY_SIZE(sizes); v++)
			printf(" %u: %.2f", sizes[v], hit_ns(sizes[v], impl->task_get, false));
		printf(" ns a hit\n");
		ok(sum, "%s: values were read", impl->name);
		env_task_exit(task);
		for (i = 1; i < MAX_MAPS; i++)
			obj_put(&maps[i]->obj);
		if (argc < 3)
			churn(impl, impl->task_get);
		printf("# %-15s %u bytes an element besides its value\n", impl->name, impl->elem_size + 8);
		obj_put(&maps[0]->obj);
		rcu_barrier_all();
		fix_down();
	}
	return tap_done();
}
