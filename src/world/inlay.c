// SPDX-License-Identifier: BSD-2-Clause
// The public interface: an engine put together from its layers.
#include "inlay/inlay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/probe.h"
#include "btf/btf.h"
#include "env/env.h"
#include "object/instance.h"
#include "sys/sys.h"
#include "world/fds.h"

/* bpf/model, built in */
extern const char inlay_model_btf[], inlay_model_btf_end[];

static u32 host_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n < 1 ? 1 : n > ENV_MAX_CPUS ? ENV_MAX_CPUS : n;
}

static int parse_types(const struct inlay_opts *o, const struct log_sink *log, struct btf **ret_btf)
{
	const void *data = o->btf ? o->btf : inlay_model_btf;
	size_t size = o->btf ? o->btf_size : (size_t)(inlay_model_btf_end - inlay_model_btf);
	struct strbuf text = STRBUF_INIT;
	struct btf_log blog = {.level = BTF_LOG_ERRORS, .buf = &text};
	int err = size > BTF_MAX_BYTES ? -E2BIG : btf_parse_kernel(data, size, &blog, ret_btf);

	if (err)
		log_to(log, LOG_ERR, "types of the simulated kernel: %s (%s)", strerror(-err),
		       strbuf_str(&text));
	strbuf_fini(&text);
	return err;
}

static void log_adapter(void *ctx, enum log_level level, const char *text)
{
	struct inlay_opts *o = ctx;

	_Static_assert(LOG_ERR == (int)INLAY_LOG_ERR && LOG_DEBUG == (int)INLAY_LOG_DEBUG,
		       "the same levels");
	o->log(o->log_ctx, (enum inlay_log_level)level, text);
}

/* The engine and the options its sinks point to. */
struct world {
	struct inlay inlay;
	struct inlay_opts opts;
};

static int start(struct world *w)
{
	const struct inlay_opts *o = &w->opts;
	struct log_sink log = {o->log ? log_adapter : NULL, &w->opts};
	struct env_opts eo = {
		.nr_cpus = o->nr_cpus ? o->nr_cpus : host_cpus(),
		.clock = o->clock == INLAY_CLOCK_MANUAL ? ENV_CLOCK_MANUAL : ENV_CLOCK_REAL,
		.seed = o->seed,
		.log = log,
		.printk = o->printk,
		.printk_ctx = o->printk_ctx,
	};
	struct env *env;
	int err = probe_init();

	if (!err)
		err = parse_types(o, &log, &eo.btf);
	if (err)
		return err;
	err = env_create(&eo, &env);
	if (err) {
		btf_put(eo.btf);
		return err;
	}
	err = inlay_init(&w->inlay, env, eo.btf, &log);
	if (err)
		goto err_fini;
	w->inlay.interp = o->interp;
	err = world_fds_init(&w->inlay);
	if (err)
		goto err_fini;
	err = sys_init(&w->inlay);
	if (err)
		goto err_fds;
	return 0;

err_fds:
	w->inlay.fds->fini(&w->inlay);
err_fini:
	inlay_fini(&w->inlay);
	env_destroy(env);
	return err;
}

int inlay_create(const struct inlay_opts *opts, struct inlay **ret)
{
	struct world *w = calloc(1, sizeof(*w));
	size_t size = opts ? min_of(opts->size, sizeof(w->opts)) : 0;
	int err;

	if (!w)
		return -ENOMEM;
	if (opts && opts->size < sizeof(opts->size))
		err = -EINVAL;
	else
		err = 0;
	memcpy(&w->opts, opts ? (const void *)opts : "", size);
	if (!err)
		err = start(w);
	if (err) {
		free(w);
		return err;
	}
	/* lent for the call only */
	w->opts.btf = NULL;
	*ret = &w->inlay;
	return 0;
}

void inlay_destroy(struct inlay *inlay)
{
	struct world *w;
	struct env *env;

	if (!inlay)
		return;
	w = container_of_(inlay, struct world, inlay);
	env = inlay->env;
	inlay->fds->fini(inlay);
	sys_fini(inlay);
	inlay_fini(inlay);
	env_destroy(env);
	free(w);
}

long inlay_bpf(struct inlay *inlay, int cmd, union bpf_attr *attr, unsigned int size)
{
	return sys_bpf(inlay, &user_mem_self, cmd, (u64)(uintptr_t)attr, size);
}

long inlay_perf_event_open(struct inlay *inlay, struct perf_event_attr *attr, int pid, int cpu,
			   int group_fd, unsigned long flags)
{
	return sys_perf_event_open(inlay, &user_mem_self, (u64)(uintptr_t)attr, pid, cpu, group_fd,
				   flags);
}

long inlay_ioctl(struct inlay *inlay, int fd, unsigned long request, unsigned long arg)
{
	return sys_ioctl(inlay, fd, request, arg);
}

long inlay_mmap(struct inlay *inlay, void *addr, size_t len, int prot, int flags, int fd,
		int64_t off)
{
	struct obj *obj;
	void *at;
	long ret = inlay->fds->get(inlay, fd, &obj);

	if (ret)
		return ret;
	/* one step, so that MAP_FREEZE sees the mapping or we see the freeze */
	pthread_mutex_lock(&inlay->lock);
	ret = sys_mmap_check(inlay, fd, obj, off, len, prot, flags);
	if (!ret) {
		at = mmap(addr, len, prot, flags, fd, off);
		ret = at == MAP_FAILED ? -errno : (long)at;
	}
	pthread_mutex_unlock(&inlay->lock);
	obj_put(obj);
	return ret;
}

long inlay_pidfd_open(struct inlay *inlay, int tid, unsigned int flags)
{
	return sys_pidfd_open(inlay, tid, flags);
}
