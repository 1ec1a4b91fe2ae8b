// SPDX-License-Identifier: BSD-2-Clause
// The object cache: see objcache.h for what it promises and how.
#include "rcu/objcache.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rcu/mem.h"
#include "rcu/rcu.h"

#if defined(__SANITIZE_ADDRESS__)
#define OBJCACHE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OBJCACHE_ASAN 1
#endif
#endif
#ifdef OBJCACHE_ASAN
#include <sanitizer/asan_interface.h>
#define poison(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define unpoison(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define poison(p, n)   ((void)(p), (void)(n))
#define unpoison(p, n) ((void)(p), (void)(n))
#endif

#define NR_CHUNKS    32
#define NR_STRIPES   8
#define NR_READY     8
#define NR_MAGAZINES 16
#define CHUNK_BYTES  65536	  /* of the first chunk, when nothing was reserved */
#define HUGE_BYTES   (4u << 20) /* chunks from this size on ask for huge pages: fewer faults on the way */
#define STEP_BYTES   65536	  /* so much fresh memory is made resident at a time: a system call, not 16 faults */
#define FRESH_BYTES  1024	  /* and so much of it taken at a time, 16 objects at most */
#define HOARD_BYTES  (8u << 20) /* a magazine takes no larger stack: others could not get at what is in it */
#define AHEAD	     6		  /* takes */
#define FREE_MAX     64		  /* nor keeps more of what objcache_free() gives back */
#ifdef OBJCACHE_ASAN
#define GONE_BATCH 1 /* poisoned as soon as may be */
#else
#define GONE_BATCH 32 /* objects that wait in a magazine before they are given to the grace period */
#endif

/* Before every object. next is only used while the object is on a stack, and read by losers of a
 * race after that. */
struct header {
	u32 next; /* number + 1 of the object below on the stack, 0: last; atomic */
	u32 nr;	  /* this object's number */
};

/*
 * A thread uses one stripe, so that threads seldom meet on a head. What was freed through it with objcache_free_rcu() waits
 * in pending, then as a whole in waiting, and comes back as a whole to ready: nobody touches the objects meanwhile.
 */
struct stripe {
	u64 head;	     /* tag << 32 | number + 1 of the top object, 0: empty; atomic */
	u64 pending;	     /* as head: freed, no grace period started for them yet; atomic */
	u64 ready[NR_READY]; /* a stack nobody else has: its length << 32 | top; 0: none; atomic, taken as a whole */
	u64 waiting;	     /* so too, until the running callback is called; owned by who set GP_RUNNING */
	u32 nr_pending;	     /* about how many are pending; atomic */
} __attribute__((aligned(64)));

/*
 * One thread's: its operations are plain loads and stores. A signal handler that interrupts one finds it busy and takes the
 * stripe's way; one that comes between the test of busy and the setting has left it as it was when it returns. Atomic
 * only for objcache_live(), which may look at any time.
 */
struct magazine {
	u32 busy;
	u32 top;       /* number + 1 of the top of a stack of free objects, 0: none */
	u32 nr;	       /* about how many they are */
	u32 gone;      /* top of a stack of what waits to be given to the grace period */
	u32 gone_last; /* its bottom */
	u32 nr_gone;
} __attribute__((aligned(64)));

enum gp_state {
	GP_RUNNING = 1, /* the callback is on its way */
	GP_MORE = 2,	/* something was pushed to pending since the callback was sent */
	GP_DYING = 4,	/* objcache_destroy() was called meanwhile: the callback frees the cache */
};

struct objcache {
	u64 stride, size;
	u64 chunk0;		/* objects in chunk 0, a power of two; chunk k has chunk0 << k */
	u32 chunk0_shift;	/* chunk0 = 1 << this */
	u32 nr_fresh;		/* objects of FRESH_BYTES */
	bool warm;		/* objcache_warm() was called: the first step is resident */
	char *chunk[NR_CHUNKS]; /* atomic; set once */
	struct stripe stripe[NR_STRIPES];
	struct magazine magazine[NR_MAGAZINES];
	u64 fresh __attribute__((
		aligned(64))); /* number of the next object never handed out; atomic */
	u32 gp_state;	       /* enum gp_state, 0: nothing waits; atomic */
	struct rcu_cb cb;
};

#define peek(p)	  __atomic_load_n(p, __ATOMIC_RELAXED)
#define poke(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

static u32 next_stripe;
static __thread u32 my_stripe __attribute__((tls_model("initial-exec"))); /* + 1; 0: none yet */
static u32 magazines_used;						    /* bit per magazine; atomic */
static __thread u32 my_magazine __attribute__((tls_model("initial-exec"))); /* + 1; 0: none */

void objcache_thread_enter(void)
{
	u32 used = peek(&magazines_used), nr;

	do {
		if (my_magazine || used == (1u << NR_MAGAZINES) - 1)
			return;
		nr = __builtin_ctz(~used);
		/* acquire: what its last thread left in it */
	} while (!__atomic_compare_exchange_n(&magazines_used, &used, used | 1u << nr, true, __ATOMIC_ACQUIRE,
					      __ATOMIC_RELAXED));
	my_magazine = nr + 1;
}

void objcache_thread_end(void)
{
	u32 nr = my_magazine;

	my_magazine = 0;
	if (nr)
		__atomic_fetch_and(&magazines_used, ~(1u << (nr - 1)), __ATOMIC_RELEASE);
}

/* NULL: the thread has none, or is in the middle of an operation on it. */
static inline struct magazine *magazine_take(struct objcache *cache)
{
	u32 nr = my_magazine;
	struct magazine *m;

	if (unlikely(!nr))
		return NULL;
	m = &cache->magazine[nr - 1];
	if (unlikely(peek(&m->busy)))
		return NULL;
	poke(&m->busy, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return m;
}

static inline void magazine_release(struct magazine *m)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	poke(&m->busy, 0);
}

static struct stripe *stripe_of_thread(struct objcache *cache)
{
	if (unlikely(!my_stripe))
		my_stripe = __atomic_fetch_add(&next_stripe, 1, __ATOMIC_RELAXED) % NR_STRIPES + 1;
	return &cache->stripe[my_stripe - 1];
}

/* Chunk k begins with object number chunk0 * (2^k - 1). */
static u32 chunk_of(const struct objcache *cache, u64 nr, u64 *ret_first)
{
	u32 k = 63 - __builtin_clzll((nr >> cache->chunk0_shift) + 1);

	*ret_first = cache->chunk0 * ((1ULL << k) - 1);
	return k;
}

static struct header *header_at(const struct objcache *cache, u64 nr)
{
	u64 first;
	u32 k = chunk_of(cache, nr, &first);
	char *chunk = __atomic_load_n(&cache->chunk[k], __ATOMIC_ACQUIRE);

	return (struct header *)(chunk + (nr - first) * cache->stride);
}

static struct header *header_of(void *obj)
{
	return (struct header *)obj - 1;
}

/* A stack nobody else has, from its top (number + 1) to last. */
static void push_stack(u64 *head, u32 top, struct header *last)
{
	u64 old = __atomic_load_n(head, __ATOMIC_RELAXED), new;

	do {
		__atomic_store_n(&last->next, (u32)old, __ATOMIC_RELAXED);
		new = ((old >> 32) + 1) << 32 | top;
		/*
		 * The release in it pairs with the acquire in pop(): who takes the object sees what its last owner did.
		 * objcache_free_rcu() needs more: the loads behind it must not come before.
		 */
	} while (!__atomic_compare_exchange_n(head, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

static void push(u64 *head, struct header *h)
{
	push_stack(head, h->nr + 1, h);
}

/* The next one to be popped will be written to: its memory was somebody else's for a grace period. */
static void warm(const struct objcache *cache, u32 top)
{
	char *h;
	u64 i;

	if (!top)
		return;
	h = (char *)header_at(cache, top - 1);
	for (i = 0; i < cache->stride && i < 128; i += 64)
		__builtin_prefetch(h + i, 1);
}

static struct header *pop(const struct objcache *cache, u64 *head)
{
	u64 old = __atomic_load_n(head, __ATOMIC_ACQUIRE), new;
	struct header *h;

	do {
		if (!(u32)old)
			return NULL;
		h = header_at(cache, (u32)old - 1);
		/* h may be taken by now and next mean nothing: then the tag has changed and the
		 * exchange fails */
		new = ((old >> 32) + 1) << 32 | __atomic_load_n(&h->next, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(head, &old, new, true, __ATOMIC_ACQUIRE,
					      __ATOMIC_ACQUIRE));
	warm(cache, (u32)new);
	return h;
}

static u64 take_all(u64 *head)
{
	u64 old = __atomic_load_n(head, __ATOMIC_ACQUIRE);

	while (!__atomic_compare_exchange_n(head, &old, ((old >> 32) + 1) << 32, true,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	return old;
}

static int map_chunk(struct objcache *cache, u32 k)
{
	u64 bytes;
	char *mem, *none = NULL;

	if (k >= NR_CHUNKS || __builtin_mul_overflow(cache->chunk0 << k, cache->stride, &bytes))
		return -1;
	mem = rcu_mem_map(bytes);
	if (!mem)
		return -1;
	if (bytes >= HUGE_BYTES) {
		int saved = errno; /* a signal handler must not change it */

		madvise(mem, bytes, MADV_HUGEPAGE); /* if there are none, so be it */
		errno = saved;
	}
	if (!__atomic_compare_exchange_n(&cache->chunk[k], &none, mem, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED))
		rcu_mem_unmap(mem, bytes); /* somebody else was first */
	return 0;
}

static u64 chunk_bytes(const struct objcache *cache, u32 k)
{
	return (cache->chunk0 << k) * cache->stride;
}

/* Makes a step of a chunk resident, from a byte of it on. Not done, it comes by faults. */
static void make_resident(char *chunk, u64 from, u64 bytes)
{
#ifdef MADV_POPULATE_WRITE
	int saved = errno;

	madvise(chunk + from, min_of(bytes - from, (u64)STEP_BYTES), MADV_POPULATE_WRITE);
	errno = saved;
#endif
}

/* Bytes from..to of a chunk were taken: the step that begins there, if one does. */
static void took_bytes(const struct objcache *cache, u32 k, u64 from, u64 to)
{
	u64 step = align_up(from, STEP_BYTES), bytes = chunk_bytes(cache, k);

	if (step < to && cache->stride <= STEP_BYTES / 4 && (k || step || !cache->warm))
		make_resident(cache->chunk[k], step, bytes);
}

/* more: map another chunk if need be. m: gets some more besides the one returned; may be NULL. */
static struct header *take_fresh(struct objcache *cache, struct magazine *m, bool more)
{
	u64 nr = __atomic_load_n(&cache->fresh, __ATOMIC_RELAXED), first;
	struct header *h;
	u32 k, n, i;

	do {
		k = chunk_of(cache, nr, &first);
		if (nr >= U32_MAX - 64)
			return NULL;
		if (!__atomic_load_n(&cache->chunk[k], __ATOMIC_RELAXED) && (!more || map_chunk(cache, k)))
			return NULL;
		n = m ? min_of((u64)cache->nr_fresh, first + (cache->chunk0 << k) - nr) : 1;
	} while (!__atomic_compare_exchange_n(&cache->fresh, &nr, nr + n, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	took_bytes(cache, k, (nr - first) * cache->stride, (nr - first + n) * cache->stride);
	for (i = n - 1; i; i--) {
		h = header_at(cache, nr + i);
		h->nr = nr + i;
		poke(&h->next, m->top);
		poke(&m->top, (u32)(nr + i + 1));
		poke(&m->nr, m->nr + 1);
	}
	h = header_at(cache, nr);
	h->nr = nr;
	return h;
}

/* Pushes a stack nobody else has, one by one. */
static void push_all(const struct objcache *cache, u64 *head, u32 top)
{
	while (top) {
		struct header *h = header_at(cache, top - 1);

		top = __atomic_load_n(&h->next, __ATOMIC_RELAXED);
		push(head, h);
	}
}

/* A stack nobody else has, put on head as it is; false: there is something already. */
static bool put_stack(u64 *head, u32 top)
{
	u64 old = peek(head);

	return !(u32)old && __atomic_compare_exchange_n(head, &old, ((old >> 32) + 1) << 32 | top, false, __ATOMIC_RELEASE,
							__ATOMIC_RELAXED);
}

/*
 * Takes a stack that is ready in from: into the magazine, which is empty, if it may be had and the stack is not too large
 * for one, else as the one of mine, if that is empty. False: there is none to take.
 */
static bool take_ready(const struct objcache *cache, struct magazine *m, struct stripe *mine, struct stripe *from)
{
	u64 stack = 0;
	bool fits = false;
	u32 i;

	for (i = 0; !stack && i < NR_READY; i++) {
		stack = peek(&from->ready[i]);
		fits = m && (stack >> 32) * cache->stride <= HOARD_BYTES;
		if (stack && !fits && (u32)peek(&mine->head))
			return false;
		if (stack && !__atomic_compare_exchange_n(&from->ready[i], &stack, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			stack = 0;
	}
	if (!stack)
		return false;
	if (fits) {
		poke(&m->top, (u32)stack);
		poke(&m->nr, (u32)(stack >> 32));
	} else if (!put_stack(&mine->head, (u32)stack)) {
		push_all(cache, &mine->head, (u32)stack); /* somebody gave something back meanwhile */
	}
	return true;
}

/* One more stack for others to take: after a grace period, by the callback. */
static void give_ready(const struct objcache *cache, struct stripe *s, u64 stack)
{
	u64 none;
	u32 i;

	for (i = 0; i < NR_READY; i++) {
		none = 0;
		if (!peek(&s->ready[i]) &&
		    __atomic_compare_exchange_n(&s->ready[i], &none, stack, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
	}
	if (!put_stack(&s->head, (u32)stack))
		push_all(cache, &s->head, (u32)stack);
}

/*
 * Besides the next object the one some takes further on is fetched: its address is a guess, that the stack goes on in the
 * steps it goes in here, as what was taken in order and given back in order does. Following the links as far would wait
 * for the memory that is to be fetched.
 */
static inline struct header *magazine_pop(const struct objcache *cache, struct magazine *m)
{
	u32 top = peek(&m->top), next;
	struct header *h, *below;
	uintptr_t ahead;

	if (unlikely(!top))
		return NULL;
	h = header_at(cache, top - 1);
	next = peek(&h->next);
	poke(&m->top, next);
	poke(&m->nr, m->nr ? m->nr - 1 : 0);
	if (unlikely(!next))
		return h;
	below = header_at(cache, next - 1);
	__builtin_prefetch(below, 1);
	ahead = (uintptr_t)h + AHEAD * ((uintptr_t)below - (uintptr_t)h);
	__builtin_prefetch((void *)ahead, 1);
	__builtin_prefetch((void *)(ahead + 63), 1);
	return h;
}

/* After take_ready(). */
static struct header *pop_taken(const struct objcache *cache, struct magazine *m, struct stripe *mine)
{
	struct header *h = m ? magazine_pop(cache, m) : NULL;

	return h ? h : pop(cache, &mine->head);
}

static struct header *steal(struct objcache *cache, struct magazine *m, struct stripe *mine)
{
	struct header *h = NULL;
	u32 i;

	for (i = 0; !h && i < NR_STRIPES; i++) {
		h = pop(cache, &cache->stripe[i].head);
		if (!h && take_ready(cache, m, mine, &cache->stripe[i]))
			h = pop_taken(cache, m, mine);
	}
	return h;
}

/* m: the thread's magazine, empty; or NULL. */
static __attribute__((noinline)) struct header *refill(struct objcache *cache, struct magazine *m)
{
	struct stripe *mine = stripe_of_thread(cache);
	struct header *h = NULL;

	if (take_ready(cache, m, mine, mine))
		h = pop_taken(cache, m, mine);
	if (!h)
		h = pop(cache, &mine->head);
	/* others' free objects are left to them as long as there is memory that was taken anyway */
	if (!h)
		h = take_fresh(cache, m, false);
	if (!h)
		h = steal(cache, m, mine);
	if (!h)
		h = take_fresh(cache, m, true);
	return h;
}

void *objcache_alloc(struct objcache *cache)
{
	struct magazine *m;
	struct header *h;

	if (rcu_mem_fails())
		return NULL;
	m = magazine_take(cache);
	if (likely(m)) {
		h = magazine_pop(cache, m);
		if (unlikely(!h))
			h = refill(cache, m);
		magazine_release(m);
	} else {
		h = refill(cache, NULL);
	}
	if (unlikely(!h))
		return NULL;
	unpoison(h + 1, cache->size);
	return h + 1;
}

/* No poisoning here: readers of a cache that recycles at once may still look at the object. */
void objcache_free(struct objcache *cache, void *obj)
{
	struct magazine *m = magazine_take(cache);
	struct header *h = header_of(obj);

	if (!m || m->nr >= FREE_MAX) {
		push(&stripe_of_thread(cache)->head, h);
	} else {
		poke(&h->next, m->top);
		poke(&m->top, h->nr + 1);
		poke(&m->nr, m->nr + 1);
	}
	if (m)
		magazine_release(m);
}

static void destroy_now(struct objcache *cache)
{
	u32 k;

	for (k = 0; k < NR_CHUNKS; k++) {
		if (!cache->chunk[k])
			continue;
		unpoison(cache->chunk[k], chunk_bytes(cache, k));
		rcu_mem_unmap(cache->chunk[k], chunk_bytes(cache, k));
	}
	free(cache);
}

static void grace_period_over(struct rcu_cb *cb);

/* Only by who set GP_RUNNING, or by the callback. */
static void send_callback(struct objcache *cache)
{
	u32 i;

	__atomic_fetch_and(&cache->gp_state, ~(u32)GP_MORE, __ATOMIC_SEQ_CST);
	for (i = 0; i < NR_STRIPES; i++) {
		struct stripe *s = &cache->stripe[i];
		u64 nr = __atomic_exchange_n(&s->nr_pending, 0, __ATOMIC_RELAXED);
		u32 top = (u32)take_all(&s->pending);

		s->waiting = top ? max_of(nr, 1) << 32 | top : 0;
	}
	rcu_defer(&cache->cb, grace_period_over);
}

static void poison_all(const struct objcache *cache, u32 top)
{
#ifdef OBJCACHE_ASAN
	for (; top; top = __atomic_load_n(&header_at(cache, top - 1)->next, __ATOMIC_RELAXED))
		poison(header_at(cache, top - 1) + 1, cache->size);
#endif
}

static void grace_period_over(struct rcu_cb *cb)
{
	struct objcache *cache = container_of_(cb, struct objcache, cb);
	u32 state, i;

	for (i = 0; i < NR_STRIPES; i++) {
		struct stripe *s = &cache->stripe[i];

		if (!s->waiting)
			continue;
		poison_all(cache, (u32)s->waiting);
		give_ready(cache, s, s->waiting);
		s->waiting = 0;
	}
	state = __atomic_load_n(&cache->gp_state, __ATOMIC_ACQUIRE);
	do {
		if (state & GP_DYING) {
			destroy_now(cache);
			return;
		}
		if (state & GP_MORE) {
			send_callback(cache);
			return;
		}
		/* once it is idle the cache may be destroyed under us: the exchange is the last
		 * touch */
	} while (!__atomic_compare_exchange_n(&cache->gp_state, &state, state & ~GP_RUNNING, true,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

/* A stack nobody else has, of nr objects that readers may still see. */
static __attribute__((noinline)) void retire(struct objcache *cache, u32 top, struct header *last, u32 nr)
{
	struct stripe *s = stripe_of_thread(cache);
	u32 both = GP_RUNNING | GP_MORE;

	__atomic_fetch_add(&s->nr_pending, nr, __ATOMIC_RELAXED);
	push_stack(&s->pending, top, last);
	/* the callback will look at pending after it has cleared GP_MORE, so after the push */
	if ((__atomic_load_n(&cache->gp_state, __ATOMIC_SEQ_CST) & both) == both)
		return;
	if (!(__atomic_fetch_or(&cache->gp_state, both, __ATOMIC_SEQ_CST) & GP_RUNNING))
		send_callback(cache);
}

void objcache_free_rcu(struct objcache *cache, void *obj)
{
	struct magazine *m = magazine_take(cache);
	struct header *h = header_of(obj), *last;
	u32 nr;

	if (!m) {
		retire(cache, h->nr + 1, h, 1);
		return;
	}
	poke(&h->next, m->gone);
	poke(&m->gone, h->nr + 1);
	if (!m->nr_gone)
		m->gone_last = h->nr + 1;
	nr = ++m->nr_gone;
	if (likely(nr < GONE_BATCH)) {
		magazine_release(m);
		return;
	}
	last = header_at(cache, m->gone_last - 1);
	poke(&m->gone, 0);
	m->nr_gone = 0;
	magazine_release(m);
	retire(cache, h->nr + 1, last, nr);
}

int objcache_warm(struct objcache *cache)
{
	if (!cache->chunk[0] && map_chunk(cache, 0))
		return -ENOMEM;
	make_resident(cache->chunk[0], 0, chunk_bytes(cache, 0));
	cache->warm = true;
	return 0;
}

struct objcache *objcache_create(u64 size, u32 align, u32 first)
{
	struct objcache *cache;
	u64 stride;

	if (size > 1ULL << 40 || !is_pow2(align) || align < 8)
		return NULL;
	stride = align_up(size + sizeof(struct header), align);
	cache = rcu_mem_alloc(sizeof(*cache));
	if (!cache)
		return NULL;
	cache->stride = stride;
	cache->size = size;
	cache->chunk0 = roundup_pow2(first ? first : max_of(CHUNK_BYTES / stride, 4));
	cache->chunk0_shift = __builtin_ctzll(cache->chunk0);
	cache->nr_fresh = min_of(max_of(FRESH_BYTES / stride, 1), 16);
	if (first && map_chunk(cache, 0)) {
		free(cache);
		return NULL;
	}
	return cache;
}

void objcache_destroy(struct objcache *cache)
{
	if (!cache)
		return;
	if (!(__atomic_fetch_or(&cache->gp_state, GP_DYING, __ATOMIC_ACQ_REL) & GP_RUNNING))
		destroy_now(cache);
}

/* How many lie on a stack. Others may be at work: no more are counted than there can be. */
static long length(const struct objcache *cache, u32 top)
{
	u64 max = __atomic_load_n(&cache->fresh, __ATOMIC_RELAXED);
	u64 n = 0;

	while (top && top <= max && n < max) {
		top = __atomic_load_n(&header_at(cache, top - 1)->next, __ATOMIC_RELAXED);
		n++;
	}
	return n;
}

long objcache_live(const struct objcache *cache)
{
	long live = __atomic_load_n(&cache->fresh, __ATOMIC_ACQUIRE);
	u32 i, k;

	for (i = 0; i < NR_STRIPES; i++) {
		const struct stripe *s = &cache->stripe[i];

		live -= length(cache, (u32)__atomic_load_n(&s->head, __ATOMIC_ACQUIRE));
		for (k = 0; k < NR_READY; k++)
			live -= length(cache, (u32)__atomic_load_n(&s->ready[k], __ATOMIC_ACQUIRE));
	}
	for (i = 0; i < NR_MAGAZINES; i++)
		live -= length(cache, peek(&cache->magazine[i].top)) + length(cache, peek(&cache->magazine[i].gone));
	return live < 0 ? 0 : live;
}

u64 objcache_taken(const struct objcache *cache)
{
	return __atomic_load_n(&cache->fresh, __ATOMIC_RELAXED);
}
