// SPDX-License-Identifier: BSD-2-Clause
// Local storage, what its variants share: see local_storage.h for what it promises.
#include "maps/local_storage.h"

#include <pthread.h>
#include <stdlib.h>

#include "maps/local_storage_int.h"
#include "object/instance.h"
#include "rcu/mem.h"

#ifdef MAP_TEST_HOOKS
void (*lstore_hook)(const char *where);
bool lstore_early_free;
#endif

static const struct storage_ops *const impls[] = {
	&map_storage_jit, &map_storage_slots, &map_storage_linux_inlined, &map_storage_linux_slowpath, &map_storage_linux_outlined,
};

const struct storage_ops *map_storage_impl_at(u32 i)
{
	return i < ARRAY_SIZE(impls) ? impls[i] : NULL;
}

const struct storage_ops *map_storage_impl_find(const char *name)
{
	u32 i;

	if (!name)
		return impls[0];
	for (i = 0; i < ARRAY_SIZE(impls); i++)
		if (!strcmp(impls[i]->name, name))
			return impls[i];
	return NULL;
}

/*
 * Elements of one size come from one cache, whatever their map: an owner's values then lie close together, and not each
 * at the beginning of some map's own memory, where a thousand of them fall into the same few sets of a CPU's cache.
 */
static struct size_cache {
	struct size_cache *next;
	struct objcache *cache;
	u64 size;
	u32 align, users;
} *size_caches;
static pthread_mutex_t size_lock = PTHREAD_MUTEX_INITIALIZER;

static struct size_cache *size_cache_make(u64 size, u32 align)
{
	struct size_cache *c = rcu_mem_alloc(sizeof(*c));

	if (!c)
		return NULL;
	c->cache = objcache_create(size, align, 0);
	if (!c->cache || objcache_warm(c->cache)) {
		objcache_destroy(c->cache);
		free(c);
		return NULL;
	}
	c->size = size;
	c->align = align;
	c->next = size_caches;
	size_caches = c;
	return c;
}

static struct objcache *cache_get(u64 size, u32 align)
{
	struct size_cache *c;

	size = align_up(size, 8);
	pthread_mutex_lock(&size_lock);
	for (c = size_caches; c && (c->size != size || c->align != align); c = c->next)
		;
	if (!c)
		c = size_cache_make(size, align);
	if (c)
		c->users++;
	pthread_mutex_unlock(&size_lock);
	return c ? c->cache : NULL;
}

/* Takes NULL. Nothing of the user's is left in it. */
static void cache_put(struct objcache *cache)
{
	struct size_cache **p, *c;

	pthread_mutex_lock(&size_lock);
	for (p = &size_caches; *p && (*p)->cache != cache; p = &(*p)->next)
		;
	c = *p;
	if (c && !--c->users) {
		*p = c->next;
		objcache_destroy(c->cache);
		free(c);
	}
	pthread_mutex_unlock(&size_lock);
}

void *lstore_get_or_create(struct env_owner *owner, struct lstore_map *map, const void *value)
{
	void *v = map->ops->find(owner, map);
	int err;

	if (v)
		return v;
	err = map->ops->update(owner, map, value, BPF_NOEXIST, &v);
	return !err || (err == -EEXIST && !map->ops->loser_null) ? v : NULL;
}

int lstore_update(struct env_owner *owner, struct lstore_map *map, const void *value, u64 flags)
{
	int err = map_check_update_flags(flags);

	return err ? err : map->ops->update(owner, map, value, flags, NULL);
}

void lstore_owner_free(struct env_owner *owner)
{
	/* creators look at it after they have made the owner point to their storage, or under its lock */
	if (!__atomic_load_n(&owner->gone, __ATOMIC_RELAXED)) /* else we ourselves have set it before */
		__atomic_store_n(&owner->gone, 1, __ATOMIC_SEQ_CST);
	/* a map that finds its last element gone waits a grace period: so it is there until we have given that one back */
	rcu_thread_enter();
	rcu_enter();
	map_linux_owner_free(owner);
	map_slots_owner_free(owner);
	rcu_leave();
}

int lstore_check(const struct map_attr *attr)
{
	if (attr->map_flags & ~(u32)(BPF_F_NO_PREALLOC | BPF_F_CLONE) || !(attr->map_flags & BPF_F_NO_PREALLOC))
		return -EINVAL;
	if (attr->max_entries || attr->key_size != sizeof(int) || !attr->value_size)
		return -EINVAL;
	if (!attr->btf_key_type_id || !attr->btf_value_type_id)
		return -EINVAL;
	return attr->value_size > LSTORE_VALUE_MAX ? -E2BIG : 0;
}

int lstore_map_create(struct inlay *inlay, const struct map_attr *attr, const struct map_ops *ops,
		      const struct storage_ops *impl, enum lstore_kind kind, struct map **ret_map)
{
	struct lstore_map *map;
	int err = map_check_btf(inlay, attr, BTF_KEY_INT_FD);

	if (err)
		return err;
	map = rcu_mem_alloc(sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->kind = kind;
	map->ops = impl;
	map->cache = cache_get(impl->elem_size + attr->value_size, impl->elem_align);
	err = map->cache ? impl->map_init(map) : -ENOMEM;
	if (err) {
		cache_put(map->cache);
		free(map);
		return err;
	}
	map_init(&map->map, ops, inlay, attr);
	*ret_map = &map->map;
	return 0;
}

/* A grace period after the last element went: nobody can find anything of this map under its number. */
static void map_free(struct rcu_cb *cb)
{
	struct lstore_map *map = container_of_(cb, struct lstore_map, rcu);

	cache_put(map->cache);
	map->ops->map_fini(map);
	map_fini(&map->map);
	free(map);
}

void lstore_map_destroy(struct map *m)
{
	struct lstore_map *map = lstore_map_of(m);

	rcu_thread_enter();
	map->ops->map_drain(map);
	rcu_defer(&map->rcu, map_free);
}

u64 lstore_elems(const struct lstore_map *map)
{
	u64 n = 0;
	u32 i;

	for (i = 0; i < LSTORE_BUCKETS; i++)
		n += __atomic_load_n(&map->bucket[i].nr, __ATOMIC_RELAXED);
	return n;
}

u64 lstore_mem_usage(const struct map *map)
{
	const struct lstore_map *m = lstore_map_of(map);

	return sizeof(*m) + lstore_elems(m) * (m->ops->elem_size + map->value_size);
}

long lstore_live(void)
{
	return map_linux_live() + map_slots_live();
}
