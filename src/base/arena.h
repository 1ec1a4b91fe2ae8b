/* SPDX-License-Identifier: BSD-2-Clause */
/* Bump allocator: many small allocations, one release. Not thread-safe. */
#ifndef INLAY_BASE_ARENA_H
#define INLAY_BASE_ARENA_H

#include "base/types.h"

struct arena {
	struct arena_block *head; /* newest first */
	size_t used, cap;	  /* bytes in head */
	size_t total;		  /* bytes taken from malloc */
	size_t limit;		  /* most bytes to take; 0: no limit */
};

void arena_init(struct arena *a, size_t limit);
void arena_fini(struct arena *a);

/* Zeroed, 16-byte aligned memory that lives until arena_fini(); NULL when malloc fails or the limit is met. */
void *arena_alloc(struct arena *a, size_t size);
char *arena_strdup(struct arena *a, const char *s);

#endif
