// SPDX-License-Identifier: BSD-2-Clause
// What all maps share: attributes, references, descriptor operations, and when a map is a constant.
#include "object/map.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "btf/btf.h"
#include "rcu/rcu.h"

/* Deferred: readers may still hold elements when the last reference goes. */
static void destroy(struct rcu_cb *cb)
{
	struct map *map = container_of_(cb, struct map, rcu);

	map->ops->destroy(map);
}

static void release(struct obj *obj)
{
	rcu_defer(&map_of(obj)->rcu, destroy);
}

static struct memfile *memfile(struct obj *obj)
{
	struct map *map = map_of(obj);

	return map->mem.fd >= 0 ? &map->mem : NULL;
}

static int mmap_check(struct obj *obj, u64 off, u64 len, int prot, bool shared)
{
	struct map *map = map_of(obj);

	return map->ops->mmap_check ? map->ops->mmap_check(map, off, len, prot, shared) : -LINUX_ENOTSUPP;
}

static bool readable(struct obj *obj)
{
	struct map *map = map_of(obj);

	return map->ops->readable && map->ops->readable(map);
}

static const struct obj_ops map_obj_ops = {
	.release = release,
	.memfile = memfile,
	.mmap_check = mmap_check,
	.readable = readable,
};

void map_init(struct map *map, const struct map_ops *ops, struct inlay *inlay, const struct map_attr *attr)
{
	map->ops = ops;
	map->type = attr->map_type;
	map->key_size = attr->key_size;
	map->value_size = attr->value_size;
	map->max_entries = attr->max_entries;
	map->map_flags = attr->map_flags;
	map->map_extra = attr->map_extra;
	memcpy(map->name, attr->name, sizeof(map->name));
	map->btf_key_type_id = attr->btf_key_type_id;
	map->btf_value_type_id = attr->btf_value_type_id;
	map->spin_lock_off = U32_MAX;
	map->mem.fd = -1;
	map->btf = btf_get(attr->btf);
	obj_init(&map->obj, inlay, OBJ_MAP, &map_obj_ops);
}

void map_fini(struct map *map)
{
	memfile_fini(&map->mem);
	btf_put(map->btf);
	obj_put(map->btf_obj);
	map->btf = NULL;
	map->btf_obj = NULL;
}

bool map_is_const(const struct map *map)
{
	if (!(map->map_flags & BPF_F_RDONLY_PROG) || !__atomic_load_n(&map->frozen, __ATOMIC_ACQUIRE))
		return false;
	if (__atomic_load_n(&map->writers, __ATOMIC_ACQUIRE))
		return false;
	return map->mem.fd < 0 || memfile_has_writer(&map->mem) == 0;
}
