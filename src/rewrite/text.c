// SPDX-License-Identifier: BSD-2-Clause
// Code being made for an edit: instructions, each with its fact.
#include <stdlib.h>
#include <string.h>

#include "rewrite/rewrite_int.h"

static bool grow(struct rw_text *t)
{
	u32 cap = t->cap ? 2 * t->cap : 64;
	void *p;

	p = reallocarray(t->insns, cap, sizeof(*t->insns));
	if (!p)
		return false;
	t->insns = p;
	p = reallocarray(t->facts, cap, sizeof(*t->facts));
	if (!p)
		return false;
	t->facts = p;
	p = reallocarray(t->from, cap, sizeof(*t->from));
	if (!p)
		return false;
	t->from = p;
	t->cap = cap;
	return true;
}

u32 rw_text_add(struct rw_text *t, struct bpf_insn insn, const struct insn_fact *fact, u32 orig, u32 from)
{
	u8 class = BPF_CLASS(insn.code);
	bool memory = class == BPF_STX || class == BPF_ST || (class == BPF_LDX && BPF_MODE(insn.code) != ISA_TLS_MEM);

	if (t->failed || (t->nr == t->cap && !grow(t))) {
		t->failed = true;
		return 0;
	}
	t->insns[t->nr] = insn;
	t->facts[t->nr] = fact ? *fact : (struct insn_fact){ .seen = 1, .jump_taken = 1, .jump_fallen = 1, .orig = orig };
	if (!fact && memory)
		t->facts[t->nr].mem = INSN_MEM_PLAIN;
	t->from[t->nr] = from;
	return t->nr++;
}

void rw_text_land(struct rw_text *t, u32 jump)
{
	if (!t->failed)
		t->insns[jump].off = (s16)(t->nr - jump - 1);
}

void rw_text_fini(struct rw_text *t)
{
	free(t->insns);
	free(t->facts);
	free(t->from);
	memset(t, 0, sizeof(*t));
}

void rw_edit_text(struct rw_edits *e, u32 pc, u32 nr_old, const struct rw_text *t)
{
	if (t->failed)
		e->failed = true;
	else
		rw_edit_told(e, pc, nr_old, t->insns, t->facts, t->from, t->nr);
}
