// SPDX-License-Identifier: BSD-2-Clause
/* See run_repeat.h. What is measured is the whole loop, entry and read section of each run included. */
#include "run_repeat.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

#include "env/env.h"
#include "object/instance.h"
#include "object/prog.h"

#define CTX_MAX 4096

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* The program behind fd runs on with a copy of its context, as its type's test run had it. */
static int run_on(struct inlay *inlay, int fd, u32 repeat, struct bpf_test_run_opts *t)
{
	u64 ctx[CTX_MAX / 8] = { 0 };
	struct env_tls saved = env_tls;
	struct obj *obj;
	int rc = inlay->fds->get(inlay, fd, &obj);

	if (rc)
		return rc;
	if (t->ctx_size_in > sizeof(ctx) || obj->kind != OBJ_PROG) {
		obj_put(obj);
		return -EINVAL;
	}
	if (t->ctx_size_in)
		memcpy(ctx, t->ctx_in, t->ctx_size_in);
	env_enter(inlay->env, t->cpu, env_task_self(inlay->env));
	t->retval = (u32)prog_run_repeat(prog_of(obj), ctx, repeat);
	if (saved.env)
		env_tls = saved;
	else
		env_leave(inlay->env);
	obj_put(obj);
	return 0;
}

int cli_run_repeat(struct cli_engine *engine, int fd, u32 repeat, struct bpf_test_run_opts *t,
		   struct cli_timing *ret_timing)
{
	u32 data_out = t->data_size_out, ctx_out = t->ctx_size_out, i;
	u64 start;
	int rc;

	t->repeat = repeat > 1 ? repeat : 0;
	start = now_ns();
	rc = bpf_prog_test_run_opts(fd, t);
	if (!rc)
		goto out;
	if (rc != -EINVAL || !t->repeat)
		return rc;
	t->repeat = 0;
	t->data_size_out = data_out;
	t->ctx_size_out = ctx_out;
	rc = bpf_prog_test_run_opts(fd, t); /* judges the arguments, and runs once */
	if (rc)
		return rc;
	start = now_ns();
	if (engine->inlay) {
		rc = run_on(engine->inlay, fd, repeat - 1, t);
		if (rc)
			return rc;
		ret_timing->ns = (double)(now_ns() - start) / (repeat - 1);
		ret_timing->runs = repeat;
		return 0;
	}
	for (i = 1; i < repeat; i++) {
		t->data_size_out = data_out;
		t->ctx_size_out = ctx_out;
		rc = bpf_prog_test_run_opts(fd, t);
		if (rc)
			return rc;
	}
	ret_timing->ns = (double)(now_ns() - start) / (repeat - 1);
	ret_timing->runs = repeat;
	return 0;
out:
	if (repeat > 1) {
		ret_timing->ns = (double)(now_ns() - start) / repeat;
		ret_timing->runs = repeat;
	}
	return 0;
}
