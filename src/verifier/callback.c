// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers that call back before they return. The helper may call the body any number of times, so the state after it must
 * hold for every number of rounds: the call instruction is a checkpoint; from it one path goes on behind the call (no more
 * rounds), another enters the body, and its return comes back to the same call. When a return brings a state the
 * checkpoint covers, that is the fixed point. Numbers that change from round to round and are not precise are widened, so
 * that it is reached.
 */
#include "verifier/vrf_int.h"

#include "btf/btf.h"

static int setup_reg(struct vrf *v, const struct callback_desc *cb, u32 i, const struct vrf_reg *args, struct map *map,
		     struct vrf_reg *reg)
{
	s32 id;

	switch ((enum cb_reg)cb->reg[i]) {
	case CB_UNUSED:
		vrf_reg_not_init(reg);
		return 0;
	case CB_SCALAR:
		vrf_reg_unknown(reg);
		return 0;
	case CB_CTX_ARG:
		*reg = args[1 + cb->ctx_arg];
		return 0;
	case CB_MAP:
	case CB_MAP_KEY:
	case CB_MAP_VALUE:
		if (!map)
			return -EFAULT;
		vrf_reg_type(reg, cb->reg[i] == CB_MAP ? CONST_PTR_TO_MAP :
				  cb->reg[i] == CB_MAP_KEY ? PTR_TO_MAP_KEY : PTR_TO_MAP_VALUE);
		reg->map = map;
		return 0;
	case CB_BTF_PTR:
		id = cb->btf ? btf_find_by_name_kind(v->machine, cb->btf, BTF_KIND_STRUCT) : -ENOENT;
		if (id < 0)
			return -EFAULT;
		vrf_reg_type(reg, PTR_TO_BTF_ID | PTR_TRUSTED);
		reg->btf = v->machine;
		reg->btf_id = (u32)id;
		return 0;
	}
	return -EFAULT;
}

int vrf_push_callback(struct vrf *v, const struct helper_desc *h, const struct vrf_reg *args, u32 subprog, struct map *map)
{
	const struct callback_desc *cb = h->cb;
	struct vrf_func *callee;
	struct vrf_state *st;
	int err;

	if (v->subs[subprog].is_global) {
		vrf_say(v, "unsupported: global function as callback\n");
		return -EINVAL;
	}
	if (v->cur->cur + 1 >= PROG_MAX_FRAMES) {
		vrf_say(v, "the call stack of %u frames is too deep\n", v->cur->cur + 2);
		return -E2BIG;
	}
	v->subs[subprog].is_cb = true;
	st = vrf_push(v, v->subs[subprog].start, v->insn_idx);
	if (!st)
		return -EFAULT;
	callee = vrf_func_new(v, v->insn_idx, st->cur + 1, subprog);
	if (!callee)
		return -ENOMEM;
	st->frame[++st->cur] = callee;
	callee->in_callback = true;
	callee->cb_min = cb->ret_min;
	callee->cb_max = cb->ret_max;
	for (u32 i = 0; i < 5; i++) {
		err = setup_reg(v, cb, i, args, map, &callee->regs[1 + i]);
		if (err) {
			vrf_say(v, "verifier internal error: callback of %s\n", h->name);
			return err;
		}
	}
	vrf_log_all_changed(v);
	st->callback_unroll_depth++;
	st->frame[st->cur - 1]->callback_depth++;
	vrf_cur(v)->callback_depth = 0;
	return 0;
}

static void say_range(struct vrf *v, u32 regno, s32 min, s32 max, const char *where)
{
	const struct vrf_reg *reg = &vrf_regs(v)[regno];
	bool unknown = true;

	vrf_say(v, "%s the register R%u has", where, regno);
	if (reg->range.smin > S64_MIN) {
		vrf_say(v, " smin=%lld", (long long)reg->range.smin);
		unknown = false;
	}
	if (reg->range.smax < S64_MAX) {
		vrf_say(v, " smax=%lld", (long long)reg->range.smax);
		unknown = false;
	}
	vrf_say(v, "%s should have been in [%d, %d]\n", unknown ? " unknown scalar value" : "", min, max);
}

int vrf_ret_in_range(struct vrf *v, u32 regno, s32 min, s32 max, const char *where)
{
	const struct vrf_reg *reg = &vrf_regs(v)[regno];

	if (reg->range.smin >= min && reg->range.smax <= max)
		return 0;
	say_range(v, regno, min, max, where);
	return -EINVAL;
}

/* The body returns: its result has its range, and the call is judged again. */
int vrf_callback_return(struct vrf *v, struct vrf_func *callee)
{
	int err;

	if (callee->regs[0].type != SCALAR_VALUE) {
		vrf_say(v, "R0 not a scalar value\n");
		return -EACCES;
	}
	err = vrf_mark_precise(v, 0);
	return err ? err : vrf_ret_in_range(v, 0, callee->cb_min, callee->cb_max, "At callback return");
}
