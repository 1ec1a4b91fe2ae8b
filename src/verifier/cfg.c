// SPDX-License-Identifier: BSD-2-Clause
/*
 * Control flow, before anything is known of values: every instruction can be reached, none falls off the end, none jumps
 * into the middle of a two-slot instruction. Marks where paths can meet or part: those are where states are compared
 * (prune points) and where the way back needs a record (jump points).
 */
#include "verifier/vrf_int.h"

#include <stdlib.h>

struct cfg {
	struct vrf *v;
	u32 *stack;
	u32 nr;
};

static void mark_prune(struct vrf *v, u32 idx)
{
	v->aux[idx].prune_point = 1;
}

static void mark_jump(struct vrf *v, u32 idx)
{
	v->aux[idx].jmp_point = 1;
}

static int go(struct cfg *c, u32 from, s64 to)
{
	struct vrf *v = c->v;

	if (to < 0 || to >= v->nr) {
		vrf_log_line(v, from, "; ");
		vrf_say(v, "jump out of range from insn %u to %lld\n", from, (long long)to);
		return -EINVAL;
	}
	if (!v->aux[to].cfg_explored) {
		v->aux[to].cfg_explored = 1;
		c->stack[c->nr++] = (u32)to;
	}
	return 0;
}

static int call_edges(struct cfg *c, u32 i, const struct bpf_insn *insn)
{
	struct vrf *v = c->v;

	mark_prune(v, i + 1);
	mark_jump(v, i + 1);
	if (insn->src_reg == 0) {
		const struct helper_desc *h = helper_by_id((u32)insn->imm);

		if (h && h->flags & HELPER_SYNC_CALLBACK) {
			/* the rounds of the callback meet here, also when nothing else would make a checkpoint */
			v->aux[i].calls_callback = 1;
			v->aux[i].force_checkpoint = 1;
			mark_prune(v, i);
			mark_jump(v, i);
		}
	}
	if (insn->src_reg == BPF_PSEUDO_CALL) {
		mark_prune(v, i);
		mark_prune(v, (u32)(i + 1 + insn->imm));
		mark_jump(v, (u32)(i + 1 + insn->imm));
		if (go(c, i, (s64)i + 1 + insn->imm))
			return -EINVAL;
	}
	return go(c, i, (s64)i + 1);
}

static int edges(struct cfg *c, u32 i)
{
	struct vrf *v = c->v;
	const struct bpf_insn *insn = &v->insns[i];
	s64 to = (s64)i + 1 + isa_jump_off(insn);

	if (v->aux[i].op == VRF_OP_BAD) /* refused when a path comes to it */
		return go(c, i, (s64)i + 1);
	switch ((enum isa_kind)isa_of(v->aux[i].op)->kind) {
	case ISA_K_EXIT:
		return 0;
	case ISA_K_CALL:
		return call_edges(c, i, insn);
	case ISA_K_JA:
		mark_prune(v, (u32)to);
		mark_jump(v, (u32)to);
		return go(c, i, to);
	case ISA_K_MAY_GOTO:
		v->aux[i].force_checkpoint = 1;
		/* fallthrough */
	case ISA_K_JMP:
		mark_prune(v, i);
		mark_prune(v, (u32)to);
		mark_jump(v, (u32)to);
		if (go(c, i, (s64)i + 1))
			return -EINVAL;
		return go(c, i, to);
	case ISA_K_LD_IMM64:
		if (insn->src_reg == BPF_PSEUDO_FUNC) {
			if (go(c, i, (s64)i + 1 + insn->imm))
				return -EINVAL;
		}
		return go(c, i, (s64)i + 2);
	default:
		return go(c, i, (s64)i + 1);
	}
}

int vrf_check_cfg(struct vrf *v)
{
	struct cfg c = { v, calloc(v->nr, sizeof(u32)), 0 };
	int err = 0;

	if (!c.stack)
		return -ENOMEM;
	v->aux[0].cfg_explored = 1;
	c.stack[c.nr++] = 0;
	if (v->exception_cb) { /* nothing names it, but a throw goes on with it */
		v->aux[v->subs[v->exception_cb].start].cfg_explored = 1;
		c.stack[c.nr++] = v->subs[v->exception_cb].start;
	}
	while (!err && c.nr) {
		u32 i = c.stack[--c.nr];

		/* only the second half of a two-slot load has no operation of its own */
		if (v->aux[i].op == VRF_OP_HALF)
			continue; /* reported below, once all of the program is known */
		err = edges(&c, i);
	}
	for (u32 i = 0; !err && i < v->nr; i++) {
		if (v->aux[i].op == VRF_OP_HALF) {
			if (v->aux[i].cfg_explored) {
				vrf_say(v, "jump into the middle of ldimm64 insn %u\n", i - 1);
				err = -EINVAL;
			}
		} else if (!v->aux[i].cfg_explored) {
			vrf_say(v, "unreachable insn %u\n", i);
			err = -EINVAL;
		}
	}
	for (u32 i = 0; i < v->nr_subs; i++)
		mark_prune(v, v->subs[i].start);
	free(c.stack);
	return err;
}
