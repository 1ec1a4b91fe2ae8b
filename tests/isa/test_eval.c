// SPDX-License-Identifier: BSD-2-Clause
// The meaning of instructions: vectors recorded from Linux, and a second formulation in plain C.
#include <errno.h>
#include <string.h>

#include "isa/asm.h"
#include "isa/eval.h"
#include "tap.h"
#include "vectors.h"

/* Runs straight-line code over isa_eval_*; memory is a stack below r10. False: something else in it. */
static bool run(const struct isa_code *code, u64 regs[11])
{
	static u8 stack[ISA_STACK_SIZE];
	u32 pc;

	regs[10] = (u64)(stack + sizeof(stack));
	for (pc = 0; pc < code->len; pc++) {
		const struct bpf_insn *insn = &code->insns[pc];
		int op = isa_decode(insn);
		u64 *dst = &regs[insn->dst_reg], *src = &regs[insn->src_reg], raw = 0, old;
		u8 *mem;

		if (op < 0)
			return false;
		mem = (u8 *)(regs[isa_mem_base(op, insn)] + (u64)(s64)insn->off);
		switch (isa_info[op].kind) {
		case ISA_K_ALU:
		case ISA_K_MOV:
		case ISA_K_NEG:
		case ISA_K_END:
			*dst = isa_eval_alu(op, *dst, isa_is_reg_form(insn->code) ? *src : isa_imm(insn));
			break;
		case ISA_K_LDX:
			memcpy(&raw, mem, isa_info[op].width);
			*dst = isa_eval_load(op, raw);
			break;
		case ISA_K_ST:
		case ISA_K_STX:
			raw = isa_info[op].kind == ISA_K_ST ? isa_imm(insn) : *src;
			memcpy(mem, &raw, isa_info[op].width);
			break;
		case ISA_K_ATOMIC:
			memcpy(&raw, mem, isa_info[op].width);
			raw = isa_eval_atomic(op, raw, *src, regs[0], &old);
			memcpy(mem, &raw, isa_info[op].width);
			if (isa_info[op].fx & ISA_FX_SW)
				*src = old;
			if (isa_info[op].fx & ISA_FX_R0W)
				regs[0] = old;
			break;
		default:
			return false;
		}
	}
	return true;
}

static void vector(const char *name, const char *program, u64 r2, u64 r3, u64 want)
{
	struct strbuf err = STRBUF_INIT;
	u64 regs[11] = { [2] = r2, [3] = r3 };
	struct isa_code code;

	if (isa_assemble(program, NULL, &code, &err)) {
		ok(false, "%s: %s", name, strbuf_str(&err));
	} else {
		if (!run(&code, regs))
			ok(false, "%s: cannot run it", name);
		else
			is_u64(regs[2], want, "%s: %s", name, program);
		isa_code_fini(&code);
	}
	strbuf_fini(&err);
}

static void known_traps(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(isa_vectors); i++)
		vector(isa_vectors[i].name, isa_vectors[i].program, isa_vectors[i].r2, isa_vectors[i].r3,
		       isa_vectors[i].want);
}

/* The second formulation: by opcode byte, in 128-bit arithmetic. */
static u64 second_alu(u8 code, s16 off, s32 imm, u64 dst, u64 src)
{
	bool wide = BPF_CLASS(code) == BPF_ALU64;
	u64 mask = wide ? ~0ULL : 0xffffffffULL;
	int bits = wide ? 64 : 32;
	u64 a = dst & mask, b = (code & BPF_X ? src : (u64)(s64)imm) & mask, r = 0;
	__int128 sa = wide ? (__int128)(s64)a : (__int128)(s32)a, sb = wide ? (__int128)(s64)b : (__int128)(s32)b;

	if (BPF_OP(code) == BPF_END) {
		int i;

		if (BPF_CLASS(code) == BPF_ALU && !(code & BPF_X))
			return imm == 64 ? dst : dst & ((1ULL << imm) - 1);
		for (i = 0; i < imm; i += 8)
			r |= (dst >> i & 0xff) << (imm - 8 - i);
		return r;
	}
	switch (BPF_OP(code)) {
	case BPF_ADD:
		r = (u64)(sa + sb);
		break;
	case BPF_SUB:
		r = (u64)(sa - sb);
		break;
	case BPF_MUL:
		r = (u64)((unsigned __int128)a * b);
		break;
	case BPF_DIV:
		r = !b ? 0 : off ? (u64)(sa / sb) : a / b;
		break;
	case BPF_MOD:
		r = !b ? a : off ? (u64)(sa % sb) : a % b;
		break;
	case BPF_OR:
		r = ~(~a & ~b);
		break;
	case BPF_AND:
		r = ~(~a | ~b);
		break;
	case BPF_XOR:
		r = (a | b) - (a & b);
		break;
	case BPF_LSH:
		r = (u64)((unsigned __int128)a << (b % bits));
		break;
	case BPF_RSH:
		r = a >> (b % bits);
		break;
	case BPF_ARSH:
		r = (u64)(sa >> (b % bits));
		break;
	case BPF_NEG:
		r = ~a + 1;
		break;
	case BPF_MOV:
		if (!off)
			r = b;
		else
			r = (b & ((1ULL << off) - 1)) | (b >> (off - 1) & 1 ? ~((1ULL << off) - 1) : 0);
		break;
	}
	return r & mask;
}

static bool second_jmp(u8 code, s32 imm, u64 dst, u64 src)
{
	bool wide = BPF_CLASS(code) == BPF_JMP;
	__int128 ua, ub, sa, sb;

	if (!(code & BPF_X))
		src = (u64)(s64)imm;
	ua = wide ? (__int128)dst : (__int128)(u32)dst;
	ub = wide ? (__int128)src : (__int128)(u32)src;
	sa = wide ? (__int128)(s64)dst : (__int128)(s32)dst;
	sb = wide ? (__int128)(s64)src : (__int128)(s32)src;
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return ua == ub;
	case BPF_JNE:
		return !(ua == ub);
	case BPF_JGT:
		return ua > ub;
	case BPF_JGE:
		return !(ua < ub);
	case BPF_JLT:
		return ub > ua;
	case BPF_JLE:
		return !(ub < ua);
	case BPF_JSET:
		return (ua & ub) > 0;
	case BPF_JSGT:
		return sa > sb;
	case BPF_JSGE:
		return !(sa < sb);
	case BPF_JSLT:
		return sb > sa;
	case BPF_JSLE:
		return !(sb < sa);
	}
	return false;
}

static u64 second_rmw(s32 imm, u64 old, u64 src, u64 r0)
{
	switch (imm & ~BPF_FETCH) {
	case BPF_ADD:
		return old + src;
	case BPF_OR:
		return old | src;
	case BPF_AND:
		return old & src;
	case BPF_XOR:
		return old ^ src;
	case BPF_XCHG & ~BPF_FETCH:
		return src;
	}
	return old == r0 ? src : old;
}

static u64 values[200];
static int nr_values;

/* Everything near a power of two, and some noise. */
static void make_values(void)
{
	static const int shift[] = { 0, 1, 7, 8, 15, 16, 31, 32, 33, 47, 62, 63 };
	u64 x = 0x9e3779b97f4a7c15;
	int i, d;

	for (i = 0; i < (int)ARRAY_SIZE(shift); i++)
		for (d = -1; d <= 1; d++) {
			values[nr_values++] = (1ULL << shift[i]) + d;
			values[nr_values++] = -((1ULL << shift[i]) + d);
		}
	for (i = 0; i < 24; i++)
		values[nr_values++] = x = x * 6364136223846793005 + 1442695040888963407;
}

static int differing(int op)
{
	const struct isa_info *info = &isa_info[op];
	int i, j, bad = 0;
	struct bpf_insn insn;
	u64 a, b, got, want, old, new;

	for (i = 0; i < nr_values; i++) {
		for (j = 0; j < nr_values; j++) {
			a = values[i];
			b = values[j];
			insn = isa_encode(op, 1, 2, 0, (s32)b);
			switch (info->kind) {
			case ISA_K_ALU:
			case ISA_K_NEG:
			case ISA_K_MOV:
			case ISA_K_END:
				got = isa_eval_alu(op, a, isa_is_reg_form(info->code) ? b : isa_imm(&insn));
				want = second_alu(info->code, insn.off, insn.imm, a, b);
				break;
			case ISA_K_JMP:
				got = isa_eval_jmp(op, a, isa_is_reg_form(info->code) ? b : isa_imm(&insn));
				want = second_jmp(info->code, insn.imm, a, b);
				break;
			case ISA_K_LDX:
			case ISA_K_LOAD_ACQ:
				got = isa_eval_load(op, a);
				want = a;
				if (info->width < 8) {
					want &= (1ULL << info->width * 8) - 1;
					if (strstr(info->text, "s8") || strstr(info->text, "s16") ||
					    strstr(info->text, "s32"))
						want = (u64)((s64)(want << (64 - info->width * 8)) >>
							     (64 - info->width * 8));
				}
				break;
			case ISA_K_ATOMIC:
				new = info->width == 4 ? 0xffffffff : ~0ULL;
				want = second_rmw(info->val, a & new, b & new, (j & 1 ? a : b + 1) & new) & new;
				got = isa_eval_atomic(op, a, b, j & 1 ? a : b + 1, &old);
				bad += old != (a & new);
				break;
			default:
				return -1;
			}
			if (got != want && !bad++)
				printf("# %s a=0x%llx b=0x%llx: 0x%llx, want 0x%llx\n", info->name,
				       (unsigned long long)a, (unsigned long long)b, (unsigned long long)got,
				       (unsigned long long)want);
		}
	}
	return bad;
}

static void second_formulation(void)
{
	int op, bad, seen = 0;

	make_values();
	for (op = 0; op < ISA_OP_MAX; op++) {
		bad = differing(op);
		if (bad < 0)
			continue;
		seen++;
		ok(!bad, "%s agrees with a second formulation", isa_info[op].name);
	}
	ok(seen == 154, "%d rows were compared", seen);
}

/* The evaluator's numbers of arguments in bits: every pair of bytes, sign-extended, for the 32-bit rows. */
static void exhaustive_bytes(void)
{
	int op, a, b, bad = 0;

	for (op = 0; op < ISA_OP_MAX; op++) {
		const struct isa_info *info = &isa_info[op];

		if (info->kind != ISA_K_ALU || !isa_is_reg_form(info->code))
			continue;
		for (a = -128; a < 128; a++)
			for (b = -128; b < 128; b++)
				bad += isa_eval_alu(op, (u64)(s64)a, (u64)(s64)b) !=
				       second_alu(info->code, info->val, 0, (u64)(s64)a, (u64)(s64)b);
	}
	ok(!bad, "all pairs of bytes agree for every arithmetic row");
}

static FILE *open_shared(const char *file)
{
	const char *dir = getenv("INLAY_SHARED");
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : SOURCE_ROOT "/../shared", file);
	return fopen(path, "r");
}

static void recorded_vectors(void)
{
	FILE *f = open_shared("oracle/alu.tsv");
	char line[1024], *field[5], *p;
	int n, rows = 0;

	if (!f) {
		tap_skip("no recorded vectors (oracle/alu.tsv under INLAY_SHARED)");
		return;
	}
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		for (n = 0, p = line; n < 5 && (field[n] = strsep(&p, "\t")); n++)
			;
		if (n < 5)
			continue;
		vector(field[0], field[3], strtoull(field[1], NULL, 0), strtoull(field[2], NULL, 0),
		       strtoull(field[4], NULL, 0));
		rows++;
	}
	fclose(f);
	ok(rows >= 60, "%d recorded vectors were run", rows);
}

int main(void)
{
	known_traps();
	second_formulation();
	exhaustive_bytes();
	recorded_vectors();
	return tap_done();
}
