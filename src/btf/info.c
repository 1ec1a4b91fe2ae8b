// SPDX-License-Identifier: BSD-2-Clause
/*
 * func_info and line_info: the tables that tie a program's instructions to its BTF and its source.
 */
#include "btf/info.h"

#include <errno.h>
#include <string.h>

#define MAX_REC_SIZE 252 /* Linux's; a record longer than ours must end in zeros */

static int bad_tail(const u8 *rec, u32 known, u32 rec_size)
{
	u32 i;

	for (i = known; i < rec_size; i++)
		if (rec[i])
			return -E2BIG;
	return 0;
}

static bool rec_size_ok(u32 size, u32 known)
{
	return size >= known && size <= MAX_REC_SIZE && !(size % 4);
}

int btf_check_func_info_size(struct btf_log *log, u32 rec_size)
{
	if (rec_size_ok(rec_size, sizeof(struct bpf_func_info)))
		return 0;
	btf_log_printf(log, "invalid func info rec size %u\n", rec_size);
	return -EINVAL;
}

/* One record against the one before it (prev NULL: it is the first). 0 or -EINVAL. */
static int check_func_record(struct btf_log *log, const struct btf *btf,
			     const struct bpf_func_info *rec, const struct bpf_func_info *prev)
{
	const struct btf_type *t;

	if (!prev && rec->insn_off) {
		btf_log_printf(log, "nonzero insn_off %u for the first func info record",
			       rec->insn_off);
		return -EINVAL;
	}
	if (prev && rec->insn_off <= prev->insn_off) {
		btf_log_printf(
			log, "same or smaller insn offset (%u) than previous func info record (%u)",
			rec->insn_off, prev->insn_off);
		return -EINVAL;
	}
	t = btf_type_at(btf, rec->type_id);
	if (!t || btf_kind(t) != BTF_KIND_FUNC) {
		btf_log_printf(log, "invalid type id %d in func info", (int)rec->type_id);
		return -EINVAL;
	}
	return btf_func_proto(btf, rec->type_id) ? 0 : -EINVAL;
}

int btf_check_func_info(struct btf_log *log, const struct btf *btf, const void *recs, u32 cnt,
			u32 rec_size, struct bpf_func_info *out, u32 *ret_rec_size)
{
	const u8 *rec = recs;
	u32 i;
	int err;

	if (!cnt)
		return 0;
	err = btf_check_func_info_size(log, rec_size);
	for (i = 0; !err && i < cnt; i++, rec += rec_size) {
		err = bad_tail(rec, sizeof(*out), rec_size);
		if (err) {
			btf_log_printf(log, "nonzero tailing record in func info");
			*ret_rec_size = sizeof(*out);
			break;
		}
		memcpy(&out[i], rec, sizeof(*out));
		err = check_func_record(log, btf, &out[i], i ? &out[i - 1] : NULL);
	}
	return err;
}

/* Whether r0 of a function of this return type can be an int: integers of a register at most, and
 * enums. */
static bool returns_int(const struct btf *btf, const struct btf_type *proto)
{
	const struct btf_type *t = btf_type_skip_modifiers(btf, proto->type, NULL);

	return t && (btf_is_enum_any(t) || (btf_kind(t) == BTF_KIND_INT && t->size <= 8));
}

int btf_check_func_subprogs(struct btf_log *log, const struct btf *btf,
			    const struct bpf_func_info *info, u32 cnt,
			    const struct btf_subprog *subs, u32 nr_subs)
{
	const struct btf_type *proto;
	u32 i;

	if (!cnt) {
		for (i = 1; i < nr_subs; i++) {
			if (subs[i].has_ld_abs || subs[i].has_tail_call) {
				btf_log_printf(log, "%s is not allowed in subprogs without BTF\n",
					       subs[i].has_ld_abs ? "LD_ABS" : "tail_call");
				return -EINVAL;
			}
		}
		return 0;
	}
	if (cnt != nr_subs) {
		btf_log_printf(log,
			       "number of funcs in func_info doesn't match number of subprogs\n");
		return -EINVAL;
	}
	for (i = 0; i < cnt; i++) {
		if (subs[i].start != info[i].insn_off) {
			btf_log_printf(log, "func_info BTF section doesn't match subprog layout in "
					    "BPF program\n");
			return -EINVAL;
		}
		proto = btf_func_proto(btf, info[i].type_id);
		if (!proto)
			return -EINVAL;
		if (i && (subs[i].has_ld_abs || subs[i].has_tail_call) &&
		    !returns_int(btf, proto)) {
			btf_log_printf(log, "%s is only allowed in functions that return 'int'.\n",
				       subs[i].has_ld_abs ? "LD_ABS" : "tail_call");
			return -EINVAL;
		}
	}
	return 0;
}

int btf_check_line_info_size(u32 cnt, u32 rec_size)
{
	if (cnt > S32_MAX / sizeof(struct bpf_line_info) ||
	    !rec_size_ok(rec_size, sizeof(struct bpf_line_info)))
		return -EINVAL;
	return 0;
}

/* What a line record must match, and where in the subprograms the check is. */
struct line_check {
	struct btf_log *log;
	const struct btf *btf;
	const struct bpf_insn *insns;
	u32 prog_len;
	const struct btf_subprog *subs;
	u32 nr_subs, sub; /* sub: first without a record yet */
	u32 *linfo_idx;
};

static int check_line_record(struct line_check *c, const struct bpf_line_info *rec, u32 i,
			     u32 prev_off)
{
	if ((i && rec->insn_off <= prev_off) || rec->insn_off >= c->prog_len) {
		btf_log_printf(c->log,
			       "Invalid line_info[%u].insn_off:%u (prev_offset:%u prog->len:%u)\n",
			       i, rec->insn_off, prev_off, c->prog_len);
		return -EINVAL;
	}
	/* The second half of a 16-byte instruction has opcode 0. */
	if (!c->insns[rec->insn_off].code) {
		btf_log_printf(c->log, "Invalid insn code at line_info[%u].insn_off\n", i);
		return -EINVAL;
	}
	if (!btf_name_by_offset(c->btf, rec->line_off) ||
	    !btf_name_by_offset(c->btf, rec->file_name_off)) {
		btf_log_printf(c->log, "Invalid line_info[%u].line_off or .file_name_off\n", i);
		return -EINVAL;
	}
	if (c->sub == c->nr_subs)
		return 0;
	if (rec->insn_off == c->subs[c->sub].start) {
		if (c->linfo_idx)
			c->linfo_idx[c->sub] = i;
		c->sub++;
	} else if (c->subs[c->sub].start < rec->insn_off) {
		btf_log_printf(c->log, "missing bpf_line_info for func#%u\n", c->sub);
		return -EINVAL;
	}
	return 0;
}

int btf_check_line_info(struct btf_log *log, const struct btf *btf, const void *recs, u32 cnt,
			u32 rec_size, const struct bpf_insn *insns, u32 prog_len,
			const struct btf_subprog *subs, u32 nr_subs, struct bpf_line_info *out,
			u32 *linfo_idx, u32 *ret_rec_size)
{
	struct line_check c = {log, btf, insns, prog_len, subs, nr_subs, 0, linfo_idx};
	const u8 *rec = recs;
	u32 i, prev_off = 0;
	int err;

	if (!cnt)
		return 0;
	err = btf_check_line_info_size(cnt, rec_size);
	for (i = 0; !err && i < cnt; i++, rec += rec_size) {
		err = bad_tail(rec, sizeof(*out), rec_size);
		if (err) {
			btf_log_printf(log, "nonzero tailing record in line_info");
			*ret_rec_size = sizeof(*out);
			break;
		}
		memcpy(&out[i], rec, sizeof(*out));
		err = check_line_record(&c, &out[i], i, prev_off);
		prev_off = out[i].insn_off;
	}
	if (!err && c.sub != nr_subs) {
		btf_log_printf(log, "missing bpf_line_info for %u funcs starting from func#%u\n",
			       nr_subs - c.sub, c.sub);
		err = -EINVAL;
	}
	return err;
}
