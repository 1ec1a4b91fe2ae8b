/* SPDX-License-Identifier: BSD-2-Clause */
/* Division by a constant as a multiplication: the numbers; reciprocal.c says why they are right. */
#ifndef INLAY_EXEC_JIT_RECIPROCAL_H
#define INLAY_EXEC_JIT_RECIPROCAL_H

#include "base/types.h"

/*
 * For n of at most b bits: with n' = n >> pre the quotient is
 *   b <= 32:	n' * m >> shift, a product of 64 bits; more: (n' + 1) * m >> shift. pre is 0
 *   b > 32:	t >> shift with t = n' * m >> 64; more: m lacks its bit 64, and t is ((n' - t) >> 1) + t
 */
struct jit_reciprocal {
	u64 m;
	u8 pre, shift;
	bool more;
};

/* v not a power of two and below 2^b. */
struct jit_reciprocal jit_reciprocal(u64 v, u8 b);

/*
 * Signed, of w bytes: the quotient is (n * m >> (8 * w + k)) + (n < 0), 2^k < v < 2^(k + 1). m is below 2^(8 * w), so for 8
 * bytes it may look negative.
 */
u64 jit_reciprocal_signed(u64 v, u8 w);

#endif
