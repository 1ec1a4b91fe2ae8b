// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads through pointers to the machine's structures. They may be stale or NULL: engines do them with faults caught
 * (INSN_MEM_PROBE), so what is judged here is what the loaded value may be used for.
 */
#include "verifier/vrf_int.h"

#include <string.h>

#include "btf/walk.h"

/* Fields whose pointer stays valid, within a read section, as long as the structure it was read from does. */
static const struct {
	const char *type, *field;
} rcu_fields[] = {
	{ "task_struct", "cpus_ptr" },
	{ "task_struct", "cgroups" },
	{ "task_struct", "real_parent" },
	{ "task_struct", "group_leader" },
	{ "cgroup", "kn" },
	{ "css_set", "dfl_cgrp" },
	{ "cgroup_subsys_state", "cgroup" },
};

static bool is_rcu_field(const char *type, const char *field)
{
	for (u32 i = 0; field && i < ARRAY_SIZE(rcu_fields); i++)
		if (!strcmp(type, rcu_fields[i].type) && !strcmp(field, rcu_fields[i].field))
			return true;
	return false;
}

static int load_pointer(struct vrf *v, const struct vrf_reg *from, const struct btf_walk *w, struct vrf_reg *dst)
{
	const struct btf *btf = from->btf;
	const char *type = btf_type_name(btf, from->btf_id);
	u32 from_type = from->type, flags = 0;

	/* (dst and from may be one) */
	if (from_type & PTR_UNTRUSTED || w->flags & BTF_WALK_UNTRUSTED)
		flags = PTR_UNTRUSTED;
	else if (from_type & (PTR_TRUSTED | MEM_RCU) || from->ref_id) {
		if (v->prog->sleepable && !v->cur->in_rcu) /* nothing protects what it points to */
			flags = PTR_UNTRUSTED;
		else if (is_rcu_field(type, w->field_name))
			flags = MEM_RCU;
		else if (w->flags & BTF_WALK_RCU)
			flags = MEM_RCU | PTR_MAYBE_NULL;
	}
	if (w->flags & BTF_WALK_USER)
		flags = (flags & PTR_UNTRUSTED) | MEM_USER;
	if (w->flags & BTF_WALK_PERCPU)
		flags = (flags & PTR_UNTRUSTED) | MEM_PERCPU;
	vrf_reg_type(dst, PTR_TO_BTF_ID | flags);
	dst->btf = btf;
	dst->btf_id = w->type_id;
	if (flags & PTR_MAYBE_NULL)
		dst->id = vrf_new_id(v);
	return 0;
}

static int refused(struct vrf *v, const struct vrf_access *a, const char *what, s32 off)
{
	const struct vrf_reg *reg = &vrf_regs(v)[a->regno];

	vrf_say(v, "R%u is ptr_%s %s: off=%d\n", a->regno, btf_type_name(reg->btf, reg->btf_id), what, off);
	return -EACCES;
}

int vrf_btf_access(struct vrf *v, const struct vrf_access *a)
{
	struct vrf_reg *reg = &vrf_regs(v)[a->regno];
	struct btf_log log = { 1, v->log_level ? v->log : NULL, 0 };
	s32 off = reg->off + a->off;
	struct vrf_reg *dst;
	struct btf_walk w;
	char tn[64];
	int err;

	if (!v->prog->gpl_compatible) {
		vrf_say(v, "Cannot access kernel 'struct %s' from non-GPL compatible program\n",
			btf_type_name(reg->btf, reg->btf_id));
		return -EINVAL;
	}
	if (off < 0)
		return refused(v, a, "invalid negative access", off);
	if (!vrf_tnum_is_const(reg->range.var) || reg->range.var.value) {
		vrf_tnum_str(tn, sizeof(tn), reg->range.var);
		vrf_say(v, "R%u is ptr_%s invalid variable offset: off=%d, var_off=%s\n", a->regno,
			btf_type_name(reg->btf, reg->btf_id), off, tn);
		return -EACCES;
	}
	if (reg->type & MEM_USER)
		return refused(v, a, "access user memory", off);
	if (reg->type & MEM_PERCPU)
		return refused(v, a, "access percpu memory", off);
	if (a->write) {
		vrf_say(v, "only read is supported\n");
		return -EACCES;
	}
	err = btf_struct_access(&log, reg->btf, reg->btf_id, (u32)off, a->size, &w);
	if (err < 0)
		return err;
	if (a->value_regno < 0)
		return 0;
	dst = &vrf_regs(v)[a->value_regno];
	if (w.kind == BTF_WALK_SCALAR || a->sign_extend) {
		vrf_reg_unknown(dst);
		return 0;
	}
	if (w.kind == BTF_WALK_PTR_UNTRUSTED) {
		vrf_reg_type(dst, PTR_TO_MEM | MEM_RDONLY | PTR_UNTRUSTED);
		return 0;
	}
	return load_pointer(v, reg, &w, dst);
}
