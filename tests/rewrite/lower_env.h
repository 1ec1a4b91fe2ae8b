/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of lowering: helpers and a map type of which everything is known, and a program run with and without it. */
#ifndef INLAY_TESTS_REWRITE_LOWER_ENV_H
#define INLAY_TESTS_REWRITE_LOWER_ENV_H

#include <errno.h>

#include "../exec/bare.h"
#include "object/map.h"
#include "rewrite/rewrite_int.h"

/* Helpers by number, for the assembler's "call N". */
enum {
	CALL_MIX = 1,	 /* a number in which every argument is seen */
	CALL_LOOP = 2,	 /* bpf_loop */
	CALL_LOOKUP = 3, /* takes the fake map and a key */
	CALL_SEVEN = 4,	 /* has code of its own: 7 */
	CALL_PURE = 5,	 /* HELPER_PURE, no arguments */
	CALL_UPDATE = 6, /* takes the fake map, key, value, flags */
};

#define FAKE_ENTRIES 4

/* A map of FAKE_ENTRIES values of 8 bytes that counts which way was taken to it. */
struct fake_map {
	struct map map;
	u64 value[FAKE_ENTRIES];
	u64 outlined, direct; /* calls */
	bool folded;	      /* some call had a constant key */
};

extern struct fake_map fake;
extern const struct caps caps_all;

u64 fake_mix(u64 a, u64 b, u64 c, u64 d, u64 e);

#endif
