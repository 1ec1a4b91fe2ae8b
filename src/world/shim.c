// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the private libbpf calls in the place of libc. Each function is libc's, same arguments, -1
 * and errno; for the running kernel it is libc's. With an engine, what is the engine's is answered
 * by it, what would tell of the host's kernel (version, configuration, CPUs, types) is answered for
 * the simulated one, the rest is libc's.
 */
#include "world/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include "btf/btf.h"
#include "env/env.h"
#include "inlay/inlay.h"
#include "object/instance.h"
#include "world/fds.h"
#include "world/shim_int.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"
#define CPU_DIR	 "/sys/devices/system/cpu/"

static __thread struct inlay *stack[SHIM_DEPTH];
static __thread int depth;

FILE *shim_stderr;

__attribute__((constructor)) static void init_stderr(void)
{
	shim_stderr = stderr;
}

void shim_enter(struct inlay *inlay)
{
	if (depth < SHIM_DEPTH)
		stack[depth] = inlay;
	depth++;
}

void shim_leave(void)
{
	if (depth)
		depth--;
}

struct inlay *shim_current(void)
{
	return depth ? stack[(depth < SHIM_DEPTH ? depth : SHIM_DEPTH) - 1] : NULL;
}

static long result(long ret)
{
	if (ret >= 0 || ret < -4095)
		return ret;
	errno = -ret;
	return -1;
}

/* The object behind fd, if it is the engine's, with a reference. */
static struct obj *our_object(struct inlay *inlay, int fd)
{
	struct obj *obj;
	int saved = errno;

	if (!inlay || fd < 0 || inlay->fds->get(inlay, fd, &obj))
		obj = NULL;
	errno = saved;
	return obj;
}

long shim_syscall(long nr, ...)
{
	struct inlay *inlay = shim_current();
	unsigned long a[6];
	va_list args;
	int i;

	va_start(args, nr);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(args, unsigned long);
	va_end(args);
	if (inlay && nr == SYS_bpf)
		return result(inlay_bpf(inlay, a[0], (union bpf_attr *)a[1], a[2]));
	if (inlay && nr == SYS_perf_event_open)
		return result(inlay_perf_event_open(inlay, (struct perf_event_attr *)a[0], a[1],
						    a[2], a[3], a[4]));
	if (inlay && nr == SYS_pidfd_open)
		return result(inlay_pidfd_open(inlay, a[0], a[1]));
	return syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- files that describe the kernel ---- */

/* A file with these bytes, read from its start. */
static int file_of(const void *data, size_t size)
{
	int fd = memfd_create("inlay-file", MFD_CLOEXEC);
	const char *p = data;
	ssize_t n;

	while (fd >= 0 && size) {
		n = write(fd, p, size);
		if (n <= 0) {
			close(fd);
			return -1;
		}
		p += n;
		size -= n;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

static bool is_cpu_list(const char *path)
{
	size_t n = strlen(CPU_DIR);

	return !strncmp(path, CPU_DIR, n) &&
	       (!strcmp(path + n, "possible") || !strcmp(path + n, "online") ||
		!strcmp(path + n, "present"));
}

/* A descriptor of the engine's version of path; -2: it has none, ask the host. */
static int open_ours(struct inlay *inlay, const char *path)
{
	const void *data;
	char list[32];
	u32 size;

	if (!inlay)
		return -2;
	if (!strcmp(path, BTF_PATH)) {
		data = btf_raw_data(inlay->vmlinux, &size);
		return file_of(data, size);
	}
	if (is_cpu_list(path)) {
		size = env_nr_cpus(inlay->env);
		snprintf(list, sizeof(list), size > 1 ? "0-%u\n" : "%u\n", size - 1);
		return file_of(list, strlen(list));
	}
	return -2;
}

FILE *shim_fopen64(const char *path, const char *mode)
{
	int fd = open_ours(shim_current(), path);
	FILE *f;

	if (fd == -2)
		return fopen(path, mode);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f && fd >= 0)
		close(fd);
	return f;
}

int shim_open64(const char *path, int flags, ...)
{
	int fd = open_ours(shim_current(), path);
	unsigned int mode = 0;
	va_list args;

	if (fd != -2)
		return fd;
	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = va_arg(args, unsigned int);
		va_end(args);
	}
	return open(path, flags, mode);
}

int shim_faccessat(int dir, const char *path, int mode, int flags)
{
	struct inlay *inlay = shim_current();

	if (!inlay)
		return faccessat(dir, path, mode, flags);
	if (!strcmp(path, BTF_PATH) || is_cpu_list(path))
		return 0;
	/* a distribution's idea of the host's version, and the host's tracing directories */
	if (!strncmp(path, "/proc/version", 13) || !strncmp(path, "/sys/kernel/", 12)) {
		errno = ENOENT;
		return -1;
	}
	return faccessat(dir, path, mode, flags);
}

/* The host's kernel configuration is none of the simulated kernel's: a program that needs it is
 * refused by libbpf. */
gzFile shim_gzopen64(const char *path, const char *mode)
{
	if (!shim_current())
		return gzopen(path, mode);
	errno = ENOENT;
	return NULL;
}

int shim_uname(struct utsname *u)
{
	int ret = uname(u);

	if (!ret && shim_current()) {
		strcpy(u->release, "6.18.0");
		strcpy(u->version, "inlay");
	}
	return ret;
}

/* ---- memory, descriptors, waiting ---- */

void *shim_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	struct inlay *inlay = shim_current();
	struct obj *obj = flags & MAP_ANONYMOUS ? NULL : our_object(inlay, fd);
	void *at;

	if (!obj)
		return mmap(addr, len, prot, flags, fd, off);
	at = (void *)result(inlay_mmap(inlay, addr, len, prot, flags, fd, off));
	obj_put(obj);
	return at;
}

static void reap(void)
{
	struct inlay *inlay = shim_current();
	int saved = errno;

	if (inlay)
		inlay->fds->reap(inlay);
	errno = saved;
}

int shim_munmap(void *addr, size_t len)
{
	int ret = munmap(addr, len);

	reap();
	return ret;
}

int shim_close(int fd)
{
	int ret = close(fd);

	reap();
	return ret;
}

int shim_ioctl(int fd, unsigned long req, ...)
{
	struct inlay *inlay = shim_current();
	struct obj *obj = our_object(inlay, fd);
	unsigned long arg;
	va_list args;

	va_start(args, req);
	arg = va_arg(args, unsigned long);
	va_end(args);
	if (!obj)
		return ioctl(fd, req, arg);
	obj_put(obj);
	return result(inlay_ioctl(inlay, fd, req, arg));
}

int shim_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct inlay *inlay = shim_current();
	struct obj *obj = our_object(inlay, fd);
	int wait_fd;

	if (!obj)
		return epoll_ctl(epfd, op, fd, event);
	wait_fd = result(world_fds_wait_fd(inlay, obj));
	obj_put(obj);
	return wait_fd < 0 ? -1 : epoll_ctl(epfd, op, wait_fd, event);
}

int shim_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	if (shim_current())
		world_fds_sync(shim_current());
	return epoll_wait(epfd, events, max, timeout);
}
