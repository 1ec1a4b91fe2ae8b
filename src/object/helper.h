/* SPDX-License-Identifier: BSD-2-Clause */
/* What a helper is: its body and everything verifier, rewriter, engines and disassembler need to know, in one descriptor. */
#ifndef INLAY_OBJECT_HELPER_H
#define INLAY_OBJECT_HELPER_H

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
};

/* By UAPI number; NULL: inlay has no such helper. */
const struct helper_desc *helper_by_id(u32 id);
/* enum helper_group bits of helpers.def; 0: inlay has no such helper. */
u32 helper_groups(u32 id);
/* "bpf_…" for any number Linux 6.18 knows, else "unknown". */
const char *helper_name(u32 id);
/* Linux 6.18 has a helper with this number. */
bool helper_id_known(u32 id);

#endif
