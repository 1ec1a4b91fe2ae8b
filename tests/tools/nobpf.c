// SPDX-License-Identifier: BSD-2-Clause
// nobpf [--hide-sys] [--nobody] [--] COMMAND...: runs a command that dies at its first bpf(2).
//
// --hide-sys  an empty file system over /sys, in a mount namespace of its own (root only): no /sys/kernel/btf, no tracefs
// --nobody    user and group 65534, no other groups (root only)
//
// The filter kills the whole process for bpf(2) and for any call of a foreign architecture (a way round it), and cannot
// be taken off again. Exit status: the command's; 77 with a reason on stdout if this machine does not allow it.
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

static void cannot(const char *what)
{
	printf("nobpf: %s: %s\n", what, strerror(errno));
	exit(77);
}

static void hide_sys(void)
{
	if (unshare(CLONE_NEWNS))
		cannot("a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		cannot("private mounts");
	if (mount("none", "/sys", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k"))
		cannot("tmpfs over /sys");
}

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		cannot("user nobody");
}

static void kill_on_bpf(void)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		/* x32's numbers have bit 30 set; nothing else comes near */
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(insns) / sizeof(*insns), .filter = insns };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		cannot("no_new_privs");
	if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		cannot("a seccomp filter");
}

int main(int argc, char **argv)
{
	int hide = 0, nobody = 0, i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--hide-sys")) {
			hide = 1;
		} else if (!strcmp(argv[i], "--nobody")) {
			nobody = 1;
		} else if (!strcmp(argv[i], "--")) {
			i++;
			break;
		} else {
			i = argc;
		}
	}
	if (i >= argc) {
		fprintf(stderr, "usage: nobpf [--hide-sys] [--nobody] [--] COMMAND...\n");
		return 2;
	}
	if (hide)
		hide_sys();
	if (nobody)
		become_nobody();
	kill_on_bpf();
	execvp(argv[i], argv + i);
	perror(argv[i]);
	return 127;
}
