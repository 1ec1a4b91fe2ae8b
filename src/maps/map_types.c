// SPDX-License-Identifier: BSD-2-Clause
// Finds map types by number; the table is map_types.def.
#include "maps/maps_int.h"

static const struct map_ops *const rows[] = {
#define MAP_TYPE_ROW(name_) &map_ops_##name_,
#include "maps/map_types.def"
#undef MAP_TYPE_ROW
};

const struct map_ops *map_type_ops(u32 type)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i]->type == type)
			return rows[i];
	return NULL;
}

const struct map_ops *map_type_at(u32 i)
{
	return i < ARRAY_SIZE(rows) ? rows[i] : NULL;
}
