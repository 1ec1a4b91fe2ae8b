// SPDX-License-Identifier: BSD-2-Clause
/* Arithmetic: on numbers by the value domain, on pointers by ptr.c. */
#include "verifier/vrf_int.h"

static const char *alu_word(u8 alu_op)
{
	static const char *const word[16] = {
		[BPF_ADD >> 4] = "+=",	[BPF_SUB >> 4] = "-=",	  [BPF_MUL >> 4] = "*=",  [BPF_DIV >> 4] = "/=",
		[BPF_OR >> 4] = "|=",	[BPF_AND >> 4] = "&=",	  [BPF_LSH >> 4] = "<<=", [BPF_RSH >> 4] = ">>=",
		[BPF_NEG >> 4] = "neg", [BPF_MOD >> 4] = "%=",	  [BPF_XOR >> 4] = "^=",  [BPF_MOV >> 4] = "=",
		[BPF_ARSH >> 4] = "s>>=", [BPF_END >> 4] = "endian",
	};

	return word[alu_op >> 4] ? word[alu_op >> 4] : "?";
}

/*
 * A number about to have a copy: both get one id, so that what is learnt of one is learnt of the other. One that is a sum
 * already starts anew, since a copy of it could be summed again.
 */
void vrf_give_id(struct vrf *v, struct vrf_reg *reg)
{
	if (reg->type != SCALAR_VALUE)
		return;
	if (reg->delta)
		vrf_reg_unlink(reg);
	if (!reg->id && !vrf_tnum_is_const(reg->range.var))
		reg->id = vrf_new_id(v);
}

/* dst, before `dst op= src` is done: can it stay linked, as a sum? op is + or -; the sum must fit in off. */
static bool stays_linked(const struct vrf_reg *dst, const struct vrf_reg *src, u8 alu_op, bool is32, s32 *ret_off)
{
	s64 val;

	if ((alu_op != BPF_ADD && alu_op != BPF_SUB) || !dst->id || dst->delta || !vrf_range_is_const(&src->range, false))
		return false;
	val = is32 ? (s32)src->range.var.value : (s64)src->range.var.value;
	if (is32 && dst->range.umax > U32_MAX)
		return false;
	if (val < S32_MIN || val > S32_MAX || (alu_op == BPF_SUB && val == S32_MIN))
		return false;
	*ret_off = (s32)(alu_op == BPF_ADD ? val : -val);
	return true;
}

static void unknown_if_broken(struct vrf_reg *reg)
{
	if (vrf_range_is_broken(&reg->range))
		vrf_range_unknown(&reg->range);
}

static int move(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	struct vrf_reg *regs = vrf_regs(v), *src = &regs[insn->src_reg], copy;
	bool is32 = isa_of(op)->width == 4;
	u32 bits = (u32)insn->off;
	int err;

	if (!isa_is_reg_form(insn->code)) {
		err = vrf_write_reg(v, insn->dst_reg);
		if (!err)
			vrf_reg_const(&regs[insn->dst_reg], is32 ? (u32)insn->imm : (u64)(s64)insn->imm);
		return err;
	}
	err = vrf_read_reg(v, insn->src_reg);
	if (!err)
		err = vrf_write_reg(v, insn->dst_reg);
	if (err)
		return err;
	if (src->type != SCALAR_VALUE) {
		if (!is32 && !bits) {
			regs[insn->dst_reg] = *src;
			return 0;
		}
		/* part of a pointer is just a number */
		vrf_reg_unknown(&regs[insn->dst_reg]);
		if (is32)
			vrf_range_low32(&regs[insn->dst_reg].range);
		return 0;
	}
	/* the copy is the same number if nothing is cut off or extended */
	if (bits ? src->range.umax < 1ULL << (bits - 1) : !is32 || src->range.umax <= U32_MAX) {
		vrf_give_id(v, src);
		copy = *src;
	} else {
		copy = *src;
		vrf_reg_unlink(&copy);
	}
	copy.precise = false;
	if (is32) {
		if (bits)
			vrf_range_sext32(&copy.range, bits / 8);
		else
			vrf_range_low32(&copy.range);
	} else if (bits) {
		vrf_range_sext(&copy.range, bits / 8);
	}
	regs[insn->dst_reg] = copy;
	return 0;
}

static int negate_or_swap(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	struct vrf_reg *dst = &vrf_regs(v)[insn->dst_reg];
	int err = vrf_read_reg(v, insn->dst_reg);

	if (!err)
		err = vrf_write_reg(v, insn->dst_reg);
	if (err)
		return err;
	if (dst->type != SCALAR_VALUE) {
		vrf_reg_unknown(dst);
		return 0;
	}
	if (isa_of(op)->kind == ISA_K_NEG) /* to little-endian only truncates */
		vrf_range_alu(&dst->range, &dst->range, BPF_NEG, isa_of(op)->width == 4);
	else
		vrf_range_end(&dst->range, (u32)insn->imm / 8, insn->code != (BPF_ALU | BPF_END | BPF_TO_LE));
	unknown_if_broken(dst);
	vrf_reg_unlink(dst);
	dst->precise = false;
	return 0;
}

static int with_pointer(struct vrf *v, const struct bpf_insn *insn, u8 alu_op, struct vrf_reg *dst, struct vrf_reg *src)
{
	struct vrf_reg ptr, num;
	int err;

	if (dst->type != SCALAR_VALUE && src->type != SCALAR_VALUE) {
		if (alu_op == BPF_SUB) {
			vrf_reg_unknown(dst);
			return 0;
		}
		vrf_say(v, "R%u pointer %s pointer prohibited\n", insn->dst_reg, alu_word(alu_op));
		return -EACCES;
	}
	/* the number decides where the pointer points */
	if (dst->type == SCALAR_VALUE) {
		err = vrf_mark_precise(v, insn->dst_reg);
		ptr = *src;
		num = *dst;
	} else {
		err = isa_is_reg_form(insn->code) ? vrf_mark_precise(v, insn->src_reg) : 0;
		ptr = *dst;
		num = *src;
	}
	return err ? err : vrf_ptr_alu(v, insn, alu_op, dst, &ptr, &num);
}

static int compute(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	struct vrf_reg *regs = vrf_regs(v), *dst = &regs[insn->dst_reg], *src = &v->imm_reg;
	bool is32 = isa_of(op)->width == 4;
	u8 alu_op = BPF_OP(insn->code);
	char msg[ISA_MSG_MAX];
	bool linked;
	int err = 0;
	s32 off = 0;

	if (isa_is_reg_form(insn->code)) {
		err = vrf_read_reg(v, insn->src_reg);
		src = &regs[insn->src_reg];
	}
	if (!err)
		err = vrf_read_reg(v, insn->dst_reg);
	if (err)
		return err;
	if (isa_check_imm(op, insn, msg) < 0) {
		vrf_say(v, "%s\n", msg);
		return -EINVAL;
	}
	err = vrf_write_reg(v, insn->dst_reg);
	if (err)
		return err;
	if (src == &v->imm_reg)
		vrf_reg_const(src, (u64)(s64)insn->imm);
	if (dst->type != SCALAR_VALUE || src->type != SCALAR_VALUE)
		return with_pointer(v, insn, alu_op, dst, src);
	linked = stays_linked(dst, src, alu_op, is32, &off);
	/* an empty view means a path that cannot be; anything is right for it */
	if (vrf_range_is_broken(&dst->range) || vrf_range_is_broken(&src->range))
		vrf_range_unknown(&dst->range);
	else
		vrf_range_alu(&dst->range, &src->range, alu_op, is32);
	unknown_if_broken(dst);
	if (linked) {
		dst->delta = is32 ? DELTA_32 : DELTA_64;
		dst->off = off;
	} else {
		vrf_reg_unlink(dst);
	}
	dst->precise = false;
	return 0;
}

int vrf_alu(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	switch (isa_of(op)->kind) {
	case ISA_K_MOV:
		return move(v, insn, op);
	case ISA_K_NEG:
	case ISA_K_END:
		return negate_or_swap(v, insn, op);
	case ISA_K_CAST:
	case ISA_K_PERCPU:
	case ISA_K_TLS:
		vrf_say(v, "addr_space_cast insn can only be used in a program that has an associated arena\n");
		return -EINVAL;
	}
	return compute(v, insn, op);
}
