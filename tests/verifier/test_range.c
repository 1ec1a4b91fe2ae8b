// SPDX-License-Identifier: BSD-2-Clause
/*
 * Soundness of the value domain, exhaustively at 8 bits.
 *
 * Tristate numbers: for every pair of 8-bit tnums the exact set of results is known through the AND and the OR of all of
 * them (computed by splitting one unknown bit at a time, so 6561² pairs cost 6561² steps); a tnum holds the set if and only
 * if its known bits agree with both.
 *
 * Ranges: 8-bit numbers are placed at several positions of the 64-bit word (low end, high end, around the sign of either
 * width), so that wrapping happens where it happens for real. A range is the hull of its members, some views widened.
 */
#include <linux/bpf.h>
#include <string.h>

#include "tests/tap.h"
#include "verifier/range.h"

static u64 seed = 88172645463325252ULL;

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* ---- tnums ---- */

/*
 * In `check` numbers of 6 bits, which takes seconds; with "all" of 8 bits: the table below has a row a pair, and minutes
 * of page faults. The operators work bit by bit or digit by digit, so a fault shows at either width.
 */
#define NR 6561 /* 3^8 */
static int bits = 6, nr;
static struct tnum all[NR];
static u16 index_of[256][256]; /* [value][mask] */

static void make_tnums(void)
{
	nr = 0;
	for (u32 mask = 0; mask < 1u << bits; mask++)
		for (u32 value = 0; value < 1u << bits; value++)
			if (!(value & mask)) {
				index_of[value][mask] = nr;
				all[nr++] = (struct tnum){ value, mask };
			}
}

struct tnum_op {
	const char *name;
	struct tnum (*op)(struct tnum a, struct tnum b);
	u64 (*eval)(u64 a, u64 b);
	bool top_a, top_b; /* placed at the top of the word, so that results wrap; else at its bottom */
};

#define EVAL(name, expr)                                                                           \
	static u64 name(u64 a, u64 b)                                                              \
	{                                                                                          \
		return expr;                                                                       \
	}
EVAL(ev_add, a + b)
EVAL(ev_sub, a - b)
EVAL(ev_and, a & b)
EVAL(ev_or, a | b)
EVAL(ev_xor, a ^ b)
EVAL(ev_mul, a *b)

static const struct tnum_op tnum_ops[] = {
	{ "add", vrf_tnum_add, ev_add, 0, 0 },	 { "add that wraps", vrf_tnum_add, ev_add, 1, 1 },
	{ "sub", vrf_tnum_sub, ev_sub, 0, 0 },	 { "sub that wraps", vrf_tnum_sub, ev_sub, 1, 1 },
	{ "and", vrf_tnum_and, ev_and, 0, 0 },	 { "or", vrf_tnum_or, ev_or, 0, 0 },
	{ "xor", vrf_tnum_xor, ev_xor, 0, 0 },	 { "mul", vrf_tnum_mul, ev_mul, 0, 0 },
	{ "mul that wraps", vrf_tnum_mul, ev_mul, 1, 0 },
};

static struct {
	u64 all_and, all_or;
} exact[NR][NR];

static bool test_tnum_op(const struct tnum_op *o)
{
	u32 shift_a = o->top_a ? 64 - bits : 0, shift_b = o->top_b ? 64 - bits : 0;
	long unsound = 0, inexact = 0;

	for (int i = 0; i < nr; i++)
		for (int j = 0; j < nr; j++) {
			u32 am = all[i].mask, bm = all[j].mask, bit, v;
			struct tnum a, b, r;

			if (am || bm) {
				int i0 = i, i1 = i, j0 = j, j1 = j;

				if (am) {
					bit = am & -am, v = all[i].value;
					i0 = index_of[v][am ^ bit];
					i1 = index_of[v | bit][am ^ bit];
				} else {
					bit = bm & -bm, v = all[j].value;
					j0 = index_of[v][bm ^ bit];
					j1 = index_of[v | bit][bm ^ bit];
				}
				exact[i][j].all_and = exact[i0][j0].all_and & exact[i1][j1].all_and;
				exact[i][j].all_or = exact[i0][j0].all_or | exact[i1][j1].all_or;
			} else {
				exact[i][j].all_and = exact[i][j].all_or =
					o->eval(all[i].value << shift_a, all[j].value << shift_b);
			}
			a = vrf_tnum_lsh(all[i], shift_a);
			b = vrf_tnum_lsh(all[j], shift_b);
			r = o->op(a, b);
			if (r.value & r.mask || (exact[i][j].all_and ^ r.value) & ~r.mask ||
			    (exact[i][j].all_or ^ r.value) & ~r.mask)
				unsound++;
			else if ((exact[i][j].all_and ^ exact[i][j].all_or) != r.mask)
				inexact++;
		}
	printf("# tnum %s: %d pairs, %ld not as sharp as can be\n", o->name, nr * nr, inexact);
	return !unsound;
}

static bool test_tnum_shift(void)
{
	for (int i = 0; i < nr; i++)
		for (u32 n = 0; n < 64; n++)
			for (u32 place = 0; place < 64; place += 8)
				for (u32 x = 0; x < 256; x++) {
					struct tnum a = vrf_tnum_lsh(all[i], place);
					u64 v = (u64)x << place;

					if (!vrf_tnum_has(all[i], x))
						continue;
					if (!vrf_tnum_has(vrf_tnum_lsh(a, n), v << n) ||
					    !vrf_tnum_has(vrf_tnum_rsh(a, n), v >> n) ||
					    !vrf_tnum_has(vrf_tnum_arsh(a, n, 64), (u64)((s64)v >> n)))
						return false;
					if (n < 32 &&
					    !vrf_tnum_has(vrf_tnum_arsh(vrf_tnum_low32(a), n, 32), (u32)((s32)v >> n)))
						return false;
				}
	return true;
}

static bool test_tnum_sets(void)
{
	for (int i = 0; i < nr; i++)
		for (int j = 0; j < nr; j++) {
			struct tnum a = all[i], b = all[j], u = vrf_tnum_union(a, b), m = vrf_tnum_intersect(a, b);
			bool common = false, inside = true;

			for (u32 x = i == j ? 0 : (i * 7 + j) % 11; x < 256; x += 1 + (i != j) * 10) { /* every 11th for the mass */
				bool in_a = vrf_tnum_has(a, x), in_b = vrf_tnum_has(b, x);

				if ((in_a || in_b) && !vrf_tnum_has(u, x))
					return false;
				if (in_a && in_b && !vrf_tnum_has(m, x))
					return false;
				common |= in_a && in_b;
				inside &= !in_b || in_a;
			}
			if (common && !vrf_tnum_overlap(a, b))
				return false;
			if (!inside && vrf_tnum_includes(a, b))
				return false;
		}
	return true;
}

static bool test_tnum_range(void)
{
	for (u32 place = 0; place <= 56; place += 28)
		for (u32 lo = 0; lo < 256; lo++)
			for (u32 hi = lo; hi < 256; hi++) {
				struct tnum r = vrf_tnum_range((u64)lo << place, (u64)hi << place);

				for (u32 x = lo; x <= hi; x++)
					if (!vrf_tnum_has(r, (u64)x << place))
						return false;
			}
	return true;
}

static bool test_tnum_next(void)
{
	for (int i = 0; i < NR; i++)
		for (u32 place = 0; place <= 56; place += 56)
			for (u32 from = 0; from < 256; from++) {
				struct tnum a = vrf_tnum_lsh(all[i], place);
				u32 want = from;
				u64 got = 0;
				bool found;

				while (want < 256 && !vrf_tnum_has(all[i], want))
					want++;
				found = vrf_tnum_next(a, (u64)from << place, &got);
				if (found != (want < 256) || (found && got != (u64)want << place))
					return false;
			}
	return true;
}

/* ---- ranges ---- */

static u64 embed(u32 x, u32 how)
{
	switch (how) {
	case 0: return x;
	case 1: return (u64)x << 56;
	case 2: return (u64)(s64)(s8)x;
	case 3: return x << 24;
	case 4: return (u32)(s32)(s8)x;
	case 5: return (1ULL << 31) + (u64)(s64)(s8)x;
	case 6: return (1ULL << 63) + (u64)(s64)(s8)x;
	case 7: return (1ULL << 32) + (u64)(s64)(s8)x;
	case 8: return (u64)x << 28;
	case 9: return (u64)(s64)(s8)x << 32 | (x & 0x3f);
	case 10: return (u64)(x & 0x0f) << 32 | (u32)(s32)(s8)(x & 0xf0);
	}
	return (x & 0x0f) | (u64)(x & 0xf0) << 56;
}
#define EMBEDS 12

static void hull_add(struct vrf_range *r, u64 v, bool first)
{
	if (first) {
		vrf_range_const(r, v);
		return;
	}
	r->var = vrf_tnum_union(r->var, vrf_tnum_const(v));
	r->umin = min_of(r->umin, v), r->umax = max_of(r->umax, v);
	r->smin = min_of(r->smin, (s64)v), r->smax = max_of(r->smax, (s64)v);
	r->umin32 = min_of(r->umin32, (u32)v), r->umax32 = max_of(r->umax32, (u32)v);
	r->smin32 = min_of(r->smin32, (s32)v), r->smax32 = max_of(r->smax32, (s32)v);
}

#define MEMBERS 8
struct sample {
	struct vrf_range r;
	u64 v[MEMBERS];
	int n;
};

/* Some members and a range that holds them; views forgotten or widened at random. */
static void make_sample(struct sample *s)
{
	u32 how = rnd() % EMBEDS, base = rnd() & 255, span = 1 + (rnd() & (rnd() & 1 ? 15 : 255));

	s->n = 1 + rnd() % MEMBERS;
	for (int i = 0; i < s->n; i++) {
		s->v[i] = embed((base + rnd() % span) & 255, rnd() % 16 ? how : rnd() % EMBEDS);
		hull_add(&s->r, s->v[i], !i);
	}
	switch (rnd() % 8) {
	case 0: s->r.var = TNUM_UNKNOWN; break;
	case 1: s->r.umin = 0, s->r.umax = U64_MAX; break;
	case 2: s->r.smin = S64_MIN, s->r.smax = S64_MAX; break;
	case 3: vrf_range_unbound32(&s->r); break;
	case 4: vrf_range_unbound64(&s->r); break;
	case 5: s->r.var = TNUM_UNKNOWN; s->r.umax32 = U32_MAX; s->r.smin = S64_MIN; break;
	}
}

static bool holds(const struct sample *s)
{
	for (int i = 0; i < s->n; i++)
		if (!vrf_range_has(&s->r, s->v[i]))
			return false;
	return true;
}

static bool test_sync(long count)
{
	for (long k = 0; k < count; k++) {
		struct sample s;

		make_sample(&s);
		vrf_range_sync(&s.r);
		if (!holds(&s) || vrf_range_is_broken(&s.r))
			return false;
	}
	return true;
}

static u64 eval(u8 op, bool is32, u64 a, u64 b)
{
	if (is32) {
		u32 x = (u32)a, y = (u32)b;

		switch (op) {
		case BPF_ADD: return (u32)(x + y);
		case BPF_SUB: return (u32)(x - y);
		case BPF_MUL: return (u32)(x * y);
		case BPF_AND: return x & y;
		case BPF_OR: return x | y;
		case BPF_XOR: return x ^ y;
		case BPF_NEG: return (u32)-x;
		case BPF_LSH: return (u32)(x << (y & 31));
		case BPF_RSH: return x >> (y & 31);
		case BPF_ARSH: return (u32)((s32)x >> (y & 31));
		case BPF_DIV: return y ? x / y : 0;
		case BPF_MOD: return y ? x % y : x;
		}
	}
	switch (op) {
	case BPF_ADD: return a + b;
	case BPF_SUB: return a - b;
	case BPF_MUL: return a * b;
	case BPF_AND: return a & b;
	case BPF_OR: return a | b;
	case BPF_XOR: return a ^ b;
	case BPF_NEG: return -a;
	case BPF_LSH: return a << (b & 63);
	case BPF_RSH: return a >> (b & 63);
	case BPF_ARSH: return (u64)((s64)a >> (b & 63));
	case BPF_DIV: return b ? a / b : 0;
	}
	return b ? a % b : a;
}

static const struct {
	u8 op;
	const char *name;
} alu_ops[] = {
	{ BPF_ADD, "+=" }, { BPF_SUB, "-=" }, { BPF_MUL, "*=" },   { BPF_AND, "&=" },	{ BPF_OR, "|=" },
	{ BPF_XOR, "^=" }, { BPF_NEG, "neg" }, { BPF_LSH, "<<=" }, { BPF_RSH, ">>=" },	{ BPF_ARSH, "s>>=" },
	{ BPF_DIV, "/=" }, { BPF_MOD, "%=" },
};

static bool is_shift(u8 op)
{
	return op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH;
}

static bool test_alu(u8 op, bool is32, long count)
{
	for (long k = 0; k < count; k++) {
		struct sample a, b;

		make_sample(&a);
		make_sample(&b);
		if (is_shift(op) && rnd() % 8) {
			b.n = 1;
			b.v[0] = rnd() % (is32 ? 32 : 64);
			vrf_range_const(&b.r, b.v[0]);
		}
		if (rnd() & 1) {
			vrf_range_sync(&a.r);
			vrf_range_sync(&b.r);
		}
		vrf_range_alu(&a.r, &b.r, op, is32);
		if (vrf_range_is_broken(&a.r))
			return false;
		for (int i = 0; i < a.n; i++)
			for (int j = 0; j < b.n; j++)
				if (!vrf_range_has(&a.r, eval(op, is32, a.v[i], b.v[j]))) {
					printf("# 0x%llx op 0x%llx = 0x%llx lost\n", (unsigned long long)a.v[i],
					       (unsigned long long)b.v[j],
					       (unsigned long long)eval(op, is32, a.v[i], b.v[j]));
					return false;
				}
	}
	return true;
}

/* Every pair of intervals below top, each number of them, at the low and the high end of the word. */
static u32 top = 16;

static bool test_alu_intervals(u8 op, bool is32, u32 place)
{
	for (u32 al = 0; al < top; al++)
		for (u32 ah = al; ah < top; ah++)
			for (u32 bl = 0; bl < (is_shift(op) ? 32 : top); bl++)
				for (u32 bh = bl; bh < (is_shift(op) ? bl + 1 : top); bh++) {
					u32 pb = is_shift(op) || op == BPF_MUL ? 0 : place;
					struct vrf_range a, b, r;

					hull_add(&a, (u64)al << place, true);
					for (u32 x = al + 1; x <= ah; x++)
						hull_add(&a, (u64)x << place, false);
					hull_add(&b, (u64)bl << pb, true);
					for (u32 x = bl + 1; x <= bh; x++)
						hull_add(&b, (u64)x << pb, false);
					r = a;
					vrf_range_alu(&r, &b, op, is32);
					for (u32 x = al; x <= ah; x++)
						for (u32 y = bl; y <= bh; y++)
							if (!vrf_range_has(&r, eval(op, is32, (u64)x << place, (u64)y << pb)))
								return false;
				}
	return true;
}

static bool test_byte_order(long count)
{
	for (long k = 0; k < count; k++) {
		struct sample s;
		u32 size = 2u << rnd() % 3;
		bool swap = rnd() & 1;

		make_sample(&s);
		vrf_range_end(&s.r, size, swap);
		for (int i = 0; i < s.n; i++) {
			u64 v = swap ? __builtin_bswap64(s.v[i]) >> (64 - size * 8) : size == 8 ? s.v[i] : s.v[i] & ((1ULL << size * 8) - 1);

			if (!vrf_range_has(&s.r, v))
				return false;
		}
	}
	return true;
}

/* Every interval of 8-bit numbers at every position, through every operator of one operand. */
static bool test_unary_intervals(void)
{
	for (u32 how = 0; how < EMBEDS; how++)
		for (u32 lo = 0; lo < 256; lo++) {
			struct vrf_range hull;

			for (u32 hi = lo; hi < 256; hi++) {
				struct vrf_range r[9];

				hull_add(&hull, embed(hi, how), hi == lo);
				for (int i = 0; i < 9; i++)
					r[i] = hull;
				for (u32 i = 0; i < 3; i++) {
					vrf_range_zext(&r[i], 1 << i);
					vrf_range_sext(&r[3 + i], 1 << i);
				}
				vrf_range_sext32(&r[6], 1);
				vrf_range_sext32(&r[7], 2);
				vrf_range_low32(&r[8]);
				for (u32 x = lo; x <= hi; x++) {
					u64 v = embed(x, how);

					if (!vrf_range_has(&r[0], (u8)v) || !vrf_range_has(&r[1], (u16)v) ||
					    !vrf_range_has(&r[2], (u32)v) || !vrf_range_has(&r[3], (u64)(s64)(s8)v) ||
					    !vrf_range_has(&r[4], (u64)(s64)(s16)v) ||
					    !vrf_range_has(&r[5], (u64)(s64)(s32)v) ||
					    !vrf_range_has(&r[6], (u32)(s32)(s8)v) ||
					    !vrf_range_has(&r[7], (u32)(s32)(s16)v) || !vrf_range_has(&r[8], (u32)v))
						return false;
				}
			}
		}
	return true;
}

static bool compare(u8 op, bool is32, u64 a, u64 b)
{
	s64 sa = is32 ? (s32)a : (s64)a, sb = is32 ? (s32)b : (s64)b;

	if (is32)
		a = (u32)a, b = (u32)b;
	switch (op) {
	case BPF_JEQ: return a == b;
	case BPF_JNE: return a != b;
	case BPF_JSET: return a & b;
	case BPF_JGT: return a > b;
	case BPF_JGE: return a >= b;
	case BPF_JLT: return a < b;
	case BPF_JLE: return a <= b;
	case BPF_JSGT: return sa > sb;
	case BPF_JSGE: return sa >= sb;
	case BPF_JSLT: return sa < sb;
	}
	return sa <= sb;
}

static const struct {
	u8 op;
	const char *name;
} jmp_ops[] = {
	{ BPF_JEQ, "==" },   { BPF_JNE, "!=" },	  { BPF_JSET, "&" },   { BPF_JGT, ">" },
	{ BPF_JGE, ">=" },   { BPF_JLT, "<" },	  { BPF_JLE, "<=" },   { BPF_JSGT, "s>" },
	{ BPF_JSGE, "s>=" }, { BPF_JSLT, "s<" },  { BPF_JSLE, "s<=" },
};

static bool check_branch(u8 op, bool is32, const struct sample *a, const struct sample *b)
{
	int decided = vrf_range_decide(&a->r, &b->r, op, is32);
	struct vrf_range ra[2] = { a->r, a->r }, rb[2] = { b->r, b->r };

	for (int t = 0; t < 2; t++)
		vrf_range_refine(&ra[t], &rb[t], op, is32, t);
	for (int i = 0; i < a->n; i++)
		for (int j = 0; j < b->n; j++) {
			bool t = compare(op, is32, a->v[i], b->v[j]);

			if (decided >= 0 && decided != t)
				return false;
			if (!vrf_range_has(&ra[t], a->v[i]) || !vrf_range_has(&rb[t], b->v[j]))
				return false;
		}
	return true;
}

static bool test_branch(u8 op, bool is32, long count)
{
	for (long k = 0; k < count; k++) {
		struct sample a, b;

		make_sample(&a);
		make_sample(&b);
		if (rnd() & 1) {
			vrf_range_sync(&a.r);
			vrf_range_sync(&b.r);
		}
		if (!check_branch(op, is32, &a, &b))
			return false;
	}
	return true;
}

/* 8-bit intervals (every step-th end) against every 8-bit constant, around the sign of either width and at zero. */
static u32 step = 15;

static bool test_branch_const(u8 op, bool is32)
{
	static const u32 hows[] = { 0, 2, 5, 6 };

	for (u32 h = 0; h < 4; h++)
		for (u32 lo = 0; lo < 256; lo += step)
			for (u32 hi = lo; hi < 256; hi += step)
				for (u32 c = 0; c < 256; c++) {
					struct vrf_range ra, rb;
					int decided;

					hull_add(&ra, embed(lo, hows[h]), true);
					for (u32 x = lo + 1; x <= hi; x++)
						hull_add(&ra, embed(x, hows[h]), false);
					vrf_range_const(&rb, embed(c, hows[h]));
					decided = vrf_range_decide(&ra, &rb, op, is32);
					for (int t = 0; t < 2; t++) {
						struct vrf_range na = ra, nb = rb;

						vrf_range_refine(&na, &nb, op, is32, t);
						for (u32 x = lo; x <= hi; x++) {
							u64 v = embed(x, hows[h]), k = embed(c, hows[h]);

							if (compare(op, is32, v, k) != t)
								continue;
							if (!vrf_range_has(&na, v) || !vrf_range_has(&nb, k) ||
							    (decided >= 0 && decided != t))
								return false;
						}
					}
				}
	return true;
}

static bool test_within(long count)
{
	for (long k = 0; k < count; k++) {
		struct sample a, b;

		make_sample(&a);
		make_sample(&b);
		if (vrf_range_within(&a.r, &b.r))
			for (int i = 0; i < b.n; i++)
				if (!vrf_range_has(&a.r, b.v[i]))
					return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	long n = getenv("INLAY_TEST_ROUNDS") ? atol(getenv("INLAY_TEST_ROUNDS")) : 10000;

	if (argc > 1 && !strcmp(argv[1], "all")) { /* minutes instead of seconds */
		bits = 8;
		top = 32;
		step = 1;
		n *= 20;
	}
	make_tnums();
	for (size_t i = 0; i < ARRAY_SIZE(tnum_ops); i++)
		ok(test_tnum_op(&tnum_ops[i]), "tnum %s holds every result, all pairs of %d bits", tnum_ops[i].name,
		   bits);
	ok(test_tnum_shift(), "tnum shifts hold every result, 8 bits at every byte");
	ok(test_tnum_sets(), "tnum union, intersection, overlap, inclusion agree with the sets");
	ok(test_tnum_next(), "next number of a tnum, 8 bits at either end");
	ok(test_tnum_range(), "tnum of an interval holds it");
	ok(test_sync(n * 10), "deduction loses no member and breaks nothing");
	ok(test_byte_order(n), "byte order keeps sampled members");
	ok(test_unary_intervals(), "extensions hold every result, all 8-bit intervals at %d positions", EMBEDS);
	for (size_t i = 0; i < ARRAY_SIZE(alu_ops); i++)
		for (int w = 0; w < 2; w++) {
			ok(test_alu(alu_ops[i].op, w, n), "range %s%s holds sampled results", alu_ops[i].name, w ? " 32" : "");
			ok(test_alu_intervals(alu_ops[i].op, w, 0) &&
				   test_alu_intervals(alu_ops[i].op, w, w ? 28 : 60),
			   "range %s%s holds every result, all pairs of intervals below %u", alu_ops[i].name, w ? " 32" : "",
			   top);
		}
	for (size_t i = 0; i < ARRAY_SIZE(jmp_ops); i++)
		for (int w = 0; w < 2; w++) {
			ok(test_branch(jmp_ops[i].op, w, n), "branch %s%s keeps sampled members", jmp_ops[i].name, w ? " 32" : "");
			ok(test_branch_const(jmp_ops[i].op, w), "branch %s%s against constants keeps members",
			   jmp_ops[i].name, w ? " 32" : "");
		}
	ok(test_within(n * 10), "inclusion of ranges means inclusion of members");
	return tap_done();
}
