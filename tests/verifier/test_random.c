// SPDX-License-Identifier: BSD-2-Clause
/*
 * Random programs, judged by inlay and by the running kernel (skipped where bpf(2) does not answer). None may be accepted
 * here that the kernel refuses; how often the kernel accepts and inlay does not is reported and bounded.
 *
 *	test_random [PROGRAMS [SEED]]
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "vt.h"

static u64 seed;

static u32 rnd(u32 n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return n ? (u32)((seed >> 11) % n) : 0;
}

static bool one_in(u32 n)
{
	return !rnd(n);
}

struct gen {
	struct strbuf b;
	int labels;	/* made so far */
	int open[16];	/* labels jumped to and not placed yet */
	int nr_open;
	int depth;	/* of loops */
	bool in_sub;
};

static const char *const words[] = { "u8", "u16", "u32", "u64" };
static const u32 sizes[] = { 1, 2, 4, 8 };

static s64 number(void)
{
	static const s64 some[] = { 0, 1, -1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 40, 41, 47, 48, 56, 63, 64, 127, 128, 255, 256,
				    0x7fff, 0xffff, 0x7fffffff, -2147483648LL, -8, -16, -64, 100, 1000 };

	return one_in(4) ? (s64)(s32)(rnd(1 << 16) * (rnd(1 << 16) + 1)) : some[rnd(ARRAY_SIZE(some))];
}

static u32 scratch_reg(void)
{
	static const u32 regs[] = { 0, 1, 2, 3, 4, 5, 8, 9 };

	return regs[rnd(8)];
}

static void alu(struct gen *g)
{
	static const char *const ops[] = { "+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>=", "s>>=", "/=", "%=", "=" };
	const char *w = one_in(3) ? "w" : "r", *op = ops[rnd(ARRAY_SIZE(ops))];
	u32 d = scratch_reg(), s = scratch_reg();
	s64 n = number();

	if (one_in(8)) {
		strbuf_printf(&g->b, w[0] == 'w' ? "w%u = (s%u)w%u\n" : "r%u = (s%u)r%u\n", d,
			      w[0] == 'w' ? 8u << rnd(2) : 8u << rnd(3), s);
	} else if (one_in(12)) {
		strbuf_printf(&g->b, "%s%u = -%s%u\n", w, d, w, d);
	} else if (one_in(20)) {
		strbuf_printf(&g->b, "r%u = %s%u r%u\n", d, one_in(3) ? "le" : one_in(2) ? "be" : "bswap", 16u << rnd(3), d);
	} else if (one_in(2)) {
		strbuf_printf(&g->b, "%s%u %s %s%u\n", w, d, op, w, s);
	} else {
		if (strchr(op, '<') || strchr(op, '>'))
			n = rnd(w[0] == 'w' ? 32 : 64);
		if ((op[0] == '/' || op[0] == '%') && !n)
			n = 3;
		strbuf_printf(&g->b, "%s%u %s %d\n", w, d, op, (s32)n);
	}
}

static void bound(struct gen *g)
{
	static const u32 masks[] = { 1, 3, 7, 8, 15, 16, 31, 32, 40, 63, 0xff };
	u32 r = scratch_reg();

	strbuf_printf(&g->b, "%s%u &= %u\n", one_in(3) ? "w" : "r", r, masks[rnd(ARRAY_SIZE(masks))]);
}

static void jump(struct gen *g)
{
	static const char *const ops[] = { "==", "!=", "<", "<=", ">", ">=", "s<", "s<=", "s>", "s>=", "&" };
	const char *w = one_in(3) ? "w" : "r", *op = ops[rnd(ARRAY_SIZE(ops))];
	u32 a = scratch_reg(), b = scratch_reg();
	int l;

	if (g->nr_open == 8)
		return;
	l = g->labels++;
	g->open[g->nr_open++] = l;

	if (one_in(3) && a != b) /* of one register with itself Linux learns what cannot be */
		strbuf_printf(&g->b, "if %s%u %s %s%u goto l%d\n", w, a, op, w, b, l);
	else
		strbuf_printf(&g->b, "if %s%u %s %d goto l%d\n", w, scratch_reg(), op, (s32)number(), l);
}

static void place(struct gen *g)
{
	if (g->nr_open)
		strbuf_printf(&g->b, "l%d:\n", g->open[--g->nr_open]);
}

static void access_at(struct gen *g, const char *base, s32 off, u32 size)
{
	u32 r = scratch_reg();

	if (one_in(3))
		strbuf_printf(&g->b, "*(%s *)(%s %+d) = r%u\n", words[size], base, off, r);
	else if (one_in(6))
		strbuf_printf(&g->b, "*(%s *)(%s %+d) = %d\n", words[size], base, off, (s32)number());
	else if (one_in(8) && size >= 2)
		strbuf_printf(&g->b, "lock *(%s *)(%s %+d) += %s%u\n", words[size], base, off, size == 2 ? "w" : "r", r);
	else if (one_in(6) && size < 3)
		strbuf_printf(&g->b, "r%u = *(s%u *)(%s %+d)\n", r, 8 << size, base, off);
	else
		strbuf_printf(&g->b, "r%u = *(%s *)(%s %+d)\n", r, words[size], base, off);
}

static void map_value(struct gen *g)
{
	u32 size = rnd(4), limit = 48 - sizes[size];
	char base[8];

	if (one_in(2)) {
		u32 r = 2 + rnd(4), mask = 1u << rnd(6);

		if (!one_in(10))
			strbuf_printf(&g->b, "%s%u &= %u\n", one_in(3) ? "w" : "r", r, one_in(2) ? mask : mask - 1);
		else if (one_in(2))
			strbuf_printf(&g->b, "if r%u > %u goto out\n", r, rnd(44));
		strbuf_printf(&g->b, "r1 = r7\nr1 += r%u\n", r);
		snprintf(base, sizeof(base), "r1");
		limit = limit > mask && !one_in(10) ? rnd(limit - mask + 1) : rnd(limit + 1);
	} else {
		snprintf(base, sizeof(base), "r7");
	}
	access_at(g, base, one_in(8) ? (s32)rnd(60) - 4 : (s32)rnd(limit + 1), size);
}

static void stack(struct gen *g)
{
	u32 size = rnd(4);
	s32 off = -(s32)(sizes[size] * (1 + rnd(64 / sizes[size])));

	if (one_in(10))
		off += (s32)rnd(5) - 2;
	if (one_in(5)) {
		u32 r = 3 + rnd(3);

		if (!one_in(8))
			strbuf_printf(&g->b, "r%u &= %u\n", r, 8 << rnd(3));
		strbuf_printf(&g->b, "r2 = r10\nr2 += -64\nr2 += r%u\n", r);
		access_at(g, "r2", -(s32)(rnd(2) * 8), size);
		return;
	}
	access_at(g, "r10", off, size);
}

static void spill(struct gen *g)
{
	u32 r = one_in(3) ? 7 : scratch_reg(), slot = 8 * (1 + rnd(8)), to = one_in(4) ? 7 : scratch_reg();

	strbuf_printf(&g->b, "*(u64 *)(r10 - %u) = r%u\n", slot, r);
	if (one_in(4))
		strbuf_printf(&g->b, "*(%s *)(r10 - %u) = r%u\n", words[rnd(3)], slot, scratch_reg());
	if (one_in(2))
		alu(g);
	strbuf_printf(&g->b, "r%u = *(u64 *)(r10 - %u)\n", to, slot);
}

static void refill(struct gen *g)
{
	for (u32 i = 0; i < 6; i++)
		strbuf_printf(&g->b, one_in(2) ? "r%u = r8\n" : "r%u = %d\n", i, (s32)number());
}

static void helper(struct gen *g)
{
	switch (rnd(6)) {
	case 0:
		strbuf_puts(&g->b, "call 7\n");
		break;
	case 1: /* a key that is a constant, or not */
		strbuf_printf(&g->b, "*(u32 *)(r10 - 68) = %s\n", one_in(2) ? "r8" : one_in(2) ? "0" : "1");
		strbuf_printf(&g->b, "r2 = r10\nr2 += -68\nr1 = map%d\ncall 1\n", one_in(2) ? 1 : 8);
		if (!one_in(4)) {
			strbuf_printf(&g->b, "if r0 == 0 goto l%d\n", g->labels);
			g->open[g->nr_open++] = g->labels++;
		}
		strbuf_puts(&g->b, "r9 = *(u64 *)(r0 + 8)\n");
		break;
	case 2: /* sizes from a register */
		if (!one_in(6))
			strbuf_puts(&g->b, one_in(2) ? "r3 &= 63\nr2 = r3\n" : "w8 &= 31\nr2 = r8\n");
		strbuf_printf(&g->b, "%sr1 = r10\nr1 += -64\nr3 = 0\ncall 113\n", one_in(6) ? "r2 = r9\n" : "");
		break;
	case 3:
		strbuf_printf(&g->b, "r1 = r10\nr1 += -%u\nr2 = %u\nr3 = 0\ncall %d\n", 40 + rnd(40), rnd(50),
			      one_in(2) ? 113 : 115);
		break;
	case 4:
		strbuf_printf(&g->b, "r2 = r8\n%sr1 = r7\nr3 = 0\ncall 115\n", one_in(6) ? "" : "r2 &= 31\n");
		break;
	case 5:
		strbuf_printf(&g->b, "r1 = map3\nr2 = %u\nr3 = 0\ncall 131\n", 8 * rnd(6));
		strbuf_printf(&g->b, "if r0 == 0 goto l%d\n", g->labels);
		g->open[g->nr_open++] = g->labels++;
		if (one_in(2))
			strbuf_printf(&g->b, "*(u64 *)(r0 + %u) = r8\n", 8 * rnd(5));
		if (!one_in(6))
			strbuf_printf(&g->b, "r1 = r0\nr2 = 0\ncall %d\n", one_in(2) ? 132 : 133);
		break;
	}
	if (!one_in(8)) {
		if (one_in(3))
			strbuf_puts(&g->b, "r8 = r0\n");
		refill(g);
	}
	if (g->nr_open > 6)
		while (g->nr_open)
			place(g);
}

static void statement(struct gen *g);

static void loop(struct gen *g)
{
	int l, n = (int)rnd(4) + 1, save;
	u32 r = one_in(2) ? 8 : 9;

	if (g->depth || g->nr_open > 5)
		return;
	save = g->nr_open;
	g->depth++;
	l = g->labels++;
	strbuf_printf(&g->b, "*(u64 *)(r10 - 72) = 0\n%s%d:\n", "l", l);
	while (n--)
		statement(g);
	while (g->nr_open > save)
		place(g);
	strbuf_printf(&g->b, "r%u = *(u64 *)(r10 - 72)\nr%u += 1\n*(u64 *)(r10 - 72) = r%u\nif r%u < %u goto l%d\n", r, r, r,
		      r, 1 + rnd(one_in(4) ? 300 : 12), l);
	g->depth--;
}

static void statement(struct gen *g)
{
	switch (rnd(16)) {
	case 0: case 1: case 2: case 3: alu(g); break;
	case 4: case 5: bound(g); break;
	case 6: case 7: jump(g); break;
	case 8: place(g); break;
	case 9: case 10: map_value(g); break;
	case 11: stack(g); break;
	case 12: spill(g); break;
	case 13: helper(g); break;
	case 14: loop(g); break;
	case 15:
		if (!g->in_sub) {
			strbuf_puts(&g->b, "call sub\n");
			refill(g);
		} else {
			alu(g);
		}
		break;
	}
}

static void program(struct gen *g)
{
	u32 n = 4 + rnd(24);

	strbuf_puts(&g->b, "r6 = r1\n*(u32 *)(r10 - 68) = 0\nr2 = r10\nr2 += -68\nr1 = map1\ncall 1\n"
			   "if r0 == 0 goto out\nr7 = r0\nr8 = *(u64 *)(r7 + 0)\nr9 = *(u32 *)(r7 + 8)\n");
	refill(g);
	while (n--)
		statement(g);
	while (g->nr_open)
		place(g);
	strbuf_puts(&g->b, "out:\nr0 = 0\nexit\nsub:\n");
	g->in_sub = true;
	strbuf_puts(&g->b, one_in(2) ? "r8 = r1\nr9 = r2\nr7 = r10\nr7 += -48\n*(u64 *)(r10 - 8) = 0\nr0 = r1\n" :
				       "r8 = r3\nr9 = 5\nr7 = r1\nr0 = 1\n");
	for (n = rnd(6); n--;)
		statement(g);
	while (g->nr_open)
		place(g);
	strbuf_puts(&g->b, one_in(2) ? "r0 = r8\nexit\n" : "exit\n");
}

/* ---- logs ---- */

/* Lines only the kernel writes: how it marks precision, liveness, loops. */
static bool is_aside(const char *line)
{
	static const char *const starts[] = { "mark_precise", "frame ", "SCC ", "(", "Live regs", " ", "processed", "func#" };

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (!strncmp(line, starts[i], strlen(starts[i])))
			return true;
	return !*line;
}

/*
 * What a log says of registers and stack after each instruction: one line an instruction walked, "N: text ; state".
 * Linux puts the state on a line of its own when something was said in between; addresses differ.
 */
static void digest(const char *log, struct strbuf *out)
{
	char *copy = strdup(log), *save = NULL;

	for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char *state, *p;
		unsigned int n, code;

		if (is_aside(l))
			continue;
		state = strstr(l, "; ");
		if (sscanf(l, "%u: (%x)", &n, &code) == 2) {
			if (strstr(l, "safe"))
				continue;
			strbuf_printf(out, "\n%u: %02x", n, code);
			if (!state || code == 0x18)
				continue;
			p = state + 2;
		} else if (sscanf(l, "%u: ", &n) == 1 && strchr(l, '=') && strstr(l, ": ")) {
			p = strstr(l, ": ") + 2;
		} else {
			continue;
		}
		strbuf_printf(out, " %s", p);
	}
	strbuf_putc(out, '\n');
	free(copy);
}

/* Both logs as far as both walked the same way; the first line that differs is shown. True: nothing differs. */
static bool same_log(const char *ours, const char *theirs, u64 at)
{
	struct strbuf a = STRBUF_INIT, b = STRBUF_INIT;
	const char *x, *y;
	bool same;

	digest(ours, &a);
	digest(theirs, &b);
	x = strbuf_str(&a);
	y = strbuf_str(&b);
	same = !strcmp(x, y);
	if (!same) {
		size_t i = 0, start = 0;

		for (; x[i] && x[i] == y[i]; i++)
			if (x[i] == '\n')
				start = i + 1;
		printf("# logs differ, seed %#llx:\n#   inlay  %.*s\n#   kernel %.*s\n", (unsigned long long)at,
		       (int)strcspn(x + start, "\n"), x + start, (int)strcspn(y + start, "\n"), y + start);
	}
	strbuf_fini(&a);
	strbuf_fini(&b);
	return same;
}

int main(int argc, char **argv)
{
	long logs = 0, logs_same = 0;
	long n = argc > 1 ? atol(argv[1]) : 400;
	long both = 0, neither = 0, only_kernel = 0, only_inlay = 0, gave_up = 0;
	bool talk = getenv("INLAY_TEST_LOG");
	struct vt t;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x1d872b41a9c3f05bULL;
	vt_init(&t);
	if (!t.kernel) {
		printf("1..0 # SKIP %s\n", t.why_not);
		vt_fini(&t);
		return 0; /* in TAP the plan says so */
	}
	for (long i = 0; i < n; i++) {
		struct gen g = { 0 };
		u64 before = seed;
		struct vt_verdict ours, theirs;
		struct isa_code code;
		u32 flags = one_in(4) ? BPF_F_TEST_STATE_FREQ : 0;

		program(&g);
		if (!vt_assemble(strbuf_str(&g.b), &code)) {
			printf("%s\n", strbuf_str(&g.b));
			ok(false, "program assembles");
			break;
		}
		if (n == 1) {
			printf("%s\nflags %u\n", strbuf_str(&g.b), flags);
			fflush(stdout);
		}
		vt_judge(&t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, flags, 1, &ours);
		vt_ask_kernel(&t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, flags, 0, &theirs);
		both += !ours.err && !theirs.err;
		neither += ours.err && theirs.err;
		only_kernel += ours.err && !theirs.err;
		if (ours.err && !theirs.err && talk)
			printf("# kernel only, seed %#llx: %s\n", (unsigned long long)before, ours.reason);
		if (!ours.err && theirs.err == -E2BIG) {
			gave_up++; /* too many instructions walked: no word on safety */
		} else if (!ours.err && theirs.err) {
			only_inlay++;
			vt_verdict_fini(&theirs);
			vt_ask_kernel(&t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, flags, 1, &theirs);
			printf("# inlay only, seed %#llx flags %u: the kernel says: %s\n", (unsigned long long)before, flags,
			       theirs.reason);
		}
		if (!ours.err && !theirs.err) {
			vt_verdict_fini(&theirs);
			vt_ask_kernel(&t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, flags, 2, &theirs);
			vt_verdict_fini(&ours);
			vt_judge(&t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, flags, 2, &ours);
			logs++;
			logs_same += same_log(ours.log, theirs.log, before);
		}
		if (n == 1) {
			vt_verdict_fini(&theirs);
			vt_ask_kernel(&t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, flags, 2, &theirs);
			vt_verdict_fini(&ours);
			vt_judge(&t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, flags, 2, &ours);
			printf("---- inlay\n%s---- kernel\n%s", ours.log, theirs.log);
		}
		vt_verdict_fini(&ours);
		vt_verdict_fini(&theirs);
		isa_code_fini(&code);
		strbuf_fini(&g.b);
	}
	printf("# of %ld logs of accepted programs %ld are the same, state by state\n", logs, logs_same);
	printf("# of %ld programs: both accept %ld, both refuse %ld, only the kernel accepts %ld, too long for the kernel %ld\n", n, both,
	       neither, only_kernel, gave_up);
	ok(!only_inlay, "no program accepted that the kernel refuses (%ld)", only_inlay);
	ok(n < 100 || both * 20 >= n, "at least 5 %% are good programs");
	ok(only_kernel * 20 <= both + only_kernel, "at most 5 %% of the good programs are refused");
	vt_fini(&t);
	return tap_done();
}
