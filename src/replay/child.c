// SPDX-License-Identifier: BSD-2-Clause
/* The sandboxed child of child.h. */
#include "replay/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arch.h"

#define PIPE_BYTES (1 << 20)
#define SILENT_WALL_SECONDS                                                                        \
	600 /* a child that neither computes nor writes is stuck in the kernel */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* its shadow memory is beyond any limit of the address space */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* What a library that reads a file needs. Anything else answers EPERM, which libraries survive
 * better than a kill. */
/* clang-format off */
static const u32 allowed_calls[] = {
	SYS_read, SYS_pread64, SYS_write, SYS_lseek, SYS_brk, SYS_munmap, SYS_mremap,
	SYS_madvise, SYS_mprotect, SYS_fstat, SYS_close, SYS_exit, SYS_exit_group, SYS_rt_sigreturn,
	SYS_rt_sigprocmask, SYS_futex, SYS_getrandom, SYS_sysinfo, SYS_clock_gettime, SYS_getpid,
	SYS_gettid, SYS_sched_yield, SYS_sigaltstack, SYS_dup,
};
/* clang-format on */

/* Where the filter finds the low half of mmap's fifth argument. */
#define MMAP_FD_LOW                                                                                \
	(offsetof(struct seccomp_data, args[4]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))

static void child_filter(void)
{
	enum { N = ARRAY_SIZE(allowed_calls) };
	struct sock_filter f[N + 9];
	struct sock_fprog prog = {.filter = f};
	u32 i, n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, arch));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_AUDIT, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	for (i = 0; i < N; i++) /* jumps to the last statement */
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed_calls[i],
						      N - i + 3, 0);
	/* mmap, of memory only: a library that cannot map the file reads it, and stays as small as
	 * its buffers. */
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 2);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, MMAP_FD_LOW);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (u32)-1, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog.len = n;
	/* Where an outer sandbox forbids filters the child goes on with the other limits. */
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static void child_limits(const struct rec_child_job *job)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_FSIZE, &none); /* it writes a pipe, never a file */
	if (job->cpu_seconds) {
		struct rlimit cpu = {job->cpu_seconds, job->cpu_seconds + 1};

		setrlimit(RLIMIT_CPU, &cpu);
	}
#ifndef SANITIZED
	{
		unsigned long pages = 0;
		struct rlimit as;
		FILE *f = fopen("/proc/self/statm", "re");

		if (f && fscanf(f, "%lu", &pages) != 1)
			pages = 0;
		if (f)
			fclose(f);
		as.rlim_cur = as.rlim_max = (u64)pages * sysconf(_SC_PAGESIZE) + job->max_memory;
		setrlimit(RLIMIT_AS, &as);
	}
#endif
}

/* Signal dispositions of the parent (an engine's fault handlers among them) are not for this
 * process. */
static void child_signals(void)
{
	static const int dfl[] = {SIGSEGV,   SIGBUS,  SIGILL,  SIGFPE,	SIGABRT,
				  SIGTERM,   SIGPIPE, SIGALRM, SIGCHLD, SIGPROF,
				  SIGVTALRM, SIGUSR1, SIGUSR2, SIGTRAP, SIGSYS,  SIGXCPU};
	sigset_t none;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dfl); i++)
		signal(dfl[i], SIG_DFL);
	signal(SIGINT,
	       SIG_IGN); /* the terminal's ^C is for the parent, which ends this one itself */
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Descriptors 0 to 2 are /dev/null, 3 the pipe, 4 the input; nothing else stays open. */
static bool child_files(int in_fd, int out_fd)
{
	int null = open("/dev/null", O_RDWR), in, out, i;

	/* Out of the way first, so that no dup2 closes one that is still needed. */
	out = fcntl(out_fd, F_DUPFD, 10);
	in = in_fd < 0 ? -1 : fcntl(in_fd, F_DUPFD, 10);
	if (null < 0 || out < 0 || (in_fd >= 0 && in < 0))
		return false;
	for (i = 0; i <= 2; i++)
		if (dup2(null, i) < 0)
			return false;
	if (dup2(out, 3) < 0 || (in >= 0 && dup2(in, 4) < 0))
		return false;
	return !syscall(SYS_close_range, in >= 0 ? 5 : 4, ~0U, 0) || errno == ENOSYS;
}

static _Noreturn void child_main(const struct rec_child_job *job, int out_fd, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(2);
	child_signals();
	child_limits(job);
	if (!child_files(job->in_fd, out_fd))
		_exit(2);
	child_filter();
	_exit(job->run(job->in_fd >= 0 ? 4 : -1, 3, job->arg));
}

int rec_child_start(struct rec_child *c, const struct rec_child_job *job)
{
	pid_t parent = getpid();
	int fds[2], err;

	memset(c, 0, sizeof(*c));
	c->fd = -1;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	c->pid = fork();
	if (c->pid < 0) {
		err = -errno;
		c->pid = 0;
		close(fds[0]);
		close(fds[1]);
		return err;
	}
	if (!c->pid)
		child_main(job, fds[1], parent);
	close(fds[1]);
	c->fd = fds[0];
	fcntl(c->fd, F_SETPIPE_SZ, PIPE_BYTES); /* best effort: fewer switches between the two */
	return 0;
}

static u64 child_cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Waits for bytes; silence counts against the child only while it takes CPU time, so a loaded
 * machine is no hang. */
static int wait_readable(struct rec_child *c, u32 cpu_seconds)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	u64 start = 0;
	u32 polls;
	int n;

	for (polls = 0; polls < SILENT_WALL_SECONDS * 4; polls++) {
		n = poll(&p, 1, 250);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!start)
			start = child_cpu_ns(c->pid);
		else if (child_cpu_ns(c->pid) - start > cpu_seconds * 1000000000ULL)
			break;
	}
	c->hung = true;
	kill(c->pid, SIGKILL);
	return -ETIMEDOUT;
}

ssize_t rec_child_read(struct rec_child *c, void *buf, size_t n, u32 cpu_seconds)
{
	size_t done = 0;
	ssize_t got;
	int err;

	while (done < n) {
		err = wait_readable(c, cpu_seconds);
		if (err)
			return err;
		got = read(c->fd, (u8 *)buf + done, n - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += got;
	}
	return done;
}

static void child_wait(struct rec_child *c)
{
	while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

void rec_child_stop(struct rec_child *c)
{
	if (!c->pid)
		return;
	kill(c->pid, SIGKILL);
	child_wait(c);
}

int rec_child_reap(struct rec_child *c, struct strbuf *why)
{
	if (c->pid)
		child_wait(c);
	if (c->hung)
		strbuf_puts(why, "it made no progress and was ended");
	else if (WIFSIGNALED(c->status))
		strbuf_printf(why, "killed by signal %d (%s)", WTERMSIG(c->status),
			      strsignal(WTERMSIG(c->status)));
	else if (WEXITSTATUS(c->status))
		strbuf_printf(why, "exit status %d", WEXITSTATUS(c->status));
	else
		return 0;
	return -EINVAL;
}

bool rec_child_write(int fd, const void *buf, size_t n)
{
	const u8 *p = buf;
	ssize_t done;

	while (n) {
		done = write(fd, p, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		n -= done;
	}
	return true;
}
