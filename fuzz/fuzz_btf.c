// SPDX-License-Identifier: BSD-2-Clause
/*
 * BTF from untrusted bytes: parsed with and without a base; what is accepted is asked everything
 * there is to ask, and must parse to the same again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"
#include "btf/dump_c.h"
#include "btf/fields.h"
#include "btf/walk.h"
#include "mutate.h"

static struct btf *base; /* the first BTF that was accepted */
static u64 nr_accepted;

static void ask_type(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_by_id(btf, id);
	const char *name = btf_type_name(btf, id);
	struct btf_fields fields;
	struct btf_walk walk;
	u32 off, size, end;

	btf_resolve_size(btf, id, &size);
	btf_type_skip_modifiers(btf, id, &end);
	btf_func_proto(btf, id);
	btf_has_decl_tag(btf, id, -1, "x");
	if (btf_kind(t) != BTF_KIND_DECL_TAG && btf_kind(t) != BTF_KIND_TYPE_TAG && *name &&
	    btf_find_by_name_kind(btf, name, btf_kind(t)) <= 0)
		abort();
	btf_parse_fields(btf, id, BTF_FIELDS_MAP, btf_resolve_size(btf, id, &size) ? 0 : size,
			 &fields);
	if (!btf_is_struct_or_union(t))
		return;
	for (end = 0; end < 8; end++) {
		off = mutate_random() % ((u64)t->size + 9);
		btf_struct_access(NULL, btf, id, off, 1u << mutate_random() % 4, &walk);
		btf_struct_ids_match(btf, id, off, btf, mutate_random() % btf_nr_types(btf), false);
	}
	if (btf_vlen(t))
		btf_find_member(btf, id,
				btf_name_by_offset(btf, btf_members(t)[btf_vlen(t) - 1].name_off),
				&off, &size);
}

static void ask_all(struct btf *btf)
{
	struct strbuf text = STRBUF_INIT;
	struct btf *again = NULL;
	const void *raw;
	u32 id, size, nr = btf_nr_types(btf);

	for (id = 0; id < nr && id < 4096; id++)
		ask_type(btf, id);
	btf_dump_c(btf, &text);
	strbuf_reset(&text);
	btf_dump_c_type(btf, mutate_random() % nr, &text);
	strbuf_fini(&text);
	raw = btf_raw_data(btf, &size);
	if (btf_base(btf))
		return;
	if (btf_parse(raw, size, NULL, NULL, &again) || btf_nr_types(again) != nr)
		abort();
	btf_put(again);
}

/* Most steps of the driver break the header or the ends of sections; this mends those, so that more
 * types are looked at. */
static void mend(u8 *data, size_t size)
{
	struct btf_header h;
	u32 room = size - sizeof(h);

	memcpy(&h, data, sizeof(h));
	h.magic = BTF_MAGIC;
	h.version = BTF_VERSION;
	h.flags = 0;
	h.hdr_len = sizeof(h);
	h.type_off = 0;
	h.type_len = min_of(h.type_len, room - 2) & ~3u;
	h.str_off = h.type_len;
	h.str_len = room - h.type_len;
	memcpy(data, &h, sizeof(h));
	data[sizeof(h) + h.str_off] = 0;
	data[size - 1] = 0;
}

static void try_bytes(const u8 *data, size_t size)
{
	static const u32 levels[] = {0, 1, BTF_LOG_ERRORS};
	struct strbuf text = STRBUF_INIT;
	struct btf_log log = {.level = levels[mutate_random() % 3], .buf = &text, .max = 1 << 20};
	struct btf *btf = NULL;
	bool split = base && mutate_random() % 4 == 0;
	int err;

	if (size > BTF_MAX_BYTES)
		size = BTF_MAX_BYTES;
	err = btf_parse(data, size, split ? base : NULL, &log, &btf);
	if (!err) {
		nr_accepted++;
		ask_all(btf);
	}
	if (!err && !base)
		base = btf_get(btf);
	btf_put(btf);
	strbuf_fini(&text);
}

static void one(const u8 *data, size_t size)
{
	u8 *copy;

	if (size < sizeof(struct btf_header) + 8 || mutate_random() % 4 == 0) {
		try_bytes(data, size);
		return;
	}
	copy = malloc(size);
	if (!copy)
		return;
	memcpy(copy, data, size);
	mend(copy, size);
	try_bytes(copy, size);
	free(copy);
}

int main(int argc, char **argv)
{
	int status = mutate_main(argc, argv, one);

	printf("%llu of them accepted\n", (unsigned long long)nr_accepted);
	btf_put(base);
	return status;
}
