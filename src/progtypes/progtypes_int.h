/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the program types. */
#ifndef INLAY_PROGTYPES_PROGTYPES_INT_H
#define INLAY_PROGTYPES_PROGTYPES_INT_H

#include "object/progtype.h"

#define PROG_TYPE(name_) extern const struct prog_type_ops prog_type_##name_;
#include "progtypes/prog_types.def"
#undef PROG_TYPE

#define RAW_TP_MAX_ARGS 12 /* Linux's MAX_BPF_FUNC_ARGS */

/*
 * Access to a context that is an array of the traced function's arguments, typed by prog->attach_proto; skip leading
 * parameters of the prototype are hidden from the program. Linux's btf_ctx_access().
 */
bool progtype_btf_ctx_access(const struct prog *prog, u32 skip, s32 off, u32 size, struct ctx_access *info);

/* Reads only, off a multiple of size, inside [lo, hi). */
bool progtype_plain_read(s32 off, u32 size, bool write, s32 lo, s32 hi, struct ctx_access *info);

void progtype_any_return(const struct prog *prog, struct ret_range *ret);

/* BPF_PROG_TEST_RUN of a raw tracepoint program: ctx_in is the argument array. */
int progtype_raw_tp_test_run(struct prog *prog, struct test_run *run);

/*
 * Puts the calling thread on a vCPU (cpu, or a free one where cpu is U32_MAX; waits for it) and runs the program repeat
 * (at least one) times. 0, run->retval the last r0, run->duration the mean time of a run in ns; or -EINTR, some runs made,
 * where inlay_interrupt() came meanwhile.
 */
int progtype_run(struct prog *prog, void *ctx, u32 cpu, u32 repeat, struct test_run *run);

#endif
