// SPDX-License-Identifier: BSD-2-Clause
#include "btf_data.h"

#include <ctype.h>
#include <string.h>

#include <bpf/btf.h>

#include "json.h"

#define MAX_DEPTH 32

struct printer {
	FILE *f;
	const struct btf *btf;
	u32 depth;
};

static void print_type(struct printer *p, u32 id, const u8 *data, size_t size);

static void print_hex(FILE *f, const u8 *data, size_t size)
{
	fputc('"', f);
	for (size_t i = 0; i < size; i++)
		fprintf(f, "%02x", data[i]);
	fputc('"', f);
}

static const struct btf_type *bare(const struct btf *btf, u32 *id)
{
	const struct btf_type *t = btf__type_by_id(btf, *id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t))) {
		*id = t->type;
		t = btf__type_by_id(btf, *id);
	}
	return t;
}

/* bits from bit off of data, little-endian, as far as size goes */
static u64 read_bits(const u8 *data, size_t size, u32 off, u32 bits)
{
	u64 v = 0;

	for (u32 i = 0; i < bits && (off + i) / 8 < size; i++)
		v |= (u64)(data[(off + i) / 8] >> ((off + i) % 8) & 1) << i;
	return v;
}

static void print_int(struct printer *p, u64 v, u32 bits, u32 encoding)
{
	if (encoding & BTF_INT_BOOL)
		fputs(v ? "true" : "false", p->f);
	else if (encoding & BTF_INT_SIGNED && bits < 64)
		fprintf(p->f, "%lld", (long long)((s64)(v << (64 - bits)) >> (64 - bits)));
	else if (encoding & BTF_INT_SIGNED)
		fprintf(p->f, "%lld", (long long)v);
	else
		fprintf(p->f, "%llu", (unsigned long long)v);
}

static void print_enum(struct printer *p, const struct btf_type *t, u64 v)
{
	bool wide = btf_is_enum64(t), is_signed = btf_kflag(t);
	u32 bits = t->size * 8;
	u64 mask = bits >= 64 ? U64_MAX : (1ULL << bits) - 1;

	for (u32 i = 0; i < btf_vlen(t); i++) {
		u64 ev = wide ? btf_enum64_value(&btf_enum64(t)[i]) : (u64)(s64)btf_enum(t)[i].val;
		u32 name = wide ? btf_enum64(t)[i].name_off : btf_enum(t)[i].name_off;

		if ((ev & mask) != (v & mask))
			continue;
		cli_json_str(p->f, btf__name_by_offset(p->btf, name));
		return;
	}
	print_int(p, v, bits ? bits : 32, is_signed ? BTF_INT_SIGNED : 0);
}

static bool is_char(const struct btf *btf, u32 id)
{
	const struct btf_type *t = bare(btf, &id);

	return t && btf_is_int(t) && t->size == 1 && !(btf_int_encoding(t) & BTF_INT_BOOL);
}

/* Text up to a NUL, or to the end, that a terminal can show; an all-zero array is "". */
static bool is_text(const u8 *data, size_t size)
{
	size_t len = strnlen((const char *)data, size);

	for (size_t i = 0; i < len; i++)
		if (!isprint(data[i]) && data[i] < 0x80)
			return false;
	return len < size;
}

static void print_array(struct printer *p, const struct btf_type *t, const u8 *data, size_t size)
{
	const struct btf_array *a = btf_array(t);
	s64 elem = btf__resolve_size(p->btf, a->type);

	if (is_char(p->btf, a->type) && a->nelems > 1 && a->nelems <= size &&
	    is_text(data, a->nelems)) {
		cli_json_str(p->f, (const char *)data);
		return;
	}
	fputc('[', p->f);
	for (u32 i = 0; elem > 0 && i < a->nelems && (u64)(i + 1) * elem <= size; i++) {
		if (i)
			fputc(',', p->f);
		print_type(p, a->type, data + i * elem, elem);
	}
	fputc(']', p->f);
}

static void print_member(struct printer *p, const struct btf_type *t, u32 i, const u8 *data,
			 size_t size)
{
	const struct btf_member *m = &btf_members(t)[i];
	u32 off = btf_member_bit_offset(t, i), bits = btf_member_bitfield_size(t, i), id = m->type;
	const struct btf_type *mt = bare(p->btf, &id);
	s64 bytes = btf__resolve_size(p->btf, m->type);

	if (!bits && mt && btf_is_int(mt) &&
	    (btf_int_offset(mt) || btf_int_bits(mt) != mt->size * 8)) {
		off += btf_int_offset(mt);
		bits = btf_int_bits(mt);
	}
	if (bits && mt && btf_is_int(mt))
		print_int(p, read_bits(data, size, off, min_of(bits, 64u)), min_of(bits, 64u),
			  btf_int_encoding(mt));
	else if (bits && mt && btf_is_any_enum(mt))
		print_enum(p, mt, read_bits(data, size, off, min_of(bits, 64u)));
	else if (bytes < 0 || off / 8 + (u64)bytes > size)
		fputs("null", p->f);
	else
		print_type(p, m->type, data + off / 8, bytes);
}

static void print_struct(struct printer *p, const struct btf_type *t, const u8 *data, size_t size)
{
	bool first = true;

	fputc('{', p->f);
	for (u32 i = 0; i < btf_vlen(t); i++) {
		const char *name = btf__name_by_offset(p->btf, btf_members(t)[i].name_off);
		char anonymous[24];

		if (!name || !*name) {
			snprintf(anonymous, sizeof(anonymous), "(anonymous %u)", i);
			name = anonymous;
		}
		if (!first)
			fputc(',', p->f);
		first = false;
		cli_json_str(p->f, name);
		fputc(':', p->f);
		print_member(p, t, i, data, size);
	}
	fputc('}', p->f);
}

static void print_datasec(struct printer *p, const struct btf_type *t, const u8 *data, size_t size)
{
	fputc('{', p->f);
	for (u32 i = 0; i < btf_vlen(t); i++) {
		const struct btf_var_secinfo *v = &btf_var_secinfos(t)[i];
		const struct btf_type *var = btf__type_by_id(p->btf, v->type);

		if (!var)
			continue;
		if (i)
			fputc(',', p->f);
		cli_json_str(p->f, btf__name_by_offset(p->btf, var->name_off));
		fputc(':', p->f);
		if ((u64)v->offset + v->size <= size)
			print_type(p, var->type, data + v->offset, v->size);
		else
			fputs("null", p->f);
	}
	fputc('}', p->f);
}

static void print_float(struct printer *p, const u8 *data, size_t size)
{
	double d = 0;
	float f;

	if (size == sizeof(d)) {
		memcpy(&d, data, sizeof(d));
	} else if (size == sizeof(f)) {
		memcpy(&f, data, sizeof(f));
		d = f;
	} else {
		print_hex(p->f, data, size);
		return;
	}
	if (__builtin_isfinite(d))
		fprintf(p->f, "%.17g", d);
	else
		fputs("null", p->f);
}

static void print_type(struct printer *p, u32 id, const u8 *data, size_t size)
{
	const struct btf_type *t = bare(p->btf, &id);

	if (!t || ++p->depth > MAX_DEPTH) {
		print_hex(p->f, data, size);
		return;
	}
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		if (t->size > 8 || t->size > size)
			print_hex(p->f, data, size);
		else
			print_int(p, read_bits(data, size, btf_int_offset(t), btf_int_bits(t)),
				  btf_int_bits(t), btf_int_encoding(t));
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		print_enum(p, t, read_bits(data, size, 0, min_of((u32)t->size * 8, 64u)));
		break;
	case BTF_KIND_PTR:
		fprintf(p->f, "\"0x%llx\"", (unsigned long long)read_bits(data, size, 0, 64));
		break;
	case BTF_KIND_ARRAY:
		print_array(p, t, data, size);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		print_struct(p, t, data, size);
		break;
	case BTF_KIND_DATASEC:
		print_datasec(p, t, data, size);
		break;
	case BTF_KIND_FLOAT:
		print_float(p, data, size);
		break;
	default:
		print_hex(p->f, data, size);
	}
	p->depth--;
}

void btf_data_print(FILE *f, const struct btf *btf, u32 type_id, const void *data, size_t size)
{
	struct printer p = { .f = f, .btf = btf };

	if (btf && type_id)
		print_type(&p, type_id, data, size);
	else
		print_hex(f, data, size);
}

int btf_data_compare(const struct btf *btf, u32 type_id, size_t size, const void *a, const void *b)
{
	u32 id = type_id;
	const struct btf_type *t = btf && type_id ? bare(btf, &id) : NULL;
	u64 x, y, flip = 0;

	if (t ? !btf_is_int(t) || size > 8 : size != 4 && size != 8)
		return memcmp(a, b, size);
	x = read_bits(a, size, 0, size * 8);
	y = read_bits(b, size, 0, size * 8);
	if (t && btf_int_encoding(t) & BTF_INT_SIGNED)
		flip = 1ULL << (size * 8 - 1);
	x ^= flip;
	y ^= flip;
	return x < y ? -1 : x > y;
}
