// SPDX-License-Identifier: BSD-2-Clause
/*
 * Batch commands, over the one-element operations of the map type.
 *
 * Where a batch resumes is kept in the caller's in_batch/out_batch: the last key for maps whose
 * keys are indexes, and for others a u32, as the interface has it for hash maps: here the number of
 * elements already passed. A hash map that changes between two calls may show an element twice or
 * not at all, as in Linux, where it is a bucket number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "isa/uapi.h"
#include "sys/map_int.h"

struct batch {
	struct sys_call *c;
	struct map_call mc;
	void *key, *prev, *value;
	bool have_prev;
	u32 done, max;
};

enum batch_kind { BATCH_LOOKUP, BATCH_TAKE, BATCH_UPDATE, BATCH_DELETE };

/* Keys are counted, and a batch resumes behind its last one. */
static bool is_array(const struct map_ops *ops)
{
	return ops->flags & MAP_INDEXED || ops->type == BPF_MAP_TYPE_ARRAY_OF_MAPS;
}

/* Linux's table, by what the map type can do; of arrays no batch is deleted. */
static bool has_batch(const struct map_ops *ops, enum batch_kind kind)
{
	if (!(ops->flags & MAP_CAN_ITER_KEYS) || !ops->sys_lookup || ops->flags & MAP_NO_BATCH)
		return false;
	switch (kind) {
	case BATCH_LOOKUP:
		return true;
	case BATCH_TAKE:
		return ops->sys_lookup_and_delete || (ops->flags & MAP_OF_MAPS && !is_array(ops));
	case BATCH_UPDATE:
		return ops->sys_update;
	case BATCH_DELETE:
		return ops->sys_remove && !is_array(ops);
	}
	return false;
}

static int batch_begin(struct sys_call *c, enum batch_kind kind, struct batch *b)
{
	u32 access = kind == BATCH_LOOKUP ? MAP_READ
		     : kind == BATCH_TAKE ? MAP_READ | MAP_WRITE
					  : MAP_WRITE;
	u32 zero = 0;
	int err;

	memset(b, 0, sizeof(*b));
	b->c = c;
	err = sys_map_begin(c, c->attr.batch.map_fd, access, &b->mc);
	if (err)
		return err;
	if (!has_batch(b->mc.map->ops, kind)) {
		err = -LINUX_ENOTSUPP;
		goto err_end;
	}
	err = sys_map_check_flags(b->mc.map, c->attr.batch.elem_flags, BPF_F_LOCK);
	if (err)
		goto err_end;
	b->max = c->attr.batch.count;
	if (b->max && sys_put_field(c, batch.count, &zero)) {
		err = -EFAULT;
		goto err_end;
	}
	b->key = calloc(1, b->mc.map->key_size);
	b->prev = calloc(1, b->mc.map->key_size);
	b->value = calloc(1, b->mc.value_size ? b->mc.value_size : 1);
	if (b->key && b->prev && b->value)
		return 0;
	err = -ENOMEM;
	free(b->key);
	free(b->prev);
	free(b->value);
err_end:
	sys_map_end(&b->mc);
	return err;
}

static long batch_end(struct batch *b, long err)
{
	free(b->key);
	free(b->prev);
	free(b->value);
	sys_map_end(&b->mc);
	return err;
}

static u64 user_key(const struct batch *b)
{
	return b->c->attr.batch.keys + (u64)b->done * b->mc.map->key_size;
}

static u64 user_value(const struct batch *b)
{
	return b->c->attr.batch.values + (u64)b->done * b->mc.value_size;
}

static int next_key(struct batch *b)
{
	return b->mc.map->ops->sys_next_key(b->mc.map, b->have_prev ? b->prev : NULL, b->key);
}

static void advance(struct batch *b)
{
	void *key = b->key;

	b->key = b->prev;
	b->prev = key;
	b->have_prev = true;
}

/* Takes up where in_batch says; *ret_pos counts elements passed (maps without index keys). */
static int resume(struct batch *b, u32 *ret_pos)
{
	u64 in = b->c->attr.batch.in_batch;
	u32 i, pos = 0;
	int err;

	*ret_pos = 0;
	if (!in)
		return 0;
	if (is_array(b->mc.map->ops)) {
		b->have_prev = true;
		return user_read(b->c->um, b->prev, in, b->mc.map->key_size);
	}
	if (user_read(b->c->um, &pos, in, sizeof(pos)))
		return -EFAULT;
	for (i = 0; i < pos; i++) {
		err = next_key(b);
		if (err)
			return err;
		advance(b);
	}
	*ret_pos = pos;
	return 0;
}

static int finish(struct batch *b, u32 pos, int err)
{
	u64 out = b->c->attr.batch.out_batch;

	if (sys_put_field(b->c, batch.count, &b->done))
		return -EFAULT;
	if (is_array(b->mc.map->ops)) {
		if (b->done && user_write(b->c->um, out, b->prev, b->mc.map->key_size))
			return -EFAULT;
		return err;
	}
	pos += b->done;
	return user_write(b->c->um, out, &pos, sizeof(pos)) ? -EFAULT : err;
}

static int put_element(struct batch *b)
{
	int err = user_write(b->c->um, user_key(b), b->key, b->mc.map->key_size);

	return err ? err : user_write(b->c->um, user_value(b), b->value, b->mc.value_size);
}

long sys_map_lookup_batch(struct sys_call *c)
{
	struct batch b;
	u32 pos;
	int err = batch_begin(c, BATCH_LOOKUP, &b);

	if (err)
		return err;
	if (!b.max)
		return batch_end(&b, 0);
	err = resume(&b, &pos);
	while (!err && b.done < b.max) {
		err = next_key(&b);
		if (err)
			break;
		err = b.mc.map->ops->sys_lookup(b.mc.map, b.key, b.value, c->attr.batch.elem_flags);
		if (!err)
			err = put_element(&b);
		if (err && err != -ENOENT)
			return batch_end(&b, err);
		b.done += !err;
		err = 0; /* deleted meanwhile: on to the next */
		advance(&b);
	}
	/* a hash map says at once that nothing is left */
	if (!err && !is_array(b.mc.map->ops))
		err = next_key(&b);
	return batch_end(&b, err == -EFAULT ? err : finish(&b, pos, err));
}

long sys_map_lookup_and_delete_batch(struct sys_call *c)
{
	struct batch b;
	int err = batch_begin(c, BATCH_TAKE, &b);

	if (err)
		return err;
	if (!b.max)
		return batch_end(&b, 0);
	/* what is passed is gone: each batch starts at the first key */
	while (!err && b.done < b.max) {
		err = next_key(&b);
		if (err)
			break;
		err = b.mc.map->ops->sys_lookup(b.mc.map, b.key, b.value, c->attr.batch.elem_flags);
		if (!err)
			err = put_element(&b);
		if (!err)
			err = b.mc.map->ops->sys_remove(b.mc.map, b.key);
		if (err && err != -ENOENT)
			return batch_end(&b, err);
		b.done += !err;
		err = 0;
	}
	if (!err)
		err = next_key(&b);
	return batch_end(&b, finish(&b, 0, err));
}

long sys_map_update_batch(struct sys_call *c)
{
	struct batch b;
	int err = batch_begin(c, BATCH_UPDATE, &b);

	if (err)
		return err;
	if (!b.max)
		return batch_end(&b, 0);
	for (; !err && b.done < b.max; b.done += !err) {
		err = user_read(c->um, b.key, user_key(&b), b.mc.map->key_size);
		if (!err)
			err = user_read(c->um, b.value, user_value(&b), b.mc.value_size);
		if (!err)
			err = b.mc.map->ops->sys_update(b.mc.map, b.key, b.value,
							c->attr.batch.elem_flags);
	}
	return batch_end(&b, sys_put_field(c, batch.count, &b.done) ? -EFAULT : err);
}

long sys_map_delete_batch(struct sys_call *c)
{
	struct batch b;
	int err = batch_begin(c, BATCH_DELETE, &b);

	if (err)
		return err;
	if (!b.max)
		return batch_end(&b, 0);
	for (; !err && b.done < b.max; b.done += !err) {
		err = user_read(c->um, b.key, user_key(&b), b.mc.map->key_size);
		if (!err)
			err = b.mc.map->ops->sys_remove(b.mc.map, b.key);
	}
	return batch_end(&b, sys_put_field(c, batch.count, &b.done) ? -EFAULT : err);
}
