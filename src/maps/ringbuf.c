// SPDX-License-Identifier: BSD-2-Clause
/*
 * Ring buffers: many producers, one consumer in user space that maps the ring and needs no call to
 * read it.
 *
 * In memory (pages):
 *
 *     private | consumer position | producer position | data ... | as much again
 *     ring->base  \________________ the map's memfile _________________________/
 *
 * Positions only grow; a record lies at position & mask and may run on into the second half, which
 * Linux maps onto the first. Producer and consumer use the same linear offset, so the halves need
 * not be the same memory here.
 *
 * A record is an 8-byte header (length with the BUSY and DISCARD bits; distance from the private
 * page in pages) and the data, rounded up to 8. Producers reserve under the lock, so the order of
 * records is the order of reservations; they commit without it, by clearing BUSY. The consumer
 * stops at a busy record, so records become visible in order.
 *
 * Nothing the user can write is trusted: the consumer's position (that page is writable) only ever
 * makes a reservation fail or overwrite what the user pretends to have read, never what a producer
 * still holds (pending_pos); headers lie in pages that Linux would not let the user write, but a
 * file can be written by other ways, so a record's ring is looked up in a registry instead of being
 * believed, and lengths never lead out of the data area.
 */
#include "maps/ringbuf.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "object/instance.h"
#include "rcu/mem.h"

#define RING_MAX_RECORD (U32_MAX / 4)
#define RING_HEADER	8u
#define RING_LEN_BITS	(~(u32)(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT))
#define RING_REGISTRY	256 /* lists; a power of two */

static const u32 helpers[] = {BPF_FUNC_ringbuf_output,
			      BPF_FUNC_ringbuf_reserve,
			      BPF_FUNC_ringbuf_query,
			      BPF_FUNC_ringbuf_reserve_dynptr,
			      BPF_FUNC_ringbuf_submit_dynptr,
			      BPF_FUNC_ringbuf_discard_dynptr,
			      0};

struct ring_header {
	u32 len;    /* bytes of data | BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT; atomic */
	u32 pg_off; /* pages from ring->base */
};

struct ring {
	struct map map;
	char *base;    /* the private page; records find the ring by its address */
	u64 *cons_pos; /* user-writable; atomic */
	u64 *prod_pos; /* what the consumer sees of prod; atomic */
	char *data;
	u64 mask; /* bytes of data - 1 */
	u64 page; /* bytes */
	struct map_lock lock;
	u64 prod;	   /* end of the last reservation; lock */
	u64 pending_pos;   /* the oldest record that may still be busy; lock */
	struct ring *next; /* in the registry; RCU */
};

/* Rings by base address, so that a record's claim to belong to one can be checked. RCU; writers
 * hold registry_lock. */
static struct ring *registry[RING_REGISTRY];
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;

static struct ring *ring_of(const struct map *map)
{
	return container_of_(map, struct ring, map);
}

static struct ring **registry_list(const char *base)
{
	return &registry[((uintptr_t)base >> 12) * 0x9e3779b97f4a7c15ULL >> 56];
}

static void enlist(struct ring *r)
{
	struct ring **list = registry_list(r->base);

	pthread_mutex_lock(&registry_lock);
	r->next = *list;
	__atomic_store_n(list, r, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&registry_lock);
}

static void delist(struct ring *r)
{
	struct ring **link = registry_list(r->base);

	pthread_mutex_lock(&registry_lock);
	while (*link && *link != r)
		link = &(*link)->next;
	if (*link)
		__atomic_store_n(link, r->next, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&registry_lock);
}

/* The ring whose data this header lies in, or NULL. */
static struct ring *ring_of_header(const struct ring_header *hdr)
{
	u64 page = map_page_size(), off;
	char *base = (char *)((uintptr_t)hdr & ~(page - 1)) -
		     __atomic_load_n(&hdr->pg_off, __ATOMIC_RELAXED) * page;
	struct ring *r = __atomic_load_n(registry_list(base), __ATOMIC_ACQUIRE);

	while (r && r->base != base)
		r = __atomic_load_n(&r->next, __ATOMIC_ACQUIRE);
	if (!r)
		return NULL;
	off = (const char *)hdr - r->data;
	return off <= r->mask ? r : NULL;
}

/* ---- producers ---- */

static u64 record_bytes(u32 len)
{
	return align_up((u64)len + RING_HEADER, 8);
}

/* Moves pending_pos past the records that are committed. Lock held. */
static u64 oldest_busy(struct ring *r, u64 prod)
{
	u64 pos = r->pending_pos;

	while (pos < prod) {
		struct ring_header *hdr = (struct ring_header *)(r->data + (pos & r->mask));
		u32 len = __atomic_load_n(&hdr->len, __ATOMIC_ACQUIRE);

		if (len & BPF_RINGBUF_BUSY_BIT)
			break;
		pos += record_bytes(len & RING_LEN_BITS);
	}
	/* a header somebody wrote over must not carry it past what was ever produced */
	r->pending_pos = pos = min_of(pos, prod);
	return pos;
}

/* Room for len bytes, as a busy record; NULL: none. Lock held. */
static struct ring_header *reserve_locked(struct ring *r, u32 size, u64 len)
{
	u64 cons = __atomic_load_n(r->cons_pos, __ATOMIC_ACQUIRE);
	u64 prod = r->prod, end = prod + len;
	struct ring_header *hdr;

	/* neither what the consumer has not read nor, whatever it says, a record somebody is
	 * writing */
	if (end - cons > r->mask || end - oldest_busy(r, prod) > r->mask)
		return NULL;
	hdr = (struct ring_header *)(r->data + (prod & r->mask));
	__atomic_store_n(&hdr->pg_off, (u32)(((char *)hdr - r->base) / r->page), __ATOMIC_RELAXED);
	__atomic_store_n(&hdr->len, size | BPF_RINGBUF_BUSY_BIT, __ATOMIC_RELAXED);
	r->prod = end;
	__atomic_store_n(r->prod_pos, end,
			 __ATOMIC_RELEASE); /* the consumer sees the header busy, not stale */
	return hdr;
}

void *ringbuf_reserve(struct map *map, u64 size)
{
	struct ring *r = ring_of(map);
	struct ring_header *hdr;
	u64 len;
	u8 mask;

	if (size > RING_MAX_RECORD)
		return NULL;
	len = record_bytes(size);
	if (len > r->mask + 1)
		return NULL;
	mask = map_lock_take(&r->lock);
	hdr = reserve_locked(r, size, len);
	map_lock_release(&r->lock, mask);
	return hdr ? hdr + 1 : NULL;
}

void ringbuf_commit(void *record, u64 flags, bool discard)
{
	struct ring_header *hdr = (struct ring_header *)record - 1;
	struct ring *r = ring_of_header(hdr);
	u64 cons, at;
	u32 len;

	if (!r)
		return;
	at = (char *)hdr - r->data;
	len = __atomic_load_n(&hdr->len, __ATOMIC_RELAXED) & RING_LEN_BITS;
	/* full order: the record is visible before the consumer's position is read, so one of the
	 * two sees the other */
	__atomic_exchange_n(&hdr->len, len | (discard ? BPF_RINGBUF_DISCARD_BIT : 0),
			    __ATOMIC_SEQ_CST);
	cons = __atomic_load_n(r->cons_pos, __ATOMIC_SEQ_CST) & r->mask;
	if (flags & BPF_RB_FORCE_WAKEUP || (cons == at && !(flags & BPF_RB_NO_WAKEUP)))
		obj_wake(&r->map.obj);
}

u64 ringbuf_query(struct map *map, u64 what)
{
	struct ring *r = ring_of(map);
	u64 cons = __atomic_load_n(r->cons_pos, __ATOMIC_ACQUIRE),
	    prod = __atomic_load_n(r->prod_pos, __ATOMIC_ACQUIRE);

	switch (what) {
	case BPF_RB_AVAIL_DATA:
		return prod - cons;
	case BPF_RB_RING_SIZE:
		return r->mask + 1;
	case BPF_RB_CONS_POS:
		return cons;
	case BPF_RB_PROD_POS:
		return prod;
	}
	return 0;
}

/* ---- the map ---- */

static int check(const struct map_attr *attr)
{
	int err = map_check_flags(attr, BPF_F_NUMA_NODE);

	if (err)
		return err;
	if (attr->key_size || attr->value_size || !is_pow2(attr->max_entries) ||
	    attr->max_entries & (map_page_size() - 1))
		return -EINVAL;
	return 0;
}

/* Moves the engine's mapping of the file to behind a private page. 0 or -ENOMEM. */
static int take_memory(struct ring *r)
{
	struct memfile *mem = &r->map.mem;
	u64 size = 2 * r->page + 2 * (r->mask + 1);
	int err = map_mem_init(mem, "bpf-ringbuf", size);
	char *base;

	if (err)
		return err;
	base = rcu_mem_map(r->page + size);
	if (!base)
		return -ENOMEM;
	if (mremap(mem->addr, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, base + r->page) ==
	    MAP_FAILED) {
		err = -errno;
		rcu_mem_unmap(base, r->page + size);
		return err;
	}
	mem->addr = base + r->page;
	r->base = base;
	r->cons_pos = (u64 *)(base + r->page);
	r->prod_pos = (u64 *)(base + 2 * r->page);
	r->data = base + 3 * r->page;
	return 0;
}

static void destroy(struct map *map)
{
	struct ring *r = ring_of(map);

	rcu_mem_unmap(r->base, r->page); /* the rest goes with the file's mapping */
	map_fini(map);
	free(r);
}

/* Records are no longer looked up once the map is destroyed; whoever is on the list may still be
 * looked at. */
static void destroy_listed_now(struct rcu_cb *cb)
{
	destroy(container_of_(cb, struct map, rcu));
}

static void destroy_listed(struct map *map)
{
	delist(ring_of(map));
	rcu_defer(&map->rcu, destroy_listed_now);
}

static int create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	struct ring *r;
	int err = map_check_btf(inlay, attr, BTF_KEY_ANY);

	if (err)
		return err;
	r = rcu_mem_alloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	map_init(&r->map, &map_ops_ringbuf, inlay, attr);
	r->page = map_page_size();
	r->mask = attr->max_entries - 1;
	err = take_memory(r);
	if (err) {
		obj_abort(&r->map.obj);
		destroy(&r->map);
		return err;
	}
	enlist(r);
	*ret_map = &r->map;
	return 0;
}

static int mmap_check(struct map *map, u64 off, u64 len, int prot, bool shared)
{
	struct ring *r = ring_of(map);
	u64 end;
	int err = map_check_mmap(map, prot, shared);

	if (err)
		return err;
	/* only the consumer's page may be written */
	if (prot & PROT_WRITE && (off || align_up(len, r->page) != r->page))
		return -EPERM;
	if (__builtin_add_overflow(off, len, &end) || align_up(end, r->page) > map->mem.size)
		return -EINVAL;
	return 0;
}

static bool readable(struct map *map)
{
	return ringbuf_query(map, BPF_RB_AVAIL_DATA);
}

static u64 mem_usage(const struct map *map)
{
	return sizeof(struct ring) + map->mem.size;
}

const struct map_ops map_ops_ringbuf = {
	.name = "ringbuf",
	.type = BPF_MAP_TYPE_RINGBUF,
	.flags = MAP_SLEEPABLE_OK | MAP_IN_TRACING_OK,
	.helpers = helpers,
	.check = check,
	.create = create,
	.destroy = destroy_listed,
	.mem_usage = mem_usage,
	.mmap_check = mmap_check,
	.readable = readable,
};
