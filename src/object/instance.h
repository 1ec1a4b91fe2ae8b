/* SPDX-License-Identifier: BSD-2-Clause */
/* One engine: the machine it simulates, the objects made through its bpf(2), and where its reasons go. */
#ifndef INLAY_OBJECT_INSTANCE_H
#define INLAY_OBJECT_INSTANCE_H

#include <pthread.h>

#include "base/log.h"
#include "object/obj.h"

struct btf;
struct env;

/* How objects become descriptors; world/ provides it, so that sys/ need not know how. */
struct fd_ops {
	/* A new close-on-exec descriptor that owns a reference of its own; or -errno. */
	int (*install)(struct inlay *inlay, struct obj *obj);
	/* The same, accmode (O_RDONLY, O_WRONLY, O_RDWR) saying what bpf(2) and mmap may do through it. */
	int (*install_as)(struct inlay *inlay, struct obj *obj, int accmode);
	/* The accmode of an open descriptor, or -EBADF. */
	int (*accmode)(struct inlay *inlay, int fd);
	/* The object behind fd with a reference; -EBADF not open, -EINVAL open but no object of this engine. */
	int (*get)(struct inlay *inlay, int fd, struct obj **ret_obj);
	/* Releases objects whose last descriptor and mapping have gone since the last call. */
	void (*reap)(struct inlay *inlay);
	void (*fini)(struct inlay *inlay);
};

struct obj_table {
	struct obj **slot; /* by id; slot[0] unused */
	u32 nr, cap, next; /* next: where the search for a free id starts (ids are not reused soon) */
};

struct inlay {
	struct env *env;
	struct btf *vmlinux;	  /* types programs see: the machine's BTF */
	struct obj *vmlinux_obj;  /* its object (id 1), so that it can be found by id */
	struct log_sink log;
	const struct fd_ops *fds;
	void *fd_state;		  /* world/'s */
	pthread_mutex_t *cpu_lock; /* one a vCPU: it is one thread's during a PROG_TEST_RUN */
	u32 nr_cpu_locks;
	u32 interrupts;		   /* inlay_interrupt() so often; atomic */
	pthread_mutex_t lock;	  /* guards tables and life cycle; never held while a program runs */
	struct obj_table table[OBJ_KINDS];
	long nr_objs[OBJ_KINDS];  /* alive, published or not; atomic. All 0 once everything was closed */
	int stats_users;	  /* > 0: run count and time are kept; atomic */
	bool interp;		  /* --interp */
	u32 nr_refused;		  /* programs loaded that the compiler refused: they are interpreted; atomic */
	u32 inline_off;		  /* --no-inline: enum inline_kind bits that stay calls */
	const char *storage_impl; /* --storage-impl: name of the storage variant (maps/); NULL: the default. Before the first map */
	void *cli;		  /* the embedder's */
};

/* Engine parts that need no other layer: env must exist, vmlinux's reference is taken over. 0 or -errno. */
int inlay_init(struct inlay *inlay, struct env *env, struct btf *vmlinux, const struct log_sink *log);
void inlay_fini(struct inlay *inlay);

/*
 * A vCPU for the calling thread until inlay_cpu_give(): this one, or where want is U32_MAX a free one, rather the one it
 * had before. Waits where there is none. want must be below env_nr_cpus(). Do not nest.
 */
u32 inlay_cpu_take(struct inlay *inlay, u32 want);
void inlay_cpu_give(struct inlay *inlay, u32 cpu);

/* Test runs under way end with -EINTR after the run of the program they are in. Async-signal-safe. */
void inlay_interrupt(struct inlay *inlay);

#endif
