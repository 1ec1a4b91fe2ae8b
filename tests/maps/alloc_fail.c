// SPDX-License-Identifier: BSD-2-Clause
// Every allocation of every map type's creation and use fails once: an error each time, nothing
// lost, nothing broken.
#include "fixture.h"
#include "maps/hash_int.h"
#include "maps/ringbuf.h"
#include "maps/task_storage.h"

struct subject {
	const char *what;
	struct map_attr attr;
};

#define T(x)	    .map_type = BPF_MAP_TYPE_##x
#define SZ(k, v, m) .key_size = k, .value_size = v, .max_entries = m
#define F(x)	    .map_flags = x

static const struct subject subjects[] = {
	{"array", {T(ARRAY), SZ(4, 8, 4)}},
	{"mmapable array", {T(ARRAY), SZ(4, 8, 4), F(BPF_F_MMAPABLE)}},
	{"per-CPU array", {T(PERCPU_ARRAY), SZ(4, 8, 4)}},
	{"hash", {T(HASH), SZ(8, 8, 4)}},
	{"hash, not preallocated", {T(HASH), SZ(8, 8, 4), F(BPF_F_NO_PREALLOC)}},
	{"per-CPU hash", {T(PERCPU_HASH), SZ(8, 8, 4)}},
	{"ringbuf", {T(RINGBUF), .max_entries = 4096}},
	{"perf event array", {T(PERF_EVENT_ARRAY), SZ(4, 4, 2)}},
	{"prog array", {T(PROG_ARRAY), SZ(4, 4, 2)}},
	{"array of maps", {T(ARRAY_OF_MAPS), SZ(4, 4, 2)}},
	{"hash of maps", {T(HASH_OF_MAPS), SZ(8, 4, 2)}},
};

/* How many file descriptors are open: a leak of memfds shows here. */
static int open_fds(void)
{
	int i, n = 0;

	for (i = 0; i < 256; i++)
		n += dup2(i, i) == i;
	return n;
}

static void creation(const struct subject *s)
{
	struct map_attr attr = s->attr;
	struct map *inner = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	long before = fix.nr_objs[OBJ_MAP];
	int fds = open_fds(), failed = 0, other = 0, err;
	struct map *map = NULL;
	long n;

	attr.inner = inner;
	for (n = 1; !map && n < 100; n++) {
		rcu_mem_fail_nth(n);
		map = make_map_attr(&attr, &err);
		rcu_mem_fail_nth(0);
		failed += err == -ENOMEM;
		other += err && err != -ENOMEM;
	}
	ok(failed >= 2 && !other, "%s: each of %d allocations of a creation may fail with ENOMEM",
	   s->what, failed);
	obj_put(map ? &map->obj : NULL);
	rcu_barrier_all();
	ok(fix.nr_objs[OBJ_MAP] == before && open_fds() == fds,
	   "%s: no object or descriptor is left", s->what);
	obj_put(&inner->obj);
	rcu_barrier_all();
}

static void task_creation(void)
{
	long before = fix.nr_objs[OBJ_MAP], n;
	struct map *map = NULL;
	int failed = 0;

	for (n = 1; !map && n < 100; n++) {
		rcu_mem_fail_nth(n);
		map = make_task_map(8);
		rcu_mem_fail_nth(0);
		failed += !map;
	}
	ok(map && failed >= 2, "task storage: each of %d allocations of a creation may fail",
	   failed);
	obj_put(&map->obj);
	rcu_barrier_all();
	is_int(fix.nr_objs[OBJ_MAP], before, "task storage: no object is left");
}

/* All memory is taken at creation: programs' updates cannot fail for lack of it. */
static void hash_use(u32 flags, const char *what)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, 8, 8, 40, flags);
	u64 key, value, got, bad = 0;

	rcu_enter();
	for (key = 0; key < 80; key++) {
		value = key * 3;
		rcu_mem_fail_nth(1);
		bad += map->ops->update(map, &(u64){key % 40}, &value, BPF_ANY) != 0;
	}
	rcu_mem_fail_nth(0);
	rcu_leave();
	is_u64(bad, 0, "%s: inserts and replaces need no memory but what creation took", what);
	for (key = 0; key < 40; key++)
		bad += map->ops->sys_lookup(map, &key, &got, 0) != 0 || got != (key + 40) * 3;
	ok(!bad && hash_count(hash_of(map)) == 40, "%s: and all elements are there", what);
	obj_put(&map->obj);
}

/* far: a slot that needs tree nodes. */
static void storage_use(bool far)
{
	const char *what = far ? "far slot" : "near slot";
	struct env_task *task = env_task_create(fix.env, 5, 5, "t");
	struct map *pad[100], *map;
	long before, n;
	int failed = 0, i;
	void *v = NULL;

	for (i = 0; far && i < 100; i++)
		pad[i] = make_task_map(8);
	map = make_task_map(8);
	before = lstore_live();
	rcu_enter();
	for (n = 1; !v && n < 100; n++) {
		rcu_mem_fail_nth(n);
		v = task_storage_get_or_create(map, task, NULL);
		rcu_mem_fail_nth(0);
		failed += !v;
	}
	ok(failed >= (far ? 3 : 2), "%s: each of %d allocations of a first value may fail", what,
	   failed);
	is_u64(objcache_live(lstore_map_of(map)->cache), 1, "%s: no element is lost", what);
	rcu_mem_fail_nth(1);
	is_int(lstore_update(env_owner_of(task->obj), lstore_map_of(map), &(u64){3}, BPF_ANY), -ENOMEM,
	       "%s: update without memory", what);
	rcu_mem_fail_nth(0);
	ok(task_storage_find(map, task) == v, "%s: leaves the old value", what);
	rcu_leave();
	env_task_exit(task);
	rcu_barrier_all();
	is_int(lstore_live(), before, "%s: all is given back", what);
	obj_put(&map->obj);
	for (i = 0; far && i < 100; i++)
		obj_put(&pad[i]->obj);
}

int main(void)
{
	u32 i;

	fix_up(2);
	for (i = 0; i < ARRAY_SIZE(subjects); i++)
		creation(&subjects[i]);
	task_creation();
	hash_use(0, "hash");
	hash_use(BPF_F_NO_PREALLOC, "hash, not preallocated");
	storage_use(false);
	storage_use(true);
	fix_down();
	is_int(fix.nr_objs[OBJ_MAP], 0, "no map is left");
	return tap_done();
}
