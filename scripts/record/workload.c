// SPDX-License-Identifier: BSD-2-Clause
/*
 * The workloads whose recordings ship in tests/data: workload hog|throttled|storm SECONDS.
 *
 * Every task gives itself a name of its own, and every mode makes one kind of run-queue wait
 * plentiful:
 *
 *   hog        a task that spins, one that copies inside the kernel (preempted there, which is
 *              what R+ stands for) and seven that want the same CPU for a moment now and then; one
 *              is moved between two CPUs while it waits; one forks short-lived jobs
 *   throttled  a task that spins and one that naps, to be put in a cgroup with a CPU quota
 *              (guest.sh does that): their waits pass with the CPU idle
 *   storm      a task that wakes 60 threads at once again and again, and forks a child for each
 *              storm, every second of them with the pid of the one before it
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ULL
#define STORM_THREADS 60

static uint64_t end_ns; /* CLOCK_MONOTONIC at which every task stops */

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void nap(uint64_t ns)
{
	struct timespec ts = { ns / 1000000000ULL, ns % 1000000000ULL };

	nanosleep(&ts, NULL);
}

/*
 * Spins for ns of the task's own CPU time, so that time spent waiting does not count. The clock is
 * a system call that shows in a recording of every scheduler event, so long spins ask it rarely.
 */
static void spin(uint64_t ns)
{
	int rounds = ns > 5 * MS ? 2000000 : ns > MS / 2 ? 100000 : 4000;
	struct timespec ts;
	uint64_t start;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	start = ts.tv_sec * 1000000000ULL + ts.tv_nsec;
	do {
		for (volatile int i = 0; i < rounds; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	} while (ts.tv_sec * 1000000000ULL + ts.tv_nsec - start < ns && now() < end_ns);
}

static void name_and_pin(const char *name, int cpu)
{
	cpu_set_t set;

	prctl(PR_SET_NAME, name);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "workload: cannot pin %s to CPU %d: %s\n", name, cpu,
			strerror(errno));
}

/* Sleeps and works by turns until the end; work 0 means nothing but work. */
static void beat(uint64_t sleep_ns, uint64_t work_ns)
{
	while (now() < end_ns) {
		if (sleep_ns)
			nap(sleep_ns);
		spin(work_ns);
	}
}

static pid_t task(const char *name, int cpu, int nice_by, uint64_t sleep_ns, uint64_t work_ns)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	name_and_pin(name, cpu);
	setpriority(PRIO_PROCESS, 0, nice_by);
	beat(sleep_ns, work_ns);
	_exit(0);
}

/* A hog inside the kernel: reading /dev/zero offers to reschedule at every page. */
static void copier(int cpu)
{
	static char buffer[1 << 20];
	int fd;

	if (fork())
		return;
	name_and_pin("copier", cpu);
	setpriority(PRIO_PROCESS, 0, 4);
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	while (now() < end_ns && read(fd, buffer, sizeof(buffer)) > 0)
		nap(120 * MS);
	_exit(0);
}

static void *web_worker(void *arg)
{
	name_and_pin("web worker", *(int *)arg);
	beat(47 * MS, 2 * MS);
	return NULL;
}

static void web_server(int cpu)
{
	pthread_t threads[2];

	if (fork())
		return;
	name_and_pin("web server", cpu);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, web_worker, &cpu);
	beat(43 * MS, MS);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* Moves victim to the other CPU and back, which moves it while it waits if that is what it does. */
static void balancer(pid_t victim, int busy, int quiet)
{
	bool away = false;

	if (fork())
		return;
	name_and_pin("balancer", quiet);
	while (now() < end_ns) {
		cpu_set_t set;

		nap(11 * MS);
		away = !away;
		CPU_ZERO(&set);
		CPU_SET(away ? quiet : busy, &set);
		sched_setaffinity(victim, sizeof(set), &set);
	}
	_exit(0);
}

static void forker(int cpu)
{
	if (fork())
		return;
	name_and_pin("cron", cpu);
	while (now() < end_ns) {
		pid_t pid;

		nap(190 * MS);
		pid = fork();
		if (!pid) {
			prctl(PR_SET_NAME, "cron job");
			spin(4 * MS);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	_exit(0);
}

static void hog(int busy, int quiet)
{
	pid_t roamer;

	task("crunch", busy, 0, 0, 50 * MS);
	copier(busy);
	task("ui-render", busy, 0, 33 * MS, 2 * MS);
	task("db writer", busy, 5, 71 * MS, 4 * MS);
	task("audio", busy, -5, 10 * MS, MS / 4);
	web_server(busy);
	roamer = task("roamer", busy, 0, 15 * MS, 2 * MS);
	balancer(roamer, busy, quiet);
	forker(busy);
}

static void throttled(int busy)
{
	task("encoder", busy, 0, 0, 50 * MS);
	task("probe", busy, 0, 6 * MS, MS);
}

static atomic_int storm_round;

static void *storm_thread(void *arg)
{
	char name[16];
	int seen = 0;

	snprintf(name, sizeof(name), "w%d==>x", (int)(intptr_t)arg);
	prctl(PR_SET_NAME, name);
	while (now() < end_ns) {
		syscall(SYS_futex, &storm_round, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		seen = atomic_load(&storm_round);
		spin(MS / 8);
	}
	return NULL;
}

/* Forks a child that works a little; with want_pid, one that has this pid if it is free. */
static pid_t fork_as(pid_t want_pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pid_t pid;

	if (want_pid) {
		args.set_tid = (uintptr_t)&want_pid;
		args.set_tid_size = 1;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0 && want_pid)
		return fork_as(0);
	if (!pid) {
		prctl(PR_SET_NAME, want_pid ? "second life" : "first life");
		spin(MS / 4);
		_exit(0);
	}
	return pid;
}

static void storm(int busy)
{
	pthread_t threads[STORM_THREADS];
	pid_t last = 0;

	name_and_pin("storm", busy);
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_create(&threads[i], NULL, storm_thread, (void *)(intptr_t)i);
	while (now() < end_ns) {
		pid_t pid;

		nap(40 * MS);
		atomic_fetch_add(&storm_round, 1);
		syscall(SYS_futex, &storm_round, FUTEX_WAKE_PRIVATE, STORM_THREADS, NULL, NULL, 0);
		pid = fork_as(last);
		waitpid(pid, NULL, 0);
		last = pid == last ? 0 : pid;
	}
	atomic_fetch_add(&storm_round, 1);
	syscall(SYS_futex, &storm_round, FUTEX_WAKE_PRIVATE, STORM_THREADS, NULL, NULL, 0);
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	int busy = sysconf(_SC_NPROCESSORS_ONLN) - 1, quiet = busy / 2;
	double seconds = argc > 2 ? atof(argv[2]) : 0;

	if (seconds <= 0 || seconds > 60) {
		fprintf(stderr, "usage: workload hog|throttled|storm SECONDS\n");
		return 2;
	}
	end_ns = now() + (uint64_t)(seconds * 1e9);
	if (!strcmp(argv[1], "hog"))
		hog(busy, quiet);
	else if (!strcmp(argv[1], "throttled"))
		throttled(busy);
	else if (!strcmp(argv[1], "storm"))
		storm(busy);
	else
		return 2;
	prctl(PR_SET_NAME, "workload");
	while (wait(NULL) > 0)
		;
	return 0;
}
