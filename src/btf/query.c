// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fields by name. Members of anonymous structs and unions count as members of what holds them. Such
 * structs can nest without end and hold each other many times, so both depth and the members looked
 * at are bounded.
 */
#include "btf/btf_int.h"

#include <errno.h>
#include <string.h>

struct lookup {
	const struct btf *btf;
	const char *name;
	size_t len;  /* of name, which need not be terminated there */
	u32 budget;  /* members that may still be looked at */
	u32 bit_off; /* result, in the outermost struct */
	u32 type_id;
	bool bitfield;
};

static bool is_anonymous_struct(const struct btf *btf, const struct btf_member *m, u32 *ret_id)
{
	const struct btf_type *t;

	if (*btf_name_by_offset(btf, m->name_off))
		return false;
	t = btf_type_skip_modifiers(btf, m->type, ret_id);
	return btf_is_struct_or_union(t);
}

static bool name_is(const struct lookup *l, const struct btf_member *m)
{
	const char *name = btf_name_by_offset(l->btf, m->name_off);

	return !strncmp(name, l->name, l->len) && !name[l->len];
}

static int find_in(struct lookup *l, u32 id, u32 base_bit, u32 depth)
{
	const struct btf_type *t = btf_type_at(l->btf, id);
	const struct btf_member *m = btf_members(t);
	u32 i, inner;

	if (depth == BTF_MAX_DEPTH)
		return -ENOENT;
	for (i = 0; i < btf_vlen(t); i++, m++) {
		u32 bit = base_bit + btf_member_bit_offset(t, m);

		if (!l->budget--)
			return -E2BIG;
		if (is_anonymous_struct(l->btf, m, &inner)) {
			int err = find_in(l, inner, bit, depth + 1);

			if (err != -ENOENT)
				return err;
		} else if (name_is(l, m)) {
			l->bit_off = bit;
			l->type_id = m->type;
			l->bitfield = btf_member_bitfield_size(t, m) || bit % 8;
			return 0;
		}
	}
	return -ENOENT;
}

int btf_find_member(const struct btf *btf, u32 struct_id, const char *field, u32 *ret_off,
		    u32 *ret_type_id)
{
	struct lookup l = {.btf = btf, .name = field, .budget = 4u << 20};
	const struct btf_type *t;
	u32 id = struct_id, bit = 0;
	int err;

	for (;;) {
		t = btf_type_skip_modifiers(btf, id, &id);
		if (!t || !btf_is_struct_or_union(t))
			return -ENOENT;
		l.len = strcspn(l.name, ".");
		if (!l.len)
			return -ENOENT;
		err = find_in(&l, id, 0, 0);
		if (err)
			return err;
		if (l.bitfield)
			return -EINVAL;
		bit += l.bit_off;
		id = l.type_id;
		l.name += l.len;
		if (!*l.name)
			break;
		l.name++;
	}
	if (ret_off)
		*ret_off = bit / 8;
	if (ret_type_id)
		*ret_type_id = id;
	return 0;
}

int btf_find_field_offset(const struct btf *btf, const char *struct_name, const char *field,
			  u32 *ret_off, u32 *ret_size)
{
	s32 id = btf_find_by_name_kind(btf, struct_name, BTF_KIND_STRUCT);
	u32 off, size, type_id;
	int err;

	if (id < 0)
		id = btf_find_by_name_kind(btf, struct_name, BTF_KIND_UNION);
	if (id < 0)
		return id;
	err = btf_find_member(btf, id, field, &off, &type_id);
	if (!err)
		err = btf_resolve_size(btf, type_id, &size);
	if (err)
		return err;
	if (ret_off)
		*ret_off = off;
	if (ret_size)
		*ret_size = size;
	return 0;
}
