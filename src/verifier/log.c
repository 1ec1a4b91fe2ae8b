// SPDX-License-Identifier: BSD-2-Clause
/* The verifier's log, in the format of Linux 6.18: instructions, source lines, states, statistics. */
#include "verifier/vrf_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "btf/btf.h"
#include "isa/disasm.h"

void vrf_say(struct vrf *v, const char *fmt, ...)
{
	va_list args;

	if (!v->log_level || !v->log)
		return;
	va_start(args, fmt);
	strbuf_vprintf(v->log, fmt, args);
	va_end(args);
}

size_t vrf_log_len(const struct vrf *v)
{
	return v->log ? v->log->len : 0;
}

void vrf_log_truncate(struct vrf *v, size_t len)
{
	if (v->log && v->log->s && len < v->log->len) {
		v->log->len = len;
		v->log->s[len] = 0;
	}
}

void vrf_tnum_str(char *buf, size_t n, struct tnum t)
{
	if (t.mask)
		snprintf(buf, n, "(0x%llx; 0x%llx)", (unsigned long long)t.value, (unsigned long long)t.mask);
	else
		snprintf(buf, n, (s64)t.value >= INT16_MIN && (s64)t.value <= INT16_MAX ? "%lld" : "0x%llx",
			 (unsigned long long)t.value);
}

const char *vrf_type_str(struct vrf *v, u32 type)
{
	static const char *const base[REG_TYPE_MAX] = {
		[NOT_INIT] = "?",
		[SCALAR_VALUE] = "scalar",
		[PTR_TO_CTX] = "ctx",
		[CONST_PTR_TO_MAP] = "map_ptr",
		[PTR_TO_MAP_VALUE] = "map_value",
		[PTR_TO_MAP_KEY] = "map_key",
		[PTR_TO_STACK] = "fp",
		[PTR_TO_PACKET] = "pkt",
		[PTR_TO_PACKET_META] = "pkt_meta",
		[PTR_TO_PACKET_END] = "pkt_end",
		[PTR_TO_TP_BUFFER] = "tp_buffer",
		[PTR_TO_BTF_ID] = "ptr_",
		[PTR_TO_MEM] = "mem",
		[PTR_TO_BUF] = "buf",
		[PTR_TO_FUNC] = "func",
	};
	static __thread char text[4][64];
	static __thread u32 next;
	char *buf = text[next++ & 3];
	u32 b = type_base(type);

	snprintf(buf, sizeof(text[0]), "%s%s%s%s%s%s%s%s%s", type & MEM_RDONLY ? "rdonly_" : "",
		 type & MEM_RINGBUF ? "ringbuf_" : "", type & MEM_USER ? "user_" : "",
		 type & MEM_PERCPU ? "percpu_" : "", type & MEM_RCU ? "rcu_" : "",
		 type & PTR_UNTRUSTED ? "untrusted_" : "", type & PTR_TRUSTED ? "trusted_" : "",
		 b < REG_TYPE_MAX ? base[b] : "?",
		 type & PTR_MAYBE_NULL ? (b == PTR_TO_BTF_ID ? "or_null_" : "_or_null") : "");
	return buf;
}

/* ---- instructions ---- */

static bool name_call(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	if (insn->src_reg == 0) {
		snprintf(buf, n, "%s", helper_name((u32)insn->imm));
		return true;
	}
	if (insn->src_reg == BPF_PSEUDO_KFUNC_CALL) {
		const struct vrf *v = ctx;
		const struct vrf_kfunc *k = vrf_kfunc_at(v, (u32)(insn - v->insns));

		snprintf(buf, n, "%s", k ? k->name : insn->imm ? "kernel-function" : "");
		return true;
	}
	return false;
}

static bool name_imm64(void *ctx, const struct bpf_insn *insn, char *buf, size_t n)
{
	struct vrf *v = ctx;
	u32 idx = (u32)(insn - v->insns);

	if (!insn->src_reg || insn->src_reg == BPF_PSEUDO_FUNC || idx >= v->nr || !v->facts[idx].imm64)
		return false;
	snprintf(buf, n, "0x%llx", (unsigned long long)v->facts[idx].imm64);
	return true;
}

/* Source line before an instruction, once for each run of instructions it belongs to. */
void vrf_log_line(struct vrf *v, u32 idx, const char *prefix)
{
	const struct prog *p = v->prog;
	u32 lo = 0, hi = p->nr_line_info;
	const struct prog_line *l;
	const char *text, *file, *base;

	if (!(v->log_level & 3) || !p->btf)
		return;
	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (p->line_info[mid].insn_off <= idx)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || v->prev_line == lo)
		return;
	l = &p->line_info[lo - 1];
	text = btf_name_by_offset(p->btf, l->line_off);
	file = btf_name_by_offset(p->btf, l->file_name_off);
	if (!text || !file)
		return;
	while (*text == ' ' || *text == '\t')
		text++;
	base = strrchr(file, '/');
	vrf_say(v, "%s%s @ %s:%u\n", prefix, text, base ? base + 1 : file, BPF_LINE_INFO_LINE_NUM(l->line_col));
	v->prev_line = lo;
}

void vrf_log_insn(struct vrf *v, u32 idx)
{
	const struct isa_names names = { v, name_call, name_imm64 };
	size_t start;

	if (!v->log)
		return;
	start = v->log->len;
	strbuf_printf(v->log, "%u: ", idx);
	isa_disasm(v->log, &v->insns[idx], v->nr - idx, &names);
	strbuf_putc(v->log, '\n');
	v->insn_log_start = v->log->len - start;
	v->insn_log_end = v->log->len;
}

/* ---- states ---- */

static bool is_short(s64 x)
{
	return x >= INT16_MIN && x <= INT16_MAX;
}

static void say_s64(struct vrf *v, s64 x)
{
	if (is_short(x))
		vrf_say(v, "%lld", (long long)x);
	else
		vrf_say(v, "0x%llx", (unsigned long long)x);
}

static void say_u64(struct vrf *v, u64 x)
{
	vrf_say(v, x <= UINT16_MAX ? "%llu" : "0x%llx", (unsigned long long)x);
}

/* Bounds that say something; equal ones share a value: "smax=umax=7". */
static void say_bounds(struct vrf *v, const struct vrf_range *r, const char **sep)
{
	struct {
		const char *name;
		u64 val;
		bool omit;
	} b[] = {
		{ "smin", (u64)r->smin, r->smin == S64_MIN },
		{ "smax", (u64)r->smax, r->smax == S64_MAX },
		{ "umin", r->umin, !r->umin },
		{ "umax", r->umax, r->umax == U64_MAX },
		{ "smin32", is_short(r->smin32) ? (u64)(s64)r->smin32 : (u32)r->smin32, r->smin32 == S32_MIN },
		{ "smax32", is_short(r->smax32) ? (u64)(s64)r->smax32 : (u32)r->smax32, r->smax32 == S32_MAX },
		{ "umin32", r->umin32, !r->umin32 },
		{ "umax32", r->umax32, r->umax32 == U32_MAX },
	};

	for (u32 i = 0; i < ARRAY_SIZE(b); i++) {
		bool negative = b[i].name[0] == 's' && (s64)b[i].val < 0;

		if (b[i].omit)
			continue;
		vrf_say(v, "%s%s=", *sep, b[i].name);
		*sep = ",";
		for (u32 k = i + 2; k < ARRAY_SIZE(b); k += 2) {
			if (b[k].omit || b[k].val != b[i].val ||
			    negative != (b[k].name[0] == 's' && (s64)b[k].val < 0))
				continue;
			b[k].omit = true;
			vrf_say(v, "%s=", b[k].name);
		}
		if (b[i].name[0] == 's')
			say_s64(v, (s64)b[i].val);
		else
			say_u64(v, b[i].val);
	}
}

static void say_fields(struct vrf *v, const struct vrf_reg *reg)
{
	u32 base = type_base(reg->type);
	const char *sep = "";
	char tn[64];

	if (reg->id) {
		vrf_say(v, "id=%u", reg->id);
		if (reg->delta)
			vrf_say(v, "%+d", reg->off);
		sep = ",";
	}
	if (reg->ref_id) {
		vrf_say(v, "%sref_obj_id=%u", sep, reg->ref_id);
		sep = ",";
	}
	if (base == CONST_PTR_TO_MAP || base == PTR_TO_MAP_KEY || base == PTR_TO_MAP_VALUE) {
		if (reg->map->name[0]) {
			vrf_say(v, "%smap=%s", sep, reg->map->name);
			sep = ",";
		}
		vrf_say(v, "%sks=%u,vs=%u", sep, reg->map->key_size, reg->map->value_size);
		sep = ",";
	}
	if (base != SCALAR_VALUE && reg->off) {
		vrf_say(v, "%soff=", sep);
		say_s64(v, reg->off);
		sep = ",";
	}
	if (base == PTR_TO_MEM) {
		vrf_say(v, "%ssz=", sep);
		say_u64(v, reg->mem_size);
		sep = ",";
	}
	if (vrf_tnum_is_const(reg->range.var)) {
		if (reg->range.var.value) {
			vrf_say(v, "%simm=", sep);
			say_s64(v, (s64)reg->range.var.value);
		}
		return;
	}
	say_bounds(v, &reg->range, &sep);
	if (reg->range.var.mask != U64_MAX) {
		vrf_tnum_str(tn, sizeof(tn), reg->range.var);
		vrf_say(v, "%svar_off=%s", sep, tn);
	}
}

static void say_reg(struct vrf *v, const struct vrf_func *f, const struct vrf_reg *reg)
{
	if (reg->type == SCALAR_VALUE) {
		if (reg->precise)
			vrf_say(v, "P");
		if (vrf_tnum_is_const(reg->range.var)) {
			say_s64(v, (s64)reg->range.var.value);
			return;
		}
	}
	vrf_say(v, "%s", vrf_type_str(v, reg->type));
	if (reg->type == PTR_TO_STACK) {
		if (f->frameno != reg->frameno)
			vrf_say(v, "[%u]", reg->frameno);
		if (vrf_tnum_is_const(reg->range.var)) {
			say_s64(v, (s64)reg->range.var.value + reg->off);
			return;
		}
	}
	if (type_base(reg->type) == PTR_TO_BTF_ID)
		vrf_say(v, "%s", btf_type_name(reg->btf, reg->btf_id));
	vrf_say(v, "(");
	say_fields(v, reg);
	vrf_say(v, ")");
}

static void say_slot(struct vrf *v, const struct vrf_func *f, u32 n)
{
	static const char letter[] = { [SLOT_INVALID] = '?', [SLOT_SPILL] = 'r', [SLOT_MISC] = 'm', [SLOT_ZERO] = '0' };
	const struct vrf_slot *s = &f->slots[n];
	char types[9] = { 0 };
	u32 first = 8;

	for (u32 i = 0; i < 8; i++) {
		types[i] = letter[s->type[i]];
		if (s->type[i] == SLOT_SPILL && first == 8)
			first = i;
	}
	if (!vrf_slot_is_spill(s)) {
		vrf_say(v, " fp%d=%s", -(int)(n + 1) * 8, types);
		return;
	}
	types[first] = 0;
	vrf_say(v, " fp%d=%s", -(int)(n + 1) * 8, types);
	say_reg(v, f, &s->reg);
}

void vrf_log_state(struct vrf *v, const struct vrf_state *st, u32 frame, bool all)
{
	const struct vrf_func *f = st->frame[frame];

	if (f->frameno)
		vrf_say(v, " frame%u:", f->frameno);
	for (u32 i = 0; i < ISA_REG_MAX; i++) {
		if (f->regs[i].type == NOT_INIT || (!all && !(v->scratched_regs & 1u << i)))
			continue;
		vrf_say(v, " R%u=", i);
		say_reg(v, f, &f->regs[i]);
	}
	for (u32 i = 0; i < f->nr_slots; i++) {
		static const u8 none[8];

		if (!memcmp(f->slots[i].type, none, 8) || (!all && !(v->scratched_slots & 1ULL << i)))
			continue;
		say_slot(v, f, i);
	}
	for (u32 i = 0; i < st->nr_refs; i++)
		vrf_say(v, i ? ",%u" : " refs=%u", st->refs[i].id);
	if (f->in_callback)
		vrf_say(v, " cb");
	vrf_say(v, "\n");
	if (!all) {
		v->scratched_regs = 0;
		v->scratched_slots = 0;
	}
}

/* What the last instruction changed, on its line, at column 40 or the next multiple of 8 that leaves some room. */
void vrf_log_changes(struct vrf *v)
{
	if (!(v->log_level & 3) || !v->log || !v->cur || !(v->scratched_regs | v->scratched_slots))
		return;
	if (v->insn_log_end && v->insn_log_end == v->log->len) {
		u32 pos = (u32)v->insn_log_start, col = (u32)align_up(max_of(pos + 4, 40u), 8);

		vrf_log_truncate(v, v->log->len - 1);
		strbuf_printf(v->log, "%*c;", (int)(col - pos - 1), ' ');
	} else {
		vrf_say(v, "%u:", v->insn_idx);
	}
	vrf_log_state(v, v->cur, v->cur->cur, false);
}

void vrf_log_stats(struct vrf *v)
{
	if (v->log_level & 4) {
		vrf_say(v, "verification time %llu usec\nstack depth ", (unsigned long long)v->stats.time_ns / 1000);
		for (u32 i = 0; i < v->nr_subs; i++)
			vrf_say(v, i ? "+%u" : "%u", v->subs[i].fastcall_depth);
		if (v->throws && !v->exception_cb)
			vrf_say(v, "+0"); /* the function that returns the cookie */
		vrf_say(v, "\n");
	}
	vrf_say(v,
		"processed %u insns (limit %u) max_states_per_insn %u total_states %u peak_states %u mark_read %u\n",
		v->stats.insns_processed, VRF_MAX_INSNS, v->stats.max_states_per_insn, v->stats.total_states,
		v->stats.peak_states, v->stats.longest_mark_read);
}
