// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs by construction: r6 is the context, r7 a map value of 64 bytes, r0 to r5, r8 and r9 are numbers at the beginning
 * of each statement, the stack from -64 on is written. Every statement has random numbers of its own, made of the seed and
 * its place, so that leaving one out changes no other: that is how a disagreement is made small.
 */
#include "diffgen.h"

#include <linux/bpf.h>
#include <string.h>

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

struct gen {
	struct diff_prog *p;
	u64 rng;
	struct {
		u32 at, left;
	} jumps[DIFF_STATEMENTS]; /* conditional jumps over the next statements */
	u32 nr_jumps;
	struct {
		u32 at;	  /* call, or load of a function */
		u8 func; /* which */
	} uses[64];
	u32 nr_uses;
};

static struct {
	bool known;
	s16 real_parent, pid, tgid;
} task;

enum { FUNC_SUM = 1, FUNC_DEEP, FUNC_CB_STACK, FUNC_CB_VALUE, FUNC_CB_EARLY };

static u64 mix(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static u32 rnd(struct gen *g, u32 n)
{
	g->rng += 0x9e3779b97f4a7c15ULL;
	return (u32)(mix(g->rng) >> 32) % n;
}

static bool one_in(struct gen *g, u32 n)
{
	return !rnd(g, n);
}

static u32 put(struct gen *g, u8 code, u8 dst, u8 src, s16 off, s32 imm)
{
	if (g->p->nr < DIFF_MAX_INSNS)
		g->p->insns[g->p->nr++] = (struct bpf_insn){ .code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm };
	return g->p->nr - 1;
}

static void mov(struct gen *g, u8 dst, u8 src)
{
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void set(struct gen *g, u8 dst, s32 imm)
{
	put(g, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm);
}

static void add(struct gen *g, u8 dst, s32 imm)
{
	put(g, BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, imm);
}

static void call(struct gen *g, s32 id)
{
	put(g, BPF_JMP | BPF_CALL, 0, 0, 0, id);
}

static void wide(struct gen *g, u8 dst, u8 src, s32 lo, s32 hi)
{
	put(g, BPF_LD | BPF_IMM | BPF_DW, dst, src, 0, lo);
	put(g, 0, 0, 0, 0, hi);
}

static void map(struct gen *g, u8 dst, enum diff_map m)
{
	wide(g, dst, BPF_PSEUDO_MAP_FD, (s32)m, 0);
}

static s32 number(struct gen *g)
{
	static const s32 some[] = { 0, 1, -1, 2, 3, 7, 8, 31, 32, 63, 64, 127, 128, 255, 256, 0x7fff, -0x8000, 0xffff,
				    0x7fffffff, (s32)0x80000000, -8, 1000 };

	return one_in(g, 3) ? (s32)(rnd(g, 1u << 31) << 1) : some[rnd(g, ARRAY_SIZE(some))];
}

static u8 reg(struct gen *g)
{
	static const u8 regs[] = { R0, R1, R2, R3, R4, R5, R8, R9 };

	return regs[rnd(g, ARRAY_SIZE(regs))];
}

static void refill(struct gen *g)
{
	for (u8 r = R0; r <= R5; r++) {
		if (one_in(g, 3))
			set(g, r, number(g));
		else if (one_in(g, 2))
			mov(g, r, one_in(g, 2) ? R8 : R9);
		else
			put(g, BPF_LDX | BPF_MEM | BPF_DW, r, R7, (s16)(8 * rnd(g, 8)), 0);
	}
}

/* ---- statements ---- */

static void alu(struct gen *g)
{
	static const u8 ops[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_MOD, BPF_OR, BPF_AND, BPF_XOR, BPF_LSH, BPF_RSH,
				  BPF_ARSH, BPF_MOV };
	u8 op = ops[rnd(g, ARRAY_SIZE(ops))], cls = one_in(g, 3) ? BPF_ALU : BPF_ALU64, d = reg(g), s = reg(g);
	s16 off = (op == BPF_DIV || op == BPF_MOD) && one_in(g, 2) ? 1 : 0;
	s32 imm = number(g);

	if (one_in(g, 10)) {
		put(g, (one_in(g, 2) ? BPF_ALU : BPF_ALU64) | BPF_NEG, d, 0, 0, 0);
	} else if (one_in(g, 10)) {
		u8 kind = rnd(g, 3); /* to little endian, to big endian, swapped */

		put(g, (kind == 2 ? BPF_ALU64 : BPF_ALU) | BPF_END | (kind == 1 ? BPF_X : BPF_K), d, 0, 0, 16 << rnd(g, 3));
	} else if (one_in(g, 10)) {
		put(g, cls | BPF_MOV | BPF_X, d, s, (s16)(8 << rnd(g, cls == BPF_ALU ? 2 : 3)), 0);
	} else if (one_in(g, 2)) {
		put(g, cls | op | BPF_X, d, s, off, 0);
	} else {
		if (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH)
			imm &= cls == BPF_ALU ? 31 : 63;
		if ((op == BPF_DIV || op == BPF_MOD) && !imm)
			imm = 3;
		put(g, cls | op | BPF_K, d, 0, off, imm);
	}
}

static u32 condition(struct gen *g)
{
	static const u8 ops[] = { BPF_JEQ, BPF_JNE, BPF_JGT, BPF_JGE, BPF_JLT, BPF_JLE, BPF_JSGT, BPF_JSGE, BPF_JSLT, BPF_JSLE,
				  BPF_JSET };
	u8 code = ops[rnd(g, ARRAY_SIZE(ops))] | (one_in(g, 3) ? BPF_JMP32 : BPF_JMP), d = reg(g), s = reg(g);

	if (one_in(g, 2) && d != s)
		return put(g, code | BPF_X, d, s, 0, 0);
	return put(g, code | BPF_K, d, 0, 0, number(g));
}

static void skip_some(struct gen *g)
{
	if (g->nr_jumps < ARRAY_SIZE(g->jumps)) {
		g->jumps[g->nr_jumps].left = 1 + rnd(g, 4);
		g->jumps[g->nr_jumps++].at = condition(g);
	}
}

/* An access of any size at off from base, where at least 8 aligned bytes are; keep is left as it is. */
static void touch_but(struct gen *g, u8 base, s16 off, u8 keep)
{
	static const u8 sizes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };
	static const s32 atomics[] = { BPF_ADD, BPF_OR, BPF_AND, BPF_XOR, BPF_ADD | BPF_FETCH, BPF_OR | BPF_FETCH,
				       BPF_AND | BPF_FETCH, BPF_XOR | BPF_FETCH, BPF_XCHG, BPF_CMPXCHG };
	u32 n = rnd(g, 4);
	u8 size = sizes[n], r = reg(g);

	while (r == base || r == keep)
		r = reg(g);
	if (n < 3)
		off += (s16)((1 << n) * rnd(g, 8 >> n));
	switch (rnd(g, 6)) {
	case 0:
		put(g, BPF_STX | BPF_MEM | size, base, r, off, 0);
		break;
	case 1:
		put(g, BPF_ST | BPF_MEM | size, base, 0, off, number(g));
		break;
	case 2:
		put(g, BPF_STX | BPF_ATOMIC | (n < 3 ? BPF_W : BPF_DW), base, r, (s16)(off & ~(n < 3 ? 3 : 7)),
		    atomics[rnd(g, base == R0 ? 9 : 10)]);
		break;
	case 3:
		if (n < 3) {
			put(g, BPF_LDX | 0x80 /* sign-extending */ | size, r, base, off, 0);
			break;
		}
		/* fall through */
	default:
		put(g, BPF_LDX | BPF_MEM | size, r, base, off, 0);
		break;
	}
}

static void touch(struct gen *g, u8 base, s16 off)
{
	touch_but(g, base, off, base);
}

static void value(struct gen *g)
{
	u8 i = reg(g), p = one_in(g, 2) ? R1 : R4;

	if (one_in(g, 2)) {
		touch(g, R7, (s16)(8 * rnd(g, 8)));
		return;
	}
	while (i == p)
		i = reg(g);
	put(g, BPF_ALU64 | BPF_AND | BPF_K, i, 0, 0, 0x38);
	mov(g, p, R7);
	put(g, BPF_ALU64 | BPF_ADD | BPF_X, p, i, 0, 0);
	touch(g, p, 0);
	set(g, p, number(g));
}

static void stack(struct gen *g)
{
	touch(g, FP, (s16)(-8 * (1 + (s32)rnd(g, 8))));
}

/* r2 = a key of size bytes on the stack, below keys; a constant or a register's bits. */
static void key(struct gen *g, u32 size, u32 keys)
{
	u8 w = size == 8 ? BPF_DW : BPF_W;

	if (one_in(g, 2)) {
		put(g, BPF_ST | BPF_MEM | w, FP, 0, -72, (s32)rnd(g, keys));
	} else {
		put(g, BPF_ALU64 | BPF_AND | BPF_K, R8, 0, 0, (s32)keys - 1);
		put(g, BPF_STX | BPF_MEM | w, FP, R8, -72, 0);
	}
	mov(g, R2, FP);
	add(g, R2, -72);
}

/* What r0 points to, if it points to something, is used. */
static void use_found(struct gen *g, u32 bytes)
{
	u32 at = put(g, BPF_JMP | BPF_JEQ | BPF_K, R0, 0, 0, 0);

	for (u8 r = R1; r <= R5; r++)
		set(g, r, number(g));
	touch(g, R0, (s16)(8 * rnd(g, bytes / 8)));
	if (one_in(g, 2))
		put(g, BPF_LDX | BPF_MEM | BPF_DW, R9, R0, 0, 0);
	g->p->insns[at].off = (s16)(g->p->nr - at - 1);
}

/* As use_found(), but r0 may be overwritten by a load through itself: it is used once. */
static void lookup(struct gen *g)
{
	static const struct {
		enum diff_map m;
		u8 key, keys, value;
	} rows[] = { { DIFF_HASH, 8, DIFF_KEYS, 16 }, { DIFF_ARRAY, 4, 8, 24 }, { DIFF_PERCPU, 4, 4, 8 },
		     { DIFF_PHASH, 8, DIFF_KEYS, 8 } };
	u32 i = rnd(g, ARRAY_SIZE(rows));

	key(g, rows[i].key, rows[i].keys);
	map(g, R1, rows[i].m);
	call(g, BPF_FUNC_map_lookup_elem);
	use_found(g, rows[i].value);
	refill(g);
}

static void lookup_inner(struct gen *g)
{
	u32 at;

	key(g, 4, 4);
	map(g, R1, DIFF_OUTER);
	call(g, BPF_FUNC_map_lookup_elem);
	at = put(g, BPF_JMP | BPF_JEQ | BPF_K, R0, 0, 0, 0);
	mov(g, R3, R0);
	key(g, 8, DIFF_KEYS);
	mov(g, R1, R3);
	call(g, BPF_FUNC_map_lookup_elem);
	use_found(g, 16);
	g->p->insns[at].off = (s16)(g->p->nr - at - 1);
	refill(g);
}

static void change_hash(struct gen *g)
{
	bool percpu = one_in(g, 3);

	key(g, 8, DIFF_KEYS);
	map(g, R1, percpu ? DIFF_PHASH : DIFF_HASH);
	if (one_in(g, 2)) {
		mov(g, R3, FP);
		add(g, R3, -32);
		set(g, R4, (s32)rnd(g, 3));
		call(g, BPF_FUNC_map_update_elem);
	} else {
		call(g, BPF_FUNC_map_delete_elem);
	}
	mov(g, R9, R0);
	refill(g);
}

static void storage(struct gen *g)
{
	u32 at = 0;
	bool inner = one_in(g, 2), create = !one_in(g, 3);

	g->p->uses_storage = true;
	if (inner) {
		key(g, 4, 4);
		map(g, R1, DIFF_STORAGES);
		call(g, BPF_FUNC_map_lookup_elem);
		at = put(g, BPF_JMP | BPF_JEQ | BPF_K, R0, 0, 0, 0);
		put(g, BPF_STX | BPF_MEM | BPF_DW, FP, R0, -80, 0);
	}
	call(g, BPF_FUNC_get_current_task_btf);
	mov(g, R2, R0);
	if (inner)
		put(g, BPF_LDX | BPF_MEM | BPF_DW, R1, FP, -80, 0);
	else
		map(g, R1, one_in(g, 2) ? DIFF_STORAGE : DIFF_STORAGE_2);
	if (one_in(g, 5)) {
		call(g, BPF_FUNC_task_storage_delete);
		mov(g, R9, R0);
	} else {
		set(g, R3, 0);
		if (create && one_in(g, 2)) {
			mov(g, R3, FP);
			add(g, R3, -48);
		}
		set(g, R4, create);
		call(g, BPF_FUNC_task_storage_get);
		use_found(g, 16);
	}
	if (inner)
		g->p->insns[at].off = (s16)(g->p->nr - at - 1);
	refill(g);
}

static void ask(struct gen *g)
{
	static const s32 ids[] = { BPF_FUNC_get_prandom_u32, BPF_FUNC_get_smp_processor_id, BPF_FUNC_get_current_pid_tgid,
				   BPF_FUNC_ktime_get_ns, BPF_FUNC_get_current_uid_gid };

	call(g, ids[rnd(g, ARRAY_SIZE(ids))]);
	mov(g, one_in(g, 2) ? R8 : R9, R0);
	refill(g);
}

static void probe(struct gen *g)
{
	mov(g, R3, R8);
	put(g, BPF_ALU64 | BPF_AND | BPF_K, R3, 0, 0, 0xfff);
	if (one_in(g, 2))
		mov(g, R3, R7);
	mov(g, R1, FP);
	add(g, R1, -40);
	set(g, R2, (s32)(1 + rnd(g, 16)));
	call(g, BPF_FUNC_probe_read_kernel);
	mov(g, R9, R0);
	refill(g);
}

static void use_func(struct gen *g, u32 at, u8 func)
{
	if (g->nr_uses < ARRAY_SIZE(g->uses)) {
		g->uses[g->nr_uses].at = at;
		g->uses[g->nr_uses++].func = func;
	}
}

static void call_func(struct gen *g)
{
	use_func(g, put(g, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 0), one_in(g, 2) ? FUNC_SUM : FUNC_DEEP);
	mov(g, R9, R0);
	refill(g);
}

static void loop_func(struct gen *g)
{
	g->p->has_callback = true;
	if (one_in(g, 2)) {
		mov(g, R1, R8);
		put(g, BPF_ALU64 | BPF_AND | BPF_K, R1, 0, 0, one_in(g, 20) ? -1 : 31);
		if (one_in(g, 30))
			put(g, BPF_ALU64 | BPF_OR | BPF_K, R1, 0, 0, 1 << 30);
		else
			put(g, BPF_ALU64 | BPF_AND | BPF_K, R1, 0, 0, 0xff);
	} else {
		set(g, R1, (s32)rnd(g, 20));
	}
	use_func(g, g->p->nr, (u8)(FUNC_CB_STACK + rnd(g, 3)));
	wide(g, R2, BPF_PSEUDO_FUNC, 0, 0);
	mov(g, R3, FP);
	add(g, R3, -64);
	set(g, R4, 0);
	call(g, BPF_FUNC_loop);
	mov(g, one_in(g, 2) ? R8 : R9, R0);
	refill(g);
}

static void small_loop(struct gen *g)
{
	u32 start;

	set(g, R5, (s32)(1 + rnd(g, 8)));
	start = g->p->nr;
	put(g, BPF_ALU64 | BPF_ADD | BPF_X, R8, R5, 0, 0);
	put(g, BPF_ALU64 | BPF_XOR | BPF_X, R9, R8, 0, 0);
	touch_but(g, R7, (s16)(8 * rnd(g, 8)), R5); /* the counter, or there is no end */
	set(g, R0, 1);
	add(g, R5, 0);
	put(g, BPF_ALU64 | BPF_SUB | BPF_K, R5, 0, 0, 1);
	put(g, BPF_JMP | BPF_JNE | BPF_K, R5, 0, (s16)(start - g->p->nr - 1), 0);
}

/*
 * Loads along parents: the current task is there, its parent may be NULL or stale, and what is found there is stale for
 * certain. Only numbers go on: addresses are not the same in two engines.
 */
static void probe_loads(struct gen *g)
{
	u32 hops = 1 + rnd(g, 3);

	if (!task.known) {
		alu(g);
		return;
	}
	call(g, BPF_FUNC_get_current_task_btf);
	mov(g, R1, R0);
	for (u32 i = 0; i < hops; i++)
		put(g, BPF_LDX | BPF_MEM | BPF_DW, R1, R1, task.real_parent, 0);
	put(g, BPF_LDX | (one_in(g, 3) ? 0x80 : BPF_MEM) | BPF_W, one_in(g, 2) ? R8 : R9, R1,
	    one_in(g, 2) ? task.pid : task.tgid, 0);
	if (one_in(g, 3))
		put(g, BPF_LDX | BPF_MEM | BPF_W, R1, R1, task.pid, 0); /* into its own base */
	if (one_in(g, 2))
		put(g, BPF_LDX | BPF_MEM | BPF_W, R9, R0, task.tgid, 0);
	refill(g);
}

/* A loop whose end nobody knows but that has one. */
static void may_goto(struct gen *g)
{
	u32 start, out, spent;

	mov(g, R5, R8);
	put(g, BPF_ALU64 | BPF_AND | BPF_K, R5, 0, 0, 15);
	start = put(g, BPF_JMP | 0xe0 /* may_goto */, 0, 0, 0, 0);
	out = put(g, BPF_JMP | BPF_JEQ | BPF_K, R5, 0, 0, 0);
	put(g, BPF_ALU64 | BPF_SUB | BPF_K, R5, 0, 0, 1);
	put(g, BPF_ALU64 | BPF_MUL | BPF_K, R9, 0, 0, 31);
	put(g, BPF_ALU64 | BPF_XOR | BPF_X, R9, R5, 0, 0);
	touch_but(g, R7, (s16)(8 * rnd(g, 8)), R5);
	spent = g->p->nr;
	put(g, BPF_JMP | BPF_JA, 0, 0, (s16)(start - spent - 1), 0);
	g->p->insns[start].off = (s16)(g->p->nr - start - 1);
	g->p->insns[out].off = (s16)(g->p->nr - out - 1);
	refill(g);
}

static void tail_call(struct gen *g)
{
	if (one_in(g, 2)) {
		set(g, R3, (s32)rnd(g, 6));
	} else {
		mov(g, R3, R8);
		put(g, BPF_ALU64 | BPF_AND | BPF_K, R3, 0, 0, 7);
	}
	mov(g, R1, R6);
	map(g, R2, DIFF_TAIL);
	call(g, BPF_FUNC_tail_call);
	refill(g);
}

/* Narrow numbers, a 64-bit operation on them, and what a compiler that knows their width may leave out. */
static void narrow(struct gen *g)
{
	static const u8 sizes[] = { BPF_B, BPF_H, BPF_W }, ops[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_OR, BPF_XOR, BPF_LSH };
	u8 d = reg(g), s = reg(g), size = sizes[rnd(g, 3)], op = ops[rnd(g, ARRAY_SIZE(ops))];
	s32 bits = size == BPF_B ? 8 : size == BPF_H ? 16 : 32;

	put(g, BPF_LDX | BPF_MEM | size, d, R7, (s16)(8 * rnd(g, 8)), 0);
	if (s != d)
		put(g, BPF_LDX | BPF_MEM | size, s, R7, (s16)(8 * rnd(g, 8)), 0);
	if (op == BPF_LSH)
		put(g, BPF_ALU64 | BPF_LSH | BPF_K, d, 0, 0, (s32)rnd(g, 64));
	else
		put(g, BPF_ALU64 | op | BPF_X, d, s, 0, 0);
	if (one_in(g, 2))
		put(g, BPF_ALU | BPF_MOV | BPF_X, d, d, 0, 0);
	else if (one_in(g, 2))
		put(g, BPF_ALU64 | BPF_AND | BPF_K, d, 0, 0, bits == 32 ? 0x7fffffff : (1 << bits) - 1);
	else
		put(g, BPF_ALU | BPF_END | BPF_K, d, 0, 0, max_of(bits, 16));
}

static void rare(struct gen *g)
{
	switch (rnd(g, 7)) {
	case 5: case 6: narrow(g); break;
	case 0: case 1: probe_loads(g); break;
	case 2: case 3: may_goto(g); break;
	case 4: tail_call(g); break;
	}
}

static void statement(struct gen *g)
{
	switch (rnd(g, 25)) {
	case 0: case 1: case 2: case 3: case 4: case 5: alu(g); alu(g); break;
	case 6: case 7: case 8: skip_some(g); break;
	case 9: case 10: value(g); break;
	case 11: case 12: stack(g); break;
	case 13: case 14: lookup(g); break;
	case 15: lookup_inner(g); break;
	case 16: change_hash(g); break;
	case 17: case 18: storage(g); break;
	case 19: ask(g); break;
	case 20: probe(g); break;
	case 21: call_func(g); break;
	case 22: loop_func(g); break;
	case 23: small_loop(g); break;
	case 24: rare(g); break;
	}
}

/* ---- functions ---- */

static void func_sum(struct gen *g)
{
	put(g, BPF_STX | BPF_MEM | BPF_DW, FP, R2, -16, 0);
	mov(g, R0, R1);
	mov(g, R6, R3);
	for (u32 n = rnd(g, 4); n--;)
		put(g, BPF_ALU64 | (one_in(g, 2) ? BPF_ADD : BPF_XOR) | BPF_X, R0, one_in(g, 2) ? R6 : R4, 0, 0);
	put(g, BPF_LDX | BPF_MEM | BPF_W, R2, FP, -16, 0);
	put(g, BPF_ALU64 | BPF_ADD | BPF_X, R0, R2, 0, 0);
	put(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void func_deep(struct gen *g)
{
	mov(g, R9, R1);
	put(g, BPF_ST | BPF_MEM | BPF_DW, FP, 0, -8, number(g));
	use_func(g, put(g, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 0), FUNC_SUM);
	put(g, BPF_LDX | BPF_MEM | BPF_DW, R1, FP, -8, 0);
	put(g, BPF_ALU64 | BPF_ADD | BPF_X, R0, R1, 0, 0);
	put(g, BPF_ALU64 | BPF_XOR | BPF_X, R0, R9, 0, 0);
	put(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void func_callback(struct gen *g, u8 func)
{
	if (func == FUNC_CB_VALUE) {
		wide(g, R4, BPF_PSEUDO_MAP_VALUE, DIFF_VALUE, 0);
		mov(g, R2, R4);
	}
	put(g, BPF_LDX | BPF_MEM | BPF_DW, R3, R2, 0, 0);
	put(g, BPF_ALU64 | (one_in(g, 2) ? BPF_ADD : BPF_XOR) | BPF_X, R3, R1, 0, 0);
	if (one_in(g, 2))
		put(g, (one_in(g, 2) ? BPF_ALU : BPF_ALU64) | BPF_MUL | BPF_K, R3, 0, 0, number(g));
	put(g, BPF_STX | BPF_MEM | BPF_DW, R2, R3, 0, 0);
	if (one_in(g, 2)) { /* what it saves must not reach the caller */
		set(g, R6, number(g));
		set(g, R8, number(g));
		put(g, BPF_STX | BPF_MEM | BPF_DW, FP, R6, -8, 0);
	}
	set(g, R0, 0);
	if (func == FUNC_CB_EARLY) {
		put(g, BPF_JMP | BPF_JLT | BPF_K, R1, 0, 1, (s32)rnd(g, 12));
		set(g, R0, 1);
	}
	put(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static bool used(const struct gen *g, u8 func)
{
	for (u32 i = 0; i < g->nr_uses; i++)
		if (g->uses[i].func == func)
			return true;
	return false;
}

static void functions(struct gen *g, u64 seed)
{
	static const u8 order[] = { FUNC_DEEP, FUNC_SUM, FUNC_CB_STACK, FUNC_CB_VALUE, FUNC_CB_EARLY };
	u32 start[FUNC_CB_EARLY + 1] = { 0 };

	for (u32 i = 0; i < ARRAY_SIZE(order); i++) {
		if (!used(g, order[i]))
			continue;
		g->rng = mix(seed ^ (1000 + order[i]));
		start[order[i]] = g->p->funcs[g->p->nr_funcs++] = g->p->nr;
		if (order[i] == FUNC_SUM)
			func_sum(g);
		else if (order[i] == FUNC_DEEP)
			func_deep(g);
		else
			func_callback(g, order[i]);
	}
	for (u32 i = 0; i < g->nr_uses; i++)
		g->p->insns[g->uses[i].at].imm = (s32)start[g->uses[i].func] - (s32)g->uses[i].at - 1;
}

static void land(struct gen *g, bool all)
{
	u32 kept = 0;

	for (u32 i = 0; i < g->nr_jumps; i++) {
		if (all || !--g->jumps[i].left)
			g->p->insns[g->jumps[i].at].off = (s16)(g->p->nr - g->jumps[i].at - 1);
		else
			g->jumps[kept++] = g->jumps[i];
	}
	g->nr_jumps = kept;
}

void diff_task_layout(s16 real_parent, s16 pid, s16 tgid)
{
	task.known = true;
	task.real_parent = real_parent;
	task.pid = pid;
	task.tgid = tgid;
}

void diff_generate(struct diff_prog *p, u64 seed, u32 skip)
{
	struct gen g = { .p = p, .rng = mix(seed + 1) };
	u32 n = 4 + rnd(&g, DIFF_STATEMENTS - 4);

	p->nr = p->nr_funcs = 0;
	p->has_callback = p->uses_storage = false;
	p->funcs[p->nr_funcs++] = 0;
	mov(&g, R6, R1);
	wide(&g, R7, BPF_PSEUDO_MAP_VALUE, DIFF_VALUE, 0);
	for (s16 off = -8; off >= -80; off -= 8)
		put(&g, BPF_ST | BPF_MEM | BPF_DW, FP, 0, off, number(&g));
	put(&g, BPF_LDX | BPF_MEM | BPF_DW, R8, R6, (s16)(8 * rnd(&g, 4)), 0);
	put(&g, BPF_LDX | BPF_MEM | BPF_DW, R9, R7, (s16)(8 * rnd(&g, 8)), 0);
	refill(&g);
	for (u32 i = 0; i < n; i++) {
		bool landed;

		g.rng = mix(seed ^ ((u64)i << 40));
		if (!(skip >> i & 1))
			statement(&g);
		landed = g.nr_jumps > 0;
		if (landed)
			land(&g, false);
	}
	land(&g, true);
	for (u8 r = R1; r <= R9; r++) {
		if (r == R6 || r == R7)
			continue;
		put(&g, BPF_ALU64 | BPF_MUL | BPF_K, R0, 0, 0, 31);
		put(&g, BPF_ALU64 | BPF_ADD | BPF_X, R0, r, 0, 0);
	}
	put(&g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	functions(&g, seed);
}
