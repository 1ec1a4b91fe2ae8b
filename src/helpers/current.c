// SPDX-License-Identifier: BSD-2-Clause
// Who and where: the current task and vCPU, and random numbers.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "env/env.h"
#include "helpers/helpers_int.h"

static u64 get_current_pid_tgid(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	const struct env_task *task = env_tls.current;

	return (u64)(u32)task->tgid << 32 | (u32)task->tid;
}

const struct helper_desc helper_get_current_pid_tgid = {
	HELPER_IS(get_current_pid_tgid, 14),
	.fn = get_current_pid_tgid,
	.ret = RET_INTEGER,
};

/* A recording says nothing of users: there it fails as in the kernel without a current task. */
static u64 get_current_uid_gid(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	if (env_clock_kind(env_tls.env) == ENV_CLOCK_MANUAL)
		return -EINVAL;
	return (u64)getgid() << 32 | getuid();
}

const struct helper_desc helper_get_current_uid_gid = {
	HELPER_IS(get_current_uid_gid, 15),
	.fn = get_current_uid_gid,
	.ret = RET_INTEGER,
};

static u64 get_current_comm(u64 buf, u64 size, u64 r3, u64 r4, u64 r5)
{
	const char *comm = env_task_comm(env_tls.current);
	size_t n = strnlen(comm, size - 1);

	memset((char *)buf + n, 0, size - n);
	memcpy((char *)buf, comm, n);
	return 0;
}

const struct helper_desc helper_get_current_comm = {
	HELPER_IS(get_current_comm, 16),
	.fn = get_current_comm,
	.ret = RET_INTEGER,
	.arg = { ARG_PTR_TO_MEM | MEM_UNINIT | MEM_WRITE, ARG_CONST_SIZE },
};

static u64 get_current_task(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return (u64)env_tls.current->obj;
}

const struct helper_desc helper_get_current_task = {
	HELPER_IS(get_current_task, 35),
	.fn = get_current_task,
	.flags = HELPER_GPL,
	.ret = RET_INTEGER,
};

const struct helper_desc helper_get_current_task_btf = {
	HELPER_IS(get_current_task_btf, 158),
	.fn = get_current_task,
	.flags = HELPER_GPL,
	.ret = RET_PTR_TO_BTF_ID | PTR_TRUSTED,
	.ret_btf = "task_struct",
};

static u64 get_current_cgroup_id(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return env_task_cgroup(env_tls.current);
}

const struct helper_desc helper_get_current_cgroup_id = {
	HELPER_IS(get_current_cgroup_id, 80),
	.fn = get_current_cgroup_id,
	.ret = RET_INTEGER,
};

static u64 get_smp_processor_id(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return env_tls.cpu;
}

const struct helper_desc helper_get_smp_processor_id = {
	HELPER_IS(get_smp_processor_id, 8),
	.fn = get_smp_processor_id,
	.flags = HELPER_FASTCALL | HELPER_RET_CPU,
	.ret = RET_INTEGER,
};

/* The machine has one memory node. */
static u64 get_numa_node_id(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return 0;
}

const struct helper_desc helper_get_numa_node_id = {
	HELPER_IS(get_numa_node_id, 42),
	.fn = get_numa_node_id,
	.ret = RET_INTEGER,
};

static u64 get_prandom_u32(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return env_prandom_u32(env_tls.env);
}

const struct helper_desc helper_get_prandom_u32 = {
	HELPER_IS(get_prandom_u32, 7),
	.fn = get_prandom_u32,
	.ret = RET_INTEGER,
};
