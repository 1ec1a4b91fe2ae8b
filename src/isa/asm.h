/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text to instructions: whatever isa_disasm() writes, and clang's BPF assembly.
 *
 * Statements end at a newline or a semicolon; "//" begins a comment, slash-star encloses one. "name:" is
 * a label, of a place to jump to or of a function to call. A statement may begin as lines of a verifier's
 * log do, "12: (b7) r0 = 1": then only rows of that opcode byte are tried. ".quad 0x..." is one slot, raw.
 */
#ifndef INLAY_ISA_ASM_H
#define INLAY_ISA_ASM_H

#include "base/strbuf.h"
#include "isa/isa.h"

struct isa_label {
	char *name;
	u32 pc; /* slot it stands before; may be the program's length */
};

struct isa_code {
	struct bpf_insn *insns; /* len slots */
	u32 *lines;		/* source line of each slot, from 1 */
	u32 len;
	struct isa_label *labels;
	u32 nr_labels;
};

/* What a name stands for in "r1 = name": a two-slot load with this src and these halves. */
struct isa_symbol {
	u8 src; /* 0 or BPF_PSEUDO_* */
	s32 imm, imm_hi;
};

/* What a name or number stands for in "call name". */
struct isa_callee {
	u8 src; /* 0 helper, BPF_PSEUDO_KFUNC_CALL */
	s16 off;
	s32 imm;
};

/* The names a text may use beside its own labels. Each function may be NULL, or return false: not known. */
struct isa_symbols {
	void *ctx;
	bool (*symbol)(void *ctx, const char *name, struct isa_symbol *ret_symbol);
	/* name is the number's text where a number is called */
	bool (*callee)(void *ctx, const char *name, struct isa_callee *ret_callee);
};

/*
 * 0 and the program in *ret_code, to be released with isa_code_fini(); or -EINVAL with "line 3: ..." in
 * err; or -ENOMEM. syms may be NULL. What is assembled need not be a valid program: register numbers up to
 * 15 and internal instructions pass, so that tests can say them. Thread-safe.
 */
int isa_assemble(const char *text, const struct isa_symbols *syms, struct isa_code *ret_code,
		 struct strbuf *err);
void isa_code_fini(struct isa_code *code);

/* Slot of a label, or -ENOENT. */
int isa_code_label(const struct isa_code *code, const char *name);

#endif
