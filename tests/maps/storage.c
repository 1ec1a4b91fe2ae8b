// SPDX-License-Identifier: BSD-2-Clause
// Task storage: slots near and far, flags, races to create, map and owner torn down in any order,
// slot numbers reused late. Its argument is the storage variant (none: the default).
#include <sys/syscall.h>

#include "fixture.h"
#include "maps/task_storage.h"

static const struct storage_ops *impl; /* under test */

static bool has_slots(void)
{
	return !strncmp(impl->name, "slots", 5) || !strcmp(impl->name, "jit");
}

static struct env_task *new_task(s32 tid)
{
	return env_task_create(fix.env, tid, tid, "t");
}

/* ---- bpf(2) ---- */

static struct task_fd task_fds[4];

static void no_release(struct obj *obj)
{
}

static const struct obj_ops task_fd_ops = {.release = no_release};

/* Descriptor i stands for the task. */
static void give_fd(int i, struct env_task *task)
{
	obj_init(&task_fds[i].obj, &fix, OBJ_TASK, &task_fd_ops);
	task_fds[i].task = task;
	env_task_get(task);
	fake_fd[i] = &task_fds[i].obj;
}

static void take_fd(int i)
{
	fake_fd[i] = NULL;
	obj_abort(&task_fds[i].obj);
	env_task_put(task_fds[i].task);
}

/* The same steps for inlay (fd: of the test's table) and the kernel (fd: a pidfd). */
static void sys_steps(const struct side *s, int h, int fd, int other_fd)
{
	int bad = s->kernel ? 9999 : 63;
	u64 v = 41, got = 0;

	is_int(s_elem(s, LOOKUP, h, &fd, &got, 0), -ENOENT, "%s: lookup before create", s->name);
	is_int(s_elem(s, DELETE, h, &fd, NULL, 0), -ENOENT, "%s: delete before create", s->name);
	is_int(s_elem(s, UPDATE, h, &fd, &v, BPF_EXIST), -ENOENT, "%s: EXIST on missing", s->name);
	is_int(s_elem(s, UPDATE, h, &fd, &v, 3), -EINVAL, "%s: flags 3", s->name);
	is_int(s_elem(s, UPDATE, h, &fd, &v, BPF_F_LOCK), -EINVAL, "%s: F_LOCK without a lock",
	       s->name);
	is_int(s_elem(s, UPDATE, h, &fd, &v, BPF_NOEXIST), 0, "%s: create", s->name);
	is_int(s_elem(s, UPDATE, h, &fd, &v, BPF_NOEXIST), -EEXIST, "%s: NOEXIST on present",
	       s->name);
	is_int(s_elem(s, LOOKUP, h, &fd, &got, 0), 0, "%s: lookup", s->name);
	is_u64(got, 41, "%s: value", s->name);
	v = 42;
	is_int(s_elem(s, UPDATE, h, &fd, &v, BPF_EXIST), 0, "%s: replace with EXIST", s->name);
	is_int(s_elem(s, LOOKUP, h, &fd, &got, 0), 0, "%s: lookup", s->name);
	is_u64(got, 42, "%s: replaced value", s->name);
	is_int(s_elem(s, LOOKUP, h, &fd, &got, 1), -EINVAL, "%s: lookup flags 1", s->name);
	is_int(s_elem(s, LOOKUP, h, &bad, &got, 0), -EBADF, "%s: bad fd", s->name);
	is_int(s_elem(s, UPDATE, h, &bad, &v, 0), -EBADF, "%s: update bad fd", s->name);
	is_int(s_elem(s, UPDATE, h, &other_fd, &v, 0), -EBADF, "%s: descriptor of something else",
	       s->name);
	is_int(s_elem(s, NEXT, h, NULL, &got, 0), -LINUX_ENOTSUPP, "%s: next_key", s->name);
	is_int(s_elem(s, TAKE, h, &fd, &got, 0), -LINUX_ENOTSUPP, "%s: lookup_and_delete", s->name);
	is_int(s_elem(s, DELETE, h, &fd, NULL, 0), 0, "%s: delete", s->name);
	is_int(s_elem(s, DELETE, h, &fd, NULL, 0), -ENOENT, "%s: second delete", s->name);
}

static int kernel_map(const struct btf_blob *blob, struct map_attr *attr)
{
	char bytes[8192];
	union bpf_attr ba = {.btf = (u64)bytes, .btf_size = blob_pack(blob, bytes)};
	int btf_fd = sys_bpf_raw(BPF_BTF_LOAD, &ba), h;

	if (btf_fd < 0)
		return btf_fd;
	h = s_create(&kernel_side, attr, btf_fd);
	close(btf_fd);
	return h;
}

static void by_bpf(void)
{
	struct env_task *task = new_task(10);
	struct map *map = make_task_map(8), *array = make_map(BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0);
	u64 v = 1;
	int h, fd = 0, gone = 2;

	give_fd(0, task);
	fake_fd[1] = &array->obj;
	handles[0] = map;
	nr_handles = 1;
	sys_steps(&inlay_side, 0, 0, 1);
	give_fd(2, new_task(11));
	env_task_exit(env_task_find(fix.env, 11));
	is_int(s_elem(&inlay_side, UPDATE, 0, &gone, &v, 0), -ENOENT,
	       "descriptor of a task that is gone");
	is_int(s_elem(&inlay_side, LOOKUP, 0, &gone, &v, 0), -ENOENT,
	       "lookup with a task that is gone");
	(void)fd;
	take_fd(0);
	take_fd(2);
	fake_fd[1] = NULL;
	env_task_exit(task);
	obj_put(&array->obj);
	obj_put(&map->obj);
	handles[0] = NULL;
	nr_handles = 0;
	if (!have_kernel()) {
		tap_skip("no bpf(2) to compare with");
		return;
	}
	fd = syscall(SYS_pidfd_open, getpid(), 0);
	{
		struct btf_blob blob = {.nr = 0};
		struct map_attr attr = {.map_type = BPF_MAP_TYPE_TASK_STORAGE,
					.key_size = 4,
					.value_size = 8,
					.map_flags = BPF_F_NO_PREALLOC};

		attr.btf_key_type_id = blob_int(&blob, "int", 4);
		attr.btf_value_type_id = blob_int(&blob, "long", 8);
		h = kernel_map(&blob, &attr);
	}
	ok(h >= 0, "the kernel makes the same map");
	if (h >= 0)
		sys_steps(&kernel_side, h, fd, h);
	close(h);
	close(fd);
}

/* MAP_CREATE's rules, here and in the kernel. */
static void creates(void)
{
	static const struct {
		const char *what;
		u32 flags, key, value, max, key_type, value_bytes;
		int want;
	} rows[] = {
		{"plain", BPF_F_NO_PREALLOC, 4, 8, 0, 4, 8, 0},
		{"CLONE", BPF_F_NO_PREALLOC | BPF_F_CLONE, 4, 8, 0, 4, 8, 0},
		{"preallocated", 0, 4, 8, 0, 4, 8, -EINVAL},
		{"CLONE alone", BPF_F_CLONE, 4, 8, 0, 4, 8, -EINVAL},
		{"RDONLY", BPF_F_NO_PREALLOC | BPF_F_RDONLY, 4, 8, 0, 4, 8, -EINVAL},
		{"max_entries 1", BPF_F_NO_PREALLOC, 4, 8, 1, 4, 8, -EINVAL},
		{"key_size 8", BPF_F_NO_PREALLOC, 8, 8, 0, 8, 8, -EINVAL},
		{"value_size 0", BPF_F_NO_PREALLOC, 4, 0, 0, 4, 8, -EINVAL},
		{"value type of another size", BPF_F_NO_PREALLOC, 4, 8, 0, 4, 9, -EINVAL},
		{"largest value", BPF_F_NO_PREALLOC, 4, 65407, 0, 4, 65407, 0},
		{"value too large", BPF_F_NO_PREALLOC, 4, 65408, 0, 4, 65408, -E2BIG},
		{"no BTF", BPF_F_NO_PREALLOC, 4, 8, 0, 0, 0, -EINVAL},
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct btf_blob blob = {.nr = 0};
		struct map_attr attr = {.map_type = BPF_MAP_TYPE_TASK_STORAGE,
					.map_flags = rows[i].flags,
					.key_size = rows[i].key,
					.value_size = rows[i].value,
					.max_entries = rows[i].max};
		u32 byte = blob_int(&blob, "char", 1),
		    key = blob_int(&blob, "int", rows[i].key_type ? rows[i].key_type : 4);
		u32 value = blob_array(&blob, byte, key, rows[i].value_bytes);
		int h, k;

		if (rows[i].key_type) {
			attr.btf_key_type_id = key;
			attr.btf_value_type_id = value;
			attr.btf = blob_parse(&blob);
		}
		h = s_create(&inlay_side, &attr, 0);
		is_int(h < 0 ? h : 0, rows[i].want, "create, %s", rows[i].what);
		s_close(&inlay_side, h);
		btf_put(attr.btf);
		attr.btf = NULL;
		if (!have_kernel())
			continue;
		k = kernel_map(&blob, &attr);
		is_int(k < 0 ? k : 0, rows[i].want, "create, %s: the kernel says the same",
		       rows[i].what);
		s_close(&kernel_side, k);
	}
}

/* ---- slots ---- */

#define MANY 4300 /* past the first two trees */

static void many_maps(void)
{
	struct env_task *a = new_task(20), *b = new_task(21);
	struct map **maps = calloc(MANY, sizeof(*maps));
	long before = lstore_live();
	u64 i, bad = 0, *v;

	for (i = 0; i < MANY; i++) {
		maps[i] = make_task_map(8);
		bad += !maps[i];
	}
	is_u64(bad, 0, "%d task storage maps are made", MANY);
	if (has_slots())
		is_u64(lstore_map_of(maps[MANY - 1])->index - lstore_map_of(maps[0])->index,
		       MANY - 1, "slots are dense");
	for (i = 0; i < MANY && !has_slots(); i++)
		bad += lstore_map_of(maps[i])->index != i % 16;
	is_u64(bad, 0, "maps share cache pointers evenly, if there are any");
	rcu_enter();
	for (i = 0; i < MANY; i++)
		bad += task_storage_find(maps[i], a) != NULL;
	for (i = 0; i < MANY; i++) {
		v = task_storage_get_or_create(maps[i], a, NULL);
		if (v)
			*v = i;
		bad += !v;
		if (i % 3)
			continue;
		v = task_storage_get_or_create(maps[i], b, &(u64){i + 1000000});
		bad += !v || *v != i + 1000000;
	}
	for (i = 0; i < MANY; i++) {
		v = task_storage_find(maps[i], a);
		bad += !v || *v != i;
		v = task_storage_find(maps[i], b);
		bad += i % 3 ? v != NULL : (!v || *v != i + 1000000);
	}
	rcu_leave();
	is_u64(bad, 0, "each map finds its own value in each task, at %d maps", MANY);
	env_task_exit(a);
	for (i = 0; i < MANY; i++)
		obj_put(&maps[i]->obj);
	env_task_exit(b);
	free(maps);
	rcu_barrier_all();
	is_int(lstore_live(), before, "storages and nodes are all given back");
}

static void slot_reuse(void)
{
	struct env_task *task = new_task(30);
	struct map *first = make_task_map(8), *second;
	u32 slot = lstore_map_of(first)->index;
	u64 *v;

	rcu_enter();
	v = task_storage_get_or_create(first, task, &(u64){5});
	obj_abort(&first->obj);
	first->ops->destroy(first); /* now, without the grace period before it */
	second = make_task_map(8);
	ok(!has_slots() || lstore_map_of(second)->index != slot,
	   "a slot number is not reused while its last map's readers may run");
	is_u64(*v, 5, "a value stays readable in the read section after its map went");
	ok(!task_storage_find(second, task), "a new map finds nothing of an old one");
	rcu_leave();
	rcu_barrier_all();
	obj_put(&second->obj);
	rcu_barrier_all();
	second = make_task_map(8);
	is_u64(lstore_map_of(second)->index, slot, "then it is reused");
	rcu_enter();
	ok(!task_storage_find(second, task), "the new map under the old number finds nothing");
	rcu_leave();
	obj_put(&second->obj);
	env_task_exit(task);
}

/* ---- values ---- */

static void values(void)
{
	struct env_task *task = new_task(40);
	struct map *map = make_task_map(20);
	char ones[20], *v, *old;

	memset(ones, 0xff, sizeof(ones));
	rcu_enter();
	v = task_storage_get_or_create(map, task, ones);
	is_int(memcmp(v, ones, 20), 0, "the initial value is the one given");
	old = v;
	is_int(lstore_update(env_owner_of(task->obj), lstore_map_of(map), "0123456789012345678", BPF_ANY), 0,
	       "update");
	v = task_storage_find(map, task);
	ok(v != old, "an update replaces the element");
	is_int(memcmp(old, ones, 20), 0, "the old value stays readable in the read section");
	is_int(memcmp(v, "0123456789012345678", 20), 0, "the new value is found");
	ok(task_storage_get_or_create(map, task, ones) == v, "get-or-create finds what is there");
	is_int(task_storage_remove(map, task), 0, "remove");
	is_int(task_storage_remove(map, task), -ENOENT, "second remove");
	rcu_leave();
	env_task_exit(task);
	obj_put(&map->obj);
}

/* Elements of many tasks, made and given back, then made again: caches hand out what was used before only after a while. */
static void zeroed(void)
{
	enum { TASKS = 2000, SIZE = 20 };
	static const char *used[TASKS];
	struct map *map = make_task_map(SIZE);
	struct env_task *task[TASKS];
	char ones[SIZE], *v;
	u32 i, j, round, again = 0, not_zero = 0;

	memset(ones, 0xff, sizeof(ones));
	for (round = 0; round < 2; round++) {
		for (i = 0; i < TASKS; i++) {
			task[i] = new_task(5000 + i);
			rcu_enter();
			v = task_storage_get_or_create(map, task[i], round ? NULL : ones);
			rcu_leave();
			for (j = 0; round && j < SIZE; j++)
				not_zero += v[j] != 0;
			for (j = 0; round && j < TASKS; j++)
				again += used[j] == v;
			used[i] = round ? used[i] : v;
		}
		for (i = 0; i < TASKS; i++)
			env_task_exit(task[i]);
		rcu_barrier_all();
	}
	ok(again > TASKS / 4, "%u of %u elements are in memory used before", again, (u32)TASKS);
	is_u64(not_zero, 0, "and without an initial value all are zero");
	obj_put(&map->obj);
}

static void dead_owner(void)
{
	struct map *map = make_task_map(8);
	struct env_task *task = new_task(50);

	env_task_get(task);
	rcu_enter();
	ok(task_storage_get_or_create(map, task, NULL) != NULL, "a live task takes an element");
	env_task_exit(task);
	ok(!task_storage_find(map, task), "a dead task has none");
	ok(!task_storage_get_or_create(map, task, NULL), "a dead task takes none");
	is_int(lstore_update(env_owner_of(task->obj), lstore_map_of(map), &(u64){1}, BPF_ANY), -ENOENT,
	       "update of a dead task");
	is_int(task_storage_remove(map, task), -ENOENT, "remove from a dead task");
	rcu_leave();
	env_task_put(task);
	obj_put(&map->obj);
}

/* ---- races, two threads in lock-step ---- */

struct pair {
	pthread_barrier_t meet;
	struct map *map;
	struct env_owner owner;
	void *got[2];
	u64 rounds, bad;
	bool end;
	void (*act[2])(struct pair *p, int who);
};

struct side_arg {
	struct pair *p;
	int who;
};

static void jitter(u64 *seed)
{
	u64 i, n = rnd(seed) % 200;

	for (i = 0; i < n; i++)
		__asm__ volatile("" ::: "memory");
}

static void *pair_thread(void *arg)
{
	struct side_arg *s = arg;
	u64 seed = s->who;

	env_enter(fix.env, s->who, NULL);
	for (;;) {
		pthread_barrier_wait(&s->p->meet);
		if (s->p->end)
			break;
		jitter(&seed);
		s->p->act[s->who](s->p, s->who);
		pthread_barrier_wait(&s->p->meet);
	}
	env_leave(fix.env);
	return NULL;
}

static void run_pair(struct pair *p, u64 budget_ns, void (*before)(struct pair *),
		     void (*after)(struct pair *))
{
	struct side_arg args[2] = {{p, 0}, {p, 1}};
	pthread_t t[2];
	u64 end = now_ns() + budget_ns;
	int i;

	pthread_barrier_init(&p->meet, NULL, 3);
	for (i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, pair_thread, &args[i]);
	while (now_ns() < end) {
		before(p);
		pthread_barrier_wait(&p->meet);
		pthread_barrier_wait(&p->meet);
		after(p);
		p->rounds++;
	}
	p->end = true;
	pthread_barrier_wait(&p->meet);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&p->meet);
}

static void act_create(struct pair *p, int who)
{
	u64 value = 100 + who;

	rcu_enter();
	p->got[who] = lstore_get_or_create(&p->owner, lstore_map_of(p->map), &value);
	rcu_leave();
}

static void act_owner_free(struct pair *p, int who)
{
	lstore_owner_free(&p->owner);
}

static void act_map_put(struct pair *p, int who)
{
	obj_abort(&p->map->obj); /* nobody else has it: destroyed here and now, not by the worker */
	p->map->ops->destroy(p->map);
}

static void before_create(struct pair *p)
{
	env_owner_init(&p->owner, NULL);
}

static void after_create(struct pair *p)
{
	int who, winners = 0;
	u64 *v;

	rcu_enter();
	v = lstore_find(&p->owner, lstore_map_of(p->map));
	for (who = 0; who < 2; who++) {
		winners += v && p->got[who] == v;
		/* Linux's loser may get nothing, never something else */
		p->bad += p->got[who] && p->got[who] != v;
	}
	p->bad += !v || (*v != 100 && *v != 101) || winners < (impl->loser_null ? 1 : 2);
	rcu_leave();
	lstore_owner_free(&p->owner);
}

static void create_race(void)
{
	struct pair p = {.map = make_task_map(8), .act = {act_create, act_create}};
	struct objcache *cache = lstore_map_of(p.map)->cache;

	run_pair(&p, 500000000, before_create, after_create);
	ok(p.rounds > 500, "%llu races to create", (unsigned long long)p.rounds);
	is_u64(p.bad, 0, "%s", impl->loser_null ? "one side of a create race gets its element, the other that or none"
						: "both sides of a create race get the winner's element");
	rcu_barrier_all();
	is_int(objcache_live(cache), 0, "the loser's element is given back");
	obj_put(&p.map->obj);
}

static void after_create_free(struct pair *p)
{
	rcu_enter();
	p->bad += lstore_find(&p->owner, lstore_map_of(p->map)) != NULL || !p->owner.gone;
	rcu_leave();
}

static void create_and_owner_free(void)
{
	struct pair p = {.map = make_task_map(8), .act = {act_create, act_owner_free}};
	struct objcache *cache = lstore_map_of(p.map)->cache;
	long before = lstore_live();

	run_pair(&p, 500000000, before_create, after_create_free);
	ok(p.rounds > 500, "%llu races of create and owner's end", (unsigned long long)p.rounds);
	is_u64(p.bad, 0, "an owner that ended keeps nothing");
	rcu_barrier_all();
	is_int(objcache_live(cache), 0, "its elements are given back");
	is_int(lstore_live(), before, "and so is its storage");
	obj_put(&p.map->obj);
}

/* The map of each round is destroyed by one thread while the other tears the owner down. */
static void before_teardown(struct pair *p)
{
	env_owner_init(&p->owner, NULL);
	p->map = make_task_map(8);
	rcu_enter();
	p->bad += !lstore_get_or_create(&p->owner, lstore_map_of(p->map), &(u64){1});
	rcu_leave();
}

static void after_teardown(struct pair *p)
{
	p->bad += !p->owner.gone;
}

static void teardown_race(void)
{
	struct pair p = {.act = {act_owner_free, act_map_put}};
	long before = lstore_live();

	run_pair(&p, 700000000, before_teardown, after_teardown);
	ok(p.rounds > 300, "%llu races of owner's end and map's end", (unsigned long long)p.rounds);
	is_u64(p.bad, 0, "owner and map may go at the same time");
	rcu_barrier_all();
	is_int(lstore_live(), before, "every storage is given back once");
}

/* One deletes and recreates, the other reads: what it holds in a section is never somebody else's.
 */
static struct {
	struct map *map;
	struct env_owner owner;
	bool stop;
	u64 reads, bad;
} churn;

static u64 word(const u64 *value, u32 i)
{
	return __atomic_load_n(&value[i], __ATOMIC_RELAXED);
}

static void *read_churned(void *unused)
{
	u64 first, i, *e;

	env_enter(fix.env, 1, NULL);
	while (!__atomic_load_n(&churn.stop, __ATOMIC_RELAXED)) {
		rcu_enter();
		e = lstore_find(&churn.owner, lstore_map_of(churn.map));
		if (e) {
			first = word(e, 0);
			for (i = 0; i < 50; i++)
				churn.bad += word(e, 0) != first || word(e, 1) != ~first;
			__atomic_fetch_add(&churn.reads, 1, __ATOMIC_RELAXED);
		}
		rcu_leave();
	}
	env_leave(fix.env);
	return NULL;
}

static void stable_values(void)
{
	u64 end = now_ns() + 500000000, n;
	pthread_t t;

	churn.map = make_task_map(16);
	env_owner_init(&churn.owner, NULL);
	pthread_create(&t, NULL, read_churned, NULL);
	/* longer on a busy machine, until the reader had its share */
	for (n = 0; n % 64 || now_ns() < end ||
		    (now_ns() < end + 10000000000ULL &&
		     __atomic_load_n(&churn.reads, __ATOMIC_RELAXED) < 2000);
	     n++) {
		u64 value[2] = {n, ~n};

		rcu_enter();
		if (n % 3)
			lstore_update(&churn.owner, lstore_map_of(churn.map), value, BPF_ANY);
		else
			lstore_remove(&churn.owner, lstore_map_of(churn.map));
		rcu_leave();
	}
	__atomic_store_n(&churn.stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	ok(churn.reads > 1000 && n > 1000, "%llu reads against %llu changes",
	   (unsigned long long)churn.reads, (unsigned long long)n);
	is_u64(churn.bad, 0, "a value found in a read section does not change under it");
	lstore_owner_free(&churn.owner);
	obj_put(&churn.map->obj);
}

int main(int argc, char **argv)
{
	fix.storage_impl = argc > 1 ? argv[1] : NULL;
	impl = map_storage_impl_find(fix.storage_impl);
	if (!impl) {
		printf("Bail out! no such variant\n");
		return 1;
	}
	fix_up(2);
	if (argc > 1)
		fix.storage_impl = argv[1];
	by_bpf();
	creates();
	rcu_barrier_all(); /* maps of the tests before have given their slots back */
	many_maps();
	slot_reuse();
	values();
	zeroed();
	dead_owner();
	create_race();
	create_and_owner_free();
	teardown_race();
	stable_values();
	fix_down();
	is_int(fix.nr_objs[OBJ_MAP], 0, "no map is left");
	return tap_done();
}
