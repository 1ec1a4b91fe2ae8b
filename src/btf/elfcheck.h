/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own check of a BPF object's bytes, before libelf or libbpf sees them. */
#ifndef INLAY_BTF_ELFCHECK_H
#define INLAY_BTF_ELFCHECK_H

#include "base/strbuf.h"
#include "base/types.h"

/*
 * Whether the bytes are a relocatable 64-bit little-endian BPF object whose headers, sections,
 * symbols, relocations, BTF and BTF.ext stay inside themselves and refer only to what exists.
 * Refuses nothing clang writes that libbpf could open. 0, or -EINVAL (-ENOMEM) and one line without
 * a newline in reason, which names section, symbol or relocation. Nothing of data is kept. Time and
 * memory are linear in size.
 */
int btf_elfcheck(const void *data, size_t size, struct strbuf *reason);

#endif
