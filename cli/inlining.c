// SPDX-License-Identifier: BSD-2-Clause
/* What inlining made of each call of a helper, by the source line it stands in. */
#include "inlining.h"

#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "cli.h"
#include "dump.h"
#include "json.h"
#include "exec/exec.h"
#include "object/helper.h"
#include "object/instance.h"
#include "object/prog.h"

/* The source line of an instruction as it was loaded. */
static const char *source_of(const struct prog *prog, const struct btf *btf, u32 orig, struct strbuf *scratch)
{
	const struct prog_line *line = NULL;
	u32 pc, i;

	for (pc = 0; pc < prog->nr_insns && prog->facts[pc].orig != orig; pc++)
		;
	for (i = 0; i < prog->nr_line_info && prog->line_info[i].insn_off <= pc; i++)
		line = &prog->line_info[i];
	return line && pc < prog->nr_insns ?
		       dump_source(btf, line->line_off, line->file_name_off, line->line_col, scratch) :
		       NULL;
}

static void show_one(const char *name, const struct prog_inlined *in, const char *source, bool json)
{
	if (!json) {
		printf("%s: insn %u: %s: %s%s%s\n", name, in->orig, in->helper->name, in->what, source ? "; " : "",
		       source ? source : "");
		return;
	}
	printf("{\"prog\":");
	cli_json_str(stdout, name);
	printf(",\"insn\":%u,\"helper\":\"%s\",\"inlined\":%s,\"what\":", in->orig, in->helper->name,
	       in->done ? "true" : "false");
	cli_json_str(stdout, in->what);
	if (source) {
		printf(",\"source\":");
		cli_json_str(stdout, source);
	}
	puts("}");
}

/* A call in a function that was put in a loop is there twice; it is told once if the same was made of both. */
static bool told(const struct prog *text, u32 i)
{
	u32 k;

	for (k = 0; k < i; k++)
		if (text->inlined[k].orig == text->inlined[i].orig && !strcmp(text->inlined[k].what, text->inlined[i].what))
			return true;
	return false;
}

static void show_prog(const char *name, const struct prog *prog, const struct btf *btf, bool json)
{
	struct strbuf scratch = STRBUF_INIT;
	struct exec_jit_info jit;
	u32 i;

	if (prog->obj.inlay->interp && !json)
		printf("%s: interpreted, nothing is inlined\n", name);
	else if (exec_jit_info(prog, &jit) && !json)
		printf("%s: not compiled but interpreted\n", name);
	for (i = 0; prog->lowered && i < prog->lowered->nr_inlined; i++) {
		const struct prog_inlined *in = &prog->lowered->inlined[i];

		if (told(prog->lowered, i))
			continue;
		show_one(name, in, source_of(prog, btf, in->orig, &scratch), json);
	}
	strbuf_fini(&scratch);
}

int cli_inlining_show(struct cli_engine *engine, struct bpf_object *open, bool json)
{
	struct bpf_program *p;

	if (!engine->inlay)
		return cli_usage(&cmd_run, "--show-inlining is of the user engine");
	bpf_object__for_each_program(p, open)
	{
		struct obj *obj;

		if (bpf_program__fd(p) < 0 || engine->inlay->fds->get(engine->inlay, bpf_program__fd(p), &obj))
			continue;
		show_prog(bpf_program__name(p), prog_of(obj), bpf_object__btf(open), json);
		obj_put(obj);
	}
	return CLI_OK;
}
