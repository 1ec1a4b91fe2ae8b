/* SPDX-License-Identifier: BSD-2-Clause */
/* BTF as C declarations. */
#ifndef INLAY_BTF_DUMP_C_H
#define INLAY_BTF_DUMP_C_H

#include "btf/btf.h"

/*
 * Appends a header that a C compiler accepts: every named struct, union, enum and typedef, each
 * after what it needs, laid out as the BTF says on a 64-bit machine. Names that occur twice get a
 * suffix ("foo___2"); a struct that no C declaration can lay out is written as its bytes; type and
 * declaration tags are left out. 0; -EINVAL: types that need each other, which C cannot order;
 * -E2BIG: nested deeper or longer than any real one; -ENOMEM. On an error what was written so far
 * stays in out.
 */
int btf_dump_c(const struct btf *btf, struct strbuf *out);

/*
 * Appends one type's declaration, its members expanded one level: "struct foo {...};". 0 or -errno.
 */
int btf_dump_c_type(const struct btf *btf, u32 id, struct strbuf *out);

#endif
