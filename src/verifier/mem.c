// SPDX-License-Identifier: BSD-2-Clause
/* Loads and stores through pointers: which memory, within which bounds, and what a load brings. */
#include "verifier/vrf_int.h"

#include <string.h>

#include "base/probe.h"
#include "btf/btf.h"

/* One access at a known offset. */
static int in_bounds(struct vrf *v, u32 regno, s64 off, u32 size, u32 mem_size, bool zero_ok)
{
	const struct vrf_reg *reg = &vrf_regs(v)[regno];

	if (off >= 0 && (size || zero_ok) && (u64)off + size <= mem_size)
		return 0;
	switch (type_base(reg->type)) {
	case PTR_TO_MAP_KEY:
		vrf_say(v, "invalid access to map key, key_size=%u off=%lld size=%u\n", mem_size, (long long)off, size);
		break;
	case PTR_TO_MAP_VALUE:
		vrf_say(v, "invalid access to map value, value_size=%u off=%lld size=%u\n", mem_size, (long long)off,
			size);
		break;
	default:
		vrf_say(v, "invalid access to memory, mem_size=%u off=%lld size=%u\n", mem_size, (long long)off, size);
	}
	return -EACCES;
}

int vrf_region_check(struct vrf *v, u32 regno, s32 off, u32 size, u32 mem_size, bool zero_ok)
{
	const struct vrf_range *r = &vrf_regs(v)[regno].range;
	int err;

	/* both ends are tried, in 64 bits; smin beyond 32 bits never fits */
	if (r->smin < 0 && (r->smin == S64_MIN || (s64)(s32)(off + r->smin) != off + r->smin || r->smin + off < 0)) {
		vrf_say(v, "R%u min value is negative, either use unsigned index or do a if (index >=0) check.\n", regno);
		return -EACCES;
	}
	err = in_bounds(v, regno, r->smin + off, size, mem_size, zero_ok);
	if (err) {
		vrf_say(v, "R%u min value is outside of the allowed memory range\n", regno);
		return err;
	}
	if (r->umax >= VRF_MAX_OFF) {
		vrf_say(v, "R%u unbounded memory access, make sure to bounds check any such access\n", regno);
		return -EACCES;
	}
	err = in_bounds(v, regno, (s64)r->umax + off, size, mem_size, zero_ok);
	if (err)
		vrf_say(v, "R%u max value is outside of the allowed memory range\n", regno);
	return err;
}

int vrf_map_access(struct vrf *v, u32 regno, s32 off, u32 size, bool write, bool zero_ok)
{
	const struct vrf_reg *reg = &vrf_regs(v)[regno];
	const struct map *map = reg->map;
	s64 first, end;
	int err;

	if (map->map_flags & (write ? BPF_F_RDONLY_PROG : BPF_F_WRONLY_PROG)) {
		vrf_say(v, write ? "write into map forbidden, value_size=%u off=%lld size=%u\n" :
				   "read from map forbidden, value_size=%u off=%lld size=%u\n",
			map->value_size, (long long)off + reg->range.smin, size);
		return -EACCES;
	}
	err = vrf_region_check(v, regno, off, size, map->value_size, zero_ok);
	if (err || map->spin_lock_off == U32_MAX)
		return err;
	first = off + reg->range.smin;
	end = off + (s64)reg->range.umax + size;
	if (first < (s64)map->spin_lock_off + 4 && end > (s64)map->spin_lock_off) {
		vrf_say(v, "bpf_spin_lock cannot be accessed directly by load/store\n");
		return -EACCES;
	}
	return 0;
}

static int off_reg_check(struct vrf *v, const struct vrf_reg *reg, u32 regno, bool fixed_ok)
{
	char tn[64];

	if (reg->off < 0) {
		vrf_say(v, "negative offset %s ptr R%u off=%d disallowed\n", vrf_type_str(v, reg->type), regno, reg->off);
		return -EACCES;
	}
	if (!fixed_ok && reg->off) {
		vrf_say(v, "dereference of modified %s ptr R%u off=%d disallowed\n", vrf_type_str(v, reg->type), regno,
			reg->off);
		return -EACCES;
	}
	if (!vrf_tnum_is_const(reg->range.var) || reg->range.var.value) {
		vrf_tnum_str(tn, sizeof(tn), reg->range.var);
		vrf_say(v, "variable %s access var_off=%s disallowed\n", vrf_type_str(v, reg->type), tn);
		return -EACCES;
	}
	return 0;
}

int vrf_ptr_off_zero(struct vrf *v, const struct vrf_reg *reg, u32 regno)
{
	return off_reg_check(v, reg, regno, false);
}

int vrf_ptr_off_fixed(struct vrf *v, const struct vrf_reg *reg, u32 regno)
{
	return off_reg_check(v, reg, regno, true);
}

static int check_align(struct vrf *v, const struct vrf_access *a, const struct vrf_reg *ptr)
{
	bool strict = v->opts->strict_alignment || a->atomic || type_base(ptr->type) == PTR_TO_STACK;
	struct tnum at;
	const char *word = "";
	char tn[64];

	if (!strict || a->size == 1)
		return 0;
	at = vrf_tnum_add(ptr->range.var, vrf_tnum_const((u64)((s64)ptr->off + a->off)));
	if (vrf_tnum_is_aligned(at, a->size))
		return 0;
	switch (type_base(ptr->type)) {
	case PTR_TO_STACK: word = "stack "; break;
	case PTR_TO_MAP_VALUE: word = "value "; break;
	case PTR_TO_MAP_KEY: word = "key "; break;
	case PTR_TO_CTX: word = "context "; break;
	}
	vrf_tnum_str(tn, sizeof(tn), ptr->range.var);
	vrf_say(v, "misaligned %saccess off %s+%d+%d size %u\n", word, tn, ptr->off, a->off, a->size);
	return -EACCES;
}

static struct vrf_reg *loaded(struct vrf *v, const struct vrf_access *a)
{
	return !a->write && a->value_regno >= 0 ? &vrf_regs(v)[a->value_regno] : NULL;
}

static int ctx_access(struct vrf *v, const struct vrf_access *a)
{
	struct vrf_reg *reg = &vrf_regs(v)[a->regno], *dst = loaded(v, a);
	struct ctx_access info = { .reg_type = SCALAR_VALUE, .log = v->log_level ? v->log : NULL };
	s32 off = reg->off + a->off;
	int err = vrf_ptr_off_zero(v, reg, a->regno);

	if (err)
		return err;
	if (!v->prog->ops->is_valid_access(v->prog, off, a->size, a->write, &info)) {
		vrf_say(v, "invalid bpf_context access off=%d size=%u\n", off, a->size);
		return -EACCES;
	}
	v->max_ctx_offset = max_of(v->max_ctx_offset, (u32)off + a->size);
	if (!dst)
		return 0;
	if (info.reg_type == SCALAR_VALUE) {
		vrf_reg_unknown(dst);
		return 0;
	}
	vrf_reg_type(dst, info.reg_type);
	if (type_base(info.reg_type) == PTR_TO_BTF_ID) {
		dst->btf = info.btf;
		dst->btf_id = info.btf_id;
	}
	if (vrf_may_be_null(info.reg_type))
		dst->id = vrf_new_id(v);
	if (a->sign_extend) { /* a pointer is not a number to extend */
		vrf_say(v, "invalid bpf_context access off=%d size=%u\n", off, a->size);
		return -EACCES;
	}
	return 0;
}

/* A constant map's bytes are known already now. */
static bool load_constant(struct vrf *v, const struct vrf_access *a, const struct vrf_reg *ptr, struct vrf_reg *dst)
{
	struct map *map = ptr->map;
	u64 addr, val = 0;
	u32 left;

	if (!vrf_tnum_is_const(ptr->range.var) || !map_is_const(map) || !map->ops->direct_value)
		return false;
	if (map->ops->direct_value(map, (u32)((s64)ptr->range.var.value + ptr->off + a->off), &addr, &left) ||
	    left < a->size)
		return false;
	memcpy(&val, (const void *)(uintptr_t)addr, a->size); /* little-endian: range of both machines we build for */
	vrf_reg_const(dst, val);
	return true;
}

/*
 * A load that reads one constant on every path may become it. A pruned path is none to be afraid of: pointers are compared
 * with all they are, so it reads from the same place.
 */
static void note_constant(struct vrf *v, const struct vrf_reg *value)
{
	struct insn_fact *fact = &v->facts[v->insn_idx];

	if (!value || (fact->load_known && fact->imm64 != value->range.umin))
		fact->load_varies = 1;
	fact->load_known = !fact->load_varies;
	if (fact->load_known)
		fact->imm64 = value->range.umin;
}

static int map_value_access(struct vrf *v, const struct vrf_access *a)
{
	struct vrf_reg *reg = &vrf_regs(v)[a->regno], *dst = loaded(v, a), copy = *reg;
	int err = vrf_map_access(v, a->regno, reg->off + a->off, a->size, a->write, false);

	if (!err && dst && !load_constant(v, a, &copy, dst))
		vrf_reg_unknown(dst);
	return err;
}

static int invalid_access(struct vrf *v, const struct vrf_access *a)
{
	vrf_say(v, "R%u invalid mem access '%s'\n", a->regno, vrf_type_str(v, vrf_regs(v)[a->regno].type));
	return -EACCES;
}

static int plain_mem_access(struct vrf *v, const struct vrf_access *a)
{
	struct vrf_reg *reg = &vrf_regs(v)[a->regno], *dst = loaded(v, a);
	int err = 0;

	if (vrf_may_be_null(reg->type))
		return invalid_access(v, a);
	if (a->write && reg->type & MEM_RDONLY) {
		vrf_say(v, "R%u cannot write into %s\n", a->regno, vrf_type_str(v, reg->type));
		return -EACCES;
	}
	/* memory behind an untrusted pointer is read with faults caught: no bounds */
	if (!(reg->type & PTR_UNTRUSTED))
		err = vrf_region_check(v, a->regno, reg->off + a->off, a->size, reg->mem_size, false);
	if (!err && dst)
		vrf_reg_unknown(dst);
	return err;
}

static int by_type(struct vrf *v, const struct vrf_access *a)
{
	struct vrf_reg *reg = &vrf_regs(v)[a->regno], *dst = loaded(v, a);
	int err;

	switch (type_base(reg->type)) {
	case PTR_TO_STACK:
		return vrf_stack_access(v, a);
	case PTR_TO_CTX:
		if (vrf_may_be_null(reg->type))
			break;
		return ctx_access(v, a);
	case PTR_TO_MAP_VALUE:
		if (vrf_may_be_null(reg->type))
			break;
		return map_value_access(v, a);
	case PTR_TO_MAP_KEY:
		if (a->write) {
			vrf_say(v, "write to change key R%u not allowed\n", a->regno);
			return -EACCES;
		}
		err = vrf_region_check(v, a->regno, reg->off + a->off, a->size, reg->map->key_size, false);
		if (!err && dst)
			vrf_reg_unknown(dst);
		return err;
	case PTR_TO_MEM:
		return plain_mem_access(v, a);
	case PTR_TO_BTF_ID:
		if (vrf_may_be_null(reg->type))
			break;
		return vrf_btf_access(v, a);
	}
	return invalid_access(v, a);
}

static u8 mem_kind(u32 type)
{
	switch (type_base(type)) {
	case PTR_TO_CTX:
		return INSN_MEM_CTX;
	case PTR_TO_BTF_ID:
		return INSN_MEM_PROBE;
	case PTR_TO_MEM:
		return type & PTR_UNTRUSTED ? INSN_MEM_PROBE : INSN_MEM_PLAIN;
	}
	return INSN_MEM_PLAIN;
}

/* An instruction is compiled once: every path must mean the same kind of memory by it. */
static int same_kind(struct vrf *v, u32 type)
{
	struct insn_fact *fact = &v->facts[v->insn_idx];
	u8 kind = mem_kind(type);

	if (fact->mem == INSN_MEM_NONE) {
		fact->mem = kind;
		return 0;
	}
	if (fact->mem == kind)
		return 0;
	vrf_say(v, "same insn cannot be used with different pointers\n");
	return -EINVAL;
}

int vrf_mem_access(struct vrf *v, const struct vrf_access *a)
{
	const struct vrf_reg *reg = &vrf_regs(v)[a->regno];
	u32 type = reg->type;
	struct vrf_reg *dst;
	s64 off = (s64)reg->off + a->off;
	int err = check_align(v, a, reg);

	if (err)
		return err;
	if (off != (s32)off)
		return invalid_access(v, a);
	err = by_type(v, a);
	if (err)
		return err;
	dst = loaded(v, a);
	if (dst && dst->type == SCALAR_VALUE && (a->size < 8 || a->sign_extend)) {
		if (a->sign_extend) {
			if (dst->range.umax >> (a->size * 8 - 1))
				vrf_reg_unlink(dst);
			vrf_range_sext(&dst->range, a->size);
		} else {
			if (dst->range.umax >> 1 >> (a->size * 8 - 1))
				vrf_reg_unlink(dst);
			vrf_range_zext(&dst->range, a->size);
		}
	}
	if (dst) /* a map's value is known only where load_constant() said so */
		note_constant(v, type_base(type) == PTR_TO_MAP_VALUE && dst->type == SCALAR_VALUE &&
					 vrf_tnum_is_const(dst->range.var) ? dst : NULL);
	return same_kind(v, type);
}
