// SPDX-License-Identifier: BSD-2-Clause
/*
 * Precision. Most numbers a program computes never matter to its safety; comparing states would be hopeless if all had to
 * agree. A number matters when a decision was taken on its range: an offset, a size, a jump not followed. Then it is
 * traced back, instruction by instruction along the recorded way, to what it was computed from, and every checkpoint
 * passed marks the registers and stack slots that hold its ancestors as precise.
 *
 * Invariant: if a path behind checkpoint C was found safe because of the range of some number, all of C's numbers that
 * range was computed from are precise in C. Pruning may then ignore the range of numbers that are not.
 *
 * Whatever the tracing does not understand marks everything: coarser, never wrong.
 */
#include "verifier/vrf_int.h"

#include <string.h>

struct trace {
	struct vrf *v;
	u16 regs[PROG_MAX_FRAMES];
	u64 slots[PROG_MAX_FRAMES];
	u32 frame; /* where the instruction at hand runs */
};

#define ARG_MASK 0x3e /* r1..r5 */

static bool traces_nothing(const struct trace *t)
{
	for (u32 f = 0; f < PROG_MAX_FRAMES; f++)
		if (t->regs[f] || t->slots[f])
			return false;
	return true;
}

/* Registers and slots that one comparison narrowed together stand and fall together. */
static void trace_linked(struct trace *t, const struct vrf_hist *h)
{
	bool any = false;

	if (!h)
		return;
	for (u32 i = 0; i < h->nr_linked; i++) {
		u32 f = h->linked[i] >> 8, n = h->linked[i] & 0x7f;

		any |= h->linked[i] & 0x80 ? t->slots[f] >> n & 1 : t->regs[f] >> n & 1;
	}
	for (u32 i = 0; any && i < h->nr_linked; i++) {
		u32 f = h->linked[i] >> 8, n = h->linked[i] & 0x7f;

		if (h->linked[i] & 0x80)
			t->slots[f] |= 1ULL << n;
		else
			t->regs[f] |= 1u << n;
	}
}

/* The callee's frame is left backwards, at the call. Nothing but the arguments can come from outside. */
static bool leave_callee(struct trace *t, bool pass_args)
{
	u16 args = t->regs[t->frame] & ARG_MASK;

	if (t->regs[t->frame] & ~ARG_MASK || t->slots[t->frame] || !t->frame)
		return false;
	t->regs[t->frame] = 0;
	t->frame--;
	if (pass_args)
		t->regs[t->frame] |= args;
	return true;
}

/* A tail call that came back to the caller of its function, with another program's result. */
static bool trace_tail_call(struct trace *t, s64 next)
{
	if (next >= 0 && t->v->aux[next].calls_callback)
		t->regs[t->frame] &= ~ARG_MASK;
	t->regs[t->frame] &= ~1u;
	if (t->regs[t->frame] & ARG_MASK || ++t->frame >= PROG_MAX_FRAMES)
		return false;
	t->regs[t->frame] = 0;
	t->slots[t->frame] = 0;
	return true;
}

static bool trace_call(struct trace *t, u32 idx, s64 next)
{
	struct vrf *v = t->v;
	const struct bpf_insn *insn = &v->insns[idx];
	u16 *regs = &t->regs[t->frame];

	if (insn->src_reg == BPF_PSEUDO_CALL) {
		int sub = vrf_find_sub(v, (u32)(idx + 1 + insn->imm));

		if (sub < 0)
			return false;
		if (!v->subs[sub].is_global)
			return leave_callee(t, true);
	} else if (v->aux[idx].calls_callback && next != (s64)idx + 1) {
		return leave_callee(t, false); /* the helper chose the callback's arguments */
	} else if (v->facts[idx].helper && v->facts[idx].helper->flags & HELPER_TAIL_CALL && next != (s64)idx + 1) {
		return trace_tail_call(t, next);
	}
	*regs &= ~1u;
	return !(*regs & ARG_MASK);
}

static bool trace_exit(struct trace *t, s64 next)
{
	struct vrf *v = t->v;
	bool from_sub, r0;

	if (next >= 0 && v->aux[next].calls_callback)
		t->regs[t->frame] &= ~ARG_MASK;
	if (t->regs[t->frame] & ARG_MASK)
		return false;
	/* a function returns to behind its call, a callback to the call itself */
	from_sub = next > 0 && v->insns[next - 1].code == (BPF_JMP | BPF_CALL) &&
		   v->insns[next - 1].src_reg == BPF_PSEUDO_CALL;
	r0 = from_sub && t->regs[t->frame] & 1;
	t->regs[t->frame] &= ~1u;
	if (++t->frame >= PROG_MAX_FRAMES)
		return false;
	t->regs[t->frame] = r0;
	t->slots[t->frame] = 0;
	return true;
}

/*
 * What must be known before instruction idx for what is traced to be known after it. next: the instruction that ran after
 * it, -1 not known. False: not understood.
 */
static bool trace_back(struct trace *t, u32 idx, s64 next, const struct vrf_hist *h)
{
	struct vrf *v = t->v;
	const struct bpf_insn *insn = &v->insns[idx];
	u16 *regs = &t->regs[t->frame], dst = 1u << insn->dst_reg, src = 1u << insn->src_reg;

	if (v->aux[idx].op < 0)
		return v->aux[idx].op == VRF_OP_HALF;
	if (src == 1u << ISA_REG_FP)
		src = 0;
	switch ((enum isa_kind)isa_of(v->aux[idx].op)->kind) {
	case ISA_K_MOV:
		if (*regs & dst) {
			*regs &= ~dst;
			*regs |= isa_is_reg_form(insn->code) ? src : 0;
		}
		return true;
	case ISA_K_ALU:
		if (*regs & dst && isa_is_reg_form(insn->code))
			*regs |= src;
		return true;
	case ISA_K_NEG:
	case ISA_K_END:
	case ISA_K_JA:
	case ISA_K_MAY_GOTO:
		return true;
	case ISA_K_LD_IMM64:
		*regs &= ~dst;
		return true;
	case ISA_K_LDX:
	case ISA_K_LOAD_ACQ:
		if (!(*regs & dst))
			return true;
		*regs &= ~dst;
		/* from anywhere but a spilled register a load gives all there is to know by itself */
		if (h && h->stack_access)
			t->slots[h->frame] |= 1ULL << h->spi;
		return true;
	case ISA_K_ST:
	case ISA_K_STX:
	case ISA_K_STORE_REL:
	case ISA_K_ATOMIC:
		if (*regs & dst)
			return false;
		if (!h || !h->stack_access || !(t->slots[h->frame] >> h->spi & 1))
			return true;
		t->slots[h->frame] &= ~(1ULL << h->spi);
		if (isa_of(v->aux[idx].op)->kind != ISA_K_ST)
			*regs |= src;
		return true;
	case ISA_K_JMP:
		if (isa_is_reg_form(insn->code) && *regs & (dst | 1u << insn->src_reg)) {
			*regs |= h && h->src_stack ? 0 : src;
			*regs |= h && h->dst_stack ? 0 : dst;
		}
		return true;
	case ISA_K_CALL:
		return trace_call(t, idx, next);
	case ISA_K_EXIT:
		return trace_exit(t, next);
	case ISA_K_CAST:
	case ISA_K_PERCPU:
	case ISA_K_TLS:
	case ISA_K_LD_ABS:
	case ISA_K_LD_IND:
		return false;
	}
	return false;
}

/* The instruction before i on the way recorded in st; -1: i was st's first. */
static s64 step_back(const struct vrf_state *st, u32 i, u32 *nr)
{
	if (i == st->first_idx && (*nr == 0 || (*nr == 1 && st->hist[0].idx == i)))
		return -1;
	if (*nr && st->hist[*nr - 1].idx == i)
		return st->hist[--*nr].prev;
	return (s64)i - 1;
}

static void mark_all(struct vrf_reg *reg, void *ctx)
{
	bool *changed = ctx;

	if (reg->type != SCALAR_VALUE || reg->precise)
		return;
	reg->precise = true;
	*changed = true;
}

static void give_up(struct vrf_state *st, bool *ret_changed)
{
	for (st = st->parent; st; st = st->parent)
		vrf_for_each_reg(st, mark_all, ret_changed);
}

/* Marks in checkpoint st what is traced; what is marked already, or no number there, needs no further tracing. */
static void mark_traced(struct trace *t, struct vrf_state *st, bool *ret_changed)
{
	for (u32 f = 0; f < PROG_MAX_FRAMES; f++) {
		struct vrf_func *fn = f <= st->cur ? st->frame[f] : NULL;

		for (u32 i = 0; i < ISA_REG_MAX && t->regs[f]; i++) {
			struct vrf_reg *reg = fn ? &fn->regs[i] : NULL;

			if (!(t->regs[f] >> i & 1) || !reg)
				continue;
			if (reg->type != SCALAR_VALUE || reg->precise) {
				t->regs[f] &= ~(1u << i);
			} else {
				reg->precise = true;
				*ret_changed = true;
			}
		}
		for (u32 i = 0; i < VRF_STACK_SLOTS && t->slots[f]; i++) {
			struct vrf_slot *s = fn && i < fn->nr_slots ? &fn->slots[i] : NULL;

			if (!(t->slots[f] >> i & 1) || !fn)
				continue;
			if (!s || !vrf_slot_is_spilled_scalar(s) || s->reg.precise) {
				t->slots[f] &= ~(1ULL << i);
			} else {
				s->reg.precise = true;
				*ret_changed = true;
			}
		}
	}
}

/* Way back from instruction last of st. skip: it has not run yet. */
static int trace(struct trace *t, struct vrf_state *start, u32 last, bool *ret_changed)
{
	struct vrf_state *st = start;
	struct vrf *v = t->v;
	bool skip = true;
	s64 next = -1;

	while (!traces_nothing(t)) {
		u32 nr = st->nr_hist;
		s64 i = last;

		for (;;) {
			const struct vrf_hist *h = nr && st->hist[nr - 1].idx == i ? &st->hist[nr - 1] : NULL;
			bool known = true;

			if (!skip) {
				trace_linked(t, h);
				known = trace_back(t, (u32)i, next, h);
				if (known)
					trace_linked(t, h);
			}
			skip = false;
			if (!known) {
				give_up(start, ret_changed);
				return 0;
			}
			if (traces_nothing(t))
				return 0;
			next = i;
			i = step_back(st, (u32)i, &nr);
			if (i < 0)
				break;
			if (i >= v->nr)
				return -EFAULT;
		}
		st = st->parent;
		if (!st)
			break;
		mark_traced(t, st, ret_changed);
		next = st->insn_idx;
		last = st->last_idx;
		if (last == VRF_NO_INSN)
			break; /* entry of the function being judged: its arguments */
	}
	if (!traces_nothing(t) && st && last != VRF_NO_INSN)
		give_up(start, ret_changed);
	return 0;
}

int vrf_mark_precise_in(struct vrf *v, u32 frame, u32 regno)
{
	struct trace t = { .v = v, .frame = v->cur->cur };
	bool changed = false;

	t.regs[frame] = 1u << regno;
	return trace(&t, v->cur, v->insn_idx, &changed);
}

int vrf_mark_precise(struct vrf *v, u32 regno)
{
	return vrf_mark_precise_in(v, v->cur->cur, regno);
}

int vrf_mark_slot_precise(struct vrf *v, u32 frame, u32 spi)
{
	struct trace t = { .v = v, .frame = v->cur->cur };
	bool changed = false;

	t.slots[frame] = 1ULL << spi;
	return trace(&t, v->cur, v->insn_idx, &changed);
}

int vrf_propagate_precise(struct vrf *v, const struct vrf_state *old, struct vrf_state *st, bool *ret_changed)
{
	struct trace t = { .v = v, .frame = st->cur };

	for (u32 f = 0; f <= old->cur; f++) {
		const struct vrf_func *fn = old->frame[f];

		for (u32 i = 0; i < ISA_REG_FP; i++)
			if (fn->regs[i].type == SCALAR_VALUE && fn->regs[i].precise)
				t.regs[f] |= 1u << i;
		for (u32 i = 0; i < fn->nr_slots; i++)
			if (vrf_slot_is_spilled_scalar(&fn->slots[i]) && fn->slots[i].reg.precise)
				t.slots[f] |= 1ULL << i;
	}
	return trace(&t, st, st->insn_idx, ret_changed);
}
