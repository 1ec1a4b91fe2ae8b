/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to isa/: one statement against the templates of insn.def. */
#ifndef INLAY_ISA_ASM_MATCH_H
#define INLAY_ISA_ASM_MATCH_H

#include "isa/asm.h"

#define ASM_NAME_MAX 128

/* A distance or callee given by name, to be found once all labels are known. */
struct asm_ref {
	enum { ASM_REF_NONE, ASM_REF_OFF, ASM_REF_IMM, ASM_REF_CALL, ASM_REF_FUNC } kind;
	char name[ASM_NAME_MAX];
};

struct asm_match {
	struct bpf_insn insn;
	s32 imm_hi; /* of a two-slot load */
	int op;
	struct asm_ref ref;
	const char *why; /* set when the form is right and a value is not; static text */
};

/*
 * stmt: squeezed (asm_squeeze()). code: opcode byte the statement names, or -1. 0, or -EINVAL; then
 * m->why may say more.
 */
int asm_match(const char *stmt, int code, const struct isa_symbols *syms, struct asm_match *m);

/* Copies a statement with blanks only between words. -E2BIG if it needs more than n bytes. */
int asm_squeeze(char *dst, size_t n, const char *src, size_t len);

/* A name at *p, up to n - 1 characters; false if there is none. Advances *p. */
bool asm_name(const char **p, char *name, size_t n);
/* An integer with optional sign, decimal or 0x; false if there is none or it needs more than 64 bits. */
bool asm_int(const char **p, bool *ret_neg, u64 *ret_abs);

#endif
