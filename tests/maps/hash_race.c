// SPDX-License-Identifier: BSD-2-Clause
// Hash maps under two threads and in signal handlers: what is present is never missed, keys never
// mix, memory is bounded.
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "fixture.h"
#include "maps/hash_int.h"

#define RUN_NS 700000000ULL /* each race */

struct race {
	struct map *map;
	bool stop; /* atomic */
	u64 reads, writes, bad, missed;
	u64 deadline;
};

/* Long, so that a reader often meets one that is being written. */
struct long_key {
	u64 part[64];
};

static struct long_key key_of(u64 first, u64 second)
{
	struct long_key key;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(key.part); i++)
		key.part[i] = i < ARRAY_SIZE(key.part) / 2 ? first : second;
	return key;
}

/* Two threads on the machine's two vCPUs; the writer returns at the deadline. */
static void run_race(struct race *r, void *(*reader)(void *), void *(*writer)(void *))
{
	pthread_t a, b;

	r->deadline = now_ns() + RUN_NS;
	pthread_create(&a, NULL, reader, r);
	pthread_create(&b, NULL, writer, r);
	pthread_join(b, NULL);
	__atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
	pthread_join(a, NULL);
	ok(r->reads > 1000 && r->writes > 1000,
	   "both threads were at work: %llu reads, %llu writes", (unsigned long long)r->reads,
	   (unsigned long long)r->writes);
}

/* Until the deadline, and on a busy machine longer, until the other thread had its share. */
static bool more(struct race *r, u64 n)
{
	u64 now;

	if (n % 64)
		return true;
	now = now_ns();
	return now < r->deadline || (now < r->deadline + 10000000000ULL &&
				     __atomic_load_n(&r->reads, __ATOMIC_RELAXED) < 2000);
}

static bool stopped(struct race *r)
{
	return __atomic_load_n(&r->stop, __ATOMIC_RELAXED);
}

/* ---- a pinned key among churned ones, all in a few buckets ---- */

#define PINNED 1000000ULL

static void *read_pinned(void *arg)
{
	struct race *r = arg;
	u64 key = PINNED, value;

	env_enter(fix.env, 1, NULL);
	while (!stopped(r)) {
		/* what the value shows later is not looked at: as in Linux a replaced element is
		 * reused at once */
		rcu_enter();
		r->missed += !r->map->ops->lookup(r->map, &key);
		rcu_leave();
		/* bpf(2)'s copy however is of one moment */
		if (!(__atomic_fetch_add(&r->reads, 1, __ATOMIC_RELAXED) % 8) &&
		    (r->map->ops->sys_lookup(r->map, &key, &value, 0) || value >> 32 != PINNED))
			r->missed++;
	}
	env_leave(fix.env);
	return NULL;
}

/* Deletes, inserts and replaces the other keys, and replaces the pinned one. */
static void *churn_others(void *arg)
{
	struct race *r = arg;
	const struct map_ops *ops = r->map->ops;
	u64 seed = 7, key, value;

	env_enter(fix.env, 0, NULL);
	while (more(r, r->writes)) {
		key = rnd(&seed) % 8;
		value = key << 32 | r->writes;
		rcu_enter();
		if (rnd(&seed) & 1)
			ops->remove(r->map, &key);
		else
			r->bad += ops->update(r->map, &key, &value, BPF_ANY) != 0;
		if (!(r->writes % 4)) {
			key = PINNED;
			value = PINNED << 32 | (u32)r->writes;
			r->bad += ops->update(r->map, &key, &value,
					      r->writes & 4 ? BPF_EXIST : BPF_ANY) != 0;
		}
		rcu_leave();
		r->writes++;
	}
	env_leave(fix.env);
	return NULL;
}

static void pinned(u32 flags, const char *what)
{
	struct race r = {.map = make_map(BPF_MAP_TYPE_HASH, 8, 8, 9, flags)};
	u64 key = PINNED, value = PINNED << 32;

	r.map->ops->update(r.map, &key, &value, BPF_ANY);
	run_race(&r, read_pinned, churn_others);
	is_u64(r.missed, 0, "%s: a key that is always there is never missed while others churn",
	       what);
	is_u64(r.bad, 0, "%s: and the churning goes without errors", what);
	ok(objcache_live(hash_of(r.map)->cache) == hash_of(r.map)->nr, "%s: no element is lost",
	   what);
	obj_put(&r.map->obj);
}

/* ---- keys whose parts always agree, with hashes that do not tell them apart ---- */

static void *read_mixed(void *arg)
{
	struct race *r = arg;
	struct hash_map *h = hash_of(r->map);
	u64 seed = 3;

	env_enter(fix.env, 1, NULL);
	while (!stopped(r)) {
		u64 first = rnd(&seed) % 4, second = rnd(&seed) % 4;
		struct long_key key = key_of(first, second);
		struct hash_elem *e = __atomic_load_n(&h->bucket[0], __ATOMIC_ACQUIRE);

		rcu_enter();
		/* as a lookup that has the element's hash */
		if (e && first != second &&
		    hash_matches(h, e, __atomic_load_n(&e->hash, __ATOMIC_RELAXED), &key))
			r->missed++;
		rcu_leave();
		__atomic_fetch_add(&r->reads, 1, __ATOMIC_RELAXED);
	}
	env_leave(fix.env);
	return NULL;
}

static void *churn_equal_parts(void *arg)
{
	struct race *r = arg;
	u64 seed = 9, value = 1;

	env_enter(fix.env, 0, NULL);
	while (more(r, r->writes)) {
		u64 part = rnd(&seed) % 4;
		struct long_key key = key_of(part, part);

		rcu_enter();
		if (r->map->ops->remove(r->map, &key))
			r->map->ops->update(r->map, &key, &value, BPF_ANY);
		rcu_leave();
		r->writes++;
	}
	env_leave(fix.env);
	return NULL;
}

static void mixed(void)
{
	struct race r = {.map = make_map(BPF_MAP_TYPE_HASH, sizeof(struct long_key), 8, 1, 0)};

	run_race(&r, read_mixed, churn_equal_parts);
	is_u64(r.missed, 0, "a key made of two keys' parts is never found");
	obj_put(&r.map->obj);
}

/*
 * The same without luck: the comparison is interrupted in the middle, by a fault on the second half
 * of the key it is given, and the handler lets the element be used for another key.
 */
static struct {
	struct map *map;
	char *page; /* what faults */
	struct long_key old, new;
	int ran;
} reuse;

static void on_fault(int sig)
{
	u64 value = 2;

	mprotect(reuse.page, 4096, PROT_READ | PROT_WRITE);
	reuse.map->ops->remove(reuse.map, &reuse.old);
	reuse.map->ops->update(reuse.map, &reuse.new, &value, BPF_ANY);
	reuse.ran++;
}

static void interrupted_at(u32 part)
{
	struct long_key mixed = key_of(1, 2), *key;
	struct hash_elem *e;
	struct hash_map *h;
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 value = 1;

	reuse.map = make_map(BPF_MAP_TYPE_HASH, sizeof(struct long_key), 8, 1, 0);
	reuse.page = pages + 4096;
	reuse.old = key_of(1, 1);
	reuse.new = key_of(2, 2);
	reuse.ran = 0;
	reuse.map->ops->update(reuse.map, &reuse.old, &value, BPF_ANY);
	h = hash_of(reuse.map);
	e = h->bucket[0];
	key = (struct long_key *)(pages + 4096 - 8 * part);
	memcpy(key, &mixed, sizeof(mixed));
	signal(SIGSEGV, on_fault);
	mprotect(reuse.page, 4096, PROT_NONE);
	ok(!hash_matches(h, e, e->hash, key),
	   "an element reused while part %u is compared does not match", part);
	signal(SIGSEGV, SIG_DFL);
	ok(reuse.ran == 1 && h->bucket[0] == e, "it was reused in the middle");
	munmap(pages, 8192);
	obj_put(&reuse.map->obj);
}

/* ---- two writers, one full map ---- */

static void *write_to_full(void *arg)
{
	struct race *r = arg;
	u64 seed = (u64)arg ^ now_ns(), key, value = 5, n;
	long err;

	env_enter(fix.env, seed & 1, NULL);
	for (n = 0; n % 64 || now_ns() < r->deadline; n++) {
		key = rnd(&seed) % 24;
		rcu_enter();
		err = n & 1 ? r->map->ops->remove(r->map, &key)
			    : r->map->ops->update(r->map, &key, &value, BPF_ANY);
		rcu_leave();
		if (err && err != -E2BIG && err != -ENOENT)
			__atomic_fetch_add(&r->bad, 1, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&r->writes, n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&r->reads, n, __ATOMIC_RELAXED);
	env_leave(fix.env);
	return NULL;
}

static u32 count_keys(struct map *map)
{
	u64 key, next;
	void *from = NULL;
	u32 n = 0;

	while (!map->ops->sys_next_key(map, from, &next) && n < 1000) {
		key = next;
		from = &key;
		n++;
	}
	return n;
}

static void full(u32 flags)
{
	struct race r = {.map = make_map(BPF_MAP_TYPE_HASH, 8, 8, 16, flags)};
	u64 key, value = 1, i, fits = 0;

	run_race(&r, write_to_full, write_to_full);
	is_u64(r.bad, 0, "two writers see only the errors of a full map");
	ok(hash_of(r.map)->nr <= 16 && count_keys(r.map) == hash_of(r.map)->nr,
	   "the count agrees with what is there");
	for (key = 0; key < 24; key++)
		r.map->ops->remove(r.map, &key);
	is_u64(hash_of(r.map)->nr, 0, "an emptied map counts 0");
	is_int(objcache_live(hash_of(r.map)->cache), 0, "an emptied map holds no element");
	for (i = 0; i < 100; i++)
		fits += !r.map->ops->update(r.map, &i, &value, BPF_ANY);
	is_u64(fits, 16, "exactly max_entries elements fit after the churn");
	obj_put(&r.map->obj);
}

/* ---- a handler that works on the map it interrupted ---- */

static struct {
	struct map *map;
	u64 ran, masked, bad, seed;
} handler;

static void on_signal(int sig)
{
	u64 key = rnd(&handler.seed) % 8, value = key;
	void *found;

	if (env_tls.irq_masked) { /* a run would pend */
		handler.masked++;
		return;
	}
	rcu_enter();
	found = handler.map->ops->lookup(handler.map, &(u64){PINNED});
	handler.bad += !found;
	if (handler.ran & 1)
		handler.map->ops->remove(handler.map, &key);
	else
		handler.map->ops->update(handler.map, &key, &value, BPF_ANY);
	rcu_leave();
	handler.ran++;
}

static void signals(void)
{
	struct itimerval every = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	struct race r = {.map = make_map(BPF_MAP_TYPE_HASH, 8, 8, 9, 0),
			 .reads = 2000 /* no reader to wait for */};
	u64 key = PINNED, value = PINNED << 32;

	r.map->ops->update(r.map, &key, &value, BPF_ANY);
	r.deadline = now_ns() + RUN_NS;
	handler.map = r.map;
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &every, NULL);
	churn_others(&r);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	env_enter(fix.env, 0, NULL);
	ok(handler.ran > 100, "handlers interrupted the writer (%llu, and %llu pended)",
	   (unsigned long long)handler.ran, (unsigned long long)handler.masked);
	is_u64(handler.bad + r.bad, 0,
	       "writers in handlers and under them do not disturb each other");
	ok(count_keys(r.map) == hash_of(r.map)->nr, "the count agrees with what is there");
	obj_put(&r.map->obj);
}

/* A program that churns inside one read section, which no grace period can end. */
static void bounded(u32 flags, const char *what)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, 8, 8, 16, flags);
	u64 key, value = 1, i;

	rcu_enter();
	for (i = 0; i < 200000; i++) {
		key = i % 32;
		map->ops->update(map, &key, &value, BPF_ANY);
		map->ops->remove(map, &(u64){(i + 7) % 32});
	}
	rcu_leave();
	ok(objcache_taken(hash_of(map)->cache) <= 16 + 2,
	   "%s: churning inside one run takes no more memory than the map's", what);
	obj_put(&map->obj);
}

int main(void)
{
	fix_up(2);
	pinned(0, "preallocated");
	pinned(BPF_F_NO_PREALLOC, "not preallocated");
	mixed();
	interrupted_at(31); /* whichever side of the comparison is loaded first */
	interrupted_at(32);
	full(0);
	full(BPF_F_NO_PREALLOC);
	signals();
	bounded(0, "preallocated");
	bounded(BPF_F_NO_PREALLOC, "not preallocated");
	fix_down();
	return tap_done();
}
