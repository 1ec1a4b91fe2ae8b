// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs for the mistakes verifiers made: each kind of public bug of the kernel's and of others' verifiers that this
 * release's rules touch, accepted and refused twins. Each is judged alone, with and without forced checkpoints, and the
 * running kernel, if it may be asked, must say the same.
 */
#include <linux/bpf.h>
#include <string.h>

#include "tests/tap.h"
#include "vt.h"

struct row {
	const char *name;
	bool accept;
	const char *text, *reason;
	bool linux_differs; /* deliberately: docs/kernel-differences.md */
};

/* r0 = value of map1 (48 bytes), r7 = an unknown 64-bit number from it, r3 another */
#define VALUE                                                                                      \
	"*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = map1; call 1; if r0 == 0 goto out;"         \
	"r7 = *(u64 *)(r0 + 0); r3 = *(u64 *)(r0 + 8);"
#define INDEX "r0 += r7; r0 = *(u64 *)(r0 + 0);"
#define END " out: r0 = 0; exit"
#define BAD " bad: r0 = *(u64 *)(r7 + 0);" END
#define HASH "*(u64 *)(r10 - 8) = 0; r2 = r10; r2 += -8; r1 = map2; call 1;"
/* r0 = a map out of a map of maps with 4-byte keys */
#define INNER(outer) "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = " outer "; call 1; if r0 == 0 goto out;"
#define INNER_KEY4 "r2 = r10; r2 += -4; r1 = r0;"
#define INNER_KEY8 "*(u64 *)(r10 - 16) = 0; r2 = r10; r2 += -16; r1 = r0;"
#define TAIL "r2 = map4; r3 = 1; call 12;"
#define RECORD "r1 = map3; r2 = 16; r3 = 0; call 131;"

static const struct row rows[] = {
	/* signs and widths */
	{ "32-bit move of -1 is not 64-bit -1", true, "w2 = -1; r3 = -1; if r2 != r3 goto out; r0 = *(u64 *)(r2 + 0);" END, 0 },
	{ "64-bit move of -1 is -1", false, "r2 = -1; r3 = -1; if r2 != r3 goto out; r0 = *(u64 *)(r2 + 0);" END,
	  "R2 invalid mem access 'scalar'" },
	{ "a bound on the whole, then cut to its low half", true, VALUE "if r7 > 40 goto out; w7 = w7;" INDEX END, 0 },
	{ "a bound on the low half, then the whole", false, VALUE "w8 = w7; if r8 > 40 goto out;" INDEX END, 0 },
	{ "logical shift of a negative number is large", false, VALUE "r7 |= -8; r7 >>= 62; r7 <<= 4;" INDEX END, 0 },
	{ "logical shift of a negative number, in bounds", true, VALUE "r7 |= -8; r7 >>= 62; r7 <<= 3;" INDEX END, 0 },
	{ "a 32-bit comparison says nothing of the upper half", false, VALUE "if w7 != 5 goto out; r7 >>= 32;" INDEX END, 0 },
	{ "a 32-bit comparison pins the lower half", true, VALUE "if w7 != 5 goto out; w7 = w7; r7 += 3;" INDEX END, 0 },
	{ "or of low halves keeps upper bits of neither", false, VALUE "if r7 > 7 goto out; r3 <<= 32; r7 |= r3;" INDEX END, 0 },
	{ "both halves constant: and", true, VALUE "r7 = 9; r3 = 24; w7 &= w3;" INDEX END, 0 },
	{ "64-bit lower bound is none of the low half", false,
	  VALUE "if r7 < 1 goto out; w7 = w7; if r7 == 0 goto bad; goto out;" BAD, "R7 invalid mem access 'scalar'" },
	{ "32-bit sum may wrap to negative", false, VALUE "r7 &= 1; w7 += 0x7fffffff; if w7 s< 0 goto bad; goto out;" BAD,
	  "R7 invalid mem access 'scalar'" },
	{ "zero-extended 32-bit move has no sign", true, VALUE "w7 |= -2147483648; w3 = w7; if r3 s< 0 goto bad; goto out;" BAD, 0 },
	{ "sum that wraps for some is anything", false, VALUE "if r7 < 40 goto out; r7 += -48;" INDEX END, 0 },
	{ "product of two 32-bit numbers fills 64", false, VALUE "w7 = w7; w3 = w3; r7 *= r3; r7 >>= 63; r7 *= 48;" INDEX END, 0 },
	{ "sign extension of an unsigned byte", false, VALUE "r7 &= 255; r7 = (s8)r7; if r7 s> 40 goto out;" INDEX END, 0 },
	{ "sign extension of 7 bits changes nothing", true, VALUE "r7 &= 31; r7 = (s8)r7;" INDEX END, 0 },
	{ "sign-extending load is signed", false, VALUE "r7 = *(s8 *)(r0 + 3); if r7 s> 40 goto out;" INDEX END, 0 },
	{ "bit test not taken clears the bits", true, VALUE "if r7 & -32 goto out;" INDEX END, 0 },
	{ "bit test taken of several bits teaches nothing", false, VALUE "if r7 & 24 goto a; goto out; a: r7 &= 0xff;" INDEX END, 0 },
	{ "division is not followed", false, VALUE "r7 &= 31; r7 /= r3;" INDEX END, 0 },
	{ "byte swap of two bytes", false, VALUE "r7 &= 1; r7 = bswap16 r7;" INDEX END, 0 },
	/* precision and pruning */
	{ "an index that one path made large", false,
	  VALUE "r8 = r0; r9 = 0; if r3 == 0 goto a; r9 = 64; a: if r7 == 1 goto b; r2 = 0; b: r8 += r9; r0 = *(u64 *)(r8 + 0);" END, 0 },
	{ "the same, the other way round", false,
	  VALUE "r8 = r0; r9 = 64; if r3 == 0 goto a; r9 = 0; a: if r7 == 1 goto b; r2 = 0; b: r8 += r9; r0 = *(u64 *)(r8 + 0);" END, 0 },
	{ "an index that went through the stack", false,
	  VALUE "r8 = r0; r9 = 0; if r3 == 0 goto a; r9 = 64; a: *(u64 *)(r10 - 16) = r9; if r7 == 1 goto b; r2 = 0; b:"
		"r9 = *(u64 *)(r10 - 16); r8 += r9; r0 = *(u64 *)(r8 + 0);" END, 0 },
	{ "an index that went through the stack by another register", false,
	  VALUE "r8 = r0; r6 = r10; r6 += -16; r9 = 0; if r3 == 0 goto a; r9 = 64; a: *(u64 *)(r6 + 0) = r9; if r7 == 1 goto b;"
		"r2 = 0; b: r9 = *(u64 *)(r10 - 16); r8 += r9; r0 = *(u64 *)(r8 + 0);" END, 0 },
	{ "a number and a pointer meet", false,
	  VALUE "r9 = r0; if r7 == 1 goto a; r9 = r7; a: if r3 == 1 goto b; r2 = 0; b: *(u64 *)(r9 + 0) = 1;" END, 0 },
	{ "a copy narrows with its source", true, VALUE "r9 = r7; if r9 > 40 goto out;" INDEX END, 0 },
	{ "a sum narrows with its source", true, VALUE "r9 = r7; r9 += -1; if r9 > 39 goto out;" INDEX END, 0 },
	{ "a sum of 32 bits says nothing of 64", false, VALUE "r9 = r7; w9 += 1; if w9 > 39 goto out;" INDEX END, 0 },
	{ "a sum too far drops the link", false, VALUE "r9 = r7; r9 -= -2147483648; if r9 > 40 goto out;" INDEX END, 0 },
	{ "a copy changed since is no copy", false, VALUE "r9 = r7; r9 *= 2; if r9 > 40 goto out;" INDEX END, 0 },
	{ "a register written on one path only", false, "call 7; if r0 == 0 goto m; r3 = 1; m: r0 = r3; exit", "R3 !read_ok" },
	{ "sign extension of the frame pointer is a number", false, "r2 = (s16)r10; *(u64 *)(r2 - 8) = 0;" END,
	  "R2 invalid mem access 'scalar'" },
	/* stack */
	{ "the upper half of a slot is not what was spilled in the lower", false,
	  VALUE "r7 &= 0xff; *(u32 *)(r10 - 12) = r7; r8 = 8; *(u32 *)(r10 - 16) = r8; r7 = *(u32 *)(r10 - 12);" INDEX END, 0 },
	{ "the lower half is", true,
	  VALUE "*(u32 *)(r10 - 12) = r7; r8 = 8; *(u32 *)(r10 - 16) = r8; r7 = *(u32 *)(r10 - 16);" INDEX END, 0 },
	{ "a byte over a spilled pointer", false, "*(u64 *)(r10 - 8) = r10; *(u8 *)(r10 - 8) = 0; r2 = *(u64 *)(r10 - 8);"
						  "*(u64 *)(r2 - 16) = 0;" END, "R2 invalid mem access 'scalar'" },
	{ "a byte over a spilled number", false, VALUE "*(u64 *)(r10 - 16) = 8; *(u8 *)(r10 - 14) = r3; r7 = *(u64 *)(r10 - 16);" INDEX END, 0 },
	{ "half a spilled pointer", false, "*(u64 *)(r10 - 8) = r10; r2 = *(u32 *)(r10 - 8);" END, "invalid size of register fill" },
	{ "a pointer spilled in 4 bytes", false, "*(u32 *)(r10 - 8) = r10;" END, "invalid size of register spill" },
	{ "a variable write over a spilled number", false,
	  VALUE "*(u64 *)(r10 - 16) = 8; r8 = r10; r8 += -16; r3 &= 7; r8 += r3; *(u8 *)(r8 + 0) = r7; r7 = *(u64 *)(r10 - 16);" INDEX END, 0 },
	{ "a variable write over a spilled pointer", false,
	  VALUE "*(u64 *)(r10 - 16) = r0; r8 = r10; r8 += -16; r3 &= 4; r8 += r3; *(u32 *)(r8 + 0) = r7; r0 = *(u64 *)(r10 - 16);"
		"r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "a helper writes over a spilled number", false,
	  VALUE "r9 = r0; *(u64 *)(r10 - 16) = 8; r1 = r10; r1 += -16; r2 = 8; r3 = 0; call 113; r7 = *(u64 *)(r10 - 16); r9 += r7;"
		"r0 = *(u64 *)(r9 + 0);" END, 0 },
	{ "a callee writes over a spilled number", false,
	  VALUE "r9 = r0; *(u64 *)(r10 - 16) = 8; r1 = r10; r1 += -16; r2 = r7; call f; r7 = *(u64 *)(r10 - 16); r9 += r7;"
		"r0 = *(u64 *)(r9 + 0);" END "; f: *(u64 *)(r1 + 0) = r2; r0 = 0; exit", 0 },
	{ "a write below the frame", false, "*(u64 *)(r10 - 520) = 0;" END, "invalid write to stack R10 off=-520 size=8" },
	{ "a write above the frame", false, "*(u64 *)(r10 + 0) = 0;" END, "invalid write to stack R10 off=0 size=8" },
	{ "the callee's stack is gone", false, "call f; r0 = *(u64 *)(r0 - 8); exit; f: *(u64 *)(r10 - 8) = 1; r0 = r10; exit",
	  "cannot return stack pointer to the caller" },
	{ "an atomic operation on a misaligned address", false, "*(u64 *)(r10 - 16) = 0; r1 = 1; lock *(u32 *)(r10 - 14) += r1;" END, 0 },
	/* pointers */
	{ "arithmetic on a pointer that may be NULL", false, HASH "r0 += 8; if r0 == 0 goto out; r0 += -8; r0 = *(u64 *)(r0 + 0);" END,
	  "R0 pointer arithmetic on map_value_or_null prohibited, null-check it first" },
	{ "no NULL check", false, HASH "r0 = *(u64 *)(r0 + 0);" END, "R0 invalid mem access 'map_value_or_null'" },
	{ "the NULL check of a copy", true, HASH "r6 = r0; if r6 == 0 goto out; r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "the NULL check of a spilled copy", true,
	  HASH "*(u64 *)(r10 - 16) = r0; if r0 == 0 goto out; r6 = *(u64 *)(r10 - 16); r0 = *(u64 *)(r6 + 0);" END, 0 },
	{ "the NULL check of another lookup", false,
	  HASH "r6 = r0; r2 = r10; r2 += -8; r1 = map2; call 1; if r0 == 0 goto out; r0 = *(u64 *)(r6 + 0);" END, 0 },
	{ "a 32-bit NULL check", false, HASH "if w0 == 0 goto out; r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "an array's element at a constant key", true,
	  "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = map1; call 1; r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "an array's element beyond its end", false,
	  "*(u32 *)(r10 - 4) = 0; *(u32 *)(r10 - 8) = 1; r2 = r10; r2 += -8; r1 = map1; call 1; r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "the last bytes of a value", true, VALUE "r0 = *(u64 *)(r0 + 40);" END, 0 },
	{ "one byte beyond", false, VALUE "r0 = *(u64 *)(r0 + 41);" END, 0 },
	{ "one byte before", false, VALUE "r0 = *(u8 *)(r0 - 1);" END, 0 },
	{ "an offset that cancels out", true, VALUE "r0 += 1000; r0 -= 1000; r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "an offset beyond 2^29", false, VALUE "r0 += 0x1fffffff; r0 += 0x1fffffff; r0 += 0x1fffffff;" END, 0 },
	{ "a signed check lets negatives in", false, VALUE "if r7 s> 40 goto out;" INDEX END, 0 },
	{ "pointer plus pointer", false, "r2 = r10; r2 += r10;" END, "R2 pointer += pointer prohibited" },
	{ "number minus pointer", false, "r2 = 8; r2 -= r10;" END, "R2 tried to subtract pointer from scalar" },
	{ "and of a pointer", false, "r2 = r10; r2 &= 8;" END, "R2 bitwise operator &= on pointer prohibited" },
	{ "32-bit arithmetic on a pointer", false, "w10 = w10;" END, "frame pointer is read only" },
	{ "32-bit copy of a pointer is a number", false, "w2 = w10; *(u64 *)(r2 - 8) = 0;" END, "R2 invalid mem access 'scalar'" },
	{ "a moved context", false, "r1 += 8; r2 = r1; r2 += r1;" END, 0 },
	{ "an unknown offset into the context", false, "r6 = r1; call 7; r0 &= 8; r6 += r0; r0 = *(u64 *)(r6 + 0);" END, 0 },
	{ "a write to the context", false, "*(u64 *)(r1 + 0) = 0;" END, 0 },
	{ "a read beyond the context", false, "r0 = *(u64 *)(r1 + 96);" END, 0 },
	{ "one instruction, two kinds of memory", false,
	  "r6 = r1; call 7; r2 = r10; r2 += -8; *(u64 *)(r2 + 0) = 0; if r0 == 0 goto a; r2 = r6; a: r0 = *(u64 *)(r2 + 0);" END, 0 },
	/* helpers */
	{ "a key that is too short", false, "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = map2; call 1;" END, 0 },
	{ "a number for a map", false, "r1 = 0; r2 = r10; r2 += -8; call 1;" END, "R1 type=scalar expected=map_ptr" },
	{ "a size that may be negative", false, VALUE "r1 = r10; r1 += -64; r2 = r7; r3 = 0; if r2 s> 8 goto out; call 113;" END,
	  "R2 min value is negative, either use unsigned or 'var &= const'" },
	{ "a size one too large", false, "r1 = r10; r1 += -16; r2 = 17; r3 = 0; call 113;" END, 0 },
	{ "a size that fits", true, "r1 = r10; r1 += -16; r2 = 16; r3 = 0; call 113;" END, 0 },
	{ "a buffer in a map value, one too large", false, VALUE "r1 = r0; r2 = 49; r3 = 0; call 113;" END, 0 },
	{ "a buffer in a map value", true, VALUE "r1 = r0; r2 = 48; r3 = 0; call 113;" END, 0 },
	{ "a helper writes to a read-only map", false,
	  "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = map5; call 1; if r0 == 0 goto out; r1 = r0; r2 = 8; r3 = 0; call 113;" END,
	  "write into map forbidden, value_size=48 off=0 size=8" },
	{ "a store to a read-only map", false,
	  "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = map5; call 1; if r0 == 0 goto out; *(u64 *)(r0 + 0) = 1;" END, 0 },
	{ "a ring buffer helper on an array", false, "r1 = map1; r2 = 16; r3 = 0; call 131; if r0 == 0 goto out; r1 = r0; r2 = 0; call 132;" END, 0 },
	{ "a lookup in a ring buffer", false, "*(u64 *)(r10 - 8) = 0; r2 = r10; r2 += -8; r1 = map3; call 1;" END,
	  "invalid zero-sized read" },
	{ "arguments do not survive a call", false, "r1 = 5; call 7; r0 = r1;" END, "R1 !read_ok" },
	/* references */
	{ "a record, submitted", true, RECORD "if r0 == 0 goto out; *(u64 *)(r0 + 8) = 1; r1 = r0; r2 = 0; call 132;" END, 0 },
	{ "a record, forgotten", false, RECORD "if r0 == 0 goto out; *(u64 *)(r0 + 8) = 1;" END,
	  "BPF_EXIT instruction in main prog would lead to reference leak" },
	{ "a record, forgotten on one path", false,
	  RECORD "if r0 == 0 goto out; r6 = r0; call 7; r1 = r6; r2 = 0; if r0 == 1 goto out; call 132;" END, 0 },
	{ "a record, submitted twice", false, RECORD "if r0 == 0 goto out; r6 = r0; r1 = r0; r2 = 0; call 132; r1 = r6; r2 = 0; call 132;" END, 0 },
	{ "a record used after", false, RECORD "if r0 == 0 goto out; r6 = r0; r1 = r0; r2 = 0; call 132; *(u64 *)(r6 + 0) = 1;" END,
	  "R6 invalid mem access 'scalar'" },
	{ "a moved record", false, RECORD "if r0 == 0 goto out; r1 = r0; r1 += 8; r2 = 0; call 132;" END, 0 },
	{ "a record that may be NULL", false, RECORD "r1 = r0; r2 = 0; call 132;" END, 0 },
	{ "other memory as a record", false, VALUE "r1 = r0; r2 = 0; call 132;" END, 0 },
	{ "a record's header", false, RECORD "if r0 == 0 goto out; *(u64 *)(r0 - 8) = 1; r1 = r0; r2 = 0; call 132;" END, 0 },
	{ "a record spilled and back", true,
	  RECORD "if r0 == 0 goto out; *(u64 *)(r10 - 8) = r0; call 7; r1 = *(u64 *)(r10 - 8); r2 = 0; call 132;" END, 0 },
	{ "a record submitted by a callee", true,
	  RECORD "if r0 == 0 goto out; r1 = r0; call f;" END "; f: r2 = 0; call 132; r0 = 0; exit", 0 },
	{ "what a half write leaves of a number is not the half", false,
	  VALUE "*(u64 *)(r10 - 24) = r7; r1 = 4; *(u32 *)(r10 - 24) = r1; r7 = *(u32 *)(r10 - 20);" INDEX END, 0 },
	/* maps that programs may only read, contexts that moved */
	{ "an update of a read-only map", false,
	  "*(u32 *)(r10 - 4) = 0; r1 = 0; *(u64 *)(r10 - 56) = r1; *(u64 *)(r10 - 48) = r1; *(u64 *)(r10 - 40) = r1;"
	  "*(u64 *)(r10 - 32) = r1; *(u64 *)(r10 - 24) = r1; *(u64 *)(r10 - 16) = r1; r1 = map5; r2 = r10; r2 += -4;"
	  "r3 = r10; r3 += -56; r4 = 0; call 2;" END, "write into map forbidden" },
	{ "a delete from a read-only map", false, "*(u32 *)(r10 - 4) = 0; r1 = map5; r2 = r10; r2 += -4; call 3;" END,
	  "write into map forbidden" },
	{ "a context pointer that was moved", false, "r1 += 8; r0 = *(u64 *)(r1 + 0);" END,
	  "dereference of modified ctx ptr R1 off=8 disallowed" },
	/* maps of maps */
	{ "a map out of an array of maps", true, INNER("map9") INNER_KEY4 "call 1; if r0 == 0 goto out; r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "a map that may not be there", false,
	  "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = map9; call 1; r2 = r10; r2 += -4; r1 = r0; call 1;" END,
	  "R1 type=map_value_or_null expected=map_ptr" },
	{ "an element of it that may not be there", false, INNER("mapa") INNER_KEY8 "call 1; r0 = *(u64 *)(r0 + 0);" END,
	  "R0 invalid mem access 'map_value_or_null'" },
	{ "its key is too short", false, INNER("mapa") INNER_KEY4 "call 1;" END, 0 },
	{ "beyond its values", false, INNER("mapa") INNER_KEY8 "call 1; if r0 == 0 goto out; r0 = *(u64 *)(r0 + 8);" END,
	  "R0 min value is outside of the allowed memory range" },
	{ "a constant index into an inner array", true, INNER("map9") INNER_KEY4 "call 1; r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "a map out of a hash of maps", true,
	  INNER("mapb") INNER_KEY8 "call 1; if r0 == 0 goto out; r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "an update of it", true, INNER("mapb") INNER_KEY8 "r3 = r2; r4 = 0; call 2;" END, 0 },
	{ "a delete from it", true, INNER("mapb") INNER_KEY8 "call 3;" END, 0 },
	{ "a program puts a map into a map of maps", false,
	  "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r3 = r2; r4 = 0; r1 = map9; call 2;" END,
	  "cannot pass map_type 12 into func bpf_map_update_elem#2" },
	{ "a program deletes from a map of maps", false, "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = mapb; call 3;" END,
	  "cannot pass map_type 13 into func bpf_map_delete_elem#3" },
	{ "a store into an inner map itself", false, INNER("map9") "*(u64 *)(r0 + 0) = 1;" END, 0 },
	{ "a map of maps or a map: both ways have the shape", true,
	  "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = map9; call 1; r1 = map7; if r0 == 0 goto m; r1 = r0; m: r2 = r10; r2 += -4;"
	  "call 1; if r0 == 0 goto out; r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "an inner map spilled", true,
	  INNER("mapa") "*(u64 *)(r10 - 24) = r0; call 7; r0 = *(u64 *)(r10 - 24);" INNER_KEY8 "call 1; if r0 == 0 goto out;"
	  "r0 = *(u64 *)(r0 + 0);" END, 0 },
	{ "the NULL check of an inner map's copy", true, "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = mapa; call 1; r6 = r0;"
	  "if r6 == 0 goto out;" INNER_KEY8 "call 1;" END, 0 },
	{ "an inner map that was moved", false, INNER("mapa") "r0 += 8;" INNER_KEY8 "call 1;" END, 0 },
	/* tail calls */
	{ "a tail call", true, TAIL END, 0 },
	{ "what a tail call would return", false, TAIL "exit", "R0 !read_ok" },
	{ "a tail call with a number for the context", false, "r1 = 0;" TAIL END, "R1 type=scalar expected=ctx" },
	{ "a tail call through another map", false, "r2 = map1; r3 = 0; call 12;" END, 0 },
	{ "a lookup in a program array", false, "*(u32 *)(r10 - 4) = 0; r2 = r10; r2 += -4; r1 = map4; call 1;" END,
	  "cannot pass map_type 3 into func bpf_map_lookup_elem#1" },
	{ "a tail call with an index nobody knows", true, "r6 = r1; call 7; r1 = r6; r2 = map4; r3 = r0; call 12;" END, 0 },
	{ "a tail call with a record held", false, "r6 = r1;" RECORD "r7 = r0; r1 = r6;" TAIL "r1 = r7; if r1 == 0 goto out; r2 = 0; call 132;" END,
	  "tail_call would lead to reference leak" },
	{ "a tail call in a function without BTF", false, "call f; r0 = 0; exit; f:" TAIL "r0 = 0; exit",
	  "tail_call is not allowed in subprogs without BTF" },
	/* flow */
	{ "a bounded loop", true, "r6 = 0; l: r6 += 1; if r6 < 100 goto l;" END, 0 },
	{ "an endless loop", false, "r6 = 0; l: if r6 == 0 goto l;" END, 0 },
	{ "a loop that never ends", false, "l: goto l; exit", 0 },
	{ "may_goto bounds a loop", true, "r6 = 0; l: may_goto out; r6 += 1; goto l;" END, 0 },
	{ "what a may_goto loop counts may be anything", false,
	  VALUE "r8 = r0; r6 = 0; l: may_goto e; r6 += 8; goto l; e: r8 += r6; r0 = *(u64 *)(r8 + 0);" END, 0 },
	{ "unreachable code", false, "r0 = 0; exit; r0 = 1; exit", "unreachable insn 2" },
	{ "falling off the end", false, "r0 = 0", "last insn is not an exit or jmp" },
	{ "recursion", false, "call f; r0 = 1; exit; f: call f; r0 = 0; exit", "the call stack of 9 frames is too deep" },
	{ "two frames of 300 bytes", false, "*(u64 *)(r10 - 296) = 0; call f; r0 = 1; exit; f: *(u64 *)(r10 - 296) = 0; r0 = 0; exit",
	  "combined stack size of 2 calls is 608. Too large", true },
	{ "two frames of 240 bytes", true, "*(u64 *)(r10 - 240) = 0; call f; r0 = 1; exit; f: *(u64 *)(r10 - 240) = 0; r0 = 0; exit", 0 },
	{ "the callee keeps r6 to r9", true, "r6 = r10; call f; *(u64 *)(r6 - 8) = 0; r0 = 1; exit; f: r6 = 0; r0 = 0; exit", 0 },
	{ "a result unset on one way out", false, "call f; r0 = r0; exit; f: if r1 == 0 goto a; r0 = 1; a: exit", 0 },
};

static void judge(struct vt *t, const struct row *r, u32 flags)
{
	struct vt_verdict ours, theirs;
	struct isa_code code;

	if (!vt_assemble(r->text, &code)) {
		ok(false, "%s: assembles", r->name);
		return;
	}
	vt_judge(t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, flags, 1, &ours);
	if (!ok(!ours.err == r->accept, "%s: %s%s", r->name, r->accept ? "accepted" : "refused", flags ? ", checkpoints forced" : ""))
		printf("# %s\n", ours.reason);
	if (r->reason && !ok(!strcmp(ours.reason, r->reason), "%s: in the kernel's words", r->name))
		printf("# got %s\n", ours.reason);
	if (t->kernel && !r->linux_differs) {
		vt_ask_kernel(t, code.insns, code.len, BPF_PROG_TYPE_RAW_TRACEPOINT, flags, 1, &theirs);
		if (!ok(!theirs.err == r->accept, "%s: the kernel agrees", r->name))
			printf("# kernel: %s\n", theirs.reason);
		if (strcmp(theirs.reason, ours.reason) && ours.err)
			printf("# other words: %s\n#      kernel: %s\n", ours.reason, theirs.reason);
		vt_verdict_fini(&theirs);
	}
	vt_verdict_fini(&ours);
	isa_code_fini(&code);
}

int main(void)
{
	struct vt t;

	vt_init(&t);
	if (!t.kernel)
		printf("# the kernel is not asked: %s\n", t.why_not);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		judge(&t, &rows[i], 0);
		judge(&t, &rows[i], BPF_F_TEST_STATE_FREQ);
	}
	vt_fini(&t);
	return tap_done();
}
