// SPDX-License-Identifier: BSD-2-Clause
// References to tasks.
#include "env/env.h"
#include "helpers/kfuncs_int.h"

/* One more reference unless the last is gone already: the memory then only waits for its grace period. */
static u64 get_alive(struct env_task *task)
{
	long refs = __atomic_load_n(&task->refs, __ATOMIC_RELAXED);

	do
		if (refs <= 0)
			return 0;
	while (!__atomic_compare_exchange_n(&task->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return (u64)task->obj;
}

static u64 task_acquire(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return get_alive(env_task_of((const void *)r1));
}

const struct kfunc_desc kfunc_bpf_task_acquire = {
	.name = "bpf_task_acquire",
	.fn = task_acquire,
	.flags = KFUNC_ACQUIRE | KFUNC_RCU_ARGS | KFUNC_RET_NULL,
	.proto = "p:task_struct p:task_struct",
};

static u64 task_release(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	env_task_put(env_task_of((const void *)r1));
	return 0;
}

const struct kfunc_desc kfunc_bpf_task_release = {
	.name = "bpf_task_release",
	.fn = task_release,
	.flags = KFUNC_RELEASE,
	.proto = "v p:task_struct",
};

/* As in Linux the idle tasks, all of pid 0, are not found. */
static u64 task_from_pid(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	struct env_task *task = env_task_find(env_tls.env, (s32)r1);

	return task ? get_alive(task) : 0;
}

const struct kfunc_desc kfunc_bpf_task_from_pid = {
	.name = "bpf_task_from_pid",
	.fn = task_from_pid,
	.flags = KFUNC_ACQUIRE | KFUNC_RET_NULL,
	.proto = "p:task_struct i",
};

/* The machine has one namespace of pids, so a task's number is the same for everybody. */
const struct kfunc_desc kfunc_bpf_task_from_vpid = {
	.name = "bpf_task_from_vpid",
	.fn = task_from_pid,
	.flags = KFUNC_ACQUIRE | KFUNC_RET_NULL,
	.proto = "p:task_struct i",
};
