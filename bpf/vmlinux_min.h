/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * The few kernel types runqslower.bpf.c looks into. CO-RE finds the fields in the kernel the object
 * is loaded into (or in the user engine's model), so only names and types count here, never
 * offsets.
 */
#ifndef INLAY_BPF_VMLINUX_MIN_H
#define INLAY_BPF_VMLINUX_MIN_H

typedef _Bool bool;
typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#define false 0
#define true 1

/* Numbers of <linux/bpf.h>, which drags in headers of one architecture. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_MMAPABLE = 1 << 10,
};

enum { BPF_ANY = 0 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	unsigned int __state;
	int pid;
	int tgid;
	char comm[16];
	struct css_set *cgroups;
};

/* Before Linux 5.14. */
struct task_struct___before_5_14 {
	long state;
};

struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

#pragma clang attribute pop

#endif
