/* SPDX-License-Identifier: BSD-2-Clause */
/* What BTF says of a map's key and value: sizes, and the special fields the engine must know of. */
#ifndef INLAY_BTF_FIELDS_H
#define INLAY_BTF_FIELDS_H

#include "btf/btf.h"

/* Each kind is one bit, so that a set of kinds is a mask. */
enum btf_field_kind {
	BTF_FIELD_SPIN_LOCK = 1 << 0,
	BTF_FIELD_RES_SPIN_LOCK = 1 << 1,
	BTF_FIELD_TIMER = 1 << 2,
	BTF_FIELD_WORKQUEUE = 1 << 3,
	BTF_FIELD_TASK_WORK = 1 << 4,
	BTF_FIELD_KPTR_UNREF = 1 << 5,
	BTF_FIELD_KPTR_REF = 1 << 6,
	BTF_FIELD_KPTR_PERCPU = 1 << 7,
	BTF_FIELD_UPTR = 1 << 8,
	BTF_FIELD_LIST_HEAD = 1 << 9,
	BTF_FIELD_LIST_NODE = 1 << 10,
	BTF_FIELD_RB_ROOT = 1 << 11,
	BTF_FIELD_RB_NODE = 1 << 12,
	BTF_FIELD_REFCOUNT = 1 << 13,
};

#define BTF_FIELD_KPTR (BTF_FIELD_KPTR_UNREF | BTF_FIELD_KPTR_REF | BTF_FIELD_KPTR_PERCPU)
#define BTF_FIELDS_MAP                                                                             \
	(BTF_FIELD_SPIN_LOCK | BTF_FIELD_RES_SPIN_LOCK | BTF_FIELD_TIMER | BTF_FIELD_WORKQUEUE |   \
	 BTF_FIELD_TASK_WORK | BTF_FIELD_KPTR | BTF_FIELD_UPTR | BTF_FIELD_LIST_HEAD |             \
	 BTF_FIELD_RB_ROOT | BTF_FIELD_REFCOUNT)
#define BTF_FIELDS_MAX 11 /* Linux's limit on special fields in one type */

struct btf_field {
	enum btf_field_kind kind;
	u32 off, size; /* bytes */
	u32 type_id;   /* kptr, uptr, list head, rb root: the struct pointed to or held; 0: not a
			  struct */
	u32 node_off;  /* list head, rb root: offset of the node inside that struct */
};

struct btf_fields {
	u32 kinds; /* mask of btf_field_kind found */
	u32 cnt;
	struct btf_field field[BTF_FIELDS_MAX]; /* by offset */
};

/* "bpf_spin_lock", "bpf_timer", "kptr", ... as the kernel's messages write the kind. */
const char *btf_field_name(enum btf_field_kind kind);

/* The first field of the mask, or NULL. */
const struct btf_field *btf_fields_find(const struct btf_fields *f, u32 mask);

/*
 * Finds the special fields (of kinds in mask) of the struct type_id, or of the variables of a
 * DATASEC, nested structs and arrays included. value_size: bytes of the value. ret->cnt may be 0.
 * 0 or -errno as Linux: E2BIG too many, or two of a kind that may be there once; EEXIST fields that
 * overlap; EINVAL badly tagged, or no struct at all; ENOENT a list or tree whose element type is
 * not there.
 */
int btf_parse_fields(const struct btf *btf, u32 type_id, u32 mask, u32 value_size,
		     struct btf_fields *ret);

enum btf_key_rule {
	BTF_KEY_ANY, /* sizes must agree (hash, ...) */
	BTF_KEY_U32, /* an INT of 32 bits, or none with a DATASEC as value and one entry (array) */
	BTF_KEY_INT_FD,	 /* an INT of 32 bits in any case (local storage; per-CPU array) */
	BTF_KEY_REFUSED, /* the map type takes no BTF: -ENOTSUPP */
};

struct btf_map_kv {
	u32 key_id, value_id;	  /* btf_key_type_id, btf_value_type_id; key_id 0: not given */
	u32 key_size, value_size; /* of the map, bytes */
	u32 max_entries;
	enum btf_key_rule key_rule;
	u32 allowed_fields; /* mask of kinds this map type can hold */
	bool prog_ro_or_wo; /* BPF_F_RDONLY_PROG or BPF_F_WRONLY_PROG set */
};

/*
 * The type checks of MAP_CREATE (call it if value_id != 0). 0 or -errno: EINVAL sizes or key type,
 * EACCES special fields in a map restricted for programs, EOPNOTSUPP a field this map type cannot
 * hold, LINUX_ENOTSUPP. *ret_fields_err is what btf_parse_fields() said: Linux creates the map even
 * so, and refuses programs that use the field; ret_fields then has cnt 0.
 */
int btf_check_map_kv(const struct btf *btf, const struct btf_map_kv *kv,
		     struct btf_fields *ret_fields, int *ret_fields_err);

#endif
