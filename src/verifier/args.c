// SPDX-License-Identifier: BSD-2-Clause
/* Arguments of helpers against their descriptors. Which register types fit an argument type is the table below. */
#include "verifier/vrf_int.h"

#include <string.h>

#include "btf/walk.h"

#define MAX_TYPES 9

static const u32 mem_types[MAX_TYPES] = { PTR_TO_STACK,	 PTR_TO_MAP_KEY, PTR_TO_MAP_VALUE,
					  PTR_TO_MEM,	 PTR_TO_MEM | MEM_RINGBUF, PTR_TO_BUF,
					  PTR_TO_BTF_ID | PTR_TRUSTED };

static const u32 fitting[ARG_TYPE_MAX][MAX_TYPES] = {
	[ARG_CONST_MAP_PTR] = { CONST_PTR_TO_MAP },
	[ARG_CONST_SIZE] = { SCALAR_VALUE },
	[ARG_CONST_SIZE_OR_ZERO] = { SCALAR_VALUE },
	[ARG_PTR_TO_CTX] = { PTR_TO_CTX },
	[ARG_PTR_TO_BTF_ID] = { PTR_TO_BTF_ID, PTR_TO_BTF_ID | PTR_TRUSTED, PTR_TO_BTF_ID | MEM_RCU },
	[ARG_PTR_TO_RINGBUF_MEM] = { PTR_TO_MEM | MEM_RINGBUF },
	[ARG_CONST_ALLOC_SIZE_OR_ZERO] = { SCALAR_VALUE },
	[ARG_PTR_TO_FUNC] = { PTR_TO_FUNC },
	[ARG_PTR_TO_STACK] = { PTR_TO_STACK },
	[ARG_PTR_TO_CONST_STR] = { PTR_TO_MAP_VALUE },
	[ARG_PTR_TO_SPIN_LOCK] = { PTR_TO_MAP_VALUE },
};

static const u32 *types_for(u32 arg_type)
{
	switch (type_base(arg_type)) {
	case ARG_PTR_TO_MAP_KEY:
	case ARG_PTR_TO_MAP_VALUE:
	case ARG_PTR_TO_MEM:
		return mem_types;
	}
	return fitting[type_base(arg_type) < ARG_TYPE_MAX ? type_base(arg_type) : 0];
}

static int wrong_btf_type(struct vrf *v, u32 regno, u32 arg, const struct helper_desc *h)
{
	const struct vrf_reg *reg = &vrf_regs(v)[regno];
	u32 arg_type = h->arg[arg];
	s32 id;

	if (types_for(arg_type) == mem_types) {
		if (arg_type & MEM_RDONLY)
			return 0;
		vrf_say(v, "%s() may write into memory pointed by R%u type=%s\n", h->name, regno,
			vrf_type_str(v, reg->type));
		return -EACCES;
	}
	if (vrf_may_be_null(reg->type) && (!vrf_may_be_null(arg_type) || arg_type & OBJ_RELEASE)) {
		vrf_say(v, "Possibly NULL pointer passed to helper arg%u\n", regno);
		return -EACCES;
	}
	id = h->arg_btf[arg] ? btf_find_by_name_kind(v->machine, h->arg_btf[arg], BTF_KIND_STRUCT) : -ENOENT;
	if (id < 0) {
		vrf_say(v, "verifier internal error: missing arg compatible BTF ID\n");
		return -EFAULT;
	}
	if (!btf_struct_ids_match(reg->btf, reg->btf_id, (u32)reg->off, v->machine, (u32)id, arg_type & OBJ_RELEASE)) {
		vrf_say(v, "R%u is of type %s but %s is expected\n", regno, btf_type_name(reg->btf, reg->btf_id),
			h->arg_btf[arg]);
		return -EACCES;
	}
	return 0;
}

static int check_type(struct vrf *v, u32 regno, u32 arg, const struct helper_desc *h)
{
	const struct vrf_reg *reg = &vrf_regs(v)[regno];
	const u32 *types = types_for(h->arg[arg]);
	u32 type = reg->type, i;

	/* a read-only or nullable argument takes such memory too; the reverse does not hold */
	if (h->arg[arg] & MEM_RDONLY)
		type &= ~(u32)MEM_RDONLY;
	if (h->arg[arg] & PTR_MAYBE_NULL)
		type &= ~(u32)PTR_MAYBE_NULL;
	for (i = 0; i < MAX_TYPES && types[i]; i++)
		if (types[i] == type)
			break;
	if (i == MAX_TYPES || !types[i]) {
		vrf_say(v, "R%u type=%s expected=", regno, vrf_type_str(v, reg->type));
		for (i = 0; i < MAX_TYPES && types[i]; i++)
			vrf_say(v, "%s%s", i ? ", " : "", vrf_type_str(v, types[i]));
		vrf_say(v, "\n");
		return -EACCES;
	}
	return type_base(reg->type) == PTR_TO_BTF_ID ? wrong_btf_type(v, regno, arg, h) : 0;
}

int vrf_arg_off(struct vrf *v, u32 regno, u32 arg_type)
{
	const struct vrf_reg *reg = &vrf_regs(v)[regno];

	if (arg_type & OBJ_RELEASE) {
		if (reg->off) {
			vrf_say(v, "R%u must have zero offset when passed to release func or trusted arg to kfunc\n",
				regno);
			return -EINVAL;
		}
		return vrf_ptr_off_zero(v, reg, regno);
	}
	switch (type_base(reg->type)) {
	case PTR_TO_STACK:
	case PTR_TO_MAP_KEY:
	case PTR_TO_MAP_VALUE:
	case PTR_TO_MEM:
	case PTR_TO_BUF:
	case SCALAR_VALUE:
		return 0;
	case PTR_TO_BTF_ID:
		return vrf_ptr_off_fixed(v, reg, regno);
	}
	return vrf_ptr_off_zero(v, reg, regno);
}

int vrf_mem_arg(struct vrf *v, u32 regno, u32 size, bool zero_ok, bool write, struct vrf_call_meta *m)
{
	const struct vrf_reg *reg = &vrf_regs(v)[regno];
	struct vrf_access a = { .regno = regno, .size = size, .write = write, .value_regno = -1 };
	int err;

	switch (vrf_may_be_null(reg->type) ? NOT_INIT : type_base(reg->type)) {
	case PTR_TO_STACK:
		err = vrf_stack_arg(v, regno, reg->off, size, zero_ok, write, m && m->raw);
		if (err == 1) {
			m->raw_regno = (s32)regno;
			m->raw_size = size;
			err = 0;
		}
		return err;
	case PTR_TO_MAP_VALUE:
		return vrf_map_access(v, regno, reg->off, size, write, zero_ok);
	case PTR_TO_MAP_KEY:
		if (write)
			goto read_only;
		return vrf_region_check(v, regno, reg->off, size, reg->map->key_size, zero_ok);
	case PTR_TO_MEM:
		if (reg->type & MEM_RDONLY && write)
			goto read_only;
		return vrf_region_check(v, regno, reg->off, size, reg->mem_size, zero_ok);
	case PTR_TO_BTF_ID:
		if (write)
			goto read_only;
		return size ? vrf_btf_access(v, &a) : 0;
	}
	if (zero_ok && !size && vrf_reg_is_null(reg))
		return vrf_mark_precise(v, regno);
	vrf_say(v, "R%u type=%s expected=%s\n", regno, vrf_type_str(v, reg->type), vrf_type_str(v, PTR_TO_STACK));
	return -EACCES;
read_only:
	vrf_say(v, "R%u cannot write into %s\n", regno, vrf_type_str(v, reg->type));
	return -EACCES;
}

/* The size of the memory in the argument before. */
int vrf_size_arg(struct vrf *v, u32 regno, bool zero_ok, bool write, struct vrf_call_meta *m)
{
	const struct vrf_range *r = &vrf_regs(v)[regno].range;
	int err;

	m->size_max = r->umax;
	m->size_known = vrf_tnum_is_const(r->var);
	if (!m->size_known) /* it may fill less than the largest size: what it leaves must be good before */
		m->raw = false;
	if (r->smin < 0) {
		vrf_say(v, "R%u min value is negative, either use unsigned or 'var &= const'\n", regno);
		return -EACCES;
	}
	if (!r->umin && !zero_ok) {
		vrf_say(v, "R%u invalid zero-sized read: u64=[%llu,%llu]\n", regno, (unsigned long long)r->umin,
			(unsigned long long)r->umax);
		return -EACCES;
	}
	if (r->umax >= VRF_MAX_OFF) {
		vrf_say(v, "R%u unbounded memory access, use 'var &= const' or 'if (var < const)'\n", regno);
		return -EACCES;
	}
	err = vrf_mem_arg(v, regno - 1, (u32)r->umax, zero_ok, write, m);
	return err ? err : vrf_mark_precise(v, regno);
}

int vrf_const_str(struct vrf *v, u32 regno, const char **ret_str)
{
	const struct vrf_reg *reg = &vrf_regs(v)[regno];
	struct map *map = reg->map;
	char tn[64];
	u64 addr;
	u32 left;
	int err;

	if (!map_is_const(map)) {
		vrf_say(v, "R%u does not point to a readonly map'\n", regno);
		return -EACCES;
	}
	if (!vrf_tnum_is_const(reg->range.var)) {
		vrf_tnum_str(tn, sizeof(tn), reg->range.var);
		vrf_say(v, "R%u is not a constant address'\n", regno);
		return -EACCES;
	}
	if (!map->ops->direct_value) {
		vrf_say(v, "no direct value access support for this map type\n");
		return -EACCES;
	}
	err = vrf_map_access(v, regno, reg->off, map->value_size - (u32)reg->off, false, false);
	if (err)
		return err;
	err = map->ops->direct_value(map, (u32)(reg->off + (s64)reg->range.var.value), &addr, &left);
	if (err) {
		vrf_say(v, "direct value access on string failed\n");
		return err;
	}
	if (!memchr((const void *)(uintptr_t)addr, 0, left)) {
		vrf_say(v, "string is not zero-terminated\n");
		return -EINVAL;
	}
	*ret_str = (const char *)(uintptr_t)addr;
	return 0;
}

/* The key on the stack is a known number: an array's element with it is known to exist (or not). */
static int constant_key(struct vrf *v, const struct vrf_reg *ptr, u32 size, struct vrf_call_meta *m)
{
	const struct vrf_func *f;
	const struct vrf_slot *s;
	s64 off;
	s32 first;
	u32 n, spi, same = 0;

	if (ptr->type != PTR_TO_STACK || !vrf_tnum_is_const(ptr->range.var))
		return 0;
	f = v->cur->frame[ptr->frameno];
	off = (s64)ptr->range.var.value + ptr->off;
	if (off >= 0 || off < -PROG_STACK)
		return 0;
	n = (u32)(-off - 1);
	spi = n / 8;
	first = (s32)(n % 8);
	if (spi >= f->nr_slots)
		return 0;
	s = &f->slots[spi];
	for (s32 i = first; i >= 0 && s->type[i] == SLOT_ZERO; i--)
		same++;
	if (same >= size) {
		m->const_key = true;
		m->key = 0;
		return 0;
	}
	if (!vrf_slot_is_spilled_scalar(s) || first != 7)
		return 0;
	for (same = 0; first >= 0 && s->type[first] == SLOT_SPILL; first--)
		same++;
	if (same != size || !vrf_tnum_is_const(s->reg.range.var))
		return 0;
	m->const_key = true;
	m->key = s->reg.range.var.value;
	return vrf_mark_slot_precise(v, ptr->frameno, spi);
}

static int special(struct vrf *v, u32 arg, u32 regno, const struct helper_desc *h, struct vrf_call_meta *m)
{
	struct vrf_reg *reg = &vrf_regs(v)[regno];
	u32 type = h->arg[arg];
	bool write = arg && h->arg[arg - 1] & (MEM_WRITE | MEM_UNINIT);
	int err;

	switch (type_base(type)) {
	case ARG_CONST_MAP_PTR:
		m->map = reg->map;
		m->map_regno = regno;
		return 0;
	case ARG_PTR_TO_MAP_KEY:
		if (!m->map) {
			vrf_say(v, "invalid map_ptr to access map->key\n");
			return -EACCES;
		}
		m->raw = false;
		err = vrf_mem_arg(v, regno, m->map->key_size, false, false, NULL);
		if (err || !(m->map->ops->flags & MAP_INDEXED))
			return err;
		return constant_key(v, reg, m->map->key_size, m);
	case ARG_PTR_TO_MAP_VALUE:
		if (vrf_may_be_null(type) && vrf_reg_is_null(reg))
			return 0;
		if (!m->map) {
			vrf_say(v, "invalid map_ptr to access map->value\n");
			return -EACCES;
		}
		m->raw = type & MEM_UNINIT;
		return vrf_mem_arg(v, regno, m->map->value_size, false, type & (MEM_WRITE | MEM_UNINIT), m);
	case ARG_PTR_TO_MEM:
		m->raw = type & MEM_UNINIT;
		if (!(type & MEM_FIXED_SIZE))
			return 0; /* with its size, the next argument */
		return vrf_mem_arg(v, regno, h->arg_size[arg], false, type & (MEM_WRITE | MEM_UNINIT), m);
	case ARG_CONST_SIZE:
		return vrf_size_arg(v, regno, false, write, m);
	case ARG_CONST_SIZE_OR_ZERO:
		return vrf_size_arg(v, regno, true, write, m);
	case ARG_CONST_ALLOC_SIZE_OR_ZERO:
		if (!vrf_tnum_is_const(reg->range.var)) {
			vrf_say(v, "R%u is not a known constant'\n", regno);
			return -EACCES;
		}
		m->mem_size = (u32)min_of(reg->range.var.value, (u64)U32_MAX);
		return vrf_mark_precise(v, regno);
	case ARG_PTR_TO_CONST_STR:
		return vrf_const_str(v, regno, &m->str);
	case ARG_PTR_TO_FUNC:
		m->subprog = (s32)reg->subprog;
		return 0;
	case ARG_PTR_TO_SPIN_LOCK:
		vrf_say(v, "unsupported: bpf_spin_lock\n");
		return -EINVAL;
	}
	return 0;
}

int vrf_check_arg(struct vrf *v, u32 arg, const struct helper_desc *h, struct vrf_call_meta *m)
{
	u32 regno = arg + 1, type = h->arg[arg];
	struct vrf_reg *reg = &vrf_regs(v)[regno];
	int err;

	if (type_base(type) == ARG_DONTCARE)
		return 0;
	err = vrf_read_reg(v, regno);
	if (err || type_base(type) == ARG_ANYTHING)
		return err;
	if (vrf_reg_is_null(reg) && vrf_may_be_null(type)) {
		/* That it is 0 is all that makes it good: no state with another number may be taken for this one. */
		err = vrf_mark_precise(v, regno);
		if (err)
			return err;
	} else {
		err = check_type(v, regno, arg, h);
		if (!err)
			err = vrf_arg_off(v, regno, type);
		if (err)
			return err;
	}
	if (type & OBJ_RELEASE) {
		if (!reg->ref_id && !vrf_reg_is_null(reg)) {
			vrf_say(v, "R%u must be referenced when passed to release function\n", regno);
			return -EINVAL;
		}
		m->release_regno = (s32)regno;
	}
	if (reg->ref_id) {
		if (m->ref_id) {
			vrf_say(v, "more than one arg with ref_obj_id R%u %u %u\n", regno, reg->ref_id, m->ref_id);
			return -EACCES;
		}
		m->ref_id = reg->ref_id;
	}
	return special(v, arg, regno, h, m);
}
