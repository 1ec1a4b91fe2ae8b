/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory behind a descriptor: a memfd and the engine's own mapping of it, so that a user can map the same pages. */
#ifndef INLAY_BASE_MEMFILE_H
#define INLAY_BASE_MEMFILE_H

#include "base/types.h"

struct memfile {
	int fd;	     /* memfd, never handed out itself; -1: none */
	void *addr;  /* read-write mapping of [0, size); NULL when size is 0 */
	size_t size; /* bytes, a multiple of the page size */
};

/* size is rounded up to pages; name shows in /proc/PID/maps. 0 or -errno; on failure mf is as memfile_fini() leaves it. */
int memfile_init(struct memfile *mf, const char *name, size_t size);
/* Takes NULL-like (fd -1) files. The pages stay while anybody maps them. */
void memfile_fini(struct memfile *mf);

/*
 * 1 if a mapping of this file other than the engine's own can be written (from /proc/self/maps), 0 if none, -errno.
 * Only mappings of this process are seen.
 */
int memfile_has_writer(const struct memfile *mf);

/* From now on new writable mappings and write(2) are refused by the kernel (F_SEAL_FUTURE_WRITE). 0 or -errno. */
int memfile_seal(struct memfile *mf);

#endif
