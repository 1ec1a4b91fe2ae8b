// SPDX-License-Identifier: BSD-2-Clause
// Arrays, per-CPU values, walks by programs, perf event arrays, map types' descriptors, helpers'
// descriptors and bodies.
#include <sys/mman.h>

#include "fixture.h"
#include "helpers/helpers_int.h"
#include "maps/hash_int.h"
#include "object/helper.h"
#include "object/perf_event.h"

static u64 call(const struct helper_desc *h, u64 a, u64 b, u64 c, u64 d, u64 e)
{
	u64 ret;

	rcu_enter();
	ret = h->fn(a, b, c, d, e);
	rcu_leave();
	return ret;
}

static u64 deref(const void *p)
{
	u64 v = 0;

	if (p)
		memcpy(&v, p, 8);
	return p ? v : ~0ULL;
}

static void *lookup(struct map *map, u64 key)
{
	return (void *)call(&helper_map_lookup_elem, (u64)map, (u64)&key, 0, 0, 0);
}

static long update(struct map *map, u64 key, u64 value, u64 flags)
{
	u64 padded[8] = {value}; /* values of up to 64 bytes */

	return call(&helper_map_update_elem, (u64)map, (u64)&key, (u64)padded, flags, 0);
}

static long removes(struct map *map, u64 key)
{
	return call(&helper_map_delete_elem, (u64)map, (u64)&key, 0, 0, 0);
}

/* ---- arrays ---- */

static void arrays(void)
{
	struct map *map = make_map(BPF_MAP_TYPE_ARRAY, 4, 13, 3, 0), *one;
	char *a = lookup(map, 0), *b = lookup(map, 1);
	u64 addr = 0;
	u32 size = 0;

	is_int(b - a, 16, "values lie 8-byte rounded side by side");
	ok(!lookup(map, 3), "a program's lookup past the end is NULL");
	is_int(update(map, 3, 1, 0), -E2BIG, "a program's update past the end");
	is_int(update(map, 0, 1, BPF_NOEXIST), -EEXIST, "a program's NOEXIST");
	is_int(removes(map, 0), -EINVAL, "a program's delete");
	is_int(map->ops->direct_value(map, 0, &addr, &size), -LINUX_ENOTSUPP,
	       "no direct value with several entries");
	obj_put(&map->obj);

	one = make_map(BPF_MAP_TYPE_ARRAY, 4, 100, 1, BPF_F_MMAPABLE);
	is_int(one->ops->direct_value(one, 96, &addr, &size), 0, "a direct value");
	ok((char *)addr == (char *)lookup(one, 0) + 96 && size == 4,
	   "its address and how much follows");
	is_int(one->ops->direct_value(one, 100, &addr, &size), -EINVAL,
	       "a direct value past the end");
	obj_put(&one->obj);
}

/* Row 152: element number times size beyond 32 bits reaches the last element. */
static void large_array(void)
{
	struct map *map = make_map(BPF_MAP_TYPE_ARRAY, 4, 65536, 70000, 0);

	if (!map) {
		tap_skip("no 4.6 GB of address space");
		return;
	}
	is_int(map->ops->update(map, &(u32){69999}, "", BPF_NOEXIST), -EEXIST,
	       "the last of 70,000 64 KiB elements is there");
	*(u64 *)lookup(map, 69999) = 7;
	*(u64 *)lookup(map, 4463) = 8; /* 69999 * 65536 mod 2^32 */
	is_u64(deref(lookup(map, 69999)), 7, "and is not another one");
	obj_put(&map->obj);
}

static void mmapable(void)
{
	u64 page = sysconf(_SC_PAGESIZE);
	struct map *map = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, 600, BPF_F_MMAPABLE), *ro;
	int (*check)(struct map *, u64, u64, int, bool) = map->ops->mmap_check;
	u64 *user = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, map->mem.fd, 0),
	    value = 5;
	u32 key = 7;
	int rw = PROT_READ | PROT_WRITE;

	ok(user != MAP_FAILED, "an mmapable array's memory can be mapped");
	map->ops->sys_update(map, &key, &value, 0);
	is_u64(user[7], 5, "a user sees what bpf(2) wrote");
	user[8] = 6;
	is_u64(deref(lookup(map, 8)), 6, "a program sees what the user wrote");
	is_int(check(map, 0, 2 * page, rw, true), 0, "mmap all of it");
	is_int(check(map, page, page, PROT_READ, true), 0, "mmap its second page");
	is_int(check(map, 0, 3 * page, rw, true), -EINVAL, "mmap past the end");
	is_int(check(map, page, 2 * page, rw, true), -EINVAL, "mmap past the end from an offset");
	is_int(check(map, ~0ULL - page + 1, 2 * page, rw, true), -EINVAL,
	       "mmap at an offset that wraps");
	is_int(check(map, 0, page, rw, false), -EINVAL, "private mmap");
	map->frozen = true;
	is_int(check(map, 0, page, rw, true), -EPERM, "writable mmap of a frozen map");
	is_int(check(map, 0, page, PROT_READ, true), 0, "read-only mmap of a frozen map");
	ok(!map_is_const(map), "a frozen map programs may write is no constant");
	munmap(user, 2 * page);
	obj_put(&map->obj);

	ro = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE | BPF_F_RDONLY_PROG);
	is_int(check(ro, 0, page, rw, true), -EACCES, "writable mmap of a read-only map");
	ok(mmap(NULL, page, rw, MAP_SHARED, ro->mem.fd, 0) == MAP_FAILED,
	   "which its descriptor refuses by itself");
	is_int(pwrite(ro->mem.fd, "x", 1, 0), -1, "as it does write(2)");
	ok(!map_is_const(ro), "a read-only map is no constant before it is frozen");
	ro->frozen = true;
	ok(map_is_const(ro), "then it is");
	obj_put(&ro->obj);

	map = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	is_int(check(map, 0, page, PROT_READ, true), -EINVAL, "mmap of a plain array");
	obj_put(&map->obj);
}

/* ---- per-CPU ---- */

static void percpu(u32 type, const char *what)
{
	struct map *map = make_map(type, 4, 12, 2, 0);
	bool hash = type == BPF_MAP_TYPE_PERCPU_HASH;
	u64 all[3 * 2], key = 1, cpu;
	char value[16] = "abcdefghijkl";

	is_u64(map->ops->sys_value_size(map), 3 * 16, "%s: bpf(2) moves 8-byte-rounded slots",
	       what);
	for (cpu = 0; cpu < 3; cpu++) {
		env_enter(fix.env, cpu, NULL);
		value[0] = 'A' + cpu;
		is_int(call(&helper_map_update_elem, (u64)map, (u64)&key, (u64)value, BPF_ANY, 0),
		       0, "%s: a program on vCPU %llu writes", what, (unsigned long long)cpu);
	}
	for (cpu = 0; cpu < 3; cpu++) {
		char *v = (char *)call(&helper_map_lookup_percpu_elem, (u64)map, (u64)&key, cpu, 0,
				       0);

		ok(v && v[0] == (char)('A' + cpu), "%s: slot %llu is its vCPU's", what,
		   (unsigned long long)cpu);
		env_enter(fix.env, cpu, NULL);
		ok(v == lookup(map, 1), "%s: and what a lookup there gives", what);
	}
	ok(!call(&helper_map_lookup_percpu_elem, (u64)map, (u64)&key, 3, 0, 0),
	   "%s: no slot of a CPU that is not", what);
	ok(!call(&helper_map_lookup_percpu_elem, (u64)map, (u64)&key, 0xffffffff, 0, 0),
	   "%s: nor of CPU 2^32-1", what);
	is_int(map->ops->sys_lookup(map, &key, all, 0), 0, "%s: bpf(2) reads all slots", what);
	ok(((char *)all)[0] == 'A' && ((char *)all)[16] == 'B' && ((char *)all)[32] == 'C',
	   "%s: in order", what);
	memset(all, 0x5a, sizeof(all));
	is_int(map->ops->sys_update(map, &key, all, 0), 0, "%s: bpf(2) writes all slots", what);
	env_enter(fix.env, 2, NULL);
	is_u64(deref(lookup(map, 1)), 0x5a5a5a5a5a5a5a5aULL, "%s: as a program sees", what);
	if (hash) {
		/* row 146: the element is used again, from one vCPU */
		is_int(removes(map, 1), 0, "%s: delete", what);
		update(map, 1, 77, BPF_NOEXIST);
		update(map, 2, 78, BPF_NOEXIST);
		is_int(update(map, 3, 79, BPF_ANY), -E2BIG, "%s: full", what);
		is_int(update(map, 2, 80, BPF_EXIST), 0, "%s: writes when full", what);
		map->ops->sys_lookup(map, &key, all, 0);
		ok(!all[0] && !all[1] && !all[2] && !all[3] && all[4] == 77,
		   "%s: a new element does not show other CPUs' values of an old one", what);
	}
	env_enter(fix.env, 0, NULL);
	obj_put(&map->obj);
}

/* ---- walks by programs ---- */

struct walk {
	struct bpf_func func;
	struct map *map;
	u64 calls, sum, stop_at;
	bool remove, reinsert, update;
};

static u64 on_elem(struct bpf_func *func, u64 map, u64 key, u64 value, u64 ctx, u64 r5)
{
	struct walk *w = container_of_(func, struct walk, func);
	u64 k = 0, v;

	memcpy(&k, (void *)key, w->map->key_size);
	w->calls++;
	w->sum += k * 1000 + deref((void *)value);
	if (map != (u64)w->map || ctx != 0xc0ffee)
		w->sum = ~0ULL >> 1;
	v = deref((void *)value);
	if (w->remove)
		w->map->ops->remove(w->map, &k);
	if (w->reinsert)
		w->map->ops->update(w->map, &k, &v, BPF_ANY);
	if (w->update)
		w->map->ops->update(w->map, &k, &(u64){v + 1}, BPF_EXIST);
	return w->stop_at && w->calls == w->stop_at;
}

static long walk(struct walk *w, u64 flags)
{
	w->func.call = on_elem;
	w->calls = w->sum = 0;
	return call(&helper_for_each_map_elem, (u64)w->map, (u64)&w->func, 0xc0ffee, flags, 0);
}

static void walks(u32 type, u32 n, const char *what)
{
	struct walk w = {.map = make_map(type, 4, 8, n, 0)};
	bool hash = type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_PERCPU_HASH;
	u64 i, sum = 0;

	for (i = 0; i < n; i++) {
		update(w.map, i, i * 3, BPF_ANY);
		sum += i * 1000 + i * 3;
	}
	is_int(walk(&w, 0), n, "%s: a walk counts all elements", what);
	ok(w.sum == sum && w.calls == n, "%s: and shows each once", what);
	is_int(walk(&w, 1), -EINVAL, "%s: a walk with flags", what);
	w.stop_at = 5;
	is_int(walk(&w, 0), 5, "%s: a callback that returns 1 ends it", what);
	w.stop_at = 0;
	if (hash) {
		w.update = true;
		is_int(walk(&w, 0), n, "%s: a callback may update what it is shown", what);
		w.update = false;
		w.remove = w.reinsert = true;
		ok(walk(&w, 0) >= (long)n, "%s: or delete and insert it again", what);
		w.reinsert = false;
		is_int(walk(&w, 0), n, "%s: or delete it", what);
		is_int(walk(&w, 0), 0, "%s: then the map is empty", what);
	}
	obj_put(&w.map->obj);
}

/* Row 151: all keys in one bucket, large values. */
static void one_bucket(void)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, 8, 60000, 2, BPF_F_ZERO_SEED);
	char *big = calloc(1, 60000);
	u64 key;
	u32 bad = 0;

	for (key = 0; key < 2; key++) {
		memset(big, 'a' + (int)key, 60000);
		bad += map->ops->sys_update(map, &key, big, 0) != 0;
	}
	for (key = 0; key < 2; key++) {
		bad += map->ops->sys_lookup(map, &key, big, 0) != 0;
		bad += big[0] != 'a' + (int)key || big[59999] != 'a' + (int)key;
	}
	is_u64(bad, 0, "large values in few buckets come back whole");
	free(big);
	obj_put(&map->obj);
}

/* ---- perf event arrays ---- */

struct fake_event {
	struct perf_event event;
	u32 outputs, bytes;
	long answer;
	bool released;
};

static long fake_output(struct perf_event *event, const void *data, u32 n)
{
	struct fake_event *f = container_of_(event, struct fake_event, event);

	f->outputs++;
	f->bytes += n;
	return f->answer;
}

static void fake_release(struct obj *obj)
{
	container_of_(perf_event_of(obj), struct fake_event, event)->released = true;
}

static const struct obj_ops fake_event_ops = {.release = fake_release};

static void fake_event_init(struct fake_event *f, u32 cpu)
{
	memset(f, 0, sizeof(*f));
	obj_init(&f->event.obj, &fix, OBJ_PERF_EVENT, &fake_event_ops);
	f->event.cpu = cpu;
	f->event.output = fake_output;
}

static long output(struct map *map, u64 flags, u64 size)
{
	static char data[70000];

	return call(&helper_perf_event_output, 0, (u64)map, flags, (u64)data, size);
}

static void perf_events(void)
{
	struct map *map = make_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2, 0),
		   *array = make_map(BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0);
	struct fake_event cpu0, cpu1;
	u32 key = 0, fd = 5;

	fake_event_init(&cpu0, 0);
	fake_event_init(&cpu1, 1);
	fake_fd[5] = &cpu0.event.obj;
	fake_fd[6] = &cpu1.event.obj;
	fake_fd[7] = &array->obj;
	is_int(output(map, BPF_F_CURRENT_CPU, 8), -ENOENT, "output to an empty entry");
	is_int(map->ops->sys_update(map, &key, &fd, 0), 0, "an event is put in");
	key = 1;
	fd = 6;
	is_int(map->ops->sys_update(map, &key, &fd, 0), 0, "another");
	fd = 7;
	is_int(map->ops->sys_update(map, &key, &fd, 0), -EBADF, "a descriptor of something else");
	is_int(output(map, BPF_F_CURRENT_CPU, 20), 0, "output to the current vCPU's event");
	ok(cpu0.outputs == 1 && cpu0.bytes == 20 && !cpu1.outputs, "reaches that event");
	is_int(output(map, 0, 4), 0, "output by index");
	is_int(output(map, 1, 4), -EOPNOTSUPP, "output to another vCPU's event");
	is_int(output(map, 2, 4), -E2BIG, "output past the end");
	is_int(output(map, 1ULL << 32, 4), -EINVAL, "output with context bits");
	is_int(output(map, 0, 65536), -E2BIG, "output of more than a record holds");
	cpu0.answer = -ENOSPC;
	is_int(output(map, 0, 4), -ENOSPC, "a full ring's answer is the helper's");
	env_enter(fix.env, 1, NULL);
	is_int(output(map, BPF_F_CURRENT_CPU, 4), 0, "on vCPU 1 the current event is vCPU 1's");
	env_enter(fix.env, 2, NULL);
	is_int(output(map, BPF_F_CURRENT_CPU, 4), -E2BIG, "a vCPU beyond the array");
	env_enter(fix.env, 0, NULL);
	obj_put(&cpu0.event.obj);
	obj_put(&cpu1.event.obj);
	rcu_barrier_all();
	ok(!cpu0.released && !cpu1.released, "entries hold their events");
	key = 0;
	is_int(map->ops->sys_remove(map, &key), 0, "delete");
	is_int(map->ops->sys_remove(map, &key), -ENOENT, "second delete");
	rcu_barrier_all();
	ok(cpu0.released && !cpu1.released, "a deleted entry lets its event go");
	obj_put(&map->obj);
	rcu_barrier_all();
	ok(cpu1.released, "so does the map's end");
	fake_fd[5] = fake_fd[6] = fake_fd[7] = NULL;
	obj_put(&array->obj);
}

/* ---- ringbuf and storage helpers ---- */

static void ring_helpers(void)
{
	struct map *map = make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
	char text[] = "hello";
	u64 rec;

	is_int(call(&helper_ringbuf_output, (u64)map, (u64)text, 6, 0, 0), 0, "ringbuf_output");
	is_int(call(&helper_ringbuf_output, (u64)map, (u64)text, 6, 4, 0), -EINVAL,
	       "ringbuf_output with unknown flags");
	is_int(call(&helper_ringbuf_output, (u64)map, (u64)text, 4081, 0, 0), -EAGAIN,
	       "ringbuf_output without room");
	ok(!call(&helper_ringbuf_reserve, (u64)map, 8, 1, 0, 0), "ringbuf_reserve with flags");
	rec = call(&helper_ringbuf_reserve, (u64)map, 8, 0, 0, 0);
	ok(rec, "ringbuf_reserve");
	call(&helper_ringbuf_submit, rec, 0, 0, 0, 0);
	rec = call(&helper_ringbuf_reserve, (u64)map, 8, 0, 0, 0);
	call(&helper_ringbuf_discard, rec, 0, 0, 0, 0);
	is_u64(call(&helper_ringbuf_query, (u64)map, BPF_RB_PROD_POS, 0, 0, 0), 48,
	       "ringbuf_query");
	ok(!strcmp((char *)map->mem.addr + 2 * sysconf(_SC_PAGESIZE) + 8, "hello"),
	   "the record holds what was output");
	obj_put(&map->obj);
}

static void storage_helpers(void)
{
	struct map *map = make_task_map(8);
	struct env_task *task = env_task_create(fix.env, 77, 77, "t");
	u64 init = 9, obj = (u64)task->obj, v;

	ok(!call(&helper_task_storage_get, (u64)map, obj, 0, 0, 0),
	   "task_storage_get of a missing value");
	ok(!call(&helper_task_storage_get, (u64)map, 0, 0, 1, 0), "task_storage_get of NULL");
	ok(!call(&helper_task_storage_get, (u64)map, obj, 0, 2, 0),
	   "task_storage_get with unknown flags");
	v = call(&helper_task_storage_get, (u64)map, obj, (u64)&init,
		 BPF_LOCAL_STORAGE_GET_F_CREATE, 0);
	is_u64(deref((void *)v), 9, "task_storage_get creates");
	ok(call(&helper_task_storage_get, (u64)map, obj, 0, 0, 0) == v, "and finds");
	is_int((long)call(&helper_task_storage_delete, (u64)map, 0, 0, 0, 0), -EINVAL,
	       "task_storage_delete of NULL");
	is_int((long)call(&helper_task_storage_delete, (u64)map, obj, 0, 0, 0), 0,
	       "task_storage_delete");
	is_int((long)call(&helper_task_storage_delete, (u64)map, obj, 0, 0, 0), -ENOENT,
	       "second task_storage_delete");
	env_task_exit(task);
	obj_put(&map->obj);
}

/* ---- descriptors ---- */

static void descriptors(void)
{
	static const u32 types[] = {
		BPF_MAP_TYPE_HASH,	  BPF_MAP_TYPE_ARRAY,	     BPF_MAP_TYPE_PERF_EVENT_ARRAY,
		BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_RINGBUF,
		BPF_MAP_TYPE_TASK_STORAGE, BPF_MAP_TYPE_PROG_ARRAY, BPF_MAP_TYPE_ARRAY_OF_MAPS,
		BPF_MAP_TYPE_HASH_OF_MAPS};
	u32 i, bad = 0;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		bad += !map_type_ops(types[i]) || map_type_ops(types[i])->type != types[i] ||
		       !map_type_ops(types[i])->mem_usage;
	is_u64(bad, 0, "each map type is found by its number");
	for (i = 0; map_type_at(i); i++)
		bad += map_type_ops(map_type_at(i)->type) != map_type_at(i);
	ok(i == ARRAY_SIZE(types) && !bad, "and by its place in the table");
	ok(!map_type_ops(0) && !map_type_ops(BPF_MAP_TYPE_STACK) && !map_type_ops(1000),
	   "no others");
	/* a map type that restricts its helpers is named by each of those that insist on it, and
	 * the other way round */
	for (i = 1; i < 220; i++) {
		const struct helper_desc *h = helper_by_id(i);
		u32 t;

		for (t = 0; h && h->map_types && map_type_at(t); t++) {
			const u32 *allowed = map_type_at(t)->helpers;
			bool insists = h->map_types >> map_type_at(t)->type & 1;

			while (allowed && *allowed && *allowed != i)
				allowed++;
			if (map_type_at(t)->helpers ? insists != (*allowed == i)
						    : insists && !map_type_at(t)->lookup_percpu)
				bad++;
		}
	}
	is_u64(bad, 0, "helpers and map types agree on each other");
	ok(helper_perf_event_output.flags & HELPER_GPL &&
		   !(helper_task_storage_get.flags & HELPER_GPL),
	   "perf_event_output is for GPL programs, task_storage_get for all");
}

int main(void)
{
	fix_up(3);
	arrays();
	large_array();
	mmapable();
	percpu(BPF_MAP_TYPE_PERCPU_ARRAY, "per-CPU array");
	percpu(BPF_MAP_TYPE_PERCPU_HASH, "per-CPU hash");
	walks(BPF_MAP_TYPE_ARRAY, 20, "array");
	walks(BPF_MAP_TYPE_PERCPU_ARRAY, 20, "per-CPU array");
	walks(BPF_MAP_TYPE_HASH, 200, "hash");
	walks(BPF_MAP_TYPE_PERCPU_HASH, 200, "per-CPU hash");
	one_bucket();
	perf_events();
	ring_helpers();
	storage_helpers();
	descriptors();
	fix_down();
	is_int(fix.nr_objs[OBJ_MAP], 0, "no map is left");
	return tap_done();
}
