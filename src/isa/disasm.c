// SPDX-License-Identifier: BSD-2-Clause
// Instructions as text: fills the templates of insn.def.
#include "isa/disasm.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_ 256

struct disasm {
	struct strbuf *out;
	const struct isa_names *names;
	const struct bpf_insn *insn;
	u32 hi;	  /* second half of a 64-bit immediate */
	u8 width; /* of registers named $d and $s: 4 prints w */
};

static void put_reg(struct disasm *d, bool narrow, u8 reg)
{
	strbuf_printf(d->out, "%c%u", narrow ? 'w' : 'r', reg);
}

static void put_callee(struct disasm *d)
{
	const struct bpf_insn *insn = d->insn;
	char name[NAME_MAX_];
	bool named = d->names && d->names->call && d->names->call(d->names->ctx, insn, name, sizeof(name));

	if (insn->src_reg == BPF_PSEUDO_CALL) {
		if (named)
			strbuf_printf(d->out, "pc%s", name);
		else
			strbuf_printf(d->out, "pc%+d", insn->imm);
		return;
	}
	if (!named)
		snprintf(name, sizeof(name), "%s",
			 insn->src_reg == BPF_PSEUDO_KFUNC_CALL ? "kernel-function" : "unknown");
	strbuf_printf(d->out, "%s#%d", name, insn->imm);
}

static void put_arg(struct disasm *d, char c)
{
	const struct bpf_insn *insn = d->insn;

	switch (c) {
	case 'd':
		put_reg(d, d->width == 4, insn->dst_reg);
		break;
	case 's':
		put_reg(d, d->width == 4, insn->src_reg);
		break;
	case 'D':
	case 'E':
		put_reg(d, false, insn->dst_reg);
		break;
	case 'S':
	case 'T':
		put_reg(d, false, insn->src_reg);
		break;
	case 'i':
		strbuf_printf(d->out, "%d", insn->imm);
		break;
	case 'x':
		strbuf_printf(d->out, "0x%x", insn->imm);
		break;
	case 'o':
		strbuf_printf(d->out, "%+d", insn->off);
		break;
	case 'j':
		strbuf_printf(d->out, "pc%+d", insn->off);
		break;
	case 'J':
		strbuf_printf(d->out, "pc%+d", insn->imm);
		break;
	case 'f':
		strbuf_printf(d->out, "%+d", insn->imm);
		break;
	case 'c':
		put_callee(d);
		break;
	case 'l':
		strbuf_printf(d->out, "0x%llx", (unsigned long long)d->hi << 32 | (u32)insn->imm);
		break;
	case 'n':
		strbuf_printf(d->out, "%u", d->hi);
		break;
	case 'a':
		strbuf_printf(d->out, "%u", (u32)insn->imm >> 16);
		break;
	case 'b':
		strbuf_printf(d->out, "%u", (u32)insn->imm & 0xffff);
		break;
	}
}

static void put_template(struct disasm *d, const char *t)
{
	for (; *t; t++) {
		if (*t == '$')
			put_arg(d, *++t);
		else
			strbuf_putc(d->out, *t);
	}
}

/* Linux has text for read-modify-write of 1 and 2 bytes, though there is none: that of 4, with their type. */
static bool put_narrow_atomic(struct disasm *d, const struct bpf_insn *insn)
{
	struct bpf_insn word = *insn;
	const char *t, *type;
	int op;

	if ((insn->code & ~BPF_SIZE(0xff)) != (BPF_STX | BPF_ATOMIC))
		return false;
	word.code = BPF_STX | BPF_ATOMIC | BPF_W;
	op = isa_decode(&word);
	if (op < 0)
		return false;
	t = isa_info[op].text;
	type = strstr(t, "u32");
	strbuf_printf(d->out, "(%02x) ", insn->code);
	for (; *t; t++) {
		if (t == type) {
			strbuf_puts(d->out, BPF_SIZE(insn->code) == BPF_B ? "u8" : "u16");
			t += 2;
		} else if (*t == '$') {
			put_arg(d, *++t);
		} else {
			strbuf_putc(d->out, *t);
		}
	}
	return true;
}

/* The template Linux uses, in effect, for an encoding it will refuse; NULL: it has no text for it. */
static const char *refused_text(const struct bpf_insn *insn, u8 *ret_width)
{
	int op;

	for (op = 0; op < ISA_OP_MAX; op++)
		if (isa_info[op].code == insn->code)
			break;
	if (op == ISA_OP_MAX)
		return NULL;
	*ret_width = isa_info[op].width;
	switch (isa_info[op].kind) {
	case ISA_K_END:
		return op == ISA_LE16 ? "$D = le$i $D" : op == ISA_BE16 ? "$D = be$i $D" : "$D = bswap$i $D";
	case ISA_K_MAY_GOTO:
		return "if $D (null) $x goto $j";
	case ISA_K_LD_IMM64:
		return "$D = $l";
	case ISA_K_MOV:
		return insn->off == 32 ? "$d = (s32)$s" : isa_info[op].text;
	case ISA_K_ALU:
	case ISA_K_CALL:
		return isa_info[op].text;
	}
	return NULL;
}

static void put_bug(struct strbuf *out, u8 code)
{
	static const char *const word[8] = { "ld_", "ldx_", "st_", "", "alu_", "jmp_", "jmp_", "alu_" };

	strbuf_printf(out, "BUG_%s%02x", word[BPF_CLASS(code)], code);
}

int isa_disasm(struct strbuf *out, const struct bpf_insn *insn, u32 left, const struct isa_names *names)
{
	struct disasm d = { .out = out, .names = names, .insn = insn };
	int op = isa_decode(insn), slots = isa_slots(insn->code);
	char text[NAME_MAX_];
	const char *t;

	if (slots == 2 && left < 2)
		slots = 1;
	if (slots == 2)
		d.hi = insn[1].imm;
	if (op >= 0) {
		t = isa_info[op].text;
		d.width = isa_info[op].width;
	} else {
		t = refused_text(insn, &d.width);
	}
	if (!t) {
		if (!put_narrow_atomic(&d, insn))
			put_bug(out, insn->code);
		return slots;
	}
	strbuf_printf(out, "(%02x) ", insn->code);
	if (slots == 2 && names && names->imm64 && names->imm64(names->ctx, insn, text, sizeof(text)))
		strbuf_printf(out, "r%u = %s", insn->dst_reg, text);
	else
		put_template(&d, t);
	return slots;
}
