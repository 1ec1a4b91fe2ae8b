// SPDX-License-Identifier: BSD-2-Clause
// Encodings that must be refused, and the words in which they are.
#include <errno.h>
#include <string.h>

#include "isa/disasm.h"
#include "tap.h"

#define X(code_, dst_, src_, off_, imm_)                                                           \
	(struct bpf_insn)                                                                          \
	{                                                                                          \
		.code = code_, .dst_reg = dst_, .src_reg = src_, .off = off_, .imm = imm_          \
	}

static const struct {
	struct bpf_insn insn;
	const char *msg; /* of whichever check refuses first; NULL: accepted */
} cases[] = {
	{ X(0x07, 0, 0, 0, 1), NULL },
	{ X(0x07, 0, 3, 0, 1), "BPF_ALU uses reserved fields" },
	{ X(0x07, 0, 0, 1, 1), "BPF_ALU uses reserved fields" },
	{ X(0x0f, 0, 3, 0, 1), "BPF_ALU uses reserved fields" },
	{ X(0x3f, 0, 3, 1, 0), NULL },
	{ X(0x3f, 0, 3, 2, 0), "BPF_ALU uses reserved fields" },
	{ X(0x3f, 0, 3, -1, 0), "BPF_ALU uses reserved fields" },
	{ X(0x3f, 0, 3, 0, 3), "BPF_ALU uses reserved fields" },
	{ X(0x37, 0, 0, 0, 0), "div by zero" },
	{ X(0x94, 0, 0, 1, 0), "div by zero" },
	{ X(0x27, 0, 0, 0, 0), NULL },
	{ X(0x67, 0, 0, 0, 63), NULL },
	{ X(0x67, 0, 0, 0, 64), "invalid shift 64" },
	{ X(0xc4, 0, 0, 0, 32), "invalid shift 32" },
	{ X(0x74, 0, 0, 0, -1), "invalid shift -1" },
	{ X(0x87, 0, 0, 0, 0), NULL },
	{ X(0x87, 0, 1, 0, 0), "BPF_NEG uses reserved fields" },
	{ X(0x84, 0, 0, 0, 7), "BPF_NEG uses reserved fields" },
	{ X(0xb7, 0, 1, 0, 0), "BPF_MOV uses reserved fields" },
	{ X(0xbf, 0, 1, 32, 0), NULL },
	{ X(0xbc, 0, 1, 32, 0), "BPF_MOV uses reserved fields" },
	{ X(0xbf, 0, 1, 64, 0), "BPF_MOV uses reserved fields" },
	{ X(0xbf, 0, 1, -1, 0), "BPF_MOV uses reserved fields" },
	{ X(0xbf, 0, 1, 0, 1), "BPF_MOV uses reserved fields" },
	{ X(0xbf, 0, 1, 1, 0), "addr_space_cast insn can only convert between address space 1 and 0" },
	{ X(0xd4, 0, 0, 0, 64), NULL },
	{ X(0xd4, 0, 0, 0, 24), "BPF_END uses reserved fields" },
	{ X(0xdc, 0, 1, 0, 16), "BPF_END uses reserved fields" },
	{ X(0xd7, 0, 0, 1, 16), "BPF_END uses reserved fields" },
	{ X(0xdf, 0, 0, 0, 16), "unknown opcode df" },
	{ X(0x05, 0, 0, 5, 0), NULL },
	{ X(0x05, 1, 0, 5, 0), "BPF_JA uses reserved fields" },
	{ X(0x05, 0, 0, 5, 1), "BPF_JA uses reserved fields" },
	{ X(0x06, 0, 0, 0, 5), NULL },
	{ X(0x06, 0, 0, 1, 5), "BPF_JA uses reserved fields" },
	{ X(0x15, 0, 1, 0, 5), "BPF_JMP/JMP32 uses reserved fields" },
	{ X(0x1e, 0, 1, 0, 5), "BPF_JMP/JMP32 uses reserved fields" },
	{ X(0xe5, 0, 0, 5, 0), NULL },
	{ X(0xe5, 1, 0, 5, 0), "invalid may_goto imm 0" },
	{ X(0xe5, 0, 1, 5, 4), "invalid may_goto imm 4" },
	{ X(0xe6, 0, 0, 5, 0), "unknown opcode e6" },
	{ X(0x85, 0, 0, 0, 7), NULL },
	{ X(0x85, 1, 0, 0, 7), "BPF_CALL uses reserved fields" },
	{ X(0x85, 0, 3, 0, 7), "BPF_CALL uses reserved fields" },
	{ X(0x85, 0, 0, 1, 7), "BPF_CALL uses reserved fields" },
	{ X(0x85, 0, 2, 1, 7), NULL },
	{ X(0x8d, 0, 0, 0, 7), "unknown opcode 8d" },
	{ X(0x95, 0, 0, 0, 0), NULL },
	{ X(0x95, 0, 0, 1, 0), NULL },
	{ X(0x95, 1, 0, 0, 0), "BPF_EXIT uses reserved fields" },
	{ X(0x95, 0, 0, 0, 1), "BPF_EXIT uses reserved fields" },
	{ X(0x79, 0, 1, 8, 0), NULL },
	{ X(0x79, 0, 1, 8, 1), "BPF_LDX uses reserved fields" },
	{ X(0x99, 0, 1, 8, 0), "unknown opcode 99" },
	{ X(0x21, 0, 1, 8, 0), "BPF_LDX uses reserved fields" }, /* the internal probe loads */
	{ X(0x41, 0, 1, 8, 0), "BPF_LDX uses reserved fields" },
	{ X(0x7a, 0, 1, 8, 0), "BPF_ST uses reserved fields" },
	{ X(0x7b, 0, 1, 8, 1), "BPF_STX uses reserved fields" },
	{ X(0xdb, 0, 1, 8, 0x02), "BPF_ATOMIC uses invalid atomic opcode 02" },
	{ X(0xdb, 0, 1, 8, 0xe0), "BPF_ATOMIC uses invalid atomic opcode e0" },
	{ X(0xdb, 0, 1, 8, 0xf0), "BPF_ATOMIC uses invalid atomic opcode f0" },
	{ X(0xdb, 0, 1, 8, -1), "BPF_ATOMIC uses invalid atomic opcode ffffffff" },
	{ X(0xd3, 0, 1, 8, 0), "invalid atomic operand size" },
	{ X(0xcb, 0, 1, 8, 0xf1), "invalid atomic operand size" },
	{ X(0xd3, 0, 1, 8, 0x100), NULL },
	{ X(0x30, 0, 0, 0, 9), NULL },
	{ X(0x30, 1, 0, 0, 9), "BPF_LD_[ABS|IND] uses reserved fields" },
	{ X(0x50, 0, 1, 0, 9), NULL },
	{ X(0x50, 0, 1, 1, 9), "BPF_LD_[ABS|IND] uses reserved fields" },
	{ X(0x38, 0, 0, 0, 9), "unknown opcode 38" },
	{ X(0x00, 0, 0, 0, 0), "unknown opcode 00" },
	{ X(0x18, 0, 0, 1, 0), "BPF_LD_IMM64 uses reserved fields" },
	{ X(0x18, 0, 7, 0, 0), "unrecognized bpf_ld_imm64 insn" },
};

static const char *check(const struct bpf_insn *insn, u32 left, char msg[ISA_MSG_MAX])
{
	int op;

	if (isa_check_shape(insn, left, msg) < 0)
		return msg;
	op = isa_check_insn(insn, msg);
	if (op < 0 || isa_check_imm(op, insn, msg))
		return msg;
	return NULL;
}

static void verdicts(void)
{
	struct strbuf text = STRBUF_INIT;
	char msg[ISA_MSG_MAX];
	const char *got;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bpf_insn two[2] = { cases[i].insn };

		strbuf_reset(&text);
		isa_disasm(&text, two, 2, NULL);
		got = check(two, 2, msg);
		if (!ok(!got == !cases[i].msg && (!got || !strcmp(got, cases[i].msg)), "%s (off %d, imm %d): %s",
			strbuf_str(&text), two[0].off, two[0].imm, cases[i].msg ? cases[i].msg : "accepted"))
			printf("# got: %s\n", got ? got : "accepted");
	}
	strbuf_fini(&text);
}

static void second_slots(void)
{
	struct bpf_insn two[2] = { X(0x18, 1, 0, 0, 5), X(0, 0, 0, 0, 9) };
	char msg[ISA_MSG_MAX];

	is_int(isa_check_shape(two, 2, msg), 2, "a 64-bit constant takes two slots");
	is_u64(isa_imm64(two), 5 | 9ULL << 32, "and joins its halves");
	ok(isa_check_shape(two, 1, msg) == -EINVAL && !strcmp(msg, "invalid bpf_ld_imm64 insn"),
	   "a 64-bit constant cut off is refused");
	two[1].dst_reg = 1;
	ok(isa_check_shape(two, 2, msg) == -EINVAL, "its second slot has only an immediate");
	two[1] = X(0xb7, 0, 0, 0, 9);
	ok(isa_check_shape(two, 2, msg) == -EINVAL, "its second slot is no instruction");
	two[0].src_reg = BPF_PSEUDO_MAP_FD;
	two[1] = X(0, 0, 0, 0, 1);
	ok(isa_check_shape(two, 2, msg) == -EINVAL && !strcmp(msg, "unrecognized bpf_ld_imm64 insn"),
	   "a map has no second immediate");
	two[0].src_reg = BPF_PSEUDO_MAP_VALUE;
	is_int(isa_check_shape(two, 2, msg), 2, "a map's value has one, its offset");
}

/* No random slot is accepted by the checks and then has no operation, or an internal one. */
static void accepted_is_executable(void)
{
	u64 x = 1, raw;
	struct bpf_insn two[2] = { { 0 } };
	char msg[ISA_MSG_MAX];
	int i, accepted = 0, bad = 0, op;

	for (i = 0; i < 3000000; i++) {
		x = x * 6364136223846793005 + 1442695040888963407;
		raw = x >> 16;
		memcpy(&two[0], &raw, 6);
		two[0].imm = i % 3 ? 0 : (s32)(x >> 40) & 0x1ff;
		two[0].off &= i % 5 ? 0 : -1;
		two[0].src_reg &= i % 2 ? 0 : 15;
		if (check(two, 2, msg))
			continue;
		accepted++;
		op = isa_decode(two);
		bad += op < 0 || isa_info[op].internal;
	}
	ok(!bad && accepted > 10000, "what the checks accept can be executed (%d of 3000000)", accepted);
}

static void registers(void)
{
	struct bpf_insn insn = isa_encode(ISA_ATOMIC64_CMPXCHG, 3, 4, 8, 0);

	is_u64(isa_regs_read(ISA_ATOMIC64_CMPXCHG, &insn), 1 << 3 | 1 << 4 | 1, "cmpxchg reads r0, address and value");
	is_u64(isa_regs_written(ISA_ATOMIC64_CMPXCHG, &insn), 1, "cmpxchg writes r0");
	insn = isa_encode(ISA_ATOMIC32_FETCH_ADD, 3, 4, 8, 0);
	is_u64(isa_regs_written(ISA_ATOMIC32_FETCH_ADD, &insn), 1 << 4, "a fetch writes src");
	insn = isa_encode(ISA_CALL_HELPER, 0, 0, 0, 7);
	is_u64(isa_regs_written(ISA_CALL_HELPER, &insn), 0x3f, "a call loses r0 to r5");
	insn = isa_encode(ISA_LDX_W, 3, 4, 8, 0);
	is_u64(isa_regs_read(ISA_LDX_W, &insn), 1 << 4, "a load reads its base");
	is_u64(isa_regs_written(ISA_LDX_W, &insn), 1 << 3, "a load writes dst");
	is_int(isa_mem_base(ISA_LDX_W, &insn), 4, "the base of a load is src");
	is_int(isa_mem_base(ISA_STX_W, &insn), 3, "the base of a store is dst");
	insn = isa_encode(ISA_EXIT, 0, 0, 0, 0);
	is_u64(isa_regs_read(ISA_EXIT, &insn), 1, "exit reads r0");
	insn = isa_encode(ISA_LD_IND_B, 0, 7, 0, 0);
	is_u64(isa_regs_read(ISA_LD_IND_B, &insn), 1 << 6 | 1 << 7, "a packet load reads r6 and its index");
}

int main(void)
{
	verdicts();
	second_slots();
	accepted_is_executable();
	registers();
	return tap_done();
}
