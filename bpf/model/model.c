// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * inlay's own model of kernel types: what programs see in the user engine. Compiled for its BTF only, which is built
 * into the library. It holds only what the simulated machine really fills in (src/env/), so that a program that wants
 * another field is refused at load by name. Names and types are Linux 6.18's; offsets are ours (CO-RE finds them).
 */
typedef _Bool bool;
typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef int pid_t;

#define __rcu __attribute__((btf_type_tag("rcu")))

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct thread_info {
	u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int on_cpu;
	int prio;
	pid_t pid;
	pid_t tgid;
	struct task_struct __rcu *real_parent;
	struct task_struct *group_leader;
	char comm[16];
	struct css_set __rcu *cgroups;
};

/* Contexts that programs and libbpf name. */
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

/* Tracepoints the machine fires (src/replay/), with Linux 6.18's arguments. */
typedef void (*btf_trace_sched_switch)(void *__data, bool preempt, struct task_struct *prev,
				       struct task_struct *next, unsigned int prev_state);
typedef void (*btf_trace_sched_wakeup)(void *__data, struct task_struct *p);
typedef void (*btf_trace_sched_wakeup_new)(void *__data, struct task_struct *p);
typedef void (*btf_trace_sched_waking)(void *__data, struct task_struct *p);
typedef void (*btf_trace_sched_process_fork)(void *__data, struct task_struct *parent,
					     struct task_struct *child);
typedef void (*btf_trace_sched_process_exit)(void *__data, struct task_struct *p, bool group_dead);
typedef void (*btf_trace_sched_migrate_task)(void *__data, struct task_struct *p, int dest_cpu);

/*
 * Functions programs may call (src/helpers/kfuncs.def), with Linux 6.18's prototypes, of which the endings of parameters' names
 * are a part. Nothing runs here: the bodies are in src/helpers/.
 */
#define KFUNC __attribute__((btf_decl_tag("bpf_kfunc")))
#define FASTCALL __attribute__((btf_decl_tag("bpf_fastcall")))

KFUNC int bpf_copy_from_user_str(void *dst, u32 dst__sz, const void *unsafe_ptr__ign, u64 flags)
{
	return 0;
}
KFUNC void bpf_preempt_disable(void) {}
KFUNC void bpf_preempt_enable(void) {}
KFUNC void bpf_rcu_read_lock(void) {}
KFUNC void bpf_rcu_read_unlock(void) {}
KFUNC FASTCALL void *bpf_rdonly_cast(const void *obj__ign, u32 btf_id__k)
{
	return 0;
}
#define STR(name, ...)                                                                             \
	KFUNC int bpf_##name(__VA_ARGS__)                                                          \
	{                                                                                          \
		return 0;                                                                          \
	}
STR(strcasecmp, const char *s1__ign, const char *s2__ign)
STR(strchr, const char *s__ign, char c)
STR(strchrnul, const char *s__ign, char c)
STR(strcmp, const char *s1__ign, const char *s2__ign)
STR(strcspn, const char *s__ign, const char *reject__ign)
STR(strlen, const char *s__ign)
STR(strnchr, const char *s__ign, unsigned long count, char c)
STR(strnlen, const char *s__ign, unsigned long count)
STR(strnstr, const char *s1__ign, const char *s2__ign, unsigned long len)
STR(strrchr, const char *s__ign, int c)
STR(strspn, const char *s__ign, const char *accept__ign)
STR(strstr, const char *s1__ign, const char *s2__ign)
KFUNC struct task_struct *bpf_task_acquire(struct task_struct *p)
{
	return p;
}
KFUNC struct task_struct *bpf_task_from_pid(s32 pid)
{
	return 0;
}
KFUNC struct task_struct *bpf_task_from_vpid(s32 vpid)
{
	return 0;
}
KFUNC void bpf_task_release(struct task_struct *p) {}
KFUNC void bpf_throw(u64 cookie) {}

/* Referenced once, so that the compiler describes them. */
struct inlay_model {
	btf_trace_sched_switch *sched_switch;
	btf_trace_sched_wakeup *sched_wakeup;
	btf_trace_sched_wakeup_new *sched_wakeup_new;
	btf_trace_sched_waking *sched_waking;
	btf_trace_sched_process_fork *sched_process_fork;
	btf_trace_sched_process_exit *sched_process_exit;
	btf_trace_sched_migrate_task *sched_migrate_task;
	/* by value: what is only pointed to is described as a forward declaration */
	struct css_set css_set;
	struct cgroup cgroup;
	struct kernfs_node kernfs_node;
	u8 *t0;
	u16 *t1;
	s32 *t2;
	s64 *t3;
	__s8 *t4;
	__s16 *t5;
	struct bpf_raw_tracepoint_args raw_tp_args; /* last: it has no size */
};

/* By a function: the section of a variable would need a size that only a linker knows. */
void inlay_model(struct inlay_model *model)
{
}
