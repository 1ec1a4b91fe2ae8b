// SPDX-License-Identifier: BSD-2-Clause
// The assembler: labels, names, clang's spellings, and what it says about mistakes.
#include <errno.h>
#include <string.h>

#include "isa/asm.h"
#include "isa/disasm.h"
#include "tap.h"

/* Assembles and disassembles; statements joined by "; ". */
static void gives(const char *text, const char *want)
{
	struct strbuf out = STRBUF_INIT, err = STRBUF_INIT;
	struct isa_code code;
	u32 pc;

	if (isa_assemble(text, NULL, &code, &err)) {
		ok(false, "%s: %s", text, strbuf_str(&err));
	} else {
		for (pc = 0; pc < code.len;) {
			if (pc)
				strbuf_puts(&out, "; ");
			pc += isa_disasm(&out, &code.insns[pc], code.len - pc, NULL);
		}
		if (!ok(!strcmp(strbuf_str(&out), want), "\"%s\" is %s", text, want))
			printf("# got %s\n", strbuf_str(&out));
		isa_code_fini(&code);
	}
	strbuf_fini(&out);
	strbuf_fini(&err);
}

static void refuses(const char *text, const char *want)
{
	struct strbuf err = STRBUF_INIT;
	struct isa_code code;
	int ret = isa_assemble(text, NULL, &code, &err);

	if (!ret)
		isa_code_fini(&code);
	if (!ok(ret == -EINVAL && !strcmp(strbuf_str(&err), want), "refused: %s", want))
		printf("# got %d %s\n", ret, strbuf_str(&err));
	strbuf_fini(&err);
}

static void spellings(void)
{
	gives("r1=1", "(b7) r1 = 1");
	gives("  w2   s>>=   4 ", "(c4) w2 s>>= 4");
	gives("r0 = *(u64 *)(r1 + 0)", "(79) r0 = *(u64 *)(r1 +0)");
	gives("w0 = *(u32*)(r1 - 4)", "(61) r0 = *(u32 *)(r1 -4)");
	gives("*(u8 *)(r10 - 1) = w3", "(73) *(u8 *)(r10 -1) = r3");
	gives("*(u32 *)(r10 - 4) = -2", "(62) *(u32 *)(r10 -4) = -2");
	gives("r1 = *(s16 *)(r2 + 6)", "(89) r1 = *(s16 *)(r2 +6)");
	gives("lock *(u64 *)(r10 - 8) += r1", "(db) lock *(u64 *)(r10 -8) += r1");
	gives("w1 = xchg32_32(r10 - 8, w1)", "(c3) r1 = atomic_xchg((u32 *)(r10 -8), r1)");
	gives("r0 = cmpxchg_64(r10 - 8, r0, r5)", "(db) r0 = atomic64_cmpxchg((u64 *)(r10 -8), r0, r5)");
	gives("r3 = atomic_fetch_xor((u64 *)(r10 - 8), r3)", "(db) r3 = atomic64_fetch_xor((u64 *)(r10 -8), r3)");
	gives("w0 = load_acquire((u8 *)(r1 + 0))", "(d3) r0 = load_acquire((u8 *)(r1 +0))");
	gives("r1 = 0xffffffff80000000 ll", "(18) r1 = 0xffffffff80000000");
	gives("r1 = -1 ll", "(18) r1 = 0xffffffffffffffff");
	gives("r1 = 0x1ffffffff", "(18) r1 = 0x1ffffffff");
	gives("r1 = 0xffffffff", "(b7) r1 = -1");
	gives("if w1 == 0xffffffff goto +1", "(16) if w1 == 0xffffffff goto pc+1");
	gives("if r1 s> -5 goto pc-3", "(65) if r1 s> 0xfffffffb goto pc-3");
	gives("r0 = *(u16 *)skb[r1]", "(48) r0 = *(u16 *)skb[r1 + 0]");
	gives("r0 = *(u8 *)skb[12]", "(30) r0 = *(u8 *)skb[12]");
	gives("call 7", "(85) call unknown#7");
	gives("call bpf_map_lookup_elem#1", "(85) call unknown#1");
	gives("call kernel-function#1", "(85) call kernel-function#1");
	gives("call pc-2", "(85) call pc-2");
	gives("r1 = -r1", "(87) r1 = -r1");
	gives("w1 = -5", "(b4) w1 = -5");
	gives("r3 = bswap32 r3", "(d7) r3 = bswap32 r3");
	gives("r1 = addr_space_cast(r2, 0x0, 0x1)", "(bf) r1 = addr_space_cast(r2, 0, 1)");
	gives(".quad 0x0000002a000000b7", "(b7) r0 = 42");
	gives("12: (18) r1 = 0x5", "(18) r1 = 0x5");
	gives("exit // done", "(95) exit");
	gives("/* a; b */ exit", "(95) exit");
	gives("", "");
	gives("r1 = 1; r2 = 2; exit", "(b7) r1 = 1; (b7) r2 = 2; (95) exit");
}

static void labels(void)
{
	gives("if r1 == 0 goto out; r0 = 1; out: exit", "(15) if r1 == 0x0 goto pc+1; (b7) r0 = 1; (95) exit");
	gives("l: r0 += 1; goto l", "(07) r0 += 1; (05) goto pc-2");
	gives("gotol far; far: exit", "(06) gotol pc+0; (95) exit");
	gives("may_goto e; e: exit", "(e5) may_goto pc+0; (95) exit");
	gives("call f; exit; f: exit", "(85) call pc+1; (95) exit; (95) exit");
	gives("r1 = f ll; exit; f: exit", "(18) r1 = subprog[+2]; (95) exit; (95) exit");
	gives("r1 = subprog[f]; f:", "(18) r1 = subprog[+1]");
	gives("a: b: exit; goto a; goto b", "(95) exit; (05) goto pc-2; (05) goto pc-3");
}

static void mistakes(void)
{
	refuses("r1 = 1\nfoo bar", "line 2: unknown instruction: foo bar");
	refuses("goto nowhere", "line 1: unknown name: nowhere");
	refuses("r1 = nothing", "line 1: unknown name: nothing");
	refuses("a: exit; a: exit", "line 1: label is defined twice: a");
	refuses("r1 += -2147483649", "line 1: immediate needs more than 32 bits: r1+=-2147483649");
	refuses("r1 = *(u8 *)(r2 + 32768)", "line 1: offset needs more than 16 bits: r1=*(u8*)(r2+32768)");
	refuses("r16 = 1", "line 1: unknown instruction: r16=1");
	refuses("r1 = w2", "line 1: unknown instruction: r1=w2");
}

static bool symbol(void *ctx, const char *name, struct isa_symbol *ret)
{
	if (strcmp(name, "map1"))
		return false;
	*ret = (struct isa_symbol){ .src = BPF_PSEUDO_MAP_FD, .imm = 42 };
	return true;
}

static bool callee(void *ctx, const char *name, struct isa_callee *ret)
{
	if (!strcmp(name, "bpf_loop"))
		*ret = (struct isa_callee){ .imm = 181 };
	else if (!strcmp(name, "900001"))
		*ret = (struct isa_callee){ .src = BPF_PSEUDO_KFUNC_CALL, .imm = 17 };
	else
		return false;
	return true;
}

static bool call_name(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	if (insn->imm != 181)
		return false;
	snprintf(buf, n, "bpf_loop");
	return true;
}

static bool imm64_name(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	if (insn->src_reg != BPF_PSEUDO_MAP_FD)
		return false;
	snprintf(buf, n, "map[id:%d]", insn->imm + 1);
	return true;
}

static void names(void)
{
	struct isa_symbols syms = { .symbol = symbol, .callee = callee };
	struct isa_names names = { .call = call_name, .imm64 = imm64_name };
	struct strbuf err = STRBUF_INIT, out = STRBUF_INIT;
	struct isa_code code = { 0 };
	u32 pc;

	ok(!isa_assemble("r1 = map1; call bpf_loop; call 900001; x: exit", &syms, &code, &err),
	   "names from outside assemble");
	for (pc = 0; pc < code.len; strbuf_putc(&out, ';'))
		pc += isa_disasm(&out, &code.insns[pc], code.len - pc, &names);
	ok(!strcmp(strbuf_str(&out),
		   "(18) r1 = map[id:43];(85) call bpf_loop#181;(85) call kernel-function#17;(95) exit;"),
	   "and are named in the text: %s", strbuf_str(&out));
	is_int(isa_code_label(&code, "x"), 4, "a label is found");
	is_int(isa_code_label(&code, "y"), -ENOENT, "a missing one is not");
	is_int(code.lines[4], 1, "a slot knows its line");
	isa_code_fini(&code);
	strbuf_fini(&err);
	strbuf_fini(&out);
}

static void distances(void)
{
	struct strbuf text = STRBUF_INIT, err = STRBUF_INIT;
	struct isa_code code = { 0 };
	int i;

	strbuf_puts(&text, "goto out;");
	for (i = 0; i < 32767; i++)
		strbuf_puts(&text, "exit;");
	strbuf_puts(&text, "out: exit");
	ok(!isa_assemble(strbuf_str(&text), NULL, &code, &err) && code.insns[0].off == 32767,
	   "goto reaches 32767 slots");
	isa_code_fini(&code);
	strbuf_reset(&text);
	strbuf_puts(&text, "goto out;");
	for (i = 0; i < 32768; i++)
		strbuf_puts(&text, "exit;");
	strbuf_puts(&text, "out: exit");
	strbuf_reset(&err);
	ok(isa_assemble(strbuf_str(&text), NULL, &code, &err) == -EINVAL && strstr(strbuf_str(&err), "gotol"),
	   "and says what reaches farther");
	memcpy(text.s, "gotol out", 9);
	strbuf_reset(&text);
	strbuf_puts(&text, "gotol out;");
	for (i = 0; i < 40000; i++)
		strbuf_puts(&text, "exit;");
	strbuf_puts(&text, "out: exit");
	ok(!isa_assemble(strbuf_str(&text), NULL, &code, &err) && code.insns[0].imm == 40000,
	   "gotol reaches 40000");
	isa_code_fini(&code);
	strbuf_fini(&text);
	strbuf_fini(&err);
}

/* Mutated text never does worse than be refused. */
static void mutants(void)
{
	static const char seed[] = "l: r1 = 1; w2 s>>= 4; *(u64 *)(r10 -8) = r1; if r1 != 0x0 goto l; call f; "
				   "r1 = 0x1 ll; r0 = atomic64_fetch_add((u64 *)(r1 +0), r0); f: exit // c";
	struct strbuf err = STRBUF_INIT;
	struct isa_code code;
	char text[sizeof(seed)];
	u64 x = 3;
	int i, k, good = 0, refused = 0;

	for (i = 0; i < 20000; i++) {
		memcpy(text, seed, sizeof(seed));
		for (k = 0; k < 1 + i % 4; k++) {
			x = x * 6364136223846793005 + 1442695040888963407;
			text[(x >> 33) % (sizeof(seed) - 1)] = x >> 56;
		}
		strbuf_reset(&err);
		if (!isa_assemble(text, NULL, &code, &err)) {
			good++;
			isa_code_fini(&code);
		} else {
			refused += err.len > 0;
		}
	}
	ok(good > 100 && good + refused == 20000, "mutants: %d assembled, %d refused with a reason", good, refused);
	strbuf_fini(&err);
}

int main(void)
{
	spellings();
	labels();
	mistakes();
	names();
	distances();
	mutants();
	return tap_done();
}
