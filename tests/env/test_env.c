// SPDX-License-Identifier: BSD-2-Clause
// The simulated machine: tasks and their fields as the built-in model lays them out, reused tids, hooks, clock, random.
#include <errno.h>
#include <string.h>

#include "base/probe.h"
#include "btf/btf.h"
#include "env/env.h"
#include "rcu/rcu.h"
#include "tap.h"

extern const char inlay_model_btf[], inlay_model_btf_end[];

static struct btf *model;
static int freed;

static void on_free(struct env_task *task)
{
	freed++;
}

static struct env *machine(u32 cpus, u64 seed)
{
	struct env_opts opts = { .nr_cpus = cpus, .btf = model, .clock = ENV_CLOCK_MANUAL, .seed = seed };
	struct env *env = NULL;

	return env_create(&opts, &env) ? NULL : env;
}

/* What a program would read: a field of the object by name. */
static u64 field(struct env_task *task, const char *name)
{
	u32 off, size;
	u64 v = 0;

	if (btf_find_field_offset(model, "task_struct", name, &off, &size))
		return ~0ULL;
	memcpy(&v, task->obj + off, size);
	return v;
}

static void tasks(void)
{
	struct env *env = machine(4, 1);
	struct env_task *a, *b, *again;
	u32 off;

	env_set_task_free_hook(env, on_free);
	a = env_task_create(env, 100, 100, "leader");
	b = env_task_create(env, 101, 100, "a-name-longer-than-fifteen");
	is_u64(field(a, "pid"), 100, "pid reads the tid");
	is_u64(field(b, "tgid"), 100, "tgid reads the process id");
	ok(env_task_of(b->obj) == b, "a task is found from the object a program holds");
	ok(!strcmp(env_task_comm(b), "a-name-longer-t"), "comm is cut at 15 bytes");
	env_task_set_state(b, ENV_TASK_UNINTERRUPTIBLE);
	is_u64(field(b, "__state"), 2, "__state reads the state");
	env_task_set_cpu(b, 3);
	is_u64(field(b, "thread_info.cpu"), 3, "thread_info.cpu reads the cpu");
	env_task_set_parent(b, a);
	btf_find_field_offset(model, "task_struct", "real_parent", &off, NULL);
	ok(*(char **)(b->obj + off) == a->obj, "real_parent points to the parent's object");
	env_task_set_cgroup(b, 77);
	is_u64(env_task_cgroup(b), 77, "the cgroup id is found through the object's pointers");
	ok(env_task_find(env, 101) == b, "a live task is found by tid");
	again = env_task_create(env, 101, -1, "reused");
	ok(again != b && env_task_find(env, 101) == again, "a reused tid is a new task");
	is_int(freed, 1, "the old task of a reused tid dies");
	is_int((s32)field(again, "tgid"), -1, "an unknown tgid reads -1, not 0");
	env_task_exit(again);
	ok(!env_task_find(env, 101), "an exited task is not found");
	env_destroy(env);
	is_int(freed, 7, "every task dies with the machine, its four idle tasks included");
}

struct counter {
	struct env_hook_client client;
	int fired, order;
};

static int sequence;

static void count(struct env_hook_client *c, const u64 *args, u32 nargs)
{
	struct counter *k = container_of_(c, struct counter, client);

	k->fired += nargs == 1 && args[0] == 42;
	k->order = ++sequence;
}

static void hooks(void)
{
	struct env *env = machine(1, 1);
	struct counter one = { .client.fire = count }, two = { .client.fire = count };
	struct env_hook *hook;
	u64 arg = 42;

	ok(!env_hook_find(env, "no_such_tracepoint"), "a tracepoint the BTF lacks has no hook");
	hook = env_hook_find(env, "sched_wakeup");
	ok(hook && hook == env_hook_find(env, "sched_wakeup"), "a tracepoint has one hook");
	is_int(env_hook_nr_args(hook), 1, "the hidden first parameter does not count");
	is_int(env_hook_nr_args(env_hook_find(env, "sched_switch")), 4, "sched_switch has four arguments");
	ok(!env_hook_active(hook), "nobody is attached at first");
	env_hook_attach(hook, &one.client);
	env_hook_attach(hook, &two.client);
	env_enter(env, 0, NULL);
	env_hook_fire(hook, &arg, 1);
	is_int(one.fired + two.fired, 2, "each client is run once per hit");
	ok(one.order < two.order, "clients run in the order of attachment");
	env_hook_detach(hook, &one.client);
	env_hook_fire(hook, &arg, 1);
	is_int(one.fired, 1, "a detached client is not run");
	is_int(two.fired, 2, "the others still are");
	env_destroy(env);
}

static void clock_and_random(void)
{
	struct env *a = machine(2, 7), *b = machine(2, 7), *c = machine(2, 8);
	u32 same = 0, differs = 0, i;

	env_clock_set(a, 1000);
	env_clock_set(a, 900);
	is_u64(env_clock_ns(a), 1000, "a recording's clock never goes back");
	for (i = 0; i < 64; i++) {
		u32 x = env_prandom_u32(a);

		same += x == env_prandom_u32(b);
		differs += x != env_prandom_u32(c);
	}
	is_int(same, 64, "the same seed gives the same numbers");
	ok(differs > 60, "another seed gives others");
	ok(env_current_of(a, 1)->idle && env_current_of(a, 1)->tid == 0, "a vCPU starts with its idle task");
	ok(!strcmp(env_task_comm(env_current_of(a, 1)), "swapper/1"), "which is named as Linux names it");
	env_destroy(a);
	env_destroy(b);
	env_destroy(c);
}

static void probes(void)
{
	char buf[32];

	is_int(probe_init(), 0, "fault handlers are installed");
	is_int(probe_read(buf, (void *)0x10, 8), -EFAULT, "an unmapped address is EFAULT");
	is_int(probe_read(buf, (void *)0xdead000000000000, 8), -EFAULT, "a non-canonical address is EFAULT");
	is_int(probe_read_str(buf, "abc", sizeof(buf)), 4, "a string's length includes its NUL");
	is_int(probe_read_str(buf, "abcdef", 4), 4, "a long string is cut");
	ok(!strcmp(buf, "abc"), "and terminated");
}

int main(void)
{
	if (btf_parse(inlay_model_btf, inlay_model_btf_end - inlay_model_btf, NULL, NULL, &model)) {
		puts("Bail out! the built-in model's BTF does not parse");
		return 1;
	}
	probes();
	tasks();
	hooks();
	clock_and_random();
	btf_put(model);
	return tap_done();
}
