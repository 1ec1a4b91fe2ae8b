// SPDX-License-Identifier: BSD-2-Clause
// Arrays of objects: what prog_array and array_of_maps share.
#include "maps/fd_array.h"

#include <stdlib.h>

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

/* An object found in a slot may lose its last reference meanwhile, but is not freed within the read section. */
int fd_array_obj_id(struct map *map, const void *key, struct obj *(*to_obj)(void *elem), u32 *ret_id)
{
	void *elem;

	rcu_enter();
	elem = fd_array_at(map, map_array_index(key));
	if (elem)
		*ret_id = to_obj(elem)->id;
	rcu_leave();
	return elem ? 0 : -ENOENT;
}

int fd_array_sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	int err = fd_array_check_update(map, key, flags);

	return err ? err : map_fds_sys_update(map, key, value, flags);
}
