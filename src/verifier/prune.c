// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checkpoints, and ending paths that bring nothing new.
 *
 * Checkpoints hang in a tree: each knows its parent, and how many unfinished paths lead on from it (branches). Those with
 * branches > 0 are exactly the ancestors of the current state.
 *
 *   finished checkpoint	every path from it was found safe. The current state ends if it is covered; numbers that are
 *			not precise may differ. Its precision and stack reads are then handed up the current path, since the
 *			same future hangs on it now.
 *   ancestor		the path has come around a loop. In general it goes on (loops are walked) unless nothing at all has
 *			changed: an infinite loop. Only at calls of callbacks and at may_goto, whose number of rounds nobody
 *			knows, may it end here, if every range lies within (precise or not): a fixed point.
 *
 * A path that ended at an ancestor H has a future that is not fully known yet: what H will still mark as precise or read
 * concerns it too. Such an end is kept as a backedge of H; when H is finished, H's marks are handed along its backedges
 * until no more appear. Until then every checkpoint on the way from H to the end (loop_entry names H) counts as incomplete
 * and covers only states whose every range lies within. If H itself lies in a loop that is not finished, its backedges
 * move to that loop's head: the outermost head settles all.
 */
#include "verifier/vrf_int.h"

#include <stdlib.h>
#include <string.h>

static u32 min_hist(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* The outermost unfinished loop head st's future depends on; NULL: none, its marks are final. */
static struct vrf_state *open_loop(const struct vrf_state *st)
{
	struct vrf_state *l = st->loop_entry;

	while (l && !l->branches)
		l = l->loop_entry;
	return l;
}

/* All checkpoints from the current path up to head, without head, wait for it. */
static void wait_for(struct vrf_state *cur, struct vrf_state *head)
{
	for (struct vrf_state *s = cur; s && s != head; s = s->parent) {
		struct vrf_state *l = open_loop(s);

		if (!l || head->depth < l->depth)
			s->loop_entry = head;
	}
}

static int add_backedge(struct vrf *v, struct vrf_state *head, struct vrf_state *target)
{
	struct vrf_backedge *b = calloc(1, sizeof(*b));
	struct vrf_state *st = b ? vrf_state_copy(v, v->cur) : NULL;

	if (!st) {
		free(b);
		return -ENOMEM;
	}
	v->mem += sizeof(*b);
	st->insn_idx = v->insn_idx;
	/* the way back from here: the current state is about to go and leaves its history */
	st->hist = v->cur->hist;
	st->nr_hist = v->cur->nr_hist;
	st->cap_hist = v->cur->cap_hist;
	v->cur->hist = NULL;
	v->cur->nr_hist = v->cur->cap_hist = 0;
	v->cur_hist = NULL;
	target->refcnt++;
	*b = (struct vrf_backedge){ head->backedges, st, target, v->prev_idx };
	head->backedges = b;
	return 0;
}

static int settle(struct vrf *v, struct vrf_state *head)
{
	bool changed = head->backedges;
	struct vrf_backedge *b;

	while (changed) {
		changed = false;
		for (b = head->backedges; b; b = b->next) {
			int err = vrf_propagate_precise(v, b->target, b->state, &changed);

			if (err)
				return err;
			vrf_propagate_read(v, b->target, b->state, &changed);
		}
	}
	while ((b = head->backedges)) {
		head->backedges = b->next;
		vrf_state_put(v, b->state);
		vrf_state_put(v, b->target);
		v->mem -= sizeof(*b);
		free(b);
	}
	return 0;
}

static int finish(struct vrf *v, struct vrf_state *st)
{
	struct vrf_state *outer = open_loop(st);
	struct vrf_backedge **tail;

	if (!st->backedges)
		return 0;
	if (!outer)
		return settle(v, st);
	for (tail = &outer->backedges; *tail; tail = &(*tail)->next)
		;
	*tail = st->backedges;
	st->backedges = NULL;
	return 0;
}

int vrf_branch_done(struct vrf *v, struct vrf_state *st)
{
	for (; st && !--st->branches; st = st->parent) {
		int err = finish(v, st);

		if (err)
			return err;
	}
	return 0;
}

/* Slots no path behind it reads are forgotten: they can differ. */
static void clean(struct vrf_state *st)
{
	st->cleaned = true;
	for (u32 f = 0; f <= st->cur; f++) {
		struct vrf_func *fn = st->frame[f];

		for (u32 i = 0; i < fn->nr_slots; i++) {
			if (fn->read >> i & 1)
				continue;
			memset(fn->slots[i].type, SLOT_INVALID, 8);
			vrf_reg_not_init(&fn->slots[i].reg);
		}
	}
}

static bool same_callsites(const struct vrf_state *a, const struct vrf_state *b)
{
	if (a->cur != b->cur)
		return false;
	for (u32 f = 0; f <= a->cur; f++)
		if (a->frame[f]->callsite != b->frame[f]->callsite)
			return false;
	return true;
}

/* The last time the current path was at idx. */
struct vrf_state *vrf_prev_visit(struct vrf *v, struct vrf_state *cur, u32 idx)
{
	for (struct vrf_state *st = cur->parent; st; st = st->parent)
		if (st->insn_idx == idx && same_callsites(st, cur))
			return st;
	return NULL;
}

static void widen_reg(const struct vrf_reg *old, struct vrf_reg *cur)
{
	if (old->type != SCALAR_VALUE || cur->type != SCALAR_VALUE || old->precise || cur->precise ||
	    vrf_range_equal(&old->range, &cur->range))
		return;
	vrf_reg_unknown(cur);
}

/* A number that changed since the round before and does not matter may be anything: rounds then become alike. */
void vrf_widen(struct vrf *v, struct vrf_state *old, struct vrf_state *cur)
{
	for (u32 f = 0; f <= old->cur && f <= cur->cur; f++) {
		struct vrf_func *a = old->frame[f], *b = cur->frame[f];

		for (u32 i = 0; i < ISA_REG_MAX; i++)
			widen_reg(&a->regs[i], &b->regs[i]);
		for (u32 i = 0; i < min_hist(a->nr_slots, b->nr_slots); i++)
			if (vrf_slot_is_spill(&a->slots[i]) && vrf_slot_is_spill(&b->slots[i]))
				widen_reg(&a->slots[i].reg, &b->slots[i].reg);
	}
}

enum outcome { MISS, HIT, STUCK };

/* An ancestor at the same instruction. */
static enum outcome meet_ancestor(struct vrf *v, struct vrf_state *old)
{
	struct vrf_state *cur = v->cur;
	struct vrf_insn *aux = &v->aux[v->insn_idx];

	if (aux->op == ISA_MAY_GOTO && old->may_goto_depth != cur->may_goto_depth &&
	    vrf_states_equal(v, old, cur, VRF_WITHIN))
		return HIT;
	if (aux->calls_callback)
		return vrf_states_equal(v, old, cur, VRF_WITHIN) ? HIT : MISS;
	if (old->may_goto_depth == cur->may_goto_depth && old->callback_unroll_depth == cur->callback_unroll_depth &&
	    vrf_states_equal(v, old, cur, VRF_EXACT)) {
		vrf_log_line(v, v->insn_idx, "; ");
		vrf_say(v, "infinite loop detected at insn %u\ncur state:", v->insn_idx);
		vrf_log_state(v, cur, cur->cur, true);
		vrf_say(v, "old state:");
		vrf_log_state(v, old, old->cur, true);
		return STUCK;
	}
	return MISS;
}

/* What was found safe reads bytes that the current path never wrote where the old one had: they read as anything. */
static void note_stale(struct vrf *v, const struct vrf_state *old)
{
	for (u32 f = 0; f <= old->cur; f++) {
		const struct vrf_func *a = old->frame[f], *b = v->cur->frame[f];

		for (u32 i = 0; i < a->nr_slots; i++)
			for (u32 k = 0; k < 8 && (a->read >> i & 1 || !old->cleaned); k++)
				if (a->slots[i].type[k] != SLOT_INVALID &&
				    (i >= b->nr_slots || b->slots[i].type[k] == SLOT_INVALID))
					v->subs[b->subprog].reads_stale = true;
	}
}

static int hit(struct vrf *v, struct vrf_state *old)
{
	struct vrf_state *head = old->branches ? old : open_loop(old);
	bool changed;
	int err = 0;

	note_stale(v, old);
	if (v->aux[v->insn_idx].jmp_point)
		err = vrf_hist_push(v, v->insn_idx, v->prev_idx);
	v->cur->insn_idx = v->insn_idx;
	if (!err)
		err = vrf_propagate_precise(v, old, v->cur, &changed);
	if (err)
		return err;
	vrf_propagate_read(v, old, v->cur, &changed);
	if (!head)
		return 1;
	wait_for(v->cur, head);
	err = add_backedge(v, head, old);
	return err ? err : 1;
}

static void forget_precision(struct vrf_reg *reg, void *ctx)
{
	reg->precise = false;
}

/* The current state becomes a checkpoint and goes on as its child. */
static int add_checkpoint(struct vrf *v)
{
	struct vrf_state *cur = v->cur, *st;
	struct vrf_seen *seen;

	vrf_for_each_reg(cur, forget_precision, NULL);
	st = vrf_state_copy(v, cur);
	if (!st)
		return -ENOMEM;
	seen = calloc(1, sizeof(*seen));
	if (!seen) {
		vrf_state_put(v, st);
		return -ENOMEM;
	}
	v->mem += sizeof(*seen);
	st->hist = cur->hist;
	st->nr_hist = cur->nr_hist;
	st->cap_hist = cur->cap_hist;
	cur->hist = NULL;
	cur->nr_hist = cur->cap_hist = 0;
	v->cur_hist = NULL;
	st->insn_idx = v->insn_idx;
	st->branches = 1;
	st->cleaned = false;
	st->loop_entry = NULL;
	for (u32 f = 0; f <= st->cur; f++) {
		st->frame[f]->read = 0;
		cur->frame[f]->read = 0;
		cur->frame[f]->written = 0;
	}
	seen->st = st; /* the list's reference is the copy's own */
	seen->next = v->seen[v->insn_idx];
	v->seen[v->insn_idx] = seen;
	vrf_state_put(v, cur->parent); /* st holds one now */
	cur->parent = st;
	st->refcnt++;
	cur->first_idx = v->insn_idx;
	cur->depth = st->depth + 1;
	cur->loop_entry = NULL;
	v->prev_jumps = v->jumps;
	v->prev_insns = v->stats.insns_processed;
	v->stats.total_states++;
	v->nr_states++;
	v->stats.peak_states = max_of(v->stats.peak_states, v->nr_states);
	return 0;
}

int vrf_visited(struct vrf *v)
{
	struct vrf_state *cur = v->cur;
	bool forced = v->aux[v->insn_idx].force_checkpoint;
	bool force = v->opts->test_state_freq || forced || cur->nr_hist > 40;
	u32 jumps = v->jumps - v->prev_jumps, insns = v->stats.insns_processed - v->prev_insns, n = 0;
	bool add = force || (jumps >= 2 && insns >= 8);
	struct vrf_seen **at = &v->seen[v->insn_idx], *s;

	while ((s = *at)) {
		struct vrf_state *old = s->st;
		enum outcome met = MISS;
		u32 patience;

		n++;
		if (old->branches) {
			met = meet_ancestor(v, old);
			if (met == STUCK)
				return -EINVAL;
			/* loops: a checkpoint every round would only be in the way */
			if (met == MISS && !force && jumps < 20 && insns < 100)
				add = false;
		} else {
			bool incomplete = open_loop(old);

			if (!incomplete && !old->cleaned)
				clean(old);
			if (vrf_states_equal(v, old, cur, incomplete ? VRF_WITHIN : VRF_NOT_EXACT))
				met = HIT;
		}
		if (met == HIT) {
			s->hits++;
			return hit(v, old);
		}
		if (add)
			s->misses++;
		patience = forced && old->branches ? 64 : 3;
		if (s->misses > s->hits * patience + patience) {
			*at = s->next;
			v->mem -= sizeof(*s);
			v->nr_states--;
			vrf_state_put(v, old);
			free(s);
			continue;
		}
		at = &s->next;
	}
	v->stats.max_states_per_insn = max_of(v->stats.max_states_per_insn, n);
	return add ? add_checkpoint(v) : 0;
}
