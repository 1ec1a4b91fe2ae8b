// SPDX-License-Identifier: BSD-2-Clause
/* Listings of instructions as text and JSON. */
#include "dump.h"

#include <stdio.h>
#include <string.h>

#include <bpf/btf.h>

#include "json.h"

static void print_text(struct dump_listing *l)
{
	struct strbuf text = STRBUF_INIT;

	printf("%s:", l->name);
	if (l->section)
		printf(" (section %s)", l->section);
	putchar('\n');
	for (u32 i = 0; i < l->nr;) {
		const char *source = l->source(l, i), *note = l->note ? l->note(l, i) : NULL;

		if (source)
			printf("; %s\n", source);
		strbuf_reset(&text);
		printf("%4u: ", l->first + i);
		i += isa_disasm(&text, &l->insns[i], l->nr - i, &l->names);
		printf("%s%s%s\n", strbuf_str(&text), note ? " ; " : "", note ? note : "");
	}
	putchar('\n');
	strbuf_fini(&text);
}

static void print_json(struct dump_listing *l)
{
	struct strbuf text = STRBUF_INIT;

	printf("{\"func\":");
	cli_json_str(stdout, l->name);
	if (l->section) {
		printf(",\"section\":");
		cli_json_str(stdout, l->section);
	}
	printf(",\"insns\":[");
	for (u32 i = 0; i < l->nr;) {
		const char *source = l->source(l, i), *note = l->note ? l->note(l, i) : NULL;

		printf("%s{\"off\":%u", i ? "," : "", l->first + i);
		if (source) {
			printf(",\"source\":");
			cli_json_str(stdout, source);
		}
		strbuf_reset(&text);
		i += isa_disasm(&text, &l->insns[i], l->nr - i, &l->names);
		printf(",\"text\":");
		cli_json_str(stdout, strbuf_str(&text));
		if (note) {
			printf(",\"note\":");
			cli_json_str(stdout, note);
		}
		putchar('}');
	}
	printf("]}\n");
	strbuf_fini(&text);
}

void dump_print(bool json, struct dump_listing *l)
{
	if (json)
		print_json(l);
	else
		print_text(l);
}

const char *dump_source(const struct btf *btf, u32 line_off, u32 file_off, u32 line_col, struct strbuf *scratch)
{
	const char *text = btf ? btf__str_by_offset(btf, line_off) : NULL;
	const char *file = btf ? btf__str_by_offset(btf, file_off) : NULL, *slash;

	if (!text || !file)
		return NULL;
	slash = strrchr(file, '/');
	strbuf_reset(scratch);
	strbuf_printf(scratch, "%s @ %s:%u", text + strspn(text, " \t"), slash ? slash + 1 : file, line_col >> 10);
	return strbuf_str(scratch);
}
