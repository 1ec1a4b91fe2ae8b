// SPDX-License-Identifier: BSD-2-Clause
// Local storage from programs.
#include <errno.h>
#include <linux/bpf.h>

#include "env/env.h"
#include "helpers/helpers_int.h"
#include "maps/task_storage.h"
#include "object/map.h"

/* r5 is the hidden allocation flag: the caches here never sleep, so it makes no difference. */
static u64 task_storage_get(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	struct map *map = (struct map *)r1;
	struct env_task *task;

	if (r4 & ~(u64)BPF_LOCAL_STORAGE_GET_F_CREATE || !r2)
		return 0;
	task = env_task_of((const void *)r2);
	if (!(r4 & BPF_LOCAL_STORAGE_GET_F_CREATE))
		return (u64)task_storage_find(map, task);
	return (u64)task_storage_get_or_create(map, task, (const void *)r3);
}

const struct helper_desc helper_task_storage_get = {
	HELPER_IS(task_storage_get, 156),
	.fn = task_storage_get,
	.flags = HELPER_STORAGE_GET,
	.ret = RET_PTR_TO_MAP_VALUE | PTR_MAYBE_NULL,
	.arg = {ARG_CONST_MAP_PTR, ARG_PTR_TO_BTF_ID | PTR_MAYBE_NULL,
		ARG_PTR_TO_MAP_VALUE | PTR_MAYBE_NULL, ARG_ANYTHING},
	.arg_btf = {NULL, "task_struct"},
	.map_types = 1ULL << BPF_MAP_TYPE_TASK_STORAGE,
};

static u64 task_storage_delete(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	if (!r2)
		return -EINVAL;
	return task_storage_remove((struct map *)r1, env_task_of((const void *)r2));
}

const struct helper_desc helper_task_storage_delete = {
	HELPER_IS(task_storage_delete, 157),
	.fn = task_storage_delete,
	.ret = RET_INTEGER,
	.arg = {ARG_CONST_MAP_PTR, ARG_PTR_TO_BTF_ID | PTR_MAYBE_NULL},
	.arg_btf = {NULL, "task_struct"},
	.map_types = 1ULL << BPF_MAP_TYPE_TASK_STORAGE,
};
