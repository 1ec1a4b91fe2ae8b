// SPDX-License-Identifier: BSD-2-Clause
/*
 * Does an explored state cover the current one: is whatever can happen from here among what was found safe from there?
 * Registers and slots are compared one by one; ids need not be equal, but must correspond one to one over the whole state.
 */
#include "verifier/vrf_int.h"

#include <string.h>

static bool ids_match(struct vrf *v, u32 old, u32 cur)
{
	struct vrf_idmap *m = &v->idmap;

	if (!old != !cur)
		return false;
	if (!old)
		return true;
	for (u32 i = 0; i < m->nr; i++) {
		if (m->pair[i].old == old)
			return m->pair[i].cur == cur;
		if (m->pair[i].cur == cur)
			return false;
	}
	if (m->nr == ARRAY_SIZE(m->pair))
		return false;
	m->pair[m->nr].old = old;
	m->pair[m->nr++].cur = cur;
	return true;
}

/* A number without id is one linked to nothing: as good as an id of its own. */
static bool number_ids_match(struct vrf *v, u32 old, u32 cur)
{
	if (!old)
		old = ++v->idmap.fresh;
	if (!cur)
		cur = ++v->idmap.fresh;
	return ids_match(v, old, cur);
}

static bool same_object(const struct vrf_reg *a, const struct vrf_reg *b)
{
	if (a->type != b->type || a->off != b->off || a->delta != b->delta)
		return false;
	switch (type_base(a->type)) {
	case PTR_TO_STACK:
		return a->frameno == b->frameno;
	case CONST_PTR_TO_MAP:
	case PTR_TO_MAP_VALUE:
	case PTR_TO_MAP_KEY:
		return a->map == b->map;
	case PTR_TO_MEM:
		return a->mem_size == b->mem_size;
	case PTR_TO_FUNC:
		return a->subprog == b->subprog;
	case PTR_TO_BTF_ID:
		return a->btf == b->btf && a->btf_id == b->btf_id;
	}
	return true;
}

static bool same_reg(struct vrf *v, const struct vrf_reg *old, const struct vrf_reg *cur)
{
	if (old->type == NOT_INIT)
		return cur->type == NOT_INIT;
	return same_object(old, cur) && vrf_range_equal(&old->range, &cur->range) && ids_match(v, old->id, cur->id) &&
	       ids_match(v, old->ref_id, cur->ref_id);
}

static bool reg_covers(struct vrf *v, const struct vrf_reg *old, const struct vrf_reg *cur, enum vrf_exact exact)
{
	if (exact == VRF_EXACT)
		return same_reg(v, old, cur);
	if (old->type == NOT_INIT) /* nothing behind it can have used the register */
		return true;
	/* a number does not cover a pointer, nor the reverse: both behave differently from here */
	if (old->type != cur->type)
		return false;
	switch (type_base(old->type)) {
	case SCALAR_VALUE:
		if (!old->precise && exact == VRF_NOT_EXACT)
			return true;
		/* linked the same way: a sum in the one is the same sum in the other */
		if (old->id && (old->delta != cur->delta || old->off != cur->off))
			return false;
		return vrf_range_within(&old->range, &cur->range) && number_ids_match(v, old->id, cur->id);
	case PTR_TO_MAP_VALUE:
	case PTR_TO_MAP_KEY:
	case PTR_TO_MEM:
	case PTR_TO_BUF:
	case PTR_TO_TP_BUFFER:
		return same_object(old, cur) && vrf_range_within(&old->range, &cur->range) &&
		       ids_match(v, old->id, cur->id) && ids_match(v, old->ref_id, cur->ref_id);
	}
	return same_reg(v, old, cur);
}

/* The slot as the number a load of all of it gives; NULL: not a number. */
static const struct vrf_reg *slot_number(struct vrf *v, const struct vrf_slot *s)
{
	if (vrf_slot_is_spilled_scalar(s) && vrf_slot_is_full_spill(s))
		return &s->reg;
	for (u32 i = 0; i < 8; i++)
		if (s->type[i] != SLOT_MISC && s->type[i] != SLOT_INVALID)
			return NULL;
	return &v->any_number;
}

static bool slot_covers(struct vrf *v, const struct vrf_slot *old, const struct vrf_slot *cur, enum vrf_exact exact)
{
	const struct vrf_reg *a, *b;
	bool relevant = false;

	/* rounds of a loop must agree in what is spilled, as in Linux, though it would be sound to ask less */
	if (exact != VRF_NOT_EXACT && (!cur || memcmp(old->type, cur->type, 8)))
		return false;
	for (u32 i = 0; i < 8; i++)
		relevant |= old->type[i] != SLOT_INVALID && old->type[i] != SLOT_MISC;
	if (!relevant) /* any bytes will do */
		return true;
	if (!cur)
		return false;
	a = slot_number(v, old);
	b = slot_number(v, cur);
	if (a && b)
		return reg_covers(v, a, b, exact);
	for (u32 i = 0; i < 8; i++) {
		if (old->type[i] == SLOT_INVALID || old->type[i] == SLOT_MISC || old->type[i] == cur->type[i])
			continue;
		return false;
	}
	if (old->type[7] != SLOT_SPILL)
		return true;
	/* the same bytes of it must be spilled: how much a narrow fill finds depends on it */
	for (u32 i = 0; i < 8; i++)
		if ((old->type[i] == SLOT_SPILL) != (cur->type[i] == SLOT_SPILL))
			return false;
	return reg_covers(v, &old->reg, &cur->reg, exact);
}

static bool func_covers(struct vrf *v, const struct vrf_func *old, const struct vrf_func *cur, u32 idx,
			enum vrf_exact exact)
{
	u16 live = v->aux[idx].live_in;

	if (old->callsite != cur->callsite || old->subprog != cur->subprog || old->in_callback != cur->in_callback ||
	    old->callback_depth > cur->callback_depth)
		return false;
	for (u32 i = 0; i < ISA_REG_MAX; i++)
		if (live >> i & 1 && !reg_covers(v, &old->regs[i], &cur->regs[i], exact))
			return false;
	for (u32 i = 0; i < old->nr_slots; i++)
		if (!slot_covers(v, &old->slots[i], i < cur->nr_slots ? &cur->slots[i] : NULL, exact))
			return false;
	return true;
}

bool vrf_states_equal(struct vrf *v, struct vrf_state *old, struct vrf_state *cur, enum vrf_exact exact)
{
	if (old->cur != cur->cur || old->nr_refs != cur->nr_refs || old->in_rcu != cur->in_rcu ||
	    old->preempt_offs != cur->preempt_offs)
		return false;
	v->idmap.nr = 0;
	v->idmap.fresh = v->next_id;
	for (u32 i = 0; i < old->nr_refs; i++)
		if (!ids_match(v, old->refs[i].id, cur->refs[i].id))
			return false;
	for (u32 f = 0; f <= old->cur; f++) {
		u32 idx = f == old->cur ? old->insn_idx : old->frame[f + 1]->callsite;

		if (!func_covers(v, old->frame[f], cur->frame[f], idx, exact))
			return false;
	}
	return true;
}
