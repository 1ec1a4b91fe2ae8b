// SPDX-License-Identifier: BSD-2-Clause
/*
 * For test_dump.py, which compiles what this prints. FILE holds BTF; "odd" stands for one made here
 * of what C cannot say as it is. `dump_tool c FILE` prints it as a C header and, behind it, a
 * pointer to each named struct, so that a compiler puts all of them into the BTF of the object;
 * `layout` prints every named struct's members, one a line, to be compared before and after;
 * `asserts` prints the header and static asserts of all sizes and offsets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"
#include "btf/dump_c.h"
#include "build.h"

static void *read_file(const char *path, size_t *size)
{
	FILE *in = fopen(path, "rb");
	u8 *data = malloc(BTF_MAX_BYTES + 1);

	if (!in || !data) {
		free(data);
		return NULL;
	}
	*size = fread(data, 1, BTF_MAX_BYTES + 1, in);
	fclose(in);
	return data;
}

/* The first of its name among all that have tags: the one whose name the header keeps. */
static bool is_first_named(const struct btf *btf, u32 id)
{
	static const u32 kinds[] = {BTF_KIND_STRUCT, BTF_KIND_UNION, BTF_KIND_ENUM,
				    BTF_KIND_ENUM64};
	const struct btf_type *t = btf_type_by_id(btf, id);
	s32 other;
	u32 i;

	if (!btf_is_struct_or_union(t) || !t->name_off)
		return false;
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		other = btf_find_by_name_kind(btf, btf_type_name(btf, id), kinds[i]);
		if (other > 0 && (u32)other < id)
			return false;
	}
	return true;
}

static void print_users(const struct btf *btf)
{
	u32 id;

	for (id = 1; id < btf_nr_types(btf); id++)
		if (is_first_named(btf, id))
			printf("%s %s *user_%u;\n",
			       btf_kind(btf_type_by_id(btf, id)) == BTF_KIND_UNION ? "union"
										   : "struct",
			       btf_type_name(btf, id), id);
}

/* Anonymous members' members are printed as their holder's; gaps of ours are left out. */
static void print_members(const struct btf *btf, const char *owner, u32 id, u32 base_bit, int depth)
{
	const struct btf_type *t = btf_type_by_id(btf, id);
	const struct btf_member *m = btf_members(t);
	u32 i, size, inner;

	for (i = 0; i < btf_vlen(t); i++, m++) {
		const struct btf_type *mt = btf_type_skip_modifiers(btf, m->type, &inner);
		const char *name = btf_name_by_offset(btf, m->name_off);
		u32 bit = base_bit + btf_member_bit_offset(t, m);

		if (!*name && btf_is_struct_or_union(mt) && depth < 32) {
			print_members(btf, owner, inner, bit, depth + 1);
			continue;
		}
		if (!*name || !strncmp(name, "__gap", 5))
			continue;
		if (btf_resolve_size(btf, m->type, &size))
			size = 0;
		printf("%s %s bit %u field %u size %u kind %s\n", owner, name, bit,
		       btf_member_bitfield_size(t, m), size, btf_kind_name(btf_kind(mt)));
	}
}

/* As print_members(), but what __builtin_offsetof can say: no bit fields, nothing behind a name C
 * had to change. */
static void assert_members(const struct btf *btf, const char *tag, u32 id, u32 base_bit, int depth)
{
	const struct btf_type *t = btf_type_by_id(btf, id);
	const struct btf_member *m = btf_members(t);
	u32 i, inner;

	for (i = 0; i < btf_vlen(t); i++, m++) {
		const struct btf_type *mt = btf_type_skip_modifiers(btf, m->type, &inner);
		const char *name = btf_name_by_offset(btf, m->name_off);
		u32 bit = base_bit + btf_member_bit_offset(t, m);

		if (!*name && btf_is_struct_or_union(mt) && depth < 32)
			assert_members(btf, tag, inner, bit, depth + 1);
		else if (*name && !btf_member_bitfield_size(t, m) && !strpbrk(name, ".") &&
			 strcmp(name, "default"))
			printf("_Static_assert(__builtin_offsetof(%s, %s) == %u, \"%s.%s\");\n",
			       tag, name, bit / 8, tag, name);
	}
}

static void print_asserts(const struct btf *btf)
{
	char tag[600];
	u32 id;

	for (id = 1; id < btf_nr_types(btf); id++) {
		if (!is_first_named(btf, id))
			continue;
		snprintf(tag, sizeof(tag), "%s %s",
			 btf_kind(btf_type_by_id(btf, id)) == BTF_KIND_UNION ? "union" : "struct",
			 btf_type_name(btf, id));
		printf("_Static_assert(sizeof(%s) == %u, \"%s\");\n", tag,
		       btf_type_by_id(btf, id)->size, tag);
		/* C cannot say where the members of this one lie. */
		if (strcmp(tag, "struct overlap"))
			assert_members(btf, tag, id, 0, 0);
	}
}

/* Names C has taken or cannot write, several types of a name, sizes no C integer has, members that
 * must be packed. */
static struct btf *make_odd(void)
{
	struct blob *b = calloc(1, sizeof(*b));
	u32 i32, usize, odd, s, e;
	struct btf *btf = NULL;

	if (!b)
		return NULL;
	blob_init(b);
	i32 = blob_int(b, "int", 4, 32, 0, BTF_INT_SIGNED);
	usize = blob_int(b, "usize", 8, 64, 0, 0);
	odd = blob_int(b, "three_bytes", 3, 24, 0, 0);
	blob_ref(b, BTF_KIND_TYPEDEF, "register", i32);
	blob_ref(b, BTF_KIND_TYPEDEF, "twice", i32);
	blob_ref(b, BTF_KIND_TYPEDEF, "twice", usize);
	blob_ref(b, BTF_KIND_TYPEDEF, "core.ptr", i32);
	e = blob_type(b, BTF_KIND_ENUM, "e", 2, true, 4);
	blob_pair(b, "TWICE", 1);
	blob_pair(b, "twice", ~0u);
	blob_type(b, BTF_KIND_ENUM, NULL, 2, false, 4);
	blob_pair(b, "TWICE", 7);
	blob_pair(b, "ALONE", ~0u);
	blob_type(b, BTF_KIND_ENUM, "tiny", 1, false, 1);
	blob_pair(b, "TINY", 255);
	blob_type(b, BTF_KIND_ENUM, "hollow", 0, false, 4);
	s = blob_struct(b, BTF_KIND_STRUCT, "s", 25, 5, false);
	blob_member(b, "default", i32, 0);
	blob_member(b, "a.b", i32, 32);
	blob_member(b, "unaligned", usize, 72);
	blob_member(b, "odd", odd, 136);
	blob_member(b, "late", e, 160);
	blob_struct(b, BTF_KIND_STRUCT, "s", 4, 1, false);
	blob_member(b, "other", i32, 0);
	blob_struct(b, BTF_KIND_UNION, "s", 12, 1, false);
	blob_member(b, "small", i32, 0);
	blob_struct(b, BTF_KIND_STRUCT, "spread", 64, 3, true);
	blob_member(b, "f", i32, 5 << 24 | 3);
	blob_member(b, "g", i32, 7 << 24 | 60);
	blob_member(b, "in", s, 128);
	blob_struct(b, BTF_KIND_STRUCT, "overlap", 8, 2, false);
	blob_member(b, "a", usize, 0);
	blob_member(b, "b", i32, 32);
	blob_struct(b, BTF_KIND_STRUCT, "empty", 0, 0, false);
	blob_finish(b);
	if (btf_parse(b->out, b->size, NULL, NULL, &btf))
		btf = NULL;
	free(b);
	return btf;
}

static void print_layout(const struct btf *btf)
{
	u32 id;

	for (id = 1; id < btf_nr_types(btf); id++) {
		if (!is_first_named(btf, id))
			continue;
		printf("%s: %s size %u\n", btf_type_name(btf, id),
		       btf_kind(btf_type_by_id(btf, id)) == BTF_KIND_UNION ? "union" : "struct",
		       btf_type_by_id(btf, id)->size);
		print_members(btf, btf_type_name(btf, id), id, 0, 0);
	}
}

static struct btf *parse_file(const char *path)
{
	struct strbuf text = STRBUF_INIT;
	struct btf_log log = {.level = BTF_LOG_ERRORS, .buf = &text};
	struct btf *btf = NULL;
	size_t size = 0;
	void *data = read_file(path, &size);
	int err = data ? btf_parse_kernel(data, size, &log, &btf) : -ENOENT;

	if (err)
		fprintf(stderr, "%s: %d: %s\n", path, err, strbuf_str(&text));
	free(data);
	strbuf_fini(&text);
	return btf;
}

int main(int argc, char **argv)
{
	struct strbuf text = STRBUF_INIT;
	struct btf *btf;
	int err = 0;

	if (argc != 3)
		return 2;
	btf = strcmp(argv[2], "odd") ? parse_file(argv[2]) : make_odd();
	if (!btf)
		return 1;
	if (strcmp(argv[1], "layout")) {
		err = btf_dump_c(btf, &text);
		fputs(strbuf_str(&text), stdout);
	}
	if (!strcmp(argv[1], "c"))
		print_users(btf);
	else if (!strcmp(argv[1], "asserts"))
		print_asserts(btf);
	else
		print_layout(btf);
	if (err)
		fprintf(stderr, "%s: dump: %d\n", argv[2], err);
	strbuf_fini(&text);
	btf_put(btf);
	return err ? 1 : 0;
}
