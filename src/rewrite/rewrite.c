// SPDX-License-Identifier: BSD-2-Clause
// Shows what the passes made.
#include <stdio.h>
#include <string.h>

#include "object/helper.h"
#include "object/map.h"
#include "rewrite/rewrite_int.h"

/* Where a function load leads by its distance: of one that is gone Linux keeps that, and with it the number of another. */
static u32 loaded_subprog(const struct prog *prog, u32 pc)
{
	u32 i;

	if (prog->facts[pc].subprog != PROG_NO_SUBPROG)
		return prog->facts[pc].subprog;
	for (i = prog->nr_subprogs - 1; i && prog->subprogs[i].start != pc + 1 + (u32)prog->insns[pc].imm; i--)
		;
	return i;
}

void rw_user_insns(const struct prog *prog, struct bpf_insn *out)
{
	u32 pc;

	for (pc = 0; pc < prog->nr_insns; pc++) {
		out[pc] = prog->insns[pc];
		/* as Linux leaves them once it has compiled several: the distance aside, and which subprogram it is */
		if (prog->nr_subprogs > 1 && out[pc].code == (BPF_JMP | BPF_CALL) && out[pc].src_reg == BPF_PSEUDO_CALL) {
			out[pc].off = (s16)out[pc].imm;
			out[pc].imm = (s32)prog->facts[pc].subprog;
		} else if (out[pc].code == (BPF_LD | BPF_IMM | BPF_DW) && out[pc].src_reg == BPF_PSEUDO_FUNC) {
			out[pc + 1] = (struct bpf_insn){ .imm = (s32)loaded_subprog(prog, pc) };
			pc++;
			continue;
		}
		if (BPF_CLASS(out[pc].code) != BPF_LDX)
			continue;
		if (BPF_MODE(out[pc].code) == ISA_PROBE_MEM)
			out[pc].code = BPF_LDX | BPF_MEM | BPF_SIZE(out[pc].code);
		else if (BPF_MODE(out[pc].code) == ISA_PROBE_MEMSX)
			out[pc].code = BPF_LDX | BPF_MEMSX | BPF_SIZE(out[pc].code);
	}
}

static bool call_name(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	const struct prog *prog = ctx;
	const char *name;
	u32 i, target, pc = insn - prog->insns;
	char tag[2 * sizeof(prog->tag) + 1];

	if (insn->src_reg == BPF_PSEUDO_KFUNC_CALL) {
		if (pc >= prog->nr_insns || !prog->facts[pc].kfunc)
			return false;
		snprintf(buf, n, "%s", prog->facts[pc].kfunc->name);
		return true;
	}
	if (insn->src_reg == 0) {
		snprintf(buf, n, "%s", helper_name(insn->imm));
		return true;
	}
	if (pc >= prog->nr_insns)
		return false;
	target = pc + 1 + insn->imm;
	for (i = 0; i < prog->nr_subprogs; i++)
		if (prog->subprogs[i].start == target)
			break;
	name = i < prog->nr_subprogs ? prog->subprogs[i].name : NULL;
	for (i = 0; i < sizeof(prog->tag); i++)
		snprintf(tag + 2 * i, 3, "%02x", prog->tag[i]);
	snprintf(buf, n, "%+d#bpf_prog_%s_%s", insn->imm, tag, name && *name ? name : "F");
	return true;
}

static bool imm64_name(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	if (insn->src_reg == BPF_PSEUDO_MAP_FD)
		snprintf(buf, n, "map[id:%d]", insn->imm);
	else if (insn->src_reg == BPF_PSEUDO_MAP_VALUE)
		snprintf(buf, n, "map[id:%d][0]+%d", insn->imm, insn[1].imm);
	else
		return false;
	return true;
}

struct isa_names rw_names(const struct prog *prog)
{
	return (struct isa_names){ .ctx = (void *)prog, .call = call_name, .imm64 = imm64_name };
}
