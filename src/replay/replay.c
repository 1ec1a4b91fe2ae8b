// SPDX-License-Identifier: BSD-2-Clause
/* Events to the simulated machine; see replay.h for what holds when a hook fires. */
#include "replay/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "env/env.h"

#define MAX_TIDS (1u << 22) /* PID_MAX_LIMIT of 64-bit Linux */
#define TASK_NEW 0x800

_Static_assert(REC_MAX_CPUS <= ENV_MAX_CPUS, "every CPU of a recording must fit the machine");

struct replay {
	struct env *env;
	struct recording *rec;
	struct replay_opts opts;
	struct replay_stats stats;
	struct env_hook *hooks[REC_NR_TYPES]; /* NULL: the machine's BTF lacks it */
	struct rec_event ev;
	bool have_ev; /* ev is not replayed yet */
	/* Bit per tid: made by a fork (or perf's FORK record) and not seen to wake up since. */
	u64 *fresh;
	u64 *seen;			  /* bit per tid: some task had it */
	/* By tid: the task found last, a reference held; it may have died since. Pages appear as they are written. */
	struct env_task **known;
	s32 known_max; /* none above */
	u64 cpu_known[REC_MAX_CPUS / 64]; /* bit per CPU: its current task is known, no gap since */
	bool no_memory;
};

int replay_create(struct env *env, struct recording *rec, const struct replay_opts *opts,
		  struct replay **ret_replay)
{
	struct replay *r;
	const char *name;
	u32 i;

	if (env_clock_kind(env) != ENV_CLOCK_MANUAL ||
	    env_nr_cpus(env) < recording_info(rec)->nr_cpus)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->env = env;
	r->rec = rec;
	if (opts)
		r->opts = *opts;
	r->fresh = calloc(MAX_TIDS / 64, sizeof(*r->fresh));
	r->seen = calloc(MAX_TIDS / 64, sizeof(*r->seen));
	r->known = mmap(NULL, MAX_TIDS * sizeof(*r->known), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r->known == MAP_FAILED)
		r->known = NULL;
	if (!r->fresh || !r->seen || !r->known) {
		replay_destroy(r);
		return -ENOMEM;
	}
	for (i = 0; i < REC_NR_TYPES; i++) {
		name = rec_event_name((enum rec_event_type)i);
		r->hooks[i] = name ? env_hook_find(env, name) : NULL;
	}
	*ret_replay = r;
	return 0;
}

static void forget_all(struct replay *r)
{
	s32 tid;

	if (!r->known)
		return;
	for (tid = 0; tid <= r->known_max; tid++)
		if (r->known[tid])
			env_task_put(r->known[tid]);
	munmap(r->known, MAX_TIDS * sizeof(*r->known));
}

void replay_destroy(struct replay *r)
{
	if (!r)
		return;
	forget_all(r);
	free(r->fresh);
	free(r->seen);
	free(r);
}

static bool test_tid(const u64 *bits, s32 tid)
{
	return (u32)tid < MAX_TIDS && bits[tid / 64] >> tid % 64 & 1;
}

static void set_tid(u64 *bits, s32 tid, bool on)
{
	if ((u32)tid >= MAX_TIDS)
		return;
	if (on)
		bits[tid / 64] |= 1ULL << tid % 64;
	else
		bits[tid / 64] &= ~(1ULL << tid % 64);
}

/*
 * env_task_find() through the table: tasks are looked up several times an event, and few die. Others may end a task, too
 * (a reused tid), so what died is looked up again.
 */
static struct env_task *find_task(struct replay *r, s32 tid)
{
	struct env_task **slot, *task;

	if (unlikely((u32)tid >= MAX_TIDS))
		return env_task_find(r->env, tid);
	slot = &r->known[tid];
	task = *slot;
	if (likely(task && !__atomic_load_n(&task->dead, __ATOMIC_RELAXED)))
		return task;
	*slot = env_task_find(r->env, tid);
	if (*slot) {
		env_task_get(*slot);
		r->known_max = max_of(r->known_max, tid);
	}
	if (task)
		env_task_put(task);
	return *slot;
}

static struct env_task *new_task(struct replay *r, s32 tid, s32 tgid, const char *comm)
{
	struct env_task *task = env_task_create(r->env, tid, tgid, comm);

	if (!task) {
		r->no_memory = true;
		return NULL;
	}
	r->stats.tasks++;
	r->stats.reused_tids += test_tid(r->seen, tid);
	r->stats.unknown_tgid += tgid < 0;
	set_tid(r->seen, tid, true);
	return task;
}

/* Names are nearly always the same as before, byte by byte. */
static bool same_comm(const char *a, const char b[REC_COMM_LEN])
{
	u64 x[2], y[2];

	_Static_assert(sizeof(x) == REC_COMM_LEN && ENV_COMM_LEN == REC_COMM_LEN, "two words hold a name");
	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return (x[0] == y[0] && x[1] == y[1]) || !strcmp(a, b);
}

/* The task with that tid on that CPU, made if need be; comm NULL: not known. NULL: no memory, or a
 * tid that is none. */
static struct env_task *get_task(struct replay *r, s32 tid, u32 cpu, const char *comm)
{
	struct env_task *task;
	const char *now;

	if (tid == 0)
		return env_idle_task(r->env, cpu);
	if (tid < 0)
		return NULL;
	task = find_task(r, tid);
	if (!task)
		return new_task(r, tid, -1, comm);
	if (comm && *comm && (!*(now = env_task_comm(task)) || !same_comm(now, comm)))
		env_task_set_comm(task, comm);
	return task;
}

static void learn_tgid(struct replay *r, struct env_task *task, s32 tgid)
{
	if (task->idle || tgid < 0 || task->tgid == tgid)
		return;
	r->stats.unknown_tgid -= task->tgid < 0;
	env_task_set_tgid(task, tgid);
}

static void fire(struct replay *r, enum rec_event_type type, const u64 *args)
{
	struct env_hook *hook = r->hooks[type];

	r->stats.fired[type]++;
	if (hook && env_hook_active(hook))
		env_hook_fire(hook, args, env_hook_nr_args(hook));
}

/* The task is gone: so is what is kept of it. */
static void end_task(struct replay *r, struct env_task *task)
{
	struct env_task **slot = (u32)task->tid < MAX_TIDS ? &r->known[task->tid] : NULL;
	bool held = slot && *slot == task;

	if (held)
		*slot = NULL;
	env_task_exit(task);
	if (held)
		env_task_put(task);
}

static u64 obj_arg(const struct env_task *task)
{
	return (u64)(uintptr_t)task->obj;
}

/* Makes the recording's current task the CPU's, where the recording knows it. */
static void enter(struct replay *r, const struct rec_event *ev, s32 tid)
{
	struct env_task *was = env_current_of(r->env, ev->cpu), *task;

	task = tid < 0 || (tid == was->tid && !was->dead) ? was : get_task(r, tid, ev->cpu, NULL);
	if (!task)
		task = was;
	if (task != was) {
		r->stats.wrong_current += r->cpu_known[ev->cpu / 64] >> ev->cpu % 64 & 1;
		env_task_set_on_cpu(was, false);
		env_task_set_cpu(task, ev->cpu);
		env_task_set_on_cpu(task, true);
		env_task_set_state(task, ENV_TASK_RUNNING);
	}
	if (tid >= 0)
		r->cpu_known[ev->cpu / 64] |= 1ULL << ev->cpu % 64;
	learn_tgid(r, task, tid < 0 ? -1 : ev->cur_tgid);
	if (ev->cgroup_id && !task->idle)
		env_task_set_cgroup(task, ev->cgroup_id);
	env_enter(r->env, ev->cpu, task);
}

static void replay_switch(struct replay *r, const struct rec_event *ev)
{
	struct env_task *prev = get_task(r, ev->sw.prev_tid, ev->cpu, ev->sw.prev_comm);
	struct env_task *next = get_task(r, ev->sw.next_tid, ev->cpu, ev->sw.next_comm);
	bool dead =
		ev->sw.prev_state & (REC_STATE_EXIT_DEAD | REC_STATE_EXIT_ZOMBIE | REC_STATE_DEAD);
	u32 state = dead ? ENV_TASK_DEAD : ev->sw.prev_state;

	if (!prev || !next) {
		r->stats.skipped++;
		return;
	}
	enter(r, ev, ev->sw.prev_tid);
	env_task_set_prio(prev, ev->sw.prev_prio);
	env_task_set_prio(next, ev->sw.next_prio);
	env_task_set_state(prev, state);
	if (next != prev)
		env_task_set_state(next, ENV_TASK_RUNNING);
	env_task_set_cpu(next, ev->cpu);
	set_tid(r->fresh, ev->sw.next_tid, false);
	{
		u64 args[] = {ev->sw.preempt, obj_arg(prev), obj_arg(next), state};

		fire(r, REC_SWITCH, args);
	}
	env_task_set_on_cpu(prev, false);
	env_task_set_on_cpu(next, true);
	env_set_current(r->env, ev->cpu, next);
	if (prev->idle)
		env_task_set_state(prev, ENV_TASK_RUNNING);
	else if (dead && next != prev)
		end_task(r, prev);
}

/* Whether the task is current somewhere: then a fork that seems to come after is clock skew between
 * CPUs. */
static bool is_running(struct replay *r, const struct env_task *task)
{
	return task && env_current_of(r->env, task->cpu) == task;
}

static void replay_wakeup(struct replay *r, const struct rec_event *ev)
{
	struct env_task *task;
	bool is_new = ev->type == REC_WAKEUP_NEW;

	/* Its first wake-up, and no fork was recorded: whoever had this tid before is gone. */
	if (is_new && ev->wakeup.tid > 0 && !test_tid(r->fresh, ev->wakeup.tid) &&
	    !is_running(r, find_task(r, ev->wakeup.tid)))
		task = new_task(r, ev->wakeup.tid, -1, ev->wakeup.comm);
	else
		task = get_task(r, ev->wakeup.tid, ev->cpu, ev->wakeup.comm);
	if (!task) {
		r->stats.skipped++;
		return;
	}
	enter(r, ev, ev->cur_tid);
	env_task_set_prio(task, ev->wakeup.prio);
	if ((u32)ev->wakeup.target_cpu < env_nr_cpus(r->env))
		env_task_set_cpu(task, ev->wakeup.target_cpu);
	if (ev->type != REC_WAKING)
		env_task_set_state(task, ENV_TASK_RUNNING);
	if (is_new)
		set_tid(r->fresh, ev->wakeup.tid, false);
	{
		u64 args[] = {obj_arg(task)};

		fire(r, ev->type, args);
	}
}

/* The child of a fork, made unless it is there already, by perf's own record or by skew. */
static struct env_task *born(struct replay *r, s32 tid, s32 tgid, const char *comm)
{
	struct env_task *task;

	if (tid <= 0)
		return NULL;
	task = find_task(r, tid);
	if (!task || (!test_tid(r->fresh, tid) && !is_running(r, task))) {
		task = new_task(r, tid, tgid, comm);
		if (!task)
			return NULL;
		env_task_set_state(task, TASK_NEW);
		set_tid(r->fresh, tid, true);
		return task;
	}
	learn_tgid(r, task, tgid);
	if (*comm)
		env_task_set_comm(task, comm);
	return task;
}

static void replay_fork(struct replay *r, const struct rec_event *ev)
{
	struct env_task *parent = get_task(r, ev->fork.parent_tid, ev->cpu, ev->fork.parent_comm);
	struct env_task *child =
		born(r, ev->fork.child_tid, ev->fork.child_tgid, ev->fork.child_comm);

	if (!parent || !child) {
		r->stats.skipped++;
		return;
	}
	enter(r, ev, ev->cur_tid);
	env_task_set_parent(child, parent);
	env_task_set_cgroup(child, env_task_cgroup(parent));
	env_task_set_cpu(child, ev->cpu);
	{
		u64 args[] = {obj_arg(parent), obj_arg(child)};

		fire(r, REC_FORK, args);
	}
}

static void replay_exit(struct replay *r, const struct rec_event *ev)
{
	struct env_task *task = get_task(r, ev->exit.tid, ev->cpu, ev->exit.comm);

	if (!task || task->idle) {
		r->stats.skipped++;
		return;
	}
	/* perf no longer knows who is current by then; the one that exits is. */
	enter(r, ev, ev->exit.tid);
	env_task_set_prio(task, ev->exit.prio);
	{
		/* Recordings of before 6.16 do not say; for a process of one thread it is true. */
		u64 args[] = {obj_arg(task), ev->exit.group_dead >= 0 ? ev->exit.group_dead
								      : task->tgid == task->tid};

		fire(r, REC_EXIT, args);
	}
}

static void replay_migrate(struct replay *r, const struct rec_event *ev)
{
	struct env_task *task = get_task(r, ev->migrate.tid, ev->cpu, ev->migrate.comm);
	u32 nr = env_nr_cpus(r->env);

	if (!task || task->idle) {
		r->stats.skipped++;
		return;
	}
	enter(r, ev, ev->cur_tid);
	env_task_set_prio(task, ev->migrate.prio);
	if ((u32)ev->migrate.orig_cpu < nr)
		env_task_set_cpu(task, ev->migrate.orig_cpu);
	{
		u64 args[] = {obj_arg(task), (u64)(s64)ev->migrate.dest_cpu};

		fire(r, REC_MIGRATE, args);
	}
	if ((u32)ev->migrate.dest_cpu < nr)
		env_task_set_cpu(task, ev->migrate.dest_cpu);
}

static void replay_task(struct replay *r, const struct rec_event *ev)
{
	struct env_task *task;

	r->stats.fired[REC_TASK]++;
	if (ev->task.tid <= 0)
		return; /* idle tasks are known */
	if (ev->task.born)
		task = born(r, ev->task.tid, ev->task.tgid, ev->task.comm);
	else
		task = get_task(r, ev->task.tid, 0, ev->task.comm);
	if (task)
		learn_tgid(r, task, ev->task.tgid);
}

/* After a gap the task left by the last switch need not be the current one. */
static void forget_current(struct replay *r, s32 cpu)
{
	if ((u32)cpu < REC_MAX_CPUS)
		r->cpu_known[cpu / 64] &= ~(1ULL << cpu % 64);
	else
		memset(r->cpu_known, 0, sizeof(r->cpu_known));
}

static void replay_event(struct replay *r, const struct rec_event *ev)
{
	switch (ev->type) {
	case REC_SWITCH:
		replay_switch(r, ev);
		break;
	case REC_WAKEUP:
	case REC_WAKEUP_NEW:
	case REC_WAKING:
		replay_wakeup(r, ev);
		break;
	case REC_FORK:
		replay_fork(r, ev);
		break;
	case REC_EXIT:
		replay_exit(r, ev);
		break;
	case REC_MIGRATE:
		replay_migrate(r, ev);
		break;
	case REC_TASK:
		replay_task(r, ev);
		break;
	case REC_LOST:
		forget_current(r, ev->lost.cpu);
		r->stats.lost += ev->lost.count;
		r->stats.lost_gaps_unknown += !ev->lost.count;
		r->stats.fired[REC_LOST]++;
		break;
	default:
		r->stats.fired[REC_OTHER]++;
		break;
	}
}

/* Fetches the next event into r->ev, if none waits there. As recording_next(). */
static int fetch(struct replay *r)
{
	int ret;

	if (r->have_ev)
		return 1;
	ret = recording_next(r->rec, &r->ev);
	r->have_ev = ret > 0;
	return ret;
}

static int play(struct replay *r)
{
	const struct rec_event *ev = &r->ev;

	r->have_ev = false;
	if (unlikely(ev->cpu >= env_nr_cpus(r->env))) {
		r->stats.skipped++;
		return 1;
	}
	env_clock_set(r->env, ev->ts_ns);
	if (!r->stats.first_ts_ns)
		r->stats.first_ts_ns = ev->ts_ns;
	r->stats.last_ts_ns = ev->ts_ns;
	if (r->opts.before)
		r->opts.before(r->opts.ctx, ev);
	replay_event(r, ev);
	if (r->opts.after)
		r->opts.after(r->opts.ctx, ev);
	return r->no_memory ? -ENOMEM : 1;
}

int replay_step(struct replay *r)
{
	int ret = fetch(r);

	if (ret > 0)
		ret = play(r);
	env_leave(r->env);
	return ret;
}

int replay_run(struct replay *r, u64 until_ns, const volatile int *stop)
{
	int ret;

	while ((ret = fetch(r)) > 0) {
		if ((stop && *stop) || (until_ns && r->ev.ts_ns > until_ns))
			break;
		ret = play(r);
		if (ret < 0)
			break;
	}
	env_leave(r->env);
	return ret;
}

const struct replay_stats *replay_stats(const struct replay *r)
{
	return &r->stats;
}

const char *replay_error(const struct replay *r)
{
	return r->no_memory ? "out of memory" : recording_error(r->rec);
}
