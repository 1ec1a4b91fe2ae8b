/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every compiler can do: the rows of insn.def whose kind is claimed here. A target defines JIT_LOWER(name), the name
 * of its function for a row, and makes its table of
 *	#define OP(name, kind, ...) JIT_CLAIM_##kind(name)
 *	#include "isa/insn.def"
 * so a row that is claimed and has no function anywhere ends the build.
 */
#ifndef INLAY_EXEC_JIT_CLAIMS_H
#define INLAY_EXEC_JIT_CLAIMS_H

#define JIT_CLAIM_ALU(name)	     [ISA_##name] = JIT_LOWER(name),
#define JIT_CLAIM_NEG		     JIT_CLAIM_ALU
#define JIT_CLAIM_MOV		     JIT_CLAIM_ALU
#define JIT_CLAIM_PERCPU	     JIT_CLAIM_ALU
#define JIT_CLAIM_TLS		     JIT_CLAIM_ALU
#define JIT_CLAIM_END		     JIT_CLAIM_ALU
#define JIT_CLAIM_LD_IMM64	     JIT_CLAIM_ALU
#define JIT_CLAIM_LDX		     JIT_CLAIM_ALU
#define JIT_CLAIM_ST		     JIT_CLAIM_ALU
#define JIT_CLAIM_STX		     JIT_CLAIM_ALU
#define JIT_CLAIM_LOAD_ACQ	     JIT_CLAIM_ALU
#define JIT_CLAIM_STORE_REL	     JIT_CLAIM_ALU
#define JIT_CLAIM_ATOMIC	     JIT_CLAIM_ALU
#define JIT_CLAIM_JA		     JIT_CLAIM_ALU
#define JIT_CLAIM_JMP		     JIT_CLAIM_ALU
#define JIT_CLAIM_MAY_GOTO	     JIT_CLAIM_ALU
#define JIT_CLAIM_EXIT		     JIT_CLAIM_ALU
#define JIT_CLAIM_CALL(name)	     JIT_CLAIM_##name
#define JIT_CLAIM_CALL_HELPER	     [ISA_CALL_HELPER] = JIT_LOWER(CALL_HELPER),
#define JIT_CLAIM_CALL_SUBPROG	     [ISA_CALL_SUBPROG] = JIT_LOWER(CALL_SUBPROG),
#define JIT_CLAIM_CALL_KFUNC	     [ISA_CALL_KFUNC] = JIT_LOWER(CALL_KFUNC),
/* not claimed: no arenas, no packet loads */
#define JIT_CLAIM_CAST(name)
#define JIT_CLAIM_LD_ABS(name)
#define JIT_CLAIM_LD_IND(name)

#endif
