/* SPDX-License-Identifier: BSD-2-Clause */
/* Every helper's descriptor, one a row of helpers.def; the body stands beside it in its family's file. */
#ifndef INLAY_HELPERS_HELPERS_INT_H
#define INLAY_HELPERS_HELPERS_INT_H

#include "object/helper.h"

#define HELPER(id_, name_, groups_) extern const struct helper_desc helper_##name_;
#include "helpers/helpers.def"
#undef HELPER

/* The first two members of every descriptor: HELPER_IS(ktime_get_ns, 5). Number and name are checked against the row. */
#define HELPER_IS(name_, id_) .name = "bpf_" #name_, .id = (id_)

#endif
