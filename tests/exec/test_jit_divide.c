// SPDX-License-Identifier: BSD-2-Clause
/*
 * Division by constants, which the compiler makes multiplications of: every divisor to 4096, powers of two and their
 * neighbours, the ends of the range, random ones; dividends around multiples of the divisor, where a reciprocal that is
 * a little off shows, with as many bits known as there may be; every register; what isa_eval_alu() says, and no other
 * register changed. INLAY_RANDOM_DIVISORS sets how many random ones, INLAY_SEED where they begin.
 */
#include "bare.h"
#include "exec/jit/jit.h"
#include "isa/eval.h"

#define DIVIDENDS 28

static u64 seed = 88172645463325252ULL;

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

struct trial {
	struct prog *prog;
	u8 d;
	u8 shift;      /* the dividend is what is left of a register shifted right by this */
	bool cut;      /* … of its lower half */
	bool dead[2];  /* r0 and r3 need not be kept */
	u64 out[ISA_NR_REGS];
};

/* r0..r9 come from ctx[], are divided, and go to out[] by way of the stack. */
static bool make(struct trial *t, enum isa_op op, s32 imm)
{
	struct bpf_insn code[64];
	u32 n = 0;
	u8 r;

	for (r = 10; r-- > 0;)
		if (r != 1)
			code[n++] = ISA_LOAD(DW, r, 1, 8 * r);
	code[n++] = ISA_LOAD(DW, 1, 1, 8);
	if (t->cut)
		code[n++] = isa_encode(ISA_MOV32_X, t->d, t->d, 0, 0);
	if (t->shift)
		code[n++] = ISA_ALU64(RSH, t->d, t->shift);
	code[n++] = isa_encode(op, t->d, 0, 0, imm);
	if (t->dead[0])
		code[n++] = ISA_MOV(0, 0);
	if (t->dead[1])
		code[n++] = ISA_MOV(3, 0);
	for (r = 0; r < 10; r++)
		code[n++] = ISA_STORE(DW, 10, -8 * (r + 1), r);
	code[n] = (struct bpf_insn){ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1 };
	code[n + 1] = (struct bpf_insn){ 0 };
	isa_set_imm64(&code[n], (u64)t->out);
	n += 2;
	for (r = 0; r < 10; r++) {
		code[n++] = ISA_LOAD(DW, 2, 10, -8 * (r + 1));
		code[n++] = ISA_STORE(DW, 1, 8 * r, 2);
	}
	code[n++] = ISA_RETURN();
	t->prog = bare_insns(code, n, NULL, 0);
	t->prog->subprogs[0].reads_stale = false;
	return !exec_prepare_as(t->prog, EXEC_JIT, NULL);
}

static u64 dividend(u32 i, u64 by)
{
	static const u64 edge[] = { 0, 1, ~0ULL, ~0ULL - 1, 1ULL << 63, (1ULL << 63) - 1, (1ULL << 63) + 1, U32_MAX, 1ULL << 32,
				    1ULL << 31, (1ULL << 31) - 1, U32_MAX - 1ULL };
	u64 top = i & 1 ? U32_MAX : i & 2 ? ~0ULL >> rnd() % 64 : ~0ULL;

	if (i < ARRAY_SIZE(edge))
		return edge[i];
	switch (i % 4) {
	case 0: /* the last multiple there is, and what is before it */
		return top / by * by - (rnd() & 1);
	case 1:
		return -(top / 2 / by * by) + (rnd() % 3 - 1);
	case 2:
		return rnd() % (top / by ?: 1) * by + rnd() % 3 - 1;
	}
	return rnd() >> rnd() % 64;
}

static bool wrong(struct trial *t, enum isa_op op, s32 imm, u64 n)
{
	u64 ctx[10], want[10], have;
	u8 r;

	for (r = 0; r < 10; r++)
		ctx[r] = rnd();
	ctx[t->d] = n;
	memcpy(want, ctx, sizeof(want));
	have = (t->cut ? (u32)n : n) >> t->shift;
	want[t->d] = isa_eval_alu(op, have, (u64)(s64)imm);
	want[0] = t->dead[0] ? 0 : want[0];
	want[3] = t->dead[1] ? 0 : want[3];
	t->prog->entry(t->prog, ctx);
	for (r = 0; r < 10; r++) {
		if (t->out[r] == want[r])
			continue;
		printf("# %s r%u imm %d of 0x%llx (shift %u%s): r%u is 0x%llx, not 0x%llx\n", isa_info[op].name, t->d, imm,
		       (unsigned long long)have, t->shift, t->cut ? ", cut" : "", r, (unsigned long long)t->out[r],
		       (unsigned long long)want[r]);
		return true;
	}
	return false;
}

static u32 bad, compiled, divided; /* over everything */

static void one(enum isa_op op, s32 imm, u32 nth)
{
	struct trial t = { .d = rnd() % 10, .shift = nth % 3 == 1 ? rnd() % 64 : 0, .cut = nth % 4 == 2 };
	u64 by = isa_info[op].width == 4 ? (u32)imm : (u64)(s64)imm;
	u32 i;

	if (isa_info[op].sel == ISA_F_OFF && isa_info[op].val && imm < 0)
		by = -(s64)imm;
	t.dead[0] = t.d != 0 && rnd() % 2;
	t.dead[1] = t.d != 3 && rnd() % 2;
	if (t.cut)
		t.shift &= 31;
	if (make(&t, op, imm)) {
		compiled++;
		for (i = 0; i < DIVIDENDS && bad < 5; i++, divided++)
			bad += wrong(&t, op, imm, dividend(i, by));
	} else {
		bad++;
	}
	bare_free(t.prog);
}

static void by(s32 imm)
{
	static const enum isa_op ops[] = { ISA_DIV64_K, ISA_MOD64_K, ISA_SDIV64_K, ISA_SMOD64_K,
					   ISA_DIV32_K, ISA_MOD32_K, ISA_SDIV32_K, ISA_SMOD32_K };
	static u32 nth;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ops) && imm && bad < 5; i++)
		one(ops[i], imm, nth++);
	nth++;
}

static void all(u64 nr_random, const char *how)
{
	u64 i;
	s32 k;

	bad = compiled = divided = 0;
	for (i = 1; i <= 4096; i++)
		by((s32)i);
	for (i = 0; i < 32; i++)
		for (k = -3; k <= 3; k++) {
			by((s32)((1U << i) + k));
			by((s32)-((1U << i) + k));
		}
	for (i = 0; i < nr_random; i++)
		by((s32)rnd() >> rnd() % 31);
	ok(!bad && compiled >= 8 * 4096, "%u divisions by constants, each of %u dividends: exact, %s", compiled,
	   compiled ? divided / compiled : 0, how);
}

/* x86-64: F7 with /6 or /7, which code this short has nowhere else; arm64: udiv or sdiv. */
static bool is_division(const struct exec_jit_info *info, u32 at)
{
	u32 word;

	if (!strcmp(info->arch, "x86_64"))
		return info->code[at] == 0xf7 && at + 1 < info->len && info->code[at + 1] >= 0xf0;
	if (at % 4)
		return false;
	memcpy(&word, info->code + at, sizeof(word));
	return (word & 0x7fe0f800) == 0x1ac00800;
}

static bool divides(const char *text)
{
	struct prog *prog = bare_prog(text);
	struct exec_jit_info info;
	bool found = false;
	u32 i;

	if (!prog || exec_jit_info(prog, &info))
		return true;
	for (i = 0; i < info.len; i++)
		found |= is_division(&info, i);
	bare_free(prog);
	return found;
}

static void no_division(void)
{
	ok(divides("r0 = *(u64 *)(r1 + 0); r2 = 7; r0 %= r2; exit"), "a register is divided by");
	ok(!divides("r0 = *(u64 *)(r1 + 0); r0 %= 1000; exit") && !divides("r0 = *(u64 *)(r1 + 0); r0 /= 7; exit") &&
		   !divides("r0 = *(u32 *)(r1 + 0); r0 %= 24; exit") && !divides("r0 = *(u64 *)(r1 + 0); w0 s/= -10; exit"),
	   "no constant is");
}

int main(void)
{
	const char *env = getenv("INLAY_RANDOM_DIVISORS");
	u64 nr_random = env && *env ? strtoull(env, NULL, 0) : 3000;

	env = getenv("INLAY_SEED");
	if (env && *env)
		seed = strtoull(env, NULL, 0) | 1;
	if (jit_available()) {
		tap_skip("no compiler for this machine, or no code memory");
		return tap_done();
	}
	no_division();
	all(nr_random, "as this processor does it");
	jit_knobs.no_features = true;
	all(nr_random, "without its extensions");
	return tap_done();
}
