// SPDX-License-Identifier: BSD-2-Clause
/*
 * One row a kind: its name in the log, what follows a type of it, how it is checked alone, how its
 * references are followed and how it may be a member. A new kind is a new row here.
 */
#include "btf/btf_int.h"

#include <errno.h>

/* Fails with the reason behind the type's own line. */
#define BAD(env, t, ...) (btf_env_log_type(env, t, __VA_ARGS__), -EINVAL)

static bool has_identifier(struct btf_env *env, const struct btf_type *t)
{
	return t->name_off && btf_name_is_identifier(env->btf, t->name_off);
}

static bool name_missing_or_good(struct btf_env *env, u32 name_off)
{
	return !name_off || btf_name_is_identifier(env->btf, name_off);
}

/* Kinds without entries keep vlen 0. */
static int check_no_vlen(struct btf_env *env, const struct btf_type *t)
{
	return btf_vlen(t) ? BAD(env, t, "vlen != 0") : 0;
}

static int check_no_kflag(struct btf_env *env, const struct btf_type *t)
{
	return btf_kflag(t) ? BAD(env, t, "Invalid btf_info kind_flag") : 0;
}

static int accept(struct btf_env *env, const struct btf_type *t)
{
	btf_env_log_type(env, t, NULL);
	return 0;
}

static int meta_int(struct btf_env *env, const struct btf_type *t)
{
	u32 data = btf_int_data(t), bits = BTF_INT_BITS(data) + BTF_INT_OFFSET(data);
	int err;

	err = check_no_vlen(env, t);
	if (!err)
		err = check_no_kflag(env, t);
	if (err)
		return err;
	if (data & 0xf0000000) {
		btf_env_log_basic(env, t, "Invalid int_data:%x", data);
		return -EINVAL;
	}
	if (bits > 128)
		return BAD(env, t, "nr_bits exceeds %u", 128u);
	if ((bits + 7) / 8 > t->size)
		return BAD(env, t, "nr_bits exceeds type_size");
	switch (BTF_INT_ENCODING(data)) {
	case 0:
	case BTF_INT_SIGNED:
	case BTF_INT_CHAR:
	case BTF_INT_BOOL:
		return accept(env, t);
	}
	btf_env_log_type(env, t, "Unsupported encoding");
	return -LINUX_ENOTSUPP;
}

static void details_int(struct btf_env *env, const struct btf_type *t)
{
	static const char *const names[] = {"(none)", "SIGNED", "CHAR", "UNKN", "BOOL"};
	u32 data = btf_int_data(t), enc = BTF_INT_ENCODING(data);

	btf_env_log(env, "size=%u bits_offset=%u nr_bits=%u encoding=%s", t->size,
		    BTF_INT_OFFSET(data), BTF_INT_BITS(data),
		    enc < ARRAY_SIZE(names) ? names[enc] : "UNKN");
}

static int meta_ref(struct btf_env *env, const struct btf_type *t)
{
	const char *text;
	int err = check_no_vlen(env, t);

	if (err)
		return err;
	/*
	 * On a type tag the flag says that the text is an attribute of the compiler's, not BPF's.
	 */
	if (btf_kflag(t) && btf_kind(t) != BTF_KIND_TYPE_TAG)
		return BAD(env, t, "Invalid btf_info kind_flag");
	if (t->type > BTF_MAX_TYPE)
		return BAD(env, t, "Invalid type_id");
	switch (btf_kind(t)) {
	case BTF_KIND_TYPEDEF:
		if (!has_identifier(env, t))
			return BAD(env, t, "Invalid name");
		break;
	case BTF_KIND_TYPE_TAG:
		text = btf_name_by_offset(env->btf, t->name_off);
		if (!text || !text[0])
			return BAD(env, t, "Invalid name");
		break;
	default:
		if (t->name_off)
			return BAD(env, t, "Invalid name");
	}
	return accept(env, t);
}

static void details_ref(struct btf_env *env, const struct btf_type *t)
{
	btf_env_log(env, "type_id=%u", t->type);
}

static int meta_fwd(struct btf_env *env, const struct btf_type *t)
{
	int err = check_no_vlen(env, t);

	if (err)
		return err;
	if (t->type)
		return BAD(env, t, "type != 0");
	if (!has_identifier(env, t))
		return BAD(env, t, "Invalid name");
	return accept(env, t);
}

static void details_fwd(struct btf_env *env, const struct btf_type *t)
{
	btf_env_log(env, "%s", btf_kflag(t) ? "union" : "struct");
}

static int meta_array(struct btf_env *env, const struct btf_type *t)
{
	const struct btf_array *a = btf_array(t);
	int err;

	if (t->name_off)
		return BAD(env, t, "Invalid name");
	err = check_no_vlen(env, t);
	if (!err)
		err = check_no_kflag(env, t);
	if (err)
		return err;
	if (t->size)
		return BAD(env, t, "size != 0");
	if (!a->type || a->type > BTF_MAX_TYPE)
		return BAD(env, t, "Invalid elem");
	if (!a->index_type || a->index_type > BTF_MAX_TYPE)
		return BAD(env, t, "Invalid index");
	return accept(env, t);
}

static void details_array(struct btf_env *env, const struct btf_type *t)
{
	const struct btf_array *a = btf_array(t);

	btf_env_log(env, "type_id=%u index_type_id=%u nr_elems=%u", a->type, a->index_type,
		    a->nelems);
}

#define BAD_MEMBER(env, t, m, ...) (btf_env_log_member(env, t, m, __VA_ARGS__), -EINVAL)

static int meta_member(struct btf_env *env, const struct btf_type *t, const struct btf_member *m,
		       u32 last_offset)
{
	u32 offset = btf_member_bit_offset(t, m);

	if (!btf_name_offset_ok(env->btf, m->name_off))
		return BAD_MEMBER(env, t, m, "Invalid member name_offset:%u", m->name_off);
	if (!name_missing_or_good(env, m->name_off))
		return BAD_MEMBER(env, t, m, "Invalid name");
	if (!m->type || m->type > BTF_MAX_TYPE)
		return BAD_MEMBER(env, t, m, "Invalid type_id");
	/* Members come by offset; equal ones are fine, for bit fields of a union's struct and for a
	 * last "char a[0]". */
	if ((btf_kind(t) == BTF_KIND_UNION && offset) || last_offset > offset)
		return BAD_MEMBER(env, t, m, "Invalid member bits_offset");
	if (offset / 8 + !!(offset % 8) > t->size)
		return BAD_MEMBER(env, t, m, "Member bits_offset exceeds its struct size");
	btf_env_log_member(env, t, m, NULL);
	return 0;
}

static int meta_struct(struct btf_env *env, const struct btf_type *t)
{
	const struct btf_member *m = btf_members(t);
	u32 i, last_offset = 0;
	int err;

	if (!name_missing_or_good(env, t->name_off))
		return BAD(env, t, "Invalid name");
	btf_env_log_type(env, t, NULL);
	for (i = 0; i < btf_vlen(t); i++, m++) {
		err = meta_member(env, t, m, last_offset);
		if (err)
			return err;
		last_offset = btf_member_bit_offset(t, m);
	}
	return 0;
}

static void details_sized(struct btf_env *env, const struct btf_type *t)
{
	btf_env_log(env, "size=%u vlen=%u", t->size, btf_vlen(t));
}

/* The checks on one enumerator's name; the same for both widths. */
static int meta_enumerator_name(struct btf_env *env, const struct btf_type *t, u32 name_off)
{
	if (!btf_name_offset_ok(env->btf, name_off)) {
		btf_env_log(env, "\tInvalid name_offset:%u", name_off);
		return -EINVAL;
	}
	if (!name_off || !btf_name_is_identifier(env->btf, name_off))
		return BAD(env, t, "Invalid name");
	return 0;
}

static int meta_enum_head(struct btf_env *env, const struct btf_type *t)
{
	if (t->size > 8 || !is_pow2(t->size))
		return BAD(env, t, "Unexpected size");
	if (!name_missing_or_good(env, t->name_off))
		return BAD(env, t, "Invalid name");
	return accept(env, t);
}

static int meta_enum(struct btf_env *env, const struct btf_type *t)
{
	const struct btf_enum *e = btf_enum(t);
	int err = meta_enum_head(env, t);
	u32 i;

	for (i = 0; !err && i < btf_vlen(t); i++, e++) {
		err = meta_enumerator_name(env, t, e->name_off);
		if (!err && btf_log_verbose(env->log))
			btf_env_log(env, btf_kflag(t) ? "\t%s val=%d\n" : "\t%s val=%u\n",
				    btf_name_for_log(env->btf, e->name_off), e->val);
	}
	return err;
}

static int meta_enum64(struct btf_env *env, const struct btf_type *t)
{
	const struct btf_enum64 *e = btf_enum64(t);
	int err = meta_enum_head(env, t);
	u32 i;

	for (i = 0; !err && i < btf_vlen(t); i++, e++) {
		err = meta_enumerator_name(env, t, e->name_off);
		if (!err && btf_log_verbose(env->log))
			btf_env_log(env, btf_kflag(t) ? "\t%s val=%lld\n" : "\t%s val=%llu\n",
				    btf_name_for_log(env->btf, e->name_off),
				    (unsigned long long)e->val_lo32 |
					    (unsigned long long)e->val_hi32 << 32);
	}
	return err;
}

static int meta_func_proto(struct btf_env *env, const struct btf_type *t)
{
	int err;

	if (t->name_off)
		return BAD(env, t, "Invalid name");
	err = check_no_kflag(env, t);
	return err ? err : accept(env, t);
}

static void details_func_proto(struct btf_env *env, const struct btf_type *t)
{
	const struct btf_param *p = btf_params(t);
	u32 i, n = btf_vlen(t);

	btf_env_log(env, "return=%u args=(", t->type);
	if (!n)
		btf_env_log(env, "void");
	for (i = 0; i < n; i++) {
		/* Only the last one can stand for "...", but the log is written before that is
		 * checked. */
		if (i == n - 1 && !p[i].type)
			btf_env_log(env, "%svararg", i ? ", " : "");
		else
			btf_env_log(env, "%s%u %s", i ? ", " : "", p[i].type,
				    btf_name_for_log(env->btf, p[i].name_off));
	}
	btf_env_log(env, ")");
}

static int meta_func(struct btf_env *env, const struct btf_type *t)
{
	int err;

	if (!has_identifier(env, t))
		return BAD(env, t, "Invalid name");
	if (btf_vlen(t) > BTF_FUNC_GLOBAL)
		return BAD(env, t, "Invalid func linkage");
	err = check_no_kflag(env, t);
	return err ? err : accept(env, t);
}

static int meta_var(struct btf_env *env, const struct btf_type *t)
{
	int err = check_no_vlen(env, t);

	if (!err)
		err = check_no_kflag(env, t);
	if (err)
		return err;
	if (!has_identifier(env, t))
		return BAD(env, t, "Invalid name");
	if (!t->type || t->type > BTF_MAX_TYPE)
		return BAD(env, t, "Invalid type_id");
	if (btf_var(t)->linkage > BTF_VAR_GLOBAL_ALLOCATED)
		return BAD(env, t, "Linkage not supported");
	return accept(env, t);
}

static void details_var(struct btf_env *env, const struct btf_type *t)
{
	btf_env_log(env, "type_id=%u linkage=%u", t->type, btf_var(t)->linkage);
}

#define BAD_VSI(env, t, v, ...) (btf_env_log_vsi(env, t, v, __VA_ARGS__), -EINVAL)

static int meta_vsi(struct btf_env *env, const struct btf_type *t, const struct btf_var_secinfo *v,
		    u64 *end)
{
	if (!v->type || v->type > BTF_MAX_TYPE)
		return BAD_VSI(env, t, v, "Invalid type_id");
	if (v->offset < *end || v->offset >= t->size)
		return BAD_VSI(env, t, v, "Invalid offset");
	if (!v->size || v->size > t->size)
		return BAD_VSI(env, t, v, "Invalid size");
	*end = (u64)v->offset + v->size;
	if (*end > t->size)
		return BAD_VSI(env, t, v, "Invalid offset+size");
	btf_env_log_vsi(env, t, v, NULL);
	return 0;
}

static int meta_datasec(struct btf_env *env, const struct btf_type *t)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(t);
	u64 end = 0;
	int err;
	u32 i;

	if (!t->size)
		return BAD(env, t, "size == 0");
	err = check_no_kflag(env, t);
	if (err)
		return err;
	if (!t->name_off || !btf_name_is_section(env->btf, t->name_off))
		return BAD(env, t, "Invalid name");
	btf_env_log_type(env, t, NULL);
	/* The variables do not overlap and end inside, so their sizes cannot add up to more than
	 * the section's. */
	for (i = 0; !err && i < btf_vlen(t); i++)
		err = meta_vsi(env, t, v + i, &end);
	return err;
}

static int meta_float(struct btf_env *env, const struct btf_type *t)
{
	int err = check_no_vlen(env, t);

	if (!err)
		err = check_no_kflag(env, t);
	if (err)
		return err;
	if (t->size != 2 && t->size != 4 && t->size != 8 && t->size != 12 && t->size != 16)
		return BAD(env, t, "Invalid type_size");
	return accept(env, t);
}

static void details_float(struct btf_env *env, const struct btf_type *t)
{
	btf_env_log(env, "size=%u", t->size);
}

static int meta_decl_tag(struct btf_env *env, const struct btf_type *t)
{
	const char *text = btf_name_by_offset(env->btf, t->name_off);
	int err;

	if (!text || !text[0])
		return BAD(env, t, "Invalid value");
	err = check_no_vlen(env, t);
	if (err)
		return err;
	if (btf_decl_tag(t)->component_idx < -1)
		return BAD(env, t, "Invalid component_idx");
	return accept(env, t);
}

static void details_decl_tag(struct btf_env *env, const struct btf_type *t)
{
	btf_env_log(env, "type=%u component_idx=%d", t->type, btf_decl_tag(t)->component_idx);
}

#define ROW_REF(text, resolve_step)                                                                \
	{                                                                                          \
		.name = text, .check_meta = meta_ref, .resolve = resolve_step,                     \
		.check_member = btf_member_check_modifier, .log_details = details_ref,             \
	}

const struct btf_kind_ops btf_kinds[NR_BTF_KINDS] = {
	[BTF_KIND_UNKN] = {.name = "UNKNOWN", .check_member = btf_member_check_none},
	[BTF_KIND_INT] = {.name = "INT",
			  .fixed_size = 4,
			  .check_meta = meta_int,
			  .has_size = true,
			  .check_member = btf_member_check_int,
			  .log_details = details_int},
	[BTF_KIND_PTR] = {.name = "PTR",
			  .check_meta = meta_ref,
			  .resolve = btf_resolve_ptr,
			  .check_member = btf_member_check_ptr,
			  .log_details = details_ref},
	[BTF_KIND_ARRAY] = {.name = "ARRAY",
			    .fixed_size = sizeof(struct btf_array),
			    .check_meta = meta_array,
			    .resolve = btf_resolve_array,
			    .check_member = btf_member_check_array,
			    .log_details = details_array},
	[BTF_KIND_STRUCT] = {.name = "STRUCT",
			     .entry_size = sizeof(struct btf_member),
			     .check_meta = meta_struct,
			     .resolve = btf_resolve_struct,
			     .has_size = true,
			     .check_member = btf_member_check_struct,
			     .log_details = details_sized},
	[BTF_KIND_UNION] = {.name = "UNION",
			    .entry_size = sizeof(struct btf_member),
			    .check_meta = meta_struct,
			    .resolve = btf_resolve_struct,
			    .has_size = true,
			    .check_member = btf_member_check_struct,
			    .log_details = details_sized},
	[BTF_KIND_ENUM] = {.name = "ENUM",
			   .entry_size = sizeof(struct btf_enum),
			   .has_size = true,
			   .check_meta = meta_enum,
			   .check_member = btf_member_check_enum,
			   .log_details = details_sized},
	[BTF_KIND_FWD] = {.name = "FWD",
			  .check_meta = meta_fwd,
			  .log_details = details_fwd,
			  .check_member = btf_member_check_none},
	[BTF_KIND_TYPEDEF] = ROW_REF("TYPEDEF", btf_resolve_modifier),
	[BTF_KIND_VOLATILE] = ROW_REF("VOLATILE", btf_resolve_modifier),
	[BTF_KIND_CONST] = ROW_REF("CONST", btf_resolve_modifier),
	[BTF_KIND_RESTRICT] = ROW_REF("RESTRICT", btf_resolve_modifier),
	[BTF_KIND_FUNC] = {.name = "FUNC",
			   .check_meta = meta_func,
			   .resolve = btf_resolve_func,
			   .check_member = btf_member_check_none,
			   .log_details = details_ref},
	[BTF_KIND_FUNC_PROTO] = {.name = "FUNC_PROTO",
				 .entry_size = sizeof(struct btf_param),
				 .check_meta = meta_func_proto,
				 .check_member = btf_member_check_none,
				 .log_details = details_func_proto},
	[BTF_KIND_VAR] = {.name = "VAR",
			  .fixed_size = sizeof(struct btf_var),
			  .check_meta = meta_var,
			  .resolve = btf_resolve_var,
			  .check_member = btf_member_check_none,
			  .log_details = details_var},
	[BTF_KIND_DATASEC] = {.name = "DATASEC",
			      .entry_size = sizeof(struct btf_var_secinfo),
			      .check_meta = meta_datasec,
			      .resolve = btf_resolve_datasec,
			      .has_size = true,
			      .check_member = btf_member_check_none,
			      .log_details = details_sized},
	[BTF_KIND_FLOAT] = {.name = "FLOAT",
			    .check_meta = meta_float,
			    .has_size = true,
			    .check_member = btf_member_check_float,
			    .log_details = details_float},
	[BTF_KIND_DECL_TAG] = {.name = "DECL_TAG",
			       .fixed_size = sizeof(struct btf_decl_tag),
			       .check_meta = meta_decl_tag,
			       .resolve = btf_resolve_decl_tag,
			       .check_member = btf_member_check_none,
			       .log_details = details_decl_tag},
	[BTF_KIND_TYPE_TAG] = ROW_REF("TYPE_TAG", btf_resolve_modifier),
	[BTF_KIND_ENUM64] = {.name = "ENUM64",
			     .entry_size = sizeof(struct btf_enum64),
			     .has_size = true,
			     .check_meta = meta_enum64,
			     .check_member = btf_member_check_enum,
			     .log_details = details_sized},
};
