/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes a rewritten program executable: sets prog->entry, prog->funcs and prog->image. What runs is prog->lowered where
 * there is one, else prog's own text. Two engines:
 *   the compiler of this machine (jit/): native code, chosen unless the instance says interp
 *   the interpreter: the program decoded once into a dense form and run by threaded code that is generated,
 *     instruction by instruction, from isa/insn.def and isa/eval.h. It executes every row the compilers do.
 *
 * Memory safety is the verifier's proof (invariant 1); what the engines add: frames of their own for subprograms, zeroed
 * when entered where their bytes may be read before they are written (the interpreter: always), at most PROG_MAX_FRAMES
 * of them; loads through pointers that may be stale read zero where a fault would be, and below 64 KiB; may_goto is
 * taken for good after EXEC_MAY_GOTO_MAX rounds; at most EXEC_TAIL_CALLS_MAX tail calls in one run.
 */
#ifndef INLAY_EXEC_EXEC_H
#define INLAY_EXEC_EXEC_H

#include "base/strbuf.h"
#include "object/gen.h"
#include "object/prog.h"

struct inlay;

/*
 * Rounds a may_goto lets through in one call of its function: BPF_MAX_LOOPS of Linux, where it does not
 * measure time. A count makes a run repeatable.
 */
#define EXEC_MAY_GOTO_MAX (8u << 20)

/* Tail calls of one run, those made in subprograms included: Linux's MAX_TAIL_CALL_CNT. */
#define EXEC_TAIL_CALLS_MAX 33

enum exec_engine {
	EXEC_AUTO,   /* what the instance wants; without an instance the compiler. Falls back to the interpreter */
	EXEC_INTERP,
	EXEC_JIT,    /* the compiler or nothing */
};

/*
 * What the engine that exec_prepare() will choose for this instance can do, for rw_lower(). inlay may be NULL. Never
 * NULL; the interpreter's is {"interp", 0}: it is the outlined twin, though it executes internal rows too.
 */
const struct caps *exec_caps(const struct inlay *inlay);

/*
 * prog: rewritten, not visible to others. Functions loaded by ld_imm64 become pointers to prog->funcs[],
 * whose call may be used by helpers while the program runs. 0, -ENOMEM, or -EOPNOTSUPP with the reason in
 * log (may be NULL): an instruction or helper this engine cannot execute. Where the compiler cannot and the interpreter
 * can, 0, and the log says why it is interpreted; if it is this program and not the system that keeps it from being
 * compiled, the instance's log says so as well (a warning), and nr_refused of the instance counts it. The program then runs in any thread, signal handlers included, any
 * number at once. prog->image_free() gives everything back; no run may be under way.
 */
int exec_prepare(struct prog *prog, struct strbuf *log);
/* The same with the engine chosen by the caller. */
int exec_prepare_as(struct prog *prog, enum exec_engine engine, struct strbuf *log);

/* Of a compiled program; pointers are the program's and live as long as its image. */
struct exec_jit_info {
	const char *arch; /* "x86_64", "arm64" */
	const u8 *code;	  /* machine code, at the address where it runs; the entry is its first byte */
	u32 len;	  /* bytes */
	const struct prog *text; /* whose instructions were compiled: the program or its lowered form */
	/*
	 * By instruction of text: where its code begins, as offset into code; 0: none of its own (second slot, or done
	 * together with the instruction before it). Cold code makes offsets not ascending.
	 */
	const u32 *insn_off;
	const u32 *sub_off; /* by subprogram of text: where it begins, its thunk and prologue included */
};

/* 0, or -ENOENT: the program is not compiled. */
int exec_jit_info(const struct prog *prog, struct exec_jit_info *ret_info);

/*
 * What the compiler of a machine ("x86_64", "arm64"), perhaps another one, makes of a program that is prepared: for show.
 * Its helpers are taken to stand as near as this machine's, its processor to have no extensions. free(*ret_mem) when done.
 * 0, -ENOENT no such machine, -ENOMEM, or -EOPNOTSUPP with the reason in log (may be NULL).
 */
int exec_jit_show(const struct prog *prog, const char *arch, struct exec_jit_info *ret_info, void **ret_mem, struct strbuf *log);

#endif
