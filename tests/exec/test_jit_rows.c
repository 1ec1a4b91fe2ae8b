// SPDX-License-Identifier: BSD-2-Clause
// Every row the compiler claims, with every register it can name: what isa_eval_*() says, and no other register changed.
#include "bare.h"
#include "exec/jit/jit.h"
#include "isa/eval.h"

#define CODE_MAX 96

static const u64 values[] = { 0, 1, 2, 7, 31, 32, 63, 0x80, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
			      0x123456789abcdef0, 0x8000000000000000, 0xffffffff80000000, ~0ULL };
static const s32 imms[] = { 0, 1, 2, 3, 5, 7, 8, 31, 32, 48, 63, 64, 127, 128, 255, 256, 0xffff, 1000003, S32_MAX, S32_MIN, -1,
			    -2, -128, -129, -65536 };

static u64 seed = 88172645463325252ULL;

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static u32 put_imm64(struct bpf_insn *out, u8 reg, u64 v)
{
	out[0] = (struct bpf_insn){ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = reg };
	out[1] = (struct bpf_insn){ 0 };
	isa_set_imm64(out, v);
	return 2;
}

/*
 * Runs one instruction with these registers (r0..r9, AX; r1 is the context until then) and gives them afterwards.
 * regs[i] of a register that must point to memory is set by the caller. False: not compiled.
 */
static bool run_one(struct bpf_insn insn, u64 regs[ISA_NR_REGS], u64 *mem, enum exec_engine engine)
{
	struct bpf_insn code[CODE_MAX];
	struct strbuf log = STRBUF_INIT;
	static u64 out[ISA_NR_REGS];
	struct prog *prog;
	u32 n = 0;
	u8 r;

	for (r = 0; r < ISA_NR_REGS; r++)
		if (r != 10)
			n += put_imm64(&code[n], r, regs[r]);
	code[n++] = insn;
	/* r9 last: everything else is stored through the stack, which a register need not be spent for */
	for (r = 0; r < ISA_NR_REGS; r++)
		if (r != 10)
			code[n++] = ISA_STORE(DW, 10, -8 * (r + 1), r);
	n += put_imm64(&code[n], 1, (u64)out);
	for (r = 0; r < ISA_NR_REGS; r++) {
		if (r == 10)
			continue;
		code[n++] = ISA_LOAD(DW, 2, 10, -8 * (r + 1));
		code[n++] = ISA_STORE(DW, 1, 8 * r, 2);
	}
	code[n++] = ISA_RETURN();
	prog = bare_insns(code, n, NULL, 0);
	if (exec_prepare_as(prog, engine, &log)) {
		printf("# %s\n", strbuf_str(&log));
		strbuf_fini(&log);
		bare_free(prog);
		return false;
	}
	prog->entry(prog, mem);
	memcpy(regs, out, sizeof(out));
	bare_free(prog);
	strbuf_fini(&log);
	return true;
}

static bool differs(const char *what, struct bpf_insn insn, const u64 *got, const u64 *want)
{
	u8 r;

	for (r = 0; r < ISA_NR_REGS; r++) {
		if (r == 10 || got[r] == want[r])
			continue;
		printf("# %s dst r%u src r%u off %d imm %d: r%u is 0x%llx, not 0x%llx\n", what, insn.dst_reg, insn.src_reg,
		       insn.off, insn.imm, r, (unsigned long long)got[r], (unsigned long long)want[r]);
		return true;
	}
	return false;
}

static int alu_one(enum isa_op op, u8 d, u8 s, s32 imm, u64 a, u64 b)
{
	struct bpf_insn insn = isa_encode(op, d, s, 0, imm);
	u64 regs[ISA_NR_REGS], want[ISA_NR_REGS];
	u8 r;

	for (r = 0; r < ISA_NR_REGS; r++)
		regs[r] = rnd();
	regs[s] = b;
	regs[d] = isa_is_reg_form(insn.code) && d == s ? b : a;
	memcpy(want, regs, sizeof(want));
	want[d] = isa_eval_alu(op, regs[d], isa_is_reg_form(insn.code) ? regs[s] : isa_imm(&insn));
	return !run_one(insn, regs, NULL, EXEC_JIT) || differs(isa_info[op].name, insn, regs, want);
}

static int alu_row(enum isa_op op)
{
	const struct isa_info *info = &isa_info[op];
	int bad = 0;
	size_t i, k;
	u8 d, s;

	for (d = 0; d < ISA_NR_REGS && bad < 5; d++) {
		if (d == 10)
			continue;
		if (!(info->fields & ISA_F_SRC)) {
			for (i = 0; i < ARRAY_SIZE(imms); i++)
				for (k = 0; k < 3; k++)
					bad += alu_one(op, d, d, info->sel == ISA_F_IMM ? info->val : imms[i],
						       values[rnd() % ARRAY_SIZE(values)], 0);
			continue;
		}
		for (s = 0; s < ISA_NR_REGS; s++)
			for (k = 0; k < 6 && s != 10; k++)
				bad += alu_one(op, d, s, 0, values[rnd() % ARRAY_SIZE(values)],
					       k ? values[rnd() % ARRAY_SIZE(values)] : 0);
		bad += alu_one(op, d, (d + 1) % 10, 0, 0x8000000000000000, ~0ULL);
		bad += alu_one(op, d, (d + 1) % 10, 0, 0x80000000, 0xffffffff);
	}
	return bad;
}

static void alu(const char *how)
{
	int op, bad = 0, rows = 0;

	for (op = 0; op < ISA_OP_MAX; op++) {
		switch (isa_info[op].kind) {
		case ISA_K_ALU:
		case ISA_K_NEG:
		case ISA_K_MOV:
		case ISA_K_END:
			bad += alu_row(op);
			rows++;
		}
	}
	ok(!bad && rows >= 72, "%d rows of arithmetic, every register, %s", rows, how);
}

/* Both engines with the same memory: registers and memory afterwards. */
static int mem_one(enum isa_op op, u8 d, u8 s, s16 off, s32 imm)
{
	static u64 mem[16];
	bool by_src = isa_mem_base(op, &(struct bpf_insn){ .dst_reg = 1, .src_reg = 2 }) == 2;
	struct bpf_insn insn = isa_encode(op, d, s, off, imm);
	u64 regs[ISA_NR_REGS], start[ISA_NR_REGS], want[ISA_NR_REGS], first[16], after[16];
	u32 i;
	u8 r, base = by_src ? s : d;

	for (r = 0; r < ISA_NR_REGS; r++)
		start[r] = rnd();
	for (i = 0; i < ARRAY_SIZE(mem); i++)
		first[i] = rnd();
	start[base] = (u64)&mem[8] - off;
	if (rnd() % 2 && base != 0)
		start[0] = isa_info[op].width == 4 ? (u32)first[8] : first[8];
	memcpy(want, start, sizeof(want));
	memcpy(mem, first, sizeof(mem));
	if (!run_one(insn, want, mem, EXEC_INTERP))
		return 1;
	memcpy(after, mem, sizeof(mem));
	memcpy(regs, start, sizeof(regs));
	memcpy(mem, first, sizeof(mem));
	if (!run_one(insn, regs, mem, EXEC_JIT))
		return 1;
	if (memcmp(after, mem, sizeof(mem))) {
		printf("# %s dst r%u src r%u: memory differs\n", isa_info[op].name, d, s);
		return 1;
	}
	return differs(isa_info[op].name, insn, regs, want);
}

static void memory(const char *how)
{
	static const s16 offs[] = { 0, 8, 127, 128, -128, -129, 32767, -32768 };
	int op, bad = 0, rows = 0;
	size_t i;
	u8 d, s;

	for (op = 0; op < ISA_OP_MAX; op++) {
		const struct isa_info *info = &isa_info[op];

		if (info->kind < ISA_K_LDX || info->kind > ISA_K_ATOMIC)
			continue;
		rows++;
		for (d = 0; d < ISA_NR_REGS && bad < 5; d++)
			for (s = 0; s < ISA_NR_REGS; s++)
				for (i = 0; i < ARRAY_SIZE(offs) && d != 10 && s != 10; i++)
					if (info->kind != ISA_K_ST || s == 0)
						bad += mem_one(op, d, s, offs[i], info->sel == ISA_F_IMM ? info->val :
							       info->kind == ISA_K_ST ? imms[rnd() % ARRAY_SIZE(imms)] : 0);
	}
	ok(!bad && rows >= 50, "%d rows of memory, every pair of registers, near and far: as interpreted, %s", rows, how);
}

static int jump_one(enum isa_op op, u8 d, u8 s, s32 imm, u64 a, u64 b)
{
	struct bpf_insn code[16], insn = isa_encode(op, d, s, 2, imm);
	struct prog *prog;
	bool want;
	u32 n = 0;
	u64 got;

	n += put_imm64(&code[n], d, a);
	if (isa_is_reg_form(insn.code)) {
		n += put_imm64(&code[n], s, b);
		a = d == s ? b : a;
	}
	want = isa_eval_jmp(op, a, isa_is_reg_form(insn.code) ? b : isa_imm(&insn));
	code[n++] = insn;
	code[n++] = ISA_MOV(0, 10);
	code[n++] = ISA_RETURN();
	code[n++] = ISA_MOV(0, 11);
	code[n++] = ISA_RETURN();
	prog = bare_insns(code, n, NULL, 0);
	got = exec_prepare_as(prog, EXEC_JIT, NULL) ? 0 : prog->entry(prog, NULL);
	bare_free(prog);
	if (got != 10 + want)
		printf("# %s r%u r%u imm %d: 0x%llx, 0x%llx\n", isa_info[op].name, d, s, imm, (unsigned long long)a,
		       (unsigned long long)b);
	return got != 10 + want;
}

static void jumps(void)
{
	int op, bad = 0, rows = 0;
	size_t i, k;
	u8 d, s;

	for (op = 0; op < ISA_OP_MAX; op++) {
		if (isa_info[op].kind != ISA_K_JMP)
			continue;
		rows++;
		for (d = 0; d < ISA_NR_REGS && bad < 5; d++) {
			if (d == 10)
				continue;
			for (i = 0; i < ARRAY_SIZE(values); i++) {
				s = rnd() % 10;
				if (isa_is_reg_form(isa_info[op].code))
					for (k = 0; k < ARRAY_SIZE(values); k++)
						bad += jump_one(op, d, s, 0, values[i], values[k]);
				else
					for (k = 0; k < ARRAY_SIZE(imms); k++)
						bad += jump_one(op, d, 0, imms[k], values[i], 0);
			}
		}
	}
	ok(!bad && rows == 44, "%d comparisons jump as they should", rows);
}

int main(void)
{
	if (jit_available()) {
		tap_skip("no compiler for this machine, or no code memory");
		return tap_done();
	}
	alu("as this processor does it");
	jit_knobs.no_features = true;
	alu("without its extensions");
	memory("without its extensions");
	jit_knobs.no_features = false;
	jit_knobs.slow_div = true;
	alu("with short divisions where they do");
	jit_knobs.slow_div = false;
	jit_knobs.no_fuse = true;
	alu("each for itself");
	jit_knobs.no_fuse = false;
	memory("as this processor does it");
	jumps();
	return tap_done();
}
