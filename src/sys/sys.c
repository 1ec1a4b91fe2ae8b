// SPDX-License-Identifier: BSD-2-Clause
// Dispatch of bpf(2) by cmds.def: size and zero rules of the attribute, and what all handlers
// share.
#include "sys/sys.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "isa/uapi.h"
#include "object/map.h"
#include "object/prog.h"
#include "rcu/rcu.h"
#include "sys/sys_int.h"

static const struct sys_cmd {
	const char *name;
	u32 end; /* bytes of the attribute the command reads */
	sys_handler handler;
	bool reap;
} cmds[] = {
#define SYS_CMD(nr, name, end, handler, reap) [nr] = {#name, end, handler, reap},
#include "sys/cmds.def"
#undef SYS_CMD
};

const char *sys_cmd_name(int cmd)
{
	return cmd >= 0 && cmd < (int)ARRAY_SIZE(cmds) ? cmds[cmd].name : NULL;
}

long sys_refused(struct sys_call *c)
{
	return -EINVAL;
}

long sys_bpf(struct inlay *inlay, const struct user_mem *um, int cmd, u64 attr, u32 size)
{
	struct sys_call c = {.inlay = inlay, .um = um, .uattr = attr, .usize = size};
	int err;
	u32 i;

	rcu_thread_enter();
	err = user_check_tail(um, attr, sizeof(c.attr), size);
	if (err)
		return err;
	err = user_read(um, &c.attr, attr, min_of((size_t)size, sizeof(c.attr)));
	if (err)
		return err;
	if (cmd < 0 || cmd >= (int)ARRAY_SIZE(cmds))
		return -EINVAL;
	for (i = cmds[cmd].end; i < sizeof(c.attr); i++)
		if (c.attr.bytes[i])
			return -EINVAL;
	if (cmds[cmd].reap)
		inlay->fds->reap(inlay);
	return cmds[cmd].handler(&c);
}

int sys_get(struct sys_call *c, u32 fd, enum obj_kind kind, struct obj **ret_obj)
{
	struct obj *obj;
	int err = c->inlay->fds->get(c->inlay, (int)fd, &obj);

	if (err)
		return err;
	if (obj->kind != kind) {
		obj_put(obj);
		return -EINVAL;
	}
	*ret_obj = obj;
	return 0;
}

int sys_get_map(struct sys_call *c, u32 fd, struct map **ret_map)
{
	struct obj *obj;
	int err = sys_get(c, fd, OBJ_MAP, &obj);

	if (!err)
		*ret_map = map_of(obj);
	return err;
}

int sys_get_prog(struct sys_call *c, u32 fd, struct prog **ret_prog)
{
	struct obj *obj;
	int err = sys_get(c, fd, OBJ_PROG, &obj);

	if (!err)
		*ret_prog = prog_of(obj);
	return err;
}

long sys_return_fd(struct sys_call *c, struct obj *obj, int accmode)
{
	int fd = obj_publish(obj);

	if (!fd)
		fd = c->inlay->fds->install_as(c->inlay, obj, accmode);
	obj_put(obj);
	return fd;
}

int sys_copy_name(char *dst, const char *src)
{
	int i;

	memset(dst, 0, SYS_NAME_LEN);
	for (i = 0; i < SYS_NAME_LEN && src[i]; i++) {
		if (!isalnum((unsigned char)src[i]) && src[i] != '_' && src[i] != '.')
			return -EINVAL;
		dst[i] = src[i];
	}
	return i < SYS_NAME_LEN ? 0 : -EINVAL;
}

int sys_put_str(struct sys_call *c, u64 dst, u32 cap, const char *s)
{
	size_t len = strlen(s);
	char nul = 0;

	if (cap > len)
		return user_write(c->um, dst, s, len + 1);
	if (!cap)
		return -ENOSPC;
	if (user_write(c->um, dst, s, cap - 1) || user_write(c->um, dst + cap - 1, &nul, 1))
		return -EFAULT;
	return -ENOSPC;
}

int sys_init(struct inlay *inlay)
{
	struct btf_obj *bo;
	int err = sys_btf_obj_create(inlay, inlay->vmlinux, true, &bo);

	if (err)
		return err;
	err = obj_publish(&bo->obj);
	if (err) {
		obj_put(&bo->obj);
		return err;
	}
	inlay->vmlinux_obj = &bo->obj;
	return 0;
}

void sys_fini(struct inlay *inlay)
{
	obj_put(inlay->vmlinux_obj);
	inlay->vmlinux_obj = NULL;
}

long sys_ioctl(struct inlay *inlay, int fd, unsigned long req, unsigned long arg)
{
	struct obj *obj;
	long ret = inlay->fds->get(inlay, fd, &obj);

	if (ret)
		return ret;
	ret = obj->ops->ioctl ? obj->ops->ioctl(obj, req, arg) : -ENOTTY;
	obj_put(obj);
	return ret;
}

/* Linux's order for maps: type, sharing, then what freezing and access flags forbid to writers. */
static int map_mmap_check(struct map *map, int accmode, int prot, bool shared)
{
	if (accmode == O_WRONLY || (accmode == O_RDONLY && shared && (prot & PROT_WRITE)))
		return -EACCES;
	if (!map->ops->mmap_check || map->spin_lock_off != U32_MAX)
		return -LINUX_ENOTSUPP;
	/* a sharing that cannot write is none to the kernel */
	if (!shared || accmode == O_RDONLY)
		return -EINVAL;
	if (!(prot & PROT_WRITE))
		return 0;
	if (map->frozen)
		return -EPERM;
	return map->map_flags & BPF_F_RDONLY_PROG ? -EACCES : 0;
}

int sys_mmap_check(struct inlay *inlay, int fd, struct obj *obj, u64 off, u64 len, int prot,
		   int flags)
{
	int type = flags & MAP_TYPE, err = 0;
	bool shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE;

	if (!len || off & 4095)
		return -EINVAL;
	if (!obj->ops->mmap_check)
		return -ENODEV;
	if (obj->kind == OBJ_MAP)
		err = map_mmap_check(map_of(obj), inlay->fds->accmode(inlay, fd), prot, shared);
	return err ? err : obj->ops->mmap_check(obj, off, len, prot, shared);
}
