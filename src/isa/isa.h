/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instruction set: one enumerator an instruction, what each does to which register, decoding and
 * encoding. All of it is generated from insn.def; all functions are pure and thread-safe.
 */
#ifndef INLAY_ISA_ISA_H
#define INLAY_ISA_ISA_H

#include "isa/uapi.h"

#include "base/types.h"

#define ISA_REG_MAX    11     /* r0..r10 */
#define ISA_REG_AX     11     /* scratch of rewritten code; no program can name it, no call keeps it */
#define ISA_NR_REGS    12     /* what an engine has: r0..r10 and AX */
#define ISA_REG_FP     10     /* the read-only frame pointer */
#define ISA_STACK_SIZE 512    /* bytes of stack of one frame, and of all frames of a program together */
#define ISA_MSG_MAX    80     /* enough for every message of isa_check_*() */

/* modes of LDX that only rewriting makes; Linux uses the same numbers */
#define ISA_PROBE_MEM	0x20
#define ISA_PROBE_MEMSX 0x40
#define ISA_TLS_MEM	0xe0 /* inlay's: a field of the running vCPU's block (struct env_tls) at off */

enum isa_op {
#define OP(name, ...) ISA_##name,
#include "isa/insn.def"
	ISA_OP_MAX
};

/* How to treat an instruction; who reads it: verifier, rewriter, disassembler, JITs. */
enum isa_kind {
	ISA_K_ALU,	 /* dst = dst op (src or imm) */
	ISA_K_NEG,	 /* dst = -dst */
	ISA_K_MOV,	 /* dst = (sign-extended part of) src, or imm */
	ISA_K_CAST,	 /* dst = src in another address space */
	ISA_K_PERCPU,	 /* dst = address of this vCPU's copy of what src points to */
	ISA_K_TLS,	 /* dst = field of the running vCPU's block */
	ISA_K_END,	 /* dst = byte-swapped dst */
	ISA_K_LD_IMM64,	 /* two slots: dst = 64-bit constant, map, BTF object or subprogram */
	ISA_K_LD_ABS,	 /* r0 = packet[imm] */
	ISA_K_LD_IND,	 /* r0 = packet[src + imm] */
	ISA_K_LDX,	 /* dst = memory at src + off */
	ISA_K_ST,	 /* memory at dst + off = imm */
	ISA_K_STX,	 /* memory at dst + off = src */
	ISA_K_LOAD_ACQ,	 /* dst = memory at src + off, acquire */
	ISA_K_STORE_REL, /* memory at dst + off = src, release */
	ISA_K_ATOMIC,	 /* read-modify-write of memory at dst + off */
	ISA_K_JA,	 /* jump always */
	ISA_K_JMP,	 /* jump if dst op (src or imm) */
	ISA_K_MAY_GOTO,	 /* jump when the program has looped often enough */
	ISA_K_CALL,	 /* helper, kfunc or subprogram */
	ISA_K_EXIT,
};

/* What an instruction touches (struct isa_info.fx). */
enum isa_fx {
	ISA_FX_DR = 1 << 0, /* reads the register dst names */
	ISA_FX_DW = 1 << 1, /* writes it */
	ISA_FX_SR = 1 << 2, /* reads the register src names */
	ISA_FX_SW = 1 << 3, /* writes it */
	ISA_FX_R0R = 1 << 4,
	ISA_FX_R0W = 1 << 5,
	ISA_FX_R6R = 1 << 6,
	ISA_FX_CALL = 1 << 7, /* loses r1-r5; which of them it reads its callee says */
	ISA_FX_MR = 1 << 8,   /* reads memory */
	ISA_FX_MW = 1 << 9,   /* writes memory */
};

/* Fields of the encoding (struct isa_info.fields, .sel). */
enum isa_field {
	ISA_F_NONE = 0,
	ISA_F_DST = 1 << 0,
	ISA_F_SRC = 1 << 1,
	ISA_F_OFF = 1 << 2,
	ISA_F_IMM = 1 << 3,
};

struct isa_info {
	const char *name;  /* "ADD64_K" */
	const char *text;  /* template of its text, see insn.def */
	const char *alt;   /* further templates to assemble, '|' between, or NULL */
	s32 val;	   /* what the field sel holds */
	u16 fx;		   /* ISA_FX_* */
	u8 code;	   /* opcode byte */
	u8 kind;	   /* enum isa_kind */
	u8 sel;		   /* the field that tells it from others of its code, or ISA_F_NONE */
	u8 fields;	   /* ISA_F_*: fields that may be other than zero (sel counts as one) */
	u8 width;	   /* bytes computed, compared or accessed; 0: none */
	bool internal;	   /* made by rewriting only */
};

extern const struct isa_info isa_info[ISA_OP_MAX];

/*
 * The operation of an instruction, internal ones included, or -EINVAL if there is none such. Looks at
 * the opcode byte and the field that selects among its rows, at nothing else.
 */
int isa_decode(const struct bpf_insn *insn);

/*
 * What Linux refuses when it first walks over a program, before it looks at control flow. insn[0] and, if
 * left > 1, what follows it are readable; left: slots from insn to the end, at least 1.
 * Slots the instruction takes (1 or 2); or -EINVAL, with Linux's message in msg.
 */
int isa_check_shape(const struct bpf_insn *insn, u32 left, char msg[ISA_MSG_MAX]);

/*
 * What Linux refuses when it comes to verify the instruction (so never in dead code), in two steps, since
 * it looks at the registers in between; that registers exist and are readable is the verifier's to say.
 * Both assume isa_check_shape(). isa_check_insn(): reserved fields; the operation, or -EINVAL with
 * Linux's message in msg. isa_check_imm(): division by constant 0, too large a shift; 0 or -EINVAL.
 */
int isa_check_insn(const struct bpf_insn *insn, char msg[ISA_MSG_MAX]);
int isa_check_imm(enum isa_op op, const struct bpf_insn *insn, char msg[ISA_MSG_MAX]);

/* An instruction with the given fields; fields the operation selects by (sel) are set from its row. */
struct bpf_insn isa_encode(enum isa_op op, u8 dst, u8 src, s16 off, s32 imm);

/* Name of a row, "ADD64_K"; NULL if op is no operation. */
const char *isa_op_name(int op);

static inline const struct isa_info *isa_of(enum isa_op op)
{
	return &isa_info[op];
}

/* 1, or 2 for the loads of a 64-bit constant. */
static inline int isa_slots(u8 code)
{
	return code == (BPF_LD | BPF_IMM | BPF_DW) ? 2 : 1;
}

/* The immediate as the operations see it. */
static inline u64 isa_imm(const struct bpf_insn *insn)
{
	return (u64)(s64)insn->imm;
}

/* The constant of a two-slot load. */
static inline u64 isa_imm64(const struct bpf_insn *insn)
{
	return (u32)insn[0].imm | (u64)(u32)insn[1].imm << 32;
}

static inline void isa_set_imm64(struct bpf_insn *insn, u64 v)
{
	insn[0].imm = (s32)(u32)v;
	insn[1].imm = (s32)(u32)(v >> 32);
}

/* Does the instruction take its second operand from src (else from imm)? For ALU, MOV, JMP. */
static inline bool isa_is_reg_form(u8 code)
{
	return code & BPF_X;
}

/* Jumps of a program text: JA, JA32, JMP, MAY_GOTO. Not calls. */
static inline bool isa_is_jump(enum isa_op op)
{
	u8 k = isa_info[op].kind;

	return k == ISA_K_JA || k == ISA_K_JMP || k == ISA_K_MAY_GOTO;
}

/* Distance of a jump, in slots from the slot after it. */
static inline s32 isa_jump_off(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP32 | BPF_JA) ? insn->imm : insn->off;
}

/* The register that with off gives the address of a memory access. */
static inline u8 isa_mem_base(enum isa_op op, const struct bpf_insn *insn)
{
	u8 k = isa_info[op].kind;

	return k == ISA_K_LDX || k == ISA_K_LOAD_ACQ ? insn->src_reg : insn->dst_reg;
}

/* Sets of registers, bit n for rn, that an instruction reads, and writes; calls' arguments excepted. */
u16 isa_regs_read(enum isa_op op, const struct bpf_insn *insn);
u16 isa_regs_written(enum isa_op op, const struct bpf_insn *insn);

/*
 * Constructors, for rewriting and tests: r: register, v: immediate. The operands are those of the text,
 * left to right.
 */
#define ISA_ALU64(OP_, r, v)	   isa_encode(ISA_##OP_##64_K, r, 0, 0, v)
#define ISA_ALU64_REG(OP_, r, s)   isa_encode(ISA_##OP_##64_X, r, s, 0, 0)
#define ISA_ALU32(OP_, r, v)	   isa_encode(ISA_##OP_##32_K, r, 0, 0, v)
#define ISA_ALU32_REG(OP_, r, s)   isa_encode(ISA_##OP_##32_X, r, s, 0, 0)
#define ISA_MOV(r, v)		   isa_encode(ISA_MOV64_K, r, 0, 0, v)
#define ISA_MOV_REG(r, s)	   isa_encode(ISA_MOV64_X, r, s, 0, 0)
#define ISA_MOV32_REG(r, s)	   isa_encode(ISA_MOV32_X, r, s, 0, 0)
#define ISA_LOAD(SZ, r, base, o)   isa_encode(ISA_LDX_##SZ, r, base, o, 0)
#define ISA_STORE(SZ, base, o, s)  isa_encode(ISA_STX_##SZ, base, s, o, 0)
#define ISA_STORE_IMM(SZ, base, o, v) isa_encode(ISA_ST_##SZ, base, 0, o, v)
#define ISA_IF(OP_, r, v, o)	   isa_encode(ISA_##OP_##64_K, r, 0, o, v)
#define ISA_IF_REG(OP_, r, s, o)   isa_encode(ISA_##OP_##64_X, r, s, o, 0)
#define ISA_GOTO(o)		   isa_encode(ISA_JA, 0, 0, o, 0)
#define ISA_CALL(n)		   isa_encode(ISA_CALL_HELPER, 0, 0, 0, n)
#define ISA_RETURN()		   isa_encode(ISA_EXIT, 0, 0, 0, 0)

#endif
