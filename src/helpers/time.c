// SPDX-License-Identifier: BSD-2-Clause
// Clocks. In a replay all of them are the recording's; outside one each is the host's clock of that kind.
#include <time.h>

#include "env/env.h"
#include "helpers/helpers_int.h"

/* Jiffies of a kernel built with HZ=250, the usual one; Linux starts the count five minutes before zero wraps. */
#define JIFFY_NS (1000000000ULL / 250)
#define INITIAL_JIFFIES ((u64)(u32)(-300 * 250))

static u64 read_clock(clockid_t id)
{
	struct timespec ts;

	if (env_clock_kind(env_tls.env) == ENV_CLOCK_MANUAL)
		return env_clock_ns(env_tls.env);
	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static u64 ktime_get_ns(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return env_clock_ns(env_tls.env);
}

const struct helper_desc helper_ktime_get_ns = {
	HELPER_IS(ktime_get_ns, 5),
	.fn = ktime_get_ns,
	.flags = HELPER_PURE,
	.ret = RET_INTEGER,
};

static u64 ktime_get_boot_ns(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return read_clock(CLOCK_BOOTTIME);
}

const struct helper_desc helper_ktime_get_boot_ns = {
	HELPER_IS(ktime_get_boot_ns, 125),
	.fn = ktime_get_boot_ns,
	.flags = HELPER_PURE,
	.ret = RET_INTEGER,
};

static u64 ktime_get_coarse_ns(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

const struct helper_desc helper_ktime_get_coarse_ns = {
	HELPER_IS(ktime_get_coarse_ns, 160),
	.fn = ktime_get_coarse_ns,
	.flags = HELPER_PURE,
	.ret = RET_INTEGER,
};

static u64 ktime_get_tai_ns(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return read_clock(CLOCK_TAI);
}

const struct helper_desc helper_ktime_get_tai_ns = {
	HELPER_IS(ktime_get_tai_ns, 208),
	.fn = ktime_get_tai_ns,
	.flags = HELPER_PURE,
	.ret = RET_INTEGER,
};

static u64 jiffies64(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return INITIAL_JIFFIES + env_clock_ns(env_tls.env) / JIFFY_NS;
}

/* Linux reads its own variable, whose address is not ours to give. */
static int shown_jiffies64(const struct gen_call *call, struct gen *g)
{
	gen_imm64(g, 0, 0);
	gen_load(g, BPF_DW, 0, 0, 0);
	return 1;
}

const struct helper_desc helper_jiffies64 = {
	HELPER_IS(jiffies64, 118),
	.fn = jiffies64,
	.shown = shown_jiffies64,
	.flags = HELPER_PURE,
	.ret = RET_INTEGER,
};
