// SPDX-License-Identifier: BSD-2-Clause
// PROG_TEST_RUN: copies in, lets the program's type run it, copies out.
#include <errno.h>
#include <stdlib.h>

#include "isa/uapi.h"
#include "object/progtype.h"
#include "sys/sys_int.h"

#define INPUT_MAX (1u << 20) /* more than any type takes */

static int copy_in(struct sys_call *c, u64 from, u32 size, void **ret_mem)
{
	*ret_mem = NULL;
	if (!from)
		return 0;
	return size > INPUT_MAX ? -EINVAL : user_dup(c->um, from, size, ret_mem);
}

/* A caller that says how much room it has gets that much, and -ENOSPC if there was more; one that
 * says 0 gets all. */
static int put_out(struct sys_call *c, u64 dst, const void *src, u32 have, u32 room)
{
	bool cut = room && have > room;

	if (dst && src && user_write(c->um, dst, src, cut ? room : have))
		return -EFAULT;
	return cut ? -ENOSPC : 0;
}

static int copy_out(struct sys_call *c, const struct test_run *run)
{
	int err = put_out(c, c->attr.test.data_out, run->data_out, run->data_size_out,
			  c->attr.test.data_size_out),
	    ctx_err = 0;

	if (err == -EFAULT)
		return err;
	if (run->data_out && sys_put_field(c, test.data_size_out, &run->data_size_out))
		return -EFAULT;
	if (c->attr.test.ctx_out) {
		ctx_err = put_out(c, c->attr.test.ctx_out, run->ctx_out, run->ctx_size_out,
				  c->attr.test.ctx_size_out);
		if (ctx_err == -EFAULT || sys_put_field(c, test.ctx_size_out, &run->ctx_size_out))
			return -EFAULT;
	}
	if (sys_put_field(c, test.retval, &run->retval) ||
	    sys_put_field(c, test.duration, &run->duration))
		return -EFAULT;
	return err ? err : ctx_err;
}

static int run_prog(struct sys_call *c, struct prog *prog)
{
	struct test_run run = {
		.data_size_in = c->attr.test.data_size_in,
		.ctx_size_in = c->attr.test.ctx_size_in,
		.ctx_size_out = c->attr.test.ctx_size_out,
		.flags = c->attr.test.flags,
		.cpu = c->attr.test.cpu,
		.batch_size = c->attr.test.batch_size,
		.repeat = c->attr.test.repeat,
		.duration = c->attr.test.duration,
		.want_data_out = c->attr.test.data_out || c->attr.test.data_size_out,
	};
	void *data = NULL, *ctx = NULL;
	int err = copy_in(c, c->attr.test.data_in, run.data_size_in, &data);

	if (!err)
		err = copy_in(c, c->attr.test.ctx_in, run.ctx_size_in, &ctx);
	if (!err && c->attr.test.ctx_out) {
		run.ctx_out = calloc(1, max_of(run.ctx_size_in, 1u));
		err = run.ctx_out ? 0 : -ENOMEM;
	}
	run.data_in = data;
	run.ctx_in = ctx;
	if (!err)
		err = prog->ops->test_run(prog, &run);
	if (!err)
		err = copy_out(c, &run);
	free(run.data_out);
	free(run.ctx_out);
	free(ctx);
	free(data);
	return err;
}

long sys_prog_test_run(struct sys_call *c)
{
	struct prog *prog;
	int err;

	if (!c->attr.test.ctx_size_in != !c->attr.test.ctx_in ||
	    !c->attr.test.ctx_size_out != !c->attr.test.ctx_out)
		return -EINVAL;
	err = sys_get_prog(c, c->attr.test.prog_fd, &prog);
	if (err)
		return err;
	err = prog->ops->test_run ? run_prog(c, prog) : -LINUX_ENOTSUPP;
	obj_put(&prog->obj);
	return err;
}
