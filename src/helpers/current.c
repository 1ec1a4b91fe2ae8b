// SPDX-License-Identifier: BSD-2-Clause
// Who and where: the current task and vCPU, and random numbers.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "env/env.h"
#include "helpers/helpers_int.h"

/* Code in place of the calls below: env_tls is at hand, and what it points to is laid out as C has it. */

#define TLS_OFF(field)	(s16) offsetof(struct env_tls, field)
#define TASK_OFF(field) (s16) offsetof(struct env_task, field)

_Static_assert(offsetof(struct env_task, tgid) == offsetof(struct env_task, tid) + 4, "one load gets both");

static int gen_pid_tgid(const struct gen_call *call, struct gen *g)
{
	if (!(call->can & CAP_TLS))
		return 0;
	gen_tls(g, BPF_DW, 0, TLS_OFF(current));
	gen_load(g, BPF_DW, 0, 0, TASK_OFF(tid));
	return 1;
}

static int gen_current_task(const struct gen_call *call, struct gen *g)
{
	if (!(call->can & CAP_TLS))
		return 0;
	gen_tls(g, BPF_DW, 0, TLS_OFF(current));
	gen_load(g, BPF_DW, 0, 0, TASK_OFF(obj));
	return 1;
}

static int gen_cpu(const struct gen_call *call, struct gen *g)
{
	if (!(call->can & CAP_TLS))
		return 0;
	gen_tls(g, BPF_W, 0, TLS_OFF(cpu));
	return 1;
}

/* Linux's way to the number: a per-CPU variable, whose address is not ours to give. */
static int shown_cpu(const struct gen_call *call, struct gen *g)
{
	gen_insn(g, ISA_MOV(0, 0));
	gen_insn(g, isa_encode(ISA_MOV64_PERCPU, 0, 0, 0, 0));
	gen_load(g, BPF_W, 0, 0, 0);
	return 1;
}

static int gen_zero(const struct gen_call *call, struct gen *g)
{
	gen_insn(g, ISA_MOV(0, 0));
	return 1;
}

/* r0 = (r0 ^ r0 >> shift) * mul */
static void gen_mix(struct gen *g, s32 shift, u64 mul)
{
	gen_mov(g, 1, 0);
	gen_alu_imm(g, BPF_RSH, 1, shift);
	gen_alu(g, BPF_XOR, 0, 1);
	if (!mul)
		return;
	gen_imm64(g, 2, mul);
	gen_alu(g, BPF_MUL, 0, 2);
}

static int gen_prandom(const struct gen_call *call, struct gen *g)
{
	u32 no_vcpu, end;

	if (!(call->can & CAP_TLS))
		return 0;
	gen_tls(g, BPF_DW, 1, TLS_OFF(vcpu));
	no_vcpu = gen_jump(g, BPF_JEQ, 1, 0);
	gen_load(g, BPF_DW, 0, 1, (s16)env_prandom.off);
	gen_imm64(g, 2, env_prandom.add);
	gen_alu(g, BPF_ADD, 0, 2);
	gen_insn(g, ISA_STORE(DW, 1, (s16)env_prandom.off, 0));
	gen_mix(g, 30, env_prandom.mul1);
	gen_mix(g, 27, env_prandom.mul2);
	gen_mix(g, 31, 0);
	gen_alu_imm(g, BPF_RSH, 0, 32);
	end = gen_jump(g, BPF_JA, 0, 0);
	g->cold = true;
	gen_land(g, no_vcpu);
	gen_call(g, NULL);
	gen_land(g, end);
	return 1;
}

static u64 get_current_pid_tgid(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	const struct env_task *task = env_tls.current;

	return (u64)(u32)task->tgid << 32 | (u32)task->tid;
}

const struct helper_desc helper_get_current_pid_tgid = {
	HELPER_IS(get_current_pid_tgid, 14),
	.fn = get_current_pid_tgid,
	.flags = HELPER_PURE,
	.ret = RET_INTEGER,
	.gen = gen_pid_tgid,
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
	.flags = HELPER_PURE,
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
	.flags = HELPER_GPL | HELPER_PURE,
	.ret = RET_INTEGER,
	.gen = gen_current_task,
};

const struct helper_desc helper_get_current_task_btf = {
	HELPER_IS(get_current_task_btf, 158),
	.fn = get_current_task,
	.flags = HELPER_GPL | HELPER_PURE,
	.ret = RET_PTR_TO_BTF_ID | PTR_TRUSTED,
	.ret_btf = "task_struct",
	.gen = gen_current_task,
};

static u64 get_current_cgroup_id(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return env_task_cgroup(env_tls.current);
}

const struct helper_desc helper_get_current_cgroup_id = {
	HELPER_IS(get_current_cgroup_id, 80),
	.fn = get_current_cgroup_id,
	.flags = HELPER_PURE,
	.ret = RET_INTEGER,
};

static u64 get_smp_processor_id(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return env_tls.cpu;
}

const struct helper_desc helper_get_smp_processor_id = {
	HELPER_IS(get_smp_processor_id, 8),
	.fn = get_smp_processor_id,
	.flags = HELPER_FASTCALL | HELPER_RET_CPU | HELPER_PURE,
	.ret = RET_INTEGER,
	.shown = shown_cpu,
	.gen = gen_cpu,
};

/* The machine has one memory node. */
static u64 get_numa_node_id(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return 0;
}

const struct helper_desc helper_get_numa_node_id = {
	HELPER_IS(get_numa_node_id, 42),
	.fn = get_numa_node_id,
	.flags = HELPER_PURE,
	.ret = RET_INTEGER,
	.gen = gen_zero,
};

static u64 get_prandom_u32(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return env_prandom_u32(env_tls.env);
}

const struct helper_desc helper_get_prandom_u32 = {
	HELPER_IS(get_prandom_u32, 7),
	.fn = get_prandom_u32,
	.ret = RET_INTEGER,
	.gen = gen_prandom,
};
