/* SPDX-License-Identifier: BSD-2-Clause */
/* Every kernel function's descriptor, one a row of kfuncs.def; the body stands beside it in its family's file. */
#ifndef INLAY_HELPERS_KFUNCS_INT_H
#define INLAY_HELPERS_KFUNCS_INT_H

#include "object/helper.h"

#define KFUNC(name_, group_) extern const struct kfunc_desc kfunc_##name_;
#include "helpers/kfuncs.def"
#undef KFUNC

#endif
