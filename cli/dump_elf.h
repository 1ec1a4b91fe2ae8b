/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of a BPF object file as the compiler left them: instructions, names behind
 * relocations, source lines.
 */
#ifndef INLAY_CLI_DUMP_ELF_H
#define INLAY_CLI_DUMP_ELF_H

#include <elf.h>

#include "base/types.h"
#include "isa/isa.h"

struct elf_func {
	const char *name, *section;
	u32 sec;		      /* section index */
	u32 off;		      /* bytes from the section's begin */
	const struct bpf_insn *insns; /* in the object's bytes; may be unaligned to nothing:
					 sections are 8-aligned */
	u32 nr_insns;
};

struct elf_line {
	u32 off; /* bytes from the section's begin */
	const char *file, *text;
	u32 line;
};

struct elf_bpf {
	const char *data;
	size_t size;
	const Elf64_Ehdr *eh;
	const Elf64_Shdr *sh;
	const Elf64_Sym *sym;
	u32 nr_sym;
	const char *sym_str;
	size_t sym_str_size;
	struct elf_func *func; /* by section, then offset */
	u32 nr_func;
};

/* data: bytes btf_elfcheck() has accepted, which stay the caller's. 0, -EINVAL or -ENOMEM. */
int elf_bpf_open(const void *data, size_t size, struct elf_bpf *ret);
void elf_bpf_close(struct elf_bpf *elf);

/*
 * What the relocation at byte off of section sec refers to; NULL: there is none. *ret_sym may be
 * NULL.
 */
const char *elf_bpf_reloc(const struct elf_bpf *elf, u32 sec, u32 off, const Elf64_Sym **ret_sym);
/* Name of section i; "" if it has none. */
const char *elf_bpf_section(const struct elf_bpf *elf, u32 i);
/* The function that begins at byte off of section sec; NULL: none. */
const struct elf_func *elf_bpf_func_at(const struct elf_bpf *elf, u32 sec, u32 off);

/* Source lines of a section, ascending; *ret is malloced (NULL: none). Count, or -ENOMEM. */
int elf_bpf_lines(const struct elf_bpf *elf, u32 sec, struct elf_line **ret);

#endif
