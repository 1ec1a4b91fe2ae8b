// SPDX-License-Identifier: BSD-2-Clause
#include "dump_syms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sym {
	u64 addr;
	char name[48];
};

struct dump_syms {
	struct sym *sym; /* by address */
	u32 nr, cap;
	u64 base; /* of __bpf_call_base */
};

static bool add(struct dump_syms *s, u64 addr, const char *name)
{
	if (s->nr == s->cap) {
		u32 cap = s->cap ? s->cap * 2 : 4096;
		struct sym *grown = realloc(s->sym, cap * sizeof(*grown));

		if (!grown)
			return false;
		s->sym = grown;
		s->cap = cap;
	}
	s->sym[s->nr].addr = addr;
	snprintf(s->sym[s->nr].name, sizeof(s->sym[0].name), "%s", name);
	s->nr++;
	return true;
}

static int by_addr(const void *a, const void *b)
{
	const struct sym *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

struct dump_syms *dump_syms_open(void)
{
	struct dump_syms *s = calloc(1, sizeof(*s));
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];

	while (s && f && fgets(line, sizeof(line), f)) {
		unsigned long long addr;
		char type, name[sizeof(s->sym[0].name)];

		if (sscanf(line, "%llx %c %47s", &addr, &type, name) != 3 || !addr ||
		    (type != 'T' && type != 't'))
			continue;
		if (!strcmp(name, "__bpf_call_base"))
			s->base = addr;
		if (!add(s, addr, name))
			break;
	}
	if (f)
		fclose(f);
	if (s && !s->base) {
		dump_syms_close(s);
		return NULL;
	}
	if (s)
		qsort(s->sym, s->nr, sizeof(*s->sym), by_addr);
	return s;
}

void dump_syms_close(struct dump_syms *s)
{
	if (!s)
		return;
	free(s->sym);
	free(s);
}

bool dump_syms_call(const struct dump_syms *s, s32 imm, char *buf, size_t n)
{
	struct sym key = { .addr = s ? s->base + (s64)imm : 0 };
	const struct sym *found = s ? bsearch(&key, s->sym, s->nr, sizeof(*s->sym), by_addr) : NULL;

	if (!found)
		return false;
	snprintf(buf, n, "%s", found->name);
	return true;
}
