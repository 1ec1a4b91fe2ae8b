/* SPDX-License-Identifier: BSD-2-Clause */
/* A program from text, without engine or verifier: assembled, assumed, rewritten, made executable. */
#ifndef INLAY_TESTS_EXEC_BARE_H
#define INLAY_TESTS_EXEC_BARE_H

#include <string.h>

#include "exec/exec.h"
#include "isa/asm.h"
#include "object/helper.h"
#include "object/prog.h"
#include "rewrite/rewrite.h"
#include "tap.h"

/* Which engine bare_prog() uses; EXEC_AUTO: the compiler where there is one. */
__attribute__((unused)) static enum exec_engine bare_engine = EXEC_AUTO;

static void bare_free(struct prog *prog)
{
	if (prog->image_free)
		prog->image_free(prog);
	free(prog->funcs);
	free(prog->insns);
	free(prog->facts);
	free(prog->subprogs);
	free(prog->line_info);
	free(prog->func_info);
	free(prog);
}

/* From instructions, with facts that know nothing but helpers by number; functions begin at subs[]. Not rewritten. */
__attribute__((unused)) static struct prog *bare_insns(const struct bpf_insn *insns, u32 n, const u32 *subs, u32 nr_subs)
{
	struct prog *prog = calloc(1, sizeof(*prog));
	u32 i, s;

	prog->insns = calloc(n, sizeof(*prog->insns));
	prog->facts = calloc(n, sizeof(*prog->facts));
	prog->subprogs = calloc(nr_subs + 1, sizeof(*prog->subprogs));
	prog->nr_insns = n;
	prog->nr_subprogs = nr_subs + 1;
	memcpy(prog->insns, insns, n * sizeof(*insns));
	for (i = 0; i <= nr_subs; i++)
		prog->subprogs[i] = (struct prog_subprog){ .start = i ? subs[i - 1] : 0, .stack_depth = PROG_STACK,
							   .reads_stale = true, .func_info = -1 };
	for (i = 0; i < n; i++) {
		const struct bpf_insn *insn = &insns[i];

		prog->facts[i] = (struct insn_fact){ .seen = 1, .orig = i };
		if (isa_slots(insn->code) == 2 && !insn->src_reg)
			prog->facts[i].imm64 = isa_imm64(insn);
		if (insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg)
			prog->facts[i].helper = helper_by_id(insn->imm);
		if ((insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL) ||
		    (isa_slots(insn->code) == 2 && insn->src_reg == BPF_PSEUDO_FUNC))
			for (s = 0; s <= nr_subs; s++)
				if (prog->subprogs[s].start == i + 1 + insn->imm)
					prog->facts[i].subprog = s;
		i += isa_slots(insn->code) - 1;
	}
	return prog;
}

/* Assembled, with facts; not rewritten. NULL, said in a comment, if the text is wrong. */
__attribute__((unused)) static struct prog *bare_assemble(const char *text)
{
	struct prog *prog = calloc(1, sizeof(*prog));
	struct strbuf log = STRBUF_INIT;
	struct isa_code code = { 0 };
	int err;

	err = isa_assemble(text, NULL, &code, &log);
	if (!err) {
		prog->insns = calloc(code.len + 1, sizeof(*prog->insns));
		prog->nr_insns = code.len;
		memcpy(prog->insns, code.insns, code.len * sizeof(*prog->insns));
		isa_code_fini(&code);
		err = rw_assume(prog, &log);
	}
	if (err) {
		printf("# %.60s...: %s\n", text, strbuf_str(&log));
		bare_free(prog);
		prog = NULL;
	}
	strbuf_fini(&log);
	return prog;
}

/* Ready to run; NULL if not. */
__attribute__((unused)) static struct prog *bare_prog(const char *text)
{
	struct prog *prog = bare_assemble(text);
	struct strbuf log = STRBUF_INIT;

	if (prog && (rw_xlate(prog, &log) || exec_prepare_as(prog, bare_engine, &log))) {
		printf("# %.60s...: %s\n", text, strbuf_str(&log));
		bare_free(prog);
		prog = NULL;
	}
	strbuf_fini(&log);
	return prog;
}

/* Runs a text once: r0, or a number no test expects if it does not even load. */
__attribute__((unused)) static u64 bare_run(const char *text, void *ctx)
{
	struct prog *prog = bare_prog(text);
	u64 ret;

	if (!prog)
		return 0xdeadbadc0de;
	ret = prog->entry(prog, ctx);
	bare_free(prog);
	return ret;
}

#endif
