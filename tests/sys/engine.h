/* SPDX-License-Identifier: BSD-2-Clause */
/* For the tests of bpf(2): the same call to an engine of ours and to the running kernel, which says
 * what is right. */
#ifndef INLAY_TESTS_SYS_ENGINE_H
#define INLAY_TESTS_SYS_ENGINE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../tap.h"
#include "inlay/inlay.h"
#include "object/instance.h"
#include "rcu/rcu.h"

#define U64(p) ((uint64_t)(uintptr_t)(p))

static void print_log(void *ctx, enum inlay_log_level level, const char *text)
{
	if (level <= INLAY_LOG_WARN)
		printf("# %s\n", text);
}

static void drop_log(void *ctx, enum inlay_log_level level, const char *text)
{
}

/* Ends the test if there is none. */
__attribute__((unused)) static struct inlay *engine_start(void)
{
	struct inlay_opts o = {.size = sizeof(o),
			       .nr_cpus = 2,
			       .log = getenv("INLAY_TEST_LOG") ? print_log : drop_log};
	struct inlay *in;
	int err = inlay_create(&o, &in);

	if (err) {
		printf("not ok 1 - engine starts: %s\n1..1\n", strerror(-err));
		exit(1);
	}
	return in;
}

/* in NULL: the kernel. Result or -errno. */
__attribute__((unused)) static long do_bpf(struct inlay *in, int cmd, void *attr, unsigned int size)
{
	long ret;

	if (in)
		return inlay_bpf(in, cmd, attr, size);
	ret = syscall(SYS_bpf, cmd, attr, size);
	return ret < 0 ? -errno : ret;
}

/* The kernel to compare with: 6.18, and bpf(2) allowed. */
__attribute__((unused)) static bool have_oracle(void)
{
	union bpf_attr a = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	struct utsname u;
	long fd;

	if (uname(&u) || strncmp(u.release, "6.18", 4) || getenv("INLAY_TEST_NO_KERNEL"))
		return false;
	fd = do_bpf(NULL, BPF_MAP_CREATE, &a, sizeof(a));
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Objects of a kind alive, once deferred frees are through. */
__attribute__((unused)) static u32 objects(struct inlay *in, enum obj_kind kind)
{
	in->fds->reap(in);
	rcu_barrier_all();
	rcu_barrier_all();
	in->fds->reap(in);
	return __atomic_load_n(&in->nr_objs[kind], __ATOMIC_RELAXED);
}

/*
 * The same, once it is what it is to be. That a descriptor was the last may be noticed late (world/fds.c): somebody else on
 * the machine who looks at our descriptors holds their files for a moment.
 */
__attribute__((unused)) static u32 objects_settled(struct inlay *in, enum obj_kind kind, u32 want)
{
	u32 n, i;

	for (i = 0; (n = objects(in, kind)) != want && i < 60; i++)
		usleep(50000);
	return n;
}

__attribute__((unused)) static int count_fds(void)
{
	int n = 0, fd;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

__attribute__((unused)) static long map_create(struct inlay *in, u32 type, u32 key, u32 value,
					       u32 max, u32 flags)
{
	union bpf_attr a = {.map_type = type,
			    .key_size = key,
			    .value_size = value,
			    .max_entries = max,
			    .map_flags = flags,
			    .map_name = "test"};

	return do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
}

__attribute__((unused)) static long elem(struct inlay *in, int cmd, int fd, const void *key,
					 const void *value, uint64_t flags)
{
	union bpf_attr a = {.map_fd = fd};

	a.key = U64(key);
	a.value = U64(value);
	a.flags = flags;
	return do_bpf(in, cmd, &a,
		      cmd == BPF_MAP_DELETE_ELEM    ? 16
		      : cmd == BPF_MAP_GET_NEXT_KEY ? 24
						    : 32);
}

__attribute__((unused)) static long one_fd(struct inlay *in, int cmd, int fd)
{
	union bpf_attr a = {.map_fd = fd};

	return do_bpf(in, cmd, &a, 4);
}

__attribute__((unused)) static long prog_load(struct inlay *in, u32 type,
					      const struct bpf_insn *insns, u32 n)
{
	union bpf_attr a = {.prog_type = type, .insn_cnt = n, .prog_name = "test"};

	a.insns = U64(insns);
	a.license = U64("GPL");
	return do_bpf(in, BPF_PROG_LOAD, &a, sizeof(a));
}

#define MOV64_IMM(dst, v) ((struct bpf_insn){BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, v})
#define EXIT()		  ((struct bpf_insn){BPF_JMP | BPF_EXIT, 0, 0, 0, 0})

#endif
