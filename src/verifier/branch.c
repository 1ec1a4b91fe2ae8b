// SPDX-License-Identifier: BSD-2-Clause
/* Jumps: decided where the operands tell, else both ways, each with what its condition teaches. */
#include "verifier/vrf_int.h"

#include <string.h>

static u8 mirrored(u8 op)
{
	switch (op) {
	case BPF_JGT: return BPF_JLT;
	case BPF_JGE: return BPF_JLE;
	case BPF_JLT: return BPF_JGT;
	case BPF_JLE: return BPF_JGE;
	case BPF_JSGT: return BPF_JSLT;
	case BPF_JSGE: return BPF_JSLE;
	case BPF_JSLT: return BPF_JSGT;
	case BPF_JSLE: return BPF_JSGE;
	}
	return op;
}

/* Pointers the verifier knows to be no NULL. */
static bool never_null(const struct vrf_reg *reg)
{
	if (reg->type & PTR_MAYBE_NULL)
		return false;
	switch (type_base(reg->type)) {
	case PTR_TO_MAP_VALUE:
	case PTR_TO_MAP_KEY:
	case CONST_PTR_TO_MAP:
		return true;
	case PTR_TO_BTF_ID:
		return reg->type & PTR_TRUSTED;
	case PTR_TO_MEM:
		return !(reg->type & PTR_UNTRUSTED);
	}
	return false;
}

static int decide(const struct vrf_reg *a, const struct vrf_reg *b, u8 op, bool is32)
{
	if (a->type == SCALAR_VALUE && b->type == SCALAR_VALUE)
		return vrf_range_decide(&a->range, &b->range, op, is32);
	if (is32) /* the low half of a valid pointer may well be 0 */
		return -1;
	if (!vrf_reg_is_const(b)) {
		const struct vrf_reg *t = a;

		a = b;
		b = t;
		op = mirrored(op);
	}
	if (!vrf_reg_is_null(b) || a->type == SCALAR_VALUE || !never_null(a))
		return -1;
	/* a pointer moved by an unproved amount could wrap to 0; moved pointers stay within 2^29 of their object */
	return op == BPF_JEQ ? 0 : op == BPF_JNE ? 1 : -1;
}

/* ---- linked numbers ---- */

/* One more that is linked; there is room for six in the history, as in Linux. Whoever does not fit loses the link. */
static void add_link(struct vrf_hist *h, struct vrf_reg *reg, u32 where)
{
	if (h->nr_linked < ARRAY_SIZE(h->linked))
		h->linked[h->nr_linked++] = (u16)where;
	else
		vrf_reg_unlink(reg);
}

/* Registers nobody will read are left out: their links would only crowd out others. */
static void scan_links(struct vrf *v, struct vrf_state *st, u32 id, struct vrf_hist *h)
{
	for (u32 f = st->cur + 1; f--;) {
		struct vrf_func *fn = st->frame[f];
		u16 live = v->aux[f == st->cur ? v->insn_idx : st->frame[f + 1]->callsite].live_in;

		for (u32 i = 0; i < ISA_REG_FP; i++)
			if (live >> i & 1 && fn->regs[i].type == SCALAR_VALUE && fn->regs[i].id == id)
				add_link(h, &fn->regs[i], f << 8 | i);
		for (u32 i = 0; i < fn->nr_slots; i++)
			if (vrf_slot_is_spilled_scalar(&fn->slots[i]) && fn->slots[i].reg.id == id)
				add_link(h, &fn->slots[i].reg, f << 8 | 0x80 | i);
	}
}

static struct vrf_reg *linked_reg(struct vrf_state *st, u16 where)
{
	struct vrf_func *f = st->frame[where >> 8];

	return where & 0x80 ? &f->slots[where & 0x7f].reg : &f->regs[where & 0x7f];
}

/* known is x + known->off; reg, of the same x, follows. Sums of different widths say nothing of each other. */
static void follow(struct vrf_reg *reg, const struct vrf_reg *known)
{
	u8 kind = reg->delta ? reg->delta : known->delta;
	struct vrf_range diff;

	if (reg->delta && known->delta && reg->delta != known->delta)
		return;
	reg->range = known->range;
	if (reg->off == known->off)
		return;
	vrf_range_const(&diff, (u64)((s64)reg->off - known->off));
	vrf_range_alu(&reg->range, &diff, BPF_ADD, kind == DELTA_32);
	if (vrf_range_is_broken(&reg->range))
		vrf_range_unknown(&reg->range);
}

/* Only those in the history entry take the range: precision must find its way to each of them. */
void vrf_sync_linked(struct vrf *v, struct vrf_state *st, const struct vrf_reg *known, struct vrf_hist *h)
{
	struct vrf_reg *reg, src = *known;

	if (!src.id)
		return;
	for (u32 i = 0; i < h->nr_linked; i++) {
		reg = linked_reg(st, h->linked[i]);
		if (reg != known && reg->id == src.id && reg->type == SCALAR_VALUE)
			follow(reg, &src);
	}
}

/* ---- NULL checks ---- */

static void judge_null(struct vrf_reg *reg, u32 id, bool is_null)
{
	if (!(reg->type & PTR_MAYBE_NULL) || reg->id != id)
		return;
	if (is_null) {
		vrf_reg_const(reg, 0);
		return;
	}
	reg->type &= ~(u32)PTR_MAYBE_NULL;
	reg->id = 0;
	/* an element of a map of maps is a map, of which no more is known than its shape */
	if (type_base(reg->type) == PTR_TO_MAP_VALUE && reg->map->inner) {
		struct map *inner = reg->map->inner;

		vrf_reg_type(reg, CONST_PTR_TO_MAP);
		reg->map = inner;
	}
}

/* The pointer with this id is NULL, or is not: all its copies. A NULL one holds no reference. */
void vrf_ptr_is_null(struct vrf_state *st, u32 id, u32 ref_id, bool is_null)
{
	for (u32 f = 0; f <= st->cur; f++) {
		struct vrf_func *fn = st->frame[f];

		for (u32 i = 0; i < ISA_REG_MAX; i++)
			judge_null(&fn->regs[i], id, is_null);
		for (u32 i = 0; i < fn->nr_slots; i++)
			if (vrf_slot_is_spill(&fn->slots[i]))
				judge_null(&fn->slots[i].reg, id, is_null);
	}
	if (!is_null || !ref_id || ref_id != id)
		return;
	for (u32 i = 0; i < st->nr_refs; i++)
		if (st->refs[i].id == id)
			st->refs[i].id = 0; /* dropped by vrf_drop_null_refs() */
}

/* ---- */

static int both_ways(struct vrf *v, const struct bpf_insn *insn, u8 op, bool is32, struct vrf_reg *src)
{
	struct vrf_func *f = vrf_cur(v);
	struct vrf_reg *dst = &f->regs[insn->dst_reg], *odst, *osrc, fall_imm, jump_imm;
	bool reg_form = isa_is_reg_form(insn->code);
	struct vrf_state *other;
	struct vrf_hist links = { 0 }, *h;

	if (reg_form && src->type == SCALAR_VALUE && src->id)
		scan_links(v, v->cur, src->id, &links);
	if (dst->type == SCALAR_VALUE && dst->id)
		scan_links(v, v->cur, dst->id, &links);
	if (links.nr_linked > 1) {
		h = vrf_hist_here(v);
		if (!h)
			return -ENOMEM;
		h->nr_linked = links.nr_linked;
		memcpy(h->linked, links.linked, sizeof(h->linked));
	}
	other = vrf_push(v, (u32)((s64)v->insn_idx + 1 + insn->off), v->insn_idx);
	if (!other)
		return -EFAULT;
	odst = &other->frame[other->cur]->regs[insn->dst_reg];
	fall_imm = jump_imm = *src;
	osrc = reg_form ? &other->frame[other->cur]->regs[insn->src_reg] : &jump_imm;
	if (!reg_form)
		src = &fall_imm;
	if (dst->type == SCALAR_VALUE && src->type == SCALAR_VALUE && dst != src) {
		vrf_range_refine(&odst->range, &osrc->range, op, is32, true);
		vrf_range_refine(&dst->range, &src->range, op, is32, false);
		if (reg_form && links.nr_linked > 1) {
			vrf_sync_linked(v, v->cur, src, &links);
			vrf_sync_linked(v, other, osrc, &links);
		}
		if (links.nr_linked > 1) {
			vrf_sync_linked(v, v->cur, dst, &links);
			vrf_sync_linked(v, other, odst, &links);
		}
	}
	if (!is32 && !reg_form && !insn->imm && (op == BPF_JEQ || op == BPF_JNE) && vrf_may_be_null(dst->type)) {
		u32 id = dst->id, ref = dst->ref_id;

		vrf_ptr_is_null(v->cur, id, ref, op == BPF_JNE);
		vrf_ptr_is_null(other, id, ref, op == BPF_JEQ);
		vrf_drop_null_refs(v, v->cur);
		vrf_drop_null_refs(v, other);
	}
	return 0;
}

int vrf_jump(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	struct vrf_reg *dst, *src = &v->imm_reg;
	bool is32 = isa_of(op)->width == 4, reg_form = isa_is_reg_form(insn->code);
	u8 cond = BPF_OP(insn->code);
	struct vrf_hist *h;
	int err, way;

	err = vrf_read_reg(v, insn->dst_reg);
	if (!err && reg_form)
		err = vrf_read_reg(v, insn->src_reg);
	if (err)
		return err;
	dst = &vrf_regs(v)[insn->dst_reg];
	if (reg_form)
		src = &vrf_regs(v)[insn->src_reg];
	else
		vrf_reg_const(src, (u64)(s64)insn->imm);
	if (type_base(dst->type) == PTR_TO_STACK || (reg_form && type_base(src->type) == PTR_TO_STACK)) {
		h = vrf_hist_here(v);
		if (!h)
			return -ENOMEM;
		h->dst_stack = type_base(dst->type) == PTR_TO_STACK;
		h->src_stack = reg_form && type_base(src->type) == PTR_TO_STACK;
	}
	way = decide(dst, src, cond, is32);
	if (way >= 0) {
		/* the other side goes unexplored because of the ranges: they must be compared exactly */
		if (dst->type == SCALAR_VALUE)
			err = vrf_mark_precise(v, insn->dst_reg);
		if (!err && reg_form && src->type == SCALAR_VALUE)
			err = vrf_mark_precise(v, insn->src_reg);
		if (err)
			return err;
		if (way) {
			v->facts[v->insn_idx].jump_taken = 1;
			v->insn_idx = (u32)((s64)v->insn_idx + insn->off);
		} else {
			v->facts[v->insn_idx].jump_fallen = 1;
		}
	} else {
		v->facts[v->insn_idx].jump_taken = 1;
		v->facts[v->insn_idx].jump_fallen = 1;
		err = both_ways(v, insn, cond, is32, src);
		if (err)
			return err;
	}
	if (v->log_level & 3)
		vrf_log_changes(v);
	v->insn_idx++;
	return 0;
}

/* The engine decides when it jumps: both ways are possible each time, and rounds are widened so that they end. */
int vrf_may_goto(struct vrf *v, const struct bpf_insn *insn)
{
	/* the parent is the checkpoint just made here: the round before is above it */
	struct vrf_state *here = v->cur->parent, *prev = here ? vrf_prev_visit(v, here, v->insn_idx) : NULL, *next;

	next = vrf_push(v, v->insn_idx + 1, v->insn_idx);
	if (!next)
		return -ENOMEM;
	next->may_goto_depth++;
	if (prev)
		vrf_widen(v, prev, next);
	v->facts[v->insn_idx].jump_taken = 1;
	v->facts[v->insn_idx].jump_fallen = 1;
	v->insn_idx = (u32)((s64)v->insn_idx + 1 + insn->off);
	return 0;
}
