// SPDX-License-Identifier: BSD-2-Clause
/*
 * bpf_loop() with a function known at load becomes a loop in the program.
 *
 * A small function is put in the loop itself: its frame lies below the caller's, its exits become jumps. A larger one is
 * called there, without the way through struct bpf_func. What the loop must remember (rounds done, how many there are,
 * the context) lives in registers of r6..r9 that the function does not touch, else below the caller's frame; those of
 * r6..r9 the caller still reads behind the loop are saved around it, not in it.
 *
 *	     r0 = -E2BIG; if n > 2^23 goto end		only where n is no constant
 *	     save; i = 0; if n == 0 goto done
 *	loop: r1 = i; r2 = ctx
 *	     the function; its exits lead to test, next or stop, by what is known of r0
 *	test: if r0 != 0 goto stop
 *	next: i += 1; if i < n goto loop; goto done
 *	stop: i += 1
 *	done: r0 = i; restore
 *	end:
 *
 * Functions are put in from the inside: one that holds such a loop itself waits until that is done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object/helper.h"
#include "rewrite/flow.h"
#include "rewrite/rewrite_int.h"

#define MAX_ROUNDS  (1u << 23) /* Linux's BPF_MAX_LOOPS */
#define BODY_MAX    256	       /* slots of a function that is put in */
#define GROWTH_MAX  8192       /* slots a program may grow by */
#define NR_KEPT	    4	       /* r6..r9 */

enum exit_kind { EXIT_UNKNOWN, EXIT_ZERO, EXIT_OTHER };

/* Where something lives during the loop. */
struct home {
	u8 reg;	 /* 0: in memory */
	s32 off; /* of the frame pointer, then */
};

struct loop {
	struct prog *prog;
	const u8 *targets;
	const u16 *live; /* per slot: registers still read behind it */
	u32 pc;		 /* of the call */
	u32 caller, callee; /* subprograms */
	u32 load;	 /* slot that loads the function */
	struct rw_value nr, ctx;
	bool whole;	 /* the function itself, not a call of it */
	bool uses_index, uses_ctx;
	u16 used, written; /* registers of the function */
	u16 saved;	 /* of r6..r9, saved around the loop */
	u32 frame;	 /* bytes of the caller's own frame, homes in memory, what is saved: the function's begins below */
	struct home i, n, x;
	struct rw_text text;
};

static bool is_loop(const struct prog *prog, u32 pc)
{
	const struct helper_desc *helper = prog->facts[pc].helper;

	return prog->insns[pc].code == (BPF_JMP | BPF_CALL) && !prog->insns[pc].src_reg && helper &&
	       helper->flags & HELPER_LOOP;
}

/* NULL: it can be made; else why not. */
static const char *know(struct prog *prog, const u8 *targets, u32 pc, struct loop *l)
{
	struct rw_value func = rw_value_of(prog, targets, pc, 2), flags = rw_value_of(prog, targets, pc, 4);

	*l = (struct loop){ .prog = prog, .targets = targets, .pc = pc };
	if (func.kind != RW_FUNC)
		return "which function is not known";
	if (flags.kind != RW_CONST || flags.v)
		return "its flags are not 0";
	l->load = (u32)func.v;
	l->caller = rw_subprog_at(prog, pc);
	l->callee = prog->facts[l->load].subprog;
	if (l->callee >= prog->nr_subprogs || l->callee == l->caller)
		return "which function is not known";
	l->nr = rw_value_of(prog, targets, pc, 1);
	l->ctx = rw_value_of(prog, targets, pc, 3);
	l->nr.v = (u32)l->nr.v;
	if (l->nr.kind == RW_CONST && l->nr.v > MAX_ROUNDS)
		return "it asks for too many rounds";
	return NULL;
}

/* An instruction that cannot stand in another function's frame. */
static bool bound_to_frame(const struct prog *prog, u32 pc)
{
	const struct bpf_insn *insn = &prog->insns[pc];
	const struct helper_desc *helper = prog->facts[pc].helper;
	int op = isa_decode(insn);

	if (op < 0)
		return true;
	switch (isa_info[op].kind) {
	case ISA_K_MAY_GOTO: /* counted per call of its function */
	case ISA_K_LD_ABS:   /* may leave the function */
	case ISA_K_LD_IND:
		return true;
	case ISA_K_CALL:
		return helper && helper->flags & HELPER_TAIL_CALL;
	case ISA_K_LDX:
	case ISA_K_LOAD_ACQ:
	case ISA_K_ST:
		return false;
	case ISA_K_STX:
	case ISA_K_STORE_REL:
	case ISA_K_ATOMIC:
		return insn->src_reg == ISA_REG_FP;
	case ISA_K_MOV:
		return op != ISA_MOV64_X && isa_regs_read(op, insn) & 1u << ISA_REG_FP;
	}
	return isa_regs_read(op, insn) & 1u << ISA_REG_FP;
}

/* Is the function such that it may be put in? Notes the registers it uses. */
static bool fits(struct loop *l)
{
	const struct prog *prog = l->prog;
	const struct prog_subprog *sub = &prog->subprogs[l->callee];
	u32 pc, end = rw_subprog_end(prog, l->callee);

	if (end - sub->start > BODY_MAX || sub->reads_stale)
		return false;
	for (pc = sub->start; pc < end; pc += isa_slots(prog->insns[pc].code)) {
		if (bound_to_frame(prog, pc))
			return false;
		l->used |= rw_regs_read(prog, pc) | rw_regs_written(prog, pc);
		l->written |= rw_regs_written(prog, pc);
	}
	return true;
}

/* Registers the function reads before it sets them: is index or context looked at? */
static void arguments(struct loop *l)
{
	u32 start = l->prog->subprogs[l->callee].start;
	u16 first = (l->live[start] & ~rw_regs_written(l->prog, start)) | rw_regs_read(l->prog, start);

	l->uses_index = first & 1u << 1;
	l->uses_ctx = first & 1u << 2;
}

/* A register of free for h, best one the caller does not need; else a place in the frame. */
static void settle(struct loop *l, struct home *h, u16 *free, u16 kept)
{
	u16 best = *free & ~kept ? *free & ~kept : *free;

	if (!best) {
		l->frame += 8;
		h->off = -(s32)l->frame;
		return;
	}
	h->reg = __builtin_ctz(best);
	*free &= ~(1u << h->reg);
	l->written |= 1u << h->reg;
}

static void plan(struct loop *l)
{
	u16 free, kept = l->live[l->pc] & 0x3c0; /* of r6..r9, those the caller still reads behind the call */
	int r;

	arguments(l);
	l->i = l->n = l->x = (struct home){ 0 };
	l->frame = align_up(l->prog->subprogs[l->caller].stack_depth, 8);
	if (!l->whole)
		l->used = l->written = 0; /* it keeps them itself */
	free = 0x3c0 & ~l->used;
	settle(l, &l->i, &free, kept);
	if (l->uses_ctx && l->ctx.kind != RW_FRAME && l->ctx.kind != RW_CONST)
		settle(l, &l->x, &free, kept);
	if (l->nr.kind != RW_CONST)
		settle(l, &l->n, &free, kept);
	l->saved = kept & l->written;
	for (r = 6; r < 6 + NR_KEPT; r++)
		l->frame += l->saved & 1u << r ? 8 : 0;
}

/* ---- the text ---- */

static u32 add(struct loop *l, struct bpf_insn insn)
{
	return rw_text_add(&l->text, insn, NULL, l->prog->facts[l->pc].orig, RW_OWN);
}

static void to_home(struct loop *l, const struct home *h, u8 reg)
{
	if (h->reg)
		add(l, ISA_MOV_REG(h->reg, reg));
	else
		add(l, ISA_STORE(DW, ISA_REG_FP, h->off, reg));
}

static void from_home(struct loop *l, const struct home *h, u8 reg)
{
	if (h->reg)
		add(l, ISA_MOV_REG(reg, h->reg));
	else
		add(l, ISA_LOAD(DW, reg, ISA_REG_FP, h->off));
}

static void keep_regs(struct loop *l, bool restore)
{
	s32 off = -(s32)l->frame;
	int r;

	for (r = 6; r < 6 + NR_KEPT; r++) {
		if (!(l->saved & 1u << r))
			continue;
		add(l, restore ? ISA_LOAD(DW, r, ISA_REG_FP, off) : ISA_STORE(DW, ISA_REG_FP, off, r));
		off += 8;
	}
}

static void add_ctx(struct loop *l)
{
	if (!l->uses_ctx)
		return;
	if (l->ctx.kind == RW_CONST) {
		struct bpf_insn two[2] = { isa_encode(ISA_LD_IMM64, 2, 0, 0, 0), { 0 } };
		struct insn_fact fact = { .seen = 1, .orig = l->prog->facts[l->pc].orig, .imm64 = (u64)l->ctx.v };

		if (l->ctx.v == (s32)l->ctx.v) {
			add(l, ISA_MOV(2, (s32)l->ctx.v));
			return;
		}
		isa_set_imm64(two, (u64)l->ctx.v);
		rw_text_add(&l->text, two[0], &fact, 0, RW_OWN);
		add(l, two[1]);
	} else if (l->ctx.kind == RW_FRAME) {
		add(l, ISA_MOV_REG(2, ISA_REG_FP));
		if (l->ctx.v)
			add(l, ISA_ALU64(ADD, 2, (s32)l->ctx.v));
	} else {
		from_home(l, &l->x, 2);
	}
}

/* The call of a function that is not put in. It carries on the target of the load of it. */
static void add_call(struct loop *l)
{
	struct insn_fact fact = { .seen = 1, .orig = l->prog->facts[l->pc].orig, .call_subprog = 1, .subprog = l->callee };

	rw_text_add(&l->text, isa_encode(ISA_CALL_SUBPROG, 0, 0, 0, 0), &fact, 0, l->load);
	l->prog->subprogs[l->callee].is_cb = false;
}

static enum exit_kind exit_kind(const struct loop *l, u32 pc)
{
	struct rw_value r0 = rw_value_of(l->prog, l->targets, pc, 0);

	return r0.kind != RW_CONST ? EXIT_UNKNOWN : r0.v ? EXIT_OTHER : EXIT_ZERO;
}

/* One instruction of the function, its frame being that much lower. Slots of it that are done. */
static u32 add_one(struct loop *l, u32 pc)
{
	const struct prog *prog = l->prog;
	struct bpf_insn insn = prog->insns[pc];
	int op = isa_decode(&insn), k;
	bool access = isa_info[op].fx & (ISA_FX_MR | ISA_FX_MW);
	s32 ignored;

	if (op == ISA_MOV64_X && insn.src_reg == ISA_REG_FP) {
		const struct bpf_insn *next = &prog->insns[pc + 1];
		bool sum = next->code == (BPF_ALU64 | BPF_ADD | BPF_K) && next->dst_reg == insn.dst_reg && !l->targets[pc + 1];

		rw_text_add(&l->text, insn, &prog->facts[pc], 0, RW_OWN);
		add(l, ISA_ALU64(ADD, insn.dst_reg, (s32)((sum ? (u32)next->imm : 0) - l->frame)));
		return sum ? 2 : 1;
	}
	if (access && isa_mem_base(op, &insn) == ISA_REG_FP)
		insn.off -= (s16)l->frame;
	for (k = 0; k < isa_slots(insn.code); k++) {
		bool moved = !k && rw_distance(&insn, &ignored) && !isa_is_jump(op);

		rw_text_add(&l->text, k ? prog->insns[pc + k] : insn, &prog->facts[pc + k], 0, moved ? pc : RW_OWN);
	}
	return isa_slots(insn.code);
}

struct exits {
	u32 *at; /* index in the text of each exit's jump */
	u8 *kind; /* enum exit_kind */
	u32 nr;
	u32 seen; /* bit n: some exit is of kind n */
};

static void land(struct loop *l, const struct exits *x, enum exit_kind kind)
{
	u32 i;

	for (i = 0; i < x->nr; i++)
		if (x->kind[i] == kind)
			rw_text_land(&l->text, x->at[i]);
}

/* The function's instructions. Jumps inside it are aimed at the end, when all have their place. */
static void add_body(struct loop *l, struct exits *x, u32 *at)
{
	const struct prog *prog = l->prog;
	u32 start = prog->subprogs[l->callee].start, end = rw_subprog_end(prog, l->callee), pc, n;

	for (pc = start; pc < end; pc += n) {
		int op = isa_decode(&prog->insns[pc]);

		at[pc - start] = l->text.nr;
		n = 1;
		if (isa_info[op].kind != ISA_K_EXIT) {
			n = add_one(l, pc);
			continue;
		}
		x->kind[x->nr] = exit_kind(l, pc);
		x->seen |= 1u << x->kind[x->nr];
		x->at[x->nr++] = rw_text_add(&l->text, ISA_GOTO(0), &prog->facts[pc], 0, RW_OWN);
	}
	for (pc = start; pc < end; pc += isa_slots(prog->insns[pc].code)) {
		int op = isa_decode(&prog->insns[pc]);
		struct bpf_insn *insn;
		s32 dist;

		if (!isa_is_jump(op) || l->text.failed)
			continue;
		insn = &l->text.insns[at[pc - start]];
		dist = (s32)(at[pc + 1 + isa_jump_off(&prog->insns[pc]) - start] - at[pc - start] - 1);
		if (op == ISA_JA32)
			insn->imm = dist;
		else
			insn->off = (s16)dist;
	}
}

/* From behind a round to the next one, or out of the loop. */
static void add_tail(struct loop *l, const struct exits *x, u32 head)
{
	u32 test = 0, done = 0, back;

	land(l, x, EXIT_UNKNOWN);
	if (x->seen & 1u << EXIT_UNKNOWN)
		test = add(l, ISA_IF(JNE, 0, 0, 0));
	land(l, x, EXIT_ZERO);
	if (!l->i.reg)
		from_home(l, &l->i, 1);
	add(l, ISA_ALU64(ADD, l->i.reg ? l->i.reg : 1, 1));
	if (!l->i.reg)
		to_home(l, &l->i, 1);
	if (l->nr.kind == RW_CONST) {
		back = add(l, ISA_IF(JLT, l->i.reg ? l->i.reg : 1, (s32)l->nr.v, 0));
	} else {
		if (!l->n.reg)
			from_home(l, &l->n, 2);
		back = add(l, ISA_IF_REG(JLT, l->i.reg ? l->i.reg : 1, l->n.reg ? l->n.reg : 2, 0));
	}
	if (!l->text.failed)
		l->text.insns[back].off = (s16)(head - back - 1);
	if (x->seen & (1u << EXIT_UNKNOWN | 1u << EXIT_OTHER)) {
		done = add(l, ISA_GOTO(0));
		land(l, x, EXIT_OTHER);
		if (x->seen & 1u << EXIT_UNKNOWN)
			rw_text_land(&l->text, test);
		if (!l->i.reg)
			from_home(l, &l->i, 1);
		add(l, ISA_ALU64(ADD, l->i.reg ? l->i.reg : 1, 1));
		if (!l->i.reg)
			to_home(l, &l->i, 1);
		rw_text_land(&l->text, done);
	}
}

static void add_loop(struct loop *l, struct exits *x, u32 *at)
{
	bool fixed = l->nr.kind == RW_CONST;
	u32 too_many = 0, none = 0, head;

	if (!fixed) {
		add(l, ISA_MOV32_REG(1, 1));
		add(l, ISA_MOV(0, -E2BIG));
		too_many = add(l, ISA_IF(JGT, 1, MAX_ROUNDS, 0));
	}
	keep_regs(l, false);
	if (!fixed)
		to_home(l, &l->n, 1);
	if (l->x.reg || l->x.off)
		to_home(l, &l->x, 3);
	if (!fixed || !l->nr.v) { /* the index is 0 where no round is done */
		add(l, ISA_MOV(2, 0));
		to_home(l, &l->i, 2);
		none = fixed ? add(l, ISA_GOTO(0)) : add(l, ISA_IF(JEQ, 1, 0, 0));
	} else if (l->i.reg) {
		add(l, ISA_MOV(l->i.reg, 0));
	} else {
		add(l, ISA_STORE_IMM(DW, ISA_REG_FP, l->i.off, 0));
	}
	head = l->text.nr;
	if (l->uses_index)
		from_home(l, &l->i, 1);
	add_ctx(l);
	if (l->whole) {
		add_body(l, x, at);
	} else {
		add_call(l);
		x->seen = 1u << EXIT_UNKNOWN;
	}
	add_tail(l, x, head);
	if (!fixed || !l->nr.v)
		rw_text_land(&l->text, none);
	from_home(l, &l->i, 0);
	keep_regs(l, true);
	if (!fixed)
		rw_text_land(&l->text, too_many);
}

/* Makes the text; the caller of the function gets the room. 1 made, 0 no room, or -ENOMEM. */
static int make(struct loop *l)
{
	struct prog_subprog *subs = l->prog->subprogs;
	u32 size = rw_subprog_end(l->prog, l->callee) - subs[l->callee].start, depth;
	struct exits x = { 0 };
	u32 *at = NULL;

	plan(l);
	depth = l->frame + (l->whole ? align_up(subs[l->callee].stack_depth, 8) : 0);
	if (depth > PROG_STACK)
		return 0;
	x.at = calloc(size + 1, sizeof(*x.at));
	x.kind = calloc(size + 1, 1);
	at = calloc(size + 1, sizeof(*at));
	if (x.at && x.kind && at)
		add_loop(l, &x, at);
	else
		l->text.failed = true;
	free(x.at);
	free(x.kind);
	free(at);
	return l->text.failed ? -ENOMEM : 1;
}

/* ---- the pass ---- */

/* The lines of functions put in, by where their instructions are now. */
static int add_lines(struct prog *prog, const struct prog_line *more, u32 nr_more)
{
	struct prog_line *v = calloc(prog->nr_line_info + nr_more + 1, sizeof(*v));
	u32 i = 0, k = 0, n = 0;

	if (!v)
		return -ENOMEM;
	while (i < prog->nr_line_info || k < nr_more) {
		bool old = k == nr_more ||
			   (i < prog->nr_line_info && prog->line_info[i].insn_off <= more[k].insn_off);

		v[n] = old ? prog->line_info[i++] : more[k++];
		n += !n || v[n].insn_off != v[n - 1].insn_off;
	}
	free(prog->line_info);
	prog->line_info = v;
	prog->nr_line_info = n;
	return 0;
}

struct round {
	struct prog *prog;
	u8 *targets;
	u16 *live;  /* per slot: registers still read behind it */
	u32 *depth; /* per subprogram: stack it will use */
	struct rw_edits edits;
	struct prog_line *lines;
	u32 nr_lines, cap_lines;
	u32 grown; /* slots */
	bool last; /* what cannot be made now never will */
};

/* Lines of the function put in at l->pc: each at the first of its instructions, whose facts name where they come from. */
static int note_lines(struct round *r, const struct loop *l)
{
	const struct prog *prog = r->prog;
	u32 start = prog->subprogs[l->callee].start, end = rw_subprog_end(prog, l->callee), i, k = 0;

	for (i = 0; l->whole && i < prog->nr_line_info; i++) {
		const struct prog_line *line = &prog->line_info[i];

		if (line->insn_off < start || line->insn_off >= end)
			continue;
		while (k < l->text.nr && l->text.facts[k].orig != prog->facts[line->insn_off].orig)
			k++;
		if (k == l->text.nr)
			break;
		if (r->nr_lines == r->cap_lines) {
			void *p = reallocarray(r->lines, r->cap_lines * 2 + 16, sizeof(*r->lines));

			if (!p)
				return -ENOMEM;
			r->lines = p;
			r->cap_lines = r->cap_lines * 2 + 16;
		}
		r->lines[r->nr_lines] = *line;
		r->lines[r->nr_lines++].insn_off = l->pc + r->grown + k;
	}
	return 0;
}

/* Does the function hold a loop that will be made and has not been yet? */
static bool must_wait(const struct round *r, const struct loop *l)
{
	u32 pc, end = rw_subprog_end(r->prog, l->callee);
	struct loop inner;

	for (pc = r->prog->subprogs[l->callee].start; pc < end; pc += isa_slots(r->prog->insns[pc].code))
		if (is_loop(r->prog, pc) && !know(r->prog, r->targets, pc, &inner))
			return true;
	return false;
}

static int one_site(struct round *r, u32 pc)
{
	struct prog *prog = r->prog;
	struct loop l;
	int made = 0, err = 0;
	const char *why = know(prog, r->targets, pc, &l);

	if (!why && !r->last && must_wait(r, &l))
		return 0;
	l.live = r->live;
	if (!why) {
		l.whole = fits(&l);
		made = make(&l);
		if (!made && l.whole) {
			l.whole = false;
			made = make(&l);
		}
		if (!made || (made > 0 && r->grown + l.text.nr > GROWTH_MAX)) {
			why = "no room for it in the stack or the program";
			made = 0;
		}
	}
	if (made > 0) {
		u32 depth = l.frame + (l.whole ? align_up(prog->subprogs[l.callee].stack_depth, 8) : 0);

		r->depth[l.caller] = max_of(r->depth[l.caller], depth);
		err = note_lines(r, &l);
		rw_edit_text(&r->edits, pc, 1, &l.text);
		r->grown += l.text.nr - 1;
		why = l.whole ? "a loop with the function in it" : "a loop that calls the function";
	}
	if (!err && made >= 0 && (made || r->last))
		err = rw_note(prog, &prog->facts[pc], made > 0, why);
	rw_text_fini(&l.text);
	return made < 0 ? made : err;
}

/* 1 something changed, 0 nothing, or -errno. */
static int one_round(struct prog *prog, bool last, struct strbuf *log)
{
	struct round r = { .prog = prog, .last = last };
	u32 pc, i;
	int err = 0, changed;

	r.targets = rw_targets(prog);
	r.depth = calloc(prog->nr_subprogs + 1, sizeof(*r.depth));
	r.live = calloc(prog->nr_insns + 1, sizeof(*r.live));
	if (!r.targets || !r.depth || !r.live)
		err = -ENOMEM;
	if (!err)
		err = rw_live_after(prog, 0, prog->nr_insns, r.live);
	for (pc = 0; !err && pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code))
		if (is_loop(prog, pc))
			err = one_site(&r, pc);
	changed = r.edits.nr > 0;
	for (i = 0; !err && i < prog->nr_subprogs; i++)
		prog->subprogs[i].stack_depth = max_of(prog->subprogs[i].stack_depth, r.depth[i]);
	if (err)
		rw_edits_drop(&r.edits);
	else
		err = rw_patch(prog, &r.edits, log);
	if (!err && r.nr_lines)
		err = add_lines(prog, r.lines, r.nr_lines);
	free(r.targets);
	free(r.live);
	free(r.depth);
	free(r.lines);
	return err ? err : changed;
}

/* Needs helper, subprog. Leaves loops; calls of bpf_loop only where something about them is not known, or does not fit. */
int rw_pass_loops(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	bool off = rw_inline_off(prog) & INLINE_LOOP, any = false;
	u32 pc, rounds;
	int ret = 1;

	for (pc = 0; !any && pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code))
		any = is_loop(prog, pc);
	if (!any)
		return 0;
	for (rounds = 0; !off && ret > 0 && rounds < PROG_MAX_FRAMES; rounds++)
		ret = one_round(prog, false, log);
	return ret < 0 || off ? min_of(ret, 0) : min_of(one_round(prog, true, log), 0);
}
