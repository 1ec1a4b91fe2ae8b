/* SPDX-License-Identifier: BSD-2-Clause */
/* What a load at an offset of a kernel struct reads: the question the verifier asks of BTF for
 * PTR_TO_BTF_ID. */
#ifndef INLAY_BTF_WALK_H
#define INLAY_BTF_WALK_H

#include "btf/btf.h"

enum btf_walk_kind {
	BTF_WALK_SCALAR,	/* a number: int, enum, float, bit field, bytes of an int array */
	BTF_WALK_PTR,		/* a whole pointer to the struct type_id */
	BTF_WALK_PTR_UNTRUSTED, /* a whole pointer to something else (int, void, function):
				   read-only untrusted memory */
	BTF_WALK_STRUCT,	/* starts exactly at a nested struct type_id; only btf_struct_walk()
				   answers this */
};

/* flags */
#define BTF_WALK_RCU	   (1u << 0) /* pointer carries the type tag "rcu" */
#define BTF_WALK_USER	   (1u << 1) /* "user" */
#define BTF_WALK_PERCPU	   (1u << 2) /* "percpu" */
#define BTF_WALK_UNTRUSTED (1u << 3) /* reached through a union of several members */

struct btf_walk {
	enum btf_walk_kind kind;
	u32 type_id; /* PTR, STRUCT: the struct or union */
	u32 flags;
	const char *field_name; /* PTR: the member's name ("" if anonymous); NULL otherwise */
};

/*
 * One step: reads size bytes at byte offset off of the struct or union struct_id. 0 with *ret
 * filled; -EACCES or -EINVAL with the kernel's reason in log. flags_in: flags of the steps before
 * (BTF_WALK_UNTRUSTED is inherited), else 0.
 */
int btf_struct_walk(struct btf_log *log, const struct btf *btf, u32 struct_id, u32 off, u32 size,
		    u32 flags_in, struct btf_walk *ret);

/* Walks into nested structs until the answer is SCALAR, PTR or PTR_UNTRUSTED. Errors as
 * btf_struct_walk(). */
int btf_struct_access(struct btf_log *log, const struct btf *btf, u32 struct_id, u32 off, u32 size,
		      struct btf_walk *ret);

/*
 * Whether a pointer to struct id of btf, plus off bytes, can be given where a pointer to need_id of
 * need_btf is wanted: the same type, or the wanted one lies at that offset (as its first member,
 * however deep). strict: only the same type.
 */
bool btf_struct_ids_match(const struct btf *btf, u32 id, u32 off, const struct btf *need_btf,
			  u32 need_id, bool strict);

/* Same type: same id of the same BTF, or of a split BTF's base. */
bool btf_types_same(const struct btf *a, u32 a_id, const struct btf *b, u32 b_id);

/*
 * Whether two types of different BTFs look alike: same kind, name and size, structs compared by
 * name and size only. For matching a program's type against one of the machine's.
 */
bool btf_types_match(const struct btf *a, u32 a_id, const struct btf *b, u32 b_id);

#endif
