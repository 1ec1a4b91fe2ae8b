// SPDX-License-Identifier: BSD-2-Clause
/* What the simulated machine shows, and with which arguments each hook fires, while a recording is
 * replayed on it. */
#include <errno.h>
#include <string.h>

#include "btf/btf.h"
#include "env/env.h"
#include "replay/replay.h"
#include "tap.h"

extern const char inlay_model_btf[], inlay_model_btf_end[];

static struct btf *model;

/* Everything a program could have seen when a hook fired. */
struct shot {
	enum rec_event_type type;
	u64 args[4];
	u32 nargs;
	s32 current_tid; /* of env_tls.current */
	u64 clock;
	u32 cpu;
	struct { /* the first task argument, then the second */
		s32 tid, tgid;
		u32 state, cpu, on_cpu, prio;
		char comm[16];
		struct env_task *task;
	} t[2];
};

struct client {
	struct env_hook_client base;
	enum rec_event_type type;
};

#define MAX_SHOTS 64
static struct shot shots[MAX_SHOTS];
static u32 nr_shots;
static u64 fired[REC_NR_TYPES];
static struct client clients[REC_NR_TYPES];

static u64 field(const struct env_task *task, const char *name)
{
	u32 off, size;
	u64 v = 0;

	if (btf_find_field_offset(model, "task_struct", name, &off, &size))
		return ~0ULL;
	memcpy(&v, task->obj + off, size);
	return v;
}

static void take(struct shot *s, u32 n, u64 arg)
{
	struct env_task *task = env_task_of((void *)(uintptr_t)arg);

	s->t[n].task = task;
	s->t[n].tid = field(task, "pid");
	s->t[n].tgid = field(task, "tgid");
	s->t[n].state = field(task, "__state");
	s->t[n].cpu = field(task, "thread_info.cpu");
	s->t[n].on_cpu = field(task, "on_cpu");
	s->t[n].prio = field(task, "prio");
	strcpy(s->t[n].comm, env_task_comm(task));
}

static void fire(struct env_hook_client *base, const u64 *args, u32 nargs)
{
	struct client *c = container_of_(base, struct client, base);
	struct shot *s;

	fired[c->type]++;
	if (nr_shots == MAX_SHOTS)
		return;
	s = &shots[nr_shots++];
	memset(s, 0, sizeof(*s));
	s->type = c->type;
	s->nargs = nargs;
	memcpy(s->args, args, sizeof(*args) * min_of(nargs, 4u));
	s->current_tid = env_tls.current ? env_tls.current->tid : -99;
	s->clock = env_clock_ns(env_tls.env);
	s->cpu = env_tls.cpu;
	if (c->type == REC_SWITCH || c->type == REC_FORK)
		take(s, 1, args[c->type == REC_SWITCH ? 2 : 1]);
	take(s, 0, args[c->type == REC_SWITCH]);
}

struct world {
	struct env *env;
	struct recording *rec;
	struct replay *replay;
};

static bool world_open(struct world *w, const char *path, const char *text, u32 cpus)
{
	struct recording_opts opts = {.data = text, .data_size = text ? strlen(text) : 0};
	struct env_opts eo = {.btf = model, .clock = ENV_CLOCK_MANUAL, .seed = 1};
	struct strbuf err = STRBUF_INIT;
	struct env_hook *hook;
	u32 i;

	memset(w, 0, sizeof(*w));
	memset(fired, 0, sizeof(fired));
	nr_shots = 0;
	if (recording_open(path, &opts, &err, &w->rec)) {
		printf("# %s\n", strbuf_str(&err));
		strbuf_fini(&err);
		return false;
	}
	eo.nr_cpus = cpus ? cpus : recording_info(w->rec)->nr_cpus;
	if (env_create(&eo, &w->env) || replay_create(w->env, w->rec, NULL, &w->replay))
		return false;
	for (i = 0; i <= REC_MIGRATE; i++) {
		hook = env_hook_find(w->env, rec_event_name((enum rec_event_type)i));
		clients[i] = (struct client){.base.fire = fire, .type = (enum rec_event_type)i};
		if (!hook || env_hook_attach(hook, &clients[i].base))
			return false;
	}
	return true;
}

static void world_close(struct world *w)
{
	u32 i;

	for (i = 0; w->env && i <= REC_MIGRATE; i++)
		env_hook_detach(env_hook_find(w->env, rec_event_name((enum rec_event_type)i)),
				&clients[i].base);
	replay_destroy(w->replay);
	env_destroy(w->env);
	recording_close(w->rec);
}

static void switches(void)
{
	static const char text[] =
		"a-10 ( 9) [000] 1.000001: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 "
		"prev_state=D ==> next_comm=b next_pid=11 next_prio=98\n"
		"b-11 ( 11) [000] 1.000002: sched_switch: prev_comm=b prev_pid=11 prev_prio=98 "
		"prev_state=R+ ==> next_comm=swapper/0 next_pid=0 next_prio=120\n"
		"<idle>-0 (-----) [001] 1.000003: sched_switch: prev_comm=swapper/1 prev_pid=0 "
		"prev_prio=120 prev_state=R ==> next_comm=b2 next_pid=11 next_prio=120\n"
		"b-11 ( 11) [001] 1.000004: sched_switch: prev_comm=b2 prev_pid=11 prev_prio=120 "
		"prev_state=I ==> next_comm=a next_pid=10 next_prio=120\n"
		"a-10 ( 9) [001] 1.000005: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 "
		"prev_state=X ==> next_comm=swapper/1 next_pid=0 next_prio=120\n"
		"<idle>-0 (-----) [001] 1.000006: sched_wakeup: comm=again pid=10 prio=120 "
		"target_cpu=001\n"
		"<idle>-0 (-----) [001] 1.000007: sched_switch: prev_comm=swapper/1 prev_pid=0 "
		"prev_prio=120 prev_state=R ==> next_comm=again next_pid=10 next_prio=120\n"
		"again-10 ( 10) [001] 1.000008: sched_switch: prev_comm=again prev_pid=10 "
		"prev_prio=120 prev_state=Z ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";
	struct world w;
	struct env_task *a;

	if (!ok(world_open(&w, "switches", text, 0), "a machine for a text"))
		return;
	is_int(replay_step(w.replay), 1, "one step, one event");
	is_u64(shots[0].nargs, 4, "sched_switch has four arguments");
	ok(!shots[0].args[0] && shots[0].t[0].tid == 10 && shots[0].t[1].tid == 11 &&
		   shots[0].args[3] == 2,
	   "they are preempt, prev, next, prev_state");
	is_int(shots[0].current_tid, 10, "current is prev while it fires");
	is_u64(shots[0].clock, 1000001000, "the clock is the event's");
	ok(shots[0].t[0].state == 2 && shots[0].t[0].on_cpu == 1 && shots[0].t[0].prio == 120 &&
		   !strcmp(shots[0].t[0].comm, "a"),
	   "prev has the state it left in, and is still on the CPU");
	ok(shots[0].t[1].state == 0 && shots[0].t[1].on_cpu == 0 && shots[0].t[1].prio == 98 &&
		   !strcmp(shots[0].t[1].comm, "b"),
	   "next is runnable and not on the CPU yet");
	is_int(shots[0].t[0].tgid, 9, "a tgid the recording knows is in the task");
	is_int(shots[0].t[1].tgid, -1, "one it does not know reads as -1");
	is_u64(replay_stats(w.replay)->unknown_tgid, 1, "and is counted");
	ok(env_current_of(w.env, 0)->tid == 11, "after it, next is current");
	ok(field(env_task_find(w.env, 10), "on_cpu") == 0 &&
		   field(env_task_find(w.env, 11), "on_cpu") == 1,
	   "and on the CPU, and prev is not");
	replay_step(w.replay);
	ok(shots[1].args[0] == 1 && shots[1].args[3] == 0, "R+ is preempt, and RUNNING");
	ok(shots[1].t[1].task == env_idle_task(w.env, 0), "tid 0 is the CPU's idle task");
	is_u64(replay_stats(w.replay)->unknown_tgid, 0, "a tgid learnt later is no longer unknown");
	replay_step(w.replay);
	ok(shots[2].t[0].task == env_idle_task(w.env, 1) &&
		   shots[2].t[0].task != shots[1].t[1].task,
	   "each CPU has an idle task of its own");
	ok(shots[2].cpu == 1 && shots[2].t[1].cpu == 1 && !strcmp(shots[2].t[1].comm, "b2"),
	   "a task that turns up elsewhere is there, under its new name");
	replay_step(w.replay);
	is_u64(shots[3].args[3], 0x402, "I is TASK_IDLE");
	a = env_task_find(w.env, 10);
	replay_step(w.replay);
	is_u64(shots[4].args[3], 0x80, "an exiting task leaves in TASK_DEAD");
	is_u64(shots[4].t[0].state, 0x80, "its __state says the same");
	ok(!env_task_find(w.env, 10), "and is gone after it");
	replay_step(w.replay);
	ok(env_task_find(w.env, 10) && env_task_find(w.env, 10) != a &&
		   !strcmp(shots[5].t[0].comm, "again"),
	   "its tid belongs to a new task from then on");
	is_u64(replay_stats(w.replay)->reused_tids, 1, "which is counted");
	is_int(replay_run(w.replay, 0, NULL), 0, "the end");
	is_u64(shots[7].args[3], 0x80, "a zombie leaves in TASK_DEAD, too");
	is_int(replay_step(w.replay), 0, "after the end there is nothing");
	is_u64(fired[REC_SWITCH], 7, "every switch fired once");
	is_u64(fired[REC_WAKEUP], 1, "every wake-up, too");
	is_u64(replay_stats(w.replay)->wrong_current, 0, "nobody was current unexpectedly");
	world_close(&w);
}

static void wakeups(void)
{
	static const char text[] =
		"a-10 [000] 1.000001: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 "
		"prev_state=D ==> next_comm=b next_pid=11 next_prio=120\n"
		"b-11 [000] 1.000002: sched_waking: comm=a pid=10 prio=119 target_cpu=000\n"
		"b-11 [000] 1.000003: sched_wakeup: comm=a pid=10 prio=118 target_cpu=002\n"
		"b-11 [000] 1.000004: sched_wakeup_new: comm=a pid=10 prio=120 target_cpu=001\n"
		"b-11 [000] 1.000005: sched_migrate_task: comm=a pid=10 prio=120 orig_cpu=1 "
		"dest_cpu=2\n"
		"b-11 [000] 1.000006: sched_process_fork: comm=b pid=11 child_comm=kid "
		"child_pid=12\n"
		"b-11 [000] 1.000007: sched_wakeup_new: comm=kid pid=12 prio=120 target_cpu=001\n"
		"b-11 [000] 1.000008: sched_process_fork: comm=b pid=11 child_comm=kid2 "
		"child_pid=12\n"
		"b-11 [000] 1.000009: sched_process_exit: comm=b pid=11 prio=120 group_dead=false\n"
		"b-11 [000] 1.000010: sched_process_exit: comm=b pid=11 prio=120\n"
		"c-77 [000] 1.000011: sched_waking: comm=z pid=-5 prio=119 target_cpu=000\n"
		"c-77 [000] 1.000012: sched_waking: comm=z pid=5 prio=119 target_cpu=000\n"
		"CPU:0 [LOST 9 EVENTS]\n"
		"d-78 [000] 1.000013: sched_waking: comm=z pid=5 prio=119 target_cpu=000\n";
	struct env_task *first, *second;
	struct world w;
	struct shot *s = shots;

	if (!ok(world_open(&w, "wakeups", text, 3), "a machine with more CPUs than the recording"))
		return;
	replay_step(w.replay);
	first = env_task_find(w.env, 10);
	replay_step(w.replay);
	ok(s[1].nargs == 1 && s[1].t[0].task == first && s[1].current_tid == 11 &&
		   s[1].t[0].state == 2 && s[1].t[0].prio == 119,
	   "sched_waking: the sleeper, still in its state; current is the waker");
	replay_step(w.replay);
	ok(s[2].t[0].task == first && s[2].t[0].state == 0 && s[2].t[0].cpu == 2 &&
		   s[2].t[0].prio == 118,
	   "sched_wakeup: runnable, on the CPU it goes to");
	replay_step(w.replay);
	second = env_task_find(w.env, 10);
	ok(s[3].t[0].task == second && second != first && s[3].t[0].cpu == 1,
	   "sched_wakeup_new without a fork: the tid is a new task's");
	replay_step(w.replay);
	ok(s[4].type == REC_MIGRATE && s[4].nargs == 2 && s[4].t[0].cpu == 1 && s[4].args[1] == 2 &&
		   field(second, "thread_info.cpu") == 2,
	   "sched_migrate_task: still on the old CPU, then on the new");
	replay_step(w.replay);
	first = env_task_find(w.env, 12);
	ok(s[5].type == REC_FORK && s[5].nargs == 2 && s[5].t[0].tid == 11 && s[5].t[1].tid == 12 &&
		   s[5].t[1].task == first && s[5].t[1].state == 0x800 &&
		   !strcmp(s[5].t[1].comm, "kid"),
	   "sched_process_fork: parent and child; the child is TASK_NEW");
	ok(field(first, "real_parent") == (uintptr_t)env_task_find(w.env, 11)->obj,
	   "and knows its parent");
	replay_step(w.replay);
	ok(s[6].t[0].task == first && s[6].t[0].state == 0, "its first wake-up is its own");
	replay_step(w.replay);
	ok(env_task_find(w.env, 12) != first && !strcmp(s[7].t[1].comm, "kid2"),
	   "another fork of the tid: a new task");
	replay_step(w.replay);
	ok(s[8].type == REC_EXIT && s[8].nargs == 2 && s[8].args[1] == 0 && s[8].current_tid == 11,
	   "sched_process_exit: group_dead as recorded");
	replay_step(w.replay);
	is_u64(s[9].args[1], 0, "group_dead not recorded and tgid unknown: false");
	is_u64(replay_stats(w.replay)->skipped, 0, "all of it made sense so far");
	replay_step(w.replay);
	ok(replay_stats(w.replay)->skipped == 1 && fired[REC_WAKING] == 1,
	   "a negative tid is skipped and counted");
	replay_step(w.replay);
	is_u64(replay_stats(w.replay)->wrong_current, 1,
	       "a task that runs unexpectedly is noticed");
	is_int(s[10].current_tid, 77, "and believed");
	replay_step(w.replay);
	is_u64(replay_stats(w.replay)->lost, 9, "lost events are known at their place");
	replay_step(w.replay);
	is_u64(replay_stats(w.replay)->wrong_current, 1, "after a gap anything may run");
	is_int(s[11].current_tid, 78, "and does");
	world_close(&w);
}

static u32 befores, afters;

static void before(void *ctx, const struct rec_event *ev)
{
	befores += ctx == &befores && fired[REC_WAKEUP] == befores;
}

static void after(void *ctx, const struct rec_event *ev)
{
	afters += ctx == &befores && fired[REC_WAKEUP] == afters + 1;
}

static void control(void)
{
	static const char text[] =
		"a-10 [003] 1.000001: sched_wakeup: comm=a pid=10 prio=120 target_cpu=001\n"
		"a-10 [003] 1.000002: sched_wakeup: comm=a pid=10 prio=120 target_cpu=001\n"
		"a-10 [003] 1.000009: sched_wakeup: comm=a pid=10 prio=120 target_cpu=001\n";
	struct replay_opts opts = {.before = before, .after = after, .ctx = &befores};
	struct env_opts eo = {.nr_cpus = 4, .btf = model, .clock = ENV_CLOCK_REAL};
	struct env *real;
	struct replay *r = NULL;
	struct world w;
	int stop = 1;

	ok(!world_open(&w, "few", text, 2), "a machine with too few CPUs is refused");
	world_close(&w);
	if (!world_open(&w, "control", text, 0) || env_create(&eo, &real)) {
		ok(false, "a machine");
		return;
	}
	is_int(replay_create(real, w.rec, NULL, &r), -EINVAL,
	       "a machine with a real clock is refused");
	env_destroy(real);
	replay_destroy(w.replay);
	is_int(replay_create(w.env, w.rec, &opts, &w.replay), 0, "a replay with callbacks");
	is_int(replay_run(w.replay, 0, &stop), 1, "a raised stop flag stops at once");
	is_u64(fired[REC_WAKEUP], 0, "and nothing was lost by it:");
	is_int(replay_run(w.replay, 1000002000, NULL), 1, "it goes on to a given time");
	is_u64(fired[REC_WAKEUP], 2, "and replays what is not later");
	is_int(replay_run(w.replay, 0, NULL), 0, "and then the rest");
	ok(fired[REC_WAKEUP] == 3 && befores == 3 && afters == 3,
	   "callbacks come before and after each hook");
	ok(replay_stats(w.replay)->first_ts_ns == 1000001000 &&
		   replay_stats(w.replay)->last_ts_ns == 1000009000,
	   "first and last time are known");
	world_close(&w);
}

/* A shipped recording: each hook fires as often as the recording has the event. */
static void shipped(const char *dir, const char *name, bool tgids)
{
	struct strbuf path = STRBUF_INIT;
	const struct recording_info *info;
	const struct replay_stats *st;
	struct world w;
	bool same = true;
	u32 i;

	strbuf_printf(&path, "%s/%s", dir, name);
	if (!ok(world_open(&w, path.s, NULL, 0), "%s: opens", name))
		goto out;
	is_int(replay_run(w.replay, 0, NULL), 0, "%s: replays to the end", name);
	info = recording_info(w.rec);
	st = replay_stats(w.replay);
	for (i = 0; i <= REC_MIGRATE; i++)
		same &= fired[i] == info->events[i] && st->fired[i] == info->events[i];
	ok(same && fired[REC_SWITCH] > 100, "%s: each hook fired once an event", name);
	ok(!st->skipped && !st->wrong_current,
	   "%s: all made sense, each switch goes on from the one before", name);
	ok(tgids ? !st->unknown_tgid : st->unknown_tgid > 0, "%s: tgids are %s", name,
	   tgids ? "known" : "counted as unknown");
	/* One task a fork, no more: perf's own FORK record and the event are the same birth. */
	ok(st->reused_tids <= info->events[REC_FORK], "%s: no task was made twice", name);
	world_close(&w);
out:
	strbuf_fini(&path);
}

int main(int argc, char **argv)
{
	if (btf_parse(inlay_model_btf, inlay_model_btf_end - inlay_model_btf, NULL, NULL, &model)) {
		ok(false, "the built-in model parses");
		return tap_done();
	}
	switches();
	wakeups();
	control();
	if (argc > 1) {
		shipped(argv[1], "hog.perf.data.zst", true);
		shipped(argv[1], "throttled.perf.data.xz", true);
		shipped(argv[1], "storm.trace.dat.zst", false);
	}
	btf_put(model);
	return tap_done();
}
