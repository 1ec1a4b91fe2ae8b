// SPDX-License-Identifier: BSD-2-Clause
// Ids and reference counts. A table a kind, guarded by the instance's lock; ids are handed out in a circle like Linux's.
#include "object/obj.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "object/instance.h"

static bool kind_has_ids(enum obj_kind kind)
{
	return kind == OBJ_MAP || kind == OBJ_PROG || kind == OBJ_LINK || kind == OBJ_BTF;
}

static int table_grow(struct obj_table *t)
{
	u32 cap = t->cap ? t->cap * 2 : 64;
	struct obj **slot = realloc(t->slot, cap * sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	memset(slot + t->cap, 0, (cap - t->cap) * sizeof(*slot));
	t->slot = slot;
	t->cap = cap;
	return 0;
}

static int table_add(struct obj_table *t, struct obj *obj)
{
	u32 i, id = 0;

	if (t->nr + 1 >= t->cap && table_grow(t))
		return -ENOMEM;
	for (i = 0; i < t->cap; i++) {
		id = (t->next + i) % t->cap;
		if (id && !t->slot[id])
			break;
	}
	if (i == t->cap)
		return -ENOSPC;
	t->slot[id] = obj;
	t->next = id + 1;
	t->nr++;
	/* grow rather than reuse an id that was just given up */
	if (t->next == t->cap && table_grow(t))
		t->next = 1;
	obj->id = id;
	return 0;
}

static void table_remove(struct obj_table *t, struct obj *obj)
{
	if (!obj->id || t->slot[obj->id] != obj)
		return;
	t->slot[obj->id] = NULL;
	t->nr--;
}

void obj_init(struct obj *obj, struct inlay *inlay, enum obj_kind kind, const struct obj_ops *ops)
{
	obj->kind = kind;
	obj->id = 0;
	obj->refs = 1;
	obj->inlay = inlay;
	obj->ops = ops;
	obj->wait_fd = -1;
	__atomic_add_fetch(&inlay->nr_objs[kind], 1, __ATOMIC_RELAXED);
}

int obj_publish(struct obj *obj)
{
	struct inlay *inlay = obj->inlay;
	int err = 0;

	pthread_mutex_lock(&inlay->lock);
	if (kind_has_ids(obj->kind) && !obj->id)
		err = table_add(&inlay->table[obj->kind], obj);
	pthread_mutex_unlock(&inlay->lock);
	return err;
}

static void unpublish(struct obj *obj)
{
	struct obj_table *t = &obj->inlay->table[obj->kind];

	pthread_mutex_lock(&obj->inlay->lock);
	table_remove(t, obj);
	pthread_mutex_unlock(&obj->inlay->lock);
	__atomic_sub_fetch(&obj->inlay->nr_objs[obj->kind], 1, __ATOMIC_RELAXED);
	if (obj->wait_fd >= 0)
		close(obj->wait_fd);
	obj->wait_fd = -1;
}

void obj_abort(struct obj *obj)
{
	unpublish(obj);
}

void obj_get(struct obj *obj)
{
	__atomic_add_fetch(&obj->refs, 1, __ATOMIC_RELAXED);
}

bool obj_get_unless_zero(struct obj *obj)
{
	long refs = __atomic_load_n(&obj->refs, __ATOMIC_RELAXED);

	while (refs)
		if (__atomic_compare_exchange_n(&obj->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

void obj_put(struct obj *obj)
{
	if (!obj || __atomic_sub_fetch(&obj->refs, 1, __ATOMIC_ACQ_REL))
		return;
	unpublish(obj);
	obj->ops->release(obj);
}

struct obj *obj_by_id(struct inlay *inlay, enum obj_kind kind, u32 id)
{
	struct obj_table *t = &inlay->table[kind];
	struct obj *obj = NULL;

	pthread_mutex_lock(&inlay->lock);
	if (id && id < t->cap)
		obj = t->slot[id];
	if (obj && !obj_get_unless_zero(obj))
		obj = NULL;
	pthread_mutex_unlock(&inlay->lock);
	return obj;
}

u32 obj_next_id(struct inlay *inlay, enum obj_kind kind, u32 id)
{
	struct obj_table *t = &inlay->table[kind];
	u32 next = 0;
	u64 i;

	pthread_mutex_lock(&inlay->lock);
	for (i = (u64)id + 1; i < t->cap && !next; i++)
		if (t->slot[i])
			next = i;
	pthread_mutex_unlock(&inlay->lock);
	return next;
}

void obj_wake(struct obj *obj)
{
	u64 one = 1;

	if (obj->wait_fd >= 0 && write(obj->wait_fd, &one, sizeof(one)) < 0) {
		/* full counter: it is readable already */
	}
}
