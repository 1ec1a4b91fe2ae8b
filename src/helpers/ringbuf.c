// SPDX-License-Identifier: BSD-2-Clause
// Ring buffer records from programs.
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "helpers/helpers_int.h"
#include "maps/ringbuf.h"
#include "object/map.h"

#define RINGBUF_ONLY (1ULL << BPF_MAP_TYPE_RINGBUF)

static u64 ringbuf_output(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	void *record;

	if (r4 & ~(u64)(BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP))
		return -EINVAL;
	record = ringbuf_reserve((struct map *)r1, r3);
	if (!record)
		return -EAGAIN;
	memcpy(record, (const void *)r2, r3);
	ringbuf_commit(record, r4, false);
	return 0;
}

const struct helper_desc helper_ringbuf_output = {
	HELPER_IS(ringbuf_output, 130),
	.fn = ringbuf_output,
	.ret = RET_INTEGER,
	.arg = {ARG_CONST_MAP_PTR, ARG_PTR_TO_MEM | MEM_RDONLY, ARG_CONST_SIZE_OR_ZERO,
		ARG_ANYTHING},
	.map_types = RINGBUF_ONLY,
};

static u64 reserve(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return r3 ? 0 : (u64)ringbuf_reserve((struct map *)r1, r2);
}

const struct helper_desc helper_ringbuf_reserve = {
	HELPER_IS(ringbuf_reserve, 131),
	.fn = reserve,
	.flags = HELPER_ACQUIRES,
	.ret = RET_PTR_TO_MEM | MEM_RINGBUF | PTR_MAYBE_NULL,
	.arg = {ARG_CONST_MAP_PTR, ARG_CONST_ALLOC_SIZE_OR_ZERO, ARG_ANYTHING},
	.map_types = RINGBUF_ONLY,
};

static u64 submit(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	ringbuf_commit((void *)r1, r2, false);
	return 0;
}

const struct helper_desc helper_ringbuf_submit = {
	HELPER_IS(ringbuf_submit, 132),
	.fn = submit,
	.flags = HELPER_RELEASES,
	.ret = RET_VOID,
	.arg = {ARG_PTR_TO_RINGBUF_MEM | OBJ_RELEASE, ARG_ANYTHING},
};

static u64 discard(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	ringbuf_commit((void *)r1, r2, true);
	return 0;
}

const struct helper_desc helper_ringbuf_discard = {
	HELPER_IS(ringbuf_discard, 133),
	.fn = discard,
	.flags = HELPER_RELEASES,
	.ret = RET_VOID,
	.arg = {ARG_PTR_TO_RINGBUF_MEM | OBJ_RELEASE, ARG_ANYTHING},
};

static u64 query(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return ringbuf_query((struct map *)r1, r2);
}

const struct helper_desc helper_ringbuf_query = {
	HELPER_IS(ringbuf_query, 134),
	.fn = query,
	.ret = RET_INTEGER,
	.arg = {ARG_CONST_MAP_PTR, ARG_ANYTHING},
	.map_types = RINGBUF_ONLY,
};
