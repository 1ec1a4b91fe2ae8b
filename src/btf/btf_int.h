/* SPDX-License-Identifier: BSD-2-Clause */
/* The body of struct btf and what the files of this folder share. */
#ifndef INLAY_BTF_BTF_INT_H
#define INLAY_BTF_BTF_INT_H

#include "btf/btf.h"

/* Linux's MAX_RESOLVE_DEPTH: how many types may be open at once while references are followed. */
#define BTF_MAX_DEPTH 32
#define BTF_MAX_IDENT 512 /* KSYM_NAME_LEN: longest identifier, with its NUL */
#define BTF_PTR_SIZE  8

/* A DECL_TAG, sorted by (target, component, id) so that a type's tags are found without a scan. */
struct btf_tag_ref {
	u32 target;
	s32 component;
	u32 id;
};

/* A slot of the name table. */
struct btf_name_ref {
	u32 id;	  /* 0: free */
	u32 hash; /* upper half; the lower one chose the slot */
};

struct btf {
	u32 refs; /* atomic */
	struct btf *base;
	u32 start_id;  /* id of types[0]: 0 (void) without a base */
	u32 start_str; /* string offset of strings[0]: 0 without a base */
	u8 *buf; /* owned; data lies in it so that the part behind the header is aligned to 4 */
	const u8 *data;
	u32 size;			 /* bytes of data */
	const u8 *body;			 /* data behind the header */
	u32 type_off, type_len, str_off; /* in body */
	const char *strings;
	u32 str_len;
	const struct btf_type **types;
	u32 nr_own, cap_types;
	u32 *resolved_id;   /* index as types; what a modifier, pointer, array, ... ends at */
	u32 *resolved_size; /* arrays: bytes; others 0 */
	struct btf_name_ref *names; /* open-addressed table by (name, kind) */
	u32 names_mask;
	u64 names_seed;
	struct btf_tag_ref *tags;
	u32 nr_tags;
};

/* What parsing needs besides the result. */
enum btf_phase {
	BTF_PHASE_META, /* each type alone */
	BTF_PHASE_TYPE, /* types referring to others */
};

enum btf_mode {
	BTF_MODE_TBD,	 /* nothing seen yet that decides */
	BTF_MODE_PTR,	 /* below a pointer: structs and arrays need not be finished */
	BTF_MODE_STRUCT, /* below a struct or array: pointers need not */
};

struct btf_frame {
	const struct btf_type *t;
	u32 id;
	u32 next_member;
};

struct btf_env {
	struct btf *btf;
	struct btf_log *log;
	enum btf_phase phase;
	enum btf_mode mode;
	u32 log_id;  /* the "[id]" of the next log line */
	u8 *visited; /* enum btf_visit by own index */
	struct btf_frame stack[BTF_MAX_DEPTH];
	u32 depth;
};

/* One row a kind: see kinds.c. */
struct btf_kind_ops {
	const char *name;
	u32 entry_size; /* bytes of each of the vlen entries behind the type */
	u32 fixed_size; /* bytes behind the type whatever vlen is */
	/*
	 * checks a type by itself, its tail already known to be there; 0 or -errno. Logs the type.
	 */
	int (*check_meta)(struct btf_env *env, const struct btf_type *t);
	/* one step of following references: pushes a frame or finishes the top one; NULL: nothing
	 * to follow */
	int (*resolve)(struct btf_env *env, struct btf_frame *f);
	/* whether m, which is of this kind, fits into the struct; kflag: offset holds bit field
	 * size too */
	int (*check_member)(struct btf_env *env, const struct btf_type *s,
			    const struct btf_member *m, const struct btf_type *mt, bool kflag);
	void (*log_details)(struct btf_env *env, const struct btf_type *t);
	bool has_size; /* t->size is the object's size */
};

extern const struct btf_kind_ops btf_kinds[NR_BTF_KINDS];

/* kinds whose row has a resolve step, in resolve.c */
int btf_resolve_modifier(struct btf_env *env, struct btf_frame *f);
int btf_resolve_ptr(struct btf_env *env, struct btf_frame *f);
int btf_resolve_array(struct btf_env *env, struct btf_frame *f);
int btf_resolve_struct(struct btf_env *env, struct btf_frame *f);
int btf_resolve_func(struct btf_env *env, struct btf_frame *f);
int btf_resolve_var(struct btf_env *env, struct btf_frame *f);
int btf_resolve_datasec(struct btf_env *env, struct btf_frame *f);
int btf_resolve_decl_tag(struct btf_env *env, struct btf_frame *f);
int btf_resolve_all(struct btf_env *env);

/* members, in member.c */
int btf_member_check_int(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			 const struct btf_type *mt, bool kflag);
int btf_member_check_enum(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			  const struct btf_type *mt, bool kflag);
int btf_member_check_ptr(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			 const struct btf_type *mt, bool kflag);
int btf_member_check_struct(struct btf_env *env, const struct btf_type *s,
			    const struct btf_member *m, const struct btf_type *mt, bool kflag);
int btf_member_check_array(struct btf_env *env, const struct btf_type *s,
			   const struct btf_member *m, const struct btf_type *mt, bool kflag);
int btf_member_check_modifier(struct btf_env *env, const struct btf_type *s,
			      const struct btf_member *m, const struct btf_type *mt, bool kflag);
int btf_member_check_float(struct btf_env *env, const struct btf_type *s,
			   const struct btf_member *m, const struct btf_type *mt, bool kflag);
int btf_member_check_none(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			  const struct btf_type *mt, bool kflag);

/* names, in names.c */
bool btf_name_offset_ok(const struct btf *btf, u32 offset);
bool btf_name_is_identifier(const struct btf *btf, u32 offset);
bool btf_name_is_section(const struct btf *btf, u32 offset);
/* As the log prints it: "(anon)", "(invalid-name-offset)". */
const char *btf_name_for_log(const struct btf *btf, u32 offset);
int btf_index_build(struct btf *btf); /* name table and tag table */
/*
 * Text of the decl tag of target that begins with prefix, behind it; NULL: none, or more than one.
 */
const char *btf_tag_value(const struct btf *btf, u32 target, s32 component, const char *prefix);

/* log, in parselog.c; quiet lines are those BTF_LOG_ERRORS leaves out */
bool btf_log_wanted(const struct btf_log *log);
bool btf_log_verbose(const struct btf_log *log);
void btf_env_log(struct btf_env *env, const char *fmt, ...) __printf_like(2, 3);
/* "[id] KIND name details fmt...\n"; basic: without the details. fmt NULL: the type itself. */
void btf_env_log_type(struct btf_env *env, const struct btf_type *t, const char *fmt, ...)
	__printf_like(3, 4);
void btf_env_log_basic(struct btf_env *env, const struct btf_type *t, const char *fmt, ...)
	__printf_like(3, 4);
void btf_env_log_member(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			const char *fmt, ...) __printf_like(4, 5);
void btf_env_log_vsi(struct btf_env *env, const struct btf_type *s, const struct btf_var_secinfo *v,
		     const char *fmt, ...) __printf_like(4, 5);

/* int with a whole number of bytes, power of two, no offset */
bool btf_int_is_regular(const struct btf_type *t);
/* void, forward declaration, function, prototype, tag, or none */
bool btf_has_no_size(const struct btf_type *t);
/*
 * The sized type behind *id (which moves there) and its bytes; NULL: it has none. During parsing
 * right only for what is resolved already.
 */
const struct btf_type *btf_id_size(const struct btf *btf, u32 *id, u32 *ret_size);
u32 btf_resolved_id(const struct btf *btf, u32 id);

/* Special fields of all structs of a BTF just parsed, as BTF_LOAD checks them; in fields.c. 0 or
 * -errno. */
int btf_check_struct_fields(const struct btf *btf);

#endif
