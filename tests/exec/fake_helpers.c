// SPDX-License-Identifier: BSD-2-Clause
// Helpers for engine tests, in place of the real ones: what they get and give is known exactly.
#include "env/env.h"
#include "object/helper.h"
#include "object/prog.h"

/* For tests that link no machine; one that does brings its own. */
__attribute__((weak, tls_model("initial-exec"))) __thread struct env_tls env_tls;

/* A number in which every argument is seen. */
static u64 mix(u64 a, u64 b, u64 c, u64 d, u64 e)
{
	return a + 3 * b + 5 * c + 7 * d + 11 * e;
}

/* Calls f(i, ctx) n times; the sum of what it returns. */
static u64 sum_calls(u64 n, u64 func, u64 ctx, u64 r4, u64 r5)
{
	struct bpf_func *f = (struct bpf_func *)func;
	u64 i, sum = 0;

	for (i = 0; i < n; i++)
		sum += f->call(f, i, ctx, 0, 0, 0);
	return sum;
}

/* How far the stack is from where a C function may expect it. */
static u64 misaligned(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return (u64)__builtin_frame_address(0) & 15;
}

static const struct helper_desc helpers[] = {
	[1] = { .name = "mix", .id = 1, .fn = mix },
	[2] = { .name = "sum_calls", .id = 2, .fn = sum_calls },
	[3] = { .name = "judged_only", .id = 3 },
	[4] = { .name = "storage_get", .id = 4, .fn = mix, .flags = HELPER_STORAGE_GET },
	[5] = { .name = "misaligned", .id = 5, .fn = misaligned },
	[12] = { .name = "tail_call", .id = 12, .flags = HELPER_TAIL_CALL },
};

const struct helper_desc *helper_by_id(u32 id)
{
	return id < ARRAY_SIZE(helpers) && helpers[id].name ? &helpers[id] : NULL;
}

const char *helper_name(u32 id)
{
	return id < ARRAY_SIZE(helpers) && helpers[id].name ? helpers[id].name : "unknown";
}
