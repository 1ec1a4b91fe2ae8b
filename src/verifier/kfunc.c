// SPDX-License-Identifier: BSD-2-Clause
/*
 * Kernel functions a program names: found in the machine's BTF by number, and by their name among those inlay has. Which may
 * be called is only asked where a path comes to the call.
 */
#include "verifier/vrf_int.h"

#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"
#include "object/instance.h"

#define MAX_KFUNCS 256

static const struct vrf_kfunc *find(const struct vrf *v, u32 id)
{
	for (u32 i = 0; i < v->nr_kfuncs; i++)
		if (v->kfuncs[i].id == id)
			return &v->kfuncs[i];
	return NULL;
}

const struct vrf_kfunc *vrf_kfunc_at(const struct vrf *v, u32 idx)
{
	const struct bpf_insn *insn = &v->insns[idx];

	if (insn->code != (BPF_JMP | BPF_CALL) || insn->src_reg != BPF_PSEUDO_KFUNC_CALL)
		return NULL;
	return find(v, (u32)insn->imm);
}

const struct kfunc_desc *vrf_kfunc_desc(const struct vrf *v, u32 idx)
{
	const struct vrf_kfunc *k = vrf_kfunc_at(v, idx);

	return k ? k->desc : NULL;
}

/* "v", "i", "p", "p:NAME" */
static bool type_fits(const struct btf *btf, u32 type, const char *word, size_t len)
{
	const struct btf_type *t = btf_type_skip_modifiers(btf, type, NULL);
	u32 id;

	if (!t)
		return false;
	if (word[0] == 'v')
		return btf_kind(t) == BTF_KIND_UNKN;
	if (word[0] == 'i')
		return btf_kind(t) == BTF_KIND_INT || btf_is_enum_any(t);
	if (btf_kind(t) != BTF_KIND_PTR)
		return false;
	if (len == 1)
		return true;
	t = btf_type_skip_modifiers(btf, t->type, &id);
	return t && btf_kind(t) == BTF_KIND_STRUCT && strlen(btf_type_name(btf, id)) == len - 2 &&
	       !strncmp(btf_type_name(btf, id), word + 2, len - 2);
}

/* What the body takes and returns is what this machine's BTF says it does. */
static bool proto_fits(const struct btf *btf, const struct btf_type *proto, const char *want)
{
	u32 n = 0, nr = btf_vlen(proto);

	for (const char *p = want; *p; p += p[strcspn(p, " ")] ? strcspn(p, " ") + 1 : strlen(p), n++)
		if (n > nr || !type_fits(btf, n ? btf_params(proto)[n - 1].type : proto->type, p, strcspn(p, " ")))
			return false;
	return n == nr + 1;
}

static const struct kfunc_desc *usable(const struct vrf *v, const struct vrf_kfunc *k)
{
	const struct kfunc_desc *desc = kfunc_by_name(k->name);
	u32 groups = desc ? kfunc_groups(desc) : 0;

	if (!desc || (groups != KFUNCS_COMMON && !(groups & v->prog->ops->kfunc_groups)))
		return NULL;
	return proto_fits(v->machine, k->proto, desc->proto) ? desc : NULL;
}

/* Functions of kernel modules: there are no modules here, but descriptors are judged as Linux does. */
static int of_module(struct vrf *v, s16 index)
{
	struct inlay *inlay = v->prog->obj.inlay;
	struct obj *obj;
	int err;

	if (index < 0) {
		vrf_say(v, "negative offset disallowed for kernel module function call\n");
		return -EINVAL;
	}
	if (!v->opts->fd_array) {
		vrf_say(v, "kfunc offset > 0 without fd_array is invalid\n");
		return -EPROTO;
	}
	if ((u32)index >= v->opts->fd_array_cnt)
		return -EFAULT;
	err = inlay->fds->get(inlay, v->opts->fd_array[index], &obj);
	if (!err) {
		err = obj->kind == OBJ_BTF ? 0 : -EINVAL;
		obj_put(obj);
	}
	if (err) {
		vrf_say(v, "invalid module BTF fd specified\n");
		return err;
	}
	vrf_say(v, "BTF fd for kfunc is not a module BTF\n");
	return -EINVAL;
}

static int describe(struct vrf *v, u32 id, struct vrf_kfunc *k)
{
	const struct btf_type *t = btf_type_by_id(v->machine, id);

	if (!t || btf_kind(t) != BTF_KIND_FUNC) {
		vrf_say(v, "kernel btf_id %u is not a function\n", id);
		return -EINVAL;
	}
	k->id = id;
	k->name = btf_type_name(v->machine, id);
	k->proto = btf_func_proto(v->machine, id);
	if (!k->proto) {
		vrf_say(v, "kernel function btf_id %u does not have a valid func_proto\n", id);
		return -EINVAL;
	}
	k->desc = usable(v, k);
	return 0;
}

int vrf_add_kfunc(struct vrf *v, u32 idx)
{
	const struct bpf_insn *insn = &v->insns[idx];
	u32 id = (u32)insn->imm;
	const struct vrf_kfunc *k;
	int err;

	if (!v->prog->gpl_compatible) {
		vrf_say(v, "cannot call kernel function from non-GPL compatible program\n");
		return -EINVAL;
	}
	v->calls_kfuncs = true;
	if (!id && !insn->off) /* refused if it is still there when dead code is gone */
		return 0;
	if (insn->off) {
		err = of_module(v, insn->off);
		vrf_say(v, "failed to find BTF for kernel function\n");
		return err;
	}
	k = find(v, id);
	if (!k) {
		if (!v->kfuncs)
			v->kfuncs = calloc(MAX_KFUNCS, sizeof(*v->kfuncs));
		if (!v->kfuncs)
			return -ENOMEM;
		if (v->nr_kfuncs == MAX_KFUNCS) {
			vrf_say(v, "too many different kernel function calls\n");
			return -E2BIG;
		}
		err = describe(v, id, &v->kfuncs[v->nr_kfuncs]);
		if (err)
			return err;
		k = &v->kfuncs[v->nr_kfuncs++];
	}
	v->facts[idx].kfunc = k->desc;
	v->facts[idx].fn = k->desc ? k->desc->fn : NULL;
	return 0;
}
