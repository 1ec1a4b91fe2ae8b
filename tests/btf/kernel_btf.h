/* SPDX-License-Identifier: BSD-2-Clause */
/* The running kernel's BTF_LOAD, as the oracle of these tests. */
#ifndef INLAY_TESTS_KERNEL_BTF_H
#define INLAY_TESTS_KERNEL_BTF_H

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define KERNEL_LOG_SIZE (8u << 20)

/* 0 or -errno; log (KERNEL_LOG_SIZE bytes, may be NULL) gets the text. The descriptor is closed at
 * once. */
__attribute__((unused)) static int kernel_btf_load(const void *data, unsigned int size, char *log)
{
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.btf = (unsigned long)data;
	attr.btf_size = size;
	if (log) {
		log[0] = '\0';
		attr.btf_log_buf = (unsigned long)log;
		attr.btf_log_size = KERNEL_LOG_SIZE;
		attr.btf_log_level = 1;
	}
	fd = syscall(SYS_bpf, BPF_BTF_LOAD, &attr, 28);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Why this kernel cannot be asked; NULL: it can. Rules and texts are those of one version. */
__attribute__((unused)) static const char *kernel_btf_refuses(void)
{
	static const unsigned char minimal[] = {
		0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0,  0, 0, 16, 0, 0,   0,	  5,   0, 0,
		0,    1,    0, 0, 0,  0, 0, 0, 1, 4, 0, 0, 0,  32, 0, 0, 1,  0, 'i', 'n', 't', 0};
	struct utsname u;

	if (uname(&u) || strncmp(u.release, "6.18.", 5))
		return "the running kernel is not 6.18";
	if (kernel_btf_load(minimal, sizeof(minimal), NULL))
		return "bpf(2) BTF_LOAD is refused here";
	return NULL;
}

#endif
