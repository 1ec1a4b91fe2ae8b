// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_prog [--count N] [--seed S] [--jobs J] [--print]: programs the verifier accepts, run by every engine.
 *
 * Each program runs compiled with inlining, interpreted, compiled without inlining, and where it uses local storage
 * compiled with every other variant of that; each time from the same maps, context, random numbers and clock, and must
 * leave the same r0, context and maps. A disagreement is made small by leaving statements out, and printed with its seed.
 * Exit status 1: engines disagree, or far fewer programs are accepted or compiled than should be.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "diffgen.h"
#include "diffrun.h"
#include "isa/disasm.h"

static void die(const char *what, long err)
{
	fprintf(stderr, "fuzz_prog: %s: %s\n", what, strerror((int)-err));
	exit(2);
}

static void print_prog(const struct diff_prog *p)
{
	struct strbuf t = STRBUF_INIT;

	for (u32 pc = 0; pc < p->nr;) {
		strbuf_printf(&t, "# %3u: ", pc);
		pc += isa_disasm(&t, &p->insns[pc], p->nr - pc, NULL);
		strbuf_putc(&t, '\n');
	}
	fputs(strbuf_str(&t), stdout);
	strbuf_fini(&t);
}

static void report(u64 seed, const char *what)
{
	static struct diff_prog p;
	char now[DIFF_WHAT], last[DIFF_WHAT];
	u32 skip = 0;

	snprintf(last, sizeof(last), "%s", what);
	for (u32 i = 0; i < DIFF_STATEMENTS; i++) {
		diff_generate(&p, seed, skip | 1u << i);
		if (diff_try(&p, seed, now) != DIFF_DISAGREED)
			continue;
		skip |= 1u << i;
		memcpy(last, now, sizeof(last));
	}
	diff_generate(&p, seed, skip);
	printf("# seed %llu: %s; made small (statements left out: %#x): %s\n", (unsigned long long)seed, what, skip, last);
	print_prog(&p);
	fflush(stdout);
}

struct counts {
	u64 done, refused, disagreed;
	struct diff_stats stats;
};

static void work(u64 seed, u64 count, u64 step, struct counts *c)
{
	static struct diff_prog p;
	char what[DIFF_WHAT];

	for (u64 i = 0; i < count; i++, seed += step) {
		diff_generate(&p, seed, 0);
		c->done++;
		switch (diff_try(&p, seed, what)) {
		case DIFF_REFUSED:
			c->refused++;
			break;
		case DIFF_DISAGREED:
			if (c->disagreed++ < 5)
				report(seed, what);
			break;
		case DIFF_AGREED:
			break;
		}
	}
}

static void show(u64 seed)
{
	static const char *const word[] = { "agreed", "refused", "disagreed" };
	static struct diff_prog p;
	char what[DIFF_WHAT];
	enum diff_verdict verdict;

	diff_generate(&p, seed, 0);
	print_prog(&p);
	verdict = diff_try(&p, seed, what);
	printf("%s# %s %s\n", verdict == DIFF_REFUSED ? diff_log(&p) : "", word[verdict], what);
}

/* Each job a process of its own, since a crash is a finding, too. */
static int run_jobs(u64 seed, u64 count, u32 jobs, struct counts *sum)
{
	int pipes[64][2], status, bad = 0;

	for (u32 j = 0; j < jobs; j++) {
		pid_t pid;

		if (pipe(pipes[j]))
			die("pipe", -errno);
		pid = fork();
		if (pid < 0)
			die("fork", -errno);
		if (!pid) {
			struct counts c = { 0 };

			prctl(PR_SET_PDEATHSIG, SIGKILL); /* who stops the run stops its jobs */
			diff_start();
			work(seed + j, count / jobs + (j < count % jobs), jobs, &c);
			c.stats = diff_stats();
			diff_stop();
			_exit(write(pipes[j][1], &c, sizeof(c)) == sizeof(c) ? 0 : 2);
		}
		close(pipes[j][1]);
	}
	for (u32 j = 0; j < jobs; j++) {
		struct counts c = { 0 };

		if (read(pipes[j][0], &c, sizeof(c)) != sizeof(c))
			bad++;
		sum->done += c.done;
		sum->refused += c.refused;
		sum->disagreed += c.disagreed;
		sum->stats.walked += c.stats.walked;
		sum->stats.runs += c.stats.runs;
		sum->stats.not_compiled += c.stats.not_compiled;
		close(pipes[j][0]);
	}
	while (wait(&status) > 0)
		if (status) {
			printf("# a job ended with status %#x\n", status);
			bad++;
		}
	return bad;
}

int main(int argc, char **argv)
{
	u64 seed = 1, count = 20000;
	struct counts c = { 0 };
	struct timespec from, to;
	bool print = false, good;
	u32 jobs = 1;
	double took;
	int bad;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--print"))
			print = true;
		else if (i + 1 < argc && !strcmp(argv[i], "--count"))
			count = strtoull(argv[++i], NULL, 0);
		else if (i + 1 < argc && !strcmp(argv[i], "--seed"))
			seed = strtoull(argv[++i], NULL, 0);
		else if (i + 1 < argc && !strcmp(argv[i], "--jobs"))
			jobs = (u32)strtoul(argv[++i], NULL, 0);
		else
			jobs = 0;
	}
	if (!jobs || jobs > 64 || !count) {
		fprintf(stderr, "usage: fuzz_prog [--count N] [--seed S] [--jobs 1..64] [--print]\n");
		return 2;
	}
	if (print) {
		diff_start();
		show(seed);
		diff_stop();
		return 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	bad = run_jobs(seed, count, jobs, &c);
	clock_gettime(CLOCK_MONOTONIC, &to);
	took = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	good = !bad && !c.disagreed && c.done == count && c.refused * 4 <= count &&
	       (count < 1000 || c.stats.not_compiled * 20 <= c.stats.runs); /* few programs: chance */
	printf("# %llu programs from seed %llu, %llu refused, %llu disagreements, %d jobs lost, %.0f programs/s\n"
	       "# a program: %.1f runs, %.0f instructions walked by the verifier; %llu runs not compiled\n",
	       (unsigned long long)c.done, (unsigned long long)seed, (unsigned long long)c.refused,
	       (unsigned long long)c.disagreed, bad, (double)c.done / took,
	       (double)c.stats.runs / (double)c.done, (double)c.stats.walked / (double)c.done,
	       (unsigned long long)c.stats.not_compiled);
	printf("%sok 1 - engines, inlining and storage variants agree on generated programs\n1..1\n", good ? "" : "not ");
	return good ? 0 : 1;
}
