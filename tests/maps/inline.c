// SPDX-License-Identifier: BSD-2-Clause
// Map types' own inline code and twins against the outlined lookups, run by a small interpreter of the few instructions
// they are made of.
#include "fixture.h"
#include "maps/hash_int.h"
#include "object/helper.h"

#define KEYS 40

struct machine {
	u64 r[16];
	u32 calls;
};

static u64 load(u64 addr, u8 size)
{
	u64 v = 0;

	memcpy(&v, (void *)addr, size == BPF_DW ? 8 : size == BPF_W ? 4 : size == BPF_H ? 2 : 1);
	return v;
}

static bool jumps(u8 op, u64 a, u64 b)
{
	switch (op) {
	case BPF_JA:
		return true;
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JGE:
		return a >= b;
	case BPF_JGT:
		return a > b;
	case BPF_JLT:
		return a < b;
	}
	return false;
}

static u64 alu(u8 op, u64 a, u64 b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_MUL:
		return a * b;
	case BPF_LSH:
		return a << b;
	case BPF_MOV:
		return b;
	}
	return ~0ULL;
}

static void call(struct machine *m, const struct gen_note *note, const struct helper_desc *helper)
{
	u64 *r = m->r;

	r[0] = (note->fn ? note->fn : helper->fn)(r[1], r[2], r[3], r[4], r[5]);
	r[1] = r[2] = r[3] = r[4] = r[5] = 0xdeadbeef;
	m->calls++;
}

/* False: an instruction that is not known here, or control that leaves the code. */
static bool run(struct machine *m, const struct gen *g, const struct helper_desc *helper)
{
	u32 pc, steps = 0;

	for (pc = 0; pc < g->nr && steps < 1000; pc++, steps++) {
		struct bpf_insn i = g->insn[pc];
		u64 src = BPF_SRC(i.code) == BPF_X ? m->r[i.src_reg] : (u64)(s64)i.imm, *dst = &m->r[i.dst_reg];

		if (g->note[pc].is_call) {
			call(m, &g->note[pc], helper);
			continue;
		}
		switch (BPF_CLASS(i.code)) {
		case BPF_LD:
			*dst = g->note[pc++].imm64;
			break;
		case BPF_LDX:
			*dst = load(m->r[i.src_reg] + i.off, BPF_SIZE(i.code));
			break;
		case BPF_JMP:
			if (jumps(BPF_OP(i.code), *dst, src))
				pc += i.off;
			break;
		case BPF_ALU64:
			if (i.off == -1)
				*dst = m->r[i.src_reg] + (u64)env_tls.cpu * i.imm;
			else
				*dst = alu(BPF_OP(i.code), *dst, src);
			break;
		default:
			return false;
		}
	}
	return pc == g->nr;
}

/* Code for map (in a program that knows it, or one that knows pattern) gives what lookup gives, for this key. */
static bool agrees(struct map *map, struct map *pattern, const void *key, bool known, u32 can, u32 *made)
{
	struct insn_fact fact = {.map = pattern, .inner_map = pattern != map};
	struct gen_call c = {
		.helper = helper_by_id(BPF_FUNC_map_lookup_elem), .fact = &fact, .map = pattern, .can = can, .key_known = known};
	struct machine m = {.r = {[1] = (u64)map, [2] = (u64)key, [6] = 6, [7] = 7, [8] = 8, [9] = 9}};
	u64 want = (u64)map->ops->lookup(map, key), (*twin)(u64, u64, u64, u64, u64);
	struct gen g = {.nr = 0};

	if (known)
		memcpy(&c.key_value, key, 4);
	if (map->ops->direct) {
		twin = map->ops->direct(pattern, BPF_FUNC_map_lookup_elem);
		if (!twin || twin((u64)map, (u64)key, 0, 0, 0) != want)
			return false;
	}
	if (!map->ops->gen || map->ops->gen(&c, &g) <= 0)
		return true;
	++*made;
	return !g.failed && run(&m, &g, c.helper) && m.r[0] == want && m.r[6] == 6 && m.r[9] == 9 && (!known || !m.calls);
}

static void keys_of(struct map *map, struct map *pattern, const char *what, u32 can, bool want_code)
{
	u32 made = 0, bad = 0, cpu, i, known;
	u64 key[8] = {0};

	for (cpu = 0; cpu < 3; cpu++) {
		env_enter(fix.env, cpu, NULL);
		for (i = 0; i < 2 * KEYS; i++)
			for (known = 0; known <= (map->key_size == 4); known++) {
				key[0] = i == 2 * KEYS - 1 ? U32_MAX : i;
				rcu_enter();
				bad += !agrees(map, pattern, key, known, can, &made);
				rcu_leave();
			}
	}
	env_enter(fix.env, 0, NULL);
	is_u64(bad, 0, "%s: inline code and twins find what the outlined lookup finds", what);
	ok(!!made == want_code, "%s: %s inline code", what, want_code ? "has" : "has no");
}

static void fill(struct map *map)
{
	char value[128] = "abcdefgh";
	u64 key[8] = {0};

	for (; key[0] < KEYS; key[0]++)
		map->ops->update(map, key, value, BPF_ANY);
}

static void type(u32 type, u32 key_size, u32 value_size, u32 flags, const char *what, bool code, bool inner_code)
{
	struct map *map = make_map(type, key_size, value_size, KEYS, flags), *other = make_map(type, key_size, value_size, KEYS, flags);
	char name[100];

	fill(map);
	keys_of(map, map, what, CAP_DIRECT | CAP_PERCPU, code);
	snprintf(name, sizeof(name), "%s, engine that can nothing", what);
	keys_of(map, map, name, 0, code && type == BPF_MAP_TYPE_ARRAY);
	snprintf(name, sizeof(name), "%s, inner map", what);
	keys_of(map, other, name, CAP_DIRECT | CAP_PERCPU, inner_code);
	obj_put(&map->obj);
	obj_put(&other->obj);
}

/* Inner maps of another size than the pattern. */
static void other_sizes(void)
{
	struct map *map = make_map(BPF_MAP_TYPE_ARRAY, 4, 12, KEYS, BPF_F_INNER_MAP),
		   *pattern = make_map(BPF_MAP_TYPE_ARRAY, 4, 12, 3, BPF_F_INNER_MAP);

	keys_of(map, pattern, "array with BPF_F_INNER_MAP, larger than its pattern", 0, true);
	keys_of(pattern, map, "array with BPF_F_INNER_MAP, smaller than its pattern", 0, true);
	obj_put(&map->obj);
	obj_put(&pattern->obj);
	map = make_map(BPF_MAP_TYPE_HASH, 4, 12, KEYS, 0);
	pattern = make_map(BPF_MAP_TYPE_HASH, 4, 12, 3, 0);
	fill(map);
	keys_of(map, pattern, "hash larger than its pattern", CAP_DIRECT, false);
	obj_put(&map->obj);
	obj_put(&pattern->obj);
}

static void of_maps(u32 type, const char *what, bool code)
{
	struct map_attr attr = {.map_type = type, .key_size = 4, .value_size = 4, .max_entries = KEYS};
	struct map *inner = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, 2, 0), *map;
	u32 key;

	attr.inner = inner;
	map = make_map_attr(&attr, NULL);
	for (key = 0; key < KEYS; key += 2)
		map->ops->set_obj(map, &key, &inner->obj, BPF_ANY);
	keys_of(map, map, what, CAP_DIRECT, code);
	obj_put(&map->obj);
	obj_put(&inner->obj);
}

/* Updates and deletes through twins. */
static void writes(u32 type, bool removes, const char *what)
{
	struct map *map = make_map(type, 4, 8, 4, 0);
	u64 (*update)(u64, u64, u64, u64, u64) = map->ops->direct(map, BPF_FUNC_map_update_elem);
	u64 (*remove)(u64, u64, u64, u64, u64) = map->ops->direct(map, BPF_FUNC_map_delete_elem);
	u64 value = 7, *found;
	u32 key = 3;

	ok(update && !remove == !removes, "%s: has twins", what);
	is_int((long)update((u64)map, (u64)&key, (u64)&value, BPF_ANY, 0), 0, "%s: an update through its twin", what);
	found = map->ops->lookup(map, &key);
	ok(found && *found == 7, "%s: is seen", what);
	is_int((long)update((u64)map, (u64)&key, (u64)&value, BPF_NOEXIST, 0), -EEXIST, "%s: with its flags", what);
	if (remove) {
		is_int((long)remove((u64)map, (u64)&key, 0, 0, 0), 0, "%s: a delete through its twin", what);
		ok(!map->ops->lookup(map, &key), "%s: is seen, too", what);
	}
	obj_put(&map->obj);
}

int main(void)
{
	fix_up(3);
	type(BPF_MAP_TYPE_ARRAY, 4, 8, 0, "array, 8-byte values", true, true);
	type(BPF_MAP_TYPE_ARRAY, 4, 13, 0, "array, 13-byte values", true, true);
	type(BPF_MAP_TYPE_ARRAY, 4, 40, BPF_F_MMAPABLE, "mmapable array, 40-byte values", true, true);
	type(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 12, 0, "per-CPU array", true, false);
	type(BPF_MAP_TYPE_HASH, 4, 8, 0, "hash, 4-byte keys", false, false);
	type(BPF_MAP_TYPE_HASH, 8, 8, BPF_F_NO_PREALLOC, "hash, 8-byte keys", false, false);
	type(BPF_MAP_TYPE_HASH, 16, 24, 0, "hash, 16-byte keys", false, false);
	type(BPF_MAP_TYPE_HASH, 11, 24, 0, "hash, 11-byte keys", false, false);
	type(BPF_MAP_TYPE_PERCPU_HASH, 8, 20, 0, "per-CPU hash, 8-byte keys", true, true);
	type(BPF_MAP_TYPE_PERCPU_HASH, 3, 70, 0, "per-CPU hash, 3-byte keys", true, true);
	other_sizes();
	of_maps(BPF_MAP_TYPE_ARRAY_OF_MAPS, "array of maps", true);
	of_maps(BPF_MAP_TYPE_HASH_OF_MAPS, "hash of maps", false);
	writes(BPF_MAP_TYPE_HASH, true, "hash");
	writes(BPF_MAP_TYPE_PERCPU_HASH, true, "per-CPU hash");
	writes(BPF_MAP_TYPE_ARRAY, false, "array");
	writes(BPF_MAP_TYPE_PERCPU_ARRAY, false, "per-CPU array");
	fix_down();
	is_int(fix.nr_objs[OBJ_MAP], 0, "no map is left");
	return tap_done();
}
