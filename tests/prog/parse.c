// SPDX-License-Identifier: BSD-2-Clause
// Reads .bpft files; README.md is their description.
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "object/map.h"
#include "object/progtype.h"

static bool broken(const char *path, u32 line, const char *why)
{
	printf("# %s:%u: %s\n", path, line, why);
	return false;
}

static u32 type_by_name(const char *name)
{
	for (u32 i = 0; prog_type_at(i); i++)
		if (!strcmp(prog_type_at(i)->name, name))
			return prog_type_at(i)->type;
	return 0;
}

static bool take_map(struct bpft_case *c, const char *line)
{
	struct case_map *m = &c->maps[c->nr_maps];
	char type[32] = "", inner[16] = "";

	if (c->nr_maps == CASE_MAX_MAPS)
		return false;
	if (sscanf(line, "%15s %31s %u %u %u %x %15s", m->name, type, &m->key, &m->value, &m->max, &m->flags, inner) < 5)
		return false;
	snprintf(m->inner, sizeof(m->inner), "%s", inner);
	for (u32 i = 0; map_type_at(i); i++)
		if (!strcmp(map_type_at(i)->name, type))
			m->type = map_type_at(i)->type;
	c->nr_maps++;
	return m->type != 0;
}

static char **lines_of(struct bpft_case *c, char section, u32 **ret_nr)
{
	*ret_nr = section == 'f' ? &c->nr_fill : &c->nr_want;
	return section == 'f' ? c->fill : c->want_map;
}

static bool take_line(struct bpft_case *c, char section, const char *line)
{
	char **lines, **text;
	size_t len;
	u32 *nr;

	switch (section) {
	case 'm':
		return take_map(c, line);
	case 'a':
		text = &c->progs[c->nr_progs - 1].text;
		len = *text ? strlen(*text) : 0;
		*text = realloc(*text, len + strlen(line) + 2);
		sprintf(*text + len, "%s\n", line);
		return true;
	case 'f':
	case 'w':
		lines = lines_of(c, section, &nr);
		if (*nr == CASE_MAX_LINES)
			return false;
		lines[(*nr)++] = strdup(line);
		return true;
	default:
		return false;
	}
}

/* "-- WORD rest"; sets the section that the next lines belong to (0: none may follow). */
static bool take_head(struct bpft_case *c, const char *line, char *section)
{
	char word[16] = "", rest[256] = "", number[64];

	sscanf(line, "-- %15s %255[^\n]", word, rest);
	*section = 0;
	if (!strcmp(word, "prog"))
		return (c->prog_type = type_by_name(rest)) != 0;
	if (!strcmp(word, "runs"))
		return (c->runs = strtoul(rest, NULL, 0)) != 0;
	if (!strcmp(word, "types"))
		return c->types = true;
	if (!strcmp(word, "catch"))
		return sscanf(rest, "%15s", c->catch) == 1;
	if (!strcmp(word, "log"))
		return *rest && (c->log = strdup(rest));
	if (!strcmp(word, "result"))
		return (c->has_r0 = sscanf(rest, "r0 = %63s", number) == 1) && (c->r0 = strtoull(number, NULL, 0), true);
	if (!strcmp(word, "maps"))
		return *section = 'm', true;
	if (!strcmp(word, "fill"))
		return *section = 'f', true;
	if (!strcmp(word, "map"))
		return *section = 'w', true;
	if (!strcmp(word, "asm") && c->nr_progs < CASE_MAX_PROGS) {
		snprintf(c->progs[c->nr_progs++].name, sizeof(c->progs[0].name), "%.15s", *rest ? rest : "main");
		*section = 'a';
		return true;
	}
	return false;
}

static void end_case(struct bpft_case *c, void (*fn)(struct bpft_case *c))
{
	if (c->name[0])
		fn(c);
	for (u32 i = 0; i < c->nr_progs; i++)
		free(c->progs[i].text);
	for (u32 i = 0; i < c->nr_fill; i++)
		free(c->fill[i]);
	for (u32 i = 0; i < c->nr_want; i++)
		free(c->want_map[i]);
	free(c->log);
}

bool case_read_file(const char *path, void (*fn)(struct bpft_case *c))
{
	FILE *f = fopen(path, "r");
	struct bpft_case c = { 0 };
	char line[1024], section = 0;
	bool good = true;
	u32 nr = 0;

	if (!f)
		return broken(path, 0, "cannot be opened");
	while (good && fgets(line, sizeof(line), f)) {
		nr++;
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "== ", 3)) {
			end_case(&c, fn);
			memset(&c, 0, sizeof(c));
			c.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
			c.runs = 1;
			section = 0;
			snprintf(c.name, sizeof(c.name), "%.90s", line + 3);
			snprintf(c.file, sizeof(c.file), "%.60s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
		} else if (!strncmp(line, "-- ", 3)) {
			good = c.name[0] && take_head(&c, line, &section);
		} else if (line[0] && line[0] != '#') {
			good = c.name[0] && take_line(&c, section, line);
		}
	}
	if (good)
		end_case(&c, fn);
	else
		broken(path, nr, line);
	fclose(f);
	return good;
}
