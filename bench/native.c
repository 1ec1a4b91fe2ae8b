// SPDX-License-Identifier: BSD-2-Clause
/* The computations of bpf/bench/compute.h as this compiler makes them, and the data they work on. */
#include <linux/types.h>
#include <string.h>

#include "bench/bench.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static __attribute__((noinline)) u64 called_out(void)
{
	__asm__ volatile("");
	return 0;
}

static __u64 cells[256];
#define COMPUTE_CALL()	 called_out()
#define COMPUTE_CELL(at) (&cells[at])
#include "bench/compute.h"

#define LOOP(name, text, pure)                                          \
	static __attribute__((noinline)) u64 loop_##name(struct compute_data *d, u64 x, u32 n) \
	{                                                               \
		for (u32 i = 0; i < n; i++)                             \
			x = compute_##name(d, x + i);                   \
		return x;                                               \
	}
COMPUTE_ROWS(LOOP)

static const struct {
	const char *name;
	u64 (*loop)(struct compute_data *d, u64 x, u32 n);
	bool calls; /* what a helper returns goes into the answer */
} loops[] = {
#define ROW(name, text, pure) { #name, loop_##name, !(pure) },
	COMPUTE_ROWS(ROW)
};

void bench_compute_data(struct compute_data *d)
{
	u64 x = 0x9e3779b97f4a7c15ULL;
	u32 i, j;

	memset(d, 0, sizeof(*d));
	for (i = 0; i < ARRAY_SIZE(d->words); i++)
		d->words[i] = x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	for (i = 0; i < ARRAY_SIZE(d->sorted); i++)
		d->sorted[i] = i << 22;
	for (i = 0; i < sizeof(d->text); i++)
		d->text[i] = "GET /index7 42 x-9"[i % 18];
	for (i = 0; i < sizeof(d->code); i++)
		d->code[i] = i * 7 % 16;
	for (i = 0; i < 64; i++) {
		u8 *p = d->packet[i], *ip = p + 14;

		if (i % 4 == 0) {
			p[12] = 0x81;
			p[16] = 8;
			ip = p + 18;
		} else {
			p[12] = 8;
		}
		ip[0] = 0x45;
		ip[9] = i % 3 ? 6 : 17;
		for (j = 20; j < 24; j++)
			ip[j] = i + j;
	}
}

static int find_loop(const char *section)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(loops); i++)
		if (!strcmp(loops[i].name, section))
			return i;
	return -1;
}

bool bench_native_result(const char *section, u32 calls, u64 *ret)
{
	static struct compute_data data;
	int at = find_loop(section);

	if (at < 0 || loops[at].calls)
		return false;
	bench_compute_data(&data);
	*ret = loops[at].loop(&data, 1, calls);
	return true;
}

bool bench_native_run(const char *section, u32 calls)
{
	static struct compute_data data;
	static u64 x;
	int at = find_loop(section);

	if (at < 0)
		return false;
	if (!x) {
		bench_compute_data(&data);
		x = 1;
	}
	x = loops[at].loop(&data, x, calls) | 1;
	return true;
}
