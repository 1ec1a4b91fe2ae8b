// SPDX-License-Identifier: BSD-2-Clause
/*
 * What lies at an offset of a struct. The answers, and the order in which members are considered,
 * are the verifier's: they decide which programs Linux accepts. Each pass of the loop enters a
 * struct nested in the one before, of which there are finitely many, and looks at its members once.
 */
#include "btf/walk.h"

#include <errno.h>
#include <string.h>

#include "btf/btf_int.h"

/* The question, with off relative to the struct being looked at. */
struct walk {
	struct btf_log *log;
	const struct btf *btf;
	u32 id; /* the struct */
	const struct btf_type *t;
	const char *name; /* its name, for messages */
	u32 off, size;
	u32 flags;
};

/* A member that the access touches, arrays taken apart down to the element. */
struct hit {
	const char *name;
	const struct btf_type *t; /* of the element */
	u32 id;
	u32 start, end; /* bytes in the struct: where the element starts, where the whole member
			   ends */
};

enum step {
	STEP_NEXT_MEMBER,
	STEP_ENTERED, /* w now asks about a nested struct */
	STEP_DONE,    /* ret is filled */
};

static const char *log_name(const struct btf *btf, const struct btf_type *t)
{
	return btf_name_for_log(btf, t->name_off);
}

static bool enter_struct(struct walk *w, u32 id)
{
	w->t = btf_type_skip_modifiers(w->btf, id, &w->id);
	if (!w->t)
		return false;
	w->name = log_name(w->btf, w->t);
	return btf_is_struct_or_union(w->t);
}

static int beyond_struct(struct walk *w)
{
	btf_log_printf(w->log, "access beyond struct %s at off %u size %u\n", w->name, w->off,
		       w->size);
	return -EACCES;
}

/*
 * The access ends behind the struct: fine only if a last member of no elements stands for more
 * ("a[0]", "a[]"), and those elements are integers or structs.
 */
static int walk_flexible_array(struct walk *w, struct btf_walk *ret)
{
	u32 vlen = btf_vlen(w->t), moff;
	const struct btf_member *last;
	const struct btf_type *array, *elem;
	u32 elem_id;

	if (!vlen)
		return beyond_struct(w);
	last = &btf_members(w->t)[vlen - 1];
	array = btf_type_skip_modifiers(w->btf, last->type, NULL);
	moff = btf_member_bit_offset(w->t, last) / 8;
	if (btf_kind(array) != BTF_KIND_ARRAY || btf_array(array)->nelems || w->off < moff)
		return beyond_struct(w);
	elem = btf_type_skip_modifiers(w->btf, btf_array(array)->type, &elem_id);
	if (btf_kind(elem) == BTF_KIND_INT) {
		ret->kind = BTF_WALK_SCALAR;
		return STEP_DONE;
	}
	if (!btf_is_struct_or_union(elem) || !elem->size)
		return beyond_struct(w);
	w->off = (w->off - moff) % elem->size;
	enter_struct(w, elem_id);
	return STEP_ENTERED;
}

/* Elements of arrays of arrays, all together; *id moves to the innermost element. 0: an array of
 * nothing. */
static u32 flatten_array(const struct btf *btf, u32 *id)
{
	const struct btf_type *t = btf_type_skip_modifiers(btf, *id, id);
	u32 total = 1, depth;

	for (depth = 0; btf_kind(t) == BTF_KIND_ARRAY && depth < BTF_MAX_DEPTH; depth++) {
		total *= btf_array(t)->nelems;
		t = btf_type_skip_modifiers(btf, btf_array(t)->type, id);
	}
	return total;
}

/* Finds the element of member m that the access starts in. STEP_NEXT_MEMBER, STEP_DONE (h filled)
 * or -errno. */
static int locate(struct walk *w, const struct btf_member *m, u32 moff, struct hit *h)
{
	u32 id = m->type, bytes, total, elem_bytes;
	const struct btf_type *t;

	h->name = btf_name_for_log(w->btf, m->name_off);
	t = btf_id_size(w->btf, &id, &bytes);
	if (!t) {
		btf_log_printf(w->log, "field %s doesn't have size\n", h->name);
		return -EFAULT;
	}
	h->end = moff + bytes;
	if (w->off >= h->end)
		return STEP_NEXT_MEMBER;
	h->start = moff;
	if (btf_kind(t) == BTF_KIND_ARRAY) {
		total = flatten_array(w->btf, &id);
		if (!total || !bytes)
			return STEP_NEXT_MEMBER;
		elem_bytes = bytes / total;
		if (!elem_bytes)
			return STEP_NEXT_MEMBER;
		h->start += (w->off - moff) / elem_bytes * elem_bytes;
		t = btf_type_at(w->btf, id);
	}
	h->t = t;
	h->id = id;
	return STEP_DONE;
}

static u32 pointer_tag(const struct btf *btf, const struct btf_type *ptr)
{
	const struct btf_type *t = btf_type_at(btf, ptr->type);
	const char *tag;

	if (!t || btf_kind(t) != BTF_KIND_TYPE_TAG || btf_kflag(t))
		return 0;
	tag = btf_name_for_log(btf, t->name_off);
	if (!strcmp(tag, "user"))
		return BTF_WALK_USER;
	if (!strcmp(tag, "percpu"))
		return BTF_WALK_PERCPU;
	return strcmp(tag, "rcu") ? 0 : BTF_WALK_RCU;
}

static int walk_pointer(struct walk *w, const struct hit *h, struct btf_walk *ret)
{
	const struct btf_type *to;
	u32 to_id, bytes = BTF_PTR_SIZE;

	if (w->size != bytes || w->off != h->start) {
		btf_log_printf(w->log,
			       "cannot access ptr member %s with moff %u in struct %s with off %u "
			       "size %u\n",
			       h->name, h->start, w->name, w->off, w->size);
		return -EACCES;
	}
	to = btf_type_skip_modifiers(w->btf, h->t->type, &to_id);
	if (to && btf_is_struct_or_union(to)) {
		ret->kind = BTF_WALK_PTR;
		ret->type_id = to_id;
		ret->flags |= pointer_tag(w->btf, h->t);
		ret->field_name = h->name;
	} else {
		ret->kind = BTF_WALK_PTR_UNTRUSTED;
	}
	return STEP_DONE;
}

static int walk_hit(struct walk *w, const struct hit *h, struct btf_walk *ret)
{
	if (btf_is_struct_or_union(h->t)) {
		if (w->off == h->start) {
			ret->kind = BTF_WALK_STRUCT;
			ret->type_id = h->id;
			return STEP_DONE;
		}
		w->off -= h->start;
		enter_struct(w, h->id);
		return STEP_ENTERED;
	}
	if (btf_kind(h->t) == BTF_KIND_PTR)
		return walk_pointer(w, h, ret);
	/* Any part of an integer, and any part of an array of them, may be read, but not across its
	 * end. */
	if (w->off + w->size > h->end && !(ret->flags & BTF_WALK_UNTRUSTED)) {
		btf_log_printf(w->log,
			       "access beyond the end of member %s (mend:%u) in struct %s with off "
			       "%u size %u\n",
			       h->name, h->end, w->name, w->off, w->size);
		return -EACCES;
	}
	ret->kind = BTF_WALK_SCALAR;
	return STEP_DONE;
}

/* One struct: a step, or -errno. */
static int walk_members(struct walk *w, struct btf_walk *ret)
{
	const struct btf_member *m = btf_members(w->t);
	u32 i, moff, field, end_bit;
	struct hit h;
	int step;

	if (btf_kind(w->t) == BTF_KIND_UNION && btf_vlen(w->t) != 1)
		ret->flags |= BTF_WALK_UNTRUSTED;
	/* u32 sum as in Linux: an access that wraps is caught by the caller's own bounds. */
	if ((u64)w->off + w->size > w->t->size)
		return walk_flexible_array(w, ret);
	for (i = 0; i < btf_vlen(w->t); i++, m++) {
		moff = btf_member_bit_offset(w->t, m) / 8;
		if (w->off + w->size <= moff)
			break;
		field = btf_member_bitfield_size(w->t, m);
		if (field) {
			/* All of a bit field at once; its padding may be unnamed, so the access may
			 * start before it. */
			end_bit = btf_member_bit_offset(w->t, m) + field;
			if (w->off <= moff && (end_bit + 7) / 8 <= w->off + w->size) {
				ret->kind = BTF_WALK_SCALAR;
				return STEP_DONE;
			}
			continue;
		}
		if (w->off < moff) /* a hole */
			break;
		step = locate(w, m, moff, &h);
		if (step == STEP_DONE)
			step = walk_hit(w, &h, ret);
		if (step != STEP_NEXT_MEMBER)
			return step;
	}
	btf_log_printf(w->log, "struct %s doesn't have field at offset %d\n", w->name, (int)w->off);
	return -EINVAL;
}

int btf_struct_walk(struct btf_log *log, const struct btf *btf, u32 struct_id, u32 off, u32 size,
		    u32 flags_in, struct btf_walk *ret)
{
	struct walk w = {.log = log, .btf = btf, .off = off, .size = size};
	struct btf_walk found = {.flags = flags_in};
	int step;

	if (!enter_struct(&w, struct_id)) {
		btf_log_printf(log, "Type '%s' is not a struct\n", w.t ? w.name : "");
		return -EINVAL;
	}
	do
		step = walk_members(&w, &found);
	while (step == STEP_ENTERED);
	if (step < 0)
		return step;
	*ret = found;
	return 0;
}

int btf_struct_access(struct btf_log *log, const struct btf *btf, u32 struct_id, u32 off, u32 size,
		      struct btf_walk *ret)
{
	struct btf_walk found = {.kind = BTF_WALK_STRUCT, .type_id = struct_id};
	int err;

	while (found.kind == BTF_WALK_STRUCT) {
		err = btf_struct_walk(log, btf, found.type_id, off, size, found.flags, &found);
		if (err)
			return err;
		off = 0;
	}
	*ret = found;
	return 0;
}

bool btf_types_same(const struct btf *a, u32 a_id, const struct btf *b, u32 b_id)
{
	return a_id == b_id && (a == b || btf_type_at(a, a_id) == btf_type_at(b, b_id));
}

bool btf_struct_ids_match(const struct btf *btf, u32 id, u32 off, const struct btf *need_btf,
			  u32 need_id, bool strict)
{
	struct btf_walk found;

	if (!off && btf_types_same(btf, id, need_btf, need_id))
		return true;
	if (strict)
		return false;
	do {
		if (!btf_type_at(btf, id) || btf_struct_walk(NULL, btf, id, off, 1, 0, &found) ||
		    found.kind != BTF_WALK_STRUCT)
			return false;
		id = found.type_id;
		off = 0;
	} while (!btf_types_same(btf, id, need_btf, need_id));
	return true;
}

bool btf_types_match(const struct btf *a, u32 a_id, const struct btf *b, u32 b_id)
{
	const struct btf_type *ta = btf_type_skip_modifiers(a, a_id, &a_id);
	const struct btf_type *tb = btf_type_skip_modifiers(b, b_id, &b_id);
	u32 a_size = 0, b_size = 0;

	if (!ta || !tb || btf_kind(ta) != btf_kind(tb) ||
	    strcmp(btf_type_name(a, a_id), btf_type_name(b, b_id)))
		return false;
	btf_resolve_size(a, a_id, &a_size);
	btf_resolve_size(b, b_id, &b_size);
	return a_size == b_size;
}
