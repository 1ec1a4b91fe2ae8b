// SPDX-License-Identifier: BSD-2-Clause
/* Questions asked of a parsed BTF: names, sizes, fields, split BTF, struct walks, dumps of single
 * types. */
#include <errno.h>
#include <string.h>

#include "../tap.h"
#include "btf/btf.h"
#include "btf/dump_c.h"
#include "btf/walk.h"
#include "build.h"

static struct blob b;

static struct {
	u32 i32, u64_, chr, td, cst, ptr, arr, grid, anon, un, s, s_ptr, tagged, proto, func, fptr,
		flex, flex_s, outer, tag;
} id;

static void build(void)
{
	blob_init(&b);
	id.i32 = blob_int(&b, "int", 4, 32, 0, BTF_INT_SIGNED);
	id.u64_ = blob_int(&b, "unsigned long", 8, 64, 0, 0);
	id.chr = blob_int(&b, "char", 1, 8, 0, BTF_INT_SIGNED);
	id.td = blob_ref(&b, BTF_KIND_TYPEDEF, "pid_t", id.i32);
	id.cst = blob_ref(&b, BTF_KIND_CONST, NULL, id.td);
	id.ptr = blob_ref(&b, BTF_KIND_PTR, NULL, 0);
	id.arr = blob_array(&b, id.chr, id.i32, 16);
	id.grid = blob_array(&b, id.arr, id.i32, 3);
	id.anon = blob_struct(&b, BTF_KIND_STRUCT, NULL, 8, 2, false);
	blob_member(&b, "low", id.i32, 0);
	blob_member(&b, "high", id.i32, 32);
	id.un = blob_struct(&b, BTF_KIND_UNION, NULL, 8, 2, false);
	blob_member(&b, "both", id.u64_, 0);
	blob_member(&b, NULL, id.anon, 0);
	/* s: { int pid; int bits:3; union { u64 both; struct { int low, high; }; }; struct s *next;
	 * char grid[3][16]; void *any; } */
	id.s_ptr = b.nr_types + 2;
	id.s = blob_struct(&b, BTF_KIND_STRUCT, "s", 80, 6, true);
	blob_member(&b, "pid", id.cst, 0);
	blob_member(&b, "bits", id.i32, 3 << 24 | 32);
	blob_member(&b, NULL, id.un, 64);
	blob_member(&b, "next", id.s_ptr, 128);
	blob_member(&b, "grid", id.grid, 192);
	blob_member(&b, "any", id.ptr, 576);
	blob_ref(&b, BTF_KIND_PTR, NULL, id.s);
	id.outer = blob_struct(&b, BTF_KIND_STRUCT, "outer", 96, 3, false);
	blob_member(&b, "in", id.s, 0);
	blob_member(&b, "rcu_next", b.nr_types + 2, 640);
	blob_member(&b, "last", id.u64_, 704);
	id.tagged = blob_ref(&b, BTF_KIND_TYPE_TAG, "rcu", id.s);
	blob_ref(&b, BTF_KIND_PTR, NULL, id.tagged);
	/* the "rcu" pointer's id is one more than the tag's */
	id.proto = blob_type(&b, BTF_KIND_FUNC_PROTO, NULL, 1, false, id.i32);
	blob_pair(&b, "a", id.i32);
	id.func = blob_ref(&b, BTF_KIND_FUNC, "do_it", id.proto);
	id.fptr = blob_ref(&b, BTF_KIND_PTR, NULL, id.proto);
	id.flex = blob_array(&b, id.outer, id.i32, 0);
	id.flex_s = blob_struct(&b, BTF_KIND_STRUCT, "flex", 8, 2, false);
	blob_member(&b, "n", id.i32, 0);
	blob_member(&b, "data", id.flex, 64);
	id.tag = blob_ref(&b, BTF_KIND_DECL_TAG, "special", id.s);
	blob_word(&b, ~0u);
	/* a second type of the same name and kind, and one of another kind */
	blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 0, false);
	blob_struct(&b, BTF_KIND_UNION, "s", 4, 0, false);
	blob_finish(&b);
	/* outer.rcu_next was given the id of the type behind the tag */
}

static void check_names(const struct btf *btf)
{
	is_int(btf_find_by_name_kind(btf, "s", BTF_KIND_STRUCT), id.s,
	       "the first struct of a name is found");
	is_int(btf_find_by_name_kind(btf, "s", BTF_KIND_UNION), btf_nr_types(btf) - 1,
	       "a union of that name as well");
	is_int(btf_find_by_name_kind(btf, "s", BTF_KIND_TYPEDEF), -ENOENT,
	       "a typedef of that name is not there");
	is_int(btf_find_by_name_kind(btf, "", BTF_KIND_STRUCT), -ENOENT, "no name finds nothing");
	is_int(btf_find_by_name_kind(btf, "do_it", BTF_KIND_FUNC), id.func, "a function is found");
	ok(!strcmp(btf_type_name(btf, id.td), "pid_t") && !*btf_type_name(btf, id.ptr) &&
		   !*btf_type_name(btf, 9999),
	   "names are given; none is \"\"");
	ok(!btf_name_by_offset(btf, 1 << 20) && !*btf_name_by_offset(btf, 0),
	   "an offset outside has no name");
	ok(!btf_type_by_id(btf, btf_nr_types(btf)) &&
		   btf_kind(btf_type_by_id(btf, 0)) == BTF_KIND_UNKN,
	   "ids end, and 0 is void");
	ok(btf_has_decl_tag(btf, id.s, -1, "special") &&
		   !btf_has_decl_tag(btf, id.s, 0, "special") &&
		   !btf_has_decl_tag(btf, id.outer, -1, "special"),
	   "declaration tags are found on what they tag");
}

static void check_sizes(const struct btf *btf)
{
	u32 size = 0, end;

	ok(btf_type_skip_modifiers(btf, id.cst, &end) && end == id.i32, "modifiers are skipped");
	is_int(btf_resolve_size(btf, id.cst, &size), 0, "a const typedef has a size");
	is_u64(size, 4, "of 4");
	is_int(btf_resolve_size(btf, id.grid, &size), 0, "an array of arrays has a size");
	is_u64(size, 48, "of 48");
	is_int(btf_resolve_size(btf, 0, &size), -EINVAL, "void has none");
	is_int(btf_resolve_size(btf, id.proto, &size), -EINVAL, "a prototype has none");
	ok(btf_func_proto(btf, id.func) == btf_type_by_id(btf, id.proto) &&
		   btf_func_proto(btf, id.fptr) == btf_type_by_id(btf, id.proto) &&
		   !btf_func_proto(btf, id.ptr) && !btf_func_proto(btf, id.s),
	   "prototypes of functions and of pointers to them");
}

static void check_fields(const struct btf *btf)
{
	u32 off = 0, size = 0, type;

	is_int(btf_find_field_offset(btf, "s", "pid", &off, &size), 0, "a field is found");
	ok(off == 0 && size == 4, "at 0, 4 bytes");
	is_int(btf_find_field_offset(btf, "s", "high", &off, &size), 0,
	       "a field of an anonymous struct is found");
	ok(off == 12 && size == 4, "at 12");
	is_int(btf_find_field_offset(btf, "outer", "in.high", &off, &size), 0,
	       "a field of a field is found");
	ok(off == 12 && size == 4, "at 12");
	is_int(btf_find_field_offset(btf, "outer", "last", &off, NULL), 0,
	       "the size need not be asked for");
	is_u64(off, 88, "at 88");
	is_int(btf_find_field_offset(btf, "s", "bits", &off, &size), -EINVAL,
	       "a bit field has no offset in bytes");
	is_int(btf_find_field_offset(btf, "s", "nothing", &off, &size), -ENOENT,
	       "a field that is not there");
	is_int(btf_find_field_offset(btf, "s", "pid.x", &off, &size), -ENOENT, "a field of an int");
	is_int(btf_find_field_offset(btf, "s", "", &off, &size), -ENOENT, "a field without a name");
	is_int(btf_find_field_offset(btf, "s", "pi", &off, &size), -ENOENT, "half a name");
	is_int(btf_find_field_offset(btf, "nobody", "pid", &off, &size), -ENOENT,
	       "a struct that is not there");
	ok(!btf_find_member(btf, id.s, "next", &off, &type) && type == id.s_ptr && off == 16,
	   "a member's type is told");
}

static void walk(const struct btf *btf, u32 struct_id, u32 off, u32 size, int want,
		 enum btf_walk_kind kind, const char *what)
{
	struct strbuf text = STRBUF_INIT;
	struct btf_log log = {.level = 1, .buf = &text};
	struct btf_walk w = {};
	int err = btf_struct_access(&log, btf, struct_id, off, size, &w);

	if (!ok(err == want && (err ? !strcmp(strbuf_str(&text), what) : w.kind == kind),
		"%u bytes at %u of %s", size, off, btf_type_name(btf, struct_id)))
		printf("# got %d, kind %d, %s\n", err, w.kind, strbuf_str(&text));
	strbuf_fini(&text);
}

static void check_walks(const struct btf *btf)
{
	struct btf_walk w;

	walk(btf, id.s, 0, 4, 0, BTF_WALK_SCALAR, "");
	walk(btf, id.s, 2, 2, 0, BTF_WALK_SCALAR, "");
	walk(btf, id.s, 2, 4, -EACCES, 0,
	     "access beyond the end of member pid (mend:4) in struct s with off 2 size 4\n");
	walk(btf, id.s, 4, 4, 0, BTF_WALK_SCALAR, "");
	walk(btf, id.s, 5, 1, -EINVAL, 0, "struct s doesn't have field at offset 5\n");
	walk(btf, id.s, 16, 8, 0, BTF_WALK_PTR, "");
	walk(btf, id.s, 16, 4, -EACCES, 0,
	     "cannot access ptr member next with moff 16 in struct s with off 16 size 4\n");
	walk(btf, id.s, 30, 8, 0, BTF_WALK_SCALAR, "");
	walk(btf, id.s, 70, 4, -EACCES, 0,
	     "access beyond the end of member grid (mend:72) in struct s with off 70 size 4\n");
	walk(btf, id.s, 72, 8, 0, BTF_WALK_PTR_UNTRUSTED, "");
	walk(btf, id.s, 76, 8, -EACCES, 0, "access beyond struct s at off 76 size 8\n");
	walk(btf, id.s, 80, 1, -EACCES, 0, "access beyond struct s at off 80 size 1\n");
	walk(btf, id.outer, 0, 4, 0, BTF_WALK_SCALAR, "");
	walk(btf, id.flex_s, 8 + 96 * 5 + 16, 8, 0, BTF_WALK_PTR, "");
	walk(btf, id.flex_s, 6, 4, -EACCES, 0, "access beyond struct flex at off 6 size 4\n");
	walk(btf, id.i32, 0, 4, -EINVAL, 0, "Type 'int' is not a struct\n");

	ok(!btf_struct_walk(NULL, btf, id.outer, 0, 8, 0, &w) && w.kind == BTF_WALK_STRUCT &&
		   w.type_id == id.s,
	   "one step finds the nested struct");
	ok(!btf_struct_access(NULL, btf, id.s, 16, 8, &w) && w.type_id == id.s &&
		   !strcmp(w.field_name, "next") && !w.flags,
	   "a pointer's struct and name are told");
	ok(!btf_struct_access(NULL, btf, id.outer, 80, 8, &w) && w.flags == BTF_WALK_RCU,
	   "its tag as well");
	ok(!btf_struct_access(NULL, btf, id.s, 8, 8, &w) && w.flags == BTF_WALK_UNTRUSTED,
	   "what a union holds is untrusted");
	ok(btf_struct_ids_match(btf, id.outer, 0, btf, id.s, false),
	   "a struct stands for its first member");
	ok(!btf_struct_ids_match(btf, id.outer, 0, btf, id.s, true),
	   "but not where the type must be the same");
	ok(!btf_struct_ids_match(btf, id.outer, 88, btf, id.s, false), "nor anywhere else");
	ok(btf_struct_ids_match(btf, id.s, 0, btf, id.s, true), "a struct stands for itself");
}

static void check_split(struct btf *base)
{
	struct btf *split = NULL, *again = NULL;
	u32 first = btf_nr_types(base), s, off, size, base_strings = b.str_len;
	struct blob *more = calloc(1, sizeof(*more));

	if (!more)
		return;
	blob_init(more);
	/* Names are at the base's end and on. */
	s = first;
	blob_type(more, BTF_KIND_STRUCT, NULL, 2, false, 88);
	more->types[0] = base_strings + blob_str(more, "derived");
	blob_member(more, NULL, id.s, 0);
	blob_member(more, NULL, id.u64_, 640);
	more->types[6] = base_strings + blob_str(more, "extra");
	more->types[3] = base_strings + blob_str(more, "base");
	blob_finish(more);
	is_int(btf_parse(more->out, more->size, base, NULL, &split), 0, "a split BTF is parsed");
	is_int(btf_parse(more->out, more->size, NULL, NULL, &again), -EINVAL,
	       "but not without its base");
	if (split) {
		is_u64(btf_nr_types(split), first + 1, "ids go on behind the base's");
		ok(btf_base(split) == base, "the base is told");
		is_int(btf_find_by_name_kind(split, "derived", BTF_KIND_STRUCT), s,
		       "its own type is found");
		is_int(btf_find_by_name_kind(split, "s", BTF_KIND_STRUCT), id.s, "the base's too");
		is_int(btf_find_field_offset(split, "derived", "base.high", &off, &size), 0,
		       "a field reaches into the base");
		is_u64(off, 12, "at 12");
		ok(btf_types_same(split, id.s, base, id.s) && !btf_types_same(split, s, base, id.s),
		   "a type of the base is the same in both");
		ok(btf_struct_ids_match(split, s, 0, base, id.s, false),
		   "and matches as a first member");
	}
	btf_put(split);
	free(more);
}

static void check_dump(const struct btf *btf)
{
	struct strbuf text = STRBUF_INIT;

	is_int(btf_dump_c_type(btf, id.s, &text), 0, "a struct is dumped");
	ok(!strcmp(strbuf_str(&text),
		   "struct s {\n\tconst pid_t pid;\n\tint bits : 3;\n"
		   "\tunsigned char : 5;\n\tunsigned char __gap0[3];\n"
		   "\tunion {\n\t\tunsigned long both;\n\t\tstruct {\n\t\t\tint low;\n\t\t\tint "
		   "high;\n"
		   "\t\t};\n\t};\n\tstruct s *next;\n\tchar grid[3][16];\n\tvoid *any;\n};\n"),
	   "as C writes it");
	if (tap_failed)
		printf("# %s\n", strbuf_str(&text));
	strbuf_reset(&text);
	is_int(btf_dump_c_type(btf, id.td, &text), 0, "a typedef is dumped");
	ok(!strcmp(strbuf_str(&text), "typedef int pid_t;\n"), "as C writes it");
	is_int(btf_dump_c_type(btf, 9999, &text), -EINVAL, "a type that is not there is not");
	strbuf_fini(&text);
}

int main(void)
{
	struct btf *btf = NULL;
	const void *raw;
	u32 size;

	build();
	is_int(btf_parse(b.out, b.size, NULL, NULL, &btf), 0, "the types are parsed");
	if (!btf)
		return tap_done();
	raw = btf_raw_data(btf, &size);
	ok(size == b.size && !memcmp(raw, b.out, size), "the bytes are given back");
	check_names(btf);
	check_sizes(btf);
	check_fields(btf);
	check_walks(btf);
	check_split(btf);
	check_dump(btf);
	ok(btf_get(btf) == btf, "a reference is taken");
	btf_put(btf);
	is_int(btf_find_by_name_kind(btf, "s", BTF_KIND_STRUCT), id.s,
	       "and returning it leaves the other");
	btf_put(btf);
	btf_put(NULL);
	return tap_done();
}
