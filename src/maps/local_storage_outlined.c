// SPDX-License-Identifier: BSD-2-Clause
// linux-outlined: the whole lookup is one function behind a call, as it was in Linux before 6.9.
#define LS(name)    outlined_##name
#define LS_LOOKUP   LS_OUTLINE
#define LS_SLOWPATH LS_INLINE
#define LS_INSERT   LS_INLINE
#include "maps/local_storage_lookup.h"

const struct storage_ops map_storage_linux_outlined = {
	.name = "linux-outlined",
	.what = "Linux's structure, the whole lookup outlined",
	LS_OPS,
};
