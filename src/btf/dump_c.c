// SPDX-License-Identifier: BSD-2-Clause
/*
 * BTF as a C header.
 *
 * Order: all struct and union tags are announced, all enums defined; then each definition after
 * those it needs. A struct needs what it holds by value to be complete and every typedef it names
 * to be declared; a typedef needs the typedefs it names, and complete types only below an array. A
 * type's needs are found by walking its declarators down to names (anonymous structs are part of
 * the declarator). The order is a depth-first search with a stack on the heap: chains in a BTF can
 * be a million long.
 */
#include "btf/dump_c.h"

#include <errno.h>
#include <stdlib.h>

#include "btf/dump_int.h"

/* What can be needed of a type; two nodes an id. */
enum need {
	NEED_DECLARED, /* the typedef's name */
	NEED_COMPLETE, /* the size */
};

enum node_state {
	NODE_NEW,
	NODE_OPEN,
	NODE_DONE,
};

struct u32_vec {
	u32 *v;
	size_t len, cap;
};

struct order_frame {
	u32 node;
	size_t deps_end; /* needs not looked at yet: deps[..deps_end) above the frame below's */
	size_t deps_begin;
};

struct order {
	struct dump *d;
	u8 *state;	     /* by node */
	struct u32_vec deps; /* needs of all open frames */
	struct u32_vec todo; /* types still to walk for the needs of one node */
	struct order_frame *stack;
	size_t depth, cap;
	u64 budget; /* steps; anonymous structs nested in each other can be reached in exponentially
		       many ways */
};

static u32 node_of(u32 id, enum need need)
{
	return 2 * id + need;
}

static int vec_push(struct u32_vec *v, u32 x)
{
	u32 *bigger;

	if (v->len == v->cap) {
		v->cap = v->cap ? 2 * v->cap : 256;
		bigger = realloc(v->v, v->cap * sizeof(*v->v));
		if (!bigger)
			return -ENOMEM;
		v->v = bigger;
	}
	v->v[v->len++] = x;
	return 0;
}

static bool is_named_struct(const struct btf_type *t)
{
	return btf_is_struct_or_union(t) && t->name_off;
}

/* Adds the needs of a prototype's return type and arguments: names only. */
static int walk_proto(struct order *o, const struct btf_type *t)
{
	u32 i;
	int err = vec_push(&o->todo, node_of(t->type, NEED_DECLARED));

	for (i = 0; !err && i < btf_vlen(t); i++)
		err = vec_push(&o->todo, node_of(btf_params(t)[i].type, NEED_DECLARED));
	return err;
}

static int walk_members(struct order *o, const struct btf_type *t)
{
	u32 i;
	int err = 0;

	for (i = 0; !err && i < btf_vlen(t); i++)
		err = vec_push(&o->todo, node_of(btf_members(t)[i].type, NEED_COMPLETE));
	return err;
}

/* One type of a declarator: what it needs goes to deps, where it leads to todo. */
static int walk_type(struct order *o, u32 id, enum need need)
{
	const struct btf_type *t = btf_type_at(o->d->btf, id);
	int err;

	if (!o->budget--)
		return -E2BIG;
	switch (btf_kind(t)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		/* An anonymous one is written in place, so it must be complete even behind a
		 * pointer. */
		if (is_named_struct(t) && need == NEED_DECLARED)
			return 0;
		return vec_push(&o->deps, node_of(id, NEED_COMPLETE));
	case BTF_KIND_TYPEDEF:
		err = vec_push(&o->deps, node_of(id, NEED_DECLARED));
		return err || need == NEED_DECLARED
			       ? err
			       : vec_push(&o->deps, node_of(id, NEED_COMPLETE));
	case BTF_KIND_PTR:
		return vec_push(&o->todo, node_of(t->type, NEED_DECLARED));
	case BTF_KIND_ARRAY:
		return vec_push(&o->todo, node_of(btf_array(t)->type, NEED_COMPLETE));
	case BTF_KIND_FUNC_PROTO:
		return walk_proto(o, t);
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return vec_push(&o->todo, node_of(t->type, need));
	}
	return 0;
}

static int find_needs(struct order *o, u32 node)
{
	u32 id = node / 2, next;
	const struct btf_type *t = btf_type_at(o->d->btf, id);
	int err;

	o->todo.len = 0;
	if (btf_is_struct_or_union(t))
		err = walk_members(o, t);
	else
		err = vec_push(&o->todo, node_of(t->type, node % 2));
	while (!err && o->todo.len) {
		next = o->todo.v[--o->todo.len];
		err = walk_type(o, next / 2, next % 2);
	}
	return err;
}

static int open_node(struct order *o, u32 node)
{
	struct order_frame *bigger;
	size_t begin = o->deps.len;
	int err;

	if (o->depth == o->cap) {
		o->cap = o->cap ? 2 * o->cap : 64;
		bigger = realloc(o->stack, o->cap * sizeof(*o->stack));
		if (!bigger)
			return -ENOMEM;
		o->stack = bigger;
	}
	o->state[node] = NODE_OPEN;
	err = find_needs(o, node);
	o->stack[o->depth++] = (struct order_frame){node, o->deps.len, begin};
	return err;
}

/* All that the node needs is written: now itself. */
static void close_node(struct order *o, u32 node)
{
	struct dump *d = o->d;
	u32 id = node / 2;
	const struct btf_type *t = btf_type_at(d->btf, id);

	o->state[node] = NODE_DONE;
	if (d->out->len > d->max_text)
		d->err = -E2BIG;
	if (btf_is_struct_or_union(t))
		btf_dump_compute_layout(d, id);
	if (d->quiet)
		return;
	if (is_named_struct(t)) {
		btf_dump_struct(d, id, 0);
		strbuf_puts(d->out, ";\n\n");
	} else if (btf_kind(t) == BTF_KIND_TYPEDEF && node % 2 == NEED_DECLARED) {
		strbuf_puts(d->out, "typedef ");
		btf_dump_decl(d, t->type, btf_dump_name_of(d, id), 0);
		strbuf_puts(d->out, ";\n\n");
	}
}

/* Writes the node after everything it needs. -EINVAL: types that need each other, which C cannot
 * have. */
static int order_from(struct order *o, u32 node)
{
	int err = 0;

	if (o->state[node] == NODE_NEW)
		err = open_node(o, node);
	while (!err && o->depth) {
		struct order_frame *f = &o->stack[o->depth - 1];

		if (f->deps_end > f->deps_begin) {
			u32 need = o->deps.v[--f->deps_end];

			if (o->state[need] == NODE_OPEN)
				return -EINVAL;
			if (o->state[need] == NODE_NEW) {
				o->deps.len = f->deps_end;
				err = open_node(o, need);
			}
			continue;
		}
		o->deps.len = f->deps_begin;
		o->depth--;
		close_node(o, f->node);
		err = o->d->err;
	}
	return err;
}

/* Integers and floats C has no name for: bytes, or a standard type of that size. */
static void put_scalar(struct dump *d, u32 id)
{
	static const char *const names[] = {"char", "short", "int", "long long", "__int128"};
	const struct btf_type *t = btf_type_at(d->btf, id);
	bool is_signed =
		btf_kind(t) == BTF_KIND_INT && (BTF_INT_ENCODING(btf_int_data(t)) & BTF_INT_SIGNED);

	if (btf_dump_builtin_name(d->btf, t))
		return;
	if (btf_kind(t) == BTF_KIND_FLOAT && (t->size == 4 || t->size == 8))
		strbuf_printf(d->out, "typedef %s %s;\n", t->size == 4 ? "float" : "double",
			      btf_dump_name_of(d, id));
	else if (btf_kind(t) == BTF_KIND_INT && is_pow2(t->size) && t->size <= 16)
		strbuf_printf(d->out, "typedef %s %s %s;\n", is_signed ? "signed" : "unsigned",
			      names[__builtin_ctz(t->size)], btf_dump_name_of(d, id));
	else
		strbuf_printf(d->out, "typedef struct { unsigned char bytes[%u]; } %s;\n", t->size,
			      btf_dump_name_of(d, id));
}

/* Announcements, scalars and enums: what needs nothing. */
static void put_plain(struct dump *d, u32 id)
{
	const struct btf_type *t = btf_type_at(d->btf, id);

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
		put_scalar(d, id);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		if (t->name_off)
			strbuf_printf(d->out, "%s %s;\n",
				      btf_kind(t) == BTF_KIND_UNION ? "union" : "struct",
				      btf_dump_name_of(d, id));
		break;
	case BTF_KIND_FWD:
		strbuf_printf(d->out, "%s %s;\n", btf_kflag(t) ? "union" : "struct",
			      btf_dump_name_of(d, id));
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		if (t->name_off) {
			btf_dump_enum(d, id, 0);
			strbuf_puts(d->out, ";\n\n");
		}
		break;
	}
}

/* Marks what other types refer to, so that anonymous enums nobody refers to can be written for
 * their constants. */
static int mark_referenced(const struct btf *btf, u8 *referenced)
{
	u32 id, i;

	for (id = 1; id < btf_nr_types(btf); id++) {
		const struct btf_type *t = btf_type_at(btf, id);

		if (btf_is_struct_or_union(t))
			for (i = 0; i < btf_vlen(t); i++)
				referenced[btf_members(t)[i].type] = 1;
		else if (btf_kind(t) == BTF_KIND_ARRAY)
			referenced[btf_array(t)->type] = 1;
		else if (btf_kind(t) == BTF_KIND_PTR || btf_is_modifier(t))
			referenced[t->type] = 1;
	}
	return 0;
}

static int dump_init(struct dump *d, struct order *o, const struct btf *btf, struct strbuf *out)
{
	u32 nr = btf_nr_types(btf), size;

	*d = (struct dump){.btf = btf, .out = out};
	*o = (struct order){.d = d, .budget = 64u << 20};
	btf_raw_data(btf, &size);
	d->max_text = out->len + 8 * (size_t)size + (1 << 20);
	o->state = calloc(nr, 2);
	d->layout = calloc(nr, sizeof(*d->layout));
	if (!o->state || !d->layout)
		return -ENOMEM;
	return btf_dump_names_init(d);
}

static void dump_fini(struct dump *d, struct order *o)
{
	btf_dump_names_fini(d);
	free(d->layout);
	free(o->state);
	free(o->deps.v);
	free(o->todo.v);
	free(o->stack);
}

static int dump_all(struct dump *d, struct order *o)
{
	u32 nr = btf_nr_types(d->btf), id;
	u8 *referenced = calloc(nr, 1);
	int err = 0;

	if (!referenced)
		return -ENOMEM;
	mark_referenced(d->btf, referenced);
	for (id = 1; id < nr; id++) {
		put_plain(d, id);
		if (btf_is_enum_any(btf_type_at(d->btf, id)) && !d->name[id] && !referenced[id]) {
			btf_dump_enum(d, id, 0);
			strbuf_puts(d->out, ";\n\n");
		}
	}
	free(referenced);
	strbuf_putc(d->out, '\n');
	for (id = 1; !err && id < nr; id++) {
		const struct btf_type *t = btf_type_at(d->btf, id);

		if (is_named_struct(t))
			err = order_from(o, node_of(id, NEED_COMPLETE));
		else if (btf_kind(t) == BTF_KIND_TYPEDEF)
			err = order_from(o, node_of(id, NEED_DECLARED));
	}
	return err ? err : d->err;
}

int btf_dump_c(const struct btf *btf, struct strbuf *out)
{
	struct dump d;
	struct order o;
	int err = dump_init(&d, &o, btf, out);

	if (!err)
		err = dump_all(&d, &o);
	if (!err && strbuf_failed(out))
		err = -ENOMEM;
	dump_fini(&d, &o);
	return err;
}

int btf_dump_c_type(const struct btf *btf, u32 id, struct strbuf *out)
{
	const struct btf_type *t = btf_type_at(btf, id);
	struct dump d;
	struct order o;
	int err;

	if (!id || !t)
		return -EINVAL;
	err = dump_init(&d, &o, btf, out);
	d.quiet = true;
	if (!err && (btf_is_struct_or_union(t) || btf_kind(t) == BTF_KIND_TYPEDEF))
		err = order_from(&o, node_of(id, NEED_COMPLETE));
	if (!err) {
		if (btf_is_struct_or_union(t)) {
			btf_dump_struct(&d, id, 0);
		} else if (btf_is_enum_any(t)) {
			btf_dump_enum(&d, id, 0);
		} else if (btf_kind(t) == BTF_KIND_TYPEDEF) {
			strbuf_puts(out, "typedef ");
			btf_dump_decl(&d, t->type, btf_dump_name_of(&d, id), 0);
		} else {
			btf_dump_decl(&d, id, "", 0);
		}
		strbuf_puts(out, ";\n");
		err = d.err;
	}
	if (!err && strbuf_failed(out))
		err = -ENOMEM;
	dump_fini(&d, &o);
	return err;
}
