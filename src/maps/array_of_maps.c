// SPDX-License-Identifier: BSD-2-Clause
// Arrays of maps, and what they share with the other array of objects (prog_array). A program's lookup gives the inner
// map; one that is replaced is freed only after the read sections that may have found it.
#include <stdlib.h>

#include "maps/fd_array.h"
#include "object/helper.h"
#include "object/instance.h"

/* ---- arrays of objects ---- */

int fd_array_check(const struct map_attr *attr)
{
	if (attr->value_size != 4 || attr->map_flags & (BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG))
		return -EINVAL;
	return map_array_check(attr, BPF_F_NUMA_NODE | BPF_F_RDONLY | BPF_F_WRONLY, false);
}

int fd_array_take_memory(struct fd_array *a)
{
	a->slot = rcu_mem_map((u64)a->map.max_entries * sizeof(*a->slot));
	return a->slot ? 0 : -ENOMEM;
}

void fd_array_clear(struct fd_array *a, struct obj *(*to_obj)(void *elem))
{
	void *elem;
	u32 i;

	for (i = 0; a->slot && i < a->map.max_entries; i++) {
		if (!__atomic_load_n(&a->slot[i], __ATOMIC_RELAXED))
			continue;
		elem = __atomic_exchange_n(&a->slot[i], NULL, __ATOMIC_ACQ_REL);
		if (elem)
			obj_put(to_obj(elem));
	}
}

void fd_array_fini(struct fd_array *a)
{
	rcu_mem_unmap(a->slot, (u64)a->map.max_entries * sizeof(*a->slot));
	map_fini(&a->map);
	free(a);
}

int fd_array_set(struct map *map, const void *key, void *elem, struct obj *(*to_obj)(void *elem))
{
	u32 index = map_array_index(key);
	void *old;

	if (index >= map->max_entries)
		return -E2BIG;
	old = __atomic_exchange_n(&fd_array_of(map)->slot[index], elem, __ATOMIC_ACQ_REL);
	if (old)
		obj_put(to_obj(old));
	return elem || old ? 0 : -ENOENT;
}

u64 fd_array_mem_usage(const struct map *map)
{
	return sizeof(struct fd_array) + (u64)map->max_entries * sizeof(void *);
}

/* ---- of maps ---- */

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

	if (err)
		return err;
	if (obj) {
		if (obj->kind != OBJ_MAP || !map_inner_fits(map->inner, map_of(obj)))
			return -EINVAL;
		obj_get(obj);
	}
	return fd_array_set(map, key, obj ? map_of(obj) : NULL, to_obj);
}

/* A map found in a slot may lose its last reference meanwhile, but is not freed within the read section. */
static int obj_id(struct map *map, const void *key, u32 *ret_id)
{
	struct map *inner;

	rcu_enter();
	inner = lookup(map, key);
	if (inner)
		*ret_id = inner->obj.id;
	rcu_leave();
	return inner ? 0 : -ENOENT;
}

static int sys_lookup(struct map *map, const void *key, void *value, u64 flags)
{
	int err = map_check_lookup_flags(flags);

	return err ? err : obj_id(map, key, value);
}

static int sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	struct map *inner;
	u32 fd;
	int err = fd_array_check_update(map, key, flags);

	if (err)
		return err;
	memcpy(&fd, value, sizeof(fd));
	err = map_inner_get(map, fd, &inner);
	return err ? err : fd_array_set(map, key, inner, to_obj);
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
	.sys_lookup = sys_lookup,
	.sys_update = sys_update,
	.sys_remove = sys_remove,
	.sys_next_key = map_array_next_key,
	.mem_usage = fd_array_mem_usage,
	.set_obj = set_obj,
	.obj_id = obj_id,
	.gen = gen,
	.direct = direct,
};
