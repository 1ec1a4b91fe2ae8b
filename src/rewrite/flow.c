// SPDX-License-Identifier: BSD-2-Clause
/*
 * Control and data flow, as much of it as passes need. Values are looked for backwards along the straight line that
 * leads to an instruction: compilers set a call's arguments just before it. Liveness is the usual fixed point, in
 * which an instruction that only computes reads nothing unless what it computes is read.
 */
#include "rewrite/flow.h"

#include <errno.h>
#include <stdlib.h>

#include "object/helper.h"
#include "rewrite/rewrite_int.h"

#define MAX_STEPS 64 /* back from where a value is asked for */
#define CALL_ARGS  0x3e /* r1..r5 */

u8 *rw_targets(const struct prog *prog)
{
	u8 *targets = calloc(prog->nr_insns + 1, 1);
	u32 pc, i;
	s32 dist;

	if (!targets)
		return NULL;
	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		s64 target;

		if (!rw_distance(&prog->insns[pc], &dist))
			continue;
		target = (s64)pc + 1 + dist;
		if (target >= 0 && target <= prog->nr_insns)
			targets[target] = 1;
	}
	for (i = 0; i < prog->nr_subprogs; i++)
		targets[min_of(prog->subprogs[i].start, prog->nr_insns)] = 1;
	return targets;
}

u32 rw_prev(const struct prog *prog, u32 pc)
{
	return pc >= 2 && isa_slots(prog->insns[pc - 2].code) == 2 ? pc - 2 : pc - 1;
}

u32 rw_subprog_at(const struct prog *prog, u32 pc)
{
	u32 lo = 0, hi = prog->nr_subprogs;

	while (hi - lo > 1) {
		u32 mid = (lo + hi) / 2;

		if (prog->subprogs[mid].start <= pc)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

u32 rw_subprog_end(const struct prog *prog, u32 subprog)
{
	return subprog + 1 < prog->nr_subprogs ? prog->subprogs[subprog + 1].start : prog->nr_insns;
}

static u16 call_reads(const struct prog *prog, u32 pc)
{
	const struct helper_desc *helper = prog->facts[pc].helper;
	u16 regs = 0;
	u32 i;

	if (prog->insns[pc].src_reg || !helper || helper->flags & (HELPER_TAIL_CALL | HELPER_VARIADIC))
		return CALL_ARGS;
	for (i = 0; i < ARRAY_SIZE(helper->arg); i++)
		if (helper->arg[i] != ARG_DONTCARE)
			regs |= 2u << i;
	return helper->flags & HELPER_STORAGE_GET ? regs | 1u << 5 : regs;
}

u16 rw_regs_read(const struct prog *prog, u32 pc)
{
	const struct bpf_insn *insn = &prog->insns[pc];
	int op = isa_decode(insn);

	if (op < 0)
		return 0x7ff;
	if (isa_info[op].kind == ISA_K_CALL)
		return call_reads(prog, pc);
	return isa_regs_read(op, insn);
}

u16 rw_regs_written(const struct prog *prog, u32 pc)
{
	const struct bpf_insn *insn = &prog->insns[pc];
	int op = isa_decode(insn);
	u16 regs;

	if (op < 0)
		return 0;
	regs = isa_regs_written(op, insn);
	return isa_info[op].fx & ISA_FX_CALL ? regs | CALL_ARGS | 1u << ISA_REG_AX : regs;
}

static bool computes(int op)
{
	switch (isa_info[op].kind) {
	case ISA_K_ALU:
	case ISA_K_NEG:
	case ISA_K_MOV:
	case ISA_K_END:
	case ISA_K_LD_IMM64:
	case ISA_K_LDX:
	case ISA_K_PERCPU:
	case ISA_K_TLS:
		return true;
	}
	return false;
}

bool rw_only_computes(const struct prog *prog, u32 pc)
{
	int op = isa_decode(&prog->insns[pc]);

	return op >= 0 && computes(op);
}

/* One step back from the definition of reg at p. again: the same question for *reg before p. */
static struct rw_value value_at(const struct prog *prog, u32 p, int op, u8 *reg, bool *again)
{
	const struct bpf_insn *insn = &prog->insns[p];

	*again = false;
	switch (op) {
	case ISA_MOV64_K:
		return (struct rw_value){ RW_CONST, insn->imm };
	case ISA_MOV32_K:
		return (struct rw_value){ RW_CONST, (u32)insn->imm };
	case ISA_LD_IMM64:
		return (struct rw_value){ RW_CONST, (s64)isa_imm64(insn) };
	case ISA_LD_FUNC:
		return (struct rw_value){ RW_FUNC, p };
	case ISA_LD_MAP_FD:
	case ISA_LD_MAP_VALUE:
		return (struct rw_value){ RW_OBJ, p };
	case ISA_MOV64_X:
	case ISA_MOV32_X:
		*reg = insn->src_reg;
		*again = true;
		break;
	case ISA_ADD64_K:
		*again = true;
		break;
	}
	return (struct rw_value){ RW_UNKNOWN, 0 };
}

struct rw_value rw_value_of(const struct prog *prog, const u8 *targets, u32 pc, u8 reg)
{
	struct rw_value val = { RW_UNKNOWN, 0 };
	bool again = true, narrow = false;
	u32 p, steps;
	s64 add = 0;

	for (p = pc, steps = 0; reg != ISA_REG_FP && p && !targets[p] && steps < MAX_STEPS; steps++) {
		int op;

		p = rw_prev(prog, p);
		op = isa_decode(&prog->insns[p]);
		if (op < 0)
			return val;
		if (!(rw_regs_written(prog, p) & 1u << reg))
			continue;
		val = value_at(prog, p, op, &reg, &again);
		if (again && op == ISA_ADD64_K) {
			if (narrow) /* the sum of more than 32 bits was cut: rare, and no constant of a compiler's */
				return (struct rw_value){ RW_UNKNOWN, 0 };
			add += prog->insns[p].imm;
		}
		if (again && op == ISA_MOV32_X) {
			if (add)
				return (struct rw_value){ RW_UNKNOWN, 0 };
			narrow = true;
		}
		if (!again)
			break;
	}
	if (reg == ISA_REG_FP && again)
		return narrow ? val : (struct rw_value){ RW_FRAME, add };
	if (again || (val.kind != RW_CONST && (add || narrow)))
		return (struct rw_value){ RW_UNKNOWN, 0 };
	if (val.kind == RW_CONST)
		val.v = narrow ? (s64)(u32)val.v : (s64)((u64)val.v + (u64)add);
	return val;
}

/* The constant a store at p leaves in the 4 bytes `shift` bytes into what it wrote. */
static bool stored_const(const struct prog *prog, const u8 *targets, u32 p, int op, u32 shift, u32 *ret_value)
{
	struct rw_value val = { RW_CONST, prog->insns[p].imm };

	if (isa_info[op].kind == ISA_K_STX)
		val = rw_value_of(prog, targets, p, prog->insns[p].src_reg);
	if (val.kind != RW_CONST)
		return false;
	*ret_value = (u32)((u64)val.v >> (8 * shift));
	return true;
}

/* The last store before pc that may touch size bytes at frame pointer + off, or U32_MAX: somebody else may have. */
static u32 last_store(const struct prog *prog, const u8 *targets, u32 pc, s64 off, u32 size, s64 *ret_at, u16 *ret_written)
{
	u32 p, steps;

	*ret_written = 0;
	for (p = pc, steps = 0; p && !targets[p] && steps < MAX_STEPS; steps++) {
		const struct bpf_insn *insn;
		struct rw_value base;
		int op;

		p = rw_prev(prog, p);
		insn = &prog->insns[p];
		op = isa_decode(insn);
		if (op < 0)
			return U32_MAX;
		*ret_written |= rw_regs_written(prog, p);
		if (isa_info[op].fx & ISA_FX_CALL) {
			const struct helper_desc *helper = prog->facts[p].helper;

			if (!helper || !(helper->flags & HELPER_PURE))
				return U32_MAX;
			continue;
		}
		if (!(isa_info[op].fx & ISA_FX_MW))
			continue;
		base = rw_value_of(prog, targets, p, insn->dst_reg);
		if (base.kind != RW_FRAME)
			return U32_MAX;
		*ret_at = base.v + insn->off;
		if (*ret_at >= off + size || *ret_at + isa_info[op].width <= off)
			continue;
		return isa_info[op].kind == ISA_K_ST || isa_info[op].kind == ISA_K_STX ? p : U32_MAX;
	}
	return U32_MAX;
}

bool rw_stack_const(const struct prog *prog, const u8 *targets, u32 pc, s64 off, u32 *ret_value)
{
	s64 at;
	u16 written;
	u32 p = last_store(prog, targets, pc, off, 4, &at, &written);
	int op;

	if (p == U32_MAX)
		return false;
	op = isa_decode(&prog->insns[p]);
	if (at > off || at + isa_info[op].width < off + 4)
		return false;
	return stored_const(prog, targets, p, op, off - at, ret_value);
}

u32 rw_stack_store(const struct prog *prog, const u8 *targets, u32 pc, s64 off, u32 width)
{
	s64 at;
	u16 written;
	u32 p = last_store(prog, targets, pc, off, width, &at, &written);
	int op;

	if (p == U32_MAX)
		return p;
	op = isa_decode(&prog->insns[p]);
	if (at != off || isa_info[op].width != width)
		return U32_MAX;
	return isa_info[op].kind == ISA_K_STX && written & 1u << prog->insns[p].src_reg ? U32_MAX : p;
}

/* Registers live before pc, given those behind it. */
static u16 live_before(const struct prog *prog, u32 pc, int op, u16 after)
{
	const struct bpf_insn *insn = &prog->insns[pc];
	u16 written;

	if (op < 0)
		return 0x7ff;
	written = isa_regs_written(op, insn);
	if (isa_info[op].kind == ISA_K_CALL)
		return (after & ~(written | CALL_ARGS | 1u << ISA_REG_AX)) | call_reads(prog, pc);
	if (!(written & after) && computes(op))
		return after;
	return (after & ~written) | isa_regs_read(op, insn);
}

/* Behind pc: what its successors need. before[] holds what is known so far, for slots from start. */
static u16 successors(const struct prog *prog, u32 start, u32 end, u32 pc, int op, const u16 *before)
{
	const struct bpf_insn *insn = &prog->insns[pc];
	u32 next = pc + isa_slots(insn->code);
	u16 after = 0;
	s64 target;

	if (op < 0 || isa_info[op].kind == ISA_K_EXIT)
		return 0;
	if (isa_info[op].kind != ISA_K_JA && next < end)
		after = before[next - start];
	if (isa_is_jump(op)) {
		target = (s64)pc + 1 + isa_jump_off(insn);
		if (target >= start && target < end)
			after |= before[target - start];
	}
	return after;
}

int rw_live_after(const struct prog *prog, u32 start, u32 end, u16 *live)
{
	u16 *before = calloc(end - start + 1, sizeof(*before));
	bool changed, back = false;
	u32 pc;

	if (!before)
		return -ENOMEM;
	do {
		changed = false;
		for (pc = end; pc > start;) {
			u16 now;
			int op;

			pc = rw_prev(prog, pc);
			op = isa_decode(&prog->insns[pc]);
			live[pc - start] = successors(prog, start, end, pc, op, before);
			now = live_before(prog, pc, op, live[pc - start]);
			changed |= now != before[pc - start];
			back |= op >= 0 && isa_is_jump(op) && isa_jump_off(&prog->insns[pc]) < 0;
			before[pc - start] = now;
		}
	} while (changed && back); /* without jumps back one sweep sees all */
	free(before);
	return 0;
}
