// SPDX-License-Identifier: BSD-2-Clause
// Samples into perf events.
#include <errno.h>
#include <linux/bpf.h>

#include "env/env.h"
#include "helpers/helpers_int.h"
#include "maps/perf_event_array.h"

#define SAMPLE_MAX                                                                                 \
	65535 /* a record's size field has 16 bits; the event knows what is left of them */

static u64 perf_event_output(u64 ctx, u64 r2, u64 flags, u64 data, u64 size)
{
	struct map *map = (struct map *)r2;
	struct perf_event *event;
	u64 index = flags & BPF_F_INDEX_MASK;

	if (flags & ~BPF_F_INDEX_MASK)
		return -EINVAL;
	if (index == BPF_F_CURRENT_CPU)
		index = env_tls.cpu;
	if (index >= map->max_entries)
		return -E2BIG;
	event = perf_event_array_get(map, index);
	if (!event)
		return -ENOENT;
	if (event->cpu != env_tls.cpu)
		return -EOPNOTSUPP;
	return size > SAMPLE_MAX ? -E2BIG : event->output(event, (const void *)data, size);
}

const struct helper_desc helper_perf_event_output = {
	HELPER_IS(perf_event_output, 25),
	.fn = perf_event_output,
	.flags = HELPER_GPL,
	.ret = RET_INTEGER,
	.arg = {ARG_PTR_TO_CTX, ARG_CONST_MAP_PTR, ARG_ANYTHING, ARG_PTR_TO_MEM | MEM_RDONLY,
		ARG_CONST_SIZE_OR_ZERO},
	.map_types = 1ULL << BPF_MAP_TYPE_PERF_EVENT_ARRAY,
};
