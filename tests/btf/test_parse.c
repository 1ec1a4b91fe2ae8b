// SPDX-License-Identifier: BSD-2-Clause
/*
 * Good and bad BTF, one case a rule: the errno and the reason are what the case says, and what the
 * running kernel's BTF_LOAD says of the same bytes, with the whole log, where it can be asked.
 */
#include <stdlib.h>

#include "../tap.h"
#include "btf/btf.h"
#include "build.h"
#include "kernel_btf.h"

static struct blob b;
static const char *no_kernel;
static char *kernel_log;

/* want: errno; reason: must be in the log. */
static void judge_bytes(const char *name, const u8 *data, u32 size, int want, const char *reason)
{
	struct strbuf text = STRBUF_INIT, errors = STRBUF_INIT;
	struct btf_log log = {.level = 1, .buf = &text},
		       errors_log = {.level = BTF_LOG_ERRORS, .buf = &errors};
	struct btf *btf = NULL, *again = NULL;
	int ours = btf_parse(data, size, NULL, &log, &btf), theirs;

	if (!ok(ours == want && strstr(strbuf_str(&text), reason), "%s: %d %s", name, want, reason))
		printf("# got %d, log:\n# %s\n", ours, strbuf_str(&text));
	if (no_kernel) {
		tap_skip("%s: %s", name, no_kernel);
	} else {
		theirs = kernel_btf_load(data, size, kernel_log);
		if (!ok(theirs == ours && !strcmp(kernel_log, strbuf_str(&text)),
			"%s: as the kernel", name))
			printf("# kernel %d:\n# %s\n# ours %d:\n# %s\n", theirs, kernel_log, ours,
			       strbuf_str(&text));
	}
	/* With only the errors wanted, a refusal still has its reason and success says nothing. */
	if (btf_parse(data, size, NULL, &errors_log, &again) != ours ||
	    (want ? !strstr(strbuf_str(&errors), reason) : errors.len != 0))
		ok(false, "%s: errors alone: '%s'", name, strbuf_str(&errors));
	btf_put(btf);
	btf_put(again);
	strbuf_fini(&text);
	strbuf_fini(&errors);
}

static void judge(const char *name, int want, const char *reason)
{
	blob_finish(&b);
	judge_bytes(name, b.out, b.size, want, reason);
}

/* A blob that is good until the case changes it. */
static void start(void)
{
	blob_init(&b);
	blob_int(&b, "int", 4, 32, 0, BTF_INT_SIGNED);
}

static void check_header(void)
{
	start();
	judge("one integer", 0, "");
	start();
	b.hdr.magic = 0x9feb;
	judge("wrong magic", -EINVAL, "Invalid magic");
	start();
	b.hdr.version = 2;
	judge("a version that is not known", -LINUX_ENOTSUPP, "Unsupported version");
	start();
	b.hdr.flags = 1;
	judge("a flag that is not known", -LINUX_ENOTSUPP, "Unsupported flags");
	start();
	b.hdr.hdr_len = 4096;
	judge("header longer than the data", -EINVAL, "btf_header not found");
	start();
	b.hdr.hdr_len = 28;
	judge("longer header that is not zero behind", -E2BIG, "Unsupported btf_header");
	blob_init(&b);
	blob_word(&b, 0);
	b.hdr.hdr_len = 28;
	judge("longer header with zeros behind, then nothing", -EINVAL, "");
	start();
	b.hdr.type_off = 0xfffffff0;
	b.hdr.type_len = 0x20;
	judge("type section whose end wraps around", -EINVAL, "Invalid section offset");
	start();
	b.hdr.str_off = 12;
	judge("sections that overlap", -EINVAL, "Section overlap found");
	start();
	b.hdr.str_off = 20;
	judge("a gap between sections", -EINVAL, "Unsupported section found");
	start();
	b.hdr.str_len = 100;
	judge("strings longer than the data", -EINVAL, "Total section length too long");
	start();
	b.hdr.str_len = b.str_len - 1;
	judge("bytes behind the sections", -EINVAL, "Unsupported section found");
	start();
	blob_finish(&b);
	judge_bytes("nothing behind the header", b.out, 24, -EINVAL, "No data");
	judge_bytes("less than a header's length field", b.out, 7, -EINVAL, "hdr_len not found");
	judge_bytes("half a header", b.out, 20, -EINVAL, "btf_header not found");
}

static void check_sections(void)
{
	u32 at;

	start();
	b.strings[b.str_len - 1] = 'x';
	judge("strings without a NUL at the end", -EINVAL, "Invalid string section");
	start();
	b.strings[0] = 'x';
	judge("strings without a NUL at the start", -EINVAL, "Invalid string section");
	blob_init(&b);
	judge("no types", -EINVAL, "No type found");
	start();
	blob_word(&b, 0);
	judge("the last type is cut off", -EINVAL, "[2] meta_left:4 meta_needed:12");
	start();
	b.nr_words--;
	judge("an integer without its description", -EINVAL,
	      "[1] INT int meta_left:0 meta_needed:4");
	/* types behind strings */
	start();
	blob_finish(&b);
	at = b.str_len + (4 - b.str_len % 4) % 4;
	memmove(b.out + 24 + at, b.types, b.nr_words * 4);
	memset(b.out + 24, 0, at);
	memcpy(b.out + 24, b.strings, b.str_len);
	((struct btf_header *)b.out)->type_off = at;
	((struct btf_header *)b.out)->str_off = 0;
	((struct btf_header *)b.out)->str_len = at;
	judge_bytes("strings before types", b.out, 24 + at + b.nr_words * 4, -EINVAL,
		    "String section is not at the end");
}

static void check_ints(void)
{
	static const struct {
		const char *name;
		u32 size, bits, off, enc;
		int want;
		const char *reason;
	} cases[] = {
		{"an integer of no bits", 4, 0, 0, 0, 0, ""},
		{"more bits than bytes", 4, 33, 0, 0, -EINVAL, "nr_bits exceeds type_size"},
		{"bits that end behind the bytes", 4, 32, 8, 0, -EINVAL,
		 "nr_bits exceeds type_size"},
		{"129 bits", 32, 129, 0, 0, -EINVAL, "nr_bits exceeds 128"},
		{"signed and bool at once", 4, 32, 0, 5, -LINUX_ENOTSUPP, "Unsupported encoding"},
		{"encoding 8", 4, 32, 0, 8, -LINUX_ENOTSUPP, "Unsupported encoding"},
		{"an upper bit of the description", 4, 32, 0, 16, -EINVAL,
		 "Invalid int_data:10000020"},
		{"a 128-bit integer", 16, 128, 0, 0, 0, ""},
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		start();
		blob_int(&b, "x", cases[i].size, cases[i].bits, cases[i].off, cases[i].enc);
		judge(cases[i].name, cases[i].want, cases[i].reason);
	}
}

static void check_info_word(void)
{
	start();
	blob_type(&b, 31, "x", 0, false, 0);
	judge("kind 31", -EINVAL, "[2] Invalid kind:31");
	start();
	blob_type(&b, 20, "x", 0, false, 0);
	judge("the kind behind the last one", -EINVAL, "[2] Invalid kind:20");
	start();
	blob_type(&b, 0, "x", 0, false, 0);
	judge("kind 0", -EINVAL, "[2] Invalid kind:0");
	start();
	blob_type(&b, BTF_KIND_PTR, NULL, 0x10000, false, 1);
	judge("a bit of the info word nobody knows", -EINVAL, "[2] Invalid btf_info:2010000");
	start();
	blob_type(&b, BTF_KIND_PTR, NULL, 1, false, 1);
	judge("a pointer with entries", -EINVAL, "vlen != 0");
	start();
	blob_type(&b, BTF_KIND_PTR, NULL, 0, true, 1);
	judge("a pointer with kind_flag", -EINVAL, "Invalid btf_info kind_flag");
	start();
	blob_type(&b, BTF_KIND_TYPE_TAG, "tag", 0, true, 1);
	judge("a type tag with kind_flag", 0, "");
	start();
	blob_ref(&b, BTF_KIND_TYPEDEF, "x", 1);
	b.types[4] = 0x1000;
	judge("a name outside the strings", -EINVAL, "[2] Invalid name_offset:4096");
}

static void check_names(void)
{
	start();
	blob_ref(&b, BTF_KIND_TYPEDEF, NULL, 1);
	judge("a typedef without a name", -EINVAL, "Invalid name");
	start();
	blob_ref(&b, BTF_KIND_TYPEDEF, "a-b", 1);
	judge("a name that is no identifier", -EINVAL, "TYPEDEF a-b type_id=1 Invalid name");
	start();
	blob_ref(&b, BTF_KIND_TYPEDEF, "a.b", 1);
	judge("a name with a dot", 0, "");
	start();
	blob_ref(&b, BTF_KIND_TYPEDEF, "1a", 1);
	judge("a name that begins with a digit", -EINVAL, "Invalid name");
	start();
	blob_ref(&b, BTF_KIND_CONST, "c", 1);
	judge("a const with a name", -EINVAL, "Invalid name");
	start();
	blob_type(&b, BTF_KIND_FWD, NULL, 0, false, 0);
	judge("a forward declaration of nothing", -EINVAL, "Invalid name");
	start();
	blob_type(&b, BTF_KIND_FWD, "f", 0, false, 1);
	judge("a forward declaration of something", -EINVAL, "type != 0");
}

static void check_refs(void)
{
	u32 proto;

	start();
	blob_ref(&b, BTF_KIND_PTR, NULL, 9);
	judge("a pointer to a type that is not there", -EINVAL,
	      "[2] PTR (anon) type_id=9 Invalid type_id");
	start();
	blob_ref(&b, BTF_KIND_PTR, NULL, 0x100000);
	judge("a pointer to an id beyond all", -EINVAL, "Invalid type_id");
	start();
	blob_ref(&b, BTF_KIND_PTR, NULL, 0);
	judge("a pointer to void", 0, "");
	start();
	blob_ref(&b, BTF_KIND_TYPEDEF, "t", 2);
	judge("a typedef of itself", -EEXIST, "[2] TYPEDEF t type_id=2 Loop detected");
	start();
	blob_ref(&b, BTF_KIND_TYPEDEF, "t", 3);
	blob_ref(&b, BTF_KIND_TYPEDEF, "u", 2);
	judge("two typedefs of each other", -EEXIST, "Loop detected");
	start();
	blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 1, false);
	blob_member(&b, "m", 2, 0);
	judge("a struct that holds itself", -EEXIST, "STRUCT s size=4 vlen=1 Loop detected");
	start();
	blob_struct(&b, BTF_KIND_STRUCT, "s", 8, 1, false);
	blob_member(&b, "m", 3, 0);
	blob_ref(&b, BTF_KIND_PTR, NULL, 2);
	judge("a struct that points to itself", 0, "");
	start();
	blob_ref(&b, BTF_KIND_FUNC, "f", 1);
	judge("a function whose type is an int", -EINVAL, "[2] FUNC f type_id=1 Invalid type_id");
	start();
	proto = blob_type(&b, BTF_KIND_FUNC_PROTO, NULL, 1, false, 0);
	blob_pair(&b, NULL, 1);
	blob_ref(&b, BTF_KIND_FUNC, "f", proto);
	judge("a function with an argument without a name", -EINVAL, "Invalid arg#1");
	start();
	blob_type(&b, BTF_KIND_FUNC, "f", 2, false, 1);
	judge("an external function", -EINVAL, "Invalid func linkage");
	start();
	blob_type(&b, BTF_KIND_FUNC_PROTO, NULL, 2, false, 1);
	blob_pair(&b, "a", 0);
	blob_pair(&b, "b", 1);
	judge("a void argument that is not the last", -EINVAL, "Invalid arg#1");
	start();
	blob_type(&b, BTF_KIND_FUNC_PROTO, NULL, 2, false, 1);
	blob_pair(&b, "a", 1);
	blob_pair(&b, NULL, 0);
	judge("a prototype that ends in ...", 0, "args=(1 a, vararg)");
	start();
	blob_ref(&b, BTF_KIND_TYPE_TAG, "t", 1);
	blob_ref(&b, BTF_KIND_CONST, NULL, 2);
	judge("a const before a type tag", -EINVAL, "Type tags don't precede modifiers");
}

static void check_depth(void)
{
	u32 i;

	start();
	for (i = 0; i < 40; i++)
		blob_ref(&b, BTF_KIND_CONST, NULL, 1 + i);
	judge("forty consts, each known before the next", 0, "");
	start();
	for (i = 0; i < 40; i++)
		blob_ref(&b, BTF_KIND_CONST, NULL, i < 39 ? 3 + i : 1);
	judge("forty consts, each waiting for the next", -E2BIG, "Exceeded max resolving depth:32");
}

static void check_structs(void)
{
	start();
	blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 2, false);
	blob_member(&b, "a", 1, 0);
	judge("a struct of two members of which one is there", -EINVAL,
	      "STRUCT s meta_left:12 meta_needed:24");
	start();
	blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 1, false);
	blob_member(&b, "a", 1, 8);
	judge("a member that ends behind its struct", -EINVAL,
	      "a type_id=1 bits_offset=8 Member exceeds struct_size");
	start();
	blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 1, false);
	blob_member(&b, "a", 1, 40);
	judge("a member that begins behind its struct", -EINVAL,
	      "Member bits_offset exceeds its struct size");
	start();
	blob_struct(&b, BTF_KIND_STRUCT, "s", 8, 2, false);
	blob_member(&b, "a", 1, 32);
	blob_member(&b, "b", 1, 0);
	judge("members out of order", -EINVAL, "Invalid member bits_offset");
	start();
	blob_struct(&b, BTF_KIND_UNION, "u", 8, 1, false);
	blob_member(&b, "a", 1, 32);
	judge("a union's member not at 0", -EINVAL, "Invalid member bits_offset");
	start();
	blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 1, false);
	blob_member(&b, "a", 0, 0);
	judge("a member of type void", -EINVAL, "Invalid type_id");
	start();
	blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 1, true);
	blob_member(&b, "a", 1, 33 << 24);
	judge("a bit field wider than its type", -EINVAL, "Invalid member bitfield_size");
	start();
	blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 2, true);
	blob_member(&b, "a", 1, 3 << 24);
	blob_member(&b, "b", 1, 5 << 24 | 3);
	judge("two bit fields", 0, "b type_id=1 bitfield_size=5 bits_offset=3");
	start();
	blob_ref(&b, BTF_KIND_PTR, NULL, 1);
	blob_struct(&b, BTF_KIND_STRUCT, "s", 8, 1, true);
	blob_member(&b, "a", 2, 3 << 24);
	judge("a bit field of pointers", -EINVAL, "Invalid member bitfield_size");
	start();
	blob_type(&b, BTF_KIND_FWD, "f", 0, false, 0);
	blob_struct(&b, BTF_KIND_STRUCT, "s", 8, 1, false);
	blob_member(&b, "a", 2, 0);
	judge("a member that is only declared", -EINVAL, "Invalid member");
	start();
	blob_type(&b, BTF_KIND_FLOAT, "double", 0, false, 8);
	blob_struct(&b, BTF_KIND_STRUCT, "s", 16, 1, false);
	blob_member(&b, "a", 2, 32);
	judge("a double that is not aligned", -EINVAL, "Member is not properly aligned");
	start();
	blob_type(&b, BTF_KIND_FLOAT, "f", 0, false, 5);
	judge("a float of 5 bytes", -EINVAL, "Invalid type_size");
}

static void check_arrays(void)
{
	start();
	blob_array(&b, 1, 1, 0x80000000);
	judge("2^31 integers", -EINVAL, "Array size overflows U32_MAX");
	start();
	blob_array(&b, 1, 1, 0);
	judge("an array of nothing", 0, "nr_elems=0");
	start();
	blob_array(&b, 0, 1, 1);
	judge("an array of void", -EINVAL, "Invalid elem");
	start();
	blob_ref(&b, BTF_KIND_PTR, NULL, 1);
	blob_array(&b, 1, 2, 1);
	judge("an array indexed by pointers", -EINVAL, "Invalid index");
	start();
	blob_array(&b, 2, 1, 1);
	judge("an array of itself", -EEXIST, "Loop detected");
	start();
	blob_int(&b, "bits", 4, 3, 0, 0);
	blob_array(&b, 2, 1, 4);
	judge("an array of bit fields", -EINVAL, "Invalid array of int");
}

static void check_enums(void)
{
	start();
	blob_type(&b, BTF_KIND_ENUM, "e", 1, false, 3);
	blob_pair(&b, "A", 1);
	judge("an enum of 3 bytes", -EINVAL, "Unexpected size");
	start();
	blob_type(&b, BTF_KIND_ENUM, "e", 1, true, 4);
	blob_pair(&b, "A", ~0u);
	judge("a signed enum", 0, "A val=-1");
	start();
	blob_type(&b, BTF_KIND_ENUM, "e", 1, false, 4);
	blob_pair(&b, NULL, 1);
	judge("an enumerator without a name", -EINVAL, "Invalid name");
	start();
	blob_type(&b, BTF_KIND_ENUM64, "e", 1, false, 8);
	blob_word(&b, blob_str(&b, "A"));
	blob_word(&b, 1);
	blob_word(&b, 1);
	judge("a 64-bit enum", 0, "A val=4294967297");
	start();
	blob_type(&b, BTF_KIND_ENUM64, "e", 1, false, 8);
	blob_pair(&b, "A", 1);
	judge("a 64-bit enum that is cut off", -EINVAL, "meta_left:8 meta_needed:12");
}

static u32 add_var(u32 type, u32 linkage)
{
	u32 id = blob_ref(&b, BTF_KIND_VAR, "v", type);

	blob_word(&b, linkage);
	return id;
}

static void add_section(const char *name, u32 size, u32 var, u32 off, u32 var_size)
{
	blob_type(&b, BTF_KIND_DATASEC, name, 1, false, size);
	blob_word(&b, var);
	blob_word(&b, off);
	blob_word(&b, var_size);
}

static void check_variables(void)
{
	start();
	add_section(".data", 4, add_var(1, 1), 0, 4);
	judge("a section of one variable", 0, " type_id=2 offset=0 size=4");
	start();
	add_section(".data", 0, add_var(1, 1), 0, 4);
	judge("a section without a size, as compilers write it", -EINVAL, "size == 0");
	start();
	add_section(".data", 8, add_var(1, 1), 8, 4);
	judge("a variable that begins behind its section", -EINVAL, "Invalid offset");
	start();
	add_section(".data", 8, add_var(1, 1), 6, 4);
	judge("a variable that ends behind its section", -EINVAL, "Invalid offset+size");
	start();
	add_section(".data", 8, add_var(1, 1), 0, 2);
	judge("a variable smaller than its type", -EINVAL,
	      "type_id=2 offset=0 size=2 Invalid size");
	start();
	add_section(".data", 8, 1, 0, 4);
	judge("a section that holds a type", -EINVAL, "Not a VAR kind member");
	start();
	add_section("", 4, add_var(1, 1), 0, 4);
	judge("a section without a name", -EINVAL, "Invalid name");
	start();
	add_section("?.data", 4, add_var(1, 1), 0, 4);
	judge("a section with a name of its own kind", 0, "");
	start();
	add_var(1, 2);
	judge("an external variable", -EINVAL, "Linkage not supported");
	start();
	add_var(0, 1);
	judge("a variable of type void", -EINVAL, "Invalid type_id");
}

static void add_tag(const char *text, u32 to, s32 component)
{
	blob_ref(&b, BTF_KIND_DECL_TAG, text, to);
	blob_word(&b, component);
}

static void check_tags(void)
{
	u32 s;

	start();
	s = blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 1, false);
	blob_member(&b, "a", 1, 0);
	add_tag("t", s, 0);
	judge("a tag on a member", 0, "DECL_TAG t type=2 component_idx=0");
	start();
	s = blob_struct(&b, BTF_KIND_STRUCT, "s", 4, 1, false);
	blob_member(&b, "a", 1, 0);
	add_tag("t", s, 1);
	judge("a tag on a member that is not there", -EINVAL, "Invalid component_idx");
	start();
	add_tag("t", 1, -1);
	judge("a tag on an int", -EINVAL, "Invalid type_id");
	start();
	add_tag("", 1, -1);
	judge("a tag without text", -EINVAL, "Invalid value");
	start();
	add_tag("t", add_var(1, 1), 0);
	judge("a tag on a variable's component", -EINVAL, "Invalid component_idx");
	start();
	add_tag("t", 1, -2);
	judge("component -2", -EINVAL, "Invalid component_idx");
}

static void check_special(void)
{
	u32 lock;

	start();
	lock = blob_struct(&b, BTF_KIND_STRUCT, "bpf_spin_lock", 4, 1, false);
	blob_member(&b, "val", 1, 0);
	blob_struct(&b, BTF_KIND_STRUCT, "s", 8, 2, false);
	blob_member(&b, "a", lock, 0);
	blob_member(&b, "b", lock, 32);
	judge("a struct with two spin locks", -E2BIG, "");
	start();
	lock = blob_struct(&b, BTF_KIND_STRUCT, "bpf_spin_lock", 8, 1, false);
	blob_member(&b, "val", 1, 0);
	blob_struct(&b, BTF_KIND_STRUCT, "s", 8, 1, false);
	blob_member(&b, "a", lock, 0);
	judge("a spin lock of the wrong size", -EFAULT, "");
}

/* n pointers to void; the log would be longer than any buffer, so it is not asked for. */
static void judge_count(u32 n)
{
	u32 size = 24 + n * 12 + 1, i, info = BTF_KIND_PTR << 24;
	struct btf_header h = {.magic = BTF_MAGIC, .version = 1, .hdr_len = 24, .str_len = 1};
	struct btf *btf = NULL;
	u8 *data = calloc(1, size);
	int ours;

	if (!data)
		return;
	h.type_len = h.str_off = n * 12;
	memcpy(data, &h, 24);
	for (i = 0; i < n; i++)
		memcpy(data + 24 + i * 12 + 4, &info, 4);
	ours = btf_parse(data, size, NULL, NULL, &btf);
	is_int(ours, 0, "%u types", n);
	if (no_kernel)
		tap_skip("%u types: %s", n, no_kernel);
	else
		is_int(ours, kernel_btf_load(data, size, NULL), "%u types: as the kernel", n);
	btf_put(btf);
	free(data);
}

static void check_huge(void)
{
	u8 *data = calloc(1, BTF_MAX_BYTES + 1);
	struct btf *btf = NULL;

	if (!data)
		return;
	is_int(btf_parse(data, BTF_MAX_BYTES + 1, NULL, NULL, &btf), -E2BIG,
	       "more than 16 MiB are too much");
	free(data);
}

int main(void)
{
	no_kernel = kernel_btf_refuses();
	kernel_log = malloc(KERNEL_LOG_SIZE);
	if (!kernel_log)
		return 1;
	check_header();
	check_sections();
	check_ints();
	check_info_word();
	check_names();
	check_refs();
	check_depth();
	check_structs();
	check_arrays();
	check_enums();
	check_variables();
	check_tags();
	check_special();
	judge_count(BTF_MAX_TYPE);
	judge_count((BTF_MAX_BYTES - 25) / 12);
	check_huge();
	free(kernel_log);
	return tap_done();
}
