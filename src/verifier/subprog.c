// SPDX-License-Identifier: BSD-2-Clause
/* Where the functions of a program begin and end, and that no jump leaves one. */
#include "verifier/vrf_int.h"

#include <string.h>

#include "btf/btf.h"
#include "btf/info.h"

int vrf_find_sub(const struct vrf *v, u32 start)
{
	for (u32 i = 0; i < v->nr_subs; i++)
		if (v->subs[i].start == start)
			return (int)i;
	return -1;
}

u32 vrf_sub_of(const struct vrf *v, u32 idx)
{
	u32 best = 0;

	for (u32 i = 0; i < v->nr_subs; i++)
		if (v->subs[i].start <= idx && v->subs[i].start >= v->subs[best].start)
			best = i;
	return best;
}

/* Functions are kept in order of their start. */
int vrf_add_sub(struct vrf *v, s64 start)
{
	u32 at;

	if (start < 0 || start >= v->nr) {
		vrf_say(v, "call to invalid destination\n");
		return -EINVAL;
	}
	if (vrf_find_sub(v, (u32)start) >= 0)
		return 0;
	if (v->nr_subs >= VRF_MAX_SUBPROGS) {
		vrf_say(v, "too many subprograms\n");
		return -E2BIG;
	}
	for (at = v->nr_subs; at && v->subs[at - 1].start > start; at--)
		v->subs[at] = v->subs[at - 1];
	memset(&v->subs[at], 0, sizeof(v->subs[at]));
	v->subs[at].start = (u32)start;
	v->subs[at].func_info = -1;
	v->nr_subs++;
	return 0;
}

static bool is_sub_ref(const struct bpf_insn *insn, bool *ret_cb)
{
	*ret_cb = insn->code == (BPF_LD | BPF_IMM | BPF_DW) && insn->src_reg == BPF_PSEUDO_FUNC;
	return *ret_cb || (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL);
}

static bool is_tail_call(const struct bpf_insn *insn)
{
	const struct helper_desc *h = NULL;

	if (insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg)
		h = helper_by_id((u32)insn->imm);
	return h && h->flags & HELPER_TAIL_CALL;
}

int vrf_find_subprogs(struct vrf *v)
{
	bool cb;
	int err = vrf_add_sub(v, 0);

	for (u32 i = 0; !err && i < v->nr; i++)
		if (is_sub_ref(&v->insns[i], &cb))
			err = vrf_add_sub(v, (s64)i + v->insns[i].imm + 1);
		else if (v->insns[i].code == (BPF_JMP | BPF_CALL) && v->insns[i].src_reg == BPF_PSEUDO_KFUNC_CALL)
			err = vrf_add_kfunc(v, i);
	if (!err)
		err = vrf_find_exception_cb(v);
	if (err)
		return err;
	for (u32 i = 0; i < v->nr_subs; i++)
		v->subs[i].end = i + 1 < v->nr_subs ? v->subs[i + 1].start : v->nr;
	for (u32 s = 0; s < v->nr_subs; s++)
		for (u32 i = v->subs[s].start; i < v->subs[s].end; i++)
			v->subs[s].has_tail_call |= is_tail_call(&v->insns[i]);
	if (v->log_level & 2)
		for (u32 i = 0; i < v->nr_subs; i++)
			vrf_say(v, "func#%u @%u\n", i, v->subs[i].start);
	return 0;
}

static bool jumps(const struct bpf_insn *insn)
{
	u8 class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);

	if (insn->code == (BPF_JMP32 | BPF_JA))
		return true;
	return (class == BPF_JMP || class == BPF_JMP32) && op != BPF_CALL && op != BPF_EXIT;
}

int vrf_check_jumps(struct vrf *v)
{
	for (u32 s = 0; s < v->nr_subs; s++) {
		const struct vrf_sub *sub = &v->subs[s];

		for (u32 i = sub->start; i < sub->end; i++) {
			const struct bpf_insn *insn = &v->insns[i];
			s64 to = (s64)i + 1 + isa_jump_off(insn);
			u8 code = insn->code;

			if (jumps(insn)) {
				if (to < sub->start || to >= sub->end) {
					vrf_say(v, "jump out of range from insn %u to %lld\n", i, (long long)to);
					return -EINVAL;
				}
				v->aux[to].jump_target = 1;
			}
			if (i + 1 == sub->end && code != (BPF_JMP | BPF_EXIT) && code != (BPF_JMP32 | BPF_JA) &&
			    code != (BPF_JMP | BPF_JA)) {
				vrf_say(v, "last insn is not an exit or jmp\n");
				return -EINVAL;
			}
		}
	}
	return 0;
}

const struct btf_type *vrf_func_proto(const struct vrf *v, u32 subprog)
{
	const struct vrf_sub *s = &v->subs[subprog];

	if (s->func_info < 0)
		return NULL;
	return btf_func_proto(v->prog->btf, v->prog->func_info[s->func_info].type_id);
}
