// SPDX-License-Identifier: BSD-2-Clause
// pidfd_open(2) of simulated tasks.
#include <errno.h>
#include <stdlib.h>

#include "object/task_fd.h"
#include "rcu/rcu.h"
#include "sys/sys_int.h"

static void release(struct obj *obj)
{
	struct task_fd *tf = task_fd_of(obj);

	env_task_put(tf->task);
	free(tf);
}

static const struct obj_ops task_ops = {
	.release = release,
};

long sys_pidfd_open(struct inlay *inlay, int tid, unsigned int flags)
{
	struct env_task *task;
	struct task_fd *tf;
	int fd;

	if (tid < 1 || flags)
		return -EINVAL;
	rcu_thread_enter();
	inlay->fds->reap(inlay);
	tf = calloc(1, sizeof(*tf));
	if (!tf)
		return -ENOMEM;
	rcu_enter();
	task = env_task_find(inlay->env, tid);
	if (task)
		env_task_get(task);
	rcu_leave();
	if (!task) {
		free(tf);
		return -ESRCH;
	}
	tf->task = task;
	obj_init(&tf->obj, inlay, OBJ_TASK, &task_ops);
	fd = inlay->fds->install(inlay, &tf->obj);
	obj_put(&tf->obj);
	return fd;
}
