/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of cgroups (version 2) on the running machine. */
#ifndef INLAY_CLI_CGROUP_H
#define INLAY_CLI_CGROUP_H

#include "base/types.h"

/* Where the hierarchy is mounted; "/sys/fs/cgroup" if it is nowhere. */
const char *cli_cgroup_root(void);
/*
 * Its path in the hierarchy, without the mount point and leading slashes: of "/sys/fs/cgroup/a" and
 * "/a" it is "a".
 */
const char *cli_cgroup_name(const char *path);
/* The id of the cgroup with this path; 0: there is none. */
u64 cli_cgroup_id(const char *path);

#endif
