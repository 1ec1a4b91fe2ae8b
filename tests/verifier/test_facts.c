// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the verifier tells rewriter and engines beyond its verdict: which map a call gets, whether the owner of storage is
 * sure to be there, whether a function may read stack it never wrote, which spills around a call may go. Stack depths are
 * compared with the running kernel's, if it may be asked.
 */
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "isa/uapi.h"
#include "object/helper.h"
#include "object/map.h"
#include "object/obj.h"
#include "object/prog.h"
#include "tests/tap.h"
#include "vt.h"

#define END "out: r0 = 0; exit"
#define KEY4 "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4;"
#define KEY8 "*(u64 *)(r10 - 16) = 0; r2 = r10; r2 += -16;"
#define LOOKUP8(map) KEY8 "r1 = " map "; call 1;"

static struct vt t;

/* The program accepted, or NULL with the reason printed. */
static struct prog *judged(const char *name, const char *text, struct vt_verdict *ret)
{
	struct prog *p = NULL;
	struct isa_code code;

	if (!vt_assemble(text, &code))
		return NULL;
	vt_judge_keep(&t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 4, ret, &p);
	isa_code_fini(&code);
	if (!p)
		printf("# %s: %s\n", name, ret->reason);
	return p;
}

/* The n-th call of a helper in the text. */
static const struct insn_fact *nth_call(const struct prog *p, u32 id, u32 n)
{
	for (u32 i = 0; p && i < p->nr_insns; i++)
		if (p->facts[i].helper && p->facts[i].helper->id == id && !n--)
			return &p->facts[i];
	return NULL;
}

/* ---- maps of calls ---- */

enum which { ONE, SEVERAL, SHAPE };

static const struct {
	const char *name, *text;
	u32 nth;
	enum which want;
} map_rows[] = {
	{ "a map of the program's", LOOKUP8("map2") END, 0, ONE },
	{ "a map found in another: the call has a shape",
	  KEY4 "r1 = mapa; call 1; if r0 == 0 goto out; r1 = r0;" KEY8 "call 1;" END, 1, SHAPE },
	{ "the map of maps itself is one", KEY4 "r1 = mapa; call 1; if r0 == 0 goto out; r1 = r0;" KEY8 "call 1;" END, 0, ONE },
	{ "two maps of the program's",
	  "call 7; r1 = map2; if r0 == 0 goto a; r1 = map1; a:" KEY8 "call 1;" END, 0, SEVERAL },
	{ "a map or one like it found in another",
	  KEY4 "r1 = mapa; call 1; r1 = map2; if r0 == 0 goto m; r1 = r0; m:" KEY8 "call 1;" END, 1, SEVERAL },
	{ "maps found in two others",
	  KEY4 "r1 = mapa; call 1; r6 = r0; if r6 == 0 goto out;" KEY4 "r1 = mapb; call 1; if r0 == 0 goto out; r7 = r0; call 7;"
	  "r1 = r6; if r0 == 0 goto m; r1 = r7; m:" KEY8 "call 1;" END, 2, SEVERAL },
	{ "maps found in one", KEY4 "r1 = mapa; call 1; r6 = r0; if r6 == 0 goto out;" KEY4
	  "r1 = mapa; call 1; if r0 == 0 goto out; r7 = r0; call 7; r1 = r6; if r0 == 0 goto m; r1 = r7; m:" KEY8 "call 1;" END,
	  2, SHAPE },
};

static bool map_is(const struct insn_fact *f, enum which want)
{
	switch (want) {
	case ONE:
		return f->map && !f->inner_map && !f->map_poisoned;
	case SEVERAL:
		return !f->map && !f->inner_map && f->map_poisoned;
	case SHAPE:
		return f->map && f->inner_map && !f->map_poisoned && f->map->type == BPF_MAP_TYPE_HASH;
	}
	return false;
}

static void test_maps(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(map_rows); i++) {
		struct vt_verdict v = { 0 };
		struct prog *p = judged(map_rows[i].name, map_rows[i].text, &v);
		const struct insn_fact *f = nth_call(p, BPF_FUNC_map_lookup_elem, map_rows[i].nth);

		if (!ok(f && map_is(f, map_rows[i].want), "%s", map_rows[i].name) && f)
			printf("# map %p inner %d poisoned %d\n", (void *)f->map, f->inner_map, f->map_poisoned);
		vt_verdict_fini(&v);
		if (p)
			obj_put(&p->obj);
	}
}

/* ---- stack never written ---- */

static const struct {
	const char *name, *text;
	u32 sub;
	bool stale;
} stale_rows[] = {
	{ "no stack at all", "r0 = 0; exit", 0, false },
	{ "written, then read", "*(u64 *)(r10 - 8) = 1; r0 = *(u64 *)(r10 - 8); exit", 0, false },
	{ "a spilled pointer", "*(u64 *)(r10 - 8) = r1; r1 = *(u64 *)(r10 - 8); r0 = 0; exit", 0, false },
	{ "a key a helper reads", LOOKUP8("map2") END, 0, false },
	{ "a buffer a helper fills", "r1 = r10; r1 += -16; r2 = 16; call 16; r0 = *(u64 *)(r10 - 16); exit", 0, false },
	{ "read, never written", "r0 = *(u64 *)(r10 - 8); exit", 0, true },
	{ "half written", "*(u32 *)(r10 - 8) = 1; r0 = *(u64 *)(r10 - 8); exit", 0, true },
	{ "half spilled", "call 7; *(u32 *)(r10 - 8) = r0; r0 = *(u64 *)(r10 - 8); exit", 0, true },
	{ "a key never written", "r2 = r10; r2 += -8; r1 = map2; call 1;" END, 0, true },
	{ "a key half written", "*(u32 *)(r10 - 8) = 1; r2 = r10; r2 += -8; r1 = map2; call 1;" END, 0, true },
	{ "a text a helper may end early",
	  "r1 = r10; r1 += -16; r2 = 16; r3 = 0; call 115; r0 = *(u64 *)(r10 - 8); exit", 0, true },
	{ "written on one way only", "call 7; if r0 == 0 goto a; *(u64 *)(r10 - 8) = 1; a: r0 = *(u64 *)(r10 - 8); exit", 0, true },
	{ "written on one way only, the other way round",
	  "call 7; if r0 != 0 goto a; *(u64 *)(r10 - 8) = 1; a: r0 = *(u64 *)(r10 - 8); exit", 0, true },
	{ "at an index nobody knows", "call 7; r0 &= 8; r1 = r10; r1 += -16; r1 += r0; r2 = 1; *(u64 *)(r1 + 0) = r2;"
	  "r0 = *(u64 *)(r10 - 16); exit", 0, true },
	{ "at an index nobody knows, all written before",
	  "*(u64 *)(r10 - 16) = 0; *(u64 *)(r10 - 8) = 0; call 7; r0 &= 8; r1 = r10; r1 += -16; r1 += r0; r2 = 1;"
	  "*(u64 *)(r1 + 0) = r2; r0 = *(u64 *)(r10 - 16); exit", 0, false },
	{ "an atomic operation", "r1 = 1; lock *(u64 *)(r10 - 8) += r1; r0 = 0; exit", 0, true },
	{ "the caller's, read by the callee: the caller's",
	  "r1 = r10; r1 += -8; call f; exit; f: r0 = *(u64 *)(r1 + 0); exit", 0, true },
	{ "the caller's, read by the callee: not the callee's",
	  "r1 = r10; r1 += -8; call f; exit; f: r0 = *(u64 *)(r1 + 0); exit", 1, false },
	{ "the callee's", "call f; exit; f: r0 = *(u64 *)(r10 - 8); exit", 1, true },
	{ "the callee's: not the caller's", "call f; exit; f: r0 = *(u64 *)(r10 - 8); exit", 0, false },
	{ "the caller's, written by the callee", "r1 = r10; r1 += -8; call f; r0 = *(u64 *)(r10 - 8); exit;"
	  "f: *(u64 *)(r1 + 0) = 1; r0 = 0; exit", 0, false },
};

static void test_stale(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(stale_rows); i++) {
		struct vt_verdict v = { 0 };
		struct prog *p = judged(stale_rows[i].name, stale_rows[i].text, &v);

		ok(p && p->subprogs[stale_rows[i].sub].reads_stale == stale_rows[i].stale, "stack: %s", stale_rows[i].name);
		vt_verdict_fini(&v);
		if (p)
			obj_put(&p->obj);
	}
}

/* ---- fastcall ---- */

#define SPILL1 "*(u64 *)(r10 - 16) = r1;"
#define FILL1 "r1 = *(u64 *)(r10 - 16);"
#define BASE "r1 = 1; r2 = 2; r3 = 3; r4 = 4; r5 = 5;"

static const struct {
	const char *name, *text;
	u32 spills; /* of the first call of bpf_get_smp_processor_id */
	bool linux_differs; /* deliberately */
} fast_rows[] = {
	{ "five pairs", "r1 = 1; r2 = 2; r3 = 3; r4 = 4; r5 = 5; *(u64 *)(r10 - 16) = r1; *(u64 *)(r10 - 24) = r2;"
	  "*(u64 *)(r10 - 32) = r3; *(u64 *)(r10 - 40) = r4; *(u64 *)(r10 - 48) = r5; call 8; r5 = *(u64 *)(r10 - 48);"
	  "r4 = *(u64 *)(r10 - 40); r3 = *(u64 *)(r10 - 32); r2 = *(u64 *)(r10 - 24); r1 = *(u64 *)(r10 - 16); r0 += r1; exit", 5 },
	{ "a slot above stays", BASE "*(u64 *)(r10 - 8) = r1;" SPILL1 "call 8;" FILL1 "r0 = r1; exit", 1 },
	{ "no pair", BASE "call 8; exit", 0 },
	{ "another register is filled", BASE SPILL1 "call 8; r2 = *(u64 *)(r10 - 16); r0 = r2; exit", 0 },
	{ "a register calls keep", "r6 = 1; *(u64 *)(r10 - 16) = r6; call 8; r6 = *(u64 *)(r10 - 16); r0 = r6; exit", 0 },
	{ "the register of the result", "r0 = 1; *(u64 *)(r10 - 16) = r0; call 8; r0 = *(u64 *)(r10 - 16); exit", 0 },
	{ "another base", BASE "r6 = r10; *(u64 *)(r6 - 16) = r1; call 8;" FILL1 "r0 = r1; exit", 0 },
	{ "an instruction between", BASE SPILL1 "r2 = 1; call 8;" FILL1 "r0 = r1; exit", 0 },
	{ "another slot", BASE "*(u64 *)(r10 - 8) = r1; *(u64 *)(r10 - 16) = r2; call 8; r2 = *(u64 *)(r10 - 8); r0 = r2; exit", 0 },
	{ "half a slot", BASE "*(u32 *)(r10 - 16) = r1; call 8; r1 = *(u32 *)(r10 - 16); r0 = r1; exit", 0 },
	{ "one pair of two", BASE "*(u64 *)(r10 - 16) = r1; *(u64 *)(r10 - 24) = r2; call 8; r2 = *(u64 *)(r10 - 24);"
	  "r1 = *(u64 *)(r10 - 8); r0 = r2; exit", 1 },
	{ "a read of the slot by another instruction", BASE SPILL1 "call 8;" FILL1 "r0 = *(u64 *)(r10 - 16); exit", 0 },
	{ "a write of it", BASE "*(u64 *)(r10 - 16) = r2;" SPILL1 "call 8;" FILL1 "r0 = r1; exit", 0 },
	{ "a read at an index nobody knows", BASE "*(u64 *)(r10 - 8) = r1;" SPILL1 "call 8;" FILL1
	  "r0 &= 8; r1 = r10; r1 += -16; r1 += r0; r0 = *(u64 *)(r1 + 0); exit", 0 },
	{ "a write from a callee", BASE SPILL1 "call 8;" FILL1 "r1 = r10; r1 += -16; call f; exit; f: *(u64 *)(r1 + 0) = 1; r0 = 0; exit", 0 },
	{ "a helper writes it", BASE SPILL1 "call 8;" FILL1 "r1 = r10; r1 += -16; r2 = 8; r3 = 0; call 113; exit", 0 },
	/* Linux lets the slot go, and the helper then reads below the frame */
	{ "a helper reads it", BASE SPILL1 "call 8;" FILL1 "r2 = r10; r2 += -16; r1 = map2; call 1; r0 = 0; exit", 0, true },
	{ "a helper of which no such promise is known has a pair as well", BASE "*(u64 *)(r10 - 16) = r1; call 8;" FILL1
	  "*(u64 *)(r10 - 16) = r1; call 7;" FILL1 "r0 = r1; exit", 1 },
	{ "the callee's own", "call f; exit; f:" BASE SPILL1 "call 8;" FILL1 "r0 = r1; exit", 1 },
	{ "a jump to the first spill", BASE "call 7; r1 = 0; if r0 == 0 goto a; r1 = 1; a:" SPILL1 "call 8;" FILL1 "r0 = r1; exit", 1 },
	{ "a jump to the call", BASE "*(u64 *)(r10 - 16) = r1; if r1 == 7 goto a; r2 = 0;" SPILL1 "a: call 8;" FILL1 "r0 = r1; exit", 0 },
	{ "a jump to the fill", BASE "*(u64 *)(r10 - 16) = r1; if r1 == 7 goto a; r2 = 0;" SPILL1 "call 8; a:" FILL1 "r0 = r1; exit", 0 },
	{ "512 bytes and a slot below them", "*(u64 *)(r10 - 496) = 1;" BASE "*(u64 *)(r10 - 504) = r1; call 8;"
	  "r1 = *(u64 *)(r10 - 504); call f; r0 = 0; exit; f:" BASE "*(u64 *)(r10 - 8) = r1; call 8; r1 = *(u64 *)(r10 - 8); r0 = r1; exit", 1 },
};

/* "stack depth 8+0" of a log. */
static const char *depth_of(const char *log, char *buf, size_t n)
{
	const char *at = log ? strstr(log, "stack depth ") : NULL;

	snprintf(buf, n, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
	return buf;
}

static void test_fastcall(void)
{
	char ours[64], theirs[64];

	for (size_t i = 0; i < ARRAY_SIZE(fast_rows); i++) {
		struct vt_verdict v = { 0 }, k = { 0 };
		struct prog *p = judged(fast_rows[i].name, fast_rows[i].text, &v);
		const struct insn_fact *f = nth_call(p, BPF_FUNC_get_smp_processor_id, 0);
		struct isa_code code;
		u32 marked = 0;

		for (u32 j = 0; p && j < p->nr_insns; j++)
			marked += p->facts[j].fastcall_pattern;
		if (!ok(f && f->fastcall_spills == fast_rows[i].spills, "fastcall: %s", fast_rows[i].name) && f)
			printf("# %u pairs\n", f->fastcall_spills);
		ok(!fast_rows[i].spills || marked >= 2 * fast_rows[i].spills, "fastcall: %s: marked", fast_rows[i].name);
		if (t.kernel && !fast_rows[i].linux_differs && vt_assemble(fast_rows[i].text, &code)) {
			vt_ask_kernel(&t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 4, &k);
			if (!ok(!strcmp(depth_of(v.log, ours, sizeof(ours)), depth_of(k.log, theirs, sizeof(theirs))),
				"fastcall: %s: the kernel's stack depth", fast_rows[i].name))
				printf("# %s, kernel %s\n", ours, theirs);
			vt_verdict_fini(&k);
			isa_code_fini(&code);
		}
		vt_verdict_fini(&v);
		if (p)
			obj_put(&p->obj);
	}
}

int main(void)
{
	vt_init(&t);
	if (!t.kernel)
		printf("# the kernel is not asked: %s\n", t.why_not);
	test_maps();
	test_stale();
	test_fastcall();
	vt_fini(&t);
	return tap_done();
}
