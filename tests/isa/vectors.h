/* SPDX-License-Identifier: BSD-2-Clause */
/* What implementations have got wrong before: r2 and r3, a program, the r2 after it. Asked of
 * Linux 6.18. */
#ifndef INLAY_TESTS_ISA_VECTORS_H
#define INLAY_TESTS_ISA_VECTORS_H

#include "base/types.h"

static const struct isa_vector {
	const char *name;
	const char *program;
	u64 r2, r3, want;
} isa_vectors[] = {
	{"32-bit sum wraps and clears the high half", "w2 += w3", ~0ULL, 2, 1},
	{"32-bit difference is zero-extended", "w2 -= w3", 1, 2, 0xffffffff},
	{"32-bit move of -1 is zero-extended", "w2 = -1", 0, 0, 0xffffffff},
	{"adding 0 to 32 bits clears the high half", "w2 += 0", 0xaaaaaaaa00000001, 0, 1},
	{"shifting 32 bits by 0 clears the high half", "w2 <<= 0", 0xaaaaaaaa00000001, 0, 1},
	{"moving a word to itself clears the high half", "w2 = w2", 0xaaaaaaaa00000001, 0, 1},
	{"a divisor whose low half is 0 is 0 in 32 bits", "w2 /= w3", 1, 1ULL << 32, 0},
	{"remainder by 0 keeps the low half only", "w2 %= w3", 0x100000005, 0, 5},
	{"division by 0 gives 0", "r2 /= r3", ~0ULL, 0, 0},
	{"remainder by 0 gives the dividend", "r2 %= r3", 7, 0, 7},
	{"division is unsigned", "r2 /= -10", ~0ULL, 0, 1},
	{"the smallest number by -1", "r2 s/= r3", 1ULL << 63, ~0ULL, 1ULL << 63},
	{"its remainder", "r2 s%= r3", 1ULL << 63, ~0ULL, 0},
	{"the same in 32 bits", "w2 s/= w3", 0x80000000, 0xffffffff, 0x80000000},
	{"its remainder in 32 bits", "w2 s%= w3", 0xdeadbeef80000000, 0xffffffff, 0},
	{"the smallest by 2 in 32 bits", "w2 s/= w3", 0x80000000, 2, 0xc0000000},
	{"7 by the smallest in 32 bits", "w2 s%= w3", 7, 0x80000000, 7},
	{"a signed remainder has the dividend's sign", "r2 s%= r3", (u64)-13, 3, (u64)-1},
	{"and not the divisor's", "r2 s%= r3", 13, (u64)-3, 1},
	{"a shift by 33 is one by 1 in 32 bits", "w2 <<= w3", 1, 33, 2},
	{"a shift by 65 is one by 1 in 64 bits", "r2 <<= r3", 1, 65, 2},
	{"a 32-bit right shift cuts first", "w2 >>= w3", 1ULL << 32, 31, 0},
	{"an arithmetic shift by 68", "r2 s>>= r3", 1ULL << 63, 68, 0xf800000000000000},
	{"an arithmetic shift in 32 bits looks at bit 31", "w2 s>>= 4", 0xffffffff40000000, 0,
	 0x04000000},
	{"le16 truncates", "r2 = le16 r2", 0x1122334455667788, 0, 0x7788},
	{"be32 drops the high half", "r2 = be32 r2", 0xffffffff11223344, 0, 0x44332211},
	{"bswap16 zero-extends", "r2 = bswap16 r2", 0x0102030405060708, 0, 0x0807},
	{"a byte moved with sign", "r2 = (s8)r3", 0, 0x1fe, (u64)-2},
	{"a byte moved with sign to a word", "w2 = (s8)w3", ~0ULL, 0xff80, 0xffffff80},
	{"a word loaded with sign", "*(u64 *)(r10 - 8) = r3; r2 = *(s32 *)(r10 - 8)", 0, 0x80000001,
	 0xffffffff80000001},
	{"a stored immediate is extended", "*(u64 *)(r10 - 8) = -2; r2 = *(u64 *)(r10 - 8)", 0, 0,
	 (u64)-2},
	{"a 32-bit fetch is zero-extended",
	 "*(u64 *)(r10 - 8) = r3; r2 = -1; w2 = atomic_fetch_add((u32 *)(r10 - 8), w2)", 0,
	 0xaaaaaaaa00000005, 5},
	{"a 32-bit atomic keeps its neighbour",
	 "*(u64 *)(r10 - 8) = r3; lock *(u32 *)(r10 - 8) += w2; r2 = *(u64 *)(r10 - 8)", 0xffffffff,
	 0x700000001, 0x700000000},
	{"cmpxchg gives the old value when it misses",
	 "*(u64 *)(r10 - 8) = r3; r0 = 2; r5 = 4; r0 = cmpxchg_64(r10 - 8, r0, r5); r2 = r0", 0, 3,
	 3},
	{"cmpxchg32 looks at the low half of r0 only",
	 "*(u64 *)(r10 - 8) = r3; r0 = r2; r5 = 9; w0 = cmpxchg32_32(r10 - 8, w0, w5); r2 = *(u64 "
	 "*)(r10 - 8)",
	 0xffffff00000003, 0x7700000003, 0x7700000009},
	{"a fetch through r0",
	 "*(u64 *)(r10 - 8) = r3; r0 = r2; r0 = atomic_fetch_and((u64 *)(r10 - 8), r0);"
	 "r2 = *(u64 *)(r10 - 8)",
	 0xff00, 0x1234, 0x1200},
};

#endif
