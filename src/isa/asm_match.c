// SPDX-License-Identifier: BSD-2-Clause
// Recognises one statement: tries the templates of insn.def, and their alternatives, one after another.
#include "isa/asm_match.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

int asm_squeeze(char *dst, size_t n, const char *src, size_t len)
{
	size_t i, out = 0;
	bool blank = false;

	for (i = 0; i < len; i++) {
		if (isspace((unsigned char)src[i])) {
			blank = true;
			continue;
		}
		if (out + 2 >= n)
			return -E2BIG;
		if (blank && out && is_word(dst[out - 1]) && is_word(src[i]))
			dst[out++] = ' ';
		blank = false;
		dst[out++] = src[i];
	}
	dst[out] = 0;
	return 0;
}

bool asm_name(const char **p, char *name, size_t n)
{
	const char *s = *p;
	size_t len = 0;

	if (!is_word(*s) || isdigit((unsigned char)*s))
		return false;
	while (is_word(s[len]))
		len++;
	if (len >= n)
		return false;
	memcpy(name, s, len);
	name[len] = 0;
	*p = s + len;
	return true;
}

bool asm_int(const char **p, bool *ret_neg, u64 *ret_abs)
{
	const char *s = *p;
	char *end;
	bool neg = false;

	if (*s == '-' || *s == '+')
		neg = *s++ == '-';
	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	*ret_abs = strtoull(s, &end, s[0] == '0' && (s[1] | 32) == 'x' ? 16 : 10);
	if (errno || end == s || is_word(*end))
		return false;
	*ret_neg = neg;
	*p = end;
	return true;
}

/* One attempt: where it is in the statement, and what it has found. */
struct attempt {
	const char *s;
	const struct isa_symbols *syms;
	struct asm_match *m;
	u8 seen; /* ISA_F_DST, ISA_F_SRC: the register is known, and must be the same again */
};

static bool get_reg(struct attempt *a, const char *prefixes, u8 field)
{
	const char *s = a->s;
	u32 n;

	if (!*s || !strchr(prefixes, *s) || !isdigit((unsigned char)s[1]))
		return false;
	n = s[1] - '0';
	s += 2;
	if (isdigit((unsigned char)*s))
		n = n * 10 + *s++ - '0';
	if (n > 15 || is_word(*s))
		return false;
	if (a->seen & field && n != (field == ISA_F_DST ? a->m->insn.dst_reg : a->m->insn.src_reg))
		return false;
	if (field == ISA_F_DST)
		a->m->insn.dst_reg = n;
	else
		a->m->insn.src_reg = n;
	a->seen |= field;
	a->s = s;
	return true;
}

/* A 32-bit immediate, as signed number or as bits. */
static bool get_imm(struct attempt *a, s32 *ret_imm)
{
	bool neg;
	u64 v;

	if (!asm_int(&a->s, &neg, &v))
		return false;
	if (neg ? v > (u64)INT_MAX + 1 : v > U32_MAX) {
		a->m->why = "immediate needs more than 32 bits";
		return false;
	}
	*ret_imm = (s32)(neg ? 0u - (u32)v : (u32)v);
	return true;
}

static bool get_imm64(struct attempt *a)
{
	bool neg;
	u64 v;

	if (!asm_int(&a->s, &neg, &v))
		return false;
	if (neg)
		v = 0 - v;
	a->m->insn.imm = (s32)(u32)v;
	a->m->imm_hi = (s32)(u32)(v >> 32);
	return true;
}

static bool get_off(struct attempt *a)
{
	bool neg;
	u64 v;

	if (*a->s != '+' && *a->s != '-')
		return true;
	if (!asm_int(&a->s, &neg, &v))
		return false;
	if (v > (neg ? 32768u : 32767u)) {
		a->m->why = "offset needs more than 16 bits";
		return false;
	}
	a->m->insn.off = (s16)(neg ? -(s32)v : (s32)v);
	return true;
}

/* "pc+3", "+3", or a name for later; max: largest distance that fits. */
static bool get_distance(struct attempt *a, s64 max, s32 *ret_dist, int ref_kind)
{
	const char *s = a->s;
	bool neg;
	u64 v;

	if (s[0] == 'p' && s[1] == 'c' && (s[2] == '+' || s[2] == '-'))
		s += 2;
	if (*s == '+' || *s == '-') {
		if (!asm_int(&s, &neg, &v))
			return false;
		if (v > (u64)max + neg) {
			a->m->why = "distance is too large";
			return false;
		}
		*ret_dist = (s32)(neg ? -(s64)v : (s64)v);
		a->s = s;
		return true;
	}
	if (!asm_name(&a->s, a->m->ref.name, ASM_NAME_MAX))
		return false;
	a->m->ref.kind = ref_kind;
	return true;
}

/* "7", "pc+3", "name", "name#7", "pc+3#name" */
static bool get_callee(struct attempt *a)
{
	struct bpf_insn *insn = &a->m->insn;
	char name[ASM_NAME_MAX];
	struct isa_callee callee;
	const char *s = a->s;
	s32 number;

	if ((s[0] == 'p' && s[1] == 'c' && (s[2] == '+' || s[2] == '-')) || *s == '+' || *s == '-') {
		if (!get_distance(a, INT_MAX, &insn->imm, ASM_REF_NONE))
			return false;
		insn->src_reg = BPF_PSEUDO_CALL;
		if (*a->s == '#')
			a->s += strlen(a->s);
		return true;
	}
	if (!strncmp(s, "kernel-function", 15)) {
		strcpy(name, "kernel-function"); /* Linux's word for a kfunc whose name it does not say */
		s += 15;
	} else if (!asm_name(&s, name, sizeof(name))) {
		size_t len = strspn(s, "0123456789");

		if (!len || len >= sizeof(name))
			return false;
		memcpy(name, s, len);
		name[len] = 0;
	}
	if (a->syms && a->syms->callee && a->syms->callee(a->syms->ctx, name, &callee)) {
		a->s += strlen(a->s);
		insn->src_reg = callee.src;
		insn->off = callee.off;
		insn->imm = callee.imm;
		return true;
	}
	a->s = *s == '#' ? s + 1 : s;
	if (get_imm(a, &number)) {
		insn->src_reg = strcmp(name, "kernel-function") ? 0 : BPF_PSEUDO_KFUNC_CALL;
		insn->imm = number;
		return true;
	}
	insn->src_reg = BPF_PSEUDO_CALL;
	a->m->ref.kind = ASM_REF_CALL;
	strcpy(a->m->ref.name, name);
	return true;
}

static bool get_half(struct attempt *a, int shift)
{
	s32 v;

	if (!get_imm(a, &v) || (u32)v > 0xffff)
		return false;
	a->m->insn.imm = (s32)((u32)a->m->insn.imm | (u32)v << shift);
	return true;
}

static bool get_arg(struct attempt *a, char c, u8 width)
{
	struct bpf_insn *insn = &a->m->insn;
	s32 dist = 0;

	switch (c) {
	case 'd':
		return get_reg(a, width == 4 ? "w" : "r", ISA_F_DST);
	case 's':
		return get_reg(a, width == 4 ? "w" : "r", ISA_F_SRC);
	case 'D':
		return get_reg(a, "r", ISA_F_DST);
	case 'S':
		return get_reg(a, "r", ISA_F_SRC);
	case 'E':
		return get_reg(a, "rw", ISA_F_DST);
	case 'T':
		return get_reg(a, "rw", ISA_F_SRC);
	case 'i':
	case 'x':
		return get_imm(a, &insn->imm);
	case 'n':
		return get_imm(a, &a->m->imm_hi);
	case 'l':
		return get_imm64(a);
	case 'o':
		return get_off(a);
	case 'j':
		if (!get_distance(a, SHRT_MAX, &dist, ASM_REF_OFF))
			return false;
		insn->off = (s16)dist;
		return true;
	case 'J':
		return get_distance(a, INT_MAX, &insn->imm, ASM_REF_IMM);
	case 'f':
		return get_distance(a, INT_MAX, &insn->imm, ASM_REF_FUNC);
	case 'c':
		return get_callee(a);
	case 'a':
		return get_half(a, 16);
	case 'b':
		return get_half(a, 0);
	}
	return false;
}

/* Does the statement, whole, fit the template that ends at t_end? */
static bool fits(struct attempt *a, const char *t, const char *t_end, u8 width)
{
	for (; t < t_end; t++) {
		if (*t == ' ') {
			/* squeezing left a blank only where both neighbours are words */
			if (*a->s == ' ')
				a->s++;
			continue;
		}
		if (*t == '$') {
			if (!get_arg(a, *++t, width))
				return false;
			continue;
		}
		if (*a->s != *t)
			return false;
		a->s++;
	}
	return !*a->s;
}

static bool try_template(const char *stmt, const struct isa_symbols *syms, int op, const char *t,
			 const char *t_end, struct asm_match *m)
{
	struct attempt a = { .s = stmt, .syms = syms, .m = m };
	const char *why = m->why;

	memset(m, 0, sizeof(*m));
	m->why = why;
	m->insn = isa_encode(op, 0, 0, 0, 0);
	m->op = op;
	return fits(&a, t, t_end, isa_info[op].width);
}

int asm_match(const char *stmt, int code, const struct isa_symbols *syms, struct asm_match *m)
{
	const char *t, *end;
	int op;

	m->why = NULL;
	for (op = 0; op < ISA_OP_MAX; op++) {
		if (code >= 0 && isa_info[op].code != code)
			continue;
		t = isa_info[op].text;
		if (try_template(stmt, syms, op, t, t + strlen(t), m))
			return 0;
		for (t = isa_info[op].alt; t; t = *end ? end + 1 : NULL) {
			end = strchrnul(t, '|');
			if (try_template(stmt, syms, op, t, end, m))
				return 0;
		}
	}
	return -EINVAL;
}
