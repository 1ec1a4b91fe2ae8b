/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTF: type information of a program or of the (simulated) kernel, parsed from untrusted bytes by
 * the rules of Linux's BTF_LOAD, and asked for names, sizes and members.
 *
 * A struct btf never changes after btf_parse() returned it: every function that takes a const
 * struct btf may be called from any number of threads. Ids are those of bpf(2): 0 is void, a split
 * BTF continues the ids (and the string offsets) of its base. What a query hands out (types, names)
 * lives as long as the struct btf.
 */
#ifndef INLAY_BTF_BTF_H
#define INLAY_BTF_BTF_H

#include <linux/btf.h>

#include "base/strbuf.h"
#include "base/types.h"

struct btf;

/*
 * Where the kernel's text goes. Levels are those of attr->btf_log_level (1: everything Linux
 * prints, header and types included); BTF_LOG_ERRORS leaves only what is wrong. A struct btf_log of
 * NULL, a level of 0 or a buf of NULL: no text.
 */
struct btf_log {
	u32 level;
	struct strbuf *buf; /* borrowed; text is appended, each line ends in '\n' */
	size_t max;	    /* drop what would make buf longer than this many bytes; 0: no limit */
};

#define BTF_LOG_ERRORS 8

/* Appends, as printf would, if the log is wanted. */
void btf_log_printf(struct btf_log *log, const char *fmt, ...) __printf_like(2, 3);

#define BTF_MAX_BYTES (16u << 20) /* Linux's limit on btf_size */

/*
 * Copies data and checks all of it. base: NULL, or the BTF whose ids and strings this one continues
 * (a reference is taken). *ret_btf gets one reference. 0 or -errno as Linux: EINVAL, E2BIG,
 * ENOTSUPP (LINUX_ENOTSUPP), EEXIST, EMSGSIZE, EAGAIN, ENOMEM. The reason is in log.
 */
int btf_parse(const void *data, u32 size, struct btf *base, struct btf_log *log,
	      struct btf **ret_btf);

/* The same for a kernel's own BTF, which need not keep the rules on special fields (locks, lists)
 * that programs' types keep. */
int btf_parse_kernel(const void *data, u32 size, struct btf_log *log, struct btf **ret_btf);

struct btf *btf_get(struct btf *btf); /* returns btf; NULL stays NULL */
void btf_put(struct btf *btf);	      /* takes NULL */

const struct btf *btf_base(const struct btf *btf); /* NULL: not split */

/* The bytes given to btf_parse(), for BPF_OBJ_GET_INFO_BY_FD. */
const void *btf_raw_data(const struct btf *btf, u32 *ret_size);

/* One more than the highest id; void and the base's types included. */
u32 btf_nr_types(const struct btf *btf);

/* NULL: no such id. 0 is void (kind BTF_KIND_UNKN). */
const struct btf_type *btf_type_at(const struct btf *btf, u32 id);

/* The kernel's word for it; inline because libbpf.a has a symbol of this name. */
static inline const struct btf_type *btf_type_by_id(const struct btf *btf, u32 id)
{
	return btf_type_at(btf, id);
}

/* NULL: offset outside the string section. "" for offset 0. */
const char *btf_name_by_offset(const struct btf *btf, u32 offset);

/* Never NULL: "" for a type without a name or an id that is not there. */
const char *btf_type_name(const struct btf *btf, u32 id);

/* "INT", "PTR", ... as the kernel's log writes them; "UNKNOWN" beyond. */
const char *btf_kind_name(u32 kind);

/* Id of the first type with this name and kind (the base first), or -ENOENT. Constant time. */
s32 btf_find_by_name_kind(const struct btf *btf, const char *name, u32 kind);

static inline u32 btf_kind(const struct btf_type *t)
{
	return BTF_INFO_KIND(t->info);
}

static inline u32 btf_vlen(const struct btf_type *t)
{
	return BTF_INFO_VLEN(t->info);
}

static inline bool btf_kflag(const struct btf_type *t)
{
	return BTF_INFO_KFLAG(t->info);
}

static inline bool btf_is_struct_or_union(const struct btf_type *t)
{
	return btf_kind(t) == BTF_KIND_STRUCT || btf_kind(t) == BTF_KIND_UNION;
}

static inline bool btf_is_enum_any(const struct btf_type *t)
{
	return btf_kind(t) == BTF_KIND_ENUM || btf_kind(t) == BTF_KIND_ENUM64;
}

/* typedef, const, volatile, restrict, type tag */
static inline bool btf_is_modifier(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return true;
	}
	return false;
}

/* What follows a struct btf_type; valid for the kind in the name. */
static inline u32 btf_int_data(const struct btf_type *t)
{
	return *(const u32 *)(t + 1);
}

static inline const struct btf_array *btf_array(const struct btf_type *t)
{
	return (const struct btf_array *)(t + 1);
}

static inline const struct btf_member *btf_members(const struct btf_type *t)
{
	return (const struct btf_member *)(t + 1);
}

static inline const struct btf_enum *btf_enum(const struct btf_type *t)
{
	return (const struct btf_enum *)(t + 1);
}

static inline const struct btf_enum64 *btf_enum64(const struct btf_type *t)
{
	return (const struct btf_enum64 *)(t + 1);
}

static inline const struct btf_param *btf_params(const struct btf_type *t)
{
	return (const struct btf_param *)(t + 1);
}

static inline const struct btf_var *btf_var(const struct btf_type *t)
{
	return (const struct btf_var *)(t + 1);
}

static inline const struct btf_var_secinfo *btf_var_secinfos(const struct btf_type *t)
{
	return (const struct btf_var_secinfo *)(t + 1);
}

static inline const struct btf_decl_tag *btf_decl_tag(const struct btf_type *t)
{
	return (const struct btf_decl_tag *)(t + 1);
}

/* Bits from the start of the struct or union t; m is a member of t. */
static inline u32 btf_member_bit_offset(const struct btf_type *t, const struct btf_member *m)
{
	return btf_kflag(t) ? BTF_MEMBER_BIT_OFFSET(m->offset) : m->offset;
}

/* 0: not a bit field (or one of a BTF without kind_flag, described by its INT). */
static inline u32 btf_member_bitfield_size(const struct btf_type *t, const struct btf_member *m)
{
	return btf_kflag(t) ? BTF_MEMBER_BITFIELD_SIZE(m->offset) : 0;
}

/*
 * The type behind typedefs, cv-qualifiers and type tags; NULL: no such id. *ret_id (may be NULL)
 * gets its id. Constant time, however long the chain.
 */
const struct btf_type *btf_type_skip_modifiers(const struct btf *btf, u32 id, u32 *ret_id);

/*
 * Bytes an object of this type takes, through modifiers, variables and arrays (pointers: 8). 0, or
 * -EINVAL for void, functions, forward declarations and ids that are not there. Sizes are known to
 * fit since btf_parse().
 */
int btf_resolve_size(const struct btf *btf, u32 id, u32 *ret_size);

/*
 * The FUNC_PROTO of a FUNC, of a FUNC_PROTO itself, or of a pointer to one (modifiers skipped);
 * NULL: none. btf_vlen() is the number of parameters, btf_params() they are, t->type the return
 * type.
 */
const struct btf_type *btf_func_proto(const struct btf *btf, u32 id);

/*
 * A field by name, members of anonymous structs and unions included, and "a.b" for a member of a
 * member. *ret_off and *ret_size in bytes; either may be NULL. 0; -ENOENT: no struct or union of
 * that name, or no such field; -EINVAL: a bit field, or a field without a size.
 */
int btf_find_field_offset(const struct btf *btf, const char *struct_name, const char *field,
			  u32 *ret_off, u32 *ret_size);
/* The same for a struct or union given by id; also tells the member's type. */
int btf_find_member(const struct btf *btf, u32 struct_id, const char *field, u32 *ret_off,
		    u32 *ret_type_id);

/* Whether the identifier is a DECL_TAG of this text on the type (component -1) or on its member or
 * argument. */
bool btf_has_decl_tag(const struct btf *btf, u32 id, s32 component, const char *tag);

/* What follows prefix in the one DECL_TAG that begins so: 0, -ENOENT (none), -EEXIST (several). */
int btf_find_tag(const struct btf *btf, u32 id, s32 component, const char *prefix, const char **ret_rest);

#endif
