// SPDX-License-Identifier: BSD-2-Clause
// Finds program types by number, and the rules several of them share.
#include "progtypes/progtypes_int.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "btf/btf.h"
#include "env/env.h"
#include "object/instance.h"

static const struct prog_type_ops *const types[] = {
#define PROG_TYPE(name_) &prog_type_##name_,
#include "progtypes/prog_types.def"
#undef PROG_TYPE
};

const struct prog_type_ops *prog_type_ops(u32 type)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i]->type == type)
			return types[i];
	return NULL;
}

const struct prog_type_ops *prog_type_at(u32 i)
{
	return i < ARRAY_SIZE(types) ? types[i] : NULL;
}

void progtype_any_return(const struct prog *prog, struct ret_range *ret)
{
	*ret = (struct ret_range){ .any = true };
}

bool progtype_plain_read(s32 off, u32 size, bool write, s32 lo, s32 hi, struct ctx_access *info)
{
	if (write || off < lo || off >= hi || off % (s32)size)
		return false;
	info->reg_type = SCALAR_VALUE;
	return true;
}

static void say(struct ctx_access *info, const char *fmt, ...) __printf_like(2, 3);

static void say(struct ctx_access *info, const char *fmt, ...)
{
	va_list args;

	if (!info->log)
		return;
	va_start(args, fmt);
	strbuf_vprintf(info->log, fmt, args);
	va_end(args);
}

static bool is_small_int(const struct btf *btf, const struct btf_type *t)
{
	return (btf_kind(t) == BTF_KIND_INT && t->size <= 8) || btf_is_enum_any(t);
}

bool progtype_btf_ctx_access(const struct prog *prog, u32 skip, s32 off, u32 size, struct ctx_access *info)
{
	const struct btf *btf = prog->obj.inlay->vmlinux;
	const struct btf_type *proto = btf_type_by_id(btf, prog->attach_proto), *t;
	const char *name = prog->attach_name;
	u32 arg = off / 8, nr_args = btf_vlen(proto) - skip, id;

	if (off % 8) {
		say(info, "func '%s' offset %d is not multiple of 8\n", name, off);
		return false;
	}
	if (arg >= nr_args) {
		say(info, "func '%s' doesn't have %d-th argument\n", name, arg + 1);
		return false;
	}
	t = btf_type_skip_modifiers(btf, btf_params(proto)[arg + skip].type, &id);
	info->reg_type = SCALAR_VALUE;
	if (is_small_int(btf, t))
		return true;
	if (btf_kind(t) != BTF_KIND_PTR) {
		say(info, "func '%s' arg%d '%s' has type %s. Only pointer access is allowed\n", name, arg,
		    btf_type_name(btf, id), btf_kind_name(btf_kind(t)));
		return false;
	}
	if (size != sizeof(u64)) {
		say(info, "func '%s' size %d must be 8\n", name, size);
		return false;
	}
	t = btf_type_skip_modifiers(btf, t->type, &id);
	/* a pointer to void or to a number is worth no more than a number */
	if (!id || btf_kind(t) == BTF_KIND_INT)
		return true;
	if (!btf_is_struct_or_union(t)) {
		say(info, "func '%s' arg%d type %s is not a struct\n", name, arg, btf_kind_name(btf_kind(t)));
		return false;
	}
	info->reg_type = PTR_TO_BTF_ID | PTR_TRUSTED;
	info->btf = prog->obj.inlay->vmlinux;
	info->btf_id = id;
	say(info, "func '%s' arg%d has btf_id %d type %s '%s'\n", name, arg, id, btf_kind_name(btf_kind(t)),
	    btf_type_name(btf, id));
	return true;
}

#define RUNS_AT_A_TIME 256 /* between two looks at whether to stop */

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int run_all(struct prog *prog, void *ctx, u32 repeat, u32 *ret_r0)
{
	u32 *interrupts = &prog->obj.inlay->interrupts, before = __atomic_load_n(interrupts, __ATOMIC_RELAXED), n;

	for (;;) {
		n = min_of(repeat, (u32)RUNS_AT_A_TIME);
		*ret_r0 = prog_run_repeat(prog, ctx, n);
		repeat -= n;
		if (!repeat)
			return 0;
		if (__atomic_load_n(interrupts, __ATOMIC_RELAXED) != before)
			return -EINTR;
	}
}

int progtype_run(struct prog *prog, void *ctx, u32 cpu, u32 repeat, struct test_run *run)
{
	struct inlay *inlay = prog->obj.inlay;
	struct env_tls saved = env_tls;
	struct env_task *self = env_task_self(inlay->env);
	u64 ns;
	int err;

	cpu = inlay_cpu_take(inlay, cpu);
	env_enter(inlay->env, cpu, self);
	ns = now_ns();
	err = run_all(prog, ctx, repeat, &run->retval);
	ns = (now_ns() - ns) / repeat;
	if (saved.env)
		env_tls = saved;
	else
		env_leave(inlay->env);
	inlay_cpu_give(inlay, cpu);
	if (!err)
		run->duration = (u32)min_of(ns, (u64)U32_MAX);
	return err;
}

int progtype_raw_tp_test_run(struct prog *prog, struct test_run *run)
{
	u64 args[RAW_TP_MAX_ARGS] = { 0 };
	u32 cpu = U32_MAX;
	int err;

	/* the kernel's rules for this type: no packet, no output, no repeat */
	if (run->data_in || run->want_data_out || run->ctx_out || run->ctx_size_out || run->duration || run->repeat ||
	    run->batch_size)
		return -EINVAL;
	/* Linux takes unknown flags here */
	if (run->ctx_size_in < prog->max_ctx_offset || run->ctx_size_in > sizeof(args))
		return -EINVAL;
	if (run->flags & BPF_F_TEST_RUN_ON_CPU) {
		cpu = run->cpu;
		if (cpu >= env_nr_cpus(prog->obj.inlay->env))
			return -ENXIO;
	} else if (run->cpu) {
		return -EINVAL;
	}
	if (run->ctx_size_in)
		memcpy(args, run->ctx_in, run->ctx_size_in);
	err = progtype_run(prog, args, cpu, 1, run);
	run->duration = 0; /* Linux does not say */
	return err;
}
