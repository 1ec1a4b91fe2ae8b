// SPDX-License-Identifier: BSD-2-Clause
/*
 * Local storage under races: two threads meet at a barrier and do what must not collide, held up at random inside; readers
 * against a writer, and the same with elements given back too early, which must be noticed; allocations that fail.
 *
 * RACES_ROUNDS: rounds of each race (default 1,000); RACES_READS: read sections against the writer (default 100,000).
 */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/arch.h"
#include "fixture.h"
#include "races.h"

static const struct storage_ops *impl;
static u64 nr_rounds = 1000, nr_reads = 100000;

bool race_ok(bool cond, const char *what, const char *more)
{
	return ok(cond, "%s: %s %s", impl->name, what, more);
}

/* ---- delays ---- */

static __thread u64 seed;

static void delay(const char *where)
{
	u64 r = rnd(&seed), i;

	if (r % 64 == 0)
		sched_yield();
	for (i = r >> 8 & 127; i; i--)
		__asm__ volatile("" ::: "memory");
}

/* ---- two threads in lock-step: this one, which also looks at what came of it, and another ---- */

struct race {
	const char *name;
	void (*before)(struct race *r);
	void (*act[2])(struct race *r, u32 who);
	void (*after)(struct race *r);
	struct map *map;
	struct env_owner owner;
	void *got[2];
	int err[2];
	u64 bad;
	/* the barrier: who comes last lets the others go */
	u32 arrived, phase;
	bool end;
};

static void meet(struct race *r)
{
	u32 phase = __atomic_load_n(&r->phase, __ATOMIC_ACQUIRE), spins = 0;

	if (__atomic_add_fetch(&r->arrived, 1, __ATOMIC_ACQ_REL) == 2) {
		__atomic_store_n(&r->arrived, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&r->phase, phase + 1, __ATOMIC_RELEASE);
		return;
	}
	while (__atomic_load_n(&r->phase, __ATOMIC_ACQUIRE) == phase)
		if (++spins > 500)
			sched_yield();
		else
			arch_relax();
}

static void count_bad(struct race *r, bool bad)
{
	if (bad)
		__atomic_fetch_add(&r->bad, 1, __ATOMIC_RELAXED);
}

static void *racer(void *arg)
{
	struct race *r = arg;

	seed = 2;
	env_enter(fix.env, 1, NULL);
	for (;;) {
		meet(r);
		if (r->end)
			break;
		delay(NULL);
		r->act[1](r, 1);
		meet(r);
	}
	env_leave(fix.env);
	return NULL;
}

static void run_race(struct race *r)
{
	long before = lstore_live();
	pthread_t t;
	u64 i;

	seed = 1;
	pthread_create(&t, NULL, racer, r);
	for (i = 0; i < nr_rounds; i++) {
		env_owner_init(&r->owner, NULL);
		r->got[0] = r->got[1] = NULL;
		if (r->before)
			r->before(r);
		lstore_hook = delay;
		meet(r);
		delay(NULL);
		r->act[0](r, 0);
		meet(r);
		lstore_hook = NULL; /* the other one does nothing until we meet again */
		if (r->after)
			r->after(r);
		lstore_owner_free(&r->owner);
		if (r->map)
			r->bad += lstore_elems(lstore_map_of(r->map)) != 0;
	}
	r->end = true;
	meet(r);
	pthread_join(t, NULL);
	rcu_barrier_all();
	is_u64(r->bad, 0, "%s: %s, %llu rounds", impl->name, r->name, (unsigned long long)nr_rounds);
	is_int(lstore_live(), before, "%s: %s, storages made are given back", impl->name, r->name);
}

static void do_create(struct race *r, u32 who)
{
	u64 value = 100 + who;

	rcu_enter();
	r->got[who] = lstore_get_or_create(&r->owner, lstore_map_of(r->map), &value);
	if (r->got[who])
		count_bad(r, *(u64 *)r->got[who] < 100 || *(u64 *)r->got[who] > 101);
	rcu_leave();
}

static void do_update(struct race *r, u32 who)
{
	u64 value = 100 + who;

	rcu_enter();
	r->err[who] = lstore_update(&r->owner, lstore_map_of(r->map), &value, BPF_ANY);
	rcu_leave();
}

static void do_delete(struct race *r, u32 who)
{
	rcu_enter();
	r->err[who] = lstore_remove(&r->owner, lstore_map_of(r->map));
	rcu_leave();
}

static void do_owner_end(struct race *r, u32 who)
{
	lstore_owner_free(&r->owner);
}

static void do_map_end(struct race *r, u32 who)
{
	obj_abort(&r->map->obj); /* nobody else has it: destroyed here and now */
	r->map->ops->destroy(r->map);
	r->map = NULL;
}

static void have_elem(struct race *r)
{
	rcu_enter();
	r->bad += !lstore_get_or_create(&r->owner, lstore_map_of(r->map), &(u64){100});
	rcu_leave();
}

static void have_map(struct race *r)
{
	r->map = make_task_map(8);
	have_elem(r);
}

static u64 *there(struct race *r)
{
	return lstore_find(&r->owner, lstore_map_of(r->map));
}

static void one_winner(struct race *r)
{
	u64 *v;
	u32 who, same = 0;

	rcu_enter();
	v = there(r);
	for (who = 0; who < 2; who++) {
		same += v && r->got[who] == v;
		r->bad += r->got[who] && r->got[who] != v;
	}
	r->bad += same < (impl->loser_null ? 1 : 2);
	rcu_leave();
}

static void one_or_none(struct race *r)
{
	rcu_enter();
	r->bad += (r->err[1] && r->err[1] != -ENOENT) || lstore_elems(lstore_map_of(r->map)) != (there(r) ? 1 : 0);
	rcu_leave();
}

static void deleted_once(struct race *r)
{
	r->bad += (r->err[0] ? 0 : 1) + (r->err[1] ? 0 : 1) != 1;
}

static void none_left(struct race *r)
{
	rcu_enter();
	r->bad += there(r) != NULL;
	rcu_leave();
}

static void races(struct map *map)
{
	struct race all[] = {
		{"create and create", NULL, {do_create, do_create}, one_winner, map},
		{"create and delete", NULL, {do_create, do_delete}, one_or_none, map},
		{"update and delete", have_elem, {do_update, do_delete}, one_or_none, map},
		{"delete and delete", have_elem, {do_delete, do_delete}, deleted_once, map},
		{"create and the owner's end", NULL, {do_create, do_owner_end}, none_left, map},
		{"update and the owner's end", have_elem, {do_update, do_owner_end}, none_left, map},
		{"delete and the owner's end", have_elem, {do_delete, do_owner_end}, none_left, map},
		{"the map's end and the owner's", have_map, {do_map_end, do_owner_end}, NULL, NULL},
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		run_race(&all[i]);
}

/* ---- readers against a writer ---- */

static struct {
	struct map *map;
	struct env_owner owner;
	bool stop;
	u64 reads, bad;
} torture;

static void *reader(void *unused)
{
	u64 first, i, reads = 0, *v;

	env_enter(fix.env, 1, NULL);
	while (!__atomic_load_n(&torture.stop, __ATOMIC_RELAXED)) {
		rcu_enter();
		v = lstore_find(&torture.owner, lstore_map_of(torture.map));
		if (v) {
			first = __atomic_load_n(v, __ATOMIC_RELAXED);
			for (i = 0; i < (reads % 512 ? 3 : 3000); i++)
				if (__atomic_load_n(v, __ATOMIC_RELAXED) != first ||
				    __atomic_load_n(v + 1, __ATOMIC_RELAXED) != ~first)
					__atomic_fetch_add(&torture.bad, 1, __ATOMIC_RELAXED);
		}
		rcu_leave();
		__atomic_store_n(&torture.reads, ++reads, __ATOMIC_RELAXED);
	}
	env_leave(fix.env);
	return NULL;
}

/* Until so many reads, or stop_bad and something bad was seen, or so many ns. */
static void run_torture(u64 reads, bool stop_bad, u64 budget)
{
	u64 n, end = now_ns() + budget;
	pthread_t t;

	torture.map = make_task_map(16);
	env_owner_init(&torture.owner, NULL);
	pthread_create(&t, NULL, reader, NULL);
	for (n = 0; __atomic_load_n(&torture.reads, __ATOMIC_RELAXED) < reads && now_ns() < end &&
		    !(stop_bad && __atomic_load_n(&torture.bad, __ATOMIC_RELAXED));
	     n++) {
		u64 value[2] = {n, ~n};

		rcu_enter();
		if (n % 4)
			lstore_update(&torture.owner, lstore_map_of(torture.map), value, BPF_ANY);
		else
			lstore_remove(&torture.owner, lstore_map_of(torture.map));
		rcu_leave();
	}
	__atomic_store_n(&torture.stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	lstore_owner_free(&torture.owner);
	obj_put(&torture.map->obj);
}

/* In a child, whose memory it may spoil. */
static void broken_is_caught(void)
{
	u64 start = now_ns();
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		lstore_early_free = true;
		run_torture(U64_MAX, true, 10000000000ULL);
		_exit(torture.bad ? 42 : 0);
	}
	waitpid(pid, &status, 0);
	/* 42, or a sanitizer's */
	ok(WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WIFSIGNALED(status),
	   "%s: without the grace period it is noticed, after %llu ms", impl->name,
	   (unsigned long long)(now_ns() - start) / 1000000);
}

static void good_is_not(void)
{
	run_torture(nr_reads, false, nr_reads > 1000000 ? U64_MAX / 2 : 30000000000ULL);
	ok(torture.reads >= nr_reads, "%s: %llu read sections against a writer", impl->name,
	   (unsigned long long)torture.reads);
	is_u64(torture.bad, 0, "%s: a value does not change in a read section", impl->name);
	rcu_barrier_all();
}

/* ---- allocations ---- */

/* The n-th allocation of a creation and a replacement fails, for every n there is. */
static void no_memory(struct map *map)
{
	struct env_owner owner;
	struct lstore_map *m = lstore_map_of(map);
	u64 bad = 0, fails = 0;
	bool done = false;
	long nth;
	int err;

	for (nth = 1; !done && nth < 50; nth++) {
		env_owner_init(&owner, NULL);
		rcu_enter();
		rcu_mem_fail_nth(nth);
		err = lstore_update(&owner, m, &(u64){1}, BPF_ANY);
		if (!err)
			err = lstore_update(&owner, m, &(u64){2}, BPF_ANY);
		done = !err;
		rcu_mem_fail_nth(0);
		fails += err == -ENOMEM;
		bad += err && err != -ENOMEM;
		bad += lstore_elems(m) != (lstore_find(&owner, m) ? 1 : 0);
		rcu_leave();
		lstore_owner_free(&owner);
		bad += lstore_elems(m) != 0;
	}
	rcu_barrier_all();
	ok(done && fails >= 3 && !bad, "%s: each of %llu allocations may fail", impl->name, (unsigned long long)fails);
}

int main(int argc, char **argv)
{
	struct map *map;
	long before;

	impl = map_storage_impl_find(argc > 1 ? argv[1] : NULL);
	if (!impl) {
		printf("Bail out! no such variant\n");
		return 1;
	}
	if (getenv("RACES_ROUNDS"))
		nr_rounds = strtoull(getenv("RACES_ROUNDS"), NULL, 10);
	if (getenv("RACES_READS"))
		nr_reads = strtoull(getenv("RACES_READS"), NULL, 10);
	fix_up(2);
	fix.storage_impl = impl->name;
	broken_is_caught(); /* first: a child of one thread */
	map = make_task_map(8);
	before = objcache_live(lstore_map_of(map)->cache);
	no_memory(map);
	nested(impl, map);
	races(map);
	rcu_barrier_all();
	is_int(objcache_live(lstore_map_of(map)->cache), before, "%s: elements made are given back", impl->name);
	good_is_not();
	obj_put(&map->obj);
	rcu_barrier_all();
	is_int(lstore_live(), 0, "%s: no storage is left", impl->name);
	fix_down();
	is_int(fix.nr_objs[OBJ_MAP], 0, "%s: no map is left", impl->name);
	return tap_done();
}
