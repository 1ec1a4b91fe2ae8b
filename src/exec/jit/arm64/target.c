// SPDX-License-Identifier: BSD-2-Clause
// The arm64 compiler: known to the driver and built everywhere, but it claims no row, so nothing is compiled by it.
#include "exec/jit/jit.h"

static bool claims(enum isa_op op)
{
	return false;
}

const struct jit_target jit_target_arm64 = {
	.arch = "arm64",
	.caps = { .name = "jit" },
#if defined(__aarch64__)
	.native = true,
#endif
	.claims = claims,
};
