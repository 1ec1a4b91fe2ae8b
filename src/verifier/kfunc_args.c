// SPDX-License-Identifier: BSD-2-Clause
/*
 * Arguments of kernel functions against their prototype in BTF, by Linux's conventions: how a parameter's name ends says
 * what its type cannot.
 *
 *	__ign	not looked at; not even whether it was ever set
 *	__k	a constant, whose value tells the rest of the call something
 *	__sz	the size of the memory in the argument before
 */
#include "verifier/vrf_int.h"

#include <string.h>

#include "btf/btf.h"
#include "btf/walk.h"

struct karg {
	const struct vrf_kfunc *k;
	u32 i, regno;
	const struct btf_type *to; /* what the pointer's type points to */
	u32 to_id;
};

static bool ends_in(const struct btf *btf, const struct btf_param *p, const char *suffix)
{
	const char *name = btf_name_by_offset(btf, p->name_off);
	size_t len = name ? strlen(name) : 0, n = strlen(suffix);

	return len > n && !strcmp(name + len - n, suffix);
}

static bool is_number(const struct btf_type *t)
{
	return btf_kind(t) == BTF_KIND_INT || btf_is_enum_any(t);
}

static int number(struct vrf *v, const struct karg *a, struct vrf_kfunc_meta *m)
{
	const struct vrf_reg *reg = &vrf_regs(v)[a->regno];

	if (reg->type != SCALAR_VALUE) {
		vrf_say(v, "R%u is not a scalar\n", a->regno);
		return -EINVAL;
	}
	if (!ends_in(v->machine, &btf_params(a->k->proto)[a->i], "__k"))
		return 0;
	if (!vrf_reg_is_const(reg)) {
		vrf_say(v, "R%u must be a known constant\n", a->regno);
		return -EINVAL;
	}
	m->has_const = true;
	m->constant = reg->range.var.value;
	return vrf_mark_precise(v, a->regno);
}

/* The next argument is the size of what this one points to. */
static bool has_size(const struct vrf *v, const struct karg *a)
{
	return a->i + 1 < btf_vlen(a->k->proto) && vrf_regs(v)[a->regno + 1].type == SCALAR_VALUE &&
	       ends_in(v->machine, &btf_params(a->k->proto)[a->i + 1], "__sz");
}

static int sized_memory(struct vrf *v, const struct karg *a)
{
	struct vrf_call_meta m = { .release_regno = -1, .subprog = -1, .raw_regno = -1 };
	int err = vrf_size_arg(v, a->regno + 1, true, false, &m);

	if (!err)
		err = vrf_size_arg(v, a->regno + 1, true, true, &m);
	if (err)
		vrf_say(v, "arg#%u arg#%u memory, len pair leads to invalid memory access\n", a->i, a->i + 1);
	return err;
}

static bool is_trusted(const struct vrf_reg *reg)
{
	const u32 good = PTR_TRUSTED | MEM_ALLOC;

	return reg->ref_id || (type_flags(reg->type) & good && !(type_flags(reg->type) & ~good));
}

static int object(struct vrf *v, const struct karg *a)
{
	const struct vrf_reg *reg = &vrf_regs(v)[a->regno];
	u32 flags = a->k->desc->flags;
	bool rcu = flags & KFUNC_RCU_ARGS, release = flags & KFUNC_RELEASE;
	int err;

	if ((rcu || flags & (KFUNC_TRUSTED_ARGS | KFUNC_RELEASE)) && !is_trusted(reg)) {
		if (!rcu) {
			vrf_say(v, "R%u must be referenced or trusted\n", a->regno);
			return -EINVAL;
		}
		if (!(reg->type & MEM_RCU)) {
			vrf_say(v, "R%u must be a rcu pointer\n", a->regno);
			return -EINVAL;
		}
	}
	err = vrf_arg_off(v, a->regno, ARG_PTR_TO_BTF_ID | (release && reg->ref_id ? OBJ_RELEASE : 0));
	if (err)
		return err;
	if (btf_struct_ids_match(reg->btf, reg->btf_id, (u32)reg->off, v->machine, a->to_id, release && reg->ref_id))
		return 0;
	vrf_say(v, "kernel function %s args#%u expected pointer to %s %s but R%u has a pointer to %s %s\n", a->k->name, a->i,
		btf_kind_name(btf_kind(a->to)), btf_type_name(v->machine, a->to_id), a->regno,
		btf_kind_name(btf_kind(btf_type_by_id(reg->btf, reg->btf_id))), btf_type_name(reg->btf, reg->btf_id));
	return -EINVAL;
}

static int pointer(struct vrf *v, const struct karg *a, struct vrf_kfunc_meta *m)
{
	const struct vrf_reg *reg = &vrf_regs(v)[a->regno];
	const char *to_name = btf_type_name(v->machine, a->to_id);
	bool sized = has_size(v, a), is_void = btf_kind(a->to) == BTF_KIND_UNKN;
	u32 flags = a->k->desc->flags;
	int err;

	if (flags & (KFUNC_TRUSTED_ARGS | KFUNC_RCU_ARGS | KFUNC_RELEASE) &&
	    (vrf_reg_is_null(reg) || vrf_may_be_null(reg->type))) {
		vrf_say(v, "Possibly NULL pointer passed to trusted arg%u\n", a->i);
		return -EACCES;
	}
	if (reg->ref_id) {
		m->ref_id = reg->ref_id;
		if (flags & KFUNC_RELEASE)
			m->release_regno = (s32)a->regno;
	}
	if (type_base(reg->type) == PTR_TO_BTF_ID) {
		if (btf_kind(a->to) == BTF_KIND_STRUCT)
			return object(v, a);
		vrf_say(v, "kernel function %s args#%u pointer type %s %s is not supported\n", a->k->name, a->i,
			btf_kind_name(btf_kind(a->to)), to_name);
		return -EINVAL;
	}
	/* (no function inlay has takes a pointer to a plain number, or to a structure of such) */
	if (!sized || !is_void) {
		vrf_say(v, "arg#%u pointer type %s %s must point to %sscalar, or struct with scalar\n", a->i,
			btf_kind_name(btf_kind(a->to)), to_name, sized ? "void, " : "");
		return -EINVAL;
	}
	err = vrf_arg_off(v, a->regno, ARG_PTR_TO_MEM);
	return err ? err : sized_memory(v, a);
}

int vrf_kfunc_args(struct vrf *v, const struct vrf_kfunc *k, struct vrf_kfunc_meta *m)
{
	u32 nr = btf_vlen(k->proto);
	int err;

	for (u32 i = 0; i < nr; i++) {
		const struct btf_param *p = &btf_params(k->proto)[i];
		const struct btf_type *t = btf_type_skip_modifiers(v->machine, p->type, NULL);
		struct karg a = { .k = k, .i = i, .regno = i + 1 };

		v->scratched_regs |= 1u << a.regno;
		if (ends_in(v->machine, p, "__ign"))
			continue;
		if (is_number(t)) {
			err = number(v, &a, m);
		} else {
			a.to = btf_type_skip_modifiers(v->machine, t->type, &a.to_id);
			err = pointer(v, &a, m);
			i += !err && type_base(vrf_regs(v)[a.regno].type) != PTR_TO_BTF_ID; /* its size is judged with it */
		}
		if (err)
			return err;
	}
	if (k->desc->flags & KFUNC_RELEASE && !m->release_regno) {
		vrf_say(v, "release kernel function %s expects refcounted PTR_TO_BTF_ID\n", k->name);
		return -EINVAL;
	}
	return 0;
}
