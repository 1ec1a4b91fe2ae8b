// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who ran when: shares out of rqs_history, shortened again and again and not at all, equal those of
 * a plain list of all switches; what was overwritten before it was read is unknown, never invented.
 */
#include <string.h>

#include "rqs.h"
#include "tap.h"

#define CPUS	 2
#define RING	 64
#define SWITCHES 40000
#define TASKS	 40

struct entry {
	u64 ts;
	s32 tid;
};

static u64 seed = 1;
static struct entry all[CPUS][SWITCHES + 1];
static u32 nr[CPUS];
static char mem[CPUS][sizeof(struct rqs_cpu) + RING * sizeof(struct rqs_ran)]
	__attribute__((aligned(8)));

static u32 rnd(u32 n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(seed >> 33) % n;
}

static struct rqs_cpu *shared(u32 cpu)
{
	return (struct rqs_cpu *)mem[cpu];
}

/* As the BPF program does it. */
static void write_switch(u32 cpu, u64 ts, s32 prev, s32 next)
{
	struct rqs_cpu *c = shared(cpu);
	s32 tid[2] = { prev, next };
	u64 when[2] = { 0, ts };

	for (int i = c->pos ? 1 : 0; i < 2; i++) {
		struct rqs_ran *ran = &c->ran[(c->pos) & (RING - 1)];

		ran->ts = when[i];
		ran->tid = tid[i];
		snprintf(ran->comm, sizeof(ran->comm), "t%d", tid[i]);
		c->pos++;
		all[cpu][nr[cpu]++] = (struct entry){ when[i], tid[i] };
	}
}

/* Shares of [start, end) on cpu from the plain list, up to entry pos. */
static u64 plain(u32 cpu, u64 start, u64 end, u64 pos, s32 tid)
{
	u64 sum = 0;

	for (u64 i = 0; i < pos; i++) {
		u64 from = max_of(all[cpu][i].ts, start);
		u64 to = min_of(i + 1 < nr[cpu] ? all[cpu][i + 1].ts : end, end);

		if (all[cpu][i].tid == tid && to > from)
			sum += to - from;
	}
	return sum;
}

static bool same_shares(u32 cpu, u64 start, u64 end, u64 pos, const struct rqs_shares *s)
{
	u64 sum = 0;

	for (u32 i = 0; i < s->nr; i++) {
		if (s->s[i].ns != plain(cpu, start, end, pos, s->s[i].tid))
			return false;
		if (i && s->s[i].ns > s->s[i - 1].ns)
			return false;
		sum += s->s[i].ns;
	}
	return sum == end - start;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Waits of random length, many at once; reduce says how often the history is shortened. */
static void random_history(u32 reduce, u64 step)
{
	struct rqs_bpf bpf = {
		.mem = mem[0], .cpu_size = sizeof(mem[0]), .nr_cpus = CPUS, .ring_mask = RING - 1
	};
	struct rqs_history *h = rqs_history_create(CPUS, 1000);
	u64 pending[TASKS] = {}, now = 1000;
	struct rqs_shares s = {};
	u32 checked = 0, wrong = 0;
	s32 current[CPUS] = { 0, 0 };

	memset(mem, 0, sizeof(mem));
	nr[0] = nr[1] = 0;
	pending[0] = 1000; /* one that waits all the time */
	for (u32 i = 0; i < SWITCHES / 2; i++) {
		u32 cpu = rnd(CPUS), task = 1 + rnd(TASKS - 1);
		s32 next = rnd(4) ? 100 + (s32)task : 0;

		now += rnd(step);
		if (!rnd(3) && !pending[task])
			pending[task] = now;
		now += rnd(step);
		write_switch(cpu, now, current[cpu], next);
		current[cpu] = next;
		if (!(i % 16) || !rnd(20))
			rqs_history_drain(h, &bpf);
		if (next && pending[task] && !rnd(4)) {
			rqs_history_drain(h, &bpf);
			rqs_history_ran(h, cpu, pending[task], now, nr[cpu] - 1, &s);
			wrong += !same_shares(cpu, pending[task], now, nr[cpu] - 1, &s);
			checked++;
			pending[task] = 0;
		}
		if (reduce && i % reduce == reduce - 1) {
			u64 starts[TASKS];
			u32 n = 0;

			rqs_history_drain(h, &bpf);
			for (u32 t = 0; t < TASKS; t++)
				if (pending[t])
					starts[n++] = pending[t];
			qsort(starts, n, sizeof(*starts), by_value);
			rqs_history_reduce(h, starts, n, now);
		}
	}
	rqs_history_drain(h, &bpf);
	ok(checked > 1000 && !wrong,
	   "%u waits have the right shares, shortened every %u switches (%u wrong)", checked,
	   reduce, wrong);
	for (u32 cpu = 0; cpu < CPUS; cpu++) {
		rqs_history_ran(h, cpu, 1000, now + 5, U64_MAX, &s);
		ok(same_shares(cpu, 1000, now + 5, nr[cpu], &s),
		   "one that waits from start to end has too, on CPU %u", cpu);
	}
	ok(rqs_history_lost(h) == 0, "nothing is lost");
	rqs_shares_fini(&s);
	rqs_history_destroy(h);
}

static void overwritten(void)
{
	struct rqs_bpf bpf = {
		.mem = mem[0], .cpu_size = sizeof(mem[0]), .nr_cpus = CPUS, .ring_mask = RING - 1
	};
	struct rqs_history *h = rqs_history_create(CPUS, 0);
	struct rqs_shares s = {};
	u64 unknown = 0, sum = 0, now = 0;

	memset(mem, 0, sizeof(mem));
	nr[0] = 0;
	for (int i = 0; i < 10; i++)
		write_switch(0, now += 10, 100 + i, 101 + i);
	rqs_history_drain(h, &bpf);
	for (int i = 0; i < 10 * RING; i++)
		write_switch(0, now += 10, 200, 201);
	rqs_history_drain(h, &bpf);
	for (int i = 0; i < 10; i++)
		write_switch(0, now += 10, 300, 301);
	rqs_history_drain(h, &bpf);
	ok(rqs_history_lost(h) > 8 * RING, "what was overwritten is counted: %llu",
	   (unsigned long long)rqs_history_lost(h));
	rqs_history_ran(h, 0, 15, now, nr[0] - 1, &s);
	for (u32 i = 0; i < s.nr; i++) {
		sum += s.s[i].ns;
		unknown += s.s[i].tid == -1 ? s.s[i].ns : 0;
	}
	ok(sum == now - 15, "shares still sum to the wait");
	ok(unknown >= 10 * (rqs_history_lost(h) - 1) && unknown < now - 15,
	   "the gap is unknown: %llu ns of %llu", (unsigned long long)unknown,
	   (unsigned long long)(now - 15));
	rqs_history_ran(h, 0, now - 90, now, nr[0] - 1, &s);
	ok(s.nr == 1 && s.s[0].tid == 301 && s.s[0].ns == 90, "what came after it is known");
	rqs_history_ran(h, 1, 50, 80, U64_MAX, &s);
	ok(s.nr == 1 && s.s[0].tid == -1 && s.s[0].ns == 30, "a CPU without history is unknown");
	rqs_history_ran(h, 99, 50, 80, U64_MAX, &s);
	ok(s.nr == 1 && s.s[0].tid == -1, "so is one that is not there");
	rqs_shares_fini(&s);
	rqs_history_destroy(h);
}

static void seen(void)
{
	struct rqs_bpf bpf = {
		.mem = mem[0], .cpu_size = sizeof(mem[0]), .nr_cpus = CPUS, .ring_mask = RING - 1
	};
	struct rqs_history *h = rqs_history_create(CPUS, 0);

	memset(mem, 0, sizeof(mem));
	write_switch(0, 100, 7, 8);
	write_switch(0, 200, 8, 9);
	rqs_history_drain(h, &bpf);
	ok(rqs_history_first_run(h, 7) == 1 && rqs_history_first_run(h, 8) == 100 &&
		   rqs_history_first_run(h, 10) == U64_MAX,
	   "first runs are known");
	ok(rqs_history_last_out(h, 8) == 200 && rqs_history_last_out(h, 9) == 0,
	   "so is when a task was switched out");
	ok(rqs_history_runs_now(h, 9) && !rqs_history_runs_now(h, 8), "and who runs now");
	rqs_history_saw(h, 10, 50);
	ok(rqs_history_first_run(h, 10) == 50 && rqs_history_first_run(h, -1) == U64_MAX &&
		   rqs_history_first_run(h, S32_MAX) == U64_MAX,
	   "other signs of life count; impossible ids do not");
	rqs_history_destroy(h);
}

/* Every bucket's range begins where the one before ends, and holds what is put into it. */
static void buckets(void)
{
	u64 from, to, last = 0;
	bool fine = true;

	for (u32 i = 0; i < RQS_NR_BUCKETS; i++) {
		rqs_bucket_range(i, &from, &to);
		fine = fine && from == last && rqs_bucket_of(from) == i &&
		       rqs_bucket_of(to - 1) == i;
		last = to;
	}
	ok(fine && last == 0, "buckets cover 0 .. 2^64 without gaps or overlaps");
}

int main(void)
{
	random_history(0, 100);
	random_history(500, 100);
	random_history(37, 100);
	random_history(300, 3); /* many equal times */
	overwritten();
	seen();
	buckets();
	return tap_done();
}
