/* SPDX-License-Identifier: BSD-2-Clause */
/* What perf_event_output() needs of a perf event array. */
#ifndef INLAY_MAPS_PERF_EVENT_ARRAY_H
#define INLAY_MAPS_PERF_EVENT_ARRAY_H

#include "maps/maps_int.h"
#include "object/perf_event.h"

/* The event at index (below max_entries), or NULL; valid until the read section ends. */
struct perf_event *perf_event_array_get(struct map *map, u32 index);

#endif
