// SPDX-License-Identifier: BSD-2-Clause
// Map elements from programs: each helper is the map type's own operation.
#include <errno.h>
#include <linux/bpf.h>

#include "helpers/helpers_int.h"
#include "object/map.h"

static u64 map_lookup_elem(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	struct map *map = (struct map *)r1;

	return (u64)map->ops->lookup(map, (const void *)r2);
}

const struct helper_desc helper_map_lookup_elem = {
	HELPER_IS(map_lookup_elem, 1),
	.fn = map_lookup_elem,
	.flags = HELPER_PKT_ACCESS | HELPER_MAP_LOOKUP,
	.ret = RET_PTR_TO_MAP_VALUE | PTR_MAYBE_NULL,
	.arg = {ARG_CONST_MAP_PTR, ARG_PTR_TO_MAP_KEY},
};

static u64 map_update_elem(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	struct map *map = (struct map *)r1;

	return map->ops->update(map, (const void *)r2, (const void *)r3, r4);
}

const struct helper_desc helper_map_update_elem = {
	HELPER_IS(map_update_elem, 2),
	.fn = map_update_elem,
	.flags = HELPER_PKT_ACCESS | HELPER_WRITES_MAP,
	.ret = RET_INTEGER,
	.arg = {ARG_CONST_MAP_PTR, ARG_PTR_TO_MAP_KEY, ARG_PTR_TO_MAP_VALUE, ARG_ANYTHING},
};

static u64 map_delete_elem(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	struct map *map = (struct map *)r1;

	return map->ops->remove(map, (const void *)r2);
}

const struct helper_desc helper_map_delete_elem = {
	HELPER_IS(map_delete_elem, 3),
	.fn = map_delete_elem,
	.flags = HELPER_PKT_ACCESS | HELPER_WRITES_MAP,
	.ret = RET_INTEGER,
	.arg = {ARG_CONST_MAP_PTR, ARG_PTR_TO_MAP_KEY},
};

static u64 for_each_map_elem(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	struct map *map = (struct map *)r1;

	return map->ops->for_each(map, (struct bpf_func *)r2, r3, r4);
}

static const struct callback_desc for_each_callback = {
	.func_arg = 1,
	.ctx_arg = 2,
	.reg = {CB_MAP, CB_MAP_KEY, CB_MAP_VALUE, CB_CTX_ARG},
	.ret_min = 0,
	.ret_max = 1,
};

const struct helper_desc helper_for_each_map_elem = {
	HELPER_IS(for_each_map_elem, 164),
	.fn = for_each_map_elem,
	.flags = HELPER_SYNC_CALLBACK,
	.ret = RET_INTEGER,
	.arg = {ARG_CONST_MAP_PTR, ARG_PTR_TO_FUNC, ARG_PTR_TO_STACK | PTR_MAYBE_NULL,
		ARG_ANYTHING},
	.cb = &for_each_callback,
};

static u64 map_lookup_percpu_elem(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	struct map *map = (struct map *)r1;

	return (u64)map->ops->lookup_percpu(map, (const void *)r2, (u32)r3);
}

const struct helper_desc helper_map_lookup_percpu_elem = {
	HELPER_IS(map_lookup_percpu_elem, 195),
	.fn = map_lookup_percpu_elem,
	.flags = HELPER_PKT_ACCESS,
	.ret = RET_PTR_TO_MAP_VALUE | PTR_MAYBE_NULL,
	.arg = {ARG_CONST_MAP_PTR, ARG_PTR_TO_MAP_KEY, ARG_ANYTHING},
	.map_types = 1ULL << BPF_MAP_TYPE_PERCPU_ARRAY | 1ULL << BPF_MAP_TYPE_PERCPU_HASH |
		     1ULL << BPF_MAP_TYPE_LRU_PERCPU_HASH,
};
