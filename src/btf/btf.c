// SPDX-License-Identifier: BSD-2-Clause
/* References to a parsed BTF and the plain queries. */
#include "btf/btf_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct btf *btf_get(struct btf *btf)
{
	if (btf)
		__atomic_fetch_add(&btf->refs, 1, __ATOMIC_RELAXED);
	return btf;
}

void btf_put(struct btf *btf)
{
	struct btf *base;

	/* acq_rel: the last owner sees all that the others did with it before it frees. */
	while (btf && __atomic_fetch_sub(&btf->refs, 1, __ATOMIC_ACQ_REL) == 1) {
		base = btf->base;
		free(btf->buf);
		free(btf->types);
		free(btf->resolved_id);
		free(btf->resolved_size);
		free(btf->names);
		free(btf->tags);
		free(btf);
		btf = base;
	}
}

const struct btf *btf_base(const struct btf *btf)
{
	return btf->base;
}

const void *btf_raw_data(const struct btf *btf, u32 *ret_size)
{
	*ret_size = btf->size;
	return btf->data;
}

u32 btf_nr_types(const struct btf *btf)
{
	return btf->start_id + btf->nr_own;
}

/* The BTF, this one or a base, that has the id; NULL: none. */
static const struct btf *id_owner(const struct btf *btf, u32 id)
{
	while (id < btf->start_id)
		btf = btf->base;
	return id - btf->start_id < btf->nr_own ? btf : NULL;
}

const struct btf_type *btf_type_at(const struct btf *btf, u32 id)
{
	const struct btf *owner = id_owner(btf, id);

	return owner ? owner->types[id - owner->start_id] : NULL;
}

const char *btf_type_name(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_at(btf, id);
	const char *name = t ? btf_name_by_offset(btf, t->name_off) : NULL;

	return name ? name : "";
}

const char *btf_kind_name(u32 kind)
{
	return kind < NR_BTF_KINDS ? btf_kinds[kind].name : "UNKNOWN";
}

u32 btf_resolved_id(const struct btf *btf, u32 id)
{
	const struct btf *owner = id_owner(btf, id);

	return owner ? owner->resolved_id[id - owner->start_id] : 0;
}

static u32 resolved_array_size(const struct btf *btf, u32 id)
{
	const struct btf *owner = id_owner(btf, id);

	return owner ? owner->resolved_size[id - owner->start_id] : 0;
}

bool btf_has_no_size(const struct btf_type *t)
{
	if (!t)
		return true;
	switch (btf_kind(t)) {
	case BTF_KIND_UNKN:
	case BTF_KIND_FWD:
	case BTF_KIND_FUNC:
	case BTF_KIND_FUNC_PROTO:
	case BTF_KIND_DECL_TAG:
		return true;
	}
	return false;
}

bool btf_int_is_regular(const struct btf_type *t)
{
	u32 data = btf_int_data(t), bits = BTF_INT_BITS(data);

	return !BTF_INT_OFFSET(data) && is_pow2(bits) && bits >= 8 && bits <= 128;
}

/* Bytes of a type that has a size of its own; false: it is a reference, or has none. */
static bool own_size(const struct btf *btf, u32 id, const struct btf_type *t, u32 *ret_size)
{
	if (btf_kinds[btf_kind(t)].has_size)
		*ret_size = t->size;
	else if (btf_kind(t) == BTF_KIND_ARRAY)
		*ret_size = resolved_array_size(btf, id);
	else if (btf_kind(t) == BTF_KIND_PTR)
		*ret_size = BTF_PTR_SIZE;
	else
		return false;
	return true;
}

const struct btf_type *btf_id_size(const struct btf *btf, u32 *id, u32 *ret_size)
{
	const struct btf_type *t = btf_type_at(btf, *id);
	u32 end = *id, size;

	if (btf_has_no_size(t))
		return NULL;
	if (!own_size(btf, end, t, &size)) {
		end = btf_resolved_id(btf, end);
		t = btf_type_at(btf, end);
		if (btf_has_no_size(t) || !own_size(btf, end, t, &size))
			return NULL;
	}
	*id = end;
	if (ret_size)
		*ret_size = size;
	return t;
}

const struct btf_type *btf_type_skip_modifiers(const struct btf *btf, u32 id, u32 *ret_id)
{
	const struct btf_type *t = btf_type_at(btf, id);

	/* A chain can have a million links; its end is known since the parse. */
	if (t && btf_is_modifier(t)) {
		id = btf_resolved_id(btf, id);
		t = btf_type_at(btf, id);
	}
	if (ret_id)
		*ret_id = id;
	return t;
}

int btf_resolve_size(const struct btf *btf, u32 id, u32 *ret_size)
{
	return btf_id_size(btf, &id, ret_size) ? 0 : -EINVAL;
}

const struct btf_type *btf_func_proto(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_skip_modifiers(btf, id, NULL);

	if (t && btf_kind(t) == BTF_KIND_PTR)
		t = btf_type_skip_modifiers(btf, t->type, NULL);
	else if (t && btf_kind(t) == BTF_KIND_FUNC)
		t = btf_type_at(btf, t->type);
	return t && btf_kind(t) == BTF_KIND_FUNC_PROTO ? t : NULL;
}
