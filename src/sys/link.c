// SPDX-License-Identifier: BSD-2-Clause
// Attaching: RAW_TRACEPOINT_OPEN and the LINK_* commands.
#include "object/link.h"

#include <errno.h>

#include "isa/uapi.h"
#include "object/perf_event.h"
#include "object/progtype.h"
#include "sys/sys_int.h"

#define TP_NAME_MAX 128

static int get_link(struct sys_call *c, u32 fd, struct link **ret_link)
{
	struct obj *obj;
	int err = sys_get(c, fd, OBJ_LINK, &obj);

	if (!err)
		*ret_link = link_of(obj);
	return err;
}

/* Attaches and turns the link into a descriptor; the reference of prog is consumed. */
static long attach(struct sys_call *c, struct prog *prog, const char *tp_name, struct obj *target,
		   u64 cookie)
{
	struct link *link;
	int err = prog->ops->attach ? prog->ops->attach(prog, tp_name, target, cookie, &link)
				    : -EINVAL;

	obj_put(&prog->obj);
	return err ? err : sys_return_fd(c, &link->obj, O_RDWR);
}

long sys_raw_tracepoint_open(struct sys_call *c)
{
	u64 uname = c->attr.raw_tracepoint.name;
	char name[TP_NAME_MAX];
	struct prog *prog;
	long err = sys_get_prog(c, c->attr.raw_tracepoint.prog_fd, &prog);

	if (err)
		return err;
	/* a program whose target was named when it was loaded takes no second name */
	if (prog->attach_name || !prog->ops->attach) {
		if (!uname)
			return attach(c, prog, NULL, NULL, c->attr.raw_tracepoint.cookie);
		err = -EINVAL;
		goto err_put;
	}
	err = user_read_str(c->um, name, uname, sizeof(name));
	if (err < 0)
		goto err_put;
	return attach(c, prog, name, NULL, c->attr.raw_tracepoint.cookie);

err_put:
	obj_put(&prog->obj);
	return err;
}

long sys_link_create(struct sys_call *c)
{
	u32 type = c->attr.link_create.attach_type;
	struct obj *target;
	struct prog *prog;
	long err = sys_get_prog(c, c->attr.link_create.prog_fd, &prog);

	if (err)
		return err;
	if (prog->attach_name) {
		/* the target was fixed at load */
		err = -EINVAL;
		if (type == prog->expected_attach_type)
			return attach(c, prog, NULL, NULL, c->attr.link_create.tracing.cookie);
	} else if (type == BPF_PERF_EVENT &&
		   (prog->type == BPF_PROG_TYPE_TRACEPOINT || prog->type == BPF_PROG_TYPE_KPROBE ||
		    prog->type == BPF_PROG_TYPE_PERF_EVENT)) {
		err = c->attr.link_create.flags ? -EINVAL : 0;
		if (!err)
			err = sys_get(c, c->attr.link_create.target_fd, OBJ_PERF_EVENT, &target);
		if (!err) {
			/* the only perf events there are carry output, nothing that a program could
			 * be attached to */
			obj_put(target);
			err = -EINVAL;
		}
	} else {
		err = -EINVAL;
	}
	obj_put(&prog->obj);
	return err;
}

long sys_link_update(struct sys_call *c)
{
	struct prog *prog;
	struct link *link;
	int err;

	if (c->attr.link_update.flags & ~BPF_F_REPLACE)
		return -EINVAL;
	err = get_link(c, c->attr.link_update.link_fd, &link);
	if (err)
		return err;
	err = sys_get_prog(c, c->attr.link_update.new_prog_fd, &prog);
	if (!err) {
		/* links of tracepoints keep their program, in Linux too */
		obj_put(&prog->obj);
		err = -EINVAL;
	}
	obj_put(&link->obj);
	return err;
}

long sys_link_detach(struct sys_call *c)
{
	struct link *link;
	int err = get_link(c, c->attr.link_detach.link_fd, &link);

	if (err)
		return err;
	obj_put(&link->obj);
	return -EOPNOTSUPP; /* a tracepoint's link ends with its descriptor */
}

long sys_iter_create(struct sys_call *c)
{
	struct link *link;
	int err;

	if (c->attr.iter_create.flags)
		return -EINVAL;
	err = get_link(c, c->attr.iter_create.link_fd, &link);
	if (err)
		return err;
	obj_put(&link->obj);
	return -EINVAL; /* no link of ours is an iterator */
}
