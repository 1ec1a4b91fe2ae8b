// SPDX-License-Identifier: BSD-2-Clause
// Bump allocator.
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

struct arena_block {
	struct arena_block *next;
	size_t pad; /* keeps data 16-byte aligned */
	char data[];
};

#define ARENA_BLOCK (64 * 1024)

void arena_init(struct arena *a, size_t limit)
{
	memset(a, 0, sizeof(*a));
	a->limit = limit;
}

void arena_fini(struct arena *a)
{
	struct arena_block *b = a->head, *next;

	for (; b; b = next) {
		next = b->next;
		free(b);
	}
	memset(a, 0, sizeof(*a));
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b;
	size_t cap;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = align_up(size ? size : 1, 16);
	if (!a->head || a->cap - a->used < size) {
		cap = size > ARENA_BLOCK / 4 ? size : ARENA_BLOCK;
		if (a->limit && (cap > a->limit || a->total > a->limit - cap))
			return NULL;
		b = malloc(sizeof(*b) + cap);
		if (!b)
			return NULL;
		b->next = a->head;
		a->head = b;
		a->used = 0;
		a->cap = cap;
		a->total += cap;
	}
	p = a->head->data + a->used;
	a->used += size;
	memset(p, 0, size);
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = arena_alloc(a, n);

	return p ? memcpy(p, s, n) : NULL;
}
