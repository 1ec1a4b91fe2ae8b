// SPDX-License-Identifier: BSD-2-Clause
// The table of instructions, decoding by opcode byte and selector field, and the checks of an encoding.
#include "isa/isa.h"

#include <errno.h>
#include <stdio.h>

/* the words of insn.def's columns fx and fields */
enum {
	DR = ISA_FX_DR, DW = ISA_FX_DW, SR = ISA_FX_SR, SW = ISA_FX_SW, R0R = ISA_FX_R0R,
	R0W = ISA_FX_R0W, R6R = ISA_FX_R6R, CALL = ISA_FX_CALL, MR = ISA_FX_MR, MW = ISA_FX_MW,
	D = ISA_F_DST, S = ISA_F_SRC, O = ISA_F_OFF, I = ISA_F_IMM,
};

const struct isa_info isa_info[ISA_OP_MAX] = {
#define ROW(name_, kind_, code_, sel_, val_, width_, fx_, fields_, text_, alt_, internal_)         \
	[ISA_##name_] = { .name = #name_, .kind = ISA_K_##kind_, .code = (u8)(code_),              \
			  .sel = ISA_F_##sel_, .val = val_, .width = width_, .fx = fx_,            \
			  .fields = fields_, .text = text_, .alt = alt_, .internal = internal_ },
#define OP(name, kind, code, sel, val, width, fx, fields, ev, expr, text, alt)                     \
	ROW(name, kind, code, sel, val, width, fx, fields, text, alt, false)
#define OP_INTERNAL(name, kind, code, sel, val, width, fx, fields, ev, expr, text, alt)            \
	ROW(name, kind, code, sel, val, width, fx, fields, text, alt, true)
#include "isa/insn.def"
#undef ROW
};

/* What every row must fulfil; the message names what is wrong, the compiler the row. */
#define OP(name, kind, code, sel, val, width, fx, fields, ev, expr, text, alt)                     \
	_Static_assert(((code) & ~0xff) == 0, "opcode is a byte: " #name);                         \
	_Static_assert((width) == 0 || (width) == 1 || (width) == 2 || (width) == 4 ||             \
		       (width) == 8, "width: " #name);                                             \
	_Static_assert(!((fx) & (DR | DW)) || ((fields) & D), "dst without a field: " #name);      \
	_Static_assert(!((fx) & (SR | SW)) || ((fields) & S), "src without a field: " #name);      \
	_Static_assert(!((fx) & (MR | MW)) || (width), "memory without a width: " #name);          \
	_Static_assert(ISA_F_##sel != ISA_F_NONE || (val) == 0, "a value, but nothing to compare: " #name);      \
	_Static_assert(((code) & BPF_X) || BPF_CLASS(code) == BPF_LDX || BPF_CLASS(code) == BPF_STX || \
		       BPF_CLASS(code) == BPF_LD || !((fx) & SR), "src in a K form: " #name);
#include "isa/insn.def"
_Static_assert(ISA_OP_MAX < 512, "operations are kept in 16 bits, some tables are sized by their number");
_Static_assert(sizeof(struct bpf_insn) == 8, "an instruction is 8 bytes");

/* The last row of each opcode byte, plus 1; its others precede it. */
static const u16 last_row[256] = {
#define OP(name, kind, code, ...) [code] = ISA_##name + 1,
#include "isa/insn.def"
};

static s32 field(const struct bpf_insn *insn, u8 sel)
{
	switch (sel) {
	case ISA_F_SRC:
		return insn->src_reg;
	case ISA_F_OFF:
		return insn->off;
	case ISA_F_IMM:
		return insn->imm;
	}
	return 0;
}

int isa_decode(const struct bpf_insn *insn)
{
	int i = last_row[insn->code] - 1;
	s32 v;

	if (unlikely(i < 0))
		return -EINVAL;
	if (likely(isa_info[i].sel == ISA_F_NONE))
		return i;
	v = field(insn, isa_info[i].sel);
	for (; i >= 0 && isa_info[i].code == insn->code; i--)
		if (isa_info[i].sel != ISA_F_NONE && isa_info[i].val == v)
			return i;
	return -EINVAL;
}

struct bpf_insn isa_encode(enum isa_op op, u8 dst, u8 src, s16 off, s32 imm)
{
	const struct isa_info *info = &isa_info[op];
	struct bpf_insn insn = { .code = info->code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm };

	switch (info->sel) {
	case ISA_F_SRC:
		insn.src_reg = info->val;
		break;
	case ISA_F_OFF:
		insn.off = info->val;
		break;
	case ISA_F_IMM:
		insn.imm = info->val;
		break;
	}
	return insn;
}

const char *isa_op_name(int op)
{
	return op >= 0 && op < ISA_OP_MAX ? isa_info[op].name : NULL;
}

/* Whose reserved fields they are, by the kind of any row of the code. */
static const char *const kind_word[] = {
	[ISA_K_ALU] = "ALU",	     [ISA_K_NEG] = "NEG",
	[ISA_K_MOV] = "MOV",	     [ISA_K_CAST] = "MOV",
	[ISA_K_PERCPU] = "MOV",	     [ISA_K_TLS] = "LDX",
	[ISA_K_END] = "END",	     [ISA_K_LD_IMM64] = "LD_IMM64",
	[ISA_K_LD_ABS] = "LD_[ABS|IND]", [ISA_K_LD_IND] = "LD_[ABS|IND]",
	[ISA_K_LDX] = "LDX",	     [ISA_K_ST] = "ST",
	[ISA_K_STX] = "STX",	     [ISA_K_JA] = "JA",
	[ISA_K_JMP] = "JMP/JMP32",   [ISA_K_CALL] = "CALL",
	[ISA_K_EXIT] = "EXIT",	     [ISA_K_LOAD_ACQ] = "ATOMIC",
	[ISA_K_STORE_REL] = "ATOMIC", [ISA_K_ATOMIC] = "ATOMIC",
	[ISA_K_MAY_GOTO] = "JMP/JMP32",
};

static int reserved(enum isa_kind kind, char msg[ISA_MSG_MAX])
{
	snprintf(msg, ISA_MSG_MAX, "BPF_%s uses reserved fields", kind_word[kind]);
	return -EINVAL;
}

static int check_ld_imm64(const struct bpf_insn *insn, u32 left, char msg[ISA_MSG_MAX])
{
	if (left < 2 || insn[1].code || insn[1].dst_reg || insn[1].src_reg || insn[1].off) {
		snprintf(msg, ISA_MSG_MAX, "invalid bpf_ld_imm64 insn");
		return -EINVAL;
	}
	if (insn->src_reg > BPF_PSEUDO_MAP_IDX_VALUE ||
	    ((insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_IDX) && insn[1].imm)) {
		snprintf(msg, ISA_MSG_MAX, "unrecognized bpf_ld_imm64 insn");
		return -EINVAL;
	}
	return 2;
}

int isa_check_shape(const struct bpf_insn *insn, u32 left, char msg[ISA_MSG_MAX])
{
	int row = last_row[insn->code] - 1, op = isa_decode(insn);

	if (BPF_CLASS(insn->code) == BPF_LDX &&
	    ((BPF_MODE(insn->code) != BPF_MEM && BPF_MODE(insn->code) != BPF_MEMSX) || insn->imm))
		return reserved(ISA_K_LDX, msg);
	/* a known byte whose selector is wrong is for isa_check_insn() to refuse */
	if (row < 0 || (op >= 0 && isa_info[op].sel == ISA_F_NONE && isa_info[op].internal)) {
		snprintf(msg, ISA_MSG_MAX, "unknown opcode %02x", insn->code);
		return -EINVAL;
	}
	if (isa_slots(insn->code) == 2)
		return check_ld_imm64(insn, left, msg);
	return 1;
}

/* Why no row of a known opcode byte matches. */
static int bad_selector(const struct bpf_insn *insn, char msg[ISA_MSG_MAX])
{
	enum isa_kind kind = isa_info[last_row[insn->code] - 1].kind;
	struct bpf_insn wide = *insn;

	if (kind == ISA_K_MAY_GOTO) {
		snprintf(msg, ISA_MSG_MAX, "invalid may_goto imm %d", insn->imm);
		return -EINVAL;
	}
	if (kind == ISA_K_STORE_REL || kind == ISA_K_ATOMIC || kind == ISA_K_LOAD_ACQ) {
		/* read-modify-write exists in 4 and 8 bytes */
		wide.code = BPF_STX | BPF_ATOMIC | BPF_DW;
		if (isa_decode(&wide) >= 0)
			snprintf(msg, ISA_MSG_MAX, "invalid atomic operand size");
		else
			snprintf(msg, ISA_MSG_MAX, "BPF_ATOMIC uses invalid atomic opcode %02x", insn->imm);
		return -EINVAL;
	}
	return reserved(kind, msg);
}

int isa_check_insn(const struct bpf_insn *insn, char msg[ISA_MSG_MAX])
{
	const struct isa_info *info;
	int op = isa_decode(insn), used;

	if (op < 0 && last_row[insn->code])
		return bad_selector(insn, msg);
	if (op < 0) {
		snprintf(msg, ISA_MSG_MAX, "unknown opcode %02x", insn->code);
		return -EINVAL;
	}
	info = &isa_info[op];
	used = info->fields | info->sel;
	if (unlikely(info->internal || (!(used & ISA_F_DST) && insn->dst_reg) ||
		     (!(used & ISA_F_SRC) && insn->src_reg) || (!(used & ISA_F_OFF) && insn->off) ||
		     (!(used & ISA_F_IMM) && insn->imm))) {
		if (info->kind == ISA_K_MAY_GOTO)
			return bad_selector(insn, msg);
		return reserved(info->kind, msg);
	}
	if (info->kind == ISA_K_CAST && insn->imm != 1 && insn->imm != 1 << 16) {
		snprintf(msg, ISA_MSG_MAX,
			 "addr_space_cast insn can only convert between address space 1 and 0");
		return -EINVAL;
	}
	return op;
}

int isa_check_imm(enum isa_op op, const struct bpf_insn *insn, char msg[ISA_MSG_MAX])
{
	const struct isa_info *info = &isa_info[op];

	if (info->kind != ISA_K_ALU || isa_is_reg_form(info->code))
		return 0;
	switch (BPF_OP(info->code)) {
	case BPF_DIV:
	case BPF_MOD:
		if (insn->imm)
			return 0;
		snprintf(msg, ISA_MSG_MAX, "div by zero");
		return -EINVAL;
	case BPF_LSH:
	case BPF_RSH:
	case BPF_ARSH:
		if (insn->imm >= 0 && insn->imm < info->width * 8)
			return 0;
		snprintf(msg, ISA_MSG_MAX, "invalid shift %d", insn->imm);
		return -EINVAL;
	}
	return 0;
}

u16 isa_regs_read(enum isa_op op, const struct bpf_insn *insn)
{
	u16 fx = isa_info[op].fx;

	return (fx & ISA_FX_DR ? 1u << insn->dst_reg : 0) | (fx & ISA_FX_SR ? 1u << insn->src_reg : 0) |
	       (fx & ISA_FX_R0R ? 1u << 0 : 0) | (fx & ISA_FX_R6R ? 1u << 6 : 0);
}

u16 isa_regs_written(enum isa_op op, const struct bpf_insn *insn)
{
	u16 fx = isa_info[op].fx;

	return (fx & ISA_FX_DW ? 1u << insn->dst_reg : 0) | (fx & ISA_FX_SW ? 1u << insn->src_reg : 0) |
	       (fx & ISA_FX_R0W ? 1u << 0 : 0) | (fx & ISA_FX_CALL ? 0x3e : 0);
}
