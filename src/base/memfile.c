// SPDX-License-Identifier: BSD-2-Clause
// A memfd with the engine's own mapping.
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int memfile_init(struct memfile *mf, const char *name, size_t size)
{
	int err;

	*mf = (struct memfile){ .fd = -1 };
	size = align_up(size, sysconf(_SC_PAGESIZE));
	mf->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (mf->fd < 0)
		return -errno;
	if (!size)
		return 0;
	if (ftruncate(mf->fd, size)) {
		err = -errno;
		goto err_close;
	}
	mf->addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, mf->fd, 0);
	if (mf->addr == MAP_FAILED) {
		err = -errno;
		goto err_close;
	}
	mf->size = size;
	return 0;

err_close:
	close(mf->fd);
	*mf = (struct memfile){ .fd = -1 };
	return err;
}

void memfile_fini(struct memfile *mf)
{
	if (mf->addr && mf->size)
		munmap(mf->addr, mf->size);
	if (mf->fd >= 0)
		close(mf->fd);
	*mf = (struct memfile){ .fd = -1 };
}

int memfile_has_writer(const struct memfile *mf)
{
	unsigned long start, own = (unsigned long)mf->addr;
	unsigned int maj, min;
	struct stat st;
	char perm[8];
	u64 ino;
	char *line = NULL;
	size_t cap = 0;
	int found = 0;
	FILE *f;

	if (fstat(mf->fd, &st))
		return -errno;
	f = fopen("/proc/self/maps", "re");
	if (!f)
		return -errno;
	while (!found && getline(&line, &cap, f) > 0) {
		if (sscanf(line, "%lx-%*x %7s %*x %x:%x %" SCNu64, &start, perm, &maj, &min, &ino) != 5)
			continue;
		if (ino != st.st_ino || makedev(maj, min) != st.st_dev || perm[1] != 'w')
			continue;
		found = start != own;
	}
	free(line);
	fclose(f);
	return found;
}

int memfile_seal(struct memfile *mf)
{
	return fcntl(mf->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) ? -errno : 0;
}
