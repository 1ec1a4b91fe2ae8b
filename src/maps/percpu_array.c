// SPDX-License-Identifier: BSD-2-Clause
// Per-CPU arrays: an array a vCPU, each in pages of its own. Programs see their vCPU's; bpf(2)
// moves all slots at once.
#include <stdlib.h>

#include "maps/maps_int.h"
#include "object/helper.h"
#include "object/instance.h"
#include "rcu/mem.h"

struct percpu_array {
	struct map map;
	char *values;	/* nr_cpus areas */
	u64 cpu_stride; /* bytes from one vCPU's area to the next, whole pages */
	u32 stride;	/* bytes from one value to the next */
	u32 nr_cpus;
};

static struct percpu_array *percpu_of(const struct map *map)
{
	return container_of_(map, struct percpu_array, map);
}

static char *slot_at(const struct percpu_array *a, u32 index, u32 cpu)
{
	return a->values + cpu * a->cpu_stride + (u64)index * a->stride;
}

static int percpu_array_check(const struct map_attr *attr)
{
	return map_array_check(attr,
			       BPF_F_NUMA_NODE | BPF_F_RDONLY | BPF_F_WRONLY | BPF_F_RDONLY_PROG |
				       BPF_F_WRONLY_PROG,
			       true);
}

static void percpu_array_destroy(struct map *map)
{
	struct percpu_array *a = percpu_of(map);

	rcu_mem_unmap(a->values, a->cpu_stride * a->nr_cpus);
	map_fini(map);
	free(a);
}

static int percpu_array_create(struct inlay *inlay, const struct map_attr *attr,
			       struct map **ret_map)
{
	struct percpu_array *a;
	int err = map_check_btf(inlay, attr, BTF_KEY_INT_FD);

	if (err)
		return err;
	a = rcu_mem_alloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	map_init(&a->map, &map_ops_percpu_array, inlay, attr);
	a->nr_cpus = map_nr_cpus(&a->map);
	a->stride = map_percpu_slot(&a->map);
	a->cpu_stride = align_up((u64)attr->max_entries * a->stride, map_page_size());
	a->values = rcu_mem_map(a->cpu_stride * a->nr_cpus); /* below 2^32 * 2^15 * 2^12 */
	if (!a->values) {
		obj_abort(&a->map.obj);
		percpu_array_destroy(&a->map);
		return -ENOMEM;
	}
	*ret_map = &a->map;
	return 0;
}

static void *percpu_array_lookup_cpu(struct map *map, const void *key, u32 cpu)
{
	struct percpu_array *a = percpu_of(map);
	u32 index = map_array_index(key);

	return index < map->max_entries && cpu < a->nr_cpus ? slot_at(a, index, cpu) : NULL;
}

static void *percpu_array_lookup(struct map *map, const void *key)
{
	return percpu_array_lookup_cpu(map, key, env_tls.cpu);
}

static long percpu_array_update(struct map *map, const void *key, const void *value, u64 flags)
{
	void *to;

	if (map_check_update_flags(flags & ~(u64)BPF_F_LOCK))
		return -EINVAL;
	to = percpu_array_lookup(map, key);
	if (!to)
		return -E2BIG;
	if (flags & BPF_NOEXIST)
		return -EEXIST;
	if (flags & BPF_F_LOCK)
		return -EINVAL;
	map_value_write(to, value, map->value_size);
	return 0;
}

static long percpu_array_for_each(struct map *map, struct bpf_func *cb, u64 cb_ctx, u64 flags)
{
	struct percpu_array *a = percpu_of(map);
	u32 i, key, cpu = env_tls.cpu;

	if (flags)
		return -EINVAL;
	for (i = 0; i < map->max_entries; i++) {
		key = i;
		if (cb->call(cb, (u64)map, (u64)&key, (u64)slot_at(a, i, cpu), cb_ctx, 0))
			return (long)i + 1;
	}
	return map->max_entries;
}

/* An array's lookup gives vCPU 0's value. */
static int percpu_array_gen(const struct gen_call *call, struct gen *g)
{
	struct percpu_array *p = percpu_of(call->map);
	struct map_array_gen a = {.stride = map_percpu_slot(call->map)};

	/* how far apart the areas are depends on max_entries, which inner maps need not share */
	if (call->fact->inner_map || !(call->can & CAP_PERCPU) || p->cpu_stride > S32_MAX)
		return 0;
	a.values = (u64)p->values;
	if (!map_array_gen_begin(call, g, &a))
		return 0;
	map_gen_percpu(g, BPF_REG_0, p->cpu_stride);
	map_array_gen_end(g, &a);
	return 1;
}

static u64 percpu_array_lookup_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return (u64)percpu_array_lookup((struct map *)r1, (const void *)r2);
}

static u64 percpu_array_update_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return percpu_array_update((struct map *)r1, (const void *)r2, (const void *)r3, r4);
}

static u64 (*percpu_array_direct(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64)
{
	switch (helper_id) {
	case BPF_FUNC_map_lookup_elem:
		return percpu_array_lookup_twin;
	case BPF_FUNC_map_update_elem:
		return percpu_array_update_twin;
	}
	return NULL;
}

static int percpu_array_sys_lookup(struct map *map, const void *key, void *value, u64 flags)
{
	struct percpu_array *a = percpu_of(map);
	u32 index = map_array_index(key), cpu;

	if (map_check_lookup_flags(flags))
		return -EINVAL;
	if (index >= map->max_entries)
		return -ENOENT;
	for (cpu = 0; cpu < a->nr_cpus; cpu++)
		map_value_read((char *)value + (u64)cpu * a->stride, slot_at(a, index, cpu),
			       a->stride);
	return 0;
}

static int percpu_array_sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	struct percpu_array *a = percpu_of(map);
	u32 index = map_array_index(key), cpu;

	if (map_check_update_flags(flags))
		return -EINVAL;
	if (index >= map->max_entries)
		return -E2BIG;
	if (flags & BPF_NOEXIST)
		return -EEXIST;
	for (cpu = 0; cpu < a->nr_cpus; cpu++)
		map_value_write(slot_at(a, index, cpu), (const char *)value + (u64)cpu * a->stride,
				a->stride);
	return 0;
}

static u64 percpu_array_mem_usage(const struct map *map)
{
	const struct percpu_array *a = percpu_of(map);

	return sizeof(*a) + a->cpu_stride * a->nr_cpus;
}

const struct map_ops map_ops_percpu_array = {
	.name = "percpu_array",
	.shown = MAP_SHOWN_ARRAY,
	.type = BPF_MAP_TYPE_PERCPU_ARRAY,
	.flags =
		MAP_CAN_ITER_KEYS | MAP_PERCPU | MAP_INDEXED | MAP_SLEEPABLE_OK | MAP_IN_TRACING_OK,
	.check = percpu_array_check,
	.create = percpu_array_create,
	.destroy = percpu_array_destroy,
	.lookup = percpu_array_lookup,
	.update = percpu_array_update,
	.remove = map_array_remove,
	.lookup_percpu = percpu_array_lookup_cpu,
	.for_each = percpu_array_for_each,
	.sys_value_size = map_percpu_sys_size,
	.sys_lookup = percpu_array_sys_lookup,
	.sys_update = percpu_array_sys_update,
	.sys_remove = map_array_sys_remove,
	.sys_next_key = map_array_next_key,
	.mem_usage = percpu_array_mem_usage,
	.gen = percpu_array_gen,
	.direct = percpu_array_direct,
};
