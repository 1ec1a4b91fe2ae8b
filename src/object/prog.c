// SPDX-License-Identifier: BSD-2-Clause
// A program's life and its run: read section, run context, statistics.
#include "object/prog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ticks.h"
#include "btf/btf.h"
#include "env/env.h"
#include "object/helper.h"
#include "object/instance.h"
#include "object/map.h"
#include "object/progtype.h"

static void destroy(struct rcu_cb *cb)
{
	struct prog *prog = container_of_(cb, struct prog, rcu);
	u32 i;

	if (prog->image_free)
		prog->image_free(prog);
	if (prog->lowered_free)
		prog->lowered_free(prog);
	for (i = 0; i < prog->nr_maps; i++)
		obj_put(&prog->maps[i]->obj);
	free(prog->maps);
	btf_put(prog->btf);
	obj_put(prog->btf_obj);
	free(prog->orig);
	free(prog->insns);
	free(prog->facts);
	free(prog->subprogs);
	free(prog->func_info);
	free(prog->line_info);
	free(prog->funcs);
	free(prog->stats);
	free(prog);
}

static void release(struct obj *obj)
{
	rcu_defer(&prog_of(obj)->rcu, destroy);
}

static const struct obj_ops prog_obj_ops = {
	.release = release,
};

struct prog *prog_create(struct inlay *inlay)
{
	struct prog *prog = calloc(1, sizeof(*prog));

	if (!prog)
		return NULL;
	prog->stats = calloc(env_nr_cpus(inlay->env), sizeof(*prog->stats));
	if (!prog->stats) {
		free(prog);
		return NULL;
	}
	obj_init(&prog->obj, inlay, OBJ_PROG, &prog_obj_ops);
	return prog;
}

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* 8 buckets an octave; exact below 8. */
static u32 hist_bucket(u64 ns)
{
	u32 exp;

	if (ns < 8)
		return ns;
	exp = 63 - __builtin_clzll(ns);
	return (exp - 2) * 8 + ((ns >> (exp - 3)) & 7);
}

static u64 hist_bucket_end(u32 i)
{
	u32 exp = i / 8 + 2;

	return i < 8 ? i : ((8ULL + i % 8 + 1) << (exp - 3)) - 1;
}

/* Out of line, so that a run that is not counted saves no registers for it. */
static __attribute__((noinline, cold)) u64 run_counted(struct prog *prog, void *ctx)
{
	struct prog_stats *s = &prog->stats[env_tls.cpu];
	u64 scale = __atomic_load_n(&arch_ticks_scale, __ATOMIC_RELAXED), start, ns, ret;

	if (likely(scale)) {
		start = arch_ticks();
		ret = prog->entry(prog, ctx);
		ns = arch_ticks_ns(arch_ticks() - start, scale);
	} else {
		start = now_ns();
		ret = prog->entry(prog, ctx);
		ns = now_ns() - start;
	}
	s->cnt++;
	s->nsecs += ns;
	s->hist[hist_bucket(ns)]++;
	return ret;
}

/* Any run: nested, counted, without membarrier(2). */
static __attribute__((noinline)) u64 run_any(struct prog *prog, void *ctx)
{
	struct prog_run_ctx run = { .prog = prog, .ctx = ctx, .outer = env_tls.prog_run };
	u64 ret;

	rcu_enter();
	env_tls.prog_run = &run;
	if (unlikely(__atomic_load_n(&prog->obj.inlay->stats_users, __ATOMIC_RELAXED)))
		ret = run_counted(prog, ctx);
	else
		ret = prog->entry(prog, ctx);
	env_tls.prog_run = run.outer;
	rcu_leave();
	return ret;
}

/* The outermost run that nobody counts, which is nearly every one, is to cost less than what most programs do. */
static inline __attribute__((always_inline)) u64 run_one(struct prog *prog, void *ctx)
{
	struct prog_run_ctx run = { .prog = prog, .ctx = ctx };
	u64 ret;

	if (unlikely(env_tls.prog_run || __atomic_load_n(&prog->obj.inlay->stats_users, __ATOMIC_RELAXED)) ||
	    !rcu_begin_outer())
		return run_any(prog, ctx);
	env_tls.prog_run = &run;
	ret = prog->entry(prog, ctx);
	env_tls.prog_run = NULL;
	if (rcu_end_outer())
		rcu_wake();
	return ret;
}

u64 prog_run(struct prog *prog, void *ctx)
{
	return run_one(prog, ctx);
}

u64 prog_run_repeat(struct prog *prog, void *ctx, u32 repeat)
{
	u64 ret;

	do
		ret = run_one(prog, ctx);
	while (--repeat);
	return ret;
}

void prog_stats_sum(const struct prog *prog, struct prog_stats *ret_sum)
{
	u32 cpu, i;

	memset(ret_sum, 0, sizeof(*ret_sum));
	for (cpu = 0; cpu < env_nr_cpus(prog->obj.inlay->env); cpu++) {
		const struct prog_stats *s = &prog->stats[cpu];

		ret_sum->cnt += s->cnt;
		ret_sum->nsecs += s->nsecs;
		ret_sum->misses += s->misses;
		for (i = 0; i < ARRAY_SIZE(s->hist); i++)
			ret_sum->hist[i] += s->hist[i];
	}
}

u64 prog_stats_quantile(const struct prog_stats *s, double q)
{
	u64 want = (u64)(q * s->cnt), seen = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(s->hist); i++) {
		seen += s->hist[i];
		if (s->cnt && seen > want)
			return hist_bucket_end(i);
		if (s->cnt && seen == s->cnt)
			return hist_bucket_end(i);
	}
	return 0;
}

const struct helper_desc *prog_helper(const struct prog *prog, u32 id)
{
	const u32 *extra = prog->ops->extra_helpers;

	if (helper_groups(id) & prog->ops->helper_groups)
		return helper_by_id(id);
	for (; extra && *extra; extra++)
		if (*extra == id)
			return helper_by_id(id);
	return NULL;
}
