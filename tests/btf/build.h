/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds BTF blobs by hand, good and bad ones. Fixed buffers: tests know what they need. */
#ifndef INLAY_TESTS_BTF_BUILD_H
#define INLAY_TESTS_BTF_BUILD_H

#include <linux/btf.h>
#include <string.h>

#include "base/types.h"

struct blob {
	u32 types[4096];
	u32 nr_words, nr_types;
	char strings[8192];
	u32 str_len;
	struct btf_header hdr; /* bytes changed by hand come last: see blob_finish() */
	u8 out[65536];
	u32 size;
};

__attribute__((unused)) static void blob_init(struct blob *b)
{
	memset(b, 0, sizeof(*b));
	b->str_len = 1;
}

__attribute__((unused)) static u32 blob_str(struct blob *b, const char *s)
{
	u32 at = b->str_len;

	if (!s || !*s)
		return 0;
	memcpy(b->strings + at, s, strlen(s) + 1);
	b->str_len += strlen(s) + 1;
	return at;
}

__attribute__((unused)) static void blob_word(struct blob *b, u32 w)
{
	b->types[b->nr_words++] = w;
}

/* The twelve bytes every type begins with; its id. */
__attribute__((unused)) static u32 blob_type(struct blob *b, u32 kind, const char *name, u32 vlen,
					     bool kflag, u32 size_or_type)
{
	blob_word(b, blob_str(b, name));
	blob_word(b, (u32)kflag << 31 | kind << 24 | vlen);
	blob_word(b, size_or_type);
	return ++b->nr_types;
}

__attribute__((unused)) static u32 blob_int(struct blob *b, const char *name, u32 size, u32 bits,
					    u32 off, u32 enc)
{
	u32 id = blob_type(b, BTF_KIND_INT, name, 0, false, size);

	blob_word(b, enc << 24 | off << 16 | bits);
	return id;
}

__attribute__((unused)) static u32 blob_ref(struct blob *b, u32 kind, const char *name, u32 to)
{
	return blob_type(b, kind, name, 0, false, to);
}

__attribute__((unused)) static u32 blob_array(struct blob *b, u32 elem, u32 index, u32 nelems)
{
	u32 id = blob_type(b, BTF_KIND_ARRAY, NULL, 0, false, 0);

	blob_word(b, elem);
	blob_word(b, index);
	blob_word(b, nelems);
	return id;
}

/* A struct or union of n members; each follows by blob_member(). */
__attribute__((unused)) static u32 blob_struct(struct blob *b, u32 kind, const char *name, u32 size,
					       u32 n, bool kflag)
{
	return blob_type(b, kind, name, n, kflag, size);
}

__attribute__((unused)) static void blob_member(struct blob *b, const char *name, u32 type, u32 bit)
{
	blob_word(b, blob_str(b, name));
	blob_word(b, type);
	blob_word(b, bit);
}

/* Two words: a parameter, or an enumerator. */
__attribute__((unused)) static void blob_pair(struct blob *b, const char *name, u32 v)
{
	blob_word(b, blob_str(b, name));
	blob_word(b, v);
}

/* Header and sections into b->out. Fields of b->hdr that are not 0 replace the right ones. */
__attribute__((unused)) static void blob_finish(struct blob *b)
{
	struct btf_header h = {.magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(h)};

	h.type_len = b->nr_words * 4;
	h.str_off = h.type_len;
	h.str_len = b->str_len;
	h.magic = b->hdr.magic ? b->hdr.magic : h.magic;
	h.version = b->hdr.version ? b->hdr.version : h.version;
	h.flags = b->hdr.flags;
	h.hdr_len = b->hdr.hdr_len ? b->hdr.hdr_len : h.hdr_len;
	h.type_off = b->hdr.type_off;
	h.type_len = b->hdr.type_len ? b->hdr.type_len : h.type_len;
	h.str_off = b->hdr.str_off ? b->hdr.str_off : h.str_off;
	h.str_len = b->hdr.str_len ? b->hdr.str_len : h.str_len;
	memcpy(b->out, &h, sizeof(h));
	memcpy(b->out + sizeof(h), b->types, b->nr_words * 4);
	memcpy(b->out + sizeof(h) + b->nr_words * 4, b->strings, b->str_len);
	b->size = sizeof(h) + b->nr_words * 4 + b->str_len;
}

#endif
