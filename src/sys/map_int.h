/* SPDX-License-Identifier: BSD-2-Clause */
/* What the element commands and the batch commands of maps share. */
#ifndef INLAY_SYS_MAP_INT_H
#define INLAY_SYS_MAP_INT_H

#include "object/map.h"
#include "sys/sys_int.h"

enum map_access { MAP_READ = 1, MAP_WRITE = 2 };

/* A map during an element command. A writer is announced in map->writers, so that freezing and
 * writing exclude. */
struct map_call {
	struct map *map;
	u32 access;	/* enum map_access */
	u32 value_size; /* bytes of a value as bpf(2) sees it */
};

/* 0; -EBADF, -EINVAL the descriptor; -EPERM it, or a frozen map, does not allow the access. */
int sys_map_begin(struct sys_call *c, u32 fd, u32 access, struct map_call *ret_mc);
void sys_map_end(struct map_call *mc);

/* Flags beyond allowed, and BPF_F_LOCK on a map without a lock: -EINVAL. */
int sys_map_check_flags(const struct map *map, u64 flags, u64 allowed);

#endif
