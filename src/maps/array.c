// SPDX-License-Identifier: BSD-2-Clause
// Arrays: max_entries values side by side, zero at first, always there. With BPF_F_MMAPABLE they
// lie in a memfd that a user may map. Updates write in place, word by word: a reader may see half a
// value, as in Linux.
#include <stdlib.h>

#include "maps/maps_int.h"
#include "object/helper.h"
#include "object/instance.h"
#include "rcu/mem.h"

struct array_map {
	struct map map;
	char *values; /* max_entries values, stride apart; page-aligned */
	u32 stride;   /* bytes, value_size rounded up to 8 */
	u64 size;     /* bytes of values, whole pages */
};

static struct array_map *array_of(const struct map *map)
{
	return container_of_(map, struct array_map, map);
}

int map_array_check(const struct map_attr *attr, u32 flags, bool percpu)
{
	int err;

	if (!attr->max_entries || attr->key_size != 4 || !attr->value_size)
		return -EINVAL;
	err = map_check_flags(attr, flags);
	if (err)
		return err;
	if (percpu && map_wants_node(attr))
		return -EINVAL;
	if (attr->value_size > S32_MAX)
		return -E2BIG;
	return percpu && align_up(attr->value_size, 8) > MAP_PCPU_UNIT_MAX ? -E2BIG : 0;
}

static int array_check(const struct map_attr *attr)
{
	return map_array_check(attr,
			       BPF_F_NUMA_NODE | BPF_F_MMAPABLE | BPF_F_INNER_MAP | BPF_F_RDONLY |
				       BPF_F_WRONLY | BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG,
			       false);
}

static int take_memory(struct array_map *a)
{
	u64 size = (u64)a->map.max_entries * a->stride;
	int err;

	a->size = align_up(size, map_page_size());
	if (!(a->map.map_flags & BPF_F_MMAPABLE)) {
		a->values = rcu_mem_map(a->size);
		return a->values ? 0 : -ENOMEM;
	}
	err = map_mem_init(&a->map.mem, "bpf-array", a->size);
	if (err)
		return err;
	a->values = a->map.mem.addr;
	/* what programs take for constant once frozen must not get another writer behind our back
	 */
	return a->map.map_flags & BPF_F_RDONLY_PROG ? memfile_seal(&a->map.mem) : 0;
}

static void array_destroy(struct map *map)
{
	struct array_map *a = array_of(map);

	if (!(map->map_flags & BPF_F_MMAPABLE))
		rcu_mem_unmap(a->values, a->size);
	map_fini(map);
	free(a);
}

static int array_create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	struct array_map *a;
	int err = map_check_btf(inlay, attr, BTF_KEY_U32);

	if (err)
		return err;
	a = rcu_mem_alloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	map_init(&a->map, &map_ops_array, inlay, attr);
	a->stride = align_up(attr->value_size, 8);
	err = take_memory(a);
	if (err) {
		obj_abort(&a->map.obj);
		array_destroy(&a->map);
		return err;
	}
	*ret_map = &a->map;
	return 0;
}

static void *array_lookup(struct map *map, const void *key)
{
	struct array_map *a = array_of(map);
	u32 index = map_array_index(key);

	return index < map->max_entries ? a->values + (u64)index * a->stride : NULL;
}

static long array_update(struct map *map, const void *key, const void *value, u64 flags)
{
	void *to;

	if (map_check_update_flags(flags & ~(u64)BPF_F_LOCK))
		return -EINVAL;
	to = array_lookup(map, key);
	if (!to)
		return -E2BIG;
	if (flags & BPF_NOEXIST)
		return -EEXIST;
	if (flags & BPF_F_LOCK)
		return -EINVAL;
	map_value_write(to, value, map->value_size);
	return 0;
}

long map_array_remove(struct map *map, const void *key)
{
	return -EINVAL;
}

int map_array_sys_remove(struct map *map, const void *key)
{
	return -EINVAL;
}

static long array_for_each(struct map *map, struct bpf_func *cb, u64 cb_ctx, u64 flags)
{
	struct array_map *a = array_of(map);
	u32 i, key;

	if (flags)
		return -EINVAL;
	for (i = 0; i < map->max_entries; i++) {
		key = i;
		if (cb->call(cb, (u64)map, (u64)&key, (u64)(a->values + (u64)i * a->stride), cb_ctx,
			     0))
			return (long)i + 1;
	}
	return map->max_entries;
}

/* ---- in the program's own code ---- */

/* r0 = address of a value whose index is known. */
static bool gen_known(const struct gen_call *call, struct gen *g, struct map_array_gen *a)
{
	if (!call->key_known || call->fact->inner_map || call->key_value >= call->map->max_entries)
		return false;
	gen_imm64(g, BPF_REG_0, a->values + (u64)call->key_value * a->stride);
	a->always = true;
	return true;
}

bool map_array_gen_begin(const struct gen_call *call, struct gen *g, struct map_array_gen *a)
{
	if (call->helper->id != BPF_FUNC_map_lookup_elem || a->stride > S32_MAX)
		return false;
	if (gen_known(call, g, a))
		return true;
	if (!a->any_size && call->map->max_entries > S32_MAX)
		return false;
	gen_load(g, BPF_W, BPF_REG_0, BPF_REG_2, 0);
	if (a->any_size) {
		gen_load(g, BPF_W, BPF_REG_2, BPF_REG_1, offsetof(struct map, max_entries));
		a->none = gen_insn(g, (struct bpf_insn){.code = BPF_JMP | BPF_JGE | BPF_X,
							.dst_reg = BPF_REG_0,
							.src_reg = BPF_REG_2});
	} else {
		a->none = gen_jump(g, BPF_JGE, BPF_REG_0, call->map->max_entries);
	}
	if (is_pow2(a->stride))
		gen_alu_imm(g, BPF_LSH, BPF_REG_0, __builtin_ctz(a->stride));
	else
		gen_alu_imm(g, BPF_MUL, BPF_REG_0, a->stride);
	if (call->fact->inner_map)
		gen_load(g, BPF_DW, BPF_REG_1, BPF_REG_1, a->values_at);
	else
		gen_imm64(g, BPF_REG_1, a->values);
	gen_alu(g, BPF_ADD, BPF_REG_0, BPF_REG_1);
	return true;
}

void map_array_gen_end(struct gen *g, const struct map_array_gen *a)
{
	u32 there;

	if (a->always)
		return;
	there = gen_jump(g, BPF_JA, 0, 0);
	gen_land(g, a->none);
	g->cold = true;
	gen_alu_imm(g, BPF_MOV, BPF_REG_0, 0);
	g->cold = false;
	gen_land(g, there);
}

static int array_gen(const struct gen_call *call, struct gen *g)
{
	struct map_array_gen a = {.values_at = offsetof(struct array_map, values),
				  .stride = align_up(call->map->value_size, 8),
				  .any_size = call->fact->inner_map && call->map->map_flags & BPF_F_INNER_MAP};

	if (!call->fact->inner_map)
		a.values = (u64)array_of(call->map)->values;
	if (!map_array_gen_begin(call, g, &a))
		return 0;
	map_array_gen_end(g, &a);
	return 1;
}

static u64 array_lookup_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return (u64)array_lookup((struct map *)r1, (const void *)r2);
}

static u64 array_update_twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return array_update((struct map *)r1, (const void *)r2, (const void *)r3, r4);
}

static u64 (*array_direct(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64)
{
	switch (helper_id) {
	case BPF_FUNC_map_lookup_elem:
		return array_lookup_twin;
	case BPF_FUNC_map_update_elem:
		return array_update_twin;
	}
	return NULL;
}

/* ---- bpf(2) ---- */

static int array_direct_value(struct map *map, u32 off, u64 *ret_addr, u32 *ret_size)
{
	if (map->max_entries != 1)
		return -LINUX_ENOTSUPP;
	if (off >= map->value_size)
		return -EINVAL;
	*ret_addr = (u64)array_of(map)->values + off;
	*ret_size = map->value_size - off;
	return 0;
}

static int array_sys_lookup(struct map *map, const void *key, void *value, u64 flags)
{
	void *from;

	if (map_check_lookup_flags(flags))
		return -EINVAL;
	from = array_lookup(map, key);
	if (!from)
		return -ENOENT;
	map_value_read(value, from, map->value_size);
	return 0;
}

static int array_sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	return array_update(map, key, value, flags);
}

int map_array_next_key(struct map *map, const void *key, void *next_key)
{
	u32 index = key ? map_array_index(key) : U32_MAX, next;

	if (index == map->max_entries - 1)
		return -ENOENT;
	next = index < map->max_entries ? index + 1 : 0;
	memcpy(next_key, &next, sizeof(next));
	return 0;
}

static u64 array_mem_usage(const struct map *map)
{
	return sizeof(struct array_map) + array_of(map)->size;
}

static int array_mmap_check(struct map *map, u64 off, u64 len, int prot, bool shared)
{
	u64 end;
	int err = map_check_mmap(map, prot, shared);

	if (err)
		return err;
	if (!(map->map_flags & BPF_F_MMAPABLE) || __builtin_add_overflow(off, len, &end))
		return -EINVAL;
	return align_up(end, map_page_size()) > array_of(map)->size ? -EINVAL : 0;
}

const struct map_ops map_ops_array = {
	.name = "array",
	.shown = MAP_SHOWN_ARRAY,
	.type = BPF_MAP_TYPE_ARRAY,
	.flags = MAP_CAN_ITER_KEYS | MAP_VALUE_DIRECT | MAP_INDEXED | MAP_SLEEPABLE_OK |
		 MAP_IN_TRACING_OK,
	.check = array_check,
	.create = array_create,
	.destroy = array_destroy,
	.lookup = array_lookup,
	.update = array_update,
	.remove = map_array_remove,
	.for_each = array_for_each,
	.direct_value = array_direct_value,
	.sys_lookup = array_sys_lookup,
	.sys_update = array_sys_update,
	.sys_remove = map_array_sys_remove,
	.sys_next_key = map_array_next_key,
	.mem_usage = array_mem_usage,
	.mmap_check = array_mmap_check,
	.gen = array_gen,
	.direct = array_direct,
};
