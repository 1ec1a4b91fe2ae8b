// SPDX-License-Identifier: BSD-2-Clause
#include "dump_elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/btf.h>

/* [off, off + len) of the bytes, or NULL. */
static const void *bytes(const struct elf_bpf *elf, u64 off, u64 len)
{
	return off <= elf->size && len <= elf->size - off ? elf->data + off : NULL;
}

static const char *text_at(const char *table, size_t size, u64 off)
{
	return off < size && memchr(table + off, 0, size - off) ? table + off : "";
}

const char *elf_bpf_section(const struct elf_bpf *elf, u32 i)
{
	const Elf64_Shdr *names = &elf->sh[elf->eh->e_shstrndx];
	const char *table = bytes(elf, names->sh_offset, names->sh_size);

	return i < elf->eh->e_shnum && table ? text_at(table, names->sh_size, elf->sh[i].sh_name) :
					       "";
}

static const char *symbol_name(const struct elf_bpf *elf, const Elf64_Sym *sym)
{
	if (ELF64_ST_TYPE(sym->st_info) == STT_SECTION)
		return elf_bpf_section(elf, sym->st_shndx);
	return text_at(elf->sym_str, elf->sym_str_size, sym->st_name);
}

static int by_place(const void *a, const void *b)
{
	const struct elf_func *x = a, *y = b;

	if (x->sec != y->sec)
		return x->sec < y->sec ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

static int find_symbols(struct elf_bpf *elf)
{
	for (u32 i = 0; i < elf->eh->e_shnum; i++) {
		const Elf64_Shdr *sh = &elf->sh[i], *str;

		if (sh->sh_type != SHT_SYMTAB || sh->sh_link >= elf->eh->e_shnum)
			continue;
		str = &elf->sh[sh->sh_link];
		elf->sym = bytes(elf, sh->sh_offset, sh->sh_size);
		elf->nr_sym = sh->sh_size / sizeof(Elf64_Sym);
		elf->sym_str = bytes(elf, str->sh_offset, str->sh_size);
		elf->sym_str_size = str->sh_size;
		return elf->sym && elf->sym_str ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static int find_functions(struct elf_bpf *elf)
{
	elf->func = calloc(elf->nr_sym ? elf->nr_sym : 1, sizeof(*elf->func));
	if (!elf->func)
		return -ENOMEM;
	for (u32 i = 0; i < elf->nr_sym; i++) {
		const Elf64_Sym *sym = &elf->sym[i];
		const Elf64_Shdr *sh;
		struct elf_func *f = &elf->func[elf->nr_func];

		if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx >= elf->eh->e_shnum)
			continue;
		sh = &elf->sh[sym->st_shndx];
		if (sh->sh_type != SHT_PROGBITS || sym->st_value > sh->sh_size ||
		    sym->st_size > sh->sh_size - sym->st_value)
			continue;
		f->insns = bytes(elf, sh->sh_offset + sym->st_value, sym->st_size);
		if (!f->insns)
			continue;
		f->name = symbol_name(elf, sym);
		f->section = elf_bpf_section(elf, sym->st_shndx);
		f->sec = sym->st_shndx;
		f->off = sym->st_value;
		f->nr_insns = sym->st_size / sizeof(struct bpf_insn);
		elf->nr_func++;
	}
	qsort(elf->func, elf->nr_func, sizeof(*elf->func), by_place);
	return 0;
}

int elf_bpf_open(const void *data, size_t size, struct elf_bpf *elf)
{
	int rc;

	*elf = (struct elf_bpf){ .data = data, .size = size, .eh = data };
	if (size < sizeof(*elf->eh))
		return -EINVAL;
	elf->sh = bytes(elf, elf->eh->e_shoff, (u64)elf->eh->e_shnum * sizeof(*elf->sh));
	if (!elf->sh || elf->eh->e_shstrndx >= elf->eh->e_shnum)
		return -EINVAL;
	rc = find_symbols(elf);
	if (!rc)
		rc = find_functions(elf);
	if (rc)
		elf_bpf_close(elf);
	return rc;
}

void elf_bpf_close(struct elf_bpf *elf)
{
	free(elf->func);
	elf->func = NULL;
	elf->nr_func = 0;
}

const char *elf_bpf_reloc(const struct elf_bpf *elf, u32 sec, u32 off, const Elf64_Sym **ret_sym)
{
	for (u32 i = 0; i < elf->eh->e_shnum; i++) {
		const Elf64_Shdr *sh = &elf->sh[i];
		const Elf64_Rel *rel;

		if (sh->sh_type != SHT_REL || sh->sh_info != sec)
			continue;
		rel = bytes(elf, sh->sh_offset, sh->sh_size);
		for (u64 k = 0; rel && k < sh->sh_size / sizeof(*rel); k++) {
			u32 n = ELF64_R_SYM(rel[k].r_info);

			if (rel[k].r_offset != off || n >= elf->nr_sym)
				continue;
			if (ret_sym)
				*ret_sym = &elf->sym[n];
			return symbol_name(elf, &elf->sym[n]);
		}
	}
	return NULL;
}

const struct elf_func *elf_bpf_func_at(const struct elf_bpf *elf, u32 sec, u32 off)
{
	for (u32 i = 0; i < elf->nr_func; i++)
		if (elf->func[i].sec == sec && elf->func[i].off == off)
			return &elf->func[i];
	return NULL;
}

/* ---- source lines ---- */

static const void *find_section(const struct elf_bpf *elf, const char *name, u64 *ret_size)
{
	for (u32 i = 0; i < elf->eh->e_shnum; i++) {
		if (strcmp(elf_bpf_section(elf, i), name) || elf->sh[i].sh_type == SHT_NOBITS)
			continue;
		*ret_size = elf->sh[i].sh_size;
		return bytes(elf, elf->sh[i].sh_offset, elf->sh[i].sh_size);
	}
	return NULL;
}

/* Head of .BTF.ext, as far as line information goes. */
struct ext_header {
	u16 magic;
	u8 version, flags;
	u32 hdr_len, func_info_off, func_info_len, line_info_off, line_info_len;
};

struct line_source {
	const char *str; /* BTF's strings */
	u64 str_size;
	const char *info; /* line_info of all sections */
	u64 info_size;
};

static bool open_lines(const struct elf_bpf *elf, struct line_source *s)
{
	u64 btf_size = 0, ext_size = 0;
	const struct btf_header *btf = find_section(elf, ".BTF", &btf_size);
	const struct ext_header *ext = find_section(elf, ".BTF.ext", &ext_size);

	if (!btf || !ext || btf_size < sizeof(*btf) || ext_size < sizeof(*ext))
		return false;
	if ((u64)btf->hdr_len + btf->str_off > btf_size ||
	    btf->str_len > btf_size - btf->hdr_len - btf->str_off)
		return false;
	if ((u64)ext->hdr_len + ext->line_info_off > ext_size ||
	    ext->line_info_len > ext_size - ext->hdr_len - ext->line_info_off)
		return false;
	s->str = (const char *)btf + btf->hdr_len + btf->str_off;
	s->str_size = btf->str_len;
	s->info = (const char *)ext + ext->hdr_len + ext->line_info_off;
	s->info_size = ext->line_info_len;
	return true;
}

static int copy_lines(const struct line_source *s, const char *recs, u32 nr, u32 rec_size,
		      struct elf_line **ret)
{
	struct elf_line *lines = calloc(nr ? nr : 1, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	for (u32 i = 0; i < nr; i++) {
		u32 rec[4];

		memcpy(rec, recs + (u64)i * rec_size, sizeof(rec));
		lines[i] = (struct elf_line){
			.off = rec[0],
			.file = text_at(s->str, s->str_size, rec[1]),
			.text = text_at(s->str, s->str_size, rec[2]),
			.line = rec[3] >> 10,
		};
	}
	*ret = lines;
	return nr;
}

int elf_bpf_lines(const struct elf_bpf *elf, u32 sec, struct elf_line **ret)
{
	struct line_source s;
	u32 rec_size, head[2];
	u64 at = sizeof(rec_size);

	*ret = NULL;
	if (!open_lines(elf, &s) || s.info_size < sizeof(rec_size))
		return 0;
	memcpy(&rec_size, s.info, sizeof(rec_size));
	if (rec_size < 16)
		return 0;
	while (s.info_size - at >= sizeof(head)) {
		memcpy(head, s.info + at, sizeof(head)); /* section name, records */
		at += sizeof(head);
		if ((u64)head[1] * rec_size > s.info_size - at)
			return 0;
		if (!strcmp(text_at(s.str, s.str_size, head[0]), elf_bpf_section(elf, sec)))
			return copy_lines(&s, s.info + at, head[1], rec_size, ret);
		at += (u64)head[1] * rec_size;
	}
	return 0;
}
