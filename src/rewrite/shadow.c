// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is shown and what runs part here. The shown text goes on to be what Linux makes of the program; what runs is a
 * shadow with a text and tables of its own, lowered for the engine. What the shadow shares with its program it does not
 * own: it lives and dies with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite/rewrite_int.h"

static void *copy(const void *from, size_t nr, size_t size)
{
	void *to = malloc(nr * size + 1);

	if (to && nr)
		memcpy(to, from, nr * size);
	return to;
}

static void shadow_free(struct prog *shadow)
{
	if (!shadow)
		return;
	free(shadow->insns);
	free(shadow->facts);
	free(shadow->subprogs);
	free(shadow->func_info);
	free(shadow->line_info);
	free(shadow->inlined);
	free(shadow);
}

void rw_lowered_free(struct prog *prog)
{
	shadow_free(prog->lowered);
	prog->lowered = NULL;
}

/*
 * Functions nobody calls are gone, but Linux's text still loads the address one would have, as an argument that is not
 * looked at. What runs has a number there.
 */
static void forget_gone(struct prog *shadow)
{
	u32 pc;

	for (pc = 0; pc < shadow->nr_insns; pc += isa_slots(shadow->insns[pc].code)) {
		struct bpf_insn *insn = &shadow->insns[pc];

		if (isa_decode(insn) != ISA_LD_FUNC || shadow->facts[pc].subprog != PROG_NO_SUBPROG)
			continue;
		*insn = isa_encode(ISA_LD_IMM64, insn->dst_reg, 0, 0, 0);
		isa_set_imm64(insn, 0);
		shadow->facts[pc].imm64 = 0;
	}
}

static struct prog *split(const struct prog *prog)
{
	struct prog *shadow = copy(prog, 1, sizeof(*prog));

	if (!shadow)
		return NULL;
	shadow->lowered = NULL;
	shadow->lowered_free = NULL;
	shadow->inlined = NULL;
	shadow->nr_inlined = 0;
	shadow->insns = copy(prog->insns, prog->nr_insns, sizeof(*prog->insns));
	shadow->facts = copy(prog->facts, prog->nr_insns, sizeof(*prog->facts));
	shadow->subprogs = copy(prog->subprogs, prog->nr_subprogs, sizeof(*prog->subprogs));
	shadow->func_info = copy(prog->func_info, prog->nr_func_info, sizeof(*prog->func_info));
	shadow->line_info = copy(prog->line_info, prog->nr_line_info, sizeof(*prog->line_info));
	if (shadow->insns && shadow->facts && shadow->subprogs && shadow->func_info && shadow->line_info) {
		forget_gone(shadow);
		return shadow;
	}
	shadow_free(shadow);
	return NULL;
}

int rw_note(struct prog *prog, const struct insn_fact *call, bool done, const char *what)
{
	struct prog_inlined *v = prog->inlined;

	if (!(prog->nr_inlined & (prog->nr_inlined - 1))) /* room doubles at each power of two */
		v = reallocarray(v, prog->nr_inlined ? 2 * prog->nr_inlined : 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	prog->inlined = v;
	v[prog->nr_inlined++] = (struct prog_inlined){ call->orig, call->helper, done, what };
	return 0;
}

typedef int (*pass_fn)(struct prog *prog, const struct caps *caps, struct strbuf *log);

enum stage { BOTH, XLATED, LOWERED };

static int run_stage(enum stage stage, struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	static const struct {
		enum stage stage;
		pass_fn fn;
	} passes[] = {
#define PASS(stage_, name, ...) { stage_, rw_pass_##name },
#include "rewrite/passes.def"
#undef PASS
	};
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(passes); i++) {
		err = passes[i].stage == stage ? passes[i].fn(prog, caps, log) : 0;
		if (err)
			return err;
	}
	return 0;
}

static const struct caps no_caps = { .name = "none" };

/* An interpreter calls with r1..r5 in memory: no call of it loses them, so spills of bpf_fastcall can always go. */
static const struct caps keeps_args = { .name = "interp", .can = ~0u };

int rw_xlate(struct prog *prog, struct strbuf *log)
{
	return run_stage(BOTH, prog, &no_caps, log);
}

int rw_lower_run(struct prog *prog, const struct caps *caps)
{
	struct prog *shadow = split(prog);

	caps = caps ? caps : &no_caps;
	if (!shadow)
		return -ENOMEM;
	if (caps->can && run_stage(LOWERED, shadow, caps, NULL)) {
		shadow_free(shadow);
		shadow = split(prog);
		if (!shadow)
			return -ENOMEM;
	}
	if (!caps->can && rw_pass_linux_spills(shadow, &keeps_args, NULL)) {
		shadow_free(shadow);
		return -ENOMEM;
	}
	rw_lowered_free(prog);
	prog->lowered = shadow;
	prog->lowered_free = rw_lowered_free;
	return 0;
}

int rw_lower(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	int err = rw_lower_run(prog, caps);

	return err ? err : run_stage(XLATED, prog, caps ? caps : &no_caps, log);
}
