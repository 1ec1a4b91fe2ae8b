// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lowered programs do what they did before. Each is run as the shared passes leave it and lowered, on the same memory,
 * by the same engine: r0 and memory must be the same. All of it by interpreter and compiler.
 */
#include "lower_env.h"

#define BIG "0x800000" /* 2^23 */

static struct inlay switches; /* for inline_off only */
static enum exec_engine engine = EXEC_INTERP;

static u64 seed = 88172645463325252ULL;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

static void leave(struct prog *prog)
{
	if (!prog)
		return;
	if (prog->lowered && prog->lowered->image_free) {
		prog->lowered->image_free(prog->lowered);
		free(prog->lowered->funcs);
	}
	if (prog->lowered_free)
		prog->lowered_free(prog);
	bare_free(prog);
}

/* Assembled; loads of maps are of the fake one. depth: bytes of stack of every function that uses any. */
static struct prog *assemble(const char *text, u32 depth)
{
	struct prog *prog = bare_assemble(text);
	u32 i;

	for (i = 0; prog && i < prog->nr_subprogs; i++) {
		prog->subprogs[i].stack_depth = min_of(prog->subprogs[i].stack_depth, depth);
		prog->subprogs[i].reads_stale = false;
	}
	for (i = 0; prog && i < prog->nr_insns; i++) {
		struct insn_fact *fact = &prog->facts[i];

		if (prog->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) && prog->insns[i].src_reg == BPF_PSEUDO_MAP_FD) {
			fact->map = &fake.map;
			fact->imm64 = (u64)&fake.map;
		}
		if (fact->helper && type_base(fact->helper->arg[0]) == ARG_CONST_MAP_PTR)
			fact->map = &fake.map;
	}
	return prog;
}

/* Lowered and made executable; off: enum inline_kind. */
static struct prog *lowered(const char *text, u32 depth, u32 off)
{
	struct prog *prog = assemble(text, depth);
	struct strbuf log = STRBUF_INIT;

	if (!prog)
		return NULL;
	switches.inline_off = off;
	prog->obj.inlay = &switches;
	if (rw_xlate(prog, &log) || rw_lower(prog, &caps_all, &log) || exec_prepare_as(prog->lowered, engine, &log)) {
		printf("# %.60s...: %s\n", text, strbuf_str(&log));
		leave(prog);
		prog = NULL;
	}
	strbuf_fini(&log);
	return prog;
}

static void show(const struct prog *prog)
{
	struct strbuf t = STRBUF_INIT;
	struct isa_names names = rw_names(prog);
	u32 pc;

	for (pc = 0; pc < prog->nr_insns;) {
		strbuf_printf(&t, "# %3u ", pc);
		pc += isa_disasm(&t, &prog->insns[pc], prog->nr_insns - pc, &names);
		strbuf_putc(&t, '\n');
	}
	fputs(strbuf_str(&t), stdout);
	strbuf_fini(&t);
}

struct outcome {
	u64 r0, mem[16];
};

static bool run_plain(const char *text, u32 depth, struct outcome *out)
{
	struct prog *prog = assemble(text, depth);
	struct strbuf log = STRBUF_INIT;
	bool good = prog && !rw_xlate(prog, &log) && !exec_prepare_as(prog, engine, &log);

	if (good)
		out->r0 = prog->entry(prog, out->mem);
	else
		printf("# %.60s...: %s\n", text, strbuf_str(&log));
	leave(prog);
	strbuf_fini(&log);
	return good;
}

/* Runs text both ways on mem[i] = i * 3 + first. 1 the same, 0 not. what: how the first call came out; NULL: any. */
static int same(const char *text, u32 depth, u64 first, const char *what, struct outcome *ret)
{
	struct outcome plain, low;
	struct prog *prog = lowered(text, depth, 0);
	int i, good;

	if (!prog)
		return 0;
	for (i = 0; i < 16; i++)
		plain.mem[i] = low.mem[i] = i ? i * 3 : first;
	low.r0 = prog->lowered->entry(prog->lowered, low.mem);
	good = run_plain(text, depth, &plain) && !memcmp(&plain, &low, sizeof(low));
	if (what && (!prog->lowered->nr_inlined || strcmp(prog->lowered->inlined[0].what, what))) {
		printf("# %s\n", prog->lowered->nr_inlined ? prog->lowered->inlined[0].what : "no call at all");
		good = 0;
	}
	if (!good) {
		printf("# %s\n# plain %#llx lowered %#llx\n", text, (unsigned long long)plain.r0, (unsigned long long)low.r0);
		show(prog->lowered);
	}
	if (ret)
		*ret = low;
	leave(prog);
	return good;
}

#define IN "a loop with the function in it"
#define BY_CALL "a loop that calls the function"

/* ---- bpf_loop ---- */

static void counts(void)
{
	static const struct {
		const char *n;
		u64 r0;
	} row[] = {
		{ "0", 0 }, { "1", 1 }, { "5", 5 }, { BIG, 1 << 23 },
	};
	struct outcome out;
	char text[512];
	int i;

	for (i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "r6 = 0; r1 = %s; r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: r0 = 0; exit", row[i].n);
		ok(same(text, 0, 0, IN, &out) && out.r0 == row[i].r0, "%s rounds, a constant", row[i].n);
	}
	for (i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "r1 = *(u64 *)(r1 + 0); r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: r0 = 0; exit");
		ok(same(text, 0, row[i].r0, IN, &out) && out.r0 == row[i].r0, "%s rounds, not known before", row[i].n);
	}
	ok(same(text, 0, (1 << 23) + 1, IN, &out) && out.r0 == (u64)-E2BIG, "one more than 2^23: E2BIG, and no round");
	ok(same(text, 0, (1ULL << 32) + 3, IN, &out) && out.r0 == 3, "the count has 32 bits");
	ok(same("r1 = 0x800001; r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: r0 = 0; exit", 0, 0, "it asks for too many rounds",
		&out) &&
		   out.r0 == (u64)-E2BIG,
	   "a constant one more than 2^23 stays a call");
	ok(same("r1 = 3; r2 = f ll; r3 = 0; r4 = 1; call 2; exit; f: r0 = 0; exit", 0, 0, "its flags are not 0", &out) &&
		   out.r0 == (u64)-EINVAL,
	   "so does one with flags");
	ok(same("r4 = *(u64 *)(r1 + 0); r1 = 3; r2 = f ll; r3 = 0; call 2; exit; f: r0 = 0; exit", 0, 0, "its flags are not 0",
		&out) && out.r0 == 3,
	   "and one whose flags are not known");
	ok(same("r6 = r1; r1 = 3; if r6 == 0 goto a; r2 = f ll; goto c; a: r2 = g ll; c: r3 = 0; r4 = 0; call 2; exit;"
		"f: r0 = 0; exit; g: r0 = 1; exit", 0, 0, "which function is not known", &out) && out.r0 == 3,
	   "and one of two functions");
}

static void stops(void)
{
	struct outcome out;

	ok(same("r6 = r1; r1 = 100; r2 = f ll; r3 = r6; r4 = 0; call 2; exit;"
		"f: r3 = *(u64 *)(r2 + 8); r3 += r1; *(u64 *)(r2 + 8) = r3; r0 = 0; if r1 != 9 goto e; r0 = 1; e: exit", 0, 0, IN, &out) &&
		   out.r0 == 10 && out.mem[1] == 3 + 45,
	   "a function that returns 1 ends the loop; rounds are counted");
	ok(same("r6 = r1; r1 = 100; r2 = f ll; r3 = r6; r4 = 0; call 2; exit;"
		"f: *(u64 *)(r2 + 8) = r1; if r1 != 9 goto e; r0 = 1; exit; e: r0 = 0; exit", 0, 0, IN, &out) && out.r0 == 10 &&
		   out.mem[1] == 9,
	   "with exits of which it is known what they return");
	ok(same("r1 = 7; r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: r0 = 1; exit", 0, 0, IN, &out) && out.r0 == 1, "one that always does");
	ok(same("r1 = 7; r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: r0 = 0x100000000 ll; exit", 0, 0, IN, &out) && out.r0 == 1,
	   "in any of 64 bits");
	ok(same("r1 = 7; r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: r0 = r1; r0 &= 4; exit", 0, 0, IN, &out) && out.r0 == 5,
	   "one of which it is not known");
}

static void kept(void)
{
	struct outcome out;

	ok(same("r6 = r1; r7 = 70; r8 = 80; r9 = 90; r1 = 5; r2 = f ll; r3 = r6; r4 = 0; call 2;"
		"r0 *= 1000; r0 += r7; r0 += r8; r0 += r9; *(u64 *)(r6 + 16) = r0; exit;"
		"f: r6 = 1; r7 = 2; r8 = 3; r9 = 4; r6 += r1; r7 += r6; r8 += r7; r9 += r8; *(u64 *)(r2 + 8) = r9; r0 = 0; exit",
		0, 0, IN, &out) && out.r0 == 5240 && out.mem[1] == 14 && out.mem[2] == 5240,
	   "r6 to r9 are the caller's again behind the loop");
	ok(same("r6 = r1; r7 = 70; r8 = 80; r9 = 90; r1 = *(u64 *)(r6 + 0); r2 = f ll; r3 = r6; r4 = 0; call 2;"
		"r0 *= 1000; r0 += r7; r0 += r8; r0 += r9; *(u64 *)(r6 + 16) = r0; exit;"
		"f: r6 = *(u64 *)(r2 + 8); r7 = r6; r8 = r7; r9 = r8; r9 += r1; *(u64 *)(r2 + 8) = r9; r0 = 0; if r1 == 3 goto s; exit; s: r0 = 1; exit",
		0, 9, IN, &out) && out.r0 == 4240 && out.mem[1] == 9,
	   "also where count, context and index find no register");
	ok(same("*(u64 *)(r10 - 8) = 11; *(u64 *)(r10 - 16) = 22; r1 = 4; r2 = f ll; r3 = r10; r3 += -16; r4 = 0; call 2;"
		"r0 *= 1000; r1 = *(u64 *)(r10 - 8); r0 += r1; r1 = *(u64 *)(r10 - 16); r0 += r1; exit;"
		"f: *(u64 *)(r10 - 8) = 500; *(u64 *)(r10 - 16) = r1; r3 = *(u64 *)(r10 - 8); r3 -= 499; r4 = *(u64 *)(r2 + 0); r4 += r3;"
		"*(u64 *)(r2 + 0) = r4; r0 = 0; exit",
		16, 0, IN, &out) && out.r0 == 4000 + 11 + 26,
	   "the function's frame is not the caller's, the context is");
	ok(same("r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; exit;"
		"f: *(u32 *)(r10 - 4) = r1; r2 = r10; r2 += -4; r3 = r10; r3 = *(u32 *)(r3 - 4); r4 = *(u32 *)(r2 + 0); r0 = r4; r0 -= r3; exit",
		8, 0, IN, &out) && out.r0 == 4,
	   "pointers to the function's frame lead there");
	ok(same("r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; exit;"
		"f: r6 = r1; call g; r0 &= 0; exit; g: *(u64 *)(r10 - 8) = r1; r6 = 77; r0 = *(u64 *)(r10 - 8); exit", 8, 0, IN, &out) && out.r0 == 4,
	   "a function that calls another");
	ok(same("r1 = 4; r2 = f ll; r3 = 5; r4 = 0; call 2; exit;"
		"f: r3 = 3; r4 = 4; r5 = 5; call 1; r0 = 0; exit", 0, 0, IN, &out) && out.r0 == 4,
	   "one that calls a helper");
	ok(same("r6 = 1; r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; r0 += r6; exit; f: l: r1 += 1; if r1 < 9 goto l; r0 = 0; exit", 0, 0, IN,
		&out) && out.r0 == 5,
	   "one with a loop of its own that begins where it does");
}

static void not_in(void)
{
	struct strbuf t = STRBUF_INIT;
	struct outcome out;
	struct prog *prog;
	int i;

	ok(same("*(u64 *)(r10 - 8) = 2; r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; r0 += 1; exit; f: *(u64 *)(r10 - 8) = 1; r0 = 0; exit", 504, 0,
		BY_CALL, &out) && out.r0 == 5,
	   "no room for another frame: it is called in the loop");
	ok(same("*(u64 *)(r10 - 512) = 3; r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; r0 += 1; exit; f: r0 = 0; exit", 512, 0, IN, &out) &&
		   out.r0 == 5,
	   "no room at all, but none is needed");
	ok(same("r6 = 1; r7 = 2; r8 = 3; r9 = 4; *(u64 *)(r10 - 512) = 3; r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2;"
		"r0 += r6; r0 += r7; r0 += r8; r0 += r9; exit; f: r6 = 0; r7 = 0; r8 = 0; r9 = 0; r0 = 0; exit", 512, 0,
		"no room for it in the stack or the program", &out) && out.r0 == 14,
	   "no room, and it is needed: it stays a call");
	strbuf_puts(&t, "r6 = r1; r1 = 4; r2 = f ll; r3 = r6; r4 = 0; call 2; r0 += 1; exit; f: r0 = 0;");
	for (i = 0; i < 300; i++)
		strbuf_printf(&t, "r0 += r1; r0 ^= %d;", i);
	strbuf_puts(&t, "*(u64 *)(r2 + 8) = r0; r0 &= 1; exit");
	ok(same(strbuf_str(&t), 0, 0, BY_CALL, NULL), "a large function is called in the loop");
	ok(same("r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: may_goto e; r0 = 0; exit; e: r0 = 1; exit", 0, 0, BY_CALL, &out) &&
		   out.r0 == 4,
	   "so is one that counts its rounds");
	ok(same("r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: *(u64 *)(r10 - 8) = r10; r0 = 0; exit", 8, 0, BY_CALL, &out) &&
		   out.r0 == 4,
	   "and one that keeps the address of its frame");
	ok(same("r6 = r1; r1 = 4; r2 = f ll; r3 = r6; r4 = 0; call 2; r7 = r0; r4 = *(u64 *)(r6 + 0); r1 = 5; r2 = f ll; r3 = r6; call 2;"
		"r0 *= 100; r0 += r7; exit; f: may_goto e; *(u64 *)(r2 + 8) = r1; r0 = 0; exit; e: r0 = 1; exit", 0, 0, BY_CALL, &out) &&
		   out.r0 == 504 && out.mem[1] == 4,
	   "called in one loop and given to a helper as well");
	prog = assemble("r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: *(u64 *)(r10 - 8) = 1; r0 = 0; exit", 8);
	prog->subprogs[1].reads_stale = true;
	ok(!rw_xlate(prog, NULL) && !rw_lower(prog, &caps_all, NULL) && !strcmp(prog->lowered->inlined[0].what, BY_CALL),
	   "and one that reads what it has not written");
	ok(prog->nr_insns == 28 && prog->insns[5].code == (BPF_JMP | BPF_JLE), "the text that is shown is Linux's loop");
	leave(prog);
	prog = lowered("r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; exit; f: r0 = 0; exit", 0, INLINE_LOOP);
	ok(prog && prog->lowered->nr_insns == 9 && prog->lowered->entry(prog->lowered, NULL) == 4, "switched off it is a call");
	leave(prog);
	strbuf_fini(&t);
}

static void nested(void)
{
	struct outcome out;

	ok(same("r6 = r1; r1 = 6; r2 = f ll; r3 = r6; r4 = 0; call 2; exit;"
		"f: r6 = r2; r7 = r1; r1 = 5; r2 = g ll; r3 = r6; r4 = 0; call 2; r1 = *(u64 *)(r6 + 8); r1 *= 3; r1 += r7; *(u64 *)(r6 + 8) = r1; r0 = 0; exit;"
		"g: r3 = *(u64 *)(r2 + 8); r3 += r1; *(u64 *)(r2 + 8) = r3; r0 = 0; if r1 == 3 goto s; exit; s: r0 = 1; exit", 0, 0, NULL, &out) &&
		   out.r0 == 6,
	   "a loop in a loop");
	ok(same("r1 = 3; r2 = f ll; r3 = 0; r4 = 0; call 2; r6 = r0; r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; r0 += r6; exit;"
		"f: *(u64 *)(r10 - 8) = r1; r1 = 2; r2 = g ll; r3 = r10; r3 += -8; r4 = 0; call 2; r0 = *(u64 *)(r10 - 8); r0 &= 128; exit;"
		"g: *(u64 *)(r10 - 8) = 7; r1 = *(u64 *)(r2 + 0); r1 += 1; *(u64 *)(r2 + 0) = r1; r0 = 0; exit", 8, 0, IN, &out) && out.r0 == 7,
	   "two loops with the same function, which holds one with a frame");
}

/* A random function of two arguments that ends: forward jumps only, a frame of 16 bytes, r6..r9 set before they are read. */
static void random_function(struct strbuf *t, const char *name, bool nests)
{
	int regs = rnd() % 5, len = 4 + rnd() % 16, i, k;

	strbuf_printf(t, "%s: r0 = r1; r3 = 3; r4 = 4; r5 = 5; *(u64 *)(r10 - 8) = r1; *(u64 *)(r10 - 16) = %d; r3 = *(u64 *)(r2 + 8);", name, rnd() & 0xff);
	for (k = 0; k < regs; k++)
		strbuf_printf(t, "r%d = %d;", 6 + k, rnd() & 0xffff);
	for (i = 0; i < len; i++) {
		int dst = regs && rnd() % 2 ? 6 + rnd() % regs : rnd() % 2 * 3, src = regs ? 6 + rnd() % regs : 3;

		strbuf_printf(t, "%s%d:", name, i);
		switch (rnd() % 9) {
		case 0:
			strbuf_printf(t, "if r%d %s %d goto %s%d;", src, rnd() % 2 ? ">" : "==", rnd() & 0xff, name, i + 1 + rnd() % (len - i));
			break;
		case 1:
			strbuf_printf(t, "if r%d & %d goto %s%d; r0 = %d; exit;", dst, 1 + (rnd() & 7), name, i + 1, rnd() % 3);
			break;
		case 2:
			strbuf_printf(t, "*(u64 *)(r10 - %d) = r%d;", 8 + 8 * (rnd() % 2), src);
			break;
		case 3:
			strbuf_printf(t, "r%d = *(u64 *)(r10 - %d);", dst, 8 + 8 * (rnd() % 2));
			break;
		case 4:
			strbuf_printf(t, "r5 = r10; r5 += -%d; r4 = *(u64 *)(r5 + 0); r%d += r4;", 8 + 8 * (rnd() % 2), dst);
			break;
		case 5:
			if (rnd() % 3)
				strbuf_printf(t, "goto %s%d;", name, i + 1 + rnd() % (len - i));
			else
				strbuf_printf(t, "r5 = %d ll; r%d ^= r5;", rnd(), dst);
			break;
		case 6:
			strbuf_printf(t, "*(u64 *)(r2 + %d) = r%d;", 8 * (2 + rnd() % 6), src);
			break;
		default:
			strbuf_printf(t, "r%d %s r%d; r%d += %d;", dst, rnd() % 2 ? "+=" : "^=", src, dst, rnd() & 0xff);
		}
	}
	strbuf_printf(t, "%s%d: *(u64 *)(r2 + 8) = r0; ", name, len);
	if (nests)
		strbuf_printf(t, "*(u64 *)(r2 + 80) = r3; r6 = r2; r1 = %d; r2 = g ll; r3 = r6; r4 = 0; call 2; *(u64 *)(r6 + 88) = r0;", rnd() % 4);
	strbuf_printf(t, "r0 &= %d; exit;", rnd() % 4);
}

static void any(void)
{
	int i, bad = 0, in = 0;

	for (i = 0; i < 1500 && !bad; i++) {
		struct strbuf t = STRBUF_INIT;
		bool nests = rnd() % 3 == 0;
		struct prog *prog;
		int k;

		strbuf_puts(&t, "r6 = r1;");
		for (k = 7; k < 10; k++)
			strbuf_printf(&t, "r%d = %d;", k, rnd() & 0xffff);
		strbuf_printf(&t, "*(u64 *)(r10 - 16) = %d; *(u64 *)(r10 - 8) = r7;", rnd() & 0xffff);
		if (rnd() % 2)
			strbuf_puts(&t, "r1 = *(u64 *)(r6 + 0); r1 &= 15;");
		else
			strbuf_printf(&t, "r1 = %d;", rnd() % 9);
		strbuf_puts(&t, "r2 = f ll; r3 = r6; r4 = 0; call 2; r1 = *(u64 *)(r10 - 8); r0 += r1; r1 = *(u64 *)(r10 - 16); r0 ^= r1;");
		for (k = 7; k < 10; k++)
			if (rnd() % 2)
				strbuf_printf(&t, "r0 *= 3; r0 += r%d;", k);
		strbuf_puts(&t, "exit;");
		random_function(&t, "f", nests);
		if (nests)
			random_function(&t, "g", false);
		bad += !same(strbuf_str(&t), 16, rnd(), NULL, NULL);
		prog = lowered(strbuf_str(&t), 16, 0);
		for (k = 0; prog && k < prog->lowered->nr_inlined; k++)
			in += !strcmp(prog->lowered->inlined[k].what, IN);
		leave(prog);
		strbuf_fini(&t);
	}
	ok(!bad && in > i, "%d random programs with %d loops put in place do as before", i, in);
}

/* ---- code of maps and helpers ---- */

static const char lookup_known[] = "*(u32 *)(r10 - 4) = 2; r2 = r10; r2 += -4; r1 = map[fd:1]; call 3; r0 = *(u64 *)(r0 + 0); exit";
static const char lookup_any[] = "r1 = *(u64 *)(r1 + 0); *(u32 *)(r10 - 4) = r1; r2 = r10; r2 += -4; r1 = map[fd:1]; call 3;"
				 "if r0 == 0 goto e; r0 = *(u64 *)(r0 + 0); e: exit";

static u64 run_low(struct prog *prog, u64 first)
{
	u64 mem[16] = { first };

	return prog ? prog->lowered->entry(prog->lowered, mem) : 0xdeadbadc0de;
}

static void codes(void)
{
	struct prog *prog = lowered(lookup_known, 8, 0);

	fake.outlined = fake.direct = 0;
	is_u64(run_low(prog, 0), 102, "a lookup with a constant key");
	ok(fake.folded && !fake.outlined && !fake.direct && prog->lowered->nr_insns <= 5, "is an address, and what led to the call is gone");
	is_int(prog->nr_insns, 8, "the text that is shown still has it");
	leave(prog);
	prog = lowered(lookup_any, 8, 0);
	ok(run_low(prog, 3) == 103 && run_low(prog, 4) == 0 && !fake.outlined && !fake.direct, "one whose key is not known, by the map's own code");
	ok(run_low(prog, 0) == 100 && fake.direct == 1 && !fake.outlined, "which may still call, and then the twin for this map");
	leave(prog);
	prog = lowered(lookup_any, 8, INLINE_MAP);
	ok(run_low(prog, 3) == 103 && fake.outlined == 1 && fake.direct == 1, "switched off it is the helper that is called");
	ok(prog->lowered->nr_inlined == 1 && !prog->lowered->inlined[0].done && strstr(prog->lowered->inlined[0].what, "map"), "and said why");
	leave(prog);
	fake.direct = fake.outlined = 0;
	prog = lowered("*(u32 *)(r10 - 4) = 1; *(u64 *)(r10 - 16) = 55; r2 = r10; r2 += -4; r3 = r10; r3 += -16; r1 = map[fd:1]; r4 = 0; call 6; exit", 16, 0);
	ok(run_low(prog, 0) == 0 && fake.value[1] == 55 && fake.direct == 1 && !fake.outlined, "an update without code is called directly");
	fake.value[1] = 101;
	leave(prog);
	prog = assemble(lookup_any, 8);
	prog->facts[6].map_poisoned = 1;
	ok(!rw_xlate(prog, NULL) && !rw_lower(prog, &caps_all, NULL) && !prog->lowered->facts[6].fn && prog->lowered->nr_insns == 10 &&
		   strstr(prog->lowered->inlined[0].what, "different maps"),
	   "a call that gets different maps stays");
	leave(prog);
	prog = lowered("call 4; r0 += 1; exit", 0, 0);
	ok(run_low(prog, 0) == 8 && prog->lowered->insns[0].code == (BPF_ALU64 | BPF_MOV | BPF_K), "a helper's own code");
	leave(prog);
	prog = lowered("call 4; r0 += 1; exit", 0, INLINE_HELPER);
	ok(run_low(prog, 0) == 8 && prog->lowered->insns[0].code == (BPF_JMP | BPF_CALL), "switched off");
	leave(prog);
	prog = assemble("call 4; r0 += 1; exit", 0);
	ok(!rw_xlate(prog, NULL) && !rw_lower(prog, NULL, NULL) && prog->lowered->insns[0].code == (BPF_JMP | BPF_CALL),
	   "nothing is inlined for an engine that can do nothing");
	leave(prog);
}

static void keys(void)
{
	static const struct {
		const char *text, *name;
		u64 r0;
		bool folds;
	} row[] = {
		{ "r3 = 2; *(u32 *)(r10 - 4) = r3; r2 = r10; r2 += -4; r1 = map[fd:1]; call 3;", "a constant in a register", 102, true },
		{ "*(u64 *)(r10 - 8) = 3; r2 = r10; r2 += -8; r1 = map[fd:1]; call 3;", "part of a larger store", 103, true },
		{ "r3 = 0x200000001 ll; *(u64 *)(r10 - 8) = r3; r2 = r10; r2 += -4; r1 = map[fd:1]; call 3;", "its upper part", 102, true },
		{ "*(u32 *)(r10 - 4) = 2; *(u32 *)(r10 - 8) = r1; call 5; r2 = r10; r2 += -4; r1 = map[fd:1]; call 3;",
		  "past other slots and calls that touch nothing", 102, true },
		{ "r2 = r10; r2 += -4; *(u32 *)(r2 + 0) = 1; r1 = map[fd:1]; call 3;", "stored through the pointer", 101, true },
		{ "*(u32 *)(r10 - 4) = 2; *(u8 *)(r10 - 4) = 3; r2 = r10; r2 += -4; r1 = map[fd:1]; call 3;", "overwritten in part", 103, false },
		{ "*(u32 *)(r10 - 4) = 2; r3 = r10; r3 += r1; r3 -= r1; *(u32 *)(r3 - 4) = 1; r2 = r10; r2 += -4; r1 = map[fd:1]; call 3;",
		  "overwritten nobody knows where", 101, false },
		{ "*(u32 *)(r10 - 4) = 2; r1 = 0; r2 = 0; r3 = 0; r4 = 0; r5 = 0; call 1; r2 = r10; r2 += -4; r1 = map[fd:1]; call 3;",
		  "a call between that could write", 102, false },
		{ "*(u32 *)(r10 - 4) = 1; if r1 != 0 goto a; *(u32 *)(r10 - 4) = 2; a: r2 = r10; r2 += -4; r1 = map[fd:1]; call 3;",
		  "two ways that meet", 101, false },
		{ "*(u32 *)(r10 - 4) = 2; if r1 == 0 goto a; r2 = r10; r2 += -4; r1 = map[fd:1]; call 3; if r0 == 0 goto a;",
		  "past a jump out", 102, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		char text[512];
		struct prog *prog;
		u64 r0;

		snprintf(text, sizeof(text), "%s r0 = *(u64 *)(r0 + 0); exit; a: r0 = 0; exit", row[i].text);
		if (strstr(row[i].text, "a: "))
			snprintf(text, sizeof(text), "%s r0 = *(u64 *)(r0 + 0); exit", row[i].text);
		fake.folded = false;
		prog = lowered(text, 16, 0);
		r0 = run_low(prog, 0);
		if (!ok(r0 == row[i].r0 && fake.folded == row[i].folds, "key: %s%s", row[i].name, row[i].folds ? "" : ": not taken for a constant"))
			printf("# %llu, folded %d\n", (unsigned long long)r0, fake.folded);
		leave(prog);
	}
}

/* Values that only went through the stack: what was stored is at hand. */
static void through_stack(void)
{
	static const char *const row[] = {
		"r6 = *(u64 *)(r1 + 8); call 4; *(u32 *)(r10 - 4) = r6; r2 = r10; r2 += -4; r0 = *(u32 *)(r2 + 0); exit",
		"r6 = *(u64 *)(r1 + 8); call 4; r6 <<= 33; *(u64 *)(r10 - 8) = r6; r0 = *(u32 *)(r10 - 4); r1 = *(u64 *)(r10 - 8); r0 += r1; exit",
		"r6 = *(u64 *)(r1 + 8); call 4; *(u64 *)(r10 - 8) = r6; r6 = 1; r0 = *(u64 *)(r10 - 8); r0 += r6; exit",
		"r6 = r1; call 4; *(u64 *)(r10 - 8) = -7; *(u32 *)(r10 - 12) = -9; r0 = *(u64 *)(r10 - 8); r1 = *(u32 *)(r10 - 12); r0 += r1; exit",
		"r6 = r1; call 4; *(u64 *)(r10 - 8) = r0; *(u8 *)(r10 - 5) = 3; r0 = *(u64 *)(r10 - 8); exit",
		"r6 = r1; call 4; *(u64 *)(r10 - 8) = r0; *(u64 *)(r6 + 8) = 3; r0 = *(u64 *)(r10 - 8); exit",
		"r6 = r1; call 4; *(u64 *)(r10 - 8) = 5; if r6 == 0 goto a; *(u64 *)(r10 - 8) = 6; a: r0 = *(u64 *)(r10 - 8); exit",
		"r6 = r1; call 4; r7 = 3; *(u64 *)(r10 - 8) = r7; r2 = 0; r3 = 0; r4 = 0; r5 = 0; r1 = r10; call 1; r0 = *(u64 *)(r10 - 8); exit",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(row); i++)
		ok(same(row[i], 16, 0, NULL, NULL), "through the stack, %zu", i + 1);
}

/* Lines of functions that were put in follow them. */
static void lines(void)
{
	struct prog *prog = assemble("r1 = 4; r2 = f ll; r3 = 0; r4 = 0; call 2; r0 += 1; exit; f: r3 = r1; r3 += 1; r0 = 0; exit", 0);
	static const struct prog_line had[] = { { 0, 0, 10, 0 }, { 5, 0, 20, 0 }, { 6, 0, 30, 0 }, { 8, 0, 40, 0 }, { 10, 0, 50, 0 } };
	u32 i, in = 0;

	prog->line_info = malloc(sizeof(had));
	memcpy(prog->line_info, had, sizeof(had));
	prog->nr_line_info = ARRAY_SIZE(had);
	is_int(rw_xlate(prog, NULL) || rw_lower(prog, &caps_all, NULL), 0, "a program with lines");
	for (i = 0; i < prog->lowered->nr_line_info; i++) {
		const struct prog_line *l = &prog->lowered->line_info[i];

		in += l->line_off == 50 && l->insn_off < prog->lowered->subprogs[1].start;
		if (i && l->insn_off <= l[-1].insn_off)
			in = 100;
	}
	ok(in == 1, "the lines of the function stand in the loop too, in order (%u)", in);
	ok(prog->nr_line_info == 5, "those of the shown text are as they were");
	leave(prog);
}

static void all(enum exec_engine with, const char *name)
{
	printf("# %s\n", name);
	engine = with;
	counts();
	stops();
	kept();
	not_in();
	nested();
	any();
	codes();
	keys();
	through_stack();
}

int main(void)
{
	all(EXEC_INTERP, "interpreted");
	all(EXEC_JIT, "compiled");
	lines();
	return tap_done();
}
