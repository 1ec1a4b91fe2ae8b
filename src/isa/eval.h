/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an instruction does, once: pure functions over values, generated from the expressions in
 * insn.def. The interpreter, the verifier's constant folding, the JITs' tests all use these, so they
 * cannot disagree. Everything is defined for every input: shifts are masked, division by zero and
 * MIN / -1 give what Linux gives.
 *
 * Each row has its own function, isa_eval_ADD64_K(a, b), for engines that dispatch themselves; the
 * isa_eval_*(op, ...) take the operation as an argument.
 */
#ifndef INLAY_ISA_EVAL_H
#define INLAY_ISA_EVAL_H

#include "isa/isa.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the byte order instructions in insn.def are written for little-endian machines"
#endif

/* types of a width in bytes */
#define ISA_U1 u8
#define ISA_U2 u16
#define ISA_U4 u32
#define ISA_U8 u64
#define ISA_S1 s8
#define ISA_S2 s16
#define ISA_S4 s32
#define ISA_S8 s64

/* what expressions may name: T, S, W */
#define ISA_EVAL_TYPES(width)                                                                      \
	typedef ISA_U##width T __attribute__((unused));                                            \
	typedef ISA_S##width S __attribute__((unused));                                            \
	enum { W = (width) * 8 }

#define ISA_FN static inline __attribute__((unused, always_inline))

/* new dst; b: the register src, or the sign-extended immediate */
#define ISA_EVAL_ALU(name, width, expr)                                                            \
	ISA_FN u64 isa_eval_##name(u64 a_, u64 b_)                                                 \
	{                                                                                          \
		ISA_EVAL_TYPES(width);                                                             \
		T a __attribute__((unused)) = (T)a_, b __attribute__((unused)) = (T)b_;            \
		return (T)(expr);                                                                  \
	}
/* jump? */
#define ISA_EVAL_JMP(name, width, expr)                                                            \
	ISA_FN bool isa_eval_##name(u64 a_, u64 b_)                                                \
	{                                                                                          \
		ISA_EVAL_TYPES(width);                                                             \
		T a = (T)a_, b = (T)b_;                                                            \
		return expr;                                                                       \
	}
/* what the register gets when memory holds the width bytes that are the low ones of a_ */
#define ISA_EVAL_LOAD(name, width, expr)                                                           \
	ISA_FN u64 isa_eval_##name(u64 a_)                                                         \
	{                                                                                          \
		ISA_EVAL_TYPES(width);                                                             \
		T a = (T)a_;                                                                       \
		return (u64)(s64)(expr);                                                           \
	}
/* what memory gets, of which old_ was the content; a fetch puts the old content, zero-extended, in src or r0 */
#define ISA_EVAL_RMW(name, width, expr)                                                            \
	ISA_FN u64 isa_eval_##name(u64 old_, u64 b_, u64 r0_)                                      \
	{                                                                                          \
		ISA_EVAL_TYPES(width);                                                             \
		T old __attribute__((unused)) = (T)old_, b = (T)b_;                                \
		T r0 __attribute__((unused)) = (T)r0_;                                             \
		return (T)(expr);                                                                  \
	}
#define ISA_EVAL_NO(name, width, expr)
#define OP(name, kind, code, sel, val, width, fx, fields, ev, expr, ...) ISA_EVAL_##ev(name, width, expr)
#include "isa/insn.def"
#undef ISA_EVAL_ALU
#undef ISA_EVAL_JMP
#undef ISA_EVAL_LOAD
#undef ISA_EVAL_RMW
#undef ISA_EVAL_NO

#define ISA_CASE_NO(name)

/* Kinds ALU, NEG, MOV, END: the new dst from old dst and src (or isa_imm()). Other operations: 0. */
static inline u64 isa_eval_alu(enum isa_op op, u64 dst, u64 src)
{
#define ISA_CASE_ALU(name)                                                                   \
	case ISA_##name:                                                                           \
		return isa_eval_##name(dst, src);
#define ISA_CASE_JMP  ISA_CASE_NO
#define ISA_CASE_LOAD ISA_CASE_NO
#define ISA_CASE_RMW  ISA_CASE_NO
	switch ((int)op) {
#define OP(name, kind, code, sel, val, width, fx, fields, ev, expr, ...) ISA_CASE_##ev(name)
#include "isa/insn.def"
	}
#undef ISA_CASE_ALU
#undef ISA_CASE_JMP
#undef ISA_CASE_LOAD
#undef ISA_CASE_RMW
	return 0;
}

/* Kind JMP: does dst op src (or isa_imm()) hold? Other operations: false. */
static inline bool isa_eval_jmp(enum isa_op op, u64 dst, u64 src)
{
#define ISA_CASE_ALU ISA_CASE_NO
#define ISA_CASE_JMP(name)                                                                   \
	case ISA_##name:                                                                           \
		return isa_eval_##name(dst, src);
#define ISA_CASE_LOAD ISA_CASE_NO
#define ISA_CASE_RMW  ISA_CASE_NO
	switch ((int)op) {
#define OP(name, kind, code, sel, val, width, fx, fields, ev, expr, ...) ISA_CASE_##ev(name)
#include "isa/insn.def"
	}
#undef ISA_CASE_ALU
#undef ISA_CASE_JMP
#undef ISA_CASE_LOAD
#undef ISA_CASE_RMW
	return false;
}

/* Kinds LDX, LOAD_ACQ: the register's value; raw: the bytes of memory, low ones first. Others: 0. */
static inline u64 isa_eval_load(enum isa_op op, u64 raw)
{
#define ISA_CASE_ALU ISA_CASE_NO
#define ISA_CASE_JMP ISA_CASE_NO
#define ISA_CASE_LOAD(name)                                                                  \
	case ISA_##name:                                                                           \
		return isa_eval_##name(raw);
#define ISA_CASE_RMW ISA_CASE_NO
	switch ((int)op) {
#define OP(name, kind, code, sel, val, width, fx, fields, ev, expr, ...) ISA_CASE_##ev(name)
#include "isa/insn.def"
	}
#undef ISA_CASE_ALU
#undef ISA_CASE_JMP
#undef ISA_CASE_LOAD
#undef ISA_CASE_RMW
	return 0;
}

/*
 * Kind ATOMIC: the new content of memory. *ret_old: the old content at the operation's width, which a
 * fetch or xchg leaves in src and cmpxchg in r0. Others: 0.
 */
static inline u64 isa_eval_atomic(enum isa_op op, u64 old, u64 src, u64 r0, u64 *ret_old)
{
	*ret_old = isa_info[op].width == 4 ? (u32)old : old;
#define ISA_CASE_ALU  ISA_CASE_NO
#define ISA_CASE_JMP  ISA_CASE_NO
#define ISA_CASE_LOAD ISA_CASE_NO
#define ISA_CASE_RMW(name)                                                                   \
	case ISA_##name:                                                                           \
		return isa_eval_##name(old, src, r0);
	switch ((int)op) {
#define OP(name, kind, code, sel, val, width, fx, fields, ev, expr, ...) ISA_CASE_##ev(name)
#include "isa/insn.def"
	}
#undef ISA_CASE_ALU
#undef ISA_CASE_JMP
#undef ISA_CASE_LOAD
#undef ISA_CASE_RMW
	return 0;
}
#undef ISA_CASE_NO

#endif
