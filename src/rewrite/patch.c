// SPDX-License-Identifier: BSD-2-Clause
/*
 * The one place where instructions move.
 *
 * Edits say which slots become which; one sweep copies the program around them and remembers where each old slot went
 * (map[old] = new; removed slots map to what follows them). Whatever names an instruction by position is then renamed
 * through that map: jumps, calls and function loads by their old targets, subprogram starts, function and line tables.
 * The new program is built beside the old, which is replaced only when all has succeeded.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite/rewrite_int.h"

struct patch {
	struct prog *prog;
	struct strbuf *log;
	u32 nr;			/* slots of the new program */
	struct bpf_insn *insns; /* new */
	struct insn_fact *facts;
	u32 *from; /* per new slot: old slot whose target it keeps, or RW_OWN */
	u32 *map;  /* per old slot and one beyond: new slot */
	u8 *inner; /* per old slot: 1 inside an edit that leaves something, where no jump may lead */
};

void rw_edit(struct rw_edits *e, u32 pc, u32 nr_old, const struct bpf_insn *insns, u32 nr_new, s32 main)
{
	void *p;

	if (e->failed)
		return;
	if (e->nr == e->cap) {
		p = reallocarray(e->v, e->cap ? e->cap * 2 : 64, sizeof(*e->v));
		if (!p)
			goto failed;
		e->v = p;
		e->cap = e->cap ? e->cap * 2 : 64;
	}
	while (e->nr_pool + nr_new > e->cap_pool) {
		p = reallocarray(e->pool, e->cap_pool ? e->cap_pool * 2 : 64, sizeof(*e->pool));
		if (!p)
			goto failed;
		e->pool = p;
		e->cap_pool = e->cap_pool ? e->cap_pool * 2 : 64;
	}
	e->v[e->nr++] = (struct rw_edit){ pc, nr_old, nr_new, e->nr_pool, main, U32_MAX };
	if (nr_new)
		memcpy(e->pool + e->nr_pool, insns, nr_new * sizeof(*insns));
	e->nr_pool += nr_new;
	return;
failed:
	e->failed = true;
}

static bool grow_told(struct rw_edits *e, u32 n)
{
	u32 cap = max_of(e->cap_told * 2, e->nr_told + n);
	void *p;

	if (e->nr_told + n <= e->cap_told)
		return true;
	p = reallocarray(e->facts, cap, sizeof(*e->facts));
	if (!p)
		return false;
	e->facts = p;
	p = reallocarray(e->from, cap, sizeof(*e->from));
	if (!p)
		return false;
	e->from = p;
	e->cap_told = cap;
	return true;
}

void rw_edit_told(struct rw_edits *e, u32 pc, u32 nr_old, const struct bpf_insn *insns, const struct insn_fact *facts,
		  const u32 *from, u32 nr_new)
{
	rw_edit(e, pc, nr_old, insns, nr_new, RW_NO_MAIN);
	if (e->failed || !nr_new)
		return;
	if (!grow_told(e, nr_new)) {
		e->failed = true;
		return;
	}
	e->v[e->nr - 1].told = e->nr_told;
	memcpy(e->facts + e->nr_told, facts, nr_new * sizeof(*facts));
	memcpy(e->from + e->nr_told, from, nr_new * sizeof(*from));
	e->nr_told += nr_new;
}

void rw_edits_drop(struct rw_edits *e)
{
	free(e->v);
	free(e->pool);
	free(e->facts);
	free(e->from);
	memset(e, 0, sizeof(*e));
}

static int patch_alloc(struct patch *p, const struct rw_edits *e)
{
	struct prog *prog = p->prog;
	u32 i, n = prog->nr_insns;

	for (i = 0; i < e->nr; i++)
		n += e->v[i].nr_new - e->v[i].nr_old;
	p->nr = n;
	p->insns = calloc(n + 1, sizeof(*p->insns));
	p->facts = calloc(n + 1, sizeof(*p->facts));
	p->from = calloc(n + 1, sizeof(*p->from));
	p->map = calloc(prog->nr_insns + 1, sizeof(*p->map));
	p->inner = calloc(prog->nr_insns + 1, 1);
	return p->insns && p->facts && p->from && p->map && p->inner ? 0 : -ENOMEM;
}

static void patch_free(struct patch *p)
{
	free(p->insns);
	free(p->facts);
	free(p->from);
	free(p->map);
	free(p->inner);
}

/* Lays one edit's instructions down at new slot at. */
static void copy_edit(struct patch *p, const struct rw_edits *e, const struct rw_edit *ed, u32 at)
{
	const struct insn_fact *old = &p->prog->facts[ed->pc];
	u32 i;

	for (i = 0; i < ed->nr_new; i++) {
		p->insns[at + i] = e->pool[ed->first + i];
		if (ed->told != U32_MAX) {
			p->facts[at + i] = e->facts[ed->told + i];
			p->from[at + i] = e->from[ed->told + i];
		} else if ((s32)i == ed->main) {
			p->facts[at + i] = *old;
			p->from[at + i] = ed->pc;
		} else {
			p->facts[at + i] = (struct insn_fact){ .seen = 1, .orig = old->orig };
			p->from[at + i] = RW_OWN;
		}
	}
	for (i = 0; i < ed->nr_old; i++) {
		p->map[ed->pc + i] = at;
		p->inner[ed->pc + i] = i && ed->nr_new;
	}
}

static void copy_all(struct patch *p, const struct rw_edits *e)
{
	struct prog *prog = p->prog;
	u32 pc = 0, at = 0, k = 0;

	while (pc < prog->nr_insns) {
		if (k < e->nr && e->v[k].pc == pc) {
			copy_edit(p, e, &e->v[k], at);
			at += e->v[k].nr_new;
			pc += e->v[k++].nr_old;
			continue;
		}
		p->insns[at] = prog->insns[pc];
		p->facts[at] = prog->facts[pc];
		p->from[at] = pc;
		p->map[pc++] = at++;
	}
	p->map[pc] = at;
}

static int out_of_reach(struct patch *p, u32 at)
{
	if (p->log)
		strbuf_printf(p->log, "insn %u cannot be patched due to 16-bit range\n", at);
	return -ERANGE;
}

/* Points one carried-over instruction at where its old target went. */
static int redirect(struct patch *p, u32 at)
{
	const struct bpf_insn *old = &p->prog->insns[p->from[at]];
	struct bpf_insn *insn = &p->insns[at];
	s32 dist, ignored;
	s64 target;

	/* second slots of constants have opcode 0, which is no jump; main may be another instruction than its old one */
	if (!rw_distance(old, &dist) || !rw_distance(insn, &ignored))
		return 0;
	target = (s64)p->from[at] + 1 + dist;
	if (target < 0 || target > p->prog->nr_insns || p->inner[target])
		return -EFAULT;
	dist = (s32)(p->map[target] - at - 1);
	if (insn->code == (BPF_JMP | BPF_CALL) || insn->code == (BPF_LD | BPF_IMM | BPF_DW) ||
	    insn->code == (BPF_JMP32 | BPF_JA)) {
		insn->imm = dist;
		return 0;
	}
	if (dist >= SHRT_MIN && dist <= SHRT_MAX) {
		insn->off = dist;
		return 0;
	}
	if (insn->code != (BPF_JMP | BPF_JA))
		return out_of_reach(p, p->from[at]);
	*insn = isa_encode(ISA_JA32, 0, 0, 0, dist);
	return 0;
}

static int redirect_all(struct patch *p)
{
	u32 at;
	int err;

	for (at = 0; at < p->nr; at++) {
		err = p->from[at] == RW_OWN ? 0 : redirect(p, at);
		if (err)
			return err;
	}
	return 0;
}

/* Subprograms that lost all their instructions go; gone and kept ones are renumbered, -1 (PROG_NO_SUBPROG) for gone. */
static int fix_subprogs(struct patch *p)
{
	struct prog *prog = p->prog;
	s32 *sub_map, *info_map;
	u32 i, n = 0, nf = 0, start, end;

	sub_map = calloc(prog->nr_subprogs + 1, sizeof(*sub_map));
	info_map = calloc(prog->nr_func_info + 1, sizeof(*info_map));
	if (!sub_map || !info_map) {
		free(sub_map);
		free(info_map);
		return -ENOMEM;
	}
	for (i = 0; i < prog->nr_func_info; i++)
		info_map[i] = i;
	for (i = 0; i < prog->nr_subprogs; i++) {
		start = p->map[prog->subprogs[i].start];
		end = i + 1 < prog->nr_subprogs ? p->map[prog->subprogs[i + 1].start] : p->nr;
		sub_map[i] = start < end || !i ? (s32)n++ : -1;
		if (sub_map[i] < 0 && prog->subprogs[i].func_info >= 0)
			info_map[prog->subprogs[i].func_info] = -1;
	}
	for (i = 0; i < prog->nr_func_info; i++) {
		if (info_map[i] < 0)
			continue;
		info_map[i] = nf;
		prog->func_info[nf] = prog->func_info[i];
		prog->func_info[nf++].insn_off = p->map[min_of(prog->func_info[i].insn_off, prog->nr_insns)];
	}
	prog->nr_func_info = nf;
	for (i = 0; i < prog->nr_subprogs; i++) {
		struct prog_subprog *sub = &prog->subprogs[i];

		if (sub_map[i] < 0)
			continue;
		sub->start = p->map[sub->start];
		if (sub->func_info >= 0)
			sub->func_info = info_map[sub->func_info];
		prog->subprogs[sub_map[i]] = *sub;
	}
	for (i = 0; i < p->nr; i++)
		if (p->facts[i].subprog < prog->nr_subprogs)
			p->facts[i].subprog = sub_map[p->facts[i].subprog];
	prog->nr_subprogs = n;
	free(sub_map);
	free(info_map);
	return 0;
}

/* Of several lines that now begin at one instruction the last one describes it; those past the end describe nothing. */
static void fix_lines(struct patch *p)
{
	struct prog *prog = p->prog;
	u32 i, n = 0, at;

	for (i = 0; i < prog->nr_line_info; i++) {
		at = p->map[min_of(prog->line_info[i].insn_off, prog->nr_insns)];
		if (at >= p->nr)
			continue;
		if (n && prog->line_info[n - 1].insn_off == at)
			n--;
		prog->line_info[n] = prog->line_info[i];
		prog->line_info[n++].insn_off = at;
	}
	prog->nr_line_info = n;
}

int rw_patch(struct prog *prog, struct rw_edits *e, struct strbuf *log)
{
	struct patch p = { .prog = prog, .log = log };
	int err = e->failed ? -ENOMEM : 0;

	if (err || !e->nr)
		goto out;
	err = patch_alloc(&p, e);
	if (err)
		goto out;
	copy_all(&p, e);
	err = redirect_all(&p);
	if (!err)
		err = fix_subprogs(&p);
	if (err)
		goto out;
	fix_lines(&p);
	free(prog->insns);
	free(prog->facts);
	prog->insns = p.insns;
	prog->facts = p.facts;
	prog->nr_insns = p.nr;
	p.insns = NULL;
	p.facts = NULL;
out:
	patch_free(&p);
	rw_edits_drop(e);
	return err;
}
