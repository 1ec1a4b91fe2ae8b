// SPDX-License-Identifier: BSD-2-Clause
// What is no call but part of the language: the engines throw, and rewrite/ makes a cast a move.
#include "helpers/kfuncs_int.h"

const struct kfunc_desc kfunc_bpf_throw = {
	.name = "bpf_throw",
	.flags = KFUNC_THROWS,
	.proto = "v i",
};

const struct kfunc_desc kfunc_bpf_rdonly_cast = {
	.name = "bpf_rdonly_cast",
	.flags = KFUNC_CAST | KFUNC_FASTCALL,
	.proto = "p p i",
};
