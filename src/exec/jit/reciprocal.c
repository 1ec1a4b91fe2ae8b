// SPDX-License-Identifier: BSD-2-Clause
/*
 * Division by a constant as a multiplication: a division takes 10 to 20 cycles, this 4 to 8.
 *
 * Let d not be a power of two, 2^k < d < 2^(k+1), and n < 2^b. For a shift s let m = floor(2^s / d) + 1 and
 * e = m * d - 2^s, 0 < e < d. Then n * m / 2^s = n / d + n * e / (d * 2^s), and its floor is floor(n / d) as long as the
 * second term stays below 1 / d: n * e < 2^s, for which e <= 2^(s - b) is enough.
 *
 * b <= 32: one 64-bit product. With s = 64 - b + k, m <= 2^(64-b), so n * m < 2^64. Where e is too large for that (only
 * b = 32: otherwise 2^(s-b) >= 2^(k+2)), m' = m - 1 falls short by r = 2^s mod d = d - e < 2^k, and
 * floor((n + 1) * m' / 2^s) is right: (n + 1) * r <= 2^32 * 2^k = 2^s.
 * b > 32: the upper half of a 128-bit product, s = 64 + k, m < 2^64. Where e is too large (only b = 64), an even d has its
 * zeros shifted out of n first, which leaves b < 64; for an odd one s is one more, e <= 2^(k+1) always holds and m has 65
 * bits: 2^64 + m'. With t = floor(n * m' / 2^64) the sum n + t may need 65 bits as well, ((n - t) >> 1) + t is half of it.
 *
 * Signed, |n| <= 2^(W-1): e <= 2^(s-W+1) is what is needed, and s = W + k always gives it. The floor of a negative
 * product is one below the quotient, which the sign of n, subtracted, makes good; d < 0 only turns the result.
 */
#include "exec/jit/reciprocal.h"

static u8 log2_of(u64 v)
{
	return 63 - __builtin_clzll(v);
}

struct jit_reciprocal jit_reciprocal(u64 v, u8 b)
{
	u8 k = log2_of(v), s = b <= 32 ? 64 - b + k : 64 + k;
	unsigned __int128 one = 1;
	struct jit_reciprocal by = { .m = (u64)((one << s) / v) + 1 };
	u64 e = (u64)(by.m * v - (u64)(one << s));

	if (b <= 32) {
		by.more = e > 1ULL << (s - b);
		by.m -= by.more;
		/* the shorter it is the better it fits an instruction */
		for (; !(by.m & 1); by.m >>= 1)
			s--;
		by.shift = s;
	} else if (e <= 1ULL << (s - b)) {
		by.shift = s - 64;
	} else if (!(v & 1)) {
		u8 pre = __builtin_ctzll(v);

		by = jit_reciprocal(v >> pre, b - pre);
		by.pre = pre;
	} else {
		by.more = true;
		by.shift = s - 64;
		by.m = (u64)((one << 64 << k) / v * 2 + ((one << 64 << k) % v * 2 >= v)) + 1;
	}
	return by;
}

u64 jit_reciprocal_signed(u64 v, u8 w)
{
	return (u64)(((unsigned __int128)1 << (w * 8 + log2_of(v))) / v) + 1;
}
