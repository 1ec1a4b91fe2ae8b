/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For the verifier's tests: an engine, eleven maps made in it and (where bpf(2) is allowed) in the kernel, programs as
 * text, and what both say of them.
 *
 *	map1 array 4/48/1	map2 hash 8/8/16	map3 ring buffer 4096	map4 program array 4/4/4
 *	map5 as map1, read-only from programs, frozen	map7 array 4/8/1	map8 array 4/64/8
 *	map9 array of maps like map7	mapa array of maps like map2	mapb hash of maps like map2
 *	mapc array of arrays 4/8/4 of which each may have a size of its own
 */
#ifndef INLAY_TESTS_VERIFIER_VT_H
#define INLAY_TESTS_VERIFIER_VT_H

#include <linux/bpf.h>
#include <stdbool.h>

#include "base/strbuf.h"
#include "isa/asm.h"

#define VT_MAPS 13

struct inlay;
struct prog;

struct vt {
	struct inlay *inlay;
	int fd[VT_MAPS];	/* of the engine; -1: it has no such map */
	int kernel_fd[VT_MAPS]; /* -1 without a kernel to ask */
	bool kernel;		/* it may be asked, and is the version followed */
	char why_not[96];
};

struct vt_verdict {
	int err;   /* 0 accepted */
	char reason[256]; /* last line that is no statistic */
	char *log; /* whole; to be freed */
	u32 insns;
};

/* Exits with 1 if there is no engine to be had. */
void vt_init(struct vt *t);
void vt_fini(struct vt *t);

/* Text to instructions; mapN and numbers of kfuncs are known. False: reason printed. */
bool vt_assemble(const char *text, struct isa_code *ret_code);

/* Types the engine does not serve are judged with a context of 64 readable bytes, for the tests of instructions. */
void vt_judge(struct vt *t, const struct bpf_insn *insns, u32 n, u32 type, u32 flags, u32 log_level,
	      struct vt_verdict *ret);
/* As vt_judge, and keeps the program with its facts in *ret_prog if accepted (obj_put it). */
void vt_judge_keep(struct vt *t, const struct bpf_insn *insns, u32 n, u32 type, u32 flags, u32 log_level,
		   struct vt_verdict *ret, struct prog **ret_prog);
void vt_ask_kernel(struct vt *t, const struct bpf_insn *insns, u32 n, u32 type, u32 flags, u32 log_level,
		   struct vt_verdict *ret);
void vt_verdict_fini(struct vt_verdict *v);

#endif
