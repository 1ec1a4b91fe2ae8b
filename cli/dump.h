/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to `inlay dump`: a function's listing, whichever stage it is of. */
#ifndef INLAY_CLI_DUMP_H
#define INLAY_CLI_DUMP_H

#include "base/strbuf.h"
#include "isa/disasm.h"
#include "object.h"

struct prog;

struct dump_opts {
	bool json;
	const char *raw; /* where to write machine code; NULL: nowhere */
	const char *arch; /* whose machine code; NULL: this machine's */
};

/* What printing a function needs. */
struct dump_listing {
	const char *name, *section; /* section NULL: not shown */
	const struct bpf_insn *insns;
	u32 nr;
	u32 first; /* number of insns[0] */
	struct isa_names names;
	/* The source line that begins at instruction i, or NULL. */
	const char *(*source)(const struct dump_listing *l, u32 i);
	/* Text behind instruction i, or NULL; the function may be NULL too. */
	const char *(*note)(const struct dump_listing *l, u32 i);
	void *priv;
	struct strbuf line; /* scratch of source() */
};

void dump_print(bool json, struct dump_listing *l);

/* "text @ file.c:12" of a line of an object's BTF, in scratch; NULL: nothing is known of it. */
struct btf;
const char *dump_source(const struct btf *btf, u32 line_off, u32 file_off, u32 line_col, struct strbuf *scratch);

/* The stages of what runs. prog: of the user engine, loaded; btf: the object's. enum cli_exit. */
int dump_lowered(const struct dump_opts *o, const struct prog *prog, const struct btf *btf);
int dump_jited(const struct dump_opts *o, const struct prog *prog, const struct btf *btf);

#endif
