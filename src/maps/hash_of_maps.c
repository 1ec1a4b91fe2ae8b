// SPDX-License-Identifier: BSD-2-Clause
// Hashes of maps: the hash table with an inner map's address as value. Readers take the address while the element is known
// to be in the map (hash_find_word()), as its memory is reused at once; what it led to is freed only after their section.
#include "maps/hash_int.h"

#include "object/helper.h"
#include "object/instance.h"

static int check(const struct map_attr *attr)
{
	return attr->value_size == 4 ? hash_check(attr, false) : -EINVAL;
}

static int create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	struct map *shape, *map;
	int err = map_inner_check(attr->inner);

	if (err)
		return err;
	shape = map_inner_shape(attr->inner);
	if (!shape)
		return -ENOMEM;
	err = hash_create(inlay, attr, &map_ops_hash_of_maps, false, &map);
	if (err) {
		map_inner_shape_free(shape);
		return err;
	}
	map->inner = shape;
	*ret_map = map;
	return 0;
}

static struct map **inner_at(const struct hash_map *h, char *e)
{
	return (struct map **)hash_value(h, e);
}

static void destroy(struct map *map)
{
	struct hash_map *h = hash_of(map);
	u64 group, nr = (u64)h->nr_groups + h->overflow_fresh;
	u32 i;

	for (group = 0; group < nr; group++)
		for (i = 0; i < HASH_GROUP; i++)
			if (h->group[group].tag[i])
				obj_put(&(*inner_at(h, hash_elem_at(h, h->group[group].elem[i])))->obj);
	map_inner_shape_free(map->inner);
	hash_destroy(map);
}

static void fill(const struct hash_map *h, char *e, const void *value, bool is_new)
{
	/* release: a reader of the element's last owner must see that it was given back (hash.c) */
	__atomic_store_n((u64 *)hash_value(h, e), (u64)value, __ATOMIC_RELEASE);
}

static void copy_inner(const struct hash_map *h, char *e, void *out)
{
	*(struct map **)out = *inner_at(h, e);
}

static void copy_id(const struct hash_map *h, char *e, void *out)
{
	memcpy(out, &(*inner_at(h, e))->obj.id, sizeof(u32));
}

static void *lookup(struct map *map, const void *key)
{
	return (void *)hash_find_word(hash_of(map), key);
}

static u64 lookup_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return hash_find_word(hash_of((struct map *)r1), (const void *)r2);
}

static u64 (*direct(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64)
{
	return helper_id == BPF_FUNC_map_lookup_elem ? lookup_twin : NULL;
}

static int sys_remove(struct map *map, const void *key)
{
	struct map *old;
	int err = hash_delete(hash_of(map), key, copy_inner, &old);

	if (!err)
		obj_put(&old->obj);
	return err;
}

static int set_obj(struct map *map, const void *key, struct obj *obj, u64 flags)
{
	struct map *old = NULL;
	int err;

	if (!obj)
		return sys_remove(map, key);
	err = map_inner_admit(map, obj);
	if (err)
		return err;
	err = hash_write(hash_of(map), key, map_of(obj), flags, fill, false, copy_inner, &old);
	if (err)
		obj_put(obj);
	else if (old)
		obj_put(&old->obj);
	return err;
}

static int obj_id(struct map *map, const void *key, u32 *ret_id)
{
	return hash_read(hash_of(map), key, copy_id, ret_id);
}

static const u32 helpers[] = {BPF_FUNC_map_lookup_elem, 0};

const struct map_ops map_ops_hash_of_maps = {
	.name = "hash_of_maps",
	.shown = MAP_SHOWN_HASH | MAP_SHOWN_POINTER,
	.type = BPF_MAP_TYPE_HASH_OF_MAPS,
	.flags = MAP_CAN_ITER_KEYS | MAP_SLEEPABLE_OK | MAP_IN_TRACING_OK | MAP_OF_FDS | MAP_OF_MAPS,
	.helpers = helpers,
	.check = check,
	.create = create,
	.destroy = destroy,
	.lookup = lookup,
	.sys_lookup = map_fds_sys_lookup,
	.sys_update = map_fds_sys_update,
	.sys_remove = sys_remove,
	.sys_next_key = hash_next_key,
	.mem_usage = hash_mem_usage,
	.set_obj = set_obj,
	.obj_id = obj_id,
	.direct = direct,
};
