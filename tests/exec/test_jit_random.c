// SPDX-License-Identifier: BSD-2-Clause
/*
 * Random programs, compiled and interpreted: result, registers, stack and memory must be the same. The programs are made
 * of the shapes the compiler looks for (rotations, sums of addresses, extensions, divisions, comparisons after
 * arithmetic), of jumps into and around them, cold code, calls, loops. INLAY_RANDOM_PROGRAMS sets how many, INLAY_SEED
 * where they begin.
 */
#include "bare.h"
#include "exec/jit/jit.h"
#include "isa/eval.h"

#define LEN	160
#define MEM_LEN 128

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
	static const s32 edge[] = { 0, 1, -1, 2, 3, 8, 31, 32, 63, 127, 128, 255, 256, 0xffff, S32_MAX, S32_MIN };

	return rnd() % 3 ? edge[rnd() % ARRAY_SIZE(edge)] : (s32)rnd();
}

static u64 rnd_value(void)
{
	static const u64 edge[] = { 0, 1, 0xff, 0xffff, 0xffffffff, 0x100000000, 0x8000000000000000, ~0ULL, 0x80000000 };

	return rnd() % 3 ? edge[rnd() % ARRAY_SIZE(edge)] : (u64)rnd() << 32 | rnd();
}

struct text {
	struct bpf_insn insn[LEN + 300];
	bool closed[LEN + 300]; /* no jump may land here */
	u32 n;
	u32 fn[2], call[64], nr_calls, calls_fn[64];
};

/* r0..r8 and AX; r9 is the memory and never written. */
static u8 rnd_reg(void)
{
	u32 r = rnd() % 10;

	return r == 9 ? ISA_REG_AX : r;
}

static void put(struct text *t, struct bpf_insn insn)
{
	t->insn[t->n++] = insn;
}

static void put_imm64(struct text *t, u8 reg, u64 v)
{
	struct bpf_insn two[2] = { { .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = reg } };

	isa_set_imm64(two, v);
	put(t, two[0]);
	put(t, two[1]);
}

static void put_rotation(struct text *t)
{
	bool wide = rnd() % 2, right = rnd() % 2, copy = rnd() % 2;
	u8 w = wide ? 64 : 32, e = rnd_reg(), s = rnd_reg(), o = copy ? rnd_reg() : s, n = 1 + rnd() % (w - 1);
	u8 m = rnd() % 8 ? w - n : rnd() % w;

	put(t, isa_encode(wide ? ISA_MOV64_X : ISA_MOV32_X, e, s, 0, 0));
	put(t, isa_encode(wide ? (right ? ISA_RSH64_K : ISA_LSH64_K) : (right ? ISA_RSH32_K : ISA_LSH32_K), e, 0, 0, n));
	if (copy)
		put(t, isa_encode(wide ? ISA_MOV64_X : ISA_MOV32_X, o, s, 0, 0));
	put(t, isa_encode(wide ? (right ? ISA_LSH64_K : ISA_RSH64_K) : (right ? ISA_LSH32_K : ISA_RSH32_K), o, 0, 0, m));
	if (rnd() % 2)
		put(t, isa_encode(wide ? ISA_OR64_X : ISA_OR32_X, o, e, 0, 0));
	else
		put(t, isa_encode(wide ? ISA_XOR64_X : ISA_XOR32_X, e, o, 0, 0));
}

static const enum isa_op loads[] = { ISA_LDX_B, ISA_LDX_H, ISA_LDX_W, ISA_LDX_DW, ISA_LDSX_B, ISA_LDSX_H, ISA_LDSX_W,
				     ISA_PROBE_B, ISA_PROBE_W, ISA_PROBE_DW, ISA_PROBESX_H };

/* An index below 8, scaled, and a base; then what is there. */
static void put_address(struct text *t)
{
	u8 d = rnd_reg(), i = rnd_reg(), to = rnd() % 2 ? d : rnd_reg();
	u32 shift = rnd() % 4, first = t->n;

	if (d == i)
		return;
	put(t, ISA_ALU64(AND, i, 7));
	switch (rnd() % 4) {
	case 0:
		put(t, ISA_MOV_REG(d, i));
		if (shift)
			put(t, ISA_ALU64(LSH, d, shift));
		put(t, ISA_ALU64_REG(ADD, d, 9));
		break;
	case 1:
		put(t, ISA_MOV_REG(d, 9));
		put(t, ISA_ALU64(ADD, d, rnd() % 16));
		put(t, ISA_ALU64_REG(ADD, d, i));
		break;
	case 2:
		put(t, ISA_MOV_REG(d, 10));
		put(t, ISA_ALU64(ADD, d, -64));
		put(t, ISA_ALU64_REG(ADD, d, i));
		put(t, ISA_ALU64(ADD, d, 4));
		break;
	case 3:
		put(t, ISA_MOV_REG(d, i));
		put(t, ISA_ALU64(LSH, d, 3));
		put(t, ISA_ALU64(ADD, d, -8));
		put(t, ISA_ALU64_REG(ADD, d, 9));
		put(t, ISA_ALU64(ADD, d, 8));
		break;
	}
	put(t, isa_encode(loads[rnd() % ARRAY_SIZE(loads)], to, d, rnd() % 8, 0));
	if (to != d && rnd() % 2)
		put(t, ISA_MOV(d, 0)); /* the address is not used again */
	else if (to != d) /* addresses differ from run to run: nobody may see them */
		put(t, ISA_ALU64(AND, d, 0));
	memset(&t->closed[first + 1], true, t->n - first - 1);
}

static void put_probe(struct text *t)
{
	static const u64 nowhere[] = { 0, 8, 65528, 0x8000000000000000, 0xfffffffffffff000, 0x7fffffffe000 };
	u8 d = rnd_reg();

	t->closed[t->n + 2] = true;
	put_imm64(t, d, nowhere[rnd() % ARRAY_SIZE(nowhere)]);
	put(t, isa_encode(loads[7 + rnd() % 4], rnd_reg(), d, rnd() % 2 ? 0 : 16, 0));
}

static void put_extension(struct text *t)
{
	static const u8 n[] = { 32, 48, 56, 32, 5 };
	u8 d = rnd_reg(), k = n[rnd() % ARRAY_SIZE(n)];

	put(t, ISA_ALU64(LSH, d, k));
	put(t, isa_encode(rnd() % 2 ? ISA_RSH64_K : ISA_ARSH64_K, d, 0, 0, k));
}

/* A call leaves r1..r5 and AX to chance: they get values again at once. */
static void put_call(struct text *t)
{
	u8 r;

	if (rnd() % 2 || t->nr_calls == ARRAY_SIZE(t->call)) {
		put(t, ISA_CALL(1));
	} else {
		t->call[t->nr_calls] = t->n;
		t->calls_fn[t->nr_calls++] = rnd() % 2;
		put(t, isa_encode(ISA_CALL_SUBPROG, 0, 0, 0, 0));
	}
	for (r = 1; r <= 5; r++)
		put(t, rnd() % 2 ? ISA_MOV_REG(r, 0) : ISA_MOV(r, rnd_imm()));
	put(t, ISA_MOV(ISA_REG_AX, 5));
}

static void put_any(struct text *t, u32 end)
{
	int op = rnd() % ISA_OP_MAX;
	const struct isa_info *info = &isa_info[op];
	s16 off = 8 * (rnd() % 8);
	u8 base = rnd() % 2 ? 9 : 10, src = info->fields & ISA_F_SRC ? rnd_reg() : 0;

	if (base == 10)
		off = -8 - off;
	switch (info->kind) {
	case ISA_K_ALU:
	case ISA_K_NEG:
	case ISA_K_MOV:
	case ISA_K_END:
		put(t, isa_encode(op, rnd_reg(), src, 0, info->fields & ISA_F_IMM ? rnd_imm() : 0));
		break;
	case ISA_K_JMP:
		if (end > t->n + 1)
			put(t, isa_encode(op, rnd_reg(), src, rnd() % (end - t->n - 1), info->fields & ISA_F_IMM ? rnd_imm() : 0));
		break;
	case ISA_K_JA:
		if (end > t->n + 1 && rnd() % 2) {
			u32 dist = rnd() % min_of(end - t->n - 1, 6u);

			put(t, isa_encode(op, 0, 0, op == ISA_JA ? dist : 0, op == ISA_JA ? 0 : dist));
		}
		break;
	case ISA_K_LDX:
	case ISA_K_LOAD_ACQ:
		put(t, isa_encode(op, rnd_reg(), base, off, info->sel == ISA_F_IMM ? info->val : 0));
		break;
	case ISA_K_ST:
	case ISA_K_ATOMIC:
	case ISA_K_STX:
	case ISA_K_STORE_REL:
		put(t, isa_encode(op, base, src, off, info->sel == ISA_F_IMM ? info->val : info->fields & ISA_F_IMM ? rnd_imm() : 0));
		break;
	case ISA_K_PERCPU:
		put(t, isa_encode(op, rnd_reg(), src, 0, rnd_imm()));
		break;
	case ISA_K_TLS:
		put(t, isa_encode(op, rnd_reg(), 0, 32, 0)); /* cpu, and the bytes after it */
		break;
	}
}

static void put_body(struct text *t, u32 end, bool calls)
{
	while (t->n < end - 16) {
		switch (rnd() % 16) {
		case 0:
			put_rotation(t);
			break;
		case 1:
			put_address(t);
			break;
		case 2:
			put_extension(t);
			break;
		case 3:
			if (calls && rnd() % 3 == 0)
				put_call(t);
			break;
		case 4:
			if (rnd() % 4 == 0)
				put_probe(t);
			break;
		default:
			put_any(t, end);
		}
	}
	while (t->n < end)
		put(t, ISA_ALU64(ADD, 0, 1));
}

/* Everything a program can see, in r0. */
static void put_hash(struct text *t)
{
	u8 reg;

	for (reg = 1; reg < ISA_NR_REGS; reg++) {
		if (reg == 9 || reg == 10)
			continue;
		put(t, ISA_ALU64(MUL, 0, 1000003));
		put(t, ISA_ALU64_REG(XOR, 0, reg));
	}
	for (reg = 1; reg <= 8; reg++) {
		put(t, ISA_LOAD(DW, 1, 10, -8 * reg));
		put(t, ISA_ALU64(MUL, 0, 1000003));
		put(t, ISA_ALU64_REG(XOR, 0, 1));
	}
	put(t, ISA_RETURN());
}

/* Jumps into constants, and between an address and its load, go on to where they may land. */
static void settle_jumps(struct text *t)
{
	u32 i;

	for (i = 0; i < t->n; i++)
		if (isa_slots(t->insn[i].code) == 2)
			t->closed[++i] = true;
	for (i = 0; i < t->n; i += isa_slots(t->insn[i].code)) {
		struct bpf_insn *insn = &t->insn[i];
		int kind = isa_info[isa_decode(insn)].kind;

		if (kind != ISA_K_JMP && kind != ISA_K_JA)
			continue;
		while (t->closed[i + 1 + isa_jump_off(insn)]) {
			if (insn->code == (BPF_JMP32 | BPF_JA))
				insn->imm++;
			else
				insn->off++;
		}
	}
}

static struct prog *generate(void)
{
	static struct text t;
	struct prog *prog;
	u32 i, loop, len = 40 + rnd() % (LEN - 40);
	u8 r;

	memset(&t, 0, sizeof(t));
	put(&t, ISA_MOV_REG(9, 1));
	for (r = 0; r < ISA_NR_REGS; r++)
		if (r != 9 && r != 10)
			put_imm64(&t, r, rnd_value());
	put(&t, ISA_STORE_IMM(DW, 10, -128, 3)); /* rounds of a loop around it all */
	for (r = 1; r <= 4; r++)
		put(&t, ISA_STORE(DW, 10, -8 * r, r));
	loop = t.n;
	put_body(&t, t.n + len / 2, true);
	/* r8's low bits say whether to go round again, the counter how often at most */
	put(&t, ISA_LOAD(DW, 8, 10, -128));
	put(&t, ISA_ALU64(SUB, 8, 1));
	put(&t, ISA_STORE(DW, 10, -128, 8));
	put(&t, isa_encode(ISA_JNE64_K, 8, 0, (s16)((s32)loop - (s32)t.n - 1), 0));
	put_hash(&t);
	for (i = 0; i < 2; i++) {
		t.fn[i] = t.n;
		put(&t, ISA_MOV(0, rnd_imm()));
		put(&t, ISA_MOV(ISA_REG_AX, rnd_imm()));
		for (r = 6; r <= 8; r++)
			put(&t, ISA_MOV(r, rnd_imm()));
		put_body(&t, t.n + 24, false);
		put_hash(&t);
	}
	settle_jumps(&t);
	for (i = 0; i < t.nr_calls; i++)
		t.insn[t.call[i]].imm = (s32)t.fn[t.calls_fn[i]] - (s32)t.call[i] - 1;
	prog = bare_insns(t.insn, t.n, t.fn, 2);
	if (rnd() % 3 == 0) /* runs of cold code, which must be no more than a hint */
		for (i = 0; i < t.n; i++)
			prog->facts[i].cold = (i / (1 + seed % 7)) % 3 == 0;
	return prog;
}

static bool run(struct prog *prog, enum exec_engine engine, u64 *ret, u8 *mem)
{
	struct strbuf log = STRBUF_INIT;
	int err = exec_prepare_as(prog, engine, &log);
	u32 i;

	if (err)
		printf("# %s\n", strbuf_str(&log));
	strbuf_fini(&log);
	if (err)
		return false;
	for (i = 0; i < MEM_LEN; i++)
		mem[i] = i * 37;
	*ret = prog->entry(prog, mem);
	prog->image_free(prog);
	return true;
}

static u64 knob(const char *name, u64 otherwise)
{
	const char *v = getenv(name);

	return v && *v ? strtoull(v, NULL, 0) : otherwise;
}

int main(void)
{
	u64 i, nr = knob("INLAY_RANDOM_PROGRAMS", 20000), got, want, last = 0, differ = 0, bad = 0, this;
	static u8 mem[2][MEM_LEN] __attribute__((aligned(16)));

	if (jit_available()) {
		tap_skip("no compiler for this machine, or no code memory");
		return tap_done();
	}
	seed = knob("INLAY_SEED", seed) | 1;
	for (i = 0; i < nr && bad < 3; i++) {
		struct prog *prog;

		this = seed;
		prog = generate();
		jit_knobs = (struct jit_knobs){ .far = i % 7 == 1, .no_fuse = i % 7 == 2, .no_features = i % 7 == 3,
						.slow_div = i % 7 == 4, .far_calls = i % 7 == 5 };
		if (!run(prog, EXEC_INTERP, &want, mem[0]) || !run(prog, EXEC_JIT, &got, mem[1])) {
			bad++;
		} else if (got != want || memcmp(mem[0], mem[1], MEM_LEN)) {
			printf("# program %llu, INLAY_SEED=0x%llx: compiled 0x%llx, interpreted 0x%llx%s\n", (unsigned long long)i,
			       (unsigned long long)this, (unsigned long long)got, (unsigned long long)want,
			       memcmp(mem[0], mem[1], MEM_LEN) ? ", memory differs" : "");
			bad++;
		}
		differ += got != last;
		last = got;
		bare_free(prog);
	}
	ok(!bad, "%llu random programs do the same compiled and interpreted", (unsigned long long)i);
	ok(differ * 20 > i * 19, "and they are different programs");
	return tap_done();
}
