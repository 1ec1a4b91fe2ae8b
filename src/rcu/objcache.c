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

#define NR_CHUNKS   32
#define NR_STRIPES  8
#define NR_READY    4
#define CHUNK_BYTES 65536	  /* of the first chunk, when nothing was reserved */
#define HUGE_BYTES  (4u << 20) /* chunks from this size on ask for huge pages: fewer faults on the way */

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
	u32 ready[NR_READY]; /* number + 1 of the top of a stack nobody else has, 0: none; atomic, taken as a whole */
	u32 waiting;	     /* so too, until the running callback is called; owned by who set GP_RUNNING */
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
	char *chunk[NR_CHUNKS]; /* atomic; set once */
	struct stripe stripe[NR_STRIPES];
	u64 fresh __attribute__((
		aligned(64))); /* number of the next object never handed out; atomic */
	u32 gp_state;	       /* enum gp_state, 0: nothing waits; atomic */
	struct rcu_cb cb;
};

static u32 next_stripe;
static __thread u32 my_stripe __attribute__((tls_model("initial-exec"))); /* + 1; 0: none yet */

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

static void push(u64 *head, struct header *h)
{
	u64 old = __atomic_load_n(head, __ATOMIC_RELAXED), new;

	do {
		__atomic_store_n(&h->next, (u32)old, __ATOMIC_RELAXED);
		new = ((old >> 32) + 1) << 32 | (h->nr + 1);
		/*
		 * The release in it pairs with the acquire in pop(): who takes the object sees what its last owner did.
		 * objcache_free_rcu() needs more: the loads behind it must not come before.
		 */
	} while (!__atomic_compare_exchange_n(head, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* The next one to be popped will be written to: its memory was somebody else's for a grace period. */
static void warm(const struct objcache *cache, u32 top)
{
	char *h;
	u64 i;

	if (!top)
		return;
	h = (char *)header_at(cache, top - 1);
	for (i = 0; i < cache->stride && i < 192; i += 64)
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

/* more: map another chunk if need be. */
static struct header *take_fresh(struct objcache *cache, bool more)
{
	u64 nr = __atomic_load_n(&cache->fresh, __ATOMIC_RELAXED), first;
	struct header *h;
	u32 k;

	do {
		k = chunk_of(cache, nr, &first);
		if (nr >= U32_MAX)
			return NULL;
		if (!__atomic_load_n(&cache->chunk[k], __ATOMIC_RELAXED) && (!more || map_chunk(cache, k)))
			return NULL;
	} while (!__atomic_compare_exchange_n(&cache->fresh, &nr, nr + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
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

/* Makes a stack that is ready in from the one of mine, if that is empty. False: none is ready. */
static bool take_ready(const struct objcache *cache, struct stripe *mine, struct stripe *from)
{
	u64 old;
	u32 i, top = 0;

	for (i = 0; !top && i < NR_READY; i++)
		if (__atomic_load_n(&from->ready[i], __ATOMIC_RELAXED))
			top = __atomic_exchange_n(&from->ready[i], 0, __ATOMIC_ACQUIRE);
	if (!top)
		return false;
	old = __atomic_load_n(&mine->head, __ATOMIC_RELAXED);
	if ((u32)old || !__atomic_compare_exchange_n(&mine->head, &old, ((old >> 32) + 1) << 32 | top, false,
						     __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		push_all(cache, &mine->head, top);
	return true;
}

/* One more stack for others to take: after a grace period, by the callback. */
static void give_ready(const struct objcache *cache, struct stripe *s, u32 top)
{
	u32 i, none;

	for (i = 0; i < NR_READY; i++) {
		none = 0;
		if (!__atomic_load_n(&s->ready[i], __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&s->ready[i], &none, top, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
	}
	push_all(cache, &s->head, top);
}

static struct header *steal(struct objcache *cache, struct stripe *mine)
{
	struct header *h = NULL;
	u32 i;

	for (i = 0; !h && i < NR_STRIPES; i++) {
		h = pop(cache, &cache->stripe[i].head);
		if (!h && take_ready(cache, mine, &cache->stripe[i]))
			h = pop(cache, &mine->head);
	}
	return h;
}

void *objcache_alloc(struct objcache *cache)
{
	struct stripe *mine = stripe_of_thread(cache);
	struct header *h;

	if (rcu_mem_fails())
		return NULL;
	h = pop(cache, &mine->head);
	if (!h && take_ready(cache, mine, mine))
		h = pop(cache, &mine->head);
	/* others' free objects are left to them as long as there is memory that was taken anyway */
	if (!h)
		h = take_fresh(cache, false);
	if (!h)
		h = steal(cache, mine);
	if (!h)
		h = take_fresh(cache, true);
	if (!h)
		return NULL;
	unpoison(h + 1, cache->size);
	return h + 1;
}

/* No poisoning here: readers of a cache that recycles at once may still look at the object. */
void objcache_free(struct objcache *cache, void *obj)
{
	push(&stripe_of_thread(cache)->head, header_of(obj));
}

static void destroy_now(struct objcache *cache)
{
	u32 k;

	for (k = 0; k < NR_CHUNKS; k++) {
		if (!cache->chunk[k])
			continue;
		unpoison(cache->chunk[k], (cache->chunk0 << k) * cache->stride);
		rcu_mem_unmap(cache->chunk[k], (cache->chunk0 << k) * cache->stride);
	}
	free(cache);
}

static void grace_period_over(struct rcu_cb *cb);

/* Only by who set GP_RUNNING, or by the callback. */
static void send_callback(struct objcache *cache)
{
	u32 i;

	__atomic_fetch_and(&cache->gp_state, ~(u32)GP_MORE, __ATOMIC_SEQ_CST);
	for (i = 0; i < NR_STRIPES; i++)
		cache->stripe[i].waiting = take_all(&cache->stripe[i].pending);
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
		poison_all(cache, s->waiting);
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

void objcache_free_rcu(struct objcache *cache, void *obj)
{
	u32 both = GP_RUNNING | GP_MORE;

	push(&stripe_of_thread(cache)->pending, header_of(obj));
	/* the callback will look at pending after it has cleared GP_MORE, so after the push */
	if ((__atomic_load_n(&cache->gp_state, __ATOMIC_SEQ_CST) & both) == both)
		return;
	if (!(__atomic_fetch_or(&cache->gp_state, both, __ATOMIC_SEQ_CST) & GP_RUNNING))
		send_callback(cache);
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
			live -= length(cache, __atomic_load_n(&s->ready[k], __ATOMIC_ACQUIRE));
	}
	return live < 0 ? 0 : live;
}

u64 objcache_taken(const struct objcache *cache)
{
	return __atomic_load_n(&cache->fresh, __ATOMIC_RELAXED);
}
