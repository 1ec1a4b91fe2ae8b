// SPDX-License-Identifier: BSD-2-Clause
/*
 * From untrusted bytes to a struct btf. The bytes are copied first and only the copy is looked at;
 * header and sections, then each type alone, then what types say of each other (resolve.c), then
 * the indexes.
 */
#include "btf/btf_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BAD(env, ...) (btf_env_log(env, __VA_ARGS__), -EINVAL)

static const struct btf_type void_type;

static void log_header(struct btf_env *env, const struct btf_header *h)
{
	if (!btf_log_verbose(env->log))
		return;
	btf_env_log(env, "magic: 0x%x\nversion: %u\nflags: 0x%x\nhdr_len: %u\n", h->magic,
		    h->version, h->flags, h->hdr_len);
	btf_env_log(env, "type_off: %u\ntype_len: %u\nstr_off: %u\nstr_len: %u\n", h->type_off,
		    h->type_len, h->str_off, h->str_len);
	btf_env_log(env, "btf_total_size: %u\n", env->btf->size);
}

/* The two sections lie behind the header without overlap or gap, in either order, and nothing else
 * does. */
static int check_sections(struct btf_env *env, const struct btf_header *h)
{
	struct {
		u32 off, len;
	} sec[2] = {{h->type_off, h->type_len}, {h->str_off, h->str_len}};
	u32 room = env->btf->size - h->hdr_len, at = 0, i, k;
	/* Linux orders them by the sign of the 32-bit difference: it decides which fault is named,
	 * not whether there is one. */
	bool swap = sec[0].off == sec[1].off ? (s32)(sec[0].len - sec[1].len) > 0
					     : (s32)(sec[0].off - sec[1].off) > 0;

	for (k = 0; k < 2; k++) {
		i = swap ? 1 - k : k;
		if (room < sec[i].off)
			return BAD(env, "Invalid section offset");
		if (at < sec[i].off)
			return BAD(env, "Unsupported section found");
		if (at > sec[i].off)
			return BAD(env, "Section overlap found");
		if (room - at < sec[i].len)
			return BAD(env, "Total section length too long");
		at += sec[i].len;
	}
	return at == room ? 0 : BAD(env, "Unsupported section found");
}

/* hdr_len may be less than ours (an old writer: what is missing counts as 0) or more, if the rest
 * is 0. */
static int parse_header(struct btf_env *env, struct btf_header *h)
{
	struct btf *btf = env->btf;
	u32 i, hdr_len;

	if (btf->size < offsetof(struct btf_header, hdr_len) + sizeof(h->hdr_len))
		return BAD(env, "hdr_len not found");
	memcpy(&hdr_len, btf->data + offsetof(struct btf_header, hdr_len), sizeof(hdr_len));
	if (btf->size < hdr_len)
		return BAD(env, "btf_header not found");
	for (i = sizeof(*h); i < hdr_len; i++) {
		if (btf->data[i]) {
			btf_env_log(env, "Unsupported btf_header");
			return -E2BIG;
		}
	}
	memset(h, 0, sizeof(*h));
	memcpy(h, btf->data, min_of(hdr_len, (u32)sizeof(*h)));
	log_header(env, h);
	if (h->magic != BTF_MAGIC)
		return BAD(env, "Invalid magic");
	if (h->version != BTF_VERSION || h->flags) {
		btf_env_log(env, h->version != BTF_VERSION ? "Unsupported version"
							   : "Unsupported flags");
		return -LINUX_ENOTSUPP;
	}
	if (!btf->base && btf->size == h->hdr_len)
		return BAD(env, "No data");
	return check_sections(env, h);
}

static int parse_strings(struct btf_env *env, const struct btf_header *h)
{
	struct btf *btf = env->btf;

	btf->strings = (const char *)btf->body + h->str_off;
	btf->str_len = h->str_len;
	if (h->hdr_len + h->str_off + h->str_len != btf->size)
		return BAD(env, "String section is not at the end");
	if (btf->base && !h->str_len)
		return 0;
	if (!h->str_len || h->str_len - 1 > BTF_MAX_NAME_OFFSET || btf->strings[h->str_len - 1] ||
	    (!btf->base && btf->strings[0]))
		return BAD(env, "Invalid string section");
	return 0;
}

/* As many as fit into BTF_MAX_BYTES: Linux 6.18 sets no other limit, though ids above BTF_MAX_TYPE
 * cannot be referred to. */
static int add_type(struct btf *btf, const struct btf_type *t)
{
	const struct btf_type **types;
	u32 cap;

	if (btf->nr_own == btf->cap_types) {
		cap = btf->cap_types ? btf->cap_types * 2 : 64;
		types = realloc(btf->types, cap * sizeof(*types));
		if (!types)
			return -ENOMEM;
		btf->types = types;
		btf->cap_types = cap;
	}
	btf->types[btf->nr_own++] = t;
	return 0;
}

/* Checks the type at t, left bytes before the section's end. Its size with all that follows it, or
 * -errno. */
static int check_type(struct btf_env *env, const struct btf_type *t, u32 left)
{
	const struct btf_kind_ops *ops;
	u32 need;
	int err;

	if (left < sizeof(*t))
		return BAD(env, "[%u] meta_left:%u meta_needed:%zu", env->log_id, left, sizeof(*t));
	left -= sizeof(*t);
	if (t->info & ~0x9f00ffffu)
		return BAD(env, "[%u] Invalid btf_info:%x", env->log_id, t->info);
	if (!btf_kind(t) || btf_kind(t) > BTF_KIND_MAX)
		return BAD(env, "[%u] Invalid kind:%u", env->log_id, btf_kind(t));
	if (!btf_name_offset_ok(env->btf, t->name_off))
		return BAD(env, "[%u] Invalid name_offset:%u", env->log_id, t->name_off);
	ops = &btf_kinds[btf_kind(t)];
	need = ops->fixed_size + ops->entry_size * btf_vlen(t);
	if (left < need) {
		btf_env_log_basic(env, t, "meta_left:%u meta_needed:%u", left, need);
		return -EINVAL;
	}
	err = ops->check_meta(env, t);
	return err ? err : (int)(sizeof(*t) + need);
}

static int parse_types(struct btf_env *env, const struct btf_header *h)
{
	struct btf *btf = env->btf;
	u32 at = h->type_off, end = h->type_off + h->type_len;
	const struct btf_type *t;
	int rc;

	if (h->type_off % 4)
		return BAD(env, "Unaligned type_off");
	if (!btf->base && !h->type_len)
		return BAD(env, "No type found");
	rc = btf->base ? 0 : add_type(btf, &void_type);
	if (rc)
		return rc;
	env->log_id = btf_nr_types(btf);
	for (; at < end; at += rc) {
		t = (const struct btf_type *)(btf->body + at);
		rc = check_type(env, t, end - at);
		if (rc < 0)
			return rc;
		if (add_type(btf, t))
			return -ENOMEM;
		env->log_id++;
	}
	return 0;
}

/* Type tags come before all other modifiers of a chain: none follows a const, volatile, restrict or
 * typedef. */
static int check_tag_order(struct btf_env *env)
{
	struct btf *btf = env->btf;
	const struct btf_type *t;
	u32 i;

	for (i = 0; i < btf->nr_own; i++) {
		t = btf->types[i];
		if (btf_is_modifier(t) && btf_kind(t) != BTF_KIND_TYPE_TAG &&
		    btf_kind(btf_type_at(btf, t->type)) == BTF_KIND_TYPE_TAG)
			return BAD(env, "Type tags don't precede modifiers");
	}
	return 0;
}

/* Copies data so that what follows a header of any length is aligned for struct btf_type. */
static int copy_bytes(struct btf *btf, const void *data, u32 size)
{
	u32 hdr_len = 0, pad;

	if (size >= offsetof(struct btf_header, hdr_len) + sizeof(hdr_len))
		memcpy(&hdr_len, (const u8 *)data + offsetof(struct btf_header, hdr_len),
		       sizeof(hdr_len));
	pad = -hdr_len % 4;
	btf->buf = malloc((size_t)size + 4);
	if (!btf->buf)
		return -ENOMEM;
	if (size)
		memcpy(btf->buf + pad, data, size);
	btf->data = btf->buf + pad;
	btf->size = size;
	return 0;
}

static int parse_all(struct btf_env *env, bool is_kernel)
{
	struct btf *btf = env->btf;
	struct btf_header h;
	int err = parse_header(env, &h);

	if (err)
		return err;
	btf->body = btf->data + h.hdr_len;
	btf->type_off = h.type_off;
	btf->type_len = h.type_len;
	err = parse_strings(env, &h);
	if (!err)
		err = parse_types(env, &h);
	if (err)
		return err;
	env->visited = calloc(max_of(btf->nr_own, 1u), 1);
	btf->resolved_id = calloc(max_of(btf->nr_own, 1u), sizeof(u32));
	btf->resolved_size = calloc(max_of(btf->nr_own, 1u), sizeof(u32));
	if (!env->visited || !btf->resolved_id || !btf->resolved_size)
		return -ENOMEM;
	err = btf_resolve_all(env);
	if (!err)
		err = check_tag_order(env);
	if (!err)
		err = btf_index_build(btf);
	return err || is_kernel ? err : btf_check_struct_fields(btf);
}

static int parse(const void *data, u32 size, struct btf *base, bool is_kernel, struct btf_log *log,
		 struct btf **ret_btf)
{
	struct btf_env env = {.log = log};
	struct btf *btf;
	int err;

	if (size > BTF_MAX_BYTES)
		return -E2BIG;
	btf = calloc(1, sizeof(*btf));
	if (!btf)
		return -ENOMEM;
	btf->refs = 1;
	if (base) {
		btf->base = btf_get(base);
		btf->start_id = btf_nr_types(base);
		btf->start_str = base->start_str + base->str_len;
	}
	env.btf = btf;
	err = copy_bytes(btf, data, size);
	if (!err)
		err = parse_all(&env, is_kernel);
	free(env.visited);
	if (err) {
		btf_put(btf);
		return err;
	}
	*ret_btf = btf;
	return 0;
}

int btf_parse(const void *data, u32 size, struct btf *base, struct btf_log *log,
	      struct btf **ret_btf)
{
	return parse(data, size, base, false, log, ret_btf);
}

int btf_parse_kernel(const void *data, u32 size, struct btf_log *log, struct btf **ret_btf)
{
	return parse(data, size, NULL, true, log, ret_btf);
}
