// SPDX-License-Identifier: BSD-2-Clause
/* Calls of kernel functions: allowed here, fed by their prototype, what they do to the state, and what comes back. */
#include "verifier/vrf_int.h"

#include "btf/btf.h"

static int not_allowed(struct vrf *v, const struct vrf_kfunc *k)
{
	const struct kfunc_desc *desc = kfunc_by_name(k->name);
	u32 groups = desc ? kfunc_groups(desc) : 0;

	if (desc && (groups == KFUNCS_COMMON || groups & v->prog->ops->kfunc_groups))
		vrf_say(v, "unsupported: kernel function %s has another prototype on this machine than inlay's\n", k->name);
	else if (!desc && btf_has_decl_tag(v->machine, k->id, -1, "bpf_kfunc"))
		vrf_say(v, "unsupported: inlay has no kernel function %s, or this program type may not call it\n", k->name);
	else
		vrf_say(v, "calling kernel function %s is not allowed\n", k->name);
	return -EACCES;
}

/* ---- sections ---- */

static void rcu_ended(struct vrf_reg *reg, void *ctx)
{
	if (reg->type & MEM_RCU)
		reg->type = (reg->type & ~(u32)(MEM_RCU | PTR_MAYBE_NULL)) | PTR_UNTRUSTED;
}

static int rcu_section(struct vrf *v, const struct vrf_kfunc *k)
{
	struct vrf_state *st = v->cur;
	bool lock = k->desc->flags & KFUNC_RCU_LOCK, unlock = k->desc->flags & KFUNC_RCU_UNLOCK;

	if (lock && st->in_rcu) {
		vrf_say(v, "nested rcu read lock (kernel function %s)\n", k->name);
		return -EINVAL;
	}
	if (unlock && !st->in_rcu) {
		vrf_say(v, "unmatched rcu read unlock (kernel function %s)\n", k->name);
		return -EINVAL;
	}
	if (unlock)
		vrf_for_each_reg(st, rcu_ended, NULL);
	if (lock || unlock)
		st->in_rcu = lock;
	return 0;
}

static int preempt_section(struct vrf *v, const struct vrf_kfunc *k)
{
	struct vrf_state *st = v->cur;

	if (k->desc->flags & KFUNC_PREEMPT_OFF)
		st->preempt_offs++;
	if (!(k->desc->flags & KFUNC_PREEMPT_ON))
		return 0;
	if (!st->preempt_offs) {
		vrf_say(v, "unmatched attempt to enable preemption (kernel function %s)\n", k->name);
		return -EINVAL;
	}
	st->preempt_offs--;
	return 0;
}

static int sections(struct vrf *v, const struct vrf_kfunc *k)
{
	int err = rcu_section(v, k);

	if (!err)
		err = preempt_section(v, k);
	if (!err && k->desc->flags & KFUNC_SLEEPABLE && vrf_no_sleep(v)) {
		vrf_say(v, "kernel func %s is sleepable within %s\n", k->name, vrf_no_sleep(v));
		return -EACCES;
	}
	return err;
}

/* ---- results ---- */

/* r0 is r1, read with faults caught, as the type of which the program named the id; 0: memory of any size. */
static int cast(struct vrf *v, const struct vrf_kfunc *k, const struct vrf_kfunc_meta *m, struct vrf_reg *r0)
{
	const struct btf_type *t = m->constant <= U32_MAX ? btf_type_by_id(v->machine, (u32)m->constant) : NULL;

	if (!t) {
		vrf_say(v, "Unknown type ID %lld passed to kfunc %s\n", (long long)m->constant, k->name);
		return -EINVAL;
	}
	if (btf_kind(t) == BTF_KIND_UNKN) {
		vrf_reg_type(r0, PTR_TO_MEM | MEM_RDONLY | PTR_UNTRUSTED);
	} else if (btf_is_struct_or_union(t)) {
		vrf_reg_type(r0, PTR_TO_BTF_ID | PTR_UNTRUSTED);
		r0->btf = v->machine;
		r0->btf_id = (u32)m->constant;
	} else {
		vrf_say(v, "kfunc %s type ID argument must be of a struct or void\n", k->name);
		return -EINVAL;
	}
	return 0;
}

static int pointer(struct vrf *v, const struct vrf_kfunc *k, const struct btf_type *t, struct vrf_reg *r0)
{
	const struct btf_type *to;
	u32 id, to_id;
	int err;

	to = btf_type_skip_modifiers(v->machine, t->type, &to_id);
	if (btf_kind(to) != BTF_KIND_STRUCT) {
		vrf_say(v, "kernel function %s returns pointer type %s %s is not supported\n", k->name,
			btf_kind_name(btf_kind(to)), btf_type_name(v->machine, to_id));
		return -EINVAL;
	}
	vrf_reg_type(r0, PTR_TO_BTF_ID);
	r0->btf = v->machine;
	r0->btf_id = to_id;
	if (k->desc->flags & KFUNC_RET_NULL) {
		r0->type |= PTR_MAYBE_NULL;
		r0->id = vrf_new_id(v);
	}
	if (!(k->desc->flags & KFUNC_ACQUIRE))
		return 0;
	err = vrf_ref_acquire(v, v->insn_idx, &id);
	if (err)
		return err;
	r0->ref_id = id;
	if (k->desc->flags & KFUNC_RET_NULL)
		r0->id = id;
	return 0;
}

static int result(struct vrf *v, const struct vrf_kfunc *k, const struct vrf_kfunc_meta *m)
{
	const struct btf_type *t = btf_type_skip_modifiers(v->machine, k->proto->type, NULL);
	struct vrf_reg *r0 = &vrf_regs(v)[0];

	if (k->desc->flags & KFUNC_CAST)
		return cast(v, k, m, r0);
	if (btf_kind(t) == BTF_KIND_PTR)
		return pointer(v, k, t, r0);
	if (btf_kind(t) != BTF_KIND_UNKN)
		vrf_reg_unknown(r0);
	return 0;
}

/* The path ends here; the default of a program without a callback is to return the cookie. */
static int throw(struct vrf *v)
{
	int err = v->exception_cb ? 0 : vrf_check_result(v, 1);

	if (err)
		return err;
	v->throws = true;
	err = vrf_resources_at(v, true, "bpf_throw");
	return err ? err : 1;
}

int vrf_call_kfunc(struct vrf *v, const struct bpf_insn *insn)
{
	const struct vrf_kfunc *k = vrf_kfunc_at(v, v->insn_idx);
	struct vrf_kfunc_meta m = { 0 };
	int err;

	if (!k) /* id 0: refused when all is walked */
		return 0;
	if (!k->desc)
		return not_allowed(v, k);
	if (k->desc->flags & KFUNC_SLEEPABLE && !v->prog->sleepable) {
		vrf_say(v, "program must be sleepable to call sleepable kfunc %s\n", k->name);
		return -EACCES;
	}
	err = vrf_kfunc_args(v, k, &m);
	if (!err)
		err = sections(v, k);
	if (!err && m.release_regno)
		err = vrf_ref_release(v, m.ref_id);
	if (err)
		return err;
	if (k->desc->flags & KFUNC_THROWS)
		return throw(v);
	for (u32 i = 0; i < CALLER_SAVED; i++)
		vrf_reg_not_init(&vrf_regs(v)[i]);
	v->scratched_regs |= (1u << CALLER_SAVED) - 1;
	return result(v, k, &m);
}
