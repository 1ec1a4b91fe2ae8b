// SPDX-License-Identifier: BSD-2-Clause
// Tail calls: the engines make them (HELPER_TAIL_CALL); there is no body to call.
#include <linux/bpf.h>

#include "helpers/helpers_int.h"

const struct helper_desc helper_tail_call = {
	HELPER_IS(tail_call, 12),
	.flags = HELPER_TAIL_CALL,
	.ret = RET_VOID,
	.arg = {ARG_PTR_TO_CTX, ARG_CONST_MAP_PTR, ARG_ANYTHING},
	.map_types = 1ULL << BPF_MAP_TYPE_PROG_ARRAY,
};
