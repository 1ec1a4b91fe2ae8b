// SPDX-License-Identifier: BSD-2-Clause
/*
 * Exceptions. A throw ends the program: its frames go, and the function the program names by a tag on itself,
 * "exception_callback:NAME", is given the cookie and returns in its place; without one the cookie is what is returned.
 */
#include "verifier/vrf_int.h"

#include "btf/btf.h"

#define TAG "exception_callback:"

/* Where the function of that type begins, by the program's own tables. */
static int callback_start(struct vrf *v, const char *name, u32 *ret_start)
{
	const struct prog *p = v->prog;
	s32 id = btf_find_by_name_kind(p->btf, name, BTF_KIND_FUNC);
	u32 i;

	if (id < 0) {
		vrf_say(v, "exception callback '%s' could not be found in BTF\n", name);
		return id;
	}
	if (btf_vlen(btf_type_by_id(p->btf, (u32)id)) != BTF_FUNC_GLOBAL) {
		vrf_say(v, "exception callback '%s' must have global linkage\n", name);
		return -EINVAL;
	}
	for (i = 0; i < p->nr_func_info && p->func_info[i].type_id != (u32)id; i++)
		;
	if (i == p->nr_func_info) {
		vrf_say(v, "exception callback type id not found in func_info\n");
		return -EINVAL;
	}
	*ret_start = p->func_info[i].insn_off;
	if (!*ret_start) {
		vrf_say(v, "invalid exception callback insn_off in func_info: 0\n");
		return -EINVAL;
	}
	return 0;
}

int vrf_find_exception_cb(struct vrf *v)
{
	const struct prog *p = v->prog;
	const char *name;
	u32 start;
	int err;

	if (!p->btf || !p->nr_func_info)
		return 0;
	err = btf_find_tag(p->btf, p->func_info[0].type_id, -1, TAG, &name);
	if (err == -EEXIST)
		vrf_say(v, "multiple exception callback tags for main subprog\n");
	if (err)
		return err == -ENOENT ? 0 : err;
	err = callback_start(v, name, &start);
	if (!err)
		err = vrf_add_sub(v, start);
	if (err)
		return err;
	v->exception_cb = (u32)vrf_find_sub(v, start);
	v->subs[v->exception_cb].is_exception_cb = true;
	v->subs[v->exception_cb].is_cb = true;
	v->subs[v->exception_cb].called = true;
	return 0;
}

static int callee_of(const struct vrf *v, u32 i)
{
	if (v->aux[i].op != ISA_CALL_SUBPROG)
		return -1;
	return vrf_find_sub(v, (u32)((s64)i + 1 + v->insns[i].imm));
}

static void own_effects(const struct vrf *v, struct vrf_sub *sub)
{
	for (u32 i = sub->start; i < sub->end; i++) {
		const struct kfunc_desc *k = vrf_kfunc_desc(v, i);
		const struct helper_desc *h =
			v->aux[i].op == ISA_CALL_HELPER ? helper_by_id((u32)v->insns[i].imm) : NULL;

		sub->may_sleep |= (k && k->flags & KFUNC_SLEEPABLE) || (h && h->flags & HELPER_MAY_SLEEP);
		sub->may_throw |= k && k->flags & KFUNC_THROWS;
	}
}

void vrf_merge_effects(struct vrf *v)
{
	bool more = v->nr_subs > 1; /* only who calls a function asks */

	for (u32 s = 0; more && s < v->nr_subs; s++)
		own_effects(v, &v->subs[s]);
	while (more) {
		more = false;
		for (u32 s = 0; s < v->nr_subs; s++)
			for (u32 i = v->subs[s].start; i < v->subs[s].end; i++) {
				struct vrf_sub *sub = &v->subs[s];
				int callee = callee_of(v, i);

				if (callee < 0 || (sub->may_sleep >= v->subs[callee].may_sleep &&
						   sub->may_throw >= v->subs[callee].may_throw))
					continue;
				sub->may_sleep |= v->subs[callee].may_sleep;
				sub->may_throw |= v->subs[callee].may_throw;
				more = true;
			}
	}
}

/* Whoever calls a callback has frames and plans of its own: no throw may pass it by. */
static int check_chain(struct vrf *v, u32 s, bool in_cb, u32 depth, u8 *done)
{
	const struct vrf_sub *sub = &v->subs[s];
	int err = 0;

	in_cb |= sub->is_cb;
	if (depth > PROG_MAX_FRAMES || done[s] & (1 << in_cb))
		return 0;
	done[s] |= (u8)(1 << in_cb);
	for (u32 i = sub->start; !err && i < sub->end; i++) {
		const struct kfunc_desc *k = vrf_kfunc_desc(v, i);
		int callee = callee_of(v, i);

		if (k && k->flags & KFUNC_THROWS && in_cb) {
			vrf_say(v, "bpf_throw kfunc (insn %u) cannot be called from callback subprog %u\n", i, s);
			return -EINVAL;
		}
		if (callee >= 0 && v->subs[callee].is_exception_cb) {
			vrf_say(v, "insn %u cannot call exception cb directly", i); /* as Linux ends it */
			return -EINVAL;
		}
		if (v->aux[i].op == ISA_LD_FUNC)
			callee = vrf_find_sub(v, (u32)((s64)i + 1 + v->insns[i].imm));
		if (callee >= 0)
			err = check_chain(v, (u32)callee, in_cb, depth + 1, done);
	}
	return err;
}

int vrf_check_throws(struct vrf *v)
{
	u8 done[VRF_MAX_SUBPROGS + 1] = { 0 };
	int err = 0;

	if (!v->calls_kfuncs && !v->exception_cb)
		return 0;
	/* an id of 0 stands for no function: fine as long as no path comes to it */
	for (u32 i = 0; i < v->nr; i++)
		if (v->aux[i].op == ISA_CALL_KFUNC && !v->insns[i].imm && v->facts[i].seen) {
			vrf_say(v, "invalid kernel function call not eliminated in verifier pass\n");
			return -EINVAL;
		}
	for (u32 s = v->nr_subs; !err && s-- > 0;)
		if (!s || v->subs[s].is_exception_cb)
			err = check_chain(v, s, false, 0, done);
	return err;
}
