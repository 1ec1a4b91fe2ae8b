// SPDX-License-Identifier: BSD-2-Clause
// Perf event arrays: which perf event a program's perf_event_output() on index i writes to. bpf(2)
// puts events in by descriptor; each entry holds a reference.
#include "maps/perf_event_array.h"

#include <stdlib.h>

#include "object/instance.h"
#include "rcu/mem.h"

static const u32 helpers[] = {BPF_FUNC_perf_event_read, BPF_FUNC_perf_event_output,
			      BPF_FUNC_skb_output,	BPF_FUNC_perf_event_read_value,
			      BPF_FUNC_xdp_output,	0};

/* One reference of an event, given back after the programs that may be writing to it are done. */
struct perf_ref {
	struct perf_event *event;
	struct rcu_cb rcu;
};

struct perf_array {
	struct map map;
	struct perf_ref **slot; /* RCU; swapped atomically */
	u64 bytes;		/* of slot */
};

static struct perf_array *perf_of(const struct map *map)
{
	return container_of_(map, struct perf_array, map);
}

static void put_ref(struct rcu_cb *cb)
{
	struct perf_ref *ref = container_of_(cb, struct perf_ref, rcu);

	obj_put(&ref->event->obj);
	free(ref);
}

static int check(const struct map_attr *attr)
{
	if (attr->value_size != sizeof(u32) ||
	    attr->map_flags & (BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG))
		return -EINVAL;
	return map_array_check(
		attr, BPF_F_NUMA_NODE | BPF_F_RDONLY | BPF_F_WRONLY | BPF_F_PRESERVE_ELEMS, false);
}

static void destroy(struct map *map)
{
	struct perf_array *a = perf_of(map);
	u32 i;

	for (i = 0; a->slot && i < map->max_entries; i++)
		if (a->slot[i])
			put_ref(&a->slot[i]->rcu); /* destroyed after a grace period: nobody is
						      writing any more */
	rcu_mem_unmap(a->slot, a->bytes);
	map_fini(map);
	free(a);
}

static int create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	struct perf_array *a;
	int err = map_check_btf(inlay, attr, BTF_KEY_REFUSED);

	if (err)
		return err;
	a = rcu_mem_alloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	map_init(&a->map, &map_ops_perf_event_array, inlay, attr);
	a->bytes = (u64)attr->max_entries * sizeof(*a->slot);
	a->slot = rcu_mem_map(a->bytes);
	if (!a->slot) {
		obj_abort(&a->map.obj);
		destroy(&a->map);
		return -ENOMEM;
	}
	*ret_map = &a->map;
	return 0;
}

struct perf_event *perf_event_array_get(struct map *map, u32 index)
{
	struct perf_ref *ref = __atomic_load_n(&perf_of(map)->slot[index], __ATOMIC_ACQUIRE);

	return ref ? ref->event : NULL;
}

/* *ret_ref holds a reference of the event behind fd: 0, -EBADF, -ENOMEM. */
static int take_ref(struct inlay *inlay, int fd, struct perf_ref **ret_ref)
{
	struct perf_ref *ref;
	struct obj *obj;

	if (!inlay->fds || inlay->fds->get(inlay, fd, &obj))
		return -EBADF;
	ref = obj->kind == OBJ_PERF_EVENT ? rcu_mem_alloc(sizeof(*ref)) : NULL;
	if (!ref) {
		int err = obj->kind == OBJ_PERF_EVENT ? -ENOMEM : -EBADF;

		obj_put(obj);
		return err;
	}
	ref->event = perf_event_of(obj);
	*ret_ref = ref;
	return 0;
}

static struct perf_ref *swap_ref(struct map *map, u32 index, struct perf_ref *ref)
{
	struct perf_ref *old =
		__atomic_exchange_n(&perf_of(map)->slot[index], ref, __ATOMIC_ACQ_REL);

	if (old)
		rcu_defer(&old->rcu, put_ref);
	return old;
}

static int sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	struct perf_ref *ref;
	u32 index = map_array_index(key);
	int err;

	if (flags != BPF_ANY)
		return -EINVAL;
	if (index >= map->max_entries)
		return -E2BIG;
	err = take_ref(map->obj.inlay, (int)map_array_index(value), &ref);
	if (err)
		return err;
	swap_ref(map, index, ref);
	return 0;
}

static int sys_remove(struct map *map, const void *key)
{
	u32 index = map_array_index(key);

	if (index >= map->max_entries)
		return -E2BIG;
	return swap_ref(map, index, NULL) ? 0 : -ENOENT;
}

static u64 mem_usage(const struct map *map)
{
	return sizeof(struct perf_array) + perf_of(map)->bytes;
}

const struct map_ops map_ops_perf_event_array = {
	.name = "perf_event_array",
	.type = BPF_MAP_TYPE_PERF_EVENT_ARRAY,
	.flags = MAP_CAN_ITER_KEYS | MAP_IN_TRACING_OK,
	.helpers = helpers,
	.check = check,
	.create = create,
	.destroy = destroy,
	.sys_update = sys_update,
	.sys_remove = sys_remove,
	.sys_next_key = map_array_next_key,
	.mem_usage = mem_usage,
};
