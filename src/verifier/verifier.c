// SPDX-License-Identifier: BSD-2-Clause
/*
 * Order of a verification, as Linux's: functions, jumps, type information, constants, control flow, then the walk over
 * every path of the program and of the global functions it calls, then stack depth. The facts found on the way stand in
 * prog->facts and prog->subprogs.
 */
#include "verifier/vrf_int.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "btf/btf.h"
#include "btf/info.h"
#include "object/instance.h"

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec;
}

static void decode(struct vrf *v)
{
	for (u32 i = 0; i < v->nr; i++) {
		int op = isa_decode(&v->insns[i]);

		v->facts[i].orig = i;
		v->aux[i].op = (s16)(op < 0 ? VRF_OP_BAD : op);
		if (isa_slots(v->insns[i].code) == 2 && i + 1 < v->nr) {
			i++;
			v->facts[i].orig = i;
			v->aux[i].op = VRF_OP_HALF;
		}
	}
}

/* BTF's view of the functions: names, and which are judged on their own. */
static int check_btf(struct vrf *v)
{
	struct btf_log log = { 1, v->log_level ? v->log : NULL, 0 };
	struct btf_subprog subs[VRF_MAX_SUBPROGS];
	const struct prog *p = v->prog;
	int err;

	if (!p->btf || !p->nr_func_info) {
		/* such a function may return what the program called instead does: an int, which only BTF tells */
		for (u32 i = 1; i < v->nr_subs; i++)
			if (v->subs[i].has_tail_call) {
				vrf_say(v, "tail_call is not allowed in subprogs without BTF\n");
				return -EINVAL;
			}
		return 0;
	}
	memset(subs, 0, sizeof(subs));
	for (u32 i = 0; i < v->nr_subs; i++)
		subs[i].start = v->subs[i].start;
	_Static_assert(sizeof(struct bpf_func_info) == sizeof(struct prog_func_info), "same layout");
	err = btf_check_func_subprogs(&log, p->btf, (const struct bpf_func_info *)p->func_info, p->nr_func_info, subs,
				      v->nr_subs);
	if (err)
		return err;
	for (u32 i = 0; i < v->nr_subs; i++) {
		const struct btf_type *t = btf_type_by_id(p->btf, p->func_info[i].type_id);

		v->subs[i].func_info = (s32)i;
		v->subs[i].name = btf_type_name(p->btf, p->func_info[i].type_id);
		v->subs[i].is_global = i && t && btf_vlen(t) == BTF_FUNC_GLOBAL;
	}
	return 0;
}

static int check_lines(struct vrf *v)
{
	struct btf_log log = { 1, v->log_level ? v->log : NULL, 0 };
	struct btf_subprog subs[VRF_MAX_SUBPROGS];
	const struct prog *p = v->prog;
	struct bpf_line_info *out;
	u32 size;
	int err;

	if (!p->btf || !p->nr_line_info)
		return 0;
	memset(subs, 0, sizeof(subs));
	for (u32 i = 0; i < v->nr_subs; i++)
		subs[i].start = v->subs[i].start;
	out = calloc(p->nr_line_info, sizeof(*out));
	if (!out)
		return -ENOMEM;
	_Static_assert(sizeof(struct bpf_line_info) == sizeof(struct prog_line), "same layout");
	err = btf_check_line_info(&log, p->btf, p->line_info, p->nr_line_info, sizeof(struct prog_line), v->insns, v->nr,
				  subs, v->nr_subs, out, NULL, &size);
	free(out);
	return err;
}

static int walk_globals(struct vrf *v)
{
	bool more = true;
	int err;

	while (more) {
		more = false;
		for (u32 i = 1; i < v->nr_subs; i++) {
			struct vrf_sub *s = &v->subs[i];

			if (!s->is_global || !s->called || s->checked)
				continue;
			s->checked = true;
			more = true;
			if (v->log_level & 3)
				vrf_say(v, "Validating %s() func#%u...\n", s->name, i);
			err = vrf_walk(v, i);
			if (err)
				return err;
			if (v->log_level & 3)
				vrf_say(v, "Func#%u ('%s') is safe for any args that match its prototype\n", i, s->name);
		}
	}
	return 0;
}

static int judge(struct vrf *v)
{
	size_t log_len;
	int err = vrf_find_subprogs(v);

	if (!err)
		err = vrf_check_jumps(v);
	if (!err)
		err = check_btf(v);
	if (!err)
		err = check_lines(v);
	if (!err)
		err = vrf_resolve(v);
	if (!err)
		err = vrf_check_cfg(v);
	if (!err)
		err = vrf_live_regs(v);
	if (err)
		return err;
	vrf_fastcall_mark(v);
	vrf_merge_effects(v);
	log_len = vrf_log_len(v);
	err = vrf_walk(v, 0);
	if (!err)
		err = walk_globals(v);
	/* level 1 tells the story of a refusal only */
	if (!err && !(v->log_level & 2))
		vrf_log_truncate(v, log_len);
	if (err)
		return err;
	vrf_fastcall_settle(v);
	err = vrf_check_throws(v);
	return err ? err : vrf_check_depth(v);
}

/* References to maps move to the program; it may hold some already (PROG_LOAD's fd_array). */
static struct map **merge_maps(struct vrf *v, u32 *ret_nr)
{
	const struct prog *p = v->prog;
	struct map **maps = calloc(p->nr_maps + v->nr_maps + 1, sizeof(*maps));
	u32 nr = p->nr_maps, k;

	if (!maps)
		return NULL;
	if (nr)
		memcpy(maps, p->maps, nr * sizeof(*maps));
	for (u32 i = 0; i < v->nr_maps; i++) {
		for (k = 0; k < nr && maps[k] != v->maps[i]; k++)
			;
		if (k < nr)
			obj_put(&v->maps[i]->obj);
		else
			maps[nr++] = v->maps[i];
	}
	v->nr_maps = 0;
	*ret_nr = nr;
	return maps;
}

/* Results go to the program only when it was accepted. */
static int hand_over(struct vrf *v)
{
	struct prog *p = v->prog;
	struct prog_subprog *subs = calloc(v->nr_subs, sizeof(*subs));
	struct map **maps = subs ? merge_maps(v, &p->nr_maps) : NULL;

	if (!maps) {
		free(subs);
		return -ENOMEM;
	}
	for (u32 i = 0; i < v->nr_subs; i++)
		subs[i] = (struct prog_subprog){ .start = v->subs[i].start,
						 .stack_depth = v->subs[i].stack_depth,
						 .fastcall_depth = v->subs[i].fastcall_depth,
						 .reads_stale = v->subs[i].reads_stale,
						 .func_info = v->subs[i].func_info,
						 .is_cb = v->subs[i].is_cb && !v->subs[i].is_exception_cb,
						 .is_global = v->subs[i].is_global,
						 .is_exception_cb = v->subs[i].is_exception_cb,
						 .name = v->subs[i].name };
	free(p->facts);
	free(p->subprogs);
	free(p->maps);
	p->facts = v->facts;
	p->subprogs = subs;
	p->nr_subprogs = v->nr_subs;
	p->maps = maps;
	p->verified_insns = v->stats.insns_processed;
	p->max_ctx_offset = v->max_ctx_offset;
	p->throws = v->throws;
	v->facts = NULL;
	return 0;
}

int vrf_check(struct prog *prog, const struct vrf_opts *opts, struct vrf_stats *ret_stats)
{
	struct vrf *v = calloc(1, sizeof(*v));
	u64 start = now_ns();
	int err = -ENOMEM;

	if (!v)
		return err;
	v->prog = prog;
	v->opts = opts;
	v->log_level = opts->log ? opts->log_level : 0;
	v->log = opts->log;
	v->machine = prog->obj.inlay->vmlinux;
	v->insns = prog->insns;
	v->nr = prog->nr_insns;
	vrf_reg_unknown(&v->any_number);
	if (!v->nr || v->nr > VRF_MAX_INSNS) {
		err = -E2BIG;
		goto out;
	}
	v->facts = calloc(v->nr, sizeof(*v->facts));
	v->aux = calloc(v->nr, sizeof(*v->aux));
	v->seen = calloc(v->nr, sizeof(*v->seen));
	if (!v->facts || !v->aux || !v->seen)
		goto out;
	decode(v);
	err = judge(v);
	v->stats.time_ns = now_ns() - start;
	vrf_log_stats(v);
	if (!err)
		err = hand_over(v);
	if (ret_stats)
		*ret_stats = v->stats;
out:
	for (u32 i = 0; i < v->nr_maps; i++)
		obj_put(&v->maps[i]->obj);
	vrf_spare_free(v);
	free(v->facts);
	free(v->aux);
	free(v->seen);
	free(v->kfuncs);
	free(v);
	return err;
}
