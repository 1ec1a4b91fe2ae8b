/* SPDX-License-Identifier: BSD-2-Clause */
/* One call of bpf(2) under way, its handlers, and what they share. Of this folder only. */
#ifndef INLAY_SYS_SYS_INT_H
#define INLAY_SYS_SYS_INT_H

#include <fcntl.h>

#include "base/strbuf.h"
#include "sys/attr.h"
#include "sys/sys.h"

struct btf;
struct map;
struct prog;
struct link;

struct sys_call {
	struct inlay *inlay;
	const struct user_mem *um;
	union sys_attr attr; /* copied once, zero-extended */
	u64 uattr;	     /* where it came from, for what is written back */
	u32 usize;	     /* bytes the caller said it has */
};

typedef long (*sys_handler)(struct sys_call *c);

/* Declares every handler of cmds.def. */
#define SYS_CMD(nr, name, end, handler, reap) long handler(struct sys_call *c);
#include "sys/cmds.def"
#undef SYS_CMD

/* Writes a field of the attribute back; -EFAULT. */
#define sys_put_field(c, field, ptr)                                                               \
	user_write((c)->um, (c)->uattr + offsetof(union sys_attr, field), ptr,                     \
		   sizeof((c)->attr.field))

/* The object behind a descriptor, with a reference: -EBADF not open, -EINVAL something else. */
int sys_get(struct sys_call *c, u32 fd, enum obj_kind kind, struct obj **ret_obj);
int sys_get_map(struct sys_call *c, u32 fd, struct map **ret_map);
int sys_get_prog(struct sys_call *c, u32 fd, struct prog **ret_prog);

/* Makes obj findable by id, if it is not yet, and gives it a new descriptor; the caller's reference
 * is consumed, also on failure. */
long sys_return_fd(struct sys_call *c, struct obj *obj, int accmode);

/* Linux's rule for names of objects: C identifier characters and dots, terminated. dst:
 * SYS_NAME_LEN. 0 or -EINVAL. */
int sys_copy_name(char *dst, const char *src);

/* ---- logs of PROG_LOAD and BTF_LOAD ---- */

struct sys_log {
	u32 level, size; /* as given */
	u64 ubuf;
	struct strbuf text;
};

#define SYS_LOG_FIXED 8 /* bit of level: keep the head, not the tail */

/* 0 or -EINVAL for a combination Linux refuses. Needs sys_log_fini() in either case. */
int sys_log_init(struct sys_log *log, u32 level, u32 size, u64 ubuf);
/*
 * Hands the text to the caller. *ret_true_size: bytes the whole text takes with its NUL, 0 without
 * any. err if nothing went wrong here, else -ENOSPC (did not fit) or -EFAULT.
 */
int sys_log_finish(struct sys_call *c, struct sys_log *log, int err, u32 *ret_true_size);
void sys_log_fini(struct sys_log *log);

/* ---- BTF objects ---- */

struct btf_obj {
	struct obj obj;
	struct btf *btf; /* own reference */
	bool kernel;	 /* the machine's */
};

static inline struct btf_obj *btf_obj_of(struct obj *obj)
{
	return container_of_(obj, struct btf_obj, obj);
}

/* 0 or -ENOMEM; takes a reference of btf. */
int sys_btf_obj_create(struct inlay *inlay, struct btf *btf, bool kernel, struct btf_obj **ret_obj);

/* ---- programs ---- */

/* The program keeps map, as if it used it; a second time changes nothing. 0 or -ENOMEM. */
int sys_prog_add_map(struct inlay *inlay, struct prog *prog, struct map *map);
/* Linux's tag: of the instructions as loaded, map descriptors blanked. */
void sys_prog_tag(const void *insns, u32 nr_insns, u8 tag[8]);

/* func_info, line_info of PROG_LOAD into prog, with prog's BTF. 0 or -errno, reason in log. */
int sys_prog_load_info(struct sys_call *c, struct prog *prog, struct sys_log *log);

/* ---- info by object kind; each copies in, fills and copies out ---- */
long sys_map_info(struct sys_call *c, struct map *map);
long sys_prog_info(struct sys_call *c, struct prog *prog);
long sys_btf_info(struct sys_call *c, struct btf_obj *bo);
long sys_link_info(struct sys_call *c, struct link *link);

/* A string into a user buffer of cap bytes, cut and terminated there: 0, -ENOSPC if it was cut,
 * -EFAULT. */
int sys_put_str(struct sys_call *c, u64 dst, u32 cap, const char *s);

#endif
