/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compilers: what they share (jit.c), their memory (codemem.c), what profilers are told (perf.c), and one folder a
 * machine behind struct jit_target.
 *
 * Every compiler is built on every machine: the machine's own makes code that runs, the others' is for show.
 *
 * A compilation is a few flat passes and one malloc; native code is written once, straight to where it stays:
 *   1. jit.c walks over the text: operation, jump targets, loop heads, cold runs, what each subprogram uses, and an upper
 *      bound of the size of every instruction's code. The bounds decide which jumps forward are short: no second round.
 *   2. the target emits, subprogram by subprogram, hot code before cold, fusing what it knows how to fuse, and aims jumps.
 *   3. jit.c publishes: trims the memory, tells profilers, sets entry and functions.
 */
#ifndef INLAY_EXEC_JIT_JIT_H
#define INLAY_EXEC_JIT_JIT_H

#include "exec/exec_int.h"

/* A piece of code memory: the same bytes at two addresses, one written to, one run. */
struct jit_block {
	u8 *rw;
	const u8 *rx;
	u32 size; /* bytes, a multiple of JIT_GRANULE */
};

#define JIT_GRANULE 64

/*
 * Code memory of the process: a memfd mapped twice, so that no address is ever both writable and executable, near the
 * library's own code so that a call of a helper is one instruction. Unused bytes trap. After fork() the child makes
 * memory of its own: the parent's is shared with it and is only read. All thread-safe.
 */

/* 0, or -errno if there is no code memory to be had (EACCES, EPERM: the system refuses). Asked once. */
int jit_mem_init(void);
/* size bytes, 64-byte aligned, all trapping; 0 or -ENOMEM. */
int jit_mem_alloc(u32 size, struct jit_block *ret_block);
/* What was written to it runs from now on, on every processor; to be called before anybody can enter it. */
void jit_mem_sync(const struct jit_block *block);
/* Gives back what is beyond used bytes. */
void jit_mem_trim(struct jit_block *block, u32 used);
/* No thread may run it any more. Takes an empty block. */
void jit_mem_free(struct jit_block *block);
/* First byte of the block that pc lies in, NULL: none. For the fault handler: async-signal-safe. */
const u8 *jit_mem_find(u64 pc);

/*
 * What every block begins with; the fault handler reads it. The code follows at once, and all offsets are from the first
 * byte of the code unless said otherwise.
 */
struct jit_head {
	u32 len;      /* of the block, bytes in use, this head included */
	u32 fixups;   /* offset of the table of faults, from the block's first byte */
	u32 nr_fixups;
	u32 magic;
};

#define JIT_MAGIC 0x6a796c69

/* Code that faults, and where to go on then. */
struct jit_fixup {
	u32 fault, resume;
};

/* jit_insn.flags */
enum {
	JIT_TARGET = 1 << 0, /* control may come from elsewhere than the instruction before */
	JIT_LOOP = 1 << 1,   /* a jump leads back here */
	JIT_COLD = 1 << 2,
	JIT_SECOND = 1 << 3, /* second slot of a constant */
};

/* One slot of the text. */
struct jit_insn {
	u16 op;
	u8 flags;
	u8 max;	 /* bytes of code at most, padding before it not counted */
};

struct jit_sub {
	u32 start, end;	 /* slots */
	u16 regs;	 /* BPF registers it names, bit n for rn */
	u16 args;	 /* those of r1..r5 it may read */
	bool calls;	 /* anything: the stack must be aligned */
	bool may_goto;
	bool tail_calls;
	bool by_pointer; /* it is a bpf_func */
	bool cold;	 /* has cold code */
	u32 bound;	 /* struct jit_target's sub_bound */
	u32 entry;	 /* offset of its first instruction, thunks passed; the target's */
	u32 thunk;	 /* the same of what bpf_func.call calls; 0: nothing; the target's */
	u8 depth;	 /* frames from an entry to it, itself included; 0: never called */
};

struct jit_image {
	struct exec_head head;
	struct jit_block block;
	u32 len;       /* of the code */
	u32 *insn_off; /* by slot; 0: none of its own */
	u32 *sub_off;  /* by subprogram */
};

struct jit_table;

/* A compilation. */
struct jit {
	const struct jit_target *target;
	const struct jit_table *table; /* the target's sizes */
	struct prog *prog;	 /* whose functions the code refers to */
	const struct prog *text;
	struct strbuf *log;
	struct jit_image *image;
	struct jit_insn *insn;	 /* by slot of the text */
	u64 bound;		 /* of the size of everything but the fixups */
	struct jit_sub *sub;
	struct jit_ref *ref;	 /* places that name an instruction, to be aimed */
	u32 nr_refs, max_refs;
	struct jit_stub *stub;	 /* out of the way of the subprogram being emitted */
	u32 nr_stubs, max_stubs;
	struct jit_fixup *fixup;
	u32 nr_fixups, max_fixups;
	u32 nr_calls;		 /* of subprograms */
	bool tail_calls;	 /* any subprogram does */
	bool throws;		 /* the same */
	u32 exception_cb;	 /* subprogram a throw goes on with */
	bool probes;
	bool far;		 /* every jump forward is a long one */
	void *scratch;		 /* insn … fixup */
	struct jit_block block;
	u8 *code;		 /* where it is written: behind the head */
	u64 addr;		 /* where it will run */
	u32 len;		 /* emitted */
};

/* A place in the code that gets the distance to something not emitted when it was. */
struct jit_ref {
	u32 at;		  /* offset of the field (x86-64: the end of its instruction; arm64: the instruction) */
	u32 to;		  /* slot, or subprogram */
	u8 size;	  /* of the field in bytes: 1, 4 */
	bool sub;
};

/* Rarely reached code of one instruction. */
struct jit_stub {
	u32 from;  /* offset of the 32-bit field that gets the distance to it; 0: none */
	u32 back;  /* offset where it goes on */
	u32 fault; /* offset of an instruction that may fault; 0: none */
	u32 to;	   /* slot where it goes on, if not at back */
	u8 kind, reg, w; /* the target's */
};

/* Upper bound of the code of one row: base, and more where immediate or offset do not fit a signed byte. */
struct jit_size {
	u16 op;
	u8 base, imm, off;
	u8 known : 1; /* by code only: there is no other row, or off_0 and off is 0 */
	u8 off_0 : 1;
	u8 claimed : 1;
	u8 plain : 1; /* nothing to look at but its registers */
	u8 dst : 1, src : 1; /* names a register there */
};

/* What may stand before a loop's head, and behind an instruction where there is cold code: a jump. */
#define JIT_LOOP_PAD 15
#define JIT_COLD_PAD 5

struct jit_target {
	const char *arch;
	const struct caps caps;
	u16 elf_machine;
	/* Upper bound of the code of an instruction. op is claimed; fact NULL: no tail call. */
	u8 (*bound)(enum isa_op op, const struct bpf_insn *insn, const struct insn_fact *fact);
	u8 throw_bound; /* the same of what an exit needs more in a program that can throw */
	/* The same of what a subprogram needs beside: thunk, prologue, padding. */
	u32 (*sub_bound)(const struct jit *j, const struct jit_sub *sub);
	/* Emits everything into j->block. 0, -ERANGE: try again with j->far, or -errno with the reason in the log. */
	int (*emit)(struct jit *j);
	bool (*claims)(enum isa_op op);
};

extern const struct jit_target jit_target_x86_64, jit_target_arm64;

/* Of this machine; in its target.c. */
extern const struct jit_target *const jit_native;
extern const struct exec_impl jit_impl;

/* exec_impl.prepare */
int jit_prepare(struct prog *prog, struct strbuf *log);

/* 0: programs can be compiled here; -errno why not. */
int jit_available(void);
void jit_info(const struct prog *prog, struct exec_jit_info *ret_info);
/* exec_jit_show() */
int jit_show(const struct prog *prog, const char *arch, struct exec_jit_info *ret_info, void **ret_mem, struct strbuf *log);

/* Why a program cannot be compiled, for the log; -EOPNOTSUPP. */
int jit_refuse(const struct jit *j, u32 pc, const char *what, const char *name);
/* The value a two-slot load gets at run time. */
u64 jit_imm64(const struct jit *j, u32 pc);

/*
 * Where a tail call goes on: code to jump to, and the program for its second argument (exec_head.tail_entry). code NULL:
 * behind the call.
 */
struct jit_jump {
	u64 (*code)(void *ctx, struct prog *prog);
	struct prog *prog;
};
struct jit_jump jit_tail_jump(struct map *map, u64 index);

/* For tests: upsets what luck decides. Zero is the default. */
struct jit_knobs {
	bool far;	  /* no short jumps forward */
	bool no_fuse;	  /* every instruction for itself */
	bool no_features; /* a processor without extensions */
	bool slow_div;	  /* one that divides 64 bits slowly */
	bool far_calls;	  /* helpers are out of reach of a near call */
};
extern struct jit_knobs jit_knobs;

/* Tells profilers, if INLAY_PERF_MAP or INLAY_JITDUMP ask for it. */
void jit_perf_publish(const struct prog *prog, const struct jit_image *image);

#endif
