// SPDX-License-Identifier: BSD-2-Clause
// Arrays of maps. A program's lookup gives the inner map; one that is replaced is freed only after the read sections that
// may have found it.
#include "maps/fd_array.h"
#include "object/helper.h"

static struct obj *to_obj(void *elem)
{
	return &((struct map *)elem)->obj;
}

static void destroy(struct map *map)
{
	fd_array_clear(fd_array_of(map), to_obj);
	map_inner_shape_free(map->inner);
	fd_array_fini(fd_array_of(map));
}

static int create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	struct fd_array *a;
	int err = map_inner_check(attr->inner);

	if (!err)
		err = map_check_btf(inlay, attr, BTF_KEY_U32);
	if (err)
		return err;
	a = rcu_mem_alloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	map_init(&a->map, &map_ops_array_of_maps, inlay, attr);
	a->map.inner = map_inner_shape(attr->inner);
	err = a->map.inner ? fd_array_take_memory(a) : -ENOMEM;
	if (err) {
		obj_abort(&a->map.obj);
		destroy(&a->map);
		return err;
	}
	*ret_map = &a->map;
	return 0;
}

static void *lookup(struct map *map, const void *key)
{
	return fd_array_at(map, map_array_index(key));
}

static u64 lookup_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return (u64)lookup((struct map *)r1, (const void *)r2);
}

static u64 (*direct(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64)
{
	return helper_id == BPF_FUNC_map_lookup_elem ? lookup_twin : NULL;
}

/* An array's lookup, and what is in the slot: NULL where that is empty. */
static int gen(const struct gen_call *call, struct gen *g)
{
	struct map_array_gen a = {.stride = sizeof(void *)};

	if (call->fact->inner_map)
		return 0;
	a.values = (u64)fd_array_of(call->map)->slot;
	if (!map_array_gen_begin(call, g, &a))
		return 0;
	gen_load(g, BPF_DW, BPF_REG_0, BPF_REG_0, 0);
	map_array_gen_end(g, &a);
	return 1;
}

static int set_obj(struct map *map, const void *key, struct obj *obj, u64 flags)
{
	int err = fd_array_check_update(map, key, flags);

	if (!err && obj)
		err = map_inner_admit(map, obj);
	return err ? err : fd_array_set(map, key, obj ? map_of(obj) : NULL, to_obj);
}

static int obj_id(struct map *map, const void *key, u32 *ret_id)
{
	return fd_array_obj_id(map, key, to_obj, ret_id);
}

static int sys_remove(struct map *map, const void *key)
{
	return fd_array_set(map, key, NULL, to_obj);
}

static const u32 helpers[] = {BPF_FUNC_map_lookup_elem, 0};

const struct map_ops map_ops_array_of_maps = {
	.name = "array_of_maps",
	.shown = MAP_SHOWN_ARRAY | MAP_SHOWN_POINTER,
	.type = BPF_MAP_TYPE_ARRAY_OF_MAPS,
	.flags = MAP_CAN_ITER_KEYS | MAP_SLEEPABLE_OK | MAP_IN_TRACING_OK | MAP_OF_FDS | MAP_OF_MAPS,
	.helpers = helpers,
	.check = fd_array_check,
	.create = create,
	.destroy = destroy,
	.lookup = lookup,
	.sys_lookup = map_fds_sys_lookup,
	.sys_update = fd_array_sys_update,
	.sys_remove = sys_remove,
	.sys_next_key = map_array_next_key,
	.mem_usage = fd_array_mem_usage,
	.set_obj = set_obj,
	.obj_id = obj_id,
	.gen = gen,
	.direct = direct,
};
