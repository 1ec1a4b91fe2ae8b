// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stages of what runs: the lowered text, and the machine code with the instruction each piece of it is for.
 *
 * Machine code is listed in the order of addresses, in pieces: where an instruction's code, or a function, begins, the
 * piece before ends. Code out of the way (cold) so stands where it lies, under the instruction it belongs to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>

#include "cli.h"
#include "dump.h"
#include "exec/exec.h"
#include "file.h"
#include "json.h"
#include "object/helper.h"
#include "object/prog.h"

/* ---- lowered ---- */

struct lowered {
	const struct prog *text;
	const struct btf *btf;
};

static const char *func_name(const struct prog *text, u32 sub)
{
	const char *name = text->subprogs[sub].name;

	return name && *name ? name : sub ? "F" : text->name;
}

static bool lowered_call(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	const struct lowered *low = ctx;
	const struct insn_fact *fact = &low->text->facts[insn - low->text->insns];

	if (insn->src_reg == BPF_PSEUDO_KFUNC_CALL) {
		if (!fact->kfunc)
			return false;
		snprintf(buf, n, "%s", fact->kfunc->name);
		return true;
	}
	if (insn->src_reg == 0)
		snprintf(buf, n, "%s", helper_name(insn->imm));
	else
		snprintf(buf, n, "%+d <%s>", insn->imm,
			 fact->subprog < low->text->nr_subprogs ? func_name(low->text, fact->subprog) : "F");
	return true;
}

static bool lowered_imm64(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	const struct lowered *low = ctx;
	const struct insn_fact *fact = &low->text->facts[insn - low->text->insns];

	switch (insn->src_reg) {
	case BPF_PSEUDO_MAP_FD:
		snprintf(buf, n, "map[id:%d]", insn->imm);
		return true;
	case BPF_PSEUDO_MAP_VALUE:
		snprintf(buf, n, "map[id:%d][0]+%d", insn->imm, insn[1].imm);
		return true;
	case BPF_PSEUDO_FUNC:
		snprintf(buf, n, "&%s", fact->subprog < low->text->nr_subprogs ? func_name(low->text, fact->subprog) : "F");
		return true;
	}
	return false;
}

static const struct prog_line *line_at(const struct prog *text, u32 pc)
{
	u32 lo = 0, hi = text->nr_line_info;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (text->line_info[mid].insn_off < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < text->nr_line_info && text->line_info[lo].insn_off == pc ? &text->line_info[lo] : NULL;
}

static const char *source_at(const struct lowered *low, u32 pc, struct strbuf *scratch)
{
	const struct prog_line *line = line_at(low->text, pc);

	return line ? dump_source(low->btf, line->line_off, line->file_name_off, line->line_col, scratch) : NULL;
}

static const char *lowered_source(const struct dump_listing *l, u32 i)
{
	return source_at(l->priv, l->first + i, (struct strbuf *)&l->line);
}

static const char *lowered_note(const struct dump_listing *l, u32 i)
{
	const struct lowered *low = l->priv;
	const struct insn_fact *fact = &low->text->facts[l->first + i];

	if (fact->fn)
		return fact->cold ? "this map's own function, seldom reached" : "this map's own function";
	return fact->cold ? "seldom reached" : NULL;
}

static u32 sub_end(const struct prog *text, u32 sub)
{
	return sub + 1 < text->nr_subprogs ? text->subprogs[sub + 1].start : text->nr_insns;
}

int dump_lowered(const struct dump_opts *o, const struct prog *prog, const struct btf *btf)
{
	struct lowered low = { prog->lowered ? prog->lowered : prog, btf };
	u32 i;

	for (i = 0; i < low.text->nr_subprogs; i++) {
		u32 from = low.text->subprogs[i].start;
		struct dump_listing l = {
			.name = func_name(low.text, i),
			.insns = low.text->insns + from,
			.nr = sub_end(low.text, i) - from,
			.first = from,
			.names = { &low, lowered_call, lowered_imm64 },
			.source = lowered_source,
			.note = lowered_note,
			.priv = &low,
		};

		dump_print(o->json, &l);
		strbuf_fini(&l.line);
	}
	return CLI_OK;
}

/* ---- jited ---- */

/* Where a piece of the code begins: at an instruction's, or (insn U32_MAX) at a function's. */
struct piece {
	u32 at, insn, sub;
};

struct jited {
	struct lowered low;
	struct exec_jit_info info;
	struct piece *pieces;
	u32 nr;
	csh cs;
	bool json, first; /* first: no instruction of the function was printed yet */
};

static int by_place(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->insn == y->insn ? 0 : x->insn == U32_MAX ? -1 : y->insn == U32_MAX ? 1 : x->insn < y->insn ? -1 : 1;
}

static bool find_pieces(struct jited *j)
{
	const struct prog *text = j->info.text;
	u32 i;

	j->pieces = calloc(text->nr_insns + text->nr_subprogs + 1, sizeof(*j->pieces));
	if (!j->pieces)
		return false;
	for (i = 0; i < text->nr_subprogs; i++)
		j->pieces[j->nr++] = (struct piece){ j->info.sub_off[i], U32_MAX, i };
	for (i = 0; i < text->nr_insns; i++)
		if (j->info.insn_off[i])
			j->pieces[j->nr++] = (struct piece){ j->info.insn_off[i], i, 0 };
	qsort(j->pieces, j->nr, sizeof(*j->pieces), by_place);
	return true;
}

static void print_native(struct jited *j, u32 from, u32 to)
{
	const uint8_t *code = j->info.code + from;
	uint64_t addr = from;
	size_t left = to - from;
	u32 unit = !strcmp(j->info.arch, "x86_64") ? 1 : 4; /* of what the disassembler does not know */
	cs_insn *insn = cs_malloc(j->cs);
	bool comma = false;

	while (left) {
		bool good = insn && cs_disasm_iter(j->cs, &code, &left, &addr, insn);
		const uint8_t *bytes = good ? insn->bytes : code;
		u32 n = good ? insn->size : unit, at = good ? insn->address : addr, i;

		if (j->json)
			printf("%s{\"at\":%u,\"bytes\":\"", comma ? "," : "", at);
		else
			printf("%12x:  ", at);
		for (i = 0; i < n; i++)
			printf(j->json ? "%02x" : "%02x ", bytes[i]);
		if (j->json) {
			printf("\",\"text\":");
			printf(good ? "\"%s%s%s\"}" : "\".byte\"}", good ? insn->mnemonic : "", good && *insn->op_str ? " " : "",
			       good ? insn->op_str : "");
		} else {
			printf("%*s%s%s%s\n", (int)(3 * (10 - min_of(n, 10u))), "", good ? insn->mnemonic : ".byte",
			       good && *insn->op_str ? " " : "", good ? insn->op_str : "");
		}
		comma = true;
		if (!good) {
			code += unit;
			addr += unit;
			left -= unit;
		}
	}
	if (insn)
		cs_free(insn, 1);
}

static void print_func(struct jited *j, const struct piece *p, u32 end, u32 nr_before)
{
	if (!j->json) {
		printf("%s%s:\n", nr_before ? "\n" : "", func_name(j->low.text, p->sub));
		print_native(j, p->at, end);
		return;
	}
	if (nr_before)
		puts("]}");
	printf("{\"func\":");
	cli_json_str(stdout, func_name(j->low.text, p->sub));
	printf(",\"entry\":[");
	print_native(j, p->at, end);
	printf("],\"insns\":[");
	j->first = true;
}

static void print_insn(struct jited *j, const struct piece *p, u32 end)
{
	struct isa_names names = { &j->low, lowered_call, lowered_imm64 };
	struct strbuf scratch = STRBUF_INIT, text = STRBUF_INIT;
	const char *source = source_at(&j->low, p->insn, &scratch);

	isa_disasm(&text, &j->low.text->insns[p->insn], j->low.text->nr_insns - p->insn, &names);
	if (j->json) {
		printf("%s{\"off\":%u", j->first ? "" : ",", p->insn);
		if (source) {
			printf(",\"source\":");
			cli_json_str(stdout, source);
		}
		printf(",\"text\":");
		cli_json_str(stdout, strbuf_str(&text));
		printf(",\"native\":[");
		print_native(j, p->at, end);
		printf("]}");
		j->first = false;
	} else {
		if (source)
			printf("; %s\n", source);
		printf("%4u: %s\n", p->insn, strbuf_str(&text));
		print_native(j, p->at, end);
	}
	strbuf_fini(&scratch);
	strbuf_fini(&text);
}

static void print_pieces(struct jited *j)
{
	u32 i, funcs = 0;

	for (i = 0; i < j->nr; i++) {
		const struct piece *p = &j->pieces[i];
		u32 end = i + 1 < j->nr ? j->pieces[i + 1].at : j->info.len;

		if (p->insn == U32_MAX)
			print_func(j, p, end, funcs++);
		else
			print_insn(j, p, end);
	}
	puts(j->json && funcs ? "]}" : "");
}

static bool open_disassembler(const char *arch, csh *ret)
{
	bool x86 = !strcmp(arch, "x86_64");

	if (cs_open(x86 ? CS_ARCH_X86 : CS_ARCH_ARM64, x86 ? CS_MODE_64 : CS_MODE_ARM, ret) != CS_ERR_OK)
		return false;
	if (x86)
		cs_option(*ret, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT); /* as bpftool and the kernel's selftests write it */
	return true;
}

/* Of this machine, or of the one asked for; then what it lies in is *ret_mem. */
static int find_code(const struct dump_opts *o, const struct prog *prog, struct exec_jit_info *ret_info, void **ret_mem)
{
	struct strbuf log = STRBUF_INIT;
	int err = exec_jit_info(prog, ret_info), status;

	if (err)
		return cli_fail("%s is interpreted: there is no machine code", prog->name);
	if (!o->arch || !strcmp(o->arch, ret_info->arch))
		return CLI_OK;
	err = exec_jit_show(prog, o->arch, ret_info, ret_mem, &log);
	status = err ? cli_fail("%s: no code for %s: %s", prog->name, o->arch, log.len ? strbuf_str(&log) : cli_strerror(err)) : CLI_OK;
	strbuf_fini(&log);
	return status;
}

static int print_jited(struct jited *j)
{
	int status = CLI_OK;

	if (!open_disassembler(j->info.arch, &j->cs))
		return cli_fail("no disassembler for %s", j->info.arch);
	if (find_pieces(j))
		print_pieces(j);
	else
		status = cli_fail("out of memory");
	free(j->pieces);
	cs_close(&j->cs);
	return status;
}

int dump_jited(const struct dump_opts *o, const struct prog *prog, const struct btf *btf)
{
	struct jited j = { .json = o->json };
	void *mem = NULL;
	int status = find_code(o, prog, &j.info, &mem);

	j.low = (struct lowered){ j.info.text, btf };
	if (!status && o->raw)
		status = cli_file_write(o->raw, j.info.code, j.info.len);
	else if (!status)
		status = print_jited(&j);
	free(mem);
	return status;
}
