// SPDX-License-Identifier: BSD-2-Clause
// Lowers an xlated program to the interpreter's form.
#include <errno.h>
#include <stdlib.h>

#include "base/probe.h"
#include "env/env.h"
#include "exec/exec_int.h"
#include "object/helper.h"

struct lowering {
	struct prog *prog; /* whose functions, entry and image these are */
	const struct prog *text; /* whose instructions */
	struct strbuf *log;
	struct exec_image *image;
	const s32 *handlers;
	u32 *at; /* per xlated slot, and one beyond: index in image->code */
	bool probes;
};

static int refuse(struct lowering *lo, u32 pc, const char *what, const char *name)
{
	if (lo->log)
		strbuf_printf(lo->log, "insn %u: %s%s\n", pc, what, name);
	return -EOPNOTSUPP;
}

/* Where a jump leads, in the image's own instructions. */
static int lower_jump(struct lowering *lo, u32 pc, struct exec_insn *out)
{
	s64 target = (s64)pc + 1 + isa_jump_off(&lo->text->insns[pc]);

	if (target < 0 || target >= lo->text->nr_insns)
		return refuse(lo, pc, "jump out of range", "");
	out->jump = (s32)(lo->at[target] - lo->at[pc]);
	return 0;
}

static int lower_call(struct lowering *lo, u32 pc, int op, struct exec_insn *out)
{
	const struct insn_fact *fact = &lo->text->facts[pc];

	if (op == ISA_CALL_SUBPROG) {
		if (fact->subprog >= lo->text->nr_subprogs)
			return refuse(lo, pc, "call of no subprogram", "");
		out->imm = (u64)&lo->image->subs[fact->subprog];
		return 0;
	}
	if (fact->helper && fact->helper->flags & HELPER_TAIL_CALL) {
		out->handler = lo->handlers[EXEC_TAIL_CALL];
		return 0;
	}
	if (exec_throws(op, fact)) {
		u32 cb = exec_exception_cb(lo->text);

		if (cb == PROG_NO_SUBPROG)
			return refuse(lo, pc, "a throw without callback", "");
		out->handler = lo->handlers[EXEC_THROW];
		out->imm = (u64)&lo->image->subs[cb];
		return 0;
	}
	out->imm = (u64)exec_callee(fact);
	if (!out->imm && op == ISA_CALL_KFUNC)
		return refuse(lo, pc, "inlay cannot run kernel function ", fact->kfunc ? fact->kfunc->name : "");
	if (!out->imm)
		return refuse(lo, pc, "inlay cannot run helper ", helper_name(lo->text->insns[pc].imm));
	return 0;
}

static int lower_const(struct lowering *lo, u32 pc, struct exec_insn *out)
{
	const struct bpf_insn *insn = &lo->text->insns[pc];
	const struct insn_fact *fact = &lo->text->facts[pc];

	switch (insn->src_reg) {
	case 0:
		out->imm = isa_imm64(insn);
		return 0;
	case BPF_PSEUDO_FUNC:
		if (fact->subprog >= lo->text->nr_subprogs)
			return refuse(lo, pc, "load of no function", "");
		out->imm = (u64)&lo->prog->funcs[fact->subprog];
		return 0;
	}
	out->imm = fact->imm64;
	return 0;
}

static int lower_insn(struct lowering *lo, u32 pc, struct exec_insn *out)
{
	const struct bpf_insn *insn = &lo->text->insns[pc];
	int op = isa_decode(insn);

	if (op < 0)
		return refuse(lo, pc, "unknown instruction", "");
	if (!lo->handlers[op])
		return refuse(lo, pc, "inlay's interpreter does not execute ", isa_op_name(op));
	*out = (struct exec_insn){
		.handler = lo->handlers[op],
		.dst = insn->dst_reg,
		.src = insn->src_reg,
		.off = insn->off,
	};
	if (out->dst >= ISA_NR_REGS || (isa_info[op].fx & (ISA_FX_SR | ISA_FX_SW) && out->src >= ISA_NR_REGS))
		return refuse(lo, pc, "no such register", "");
	switch (isa_info[op].kind) {
	case ISA_K_CALL:
		return lower_call(lo, pc, op, out);
	case ISA_K_LD_IMM64:
		return lower_const(lo, pc, out);
	case ISA_K_JMP:
	case ISA_K_JA:
	case ISA_K_MAY_GOTO:
		out->imm32 = insn->imm;
		return lower_jump(lo, pc, out);
	case ISA_K_LDX:
		lo->probes |= isa_info[op].internal;
		return 0;
	}
	out->imm = isa_imm(insn);
	return 0;
}

static int lower_all(struct lowering *lo)
{
	const struct prog *prog = lo->text;
	u32 pc, n = 0;
	int err;

	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		lo->at[pc] = n++;
		if (isa_slots(prog->insns[pc].code) == 2) {
			if (pc + 1 >= prog->nr_insns)
				return refuse(lo, pc, "constant is cut off", "");
			lo->at[pc + 1] = n; /* no jump leads there */
		}
	}
	for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		err = lower_insn(lo, pc, &lo->image->code[lo->at[pc]]);
		if (err)
			return err;
	}
	for (pc = 0; pc < prog->nr_subprogs; pc++) {
		const struct prog_subprog *sub = &prog->subprogs[pc];

		lo->image->subs[pc].code = &lo->image->code[lo->at[sub->start]];
		lo->image->subs[pc].depth = min_of((u32)align_up(sub->stack_depth, 8), (u32)PROG_STACK);
	}
	return 0;
}

static void image_free(struct prog *prog)
{
	struct exec_image *image = prog->image;

	if (!image)
		return;
	free(image->code);
	free(image->subs);
	free(image);
	prog->image = NULL;
}

static u64 run_body(struct prog *prog, void *ctx)
{
	const struct exec_image *image = prog->image;
	u64 outer = env_tls.tail_calls, ret;

	env_tls.tail_calls = 0;
	ret = exec_run(&image->subs[0], (u64)ctx, 0, 0, 0, 0);
	env_tls.tail_calls = outer;
	return ret;
}

static u64 run_tail(void *ctx, struct prog *prog)
{
	const struct exec_image *image = prog->image;

	return exec_run(&image->subs[0], (u64)ctx, 0, 0, 0, 0);
}

static u64 run_func(struct bpf_func *func, u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	const struct exec_image *image = func->prog->image;

	return exec_run(&image->subs[func->subprog], r1, r2, r3, r4, r5);
}

static int alloc_image(struct lowering *lo)
{
	u32 i, nr_subs = lo->text->nr_subprogs, nr_insns = lo->text->nr_insns;
	struct prog *prog = lo->prog;

	lo->image = calloc(1, sizeof(*lo->image));
	if (!lo->image)
		return -ENOMEM;
	prog->image = lo->image;
	lo->image->head = (struct exec_head){ .impl = &exec_interp, .tail_entry = run_tail };
	lo->image->code = calloc(nr_insns + 1, sizeof(*lo->image->code));
	lo->image->subs = calloc(nr_subs + 1, sizeof(*lo->image->subs));
	lo->at = calloc(nr_insns + 1, sizeof(*lo->at));
	if (!lo->image->code || !lo->image->subs || !lo->at || exec_make_funcs(prog, nr_subs))
		return -ENOMEM;
	for (i = 0; i < nr_subs; i++)
		prog->funcs[i].call = run_func;
	return 0;
}

static int prepare(struct prog *prog, struct strbuf *log)
{
	struct lowering lo = { .prog = prog, .text = exec_text(prog), .log = log, .handlers = exec_handlers() };
	int err;

	err = alloc_image(&lo);
	if (!err)
		err = lower_all(&lo);
	if (!err && lo.probes)
		err = probe_init();
	free(lo.at);
	if (err) {
		image_free(prog);
		return err;
	}
	prog->entry = run_body;
	prog->image_free = image_free;
	return 0;
}

static const struct caps caps = { .name = "interp" };

const struct exec_impl exec_interp = { .caps = &caps, .prepare = prepare };
