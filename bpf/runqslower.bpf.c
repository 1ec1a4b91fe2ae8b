// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Run-queue latency: a stamp when a task is put on a run queue, a row when it comes to run.
 *
 * One source, three objects that differ in where the stamp lives: -DSTORAGE_TASK (task local
 * storage), -DSTORAGE_HASH (hash of 10,240 preallocated entries) and -DSTORAGE_HASH_NOPREALLOC.
 * Each runs unchanged in the kernel and in the user engine.
 *
 * A stamp is written at sched_wakeup (or sched_waking, one of them is loaded), sched_wakeup_new,
 * and when a task that is still runnable is switched out; the last one counts. It is taken away
 * when the task is switched in. In task storage "away" means zeroed in place, as allocating it
 * again would cost more than all the rest.
 *
 * Every switch also goes into the CPU's history, from which the reader works out who ran while a
 * task waited. The history and the counters are one mmapable array: reading them costs no system
 * call and the writer nothing.
 */
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "runqslower.h"

#define TASK_RUNNING 0
#define TASK_DEAD    0x80

/* User space sets all of it; these values let any loader show what the programs do. */
#define DEFAULT_RING 1024
const volatile struct rqs_config cfg = {
	.min_ns = 10000000,
	.ring_mask = DEFAULT_RING - 1,
	.prev_arg = 1,
	.has_arg3 = 1,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 64);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct rqs_cpu) + DEFAULT_RING * sizeof(struct rqs_ran));
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} rows SEC(".maps");

#if defined(STORAGE_TASK)
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rqs_stamp);
} start SEC(".maps");
#else
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
#if defined(STORAGE_HASH_NOPREALLOC)
	__uint(map_flags, BPF_F_NO_PREALLOC);
#elif !defined(STORAGE_HASH)
#error "choose a storage"
#endif
	__uint(max_entries, 10240);
	__type(key, int);
	__type(value, struct rqs_stamp);
} start SEC(".maps");
#endif

/*
 * Where a handler's task pointers come from: typed by tp_btf, or bare addresses that only
 * probe_read may follow.
 */
enum access { TYPED, BARE };

#define FIELD(how, t, f) ((how) == TYPED ? (t)->f : BPF_CORE_READ(t, f))

static __always_inline void copy_comm(enum access how, char *dst, struct task_struct *t)
{
	if (how == TYPED) {
		const __u64 *src = (const __u64 *)&t->comm;

		((__u64 *)dst)[0] = src[0];
		((__u64 *)dst)[1] = src[1];
	} else {
		bpf_probe_read_kernel(dst, RQS_COMM_LEN, &t->comm);
	}
}

static __always_inline struct rqs_cpu *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline struct rqs_stamp *stamp_find(struct task_struct *t, int tid)
{
#if defined(STORAGE_TASK)
	return bpf_task_storage_get(&start, t, 0, 0);
#else
	return bpf_map_lookup_elem(&start, &tid);
#endif
}

static __always_inline void stamp_clear(struct rqs_stamp *stamp, int tid)
{
#if defined(STORAGE_TASK)
	stamp->ts = 0;
#else
	bpf_map_delete_elem(&start, &tid);
#endif
}

static __always_inline void stamp_set(struct task_struct *t, int tid, const struct rqs_stamp *new)
{
#if defined(STORAGE_TASK)
	struct rqs_stamp *stamp =
		bpf_task_storage_get(&start, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	bool failed = !stamp;

	if (stamp)
		*stamp = *new;
#else
	bool failed = bpf_map_update_elem(&start, &tid, new, BPF_ANY);
#endif
	if (failed) {
		struct rqs_cpu *cpu = this_cpu();

		if (cpu)
			cpu->failures++;
	}
}

static __always_inline bool wanted(enum access how, struct task_struct *t, int tid)
{
	if (!tid || (cfg.tid && tid != cfg.tid))
		return false;
	if (cfg.tgid && FIELD(how, t, tgid) != cfg.tgid)
		return false;
	if (cfg.self_tgid && FIELD(how, t, tgid) == cfg.self_tgid)
		return false;
	return true;
}

static __always_inline bool in_cgroup(enum access how, struct task_struct *t)
{
	if (!cfg.cgroup_id)
		return true;
	if (how == TYPED)
		return t->cgroups->dfl_cgrp->kn->id == cfg.cgroup_id;
	return BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id) == cfg.cgroup_id;
}

static __always_inline int enqueue(enum access how, struct task_struct *t, enum rqs_kind kind,
				   __u64 ts)
{
	int tid = FIELD(how, t, pid);
	struct rqs_stamp stamp = {};

	if (!wanted(how, t, tid))
		return 0;
	stamp.ts = ts ?: bpf_ktime_get_ns();
	stamp.kind = kind;
	if (cfg.waking) {
		struct rqs_cpu *cpu = this_cpu();

		stamp.cpu = bpf_get_smp_processor_id();
		if (cpu)
			stamp.pos = cpu->pos;
	}
	stamp_set(t, tid, &stamp);
	return 0;
}

static __always_inline int migrate(enum access how, struct task_struct *t)
{
	int tid = FIELD(how, t, pid);
	struct rqs_stamp *stamp;
	struct rqs_cpu *cpu;

	if (!wanted(how, t, tid))
		return 0;
	stamp = stamp_find(t, tid);
	if (!stamp || !stamp->ts)
		return 0;
	/*
	 * The waker itself chooses a run queue after sched_waking: that is where the task is put,
	 * not a move of one that waits. It is the same waker as long as its CPU has not switched.
	 */
	if (cfg.waking && stamp->kind == RQS_WOKEN && stamp->cpu == bpf_get_smp_processor_id()) {
		cpu = this_cpu();
		if (cpu && cpu->pos == stamp->pos)
			return 0;
	}
	stamp->kind = RQS_MIGRATED;
	return 0;
}

static __always_inline struct rqs_ran *history_slot(struct rqs_cpu *cpu, __u64 pos)
{
	__u64 i = pos & cfg.ring_mask;

	return (void *)cpu + sizeof(*cpu) + i * sizeof(struct rqs_ran);
}

static __always_inline void history_write(enum access how, struct rqs_ran *ran, __u64 ts,
					  struct task_struct *t)
{
	ran->ts = ts;
	ran->tid = FIELD(how, t, pid);
	ran->tgid = FIELD(how, t, tgid);
	copy_comm(how, ran->comm, t);
}

/* Returns next's position. */
static __always_inline __u64 history_add(enum access how, struct rqs_cpu *cpu, __u64 ts,
					 struct task_struct *prev, struct task_struct *next)
{
	__u64 pos = cpu->pos, add = 1;

	if (!pos) {
		history_write(how, history_slot(cpu, 0), 0, prev);
		pos = 1;
		add = 2;
	}
	history_write(how, history_slot(cpu, pos), ts, next);
	if (cfg.weak_order)
		__sync_fetch_and_add(&cpu->pos, add);
	else
		*(volatile __u64 *)&cpu->pos = pos + 1;
	return pos;
}

static __always_inline __u32 bucket_of(__u64 v)
{
	__u32 e = 0;
	__u64 h = v;

	if (v < RQS_SUB)
		return v;
	if (h >> 32) {
		e += 32;
		h >>= 32;
	}
	if (h >> 16) {
		e += 16;
		h >>= 16;
	}
	if (h >> 8) {
		e += 8;
		h >>= 8;
	}
	if (h >> 4) {
		e += 4;
		h >>= 4;
	}
	if (h >> 2) {
		e += 2;
		h >>= 2;
	}
	if (h >> 1)
		e += 1;
	return (e - RQS_SUB_BITS + 1) * RQS_SUB + ((v >> (e - RQS_SUB_BITS)) & (RQS_SUB - 1));
}

static __always_inline void emit(enum access how, struct rqs_cpu *cpu, enum rqs_row_type type,
				 __u64 ts, __u64 wait, __u64 pos, __u32 kind, struct task_struct *t)
{
	struct rqs_row *row = bpf_ringbuf_reserve(&rows, sizeof(*row), 0);

	if (!row) {
		cpu->rows_lost++;
		return;
	}
	row->ts = ts;
	row->wait_ns = wait;
	row->pos = pos;
	row->tid = FIELD(how, t, pid);
	row->tgid = FIELD(how, t, tgid);
	row->cpu = bpf_get_smp_processor_id();
	row->kind = kind;
	row->type = type;
	copy_comm(how, row->comm, t);
	/*
	 * The reader looks every now and then anyway: waking it costs more than all of the above.
	 */
	if (bpf_ringbuf_query(&rows, BPF_RB_AVAIL_DATA) > cfg.wakeup_bytes)
		bpf_ringbuf_submit(row, BPF_RB_FORCE_WAKEUP);
	else
		bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
}

static __always_inline void wait_ended(enum access how, struct rqs_cpu *cpu, __u64 ts, __u64 wait,
				       __u64 pos, __u32 kind, struct task_struct *t)
{
	bool show = cfg.emit_all;
	__u32 i;

	cpu->waits++;
	cpu->wait_ns += wait;
	if (wait > cfg.min_ns) {
		cpu->over++;
		show = true;
	}
	/* The longest so far goes to the reader as well, in case none is over MIN. */
	if (wait > cpu->longest) {
		cpu->longest = wait;
		show = true;
	}
	i = bucket_of(wait);
	if (i < RQS_NR_BUCKETS)
		cpu->hist[i]++;
	if (show)
		emit(how, cpu, RQS_ROW_WAIT, ts, wait, pos, kind, t);
}

static __always_inline bool cpu_wanted(void)
{
	__u32 cpu;

	if (!cfg.cpu_filter)
		return true;
	cpu = bpf_get_smp_processor_id() % RQS_MAX_CPUS;
	return cfg.cpu_mask[cpu / 64] >> (cpu % 64) & 1;
}

static __always_inline void switch_in(enum access how, struct rqs_cpu *cpu, __u64 ts, __u64 pos,
				      struct task_struct *t)
{
	int tid = FIELD(how, t, pid);
	struct rqs_stamp *stamp;
	__u64 queued;
	__u32 kind;

	if (!wanted(how, t, tid))
		return;
	stamp = stamp_find(t, tid);
	if (!stamp || !stamp->ts) {
		if (!cpu_wanted() || !in_cgroup(how, t))
			return;
		cpu->missed++;
		if (cfg.emit_missed)
			emit(how, cpu, RQS_ROW_MISSED, ts, 0, pos, 0, t);
		return;
	}
	queued = stamp->ts;
	kind = stamp->kind;
	stamp_clear(stamp, tid);
	if (cpu_wanted() && in_cgroup(how, t)) /* clocks of two CPUs may differ a little */
		wait_ended(how, cpu, ts, ts > queued ? ts - queued : 0, pos, kind, t);
}

/*
 * A task that goes to sleep keeps its stamp, if it has one: with sched_waking (or clocks that
 * differ) the wake-up that ends this sleep may stand before the switch. But a hash must not keep
 * what is left of a task that has ended.
 */
static __always_inline void task_gone(enum access how, struct task_struct *t)
{
#if !defined(STORAGE_TASK)
	int tid = FIELD(how, t, pid);

	bpf_map_delete_elem(&start, &tid);
#endif
}

static __always_inline __u64 state_of(enum access how, struct task_struct *t)
{
	struct task_struct___before_5_14 *old = (void *)t;

	if (bpf_core_field_exists(t->__state))
		return FIELD(how, t, __state);
	return FIELD(how, old, state);
}

static __always_inline int on_switch(enum access how, __u64 *args)
{
	struct rqs_cpu *cpu = this_cpu();
	bool preempt = args[0] & 0xff;
	struct task_struct *prev, *next;
	__u64 a1 = args[1], a2 = args[2], a3 = 0;
	__u64 ts, pos, state;

	if (!cpu)
		return 0;
	if (cfg.has_arg3)
		a3 = args[3];
	/*
	 * Else the compiler loads from a chosen context offset, and the verifier wants constant
	 * ones.
	 */
	barrier_var(a1);
	barrier_var(a2);
	barrier_var(a3);
	if (cfg.prev_arg == 2) { /* Linux 5.18 only: preempt, prev_state, prev, next */
		prev = (void *)a2;
		next = (void *)a3;
		state = (__u32)a1;
	} else {
		prev = (void *)a1;
		next = (void *)a2;
		state = cfg.has_arg3 ? (__u32)a3 : state_of(how, prev);
	}

	ts = bpf_ktime_get_ns();
	pos = history_add(how, cpu, ts, prev, next);
	if (preempt || state == TASK_RUNNING)
		enqueue(how, prev, preempt ? RQS_PREEMPTED : RQS_REQUEUED, ts);
	else if (state & TASK_DEAD)
		task_gone(how, prev);
	switch_in(how, cpu, ts, pos, next);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int rqs_wakeup(__u64 *ctx)
{
	return enqueue(TYPED, (void *)ctx[0], RQS_WOKEN, 0);
}

SEC("tp_btf/sched_wakeup_new")
int rqs_wakeup_new(__u64 *ctx)
{
	return enqueue(TYPED, (void *)ctx[0], RQS_NEW, 0);
}

SEC("tp_btf/sched_waking")
int rqs_waking(__u64 *ctx)
{
	return enqueue(TYPED, (void *)ctx[0], RQS_WOKEN, 0);
}

SEC("tp_btf/sched_migrate_task")
int rqs_migrate(__u64 *ctx)
{
	return migrate(TYPED, (void *)ctx[0]);
}

SEC("tp_btf/sched_switch")
int rqs_switch(__u64 *ctx)
{
	return on_switch(TYPED, ctx);
}

#if !defined(STORAGE_TASK)
/*
 * A new task does not inherit the stamp of one that had its tid before; task storage is a new one
 * anyway.
 */
SEC("tp_btf/sched_process_fork")
int rqs_fork(__u64 *ctx)
{
	task_gone(TYPED, (void *)ctx[1]);
	return 0;
}

/* For kernels without BTF-typed tracepoints; loaded instead of the above. */
SEC("raw_tp/sched_wakeup")
int rqs_raw_wakeup(struct bpf_raw_tracepoint_args *ctx)
{
	return enqueue(BARE, (void *)ctx->args[0], RQS_WOKEN, 0);
}

SEC("raw_tp/sched_wakeup_new")
int rqs_raw_wakeup_new(struct bpf_raw_tracepoint_args *ctx)
{
	return enqueue(BARE, (void *)ctx->args[0], RQS_NEW, 0);
}

SEC("raw_tp/sched_waking")
int rqs_raw_waking(struct bpf_raw_tracepoint_args *ctx)
{
	return enqueue(BARE, (void *)ctx->args[0], RQS_WOKEN, 0);
}

SEC("raw_tp/sched_migrate_task")
int rqs_raw_migrate(struct bpf_raw_tracepoint_args *ctx)
{
	return migrate(BARE, (void *)ctx->args[0]);
}

SEC("raw_tp/sched_process_fork")
int rqs_raw_fork(struct bpf_raw_tracepoint_args *ctx)
{
	task_gone(BARE, (void *)ctx->args[1]);
	return 0;
}

SEC("raw_tp/sched_switch")
int rqs_raw_switch(struct bpf_raw_tracepoint_args *ctx)
{
	return on_switch(BARE, (void *)ctx);
}
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";
