// SPDX-License-Identifier: BSD-2-Clause
/* Register use, and which stack slots a path reads before it writes them (what pruning may ignore). */
#include "verifier/vrf_int.h"

int vrf_read_reg(struct vrf *v, u32 r)
{
	if (r >= ISA_REG_MAX) {
		vrf_say(v, "R%u is invalid\n", r);
		return -EINVAL;
	}
	v->scratched_regs |= 1u << r;
	if (vrf_regs(v)[r].type == NOT_INIT) {
		vrf_say(v, "R%u !read_ok\n", r);
		return -EACCES;
	}
	return 0;
}

int vrf_write_reg(struct vrf *v, u32 r)
{
	if (r >= ISA_REG_MAX) {
		vrf_say(v, "R%u is invalid\n", r);
		return -EINVAL;
	}
	v->scratched_regs |= 1u << r;
	if (r == ISA_REG_FP) {
		vrf_say(v, "frame pointer is read only\n");
		return -EACCES;
	}
	return 0;
}

bool vrf_is_pointer(u32 type)
{
	return type != NOT_INIT && type != SCALAR_VALUE;
}

bool vrf_may_be_null(u32 type)
{
	return type & PTR_MAYBE_NULL;
}

/*
 * A read concerns every checkpoint back to the one after which the slot was last written whole. A frame is born with all
 * of it written, so that a read never reaches checkpoints older than the call.
 */
static void mark_read(struct vrf_state *st, u32 frame, u64 bit)
{
	for (; st->parent; st = st->parent) {
		struct vrf_func *up;

		if (st->frame[frame]->written & bit)
			return;
		up = st->parent->frame[frame];
		if (!up || up->read & bit)
			return;
		up->read |= bit;
	}
}

void vrf_mark_stack_read(struct vrf *v, u32 frame, u32 spi)
{
	mark_read(v->cur, frame, 1ULL << spi);
}

void vrf_mark_stack_written(struct vrf *v, u32 frame, u32 spi)
{
	v->cur->frame[frame]->written |= 1ULL << spi;
}

void vrf_propagate_read(struct vrf *v, const struct vrf_state *old, struct vrf_state *st, bool *ret_changed)
{
	for (u32 f = 0; f <= old->cur && f <= st->cur; f++)
		for (u64 bits = old->frame[f]->read; bits; bits &= bits - 1) {
			u64 bit = bits & -bits;

			if (st->parent && st->parent->frame[f] && !(st->frame[f]->written & bit) &&
			    !(st->parent->frame[f]->read & bit))
				*ret_changed = true;
			mark_read(st, f, bit);
		}
}
