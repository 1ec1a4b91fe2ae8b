// SPDX-License-Identifier: BSD-2-Clause
/*
 * Linux's own expansions, for show: what a program loaded into Linux 6.18 on x86-64 with its JIT on is dumped as. None of
 * it runs; addresses in it are 0.
 *
 * rw_pass_linux_spills bpf_fastcall: spills around calls that are inlined go
 * rw_pass_linux_loops  bpf_loop() as a loop that calls the function
 * rw_pass_linux_calls  inlined lookups and helpers, guards of divisions, the count of may_goto's rounds
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "object/helper.h"
#include "object/map.h"
#include "rewrite/flow.h"
#include "rewrite/rewrite_int.h"

#define AX ISA_REG_AX

/* Where Linux keeps things in its own structures: values in an array map, the key in a hash element. */
#define ARRAY_VALUES 312
#define HASH_KEY     48

#define LOOP_MAX   (1 << 23)
#define LOOP_STACK 24 /* bytes of r6..r8 */

#define MAY_GOTO_COUNT 65535 /* rounds between looks at the clock */
#define MAY_GOTO_STACK 16    /* bytes: the count, and when it began */

static void add(struct rw_text *t, const struct prog *prog, u32 pc, struct bpf_insn insn)
{
	rw_text_add(t, insn, NULL, prog->facts[pc].orig, RW_OWN);
}

/* The instruction itself, with its facts and target. */
static void add_main(struct rw_text *t, const struct prog *prog, u32 pc, struct bpf_insn insn)
{
	rw_text_add(t, insn, &prog->facts[pc], 0, pc);
}

static void add_all(struct rw_text *t, const struct prog *prog, u32 pc, const struct bpf_insn *insns, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		add(t, prog, pc, insns[i]);
}

/* ---- bpf_fastcall ---- */

void rw_drop_spills(struct rw_edits *edits, const struct prog *prog, u32 pc, bool behind)
{
	u32 n = prog->facts[pc].fastcall_spills;

	if (n)
		rw_edit(edits, behind ? pc + 1 : pc - n, n, NULL, 0, RW_NO_MAIN);
}

/* Needs helper, fastcall_spills. Leaves calls with spills around them only where Linux does not inline the call. */
int rw_pass_linux_spills(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	struct rw_edits edits = { 0 };
	u32 pc, i;

	for (pc = 0; caps->can && pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		const struct insn_fact *fact = &prog->facts[pc];

		if (prog->insns[pc].code != (BPF_JMP | BPF_CALL) || !fact->helper || !fact->helper->shown)
			continue;
		rw_drop_spills(&edits, prog, pc, false);
		rw_drop_spills(&edits, prog, pc, true);
	}
	for (i = 0; edits.nr && i < prog->nr_subprogs; i++)
		prog->subprogs[i].stack_depth = prog->subprogs[i].fastcall_depth;
	return rw_patch(prog, &edits, log);
}

/* ---- bpf_loop ---- */

static void add_loop(struct rw_text *t, const struct prog *prog, u32 pc, u32 load, s16 base)
{
	const struct bpf_insn head[] = {
		ISA_IF(JLE, 1, LOOP_MAX, 2),
		isa_encode(ISA_MOV32_K, 0, 0, 0, -E2BIG),
		ISA_GOTO(16),
		ISA_STORE(DW, 10, base, 6),
		ISA_STORE(DW, 10, base + 8, 7),
		ISA_STORE(DW, 10, base + 16, 8),
		ISA_MOV_REG(6, 1),
		isa_encode(ISA_MOV32_K, 7, 0, 0, 0),
		ISA_MOV_REG(8, 3),
		ISA_IF_REG(JGE, 7, 6, 5),
		ISA_MOV_REG(1, 7),
		ISA_MOV_REG(2, 8),
	};
	const struct bpf_insn tail[] = {
		ISA_ALU64(ADD, 7, 1),
		ISA_IF(JEQ, 0, 0, -6),
		ISA_MOV_REG(0, 7),
		ISA_LOAD(DW, 6, 10, base),
		ISA_LOAD(DW, 7, 10, base + 8),
		ISA_LOAD(DW, 8, 10, base + 16),
	};
	struct insn_fact call = { .seen = 1, .orig = prog->facts[pc].orig, .call_subprog = 1,
				  .subprog = prog->facts[load].subprog };

	add_all(t, prog, pc, head, ARRAY_SIZE(head));
	rw_text_add(t, isa_encode(ISA_CALL_SUBPROG, 0, 0, 0, 0), &call, 0, load);
	add_all(t, prog, pc, tail, ARRAY_SIZE(tail));
}

/* Needs helper, subprog. Leaves loops that call the function where it is known and the flags are 0. */
int rw_pass_linux_loops(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	u8 *targets = NULL, *grown = calloc(prog->nr_subprogs + 1, 1);
	struct rw_edits edits = { 0 };
	u32 pc, i;
	int err = grown ? 0 : -ENOMEM;

	for (pc = 0; !err && pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		const struct insn_fact *fact = &prog->facts[pc];
		struct rw_value func, flags;
		struct rw_text t = { 0 };

		if (prog->insns[pc].code != (BPF_JMP | BPF_CALL) || prog->insns[pc].src_reg || !fact->helper ||
		    !(fact->helper->flags & HELPER_LOOP))
			continue;
		if (!targets)
			targets = rw_targets(prog);
		if (!targets) {
			err = -ENOMEM;
			break;
		}
		func = rw_value_of(prog, targets, pc, 2);
		flags = rw_value_of(prog, targets, pc, 4);
		if (func.kind != RW_FUNC || flags.kind != RW_CONST || flags.v)
			continue;
		i = rw_subprog_at(prog, pc);
		add_loop(&t, prog, pc, (u32)func.v, -(s16)(align_up(prog->subprogs[i].stack_depth, 8) + LOOP_STACK));
		rw_edit_text(&edits, pc, 1, &t);
		rw_text_fini(&t);
		grown[i] = 1;
	}
	for (i = 0; !err && i < prog->nr_subprogs; i++)
		if (grown[i])
			prog->subprogs[i].stack_depth = align_up(prog->subprogs[i].stack_depth, 8) + LOOP_STACK;
	free(targets);
	free(grown);
	if (!err)
		return rw_patch(prog, &edits, log);
	rw_edits_drop(&edits);
	return err;
}

/* ---- lookups and helpers ---- */

static struct bpf_insn percpu(u8 reg)
{
	return isa_encode(ISA_MOV64_PERCPU, reg, reg, 0, 0);
}

static bool add_array(struct rw_text *t, const struct prog *prog, u32 pc, const struct map *map)
{
	u32 shown = map->ops->shown, size = shown & MAP_SHOWN_POINTER || map->ops->flags & MAP_PERCPU ? 8 : align_up(map->value_size, 8);
	u32 more = shown & MAP_SHOWN_POINTER || map->ops->flags & MAP_PERCPU ? 2 : 0;
	bool pow2 = !(size & (size - 1));

	if (map->map_flags & BPF_F_INNER_MAP) /* of any number of entries */
		return false;
	add(t, prog, pc, ISA_ALU64(ADD, 1, ARRAY_VALUES));
	add(t, prog, pc, ISA_LOAD(W, 0, 2, 0));
	add(t, prog, pc, ISA_IF(JGE, 0, (s32)map->max_entries, 3 + more));
	add(t, prog, pc, pow2 ? ISA_ALU64(LSH, 0, __builtin_ctz(size)) : ISA_ALU64(MUL, 0, (s32)size));
	add(t, prog, pc, ISA_ALU64_REG(ADD, 0, 1));
	if (more)
		add(t, prog, pc, ISA_LOAD(DW, 0, 0, 0));
	if (shown & MAP_SHOWN_POINTER)
		add(t, prog, pc, ISA_IF(JEQ, 0, 0, 1));
	else if (more)
		add(t, prog, pc, percpu(0));
	add(t, prog, pc, ISA_GOTO(1));
	add(t, prog, pc, ISA_MOV(0, 0));
	return true;
}

static void add_hash(struct rw_text *t, const struct prog *prog, u32 pc, const struct map *map)
{
	bool cpu = map->ops->flags & MAP_PERCPU, pointer = map->ops->shown & MAP_SHOWN_POINTER;

	add_main(t, prog, pc, prog->insns[pc]);
	add(t, prog, pc, ISA_IF(JEQ, 0, 0, 1 + pointer + 2 * cpu));
	add(t, prog, pc, ISA_ALU64(ADD, 0, HASH_KEY + (s32)align_up(map->key_size, 8)));
	if (cpu || pointer)
		add(t, prog, pc, ISA_LOAD(DW, 0, 0, 0));
	if (cpu)
		add(t, prog, pc, percpu(0));
}

/* Code of a helper's own: what it shows has no calls in it. */
static bool add_shown(struct rw_text *t, const struct prog *prog, u32 pc)
{
	const struct gen_call call = { .helper = prog->facts[pc].helper, .fact = &prog->facts[pc], .can = ~0u };
	struct gen g;

	g.nr = 0;
	g.cold = g.failed = false;
	if (call.helper->shown(&call, &g) <= 0 || g.failed)
		return false;
	add_all(t, prog, pc, g.insn, g.nr);
	return true;
}

static bool expand_call(struct rw_text *t, const struct prog *prog, u32 pc)
{
	const struct insn_fact *fact = &prog->facts[pc];
	const struct map *map = fact->map_poisoned ? NULL : fact->map;

	if (prog->insns[pc].src_reg || !fact->helper)
		return false;
	if (fact->helper->shown)
		return add_shown(t, prog, pc);
	if (!map || !(fact->helper->flags & HELPER_MAP_LOOKUP))
		return false;
	if (map->ops->shown & MAP_SHOWN_ARRAY)
		return add_array(t, prog, pc, map);
	if (map->ops->shown & MAP_SHOWN_HASH) {
		add_hash(t, prog, pc, map);
		return true;
	}
	return false;
}

/* ---- divisions ---- */

/* By -1: the sign, or nothing left. */
static bool expand_minus_one(struct rw_text *t, const struct prog *prog, u32 pc, bool narrow)
{
	const struct bpf_insn *insn = &prog->insns[pc];

	if (BPF_OP(insn->code) == BPF_DIV)
		add(t, prog, pc, isa_encode(narrow ? ISA_NEG32 : ISA_NEG64, insn->dst_reg, 0, 0, 0));
	else
		add(t, prog, pc, isa_encode(ISA_MOV32_K, insn->dst_reg, 0, 0, 0));
	return true;
}

static void add_unsigned(struct rw_text *t, const struct prog *prog, u32 pc, bool narrow)
{
	const struct bpf_insn *insn = &prog->insns[pc];
	u8 dst = insn->dst_reg, src = insn->src_reg;

	if (BPF_OP(insn->code) == BPF_DIV) {
		add(t, prog, pc, isa_encode(narrow ? ISA_JNE32_K : ISA_JNE64_K, src, 0, 2, 0));
		add(t, prog, pc, ISA_ALU32_REG(XOR, dst, dst));
		add(t, prog, pc, ISA_GOTO(1));
		add_main(t, prog, pc, *insn);
		return;
	}
	add(t, prog, pc, isa_encode(narrow ? ISA_JEQ32_K : ISA_JEQ64_K, src, 0, 1 + narrow, 0));
	add_main(t, prog, pc, *insn);
	if (narrow) {
		add(t, prog, pc, ISA_GOTO(1));
		add(t, prog, pc, ISA_MOV32_REG(dst, dst));
	}
}

/* AX = divisor + 1: above 1 it is neither -1 nor 0. */
static void add_signed(struct rw_text *t, const struct prog *prog, u32 pc, bool narrow)
{
	const struct bpf_insn *insn = &prog->insns[pc];
	u8 dst = insn->dst_reg;
	bool div = BPF_OP(insn->code) == BPF_DIV;

	add(t, prog, pc, ISA_MOV_REG(AX, insn->src_reg));
	add(t, prog, pc, isa_encode(narrow ? ISA_ADD32_K : ISA_ADD64_K, AX, 0, 0, 1));
	add(t, prog, pc, isa_encode(narrow ? ISA_JGT32_K : ISA_JGT64_K, AX, 0, div ? 4 : 3, 1));
	if (div) {
		add(t, prog, pc, isa_encode(narrow ? ISA_JEQ32_K : ISA_JEQ64_K, AX, 0, 1, 0));
		add(t, prog, pc, isa_encode(narrow ? ISA_MOV32_K : ISA_MOV64_K, dst, 0, 0, 0));
		add(t, prog, pc, isa_encode(narrow ? ISA_NEG32 : ISA_NEG64, dst, 0, 0, 0));
		add(t, prog, pc, ISA_GOTO(1));
		add_main(t, prog, pc, *insn);
		return;
	}
	add(t, prog, pc, isa_encode(narrow ? ISA_JEQ32_K : ISA_JEQ64_K, AX, 0, 3 + narrow, 1));
	add(t, prog, pc, isa_encode(ISA_MOV32_K, dst, 0, 0, 0));
	add(t, prog, pc, ISA_GOTO(1));
	add_main(t, prog, pc, *insn);
	if (narrow) {
		add(t, prog, pc, ISA_GOTO(1));
		add(t, prog, pc, ISA_MOV32_REG(dst, dst));
	}
}

static bool expand_division(struct rw_text *t, const struct prog *prog, u32 pc)
{
	const struct bpf_insn *insn = &prog->insns[pc];
	bool narrow = BPF_CLASS(insn->code) == BPF_ALU;

	if (BPF_OP(insn->code) != BPF_DIV && BPF_OP(insn->code) != BPF_MOD)
		return false;
	if (!isa_is_reg_form(insn->code))
		return insn->off == 1 && insn->imm == -1 && expand_minus_one(t, prog, pc, narrow);
	if (insn->off == 1)
		add_signed(t, prog, pc, narrow);
	else
		add_unsigned(t, prog, pc, narrow);
	return true;
}

/* ---- may_goto ---- */

static void add_may_goto(struct rw_text *t, const struct prog *prog, u32 pc, s16 slot)
{
	add(t, prog, pc, ISA_LOAD(DW, AX, 10, slot));
	add_main(t, prog, pc, ISA_IF(JEQ, AX, 0, 0));
	add(t, prog, pc, ISA_ALU64(SUB, AX, 1));
	add(t, prog, pc, ISA_IF(JNE, AX, 0, 2));
	add(t, prog, pc, ISA_MOV(AX, slot));
	add(t, prog, pc, ISA_CALL(0)); /* the kernel looks at its clock */
	add(t, prog, pc, ISA_STORE(DW, 10, slot, AX));
}

/* A function whose first instruction is jumped to begins its count only once. */
static int skip_begin(struct prog *prog, u32 sub)
{
	u32 start = prog->subprogs[sub].start, end = rw_subprog_end(prog, sub), pc;

	for (pc = start; pc < end; pc += isa_slots(prog->insns[pc].code)) {
		struct bpf_insn *insn = &prog->insns[pc];
		int op = isa_decode(insn);

		if (op < 0 || !isa_is_jump(op) || (s64)pc + 1 + isa_jump_off(insn) != start)
			continue;
		if (op == ISA_JA32)
			insn->imm += 2;
		else
			insn->off += 2;
	}
	return 0;
}

/* ---- the pass ---- */

static bool expand(struct rw_text *t, const struct prog *prog, const struct caps *caps, u32 pc, s16 slot)
{
	int op = isa_decode(&prog->insns[pc]);

	if (op < 0)
		return false;
	switch (isa_info[op].kind) {
	case ISA_K_ALU:
		return expand_division(t, prog, pc);
	case ISA_K_CALL:
		return caps->can && expand_call(t, prog, pc);
	case ISA_K_MAY_GOTO:
		add_may_goto(t, prog, pc, slot);
		return true;
	}
	return false;
}

/* One function: its edits, and in *counts whether it counts rounds. */
static void one_function(const struct prog *prog, const struct caps *caps, u32 sub, struct rw_edits *edits, u8 *counts)
{
	u32 start = prog->subprogs[sub].start, end = rw_subprog_end(prog, sub), pc, slots;
	s16 slot = -(s16)(align_up(prog->subprogs[sub].stack_depth, 8) + MAY_GOTO_STACK);

	*counts = 0;
	for (pc = start; pc < end; pc += isa_slots(prog->insns[pc].code))
		*counts |= prog->insns[pc].code == (BPF_JMP | BPF_JCOND);
	for (pc = start; pc < end; pc += slots) {
		u8 code = prog->insns[pc].code, class = BPF_CLASS(code), op = BPF_OP(code);
		struct rw_text t = { 0 };
		bool made;
		u32 k;

		slots = isa_slots(code);
		if (!(pc == start && *counts) && code != (BPF_JMP | BPF_CALL) && code != (BPF_JMP | BPF_JCOND) &&
		    ((class != BPF_ALU && class != BPF_ALU64) || (op != BPF_DIV && op != BPF_MOD)))
			continue; /* what most are */
		if (pc == start && *counts) {
			add(&t, prog, pc, ISA_STORE_IMM(DW, 10, slot, MAY_GOTO_COUNT));
			add(&t, prog, pc, ISA_STORE_IMM(DW, 10, slot + 8, 0));
		}
		made = expand(&t, prog, caps, pc, slot);
		for (k = 0; !made && t.nr && k < slots; k++)
			rw_text_add(&t, prog->insns[pc + k], &prog->facts[pc + k], 0, k ? RW_OWN : pc);
		if (t.nr)
			rw_edit_text(edits, pc, slots, &t);
		rw_text_fini(&t);
	}
}

/* Needs helper, map, map_poisoned. Leaves what Linux 6.18 shows. */
int rw_pass_linux_calls(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	u8 *counts = calloc(prog->nr_subprogs + 1, 1);
	struct rw_edits edits = { 0 };
	int err = counts ? 0 : -ENOMEM;
	u32 i;

	for (i = 0; !err && i < prog->nr_subprogs; i++)
		one_function(prog, caps, i, &edits, &counts[i]);
	if (!err)
		err = rw_patch(prog, &edits, log);
	else
		rw_edits_drop(&edits);
	for (i = 0; !err && i < prog->nr_subprogs; i++)
		if (counts[i])
			err = skip_begin(prog, i);
	free(counts);
	return err;
}
