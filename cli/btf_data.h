/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of a map as JSON, by their BTF type. */
#ifndef INLAY_CLI_BTF_DATA_H
#define INLAY_CLI_BTF_DATA_H

#include <stdio.h>

#include "base/types.h"

struct btf; /* libbpf's */

/*
 * Numbers, strings (char arrays that hold printable text up to a NUL), names of enumerators,
 * objects and lists. What has no type (btf NULL or type_id 0), or bytes the type does not cover, is
 * a string of hex digits.
 */
void btf_data_print(FILE *f, const struct btf *btf, u32 type_id, const void *data, size_t size);

/* Orders two keys of the type: integers by value, others by their bytes. */
int btf_data_compare(const struct btf *btf, u32 type_id, size_t size, const void *a, const void *b);

#endif
