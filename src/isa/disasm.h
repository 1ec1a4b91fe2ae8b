/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions as text, in the words of Linux's verifier and bpftool. Thread-safe. */
#ifndef INLAY_ISA_DISASM_H
#define INLAY_ISA_DISASM_H

#include "base/strbuf.h"
#include "isa/isa.h"

/*
 * What only the owner of a program knows. Each function may be NULL, or return false to leave the
 * default; it writes at most n bytes, NUL included, to buf.
 */
struct isa_names {
	void *ctx;
	/*
	 * The callee. For a subprogram what follows "pc" (default "+3"); for a helper or kfunc what
	 * precedes "#7" (defaults "unknown" and "kernel-function").
	 */
	bool (*call)(void *ctx, const struct bpf_insn *insn, char *buf, size_t n);
	/* What a two-slot load loads, its right side whole; both slots are readable. */
	bool (*imm64)(void *ctx, const struct bpf_insn *insn, char *buf, size_t n);
};

/*
 * Appends "(b7) r0 = 1". left: slots from insn to the end of the program; a two-slot load of which only
 * one is left shows a second half of 0. names may be NULL. Encodings that are no instruction get the text
 * Linux gives them ("BUG_db"). Slots consumed.
 */
int isa_disasm(struct strbuf *out, const struct bpf_insn *insn, u32 left, const struct isa_names *names);

#endif
