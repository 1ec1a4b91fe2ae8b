// SPDX-License-Identifier: BSD-2-Clause
/* Two runs kept with --json, row by row: before | after, percent, geometric mean. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "bench/bench.h"

#define DEPTH_MAX 16
#define TEXT_MAX  (16u << 20)

struct kept {
	char bench[128], name[130], params[256], word[128];
	double ns, spread;
	bool has_ns, bytes;
};

struct reader {
	const char *at;
	struct kept *rows, now;
	u32 nr, cap;
	bool is_void;
	bool bad;
};

static void blanks(struct reader *r)
{
	while (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')
		r->at++;
}

static bool take(struct reader *r, char c)
{
	blanks(r);
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

/* A string, cut to what fits; control characters dropped, escapes other than \" and \\ kept as they are written. */
static void string(struct reader *r, char *buf, size_t n)
{
	size_t len = 0;

	if (!take(r, '"')) {
		r->bad = true;
		return;
	}
	for (; *r->at && *r->at != '"'; r->at++) {
		if (*r->at == '\\' && (r->at[1] == '"' || r->at[1] == '\\'))
			r->at++;
		if (len + 1 < n && (unsigned char)*r->at >= ' ')
			buf[len++] = *r->at;
	}
	buf[len] = '\0';
	if (*r->at != '"')
		r->bad = true;
	else
		r->at++;
}

/* Anything that is no object, list or string: as it is written. */
static void scalar(struct reader *r, char *buf, size_t n)
{
	size_t len = 0;

	for (blanks(r); isalnum((unsigned char)*r->at) || (*r->at && strchr("+-.", *r->at)); r->at++)
		if (len + 1 < n)
			buf[len++] = *r->at;
	buf[len] = '\0';
	if (!len)
		r->bad = true;
}

enum place { TOP, ROWS, ROW, PARAMS, OTHER };

static void on_scalar(struct reader *r, enum place place, const char *key, const char *value)
{
	struct kept *k = &r->now;
	size_t len = strlen(k->params);

	if (place == TOP && !strcmp(key, "void"))
		r->is_void = !strcmp(value, "true");
	if (place == PARAMS && strcmp(value, "false"))
		snprintf(k->params + len, sizeof(k->params) - len, "%s%s: %s", len ? ", " : "", key, value);
	if (place != ROW || !strcmp(value, "null"))
		return;
	if (!strcmp(key, "bench"))
		snprintf(k->bench, sizeof(k->bench), "%s", value);
	else if (!strcmp(key, "engine"))
		snprintf(k->word, sizeof(k->word), "%s", value);
	else if (!strcmp(key, "variant"))
		snprintf(k->name, sizeof(k->name), " %s", value);
	else if (!strcmp(key, "ns_spread"))
		k->spread = strtod(value, NULL);
	else if (!strcmp(key, "ns_per_op") || !strcmp(key, "bytes_per_element")) {
		k->ns = strtod(value, NULL);
		k->bytes = *key == 'b';
		k->has_ns = isfinite(k->ns) && k->ns > 0;
	}
}

static void keep(struct reader *r)
{
	struct kept *grown = r->rows;

	if (r->nr == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 64;
		grown = realloc(r->rows, r->cap * sizeof(*grown));
	}
	if (!grown) {
		r->bad = true;
		return;
	}
	r->rows = grown;
	grown[r->nr++] = r->now;
}

static enum place inside(enum place place, const char *key)
{
	if (place == TOP && !strcmp(key, "rows"))
		return ROWS;
	if (place == ROWS)
		return ROW;
	return place == ROW && !strcmp(key, "params") ? PARAMS : OTHER;
}

static void value(struct reader *r, enum place place, const char *key, u32 depth);

static void members(struct reader *r, enum place place, char end, u32 depth)
{
	char key[48] = "";

	if (take(r, end))
		return;
	do {
		if (end == '}') {
			string(r, key, sizeof(key));
			r->bad |= !take(r, ':');
		}
		if (!r->bad)
			value(r, place, key, depth + 1);
	} while (!r->bad && take(r, ','));
	r->bad |= !take(r, end);
}

static void value(struct reader *r, enum place place, const char *key, u32 depth)
{
	enum place in = depth ? inside(place, key) : TOP;
	char text[128];

	blanks(r);
	if (depth > DEPTH_MAX) {
		r->bad = true;
	} else if (*r->at == '{') {
		if (in == ROW)
			memset(&r->now, 0, sizeof(r->now));
		r->at++;
		members(r, in, '}', depth);
		if (in == ROW && !r->bad)
			keep(r);
	} else if (*r->at == '[') {
		r->at++;
		members(r, in, ']', depth);
	} else {
		if (*r->at == '"')
			string(r, text, sizeof(text));
		else
			scalar(r, text, sizeof(text));
		if (!r->bad)
			on_scalar(r, place, key, text);
	}
}

static int read_text(const char *path, char **ret_text, struct strbuf *err)
{
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(TEXT_MAX + 1) : NULL;
	size_t n;

	if (!f || !text) {
		int rc = f ? -ENOMEM : -errno;

		strbuf_printf(err, "%s: %s", path, strerror(-rc));
		if (f)
			fclose(f);
		return rc;
	}
	n = fread(text, 1, TEXT_MAX, f);
	text[n] = '\0';
	fclose(f);
	*ret_text = text;
	return 0;
}

static int read_rows(const char *path, struct reader *r, struct strbuf *err)
{
	char *text = NULL;
	int rc = read_text(path, &text, err);

	if (rc)
		return rc;
	*r = (struct reader){ .at = text };
	value(r, TOP, "", 0);
	blanks(r);
	if (r->bad || *r->at || !r->nr) {
		strbuf_printf(err, "%s: not what inlay bench --json prints (at byte %zu)", path, (size_t)(r->at - text));
		rc = -EINVAL;
	}
	free(text);
	return rc;
}

static const struct kept *same(const struct reader *r, const struct kept *k)
{
	u32 i;

	for (i = 0; i < r->nr; i++)
		if (!strcmp(r->rows[i].bench, k->bench) && !strcmp(r->rows[i].params, k->params) &&
		    !strcmp(r->rows[i].word, k->word) && !strcmp(r->rows[i].name, k->name))
			return &r->rows[i];
	return NULL;
}

static void print(const struct reader *before, const struct reader *after)
{
	double sum = 0;
	u32 i, n = 0, alone = 0;

	printf("%-22s %-32s %-24s %12s %12s\n", "", "", "", "before", "after");
	for (i = 0; i < before->nr; i++) {
		const struct kept *a = &before->rows[i], *b = same(after, a);
		char who[260];

		if (!b || !a->has_ns || !b->has_ns || a->bytes != b->bytes) {
			alone++;
			continue;
		}
		snprintf(who, sizeof(who), "%s%s", a->word, a->name);
		printf("%-22s %-32s %-24s %9.3f %s %9.3f %s ", a->bench, a->params, who, a->ns, a->bytes ? "B " : "ns", b->ns,
		       b->bytes ? "B " : "ns");
		if (fabs(a->ns - b->ns) <= a->spread + b->spread)
			printf("(  ~  )\n");
		else
			printf("(%+.1f%%)\n", (b->ns / a->ns - 1) * 100);
		sum += log(b->ns / a->ns);
		n++;
	}
	if (n)
		printf("geometric mean over %u rows: %+.1f%% (time or bytes: less is better)\n", n, (exp(sum / n) - 1) * 100);
	if (alone)
		printf("%u row%s of the first without a figure in both\n", alone, alone == 1 ? "" : "s");
	if (before->is_void || after->is_void)
		printf("void: the hash control moved between variants in %s\n",
		       before->is_void && after->is_void ? "both" : before->is_void ? "the first" : "the second");
}

int bench_compare(const char *before, const char *after, struct strbuf *err)
{
	struct reader a = { 0 }, b = { 0 };
	int rc = read_rows(before, &a, err);

	if (!rc)
		rc = read_rows(after, &b, err);
	if (!rc)
		print(&a, &b);
	free(a.rows);
	free(b.rows);
	return rc;
}
