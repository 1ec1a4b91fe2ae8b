/* SPDX-License-Identifier: BSD-2-Clause */
/* What the ringbuf helpers do. All in any context, inside a read section. */
#ifndef INLAY_MAPS_RINGBUF_H
#define INLAY_MAPS_RINGBUF_H

#include "maps/maps_int.h"

/* A record of size bytes (not zeroed) that is the caller's until ringbuf_commit(), or NULL: no
 * room, or size too large. */
void *ringbuf_reserve(struct map *map, u64 size);

/*
 * Ends a record that ringbuf_reserve() gave: the consumer sees it, or skips it if discard. flags:
 * BPF_RB_NO_WAKEUP, BPF_RB_FORCE_WAKEUP. A pointer that is no such record is ignored.
 */
void ringbuf_commit(void *record, u64 flags, bool discard);

/* BPF_RB_AVAIL_DATA, BPF_RB_RING_SIZE, BPF_RB_CONS_POS, BPF_RB_PROD_POS; anything else: 0. */
u64 ringbuf_query(struct map *map, u64 what);

#endif
