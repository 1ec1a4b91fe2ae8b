/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * What runqslower.bpf.c and the program that drives it (cli/rqs_*.c) share. Included after the
 * fixed-size integer types
 * (__u32 …) exist. Every struct here is laid out without padding.
 */
#ifndef INLAY_BPF_RUNQSLOWER_H
#define INLAY_BPF_RUNQSLOWER_H

#define RQS_COMM_LEN 16
#define RQS_MAX_CPUS 8192

enum rqs_kind {
	RQS_WOKEN,     /* sched_wakeup or sched_waking */
	RQS_NEW,       /* sched_wakeup_new */
	RQS_PREEMPTED, /* switched out by a preemption */
	RQS_REQUEUED, /* switched out runnable, but not preempted: it yielded, or its slice ended */
	RQS_MIGRATED, /* any of these, and moved to another run queue while it waited */
	RQS_NR_KINDS,
};

/*
 * Set by user space before load; constants for the verifier, so what is switched off costs nothing.
 */
struct rqs_config {
	__u64 min_ns;	    /* a wait is over MIN when it is longer than this */
	__u64 cgroup_id;    /* waits of tasks in this cgroup only; 0: all */
	__u32 tgid;	    /* of this process only; 0: all */
	__u32 tid;	    /* of this thread only; 0: all */
	__u32 self_tgid;    /* never counted; 0: nobody */
	__u32 ring_mask;    /* entries of a CPU's history, a power of two, minus 1 */
	__u32 wakeup_bytes; /* rows waiting in the ring that make it wake its reader */
	__u8 emit_all;	    /* a row for every wait */
	__u8 emit_missed;   /* a record for every switch-in without a stamp */
	__u8 waking;	    /* stamps come from sched_waking */
	__u8 cpu_filter;    /* only waits that end on a CPU in cpu_mask */
	__u8 prev_arg;	    /* index of sched_switch's argument prev */
	__u8 has_arg3;	    /* it has an argument of index 3 (prev_state, since 5.19) */
	__u8 weak_order;    /* the machine may reorder stores: publish history with an atomic */
	__u8 reserved;
	__u64 cpu_mask[RQS_MAX_CPUS / 64];
};

/* When a task was put on a run queue; ts 0: it is not waiting. */
struct rqs_stamp {
	__u64 ts;   /* ns */
	__u64 pos;  /* with waking: history position of cpu then */
	__u32 cpu;  /* with waking: where sched_waking fired */
	__u32 kind; /* enum rqs_kind */
};

/* From ts until the next entry of the same CPU this task ran there. */
struct rqs_ran {
	__u64 ts; /* ns; 0 in a CPU's first entry: it ran since before the start */
	__s32 tid;
	__s32 tgid;
	char comm[RQS_COMM_LEN];
};

enum rqs_row_type {
	RQS_ROW_WAIT,	/* a wait ended */
	RQS_ROW_MISSED, /* a task was switched in that nobody saw being queued; wait_ns is 0 */
};

struct rqs_row {
	__u64 ts; /* of the switch, ns */
	__u64 wait_ns;
	__u64 pos; /* history position of cpu with which the task began to run */
	__s32 tid;
	__s32 tgid;
	__u32 cpu;
	__u16 kind; /* enum rqs_kind */
	__u16 type; /* enum rqs_row_type */
	char comm[RQS_COMM_LEN];
};

/*
 * Histogram of waits: exact below 2^RQS_SUB_BITS ns, then 2^RQS_SUB_BITS buckets an octave, so that
 * a bucket is at most 1/32 wide of its value.
 */
#define RQS_SUB_BITS   5
#define RQS_SUB	       (1 << RQS_SUB_BITS)
#define RQS_NR_BUCKETS ((64 - RQS_SUB_BITS + 1) * RQS_SUB)

/*
 * One a CPU, written on that CPU only; the value of the map `cpus` is this and ring_mask + 1
 * entries of history.
 */
struct rqs_cpu {
	__u64 pos;	 /* entries ever written; entry i is ran[i & ring_mask] */
	__u64 waits;	 /* that ended here and passed the filters */
	__u64 over;	 /* of them longer than min_ns */
	__u64 wait_ns;	 /* their sum */
	__u64 longest;	 /* ns */
	__u64 missed;	 /* switch-ins without a stamp */
	__u64 failures;	 /* stamps that could not be stored */
	__u64 rows_lost; /* rows for which the ring had no room */
	__u64 hist[RQS_NR_BUCKETS];
	struct rqs_ran ran[];
};

#endif
