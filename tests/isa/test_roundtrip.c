// SPDX-License-Identifier: BSD-2-Clause
// Every row of the instruction table: bytes -> operation -> bytes, and bytes -> text -> bytes -> text.
#include <string.h>

#include "isa/asm.h"
#include "isa/disasm.h"
#include "tap.h"

static u64 seed = 88172645463325252ULL;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

/* Values at the edges and between. */
static s32 rnd_imm(void)
{
	static const s32 edge[] = { 0, 1, -1, 127, -128, 32767, -32768, S32_MAX, S32_MIN, 10, 255, 65536 };

	return rnd() % 3 ? edge[rnd() % ARRAY_SIZE(edge)] : (s32)rnd();
}

static s16 rnd_off(void)
{
	static const s16 edge[] = { 0, 1, -1, 8, -8, 127, -128, 32767, -32768 };

	return rnd() % 3 ? edge[rnd() % ARRAY_SIZE(edge)] : (s16)rnd();
}

/* A random instruction of the row, both slots; fields that mean nothing are zero. */
static void generate(int op, struct bpf_insn insn[2])
{
	const struct isa_info *info = &isa_info[op];
	u8 f = info->fields & ~info->sel;

	insn[0] = isa_encode(op, f & ISA_F_DST ? rnd() % 11 : 0, f & ISA_F_SRC ? rnd() % 11 : 0,
			     f & ISA_F_OFF ? rnd_off() : 0, f & ISA_F_IMM ? rnd_imm() : 0);
	memset(&insn[1], 0, sizeof(insn[1]));
	if (info->kind == ISA_K_LD_IMM64)
		insn[1].imm = op == ISA_LD_MAP_FD || op == ISA_LD_MAP_IDX || op == ISA_LD_FUNC ? 0 : rnd_imm();
	if (op == ISA_EXIT || op == ISA_CALL_KFUNC)
		insn[0].off = 0; /* has no place in the text */
	if (op == ISA_MOV64_PERCPU)
		insn[0].imm = 0; /* nor has the distance of the copies: the text is Linux's */
}

static void decodes(int op)
{
	struct bpf_insn insn[2];
	int i, bad = 0;

	for (i = 0; i < 200; i++) {
		generate(op, insn);
		bad += isa_decode(insn) != op;
	}
	ok(!bad, "%s decodes to itself", isa_info[op].name);
}

static void text_returns(int op)
{
	struct strbuf text = STRBUF_INIT, again = STRBUF_INIT, err = STRBUF_INIT;
	struct bpf_insn insn[2];
	struct isa_code code;
	int i, bad = 0;
	u32 slots;

	for (i = 0; i < 200 && !bad; i++) {
		generate(op, insn);
		strbuf_reset(&text);
		strbuf_reset(&again);
		strbuf_reset(&err);
		slots = isa_disasm(&text, insn, 2, NULL);
		if (isa_assemble(strbuf_str(&text), NULL, &code, &err)) {
			printf("# %s: %s\n", strbuf_str(&text), strbuf_str(&err));
			bad++;
			break;
		}
		isa_disasm(&again, code.insns, code.len, NULL);
		if (code.len != slots || memcmp(code.insns, insn, slots * sizeof(*insn)) ||
		    strcmp(strbuf_str(&text), strbuf_str(&again))) {
			printf("# %s became %s\n", strbuf_str(&text), strbuf_str(&again));
			bad++;
		}
		isa_code_fini(&code);
	}
	ok(!bad, "%s returns from its text", isa_info[op].name);
	strbuf_fini(&text);
	strbuf_fini(&again);
	strbuf_fini(&err);
}

/* Without "(18)" before it the text must give the same, where no other instruction is written so. */
static void text_alone_returns(int op)
{
	struct strbuf text = STRBUF_INIT, err = STRBUF_INIT;
	struct bpf_insn insn[2];
	struct isa_code code = { 0 };
	int bad = 0;

	if (op == ISA_LD_IMM64)
		return; /* "r1 = 5" is a move */
	generate(op, insn);
	isa_disasm(&text, insn, 2, NULL);
	if (isa_assemble(strbuf_str(&text) + 5, NULL, &code, &err) ||
	    memcmp(code.insns, insn, code.len * sizeof(*insn)))
		bad++;
	ok(!bad, "%s returns from \"%s\"", isa_info[op].name, strbuf_str(&text) + 5);
	isa_code_fini(&code);
	strbuf_fini(&text);
	strbuf_fini(&err);
}

/* Rows of one opcode byte stand together and differ in the selector; a row alone has none. */
static void table_is_sound(void)
{
	int a, b, bad = 0;

	for (a = 0; a < ISA_OP_MAX; a++) {
		for (b = a + 1; b < ISA_OP_MAX; b++) {
			if (isa_info[a].code != isa_info[b].code)
				continue;
			bad += isa_info[b - 1].code != isa_info[b].code;
			bad += isa_info[a].sel == ISA_F_NONE || isa_info[a].sel != isa_info[b].sel;
			bad += isa_info[a].val == isa_info[b].val;
		}
	}
	ok(!bad, "rows of one code are adjacent and told apart by one field");
	ok(ISA_OP_MAX >= 188, "the table has %d rows", ISA_OP_MAX);
}

/* Every slot value that decodes must encode back to its row's selector. */
static void undecodable_is_refused(void)
{
	struct bpf_insn insn;
	int i, op, decoded = 0, bad = 0;

	for (i = 0; i < 1000000; i++) {
		u64 raw = (u64)rnd() << 32 | rnd();

		memcpy(&insn, &raw, sizeof(insn));
		if (i & 1)
			insn.imm &= 0x1f1;
		op = isa_decode(&insn);
		if (op < 0)
			continue;
		decoded++;
		bad += op >= ISA_OP_MAX || isa_info[op].code != insn.code;
	}
	ok(!bad && decoded > 100000, "random slots decode to a row of their opcode byte or to nothing");
}

int main(void)
{
	int op;

	table_is_sound();
	undecodable_is_refused();
	for (op = 0; op < ISA_OP_MAX; op++) {
		decodes(op);
		text_returns(op);
		text_alone_returns(op);
	}
	return tap_done();
}
