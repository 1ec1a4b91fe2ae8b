// SPDX-License-Identifier: BSD-2-Clause
// Local storage from programs.
#include <errno.h>
#include <linux/bpf.h>

#include "env/env.h"
#include "helpers/helpers_int.h"
#include "maps/task_storage.h"
#include "object/map.h"

/*
 * The map's variant has the body (maps/local_storage_*.c). r5 is the hidden allocation flag: nothing here ever sleeps, so it
 * makes no difference.
 */
static u64 task_storage_get(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return lstore_map_of((struct map *)r1)->ops->task_get(r1, r2, r3, r4, r5);
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
	return lstore_map_of((struct map *)r1)->ops->task_delete(r1, r2, r3, r4, r5);
}

const struct helper_desc helper_task_storage_delete = {
	HELPER_IS(task_storage_delete, 157),
	.fn = task_storage_delete,
	.ret = RET_INTEGER,
	.arg = {ARG_CONST_MAP_PTR, ARG_PTR_TO_BTF_ID | PTR_MAYBE_NULL},
	.arg_btf = {NULL, "task_struct"},
	.map_types = 1ULL << BPF_MAP_TYPE_TASK_STORAGE,
};
