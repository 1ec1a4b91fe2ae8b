// SPDX-License-Identifier: BSD-2-Clause
// linux-slowpath: a hit in the cache is in the helper, the walk of the list with what follows behind a call.
#define LS(name)    slowpath_##name
#define LS_LOOKUP   LS_INLINE
#define LS_SLOWPATH LS_OUTLINE
#define LS_INSERT   LS_INLINE
#include "maps/local_storage_lookup.h"

const struct storage_ops map_storage_linux_slowpath = {
	.name = "linux-slowpath",
	.what = "Linux's structure, a cache hit in the helper, the slow path outlined",
	LS_OPS,
};
