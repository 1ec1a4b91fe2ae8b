/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording run on the simulated machine: for each event the clock is set, the task that was
 * current becomes current, the tasks the event names get what it says of them, and the tracepoint's
 * hook fires once with the arguments Linux 6.18 gives it. Programs attached to the hooks cannot
 * tell it from the machine that was recorded, as far as the recording knows that machine.
 *
 * What holds while a hook fires, as in the kernel: at sched_switch current is prev, prev->__state
 * is the state it was switched out in (TASK_DEAD for an exiting one), next is RUNNING and not yet
 * on_cpu. At sched_waking the task has the state it slept in; at sched_wakeup and sched_wakeup_new
 * it is RUNNING. At sched_migrate_task its CPU is still the old one.
 *
 * A reused thread id is a new task: after its fork, after its sched_wakeup_new where forks were not
 * recorded, and after the old one was switched out dead. Not thread-safe; the caller's thread is
 * the one that runs the programs.
 */
#ifndef INLAY_REPLAY_REPLAY_H
#define INLAY_REPLAY_REPLAY_H

#include "replay/recording.h"

struct env;
struct replay;

struct replay_opts {
	/* Called for every event after the machine shows its effect and its hook, if it has one,
	 * has fired. May be NULL. */
	void (*after)(void *ctx, const struct rec_event *ev);
	/* Called for every event before anything of it happened. May be NULL. */
	void (*before)(void *ctx, const struct rec_event *ev);
	void *ctx;
};

struct replay_stats {
	u64 fired[REC_NR_TYPES]; /* events replayed, by type; for tracepoints: times the hook was
				    fired */
	u64 tasks;		 /* tasks made */
	u64 reused_tids;	 /* of them, those whose tid an earlier task had */
	u64 unknown_tgid;	 /* tasks made with no tgid known, less those learnt since */
	u64 wrong_current; /* events whose current task was not the one the last switch had left:
			      something is missing */
	u64 skipped; /* events that make no sense (negative tids, impossible CPUs); their hook did
			not fire */
	u64 lost;    /* events known lost so far */
	u64 lost_gaps_unknown;	     /* gaps so far whose size nobody knows */
	u64 first_ts_ns, last_ts_ns; /* of the events replayed so far */
};

/*
 * env: ENV_CLOCK_MANUAL, with at least recording_info()->nr_cpus CPUs. Both stay the caller's and
 * must live longer than the replay. opts may be NULL. 0 or -errno (EINVAL: the machine has too few
 * CPUs or another clock; ENOMEM).
 */
int replay_create(struct env *env, struct recording *rec, const struct replay_opts *opts,
		  struct replay **ret_replay);
void replay_destroy(struct replay *r); /* takes NULL */

/* Replays the next event. 1: done; 0: there is none left; -errno: replay_error() says why. */
int replay_step(struct replay *r);

/*
 * Replays until the recording ends (0), *stop becomes non-zero (1; stop may be NULL, a signal
 * handler may set it), or an event is later than until_ns (1; that event is not replayed; 0: no
 * limit). -errno as replay_step().
 */
int replay_run(struct replay *r, u64 until_ns, const volatile int *stop);

const struct replay_stats *replay_stats(const struct replay *r);
const char *replay_error(const struct replay *r);

#endif
