// SPDX-License-Identifier: BSD-2-Clause
// BTF_LOAD, and BTF as an object.
#include "btf/btf.h"

#include <errno.h>
#include <stdlib.h>

#include "isa/uapi.h"
#include "sys/sys_int.h"

static void release(struct obj *obj)
{
	struct btf_obj *bo = btf_obj_of(obj);

	btf_put(bo->btf);
	free(bo);
}

static const struct obj_ops btf_obj_ops = {
	.release = release,
};

int sys_btf_obj_create(struct inlay *inlay, struct btf *btf, bool kernel, struct btf_obj **ret_obj)
{
	struct btf_obj *bo = calloc(1, sizeof(*bo));

	if (!bo)
		return -ENOMEM;
	bo->btf = btf_get(btf);
	bo->kernel = kernel;
	obj_init(&bo->obj, inlay, OBJ_BTF, &btf_obj_ops);
	*ret_obj = bo;
	return 0;
}

static int parse(struct sys_call *c, struct sys_log *log, struct btf **ret_btf)
{
	struct btf_log blog = {.level = log->level, .buf = &log->text};
	void *data;
	int err = user_dup(c->um, c->attr.btf_load.btf, c->attr.btf_load.btf_size, &data);

	if (err)
		return err;
	err = btf_parse(data, c->attr.btf_load.btf_size, NULL, &blog, ret_btf);
	free(data);
	return err;
}

long sys_btf_load(struct sys_call *c)
{
	struct btf_obj *bo;
	struct btf *btf = NULL;
	struct sys_log log;
	u32 true_size;
	int err;

	if (c->attr.btf_load.btf_flags & ~BPF_F_TOKEN_FD)
		return -EINVAL;
	if (c->attr.btf_load.btf_flags)
		return c->inlay->fds->accmode(c->inlay, c->attr.btf_load.token_fd) < 0 ? -EBADF
										       : -EINVAL;
	if (c->attr.btf_load.btf_size > BTF_MAX_BYTES)
		return -E2BIG;
	err = sys_log_init(&log, c->attr.btf_load.log_level, c->attr.btf_load.log_size,
			   c->attr.btf_load.log_buf);
	if (err)
		return err;
	err = parse(c, &log, &btf);
	/* a fault of the log buffer or its lack of room outweighs what is wrong with the types */
	err = sys_log_finish(c, &log, err, &true_size);
	sys_log_fini(&log);
	if (c->usize >= offsetof(union sys_attr, btf_load.btf_flags) &&
	    sys_put_field(c, btf_load.log_true_size, &true_size))
		err = -EFAULT;
	if (!err)
		err = sys_btf_obj_create(c->inlay, btf, false, &bo);
	btf_put(btf);
	return err ? err : sys_return_fd(c, &bo->obj, O_RDWR);
}
