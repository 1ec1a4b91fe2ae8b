// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whether a member fits into its struct: one function a kind of member. m->offset of a struct with
 * kind_flag holds the bit field's size in its upper byte; only integers and enums may be bit
 * fields.
 */
#include "btf/btf_int.h"

#include <errno.h>

#define BAD(env, s, m, ...) (btf_env_log_member(env, s, m, __VA_ARGS__), -EINVAL)

static u32 bytes_up(u32 bits)
{
	return bits / 8 + !!(bits % 8);
}

static bool fits(const struct btf_type *s, u32 byte, u32 bytes)
{
	return byte <= s->size && bytes <= s->size - byte;
}

/* Members that cannot be bit fields, and whose offset is then all of m->offset. 0 or -EINVAL. */
static int no_bitfield(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
		       bool kflag)
{
	if (kflag && BTF_MEMBER_BITFIELD_SIZE(m->offset))
		return BAD(env, s, m, "Invalid member bitfield_size");
	return 0;
}

static int whole_bytes(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
		       u32 bytes, bool kflag)
{
	int err = no_bitfield(env, s, m, kflag);

	if (err)
		return err;
	if (m->offset % 8)
		return BAD(env, s, m, "Member is not byte aligned");
	if (!fits(s, m->offset / 8, bytes))
		return BAD(env, s, m, "Member exceeds struct_size");
	return 0;
}

/* bits of an integer that starts at bit of the struct. */
static int bits_fit(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
		    u32 bit, u32 bits)
{
	u32 span = bits + bit % 8;

	if (span > 128)
		return BAD(env, s, m, "nr_copy_bits exceeds 128");
	if (!fits(s, bit / 8, bytes_up(span)))
		return BAD(env, s, m, "Member exceeds struct_size");
	return 0;
}

int btf_member_check_int(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			 const struct btf_type *mt, bool kflag)
{
	u32 data = btf_int_data(mt), bit = m->offset, bits = BTF_INT_BITS(data), field;

	if (!kflag) {
		if (U32_MAX - bit < BTF_INT_OFFSET(data))
			return BAD(env, s, m, "bits_offset exceeds U32_MAX");
		return bits_fit(env, s, m, bit + BTF_INT_OFFSET(data), bits);
	}
	if (!btf_int_is_regular(mt))
		return BAD(env, s, m, "Invalid member base type");
	bit = BTF_MEMBER_BIT_OFFSET(m->offset);
	field = BTF_MEMBER_BITFIELD_SIZE(m->offset);
	if (!field && bit % 8)
		return BAD(env, s, m, "Invalid member offset");
	if (field > bits)
		return BAD(env, s, m, "Invalid member bitfield_size");
	return bits_fit(env, s, m, bit, field ? field : bits);
}

int btf_member_check_enum(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			  const struct btf_type *mt, bool kflag)
{
	u32 bit, field;

	if (!kflag)
		return whole_bytes(env, s, m, mt->size, false);
	bit = BTF_MEMBER_BIT_OFFSET(m->offset);
	field = BTF_MEMBER_BITFIELD_SIZE(m->offset);
	if (!field && bit % 8)
		return BAD(env, s, m, "Member is not byte aligned");
	if (field > 32)
		return BAD(env, s, m, "Invalid member bitfield_size");
	/* As Linux: an enum that is no bit field counts as an int here, whatever its size. */
	if (bytes_up(bit + (field ? field : 32)) > s->size)
		return BAD(env, s, m, "Member exceeds struct_size");
	return 0;
}

int btf_member_check_ptr(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			 const struct btf_type *mt, bool kflag)
{
	return whole_bytes(env, s, m, BTF_PTR_SIZE, kflag);
}

int btf_member_check_struct(struct btf_env *env, const struct btf_type *s,
			    const struct btf_member *m, const struct btf_type *mt, bool kflag)
{
	return whole_bytes(env, s, m, mt->size, kflag);
}

int btf_member_check_array(struct btf_env *env, const struct btf_type *s,
			   const struct btf_member *m, const struct btf_type *mt, bool kflag)
{
	u32 id = m->type, bytes = 0;

	btf_id_size(env->btf, &id, &bytes);
	return whole_bytes(env, s, m, bytes, kflag);
}

int btf_member_check_float(struct btf_env *env, const struct btf_type *s,
			   const struct btf_member *m, const struct btf_type *mt, bool kflag)
{
	u32 align_bits = 8 * min_of(mt->size, (u32)BTF_PTR_SIZE);
	int err = no_bitfield(env, s, m, kflag);

	if (err)
		return err;
	if (m->offset % align_bits)
		return BAD(env, s, m, "Member is not properly aligned");
	if (!fits(s, m->offset / 8, mt->size))
		return BAD(env, s, m, "Member exceeds struct_size");
	return 0;
}

/* The check, and the log line, are those of the type behind the modifiers. It is never a modifier
 * itself: no recursion. */
int btf_member_check_modifier(struct btf_env *env, const struct btf_type *s,
			      const struct btf_member *m, const struct btf_type *mt, bool kflag)
{
	struct btf_member behind = *m;
	const struct btf_type *t = btf_id_size(env->btf, &behind.type, NULL);

	if (!t)
		return BAD(env, s, m, "Invalid member");
	return btf_kinds[btf_kind(t)].check_member(env, s, &behind, t, kflag);
}

int btf_member_check_none(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			  const struct btf_type *mt, bool kflag)
{
	btf_env_log_basic(env, s, "Unsupported check_member");
	return -EINVAL;
}
