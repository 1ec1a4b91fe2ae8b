// SPDX-License-Identifier: BSD-2-Clause
// What the engine adds to arithmetic: memory, frames, calls, callbacks, faults, loops.
#include <pthread.h>
#include <sys/mman.h>

#include "bare.h"
#include "base/probe.h"

static void memory(void)
{
	static const int offs[] = { 0, 127, -128, 128, -129, 32767, -32768 };
	static u8 mem[2 * 32768 + 64];
	char text[256];
	size_t i;
	int reg, bad = 0;

	for (reg = 0; reg < 10; reg++) {
		for (i = 0; i < ARRAY_SIZE(offs); i++) {
			u8 *p = mem + 32768 + 8;

			memset(mem, 0, sizeof(mem));
			snprintf(text, sizeof(text),
				 "r%d = r1; r%d = 0x1122334455667788 ll; *(u64 *)(r%d %+d) = r%d; r%d = *(u16 *)(r%d %+d);"
				 "r0 = r%d; exit",
				 reg, (reg + 1) % 10, reg, offs[i], (reg + 1) % 10, (reg + 1) % 10, reg, offs[i],
				 (reg + 1) % 10);
			bad += bare_run(text, p) != 0x7788;
			bad += memcmp(p + offs[i], "\x88\x77\x66\x55\x44\x33\x22\x11", 8) != 0;
		}
	}
	ok(!bad, "every register is a base at near and far offsets");
	memset(mem, 0xee, 16);
	bare_run("r2 = 0x1ab; *(u8 *)(r1 + 3) = r2; r0 = 0; exit", mem);
	is_u64(*(u64 *)mem, 0xeeeeeeeeabeeeeee, "a byte stored leaves its neighbours");
	is_u64(bare_run("*(u32 *)(r10 - 8) = -2; *(u32 *)(r10 - 4) = 1; r0 = *(u64 *)(r10 - 8); exit", NULL),
	       0x1fffffffe, "stores of immediates meet in one word");
	is_u64(bare_run("*(u64 *)(r10 - 512) = 7; r0 = *(u64 *)(r10 - 512); exit", NULL), 7, "512 bytes of stack");
	is_u64(bare_run("*(u64 *)(r1 + 1) = 5; r0 = *(u64 *)(r1 + 1); exit", mem), 5, "unaligned access");
	*(u64 *)mem = 0x8081828384858687;
	is_u64(bare_run("w0 = load_acquire((u16 *)(r1 + 2)); exit", mem), 0x8485, "load_acquire zero-extends");
	bare_run("r2 = -1; store_release((u32 *)(r1 + 4), w2); r0 = 0; exit", mem);
	is_u64(*(u64 *)mem, 0xffffffff84858687, "store_release writes its size");
}

static void frames(void)
{
	is_u64(bare_run("r6 = 1; r7 = 2; r8 = 3; r9 = 4; call f; r0 = r6; r0 += r7; r0 += r8; r0 += r9; exit;"
			"f: r6 = 9; r7 = 9; r8 = 9; r9 = 9; r0 = 0; exit", NULL), 10, "a call keeps r6 to r9");
	is_u64(bare_run("*(u64 *)(r10 - 8) = 5; call f; r0 = *(u64 *)(r10 - 8); exit;"
			"f: *(u64 *)(r10 - 8) = 6; *(u64 *)(r10 - 512) = 6; r0 = 0; exit", NULL), 5,
	       "a callee has a stack of its own");
	is_u64(bare_run("r1 = r10; r1 += -8; call f; r0 = *(u64 *)(r10 - 8); exit; f: *(u64 *)(r1 + 0) = 42; r0 = 0; exit",
			NULL), 42, "a callee writes through a pointer to its caller's");
	is_u64(bare_run("call a; exit; a: call b; r0 += 1; exit; b: call c; r0 += 1; exit; c: call d; r0 += 1; exit;"
			"d: call e; r0 += 1; exit; e: call g; r0 += 1; exit; g: call h; r0 += 1; exit;"
			"h: r0 = 100; exit", NULL), 106, "eight frames");
	is_u64(bare_run("call f; exit; f: r0 += 1; call f; exit", NULL), 0, "a ninth ends the run");
	is_u64(bare_run("call dirty; call clean; exit; dirty: *(u64 *)(r10 - 64) = -1; r0 = 0; exit;"
			"clean: r0 = *(u64 *)(r10 - 64); exit", NULL), 0, "a frame begins zeroed");
	is_u64(bare_run("r1 = 1; r2 = 2; r3 = 3; r4 = 4; r5 = 5; call f; exit;"
			"f: r0 = r1; r0 *= 10; r0 += r2; r0 *= 10; r0 += r3; r0 *= 10; r0 += r4; r0 *= 10; r0 += r5; exit",
			NULL), 12345, "a subprogram gets five arguments");
}

static void helpers(void)
{
	struct prog *prog;
	struct strbuf log = STRBUF_INIT;

	is_u64(bare_run("r6 = 1; r7 = 2; r8 = 3; r9 = 4; r1 = 1; r2 = 2; r3 = 3; r4 = 4; r5 = 5; call 1;"
			"r0 *= 100; r0 += r6; r0 += r7; r0 += r8; r0 += r9; exit", NULL),
	       (1 + 6 + 15 + 28 + 55) * 100 + 10, "a helper gets five arguments and keeps r6 to r9");
	is_u64(bare_run("*(u64 *)(r10 - 8) = 100; r6 = 7; r1 = 10; r2 = cb ll; r3 = r10; r3 += -8; call 2; r0 += r6; exit;"
			"cb: r0 = *(u64 *)(r2 + 0); r0 += 1; *(u64 *)(r2 + 0) = r0; r0 = r1; r6 = 0; exit", NULL),
	       45 + 7, "a callback gets its arguments and keeps the caller's registers");
	is_u64(bare_run("*(u64 *)(r10 - 8) = 100; r1 = 10; r2 = cb ll; r3 = r10; r3 += -8; call 2;"
			"r0 = *(u64 *)(r10 - 8); exit;"
			"cb: r0 = *(u64 *)(r2 + 0); r0 += 1; *(u64 *)(r2 + 0) = r0; exit", NULL),
	       110, "a callback writes its caller's stack");
	is_u64(bare_run("r1 = 3; r2 = outer ll; r3 = 0; call 2; exit;"
			"outer: r1 = 4; r2 = inner ll; r3 = 0; call 2; exit; inner: r0 = r1; exit", NULL),
	       18, "callbacks nest");
	prog = bare_assemble("call 3; r0 = 0; exit");
	ok(prog && exec_prepare(prog, &log) < 0 && strstr(strbuf_str(&log), "insn 0") &&
		   strstr(strbuf_str(&log), "judged_only"),
	   "a helper that cannot run is named: %.*s", (int)log.len - 1, strbuf_str(&log));
	bare_free(prog);
	strbuf_fini(&log);
}

/* Runs "r2 = *r1" and then the load, which is taken for one through a pointer that may be stale. */
static u64 probe_run(const char *load, u64 *ctx)
{
	struct prog *prog;
	char text[128];
	u64 ret = 0xdeadbadc0de;

	snprintf(text, sizeof(text), "r2 = *(u64 *)(r1 + 0); %s; exit", load);
	prog = bare_assemble(text);
	if (!prog)
		return ret;
	prog->facts[1].mem = INSN_MEM_PROBE;
	if (!rw_xlate(prog, NULL) && BPF_MODE(prog->insns[1].code) != BPF_MEM && !exec_prepare_as(prog, bare_engine, NULL))
		ret = prog->entry(prog, ctx);
	bare_free(prog);
	return ret;
}

static void faults(void)
{
	u8 *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 addr[5], i, bad = 0;

	munmap(page + 4096, 4096);
	memset(page, 0xff, 4096);
	addr[0] = 0;
	addr[1] = (u64)page + 4096;
	addr[2] = 0x8000000000000000; /* non-canonical: no address with the fault */
	addr[3] = ~0ULL - 8;
	addr[4] = (u64)page + 4096 - 4; /* half of it there */
	for (i = 0; i < 5; i++)
		bad += probe_run("r0 = *(u64 *)(r2 + 0)", &addr[i]) != 0;
	ok(!bad, "loads that may fault read zero where nothing is");
	addr[0] = (u64)page + 4096 - 2;
	is_u64(probe_run("r0 = *(u32 *)(r2 + 0)", addr), 0, "a word of which half is there reads zero as a whole");
	addr[0] = (u64)page + 4096 - 8;
	is_u64(probe_run("r0 = *(u64 *)(r2 + 0)", addr), ~0ULL, "and what is there where something is");
	is_u64(probe_run("r0 = *(s16 *)(r2 + 2)", addr), ~0ULL, "sign-extended too");
	is_u64(probe_run("r0 = *(u8 *)(r2 + 7)", addr), 0xff, "a byte");
	munmap(page, 4096);
}

static void loops(void)
{
	struct strbuf text = STRBUF_INIT;
	int i;

	is_u64(bare_run("r0 = 0; l: r0 += 1; if r0 != 1000 goto l; exit", NULL), 1000, "a back edge");
	is_u64(bare_run("l: r0 += 1; if r0 != 7 goto l; exit", NULL), 7, "a back edge to the first instruction");
	is_u64(bare_run("r0 = 0; l: may_goto out; r0 += 1; goto l; out: exit", NULL), EXEC_MAY_GOTO_MAX,
	       "may_goto ends an endless loop");
	is_u64(bare_run("r6 = 0; r7 = 0; m: r7 += 1; call f; r6 += r0; if r7 < 3 goto m; r0 = r6; exit;"
			"f: r0 = 0; l: may_goto out; r0 += 1; if r0 < 10 goto l; out: exit", NULL), 30,
	       "each call of a function has its own count");
	strbuf_puts(&text, "r0 = 1; goto out;");
	for (i = 0; i < 32000; i++)
		strbuf_puts(&text, "r0 = 0;");
	strbuf_puts(&text, "out: exit");
	is_u64(bare_run(strbuf_str(&text), NULL), 1, "a jump over 32000 instructions");
	strbuf_reset(&text);
	strbuf_puts(&text, "r0 = 1; gotol out;");
	for (i = 0; i < 40000; i++)
		strbuf_puts(&text, "r0 = 0;");
	strbuf_puts(&text, "out: exit");
	is_u64(bare_run(strbuf_str(&text), NULL), 1, "gotol over 40000");
	strbuf_reset(&text);
	for (i = 0; i < 20000; i++)
		strbuf_puts(&text, "r0 = 0x100000001 ll;");
	strbuf_puts(&text, "exit");
	is_u64(bare_run(strbuf_str(&text), NULL), 0x100000001, "20000 two-slot constants");
	strbuf_fini(&text);
	is_u64(bare_run("r2 = 0xffffffff80000000 ll; r0 = 0; if r2 == 0x80000000 goto +1; exit; r0 = 1; exit", NULL), 1,
	       "a comparison's immediate is sign-extended");
	is_u64(bare_run("r2 = 0xffffffff00000000 ll; r0 = 1; if w2 & -1 goto +1; exit; r0 = 0; exit", NULL), 1,
	       "a 32-bit test sees the low half only");
	is_u64(bare_run("r2 = 0xf0000000f ll; if w2 & 1 goto +0; r0 = r2; exit", NULL), 0xf0000000f,
	       "a test changes no register");
}

static void *adder(void *arg)
{
	void **a = arg;
	struct prog *prog = a[0];
	int i;

	for (i = 0; i < 200; i++)
		prog->entry(prog, a[1]);
	return NULL;
}

static void atomics(void)
{
	struct prog *prog = bare_prog("r3 = 0; l: r2 = 1; lock *(u64 *)(r1 + 0) += r2; r2 = 1;"
				      "w2 = atomic_fetch_add((u32 *)(r1 + 8), w2); r3 += 1; if r3 != 1000 goto l;"
				      "r0 = 0; exit");
	u64 mem[2] = { 0, 0xabcd00000000 };
	void *arg[2] = { prog, mem };
	pthread_t t[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, adder, arg);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	is_u64(mem[0], 800000, "four threads add without loss in 64 bits");
	is_u64(mem[1], 0xabcd00000000 + 800000, "and in 32");
	bare_free(prog);
}

static void refusals(void)
{
	static const char *const bad[] = {
		"r0 = *(u8 *)skb[0]; exit",		    /* packet loads */
		"r0 = addr_space_cast(r1, 0, 1); exit",	    /* arenas */
		"call kernel-function#5; r0 = 0; exit",	    /* kfuncs */
		"call 99; r0 = 0; exit",		    /* no such helper */
		"call 3; r0 = 0; exit",			    /* one without a body */
	};
	static const char *const senseless[] = {
		"r0 = 0",	     /* runs off the end */
		"goto +5; exit",     /* leaves the program */
		"goto -2; exit",
		"call pc+9; exit",
		"r0 = 0; goto +1; r1 = 1 ll; exit", /* into a constant */
		"r11 = 0; exit",
		"r10 = 0; exit",
		"call f; exit; f: goto +0; goto -4", /* out of its function */
		".quad 0x8f; exit",
		".quad 0x18",
		"r0 /= r1; .quad 0x2000000000f; exit", /* reserved field */
	};
	struct strbuf log = STRBUF_INIT;
	struct isa_code code;
	struct prog *prog;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		prog = bare_assemble(bad[i]);
		strbuf_reset(&log);
		ok(prog && exec_prepare(prog, &log) < 0 && log.len, "not executable: %s", bad[i]);
		bare_free(prog);
	}
	for (i = 0; i < ARRAY_SIZE(senseless); i++) {
		prog = calloc(1, sizeof(*prog));
		strbuf_reset(&log);
		if (!isa_assemble(senseless[i], NULL, &code, &log)) {
			prog->insns = code.insns;
			prog->nr_insns = code.len;
			ok(rw_assume(prog, &log) < 0 && log.len, "senseless: %s", senseless[i]);
			code.insns = NULL;
			isa_code_fini(&code);
		} else {
			ok(false, "%s: %s", senseless[i], strbuf_str(&log));
		}
		bare_free(prog);
	}
	strbuf_fini(&log);
}

int main(void)
{
	static const enum exec_engine engines[] = { EXEC_INTERP, EXEC_AUTO };
	size_t i;

	probe_init();
	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		bare_engine = engines[i];
		printf("# %s\n", i ? "compiled" : "interpreted");
		memory();
		frames();
		helpers();
		faults();
		loops();
		atomics();
	}
	refusals();
	return tap_done();
}
