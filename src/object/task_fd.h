/* SPDX-License-Identifier: BSD-2-Clause */
/* The pidfd of a simulated task: what bpf(2) takes as key of task storage. Made by sys/task.c. */
#ifndef INLAY_OBJECT_TASK_FD_H
#define INLAY_OBJECT_TASK_FD_H

#include "env/env.h"
#include "object/obj.h"

struct task_fd {
	struct obj obj;	       /* kind OBJ_TASK */
	struct env_task *task; /* reference held; may be dead by now (env_task.dead): -ENOENT */
};

static inline struct task_fd *task_fd_of(struct obj *obj)
{
	return container_of_(obj, struct task_fd, obj);
}

#endif
