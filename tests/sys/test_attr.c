// SPDX-License-Identifier: BSD-2-Clause
/*
 * The attribute's size and zero rules, command by command, against the running kernel: each size,
 * and a byte set at each place, must give the kernel's errno. Where an object would come of it,
 * both get one and it is closed.
 */
#include "engine.h"

#define ATTR 168
#define ALL  37 /* highest command of 6.18 */

static struct inlay *in;

/* Commands whose answer depends on what objects the host's kernel has, or that no two kernels need
 * agree on. */
static bool host_dependent(int cmd)
{
	switch (cmd) {
	case BPF_PROG_GET_NEXT_ID:
	case BPF_MAP_GET_NEXT_ID:
	case BPF_BTF_GET_NEXT_ID:
	case BPF_LINK_GET_NEXT_ID:
	case BPF_PROG_ATTACH: /* refused as by a kernel that has not got it */
	case BPF_PROG_DETACH:
	case BPF_PROG_QUERY:
	case BPF_TASK_FD_QUERY:
		return true;
	}
	return false;
}

static long call(struct inlay *who, int cmd, const void *attr, unsigned int size)
{
	char copy[8192] __attribute__((aligned(8)));
	long ret;

	memcpy(copy, attr, sizeof(copy));
	ret = do_bpf(who, cmd, copy, size);
	if (ret > 2) {
		close(ret);
		ret = 1000; /* a descriptor */
	}
	return ret;
}

static int shown[ALL + 2];
static char buf[8192] __attribute__((aligned(8)));

static int differ(int cmd, unsigned int size, const char *what, int at)
{
	long ours = call(in, cmd, buf, size), theirs = call(NULL, cmd, buf, size);

	if (ours == theirs)
		return 0;
	if (shown[cmd]++ < 4)
		printf("# command %d, size %u, %s %d: got %ld, kernel %ld\n", cmd, size, what, at,
		       ours, theirs);
	return 1;
}

/* Every byte of a 176-byte attribute set, one at a time and to two values; a low one could be a
 * descriptor of the test. */
static void bytes_like_kernel(int cmd)
{
	int at, bad = 0;

	for (at = 0; at < ATTR + 8; at++) {
		memset(buf, 0, sizeof(buf));
		buf[at] = 0x7f;
		bad += differ(cmd, ATTR + 8, "byte", at);
		buf[at] = 0x80;
		bad += differ(cmd, ATTR + 8, "byte 0x80 at", at);
	}
	ok(!bad, "command %d: a byte set anywhere gives the kernel's errno", cmd);
}

static void sizes_like_kernel(int cmd)
{
	static const unsigned int sizes[] = {
		0,   1,	  3,   4,   8,	 12,  16,  28,	 60,   72,   116,  128,	       144,
		148, 152, 160, 167, 168, 169, 200, 4095, 4096, 4097, 8192, 0x7fffffff, 0xffffffff};
	unsigned int i;
	int bad = 0;

	memset(buf, 0, sizeof(buf));
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		bad += differ(cmd, sizes[i], "zeros", 0);
	buf[4000] = 1;
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		bad += differ(cmd, sizes[i], "a late byte", 0);
	ok(!bad, "command %d: every size gives the kernel's errno", cmd);
}

/* These hold without a kernel to ask. */
static void rules(void)
{
	union bpf_attr a = {};
	int cmd;

	is_int(do_bpf(in, 38, &a, sizeof(a)), -EINVAL, "an unknown command is EINVAL");
	is_int(do_bpf(in, -1, &a, sizeof(a)), -EINVAL, "a negative command is EINVAL");
	for (cmd = 0; cmd <= ALL; cmd++) {
		memset(buf, 0, sizeof(buf));
		buf[ATTR] = 1;
		is_int(do_bpf(in, cmd, buf, ATTR + 1), -E2BIG,
		       "command %d: a byte the kernel does not know is E2BIG", cmd);
		is_int(do_bpf(in, cmd, buf, 4097), -E2BIG, "command %d: more than a page is E2BIG",
		       cmd);
		is_int(do_bpf(in, cmd, (void *)8, 16), -EFAULT,
		       "command %d: a bad address is EFAULT", cmd);
		is_int(do_bpf(in, cmd, (void *)0xdead000000000000, 16), -EFAULT,
		       "command %d: a non-canonical address is EFAULT", cmd);
	}
}

int main(void)
{
	int cmd;

	in = engine_start();
	rules();
	if (have_oracle()) {
		for (cmd = 0; cmd <= ALL + 1; cmd++) {
			if (host_dependent(cmd))
				continue;
			sizes_like_kernel(cmd);
			bytes_like_kernel(cmd);
		}
	} else {
		tap_skip("no Linux 6.18 that lets us ask");
	}
	inlay_destroy(in);
	return tap_done();
}
