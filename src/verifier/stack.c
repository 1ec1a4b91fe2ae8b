// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stack: spills and fills of registers, plain data, accesses at an offset known only as a range, and buffers handed to
 * helpers. Never-written bytes may be read (as some number): the loader is privileged here as it is for Linux.
 */
#include "verifier/vrf_int.h"

#include <string.h>

static struct vrf_func *frame_of(const struct vrf *v, const struct vrf_reg *ptr)
{
	return v->cur->frame[ptr->frameno];
}

/* To be shown in the log. (For a caller's stack the slot of the running frame is shown, as in Linux.) */
static void scratch(struct vrf *v, const struct vrf_func *f, u32 spi)
{
	v->scratched_slots |= 1ULL << spi;
}

/* Bytes [lowest, end) relative to the frame pointer the access may touch; grows the stack to hold them. */
static int stack_range(struct vrf *v, u32 regno, s32 off, u32 size, bool write, s64 *ret_min, s64 *ret_max)
{
	const struct vrf_reg *ptr = &vrf_regs(v)[regno];
	struct vrf_func *f = frame_of(v, ptr);
	const char *word = write ? " write to" : " read from";
	bool known = vrf_tnum_is_const(ptr->range.var);
	s64 min, max;
	char tn[64];
	int err = 0;

	if (known) {
		min = max = (s64)ptr->range.var.value + off;
	} else if (ptr->range.smax >= VRF_MAX_OFF || ptr->range.smin <= -VRF_MAX_OFF) {
		vrf_say(v, "invalid unbounded variable-offset%s stack R%u\n", word, regno);
		return -EACCES;
	} else {
		min = ptr->range.smin + off;
		max = ptr->range.smax + off;
	}
	if (min < -PROG_STACK)
		err = -EACCES;
	else if (max + (s64)size > 0)
		err = -EINVAL;
	if (err) {
		if (known) {
			vrf_say(v, "invalid%s stack R%u off=%lld size=%u\n", word, regno, (long long)min, size);
		} else {
			vrf_tnum_str(tn, sizeof(tn), ptr->range.var);
			vrf_say(v, "invalid variable-offset%s stack R%u var_off=%s off=%d size=%u\n", word, regno, tn,
				off, size);
		}
		return err;
	}
	if (min < 0) {
		u32 depth = (u32)align_up((u64)-min, 8);

		err = vrf_grow_stack(v, f, depth / 8);
		if (err)
			return err;
		v->subs[f->subprog].stack_depth = max_of(v->subs[f->subprog].stack_depth, depth);
	}
	*ret_min = min;
	*ret_max = max;
	return 0;
}

static void note_stale(struct vrf *v, struct vrf_func *f, s64 min, s64 end)
{
	for (s64 o = min; o < end; o++) {
		u32 n = (u32)(-o - 1);

		if (f->slots[n / 8].type[n % 8] == SLOT_INVALID)
			v->subs[f->subprog].reads_stale = true;
	}
}

static u8 *byte_at(struct vrf_func *f, s64 off)
{
	u32 n = (u32)(-off - 1);

	return &f->slots[n / 8].type[n % 8];
}

static int note_access(struct vrf *v, const struct vrf_func *f, u32 spi)
{
	struct vrf_hist *h = vrf_hist_here(v);

	if (!h)
		return -ENOMEM;
	h->stack_access = 1;
	h->frame = (u8)f->frameno;
	h->spi = (u8)spi;
	return 0;
}

/* ---- reads ---- */

static int bad_read(struct vrf *v, s64 off, u32 i, u32 size)
{
	vrf_say(v, "invalid read from stack off %lld+%u size %u\n", (long long)off, i, size);
	return -EACCES;
}

/* The value of plain bytes [min, end): 0 if all of them are, else anything. Zeros are compared exactly by pruning. */
static void load_bytes(struct vrf_func *f, s64 min, s64 end, struct vrf_reg *dst)
{
	for (s64 o = min; o < end; o++) {
		u32 n = (u32)(-o - 1);

		if (f->slots[n / 8].type[n % 8] != SLOT_ZERO) {
			vrf_reg_unknown(dst);
			return;
		}
	}
	vrf_reg_const(dst, 0);
}

static u32 spill_size(const struct vrf_slot *s)
{
	u32 n = 1;

	while (n < 8 && s->type[7 - n] == SLOT_SPILL)
		n++;
	return n;
}

static u32 width_of(const struct vrf_reg *reg)
{
	return reg->range.umax ? 64 - (u32)__builtin_clzll(reg->range.umax) : 0;
}

/* Part of a spilled number. */
static int fill_part(struct vrf *v, struct vrf_func *f, s64 off, u32 size, struct vrf_reg *dst)
{
	u32 spi = (u32)(-off - 1) / 8, spilled = spill_size(&f->slots[spi]), spills = 0;
	const struct vrf_reg *reg = &f->slots[spi].reg;

	if (reg->type != SCALAR_VALUE) {
		vrf_log_line(v, v->insn_idx, "; ");
		vrf_say(v, "invalid size of register fill\n");
		return -EACCES;
	}
	if (!dst)
		return 0;
	if (size <= spilled && off % 8 == 0) {
		/* the low bytes, since a spill begins at the slot's lowest: the caller cuts the range to size */
		*dst = *reg;
		dst->precise = false;
		if (width_of(reg) > size * 8)
			vrf_reg_unlink(dst);
		return note_access(v, f, spi);
	}
	for (u32 i = 0; i < size; i++)
		spills += *byte_at(f, off + i) == SLOT_SPILL;
	if (spills == size && vrf_reg_is_null(reg)) {
		/* any part of 0 is 0; that it is 0 must then be compared exactly */
		vrf_reg_const(dst, 0);
		return note_access(v, f, spi);
	}
	load_bytes(f, off, off + size, dst);
	return 0;
}

static int read_fixed(struct vrf *v, struct vrf_func *f, s64 off, u32 size, struct vrf_reg *dst)
{
	u32 spi = (u32)(-off - 1) / 8;
	struct vrf_slot *s = &f->slots[spi];

	vrf_mark_stack_read(v, f->frameno, spi);
	scratch(v, f, spi);
	note_stale(v, f, off, off + size);
	vrf_fastcall_access(v, f->subprog, off);
	if (!vrf_slot_is_spill(s)) {
		/* bytes above a narrower spill may be of it no more: a spill always reaches down to type[7] */
		for (u32 i = 0; i < size; i++)
			if (*byte_at(f, off + i) == SLOT_SPILL)
				return bad_read(v, off, i, size);
		if (dst)
			load_bytes(f, off, off + size, dst);
		return 0;
	}
	if (size != 8 || spill_size(s) != 8)
		return fill_part(v, f, off, size, dst);
	if (!dst)
		return 0;
	*dst = s->reg;
	dst->precise = false;
	return note_access(v, f, spi);
}

static int read_variable(struct vrf *v, struct vrf_func *f, s64 min, s64 max, u32 size, struct vrf_reg *dst)
{
	for (s64 o = min; o < max + size; o++) {
		u32 n = (u32)(-o - 1);

		vrf_mark_stack_read(v, f->frameno, n / 8);
		/* which bytes are meant is not known, so a spilled number or pointer reads as some number */
	}
	note_stale(v, f, min, max + size);
	vrf_fastcall_access(v, f->subprog, min);
	load_bytes(f, min, max + size, dst);
	return 0;
}

/* ---- writes ---- */

static void spill(struct vrf_slot *s, const struct vrf_reg *reg, u32 size)
{
	s->reg = *reg;
	for (u32 i = 8; i > 8 - size; i--)
		s->type[i - 1] = SLOT_SPILL;
	for (u32 i = 8 - size; i; i--)
		if (s->type[i - 1] == SLOT_SPILL)
			s->type[i - 1] = SLOT_MISC;
}

/* What was spilled is no register any more. */
static void unspill(struct vrf_slot *s)
{
	if (!vrf_slot_is_spill(s))
		return;
	for (u32 i = 0; i < 8; i++)
		if (s->type[i] == SLOT_SPILL)
			s->type[i] = SLOT_MISC;
	vrf_reg_not_init(&s->reg);
}

/* value: NULL for bytes that are not known; zero: the bytes are 0; src_regno >= 0: the register they come from. */
static int write_fixed(struct vrf *v, struct vrf_func *f, s64 off, u32 size, struct vrf_reg *value, s32 src_regno)
{
	u32 spi = (u32)(-off - 1) / 8;
	struct vrf_slot *s = &f->slots[spi];
	u8 kind = SLOT_MISC;
	int err;

	scratch(v, f, spi);
	vrf_fastcall_access(v, f->subprog, off);
	if (value && vrf_is_pointer(value->type)) {
		if (size != 8) {
			vrf_log_line(v, v->insn_idx, "; ");
			vrf_say(v, "invalid size of register spill\n");
			return -EACCES;
		}
		if (f != vrf_cur(v) && value->type == PTR_TO_STACK) {
			vrf_say(v, "cannot spill pointers to stack into stack frame of the caller\n");
			return -EINVAL;
		}
	}
	if (size == 8)
		vrf_mark_stack_written(v, f->frameno, spi);
	if (value && off % 8 == 0) {
		bool fits = width_of(value) <= size * 8;

		if (src_regno >= 0 && fits)
			vrf_give_id(v, value);
		spill(s, value, size);
		if (value->type == SCALAR_VALUE && !fits)
			vrf_reg_unlink(&s->reg);
		return note_access(v, f, spi);
	}
	unspill(s);
	if (value && vrf_reg_is_null(value)) {
		if (src_regno >= 0) {
			err = vrf_mark_precise(v, (u32)src_regno);
			if (err)
				return err;
		}
		kind = SLOT_ZERO;
	}
	for (u32 i = 0; i < size; i++)
		*byte_at(f, off + i) = kind;
	return 0;
}

/* Any of the bytes may be written: each becomes some number, unless 0 is written over a 0. */
static int write_variable(struct vrf *v, struct vrf_func *f, s64 min, s64 max, u32 size, const struct vrf_reg *value,
			  s32 src_regno)
{
	bool zero = value && vrf_reg_is_null(value), zero_used = false;

	/* bytes it turns out not to write pass for written from here on */
	note_stale(v, f, min, max + size);
	vrf_fastcall_access(v, f->subprog, min);
	for (s64 o = min; o < max + size; o++) {
		u32 spi = (u32)(-o - 1) / 8;
		u8 *kind = byte_at(f, o);

		scratch(v, f, spi);
		unspill(&f->slots[spi]);
		if (zero && *kind == SLOT_ZERO)
			zero_used = true;
		else
			*kind = SLOT_MISC;
	}
	return zero_used && src_regno >= 0 ? vrf_mark_precise(v, (u32)src_regno) : 0;
}

int vrf_stack_access(struct vrf *v, const struct vrf_access *a)
{
	const struct vrf_reg *ptr = &vrf_regs(v)[a->regno];
	struct vrf_func *f = frame_of(v, ptr);
	struct vrf_reg loaded, *value = NULL;
	char tn[64];
	s64 min, max;
	int err = stack_range(v, a->regno, ptr->off + a->off, a->size, a->write, &min, &max);

	if (err)
		return err;
	if (!a->write && a->value_regno < 0 && !vrf_tnum_is_const(ptr->range.var)) {
		/* an atomic operation; Linux words it as for helpers */
		vrf_tnum_str(tn, sizeof(tn), ptr->range.var);
		vrf_say(v, "variable offset stack pointer cannot be passed into helper function; var_off=%s off=%d size=%u\n",
			tn, ptr->off + a->off, a->size);
		return -EACCES;
	}
	if (!a->write) {
		vrf_reg_unknown(&loaded);
		if (min == max)
			err = read_fixed(v, f, min, a->size, a->value_regno >= 0 ? &loaded : NULL);
		else
			err = read_variable(v, f, min, max, a->size, &loaded);
		if (!err && a->value_regno >= 0)
			vrf_regs(v)[a->value_regno] = loaded;
		return err;
	}
	if (a->value_regno >= 0)
		value = &vrf_regs(v)[a->value_regno];
	else if (a->imm_value)
		value = &v->imm_reg;
	if (min == max)
		return write_fixed(v, f, min, a->size, value, a->value_regno);
	return write_variable(v, f, min, max, a->size, value, a->value_regno);
}

/* ---- helpers ---- */

void vrf_stack_fill(struct vrf *v, u32 regno, u32 size, bool part)
{
	const struct vrf_reg *ptr = &vrf_regs(v)[regno];
	struct vrf_func *f = frame_of(v, ptr);
	s64 min = (s64)ptr->range.var.value + ptr->off;

	if (part)
		note_stale(v, f, min, min + size);
	if (size)
		vrf_fastcall_access(v, f->subprog, min);
	for (s64 o = min; o < min + size; o++) {
		u32 spi = (u32)(-o - 1) / 8;

		scratch(v, f, spi);
		unspill(&f->slots[spi]);
		*byte_at(f, o) = SLOT_MISC;
		if (-o % 8 == 0 && o + 8 <= min + size)
			vrf_mark_stack_written(v, f->frameno, spi);
	}
}

int vrf_stack_arg(struct vrf *v, u32 regno, s32 off, u32 size, bool zero_ok, bool write, bool raw)
{
	const struct vrf_reg *ptr = &vrf_regs(v)[regno];
	struct vrf_func *f = frame_of(v, ptr);
	s64 min, max;
	int err;

	if (!size && !zero_ok) {
		vrf_say(v, "invalid zero-sized read\n");
		return -EACCES;
	}
	err = stack_range(v, regno, off, size, write, &min, &max);
	if (err)
		return err;
	if (raw && min == max) /* what is there does not matter: vrf_stack_fill() follows once all arguments are judged */
		return 1;
	if (size) {
		/* read, or written in part: bytes left as they were pass for written from here on */
		note_stale(v, f, min, max + size);
		vrf_fastcall_access(v, f->subprog, min);
	}
	for (s64 o = min; o < max + (s64)size; o++) {
		u32 spi = (u32)(-o - 1) / 8;

		if (write) {
			unspill(&f->slots[spi]);
			*byte_at(f, o) = SLOT_MISC;
		}
		vrf_mark_stack_read(v, f->frameno, spi);
	}
	return 0;
}
