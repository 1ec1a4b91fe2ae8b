// SPDX-License-Identifier: BSD-2-Clause
/* Calls of helpers: allowed here, fed with what the descriptor wants, and what comes back. */
#include "verifier/vrf_int.h"

#include "btf/btf.h"
#include "env/env.h"
#include "object/instance.h"

#define MAX_ERRNO 4095

static int allowed(struct vrf *v, u32 id, const struct helper_desc **ret_h)
{
	const struct helper_desc *h;

	if (!helper_id_known(id)) {
		vrf_say(v, "invalid func %s#%d\n", helper_name(id), (s32)id);
		return -EINVAL;
	}
	h = prog_helper(v->prog, id);
	if (!h) {
		vrf_say(v, helper_by_id(id) ? "program of this type cannot use helper %s#%u\n" :
					      "unsupported: inlay has no helper %s#%u, or this program type may not call it\n",
			helper_name(id), id);
		return -EINVAL;
	}
	if (h->flags & HELPER_GPL && !v->prog->gpl_compatible) {
		vrf_say(v, "cannot call GPL-restricted function from non-GPL compatible program\n");
		return -EINVAL;
	}
	if (h->flags & HELPER_MAY_SLEEP && !v->prog->sleepable) {
		vrf_say(v, "helper call might sleep in a non-sleepable prog\n");
		return -EINVAL;
	}
	if (h->flags & HELPER_MAY_SLEEP && vrf_no_sleep(v)) {
		vrf_say(v, "sleepable helper %s#%u in %s\n", h->name, h->id, vrf_no_sleep(v));
		return -EINVAL;
	}
	*ret_h = h;
	return 0;
}

/* Some helpers want certain maps, some maps want certain helpers; either side may say. */
static int map_fits(struct vrf *v, const struct helper_desc *h, const struct map *map)
{
	const u32 *id = map->ops->helpers;

	if (h->map_types && (map->type > 63 || !(h->map_types >> map->type & 1)))
		goto refuse;
	if (h->flags & HELPER_SYNC_CALLBACK && !map->ops->for_each) {
		vrf_say(v, "callback function not allowed for map\n");
		return -LINUX_ENOTSUPP;
	}
	if (!id) { /* then it is an ordinary one, that takes the ordinary operations */
		if (!map->ops->lookup || !map->ops->update || !map->ops->remove)
			goto refuse;
		return 0;
	}
	while (*id && *id != h->id)
		id++;
	if (*id)
		return 0;
refuse:
	vrf_say(v, "cannot pass map_type %u into func %s#%u\n", map->type, h->name, h->id);
	return -EINVAL;
}

/* Behind a descriptor, or only the shape of some map found in a map of maps? */
static bool is_shape(const struct vrf *v, const struct map *map)
{
	for (u32 i = 0; i < v->nr_maps; i++)
		if (v->maps[i] == map)
			return false;
	return true;
}

static int note_map(struct vrf *v, const struct helper_desc *h, struct map *map)
{
	struct insn_fact *fact = &v->facts[v->insn_idx];
	int err;

	if (!map)
		return 0;
	err = map_fits(v, h, map);
	if (err)
		return err;
	if (h->flags & HELPER_WRITES_MAP && map->map_flags & BPF_F_RDONLY_PROG) {
		vrf_say(v, "write into map forbidden\n");
		return -EACCES;
	}
	if (!fact->map && !fact->map_poisoned) {
		fact->map = map;
		fact->inner_map = is_shape(v, map);
	} else if (fact->map != map) {
		fact->map = NULL;
		fact->map_poisoned = 1;
		fact->inner_map = 0;
	}
	return 0;
}

/* The index is compared exactly where it is one the map has: engines may rely on it. */
static int tail_call(struct vrf *v, const struct helper_desc *h, const struct vrf_call_meta *m)
{
	const struct vrf_reg *index = &vrf_regs(v)[3];

	if (!m->map || m->map->type > 63 || !(h->map_types >> m->map->type & 1)) {
		vrf_say(v, "expected prog array map for tail call"); /* as Linux ends it */
		return -EINVAL;
	}
	if (vrf_reg_is_const(index) && index->range.var.value < m->map->max_entries)
		return vrf_mark_precise(v, 3);
	return 0;
}

/* From a function: it goes on behind the call if that failed; else its caller gets whatever the other program returns. */
static int tail_call_returns(struct vrf *v)
{
	int err;

	v->scratched_regs |= 1;
	if (!vrf_push(v, v->insn_idx + 1, v->insn_idx))
		return -ENOMEM;
	vrf_reg_unknown(&vrf_regs(v)[0]);
	err = vrf_exit(v);
	v->insn_idx--; /* one is added for the call */
	return err;
}

/* The owner is there on every path that comes here. */
static void note_owner(struct vrf *v, struct insn_fact *fact)
{
	const struct vrf_reg *owner = &vrf_regs(v)[2];
	bool valid = owner->type == (PTR_TO_BTF_ID | PTR_TRUSTED) && !owner->off;

	fact->storage_atomic |= !v->prog->sleepable || vrf_no_sleep(v);
	fact->owner_valid = valid && (!fact->helper || fact->owner_valid);
}

static int run_callback(struct vrf *v, const struct helper_desc *h, const struct vrf_call_meta *m)
{
	const struct callback_desc *cb = h->cb;
	u32 count_reg = cb->calls_arg;
	int err;

	if (m->subprog < 0) {
		vrf_say(v, "verifier internal error: %s got no function\n", h->name);
		return -EFAULT;
	}
	if (count_reg) {
		/* how often the body was followed is compared with it: it decides when that ends */
		err = vrf_mark_precise(v, count_reg);
		if (err)
			return err;
		if (vrf_cur(v)->callback_depth >= vrf_regs(v)[count_reg].range.umax) {
			vrf_cur(v)->callback_depth = 0;
			if (v->log_level & 2)
				vrf_say(v, "frame%u bpf_loop iteration limit reached\n", v->cur->cur);
			return 0;
		}
	}
	return vrf_push_callback(v, h, vrf_regs(v), (u32)m->subprog, m->map);
}

static int pointer_result(struct vrf *v, const struct helper_desc *h, const struct vrf_call_meta *m, struct vrf_reg *r0)
{
	u32 flags = type_flags(h->ret) & (PTR_MAYBE_NULL | MEM_RDONLY | MEM_RINGBUF | PTR_TRUSTED | PTR_UNTRUSTED | MEM_RCU |
					  MEM_PERCPU);
	s32 id;

	switch (type_base(h->ret)) {
	case RET_PTR_TO_MAP_VALUE:
		if (!m->map) {
			vrf_say(v, "kernel subsystem misconfigured verifier\n");
			return -EFAULT;
		}
		/* map and key are all it takes: an element that always exists is never NULL */
		if (m->const_key && m->map->ops->flags & MAP_INDEXED && m->key < m->map->max_entries &&
		    h->arg[2] == ARG_DONTCARE)
			flags &= ~(u32)PTR_MAYBE_NULL;
		vrf_reg_type(r0, PTR_TO_MAP_VALUE | flags);
		r0->map = m->map;
		return 0;
	case RET_PTR_TO_MEM:
		vrf_reg_type(r0, PTR_TO_MEM | flags);
		r0->mem_size = h->ret_size ? h->ret_size : m->mem_size;
		return 0;
	case RET_PTR_TO_BTF_ID:
		id = h->ret_btf ? btf_find_by_name_kind(v->machine, h->ret_btf, BTF_KIND_STRUCT) : -ENOENT;
		if (id < 0) {
			vrf_say(v, "invalid return type %u of func %s#%u\n", type_base(h->ret), h->name, h->id);
			return -EINVAL;
		}
		vrf_reg_type(r0, PTR_TO_BTF_ID | flags);
		r0->btf = v->machine;
		r0->btf_id = (u32)id;
		return 0;
	}
	vrf_say(v, "unknown return type %u of func %s#%u\n", type_base(h->ret), h->name, h->id);
	return -EINVAL;
}

static void narrow_result(struct vrf *v, const struct helper_desc *h, const struct vrf_call_meta *m, struct vrf_reg *r0)
{
	struct vrf_range *r = &r0->range;

	if (h->flags & HELPER_RET_SIZE && m->size_max <= S32_MAX) {
		r->smax = (s64)m->size_max;
		r->smax32 = (s32)m->size_max;
		r->smin = -MAX_ERRNO;
		r->smin32 = -MAX_ERRNO;
	} else if (h->flags & HELPER_RET_CPU) {
		u32 last = env_nr_cpus(v->prog->obj.inlay->env) - 1;

		r->umax = r->umax32 = last;
		r->smax = r->smax32 = (s32)last;
		r->smin = r->smin32 = 0;
	} else {
		return;
	}
	vrf_range_sync(r);
}

static int result(struct vrf *v, const struct helper_desc *h, const struct vrf_call_meta *m)
{
	struct vrf_reg *r0 = &vrf_regs(v)[0];
	int err;
	u32 id;

	v->scratched_regs |= 1;
	if (type_base(h->ret) == RET_VOID) {
		vrf_reg_not_init(r0);
		return 0;
	}
	if (type_base(h->ret) == RET_INTEGER) {
		vrf_reg_unknown(r0);
		narrow_result(v, h, m, r0);
		return 0;
	}
	err = pointer_result(v, h, m, r0);
	if (err)
		return err;
	if (vrf_may_be_null(r0->type))
		r0->id = vrf_new_id(v);
	if (h->flags & HELPER_ACQUIRES) {
		err = vrf_ref_acquire(v, v->insn_idx, &id);
		r0->id = r0->ref_id = id;
	}
	return err;
}

static int release(struct vrf *v, const struct helper_desc *h, const struct vrf_call_meta *m)
{
	int err = 0;

	if (m->release_regno < 0)
		return 0;
	if (m->ref_id)
		err = vrf_ref_release(v, m->ref_id);
	else if (!vrf_reg_is_null(&vrf_regs(v)[m->release_regno]))
		err = -EINVAL;
	if (err)
		vrf_say(v, "func %s#%u reference has not been acquired before\n", h->name, h->id);
	return err;
}

static int check_text(struct vrf *v, const struct helper_desc *h, const struct vrf_call_meta *m)
{
	int err;

	if (!m->str || !h->check_str)
		return 0;
	err = h->check_str(m->str, m->size_known ? m->size_max : U64_MAX);
	if (err)
		vrf_say(v, "Invalid format string\n");
	return err;
}

int vrf_call_helper(struct vrf *v, const struct bpf_insn *insn)
{
	struct vrf_call_meta m = { .release_regno = -1, .subprog = -1, .raw_regno = -1 };
	struct insn_fact *fact = &v->facts[v->insn_idx];
	const struct helper_desc *h;
	int err = allowed(v, (u32)insn->imm, &h);

	if (err)
		return err;
	m.fills_part = h->flags & HELPER_RET_SIZE || h->check_str; /* texts end where they end */
	for (u32 i = 0; i < 5; i++) {
		err = vrf_check_arg(v, i, h, &m);
		if (err)
			return err;
	}
	if (h->flags & HELPER_TAIL_CALL)
		err = tail_call(v, h, &m);
	if (!err)
		err = note_map(v, h, m.map);
	if (!err)
		err = check_text(v, h, &m);
	if (err)
		return err;
	if (h->flags & HELPER_STORAGE_GET)
		note_owner(v, fact);
	if (m.raw_regno >= 0)
		vrf_stack_fill(v, (u32)m.raw_regno, m.raw_size, m.fills_part);
	err = release(v, h, &m);
	if (!err && h->flags & HELPER_TAIL_CALL)
		err = vrf_resources_at(v, true, "tail_call");
	if (err)
		return err;
	if (h->flags & HELPER_SYNC_CALLBACK) {
		err = h->cb ? run_callback(v, h, &m) : -EINVAL;
		if (err)
			return err;
	}
	for (u32 i = 0; i < CALLER_SAVED; i++) {
		vrf_reg_not_init(&vrf_regs(v)[i]);
		v->scratched_regs |= 1u << i;
	}
	fact->helper = h;
	if (h->flags & HELPER_TAIL_CALL && v->cur->cur)
		return tail_call_returns(v);
	return result(v, h, &m);
}
