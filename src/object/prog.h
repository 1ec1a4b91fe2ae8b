/* SPDX-License-Identifier: BSD-2-Clause */
/* A program: what was loaded, what the verifier found out about it, what runs, and how often it ran. */
#ifndef INLAY_OBJECT_PROG_H
#define INLAY_OBJECT_PROG_H

#include "object/obj.h"
#include "rcu/rcu.h"

struct bpf_insn;
struct btf;
struct helper_desc;
struct kfunc_desc;
struct map;
struct prog;
struct prog_type_ops;

#define PROG_NAME_LEN 16
#define PROG_MAX_FRAMES 8
#define PROG_STACK 512

/*
 * A BPF function as run-time value: what ld_imm64 of a subprogram puts in a register and what helpers that take a
 * callback call. The engine sets call.
 */
struct bpf_func {
	u64 (*call)(struct bpf_func *func, u64 r1, u64 r2, u64 r3, u64 r4, u64 r5);
	struct prog *prog;
	u32 subprog;
};

/* One instruction's facts, made by the verifier, moved along by rw_patch(), read by rewrite/ and exec/. */
enum insn_mem {
	INSN_MEM_NONE = 0,
	INSN_MEM_PLAIN, /* proved safe: stack, map value, record, packet */
	INSN_MEM_CTX,	/* context: the program type converts it */
	INSN_MEM_PROBE, /* BTF pointer that may be stale or NULL: a fault reads as zero */
};

/* The function loaded is never called (the callback of a loop of no rounds) and has been removed. */
#define PROG_NO_SUBPROG U32_MAX

struct insn_fact {
	u8 seen : 1;	     /* some path reaches it */
	u8 jump_taken : 1;   /* conditional jump: some path takes it */
	u8 jump_fallen : 1;  /* … some path falls through */
	u8 zext : 1;	     /* 32-bit definition whose upper half is relied on */
	u8 storage_atomic : 1; /* HELPER_STORAGE_GET: allocate without sleeping */
	u8 mem;		     /* enum insn_mem, loads and stores */
	u8 call_subprog : 1; /* call of a subprogram: subprog is which */
	u8 map_poisoned : 1; /* helper call reached with different maps */
	u8 cold : 1;	     /* unlikely to run: an engine may place it out of the way */
	u8 inner_map : 1;    /* map is only a pattern: the call gets some map of that shape, found in a map of maps */
	u8 owner_valid : 1;  /* HELPER_STORAGE_GET: the owner argument is proved to be no NULL and no stale pointer */
	u8 load_known : 1;   /* load: it reads imm64 whenever it runs, since the map it reads is constant */
	u8 load_varies : 1;  /* … on one path it does not */
	u8 fastcall_pattern : 1; /* spill or fill around a call, of a register such a call need not lose */
	u8 fastcall_spills; /* HELPER_FASTCALL: so many spills right before and fills right behind go if the call is inlined */
	u32 subprog;	     /* pseudo call, or ld_imm64 of a function: index into prog->subprogs; or PROG_NO_SUBPROG */
	u32 orig;	     /* index in the program as it was loaded */
	struct map *map;     /* ld_imm64 of a map or its value; helper call: the one map it gets (NULL: none or several) */
	union {
		u64 imm64; /* ld_imm64: the value it loads at run time (map pointer, value address, kernel symbol …); load_known */
		const struct kfunc_desc *kfunc; /* call of a kernel function; fn is its body */
	};
	const struct helper_desc *helper; /* call of a helper */
	/* call of a helper: what is called in its place, a twin of helper->fn for this one map; NULL: helper->fn. rewrite/'s */
	u64 (*fn)(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5);
};

/* What became of one call of a helper: what --show-inlining shows. */
struct prog_inlined {
	u32 orig; /* index in the program as it was loaded */
	const struct helper_desc *helper;
	bool done;	  /* it is not the plain call any more */
	const char *what; /* what stands in its place, or why nothing does; static */
};

struct prog_subprog {
	u32 start;	 /* first instruction */
	u32 stack_depth; /* bytes, 8-aligned */
	u32 fastcall_depth; /* stack_depth once all fastcall_spills are gone: what Linux reports; stack_depth if there are none */
	s32 func_info;	 /* index into func_info, -1 none */
	bool is_cb;	 /* only ever called through bpf_func */
	bool is_global;
	bool is_exception_cb; /* what a throw goes on with; at most one */
	bool reads_stale; /* may read bytes of its stack it has not written: they read as zero */
	const char *name; /* from BTF; NULL without */
};

struct prog_line {
	u32 insn_off, file_name_off, line_off, line_col;
};

struct prog_func_info {
	u32 insn_off, type_id;
};

/* Run statistics, as Linux keeps them, and the distribution behind them. One a vCPU; padded by the allocator. */
struct prog_stats {
	u64 cnt, nsecs, misses;
	u32 hist[64 * 8]; /* log-linear buckets of ns: 8 an octave */
};

struct prog {
	struct obj obj;
	const struct prog_type_ops *ops;
	u32 type, expected_attach_type, flags /* BPF_F_* of PROG_LOAD */;
	char name[PROG_NAME_LEN];
	bool gpl_compatible, sleepable;

	struct bpf_insn *orig; /* as loaded */
	u32 nr_orig;
	struct bpf_insn *insns; /* xlated: what the verifier judged, then what rewrite/ made of it */
	u32 nr_insns;
	struct insn_fact *facts; /* nr_insns */
	struct prog_subprog *subprogs;
	u32 nr_subprogs; /* 0 is the program itself */
	struct map **maps; /* used maps, references held */
	u32 nr_maps;

	struct btf *btf; /* of the object file; NULL: none. Reference held */
	struct obj *btf_obj; /* its object */
	struct prog_func_info *func_info;
	u32 nr_func_info;
	struct prog_line *line_info;
	u32 nr_line_info;

	/* tracing programs: what they attach to, in the machine's BTF */
	u32 attach_btf_id;
	const char *attach_name;  /* tracepoint or function name */
	u32 attach_proto;	  /* FUNC_PROTO id; 0: none */

	u8 tag[8];
	u64 load_time_ns; /* boot time */
	u32 uid;
	u32 verified_insns;
	u32 max_ctx_offset; /* end of the furthest context byte accessed; the verifier's */
	bool throws; /* some path comes to a KFUNC_THROWS; the verifier's */

	/*
	 * What runs: a shadow that owns insns, facts, subprogs and line_info of its own, all else is this program's. insns
	 * above stay the xlated text that is shown. NULL: insns themselves run. rewrite/ makes it, rw_lowered_free() frees it.
	 */
	struct prog *lowered;
	void (*lowered_free)(struct prog *prog); /* set with lowered */
	struct prog_inlined *inlined;		 /* of a shadow: its calls, in the order of the text */
	u32 nr_inlined;

	/* run side */
	u64 (*entry)(struct prog *prog, void *ctx); /* set by exec/; runs the body only */
	struct bpf_func *funcs; /* nr_subprogs */
	void *image;		/* exec/'s */
	void (*image_free)(struct prog *prog);
	struct prog_stats *stats; /* one a vCPU */
	struct rcu_cb rcu;	  /* deferred free */
};

static inline struct prog *prog_of(struct obj *obj)
{
	return container_of_(obj, struct prog, obj);
}

/* What helpers may need of the run they are called from; env_tls.prog_run points to it. */
struct prog_run_ctx {
	struct prog *prog;
	void *ctx;		    /* the program's r1 */
	struct prog_run_ctx *outer; /* run this one interrupted or was called from */
	u64 bpf_cookie;
};

/*
 * Runs the program once on the calling thread's vCPU (env_enter() before), in a read section, counted if statistics
 * are on. Returns r0.
 */
u64 prog_run(struct prog *prog, void *ctx);
/* The same repeat times (at least once), each in a read section of its own; the last r0. */
u64 prog_run_repeat(struct prog *prog, void *ctx, u32 repeat);

/* Sums over vCPUs. */
void prog_stats_sum(const struct prog *prog, struct prog_stats *ret_sum);
/* Upper bound in ns of quantile q (0..1) of the runs counted in s; 0 without runs. */
u64 prog_stats_quantile(const struct prog_stats *s, double q);

/* An empty program object of the instance, or NULL. Freed by obj_put() after a grace period. */
struct prog *prog_create(struct inlay *inlay);

#endif
