// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of helpers for which the map or the helper itself brings code (object/gen.h): that code takes the call's place.
 *
 * Where the code still calls, on a path seldom taken, the arguments that are known where the call stood are set again
 * right before it: the way taken most then reads none of them, and rw_pass_unused() drops what set them.
 */
#include <errno.h>
#include <stdlib.h>

#include "object/helper.h"
#include "object/map.h"
#include "rewrite/flow.h"
#include "rewrite/rewrite_int.h"

typedef u64 (*call_fn)(u64, u64, u64, u64, u64);

/* Everything about one call. */
struct site {
	struct prog *prog;
	const u8 *targets;
	u32 pc;
	struct gen_call call;
	call_fn direct; /* twin of the helper for this map, or NULL */
	const char *why; /* nothing was made: the reason */
};

static const char *kind_name(u32 kind)
{
	switch (kind) {
	case INLINE_STORAGE:
		return "switched off: storage";
	case INLINE_IRQ:
		return "switched off: irq";
	case INLINE_HELPER:
		return "switched off: helper";
	default:
		return "switched off: map";
	}
}

/* The constant the call's key argument points to. */
static void find_key(struct site *s)
{
	const struct helper_desc *helper = s->call.helper;
	struct rw_value key;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(helper->arg); i++)
		if (type_base(helper->arg[i]) == ARG_PTR_TO_MAP_KEY)
			break;
	if (i == ARRAY_SIZE(helper->arg) || s->call.map->key_size != 4)
		return;
	key = rw_value_of(s->prog, s->targets, s->pc, i + 1);
	if (key.kind == RW_FRAME)
		s->call.key_known = rw_stack_const(s->prog, s->targets, s->pc, key.v, &s->call.key_value);
}

/* Arguments that are constants. */
static void find_args(struct site *s)
{
	u8 reg;

	for (reg = 1; reg <= 5; reg++) {
		struct rw_value val = rw_value_of(s->prog, s->targets, s->pc, reg);

		if (val.kind != RW_CONST)
			continue;
		s->call.known |= 1u << reg;
		s->call.arg[reg] = val.v;
	}
}

/* What the engine must be able to do for this code; U32_MAX: it is no code at all. */
static u32 needs(const struct gen *g)
{
	u32 need = 0, i, slots;

	if (g->failed)
		return U32_MAX;
	for (i = 0; i < g->nr; i += slots) {
		const struct bpf_insn *insn = &g->insn[i];
		int op = isa_decode(insn);

		slots = isa_slots(insn->code);
		if (g->note[i].is_call) {
			need |= g->note[i].fn ? CAP_DIRECT : 0;
			continue;
		}
		if (op < 0 || i + slots > g->nr || insn->dst_reg >= ISA_NR_REGS)
			return U32_MAX;
		if (isa_info[op].kind == ISA_K_PERCPU)
			need |= CAP_PERCPU;
		if (isa_info[op].kind == ISA_K_TLS)
			need |= CAP_TLS;
		if (isa_is_jump(op) && ((s64)i + 1 + isa_jump_off(insn) < 0 || (s64)i + 1 + isa_jump_off(insn) > g->nr))
			return U32_MAX;
	}
	return need;
}

/* The code sets r0 and no other register: what bpf_fastcall promises of the call is kept. */
static bool only_r0(const struct gen *g)
{
	u32 i;

	for (i = 0; i < g->nr; i += isa_slots(g->insn[i].code))
		if (g->note[i].is_call || isa_regs_written(isa_decode(&g->insn[i]), &g->insn[i]) & ~1u)
			return false;
	return true;
}

static bool try(struct site *s, gen_fn gen, struct gen *g)
{
	g->nr = 0;
	g->cold = g->failed = false;
	if (gen(&s->call, g) <= 0)
		return false;
	return !(needs(g) & ~s->call.can);
}

/* Sets argument reg again as it was known where the call stood, unless that takes more than two instructions. */
static void set_again(const struct site *s, struct rw_text *t, u8 reg, bool cold)
{
	struct rw_value val = rw_value_of(s->prog, s->targets, s->pc, reg);
	const struct insn_fact *call = &s->prog->facts[s->pc];
	struct insn_fact fact = { .seen = 1, .orig = call->orig, .cold = cold };
	u32 k;

	switch (val.kind) {
	case RW_CONST:
		if (val.v == (s32)val.v)
			rw_text_add(t, ISA_MOV(reg, (s32)val.v), &fact, 0, RW_OWN);
		return;
	case RW_FRAME:
		if (val.v != (s32)val.v)
			return;
		rw_text_add(t, ISA_MOV_REG(reg, ISA_REG_FP), &fact, 0, RW_OWN);
		rw_text_add(t, ISA_ALU64(ADD, reg, (s32)val.v), &fact, 0, RW_OWN);
		return;
	case RW_OBJ:
		for (k = 0; k < 2; k++) {
			struct bpf_insn insn = s->prog->insns[val.v + k];

			if (!k)
				insn.dst_reg = reg;
			fact = s->prog->facts[val.v + k];
			fact.cold = cold;
			fact.orig = call->orig;
			rw_text_add(t, insn, &fact, 0, RW_OWN);
		}
		return;
	case RW_FUNC:
	case RW_UNKNOWN:
		return;
	}
}

/* The call itself, inside the code or in its place. */
static void add_call(const struct site *s, struct rw_text *t, call_fn fn, bool cold)
{
	struct insn_fact fact = s->prog->facts[s->pc];
	u16 args = rw_regs_read(s->prog, s->pc);
	u8 reg;

	for (reg = 1; cold && reg <= 5; reg++)
		if (args & 1u << reg)
			set_again(s, t, reg, cold);
	fact.fn = fn ? fn : s->direct;
	fact.cold = cold;
	rw_text_add(t, s->prog->insns[s->pc], &fact, 0, RW_OWN);
}

/*
 * A load, at the beginning of the code, through an argument that points into the frame, of what was stored there just
 * before the call: the register or number that was stored is at hand. written: registers the code has set so far.
 */
static struct bpf_insn forward(const struct site *s, struct bpf_insn insn, u16 written)
{
	u32 width = BPF_SIZE(insn.code) == BPF_DW ? 8 : 4, p;
	const struct bpf_insn *store;
	struct rw_value base;

	if (written & 1u << insn.src_reg)
		return insn;
	base = rw_value_of(s->prog, s->targets, s->pc, insn.src_reg);
	if (base.kind != RW_FRAME)
		return insn;
	p = rw_stack_store(s->prog, s->targets, s->pc, base.v + insn.off, width);
	if (p == U32_MAX)
		return insn;
	store = &s->prog->insns[p];
	if (BPF_CLASS(store->code) == BPF_ST)
		return isa_encode(width == 8 ? ISA_MOV64_K : ISA_MOV32_K, insn.dst_reg, 0, 0, store->imm);
	if (written & 1u << store->src_reg)
		return insn;
	return isa_encode(width == 8 ? ISA_MOV64_X : ISA_MOV32_X, insn.dst_reg, store->src_reg, 0, 0);
}

/* Generated code as the text of an edit: jumps are aimed again, since what stands for a call may have grown. */
static void splice(const struct site *s, const struct gen *g, struct rw_text *t)
{
	u32 at[GEN_MAX + 1], i, k, slots;
	u16 written = 0;

	for (i = 0; i < g->nr; i += slots) {
		const struct gen_note *note = &g->note[i];
		struct bpf_insn insn = g->insn[i];
		int op = isa_decode(&insn);

		at[i] = t->nr;
		slots = isa_slots(insn.code);
		if (note->is_call) {
			add_call(s, t, note->fn, note->cold);
			written = 0x3f;
			continue;
		}
		if (op == ISA_LDX_W || op == ISA_LDX_DW)
			insn = forward(s, insn, written);
		/* behind a jump back anything may have been set */
		written |= isa_is_jump(op) && isa_jump_off(&insn) < 0 ? 0xffff : isa_regs_written(op, &insn);
		for (k = 0; k < slots; k++) {
			u32 n = rw_text_add(t, k ? g->insn[i + k] : insn, NULL, s->prog->facts[s->pc].orig, RW_OWN);

			if (t->failed)
				return;
			t->facts[n].cold = note->cold;
			if (slots == 2 && !k)
				t->facts[n].imm64 = note->imm64;
		}
	}
	at[g->nr] = t->nr;
	for (i = 0; i < g->nr && !t->failed; i += isa_slots(g->insn[i].code)) {
		int op = isa_decode(&g->insn[i]);
		s32 dist;

		if (g->note[i].is_call || !isa_is_jump(op))
			continue;
		dist = (s32)(at[i + 1 + isa_jump_off(&g->insn[i])] - at[i] - 1);
		if (op == ISA_JA32)
			t->insns[at[i]].imm = dist;
		else
			t->insns[at[i]].off = (s16)dist;
	}
}

/* Code of the map's, else the helper's own. */
static bool find_code(struct site *s, struct gen *g)
{
	const struct map *map = s->call.map;
	const struct helper_desc *helper = s->call.helper;
	u32 off = rw_inline_off(s->prog), kind = map && map->ops->inline_kind ? map->ops->inline_kind : INLINE_MAP;

	s->why = "it has no code of its own";
	find_args(s);
	if (map && off & kind) {
		s->why = kind_name(kind);
	} else if (map) {
		find_key(s);
		if (map->ops->direct && s->call.can & CAP_DIRECT)
			s->direct = map->ops->direct(map, helper->id);
		if (map->ops->gen && try(s, map->ops->gen, g))
			return true;
	} else if (s->call.fact->map_poisoned) {
		s->why = "it gets different maps";
	}
	if (helper->gen && off & INLINE_HELPER)
		s->why = kind_name(INLINE_HELPER);
	else if (helper->gen)
		return try(s, helper->gen, g);
	return false;
}

static int one_call(struct prog *prog, const struct caps *caps, const u8 *targets, u32 pc, struct rw_edits *edits)
{
	struct insn_fact *fact = &prog->facts[pc];
	struct site s = { .prog = prog, .targets = targets, .pc = pc };
	struct rw_text text = { 0 };
	struct gen g;

	s.call = (struct gen_call){ .helper = fact->helper, .fact = fact, .can = caps->can };
	if (fact->map && !fact->map_poisoned)
		s.call.map = fact->map;
	if (find_code(&s, &g)) {
		bool gentle = only_r0(&g);

		splice(&s, &g, &text);
		if (gentle)
			rw_drop_spills(edits, prog, pc, false);
		rw_edit_text(edits, pc, 1, &text);
		if (gentle)
			rw_drop_spills(edits, prog, pc, true);
		rw_text_fini(&text);
		return rw_note(prog, fact, true, s.call.key_known ? "code of its own, for a constant key" : "code of its own");
	}
	fact->fn = s.direct;
	return rw_note(prog, fact, s.direct, s.direct ? "called directly, as this map's own" : s.why);
}

/* Needs helper, map, inner_map, map_poisoned. Leaves calls with nothing better in their place, and fn in their facts. */
int rw_pass_gen(struct prog *prog, const struct caps *caps, struct strbuf *log)
{
	struct rw_edits edits = { 0 };
	u8 *targets = NULL;
	int err = 0;
	u32 pc;

	for (pc = 0; !err && pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code)) {
		const struct insn_fact *fact = &prog->facts[pc];

		if (prog->insns[pc].code != (BPF_JMP | BPF_CALL) || prog->insns[pc].src_reg || !fact->helper ||
		    fact->helper->flags & (HELPER_LOOP | HELPER_TAIL_CALL))
			continue;
		if (!targets)
			targets = rw_targets(prog);
		err = targets ? 0 : -ENOMEM;
		if (!err)
			err = one_call(prog, caps, targets, pc, &edits);
	}
	free(targets);
	if (!err)
		return rw_patch(prog, &edits, log);
	rw_edits_drop(&edits);
	return err;
}
