/* SPDX-License-Identifier: BSD-2-Clause */
/* A software BPF_OUTPUT perf event: a ring programs write samples to. Made by sys/perf_event.c,
 * used by maps/ and helpers/. */
#ifndef INLAY_OBJECT_PERF_EVENT_H
#define INLAY_OBJECT_PERF_EVENT_H

#include "object/obj.h"

struct perf_event {
	struct obj obj; /* kind OBJ_PERF_EVENT */
	u32 cpu;	/* the vCPU whose programs may write to it */
	/*
	 * Appends a PERF_RECORD_SAMPLE whose raw data is the n bytes at data (n below 64 KiB:
	 * larger is -E2BIG). The caller runs on vCPU cpu. 0; -ENOSPC: no ring yet or no room
	 * (counted: the next record that fits is preceded by a PERF_RECORD_LOST); -EOPNOTSUPP: the
	 * event is disabled. Async-signal-safe, takes no lock.
	 */
	long (*output)(struct perf_event *event, const void *data, u32 n);
};

static inline struct perf_event *perf_event_of(struct obj *obj)
{
	return container_of_(obj, struct perf_event, obj);
}

#endif
