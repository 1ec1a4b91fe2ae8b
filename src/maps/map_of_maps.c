// SPDX-License-Identifier: BSD-2-Clause
// Maps as elements of maps: what array_of_maps and hash_of_maps share. All inner maps have one shape, that of the map
// named when the outer one was made; programs are judged by it.
#include <stdlib.h>

#include "btf/btf.h"
#include "maps/maps_int.h"
#include "object/instance.h"
#include "rcu/mem.h"

int map_inner_check(const struct map *inner)
{
	if (!inner)
		return -EBADF;
	if (inner->ops->flags & MAP_OF_MAPS) /* no maps of maps of maps */
		return -EINVAL;
	return inner->ops->flags & MAP_OF_FDS ? -LINUX_ENOTSUPP : 0;
}

/* A copy, so that the map itself may go. It is no object: nobody takes references. */
struct map *map_inner_shape(const struct map *inner)
{
	struct map *shape = rcu_mem_alloc(sizeof(*shape));

	if (!shape)
		return NULL;
	shape->ops = inner->ops;
	shape->type = inner->type;
	shape->key_size = inner->key_size;
	shape->value_size = inner->value_size;
	shape->max_entries = inner->max_entries;
	shape->map_flags = inner->map_flags;
	shape->map_extra = inner->map_extra;
	shape->spin_lock_off = inner->spin_lock_off;
	shape->btf_key_type_id = inner->btf_key_type_id;
	shape->btf_value_type_id = inner->btf_value_type_id;
	shape->btf = btf_get(inner->btf);
	shape->mem.fd = -1;
	shape->obj.kind = OBJ_MAP;
	shape->obj.inlay = inner->obj.inlay;
	shape->obj.refs = 1;
	shape->obj.wait_fd = -1;
	return shape;
}

void map_inner_shape_free(struct map *shape)
{
	if (!shape)
		return;
	btf_put(shape->btf);
	free(shape);
}

/* max_entries of arrays is part of programs' bounds checks, unless the shape says that it is not. */
bool map_inner_fits(const struct map *shape, const struct map *inner)
{
	if (shape->type != inner->type || shape->key_size != inner->key_size ||
	    shape->value_size != inner->value_size || shape->map_flags != inner->map_flags ||
	    shape->spin_lock_off != inner->spin_lock_off)
		return false;
	if (shape->type != BPF_MAP_TYPE_ARRAY || shape->map_flags & BPF_F_INNER_MAP)
		return true;
	return shape->max_entries == inner->max_entries;
}

int map_inner_admit(struct map *outer, struct obj *obj)
{
	if (obj->kind != OBJ_MAP || !map_inner_fits(outer->inner, map_of(obj)))
		return -EINVAL;
	obj_get(obj);
	return 0;
}

/* ---- maps whose elements are objects ---- */

int map_fds_sys_lookup(struct map *map, const void *key, void *value, u64 flags)
{
	int err = map_check_lookup_flags(flags);

	return err ? err : map->ops->obj_id(map, key, value);
}

int map_fds_sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	struct inlay *inlay = map->obj.inlay;
	struct obj *obj;
	u32 fd;
	int err;

	memcpy(&fd, value, sizeof(fd));
	err = inlay->fds->get(inlay, (int)fd, &obj);
	if (err)
		return err;
	err = map->ops->set_obj(map, key, obj, flags);
	obj_put(obj);
	return err;
}
