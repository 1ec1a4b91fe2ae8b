// SPDX-License-Identifier: BSD-2-Clause
// libbpf, unmodified, with an engine in the place of the kernel: a whole object from open to
// destroy.
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <sys/epoll.h>

#include "engine.h"
#include "env/env.h"
#include "shim_prog.h"
#include "shim_prog.skel.h"
#include "world/fds.h"
#include "world/shim.h"

static struct inlay *in;

static int print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char line[4096], *p, *end;

	if (level == LIBBPF_DEBUG && !getenv("INLAY_TEST_LOG"))
		return 0;
	vsnprintf(line, sizeof(line), fmt, args);
	for (p = line; p && *p; p = end ? end + 1 : NULL) {
		end = strchr(p, '\n');
		printf("# %.*s\n", end ? (int)(end - p) : (int)strlen(p), p);
	}
	return 0;
}

static struct shim_event last;
static int nr_samples;
static unsigned long long nr_lost;

static void on_sample(void *ctx, int cpu, void *data, __u32 size)
{
	nr_samples++;
	memcpy(&last, data, sizeof(last));
}

static void on_lost(void *ctx, int cpu, __u64 cnt)
{
	nr_lost += cnt;
}

static int on_record(void *ctx, void *data, size_t size)
{
	memcpy(&last, data, sizeof(last));
	(*(int *)ctx)++;
	return 0;
}

static void fire(const char *name, u32 cpu, const u64 *args, u32 n)
{
	struct env_hook *hook = env_hook_find(in->env, name);

	env_enter(in->env, cpu, NULL);
	env_hook_fire(hook, args, n);
	env_leave(in->env);
}

/* A task wakes up on a CPU and gets it 1 ms later. */
static void wait_once(struct env_task *task, u32 cpu)
{
	struct env_task *idle = env_idle_task(in->env, cpu);

	fire("sched_wakeup", cpu, (u64[]){U64(task->obj)}, 1);
	env_clock_set(in->env, env_clock_ns(in->env) + 1000000);
	fire("sched_switch", cpu, (u64[]){0, U64(idle->obj), U64(task->obj), 0}, 4);
}

static void run(struct shim_prog *skel)
{
	struct env_task *task = env_task_create(in->env, 4242, 4242, "victim");
	struct perf_buffer *pb;
	struct ring_buffer *rb;
	int records = 0, i;

	pb = perf_buffer__new(bpf_map__fd(skel->maps.events), 8, on_sample, on_lost, NULL, NULL);
	ok(pb, "perf_buffer__new");
	rb = ring_buffer__new(bpf_map__fd(skel->maps.ring), on_record, &records, NULL);
	ok(rb, "ring_buffer__new");
	if (!pb || !rb)
		return;
	is_int(perf_buffer__poll(pb, 0), 0, "nothing to poll at first");
	is_int(ring_buffer__poll(rb, 0), 0, "nor in the ring buffer");
	wait_once(task, 1);
	is_u64(skel->bss->wakeups, 1, "the program's .bss is there to read: one wake-up");
	is_u64(skel->bss->switches, 1, "one switch");
	is_int(perf_buffer__poll(pb, 1000), 1, "poll reports one buffer");
	ok(nr_samples == 1 && last.pid == 4242 && last.delta_ns == 1000000 && last.cpu == 1 &&
		   !strcmp(last.comm, "victim"),
	   "the sample is the program's");
	is_int(perf_buffer__poll(pb, 0), 0, "then it is empty again");
	is_int(ring_buffer__poll(rb, 1000), 1, "the ring buffer has one record");
	is_int(records, 1, "and hands it over");
	is_int(ring_buffer__poll(rb, 0), 0, "then it is empty too");
	skel->bss->wakeups = 100;
	wait_once(task, 0);
	is_u64(skel->bss->wakeups, 101, "what the user writes to .bss the program sees");
	/* 8 pages of 56-byte records: far more than fit */
	for (i = 0; i < 2000; i++)
		wait_once(task, 1);
	nr_samples = 0;
	while (perf_buffer__poll(pb, 0) > 0)
		;
	ok(nr_samples > 100 && nr_samples < 2000, "a full perf buffer keeps what fits (%d)",
	   nr_samples);
	wait_once(task, 1);
	perf_buffer__poll(pb, 0);
	is_u64(nr_samples - 1 + nr_lost, 2002 - 1, "and the next record says how many were lost");
	perf_buffer__free(pb);
	ring_buffer__free(rb);
	env_task_exit(task);
}

static void whole_object(void)
{
	int fds = count_fds(), err;
	struct shim_prog *skel = shim_prog__open();

	ok(skel, "the object opens");
	if (!skel)
		return;
	skel->rodata->min_ns = 1000;
	err = shim_prog__load(skel);
	is_int(err, 0, "it loads");
	if (!err) {
		is_int(skel->rodata->min_ns, 1000, ".rodata is mapped and holds what was set");
		is_int(objects_settled(in, OBJ_PROG, 5), 5, "five programs are alive");
		is_int(shim_prog__attach(skel), 0, "it attaches");
		is_int(objects_settled(in, OBJ_LINK, 3), 3, "three links are alive");
		run(skel);
	}
	shim_prog__destroy(skel);
	is_int(objects_settled(in, OBJ_LINK, 0), 0, "destroyed: no link is alive");
	is_int(objects_settled(in, OBJ_PROG, 0), 0, "no program");
	is_int(objects_settled(in, OBJ_MAP, 0), 0, "no map");
	is_int(objects_settled(in, OBJ_PERF_EVENT, 0), 0, "no perf event");
	is_int(objects_settled(in, OBJ_BTF, 1), 1, "no BTF but the machine's");
	is_int(world_fds_count(in), 0, "nothing has a descriptor");
	is_int(count_fds(), fds, "no descriptor leaked");
}

/* Links go with their descriptor, and then the program no longer runs. */
static void detached(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	struct shim_prog *skel = shim_prog__open_and_load();
	struct env_task *task = env_task_create(in->env, 7, 7, "t");

	ok(skel && !shim_prog__attach(skel), "a second life of the object");
	if (!skel)
		return;
	bpf_link__destroy(skel->links.on_switch);
	skel->links.on_switch = NULL;
	is_int(objects_settled(in, OBJ_LINK, 2), 2, "a destroyed link is gone");
	wait_once(task, 0);
	is_u64(skel->bss->switches, 0, "its program does not run");
	is_u64(skel->bss->wakeups, 1, "the others do");
	is_int(bpf_prog_test_run_opts(bpf_program__fd(skel->progs.call_away), &run), 0, "a program runs");
	is_int(run.retval, 42 * 10000 + 5 * 100 + 42 + 7, "tail calls from functions come back to their callers");
	shim_prog__destroy(skel);
	env_task_exit(task);
	is_int(objects_settled(in, OBJ_MAP, 0), 0, "nothing is left");
}

static void simulated_machine(void)
{
	struct btf *vmlinux = btf__load_vmlinux_btf();

	is_int(libbpf_num_possible_cpus(), 2, "libbpf counts the simulated CPUs");
	ok(vmlinux &&
		   btf__find_by_name_kind(vmlinux, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) > 0,
	   "it reads the simulated kernel's types");
	ok(vmlinux && btf__find_by_name_kind(vmlinux, "ext4_inode_info", BTF_KIND_STRUCT) < 0,
	   "and not the host's");
	btf__free(vmlinux);
}

/* Outside shim_enter() the same libbpf means the host's kernel. */
static void host(void)
{
	union bpf_attr a = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	long direct = syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof(a));
	int direct_errno = errno, before = objects(in, OBJ_MAP), fd;

	if (direct >= 0)
		close(direct);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "test", 4, 4, 1, NULL);
	if (direct >= 0)
		ok(fd >= 0, "without an engine libbpf reaches the kernel");
	else
		ok(fd < 0 && errno == direct_errno,
		   "without an engine libbpf gets the kernel's refusal");
	is_int(objects_settled(in, OBJ_MAP, before), before, "and not the engine");
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	struct inlay_opts o = {
		.size = sizeof(o), .nr_cpus = 2, .clock = INLAY_CLOCK_MANUAL, .log = print_log};
	int fds;

	setvbuf(stdout, NULL, _IOLBF, 0);
	libbpf_set_print(print);
	/* what a process opens once and keeps is not counted */
	is_int(inlay_create(&o, &in), 0, "an engine");
	inlay_destroy(in);
	fds = count_fds();
	is_int(inlay_create(&o, &in), 0, "another");
	shim_enter(in);
	simulated_machine();
	whole_object();
	detached();
	shim_enter(NULL);
	if (!getenv("INLAY_TEST_NO_KERNEL"))
		host();
	shim_leave();
	ok(shim_current() == in, "shim_leave() goes back to the engine before");
	shim_leave();
	ok(!shim_current(), "and to the kernel");
	inlay_destroy(in);
	is_int(count_fds(), fds, "a destroyed engine leaves no descriptor");
	return tap_done();
}
