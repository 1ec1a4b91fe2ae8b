// SPDX-License-Identifier: BSD-2-Clause
// Random programs: the engines, in turn, against a plain loop over isa_eval_*().
#include "bare.h"
#include "isa/eval.h"

static u64 seed = 88172645463325252ULL;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

static s32 rnd_imm(void)
{
	static const s32 edge[] = { 0, 1, -1, 2, 31, 63, S32_MAX, S32_MIN, 0xffff };

	return rnd() % 2 ? edge[rnd() % ARRAY_SIZE(edge)] : (s32)rnd();
}

#define LEN 60

/* Straight code with jumps forward; memory is the stack at fixed aligned offsets; then a hash of all registers. */
static u32 generate(struct bpf_insn *out)
{
	u32 n = 0;
	int reg;

	for (reg = 0; reg < 10; reg++) {
		out[n++] = isa_encode(ISA_LD_IMM64, reg, 0, 0, rnd_imm());
		out[n++] = (struct bpf_insn){ .imm = rnd_imm() };
	}
	for (reg = 1; reg <= 4; reg++)
		out[n++] = ISA_STORE(DW, 10, -8 * reg, reg);
	while (n < LEN) {
		int op = rnd() % ISA_OP_MAX;
		const struct isa_info *info = &isa_info[op];
		s16 off = -8 - 8 * (rnd() % 4);

		switch (info->kind) {
		case ISA_K_ALU:
		case ISA_K_NEG:
		case ISA_K_MOV:
		case ISA_K_END:
			out[n++] = isa_encode(op, rnd() % 10, info->fields & ISA_F_SRC ? rnd() % 10 : 0, 0,
					      info->fields & ISA_F_IMM ? rnd_imm() : 0);
			break;
		case ISA_K_JMP:
			off = rnd() % (LEN - n);
			out[n++] = isa_encode(op, rnd() % 10, info->fields & ISA_F_SRC ? rnd() % 10 : 0, off,
					      info->fields & ISA_F_IMM ? rnd_imm() : 0);
			break;
		case ISA_K_LDX:
			if (!info->internal)
				out[n++] = isa_encode(op, rnd() % 10, 10, off, 0);
			break;
		case ISA_K_ST:
		case ISA_K_ATOMIC:
		case ISA_K_STX:
			out[n++] = isa_encode(op, 10, info->fields & ISA_F_SRC ? rnd() % 10 : 0, off,
					      info->fields & ISA_F_IMM ? rnd_imm() : 0);
			break;
		}
	}
	for (reg = 1; reg < 10; reg++) {
		out[n++] = ISA_ALU64(MUL, 0, 1000003);
		out[n++] = ISA_ALU64_REG(XOR, 0, reg);
	}
	for (reg = 1; reg <= 4; reg++) {
		out[n++] = ISA_LOAD(DW, 1, 10, -8 * reg);
		out[n++] = ISA_ALU64(MUL, 0, 1000003);
		out[n++] = ISA_ALU64_REG(XOR, 0, 1);
	}
	out[n++] = ISA_RETURN();
	return n;
}

static u64 plain_run(const struct bpf_insn *insns)
{
	u8 stack[ISA_STACK_SIZE] __attribute__((aligned(16))) = { 0 };
	u64 regs[11] = { [10] = (u64)(stack + sizeof(stack)) }, raw, old;
	const struct bpf_insn *insn;

	for (insn = insns;; insn++) {
		int op = isa_decode(insn);
		const struct isa_info *info = &isa_info[op];
		u64 src = isa_is_reg_form(insn->code) ? regs[insn->src_reg] : isa_imm(insn);
		u8 *mem = (u8 *)(regs[10] + (s64)insn->off);

		raw = 0;
		switch (info->kind) {
		case ISA_K_LD_IMM64:
			regs[insn->dst_reg] = isa_imm64(insn);
			insn++;
			break;
		case ISA_K_JMP:
			insn += isa_eval_jmp(op, regs[insn->dst_reg], src) ? insn->off : 0;
			break;
		case ISA_K_LDX:
			memcpy(&raw, mem, info->width);
			regs[insn->dst_reg] = isa_eval_load(op, raw);
			break;
		case ISA_K_ST:
		case ISA_K_STX:
			raw = info->kind == ISA_K_ST ? isa_imm(insn) : regs[insn->src_reg];
			memcpy(mem, &raw, info->width);
			break;
		case ISA_K_ATOMIC:
			memcpy(&raw, mem, info->width);
			raw = isa_eval_atomic(op, raw, regs[insn->src_reg], regs[0], &old);
			memcpy(mem, &raw, info->width);
			if (info->fx & ISA_FX_SW)
				regs[insn->src_reg] = old;
			if (info->fx & ISA_FX_R0W)
				regs[0] = old;
			break;
		case ISA_K_EXIT:
			return regs[0];
		default:
			regs[insn->dst_reg] = isa_eval_alu(op, regs[insn->dst_reg], src);
		}
	}
}

int main(void)
{
	int i, bad = 0, differ = 0;
	u64 got, want, last = 0;

	for (i = 0; i < 20000 && bad < 5; i++) {
		struct prog *prog = calloc(1, sizeof(*prog));
		struct strbuf log = STRBUF_INIT;

		prog->insns = calloc(LEN + 64, sizeof(*prog->insns));
		prog->nr_insns = generate(prog->insns);
		want = plain_run(prog->insns);
		if (rw_assume(prog, &log) || rw_xlate(prog, &log) || exec_prepare_as(prog, i % 2 ? EXEC_AUTO : EXEC_INTERP, &log)) {
			printf("# %s\n", strbuf_str(&log));
			bad++;
		} else {
			got = prog->entry(prog, NULL);
			bad += got != want;
			differ += got != last;
			last = got;
		}
		strbuf_fini(&log);
		bare_free(prog);
	}
	ok(!bad, "%d random programs give what plain evaluation gives", i);
	ok(differ > 19000, "and they are different programs");
	return tap_done();
}
