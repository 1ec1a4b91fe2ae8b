// SPDX-License-Identifier: BSD-2-Clause
/* Rows as the documents print them (before | after, percent), as JSON, as a plot. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/bench.h"

void bench_param_text(const struct bench_row *row, char *buf, size_t n)
{
	const struct bench_params *p = &row->params;

	buf[0] = '\0';
	if (!strcmp(row->spec->name, "local-storage"))
		snprintf(buf, n, "num_maps: %u, %s", p->num_maps, p->interleaved ? "interleaved" : "sequential");
	else if (p->key_size)
		snprintf(buf, n, "key_size: %u, %s", p->key_size, p->absent ? "absent" : p->colliding ? "colliding" : "present");
	else if (p->num_threads)
		snprintf(buf, n, "%s, threads: %u", p->section, p->num_threads);
	else if (p->num_insns)
		snprintf(buf, n, p->num_insns > 2 ? "an instruction of %u" : "a program of %u", p->num_insns);
	else if (p->section)
		snprintf(buf, n, "%s", p->section);
	else if (p->num_keys)
		snprintf(buf, n, "num keys: %u", p->num_keys);
}

static void name_of(const struct bench_contender *c, char *buf, size_t n)
{
	snprintf(buf, n, "%s%s%s", c->engine, c->variant ? " " : "", c->variant ? c->variant : "");
}

/* "(+18.4%)", "(  ~  )" where the difference is within both intervals. */
static void change(const struct bench_contender *from, const struct bench_contender *to, char *buf, size_t n)
{
	double pct = (from->ns / to->ns - 1) * 100;

	if (fabs(from->ns - to->ns) <= from->spread + to->spread)
		snprintf(buf, n, "(  ~  )");
	else if (from->ns / to->ns >= 3)
		snprintf(buf, n, "(x %.1f)", from->ns / to->ns);
	else
		snprintf(buf, n, "(%+.1f%%)", pct);
}

static const struct bench_contender *find(const struct bench_row *row, const char *engine, const char *variant)
{
	u32 i;

	for (i = 0; i < row->nr; i++)
		if (!strcmp(row->c[i].engine, engine) && !row->c[i].why_not &&
		    (!variant || (row->c[i].variant && !strcmp(row->c[i].variant, variant))))
			return &row->c[i];
	return NULL;
}

static void print_row(const struct bench_row *row)
{
	const struct bench_contender *base = NULL;
	char text[96], name[48], diff[24];
	u32 i;

	bench_param_text(row, text, sizeof(text));
	printf("| + %s%s\n", text[0] ? text : "one row", row->is_void ? "   (void: the control moved by more than 2 % between variants)" : "");
	if (row->spec->bytes)
		printf("| :   %-28s %14s\n", "", "bytes");
	else
		printf("| :   %-28s %14s %12s %12s %12s\n", "", "hits/s", "ns/op", "ns empty", "net ns");
	for (i = 0; i < row->nr; i++) {
		const struct bench_contender *c = &row->c[i];

		name_of(c, name, sizeof(name));
		if (c->why_not) {
			printf("|   +- %-27s n/a: %s\n", name, c->why_not);
			continue;
		}
		if (row->spec->bytes) {
			printf("|   +- %-27s %9.1f B\n", name, c->ns);
			continue;
		}
		diff[0] = '\0';
		if (base)
			change(base, c, diff, sizeof(diff));
		else
			base = c;
		printf("|   +- %-27s %9.3f M/s %12.3f", name, c->mops, c->ns);
		if (c->empty_ns >= 0)
			printf(" %12.3f %12.3f", c->empty_ns, c->ns - c->empty_ns);
		else
			printf(" %12s %12s", "-", "-");
		printf(" %s", diff);
		if (c->p99_ns >= 0)
			printf("  p99 %.0f ns", c->p99_ns);
		if (c->share_important > 0 && c->share_important < 1)
			printf("  important %.3f M/s", c->mops * c->share_important);
		putchar('\n');
	}
	printf("|\n");
}

/* Geometric mean over the rows of one benchmark of before's time over after's. */
static void geomean(const struct bench_row *rows, u32 nr, const char *bench, const char *engine, const char *before,
		    const char *to_engine, const char *after)
{
	double sum = 0;
	u32 i, n = 0;

	for (i = 0; i < nr; i++) {
		const struct bench_contender *a, *b;

		if (strcmp(rows[i].spec->name, bench))
			continue;
		a = find(&rows[i], engine, before);
		b = find(&rows[i], to_engine, after);
		if (!a || !b)
			continue;
		sum += log(a->ns / b->ns);
		n++;
	}
	if (n)
		printf("| geometric mean over %u rows, %s%s%s -> %s%s%s: x %.3f (%+.1f%%)\n", n, engine, before ? " " : "",
		       before ? before : "", to_engine, after ? " " : "", after ? after : "", exp(sum / n), (exp(sum / n) - 1) * 100);
}

void bench_print_text(const struct bench_row *rows, u32 nr)
{
	static const char *const pairs[][4] = {
		{ "user", "linux-outlined", "user", "linux-inlined" }, { "user", "linux-outlined", "user", "slots" },
		{ "user", "slots", "user", "jit" },		       { "kernel", NULL, "user", "jit" },
	};
	const char *at = "";
	u32 i, p;

	for (i = 0; i < nr; i++) {
		if (strcmp(at, rows[i].spec->name)) {
			at = rows[i].spec->name;
			printf("+---- %s ----\n|\n", at);
		}
		print_row(&rows[i]);
		if (i + 1 == nr || strcmp(at, rows[i + 1].spec->name)) {
			for (p = 0; p < ARRAY_SIZE(pairs); p++)
				geomean(rows, nr, at, pairs[p][0], pairs[p][1], pairs[p][2], pairs[p][3]);
			if (!rows[i].spec->storage)
				geomean(rows, nr, at, "kernel", NULL, "user", NULL);
			if (rows[i].spec->native)
				geomean(rows, nr, at, "native", NULL, "user", NULL);
			printf("+----\n\n");
		}
	}
}

static void json_text(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putchar('\\');
		if ((unsigned char)*s >= ' ')
			putchar(*s);
	}
	putchar('"');
}

static void cpu_name(char *buf, size_t n)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, n, "unknown");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
			snprintf(buf, n, "%s", strchr(line, ':') + 2);
			buf[strcspn(buf, "\n")] = '\0';
			break;
		}
	if (f)
		fclose(f);
}

static void json_params(const struct bench_row *row)
{
	const struct bench_params *p = &row->params;
	const char *sep = "";

	printf("{");
	if (p->num_maps)
		printf("%s\"num_maps\":%u", sep, p->num_maps), sep = ",";
	if (!strcmp(row->spec->name, "local-storage"))
		printf("%s\"order\":\"%s\"", sep, p->interleaved ? "interleaved" : "sequential"), sep = ",";
	if (p->num_keys)
		printf("%s\"num_keys\":%u", sep, p->num_keys), sep = ",";
	if (p->key_size)
		printf("%s\"key_size\":%u,\"absent\":%s,\"colliding\":%s", sep, p->key_size, p->absent ? "true" : "false",
		       p->colliding ? "true" : "false"), sep = ",";
	if (p->num_threads)
		printf("%s\"num_threads\":%u", sep, p->num_threads), sep = ",";
	if (p->num_insns)
		printf("%s\"num_insns\":%u", sep, p->num_insns), sep = ",";
	if (p->section) {
		printf("%s\"section\":", sep), sep = ",";
		json_text(p->section);
	}
	if (p->file) {
		printf("%s\"file\":", sep);
		json_text(p->file);
	}
	printf("}");
}

void bench_print_json(const struct bench_row *rows, u32 nr)
{
	struct utsname u;
	char cpu[128], line[256] = "";
	const char *sep = "";
	FILE *f = fopen("/sys/devices/system/cpu/vulnerabilities/spectre_v2", "re");
	bool is_void = false;
	u32 i, j;

	uname(&u);
	cpu_name(cpu, sizeof(cpu));
	if (f) {
		if (fgets(line, sizeof(line), f))
			line[strcspn(line, "\n")] = '\0';
		fclose(f);
	}
	printf("{\"machine\":{\"cpu\":");
	json_text(cpu);
	printf(",\"cpus\":%ld,\"kernel\":", sysconf(_SC_NPROCESSORS_ONLN));
	json_text(u.release);
	printf(",\"mitigations\":");
	json_text(line);
	for (i = 0; i < nr; i++)
		is_void |= rows[i].is_void;
	printf("},\"void\":%s,\"rows\":[", is_void ? "true" : "false");
	for (i = 0; i < nr; i++)
		for (j = 0; j < rows[i].nr; j++) {
			const struct bench_contender *c = &rows[i].c[j];

			printf("%s\n{\"bench\":\"%s\",\"params\":", sep, rows[i].spec->name);
			sep = ",";
			json_params(&rows[i]);
			printf(",\"engine\":\"%s\",\"variant\":", c->engine);
			if (c->variant)
				json_text(c->variant);
			else
				printf("null");
			if (c->why_not) {
				printf(",\"mops\":null,\"ns_per_op\":null,\"reason\":");
				json_text(c->why_not);
				printf("}");
				continue;
			}
			if (rows[i].spec->bytes) {
				printf(",\"mops\":null,\"ns_per_op\":null,\"bytes_per_element\":%.1f}", c->ns);
				continue;
			}
			printf(",\"mops\":%.4f,\"mops_stddev\":%.4f,\"ns_per_op\":%.4f,\"ns_spread\":%.4f", c->mops, c->mops_stddev, c->ns,
			       c->spread);
			if (c->empty_ns >= 0)
				printf(",\"ns_empty\":%.4f", c->empty_ns);
			if (c->share_important >= 0)
				printf(",\"important_mops\":%.4f", c->mops * c->share_important);
			if (c->p99_ns >= 0)
				printf(",\"ns_p99\":%.1f", c->p99_ns);
			printf(",\"void\":%s}", rows[i].is_void ? "true" : "false");
		}
	printf("]}\n");
}

/* hits/s over number of maps, both logarithmic, a line an engine and variant. */
int bench_plot(const char *path, const struct bench_row *rows, u32 nr)
{
	static const char *const colors[] = { "#1b6ca8", "#c0392b", "#27803b", "#8e44ad", "#d07d00", "#333333", "#16a085", "#7f8c8d" };
	FILE *f = fopen(path, "we");
	char name[48];
	u32 i, j, n = 0;

	if (!f)
		return -errno;
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 480\" font-family=\"sans-serif\" font-size=\"12\">\n"
		   "<rect width=\"800\" height=\"480\" fill=\"white\"/>\n"
		   "<text x=\"60\" y=\"20\">local storage: M hits/s over number of maps (sequential)</text>\n");
	for (i = 0; i <= 3; i++)
		fprintf(f, "<text x=\"%d\" y=\"460\">%d</text><line x1=\"%d\" y1=\"30\" x2=\"%d\" y2=\"440\" stroke=\"#ddd\"/>\n", 60 + (int)i * 180,
			(int)pow(10, i), 60 + (int)i * 180, 60 + (int)i * 180);
	for (i = 0; i <= 4; i++)
		fprintf(f, "<text x=\"10\" y=\"%d\">%g</text><line x1=\"60\" y1=\"%d\" x2=\"600\" y2=\"%d\" stroke=\"#ddd\"/>\n", 440 - (int)i * 100,
			pow(10, (int)i - 1), 440 - (int)i * 100, 440 - (int)i * 100);
	for (j = 0; j < BENCH_CONTENDERS; j++) {
		bool any = false;

		for (i = 0; i < nr; i++) {
			const struct bench_contender *c = &rows[i].c[j];

			if (strcmp(rows[i].spec->name, "local-storage") || rows[i].params.interleaved || j >= rows[i].nr || c->why_not)
				continue;
			if (!any) {
				name_of(c, name, sizeof(name));
				fprintf(f, "<text x=\"620\" y=\"%u\" fill=\"%s\">%s</text>\n<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
					60 + 20 * n++, colors[j], name, colors[j]);
			}
			any = true;
			fprintf(f, "%.1f,%.1f ", 60 + 180 * log10(rows[i].params.num_maps), 440 - 100 * (log10(c->mops) + 1));
		}
		if (any)
			fprintf(f, "\"/>\n");
	}
	fprintf(f, "</svg>\n");
	return fclose(f) ? -errno : 0;
}
