// SPDX-License-Identifier: BSD-2-Clause
/*
 * The interpreter: one handler an operation, each ending in a jump to the next one's. Handlers are generated from
 * insn.def, one macro a kind; what they compute is isa_eval_<name>().
 */
#include <string.h>

#include "base/probe.h"
#include "env/env.h"
#include "exec/exec_int.h"
#include "isa/eval.h"

#define NULL_GUARD 65536 /* nothing is mapped below: a NULL with an offset need not fault to be found */

typedef u64 (*helper_call)(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5);

struct frame {
	u64 saved[5];		       /* the caller's r6..r10 */
	const struct exec_insn *ret;   /* the caller's call; NULL: leave the interpreter */
	u32 may_goto;		       /* rounds left */
	u8 stack[PROG_STACK] __attribute__((aligned(16)));
};

static u64 probe_load(const void *addr, u32 size)
{
	u64 raw = 0;

	if ((u64)addr < NULL_GUARD || probe_read(&raw, addr, size))
		return 0;
	return raw;
}

static inline void enter(struct frame *f, u32 depth)
{
	f->may_goto = EXEC_MAY_GOTO_MAX;
	memset(f->stack + PROG_STACK - depth, 0, depth);
}

/* the words of insn.def's column fx that atomics need */
enum { DR, DW, SR, MR, MW, R0R, R6R, CALL, SW = ISA_FX_SW, R0W = ISA_FX_R0W };

#define DST	  regs[pc->dst]
#define SRC	  regs[pc->src]
#define ADDR(reg) ((void *)((reg) + (u64)(s64)pc->off))
#define GO	  goto *(base + pc->handler)
#define NEXT                                                                                       \
	do {                                                                                       \
		pc++;                                                                              \
		GO;                                                                                \
	} while (0)

#define RUN_ALU(name, code, width, fx)                                                             \
	op_##name:                                                                                 \
	DST = isa_eval_##name(DST, (code)&BPF_X ? SRC : pc->imm);                                  \
	NEXT;
#define RUN_MOV RUN_ALU
#define RUN_NEG RUN_ALU
#define RUN_END(name, code, width, fx)                                                             \
	op_##name:                                                                                 \
	DST = isa_eval_##name(DST, 0);                                                             \
	NEXT;
#define RUN_LD_IMM64(name, code, width, fx)                                                        \
	op_##name:                                                                                 \
	DST = pc->imm;                                                                             \
	NEXT;
#define RUN_LDX(name, code, width, fx)                                                             \
	op_##name:                                                                                 \
	{                                                                                          \
		u64 raw = 0;                                                                       \
		if (BPF_MODE(code) == ISA_PROBE_MEM || BPF_MODE(code) == ISA_PROBE_MEMSX)          \
			raw = probe_load(ADDR(SRC), width);                                        \
		else                                                                               \
			memcpy(&raw, ADDR(SRC), width);                                            \
		DST = isa_eval_##name(raw);                                                        \
		NEXT;                                                                              \
	}
#define RUN_ST(name, code, width, fx)                                                              \
	op_##name:                                                                                 \
	memcpy(ADDR(DST), &pc->imm, width);                                                        \
	NEXT;
#define RUN_STX(name, code, width, fx)                                                             \
	op_##name:                                                                                 \
	memcpy(ADDR(DST), &SRC, width);                                                            \
	NEXT;
#define RUN_LOAD_ACQ(name, code, width, fx)                                                        \
	op_##name:                                                                                 \
	DST = isa_eval_##name(__atomic_load_n((ISA_U##width *)ADDR(SRC), __ATOMIC_ACQUIRE));       \
	NEXT;
#define RUN_STORE_REL(name, code, width, fx)                                                       \
	op_##name:                                                                                 \
	__atomic_store_n((ISA_U##width *)ADDR(DST), (ISA_U##width)SRC, __ATOMIC_RELEASE);          \
	NEXT;
#define RUN_ATOMIC(name, code, width, fx)                                                          \
	op_##name:                                                                                 \
	{                                                                                          \
		ISA_U##width *p = ADDR(DST), old = __atomic_load_n(p, __ATOMIC_RELAXED);           \
		while (!__atomic_compare_exchange_n(p, &old,                                       \
						    (ISA_U##width)isa_eval_##name(old, SRC, regs[0]), \
						    false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))    \
			;                                                                          \
		if ((fx)&SW)                                                                       \
			SRC = old;                                                                 \
		if ((fx)&R0W)                                                                      \
			regs[0] = old;                                                             \
		NEXT;                                                                              \
	}
#define RUN_JA(name, code, width, fx)                                                              \
	op_##name:                                                                                 \
	pc += pc->jump;                                                                            \
	GO;
#define RUN_JMP(name, code, width, fx)                                                             \
	op_##name:                                                                                 \
	if (isa_eval_##name(DST, (code)&BPF_X ? SRC : (u64)(s64)pc->imm32)) {                      \
		pc += pc->jump;                                                                    \
		GO;                                                                                \
	}                                                                                          \
	NEXT;
#define RUN_PERCPU(name, code, width, fx)                                                          \
	op_##name:                                                                                 \
	DST = SRC + (u64)env_tls.cpu * pc->imm;                                                    \
	NEXT;
#define RUN_TLS(name, code, width, fx)                                                             \
	op_##name:                                                                                 \
	{                                                                                          \
		u64 raw = 0;                                                                       \
		memcpy(&raw, (char *)&env_tls + pc->off, width);                                   \
		DST = raw;                                                                         \
		NEXT;                                                                              \
	}
/* kinds with a handler of their own below, or none */
#define RUN_CALL(name, code, width, fx)
#define RUN_EXIT(name, code, width, fx)
#define RUN_MAY_GOTO(name, code, width, fx)
#define RUN_CAST(name, code, width, fx)
#define RUN_LD_ABS(name, code, width, fx)
#define RUN_LD_IND(name, code, width, fx)

#define HAS_ALU	      1
#define HAS_MOV	      1
#define HAS_NEG	      1
#define HAS_END	      1
#define HAS_LD_IMM64  1
#define HAS_LDX	      1
#define HAS_ST	      1
#define HAS_STX	      1
#define HAS_LOAD_ACQ  1
#define HAS_STORE_REL 1
#define HAS_ATOMIC    1
#define HAS_JA	      1
#define HAS_JMP	      1

/*
 * handlers non-NULL: only gives the table, which exists nowhere but in here. A handler's distance is never 0, since the
 * base is no handler.
 */
static u64 interpret(const struct exec_sub *sub, const u64 arg[5], const s32 **ret_handlers)
{
#define ROW_ALU(name)	    [ISA_##name] = &&op_##name - &&base_label,
#define ROW_MOV		    ROW_ALU
#define ROW_NEG		    ROW_ALU
#define ROW_END		    ROW_ALU
#define ROW_LD_IMM64	    ROW_ALU
#define ROW_LDX		    ROW_ALU
#define ROW_ST		    ROW_ALU
#define ROW_STX		    ROW_ALU
#define ROW_LOAD_ACQ	    ROW_ALU
#define ROW_STORE_REL	    ROW_ALU
#define ROW_ATOMIC	    ROW_ALU
#define ROW_JA		    ROW_ALU
#define ROW_JMP		    ROW_ALU
#define ROW_EXIT	    ROW_ALU
#define ROW_PERCPU	    ROW_ALU
#define ROW_TLS		    ROW_ALU
#define ROW_MAY_GOTO	    ROW_ALU
#define ROW_CALL(name)	    ROW_##name
#define ROW_CALL_HELPER	    [ISA_CALL_HELPER] = &&op_CALL_HELPER - &&base_label,
#define ROW_CALL_SUBPROG    [ISA_CALL_SUBPROG] = &&op_CALL_SUBPROG - &&base_label,
#define ROW_CALL_KFUNC	    [ISA_CALL_KFUNC] = &&op_CALL_HELPER - &&base_label,
#define ROW_CAST(name)
#define ROW_LD_ABS(name)
#define ROW_LD_IND(name)
	static const s32 handlers[ISA_OP_MAX + 2] = {
#define OP(name, kind, ...) ROW_##kind(name)
#include "isa/insn.def"
		[EXEC_TAIL_CALL] = &&op_tail_call - &&base_label,
		[EXEC_THROW] = &&op_throw - &&base_label,
	};
	struct frame frames[PROG_MAX_FRAMES], *f = frames;
	const struct exec_insn *pc;
	u64 regs[ISA_NR_REGS] = { 0 };
	struct prog *target;
	const struct exec_image *image;
	const char *base;

	if (ret_handlers) {
		*ret_handlers = handlers;
		return 0;
	}
	base = &&base_label;
	memcpy(&regs[1], arg, 5 * sizeof(*arg));
	regs[10] = (u64)(f->stack + PROG_STACK);
	f->ret = NULL;
	enter(f, sub->depth);
	pc = sub->code;
	GO;

#define OP(name, kind, code, sel, val, width, fx, ...) RUN_##kind(name, code, width, fx)
#include "isa/insn.def"

op_CALL_HELPER:
	regs[0] = ((helper_call)pc->imm)(regs[1], regs[2], regs[3], regs[4], regs[5]);
	NEXT;
op_CALL_SUBPROG:
	/* the verifier counts frames; this holds if it ever miscounts */
	if (unlikely(f == &frames[PROG_MAX_FRAMES - 1]))
		goto base_label;
	sub = (const struct exec_sub *)pc->imm;
	f++;
	memcpy(f->saved, &regs[6], sizeof(f->saved));
	f->ret = pc;
	enter(f, sub->depth);
	regs[10] = (u64)(f->stack + PROG_STACK);
	pc = sub->code;
	GO;
op_tail_call: /* on the caller's frame: what it would have returned to is returned to */
	target = exec_tail_target((struct map *)regs[2], regs[3]);
	regs[0] = 0;
	if (!target)
		NEXT;
	image = target->image;
	/* what a subprogram goes on with may call subprograms itself, 33 times over: frames of its own */
	if (image->head.impl == &exec_interp && f == frames) {
		pc = image->subs[0].code;
		enter(f, image->subs[0].depth);
		GO;
	}
	regs[0] = image->head.tail_entry((void *)regs[1], target);
	/* fall through */
op_EXIT:
	pc = f->ret;
	if (!pc)
		return regs[0];
	memcpy(&regs[6], f->saved, sizeof(f->saved));
	f--;
	NEXT;
op_throw: /* every frame goes; r1 is the cookie. (None of them was entered by a helper: callbacks do not throw) */
	sub = (const struct exec_sub *)pc->imm;
	f = frames;
	enter(f, sub->depth);
	regs[10] = (u64)(f->stack + PROG_STACK);
	pc = sub->code;
	GO;
op_MAY_GOTO:
	if (unlikely(!f->may_goto)) {
		pc += pc->jump;
		GO;
	}
	f->may_goto--;
	NEXT;
base_label: /* reached so that it exists: a label nobody jumps to has no address */
	return 0;
}

const s32 *exec_handlers(void)
{
	const s32 *handlers;

	interpret(NULL, NULL, &handlers);
	return handlers;
}

u64 exec_run(const struct exec_sub *sub, u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	u64 arg[5] = { r1, r2, r3, r4, r5 };

	return interpret(sub, arg, NULL);
}
