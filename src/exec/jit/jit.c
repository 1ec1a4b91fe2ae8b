// SPDX-License-Identifier: BSD-2-Clause
// A compilation from the first look at the text to a program that can be entered; the machine's part is its target's.
#include "exec/jit/jit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "object/map.h"

struct jit_knobs jit_knobs;

/* What a compilation asks of every instruction, worked out once a target. */
struct jit_table {
	struct jit_size by_op[ISA_OP_MAX];
	/* The same by code: of its one row, or of the one with off 0; else not known, and isa_decode() says which row it is. */
	struct jit_size by_code[256];
};

static const struct jit_target *const targets[] = { &jit_target_x86_64, &jit_target_arm64 };
static struct jit_table tables[ARRAY_SIZE(targets)];
static pthread_once_t once = PTHREAD_ONCE_INIT, tables_once = PTHREAD_ONCE_INIT;
static int init_err;

static bool is_plain(enum isa_op op)
{
	switch (isa_info[op].kind) {
	case ISA_K_LDX:
		return !isa_info[op].internal;
	case ISA_K_ALU:
		return BPF_OP(isa_info[op].code) != BPF_DIV && BPF_OP(isa_info[op].code) != BPF_MOD;
	case ISA_K_JMP:
	case ISA_K_JA:
	case ISA_K_MAY_GOTO:
	case ISA_K_CALL:
	case ISA_K_LD_IMM64:
		return false;
	}
	return true;
}

static struct jit_size size_of(const struct jit_target *target, enum isa_op op)
{
	const struct isa_info *info = &isa_info[op];
	struct bpf_insn small = isa_encode(op, 0, 0, 1, 1), imm = isa_encode(op, 0, 0, 1, 1000), off = isa_encode(op, 0, 0, 1000, 1);
	struct jit_size size = { .op = op, .claimed = target->claims(op), .plain = is_plain(op),
				 .dst = !!(info->fx & (ISA_FX_DR | ISA_FX_DW)), .src = !!(info->fx & (ISA_FX_SR | ISA_FX_SW)) };

	if (size.claimed) {
		size.base = target->bound(op, &small, NULL);
		size.imm = target->bound(op, &imm, NULL) - size.base;
		size.off = target->bound(op, &off, NULL) - size.base;
	}
	return size;
}

static void make_table(const struct jit_target *target, struct jit_table *table)
{
	int op;

	for (op = 0; op < ISA_OP_MAX; op++) {
		const struct isa_info *info = &isa_info[op];
		struct jit_size size = size_of(target, op);

		table->by_op[op] = size;
		size.known = size.claimed && (info->sel == ISA_F_NONE || (info->sel == ISA_F_OFF && !info->val));
		size.off_0 = info->sel == ISA_F_OFF;
		if (size.known)
			table->by_code[info->code] = size;
	}
}

static void make_tables(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(targets); i++)
		make_table(targets[i], &tables[i]);
}

static const struct jit_table *table_of(const struct jit_target *target)
{
	u32 i = 0;

	pthread_once(&tables_once, make_tables);
	while (targets[i] != target)
		i++;
	return &tables[i];
}

static void init(void)
{
	init_err = jit_mem_init();
}

int jit_available(void)
{
	pthread_once(&once, init);
	return init_err;
}

int jit_refuse(const struct jit *j, u32 pc, const char *what, const char *name)
{
	if (j->log)
		strbuf_printf(j->log, "insn %u: %s%s\n", pc, what, name);
	return -EOPNOTSUPP;
}

u64 jit_imm64(const struct jit *j, u32 pc)
{
	const struct bpf_insn *insn = &j->text->insns[pc];
	const struct insn_fact *fact = &j->text->facts[pc];

	if (!insn->src_reg)
		return isa_imm64(insn);
	return insn->src_reg == BPF_PSEUDO_FUNC ? (u64)&j->prog->funcs[fact->subprog] : fact->imm64;
}

struct jit_jump jit_tail_jump(struct map *map, u64 index)
{
	struct prog *target = exec_tail_target(map, index);
	const struct exec_head *head = target ? target->image : NULL;

	return (struct jit_jump){ .code = head ? head->tail_entry : NULL, .prog = target };
}

/* ---- the first walk ---- */

static int look_at_jump(struct jit *j, struct jit_sub *sub, u32 pc)
{
	s64 to = (s64)pc + 1 + isa_jump_off(&j->text->insns[pc]);

	if (to < sub->start || to >= sub->end)
		return jit_refuse(j, pc, "jump out of its function", "");
	if (to <= pc && !(j->insn[to].flags & JIT_LOOP)) {
		j->insn[to].flags |= JIT_LOOP;
		j->bound += JIT_LOOP_PAD;
	}
	j->insn[to].flags |= JIT_TARGET;
	j->max_refs += 2; /* there, and to what follows if that is elsewhere */
	return 0;
}

static int look_at_call(struct jit *j, struct jit_sub *sub, u32 pc, enum isa_op op)
{
	const struct insn_fact *fact = &j->text->facts[pc];

	sub->calls = true;
	if (op == ISA_CALL_SUBPROG) {
		if (fact->subprog >= j->text->nr_subprogs)
			return jit_refuse(j, pc, "call of no subprogram", "");
		j->max_refs++;
		j->nr_calls++;
		return 0;
	}
	if (fact->helper && fact->helper->flags & HELPER_TAIL_CALL) {
		sub->tail_calls = j->tail_calls = true;
		j->insn[pc].max = j->target->bound(op, &j->text->insns[pc], fact);
		return 0;
	}
	if (exec_throws(op, fact)) {
		j->throws = true;
		return 0;
	}
	if (!exec_callee(fact) && op == ISA_CALL_KFUNC)
		return jit_refuse(j, pc, "inlay cannot run kernel function ", fact->kfunc ? fact->kfunc->name : "");
	if (!exec_callee(fact))
		return jit_refuse(j, pc, "inlay cannot run helper ", helper_name(j->text->insns[pc].imm));
	return 0;
}

static int look_at_kind(struct jit *j, struct jit_sub *sub, u32 pc, enum isa_op op)
{
	const struct insn_fact *fact = &j->text->facts[pc];

	switch (isa_info[op].kind) {
	case ISA_K_JMP:
	case ISA_K_JA:
		return look_at_jump(j, sub, pc);
	case ISA_K_MAY_GOTO:
		sub->may_goto = true;
		j->max_stubs++;
		return look_at_jump(j, sub, pc);
	case ISA_K_CALL:
		return look_at_call(j, sub, pc, op);
	case ISA_K_LDX:
		j->max_stubs += isa_info[op].internal;
		j->max_fixups += isa_info[op].internal;
		return 0;
	case ISA_K_ALU:
		if (BPF_OP(isa_info[op].code) == BPF_DIV || BPF_OP(isa_info[op].code) == BPF_MOD)
			j->max_stubs++;
		return 0;
	case ISA_K_LD_IMM64:
		if (pc + 1 >= sub->end)
			return jit_refuse(j, pc, "constant is cut off", "");
		j->insn[pc + 1].flags |= JIT_SECOND;
		if (j->text->insns[pc].src_reg != BPF_PSEUDO_FUNC)
			return 0;
		if (fact->subprog >= j->text->nr_subprogs)
			return jit_refuse(j, pc, "load of no function", "");
		j->sub[fact->subprog].by_pointer = true;
		return 0;
	}
	return 0;
}

/* Its size where by_code does not say it; NULL: refused. */
static const struct jit_size *look_up(const struct jit *j, const struct bpf_insn *insn, u32 pc)
{
	int op = isa_decode(insn);

	if (op >= 0 && j->table->by_op[op].claimed)
		return &j->table->by_op[op];
	if (op < 0)
		jit_refuse(j, pc, "unknown instruction", "");
	else
		jit_refuse(j, pc, "not compiled: ", isa_op_name(op));
	return NULL;
}

/*
 * Every instruction of every program comes by here: what is needed stands in local variables, which no store can change,
 * and arithmetic stands for branches that nobody could predict.
 */
static int look_at_all(struct jit *j, struct jit_sub *sub, u32 *ret_last)
{
	const struct bpf_insn *insns = j->text->insns;
	const struct insn_fact *facts = j->text->facts;
	const struct jit_size *by_code = j->table->by_code;
	u32 pc, start = sub->start, end = sub->end, regs = 0, any_cold = 0, bound = 0;
	struct jit_insn *all = j->insn;
	int err;

	for (pc = start; pc < end; pc++) {
		const struct bpf_insn insn = insns[pc];
		const struct jit_size *size = &by_code[insn.code];
		u32 dst = insn.dst_reg, src = insn.src_reg, max, cold;

		if (unlikely(!size->known || (size->off_0 && insn.off))) {
			size = look_up(j, &insn, pc);
			if (!size)
				return -EOPNOTSUPP;
		}
		if (unlikely((dst >= ISA_NR_REGS) | ((src >= ISA_NR_REGS) & size->src)))
			return jit_refuse(j, pc, "no such register", "");
		max = size->base + (-(insn.imm != (s8)insn.imm) & size->imm) + (-(insn.off != (s8)insn.off) & size->off);
		cold = facts[pc].cold & (pc > start); /* the prologue falls into the first */
		regs |= size->dst << dst | size->src << src;
		any_cold |= cold;
		all[pc].op = size->op;
		all[pc].max = max;
		all[pc].flags |= cold * JIT_COLD;
		*ret_last = pc;
		if (unlikely(!size->plain)) {
			err = look_at_kind(j, sub, pc, size->op);
			if (unlikely(err))
				return err;
			max = all[pc].max;
			pc += isa_slots(insn.code) == 2;
		}
		bound += max;
	}
	sub->regs = regs;
	sub->cold = any_cold;
	j->bound += bound;
	return 0;
}

/* Where hot and cold code meet control comes from elsewhere. */
static void look_at_cold(struct jit *j, const struct jit_sub *sub)
{
	u32 pc;

	for (pc = sub->start + 1; pc < sub->end; pc++) {
		struct jit_insn *in = &j->insn[pc];

		if (in->flags & JIT_SECOND)
			in->flags |= in[-1].flags & JIT_COLD;
		if ((in->flags ^ in[-1].flags) & JIT_COLD) {
			in->flags |= JIT_TARGET;
			j->max_refs++; /* from what falls into it */
		}
	}
	j->bound += (u64)(sub->end - sub->start) * JIT_COLD_PAD;
}

static int look_at_sub(struct jit *j, struct jit_sub *sub)
{
	u32 last = sub->start;
	u8 kind;
	int err;

	if (sub->start == sub->end)
		return 0; /* all of it was dead */
	err = look_at_all(j, sub, &last);
	if (err)
		return err;
	if (sub->cold)
		look_at_cold(j, sub);
	sub->args = (sub->calls ? U32_MAX : sub->regs) & 0x3e;
	kind = isa_info[j->insn[last].op].kind;
	/* a call that never comes back: a throw, or a function that always throws */
	if (kind != ISA_K_EXIT && kind != ISA_K_JA && !(kind == ISA_K_CALL && j->text->throws))
		return jit_refuse(j, last, "a function runs off its end", "");
	return 0;
}

/* What a throw lands on: the program's own frame keeps more, so that each way out of it is longer (jit_target.throw_bound). */
static int plan_throw(struct jit *j)
{
	u32 pc;

	j->exception_cb = exec_exception_cb(j->text);
	if (j->exception_cb == PROG_NO_SUBPROG)
		return jit_refuse(j, 0, "a throw without callback", "");
	j->sub[0].calls = true;
	j->max_refs++;
	for (pc = j->sub[0].start; pc < j->sub[0].end; pc++) {
		if (isa_info[j->insn[pc].op].kind != ISA_K_EXIT || j->insn[pc].flags & JIT_SECOND)
			continue;
		j->insn[pc].max += j->target->throw_bound;
		j->bound += j->target->throw_bound;
	}
	return 0;
}

/* Frames are the native stack's: what the verifier counted is counted again here. */
static int check_depth(struct jit *j)
{
	u32 i, s, round;
	bool moved = j->nr_calls > 0;

	for (s = 0; s < j->text->nr_subprogs; s++)
		j->sub[s].depth = 1;
	for (round = 0; moved; round++) {
		moved = false;
		for (s = 0; s < j->text->nr_subprogs; s++) {
			if (!j->sub[s].calls)
				continue;
			for (i = j->sub[s].start; i < j->sub[s].end; i++) {
				struct jit_sub *callee;

				if (j->insn[i].op != ISA_CALL_SUBPROG || j->insn[i].flags & JIT_SECOND)
					continue;
				callee = &j->sub[j->text->facts[i].subprog];
				if (callee->depth > j->sub[s].depth)
					continue;
				callee->depth = j->sub[s].depth + 1;
				if (callee->depth > PROG_MAX_FRAMES)
					return jit_refuse(j, i, "more than 8 frames", "");
				moved = true;
			}
		}
	}
	return 0;
}

static int analyze(struct jit *j)
{
	const struct prog *text = j->text;
	u32 n = text->nr_insns, subs = text->nr_subprogs, s;
	int err;

	j->scratch = calloc(1, (u64)n * sizeof(*j->insn) + subs * sizeof(*j->sub));
	if (!j->scratch)
		return -ENOMEM;
	j->sub = j->scratch;
	j->insn = (struct jit_insn *)(j->sub + subs);
	for (s = 0; s < subs; s++) {
		j->sub[s].start = text->subprogs[s].start;
		j->sub[s].end = s + 1 < subs ? text->subprogs[s + 1].start : n;
		if (j->sub[s].start > j->sub[s].end || j->sub[s].end > n)
			return jit_refuse(j, j->sub[s].start, "functions are not in order", "");
	}
	j->bound = sizeof(struct jit_head) + 16;
	for (s = 0; s < subs; s++) {
		err = look_at_sub(j, &j->sub[s]);
		if (err)
			return err;
	}
	if (j->throws) {
		err = plan_throw(j);
		if (err)
			return err;
	}
	for (s = 0; s < subs; s++) {
		j->sub[s].bound = j->target->sub_bound(j, &j->sub[s]);
		j->bound += j->sub[s].bound;
	}
	return check_depth(j);
}

/* ---- memory, and the result ---- */

static int make_image(struct jit *j)
{
	u32 n = j->text->nr_insns, subs = j->text->nr_subprogs;

	j->image = calloc(1, sizeof(*j->image) + ((u64)n + subs) * sizeof(u32));
	if (!j->image)
		return -ENOMEM;
	j->image->insn_off = (u32 *)(j->image + 1);
	j->image->sub_off = j->image->insn_off + n;
	j->image->head.impl = &jit_impl;
	return 0;
}

static int make_lists(struct jit *j)
{
	char *p = malloc(j->max_refs * sizeof(*j->ref) + j->max_stubs * sizeof(*j->stub) + j->max_fixups * sizeof(*j->fixup) + 1);

	if (!p)
		return -ENOMEM;
	j->ref = (struct jit_ref *)p;
	j->stub = (struct jit_stub *)(j->ref + j->max_refs);
	j->fixup = (struct jit_fixup *)(j->stub + j->max_stubs);
	return 0;
}

static int emit(struct jit *j)
{
	int err;

	j->far = jit_knobs.far;
	err = j->target->emit(j);
	if (err == -ERANGE && !j->far) {
		j->far = true;
		j->nr_refs = j->nr_fixups = j->nr_stubs = 0;
		memset(j->image->insn_off, 0, j->text->nr_insns * sizeof(u32));
		err = j->target->emit(j);
	}
	return err;
}

/* Bytes its code may need, the table of faults included; 0: more than there can be. */
static u32 size_of_all(const struct jit *j)
{
	u64 size = j->bound + (u64)j->max_fixups * sizeof(*j->fixup);

	return size < U32_MAX / 4 ? (u32)size : 0;
}

static int emit_to_stay(struct jit *j)
{
	u32 size = size_of_all(j);
	int err = size ? jit_mem_alloc(size, &j->block) : -ENOMEM;

	if (err) {
		if (j->log)
			strbuf_puts(j->log, "no memory for its code\n");
		return err == -ENOMEM ? -ENOSPC : err;
	}
	j->code = j->block.rw + sizeof(struct jit_head);
	j->addr = (u64)j->block.rx + sizeof(struct jit_head);
	return emit(j);
}

static void publish(struct jit *j)
{
	struct jit_head *head = (struct jit_head *)j->block.rw;
	u32 fixups = (u32)align_up(sizeof(*head) + j->len, 4), used = fixups + j->nr_fixups * sizeof(*j->fixup);
	struct prog *prog = j->prog;
	u32 s;
	u64 at;

	/* emitters may write a little beyond what they count */
	memset(j->code + j->len, 0xcc, min_of((u32)16, (u32)(j->block.size - sizeof(*head) - j->len)));
	memcpy(j->block.rw + fixups, j->fixup, j->nr_fixups * sizeof(*j->fixup));
	head->len = used;
	head->fixups = fixups;
	head->nr_fixups = j->nr_fixups;
	__atomic_store_n(&head->magic, JIT_MAGIC, __ATOMIC_RELEASE);
	jit_mem_trim(&j->block, used);
	jit_mem_sync(&j->block);
	for (s = 0; s < j->text->nr_subprogs; s++) {
		if (!j->sub[s].thunk)
			continue;
		at = j->addr + j->sub[s].thunk;
		memcpy(&prog->funcs[s].call, &at, sizeof(at));
	}
	j->image->block = j->block;
	j->image->len = j->len;
	prog->image = j->image;
	memcpy(&prog->entry, &j->addr, sizeof(prog->entry));
	jit_perf_publish(prog, j->image);
}

static void image_free(struct prog *prog)
{
	struct jit_image *image = prog->image;

	if (!image)
		return;
	jit_mem_free(&image->block);
	free(image);
	prog->image = NULL;
}

static int compile(struct jit *j, int (*emit_somewhere)(struct jit *j))
{
	int err;

	j->table = table_of(j->target);
	err = analyze(j);
	if (!err)
		err = make_image(j);
	if (!err)
		err = make_lists(j);
	if (!err)
		err = emit_somewhere(j);
	return err;
}

static void scratch_free(struct jit *j)
{
	free(j->ref);
	free(j->scratch);
}

int jit_prepare(struct prog *prog, struct strbuf *log)
{
	struct jit j = { .target = jit_native, .prog = prog, .text = exec_text(prog), .log = log };
	int err = jit_available();

	if (err) {
		if (log)
			strbuf_printf(log, "no code memory on this system: %s\n", strerror(-err));
		return err;
	}
	err = exec_make_funcs(prog, j.text->nr_subprogs);
	if (!err)
		err = compile(&j, emit_to_stay);
	if (!err) {
		publish(&j);
		prog->image_free = image_free;
	} else {
		jit_mem_free(&j.block);
		free(j.image);
	}
	scratch_free(&j);
	return err;
}

static void tell(const struct jit_image *image, const struct prog *text, const char *arch, const u8 *code,
		 struct exec_jit_info *ret_info)
{
	*ret_info = (struct exec_jit_info){
		.arch = arch,
		.code = code,
		.len = image->len,
		.text = text,
		.insn_off = image->insn_off,
		.sub_off = image->sub_off,
	};
}

void jit_info(const struct prog *prog, struct exec_jit_info *ret_info)
{
	const struct jit_image *image = prog->image;

	tell(image, exec_text(prog), jit_native->arch, image->block.rx + sizeof(struct jit_head), ret_info);
}

/* ---- for another machine ---- */

/* Behind the image, which is what the caller frees. It will not run, but is aimed as if it ran where code of here does. */
static int emit_to_show(struct jit *j)
{
	u32 size = size_of_all(j), head = sizeof(*j->image) + (j->text->nr_insns + j->text->nr_subprogs) * sizeof(u32);
	struct jit_image *image = size ? realloc(j->image, (u64)head + size) : NULL;

	if (!image)
		return -ENOMEM;
	image->insn_off = (u32 *)(image + 1);
	image->sub_off = image->insn_off + j->text->nr_insns;
	j->image = image;
	j->code = (u8 *)image + head;
	j->addr = (u64)jit_prepare & ~(u64)(JIT_GRANULE - 1);
	return emit(j);
}

int jit_show(const struct prog *prog, const char *arch, struct exec_jit_info *ret_info, void **ret_mem, struct strbuf *log)
{
	/* only publishing changes the program */
	struct jit j = { .prog = (struct prog *)prog, .text = exec_text(prog), .log = log };
	u32 i;
	int err;

	for (i = 0; i < ARRAY_SIZE(targets); i++)
		if (!strcmp(targets[i]->arch, arch))
			j.target = targets[i];
	if (!j.target)
		return -ENOENT;
	err = compile(&j, emit_to_show);
	if (!err) {
		j.image->len = j.len;
		tell(j.image, j.text, j.target->arch, j.code, ret_info);
		*ret_mem = j.image;
	} else {
		free(j.image);
	}
	scratch_free(&j);
	return err;
}
