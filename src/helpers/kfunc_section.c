// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sections a program opens itself. That it closes each on every way out is the verifier's proof. At run time they come
 * free: a run is inside a read section from its first instruction to its last (prog_run()), and it owns its vCPU, on
 * which no other thread's program can come before it ends.
 */
#include "helpers/kfuncs_int.h"

static u64 nothing(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return 0;
}

const struct kfunc_desc kfunc_bpf_rcu_read_lock = {
	.name = "bpf_rcu_read_lock",
	.fn = nothing,
	.flags = KFUNC_RCU_LOCK,
	.proto = "v",
};

const struct kfunc_desc kfunc_bpf_rcu_read_unlock = {
	.name = "bpf_rcu_read_unlock",
	.fn = nothing,
	.flags = KFUNC_RCU_UNLOCK,
	.proto = "v",
};

const struct kfunc_desc kfunc_bpf_preempt_disable = {
	.name = "bpf_preempt_disable",
	.fn = nothing,
	.flags = KFUNC_PREEMPT_OFF,
	.proto = "v",
};

const struct kfunc_desc kfunc_bpf_preempt_enable = {
	.name = "bpf_preempt_enable",
	.fn = nothing,
	.flags = KFUNC_PREEMPT_ON,
	.proto = "v",
};
