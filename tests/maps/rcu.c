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

/* A, B, A: the handler takes A and B and gives A back, and the next time B. A take it interrupted must notice. arg: the
 * thread is known to RCU and has a magazine; else it and its handlers meet on the stripe. */
static struct owned *kept; /* by the handler, from one time to the next */

static void aba_handler(int sig)
{
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

static void *aba(void *arg)
{
	const char *how = arg ? "magazine" : "stripe";
	struct itimerval every = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
	struct owned *o[64];
	u64 end = now_ns() + RUN_NS, n;
	sigset_t alarm;
	u32 i;

	if (arg)
		rcu_thread_enter();
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	shared_cache = objcache_create(sizeof(struct owned), 8, 0);
	for (i = 0; i < ARRAY_SIZE(o); i++)
		o[i] = claim(99);
	for (i = 0; i < ARRAY_SIZE(o); i++)
		give(o[i], 99, false);
	handler_ops = cache_bad = 0;
	kept = NULL;
	signal(SIGALRM, aba_handler);
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (n = 0; n % 1024 || now_ns() < end; n++) {
		struct owned *mine = claim(99);

		give(mine, 99, false);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	ok(handler_ops > 100, "%s: %llu handlers in %llu takes", how, (unsigned long long)handler_ops,
	   (unsigned long long)n);
	is_u64(cache_bad, 0, "%s: a handler that gives back what an interrupted take was about to take does no harm", how);
	if (arg) /* the one a handler kept, and as many as it took while the magazine was busy */
		ok(objcache_taken(shared_cache) <= ARRAY_SIZE(o) + 3, "%s: no object is lost: %llu taken", how,
		   (unsigned long long)objcache_taken(shared_cache));
	else
		is_u64(objcache_taken(shared_cache), ARRAY_SIZE(o), "%s: no object is lost", how);
	objcache_destroy(shared_cache);
	return NULL;
}

/* In a thread of its own, whose handlers alone run. */
static void aba_in_thread(void *arg)
{
	sigset_t alarm;
	pthread_t t;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	pthread_create(&t, NULL, aba, arg);
	pthread_join(t, NULL);
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
}

/* ---- magazines ---- */

#define CHURN 3000

/* Takes many, gives some back at once and the others after a grace period, and ends with some in its magazine. */
static void *churn(void *arg)
{
	static struct owned *o[CHURN];
	u64 bad = 0;
	u32 i;

	rcu_thread_enter();
	for (i = 0; i < CHURN; i++)
		o[i] = claim(7);
	for (i = 0; i < CHURN; i++)
		bad += !o[i];
	for (i = 0; i < CHURN; i++)
		give(o[i], 7, i % 8);
	__atomic_fetch_add((u64 *)arg, bad, __ATOMIC_RELAXED);
	return NULL;
}

/* More threads than there are magazines, one after the other and then at once. */
static void magazines(void)
{
	struct owned *o[8];
	u64 bad = 0, taken, end;
	pthread_t t[24];
	u32 i, j;

	shared_cache = objcache_create(sizeof(struct owned), 8, 0);
	cache_bad = 0;
	ok(!objcache_warm(shared_cache), "memory may be made resident before it is needed");
	for (i = 0; i < 40; i++) {
		pthread_create(&t[0], NULL, churn, &bad);
		pthread_join(t[0], NULL);
		rcu_barrier_all();
	}
	taken = objcache_taken(shared_cache);
	ok(taken < 3 * CHURN, "a thread uses what threads that ended gave back (%llu objects taken)", (unsigned long long)taken);
	is_int(objcache_live(shared_cache), 0, "what lies in the magazines of threads that ended is not lost");
	end = now_ns() + 300000000;
	cache_deadline = end;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		pthread_create(&t[i], NULL, cache_thread, (void *)(u64)(i + 1));
	for (i = 0; i < ARRAY_SIZE(t); i++)
		pthread_join(t[i], NULL);
	rcu_barrier_all();
	is_u64(bad + cache_bad, 0, "more threads than magazines: an object has one owner at a time");
	is_int(objcache_live(shared_cache), 0, "and all are back");
	objcache_destroy(shared_cache);

	shared_cache = objcache_create(sizeof(struct owned), 8, 0);
	for (i = 0; i < 20000; i++) {
		for (j = 0; j < ARRAY_SIZE(o); j++)
			o[j] = claim(5);
		for (j = 0; j < ARRAY_SIZE(o); j++)
			give(o[j], 5, false);
	}
	ok(objcache_taken(shared_cache) <= 32, "what is given back at once is taken again at once (%llu objects taken)",
	   (unsigned long long)objcache_taken(shared_cache));
	objcache_destroy(shared_cache);
}

/* An object's memory: zeros at first, then what its last owner left in it. */
static void contents(void)
{
	struct objcache *c = objcache_create(sizeof(struct owned), 8, 0);
	struct owned *o[200];
	u64 not_zero = 0, changed = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(o); i++) {
		o[i] = objcache_alloc(c);
		not_zero += o[i]->owner || o[i]->pad[0] || o[i]->pad[2];
		memset(o[i], 0x5a, sizeof(*o[i]));
	}
	is_u64(not_zero, 0, "memory handed out for the first time is zeros");
	for (i = 0; i < ARRAY_SIZE(o); i++)
		objcache_free_rcu(c, o[i]);
	rcu_barrier_all();
	for (i = 0; i < 100; i++) {
		struct owned *again = objcache_alloc(c);

		changed += again->owner && (again->owner != 0x5a5a5a5a5a5a5a5aULL || again->pad[2] != 0x5a5a5a5a5a5a5a5aULL);
	}
	is_u64(changed, 0, "later it is what was given back");
	objcache_destroy(c);
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
	aba_in_thread(NULL);
	aba_in_thread((void *)1);
	magazines();
	contents();
	forks();
	return tap_done();
}
