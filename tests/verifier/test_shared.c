// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs with recorded verdicts of Linux 6.18 (verdicts.tsv of the project's shared data; skipped without it). Accepting
 * what Linux refuses is a failure; refusing what it accepts is allowed where inlay says "unsupported" or the row is listed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "vt.h"

static char *shared_file(const char *name)
{
	const char *dir = getenv("INLAY_SHARED");
	char *path;

	if (asprintf(&path, "%s/%s", dir ? dir : SOURCE_ROOT "/../shared", name) < 0)
		abort();
	return path;
}

static int split(char *line, char **col, int max)
{
	int n = 0;

	while (n < max) {
		char *tab = strchr(line, '\t');

		col[n++] = line;
		if (!tab)
			break;
		*tab = 0;
		line = tab + 1;
	}
	return n;
}

/* Short words for runs of one instruction stand in the table as "... (repeated) ..." */
static bool is_abridged(const char *text)
{
	return strstr(text, "(repeated)");
}

/* Packet pointers, spin locks and kernel functions are not served yet; helpers that are not say so themselves. */
static bool is_unsupported(const char *reason, const char *text)
{
	return strstr(reason, "unsupported") || strstr(text, "call 9000") || strstr(text, "map6") ||
	       !strncmp(text, "r6 = *(u32 *)(r1 + 0); r8 = *(u32 *)(r1 + 4);", 45);
}

int main(void)
{
	char *path = shared_file("oracle/verdicts.tsv"), *line = NULL, *col[8];
	size_t cap = 0;
	int accepted = 0, wanted = 0, same_reason = 0, refused = 0, unsupported = 0;
	FILE *f = fopen(path, "r");
	struct vt t;

	if (!f) {
		printf("1..0 # SKIP no %s\n", path);
		return 0; /* in TAP the plan says so */
	}
	vt_init(&t);
	while (getline(&line, &cap, f) > 0) {
		struct vt_verdict v;
		struct isa_code code;
		bool want;

		line[strcspn(line, "\n")] = 0;
		if (split(line, col, 8) < 8 || col[0][0] != 'V' || is_abridged(col[7]))
			continue;
		want = !strcmp(col[4], "accept");
		if (!vt_assemble(col[7], &code)) {
			ok(false, "%s assembles", col[0]);
			continue;
		}
		vt_judge(&t, code.insns, code.len, (u32)atoi(col[2]), (u32)atoi(col[3]), getenv("V") ? 2 : 1, &v);
		if (want) {
			wanted++;
			accepted += !v.err;
			if (v.err)
				printf("# %s %s: refused: %s\n", col[0], col[1], v.reason);
			unsupported += v.err && is_unsupported(v.reason, col[7]);
			ok(!v.err || is_unsupported(v.reason, col[7]), "%s %s: accepted, or not supported", col[0], col[1]);
		} else {
			refused++;
			same_reason += !strcmp(v.reason, col[6]);
			if (strcmp(v.reason, col[6]))
				printf("# %s %s: %s\n#     Linux: %s\n", col[0], col[1], v.reason, col[6]);
			ok(v.err, "%s %s: refused", col[0], col[1]);
		}
		if (getenv("V") && !strcmp(getenv("V"), col[0]))
			printf("%s\n", v.log);
		vt_verdict_fini(&v);
		isa_code_fini(&code);
	}
	printf("# Linux accepts %d: inlay %d, of the rest unsupported %d; Linux refuses %d: same words for %d\n", wanted,
	       accepted, unsupported, refused, same_reason);
	ok(wanted >= 20 && refused >= 70, "the table was read");
	fclose(f);
	free(line);
	free(path);
	vt_fini(&t);
	return tap_done();
}
