// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pointer arithmetic. A pointer is base + off + range: a constant goes to off while that fits, anything else to range.
 * Offsets beyond 2^29 are refused, so that sums of a few of them never leave 64 bits.
 */
#include "verifier/vrf_int.h"

#include <string.h>

static bool sane_offset(struct vrf *v, const struct vrf_reg *reg, u32 type)
{
	s64 smin = reg->range.smin, val = (s64)reg->range.var.value;

	if (vrf_tnum_is_const(reg->range.var) && (val >= VRF_MAX_OFF || val <= -VRF_MAX_OFF))
		vrf_say(v, "math between %s pointer and %lld is not allowed\n", vrf_type_str(v, type), (long long)val);
	else if (reg->type != SCALAR_VALUE && (reg->off >= VRF_MAX_OFF || reg->off <= -VRF_MAX_OFF))
		vrf_say(v, "%s pointer offset %d is not allowed\n", vrf_type_str(v, type), reg->off);
	else if (smin == S64_MIN)
		vrf_say(v, "math between %s pointer and register with unbounded min value is not allowed\n",
			vrf_type_str(v, type));
	else if (smin >= VRF_MAX_OFF || smin <= -VRF_MAX_OFF)
		vrf_say(v, "value %lld makes %s pointer be out of bounds\n", (long long)smin, vrf_type_str(v, type));
	else
		return true;
	return false;
}

static bool may_move(u32 type)
{
	switch (type_base(type)) {
	case PTR_TO_CTX:
	case PTR_TO_MAP_VALUE:
	case PTR_TO_MAP_KEY:
	case PTR_TO_STACK:
	case PTR_TO_TP_BUFFER:
	case PTR_TO_BTF_ID:
	case PTR_TO_MEM:
	case PTR_TO_BUF:
		return true;
	}
	return false;
}

static int prohibited(struct vrf *v, u32 regno, u8 alu_op)
{
	static const char *const word[16] = {
		[BPF_MUL >> 4] = "*=", [BPF_DIV >> 4] = "/=", [BPF_OR >> 4] = "|=",   [BPF_AND >> 4] = "&=",
		[BPF_LSH >> 4] = "<<=", [BPF_RSH >> 4] = ">>=", [BPF_MOD >> 4] = "%=", [BPF_XOR >> 4] = "^=",
		[BPF_ARSH >> 4] = "s>>=",
	};
	const char *w = word[alu_op >> 4] ? word[alu_op >> 4] : "?";

	if (alu_op == BPF_AND || alu_op == BPF_OR || alu_op == BPF_XOR)
		vrf_say(v, "R%u bitwise operator %s on pointer prohibited\n", regno, w);
	else
		vrf_say(v, "R%u pointer arithmetic with %s operator prohibited\n", regno, w);
	return -EACCES;
}

/* dst is the register the instruction writes; ptr and num are copies of its operands. */
int vrf_ptr_alu(struct vrf *v, const struct bpf_insn *insn, u8 alu_op, struct vrf_reg *dst, const struct vrf_reg *ptr,
		const struct vrf_reg *num)
{
	u32 regno = insn->dst_reg;
	bool num_was_dst = dst->type == SCALAR_VALUE, known = vrf_tnum_is_const(num->range.var);
	struct vrf_reg out = *ptr;
	s64 off;

	if (vrf_range_is_broken(&num->range)) {
		vrf_reg_unknown(dst);
		return 0;
	}
	if (BPF_CLASS(insn->code) != BPF_ALU64) {
		if (alu_op == BPF_SUB) {
			vrf_reg_unknown(dst);
			return 0;
		}
		vrf_say(v, "R%u 32-bit pointer arithmetic prohibited\n", regno);
		return -EACCES;
	}
	if (vrf_may_be_null(ptr->type)) {
		vrf_say(v, "R%u pointer arithmetic on %s prohibited, null-check it first\n", regno,
			vrf_type_str(v, ptr->type));
		return -EACCES;
	}
	if (!may_move(ptr->type)) {
		vrf_say(v, "R%u pointer arithmetic on %s prohibited\n", regno, vrf_type_str(v, ptr->type));
		return -EACCES;
	}
	if (alu_op != BPF_ADD && alu_op != BPF_SUB)
		return prohibited(v, regno, alu_op);
	if (type_base(ptr->type) == PTR_TO_MEM && ptr->type & PTR_UNTRUSTED) { /* read with faults caught wherever it points */
		if (alu_op == BPF_SUB && num_was_dst) {
			vrf_say(v, "R%u tried to subtract pointer from scalar\n", regno);
			return -EACCES;
		}
		*dst = out;
		return 0;
	}
	if (!sane_offset(v, num, ptr->type) || !sane_offset(v, ptr, ptr->type))
		return -EINVAL;
	if (alu_op == BPF_SUB) {
		if (num_was_dst) {
			vrf_say(v, "R%u tried to subtract pointer from scalar\n", regno);
			return -EACCES;
		}
		if (ptr->type == PTR_TO_STACK) {
			vrf_say(v, "R%u subtraction from stack pointer prohibited\n", regno);
			return -EACCES;
		}
	}
	off = (s64)ptr->off + (alu_op == BPF_ADD ? num->range.smin : -num->range.smin);
	if (known && off == (s32)off) {
		out.off = (s32)off;
	} else {
		vrf_range_unbound32(&out.range);
		vrf_range_alu(&out.range, &num->range, alu_op, false);
	}
	if (vrf_range_is_broken(&out.range))
		vrf_range_unknown(&out.range);
	if (!sane_offset(v, &out, ptr->type))
		return -EINVAL;
	*dst = out;
	return 0;
}
