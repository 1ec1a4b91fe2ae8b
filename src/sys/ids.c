// SPDX-License-Identifier: BSD-2-Clause
// Objects by number: *_GET_NEXT_ID and *_GET_FD_BY_ID.
#include <errno.h>

#include "isa/uapi.h"
#include "sys/sys_int.h"

static long next_id(struct sys_call *c, enum obj_kind kind)
{
	u32 id = c->attr.by_id.id;

	if (id >= (u32)S32_MAX)
		return -EINVAL;
	id = obj_next_id(c->inlay, kind, id);
	return id ? sys_put_field(c, by_id.next_id, &id) : -ENOENT;
}

static long fd_by_id(struct sys_call *c, enum obj_kind kind, int accmode)
{
	struct obj *obj = obj_by_id(c->inlay, kind, c->attr.by_id.id);

	return obj ? sys_return_fd(c, obj, accmode) : -ENOENT;
}

long sys_prog_next_id(struct sys_call *c)
{
	return next_id(c, OBJ_PROG);
}

long sys_map_next_id(struct sys_call *c)
{
	return next_id(c, OBJ_MAP);
}

long sys_btf_next_id(struct sys_call *c)
{
	return next_id(c, OBJ_BTF);
}

long sys_link_next_id(struct sys_call *c)
{
	return next_id(c, OBJ_LINK);
}

long sys_prog_fd_by_id(struct sys_call *c)
{
	return fd_by_id(c, OBJ_PROG, O_RDWR);
}

long sys_map_fd_by_id(struct sys_call *c)
{
	u32 flags = c->attr.by_id.open_flags;

	if (flags & ~(BPF_F_RDONLY | BPF_F_WRONLY) || flags == (BPF_F_RDONLY | BPF_F_WRONLY))
		return -EINVAL;
	return fd_by_id(c, OBJ_MAP,
			flags & BPF_F_RDONLY   ? O_RDONLY
			: flags & BPF_F_WRONLY ? O_WRONLY
					       : O_RDWR);
}

long sys_btf_fd_by_id(struct sys_call *c)
{
	if (c->attr.by_id.open_flags & ~BPF_F_TOKEN_FD)
		return -EINVAL;
	if (c->attr.by_id.open_flags)
		return c->inlay->fds->accmode(c->inlay, c->attr.by_id.token_fd) < 0 ? -EBADF
										    : -EINVAL;
	return fd_by_id(c, OBJ_BTF, O_RDWR);
}

long sys_link_fd_by_id(struct sys_call *c)
{
	return fd_by_id(c, OBJ_LINK, O_RDWR);
}
