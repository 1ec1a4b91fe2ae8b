// SPDX-License-Identifier: BSD-2-Clause
// The helpers and the map type of lower_env.h.
#include "lower_env.h"

const struct caps caps_all = { .name = "test", .can = CAP_DIRECT | CAP_COLD };

u64 fake_mix(u64 a, u64 b, u64 c, u64 d, u64 e)
{
	return a + 3 * b + 5 * c + 7 * d + 11 * e;
}

static u64 loop(u64 nr, u64 func, u64 ctx, u64 flags, u64 r5)
{
	struct bpf_func *f = (struct bpf_func *)func;
	u32 i, n = nr;

	if (flags)
		return -EINVAL;
	if (n > 1u << 23)
		return -E2BIG;
	for (i = 0; i < n; i++)
		if (f->call(f, i, ctx, 0, 0, 0))
			return i + 1;
	return i;
}

static u64 find(struct fake_map *map, const u32 *key)
{
	return *key < FAKE_ENTRIES ? (u64)&map->value[*key] : 0;
}

static u64 lookup(u64 map, u64 key, u64 r3, u64 r4, u64 r5)
{
	fake.outlined++;
	return find((struct fake_map *)map, (const u32 *)key);
}

static u64 lookup_direct(u64 map, u64 key, u64 r3, u64 r4, u64 r5)
{
	fake.direct++;
	return find((struct fake_map *)map, (const u32 *)key);
}

static u64 update(u64 map, u64 key, u64 value, u64 flags, u64 r5)
{
	fake.outlined++;
	if (flags || *(const u32 *)key >= FAKE_ENTRIES)
		return -EINVAL;
	((struct fake_map *)map)->value[*(const u32 *)key] = *(const u64 *)value;
	return 0;
}

static u64 update_direct(u64 map, u64 key, u64 value, u64 flags, u64 r5)
{
	fake.direct++;
	fake.outlined--;
	return update(map, key, value, flags, r5);
}

static u64 seven(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return 7;
}

static int gen_seven(const struct gen_call *call, struct gen *g)
{
	gen_insn(g, ISA_MOV(0, 7));
	return 1;
}

static const struct callback_desc loop_cb = { .func_arg = 1, .ctx_arg = 2, .calls_arg = 1 };

static const struct helper_desc helpers[] = {
	[CALL_MIX] = { .name = "mix", .id = CALL_MIX, .fn = fake_mix,
		       .arg = { ARG_ANYTHING, ARG_ANYTHING, ARG_ANYTHING, ARG_ANYTHING, ARG_ANYTHING } },
	[CALL_LOOP] = { .name = "loop", .id = CALL_LOOP, .fn = loop, .flags = HELPER_SYNC_CALLBACK | HELPER_LOOP,
			.arg = { ARG_ANYTHING, ARG_PTR_TO_FUNC, ARG_PTR_TO_STACK | PTR_MAYBE_NULL, ARG_ANYTHING },
			.cb = &loop_cb },
	[CALL_LOOKUP] = { .name = "lookup", .id = CALL_LOOKUP, .fn = lookup,
			  .arg = { ARG_CONST_MAP_PTR, ARG_PTR_TO_MAP_KEY } },
	[CALL_SEVEN] = { .name = "seven", .id = CALL_SEVEN, .fn = seven, .gen = gen_seven },
	[CALL_PURE] = { .name = "pure", .id = CALL_PURE, .fn = seven, .flags = HELPER_PURE },
	[CALL_UPDATE] = { .name = "update", .id = CALL_UPDATE, .fn = update,
			  .arg = { ARG_CONST_MAP_PTR, ARG_PTR_TO_MAP_KEY, ARG_PTR_TO_MAP_VALUE, ARG_ANYTHING } },
};

const struct helper_desc *helper_by_id(u32 id)
{
	return id && id < ARRAY_SIZE(helpers) ? &helpers[id] : NULL;
}

const char *helper_name(u32 id)
{
	return id && id < ARRAY_SIZE(helpers) ? helpers[id].name : "unknown";
}

/* Lookup: a constant key is an address; else a bounds check, and (so that there is one) a cold call for key 0. */
static int gen_fake(const struct gen_call *call, struct gen *g)
{
	struct fake_map *map = container_of_(call->map, struct fake_map, map);
	u32 miss, zero, end;

	if (call->helper->id != CALL_LOOKUP)
		return 0;
	if (call->key_known) {
		map->folded = true;
		gen_imm64(g, 0, call->key_value < FAKE_ENTRIES ? (u64)&map->value[call->key_value] : 0);
		return 1;
	}
	gen_load(g, BPF_W, 0, 2, 0);
	miss = gen_jump(g, BPF_JGE, 0, FAKE_ENTRIES);
	zero = gen_jump(g, BPF_JEQ, 0, 0);
	gen_alu_imm(g, BPF_LSH, 0, 3);
	gen_imm64(g, 3, (u64)map->value);
	gen_alu(g, BPF_ADD, 0, 3);
	end = gen_jump(g, BPF_JA, 0, 0);
	gen_land(g, miss);
	gen_insn(g, ISA_MOV(0, 0));
	miss = gen_jump(g, BPF_JA, 0, 0);
	g->cold = true;
	gen_land(g, zero);
	gen_call(g, NULL);
	gen_land(g, miss);
	gen_land(g, end);
	return 1;
}

static u64 (*direct_fake(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64)
{
	return helper_id == CALL_LOOKUP ? lookup_direct : helper_id == CALL_UPDATE ? update_direct : NULL;
}

static const struct map_ops fake_ops = { .name = "fake", .gen = gen_fake, .direct = direct_fake };

struct fake_map fake = {
	.map = { .obj.id = 1, .ops = &fake_ops, .key_size = 4, .value_size = 8, .max_entries = FAKE_ENTRIES },
	.value = { 100, 101, 102, 103 },
};
