// SPDX-License-Identifier: BSD-2-Clause
/* References a program has acquired and must give back: the state keeps the list, registers name entries by id. */
#include "verifier/vrf_int.h"

#include <stdlib.h>
#include <string.h>

bool vrf_ref_find(const struct vrf_state *st, u32 id)
{
	for (u32 i = 0; i < st->nr_refs; i++)
		if (st->refs[i].id == id)
			return true;
	return false;
}

/* The list is reallocated to its exact length each time: it is short, and its size is then what memory counting needs. */
static int refs_resize(struct vrf *v, struct vrf_state *st, u32 nr)
{
	struct vrf_ref *refs = NULL;

	if (nr) {
		refs = calloc(nr, sizeof(*refs));
		if (!refs)
			return -ENOMEM;
		if (st->nr_refs)
			memcpy(refs, st->refs, min_of(nr, st->nr_refs) * sizeof(*refs));
	}
	free(st->refs);
	v->mem += nr * sizeof(*refs);
	v->mem -= st->nr_refs * sizeof(*refs);
	st->refs = refs;
	st->nr_refs = nr;
	return 0;
}

int vrf_ref_acquire(struct vrf *v, u32 insn_idx, u32 *ret_id)
{
	struct vrf_state *st = v->cur;
	int err = refs_resize(v, st, st->nr_refs + 1);

	if (err)
		return err;
	st->refs[st->nr_refs - 1] = (struct vrf_ref){ vrf_new_id(v), insn_idx };
	*ret_id = st->refs[st->nr_refs - 1].id;
	return 0;
}

static void forget_released(struct vrf_reg *reg, void *ctx)
{
	if (reg->ref_id == *(u32 *)ctx)
		vrf_reg_unknown(reg);
}

/* Gives reference id back: every pointer to it becomes a number. */
int vrf_ref_release(struct vrf *v, u32 id)
{
	struct vrf_state *st = v->cur;
	u32 i;

	for (i = 0; i < st->nr_refs && st->refs[i].id != id; i++)
		;
	if (!id || i == st->nr_refs)
		return -EINVAL;
	memmove(&st->refs[i], &st->refs[i + 1], (st->nr_refs - i - 1) * sizeof(*st->refs));
	if (refs_resize(v, st, st->nr_refs - 1))
		return -ENOMEM;
	vrf_for_each_reg(st, forget_released, &id);
	return 0;
}

/* A NULL check showed that some acquired pointers were none: their entries have id 0. */
void vrf_drop_null_refs(struct vrf *v, struct vrf_state *st)
{
	u32 n = 0;

	for (u32 i = 0; i < st->nr_refs; i++)
		if (st->refs[i].id)
			st->refs[n++] = st->refs[i];
	v->mem -= (st->nr_refs - n) * sizeof(*st->refs);
	st->nr_refs = n; /* the allocation may stay larger than it counts */
}

int vrf_resources_at(struct vrf *v, bool sections, const char *what)
{
	struct vrf_state *st = v->cur;

	for (u32 i = 0; i < st->nr_refs; i++)
		vrf_say(v, "Unreleased reference id=%d alloc_insn=%d\n", st->refs[i].id, st->refs[i].insn_idx);
	if (st->nr_refs)
		vrf_say(v, "%s would lead to reference leak\n", what);
	else if (sections && st->in_rcu)
		vrf_say(v, "%s cannot be used inside bpf_rcu_read_lock-ed region\n", what);
	else if (sections && st->preempt_offs)
		vrf_say(v, "%s cannot be used inside bpf_preempt_disable-ed region\n", what);
	else
		return 0;
	return -EINVAL;
}

const char *vrf_no_sleep(const struct vrf *v)
{
	if (v->cur->in_rcu)
		return "rcu_read_lock region";
	return v->cur->preempt_offs ? "non-preemptible region" : NULL;
}
