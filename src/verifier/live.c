// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which registers are read before they are written again, at each instruction: backward data flow to a fixed point. Used
 * to compare states only where it matters. Registers the answer leaves out cannot influence the rest of any path.
 *
 * A call reads what its callee may read: the arguments the descriptor or the prototype names; all five where unknown.
 */
#include "verifier/vrf_int.h"

#include "btf/btf.h"

#define ARG_REGS(n) ((u16)(((1u << (n)) - 1) << 1))

static u16 call_reads(const struct vrf *v, const struct bpf_insn *insn)
{
	u32 n = 0;

	if (insn->src_reg == 0) {
		const struct helper_desc *h = helper_by_id((u32)insn->imm);

		if (!h)
			return ARG_REGS(5);
		while (n < 5 && h->arg[n] != ARG_DONTCARE)
			n++;
		return ARG_REGS(n);
	}
	if (insn->src_reg == BPF_PSEUDO_KFUNC_CALL) {
		const struct vrf_kfunc *k = vrf_kfunc_at(v, (u32)(insn - v->insns));

		return k ? ARG_REGS(min_of(btf_vlen(k->proto), 5u)) : ARG_REGS(5);
	}
	return ARG_REGS(5);
}

static u16 live_before(const struct vrf *v, u32 i, u16 out)
{
	const struct bpf_insn *insn = &v->insns[i];
	enum isa_op op = (enum isa_op)v->aux[i].op;
	u16 written, read;

	if (v->aux[i].op < 0)
		return 0x7ff;
	written = isa_regs_written(op, insn);
	read = isa_regs_read(op, insn);
	if (isa_of(op)->fx & ISA_FX_CALL) {
		written |= 0x3f; /* r0..r5 do not survive */
		if (isa_of(op)->kind == ISA_K_CALL)
			read |= call_reads(v, insn);
	}
	return (u16)((out & ~written) | read);
}

static u16 live_after(const struct vrf *v, u32 i)
{
	const struct bpf_insn *insn = &v->insns[i];
	enum isa_op op = (enum isa_op)v->aux[i].op;
	u32 next = i + (u32)isa_slots(insn->code);
	u16 out = 0;

	if (v->aux[i].op < 0)
		return 0x7ff;
	if (isa_of(op)->kind == ISA_K_EXIT)
		return 0;
	if (isa_is_jump(op))
		out |= v->aux[(s64)i + 1 + isa_jump_off(insn)].live_in;
	if (isa_of(op)->kind != ISA_K_JA && next < v->nr)
		out |= v->aux[next].live_in;
	return out;
}

int vrf_live_regs(struct vrf *v)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (u32 i = v->nr; i--;) {
			u16 in;

			if (v->aux[i].op == VRF_OP_HALF)
				continue;
			in = live_before(v, i, live_after(v, i)) | 1u << ISA_REG_FP;
			changed |= in != v->aux[i].live_in;
			v->aux[i].live_in = in;
		}
	}
	return 0;
}
