// SPDX-License-Identifier: BSD-2-Clause
/*
 * Headers, sections, symbols and relocations of a BPF object.
 *
 * Everything is read by memcpy at offsets that were compared with the file's size first, in 64 bits
 * and without sums that can wrap: "off > size || len > size - off". What passes keeps libelf and
 * libbpf inside the file; what the program means is libbpf's and the verifier's business.
 */
#include "btf/elfcheck.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "btf/elfcheck_int.h"

#ifndef EM_BPF
#define EM_BPF 247
#endif
/* Relocation types clang writes for BPF. */
#define REL_NONE      0
#define REL_64_64     1 /* ld_imm64 */
#define REL_ABS64     2
#define REL_ABS32     3
#define REL_NODYLD32  4
#define REL_CALL32    10 /* call */
#define INSN_SIZE     8
#define MAX_SEC_BYTES 0x7fffffffu /* most a map value can have, and more than any program */

int btf_elfcheck_fail(struct elfcheck *c, const char *fmt, ...)
{
	va_list args;

	if (c->reason && !c->reason->len) {
		va_start(args, fmt);
		strbuf_vprintf(c->reason, fmt, args);
		va_end(args);
	}
	return -EINVAL;
}

struct elf_text btf_elfcheck_text(const char *name)
{
	struct elf_text t;
	u32 i;

	for (i = 0; i < sizeof(t.s) - 1 && name[i]; i++)
		t.s[i] = name[i] >= ' ' && name[i] < 0x7f ? name[i] : '?';
	t.s[i] = '\0';
	return t;
}

static bool in_file(const struct elfcheck *c, u64 off, u64 len)
{
	return off <= c->size && len <= c->size - off;
}

static int fail_sec(struct elfcheck *c, u32 i, const char *what)
{
	const char *name = c->sec[i].name ? c->sec[i].name : "";

	return btf_elfcheck_fail(c, "section %u (%s): %s", i, btf_elfcheck_text(name).s, what);
}

static int check_ident(struct elfcheck *c, const Elf64_Ehdr *h)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG))
		return btf_elfcheck_fail(c, "not an ELF file: it does not begin with \\x7f"
					    "ELF");
	if (h->e_ident[EI_CLASS] != ELFCLASS64)
		return btf_elfcheck_fail(c, "ELF header: class %u, a BPF object has 2 (64-bit)",
					 h->e_ident[EI_CLASS]);
	if (h->e_ident[EI_DATA] != ELFDATA2LSB)
		return btf_elfcheck_fail(
			c, "ELF header: byte order %u, this machine runs 1 (little-endian)",
			h->e_ident[EI_DATA]);
	if (h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT)
		return btf_elfcheck_fail(c, "ELF header: version %u, there is only 1",
					 h->e_version != EV_CURRENT ? h->e_version
								    : h->e_ident[EI_VERSION]);
	if (h->e_machine != EM_BPF)
		return btf_elfcheck_fail(c, "ELF header: machine %u, BPF is 247", h->e_machine);
	if (h->e_type != ET_REL)
		return btf_elfcheck_fail(c, "ELF header: type %u, a BPF object is 1 (relocatable)",
					 h->e_type);
	return 0;
}

/* Section 0's header holds the counts that do not fit into the ELF header. */
static int check_header(struct elfcheck *c)
{
	Elf64_Ehdr h;
	Elf64_Shdr first;
	u64 nr;
	int err;

	if (c->size < sizeof(h))
		return btf_elfcheck_fail(c, "not an ELF file: %zu bytes, its header alone has %zu",
					 c->size, sizeof(h));
	memcpy(&h, c->data, sizeof(h));
	err = check_ident(c, &h);
	if (err)
		return err;
	if (h.e_ehsize != sizeof(h))
		return btf_elfcheck_fail(c, "ELF header: size %u, must be %zu", h.e_ehsize,
					 sizeof(h));
	if (!h.e_shoff)
		return btf_elfcheck_fail(c, "ELF header: no section headers");
	if (h.e_shentsize != sizeof(first))
		return btf_elfcheck_fail(c, "ELF header: section header size %u, must be %zu",
					 h.e_shentsize, sizeof(first));
	if (!in_file(c, h.e_shoff, sizeof(first)))
		return btf_elfcheck_fail(
			c, "ELF header: section headers at 0x%llx, the file ends at 0x%zx",
			(unsigned long long)h.e_shoff, c->size);
	memcpy(&first, c->data + h.e_shoff, sizeof(first));
	nr = h.e_shnum ? h.e_shnum : first.sh_size;
	if (!nr || nr > (c->size - h.e_shoff) / sizeof(first))
		return btf_elfcheck_fail(c, "ELF header: %llu sections do not fit into the file",
					 (unsigned long long)nr);
	c->nr_sec = nr;
	c->shoff = h.e_shoff;
	c->shstrndx = h.e_shstrndx == SHN_XINDEX ? first.sh_link : h.e_shstrndx;
	if (!c->shstrndx || c->shstrndx >= c->nr_sec)
		return btf_elfcheck_fail(c, "ELF header: section names in section %u of %u",
					 c->shstrndx, c->nr_sec);
	return 0;
}

/* A section's place in the file; its name is not known yet. */
static int read_section(struct elfcheck *c, u32 i, u32 *ret_name)
{
	struct elf_sec *s = &c->sec[i];
	Elf64_Shdr h;

	memcpy(&h, c->data + c->shoff + (u64)i * sizeof(h), sizeof(h));
	*ret_name = h.sh_name;
	s->type = h.sh_type;
	s->flags = h.sh_flags;
	s->size = h.sh_size;
	s->link = h.sh_link;
	s->info = h.sh_info;
	s->entsize = h.sh_entsize;
	if (s->type == SHT_NULL) {
		s->size = 0;
		return 0;
	}
	if (s->size > MAX_SEC_BYTES)
		return btf_elfcheck_fail(
			c, "section %u: 0x%llx bytes are more than a map or program can have", i,
			(unsigned long long)s->size);
	if (s->type != SHT_NOBITS) {
		if (!in_file(c, h.sh_offset, s->size))
			return btf_elfcheck_fail(
				c, "section %u: 0x%llx bytes at 0x%llx, the file ends at 0x%zx", i,
				(unsigned long long)s->size, (unsigned long long)h.sh_offset,
				c->size);
		s->data = c->data + h.sh_offset;
	}
	if (h.sh_addralign & (h.sh_addralign - 1))
		return btf_elfcheck_fail(c, "section %u: alignment 0x%llx is no power of two", i,
					 (unsigned long long)h.sh_addralign);
	if (s->link >= c->nr_sec)
		return btf_elfcheck_fail(c, "section %u: linked to section %u of %u", i, s->link,
					 c->nr_sec);
	return 0;
}

static int compare_names(const void *pa, const void *pb, void *arg)
{
	const struct elfcheck *c = arg;
	u32 a = *(const u32 *)pa, b = *(const u32 *)pb;
	int order = strcmp(c->sec[a].name, c->sec[b].name);

	return order ? order : a < b ? -1 : a > b;
}

static int read_sections(struct elfcheck *c)
{
	const struct elf_sec *names;
	u32 *name_off, i;
	int err = 0;

	c->sec = calloc(c->nr_sec, sizeof(*c->sec));
	c->by_name = calloc(c->nr_sec, sizeof(*c->by_name));
	name_off = calloc(c->nr_sec, sizeof(*name_off));
	if (!c->sec || !c->by_name || !name_off) {
		err = -ENOMEM;
		goto out;
	}
	for (i = 1; i < c->nr_sec && !err; i++)
		err = read_section(c, i, &name_off[i]);
	if (err)
		goto out;
	names = &c->sec[c->shstrndx];
	if (names->type != SHT_STRTAB || !names->size || names->data[names->size - 1]) {
		err = btf_elfcheck_fail(
			c, "section %u: the section names are no NUL-terminated string table",
			c->shstrndx);
		goto out;
	}
	c->sec[0].name = "";
	for (i = 1; i < c->nr_sec && !err; i++) {
		if (name_off[i] >= names->size)
			err = btf_elfcheck_fail(c,
						"section %u: name at 0x%x, the names end at 0x%llx",
						i, name_off[i], (unsigned long long)names->size);
		else
			c->sec[i].name = (const char *)names->data + name_off[i];
		c->by_name[i - 1] = i;
	}
	if (!err)
		qsort_r(c->by_name, c->nr_sec - 1, sizeof(*c->by_name), compare_names, c);
out:
	free(name_off);
	return err;
}

u32 btf_elfcheck_find(const struct elfcheck *c, const char *name)
{
	u32 lo = 0, hi = c->nr_sec - 1, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (strcmp(c->sec[c->by_name[mid]].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == c->nr_sec - 1 || strcmp(c->sec[c->by_name[lo]].name, name))
		return 0;
	return c->by_name[lo];
}

static bool is_code(const struct elf_sec *s)
{
	return s->flags & SHF_EXECINSTR;
}

static bool is_debug(const struct elf_sec *s)
{
	return !strncmp(s->name, ".debug", 6);
}

static int check_symtab_section(struct elfcheck *c, u32 i)
{
	const struct elf_sec *s = &c->sec[i], *strings = &c->sec[s->link];

	if (c->symtab)
		return fail_sec(c, i, "a second symbol table");
	if (s->entsize != sizeof(Elf64_Sym))
		return fail_sec(c, i, "symbol size is not 24");
	if (!s->size || s->size % sizeof(Elf64_Sym))
		return fail_sec(c, i, "size is not a number of symbols");
	if (strings->type != SHT_STRTAB || !strings->size)
		return fail_sec(c, i, "symbol names are not in a string table");
	c->symtab = i;
	c->syms = s->data;
	c->nr_syms = s->size / sizeof(Elf64_Sym);
	c->strtab = (const char *)strings->data;
	c->strtab_size = strings->size;
	return 0;
}

/* What libbpf reads without BTF: "license" is text, "version" a number, and "maps" is of another
 * age. */
static int check_known_name(struct elfcheck *c, u32 i)
{
	const struct elf_sec *s = &c->sec[i];

	if (!strcmp(s->name, "license")) {
		if (s->type != SHT_PROGBITS || !s->size)
			return fail_sec(c, i, "holds no text");
		if (!memchr(s->data, '\0', s->size))
			return fail_sec(c, i, "the license is not NUL-terminated");
	}
	if (!strcmp(s->name, "version") && (s->type != SHT_PROGBITS || s->size != 4))
		return fail_sec(c, i, "the kernel version is not one 32-bit number");
	if (!strcmp(s->name, "maps") && s->type == SHT_PROGBITS && !is_code(s))
		return fail_sec(c, i,
				"map definitions of this old form are not supported, only BTF ones "
				"in .maps");
	if (!strcmp(s->name, ".maps")) {
		if (s->type != SHT_PROGBITS || !s->size)
			return fail_sec(c, i, "holds no map definitions");
		if (!btf_elfcheck_find(c, ".BTF"))
			return fail_sec(c, i,
					"maps need the types of a .BTF section: compile with -g");
	}
	return 0;
}

static int check_section(struct elfcheck *c, u32 i)
{
	const struct elf_sec *s = &c->sec[i];

	switch (s->type) {
	case SHT_NULL:
		return 0;
	case SHT_SYMTAB:
		return check_symtab_section(c, i);
	case SHT_RELA:
		return fail_sec(c, i, "relocations with addends (RELA); BPF has none");
	case SHT_STRTAB:
		if (s->size && s->data[s->size - 1])
			return fail_sec(c, i, "the string table is not NUL-terminated");
		break;
	}
	if ((s->flags & SHF_COMPRESSED) && !is_debug(s))
		return fail_sec(c, i, "compressed; only debug information may be");
	if (is_code(s)) {
		if (s->type != SHT_PROGBITS)
			return fail_sec(c, i, "executable, but without instructions");
		if (s->size % INSN_SIZE)
			return fail_sec(c, i, "size is not a number of 8-byte instructions");
	}
	return check_known_name(c, i);
}

static const char *sym_name(const struct elfcheck *c, const Elf64_Sym *sym)
{
	return sym->st_name < c->strtab_size ? c->strtab + sym->st_name : "";
}

static int fail_sym(struct elfcheck *c, u64 i, const Elf64_Sym *sym, const char *what)
{
	return btf_elfcheck_fail(c, "symbol %llu (%s): %s", (unsigned long long)i,
				 btf_elfcheck_text(sym_name(c, sym)).s, what);
}

static int check_symbol(struct elfcheck *c, u64 i)
{
	const struct elf_sec *s;
	Elf64_Sym sym;

	memcpy(&sym, c->syms + i * sizeof(sym), sizeof(sym));
	if (sym.st_name >= c->strtab_size)
		return btf_elfcheck_fail(c, "symbol %llu: name at 0x%x, the names end at 0x%llx",
					 (unsigned long long)i, sym.st_name,
					 (unsigned long long)c->strtab_size);
	switch (sym.st_shndx) {
	case SHN_UNDEF:
	case SHN_ABS:
	case SHN_COMMON:
		return 0;
	}
	if (sym.st_shndx >= c->nr_sec || sym.st_shndx >= SHN_LORESERVE)
		return btf_elfcheck_fail(
			c, "symbol %llu (%s): in section %u of %u", (unsigned long long)i,
			btf_elfcheck_text(sym_name(c, &sym)).s, sym.st_shndx, c->nr_sec);
	s = &c->sec[sym.st_shndx];
	if (sym.st_value > s->size || sym.st_size > s->size - sym.st_value)
		return btf_elfcheck_fail(
			c,
			"symbol %llu (%s): 0x%llx bytes at 0x%llx of section %u (%s), "
			"which has 0x%llx",
			(unsigned long long)i, btf_elfcheck_text(sym_name(c, &sym)).s,
			(unsigned long long)sym.st_size, (unsigned long long)sym.st_value,
			sym.st_shndx, btf_elfcheck_text(s->name).s, (unsigned long long)s->size);
	if (ELF64_ST_TYPE(sym.st_info) == STT_FUNC && is_code(s)) {
		if (sym.st_value % INSN_SIZE || sym.st_size % INSN_SIZE)
			return fail_sym(c, i, &sym,
					"function does not begin and end at an instruction");
		if (!sym.st_size)
			return fail_sym(c, i, &sym, "function without instructions");
	}
	return 0;
}

static int check_symbols(struct elfcheck *c)
{
	u64 i;
	int err = 0;

	if (!c->symtab)
		return btf_elfcheck_fail(c,
					 "no symbol table: programs and maps cannot be told apart");
	if (c->strtab[c->strtab_size - 1])
		return fail_sec(c, c->sec[c->symtab].link,
				"the string table is not NUL-terminated");
	for (i = 1; i < c->nr_syms && !err; i++)
		err = check_symbol(c, i);
	return err;
}

/* Bytes a relocation changes; 0: no such type. In code it may look at a whole instruction. */
static u32 rel_width(u32 type, bool code)
{
	switch (type) {
	case REL_NONE:
		return 1;
	case REL_64_64:
		return code ? 2 * INSN_SIZE : 8;
	case REL_ABS64:
		return 8;
	case REL_ABS32:
	case REL_NODYLD32:
		return code ? INSN_SIZE : 4;
	case REL_CALL32:
		return code ? INSN_SIZE : 4;
	}
	return 0;
}

static int fail_rel(struct elfcheck *c, u32 sec, u64 i, const char *fmt, unsigned long long a,
		    unsigned long long b)
{
	struct strbuf what = STRBUF_INIT;

	strbuf_printf(&what, fmt, a, b);
	btf_elfcheck_fail(c, "relocation %llu of section %u (%s): %s", (unsigned long long)i, sec,
			  btf_elfcheck_text(c->sec[sec].name).s, strbuf_str(&what));
	strbuf_fini(&what);
	return -EINVAL;
}

static int check_relocation(struct elfcheck *c, u32 sec, u64 i)
{
	const struct elf_sec *s = &c->sec[sec], *target = &c->sec[s->info];
	Elf64_Rel r;
	u32 width;

	memcpy(&r, s->data + i * sizeof(r), sizeof(r));
	width = rel_width(ELF64_R_TYPE(r.r_info), is_code(target));
	if (!width)
		return fail_rel(c, sec, i, "type %llu is none of BPF's", ELF64_R_TYPE(r.r_info), 0);
	if (ELF64_R_SYM(r.r_info) >= c->nr_syms)
		return fail_rel(c, sec, i, "symbol %llu of %llu", ELF64_R_SYM(r.r_info),
				c->nr_syms);
	if (r.r_offset > target->size || width > target->size - r.r_offset)
		return fail_rel(c, sec, i, "at offset 0x%llx of a section of 0x%llx bytes",
				r.r_offset, target->size);
	if (is_code(target) && r.r_offset % INSN_SIZE)
		return fail_rel(c, sec, i, "at offset 0x%llx, which is inside an instruction",
				r.r_offset, 0);
	return 0;
}

static int check_relocations(struct elfcheck *c, u32 sec)
{
	const struct elf_sec *s = &c->sec[sec];
	u64 i;
	int err = 0;

	if (s->entsize != sizeof(Elf64_Rel))
		return fail_sec(c, sec, "relocation size is not 16");
	if (s->size % sizeof(Elf64_Rel))
		return fail_sec(c, sec, "size is not a number of relocations");
	if (s->link != c->symtab)
		return fail_sec(c, sec, "relocations do not refer to the symbol table");
	if (!s->info || s->info >= c->nr_sec)
		return btf_elfcheck_fail(c, "section %u (%s): relocates section %u of %u", sec,
					 btf_elfcheck_text(s->name).s, s->info, c->nr_sec);
	if (c->sec[s->info].type == SHT_NOBITS || c->sec[s->info].type == SHT_NULL)
		return fail_sec(c, sec, "relocates a section without data");
	/* Compressed debug information is relocated after it was expanded; its offsets say nothing
	 * about these bytes. */
	if (c->sec[s->info].flags & SHF_COMPRESSED)
		return 0;
	for (i = 0; i < s->size / sizeof(Elf64_Rel) && !err; i++)
		err = check_relocation(c, sec, i);
	return err;
}

static int check_all(struct elfcheck *c)
{
	u32 i;
	int err = check_header(c);

	if (!err)
		err = read_sections(c);
	for (i = 1; !err && i < c->nr_sec; i++)
		err = check_section(c, i);
	if (!err)
		err = check_symbols(c);
	for (i = 1; !err && i < c->nr_sec; i++)
		if (c->sec[i].type == SHT_REL)
			err = check_relocations(c, i);
	return err ? err : btf_elfcheck_btf_sections(c);
}

int btf_elfcheck(const void *data, size_t size, struct strbuf *reason)
{
	struct elfcheck c = {.data = data, .size = size, .reason = reason};
	int err = check_all(&c);

	if (err == -ENOMEM && reason && !reason->len)
		strbuf_puts(reason, "out of memory");
	free(c.sec);
	free(c.by_name);
	return err;
}
