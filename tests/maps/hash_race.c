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

/* Until the deadline, and on a busy machine longer, until both threads had their share. */
static bool more(struct race *r, u64 n)
{
	u64 now;

	if (n % 64)
		return true;
	now = now_ns();
	return now < r->deadline || (now < r->deadline + 10000000000ULL &&
				     (n < 2000 || __atomic_load_n(&r->reads, __ATOMIC_RELAXED) < 2000));
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
	for (key = 0; key < 8; key++)
		r.map->ops->remove(r.map, &key);
	ok(hash_count(hash_of(r.map)) == 1, "%s: no element is lost", what);
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
		struct long_key key = key_of(first, second), whole = key_of(first, first);

		rcu_enter();
		/* as a lookup of a key that has the other's hash */
		r->missed += first != second && hash_find_hashed(h, hash_key(h, &whole), &key);
		rcu_leave();
		__atomic_fetch_add(&r->reads, 1, __ATOMIC_RELAXED);
	}
	env_leave(fix.env);
	return NULL;
}

/* Removes and inserts four keys: of 4 bytes, or long ones of two equal parts. */
static void *churn_four(void *arg)
{
	struct race *r = arg;
	u64 seed = 9, value = 1;

	env_enter(fix.env, 0, NULL);
	while (more(r, r->writes)) {
		u32 nr = rnd(&seed) % 4;
		struct long_key parts = key_of(nr, nr);
		const void *key = r->map->key_size == sizeof(nr) ? (const void *)&nr : &parts;

		rcu_enter();
		if (r->map->ops->remove(r->map, key))
			r->map->ops->update(r->map, key, &value, BPF_ANY);
		rcu_leave();
		r->writes++;
	}
	env_leave(fix.env);
	return NULL;
}

static void mixed(void)
{
	struct race r = {.map = make_map(BPF_MAP_TYPE_HASH, sizeof(struct long_key), 8, 1, 0)};

	run_race(&r, read_mixed, churn_four);
	is_u64(r.missed, 0, "a key made of two keys' parts is never found");
	obj_put(&r.map->obj);
}

/*
 * The same without luck: the comparison is interrupted in the middle, by a fault on the second half of the key it is
 * given, and the handler lets the element be used for another key.
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

/* back: the handler puts the old key back, elsewhere in memory: it must be found. */
static void interrupted_at(u32 part, bool back)
{
	struct long_key mixed = back ? key_of(1, 1) : key_of(1, 2), *key;
	struct hash_map *h;
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 value = 1, hash;
	char *e, *found;

	reuse.map = make_map(BPF_MAP_TYPE_HASH, sizeof(struct long_key), 8, 1, 0);
	reuse.page = pages + 4096;
	reuse.old = key_of(1, 1);
	reuse.new = back ? reuse.old : key_of(2, 2);
	reuse.ran = 0;
	reuse.map->ops->update(reuse.map, &reuse.old, &value, BPF_ANY);
	h = hash_of(reuse.map);
	hash = hash_key(h, &reuse.old);
	e = hash_find(h, &reuse.old);
	key = (struct long_key *)(pages + 4096 - 8 * part);
	memcpy(key, &mixed, sizeof(mixed));
	signal(SIGSEGV, on_fault);
	mprotect(reuse.page, 4096, PROT_NONE);
	found = hash_find_hashed(h, hash, key);
	signal(SIGSEGV, SIG_DFL);
	if (back)
		ok(found && *(u64 *)hash_value(h, found) == 2,
		   "a key deleted and inserted while part %u is compared is found", part);
	else
		ok(!found, "an element reused while part %u is compared does not match", part);
	ok(reuse.ran == 1 && e == hash_find(h, &reuse.new), "it was reused in the middle");
	munmap(pages, 8192);
	obj_put(&reuse.map->obj);
}

/*
 * Free memory links to other free memory where keys are: a reader who stands on an element that is given back must not
 * take the link for its key. Every key that could be mistaken for one is looked up all the time.
 */
static void *read_links(void *arg)
{
	struct race *r = arg;
	struct hash_map *h = hash_of(r->map);
	u32 key, link;

	env_enter(fix.env, 1, NULL);
	while (!stopped(r)) {
		key = r->reads % 4;
		rcu_enter();
		for (link = 4; link < 16; link++)
			r->missed += hash_find_hashed(h, hash_key(h, &key), &link) != NULL;
		rcu_leave();
		__atomic_fetch_add(&r->reads, 1, __ATOMIC_RELAXED);
	}
	env_leave(fix.env);
	return NULL;
}

static void links(void)
{
	struct race r = {.map = make_map(BPF_MAP_TYPE_HASH, 4, 8, 8, 0)};

	run_race(&r, read_links, churn_four);
	is_u64(r.missed, 0, "what free memory holds is no key");
	obj_put(&r.map->obj);
}

/* ---- long lists of groups that come and go ---- */

/* All in one home group: pinned keys in the overflow groups, which others join and leave. */
#define LIST_KEYS 60

static void *read_list(void *arg)
{
	struct race *r = arg;
	u64 key, got;

	env_enter(fix.env, 1, NULL);
	while (!stopped(r)) {
		rcu_enter();
		for (key = 2; key < LIST_KEYS; key += 3)
			r->missed += !r->map->ops->lookup(r->map, &key);
		for (key = 1000; key < 1010; key++)
			r->missed += r->map->ops->lookup(r->map, &key) != NULL;
		rcu_leave();
		r->missed += r->map->ops->sys_lookup(r->map, &(u64){2}, &got, 0) != 0;
		__atomic_fetch_add(&r->reads, 1, __ATOMIC_RELAXED);
	}
	env_leave(fix.env);
	return NULL;
}

/* Runs of keys, so that groups in the middle become empty and are taken off. */
static void *churn_list(void *arg)
{
	struct race *r = arg;
	u64 seed = 8, value = 1, key, first;

	env_enter(fix.env, 0, NULL);
	while (more(r, r->writes)) {
		bool add = rnd(&seed) & 1;

		first = rnd(&seed) % LIST_KEYS;
		rcu_enter();
		for (key = first; key < first + 24 && key < LIST_KEYS; key++) {
			if (key % 3 == 2)
				r->bad += key & 1 && r->map->ops->update(r->map, &key, &value, BPF_EXIST);
			else if (add)
				r->bad += r->map->ops->update(r->map, &key, &value, BPF_ANY) != 0;
			else
				r->map->ops->remove(r->map, &key);
		}
		rcu_leave();
		r->writes++;
	}
	env_leave(fix.env);
	return NULL;
}

static void lists(u32 groups)
{
	struct race r = {.map = make_map(BPF_MAP_TYPE_HASH, 8, 8, LIST_KEYS, 0)};
	struct hash_map *h = hash_of(r.map);
	u32 mapped = h->nr_groups;
	u64 key;

	h->nr_groups = groups;
	for (key = 0; key < LIST_KEYS; key++)
		r.map->ops->update(r.map, &key, &key, BPF_ANY);
	ok(h->group[0].next, "keys hang on a list of groups");
	run_race(&r, read_list, churn_list);
	is_u64(r.missed, 0, "%u lists: keys that stay are found, others are not, while groups come and go", groups);
	is_u64(r.bad, 0, "%u lists: and writers see no errors", groups);
	h->nr_groups = mapped;
	obj_put(&r.map->obj);
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
	ok(hash_count(hash_of(r.map)) <= 16 && count_keys(r.map) == hash_count(hash_of(r.map)),
	   "the count agrees with what is there");
	for (key = 0; key < 24; key++)
		r.map->ops->remove(r.map, &key);
	is_u64(hash_count(hash_of(r.map)), 0, "an emptied map counts 0");
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
	ok(count_keys(r.map) == hash_count(hash_of(r.map)), "the count agrees with what is there");
	obj_put(&r.map->obj);
}

/* A program that churns inside one read section, which no grace period can end. */
static void bounded(u32 flags, const char *what)
{
	struct map *map = make_map(BPF_MAP_TYPE_HASH, 8, 8, 16, flags);
	u64 key, value = 1, i, bad = 0;

	rcu_enter();
	for (i = 0; i < 200000; i++) {
		key = i % 16;
		bad += map->ops->update(map, &key, &value, BPF_ANY) != 0;
		map->ops->remove(map, &(u64){(i + 7) % 16});
	}
	rcu_leave();
	ok(!bad && hash_of(map)->overflow_fresh <= 16,
	   "%s: churning inside one run takes no more memory than the map's", what);
	obj_put(&map->obj);
}

/* ---- two threads, each with keys of its own ---- */

static void *own_keys(void *arg)
{
	struct race *r = arg;
	u64 base = __atomic_fetch_add(&r->reads, 1, __ATOMIC_RELAXED) << 32, i, key, bad = 0;

	env_enter(fix.env, base >> 32 & 1, NULL);
	for (i = 0; i < 300000; i++) {
		key = base | i % 500;
		rcu_enter();
		bad += r->map->ops->update(r->map, &key, &i, BPF_ANY) != 0;
		key = base | (i * 7) % 500;
		if (i > 3000)
			bad += !r->map->ops->lookup(r->map, &key);
		rcu_leave();
	}
	for (i = 0; i < 500; i++) {
		key = base | i;
		bad += r->map->ops->remove(r->map, &key) != 0;
	}
	__atomic_fetch_add(&r->bad, bad, __ATOMIC_RELAXED);
	env_leave(fix.env);
	return NULL;
}

static void apart(void)
{
	struct race r = {.map = make_map(BPF_MAP_TYPE_HASH, 8, 8, 1000, 0)};
	pthread_t a, b;

	pthread_create(&a, NULL, own_keys, &r);
	pthread_create(&b, NULL, own_keys, &r);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	ok(!r.bad && !hash_count(hash_of(r.map)), "two threads with keys of their own do not disturb each other");
	obj_put(&r.map->obj);
}

int main(void)
{
	fix_up(2);
	pinned(0, "preallocated");
	pinned(BPF_F_NO_PREALLOC, "not preallocated");
	mixed();
	/* whichever side of the comparison is loaded first */
	interrupted_at(31, false);
	interrupted_at(32, false);
	interrupted_at(31, true);
	interrupted_at(32, true);
	links();
	lists(1);
	lists(2);
	apart();
	full(0);
	full(BPF_F_NO_PREALLOC);
	signals();
	bounded(0, "preallocated");
	bounded(BPF_F_NO_PREALLOC, "not preallocated");
	fix_down();
	return tap_done();
}
