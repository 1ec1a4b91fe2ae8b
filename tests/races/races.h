/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the race tests of local storage. */
#ifndef INLAY_TESTS_RACES_H
#define INLAY_TESTS_RACES_H

#include "maps/local_storage_int.h"

/* An owner that is no task of the machine's: what task_get() and task_delete() take for one. */
struct race_owner {
	struct env_owner owner;
	u64 obj[4];
};

/* Every operation interrupted in every window by a program that gets, creates or deletes. map: of 8-byte values. */
void nested(const struct storage_ops *impl, struct map *map);

/* Calls ok() of the test's main file. */
bool race_ok(bool cond, const char *what, const char *more);

#endif
