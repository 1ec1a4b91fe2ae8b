// SPDX-License-Identifier: BSD-2-Clause
// Per-CPU hash: hash.c's table with a slot a vCPU in each element. A present element is written in
// place.
#include "maps/hash_int.h"
#include "object/helper.h"

static char *slot_at(const struct hash_map *h, char *e, u32 cpu)
{
	return hash_value(h, e) + (u64)cpu * h->cpu_stride;
}

static char *own_slot(const struct hash_map *h, char *e)
{
	return slot_at(h, e, env_tls.cpu);
}

/* A program writes its vCPU's slot; in a new element the others must not keep what the memory's
 * last owner left there. */
static void fill_own(const struct hash_map *h, char *e, const void *value, bool is_new)
{
	u32 cpu;

	for (cpu = 0; is_new && cpu < h->nr_cpus; cpu++)
		map_value_zero(slot_at(h, e, cpu), h->map.value_size);
	map_value_write(own_slot(h, e), value, h->map.value_size);
}

/* bpf(2) writes all of them. */
static void fill_all(const struct hash_map *h, char *e, const void *value, bool is_new)
{
	u32 slot = map_percpu_slot(&h->map), cpu;

	for (cpu = 0; cpu < h->nr_cpus; cpu++)
		map_value_write(slot_at(h, e, cpu), (const char *)value + (u64)cpu * slot, slot);
}

static void copy_all(const struct hash_map *h, char *e, void *out)
{
	u32 slot = map_percpu_slot(&h->map), cpu;

	for (cpu = 0; cpu < h->nr_cpus; cpu++)
		map_value_read((char *)out + (u64)cpu * slot, slot_at(h, e, cpu), slot);
}

static int check(const struct map_attr *attr)
{
	return hash_check(attr, true);
}

static int create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	return hash_create(inlay, attr, &map_ops_percpu_hash, true, ret_map);
}

static void *lookup_cpu(struct map *map, const void *key, u32 cpu)
{
	struct hash_map *h = hash_of(map);
	char *e;

	if (cpu >= h->nr_cpus)
		return NULL;
	e = hash_find(h, key);
	return e ? slot_at(h, e, cpu) : NULL;
}

static void *lookup(struct map *map, const void *key)
{
	return lookup_cpu(map, key, env_tls.cpu);
}

static long update(struct map *map, const void *key, const void *value, u64 flags)
{
	return hash_write(hash_of(map), key, value, flags, fill_own, true, NULL, NULL);
}

static long for_each(struct map *map, struct bpf_func *cb, u64 cb_ctx, u64 flags)
{
	return hash_for_each_elem(hash_of(map), cb, cb_ctx, flags, own_slot);
}

static u64 lookup_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return (u64)lookup((struct map *)r1, (const void *)r2);
}

static u64 update_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return update((struct map *)r1, (const void *)r2, (const void *)r3, r4);
}

static u64 remove_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return hash_remove((struct map *)r1, (const void *)r2);
}

static u64 (*direct(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64)
{
	switch (helper_id) {
	case BPF_FUNC_map_lookup_elem:
		return lookup_twin;
	case BPF_FUNC_map_update_elem:
		return update_twin;
	case BPF_FUNC_map_delete_elem:
		return remove_twin;
	}
	return NULL;
}

/* A lookup: the hash's own, and from vCPU 0's slot to this one's. Sizes are what inner maps share. */
static int gen(const struct gen_call *call, struct gen *g)
{
	u32 none;

	if (call->helper->id != BPF_FUNC_map_lookup_elem || !(call->can & CAP_DIRECT) || !(call->can & CAP_PERCPU))
		return 0;
	gen_call(g, hash_twin(call->map));
	none = gen_jump(g, BPF_JEQ, BPF_REG_0, 0);
	map_gen_percpu(g, BPF_REG_0, hash_cpu_stride(call->map));
	gen_land(g, none);
	return 1;
}

static int sys_lookup(struct map *map, const void *key, void *value, u64 flags)
{
	int err = map_check_lookup_flags(flags);

	return err ? err : hash_read(hash_of(map), key, copy_all, value);
}

static int sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	return hash_write(hash_of(map), key, value, flags, fill_all, true, NULL, NULL);
}

static int sys_lookup_and_delete(struct map *map, const void *key, void *value, u64 flags)
{
	int err = map_check_lookup_flags(flags);

	return err ? err : hash_delete(hash_of(map), key, copy_all, value);
}

const struct map_ops map_ops_percpu_hash = {
	.name = "percpu_hash",
	.shown = MAP_SHOWN_HASH,
	.type = BPF_MAP_TYPE_PERCPU_HASH,
	.flags = MAP_CAN_ITER_KEYS | MAP_PERCPU | MAP_SLEEPABLE_OK | MAP_IN_TRACING_OK,
	.check = check,
	.create = create,
	.destroy = hash_destroy,
	.lookup = lookup,
	.update = update,
	.remove = hash_remove,
	.lookup_percpu = lookup_cpu,
	.for_each = for_each,
	.sys_value_size = map_percpu_sys_size,
	.sys_lookup = sys_lookup,
	.sys_update = sys_update,
	.sys_remove = hash_sys_remove,
	.sys_lookup_and_delete = sys_lookup_and_delete,
	.sys_next_key = hash_next_key,
	.mem_usage = hash_mem_usage,
	.gen = gen,
	.direct = direct,
};
