/* SPDX-License-Identifier: BSD-2-Clause */
/* Random programs that the verifier accepts nearly all of, for engines to disagree on. */
#ifndef INLAY_FUZZ_DIFFGEN_H
#define INLAY_FUZZ_DIFFGEN_H

#include "base/types.h"
#include "isa/isa.h"

#define DIFF_MAX_INSNS 2048
#define DIFF_MAX_FUNCS 8
#define DIFF_STATEMENTS 24

/* Maps by what programs do with them; the numbers stand for descriptors in the generated text. */
enum diff_map {
	DIFF_VALUE = 1, /* array 4/64/1: its value is r7 */
	DIFF_HASH,	/* 8/16 */
	DIFF_ARRAY,	/* 4/24/8 */
	DIFF_PERCPU,	/* array 4/8/4 */
	DIFF_PHASH,	/* per-CPU hash 8/8 */
	DIFF_OUTER,	/* array of maps like DIFF_HASH, 4 */
	DIFF_STORAGE,	/* task storage, 16 */
	DIFF_STORAGE_2, /* the same: who mixes up slots finds the other's value */
	DIFF_STORAGES,	/* array of maps like DIFF_STORAGE, 4: both are in it */
	DIFF_TAIL,	/* array of programs, 4, every other one there */
	DIFF_MAPS
};

#define DIFF_KEYS 8 /* keys of hashes are below */

struct diff_prog {
	struct bpf_insn insns[DIFF_MAX_INSNS];
	u32 nr;
	u32 funcs[DIFF_MAX_FUNCS]; /* where functions begin, ascending; [0] is 0 */
	u32 nr_funcs;
	bool has_callback; /* needs func_info */
	bool uses_storage;
};

/* Where a task_struct has these, for loads through tasks; without it no program has such. Before the first program. */
void diff_task_layout(s16 real_parent, s16 pid, s16 tgid);

/* The program of a seed; statements whose bit is in skip are left out and all else stays as it is. */
void diff_generate(struct diff_prog *p, u64 seed, u32 skip);

#endif
