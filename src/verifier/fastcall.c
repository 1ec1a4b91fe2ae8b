// SPDX-License-Identifier: BSD-2-Clause
/*
 * bpf_fastcall: a call that is inlined loses r0, if it returns a value, and its own parameters; no other register. Compilers
 * know which calls promise that, and still spill what an ordinary call would lose, for kernels that do not:
 *
 *	*(u64 *)(r10 - 24) = r2
 *	*(u64 *)(r10 - 16) = r3		pair n of the call: the n-th before and the n-th behind, slot n from
 *	call				the lowest of the function's stack
 *	r3 = *(u64 *)(r10 - 16)
 *	r2 = *(u64 *)(r10 - 24)
 *
 * Here such pairs are found before the walk. While it goes on, any access to their slots by another instruction cancels
 * all of the function's. What is left may be removed when the call is inlined, and the slots with it.
 */
#include "verifier/vrf_int.h"

#include "btf/btf.h"

#define NO_STACK_OFF (-32768) /* below any offset: every access is above */

static bool is_spill(const struct bpf_insn *insn)
{
	return insn->code == (BPF_STX | BPF_MEM | BPF_DW) && insn->dst_reg == ISA_REG_FP;
}

static bool is_fill(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LDX | BPF_MEM | BPF_DW) && insn->src_reg == ISA_REG_FP;
}

/* Registers the call at i would keep by the contract though an ordinary one loses them; *ret_fast: it has that contract. */
static u32 kept_regs(const struct vrf *v, u32 i, bool *ret_fast)
{
	const struct helper_desc *h = v->insns[i].src_reg ? NULL : helper_by_id((u32)v->insns[i].imm);
	const struct vrf_kfunc *k = vrf_kfunc_at(v, i);
	u32 lost = 0;

	*ret_fast = false;
	if (h) {
		lost = type_base(h->ret) == RET_VOID ? 0 : 1;
		for (u32 n = 0; n < 5 && type_base(h->arg[n]) != ARG_DONTCARE; n++)
			lost |= 2u << n;
		*ret_fast = h->flags & HELPER_FASTCALL;
	} else if (k && k->desc) {
		lost = (k->proto->type ? 1 : 0) | ((1u << btf_vlen(k->proto)) - 1) << 1;
		*ret_fast = k->desc->flags & KFUNC_FASTCALL;
	} else {
		return 0;
	}
	return ~lost & ((1u << CALLER_SAVED) - 1);
}

static void mark_call(struct vrf *v, struct vrf_sub *sub, u32 i, s32 lowest)
{
	bool fast;
	u32 regs = kept_regs(v, i, &fast), n;
	s32 off = lowest;

	for (n = 1; n <= CALLER_SAVED && i >= sub->start + n && i + n < sub->end; n++, off += 8) {
		const struct bpf_insn *spill = &v->insns[i - n], *fill = &v->insns[i + n];

		/* who jumps in between comes without the spills */
		if (v->aux[i - n + 1].jump_target || v->aux[i + n].jump_target)
			break;
		if (!is_spill(spill) || !is_fill(fill) || spill->src_reg != fill->dst_reg ||
		    !(regs >> spill->src_reg & 1) || spill->off != off || fill->off != off)
			break;
		regs &= ~(1u << spill->src_reg);
		v->aux[i - n].fastcall_pattern = 1;
		v->aux[i + n].fastcall_pattern = 1;
	}
	if (n == 1)
		return;
	sub->has_fastcall = true;
	sub->fastcall_off = min_of(sub->fastcall_off, off);
	if (fast)
		v->aux[i].fastcall_spills = (u8)(n - 1);
	else
		sub->keep_fastcall_stack = true;
}

void vrf_fastcall_mark(struct vrf *v)
{
	for (u32 s = 0; s < v->nr_subs; s++) {
		struct vrf_sub *sub = &v->subs[s];
		s32 lowest = 0;

		for (u32 i = sub->start; i < sub->end; i++)
			if (is_spill(&v->insns[i]))
				lowest = min_of(lowest, (s32)v->insns[i].off);
		for (u32 i = sub->start; i < sub->end; i++)
			if (v->insns[i].code == (BPF_JMP | BPF_CALL) && v->insns[i].src_reg != BPF_PSEUDO_CALL)
				mark_call(v, sub, i, lowest);
	}
}

void vrf_fastcall_access(struct vrf *v, u32 subprog, s64 off)
{
	struct vrf_sub *sub = &v->subs[subprog];

	if (!sub->has_fastcall || sub->fastcall_off <= off || v->aux[v->insn_idx].fastcall_pattern)
		return;
	sub->fastcall_off = NO_STACK_OFF;
	for (u32 i = sub->start; i < sub->end; i++) {
		v->aux[i].fastcall_pattern = 0;
		v->aux[i].fastcall_spills = 0;
	}
}

/* The walk is over: what may go, and how much stack is then left. */
void vrf_fastcall_settle(struct vrf *v)
{
	for (u32 s = 0; s < v->nr_subs; s++) {
		struct vrf_sub *sub = &v->subs[s];
		bool any = false;

		for (u32 i = sub->start; i < sub->end; i++) {
			v->facts[i].fastcall_pattern = v->aux[i].fastcall_pattern;
			v->facts[i].fastcall_spills = v->aux[i].fastcall_spills;
			any |= v->aux[i].fastcall_spills;
		}
		sub->fastcall_depth = any && !sub->keep_fastcall_stack ? (u32)-sub->fastcall_off : sub->stack_depth;
	}
}
