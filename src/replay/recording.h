/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording of scheduler events, whatever its format, as one sequence of `struct rec_event` in
 * time order.
 *
 * Formats are told apart by their bytes: perf.data (file and pipe mode), trace.dat v6 and v7, and
 * the text of `perf script`, `trace-cmd report` and ftrace's trace and trace_pipe files; each also
 * inside gzip, xz or zstd. Opening reads the whole file once (recording_info() is then complete),
 * reading the events reads it again.
 *
 * One recording is used by one thread at a time. The libraries that parse foreign bytes
 * (libtracecmd, libtraceevent) run in a child process: nothing a file holds can crash the caller.
 */
#ifndef INLAY_REPLAY_RECORDING_H
#define INLAY_REPLAY_RECORDING_H

#include "base/log.h"
#include "base/strbuf.h"
#include "base/types.h"

#define REC_COMM_LEN 16	  /* as TASK_COMM_LEN; always NUL-terminated */
#define REC_MAX_CPUS 4096 /* a CPU number at or above this makes the recording unreadable */

enum rec_event_type {
	REC_SWITCH, /* sched_switch */
	REC_WAKEUP, /* sched_wakeup; those with success=0 (before Linux 5.14) count as REC_OTHER */
	REC_WAKEUP_NEW, /* sched_wakeup_new */
	REC_WAKING,	/* sched_waking */
	REC_FORK,	/* sched_process_fork */
	REC_EXIT,	/* sched_process_exit */
	REC_MIGRATE,	/* sched_migrate_task */
	REC_TASK,	/* no tracepoint: what the recording says about a thread's tgid and comm */
	REC_LOST,	/* no tracepoint: events are missing before this point */
	REC_OTHER, /* any other event; counted, and handed out only with recording_opts.want_other
		    */
	REC_NR_TYPES,
};

/*
 * Task states as Linux 6.18's <linux/sched.h> has them, whatever bits or letters the recording
 * uses. `X` and `Z` are the exit states (what sched_switch's prev_state *argument* then holds is
 * REC_STATE_DEAD); `I` is TASK_IDLE as in the kernel, UNINTERRUPTIBLE | NOLOAD. A state the
 * recording's own format cannot name becomes UNINTERRUPTIBLE: it is not runnable.
 */
enum rec_state {
	REC_STATE_RUNNING = 0,
	REC_STATE_INTERRUPTIBLE = 0x1,
	REC_STATE_UNINTERRUPTIBLE = 0x2,
	REC_STATE_STOPPED = 0x4,
	REC_STATE_TRACED = 0x8,
	REC_STATE_EXIT_DEAD = 0x10,
	REC_STATE_EXIT_ZOMBIE = 0x20,
	REC_STATE_PARKED = 0x40,
	REC_STATE_DEAD = 0x80,
	REC_STATE_WAKEKILL = 0x100,
	REC_STATE_WAKING = 0x200,
	REC_STATE_NOLOAD = 0x400,
	REC_STATE_NEW = 0x800,
	REC_STATE_IDLE = 0x402,
};

struct rec_event {
	u64 ts_ns;     /* recording's clock; never decreases from one event to the next */
	u64 cgroup_id; /* of the current thread (perf --all-cgroups); 0: unknown */
	u32 cpu;       /* where it happened, < recording_info.nr_cpus; for REC_TASK meaningless */
	s32 cur_tid;   /* thread that was current on it (0: idle); -1: unknown */
	s32 cur_tgid;  /* its process; -1: unknown */
	u32 type;      /* enum rec_event_type */
	union {
		struct {
			s32 prev_tid, prev_prio;
			char prev_comm[REC_COMM_LEN];
			u32 prev_state; /* enum rec_state bits */
			bool preempt;	/* "+": it was preempted, and prev_state is RUNNING */
			s32 next_tid, next_prio;
			char next_comm[REC_COMM_LEN];
		} sw; /* REC_SWITCH */
		struct {
			s32 tid, prio;
			char comm[REC_COMM_LEN];
			s32 target_cpu; /* -1: unknown */
		} wakeup;		/* REC_WAKEUP, REC_WAKEUP_NEW, REC_WAKING */
		struct {
			s32 parent_tid, child_tid;
			s32 child_tgid; /* -1: unknown */
			char parent_comm[REC_COMM_LEN], child_comm[REC_COMM_LEN];
		} fork;
		struct {
			s32 tid, prio;
			char comm[REC_COMM_LEN];
			s32 group_dead; /* -1: unknown */
		} exit;
		struct {
			s32 tid, prio;
			char comm[REC_COMM_LEN];
			s32 orig_cpu, dest_cpu;
		} migrate;
		struct {
			s32 tid, tgid;
			char comm[REC_COMM_LEN]; /* "": unknown */
			bool born; /* the thread was created here (perf's FORK record): older ones
				      of this tid are gone */
		} task;
		struct {
			u64 count; /* 0: some, nobody knows how many */
			s32 cpu;   /* -1: any */
		} lost;
	};
};

struct recording_opts {
	const struct log_sink *log; /* warnings; may be NULL */
	bool want_other;	    /* hand out REC_OTHER as well */
	bool by_library;	    /* trace.dat: libtracecmd reads all of it, as it does what the quick way cannot; for tests */
	u64 max_spool;		    /* bytes that stdin or packed files may be; 0: 64 GiB */
	/*
	 * Stretches of ascending time that ordering holds at once; 0: a million for perf.data
	 * (beyond it orders within rounds, as perf does), four for text (beyond it is refused). 24
	 * bytes each.
	 */
	u32 max_runs;
	/* Called now and then with bytes done of total (0: unknown); stage "unpacking", "scanning"
	 * or "reading". */
	void (*progress)(void *ctx, const char *stage, u64 done, u64 total);
	void *progress_ctx;
	/* The recording's bytes, in place of a file: path is then only a name for messages. Must
	 * outlive the recording. */
	const void *data;
	u64 data_size;
};

/* Complete once recording_open() returned; text lives as long as the recording. */
struct recording_info {
	const char *format;	  /* e.g. "perf.data", "trace.dat v7", "perf script text" */
	const char *compression;  /* "gzip", "xz", "zstd"; NULL: none */
	const char *clock;	  /* e.g. "local", "mono"; NULL: unknown */
	const char *host;	  /* host name or uname text the file holds; NULL: unknown */
	u32 nr_cpus;		  /* highest CPU number that occurs, + 1 */
	u32 cpus_seen;		  /* CPUs with at least one event */
	u32 ts_unit_ns;		  /* resolution of times: 1; 1000 for text in microseconds */
	bool tgids_known;	  /* REC_TASK, fork.child_tgid or cur_tgid tell a thread's tgid */
	bool cgroups_known;	  /* cgroup_id is filled */
	u64 events[REC_NR_TYPES]; /* how many of each; REC_LOST: how many gaps */
	bool recorded[REC_NR_TYPES]; /* the event was switched on (perf's attributes) or occurs
					(other formats) */
	u64 lost;		     /* events known lost, summed */
	u64 lost_gaps_unknown;	     /* gaps of which the size is not known */
	u64 first_ts_ns, last_ts_ns;
	bool by_library;   /* trace.dat: libtracecmd read the events; else they came straight from the ring buffer's pages */
	u64 skipped_lines; /* text: lines that look like none of the known forms */
	u64 size;	   /* bytes, unpacked */
};

struct recording;

/*
 * Opens path ("-": standard input). opts may be NULL. 0, or -errno with one line in err that says
 * what, where and what to do: ENOENT, EACCES …: as open(2); EINVAL: no recording, or a damaged one;
 * EPROTONOSUPPORT: a recording of a kind this cannot read; ENODATA: one without what is needed;
 * ENOSPC, EFBIG: unpacking; ENOMEM. Forks a child for some formats, which ends with the thread that
 * opened: that thread must outlive the recording.
 */
int recording_open(const char *path, const struct recording_opts *opts, struct strbuf *err,
		   struct recording **ret_rec);

/* 1: ev is filled; 0: the end; -errno: damaged from here on, recording_error() says how. Not in
 * signal handlers. */
int recording_next(struct recording *rec, struct rec_event *ev);

const struct recording_info *recording_info(const struct recording *rec);

/* The reason of the last failed recording_next(); "" if none failed. */
const char *recording_error(const struct recording *rec);

/* Path of a cgroup the recording names, or NULL. */
const char *recording_cgroup(const struct recording *rec, u64 cgroup_id);

/* Takes NULL. Ends the child, if there is one. */
void recording_close(struct recording *rec);

/* "sched_switch" …; NULL for the types that are no tracepoint. */
const char *rec_event_name(enum rec_event_type type);

#endif
