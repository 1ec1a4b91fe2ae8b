// SPDX-License-Identifier: BSD-2-Clause
/*
 * For dump_roundtrip.py: `dump_tool c FILE` prints FILE's BTF as a C header and, behind it, a pointer to each named
 * struct, so that a compiler puts all of them into the BTF of the object; `dump_tool layout FILE` prints every named
 * struct's members, one a line, to be compared before and after.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"
#include "btf/dump_c.h"

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
	static const u32 kinds[] = { BTF_KIND_STRUCT, BTF_KIND_UNION, BTF_KIND_ENUM, BTF_KIND_ENUM64 };
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
			       btf_kind(btf_type_by_id(btf, id)) == BTF_KIND_UNION ? "union" : "struct",
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

int main(int argc, char **argv)
{
	struct strbuf text = STRBUF_INIT;
	struct btf_log log = { .level = BTF_LOG_ERRORS, .buf = &text };
	struct btf *btf = NULL;
	size_t size = 0;
	void *data;
	int err;

	if (argc != 3)
		return 2;
	data = read_file(argv[2], &size);
	if (!data)
		return 1;
	err = btf_parse_kernel(data, size, &log, &btf);
	free(data);
	if (err) {
		fprintf(stderr, "%s: %d: %s\n", argv[2], err, strbuf_str(&text));
		return 1;
	}
	strbuf_reset(&text);
	if (!strcmp(argv[1], "c")) {
		err = btf_dump_c(btf, &text);
		fputs(strbuf_str(&text), stdout);
		print_users(btf);
	} else {
		print_layout(btf);
	}
	if (err)
		fprintf(stderr, "%s: dump: %d\n", argv[2], err);
	strbuf_fini(&text);
	btf_put(btf);
	return err ? 1 : 0;
}
