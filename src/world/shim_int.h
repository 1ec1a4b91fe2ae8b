/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions behind the names of shim.syms. Called by the private libbpf only. */
#ifndef INLAY_WORLD_SHIM_INT_H
#define INLAY_WORLD_SHIM_INT_H

#include <stdio.h>
#include <sys/types.h>
#include <zlib.h>

struct epoll_event;
struct utsname;

extern FILE *shim_stderr __attribute__((visibility("hidden")));

long shim_syscall(long nr, ...);
FILE *shim_fopen64(const char *path, const char *mode);
int shim_open64(const char *path, int flags, ...);
int shim_faccessat(int dir, const char *path, int mode, int flags);
gzFile shim_gzopen64(const char *path, const char *mode);
int shim_uname(struct utsname *u);
void *shim_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int shim_munmap(void *addr, size_t len);
int shim_close(int fd);
int shim_ioctl(int fd, unsigned long req, ...);
int shim_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int shim_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout);

#endif
