/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program type is: context, helpers, attachment, test run. One file a type in progtypes/, listed in prog_types.def. */
#ifndef INLAY_OBJECT_PROGTYPE_H
#define INLAY_OBJECT_PROGTYPE_H

#include "base/strbuf.h"
#include "object/prog.h"
#include "object/regtype.h"

struct helper_desc;
struct link;

/* What a context access is worth; filled by is_valid_access(). */
struct ctx_access {
	u32 reg_type;	  /* type of the loaded register: SCALAR_VALUE, PTR_TO_BTF_ID | PTR_TRUSTED … */
	struct btf *btf;  /* PTR_TO_BTF_ID: of the machine */
	u32 btf_id;
	u32 ctx_field_size; /* width of the field behind a narrower load; 0: as accessed */
	bool is_signed;
	struct strbuf *log; /* may be NULL: the kernel's words for a refusal */
};

/* Inclusive range a program of this type may return. */
struct ret_range {
	s32 min, max;
	bool any; /* no rule */
};

/* BPF_PROG_TEST_RUN, copied in. data_out is allocated by the type, freed by the caller. */
struct test_run {
	const void *data_in;
	u32 data_size_in;
	void *data_out;
	u32 data_size_out; /* bytes made */
	const void *ctx_in;
	u32 ctx_size_in;
	void *ctx_out; /* caller's, ctx_size_in bytes or NULL */
	u32 ctx_size_out;
	u32 flags, cpu, batch_size;
	u32 repeat;
	bool want_data_out; /* the caller gave room for data_out */
	u32 retval;   /* result */
	u32 duration; /* the caller's; result: ns, mean of a run */
};

struct prog_type_ops {
	const char *name; /* libbpf's word: "raw_tracepoint" */
	u32 type;	  /* UAPI number */
	u32 helper_groups; /* enum helper_group allowed */
	u32 kfunc_groups;  /* enum kfunc_group allowed */
	const u32 *extra_helpers; /* 0-terminated ids beyond the groups; may be NULL */

	/*
	 * Load-time rules that are not about instructions: expected_attach_type, attach_btf_id → prog->attach_*.
	 * 0 or -errno with the kernel's words in log.
	 */
	int (*check_load)(struct prog *prog, struct strbuf *log);
	/* May the program access size bytes at off of its context? */
	bool (*is_valid_access)(const struct prog *prog, s32 off, u32 size, bool write, struct ctx_access *info);
	/* Rewrites one context access into at most 8 instructions; NULL: context is memory as accessed. Count or -errno. */
	int (*convert_ctx)(const struct prog *prog, const struct bpf_insn *insn, struct bpf_insn *out);
	void (*ret_range)(const struct prog *prog, struct ret_range *ret);
	u32 ctx_size; /* bytes of a context in memory, 0: varies */
	const char *ctx_struct; /* name for kernel's messages on ctx types, e.g. "bpf_raw_tracepoint_args" */

	/* Attaches: BPF_LINK_CREATE (target_fd already resolved where it is an object) or RAW_TRACEPOINT_OPEN(name). */
	int (*attach)(struct prog *prog, const char *tp_name, struct obj *target, u64 cookie, struct link **ret_link);
	int (*test_run)(struct prog *prog, struct test_run *run); /* NULL: -LINUX_ENOTSUPP */
};

const struct prog_type_ops *prog_type_ops(u32 type);
const struct prog_type_ops *prog_type_at(u32 i); /* NULL past the end */

/* The helper if programs of this type may call it, else NULL. */
const struct helper_desc *prog_helper(const struct prog *prog, u32 id);

#endif
