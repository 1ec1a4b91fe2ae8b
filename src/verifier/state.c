// SPDX-License-Identifier: BSD-2-Clause
/* States: made, copied, shared by reference, queued. All memory of a verification is counted; past a limit it is refused. */
#include "verifier/vrf_int.h"

#include <stdlib.h>
#include <string.h>

static void *vrf_alloc(struct vrf *v, size_t size)
{
	void *p;

	if (v->mem + size > VRF_MAX_MEM)
		return NULL;
	p = calloc(1, size);
	if (p)
		v->mem += size;
	return p;
}

/* The same, but what it holds is about to be written. */
static void *vrf_alloc_raw(struct vrf *v, size_t size)
{
	void *p;

	if (v->mem + size > VRF_MAX_MEM)
		return NULL;
	p = malloc(size);
	if (p)
		v->mem += size;
	return p;
}

static void vrf_free(struct vrf *v, void *p, size_t size)
{
	if (!p)
		return;
	v->mem -= size;
	free(p);
}

/*
 * Frames and states come and go with every branch, and all of a kind have one size: those given back are kept. Only so
 * many can lie there as were in use at once.
 */
static void *take(struct vrf *v, struct vrf_spare **spares, size_t size)
{
	struct vrf_spare *p = *spares;

	if (!p)
		return vrf_alloc_raw(v, size);
	if (v->mem + size > VRF_MAX_MEM)
		return NULL;
	v->mem += size;
	*spares = p->next;
	return p;
}

static void give(struct vrf *v, struct vrf_spare **spares, void *mem, size_t size)
{
	struct vrf_spare *p = mem;

	v->mem -= size;
	p->next = *spares;
	*spares = p;
}

static void free_list(struct vrf_spare **spares)
{
	struct vrf_spare *p;

	while ((p = *spares)) {
		*spares = p->next;
		free(p);
	}
}

void vrf_spare_free(struct vrf *v)
{
	free_list(&v->spare_funcs);
	free_list(&v->spare_states);
}

/* ---- registers ---- */

void vrf_reg_not_init(struct vrf_reg *reg)
{
	memset(reg, 0, sizeof(*reg));
	vrf_range_unknown(&reg->range);
}

void vrf_reg_unknown(struct vrf_reg *reg)
{
	vrf_reg_not_init(reg);
	reg->type = SCALAR_VALUE;
}

void vrf_reg_const(struct vrf_reg *reg, u64 val)
{
	memset(reg, 0, sizeof(*reg));
	reg->type = SCALAR_VALUE;
	vrf_range_const(&reg->range, val);
}

void vrf_reg_zero_off(struct vrf_reg *reg)
{
	reg->off = 0;
	vrf_range_const(&reg->range, 0);
}

void vrf_reg_type(struct vrf_reg *reg, u32 type)
{
	memset(reg, 0, sizeof(*reg));
	reg->type = type;
	vrf_range_const(&reg->range, 0);
}

/* ---- frames ---- */

struct vrf_func *vrf_func_new(struct vrf *v, u32 callsite, u32 frameno, u32 subprog)
{
	struct vrf_func *f = take(v, &v->spare_funcs, sizeof(*f));

	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->callsite = callsite;
	f->frameno = frameno;
	f->subprog = subprog;
	for (u32 i = 0; i < ISA_REG_MAX; i++)
		vrf_reg_not_init(&f->regs[i]);
	vrf_reg_type(&f->regs[ISA_REG_FP], PTR_TO_STACK);
	f->regs[ISA_REG_FP].frameno = frameno;
	/* nothing below this frame's birth is its own: reads of its stack end here (vrf_mark_stack_read) */
	f->written = U64_MAX;
	return f;
}

void vrf_func_free(struct vrf *v, struct vrf_func *f)
{
	if (!f)
		return;
	vrf_free(v, f->slots, f->cap_slots * sizeof(*f->slots));
	give(v, &v->spare_funcs, f, sizeof(*f));
}

int vrf_grow_stack(struct vrf *v, struct vrf_func *f, u32 slots)
{
	struct vrf_slot *p;
	u32 cap;

	if (slots <= f->nr_slots)
		return 0;
	if (slots > VRF_STACK_SLOTS)
		return -EFAULT;
	if (slots > f->cap_slots) {
		cap = min_of((u32)VRF_STACK_SLOTS, max_of(slots, f->cap_slots + 4));
		p = vrf_alloc(v, cap * sizeof(*p));
		if (!p)
			return -ENOMEM;
		if (f->nr_slots)
			memcpy(p, f->slots, f->nr_slots * sizeof(*p));
		vrf_free(v, f->slots, f->cap_slots * sizeof(*p));
		f->slots = p;
		f->cap_slots = cap;
	}
	memset(f->slots + f->nr_slots, 0, (slots - f->nr_slots) * sizeof(*f->slots));
	f->nr_slots = slots;
	return 0;
}

static struct vrf_func *vrf_func_copy(struct vrf *v, const struct vrf_func *src)
{
	struct vrf_func *f = take(v, &v->spare_funcs, sizeof(*f));

	if (!f)
		return NULL;
	*f = *src;
	f->slots = NULL;
	f->cap_slots = 0;
	if (!src->nr_slots)
		return f;
	f->slots = vrf_alloc_raw(v, src->nr_slots * sizeof(*f->slots));
	if (!f->slots) {
		give(v, &v->spare_funcs, f, sizeof(*f));
		return NULL;
	}
	f->cap_slots = src->nr_slots;
	memcpy(f->slots, src->slots, src->nr_slots * sizeof(*f->slots));
	return f;
}

/* ---- states ---- */

struct vrf_state *vrf_state_new(struct vrf *v)
{
	struct vrf_state *st = take(v, &v->spare_states, sizeof(*st));

	if (st) {
		memset(st, 0, sizeof(*st));
		st->refcnt = 1;
		st->branches = 1;
	}
	return st;
}

static void vrf_state_free(struct vrf *v, struct vrf_state *st)
{
	for (u32 i = 0; i < PROG_MAX_FRAMES; i++)
		vrf_func_free(v, st->frame[i]);
	vrf_free(v, st->refs, st->nr_refs * sizeof(*st->refs));
	vrf_free(v, st->hist, st->cap_hist * sizeof(*st->hist));
	while (st->backedges) {
		struct vrf_backedge *b = st->backedges;

		st->backedges = b->next;
		vrf_state_put(v, b->state);
		vrf_state_put(v, b->target);
		vrf_free(v, b, sizeof(*b));
	}
	give(v, &v->spare_states, st, sizeof(*st));
}

void vrf_state_put(struct vrf *v, struct vrf_state *st)
{
	struct vrf_state *parent;

	for (; st && !--st->refcnt; st = parent) { /* a loop: chains of checkpoints are long */
		parent = st->parent;
		vrf_state_free(v, st);
	}
}

struct vrf_state *vrf_state_copy(struct vrf *v, const struct vrf_state *src)
{
	struct vrf_state *st = take(v, &v->spare_states, sizeof(*st));

	if (!st)
		return NULL;
	*st = *src;
	st->refcnt = 1;
	st->hist = NULL;
	st->nr_hist = st->cap_hist = 0;
	st->refs = NULL;
	st->nr_refs = 0;
	st->parent = NULL;
	st->backedges = NULL;
	memset(st->frame, 0, sizeof(st->frame));
	for (u32 i = 0; i <= src->cur; i++) {
		st->frame[i] = vrf_func_copy(v, src->frame[i]);
		if (!st->frame[i])
			goto fail;
	}
	if (src->nr_refs) {
		st->refs = vrf_alloc(v, src->nr_refs * sizeof(*st->refs));
		if (!st->refs)
			goto fail;
		memcpy(st->refs, src->refs, src->nr_refs * sizeof(*st->refs));
		st->nr_refs = src->nr_refs;
	}
	st->parent = src->parent;
	if (st->parent)
		st->parent->refcnt++;
	return st;
fail:
	vrf_state_free(v, st);
	return NULL;
}

int vrf_hist_push(struct vrf *v, u32 idx, u32 prev)
{
	struct vrf_state *st = v->cur;
	struct vrf_hist *h;

	if (st->nr_hist == st->cap_hist) {
		u32 cap = st->cap_hist ? st->cap_hist * 2 : 8;

		h = vrf_alloc(v, cap * sizeof(*h));
		if (!h)
			return -ENOMEM;
		if (st->nr_hist)
			memcpy(h, st->hist, st->nr_hist * sizeof(*h));
		vrf_free(v, st->hist, st->cap_hist * sizeof(*h));
		st->hist = h;
		st->cap_hist = cap;
	}
	h = &st->hist[st->nr_hist++];
	*h = (struct vrf_hist){ .idx = idx, .prev = prev };
	v->cur_hist = h;
	return 0;
}

struct vrf_hist *vrf_hist_here(struct vrf *v)
{
	if (!v->cur_hist && vrf_hist_push(v, v->insn_idx, v->prev_idx))
		return NULL;
	return v->cur_hist;
}

struct vrf_state *vrf_push(struct vrf *v, u32 insn_idx, u32 prev_idx)
{
	struct vrf_state *cur = v->cur, *st;
	struct vrf_work *w;

	if (v->nr_work + 1 > VRF_MAX_JUMPS) {
		vrf_say(v, "The sequence of %d jumps is too complex.\n", v->nr_work + 1);
		return NULL;
	}
	st = vrf_state_copy(v, cur);
	if (!st)
		return NULL;
	/* the path to here is the same: it needs the history for going back */
	if (cur->nr_hist) {
		st->hist = vrf_alloc(v, cur->nr_hist * sizeof(*st->hist));
		if (!st->hist)
			goto fail;
		memcpy(st->hist, cur->hist, cur->nr_hist * sizeof(*st->hist));
		st->nr_hist = st->cap_hist = cur->nr_hist;
	}
	w = vrf_alloc(v, sizeof(*w));
	if (!w)
		goto fail;
	*w = (struct vrf_work){ v->work, st, insn_idx, prev_idx, vrf_log_len(v) };
	v->work = w;
	v->nr_work++;
	if (st->parent)
		st->parent->branches++;
	return st;
fail:
	vrf_state_put(v, st);
	return NULL;
}

int vrf_pop(struct vrf *v)
{
	struct vrf_work *w = v->work;

	vrf_state_put(v, v->cur);
	v->cur = NULL;
	if (!w)
		return -ENOENT;
	v->cur = w->st;
	v->insn_idx = w->insn_idx;
	v->prev_idx = w->prev_idx;
	v->work = w->next;
	v->nr_work--;
	vrf_free(v, w, sizeof(*w));
	return 0;
}

void vrf_for_each_reg(struct vrf_state *st, void (*fn)(struct vrf_reg *reg, void *ctx), void *ctx)
{
	for (u32 i = 0; i <= st->cur; i++) {
		struct vrf_func *f = st->frame[i];

		for (u32 r = 0; r < ISA_REG_MAX; r++)
			fn(&f->regs[r], ctx);
		for (u32 s = 0; s < f->nr_slots; s++)
			if (vrf_slot_is_spill(&f->slots[s]))
				fn(&f->slots[s].reg, ctx);
	}
}
