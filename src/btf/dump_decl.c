// SPDX-License-Identifier: BSD-2-Clause
/*
 * One declaration or definition in C.
 *
 * A C declarator is read from the name outwards, the BTF chain from the name inwards; so the chain
 * is collected first (pointers, arrays, prototypes, with their qualifiers), then its left halves
 * are written from the base to the name and its right halves back from the name. Anonymous structs
 * and prototypes nest: btf_dump_decl() recurses for those, at most MAX_NEST deep.
 */
#include "btf/dump_int.h"

#include <errno.h>
#include <string.h>

#define MAX_CHAIN 64 /* declarator parts; the kernel's longest have 5 */
#define MAX_NEST  32

#define QUAL_CONST    1
#define QUAL_VOLATILE 2
#define QUAL_RESTRICT 4

struct part {
	const struct btf_type *t;
	u32 quals;
};

struct chain {
	struct part part[MAX_CHAIN]; /* [0] is next to the name */
	u32 len;
	u32 base, base_quals;
};

static void fail(struct dump *d, int err)
{
	if (!d->err)
		d->err = err;
}

static void indent(struct dump *d, u32 depth)
{
	while (depth--)
		strbuf_putc(d->out, '\t');
}

static bool is_declarator(const struct btf_type *t)
{
	u32 kind = btf_kind(t);

	return kind == BTF_KIND_PTR || kind == BTF_KIND_ARRAY || kind == BTF_KIND_FUNC_PROTO;
}

/* Qualifiers go to the next part or the base; those of an array are its elements'. */
static int collect(const struct btf *btf, u32 id, struct chain *c)
{
	const struct btf_type *t = btf_type_at(btf, id);
	u32 quals = 0, links;

	c->len = 0;
	for (links = 0; links < 4 * MAX_CHAIN; links++, t = btf_type_at(btf, id)) {
		switch (btf_kind(t)) {
		case BTF_KIND_CONST:
			quals |= QUAL_CONST;
			break;
		case BTF_KIND_VOLATILE:
			quals |= QUAL_VOLATILE;
			break;
		case BTF_KIND_RESTRICT:
			quals |= QUAL_RESTRICT;
			break;
		case BTF_KIND_TYPE_TAG:
			break;
		default:
			if (!is_declarator(t)) {
				c->base = id;
				c->base_quals = quals;
				return 0;
			}
			if (c->len == MAX_CHAIN)
				return -E2BIG;
			c->part[c->len++] =
				(struct part){t, btf_kind(t) == BTF_KIND_PTR ? quals : 0};
			if (btf_kind(t) != BTF_KIND_ARRAY)
				quals = 0;
		}
		id = btf_kind(t) == BTF_KIND_ARRAY ? btf_array(t)->type : t->type;
	}
	return -E2BIG;
}

static void put_quals(struct dump *d, u32 quals)
{
	if (quals & QUAL_CONST)
		strbuf_puts(d->out, "const ");
	if (quals & QUAL_VOLATILE)
		strbuf_puts(d->out, "volatile ");
	if (quals & QUAL_RESTRICT)
		strbuf_puts(d->out, "restrict ");
}

static void put_enumerators(struct dump *d, const struct btf_type *t, u32 depth)
{
	u32 i, name_off, name;
	s64 val;

	for (i = 0; i < btf_vlen(t) && !d->err; i++) {
		if (btf_kind(t) == BTF_KIND_ENUM) {
			name_off = btf_enum(t)[i].name_off;
			val = btf_kflag(t) ? btf_enum(t)[i].val : (s64)(u32)btf_enum(t)[i].val;
		} else {
			name_off = btf_enum64(t)[i].name_off;
			val = (u64)btf_enum64(t)[i].val_lo32 | (u64)btf_enum64(t)[i].val_hi32 << 32;
		}
		name = btf_dump_unique_name(d, DUMP_ORDINARY, btf_name_by_offset(d->btf, name_off));
		indent(d, depth + 1);
		if (!btf_kflag(t))
			strbuf_printf(d->out, "%s = %lluU%s,\n", d->names.pool.s + name,
				      (unsigned long long)val, (u64)val > U32_MAX ? "LL" : "");
		else if (val ==
			 S64_MIN) /* the literal would be read as minus of what does not fit */
			strbuf_printf(d->out, "%s = -9223372036854775807LL - 1,\n",
				      d->names.pool.s + name);
		else
			strbuf_printf(d->out, "%s = %lld%s,\n", d->names.pool.s + name,
				      (long long)val, val > S32_MAX || val < S32_MIN ? "LL" : "");
	}
}

/* An enum is an int unless told; the mode makes it as wide as the BTF says. */
static const char *enum_mode(const struct btf_type *t)
{
	switch (t->size) {
	case 1:
		return " __attribute__((mode(QI)))";
	case 2:
		return " __attribute__((mode(HI)))";
	case 8:
		return " __attribute__((mode(DI)))";
	}
	return "";
}

void btf_dump_enum(struct dump *d, u32 id, u32 depth)
{
	const struct btf_type *t = btf_type_at(d->btf, id);

	strbuf_printf(d->out, "enum%s%s {\n", d->name[id] ? " " : "", btf_dump_name_of(d, id));
	put_enumerators(d, t, depth);
	/* C has no enum without enumerators. */
	if (!btf_vlen(t)) {
		indent(d, depth + 1);
		strbuf_printf(d->out, "__enum_%u_is_empty = 0,\n", id);
	}
	indent(d, depth);
	strbuf_printf(d->out, "}%s", enum_mode(t));
}

/* Writes what lies between bit cur and bit next: named bytes, and unnamed bit fields for what is no
 * whole byte. */
static void put_gap(struct dump *d, u64 cur, u64 next, u32 depth)
{
	u64 up = align_up(cur, 8);

	if (cur % 8 && cur < next) {
		up = min_of(up, next);
		indent(d, depth);
		strbuf_printf(d->out, "unsigned char : %u;\n", (u32)(up - cur));
		cur = up;
	}
	if (next - cur >= 8) {
		indent(d, depth);
		strbuf_printf(d->out, "unsigned char __gap%u[%llu];\n", d->nr_gaps++,
			      (unsigned long long)(next - cur) / 8);
		cur += (next - cur) / 8 * 8;
	}
	if (cur < next) {
		indent(d, depth);
		strbuf_printf(d->out, "unsigned char : %u;\n", (u32)(next - cur));
	}
}

static void put_member(struct dump *d, const struct btf_member *m, u32 field, u32 depth)
{
	indent(d, depth);
	btf_dump_decl(d, m->type, btf_name_by_offset(d->btf, m->name_off), depth);
	if (field)
		strbuf_printf(d->out, " : %u", field);
	strbuf_puts(d->out, ";\n");
}

/* The tail of a struct's bytes, and all of a union's that no member covers. */
static void put_rest(struct dump *d, const struct btf_type *t, u64 end, u32 align, u32 depth)
{
	u64 size = (u64)t->size * 8;

	if (btf_kind(t) == BTF_KIND_STRUCT && align_up(end, 8 * align) != size)
		put_gap(d, end, size, depth);
	else if (btf_kind(t) == BTF_KIND_UNION && align_up(end, 8 * align) != size)
		put_gap(d, 0, size, depth);
}

static void put_members(struct dump *d, const struct btf_type *t, u32 align, u32 depth)
{
	const struct btf_member *m = btf_members(t);
	bool is_union = btf_kind(t) == BTF_KIND_UNION;
	u32 i, field;
	u64 bit, bits, end = 0;

	for (i = 0; i < btf_vlen(t) && !d->err; i++, m++) {
		btf_dump_member_bits(d, t, m, &bit, &field, &bits);
		if (!is_union && bit > end)
			put_gap(d, end, bit, depth);
		put_member(d, m, field, depth);
		end = is_union ? max_of(end, bits) : bit + bits;
	}
	put_rest(d, t, end, align, depth);
}

void btf_dump_struct(struct dump *d, u32 id, u32 depth)
{
	const struct btf_type *t = btf_type_at(d->btf, id);
	const struct dump_layout *l = &d->layout[id];

	if (depth > MAX_NEST || d->out->len > d->max_text)
		return fail(d, -E2BIG);
	/* Members of anonymous structs share their holder's names, so the gaps are numbered
	 * through. */
	if (!depth)
		d->nr_gaps = 0;
	strbuf_printf(d->out, "%s%s%s {\n", btf_kind(t) == BTF_KIND_UNION ? "union" : "struct",
		      d->name[id] ? " " : "", btf_dump_name_of(d, id));
	if (l->opaque) {
		indent(d, depth + 1);
		strbuf_puts(d->out, "/* no C declaration has this layout */\n");
		if (t->size) {
			indent(d, depth + 1);
			strbuf_printf(d->out, "unsigned char __bytes[%u];\n", t->size);
		}
	} else {
		put_members(d, t, max_of(l->align, 1u), depth + 1);
	}
	indent(d, depth);
	strbuf_puts(d->out, l->packed ? "} __attribute__((packed))" : "}");
}

static void put_base(struct dump *d, const struct chain *c, u32 depth)
{
	const struct btf_type *t = btf_type_at(d->btf, c->base);
	const char *name;

	put_quals(d, c->base_quals & ~QUAL_RESTRICT);
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
		name = btf_dump_builtin_name(d->btf, t);
		strbuf_puts(d->out, name ? name : btf_dump_name_of(d, c->base));
		break;
	case BTF_KIND_TYPEDEF:
		strbuf_puts(d->out, btf_dump_name_of(d, c->base));
		break;
	case BTF_KIND_FWD:
		strbuf_printf(d->out, "%s %s", btf_kflag(t) ? "union" : "struct",
			      btf_dump_name_of(d, c->base));
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		if (d->name[c->base])
			strbuf_printf(d->out, "%s %s",
				      btf_kind(t) == BTF_KIND_UNION ? "union" : "struct",
				      btf_dump_name_of(d, c->base));
		else
			btf_dump_struct(d, c->base, depth);
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		if (d->name[c->base])
			strbuf_printf(d->out, "enum %s", btf_dump_name_of(d, c->base));
		else
			btf_dump_enum(d, c->base, depth);
		break;
	default:
		strbuf_puts(d->out, "void");
	}
}

static void put_params(struct dump *d, const struct btf_type *proto, u32 depth)
{
	const struct btf_param *p = btf_params(proto);
	u32 i, n = btf_vlen(proto);

	strbuf_putc(d->out, '(');
	if (!n)
		strbuf_puts(d->out, "void");
	/* "(...)" alone is not C; an empty list takes anything as well. */
	for (i = 0; i < n && !d->err && !(n == 1 && !p[0].type); i++) {
		if (i)
			strbuf_puts(d->out, ", ");
		if (p[i].type)
			btf_dump_decl(d, p[i].type, btf_name_by_offset(d->btf, p[i].name_off),
				      depth + 1);
		else
			strbuf_puts(d->out, "...");
	}
	strbuf_putc(d->out, ')');
}

static bool binds_tighter(const struct chain *c, u32 i)
{
	return i < c->len && btf_kind(c->part[i].t) != BTF_KIND_PTR;
}

void btf_dump_decl(struct dump *d, u32 id, const char *name, u32 depth)
{
	struct chain c;
	u32 i;
	int err;

	err = depth > MAX_NEST ? -E2BIG : collect(d->btf, id, &c);
	if (err)
		return fail(d, err);
	put_base(d, &c, depth);
	if (c.len || *name)
		strbuf_putc(d->out, ' ');
	for (i = c.len; i-- > 0;) {
		if (btf_kind(c.part[i].t) != BTF_KIND_PTR)
			continue;
		strbuf_puts(d->out, binds_tighter(&c, i + 1) ? "(*" : "*");
		put_quals(d, c.part[i].quals);
	}
	btf_dump_put_identifier(d, name);
	for (i = 0; i < c.len && !d->err; i++) {
		const struct btf_type *t = c.part[i].t;

		if (btf_kind(t) == BTF_KIND_ARRAY)
			strbuf_printf(d->out, "[%u]", btf_array(t)->nelems);
		else if (btf_kind(t) == BTF_KIND_FUNC_PROTO)
			put_params(d, t, depth);
		else if (binds_tighter(&c, i + 1))
			strbuf_putc(d->out, ')');
	}
}
