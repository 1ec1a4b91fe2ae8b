/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated machine: vCPUs, tasks, clock, random numbers, tracepoint hooks, "current".
 *
 * Objects that programs see (task_struct …) are laid out by the machine's BTF and populated by field name, so a program
 * compiled against any kernel finds its fields through CO-RE; a field the model lacks is refused at load by libbpf's
 * relocation, never read as zero.
 *
 * Who runs: one thread drives a vCPU at a time. env_tls is what running code needs of its vCPU and is switched only
 * between runs. Everything here is for one env; several may exist side by side.
 */
#ifndef INLAY_ENV_ENV_H
#define INLAY_ENV_ENV_H

#include "base/log.h"
#include "base/types.h"

struct btf;
struct env;
struct env_vcpu;
struct map;

enum env_clock {
	ENV_CLOCK_REAL,	 /* CLOCK_MONOTONIC of the host */
	ENV_CLOCK_MANUAL /* what env_clock_set() last said: a recording's clock */
};

/* TASK_* of Linux 6.18 as programs read them in task_struct.__state and in sched_switch's prev_state. */
enum env_task_state {
	ENV_TASK_RUNNING = 0x0,
	ENV_TASK_INTERRUPTIBLE = 0x1,
	ENV_TASK_UNINTERRUPTIBLE = 0x2,
	ENV_TASK_STOPPED = 0x4,
	ENV_TASK_TRACED = 0x8,
	ENV_TASK_EXIT_DEAD = 0x10,
	ENV_TASK_EXIT_ZOMBIE = 0x20,
	ENV_TASK_PARKED = 0x40,
	ENV_TASK_DEAD = 0x80,
	ENV_TASK_IDLE = 0x402,
};

struct env_opts {
	u32 nr_cpus;	 /* 1..ENV_MAX_CPUS; fixed before the first map */
	struct btf *btf; /* types of the machine's objects; a reference is taken */
	enum env_clock clock;
	u64 seed;	 /* of bpf_get_prandom_u32 and friends */
	struct log_sink log;
	/* bpf_trace_printk text, without the trailing newline; may be NULL */
	void (*printk)(void *ctx, u64 ts_ns, u32 cpu, s32 tid, const char *comm, const char *text);
	void *printk_ctx;
};

#define ENV_MAX_CPUS 4096
#define ENV_COMM_LEN 16

/* A cgroup as the recording names it: its id only. The object programs see is `struct cgroup` of the BTF. */
struct env_cgroup;

/*
 * What lies directly before every object that can own local storage. maps/ guards and frees what it points to; compiled
 * code reads slots at obj[-16].
 */
struct env_owner {
	u32 lock;    /* maps/: 0 or 1; atomic */
	u32 gone;    /* takes no elements any more: set once, atomic */
	void *list;  /* RCU; storage of the linux-* variants; NULL: none */
	void *slots; /* RCU; storage of slots; without any env_no_slots, never NULL */
	void *self;  /* of a task_struct: its env_task */
};

/* What an owner without storage points to: zeros as far as code in place may look without a test. */
#define ENV_NO_SLOTS_BYTES 192
extern const char env_no_slots[ENV_NO_SLOTS_BYTES];

static inline void env_owner_init(struct env_owner *owner, void *self)
{
	*owner = (struct env_owner){ .slots = (void *)env_no_slots, .self = self };
}

/* obj: one that lies behind a struct env_owner. */
static inline struct env_owner *env_owner_of(const void *obj)
{
	return (struct env_owner *)obj - 1;
}

/*
 * A task. Reference-counted; freed after a grace period. The fields above obj are the machine's own; programs see obj.
 * tgid -1: the recording does not say (it reads as -1 in the program too, counted by env_stats).
 */
struct env_task {
	long refs;	   /* atomic */
	struct env *env;
	s32 tid;
	s32 tgid;	   /* -1: unknown */
	u32 cpu;	   /* last known */
	bool idle;	   /* a vCPU's idle task: tid 0 */
	bool dead;	   /* no longer found by tid */
	struct env_task *next_tid; /* hash chain, env's lock */
	char *obj;	   /* task_struct as the BTF lays it out; a struct env_owner lies before it */
};

/* The env_task of a task_struct a program holds. obj must come from this machine (PTR_TO_BTF_ID, trusted). */
static inline struct env_task *env_task_of(const void *obj)
{
	return ((struct env_task *const *)obj)[-1];
}

/*
 * What compiled code needs of the vCPU it runs on, at a fixed offset from %fs / TPIDR_EL0. At most 64 bytes
 * (tests/structure holds it). Owned by the thread.
 */
struct env_tls {
	struct env_task *current; /* NULL: no run in progress on this thread and no task set */
	struct env_vcpu *vcpu;
	struct env *env;
	void *prog_run;	   /* innermost run's context (object/prog.h: struct prog_run_ctx) */
	u32 cpu;
	u8 irq_masked;	   /* soft interrupt mask: 1 masked */
	u8 irq_pending;	   /* 1: something waits for the mask to drop */
	u8 registered;	   /* thread known to RCU */
	u8 in_handler;	   /* running inside a signal handler */
	u64 tail_calls;	   /* made by the run in progress; the engines' */
	u64 throw_to;	   /* stack of the innermost run that can throw; the compilers' */
};

extern __thread struct env_tls env_tls __attribute__((tls_model("initial-exec")));

/* 0 or -errno (EINVAL nr_cpus; ENOENT a type the machine needs is missing from the BTF, reason to the log). */
int env_create(const struct env_opts *opts, struct env **ret_env);
void env_destroy(struct env *env);

u32 env_nr_cpus(const struct env *env);
struct btf *env_btf(const struct env *env); /* borrowed */

/* Nanoseconds of the machine's clock. Async-signal-safe. */
u64 env_clock_ns(const struct env *env);
void env_clock_set(struct env *env, u64 ns); /* ENV_CLOCK_MANUAL only; never goes back (an earlier value is ignored) */
enum env_clock env_clock_kind(const struct env *env);

/* Next pseudo-random number of the current vCPU; deterministic for a seed. Async-signal-safe. */
u32 env_prandom_u32(struct env *env);
/*
 * For code that does the same in place: where in a vCPU its 8 bytes of state lie, and the generator's constants. A step:
 * z = state += add; z = (z ^ z >> 30) * mul1; z = (z ^ z >> 27) * mul2; the number is (z ^ z >> 31) >> 32.
 */
struct env_prandom {
	u32 off; /* in what env_tls.vcpu points to */
	u64 add, mul1, mul2;
};
extern const struct env_prandom env_prandom;

void env_printk(struct env *env, const char *text);

/* ---- tasks ---- */

/* A new task with this tid; one that has the tid now becomes dead first (a reused pid is a new task). NULL: no memory. */
struct env_task *env_task_create(struct env *env, s32 tid, s32 tgid, const char *comm);
/* Borrowed; NULL if no live task has the tid. tid 0 has one task a vCPU: use env_idle_task(). */
struct env_task *env_task_find(struct env *env, s32 tid);
struct env_task *env_idle_task(struct env *env, u32 cpu);
/* The task is no longer found; its storage goes and its memory follows after a grace period and the last reference. */
void env_task_exit(struct env_task *task);
void env_task_get(struct env_task *task);
void env_task_put(struct env_task *task);
/* Calls fn for every live task that is not idle, in ascending tid, until it returns non-zero, which is returned. */
int env_for_each_task(struct env *env, int (*fn)(struct env_task *task, void *ctx), void *ctx);

void env_task_set_comm(struct env_task *task, const char *comm); /* cut at 15 bytes */
void env_task_set_tgid(struct env_task *task, s32 tgid);
void env_task_set_prio(struct env_task *task, s32 prio);
void env_task_set_state(struct env_task *task, u32 state); /* TASK_* bits: task_struct.__state */
void env_task_set_on_cpu(struct env_task *task, bool on_cpu);
void env_task_set_cpu(struct env_task *task, u32 cpu);
void env_task_set_parent(struct env_task *task, struct env_task *parent); /* NULL: unknown; holds a reference */
void env_task_set_cgroup(struct env_task *task, u64 cgroup_id);		  /* 0: unknown */
u64 env_task_cgroup(const struct env_task *task); /* 0: unknown */
const char *env_task_comm(const struct env_task *task);
u32 env_task_state(const struct env_task *task);

/* Called once a task dies, before its memory goes: local storage registers here (maps/). */
void env_set_task_free_hook(struct env *env, void (*fn)(struct env_task *task));

/* ---- who runs ---- */

/* Makes cpu the calling thread's vCPU and task its current. task NULL: that vCPU's present current. */
void env_enter(struct env *env, u32 cpu, struct env_task *task);
/* The vCPU's current task from now on (a context switch). */
void env_set_current(struct env *env, u32 cpu, struct env_task *task);
struct env_task *env_current_of(struct env *env, u32 cpu); /* borrowed; never NULL */
void env_leave(struct env *env);

/* The task that stands for the calling thread outside a replay (tid, tgid, comm of the thread); created on demand. */
struct env_task *env_task_self(struct env *env);

/* ---- tracepoints ---- */

struct env_hook; /* one a tracepoint name */

/* fire runs in the thread that hit the tracepoint, inside an RCU read section; args: nargs u64s, valid for the call. */
struct env_hook_client {
	void (*fire)(struct env_hook_client *client, const u64 *args, u32 nargs);
	struct env_hook_client *next; /* env's; RCU */
};

/* The hook of tracepoint `name`, made on first use. NULL: the BTF has no btf_trace_<name> (or no memory). */
struct env_hook *env_hook_find(struct env *env, const char *name);
const char *env_hook_name(const struct env_hook *hook);
u32 env_hook_nr_args(const struct env_hook *hook);
/* BTF id of the FUNC_PROTO behind btf_trace_<name>. */
u32 env_hook_proto(const struct env_hook *hook);
bool env_hook_active(const struct env_hook *hook); /* somebody is attached */
/* Clients fire in the order they were attached. After detach returns no fire is running or will run. */
int env_hook_attach(struct env_hook *hook, struct env_hook_client *client);
void env_hook_detach(struct env_hook *hook, struct env_hook_client *client);
void env_hook_fire(struct env_hook *hook, const u64 *args, u32 nargs);

#endif
