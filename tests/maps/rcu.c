// SPDX-License-Identifier: BSD-2-Clause
// Grace periods and the object cache: torture with a detector that is shown to work, handlers,
// fork, accounting.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "fixture.h"
#include "rcu/objcache.h"

#define RUN_NS 700000000ULL

/* ---- grace periods: an object that a reader holds does not age by more than one step ---- */

struct aged {
	u64 age; /* atomic: grace periods since it was unpublished */
	struct rcu_cb cb;
	u64 ages_with; /* free without waiting: the busted variant */
};

#define OLD 10
static struct aged pool[64];
static struct aged *published;
static struct {
	bool stop;
	u64 reads, bad, freed;
} torture;

static void spin(u64 n)
{
	while (n--)
		__asm__ volatile("" ::: "memory");
}

static void *torture_reader(void *arg)
{
	u64 seed = (u64)arg, reads = 0, bad = 0;

	rcu_thread_enter();
	while (!__atomic_load_n(&torture.stop, __ATOMIC_RELAXED)) {
		struct aged *a;

		rcu_enter();
		a = __atomic_load_n(&published, __ATOMIC_ACQUIRE);
		spin(rnd(&seed) % 2000);
		if (!(rnd(&seed) % 256))
			sched_yield();
		bad += __atomic_load_n(&a->age, __ATOMIC_RELAXED) > 1;
		rcu_leave();
		reads++;
	}
	__atomic_fetch_add(&torture.reads, reads, __ATOMIC_RELAXED);
	__atomic_fetch_add(&torture.bad, bad, __ATOMIC_RELAXED);
	return NULL;
}

/* One step older each grace period, then free to be used again (age 0 again, at once). */
static void grow_old(struct rcu_cb *cb)
{
	struct aged *a = container_of_(cb, struct aged, cb);

	if (__atomic_add_fetch(&a->age, 1, __ATOMIC_RELAXED) < 3) {
		rcu_defer(cb, grow_old);
		return;
	}
	__atomic_store_n(&a->age, OLD, __ATOMIC_RELEASE);
	__atomic_fetch_add(&torture.freed, 1, __ATOMIC_RELAXED);
}

static struct aged *take_old(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(pool); i++)
		if (__atomic_load_n(&pool[i].age, __ATOMIC_ACQUIRE) == OLD && &pool[i] != published)
			return &pool[i];
	return NULL;
}

static void torture_run(bool busted)
{
	u64 end = now_ns() + RUN_NS, updates = 0;
	pthread_t t[3];
	long i;

	memset(&torture, 0, sizeof(torture));
	for (i = 0; i < (long)ARRAY_SIZE(pool); i++)
		pool[i].age = OLD;
	pool[0].age = 0;
	published = &pool[0];
	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, torture_reader, (void *)(i + 1));
	while (now_ns() < end && !(busted && updates > 200000)) {
		struct aged *next = take_old(), *old = published;

		if (!next) {
			sched_yield();
			continue;
		}
		__atomic_store_n(&next->age, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&published, next, __ATOMIC_RELEASE);
		if (busted)
			__atomic_store_n(&old->age, OLD, __ATOMIC_RELEASE);
		else
			rcu_defer(&old->cb, grow_old);
		updates++;
		spin(500);
	}
	__atomic_store_n(&torture.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	rcu_barrier_all();
	ok(torture.reads > 1000 && updates > 10, "%s: %llu reads, %llu updates",
	   busted ? "busted" : "torture", (unsigned long long)torture.reads,
	   (unsigned long long)updates);
	if (busted)
		ok(torture.bad, "the detector finds a free that does not wait (%llu times)",
		   (unsigned long long)torture.bad);
	else
		is_u64(torture.bad, 0, "no reader sees an object grow old");
}

/* ---- callbacks ---- */

static struct {
	struct rcu_cb cb;
	int left, ran;
} chain;

static void chain_cb(struct rcu_cb *cb)
{
	chain.ran++;
	if (chain.left--)
		rcu_defer(cb, chain_cb);
}

static void barrier(void)
{
	chain.left = 4;
	rcu_defer(&chain.cb, chain_cb);
	rcu_barrier_all();
	is_int(chain.ran, 5, "a barrier waits for what callbacks defer");
}

/* ---- the cache ---- */

struct owned {
	u64 owner; /* atomic: 0 free */
	u64 pad[3];
};

static struct objcache *shared_cache;
static u64 cache_bad, cache_ops, cache_deadline;

static struct owned *claim(u64 who)
{
	struct owned *o = objcache_alloc(shared_cache);

	if (o && __atomic_exchange_n(&o->owner, who, __ATOMIC_RELAXED))
		__atomic_fetch_add(&cache_bad, 1, __ATOMIC_RELAXED); /* two owners */
	return o;
}

static void give(struct owned *o, u64 who, bool wait)
{
	if (!o)
		return;
	if (__atomic_exchange_n(&o->owner, 0, __ATOMIC_RELAXED) != who)
		__atomic_fetch_add(&cache_bad, 1, __ATOMIC_RELAXED);
	if (wait)
		objcache_free_rcu(shared_cache, o);
	else
		objcache_free(shared_cache, o);
}

static void *cache_thread(void *arg)
{
	u64 who = (u64)arg, seed = who, n;
	struct owned *held[16] = {NULL};
	u32 i;

	rcu_thread_enter();
	for (n = 0; n % 64 || now_ns() < cache_deadline; n++) {
		i = rnd(&seed) % 16;
		give(held[i], who, rnd(&seed) % 8 == 0);
		held[i] = claim(who);
	}
	for (i = 0; i < 16; i++)
		give(held[i], who, i & 1);
	__atomic_fetch_add(&cache_ops, n, __ATOMIC_RELAXED);
	return NULL;
}

static u64 handler_ops;

static void cache_handler(int sig)
{
	struct owned *a = claim(1000), *b = claim(1001);

	give(a, 1000, false);
	give(b, 1001, handler_ops & 2);
	handler_ops += 2;
}

static void cache_race(void)
{
	struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct owned *first;
	pthread_t t[3];
	sigset_t alarm;
	long i;

	shared_cache = objcache_create(sizeof(struct owned), 8, 0);
	first = objcache_alloc(shared_cache);
	memset(first, 0, sizeof(*first)); /* fresh memory is zero anyway; this marks nobody's */
	objcache_free(shared_cache, first);
	cache_deadline = now_ns() + RUN_NS;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, cache_thread, (void *)(i + 1));
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL); /* the handler runs on this thread only */
	signal(SIGALRM, cache_handler);
	setitimer(ITIMER_REAL, &every, NULL);
	cache_thread((void *)99);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	ok(cache_ops > 1000 && handler_ops > 10, "%llu operations, and %llu in handlers",
	   (unsigned long long)cache_ops, (unsigned long long)handler_ops);
	is_u64(cache_bad, 0, "an object has one owner at a time");
	rcu_barrier_all();
	is_int(objcache_live(shared_cache), 0, "all objects are back");
	objcache_destroy(shared_cache);
}

/* A, B, A: the handler takes A and B and gives A back, and the next time B. A take it interrupted
 * must notice. */
static void aba_handler(int sig)
{
	static struct owned *kept;
	struct owned *a;

	if (kept) {
		give(kept, 1001, false);
		kept = NULL;
		return;
	}
	a = claim(1000);
	kept = claim(1001);
	give(a, 1000, false);
	handler_ops++;
}

static void aba(void)
{
	struct itimerval every = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
	struct owned *o[64];
	u64 end = now_ns() + RUN_NS, n;
	u32 i;

	shared_cache = objcache_create(sizeof(struct owned), 8, 0);
	for (i = 0; i < ARRAY_SIZE(o); i++)
		o[i] = claim(99);
	for (i = 0; i < ARRAY_SIZE(o); i++)
		give(o[i], 99, false);
	handler_ops = cache_bad = 0;
	signal(SIGALRM, aba_handler);
	setitimer(ITIMER_REAL, &every, NULL);
	for (n = 0; n % 1024 || now_ns() < end; n++) {
		struct owned *mine = claim(99);

		give(mine, 99, false);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	ok(handler_ops > 100, "%llu handlers in %llu takes", (unsigned long long)handler_ops,
	   (unsigned long long)n);
	is_u64(cache_bad, 0,
	       "a handler that gives back what an interrupted take was about to take does no harm");
	is_u64(objcache_taken(shared_cache), ARRAY_SIZE(o), "and no object is lost");
	objcache_destroy(shared_cache);
}

static void cache_shapes(void)
{
	struct objcache *c = objcache_create(100, 64, 10);
	void *a = objcache_alloc(c), *b = objcache_alloc(c), *d;
	u32 i, bad = 0;

	ok((u64)a % 64 == 8 && (u64)b % 64 == 8, "objects start 8 bytes past the alignment");
	objcache_free(c, a);
	ok(objcache_alloc(c) == a, "what is free is used again");
	rcu_enter();
	objcache_free_rcu(c, a);
	d = objcache_alloc(c);
	ok(d != a, "but not before a grace period, if asked for that");
	rcu_leave();
	for (i = 0; i < 1000; i++)
		bad += !objcache_alloc(c);
	is_u64(bad, 0, "a cache grows");
	objcache_destroy(c);
	ok(!objcache_create(1ULL << 41, 8, 0), "objects that are too large are refused");
	ok(!objcache_create(8, 24, 0), "so are alignments that are no powers of two");
	ok(!objcache_create(1ULL << 40, 8, 1u << 31), "and reservations that cannot be");
	c = objcache_create(1 << 20, 8, 0);
	a = objcache_alloc(c);
	ok(a && objcache_alloc(c), "large objects");
	objcache_free_rcu(c, a);
	objcache_destroy(c); /* while its callback is on the way */
	rcu_barrier_all();
	ok(true, "a cache may be destroyed with objects waiting");
}

/* ---- fork ---- */

static bool reader_in, reader_stop;

static void *long_reader(void *unused)
{
	rcu_thread_enter();
	rcu_enter();
	__atomic_store_n(&reader_in, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&reader_stop, __ATOMIC_ACQUIRE))
		sched_yield();
	rcu_leave();
	return NULL;
}

static struct rcu_cb child_cb;
static int child_ran;

static void in_child(struct rcu_cb *cb)
{
	child_ran++;
}

static void forks(void)
{
	pthread_t t;
	pid_t pid;
	int status = -1;

#ifdef RCU_TSAN
	tap_skip("the thread sanitizer does not allow threads in a forked child");
	return;
#endif
	pthread_create(&t, NULL, long_reader, NULL);
	while (!__atomic_load_n(&reader_in, __ATOMIC_ACQUIRE))
		sched_yield();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(10);
		signal(SIGALRM, SIG_DFL);
		rcu_defer(&child_cb, in_child);
		rcu_barrier_all();
		rcu_wait();
		_exit(child_ran == 1 ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status),
	   "grace periods end in a child whose parent has a reader inside");
	__atomic_store_n(&reader_stop, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	rcu_wait();
	rcu_barrier_all();
	ok(true, "and in the parent afterwards");
}

int main(void)
{
	if (rcu_init())
		return 1;
	rcu_thread_enter();
	torture_run(false);
	torture_run(true);
	barrier();
	cache_shapes();
	cache_race();
	aba();
	forks();
	return tap_done();
}
