// SPDX-License-Identifier: BSD-2-Clause
// linux-inlined: the whole lookup is in the helper, only the insertion into the cache behind a call, as in Linux since 6.9.
#define LS(name)    inlined_##name
#define LS_LOOKUP   LS_INLINE
#define LS_SLOWPATH LS_INLINE
#define LS_INSERT   LS_OUTLINE
#include "maps/local_storage_lookup.h"

const struct storage_ops map_storage_linux_inlined = {
	.name = "linux-inlined",
	.what = "Linux's structure, only the insertion into the cache outlined",
	LS_OPS,
};
