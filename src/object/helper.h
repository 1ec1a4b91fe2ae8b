/* SPDX-License-Identifier: BSD-2-Clause */
/* What a helper is: its body and everything verifier, rewriter, engines and disassembler need to know, in one descriptor. */
#ifndef INLAY_OBJECT_HELPER_H
#define INLAY_OBJECT_HELPER_H

#include "object/gen.h"
#include "object/regtype.h"

/* Runs on the thread of the program, inside its read section; "current", vCPU and run context come from env_tls. */
typedef u64 (*helper_fn)(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5);

/* helper_desc.flags */
enum helper_flag {
	HELPER_GPL = 1u << 0,	   /* only programs with a GPL-compatible license */
	HELPER_MAY_SLEEP = 1u << 1, /* only sleepable programs */
	HELPER_PKT_ACCESS = 1u << 2,
	HELPER_CHANGES_PKT = 1u << 3,
	HELPER_ACQUIRES = 1u << 4, /* the returned pointer is a reference (bpf_ringbuf_reserve) */
	HELPER_RELEASES = 1u << 5, /* some argument carries OBJ_RELEASE */
	HELPER_FASTCALL = 1u << 6,
	HELPER_SYNC_CALLBACK = 1u << 7, /* calls desc->cb's function before it returns */
	HELPER_TAIL_CALL = 1u << 8,
	HELPER_STORAGE_GET = 1u << 9, /* r5 is the hidden allocation flag */
	HELPER_CAPS_PERFMON = 1u << 10,
	HELPER_WRITES_MAP = 1u << 11, /* changes the map it is given: not one that is read-only for programs */
	HELPER_RET_SIZE = 1u << 12, /* returns -MAX_ERRNO … the most its size argument can be (probe_read_*_str) */
	HELPER_RET_CPU = 1u << 13,  /* returns a CPU number */
	HELPER_PURE = 1u << 14,	    /* changes nothing a program can see and reads nothing its arguments point to */
	HELPER_LOOP = 1u << 15,	    /* bpf_loop: up to r1 times cb(i, r3) until it is not 0; r0 is how often. r4 must be 0 */
	HELPER_VARIADIC = 1u << 17, /* may read arguments that arg does not name, whatever they are */
	HELPER_MAP_LOOKUP = 1u << 16, /* map_ops.lookup: what Linux shows of it depends on the map (map_ops.shown) */
};

/* Where a helper belongs; a program type names the groups it allows. */
enum helper_group {
	HELPERS_BASE = 1u << 0,	   /* every program type */
	HELPERS_TRACING = 1u << 1, /* tracing, raw tracepoint, tracepoint, kprobe, perf_event */
	HELPERS_NET = 1u << 2,	   /* programs that see packets */
};

/* How a callback's registers are set up at entry: r1..r5. */
enum cb_reg {
	CB_UNUSED = 0,
	CB_SCALAR,    /* unknown 64-bit number */
	CB_MAP,	      /* CONST_PTR_TO_MAP of the helper's map argument */
	CB_MAP_KEY,   /* PTR_TO_MAP_KEY */
	CB_MAP_VALUE, /* PTR_TO_MAP_VALUE, not NULL */
	CB_CTX_ARG,   /* whatever the helper got in argument cb->ctx_arg (0-based) */
	CB_BTF_PTR,   /* trusted pointer to cb->btf */
};

struct callback_desc {
	u8 func_arg; /* 0-based argument that is ARG_PTR_TO_FUNC */
	u8 ctx_arg;  /* 0-based argument handed on as CB_CTX_ARG */
	u8 reg[5];   /* enum cb_reg for r1..r5 */
	u8 calls_arg; /* 1-based argument that is the most times it is called (bpf_loop); 0: not bounded so */
	s32 ret_min, ret_max; /* what the callback may return */
	const char *btf;
};

struct helper_desc {
	const char *name; /* "bpf_map_lookup_elem" */
	u32 id;		  /* UAPI number */
	helper_fn fn;	  /* NULL: for judging only; a program that calls it is refused when it is to run */
	u32 flags;	  /* enum helper_flag */
	u32 ret;	  /* enum ret_type | enum type_flag */
	u32 arg[5];	  /* enum arg_type | enum type_flag */
	u32 ret_size;
	u32 arg_size[5];	/* MEM_FIXED_SIZE */
	const char *ret_btf;	/* struct name */
	const char *arg_btf[5]; /* struct name; looked up in the machine's BTF */
	u64 map_types;		/* bit n: map type n is required to be one of these; 0: any */
	const struct callback_desc *cb;
	/*
	 * Judges the text of an ARG_PTR_TO_CONST_STR argument at load; size: what the helper's last ARG_CONST_SIZE(_OR_ZERO)
	 * argument is at most. 0, or -errno (EINVAL: "Invalid format string"). NULL: any text will do.
	 */
	int (*check_str)(const char *text, u64 size);
	gen_fn shown; /* what Linux shows in place of a call, in plain instructions; NULL: the call */
	gen_fn gen; /* code in place of a call, whatever map it gets (object/gen.h); NULL: none. INLINE_HELPER */
};

/* kfunc_desc.flags: Linux's (KF_*), then what a call does to the state of the program. */
enum kfunc_flag {
	KFUNC_ACQUIRE = 1u << 0,      /* the returned pointer is a reference */
	KFUNC_RELEASE = 1u << 1,      /* gives back the reference it gets; its pointers must be trusted */
	KFUNC_RET_NULL = 1u << 2,     /* may return NULL */
	KFUNC_TRUSTED_ARGS = 1u << 3, /* pointers to structures must be trusted or referenced */
	KFUNC_RCU_ARGS = 1u << 4,     /* … or protected by RCU */
	KFUNC_SLEEPABLE = 1u << 5,    /* only sleepable programs, outside of sections */
	KFUNC_FASTCALL = 1u << 6,     /* loses r0 and its arguments only */
	KFUNC_RCU_LOCK = 1u << 7,     /* opens a section; these do not nest */
	KFUNC_RCU_UNLOCK = 1u << 8,
	KFUNC_PREEMPT_OFF = 1u << 9, /* opens a section; these nest */
	KFUNC_PREEMPT_ON = 1u << 10,
	KFUNC_THROWS = 1u << 11, /* never returns: the engines leave the program, through its exception callback, with r1 */
	KFUNC_CAST = 1u << 12,	 /* r0 = r1, of the type its second argument names by id; rewrite/ makes it a move */
};

/* Program types that may call a kernel function beside those every type may; prog_type_ops.kfunc_groups. */
enum kfunc_group {
	KFUNCS_COMMON = 0,	 /* every program type */
	KFUNCS_GENERIC = 1u << 0, /* tracing, tracepoint, … : Linux's generic set */
};

/*
 * A kernel function programs may call. Arguments are judged by its prototype in the machine's BTF and the endings of its
 * parameters' names (__sz, __k, __ign …), as in Linux.
 */
struct kfunc_desc {
	const char *name; /* "bpf_task_acquire"; BTF gives it its number */
	/* Arguments narrower than 64 bits have anything above them; so may the result. NULL: KFUNC_THROWS, KFUNC_CAST */
	helper_fn fn;
	u32 flags; /* enum kfunc_flag */
	/*
	 * What fn is written for, the result first: "v" void, "i" a number, "p" a pointer, "p:NAME" one to struct NAME; a
	 * machine whose BTF says otherwise has no such function.
	 */
	const char *proto;
};

/* By name; NULL: inlay has no such function. */
const struct kfunc_desc *kfunc_by_name(const char *name);
/* enum kfunc_group bits of kfuncs.def. */
u32 kfunc_groups(const struct kfunc_desc *kfunc);

/* By UAPI number; NULL: inlay has no such helper. */
const struct helper_desc *helper_by_id(u32 id);
/* enum helper_group bits of helpers.def; 0: inlay has no such helper. */
u32 helper_groups(u32 id);
/* "bpf_…" for any number Linux 6.18 knows, else "unknown". */
const char *helper_name(u32 id);
/* Linux 6.18 has a helper with this number. */
bool helper_id_known(u32 id);

#endif
