// SPDX-License-Identifier: BSD-2-Clause
/*
 * How a struct must be declared so that a compiler lays it out as the BTF says.
 *
 * Every gap is written as bytes of its own (dump_decl.c), so the only question left is whether the
 * members' alignment allows their offsets and the size. If it does not, the struct is packed, and
 * has alignment 1 for whoever embeds it; nothing is lost by that, since its neighbours' gaps are
 * explicit as well. Zero-length and missing members need no care. Rules are those of the 64-bit
 * System V ABI, which clang's BPF target follows.
 */
#include "btf/dump_int.h"

static u32 scalar_align(u32 size)
{
	return is_pow2(size) && size <= 16 ? size : 1;
}

u32 btf_dump_align(const struct dump *d, u32 id)
{
	const struct btf_type *t = btf_type_skip_modifiers(d->btf, id, &id);
	u32 depth;

	for (depth = 0; btf_kind(t) == BTF_KIND_ARRAY && depth < BTF_MAX_DEPTH; depth++)
		t = btf_type_skip_modifiers(d->btf, btf_array(t)->type, &id);
	switch (btf_kind(t)) {
	case BTF_KIND_PTR:
		return BTF_PTR_SIZE;
	case BTF_KIND_INT:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return scalar_align(t->size);
	case BTF_KIND_FLOAT:
		/* Only these two have a C type; the others are written as bytes. */
		return t->size == 4 || t->size == 8 ? t->size : 1;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return max_of(d->layout[id].align, 1u);
	}
	return 1;
}

void btf_dump_member_bits(const struct dump *d, const struct btf_type *t,
			  const struct btf_member *m, u64 *ret_bit, u32 *ret_field, u64 *ret_bits)
{
	const struct btf_type *mt = btf_type_skip_modifiers(d->btf, m->type, NULL);
	u32 data, size = 0;

	*ret_bit = btf_member_bit_offset(t, m);
	*ret_field = btf_member_bitfield_size(t, m);
	/* Before kind_flag a bit field was an INT of few bits, possibly moved by the INT's own
	 * offset. */
	if (!btf_kflag(t) && btf_kind(mt) == BTF_KIND_INT) {
		data = btf_int_data(mt);
		if (BTF_INT_BITS(data) != mt->size * 8 || BTF_INT_OFFSET(data) || *ret_bit % 8) {
			*ret_field = BTF_INT_BITS(data);
			*ret_bit += BTF_INT_OFFSET(data);
		}
	}
	btf_resolve_size(d->btf, m->type, &size);
	*ret_bits = *ret_field ? *ret_field : (u64)size * 8;
}

/* Whether the member would lie where BTF has it in a struct that is not packed. */
static bool lies_naturally(u64 bit, u32 field, u32 align, u32 unit_bits)
{
	if (!field)
		return !(bit % (8 * align));
	/* A bit field never straddles two units of its type. */
	return unit_bits && bit / unit_bits == (bit + field - 1) / unit_bits;
}

/* Bit fields are integers or enums of a size C has, no wider than those. */
static bool is_c_bitfield(const struct btf *btf, u32 id, u32 bits)
{
	const struct btf_type *t = btf_type_skip_modifiers(btf, id, NULL);
	u32 kind = btf_kind(t);

	return (kind == BTF_KIND_INT || btf_is_enum_any(t)) && is_pow2(t->size) && t->size <= 16 &&
	       bits <= t->size * 8;
}

void btf_dump_compute_layout(struct dump *d, u32 id)
{
	const struct btf_type *t = btf_type_at(d->btf, id);
	const struct btf_member *m = btf_members(t);
	u32 i, align = 1, field, size;
	bool packed = false, opaque = false;
	u64 bit, bits, end = 0;

	for (i = 0; i < btf_vlen(t); i++, m++) {
		u32 a = btf_dump_align(d, m->type);

		btf_dump_member_bits(d, t, m, &bit, &field, &bits);
		size = 0;
		btf_resolve_size(d->btf, m->type, &size);
		if (!lies_naturally(bit, field, a, 8 * size))
			packed = true;
		if (bit < end || (field && !is_c_bitfield(d->btf, m->type, field)) ||
		    bit + bits > (u64)t->size * 8)
			opaque = true;
		if (btf_kind(t) == BTF_KIND_STRUCT)
			end = bit + bits;
		align = max_of(align, a);
	}
	d->layout[id].opaque = opaque;
	if (opaque) {
		d->layout[id].align = 1;
		return;
	}
	if (t->size % align)
		packed = true;
	d->layout[id].align = packed ? 1 : align;
	d->layout[id].packed = packed;
}
