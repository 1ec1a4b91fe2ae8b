// SPDX-License-Identifier: BSD-2-Clause
// arm64 encodings, on any machine: what a disassembler reads in them, and every immediate of logical operations there is.
#include <inttypes.h>
#include <string.h>

#include <capstone/capstone.h>

#include "exec/jit/arm64/enc.h"
#include "tap.h"

static csh cs;

static void text_of(u32 word, char *buf, size_t n)
{
	cs_insn *insn;

	snprintf(buf, n, "?");
	if (cs_disasm(cs, (const u8 *)&word, 4, 0x1000, 1, &insn) == 1) {
		snprintf(buf, n, "%s%s%s", insn->mnemonic, *insn->op_str ? " " : "", insn->op_str);
		cs_free(insn, 1);
	}
}

struct row {
	u32 word;
	const char *text;
};

static void forms(void)
{
	const struct row rows[] = {
		{ a64_sum(8, A64_ADD, X1, X2, X3, A64_LSL, 0), "add x1, x2, x3" },
		{ a64_sum(4, A64_SUB, X30, X29, X28, A64_LSR, 5), "sub w30, w29, w28, lsr #5" },
		{ a64_sum(8, A64_SUBS, XZR, X7, X19, A64_LSL, 0), "cmp x7, x19" },
		{ a64_sum(8, A64_ADDS, X1, X2, X3, A64_ASR, 63), "adds x1, x2, x3, asr #63" },
		{ a64_sum(4, A64_SUB, X1, XZR, X3, A64_LSL, 0), "neg w1, w3" },
		{ a64_sum_sp(A64_ADD, X1, A64_SP, X3, 0), "add x1, sp, x3" },
		{ a64_sum_sp(A64_SUB, A64_SP, A64_SP, X8, 0), "sub sp, sp, x8" },
		{ a64_sum_sp(A64_ADD, X1, A64_SP, X3, 3), "add x1, sp, x3, lsl #3" },
		{ a64_sum_imm(8, A64_ADD, X1, A64_SP, 4095), "add x1, sp, #0xfff" },
		{ a64_sum_imm(8, A64_SUB, A64_SP, A64_SP, 528), "sub sp, sp, #0x210" },
		{ a64_sum_imm(4, A64_ADD, X1, X2, 0xabc000), "add w1, w2, #0xabc, lsl #12" },
		{ a64_sum_imm(8, A64_SUBS, XZR, X3, 65536), "cmp x3, #0x10, lsl #12" },
		{ a64_sum_imm(4, A64_ADDS, XZR, X3, 7), "cmn w3, #7" },
		{ a64_logic(8, A64_AND, false, X1, X2, X3, A64_LSL, 0), "and x1, x2, x3" },
		{ a64_logic(4, A64_ORR, false, X1, X2, X3, A64_LSL, 31), "orr w1, w2, w3, lsl #31" },
		{ a64_logic(8, A64_EOR, false, X1, X2, X3, A64_ROR, 9), "eor x1, x2, x3, ror #9" },
		{ a64_logic(8, A64_ANDS, false, XZR, X2, X3, A64_LSL, 0), "tst x2, x3" },
		{ a64_logic(8, A64_ORR, true, X1, XZR, X3, A64_LSL, 0), "mvn x1, x3" },
		{ a64_logic(4, A64_AND, true, X1, X2, X3, A64_LSL, 0), "bic w1, w2, w3" },
		{ a64_logic_imm(8, A64_AND, X1, X2, a64_mask(8, 0xff)), "and x1, x2, #0xff" },
		{ a64_logic_imm(4, A64_ANDS, XZR, X2, a64_mask(4, 0xfffffffe)), "tst w2, #0xfffffffe" },
		{ a64_logic_imm(8, A64_EOR, X1, X2, a64_mask(8, 1)), "eor x1, x2, #1" },
		{ a64_logic_imm(4, A64_ORR, X1, X2, a64_mask(4, 1)), "orr w1, w2, #1" },
		{ a64_wide(8, A64_MOVZ, X1, 0xabcd, 3), "movz x1, #0xabcd, lsl #48" },
		{ a64_wide(4, A64_MOVZ, X1, 0x1234, 1), "movz w1, #0x1234, lsl #16" },
		{ a64_wide(4, A64_MOVN, X1, 0, 0), "movn w1, #0" },
		{ a64_wide(8, A64_MOVK, X1, 0xabcd, 2), "movk x1, #0xabcd, lsl #32" },
		{ a64_mov(8, X1, X2), "mov x1, x2" },
		{ a64_mov(4, X1, XZR), "mov w1, wzr" },
		{ a64_mov_sp(X29, A64_SP), "mov x29, sp" },
		{ a64_mov_sp(A64_SP, X9), "mov sp, x9" },
		{ a64_field(8, A64_SBFM, X1, X2, 0, 31), "sxtw x1, w2" },
		{ a64_field(4, A64_SBFM, X1, X2, 0, 7), "sxtb w1, w2" },
		{ a64_field(4, A64_UBFM, X1, X2, 0, 15), "uxth w1, w2" },
		{ a64_field(8, A64_UBFM, X1, X2, 7, 22), "ubfx x1, x2, #7, #0x10" },
		{ a64_field(8, A64_SBFM, X1, X2, 60, 55), "sbfiz x1, x2, #4, #0x38" },
		{ a64_shift_imm(8, A64_LSL, X1, X2, 13), "lsl x1, x2, #0xd" },
		{ a64_shift_imm(4, A64_LSL, X1, X2, 31), "lsl w1, w2, #0x1f" },
		{ a64_shift_imm(8, A64_LSR, X1, X2, 63), "lsr x1, x2, #0x3f" },
		{ a64_shift_imm(4, A64_ASR, X1, X2, 1), "asr w1, w2, #1" },
		{ a64_shift_imm(8, A64_ROR, X1, X2, 51), "ror x1, x2, #0x33" },
		{ a64_shift_imm(4, A64_ROR, X1, X2, 5), "ror w1, w2, #5" },
		{ a64_shift(8, A64_LSL, X1, X2, X3), "lsl x1, x2, x3" },
		{ a64_shift(4, A64_LSR, X1, X2, X3), "lsr w1, w2, w3" },
		{ a64_shift(8, A64_ASR, X1, X2, X3), "asr x1, x2, x3" },
		{ a64_div(8, false, X1, X2, X3), "udiv x1, x2, x3" },
		{ a64_div(4, true, X1, X2, X3), "sdiv w1, w2, w3" },
		{ a64_madd(8, false, X1, X2, X3, X4), "madd x1, x2, x3, x4" },
		{ a64_madd(4, true, X1, X2, X3, X4), "msub w1, w2, w3, w4" },
		{ a64_mul(8, X1, X2, X3), "mul x1, x2, x3" },
		{ a64_umaddl(X1, X2, X3, X4), "umaddl x1, w2, w3, x4" },
		{ a64_umaddl(X1, X2, X3, XZR), "umull x1, w2, w3" },
		{ a64_mulh(false, X1, X2, X3), "umulh x1, x2, x3" },
		{ a64_mulh(true, X1, X2, X3), "smulh x1, x2, x3" },
		{ a64_rev(8, X1, X2), "rev x1, x2" },
		{ a64_rev(4, X1, X2), "rev w1, w2" },
		{ a64_csel(8, X1, X2, X3, CC_HS), "csel x1, x2, x3, hs" },
		{ a64_cset(X1, CC_HI), "cset w1, hi" },
		{ a64_mem(8, A64_LDR, X1, X2, 32760), "ldr x1, [x2, #0x7ff8]" },
		{ a64_mem(4, A64_LDR, X1, A64_SP, 4), "ldr w1, [sp, #4]" },
		{ a64_mem(2, A64_LDR, X1, X2, 2), "ldrh w1, [x2, #2]" },
		{ a64_mem(1, A64_LDR, X1, X2, 4095), "ldrb w1, [x2, #0xfff]" },
		{ a64_mem(4, A64_LDRS, X1, X2, 4), "ldrsw x1, [x2, #4]" },
		{ a64_mem(2, A64_LDRS, X1, X2, 0), "ldrsh x1, [x2]" },
		{ a64_mem(1, A64_LDRS, X1, X2, 1), "ldrsb x1, [x2, #1]" },
		{ a64_mem(8, A64_STR, XZR, X2, 8), "str xzr, [x2, #8]" },
		{ a64_mem(2, A64_STR, X1, X2, 8), "strh w1, [x2, #8]" },
		{ a64_mem_near(8, A64_LDR, X1, X2, -256), "ldur x1, [x2, #-0x100]" },
		{ a64_mem_near(4, A64_STR, X1, X2, 255), "stur w1, [x2, #0xff]" },
		{ a64_mem_near(1, A64_LDRS, X1, X2, -1), "ldursb x1, [x2, #-1]" },
		{ a64_mem_reg(8, A64_LDR, X1, X2, X3, false), "ldr x1, [x2, x3]" },
		{ a64_mem_reg(4, A64_LDR, X1, A64_SP, X3, true), "ldr w1, [sp, x3, lsl #2]" },
		{ a64_mem_reg(1, A64_STR, X1, X2, X3, false), "strb w1, [x2, x3]" },
		{ a64_push(X0, A64_SP, 16), "str x0, [sp, #-0x10]!" },
		{ a64_pop(X0, A64_SP, 16), "ldr x0, [sp], #0x10" },
		{ a64_pair(A64_STP, X19, X20, A64_SP, 16), "stp x19, x20, [sp, #0x10]" },
		{ a64_pair(A64_LDP, X21, X22, A64_SP, 504), "ldp x21, x22, [sp, #0x1f8]" },
		{ a64_pair(A64_STP_PRE, X29, X30, A64_SP, -504), "stp x29, x30, [sp, #-0x1f8]!" },
		{ a64_pair(A64_LDP_POST, X29, X30, A64_SP, 32), "ldp x29, x30, [sp], #0x20" },
		{ A64_MOVI_V0, "movi v0.2d, #0000000000000000" },
		{ a64_stp_v0(A64_SP, 1008), "stp q0, q0, [sp, #0x3f0]" },
		{ a64_ldar(8, X1, X2), "ldar x1, [x2]" },
		{ a64_ldar(1, X1, X2), "ldarb w1, [x2]" },
		{ a64_stlr(2, X1, X2), "stlrh w1, [x2]" },
		{ a64_ldxr(4, X1, X2), "ldxr w1, [x2]" },
		{ a64_stxr(8, X3, X1, X2), "stxr w3, x1, [x2]" },
		{ a64_stlxr(4, X3, X1, X2), "stlxr w3, w1, [x2]" },
		{ A64_DMB_ISH, "dmb ish" },
		{ a64_aim(A64_B, -4), "b #0xffc" },
		{ a64_aim(A64_B, (1 << 27) - 4), "b #0x8000ffc" },
		{ a64_aim(A64_BL, 0x100), "bl #0x1100" },
		{ a64_aim(a64_bcc(CC_LT), -0x1000), "b.lt #0" },
		{ a64_aim(a64_turn(a64_bcc(CC_LT)), 8), "b.ge #0x1008" },
		{ a64_aim(a64_cbz(8, false, X1), (1 << 20) - 4), "cbz x1, #0x100ffc" },
		{ a64_aim(a64_turn(a64_cbz(4, false, X1)), 4), "cbnz w1, #0x1004" },
		{ a64_aim(a64_tbz(true, X1, 63), (1 << 15) - 4), "tbnz x1, #0x3f, #0x8ffc" },
		{ a64_aim(a64_turn(a64_tbz(true, X1, 3)), -4), "tbz w1, #3, #0xffc" },
		{ a64_br(X7), "br x7" },
		{ a64_blr(X16), "blr x16" },
		{ A64_RET, "ret" },
		{ a64_adr(X1, -1), "adr x1, #0xfff" },
		{ a64_adr(X1, 0x7ffff), "adr x1, #0x80fff" },
		{ a64_adrp(X1, 0x10), "adrp x1, #0x11000" },
		{ a64_mrs_tp(X8), "mrs x8, tpidr_el0" },
	};
	char text[256];
	u32 i, bad = 0;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		text_of(rows[i].word, text, sizeof(text));
		if (!strcmp(text, rows[i].text))
			continue;
		printf("# %08x is '%s', not '%s'\n", rows[i].word, text, rows[i].text);
		bad++;
	}
	ok(!bad, "%zu instructions read as they should", ARRAY_SIZE(rows));
}

/* Extensions that this disassembler may not know: what the GNU assembler makes of the text beside them. */
static void atomics(void)
{
	ok(a64_lse(8, A64_LDADD, true, X1, X2, X3) == 0xf8e10062 &&	  /* ldaddal x1, x2, [x3] */
		   a64_lse(4, A64_LDCLR, true, X1, X2, X3) == 0xb8e11062 && /* ldclral w1, w2, [x3] */
		   a64_lse(8, A64_LDEOR, false, X1, X2, X3) == 0xf8212062 && /* ldeor x1, x2, [x3] */
		   a64_lse(8, A64_LDSET, true, X1, X2, X3) == 0xf8e13062 && /* ldsetal x1, x2, [x3] */
		   a64_lse(8, A64_SWP, true, X1, X2, X3) == 0xf8e18062 &&   /* swpal x1, x2, [x3] */
		   a64_casal(4, X1, X2, X3) == 0x88e1fc62 &&		  /* casal w1, w2, [x3] */
		   a64_casal(8, X7, X0, X8) == 0xc8e7fd00,		  /* casal x7, x0, [x8] */
	   "atomics of one instruction");
}

/* What the machine makes of N:immr:imms, by the letter of its manual. */
static u64 expand(u32 mask)
{
	u32 n = mask >> 12 & 1, immr = mask >> 6 & 63, imms = mask & 63, len = 31 - __builtin_clz(n << 6 | (~imms & 63));
	u32 size = 1 << len, run = (imms & (size - 1)) + 1, rot = immr & (size - 1), i;
	u64 element = run == 64 ? ~0ULL : (1ULL << run) - 1, v = 0;

	if (rot)
		element = (element >> rot | element << (size - rot)) & (size == 64 ? ~0ULL : (1ULL << size) - 1);
	for (i = 0; i < 64; i += size)
		v |= element << i;
	return v;
}

static u64 seed = 88172645463325252ULL;

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static u64 masks[5400];
static u32 nr_masks;

static bool is_mask(u64 v)
{
	u32 i;

	for (i = 0; i < nr_masks; i++)
		if (masks[i] == v)
			return true;
	return false;
}

static void every_mask(void)
{
	u32 size, run, rot, bad = 0, other = 0, i;
	u64 v;

	for (size = 2; size <= 64; size *= 2)
		for (run = 1; run < size; run++)
			for (rot = 0; rot < size; rot++) {
				v = expand((size == 64) << 12 | rot << 6 | (~(size * 2 - 1) & 63) | (run - 1));
				masks[nr_masks++] = v;
				bad += !a64_mask(8, v) || expand(a64_mask(8, v)) != v;
				if (size < 64)
					bad += !a64_mask(4, (u32)v) || expand(a64_mask(4, (u32)v)) != v || a64_mask(4, (u32)v) >> 12 & 1;
			}
	is_int(nr_masks, 5334, "masks there are");
	is_int(bad, 0, "each is found");
	for (i = 0; i < 20000; i++) {
		v = i % 2 ? masks[rnd() % nr_masks] ^ 1ULL << rnd() % 64 : rnd() & rnd() & rnd();
		if (a64_mask(8, v))
			bad += expand(a64_mask(8, v)) != v;
		else
			other++;
		bad += !!a64_mask(8, v) != is_mask(v);
	}
	ok(!bad && other > 1000, "and nothing else is taken for one: %u others", other);
	ok(!a64_mask(8, 0) && !a64_mask(8, ~0ULL) && !a64_mask(4, U32_MAX), "neither all zeros nor all ones");
}

static void sums(void)
{
	ok(a64_is_sum_imm(0) && a64_is_sum_imm(4095) && a64_is_sum_imm(4096) && a64_is_sum_imm(0xfff000) &&
		   !a64_is_sum_imm(4097) && !a64_is_sum_imm(1 << 24) && !a64_is_sum_imm(~0ULL),
	   "immediates of sums have 12 bits, or 12 and 12 zeros");
	ok(a64_is_scaled(8, 32760) && !a64_is_scaled(8, 32768) && !a64_is_scaled(8, 4) && !a64_is_scaled(1, -1) && a64_is_near(-256) &&
		   !a64_is_near(256),
	   "distances are scaled, or near");
}

int main(void)
{
	if (cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &cs) != CS_ERR_OK) {
		tap_skip("no disassembler for arm64");
		return tap_done();
	}
	forms();
	atomics();
	every_mask();
	sums();
	cs_close(&cs);
	return tap_done();
}
