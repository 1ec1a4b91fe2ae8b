/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects as real descriptors of this process.
 *
 * Each object that was ever handed out has a memfd (its own memory, or an empty one). What the user
 * gets is that file opened once more through /proc/self/fd, so that the descriptor survives dup,
 * fcntl, dup3, fork, passing over a socket and mmap by whatever means, and is recognised by the
 * inode behind it.
 *
 * The object must go when the last descriptor and mapping does, and nobody tells us of a close. Two
 * kernel facts do: inotify says that *some* opening of the inode was closed for good (equal events
 * in a row are merged, so they cannot be counted), and a write lease is granted exactly while
 * nobody else has the inode open. The first is the hint, the second the truth.
 */
#ifndef INLAY_WORLD_FDS_H
#define INLAY_WORLD_FDS_H

#include "object/instance.h"

/* Gives the engine its descriptors (inlay->fds). 0 or -errno; the reason is in the engine's log. */
int world_fds_init(struct inlay *inlay);

/*
 * The eventfd that epoll may watch in the place of obj's descriptor; made on first use. A
 * descriptor (the object's) or -errno: -EPERM the object is never readable.
 */
int world_fds_wait_fd(struct inlay *inlay, struct obj *obj);

/* Makes each such eventfd readable exactly if its object is. To be called before waiting. */
void world_fds_sync(struct inlay *inlay);

/* Number of objects that have descriptors or mappings. */
u32 world_fds_count(struct inlay *inlay);

#endif
