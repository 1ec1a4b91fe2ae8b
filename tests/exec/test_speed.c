// SPDX-License-Identifier: BSD-2-Clause
// The engines' pace on plain instructions, and the compiler's: best of several short runs, so that a busy machine does not
// decide. Limits are lax; `inlay bench` has the figures.
#include <time.h>

#include "bare.h"

#define WANT_MIPS	150
#define WANT_COMPILED	1000
#define MAX_COMPILE_2	5000 /* ns */
#define MAX_COMPILE_NS	100  /* an instruction */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SLOW_BUILD 1
#endif
#endif
#if !defined(__OPTIMIZE__) && !defined(SLOW_BUILD)
#define SLOW_BUILD 1
#endif

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* Million instructions a second of a loop of 10: arithmetic, stack loads and stores, branches. */
static double pace(enum exec_engine engine)
{
	struct prog *prog;
	double start, t, best = 1e9;
	int i;

	bare_engine = engine;
	prog = bare_prog("r0 = 0; r2 = 0; l: r3 = r2; r3 &= 255; *(u64 *)(r10 - 8) = r3; r4 = *(u64 *)(r10 - 8);"
			 "r0 += r4; r0 ^= r2; if r4 > 256 goto out; r5 = r0; r5 >>= 3; r2 += 1;"
			 "if r2 != 300000 goto l; out: exit");
	if (!prog)
		return 0;
	for (i = 0; i < 20; i++) {
		start = now();
		prog->entry(prog, NULL);
		t = now() - start;
		best = t < best ? t : best;
	}
	bare_free(prog);
	return 300000 * 11 / best / 1e6;
}

/* ns to compile n instructions. */
static double compile_ns(u32 n)
{
	struct bpf_insn *code = calloc(n, sizeof(*code));
	double start, t, best = 1e9;
	struct prog *prog;
	u32 i;

	for (i = 0; i + 1 < n; i++)
		code[i] = i % 3 == 0 ? ISA_MOV(i % 8, i) : i % 3 == 1 ? ISA_ALU64_REG(ADD, i % 8, (i + 1) % 8) :
									ISA_IF(JEQ, i % 8, 5, i + 12 < n ? i % 10 : 0);
	code[n - 1] = ISA_RETURN();
	prog = bare_insns(code, n, NULL, 0);
	prog->subprogs[0].reads_stale = false;
	for (i = 0; i < 300; i++) {
		start = now();
		if (exec_prepare_as(prog, EXEC_JIT, NULL))
			break;
		t = now() - start;
		best = t < best ? t : best;
		prog->image_free(prog);
	}
	free(code);
	bare_free(prog);
	return best * 1e9;
}

int main(void)
{
	double interp = pace(EXEC_INTERP), jit = pace(EXEC_AUTO), two = compile_ns(2), more = (compile_ns(2002) - two) / 2000;

	printf("# interpreter %.0f, compiled %.0f million instructions a second\n", interp, jit);
	printf("# compiling: %.0f ns for 2 instructions, %.1f ns an instruction after\n", two, more);
#ifdef SLOW_BUILD
	tap_skip("not an optimised build");
#else
	ok(interp >= WANT_MIPS, "the interpreter runs at least %d million instructions a second", WANT_MIPS);
	if (exec_caps(NULL)->can) {
		ok(jit >= WANT_COMPILED, "compiled code at least %d", WANT_COMPILED);
		ok(two <= MAX_COMPILE_2 && more <= MAX_COMPILE_NS, "compiling takes at most %d ns and %d ns an instruction",
		   MAX_COMPILE_2, MAX_COMPILE_NS);
	} else {
		tap_skip("nothing is compiled here");
	}
#endif
	return tap_done();
}
