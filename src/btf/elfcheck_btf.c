// SPDX-License-Identifier: BSD-2-Clause
/*
 * The .BTF and .BTF.ext sections of an object, before libbpf reads them.
 *
 * This is less than btf_parse() asks and must be: a compiler leaves section sizes and variable
 * offsets to the loader and writes external functions and variables, which no BTF_LOAD takes. What
 * is held here is what a reader relies on: bounds, names and ids that exist, references of the
 * right kind, and no type that leads back to itself other than through a pointer, a function or a
 * struct's pointer.
 */
#include <errno.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"
#include "btf/btf_int.h"
#include "btf/elfcheck_int.h"

struct btf_sec {
	struct elfcheck *c;
	const u8 *types; /* aligned copy */
	u32 types_len;
	const char *strings;
	u32 str_len;
	u32 *off; /* by id - 1: byte offset in types */
	u32 nr;	  /* highest id */
};

#define FAIL(b, ...) btf_elfcheck_fail((b)->c, "section .BTF: " __VA_ARGS__)

static const struct btf_type *type_at(const struct btf_sec *b, u32 id)
{
	return (const struct btf_type *)(b->types + b->off[id - 1]);
}

static u32 kind_at(const struct btf_sec *b, u32 id)
{
	return id && id <= b->nr ? btf_kind(type_at(b, id)) : BTF_KIND_UNKN;
}

/* Offsets of the two parts relative to the end of the header, already known to be inside. */
static int check_btf_header(struct btf_sec *b, const u8 *data, u64 size, struct btf_header *h)
{
	u64 room;

	if (size < sizeof(*h))
		return FAIL(b, "%llu bytes, its header has %zu", (unsigned long long)size,
			    sizeof(*h));
	memcpy(h, data, sizeof(*h));
	if (h->magic != BTF_MAGIC)
		return FAIL(b, "magic 0x%x, must be 0x%x", h->magic, BTF_MAGIC);
	if (h->version != BTF_VERSION)
		return FAIL(b, "version %u, only 1 is known", h->version);
	if (h->flags)
		return FAIL(b, "flags 0x%x are not known", h->flags);
	if (h->hdr_len < sizeof(*h) || h->hdr_len > size)
		return FAIL(b, "header length %u in a section of %llu bytes", h->hdr_len,
			    (unsigned long long)size);
	room = size - h->hdr_len;
	if (h->type_off % 4 || h->type_off > room || h->type_len > room - h->type_off)
		return FAIL(b, "0x%x bytes of types at 0x%x of 0x%llx", h->type_len, h->type_off,
			    (unsigned long long)room);
	if (h->str_off > room || h->str_len > room - h->str_off)
		return FAIL(b, "0x%x bytes of strings at 0x%x of 0x%llx", h->str_len, h->str_off,
			    (unsigned long long)room);
	b->strings = (const char *)data + h->hdr_len + h->str_off;
	b->str_len = h->str_len;
	b->types_len = h->type_len;
	if (!b->str_len || b->strings[0] || b->strings[b->str_len - 1])
		return FAIL(b, "the strings do not begin and end with NUL");
	return 0;
}

/* Finds where each type begins, and that it ends inside. */
static int split_types(struct btf_sec *b)
{
	const struct btf_type *t;
	u32 at = 0, cap = 0, need, *off;

	while (at < b->types_len) {
		if (b->types_len - at < sizeof(*t))
			return FAIL(b, "type %u is cut off", b->nr + 1);
		t = (const struct btf_type *)(b->types + at);
		if (!btf_kind(t) || btf_kind(t) > BTF_KIND_MAX)
			return FAIL(b, "type %u: kind %u is not known", b->nr + 1, btf_kind(t));
		need = btf_kinds[btf_kind(t)].fixed_size +
		       btf_kinds[btf_kind(t)].entry_size * btf_vlen(t);
		if (b->types_len - at - sizeof(*t) < need)
			return FAIL(b, "type %u (%s) is cut off", b->nr + 1,
				    btf_kind_name(btf_kind(t)));
		if (t->name_off >= b->str_len)
			return FAIL(b, "type %u: name at 0x%x, the strings end at 0x%x", b->nr + 1,
				    t->name_off, b->str_len);
		if (b->nr == cap) {
			cap = cap ? 2 * cap : 256;
			off = realloc(b->off, cap * sizeof(*off));
			if (!off)
				return -ENOMEM;
			b->off = off;
		}
		b->off[b->nr++] = at;
		at += sizeof(*t) + need;
	}
	return b->nr ? 0 : FAIL(b, "no types");
}

static int check_ref(struct btf_sec *b, u32 id, u32 to)
{
	return to <= b->nr ? 0 : FAIL(b, "type %u refers to type %u of %u", id, to, b->nr);
}

static int check_entry_name(struct btf_sec *b, u32 id, u32 name_off)
{
	return name_off < b->str_len
		       ? 0
		       : FAIL(b, "type %u: an entry's name at 0x%x, the strings end at 0x%x", id,
			      name_off, b->str_len);
}

/* All kinds of entries begin with a name, a section's with a type; a second word may be a type. */
static int check_entries(struct btf_sec *b, u32 id, const struct btf_type *t)
{
	u32 kind = btf_kind(t), size = btf_kinds[kind].entry_size, i;
	const u8 *e = (const u8 *)(t + 1);
	int err = 0;

	for (i = 0; !err && i < btf_vlen(t) && size; i++, e += size) {
		const u32 *word = (const u32 *)e;

		if (kind == BTF_KIND_DATASEC) {
			err = check_ref(b, id, word[0]);
			if (!err && kind_at(b, word[0]) != BTF_KIND_VAR &&
			    kind_at(b, word[0]) != BTF_KIND_FUNC)
				err = FAIL(b, "type %u: section entry %u is no variable", id, i);
			continue;
		}
		err = check_entry_name(b, id, word[0]);
		if (!err && (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION ||
			     kind == BTF_KIND_FUNC_PROTO))
			err = check_ref(b, id, word[1]);
	}
	return err;
}

static int check_type_refs(struct btf_sec *b, u32 id)
{
	const struct btf_type *t = type_at(b, id);
	int err = check_entries(b, id, t);

	if (err)
		return err;
	switch (btf_kind(t)) {
	case BTF_KIND_PTR:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
	case BTF_KIND_FUNC_PROTO:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return check_ref(b, id, t->type);
	case BTF_KIND_FUNC:
		err = check_ref(b, id, t->type);
		if (!err && kind_at(b, t->type) != BTF_KIND_FUNC_PROTO)
			err = FAIL(b, "type %u: the function's type %u is no prototype", id,
				   t->type);
		return err;
	case BTF_KIND_ARRAY:
		err = check_ref(b, id, btf_array(t)->type);
		return err ? err : check_ref(b, id, btf_array(t)->index_type);
	}
	return 0;
}

/* The i-th type that id is made of by value (0: void); false: there are no more. */
static bool part_of(const struct btf_sec *b, u32 id, u32 i, u32 *ret_part)
{
	const struct btf_type *t = type_at(b, id);

	if (btf_is_struct_or_union(t)) {
		*ret_part = i < btf_vlen(t) ? btf_members(t)[i].type : 0;
		return i < btf_vlen(t);
	}
	*ret_part = btf_kind(t) == BTF_KIND_ARRAY ? btf_array(t)->type : t->type;
	return !i &&
	       (btf_kind(t) == BTF_KIND_ARRAY || btf_is_modifier(t) || btf_kind(t) == BTF_KIND_VAR);
}

struct part_frame {
	u32 id, next;
};

enum { SEEN = 1, FINISHED = 2 };

/* Depth first over what types are made of, each type once. The stack is at most as deep as there
 * are types. */
static int check_rings(struct btf_sec *b)
{
	struct part_frame *stack = malloc((size_t)b->nr * sizeof(*stack));
	u8 *state = calloc(b->nr + 1, 1);
	u32 id, depth, part;
	int err = 0;

	if (!stack || !state)
		err = -ENOMEM;
	for (id = 1; !err && id <= b->nr; id++) {
		if (state[id])
			continue;
		state[id] = SEEN;
		stack[0] = (struct part_frame){id, 0};
		for (depth = 1; depth && !err;) {
			struct part_frame *f = &stack[depth - 1];

			if (!part_of(b, f->id, f->next++, &part)) {
				state[f->id] = FINISHED;
				depth--;
			} else if (!part) {
				continue; /* void; a member of that type is the kernel's to refuse
					   */
			} else if (state[part] == SEEN) {
				err = FAIL(b, "type %u is part of itself", part);
			} else if (!state[part]) {
				state[part] = SEEN;
				stack[depth++] = (struct part_frame){part, 0};
			}
		}
	}
	free(stack);
	free(state);
	return err;
}

static int check_btf(struct btf_sec *b, const u8 *data, u64 size)
{
	struct btf_header h;
	u8 *copy;
	u32 id;
	int err = check_btf_header(b, data, size, &h);

	if (err)
		return err;
	copy = malloc(max_of(h.type_len, 1u));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data + h.hdr_len + h.type_off, h.type_len);
	b->types = copy;
	err = split_types(b);
	for (id = 1; !err && id <= b->nr; id++)
		err = check_type_refs(b, id);
	return err ? err : check_rings(b);
}

#undef FAIL
#define FAIL(b, ...) btf_elfcheck_fail((b)->c, "section .BTF.ext: " __VA_ARGS__)

/* One of the three tables of .BTF.ext. */
struct ext_table {
	const char *name;
	u32 off_field; /* byte offset in the header of the table's offset; its length follows */
	u32 min_rec;
	int (*check)(struct btf_sec *b, const u32 *rec);
};

static int check_func_rec(struct btf_sec *b, const u32 *rec)
{
	return kind_at(b, rec[1]) == BTF_KIND_FUNC
		       ? 0
		       : FAIL(b, "func_info: type %u is no function", rec[1]);
}

static int check_line_rec(struct btf_sec *b, const u32 *rec)
{
	if (rec[1] >= b->str_len || rec[2] >= b->str_len)
		return FAIL(b, "line_info: file name or line at 0x%x, the strings end at 0x%x",
			    max_of(rec[1], rec[2]), b->str_len);
	return 0;
}

#define CORE_RELO_MAX 12 /* BPF_CORE_TYPE_MATCHES, the last there is */

static int check_core_rec(struct btf_sec *b, const u32 *rec)
{
	if (!rec[1] || rec[1] > b->nr)
		return FAIL(b, "core_relo: type %u of %u", rec[1], b->nr);
	if (rec[3] > CORE_RELO_MAX)
		return FAIL(b, "core_relo: unknown kind %u", rec[3]);
	if (rec[2] >= b->str_len)
		return FAIL(b, "core_relo: access string at 0x%x, the strings end at 0x%x", rec[2],
			    b->str_len);
	return 0;
}

static const struct ext_table ext_tables[] = {
	{"func_info", 8, 8, check_func_rec},
	{"line_info", 16, 16, check_line_rec},
	{"core_relo", 24, 16, check_core_rec},
};

/* The records of one section, nr of them from data. */
static int check_ext_records(struct btf_sec *b, const struct ext_table *tab, const u8 *data, u32 nr,
			     u32 rec_size, const struct elf_sec *s)
{
	u32 rec[4] = {}, i;
	int err = 0;

	for (i = 0; !err && i < nr; i++, data += rec_size) {
		memcpy(rec, data, tab->min_rec);
		if (rec[0] % 8 || rec[0] >= s->size)
			return FAIL(b,
				    "%s %u: instruction offset 0x%x of section %s, which has "
				    "0x%llx bytes",
				    tab->name, i, rec[0], btf_elfcheck_text(s->name).s,
				    (unsigned long long)s->size);
		err = tab->check(b, rec);
	}
	return err;
}

/* A table: record size, then for each section its name, count and records. */
static int check_ext_table(struct btf_sec *b, const struct ext_table *tab, const u8 *data, u32 len)
{
	u32 rec_size, head[2], sec;
	int err = 0;

	if (!len)
		return 0;
	if (len < 4)
		return FAIL(b, "%s: %u bytes", tab->name, len);
	memcpy(&rec_size, data, 4);
	if (rec_size < tab->min_rec || rec_size % 4 || rec_size > 512)
		return FAIL(b, "%s: record size %u", tab->name, rec_size);
	data += 4;
	len -= 4;
	while (len && !err) {
		if (len < sizeof(head))
			return FAIL(b, "%s: a section's head is cut off", tab->name);
		memcpy(head, data, sizeof(head));
		data += sizeof(head);
		len -= sizeof(head);
		if (head[0] >= b->str_len)
			return FAIL(b, "%s: section name at 0x%x, the strings end at 0x%x",
				    tab->name, head[0], b->str_len);
		if (!head[1] || head[1] > len / rec_size)
			return FAIL(b, "%s: %u records in %u bytes", tab->name, head[1], len);
		sec = btf_elfcheck_find(b->c, b->strings + head[0]);
		if (!sec)
			return FAIL(b, "%s: there is no section %s", tab->name,
				    btf_elfcheck_text(b->strings + head[0]).s);
		err = check_ext_records(b, tab, data, head[1], rec_size, &b->c->sec[sec]);
		data += head[1] * rec_size;
		len -= head[1] * rec_size;
	}
	return err;
}

static int check_ext(struct btf_sec *b, const u8 *data, u64 size)
{
	struct btf_header h; /* the first 8 bytes are the same */
	u32 i, place[2];
	int err = 0;

	if (size < 24)
		return FAIL(b, "%llu bytes, its header has 24", (unsigned long long)size);
	memcpy(&h, data, 8);
	if (h.magic != BTF_MAGIC)
		return FAIL(b, "magic 0x%x, must be 0x%x", h.magic, BTF_MAGIC);
	if (h.version != BTF_VERSION)
		return FAIL(b, "version %u, only 1 is known", h.version);
	if (h.flags)
		return FAIL(b, "flags 0x%x are not known", h.flags);
	if (h.hdr_len < 24 || h.hdr_len > size)
		return FAIL(b, "header length %u in a section of %llu bytes", h.hdr_len,
			    (unsigned long long)size);
	for (i = 0; !err && i < ARRAY_SIZE(ext_tables); i++) {
		const struct ext_table *tab = &ext_tables[i];
		u64 room = size - h.hdr_len;

		/* Old compilers write a header without the last table. */
		if (h.hdr_len < tab->off_field + 8)
			break;
		memcpy(place, data + tab->off_field, sizeof(place));
		if (place[0] % 4 || place[0] > room || place[1] > room - place[0])
			return FAIL(b, "%s: 0x%x bytes at 0x%x of 0x%llx", tab->name, place[1],
				    place[0], (unsigned long long)room);
		err = check_ext_table(b, tab, data + h.hdr_len + place[0], place[1]);
	}
	return err;
}

int btf_elfcheck_btf_sections(struct elfcheck *c)
{
	u32 btf = btf_elfcheck_find(c, ".BTF"), ext = btf_elfcheck_find(c, ".BTF.ext");
	struct btf_sec b = {.c = c};
	int err = 0;

	/* Without types libbpf does not look at .BTF.ext. */
	if (!btf)
		return 0;
	if (!c->sec[btf].data)
		return btf_elfcheck_fail(c, "section .BTF: no data");
	err = check_btf(&b, c->sec[btf].data, c->sec[btf].size);
	if (!err && ext && !c->sec[ext].data)
		err = FAIL(&b, "no data");
	if (!err && ext)
		err = check_ext(&b, c->sec[ext].data, c->sec[ext].size);
	free(b.off);
	free((void *)b.types);
	return err;
}
