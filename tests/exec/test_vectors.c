// SPDX-License-Identifier: BSD-2-Clause
// Recorded arithmetic through whole programs: operands known to the program, and read from its context.
#include "../isa/vectors.h"
#include "bare.h"

static void vector(const char *name, const char *program, u64 r2, u64 r3, u64 want)
{
	char text[2048];
	u64 ctx[2] = { r2, r3 };

	snprintf(text, sizeof(text), "r2 = 0x%llx ll; r3 = 0x%llx ll; %s; r0 = r2; exit", (unsigned long long)r2,
		 (unsigned long long)r3, program);
	is_u64(bare_run(text, NULL), want, "%s, operands known", name);
	snprintf(text, sizeof(text), "r3 = *(u64 *)(r1 + 8); r2 = *(u64 *)(r1 + 0); %s; r0 = r2; exit", program);
	is_u64(bare_run(text, ctx), want, "%s, operands read", name);
	snprintf(text, sizeof(text),
		 "call f; r0 = r2; exit; f: r3 = *(u64 *)(r1 + 8); r2 = *(u64 *)(r1 + 0); %s; r0 = r2; exit", program);
	is_u64(bare_run(text, ctx), want, "%s, in a subprogram", name);
}

static FILE *open_shared(const char *file)
{
	const char *dir = getenv("INLAY_SHARED");
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : SOURCE_ROOT "/../shared", file);
	return fopen(path, "r");
}

static void recorded(void)
{
	FILE *f = open_shared("oracle/alu.tsv");
	char line[1024], *field[5], *p;
	int n, rows = 0;

	if (!f) {
		tap_skip("no recorded vectors (oracle/alu.tsv under INLAY_SHARED)");
		return;
	}
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		for (n = 0, p = line; n < 5 && (field[n] = strsep(&p, "\t")); n++)
			;
		if (n < 5)
			continue;
		vector(field[0], field[3], strtoull(field[1], NULL, 0), strtoull(field[2], NULL, 0),
		       strtoull(field[4], NULL, 0));
		rows++;
	}
	fclose(f);
	ok(rows >= 60, "%d recorded vectors were run", rows);
}

static void all(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(isa_vectors); i++)
		vector(isa_vectors[i].name, isa_vectors[i].program, isa_vectors[i].r2, isa_vectors[i].r3,
		       isa_vectors[i].want);
	recorded();
}

int main(void)
{
	bare_engine = EXEC_INTERP;
	all();
	bare_engine = EXEC_AUTO;
	printf("# compiled\n");
	all();
	return tap_done();
}
