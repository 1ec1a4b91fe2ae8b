// SPDX-License-Identifier: BSD-2-Clause
// Finds kernel functions by name; the table is kfuncs.def.
#include <string.h>

#include "helpers/kfuncs_int.h"

struct kfunc_row {
	const struct kfunc_desc *desc;
	u32 groups;
};

static const struct kfunc_row rows[] = {
#define KFUNC(name_, group_) { &kfunc_##name_, group_ },
#include "helpers/kfuncs.def"
#undef KFUNC
};

static const struct kfunc_row *row_of(const char *name)
{
	u32 lo = 0, hi = ARRAY_SIZE(rows);

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;
		int c = strcmp(name, rows[mid].desc->name);

		if (!c)
			return &rows[mid];
		if (c > 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct kfunc_desc *kfunc_by_name(const char *name)
{
	const struct kfunc_row *row = row_of(name);

	return row ? row->desc : NULL;
}

u32 kfunc_groups(const struct kfunc_desc *kfunc)
{
	const struct kfunc_row *row = row_of(kfunc->name);

	return row ? row->groups : 0;
}
