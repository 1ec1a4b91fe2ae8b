// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_nobody PROGRAM...: runs each test program as a user who is nobody, with the kernel's types
 * out of sight, under a filter that kills the process on bpf(2) and perf_event_open(2). What passes
 * there needs nothing of the host's kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"

#define NOBODY 65534

static int install_filter(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = {sizeof(f) / sizeof(*f), f};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* In a child: what root can take away is taken away; a user who is somebody already is left as he
 * is. */
static int become_nobody(void)
{
	if (!geteuid()) {
		if (!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		    !access("/sys/kernel/btf", F_OK))
			(void)!mount("none", "/sys/kernel/btf", "tmpfs", 0, NULL);
		if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			return -1;
	}
	return install_filter();
}

/* Wait status of fd's program, or of a bare bpf(2) where fd is -1; its output becomes comments. */
static int run(int fd)
{
	char *argv[] = {(char *)"test", NULL}, *envp[] = {(char *)"INLAY_TEST_NO_KERNEL=1", NULL};
	char line[512];
	int out[2], status;
	pid_t pid;
	FILE *f;

	if (pipe(out))
		return -1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		dup2(out[1], 2);
		close(out[0]);
		close(out[1]);
		if (become_nobody())
			_exit(99);
		if (fd < 0)
			_exit(syscall(SYS_bpf, BPF_MAP_CREATE, NULL, 0) != 0);
		fexecve(fd, argv, envp);
		_exit(98);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "ok ", 3))
			printf("# %s", line);
	if (f)
		fclose(f);
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

int main(int argc, char **argv)
{
	int status = run(-1), i, fd;

	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "the filter kills on bpf(2)");
	for (i = 1; i < argc; i++) {
		fd = open(argv[i], O_RDONLY);
		status = fd < 0 ? -1 : run(fd);
		ok(status >= 0 && WIFEXITED(status) && !WEXITSTATUS(status),
		   "%s passes as nobody under the filter",
		   strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i]);
		if (fd >= 0)
			close(fd);
	}
	return tap_done();
}
