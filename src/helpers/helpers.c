// SPDX-License-Identifier: BSD-2-Clause
// Finds helpers by number; the table is helpers.def.
#include "helpers/helpers_int.h"

#include <linux/bpf.h>

#include "base/types.h"

struct helper_row {
	u32 id, groups;
	const struct helper_desc *desc;
};

static const struct helper_row rows[] = {
#define HELPER(id_, name_, groups_) { id_, groups_, &helper_##name_ },
#include "helpers/helpers.def"
#undef HELPER
};

/* Names of all of Linux's helpers: the UAPI header's list, and what came after the header this is built with. */
static const char *const names[] = {
#define NAME(x, ...) "bpf_" #x
	__BPF_FUNC_MAPPER(NAME)
#undef NAME
};

static const char *const newer_names[] = {
	[209] = "bpf_user_ringbuf_drain",
	[210] = "bpf_cgrp_storage_get",
	[211] = "bpf_cgrp_storage_delete",
};

static const struct helper_row *row_of(u32 id)
{
	u32 lo = 0, hi = ARRAY_SIZE(rows);

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (rows[mid].id == id)
			return &rows[mid];
		if (rows[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct helper_desc *helper_by_id(u32 id)
{
	const struct helper_row *row = row_of(id);

	return row ? row->desc : NULL;
}

u32 helper_groups(u32 id)
{
	const struct helper_row *row = row_of(id);

	return row ? row->groups : 0;
}

bool helper_id_known(u32 id)
{
	return id && (id < ARRAY_SIZE(names) || (id < ARRAY_SIZE(newer_names) && newer_names[id]));
}

const char *helper_name(u32 id)
{
	if (id < ARRAY_SIZE(names))
		return names[id];
	if (id < ARRAY_SIZE(newer_names) && newer_names[id])
		return newer_names[id];
	return "unknown";
}
