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

	if (prog && (rw_xlate(prog, &log) || exec_prepare(prog, &log))) {
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
