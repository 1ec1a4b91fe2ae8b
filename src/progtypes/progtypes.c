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

u32 progtype_run(struct prog *prog, void *ctx, u32 cpu, u32 repeat)
{
	struct env *env = prog->obj.inlay->env;
	struct env_tls saved = env_tls;
	struct env_task *self = env_task_self(env);
	u32 ret;

	env_enter(env, cpu == U32_MAX ? 0 : cpu, self);
	do
		ret = prog_run(prog, ctx);
	while (--repeat);
	if (saved.env)
		env_tls = saved;
	else
		env_leave(env);
	return ret;
}

int progtype_raw_tp_test_run(struct prog *prog, struct test_run *run)
{
	u64 args[RAW_TP_MAX_ARGS] = { 0 };
	u32 cpu = 0;

	/* the kernel's rules for this type: no packet, no output, no repeat */
	if (run->data_in || run->want_data_out || run->ctx_out || run->ctx_size_out || run->repeat || run->batch_size)
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
	run->retval = progtype_run(prog, args, cpu, 1);
	return 0;
}
