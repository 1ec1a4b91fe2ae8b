// SPDX-License-Identifier: BSD-2-Clause
/*
 * BPF objects from untrusted bytes: our check; what it accepts is then read through libelf, section
 * by section, symbol by symbol, as a loader does.
 */
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "btf/elfcheck.h"
#include "mutate.h"

static u64 nr_accepted;
static volatile u64 sink; /* so that reading is not optimized away */

static void read_bytes(const Elf_Data *d)
{
	const u8 *p = d->d_buf;
	size_t i;

	for (i = 0; p && i < d->d_size; i++)
		sink += p[i];
}

static void read_tables(Elf *elf, Elf_Scn *scn, const GElf_Shdr *h, Elf_Data *d)
{
	size_t i, n;
	GElf_Sym sym;
	GElf_Rel rel;

	if (h->sh_type != SHT_SYMTAB && h->sh_type != SHT_REL)
		return;
	n = h->sh_size / h->sh_entsize;
	for (i = 0; i < n; i++) {
		if (h->sh_type == SHT_SYMTAB && gelf_getsym(d, i, &sym)) {
			const char *name = elf_strptr(elf, h->sh_link, sym.st_name);

			sink += name ? strlen(name) : 0;
		} else if (h->sh_type == SHT_REL && gelf_getrel(d, i, &rel)) {
			sink += rel.r_offset;
		}
	}
}

static void read_as_loader(const u8 *data, size_t size)
{
	char *copy = malloc(size);
	Elf_Scn *scn = NULL;
	size_t shstrndx;
	GElf_Shdr h;
	Elf *elf;

	if (!copy)
		return;
	memcpy(copy, data, size); /* libelf takes what it may write to */
	elf = elf_memory(copy, size);
	/* What we accept, libelf must be able to read. */
	if (!elf || elf_getshdrstrndx(elf, &shstrndx))
		abort();
	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *d;
		const char *name;

		if (!gelf_getshdr(scn, &h))
			abort();
		name = elf_strptr(elf, shstrndx, h.sh_name);
		sink += name ? strlen(name) : 0;
		d = elf_getdata(scn, NULL);
		if (!d)
			continue;
		if (h.sh_type != SHT_NOBITS)
			read_bytes(d);
		read_tables(elf, scn, &h, d);
	}
	elf_end(elf);
	free(copy);
}

static void one(const u8 *data, size_t size)
{
	struct strbuf reason = STRBUF_INIT;
	int err = btf_elfcheck(data, size, &reason);

	if (!err) {
		nr_accepted++;
		read_as_loader(data, size);
	} else if (!reason.len || strchr(reason.s, '\n')) {
		abort(); /* a refusal is one line of text */
	}
	strbuf_fini(&reason);
}

int main(int argc, char **argv)
{
	int status;

	elf_version(EV_CURRENT);
	status = mutate_main(argc, argv, one);
	printf("%llu of them accepted\n", (unsigned long long)nr_accepted);
	return status;
}
