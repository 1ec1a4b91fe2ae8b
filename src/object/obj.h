/* SPDX-License-Identifier: BSD-2-Clause */
/* What maps, programs, links, BTF and the rest have in common: a kind, an id, a reference count, a way to be waited for. */
#ifndef INLAY_OBJECT_OBJ_H
#define INLAY_OBJECT_OBJ_H

#include "base/memfile.h"
#include "base/types.h"

struct inlay;

enum obj_kind {
	OBJ_MAP,
	OBJ_PROG,
	OBJ_LINK,
	OBJ_BTF,
	OBJ_STATS,	/* descriptor of BPF_ENABLE_STATS: holds run statistics on */
	OBJ_PERF_EVENT, /* software BPF_OUTPUT event: a ring */
	OBJ_TASK,	/* pidfd of a simulated task */
	OBJ_KINDS
};

struct obj;

struct obj_ops {
	/* Last reference is gone: unpublish, then free (after a grace period where readers may hold it). */
	void (*release)(struct obj *obj);
	/* Memory a user may map, or NULL. The descriptor of the object is then a reopened descriptor of this memfile. */
	struct memfile *(*memfile)(struct obj *obj);
	/*
	 * Judges an mmap of [off, off+len) with prot (PROT_*), shared or not, as Linux does for this object; 0 or -errno.
	 * May size the memory first (perf events get their ring here).
	 */
	int (*mmap_check)(struct obj *obj, u64 off, u64 len, int prot, bool shared);
	/* Level-triggered readiness for poll/epoll, NULL: never readable. */
	bool (*readable)(struct obj *obj);
	/* ioctl on the descriptor (perf events); NULL: -ENOTTY. */
	long (*ioctl)(struct obj *obj, unsigned long req, unsigned long arg);
};

struct obj {
	enum obj_kind kind;
	u32 id;		       /* 1.. within its kind; 0: kind without ids */
	long refs;	       /* atomic; descriptors, programs' maps, links' programs … */
	struct inlay *inlay;
	const struct obj_ops *ops;
	int wait_fd;	       /* eventfd that is readable when ops->readable says so; -1: none. Made by world/. */
};

/* refs = 1, no id yet: nobody finds the object until obj_publish(). */
void obj_init(struct obj *obj, struct inlay *inlay, enum obj_kind kind, const struct obj_ops *ops);
/*
 * Gives a finished object its id (kinds that have ids), so that obj_by_id() finds it; idempotent. bpf(2) calls it just
 * before the object gets its first descriptor. 0 or -ENOMEM/-ENOSPC.
 */
int obj_publish(struct obj *obj);
/* Undoes obj_init for an object nobody else has seen. */
void obj_abort(struct obj *obj);
void obj_get(struct obj *obj);
/* obj may be NULL. */
void obj_put(struct obj *obj);
/* Takes a reference unless the last one is gone already. */
bool obj_get_unless_zero(struct obj *obj);
/* The object with this id, with a reference, or NULL. */
struct obj *obj_by_id(struct inlay *inlay, enum obj_kind kind, u32 id);
/* Smallest id > id in use, or 0. */
u32 obj_next_id(struct inlay *inlay, enum obj_kind kind, u32 id);
/* Makes pollers look again (ring has data). Async-signal-safe. */
void obj_wake(struct obj *obj);

#endif
