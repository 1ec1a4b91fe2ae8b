/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays of objects: prog_array and array_of_maps. A slot holds a reference, or is empty. */
#ifndef INLAY_MAPS_FD_ARRAY_H
#define INLAY_MAPS_FD_ARRAY_H

#include "maps/maps_int.h"
#include "rcu/mem.h"

struct fd_array {
	struct map map;
	void **slot; /* struct map * or struct prog *, max_entries of them; RCU: what leaves is put, and freed later */
};

static inline struct fd_array *fd_array_of(const struct map *map)
{
	return container_of_(map, struct fd_array, map);
}

static inline void *fd_array_at(const struct map *map, u32 index)
{
	return index < map->max_entries ? __atomic_load_n(&fd_array_of(map)->slot[index], __ATOMIC_ACQUIRE) : NULL;
}

/* What Linux says before it looks at the descriptor: 0 or -errno. */
static inline int fd_array_check_update(const struct map *map, const void *key, u64 flags)
{
	if (flags != BPF_ANY)
		return -EINVAL;
	return map_array_index(key) < map->max_entries ? 0 : -E2BIG;
}

int fd_array_check(const struct map_attr *attr);
int fd_array_take_memory(struct fd_array *a);
/* Puts what is in the slots; to_obj says where in a slot's object its struct obj is. */
void fd_array_clear(struct fd_array *a, struct obj *(*to_obj)(void *elem));
void fd_array_fini(struct fd_array *a);
/* elem NULL: empties the slot; -ENOENT if it is. Takes over the caller's reference. */
int fd_array_set(struct map *map, const void *key, void *elem, struct obj *(*to_obj)(void *elem));
/* obj_id and sys_update of both. */
int fd_array_obj_id(struct map *map, const void *key, struct obj *(*to_obj)(void *elem), u32 *ret_id);
int fd_array_sys_update(struct map *map, const void *key, const void *value, u64 flags);
u64 fd_array_mem_usage(const struct map *map);

#endif
