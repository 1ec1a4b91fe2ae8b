// SPDX-License-Identifier: BSD-2-Clause
/*
 * `inlay dump`: a program at the stages it goes through, each instruction below the source line it
 * came from.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "cli.h"
#include "dump.h"
#include "dump_elf.h"
#include "dump_syms.h"
#include "isa/disasm.h"
#include "json.h"
#include "object.h"
#include "object/helper.h"
#include "object/instance.h"
#include "object/prog.h"

static const struct cli_option dump_options[] = {
	{ 0, "json", NULL, cli_set_flag, offsetof(struct dump_opts, json),
	  "print JSON, an object a function" },
	{ 0, "arch", "x86_64|arm64", cli_set_str, offsetof(struct dump_opts, arch),
	  "jited: what the compiler of this machine makes of it, whichever machine this is" },
	{ 0, "raw", "FILE", cli_set_str, offsetof(struct dump_opts, raw),
	  "jited: write the machine code itself to FILE ('-': standard output), print nothing" },
	{},
};

/* ---- bytecode: what the file holds ---- */

struct bytecode {
	const struct elf_bpf *elf;
	const struct elf_func *func;
	struct elf_line *lines;
	int nr_lines;
};

static u32 place(const struct bytecode *b, const struct bpf_insn *insn)
{
	return b->func->off + (insn - b->func->insns) * sizeof(*insn);
}

static bool bytecode_call(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	const struct bytecode *b = ctx;
	const Elf64_Sym *sym;
	const char *name = elf_bpf_reloc(b->elf, b->func->sec, place(b, insn), &sym);

	if (insn->src_reg == BPF_PSEUDO_CALL) {
		/*
		 * against the section: the immediate says where in it, in instructions from the
		 * next one
		 */
		if (name && ELF64_ST_TYPE(sym->st_info) == STT_SECTION) {
			const struct elf_func *f = elf_bpf_func_at(b->elf, sym->st_shndx,
								   (insn->imm + 1) * sizeof(*insn));

			name = f ? f->name : name;
		}
		if (!name)
			return false;
		snprintf(buf, n, " %s", name);
		return true;
	}
	if (insn->src_reg == BPF_PSEUDO_KFUNC_CALL) {
		if (name)
			snprintf(buf, n, "%s", name);
		return name != NULL;
	}
	snprintf(buf, n, "%s", helper_name(insn->imm));
	return true;
}

static bool bytecode_imm64(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	const struct bytecode *b = ctx;
	const Elf64_Sym *sym;
	const char *name = elf_bpf_reloc(b->elf, b->func->sec, place(b, insn), &sym), *section;
	const struct elf_func *f;

	if (!name)
		return false;
	section = elf_bpf_section(b->elf, sym->st_shndx);
	if (sym->st_shndx != SHN_UNDEF && sym->st_shndx < b->elf->eh->e_shnum &&
	    (!strcmp(section, ".maps") || !strcmp(section, "maps")))
		snprintf(buf, n, "map[%s]", name);
	else if (ELF64_ST_TYPE(sym->st_info) != STT_SECTION)
		snprintf(buf, n, "&%s", name);
	else if ((f = elf_bpf_func_at(b->elf, sym->st_shndx, insn->imm)))
		snprintf(buf, n, "&%s", f->name);
	else
		snprintf(buf, n, "&%s+%d", name, insn->imm);
	return true;
}

static const char *bytecode_source(const struct dump_listing *l, u32 i)
{
	const struct bytecode *b = l->priv;
	struct strbuf *line = (struct strbuf *)&l->line;
	u32 off = b->func->off + i * sizeof(struct bpf_insn);

	for (int k = 0; k < b->nr_lines; k++) {
		const struct elf_line *e = &b->lines[k];
		const char *slash = strrchr(e->file, '/');

		if (e->off != off)
			continue;
		strbuf_reset(line);
		strbuf_printf(line, "%s @ %s:%u", e->text + strspn(e->text, " \t"),
			      slash ? slash + 1 : e->file, e->line);
		return strbuf_str(line);
	}
	return NULL;
}

static int dump_bytecode(const struct dump_opts *o, const struct cli_object *obj, const char *prog)
{
	struct elf_bpf elf;
	u32 shown = 0;
	int rc = elf_bpf_open(obj->data, obj->size, &elf);

	if (rc)
		return cli_fail("%s: %s", obj->path,
				rc == -EINVAL ? "no symbols in it" : cli_strerror(rc));
	for (u32 i = 0; i < elf.nr_func; i++) {
		struct bytecode b = { .elf = &elf, .func = &elf.func[i] };
		struct dump_listing l = {
			.name = b.func->name,
			.section = b.func->section,
			.insns = b.func->insns,
			.nr = b.func->nr_insns,
			.names = { &b, bytecode_call, bytecode_imm64 },
			.source = bytecode_source,
			.priv = &b,
		};

		if (prog && strcmp(prog, b.func->name))
			continue;
		b.nr_lines = elf_bpf_lines(&elf, b.func->sec, &b.lines);
		dump_print(o->json, &l);
		free(b.lines);
		strbuf_fini(&l.line);
		shown++;
	}
	elf_bpf_close(&elf);
	if (!shown)
		return prog ? cli_fail("%s: no program %s in it", obj->path, prog) :
			      cli_fail("%s: no programs in it", obj->path);
	return CLI_OK;
}

/* ---- xlated: what the engine made of it ---- */

struct xlated {
	struct bpf_prog_info info;
	struct bpf_insn *insns;
	struct bpf_line_info *lines;
	struct bpf_func_info *funcs;
	const struct btf *btf; /* of the object */
	const struct cli_engine *engine;
	struct dump_syms *syms;
};

static bool xlated_call(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	const struct xlated *x = ctx;

	if (insn->src_reg == BPF_PSEUDO_CALL) {
		snprintf(buf, n, "%+d", insn->off);
		return true;
	}
	if (x->engine->inlay && insn->src_reg == 0) {
		snprintf(buf, n, "%s", helper_name(insn->imm));
		return true;
	}
	return dump_syms_call(x->syms, insn->imm, buf, n);
}

static bool xlated_imm64(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	switch (insn->src_reg) {
	case BPF_PSEUDO_MAP_FD:
		snprintf(buf, n, "map[id:%d]", insn->imm);
		return true;
	case BPF_PSEUDO_MAP_VALUE:
		snprintf(buf, n, "map[id:%d][0]+%d", insn->imm, insn[1].imm);
		return true;
	case BPF_PSEUDO_FUNC:
		snprintf(buf, n, "subprog[%+d]", insn->imm);
		return true;
	}
	return false;
}

static const char *xlated_source(const struct dump_listing *l, u32 i)
{
	const struct xlated *x = l->priv;
	struct strbuf *line = (struct strbuf *)&l->line;

	for (u32 k = 0; k < x->info.nr_line_info; k++) {
		const struct bpf_line_info *e = &x->lines[k];

		if (e->insn_off == l->first + i)
			return dump_source(x->btf, e->line_off, e->file_name_off, e->line_col, line);
	}
	return NULL;
}

static int read_xlated(int fd, struct xlated *x)
{
	struct bpf_prog_info size = {};
	u32 len = sizeof(size);
	int rc = bpf_obj_get_info_by_fd(fd, &size, &len);

	if (rc)
		return rc;
	x->insns = calloc(size.xlated_prog_len ? size.xlated_prog_len : 8, 1);
	x->lines = calloc(size.nr_line_info + 1, sizeof(*x->lines));
	x->funcs = calloc(size.nr_func_info + 1, sizeof(*x->funcs));
	if (!x->insns || !x->lines || !x->funcs)
		return -ENOMEM;
	x->info.xlated_prog_len = size.xlated_prog_len;
	x->info.xlated_prog_insns = (uintptr_t)x->insns;
	x->info.nr_line_info = size.nr_line_info;
	x->info.line_info_rec_size = sizeof(*x->lines);
	x->info.line_info = (uintptr_t)x->lines;
	x->info.nr_func_info = size.nr_func_info;
	x->info.func_info_rec_size = sizeof(*x->funcs);
	x->info.func_info = (uintptr_t)x->funcs;
	len = sizeof(x->info);
	rc = bpf_obj_get_info_by_fd(fd, &x->info, &len);
	if (!rc && !x->info.xlated_prog_insns)
		rc = -EPERM; /* the kernel shows instructions to the privileged only */
	return rc;
}

static const char *func_name(const struct xlated *x, u32 i, const char *prog)
{
	const struct btf_type *t =
		i < x->info.nr_func_info ? btf__type_by_id(x->btf, x->funcs[i].type_id) : NULL;
	const char *name = t ? btf__name_by_offset(x->btf, t->name_off) : NULL;

	return name ? name : prog;
}

/* Each function, from where it starts to where the next one does. */
static void print_xlated(const struct dump_opts *o, struct xlated *x, const char *prog)
{
	u32 nr = x->info.xlated_prog_len / sizeof(*x->insns),
	    funcs = max_of(x->info.nr_func_info, 1u);

	for (u32 i = 0; i < funcs; i++) {
		u32 from = x->info.nr_func_info ? x->funcs[i].insn_off : 0;
		u32 to = i + 1 < x->info.nr_func_info ? x->funcs[i + 1].insn_off : nr;
		struct dump_listing l = {
			.name = func_name(x, i, prog),
			.insns = x->insns + from,
			.nr = to - from,
			.first = from,
			.names = { x, xlated_call, xlated_imm64 },
			.source = xlated_source,
			.priv = x,
		};

		if (from > to || to > nr)
			continue;
		dump_print(o->json, &l);
		strbuf_fini(&l.line);
	}
}

/* ---- stages of a loaded program ---- */

typedef int (*stage_fn)(const struct dump_opts *o, struct cli_engine *engine, struct bpf_program *prog,
			const struct btf *btf);

static int show_xlated(const struct dump_opts *o, struct cli_engine *engine, struct bpf_program *prog,
		       const struct btf *btf)
{
	struct xlated x = { .engine = engine, .btf = btf };
	const char *name = bpf_program__name(prog);
	int rc;

	x.syms = engine->inlay ? NULL : dump_syms_open();
	rc = read_xlated(bpf_program__fd(prog), &x);
	if (rc)
		rc = cli_fail("%s: cannot read its instructions back: %s", name, cli_strerror(rc));
	else
		print_xlated(o, &x, name);
	dump_syms_close(x.syms);
	free(x.insns);
	free(x.lines);
	free(x.funcs);
	return rc;
}

/* What runs is at hand only in this process. */
static int show_run(const struct dump_opts *o, struct cli_engine *engine, struct bpf_program *prog, const struct btf *btf,
		    int (*show)(const struct dump_opts *o, const struct prog *prog, const struct btf *btf))
{
	struct obj *obj;
	int rc = engine->inlay->fds->get(engine->inlay, bpf_program__fd(prog), &obj);

	if (rc)
		return cli_fail("%s: %s", bpf_program__name(prog), cli_strerror(rc));
	rc = show(o, prog_of(obj), btf);
	obj_put(obj);
	return rc;
}

static int show_lowered(const struct dump_opts *o, struct cli_engine *engine, struct bpf_program *prog,
			const struct btf *btf)
{
	return show_run(o, engine, prog, btf, dump_lowered);
}

static int show_jited(const struct dump_opts *o, struct cli_engine *engine, struct bpf_program *prog,
		      const struct btf *btf)
{
	return show_run(o, engine, prog, btf, dump_jited);
}

static int dump_one(const struct dump_opts *o, stage_fn show, const struct cli_object *obj,
		    struct cli_engine *engine, size_t index, const char *name)
{
	struct bpf_object *open = NULL;
	struct bpf_program *prog;
	struct cli_verdict v;
	int rc = cli_object_judge(obj, engine, index, &v, &open, &prog);

	if (rc || v.err) {
		rc = cli_fail("%s: %s is refused: %s", obj->path, name,
			      rc	   ? cli_strerror(rc) :
			      v.reason.len ? strbuf_str(&v.reason) :
					     cli_strerror(v.err));
		cli_verdict_fini(&v);
		return rc;
	}
	cli_verdict_fini(&v);
	rc = show(o, engine, prog, bpf_object__btf(open));
	bpf_object__close(open);
	return rc;
}

static int dump_loaded(const struct dump_opts *o, const struct cli_globals *g, stage_fn show,
		       const struct cli_object *obj, const char *prog)
{
	struct strbuf err = STRBUF_INIT;
	struct bpf_object *open = NULL;
	struct cli_engine *engine;
	const char *name, *type;
	int status = cli_engine_create(g, "user", NULL, &engine), shown = 0;

	if (status)
		return status;
	if (!engine->inlay && show != show_xlated) {
		cli_engine_destroy(engine);
		return cli_usage(&cmd_dump, "the kernel engine shows bytecode and xlated only");
	}
	cli_engine_enter(engine);
	if (cli_object_open(obj, engine, &open, &err))
		status = cli_fail("%s", strbuf_str(&err));
	for (size_t i = 0; open && cli_object_program(open, i, &name, &type); i++) {
		if (prog && strcmp(prog, name))
			continue;
		status = max_of(status, dump_one(o, show, obj, engine, i, name));
		shown++;
	}
	if (open && !shown)
		status = prog ? cli_fail("%s: no program %s in it", obj->path, prog) :
				cli_fail("%s: no programs in it", obj->path);
	bpf_object__close(open);
	cli_engine_leave(engine);
	cli_engine_destroy(engine);
	strbuf_fini(&err);
	return status;
}

static const struct stage {
	const char *name;
	stage_fn show; /* NULL: of the file itself */
} stages[] = {
	{ "bytecode", NULL },
	{ "xlated", show_xlated },
	{ "lowered", show_lowered },
	{ "jited", show_jited },
	{},
};

static int run(const struct cli_globals *g, void *opts, int argc, char **argv)
{
	const char *prog = argc > 2 ? argv[2] : NULL;
	const struct dump_opts *o = opts;
	const struct stage *stage = stages;
	struct strbuf err = STRBUF_INIT;
	struct cli_object obj;
	int status;

	while (stage->name && strcmp(stage->name, argv[0]))
		stage++;
	if (!stage->name)
		return cli_usage(&cmd_dump, "'%s' is no stage: bytecode, xlated, lowered or jited", argv[0]);
	if (o->raw && (stage->show != show_jited || !prog))
		return cli_usage(&cmd_dump, "--raw is for one program's machine code: dump jited OBJ PROG");
	if (o->arch && stage->show != show_jited)
		return cli_usage(&cmd_dump, "--arch is for machine code: dump jited OBJ");
	if (o->arch && strcmp(o->arch, "x86_64") && strcmp(o->arch, "arm64"))
		return cli_usage(&cmd_dump, "'%s' is no machine: x86_64 or arm64", o->arch);
	if (cli_object_read(argv[1], &obj, &err)) {
		status = cli_fail("%s", strbuf_str(&err));
		strbuf_fini(&err);
		return status;
	}
	status = stage->show ? dump_loaded(o, g, stage->show, &obj, prog) : dump_bytecode(o, &obj, prog);
	cli_object_free(&obj);
	return status;
}

const struct cli_command cmd_dump = {
	.name = "dump",
	.args = "bytecode|xlated|lowered|jited OBJ [PROG]",
	.summary = "Print a program's instructions with their source lines",
	.text = "bytecode: as the object file holds it, with the names behind its\n"
		"relocations. xlated: as it is after verification, with Linux's own\n"
		"rewriting (or, with --engine kernel, as the running kernel has it).\n"
		"lowered: what is compiled, with inlay's own inlining. jited: the machine\n"
		"code, each piece under the instruction it is for.\n"
		"Without PROG: all of the object.",
	.options = dump_options,
	.opts_size = sizeof(struct dump_opts),
	.min_args = 2,
	.max_args = 3,
	.run = run,
};
