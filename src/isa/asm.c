// SPDX-License-Identifier: BSD-2-Clause
// Assembler: splits a text into statements, collects labels, fills in what was given by name.
#include "isa/asm.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "isa/asm_match.h"

#define STATEMENT_MAX 512
#define SLOTS_MAX     (1u << 24) /* a limit on memory, far above what can be loaded */

struct fixup {
	struct asm_ref ref;
	u32 pc;
	u32 line;
};

struct assembler {
	const struct isa_symbols *syms;
	struct isa_code *code;
	u32 cap, labels_cap;
	struct fixup *fixups;
	u32 nr_fixups, fixups_cap;
	u32 line;
	struct strbuf *err;
};

static int fail(struct assembler *as, const char *what, const char *stmt)
{
	strbuf_printf(as->err, "line %u: %s%s%s", as->line, what, stmt ? ": " : "", stmt ? stmt : "");
	return -EINVAL;
}

/* Makes room for one more element of size bytes; the array or NULL, the old one untouched. */
static void *grow(void *array, u32 len, u32 *cap, size_t size)
{
	u32 new_cap = *cap ? *cap * 2 : 16;
	void *p;

	if (len < *cap)
		return array;
	p = reallocarray(array, new_cap, size);
	if (p)
		*cap = new_cap;
	return p;
}

static int emit(struct assembler *as, struct bpf_insn insn)
{
	struct isa_code *code = as->code;
	u32 cap = as->cap;
	void *p;

	if (code->len >= SLOTS_MAX)
		return fail(as, "program is too long", NULL);
	p = grow(code->insns, code->len, &cap, sizeof(*code->insns));
	if (!p)
		return -ENOMEM;
	code->insns = p;
	cap = as->cap;
	p = grow(code->lines, code->len, &cap, sizeof(*code->lines));
	if (!p)
		return -ENOMEM;
	code->lines = p;
	as->cap = cap;
	code->insns[code->len] = insn;
	code->lines[code->len++] = as->line;
	return 0;
}

static int emit_pair(struct assembler *as, struct bpf_insn insn, s32 imm_hi)
{
	int err = emit(as, insn);

	return err ? err : emit(as, (struct bpf_insn){ .imm = imm_hi });
}

int isa_code_label(const struct isa_code *code, const char *name)
{
	u32 i;

	for (i = 0; i < code->nr_labels; i++)
		if (!strcmp(code->labels[i].name, name))
			return code->labels[i].pc;
	return -ENOENT;
}

static int add_label(struct assembler *as, const char *name)
{
	struct isa_code *code = as->code;
	void *p;

	if (isa_code_label(code, name) >= 0)
		return fail(as, "label is defined twice", name);
	p = grow(code->labels, code->nr_labels, &as->labels_cap, sizeof(*code->labels));
	if (!p)
		return -ENOMEM;
	code->labels = p;
	code->labels[code->nr_labels].name = strdup(name);
	if (!code->labels[code->nr_labels].name)
		return -ENOMEM;
	code->labels[code->nr_labels++].pc = code->len;
	return 0;
}

static int add_fixup(struct assembler *as, const struct asm_ref *ref)
{
	void *p = grow(as->fixups, as->nr_fixups, &as->fixups_cap, sizeof(*as->fixups));

	if (!p)
		return -ENOMEM;
	as->fixups = p;
	as->fixups[as->nr_fixups++] = (struct fixup){ .ref = *ref, .pc = as->code->len, .line = as->line };
	return 0;
}

/* "r1 = name" and "r1 = name ll", where name is no register; -ENOENT: something else. */
static int symbol_load(struct assembler *as, const char *s)
{
	struct isa_symbol sym;
	struct asm_ref ref = { .kind = ASM_REF_FUNC };
	char reg[8];
	int err;

	if (!asm_name(&s, reg, sizeof(reg)) || reg[0] != 'r' || !isdigit((unsigned char)reg[1]) || *s++ != '=')
		return -ENOENT;
	s += *s == '&';
	if (!asm_name(&s, ref.name, sizeof(ref.name)) || (*s && strcmp(s, " ll")))
		return -ENOENT;
	if ((ref.name[0] == 'r' || ref.name[0] == 'w') && isdigit((unsigned char)ref.name[1]))
		return -ENOENT;
	if (as->syms && as->syms->symbol && as->syms->symbol(as->syms->ctx, ref.name, &sym)) {
		struct bpf_insn insn = { .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = atoi(reg + 1) & 15,
					 .src_reg = sym.src, .imm = sym.imm };
		return emit_pair(as, insn, sym.imm_hi);
	}
	err = add_fixup(as, &ref);
	return err ? err : emit_pair(as, isa_encode(ISA_LD_FUNC, atoi(reg + 1) & 15, 0, 0, 0), 0);
}

static int raw_slot(struct assembler *as, const char *s)
{
	struct bpf_insn insn;
	bool neg;
	u64 v;

	s += *s == ' ';
	if (!asm_int(&s, &neg, &v) || *s)
		return fail(as, "not one 64-bit number", s);
	if (neg)
		v = 0 - v;
	memcpy(&insn, &v, sizeof(insn));
	return emit(as, insn);
}

/* Drops "12: " and reads "(b7) ", both optional, of a squeezed log line. The opcode byte or -1. */
static int log_prefix(const char **ps)
{
	const char *s = *ps;
	unsigned int code;

	while (isdigit((unsigned char)*s))
		s++;
	if (s != *ps) {
		if (*s++ != ':')
			return -1;
	}
	if (s[0] != '(' || !isxdigit((unsigned char)s[1]) || !isxdigit((unsigned char)s[2]) || s[3] != ')')
		return -1;
	code = strtoul(s + 1, NULL, 16);
	*ps = s + 4;
	return code;
}

static int instruction(struct assembler *as, const char *s)
{
	struct asm_match m;
	int code, err;

	if (!strncmp(s, ".quad", 5))
		return raw_slot(as, s + 5);
	code = log_prefix(&s);
	if (asm_match(s, code, as->syms, &m)) {
		err = code < 0 && !m.why ? symbol_load(as, s) : -ENOENT;
		if (err != -ENOENT)
			return err;
		return fail(as, m.why ? m.why : "unknown instruction", s);
	}
	if (m.ref.kind) {
		err = add_fixup(as, &m.ref);
		if (err)
			return err;
	}
	if (isa_slots(m.insn.code) == 2)
		return emit_pair(as, m.insn, m.imm_hi);
	return emit(as, m.insn);
}

/* One statement, labels before it included. */
static int statement(struct assembler *as, const char *text, size_t len)
{
	char buf[STATEMENT_MAX], name[ASM_NAME_MAX];
	const char *s = buf, *after;
	int err;

	if (asm_squeeze(buf, sizeof(buf), text, len))
		return fail(as, "statement is too long", NULL);
	for (;;) {
		after = s;
		if (!asm_name(&after, name, sizeof(name)) || *after != ':')
			break;
		err = add_label(as, name);
		if (err)
			return err;
		s = after + 1;
	}
	return *s ? instruction(as, s) : 0;
}

static int resolve(struct assembler *as, const struct fixup *f)
{
	struct isa_code *code = as->code;
	struct bpf_insn *insn = &code->insns[f->pc];
	int target = isa_code_label(code, f->ref.name);
	s64 dist = (s64)target - f->pc - 1;

	as->line = f->line;
	if (target < 0)
		return fail(as, "unknown name", f->ref.name);
	if (f->ref.kind == ASM_REF_OFF) {
		if (dist < SHRT_MIN || dist > SHRT_MAX)
			return fail(as, "too far for a 16-bit jump, gotol reaches farther", f->ref.name);
		insn->off = (s16)dist;
	} else {
		insn->imm = (s32)dist;
	}
	return 0;
}

/* End of the statement that begins at s: newline, semicolon, comment or the end of the text. */
static const char *statement_end(const char *s)
{
	while (*s && *s != '\n' && *s != ';' && !(s[0] == '/' && (s[1] == '/' || s[1] == '*')))
		s++;
	return s;
}

/* Skips what separates statements, counting lines. */
static const char *skip(struct assembler *as, const char *s)
{
	if (s[0] == '/' && s[1] == '/')
		return s + strcspn(s, "\n");
	if (s[0] == '/' && s[1] == '*') {
		for (s += 2; *s && !(s[0] == '*' && s[1] == '/'); s++)
			as->line += *s == '\n';
		return *s ? s + 2 : s;
	}
	as->line += *s == '\n';
	return *s ? s + 1 : s;
}

static int assemble(struct assembler *as, const char *text)
{
	const char *end;
	u32 i;
	int err = 0;

	as->line = 1;
	for (; *text && !err; text = skip(as, end)) {
		end = statement_end(text);
		err = statement(as, text, end - text);
	}
	for (i = 0; i < as->nr_fixups && !err; i++)
		err = resolve(as, &as->fixups[i]);
	return err;
}

int isa_assemble(const char *text, const struct isa_symbols *syms, struct isa_code *ret_code,
		 struct strbuf *err)
{
	struct isa_code code = { 0 };
	struct assembler as = { .syms = syms, .code = &code, .err = err };
	int ret = assemble(&as, text);

	free(as.fixups);
	if (ret)
		isa_code_fini(&code);
	else
		*ret_code = code;
	return ret;
}

void isa_code_fini(struct isa_code *code)
{
	u32 i;

	for (i = 0; i < code->nr_labels; i++)
		free(code->labels[i].name);
	free(code->labels);
	free(code->insns);
	free(code->lines);
	memset(code, 0, sizeof(*code));
}
