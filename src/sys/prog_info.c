// SPDX-License-Identifier: BSD-2-Clause
// func_info and line_info of PROG_LOAD: copied in, checked, kept.
#include <errno.h>
#include <stdlib.h>

#include "btf/info.h"
#include "isa/uapi.h"
#include "object/prog.h"
#include "sys/sys_int.h"

#define MAX_SUBPROGS 256

/* Where subprograms start, by the calls and function addresses in the text; enough to judge tables
 * against. */
struct subs {
	struct btf_subprog sub[MAX_SUBPROGS + 1];
	u32 nr;
};

static bool is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static void add_sub(struct subs *s, const struct prog *prog, s64 start)
{
	u32 i, at;

	if (start < 0 || start >= prog->nr_insns || s->nr >= MAX_SUBPROGS)
		return; /* the verifier's to refuse */
	for (at = 0; at < s->nr && s->sub[at].start < start; at++)
		;
	if (at < s->nr && s->sub[at].start == start)
		return;
	for (i = s->nr++; i > at; i--)
		s->sub[i] = s->sub[i - 1];
	s->sub[at] = (struct btf_subprog){.start = start};
}

static void find_subs(const struct prog *prog, struct subs *s)
{
	u32 i, at;

	s->nr = 0;
	add_sub(s, prog, 0);
	for (i = 0; i < prog->nr_insns; i++) {
		const struct bpf_insn *insn = &prog->insns[i];

		if ((insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL) ||
		    (is_wide(insn) && insn->src_reg == BPF_PSEUDO_FUNC))
			add_sub(s, prog, (s64)i + insn->imm + 1);
	}
	for (i = 0, at = 0; i < prog->nr_insns; i++) {
		const struct bpf_insn *insn = &prog->insns[i];
		u8 mode = BPF_MODE(insn->code);

		while (at + 1 < s->nr && s->sub[at + 1].start <= i)
			at++;
		if (BPF_CLASS(insn->code) == BPF_LD && (mode == BPF_ABS || mode == BPF_IND))
			s->sub[at].has_ld_abs = true;
		if (insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg &&
		    insn->imm == BPF_FUNC_tail_call)
			s->sub[at].has_tail_call = true;
	}
}

static int copy_records(struct sys_call *c, u64 from, u32 cnt, u32 rec_size, void **ret_recs)
{
	if ((u64)cnt * rec_size > 1u << 30)
		return -ENOMEM;
	return user_dup(c->um, from, (size_t)cnt * rec_size, ret_recs);
}

static int load_func_info(struct sys_call *c, struct prog *prog, struct btf_log *log,
			  const struct subs *subs)
{
	u32 cnt = c->attr.prog_load.func_info_cnt, size = c->attr.prog_load.func_info_rec_size,
	    known = 0;
	struct bpf_func_info *out;
	const char *cb;
	void *recs;
	int err;

	_Static_assert(sizeof(struct prog_func_info) == sizeof(struct bpf_func_info),
		       "the same two numbers");
	if (!cnt)
		return 0;
	err = btf_check_func_info_size(log, size);
	if (!err)
		err = copy_records(c, c->attr.prog_load.func_info, cnt, size, &recs);
	if (err)
		return err;
	out = calloc(cnt, sizeof(*out));
	err = out ? btf_check_func_info(log, prog->btf, recs, cnt, size, out, &known) : -ENOMEM;
	free(recs);
	if (err == -E2BIG && sys_put_field(c, prog_load.func_info_rec_size, &known))
		err = -EFAULT;
	/* an exception callback is a function no instruction names: the verifier finds it, and compares then */
	if (!err && btf_find_tag(prog->btf, out[0].type_id, -1, "exception_callback:", &cb) == -ENOENT)
		err = btf_check_func_subprogs(log, prog->btf, out, cnt, subs->sub, subs->nr);
	if (err) {
		free(out);
		return err;
	}
	prog->func_info = (struct prog_func_info *)out;
	prog->nr_func_info = cnt;
	return 0;
}

static int load_line_info(struct sys_call *c, struct prog *prog, struct btf_log *log,
			  const struct subs *subs)
{
	u32 cnt = c->attr.prog_load.line_info_cnt, size = c->attr.prog_load.line_info_rec_size,
	    known = 0;
	struct bpf_line_info *out;
	void *recs;
	int err;

	_Static_assert(sizeof(struct prog_line) == sizeof(struct bpf_line_info),
		       "the same four numbers");
	if (!cnt)
		return 0;
	err = btf_check_line_info_size(cnt, size);
	if (!err)
		err = copy_records(c, c->attr.prog_load.line_info, cnt, size, &recs);
	if (err)
		return err;
	out = calloc(cnt, sizeof(*out));
	err = out ? btf_check_line_info(log, prog->btf, recs, cnt, size, prog->insns,
					prog->nr_insns, subs->sub, subs->nr, out, NULL, &known)
		  : -ENOMEM;
	free(recs);
	if (err == -E2BIG && sys_put_field(c, prog_load.line_info_rec_size, &known))
		err = -EFAULT;
	if (err) {
		free(out);
		return err;
	}
	prog->line_info = (struct prog_line *)out;
	prog->nr_line_info = cnt;
	return 0;
}

int sys_prog_load_info(struct sys_call *c, struct prog *prog, struct sys_log *log)
{
	struct btf_log blog = {.level = log->level ? BTF_LOG_ERRORS : 0, .buf = &log->text};
	struct subs *subs;
	struct obj *obj;
	int err;

	/* the BTF is asked for only where something refers to it, as in Linux */
	if (!c->attr.prog_load.func_info_cnt && !c->attr.prog_load.line_info_cnt)
		return 0;
	err = sys_get(c, c->attr.prog_load.prog_btf_fd, OBJ_BTF, &obj);
	if (err)
		return err;
	if (btf_obj_of(obj)->kernel) {
		obj_put(obj);
		return -EACCES;
	}
	prog->btf_obj = obj;
	prog->btf = btf_get(btf_obj_of(obj)->btf);
	subs = malloc(sizeof(*subs));
	if (!subs)
		return -ENOMEM;
	find_subs(prog, subs);
	err = load_func_info(c, prog, &blog, subs);
	if (!err)
		err = load_line_info(c, prog, &blog, subs);
	free(subs);
	return err;
}
