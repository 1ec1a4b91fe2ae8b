/* SPDX-License-Identifier: BSD-2-Clause */
/* func_info and line_info of PROG_LOAD, checked as Linux checks them. Messages go to the verifier's
 * log. */
#ifndef INLAY_BTF_INFO_H
#define INLAY_BTF_INFO_H

#include <linux/bpf.h>

#include "btf/btf.h"

/*
 * Before the subprograms are known: record size, zero tails, ascending offsets, types.
 * recs: cnt records of rec_size bytes (already copied from the user); out: cnt entries. cnt may be
 * 0. 0, -EINVAL, -E2BIG (a tail this version does not know; *ret_rec_size gets the size it does).
 */
int btf_check_func_info(struct btf_log *log, const struct btf *btf, const void *recs, u32 cnt,
			u32 rec_size, struct bpf_func_info *out, u32 *ret_rec_size);
/* Only the record size, to be asked before the records are copied. 0 or -EINVAL. */
int btf_check_func_info_size(struct btf_log *log, u32 rec_size);

/* What is known of a subprogram once the control flow is read. */
struct btf_subprog {
	u32 start;	 /* first instruction */
	bool has_ld_abs; /* LD_ABS or LD_IND */
	bool has_tail_call;
};

/* The records against the subprograms found (subs[0] is the main program). 0 or -EINVAL. */
int btf_check_func_subprogs(struct btf_log *log, const struct btf *btf,
			    const struct bpf_func_info *info, u32 cnt,
			    const struct btf_subprog *subs, u32 nr_subs);

/*
 * As btf_check_func_info() for line_info; subs and nr_subs as above. insns: the program, prog_len
 * instructions (16-byte instructions count twice). Each subprogram's first record goes to
 * linfo_idx[0..nr_subs) (may be NULL).
 */
int btf_check_line_info(struct btf_log *log, const struct btf *btf, const void *recs, u32 cnt,
			u32 rec_size, const struct bpf_insn *insns, u32 prog_len,
			const struct btf_subprog *subs, u32 nr_subs, struct bpf_line_info *out,
			u32 *linfo_idx, u32 *ret_rec_size);
/* 0 or -EINVAL. */
int btf_check_line_info_size(u32 cnt, u32 rec_size);

#endif
