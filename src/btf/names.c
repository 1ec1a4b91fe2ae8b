// SPDX-License-Identifier: BSD-2-Clause
/*
 * Strings of a BTF, and the two indexes over them: ids by (name, kind) and tags by what they tag.
 *
 * The name table holds, for each (name, kind), the lowest id only, so equal names cost one probe
 * each however many there are; the hash is seeded from the table's own address, so a file cannot be
 * made to collide.
 */
#include "btf/btf_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* The BTF, this one or a base, that holds a string offset; *offset becomes relative to it. */
static const struct btf *string_owner(const struct btf *btf, u32 *offset)
{
	while (*offset < btf->start_str)
		btf = btf->base;
	*offset -= btf->start_str;
	return *offset < btf->str_len ? btf : NULL;
}

const char *btf_name_by_offset(const struct btf *btf, u32 offset)
{
	const struct btf *owner = string_owner(btf, &offset);

	return owner ? owner->strings + offset : NULL;
}

bool btf_name_offset_ok(const struct btf *btf, u32 offset)
{
	return offset <= BTF_MAX_NAME_OFFSET && string_owner(btf, &offset);
}

const char *btf_name_for_log(const struct btf *btf, u32 offset)
{
	const char *name;

	if (!offset)
		return "(anon)";
	name = btf_name_by_offset(btf, offset);
	return name ? name : "(invalid-name-offset)";
}

/*
 * Characters of an identifier as the kernel's ctype has it: letters of ASCII and Latin-1, '_', and
 * the dot, for names of static variables and outlined functions; digits not at the start.
 */
enum { IDENT_REST = 1, IDENT_FIRST = 2 };

static const u8 ident_chars[256] = {
	['a' ... 'z'] = IDENT_FIRST | IDENT_REST,
	['A' ... 'Z'] = IDENT_FIRST | IDENT_REST,
	['0' ... '9'] = IDENT_REST,
	['_'] = IDENT_FIRST | IDENT_REST,
	['.'] = IDENT_FIRST | IDENT_REST,
	[0xc0 ... 0xd6] = IDENT_FIRST | IDENT_REST,
	[0xd8 ... 0xf6] = IDENT_FIRST | IDENT_REST,
	[0xf8 ... 0xff] = IDENT_FIRST | IDENT_REST,
};

/* Printable as the kernel's ctype: Latin-1 from the no-break space on counts. */
static bool is_print(u8 c)
{
	return (c >= 0x20 && c < 0x7f) || c >= 0xa0;
}

bool btf_name_is_identifier(const struct btf *btf, u32 offset)
{
	const u8 *name = (const u8 *)btf_name_by_offset(btf, offset);
	u32 i;

	if (!name || !(ident_chars[name[0]] & IDENT_FIRST))
		return false;
	for (i = 1; ident_chars[name[i]]; i++)
		if (i == BTF_MAX_IDENT)
			return false;
	return !name[i];
}

bool btf_name_is_section(const struct btf *btf, u32 offset)
{
	const char *name = btf_name_by_offset(btf, offset);
	u32 i;

	if (!name || !name[0])
		return false;
	for (i = 0; name[i]; i++)
		if (i == BTF_MAX_IDENT || !is_print(name[i]))
			return false;
	return true;
}

static u64 name_hash(const struct btf *btf, const char *name, u32 kind)
{
	return XXH3_64bits_withSeed(name, strlen(name), btf->names_seed + kind);
}

/* Slot that holds (name, kind), or the free one where it would go; *ret_hash is what goes with it.
 */
static struct btf_name_ref *name_slot(const struct btf *btf, const char *name, u32 kind,
				      u32 *ret_hash)
{
	u64 hash = name_hash(btf, name, kind);
	u32 at = hash & btf->names_mask;
	const struct btf_type *t;

	*ret_hash = hash >> 32;
	for (; btf->names[at].id; at = (at + 1) & btf->names_mask) {
		/* The other half of the hash spares most looks at the type, which are cache misses.
		 */
		if (btf->names[at].hash != *ret_hash)
			continue;
		t = btf->types[btf->names[at].id - btf->start_id];
		if (btf_kind(t) == kind && !strcmp(btf_name_by_offset(btf, t->name_off), name))
			break;
	}
	return &btf->names[at];
}

static bool is_indexed(const struct btf_type *t)
{
	return t->name_off && btf_kind(t) != BTF_KIND_DECL_TAG && btf_kind(t) != BTF_KIND_TYPE_TAG;
}

static int build_names(struct btf *btf)
{
	struct btf_name_ref *slot;
	u32 i, nr_named = 0, hash;

	for (i = 0; i < btf->nr_own; i++)
		nr_named += is_indexed(btf->types[i]);
	btf->names_mask = roundup_pow2((u64)nr_named * 2 + 2) - 1;
	btf->names = calloc((size_t)btf->names_mask + 1, sizeof(*btf->names));
	if (!btf->names)
		return -ENOMEM;
	btf->names_seed = (u64)(uintptr_t)btf->names * 0x9e3779b97f4a7c15ULL;
	for (i = 0; i < btf->nr_own; i++) {
		const struct btf_type *t = btf->types[i];

		if (!is_indexed(t))
			continue;
		slot = name_slot(btf, btf_name_by_offset(btf, t->name_off), btf_kind(t), &hash);
		if (!slot->id)
			*slot = (struct btf_name_ref){btf->start_id + i, hash};
	}
	return 0;
}

static int compare_tags(const void *pa, const void *pb)
{
	const struct btf_tag_ref *a = pa, *b = pb;

	if (a->target != b->target)
		return a->target < b->target ? -1 : 1;
	if (a->component != b->component)
		return a->component < b->component ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static int build_tags(struct btf *btf)
{
	u32 i, n = 0;

	for (i = 0; i < btf->nr_own; i++)
		n += btf_kind(btf->types[i]) == BTF_KIND_DECL_TAG;
	if (!n)
		return 0;
	btf->tags = calloc(n, sizeof(*btf->tags));
	if (!btf->tags)
		return -ENOMEM;
	for (i = 0; i < btf->nr_own; i++) {
		const struct btf_type *t = btf->types[i];

		if (btf_kind(t) != BTF_KIND_DECL_TAG)
			continue;
		btf->tags[btf->nr_tags++] = (struct btf_tag_ref){
			.target = t->type,
			.component = btf_decl_tag(t)->component_idx,
			.id = btf->start_id + i,
		};
	}
	qsort(btf->tags, n, sizeof(*btf->tags), compare_tags);
	return 0;
}

int btf_index_build(struct btf *btf)
{
	int err = build_names(btf);

	return err ? err : build_tags(btf);
}

s32 btf_find_by_name_kind(const struct btf *btf, const char *name, u32 kind)
{
	u32 hash;
	s32 id;

	if (btf->base) {
		id = btf_find_by_name_kind(btf->base, name, kind);
		if (id > 0)
			return id;
	}
	id = *name ? name_slot(btf, name, kind, &hash)->id : 0;
	return id ? id : -ENOENT;
}

/* First tag of (target, component) in this BTF (not its base); NULL: none. */
static const struct btf_tag_ref *first_tag(const struct btf *btf, u32 target, s32 component)
{
	u32 lo = 0, hi = btf->nr_tags, mid;
	struct btf_tag_ref want = {target, component, 0};

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (compare_tags(&btf->tags[mid], &want) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == btf->nr_tags || btf->tags[lo].target != target ||
	    btf->tags[lo].component != component)
		return NULL;
	return &btf->tags[lo];
}

int btf_find_tag(const struct btf *btf, u32 target, s32 component, const char *prefix, const char **ret_rest)
{
	const char *found = NULL, *text;
	const struct btf_tag_ref *tag;
	size_t n = strlen(prefix);

	for (; btf; btf = btf->base) {
		tag = first_tag(btf, target, component);
		for (; tag && tag < btf->tags + btf->nr_tags; tag++) {
			if (tag->target != target || tag->component != component)
				break;
			text = btf_type_name(btf, tag->id);
			if (strncmp(text, prefix, n))
				continue;
			if (found)
				return -EEXIST;
			found = text + n;
		}
	}
	*ret_rest = found;
	return found ? 0 : -ENOENT;
}

const char *btf_tag_value(const struct btf *btf, u32 target, s32 component, const char *prefix)
{
	const char *rest;

	return btf_find_tag(btf, target, component, prefix, &rest) ? NULL : rest;
}

bool btf_has_decl_tag(const struct btf *btf, u32 id, s32 component, const char *tag_text)
{
	const struct btf_tag_ref *tag;

	for (; btf; btf = btf->base) {
		tag = first_tag(btf, id, component);
		for (; tag && tag < btf->tags + btf->nr_tags; tag++) {
			if (tag->target != id || tag->component != component)
				break;
			if (!strcmp(btf_type_name(btf, tag->id), tag_text))
				return true;
		}
	}
	return false;
}
