/* SPDX-License-Identifier: BSD-2-Clause */
/* What the helpers do with task storage. All inside a read section, in any context. */
#ifndef INLAY_MAPS_TASK_STORAGE_H
#define INLAY_MAPS_TASK_STORAGE_H

#include "env/env.h"
#include "maps/local_storage.h"

/* The task's value in this map (of type task storage), or NULL. */
void *task_storage_find(struct map *map, struct env_task *task);

/* The same, made from value (NULL: zeros) if there is none. NULL: no memory, or the task is dead.
 */
void *task_storage_get_or_create(struct map *map, struct env_task *task, const void *value);

/* 0 or -ENOENT. */
int task_storage_remove(struct map *map, struct env_task *task);

#endif
