/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the object check share. */
#ifndef INLAY_BTF_ELFCHECK_INT_H
#define INLAY_BTF_ELFCHECK_INT_H

#include <elf.h>

#include "btf/elfcheck.h"

/* A section, its bounds already checked: data[0..size) lies in the file (NULL for NOBITS). */
struct elf_sec {
	const char *name; /* NUL-terminated inside the section name table */
	const u8 *data;
	u64 size, flags;
	u32 type, link, info;
	u64 entsize;
};

struct elfcheck {
	const u8 *data;
	size_t size;
	struct strbuf *reason;
	struct elf_sec *sec; /* nr_sec entries, [0] unused */
	u32 nr_sec, shstrndx;
	u64 shoff;
	u32 *by_name; /* indexes of sections 1.., sorted by name, then by index */
	u32 symtab;   /* section index; 0: none */
	const u8 *syms;
	u64 nr_syms;
	u64 strtab_size;
	const char *strtab;
};

/*
 * Sets the reason once, and returns -EINVAL. Text from the file goes through btf_elfcheck_text().
 */
int btf_elfcheck_fail(struct elfcheck *c, const char *fmt, ...) __printf_like(2, 3);

/* A name made fit for a line of text: at most 63 characters, others than printable ASCII as '?'. */
struct elf_text {
	char s[64];
};
struct elf_text btf_elfcheck_text(const char *name);

/* First section of that name; 0: none. */
u32 btf_elfcheck_find(const struct elfcheck *c, const char *name);

/* elfcheck_btf.c: sections .BTF and .BTF.ext, if they are there. */
int btf_elfcheck_btf_sections(struct elfcheck *c);

#endif
