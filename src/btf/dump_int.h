/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that write C share. */
#ifndef INLAY_BTF_DUMP_INT_H
#define INLAY_BTF_DUMP_INT_H

#include "btf/btf_int.h"

/* C has two name spaces at file scope: tags (struct, union, enum) and everything else. */
enum dump_space {
	DUMP_TAGS,
	DUMP_ORDINARY,
};

struct dump_name {
	u32 text; /* offset in pool; 0: free slot */
	u32 space;
	u32 next; /* suffix to try next for another of this name */
};

struct dump_names {
	struct strbuf pool; /* all names, NUL between; byte 0 is unused */
	struct dump_name *table;
	u32 mask, used;
};

/* How a struct is laid out by the C we write for it. */
struct dump_layout {
	u32 align; /* bytes; 0: not computed yet */
	bool packed;
	bool opaque; /* members overlap or have no C type: only its bytes are written */
};

struct dump {
	const struct btf *btf;
	struct strbuf *out;
	struct dump_names names;
	u32 *name;		    /* by id: offset in names.pool; 0: none */
	struct dump_layout *layout; /* by id: structs and unions */
	bool quiet;		    /* only compute layouts */
	u32 nr_gaps;		    /* written so far in the struct at hand */
	size_t max_text; /* anonymous structs are written wherever they are used: an end to that */
	int err;	 /* sticky */
};

/* dump_names.c */
int btf_dump_names_init(struct dump *d);
void btf_dump_names_fini(struct dump *d);
/* A name of its own, as like text as possible and fit for C: offset in names.pool, 0 when out of
 * memory. */
u32 btf_dump_unique_name(struct dump *d, enum dump_space space, const char *text);
const char *btf_dump_name_of(const struct dump *d, u32 id);
/* Member or argument names: appends text made fit for C. */
void btf_dump_put_identifier(struct dump *d, const char *text);
/*
 * C's own name for an integer or float, if the type has one and it has the right size; else NULL.
 */
const char *btf_dump_builtin_name(const struct btf *btf, const struct btf_type *t);

/* dump_decl.c */
/* "type name" for a declaration; anonymous structs are written out, indented by depth. depth counts
 * those. */
void btf_dump_decl(struct dump *d, u32 id, const char *name, u32 depth);
/* "struct name { members }" without what follows. */
void btf_dump_struct(struct dump *d, u32 id, u32 depth);
void btf_dump_enum(struct dump *d, u32 id, u32 depth);

/* dump_layout.c */
/* Alignment of a type in our C; members' structs must have their layout already. */
u32 btf_dump_align(const struct dump *d, u32 id);
void btf_dump_compute_layout(struct dump *d, u32 id);
/* Bits of a member from the start of its struct, its width if it is a bit field (else 0) and the
 * bits it takes. */
void btf_dump_member_bits(const struct dump *d, const struct btf_type *t,
			  const struct btf_member *m, u64 *ret_bit, u32 *ret_field, u64 *ret_bits);

#endif
