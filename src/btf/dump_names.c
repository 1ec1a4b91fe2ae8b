// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names in the C we write. BTF may hold several types of one name, and names that C cannot write;
 * each type gets a name of its own: "name", "name___2", ... in the order of ids, so the same BTF
 * gives the same names.
 */
#include "btf/dump_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static const char *const keywords[] = {
	"auto",
	"break",
	"case",
	"char",
	"const",
	"continue",
	"default",
	"do",
	"double",
	"else",
	"enum",
	"extern",
	"float",
	"for",
	"goto",
	"if",
	"inline",
	"int",
	"long",
	"register",
	"restrict",
	"return",
	"short",
	"signed",
	"sizeof",
	"static",
	"struct",
	"switch",
	"typedef",
	"union",
	"unsigned",
	"void",
	"volatile",
	"while",
	"_Alignas",
	"_Alignof",
	"_Atomic",
	"_Bool",
	"_Complex",
	"_Generic",
	"_Float16",
	"_Imaginary",
	"_Noreturn",
	"_Static_assert",
	"_Thread_local",
	"asm",
	"typeof",
	"__int128",
	"__builtin_va_list",
	"__attribute__",
	"__signed__",
	"__inline",
	"__const",
	"__volatile__",
};

static bool is_c_char(u8 c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static struct dump_name *find_slot(const struct dump_names *n, enum dump_space space,
				   const char *text, size_t len)
{
	u32 at = XXH3_64bits_withSeed(text, len, space) & n->mask;
	struct dump_name *e;

	for (;; at = (at + 1) & n->mask) {
		e = &n->table[at];
		if (!e->text || (e->space == space && !strncmp(n->pool.s + e->text, text, len) &&
				 !n->pool.s[e->text + len]))
			return e;
	}
}

static int grow_table(struct dump_names *n)
{
	struct dump_names bigger = *n;
	u32 i;

	bigger.mask = n->table ? n->mask * 2 + 1 : 1023;
	bigger.table = calloc((size_t)bigger.mask + 1, sizeof(*bigger.table));
	if (!bigger.table)
		return -ENOMEM;
	for (i = 0; n->table && i <= n->mask; i++) {
		const struct dump_name *e = &n->table[i];
		const char *text = n->pool.s + e->text;

		if (e->text)
			*find_slot(&bigger, e->space, text, strlen(text)) = *e;
	}
	free(n->table);
	*n = bigger;
	return 0;
}

/* Takes the name at the end of the pool if nobody has it. The slot of who has it otherwise. */
static struct dump_name *take(struct dump_names *n, enum dump_space space, u32 text)
{
	const char *s = n->pool.s + text;
	struct dump_name *e = find_slot(n, space, s, strlen(s));

	if (e->text)
		return e;
	*e = (struct dump_name){.text = text, .space = space, .next = 2};
	n->used++;
	return NULL;
}

static u32 out_of_memory(struct dump *d)
{
	if (!d->err)
		d->err = -ENOMEM;
	return 0;
}

u32 btf_dump_unique_name(struct dump *d, enum dump_space space, const char *text)
{
	struct dump_names *n = &d->names;
	u32 start = n->pool.len, base_len, i;
	struct dump_name *taken;

	/* A million types may share one name of 512 characters. */
	if (n->pool.len > d->max_text) {
		d->err = -E2BIG;
		return 0;
	}
	if (n->used * 2 >= n->mask && grow_table(n))
		return out_of_memory(d);
	strbuf_puts(&n->pool, text);
	if (strbuf_failed(&n->pool))
		return out_of_memory(d);
	for (i = start; i < n->pool.len; i++)
		if (!is_c_char(n->pool.s[i]) ||
		    (i == start && n->pool.s[i] >= '0' && n->pool.s[i] <= '9'))
			n->pool.s[i] = '_';
	base_len = n->pool.len - start;
	taken = take(n, space, start);
	while (taken) {
		n->pool.len = start + base_len;
		n->pool.s[n->pool.len] = '\0';
		/* The counter stays with the plain name, so a million equal names are a million
		 * steps. */
		taken = find_slot(n, space, n->pool.s + start, base_len);
		strbuf_printf(&n->pool, "___%u", taken->next++);
		if (strbuf_failed(&n->pool))
			return out_of_memory(d);
		taken = take(n, space, start);
	}
	strbuf_putc(&n->pool, '\0');
	return strbuf_failed(&n->pool) ? out_of_memory(d) : start;
}

const char *btf_dump_name_of(const struct dump *d, u32 id)
{
	return d->name[id] ? d->names.pool.s + d->name[id] : "";
}

static bool is_keyword(const char *text)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(keywords); i++)
		if (!strcmp(keywords[i], text))
			return true;
	return false;
}

void btf_dump_put_identifier(struct dump *d, const char *text)
{
	size_t start = d->out->len, i;

	strbuf_puts(d->out, text);
	if (strbuf_failed(d->out))
		return;
	for (i = start; i < d->out->len; i++)
		if (!is_c_char(d->out->s[i]) ||
		    (i == start && d->out->s[i] >= '0' && d->out->s[i] <= '9'))
			d->out->s[i] = '_';
	if (is_keyword(text))
		strbuf_putc(d->out, '_');
}

const char *btf_dump_builtin_name(const struct btf *btf, const struct btf_type *t)
{
	static const struct {
		const char *name;
		u32 kind, size;
	} known[] = {
		{"char", BTF_KIND_INT, 1},
		{"signed char", BTF_KIND_INT, 1},
		{"unsigned char", BTF_KIND_INT, 1},
		{"_Bool", BTF_KIND_INT, 1},
		{"short", BTF_KIND_INT, 2},
		{"short int", BTF_KIND_INT, 2},
		{"unsigned short", BTF_KIND_INT, 2},
		{"short unsigned int", BTF_KIND_INT, 2},
		{"int", BTF_KIND_INT, 4},
		{"unsigned int", BTF_KIND_INT, 4},
		{"long", BTF_KIND_INT, 8},
		{"long int", BTF_KIND_INT, 8},
		{"unsigned long", BTF_KIND_INT, 8},
		{"long unsigned int", BTF_KIND_INT, 8},
		{"long long", BTF_KIND_INT, 8},
		{"long long int", BTF_KIND_INT, 8},
		{"unsigned long long", BTF_KIND_INT, 8},
		{"long long unsigned int", BTF_KIND_INT, 8},
		{"__int128", BTF_KIND_INT, 16},
		{"unsigned __int128", BTF_KIND_INT, 16},
		{"__int128 unsigned", BTF_KIND_INT, 16},
		{"float", BTF_KIND_FLOAT, 4},
		{"double", BTF_KIND_FLOAT, 8},
	};
	const char *name = btf_name_by_offset(btf, t->name_off);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].kind == btf_kind(t) && known[i].size == t->size &&
		    !strcmp(known[i].name, name))
			return known[i].name;
	return NULL;
}

/* The name space in which a type of this kind needs a name; false: it needs none. */
static bool needs_name(const struct btf *btf, const struct btf_type *t, enum dump_space *space)
{
	switch (btf_kind(t)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		*space = DUMP_TAGS;
		return t->name_off;
	case BTF_KIND_TYPEDEF:
		*space = DUMP_ORDINARY;
		return true;
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
		*space = DUMP_ORDINARY;
		return !btf_dump_builtin_name(btf, t);
	}
	return false;
}

/* A forward declaration has the name of the struct or union it announces, if there is one. */
static u32 name_forward(struct dump *d, const struct btf_type *t)
{
	const char *name = btf_name_by_offset(d->btf, t->name_off);
	s32 id = btf_find_by_name_kind(d->btf, name,
				       btf_kflag(t) ? BTF_KIND_UNION : BTF_KIND_STRUCT);

	if (id > 0)
		return d->name[id];
	/* Several announcements of nothing share a name too: the first one's. */
	id = btf_find_by_name_kind(d->btf, name, BTF_KIND_FWD);
	if (id > 0 && d->name[id] && btf_kflag(btf_type_at(d->btf, id)) == btf_kflag(t))
		return d->name[id];
	return btf_dump_unique_name(d, DUMP_TAGS, name);
}

int btf_dump_names_init(struct dump *d)
{
	u32 i, id, nr = btf_nr_types(d->btf);
	enum dump_space space;

	strbuf_putc(&d->names.pool, '\0');
	d->name = calloc(nr, sizeof(*d->name));
	if (!d->name || strbuf_failed(&d->names.pool))
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(keywords); i++) {
		btf_dump_unique_name(d, DUMP_TAGS, keywords[i]);
		btf_dump_unique_name(d, DUMP_ORDINARY, keywords[i]);
	}
	for (id = 1; id < nr && !d->err; id++) {
		const struct btf_type *t = btf_type_at(d->btf, id);

		if (needs_name(d->btf, t, &space))
			d->name[id] = btf_dump_unique_name(d, space,
							   btf_name_by_offset(d->btf, t->name_off));
	}
	for (id = 1; id < nr && !d->err; id++)
		if (btf_kind(btf_type_at(d->btf, id)) == BTF_KIND_FWD)
			d->name[id] = name_forward(d, btf_type_at(d->btf, id));
	return d->err;
}

void btf_dump_names_fini(struct dump *d)
{
	strbuf_fini(&d->names.pool);
	free(d->names.table);
	free(d->name);
}
