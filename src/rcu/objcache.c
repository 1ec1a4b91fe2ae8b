// SPDX-License-Identifier: BSD-2-Clause
// The object cache: see objcache.h for what it promises and how.
#include "rcu/objcache.h"

#include <stdlib.h>

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
#define CHUNK_BYTES 65536 /* of the first chunk, when nothing was reserved */

/* Before every object. next is only used while the object is on a stack, and read by losers of a
 * race after that. */
struct header {
	u32 next; /* number + 1 of the object below on the stack, 0: last; atomic */
	u32 nr;	  /* this object's number */
};

/* A thread uses one stripe, so that threads seldom meet on a head; a stripe that is empty steals
 * from the others. */
struct stripe {
	u64 head;  /* tag << 32 | number + 1 of the top object, 0: empty; atomic */
	long live; /* allocated minus freed through this stripe; atomic */
} __attribute__((aligned(64)));

enum gp_state {
	GP_RUNNING = 1, /* the callback is on its way */
	GP_MORE = 2,	/* something was pushed to pending since the callback was sent */
	GP_DYING = 4,	/* objcache_destroy() was called meanwhile: the callback frees the cache */
};

struct objcache {
	u64 stride, size;
	u64 chunk0;		/* objects in chunk 0; chunk k has chunk0 << k */
	char *chunk[NR_CHUNKS]; /* atomic; set once */
	struct stripe stripe[NR_STRIPES];
	u64 fresh __attribute__((
		aligned(64))); /* number of the next object never handed out; atomic */
	u64 pending;	       /* as stripe.head: freed, no grace period started for them yet */
	u32 gp_state;	       /* enum gp_state, 0: nothing waits; atomic */
	u64 waiting; /* the stack the running callback will recycle; owned by who set GP_RUNNING */
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
	u32 k = 63 - __builtin_clzll(nr / cache->chunk0 + 1);

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
		/* release pairs with the acquire in pop(): who takes the object sees what its last
		 * owner did */
	} while (!__atomic_compare_exchange_n(head, &old, new, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
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
	if (!__atomic_compare_exchange_n(&cache->chunk[k], &none, mem, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED))
		rcu_mem_unmap(mem, bytes); /* somebody else was first */
	return 0;
}

static struct header *take_fresh(struct objcache *cache)
{
	u64 nr = __atomic_load_n(&cache->fresh, __ATOMIC_RELAXED), first;
	struct header *h;
	u32 k;

	do {
		k = chunk_of(cache, nr, &first);
		if (nr >= U32_MAX)
			return NULL;
		if (!__atomic_load_n(&cache->chunk[k], __ATOMIC_RELAXED) && map_chunk(cache, k))
			return NULL;
	} while (!__atomic_compare_exchange_n(&cache->fresh, &nr, nr + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	h = header_at(cache, nr);
	h->nr = nr;
	return h;
}

void *objcache_alloc(struct objcache *cache)
{
	struct stripe *mine = stripe_of_thread(cache);
	struct header *h;
	u32 i;

	if (rcu_mem_fails())
		return NULL;
	h = pop(cache, &mine->head);
	for (i = 0; !h && i < NR_STRIPES; i++)
		h = pop(cache, &cache->stripe[i].head);
	if (!h)
		h = take_fresh(cache);
	if (!h)
		return NULL;
	__atomic_fetch_add(&mine->live, 1, __ATOMIC_RELAXED);
	unpoison(h + 1, cache->size);
	return h + 1;
}

/* No poisoning here: readers of a cache that recycles at once may still look at the object. */
void objcache_free(struct objcache *cache, void *obj)
{
	struct stripe *mine = stripe_of_thread(cache);

	__atomic_fetch_sub(&mine->live, 1, __ATOMIC_RELAXED);
	push(&mine->head, header_of(obj));
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
	__atomic_fetch_and(&cache->gp_state, ~GP_MORE, __ATOMIC_ACQ_REL);
	cache->waiting = take_all(&cache->pending);
	rcu_defer(&cache->cb, grace_period_over);
}

static void grace_period_over(struct rcu_cb *cb)
{
	struct objcache *cache = container_of_(cb, struct objcache, cb);
	u32 top = cache->waiting, state;

	while (top) {
		struct header *h = header_at(cache, top - 1);

		top = __atomic_load_n(&h->next, __ATOMIC_RELAXED);
		poison(h + 1, cache->size);
		objcache_free(cache, h + 1);
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
	push(&cache->pending, header_of(obj));
	if (!(__atomic_fetch_or(&cache->gp_state, GP_RUNNING | GP_MORE, __ATOMIC_ACQ_REL) &
	      GP_RUNNING))
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
	cache->chunk0 = first ? first : roundup_pow2(max_of(CHUNK_BYTES / stride, 4));
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

long objcache_live(const struct objcache *cache)
{
	long live = 0;
	u32 i;

	for (i = 0; i < NR_STRIPES; i++)
		live += __atomic_load_n(&cache->stripe[i].live, __ATOMIC_RELAXED);
	return live;
}

u64 objcache_taken(const struct objcache *cache)
{
	return __atomic_load_n(&cache->fresh, __ATOMIC_RELAXED);
}
