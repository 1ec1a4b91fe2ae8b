// SPDX-License-Identifier: BSD-2-Clause
/*
 * All frames of a call chain share 512 bytes of stack, and there are at most 8 of them. Longest chains by length, over the
 * graph of calls and callbacks: deepest[n][s] is the most stack a chain of n frames that starts in function s can use.
 */
#include "verifier/vrf_int.h"

#include <string.h>

#define TAIL_CALL_CALLERS 256 /* bytes */

static u32 frame_bytes(const struct vrf_sub *s)
{
	return (u32)align_up(s->fastcall_depth, 16); /* as Linux's JITs lay frames out */
}

static int callee_of(const struct vrf *v, u32 i)
{
	const struct bpf_insn *insn = &v->insns[i];

	if (v->aux[i].op == ISA_CALL_SUBPROG || v->aux[i].op == ISA_LD_FUNC)
		return vrf_find_sub(v, (u32)((s64)i + 1 + insn->imm));
	return -1;
}

/* Most stack of a chain: this function's frame and then one of n - 1 frames from a callee; -1: no such chain. */
static s32 deepest_from(const struct vrf *v, u32 s, const s32 *below)
{
	s32 best = -1;

	for (u32 i = v->subs[s].start; i < v->subs[s].end; i++) {
		int callee = callee_of(v, i);

		if (callee >= 0 && below[callee] > best)
			best = below[callee];
	}
	return best < 0 ? -1 : best + (s32)frame_bytes(&v->subs[s]);
}

/*
 * A program reached by a tail call from a function runs on top of its callers' frames, and so may the next one, 33 times:
 * the callers of one that makes tail calls may use a quarter of the stack limit.
 */
static int check_tail_calls(struct vrf *v)
{
	s32 before[VRF_MAX_SUBPROGS], next[VRF_MAX_SUBPROGS];

	for (u32 s = 0; s < v->nr_subs; s++)
		before[s] = s ? -1 : 0;
	for (u32 n = 1; n < PROG_MAX_FRAMES; n++) {
		for (u32 s = 0; s < v->nr_subs; s++)
			next[s] = -1;
		for (u32 s = 0; s < v->nr_subs; s++)
			for (u32 i = v->subs[s].start; before[s] >= 0 && i < v->subs[s].end; i++) {
				int callee = callee_of(v, i);

				if (callee >= 0)
					next[callee] = max_of(next[callee], before[s] + (s32)frame_bytes(&v->subs[s]));
			}
		for (u32 s = 1; s < v->nr_subs; s++)
			if (v->subs[s].has_tail_call && next[s] >= TAIL_CALL_CALLERS) {
				vrf_say(v,
					"tail_calls are not allowed when call stack of previous frames is %d bytes. Too large\n",
					next[s]);
				return -EACCES;
			}
		memcpy(before, next, sizeof(before));
	}
	return 0;
}

int vrf_check_depth(struct vrf *v)
{
	s32 rows[2][VRF_MAX_SUBPROGS], deepest;
	int err = check_tail_calls(v);

	if (err)
		return err;

	for (u32 s = 0; s < v->nr_subs; s++)
		rows[0][s] = (s32)frame_bytes(&v->subs[s]);
	for (u32 n = 1;; n++) {
		s32 *row = rows[(n - 1) & 1], *next = rows[n & 1];

		/* an exception's callback begins anew: the program's frames are gone */
		deepest = v->exception_cb ? max_of(row[0], row[v->exception_cb]) : row[0];
		if (deepest > PROG_STACK) {
			vrf_say(v, "combined stack size of %u calls is %d. Too large\n", n, deepest);
			return -EACCES;
		}
		if (deepest < 0)
			return 0;
		if (n > PROG_MAX_FRAMES) {
			vrf_say(v, "the call stack of %u frames is too deep !\n", n);
			return -E2BIG;
		}
		for (u32 s = 0; s < v->nr_subs; s++)
			next[s] = deepest_from(v, s, row);
	}
}
