// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions of the program. A static one is followed into at each call, with what the caller knows. A global one is judged
 * once for any arguments of its prototype; calls of it are judged by the prototype alone.
 */
#include "verifier/vrf_int.h"

#include <string.h>

#include "btf/btf.h"

enum arg_class { ARG_NUMBER, ARG_CTX, ARG_MEM };

struct proto_arg {
	enum arg_class class;
	u32 size; /* of the memory */
	bool nullable;
};

struct proto {
	u32 nr;
	struct proto_arg arg[5];
};

static bool is_number(const struct btf_type *t)
{
	return t && (btf_kind(t) == BTF_KIND_INT || btf_is_enum_any(t));
}

/* Tags that promise what inlay does not model yet. */
static bool has_unknown_tag(const struct btf *btf, u32 func_id, u32 arg)
{
	static const char *const tags[] = { "arg:trusted", "arg:nullable", "arg:arena", "arg:untrusted" };

	for (u32 i = 0; i < ARRAY_SIZE(tags); i++)
		if (btf_has_decl_tag(btf, func_id, (s32)arg, tags[i]))
			return true;
	return false;
}

static int pointer_arg(struct vrf *v, u32 func_id, u32 i, const struct btf_type *ptr, struct proto_arg *arg)
{
	const struct btf *btf = v->prog->btf;
	const char *ctx = v->prog->ops->ctx_struct;
	const struct btf_type *to;
	u32 id;

	to = btf_type_skip_modifiers(btf, ptr->type, &id);
	if (btf_has_decl_tag(btf, func_id, (s32)i, "arg:ctx") ||
	    (ctx && to && btf_kind(to) == BTF_KIND_STRUCT && !strcmp(btf_type_name(btf, id), ctx))) {
		arg->class = ARG_CTX;
		return 0;
	}
	if (has_unknown_tag(btf, func_id, i)) {
		vrf_say(v, "unsupported: tagged argument arg#%u\n", i);
		return -EINVAL;
	}
	arg->class = ARG_MEM;
	arg->nullable = !btf_has_decl_tag(btf, func_id, (s32)i, "arg:nonnull");
	if (!to || btf_resolve_size(btf, id, &arg->size) || !arg->size) {
		vrf_say(v, "arg#%u reference type('%s %s') size cannot be determined: %d\n", i,
			to ? btf_kind_name(btf_kind(to)) : "UNKNOWN", btf_type_name(btf, id), -EINVAL);
		return -EINVAL;
	}
	return 0;
}

static int read_proto(struct vrf *v, u32 subprog, struct proto *ret)
{
	const struct vrf_sub *sub = &v->subs[subprog];
	const struct btf_type *t = vrf_func_proto(v, subprog), *a;
	const struct btf *btf = v->prog->btf;
	u32 func_id;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!t) {
		vrf_say(v, "Verifier bug in func %s()\n", sub->name ? sub->name : "");
		return -EFAULT;
	}
	func_id = v->prog->func_info[sub->func_info].type_id;
	if (btf_vlen(t) > 5) {
		vrf_say(v, "Global function %s() with %u > %d args. Buggy compiler.\n", sub->name, btf_vlen(t), 5);
		return -EINVAL;
	}
	if (!is_number(btf_type_skip_modifiers(btf, t->type, NULL))) {
		vrf_say(v, "Global function %s() doesn't return scalar. Only those are supported.\n", sub->name);
		return -EINVAL;
	}
	ret->nr = btf_vlen(t);
	for (u32 i = 0; i < ret->nr; i++) {
		a = btf_type_skip_modifiers(btf, btf_params(t)[i].type, NULL);
		if (is_number(a)) {
			ret->arg[i].class = ARG_NUMBER;
		} else if (a && btf_kind(a) == BTF_KIND_PTR) {
			err = pointer_arg(v, func_id, i, a, &ret->arg[i]);
			if (err)
				return err;
		} else {
			vrf_say(v, "Arg#%u type %s in %s() is not supported yet.\n", i,
				a ? btf_kind_name(btf_kind(a)) : "UNKNOWN", sub->name);
			return -EINVAL;
		}
	}
	return 0;
}

int vrf_prepare_global(struct vrf *v, u32 subprog, struct vrf_func *f)
{
	struct proto p;
	int err = read_proto(v, subprog, &p);

	for (u32 i = 0; !err && i < p.nr; i++) {
		struct vrf_reg *reg = &f->regs[1 + i];

		switch (p.arg[i].class) {
		case ARG_NUMBER:
			vrf_reg_unknown(reg);
			break;
		case ARG_CTX:
			vrf_reg_type(reg, PTR_TO_CTX);
			break;
		case ARG_MEM:
			vrf_reg_type(reg, PTR_TO_MEM | (p.arg[i].nullable ? PTR_MAYBE_NULL : 0));
			reg->mem_size = p.arg[i].size;
			reg->id = vrf_new_id(v);
			break;
		}
	}
	if (!err && f->in_exception_cb && (p.nr != 1 || p.arg[0].class != ARG_NUMBER)) {
		vrf_say(v, "exception cb only supports single integer argument\n");
		return -EINVAL;
	}
	return err;
}

/* The function may read and write all of the memory it is handed. */
static int mem_to_global(struct vrf *v, u32 regno, const struct proto_arg *arg)
{
	struct vrf_reg *reg = &vrf_regs(v)[regno], saved = *reg;
	int err;

	if (vrf_reg_is_null(reg) && arg->nullable)
		return vrf_mark_precise(v, regno);
	if (vrf_may_be_null(reg->type)) {
		if (!arg->nullable) {
			vrf_say(v, "arg#%u is expected to be non-NULL\n", regno - 1);
			return -EINVAL;
		}
		reg->type &= ~(u32)PTR_MAYBE_NULL;
	}
	err = vrf_mem_arg(v, regno, arg->size, false, false, NULL);
	if (!err)
		err = vrf_mem_arg(v, regno, arg->size, false, true, NULL);
	*reg = saved;
	return err;
}

int vrf_call_global(struct vrf *v, u32 subprog)
{
	const char *name = v->subs[subprog].name ? v->subs[subprog].name : "";
	struct proto p;
	int err = read_proto(v, subprog, &p);

	for (u32 i = 0; !err && i < p.nr; i++) {
		struct vrf_reg *reg = &vrf_regs(v)[1 + i];

		err = vrf_read_reg(v, 1 + i);
		if (err)
			break;
		switch (p.arg[i].class) {
		case ARG_NUMBER:
			if (reg->type != SCALAR_VALUE) {
				vrf_say(v, "R%u is not a scalar\n", 1 + i);
				err = -EINVAL;
			}
			break;
		case ARG_CTX:
			if (reg->type != PTR_TO_CTX) {
				vrf_say(v, "arg#%u expected pointer to ctx, but got %s\n", i, vrf_type_str(v, reg->type));
				err = -EINVAL;
			} else {
				err = vrf_ptr_off_zero(v, reg, 1 + i);
			}
			break;
		case ARG_MEM:
			err = mem_to_global(v, 1 + i, &p.arg[i]);
			break;
		}
	}
	if (v->subs[subprog].may_sleep && (!v->prog->sleepable || vrf_no_sleep(v))) {
		vrf_say(v, "global functions that may sleep are not allowed in non-sleepable context,\n"
			   "i.e., in a RCU/IRQ/preempt-disabled section, or in\n"
			   "a non-sleepable BPF program context\n");
		return -EINVAL;
	}
	if (err) {
		vrf_say(v, "Caller passes invalid args into func#%u ('%s')\n", subprog, name);
		return err;
	}
	/* Linux does not look: what its caller holds would never be given back */
	if (v->subs[subprog].may_throw) {
		err = vrf_resources_at(v, true, "bpf_throw");
		if (err)
			return err;
	}
	if (v->log_level & 3)
		vrf_say(v, "Func#%u ('%s') is global and assumed valid.\n", subprog, name);
	v->subs[subprog].called = true;
	for (u32 i = 0; i < CALLER_SAVED; i++)
		vrf_reg_not_init(&vrf_regs(v)[i]);
	vrf_reg_unknown(&vrf_regs(v)[0]);
	v->insn_idx++;
	return 0;
}

int vrf_call_sub(struct vrf *v, const struct bpf_insn *insn)
{
	int subprog = vrf_find_sub(v, (u32)((s64)v->insn_idx + 1 + insn->imm));
	struct insn_fact *fact = &v->facts[v->insn_idx];
	struct vrf_state *st = v->cur;
	struct vrf_func *caller = vrf_cur(v), *callee;

	if (subprog < 0) {
		vrf_say(v, "verifier bug. No program starts at insn %lld\n", (long long)v->insn_idx + 1 + insn->imm);
		return -EFAULT;
	}
	fact->call_subprog = 1;
	fact->subprog = (u32)subprog;
	if (v->subs[subprog].is_global)
		return vrf_call_global(v, (u32)subprog);
	if (st->cur + 1 >= PROG_MAX_FRAMES) {
		vrf_say(v, "the call stack of %u frames is too deep\n", st->cur + 2);
		return -E2BIG;
	}
	callee = vrf_func_new(v, v->insn_idx, st->cur + 1, (u32)subprog);
	if (!callee)
		return -ENOMEM;
	st->frame[++st->cur] = callee;
	for (u32 i = 1; i <= 5; i++)
		callee->regs[i] = caller->regs[i];
	for (u32 i = 0; i < CALLER_SAVED; i++)
		vrf_reg_not_init(&caller->regs[i]);
	vrf_log_all_changed(v);
	v->insn_idx = v->subs[subprog].start;
	if (v->log_level & 3) {
		vrf_say(v, "caller:\n");
		vrf_log_state(v, st, st->cur - 1, true);
		vrf_say(v, "callee:\n");
		vrf_log_state(v, st, st->cur, true);
	}
	return 0;
}

static int return_to_caller(struct vrf *v)
{
	struct vrf_state *st = v->cur, *prev;
	struct vrf_func *callee = vrf_cur(v), *caller = st->frame[st->cur - 1];
	bool callback = callee->in_callback;
	int err;

	if (type_base(callee->regs[0].type) == PTR_TO_STACK) {
		/* its own stack is about to go; and whose it is nobody asks */
		vrf_say(v, "cannot return stack pointer to the caller\n");
		return -EINVAL;
	}
	if (callback) {
		err = vrf_callback_return(v, callee);
		if (err)
			return err;
	} else {
		caller->regs[0] = callee->regs[0];
	}
	v->insn_idx = callback ? callee->callsite : callee->callsite + 1;
	if (v->log_level & 3) {
		vrf_say(v, "returning from callee:\n");
		vrf_log_state(v, st, st->cur, true);
		vrf_say(v, "to caller at %u:\n", v->insn_idx);
		vrf_log_state(v, st, st->cur - 1, true);
	}
	v->print_full = true;
	vrf_func_free(v, callee);
	st->frame[st->cur--] = NULL;
	if (callback) {
		prev = vrf_prev_visit(v, st, v->insn_idx);
		if (prev)
			vrf_widen(v, prev, st);
	}
	return 0;
}

int vrf_check_result(struct vrf *v, u32 regno)
{
	const struct vrf_func *f = vrf_cur(v);
	const struct vrf_reg *reg = &f->regs[regno];
	struct ret_range range = { .any = true };
	int err = vrf_read_reg(v, regno);

	if (err)
		return err;
	if (f->subprog && !f->in_exception_cb) {
		if (reg->type == SCALAR_VALUE)
			return 0;
		vrf_say(v, "At subprogram exit the register R%u is not a scalar value (%s)\n", regno,
			vrf_type_str(v, reg->type));
		return -EINVAL;
	}
	if (v->prog->ops->ret_range)
		v->prog->ops->ret_range(v->prog, &range);
	if (range.any)
		return 0;
	if (reg->type != SCALAR_VALUE) {
		vrf_say(v, "At program exit the register R%u is not a known value (%s)\n", regno,
			vrf_type_str(v, reg->type));
		return -EINVAL;
	}
	err = vrf_mark_precise(v, regno);
	return err ? err : vrf_ret_in_range(v, regno, range.min, range.max, "At program exit");
}

/* Pointers into a frame that ends must not outlive it: only the frame itself and its callees can hold any. */
int vrf_exit(struct vrf *v)
{
	int err;

	if (v->cur->cur) {
		err = return_to_caller(v);
		return err;
	}
	err = vrf_resources_at(v, true, "BPF_EXIT instruction in main prog");
	if (!err)
		err = vrf_check_result(v, 0);
	return err ? err : 1;
}
