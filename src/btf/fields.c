// SPDX-License-Identifier: BSD-2-Clause
/*
 * Special fields of map values and of program structs.
 *
 * A field is found by the name of its struct type ("bpf_spin_lock") or, for pointers, by a type tag
 * ("kptr"). The search goes into nested structs and arrays; an array repeats what its element
 * holds, which only pointers, lists and trees may be. The depth is bounded by Linux's limit of 32.
 * A tree of empty structs of that depth could still be passed 2^32 times, so a struct found to hold
 * nothing is remembered with its height, and the members looked at have a budget.
 */
#include "btf/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "btf/btf_int.h"

struct field_row {
	enum btf_field_kind kind;
	const char *name; /* of the struct; for pointers the type tag */
	u32 size, align;  /* bytes */
	bool once;	  /* at most one among the members of a struct */
	bool repeatable;  /* may lie in an array */
};

static const struct field_row rows[] = {
	{BTF_FIELD_SPIN_LOCK, "bpf_spin_lock", 4, 4, true, false},
	{BTF_FIELD_RES_SPIN_LOCK, "bpf_res_spin_lock", 4, 4, true, false},
	{BTF_FIELD_TIMER, "bpf_timer", 16, 8, true, false},
	{BTF_FIELD_WORKQUEUE, "bpf_wq", 16, 8, true, false},
	{BTF_FIELD_TASK_WORK, "bpf_task_work", 8, 8, true, false},
	{BTF_FIELD_LIST_HEAD, "bpf_list_head", 16, 8, false, true},
	{BTF_FIELD_LIST_NODE, "bpf_list_node", 24, 8, false, false},
	{BTF_FIELD_RB_ROOT, "bpf_rb_root", 16, 8, false, true},
	{BTF_FIELD_RB_NODE, "bpf_rb_node", 32, 8, false, false},
	{BTF_FIELD_REFCOUNT, "bpf_refcount", 4, 4, false, false},
};

static const struct field_row pointer_rows[] = {
	{BTF_FIELD_KPTR_UNREF, "kptr_untrusted", 8, 8, false, true},
	{BTF_FIELD_KPTR_REF, "kptr", 8, 8, false, true},
	{BTF_FIELD_KPTR_PERCPU, "percpu_kptr", 8, 8, false, true},
	{BTF_FIELD_UPTR, "uptr", 8, 8, false, true},
};

#define POINTER_KINDS (BTF_FIELD_KPTR | BTF_FIELD_UPTR)
#define ROOT_KINDS    (BTF_FIELD_LIST_HEAD | BTF_FIELD_RB_ROOT)
/* What a struct that programs allocate for themselves may hold. */
#define OBJECT_KINDS                                                                               \
	(BTF_FIELD_SPIN_LOCK | BTF_FIELD_RES_SPIN_LOCK | ROOT_KINDS | BTF_FIELD_LIST_NODE |        \
	 BTF_FIELD_RB_NODE | BTF_FIELD_REFCOUNT | BTF_FIELD_KPTR)

#define MEMBER_BUDGET (16u << 20) /* ten times the members of the largest BTF there can be */

struct found {
	struct btf_field field;
	const char *node; /* list head, rb root: name of the node's field in the element */
};

/* Searches of one BTF for one mask; what is found in the type at hand is in out[0..cnt). */
struct search {
	const struct btf *btf;
	u32 mask;
	u32 budget;  /* members that may still be looked at */
	u8 *plain;   /* by id: 0 unknown, else 1 + levels of structs below one that holds nothing
			special */
	u32 deepest; /* level reached since it was last set */
	u32 cnt;
	struct found out[BTF_FIELDS_MAX];
};

static const struct field_row *row_of(enum btf_field_kind kind)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].kind == kind)
			return &rows[i];
	for (i = 0; i < ARRAY_SIZE(pointer_rows); i++)
		if (pointer_rows[i].kind == kind)
			return &pointer_rows[i];
	return NULL;
}

const char *btf_field_name(enum btf_field_kind kind)
{
	const struct field_row *row = row_of(kind);

	return row ? row->name : "";
}

const struct btf_field *btf_fields_find(const struct btf_fields *f, u32 mask)
{
	u32 i;

	for (i = 0; i < f->cnt; i++)
		if (f->field[i].kind & mask)
			return &f->field[i];
	return NULL;
}

static const struct field_row *row_by_name(const char *name, u32 mask)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if ((rows[i].kind & mask) && !strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static int add_field(struct search *s, enum btf_field_kind kind, u32 off, u32 type_id,
		     const char *node)
{
	if (s->cnt == BTF_FIELDS_MAX)
		return -E2BIG;
	s->out[s->cnt++] = (struct found){
		.field = {.kind = kind, .off = off, .size = row_of(kind)->size, .type_id = type_id},
		.node = node,
	};
	return 1;
}

/* Fields first.. were found in one element of size bytes: adds those of the nelems - 1 others. 0 or
 * -errno. */
static int repeat_fields(struct search *s, u32 first, u32 nelems, u32 size)
{
	u32 n = s->cnt - first, i, k;

	if (nelems <= 1 || !n)
		return 0;
	for (i = first; i < s->cnt; i++)
		if (!row_of(s->out[i].field.kind)->repeatable)
			return -EINVAL;
	if ((u64)n * nelems > BTF_FIELDS_MAX - first)
		return -E2BIG;
	for (k = 1; k < nelems; k++) {
		for (i = 0; i < n; i++) {
			s->out[s->cnt] = s->out[first + i];
			s->out[s->cnt++].field.off += k * size;
		}
	}
	return 0;
}

/* A pointer with a type tag. 0: an ordinary one; 1: added; or -errno, also for a tag that is none
 * of these. */
static int find_pointer(struct search *s, const struct btf_type *t, u32 off)
{
	const struct btf *btf = s->btf;
	const char *tag;
	u32 i, id;

	if (btf_kind(t) == BTF_KIND_VOLATILE)
		t = btf_type_at(btf, t->type);
	if (btf_kind(t) != BTF_KIND_PTR)
		return 0;
	t = btf_type_at(btf, t->type);
	if (btf_kind(t) != BTF_KIND_TYPE_TAG || btf_kflag(t))
		return 0;
	if (btf_kind(btf_type_at(btf, t->type)) == BTF_KIND_TYPE_TAG)
		return -EINVAL;
	tag = btf_name_by_offset(btf, t->name_off);
	for (i = 0; i < ARRAY_SIZE(pointer_rows); i++)
		if (!strcmp(tag, pointer_rows[i].name))
			break;
	if (i == ARRAY_SIZE(pointer_rows))
		return -EINVAL;
	if (!(pointer_rows[i].kind & s->mask))
		return 0;
	t = btf_type_skip_modifiers(btf, t->type, &id);
	if (btf_kind(t) != BTF_KIND_STRUCT)
		return -EINVAL;
	return add_field(s, pointer_rows[i].kind, off, id, NULL);
}

/* "contains:STRUCT:FIELD" on a list or tree: which struct it holds. 1 or -errno. */
static int find_root(struct search *s, enum btf_field_kind kind, u32 owner_id, s32 component,
		     u32 off)
{
	const char *what = btf_tag_value(s->btf, owner_id, component, "contains:");
	const char *colon = what ? strchr(what, ':') : NULL;
	char name[BTF_MAX_IDENT + 1];
	s32 id;

	if (!colon || (size_t)(colon - what) >= sizeof(name))
		return -EINVAL;
	memcpy(name, what, colon - what);
	name[colon - what] = '\0';
	id = btf_find_by_name_kind(s->btf, name, BTF_KIND_STRUCT);
	if (id < 0)
		return id;
	return colon[1] ? add_field(s, kind, off, id, colon + 1) : -EINVAL;
}

static int find_in_struct(struct search *s, u32 id, u32 base_off, u32 level);

/* Looks at the members of struct id, which lies at off, below a type of that level. 0 or -errno. */
static int find_nested(struct search *s, u32 id, u32 off, u32 level)
{
	u32 first = s->cnt, deepest = s->deepest;
	int err;

	level++;
	if (level + (s->plain[id] ? s->plain[id] - 1 : 0) >= BTF_MAX_DEPTH)
		return -E2BIG;
	if (s->plain[id]) {
		s->deepest = max_of(deepest, level + s->plain[id] - 1);
		return 0;
	}
	s->deepest = level;
	err = find_in_struct(s, id, off, level);
	if (!err && s->cnt == first)
		s->plain[id] = 1 + s->deepest - level;
	s->deepest = max_of(deepest, s->deepest);
	return err;
}

/* Where a member or variable lies, and what may be said of it. */
struct place {
	u32 owner_id;  /* struct or variable, for its tags */
	s32 component; /* member index; -1: a variable */
	u32 off;       /* in the outermost type; bytes */
	u32 local_off; /* in its struct: what Linux looks at for alignment */
	u32 want_size; /* of a variable; 0: any */
	u32 level;
};

/* Field of a struct type with a special name: 1 added, 0 not one after all, or -errno. */
static int find_named(struct search *s, const struct field_row *row, const struct btf_type *t,
		      const struct place *p)
{
	if (btf_kind(t) != BTF_KIND_STRUCT || t->size != row->size)
		return 0;
	if (row->kind & ROOT_KINDS)
		return find_root(s, row->kind, p->owner_id, p->component, p->off);
	return add_field(s, row->kind, p->off, 0, NULL);
}

/* One member or variable of type id. seen: kinds its struct has had. Adds what it holds; 0 or
 * -errno. */
static int find_one(struct search *s, u32 id, const struct place *p, u32 *seen)
{
	const struct btf_type *t = btf_type_at(s->btf, id);
	const struct field_row *row;
	u32 nelems = 1, first = s->cnt, depth, size;
	int rc = 0;

	for (depth = 0; btf_kind(t) == BTF_KIND_ARRAY; depth++) {
		if (depth == BTF_MAX_DEPTH)
			return -E2BIG;
		nelems *= btf_array(t)->nelems;
		id = btf_array(t)->type;
		t = btf_type_at(s->btf, id);
	}
	if (!nelems)
		return 0;
	row = row_by_name(btf_type_name(s->btf, id), s->mask);
	if (row) {
		if (row->once && (*seen & row->kind))
			return -E2BIG;
		*seen |= row->kind;
	}
	size = row ? row->size : btf_kind(t) == BTF_KIND_STRUCT ? t->size : BTF_PTR_SIZE;
	if (p->want_size && p->want_size != (u64)size * nelems)
		return 0;
	if (!row && btf_kind(t) == BTF_KIND_STRUCT)
		rc = find_nested(s, id, p->off, p->level);
	else if (p->local_off % (row ? row->align : BTF_PTR_SIZE))
		return 0; /* misaligned: not special, as Linux has it */
	else if (row)
		rc = find_named(s, row, t, p);
	else if (s->mask & POINTER_KINDS)
		rc = find_pointer(s, t, p->off);
	return rc < 0 ? rc : repeat_fields(s, first, nelems, size);
}

static int find_in_struct(struct search *s, u32 id, u32 base_off, u32 level)
{
	const struct btf_type *t = btf_type_at(s->btf, id);
	const struct btf_member *m = btf_members(t);
	u32 i, seen = 0, bit;
	int err = 0;

	for (i = 0; !err && i < btf_vlen(t); i++) {
		struct place p = {.owner_id = id, .component = i, .level = level};

		bit = btf_member_bit_offset(t, m + i);
		if (bit % 8)
			return -EINVAL;
		if (!s->budget--)
			return -E2BIG;
		p.local_off = bit / 8;
		p.off = base_off + p.local_off;
		err = find_one(s, m[i].type, &p, &seen);
	}
	return err;
}

static int find_in_datasec(struct search *s, const struct btf_type *t)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(t);
	u32 i, seen = 0;
	int err = 0;

	for (i = 0; !err && i < btf_vlen(t); i++) {
		struct place p = {.owner_id = v[i].type,
				  .component = -1,
				  .off = v[i].offset,
				  .local_off = v[i].offset,
				  .want_size = v[i].size};

		err = find_one(s, btf_type_at(s->btf, v[i].type)->type, &p, &seen);
	}
	return err;
}

/* The node a list or tree hangs its elements on: a field of the element of the right kind. 0 or
 * -errno. */
static int find_node(const struct btf *btf, struct btf_field *f, const char *name)
{
	const struct field_row *row =
		row_of(f->kind == BTF_FIELD_LIST_HEAD ? BTF_FIELD_LIST_NODE : BTF_FIELD_RB_NODE);
	const struct btf_type *t = btf_type_at(btf, f->type_id), *n = NULL;
	const struct btf_member *m = btf_members(t);
	u32 i, bit;

	for (i = 0; i < btf_vlen(t); i++, m++) {
		if (strcmp(name, btf_name_by_offset(btf, m->name_off)))
			continue;
		if (n)
			return -EINVAL;
		n = btf_type_at(btf, m->type);
		bit = btf_member_bit_offset(t, m);
		if (btf_kind(n) != BTF_KIND_STRUCT ||
		    strcmp(btf_type_name(btf, m->type), row->name) || bit % (8 * row->align))
			return -EINVAL;
		f->node_off = bit / 8;
	}
	return n ? 0 : -ENOENT;
}

/* Rules between fields: they lie apart, inside the value, and lists and trees come with a lock. */
static int check_together(struct search *s, u32 value_size)
{
	u32 i, end = 0, kinds = 0;
	int err;

	for (i = 0; i < s->cnt; i++) {
		struct btf_field *f = &s->out[i].field;

		if ((u64)f->off + f->size > value_size)
			return -EFAULT;
		if (f->off < end)
			return -EEXIST;
		end = f->off + f->size;
		kinds |= f->kind;
		err = s->out[i].node ? find_node(s->btf, f, s->out[i].node) : 0;
		if (err)
			return err;
	}
	if ((kinds & BTF_FIELD_SPIN_LOCK) && (kinds & BTF_FIELD_RES_SPIN_LOCK))
		return -EINVAL;
	if ((kinds & ROOT_KINDS) && !(kinds & (BTF_FIELD_SPIN_LOCK | BTF_FIELD_RES_SPIN_LOCK)))
		return -EINVAL;
	if ((kinds & BTF_FIELD_LIST_NODE) && (kinds & BTF_FIELD_RB_NODE) &&
	    !(kinds & BTF_FIELD_REFCOUNT))
		return -EINVAL;
	return 0;
}

static int search_init(struct search *s, const struct btf *btf, u32 mask)
{
	memset(s, 0, sizeof(*s));
	s->btf = btf;
	s->mask = mask;
	s->budget = MEMBER_BUDGET;
	s->plain = calloc(btf_nr_types(btf), 1);
	return s->plain ? 0 : -ENOMEM;
}

static int search_type(struct search *s, u32 type_id, u32 value_size, struct btf_fields *ret)
{
	const struct btf_type *t = btf_type_at(s->btf, type_id);
	u32 i;
	int err;

	s->cnt = 0;
	s->deepest = 0;
	if (t && btf_kind(t) == BTF_KIND_STRUCT)
		err = find_in_struct(s, type_id, 0, 0);
	else if (t && btf_kind(t) == BTF_KIND_DATASEC)
		err = find_in_datasec(s, t);
	else
		return -EINVAL;
	if (!err)
		err = check_together(s, value_size);
	if (err)
		return err;
	memset(ret, 0, sizeof(*ret));
	ret->cnt = s->cnt;
	for (i = 0; i < s->cnt; i++) {
		ret->field[i] = s->out[i].field;
		ret->kinds |= s->out[i].field.kind;
	}
	return 0;
}

int btf_parse_fields(const struct btf *btf, u32 type_id, u32 mask, u32 value_size,
		     struct btf_fields *ret)
{
	struct search s;
	int err = search_init(&s, btf, mask);

	if (!err)
		err = search_type(&s, type_id, value_size, ret);
	free(s.plain);
	return err;
}

/*
 * Marks the types whose being a member makes a struct one that programs can allocate: special
 * structs and kptrs. False: there are none.
 */
static bool find_marks(struct search *s, u8 *marks)
{
	static const u32 kinds = BTF_FIELD_SPIN_LOCK | BTF_FIELD_LIST_HEAD | BTF_FIELD_LIST_NODE |
				 BTF_FIELD_RB_ROOT | BTF_FIELD_RB_NODE | BTF_FIELD_REFCOUNT;
	bool any = false;
	u32 i;
	s32 id;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		id = rows[i].kind & kinds
			     ? btf_find_by_name_kind(s->btf, rows[i].name, BTF_KIND_STRUCT)
			     : 0;
		if (id > 0)
			marks[id] = any = true;
	}
	s->mask = BTF_FIELD_KPTR;
	for (i = 1; i < btf_nr_types(s->btf); i++) {
		s->cnt = 0;
		if (find_pointer(s, btf_type_at(s->btf, i), 0) > 0)
			marks[i] = any = true;
	}
	s->mask = OBJECT_KINDS;
	return any;
}

static bool has_marked_member(const struct btf_type *t, const u8 *marks)
{
	const struct btf_member *m = btf_members(t);
	u32 i;

	for (i = 0; i < btf_vlen(t); i++)
		if (marks[m[i].type])
			return true;
	return false;
}

/*
 * What a list or tree holds must be a struct programs can allocate; and if f's owner is itself an
 * element of one, it must not hold lists or trees again, or elements could own each other. 0,
 * -EFAULT, -ELOOP.
 */
static int check_ownership(struct search *s, const struct btf_fields *f, const u8 *marks)
{
	struct btf_fields elem;
	const struct btf_type *t;
	u32 i;
	int err;

	for (i = 0; i < f->cnt; i++) {
		if (!(f->field[i].kind & ROOT_KINDS))
			continue;
		t = btf_type_at(s->btf, f->field[i].type_id);
		if (!has_marked_member(t, marks))
			return -EFAULT;
		if (!(f->kinds & (BTF_FIELD_LIST_NODE | BTF_FIELD_RB_NODE)))
			continue;
		err = search_type(s, f->field[i].type_id, t->size, &elem);
		if (err)
			return err;
		if (elem.kinds & ROOT_KINDS)
			return -ELOOP;
	}
	return 0;
}

static int check_marked_structs(struct search *s, const u8 *marks)
{
	const struct btf *btf = s->btf;
	const struct btf_type *t;
	struct btf_fields f;
	u32 id;
	int err = 0;

	for (id = max_of(btf->start_id, 1u); !err && id < btf_nr_types(btf); id++) {
		t = btf_type_at(btf, id);
		if (btf_kind(t) != BTF_KIND_STRUCT || !has_marked_member(t, marks))
			continue;
		err = search_type(s, id, t->size, &f);
		/* Such a member that is not special after all, say of the wrong size, is one too
		 * many. */
		if (!err && !f.cnt)
			err = -EFAULT;
	}
	return err;
}

/* The second pass only starts once all structs are known to be good, as in Linux. */
static int check_all_ownership(struct search *s, const u8 *marks)
{
	const struct btf *btf = s->btf;
	const struct btf_type *t;
	struct btf_fields f;
	u32 id;
	int err = 0;

	for (id = max_of(btf->start_id, 1u); !err && id < btf_nr_types(btf); id++) {
		t = btf_type_at(btf, id);
		if (btf_kind(t) != BTF_KIND_STRUCT || !has_marked_member(t, marks))
			continue;
		err = search_type(s, id, t->size, &f);
		if (!err)
			err = check_ownership(s, &f, marks);
	}
	return err;
}

int btf_check_struct_fields(const struct btf *btf)
{
	u8 *marks = calloc(btf_nr_types(btf), 1);
	struct search s;
	int err = marks ? search_init(&s, btf, OBJECT_KINDS) : -ENOMEM;

	if (!err) {
		if (find_marks(&s, marks)) {
			err = check_marked_structs(&s, marks);
			if (!err)
				err = check_all_ownership(&s, marks);
		}
		free(s.plain);
	}
	free(marks);
	return err;
}

static bool is_u32(const struct btf_type *t)
{
	return btf_kind(t) == BTF_KIND_INT && t->size == 4 && btf_int_is_regular(t) &&
	       BTF_INT_BITS(btf_int_data(t)) == 32;
}

/* key is void if none was given. */
static int check_key(const struct btf_map_kv *kv, const struct btf_type *key,
		     const struct btf_type *value)
{
	switch (kv->key_rule) {
	case BTF_KEY_ANY:
		return 0;
	case BTF_KEY_INT_FD:
		return is_u32(key) ? 0 : -EINVAL;
	case BTF_KEY_U32:
		if (btf_kind(key) == BTF_KIND_UNKN && kv->max_entries == 1 &&
		    btf_kind(value) == BTF_KIND_DATASEC)
			return 0;
		return is_u32(key) ? 0 : -EINVAL;
	case BTF_KEY_REFUSED:
		break;
	}
	return -LINUX_ENOTSUPP;
}

int btf_check_map_kv(const struct btf *btf, const struct btf_map_kv *kv,
		     struct btf_fields *ret_fields, int *ret_fields_err)
{
	u32 key_id = kv->key_id, value_id = kv->value_id, size;
	const struct btf_type *key = btf_type_at(btf, 0), *value;
	struct btf_fields found = {};
	int fields_err, err;

	if (key_id) {
		key = btf_id_size(btf, &key_id, &size);
		if (!key || size != kv->key_size)
			return -EINVAL;
	} else if (kv->key_rule == BTF_KEY_ANY) {
		return -EINVAL;
	}
	value = btf_id_size(btf, &value_id, &size);
	if (!value || size != kv->value_size)
		return -EINVAL;
	fields_err = btf_parse_fields(btf, value_id, BTF_FIELDS_MAP, kv->value_size, &found);
	if (fields_err == -ENOMEM)
		return fields_err;
	if (fields_err)
		memset(&found, 0, sizeof(found));
	if (found.cnt && kv->prog_ro_or_wo)
		return -EACCES;
	if (found.kinds & ~kv->allowed_fields)
		return -EOPNOTSUPP;
	err = check_key(kv, key, value);
	if (err)
		return err;
	*ret_fields = found;
	*ret_fields_err = fields_err;
	return 0;
}
