// SPDX-License-Identifier: BSD-2-Clause
// Descriptors of objects: see fds.h for how a last close is noticed.
#include "world/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "object/map.h"

#define FDS_BUCKETS 256 /* power of two */

enum fds_key { KEY_OBJ, KEY_INODE, KEY_WATCH, KEYS };

struct fds_entry {
	struct obj *obj; /* one reference for all its descriptors */
	struct fds_entry *next[KEYS];
	u64 key[KEYS];
	dev_t dev;
	int fd;		   /* our own opening of the inode, the one that asks for the lease */
	int wd;		   /* inotify watch; -1: none, then every reap asks */
	u64 suspect_until; /* ns; 0: no close was heard of that could still be under way */
	struct fds_entry *next_suspect;
	long installs, closes; /* only where leases do not work */
};

/*
 * The kernel tells of a close before it has taken it off the inode's count, so the lease may be
 * refused once too often: an entry is asked after for this long after each event.
 */
#define SUSPECT_NS 1000000000ULL

struct fds_state {
	pthread_mutex_t
		lock; /* guards all below; taken after inlay->lock, never around obj_put() */
	struct fds_entry *bucket[KEYS][FDS_BUCKETS];
	int inotify; /* -1: none to be had */
	u32 forks;   /* nr_forks when it was made: a fork's child must not eat our events */
	struct fds_entry *suspects;
	u32 count, unwatched;
};

static u32 nr_forks; /* this process's generation */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
	nr_forks++;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

static struct fds_state *state_of(struct inlay *inlay)
{
	return inlay->fd_state;
}

static u32 bucket_of(u64 key)
{
	return (u32)((key * 0x9e3779b97f4a7c15ULL) >> 40) & (FDS_BUCKETS - 1);
}

static struct fds_entry *entry_find(struct fds_state *st, enum fds_key by, u64 key)
{
	struct fds_entry *e;

	for (e = st->bucket[by][bucket_of(key)]; e; e = e->next[by])
		if (e->key[by] == key)
			return e;
	return NULL;
}

static void entry_link(struct fds_state *st, struct fds_entry *e)
{
	int by;

	for (by = 0; by < KEYS; by++) {
		struct fds_entry **head = &st->bucket[by][bucket_of(e->key[by])];

		e->next[by] = *head;
		*head = e;
	}
	st->count++;
	st->unwatched += e->wd < 0;
}

static void entry_unlink(struct fds_state *st, struct fds_entry *e)
{
	int by;

	for (by = 0; by < KEYS; by++) {
		struct fds_entry **p = &st->bucket[by][bucket_of(e->key[by])];

		while (*p != e)
			p = &(*p)->next[by];
		*p = e->next[by];
	}
	st->count--;
	st->unwatched -= e->wd < 0;
}

static int reopen(int fd, int flags)
{
	char path[40];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = open(path, flags | O_CLOEXEC);
	return ret < 0 ? -errno : ret;
}

/* An opening of the object's memory, or of a new empty file that can never hold anything. */
static int open_backing(struct obj *obj)
{
	struct memfile *mf = obj->ops->memfile ? obj->ops->memfile(obj) : NULL;
	int fd, ret;

	if (mf) {
		/* a user who shrinks the file would have us fault on our own memory */
		if (mf->size)
			fcntl(mf->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
		return reopen(mf->fd, O_RDWR);
	}
	fd = memfd_create("inlay-object", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	ret = reopen(fd, O_RDWR);
	close(fd);
	return ret;
}

static int watch(struct fds_state *st, int fd)
{
	char path[40];

	if (st->inotify < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return inotify_add_watch(st->inotify, path, IN_CLOSE);
}

static int entry_create(struct fds_state *st, struct obj *obj, struct fds_entry **ret_entry)
{
	struct fds_entry *e = calloc(1, sizeof(*e));
	struct stat sb;
	int err;

	if (!e)
		return -ENOMEM;
	e->fd = open_backing(obj);
	if (e->fd < 0) {
		err = e->fd;
		goto err_free;
	}
	if (fstat(e->fd, &sb)) {
		err = -errno;
		goto err_close;
	}
	/* whoever opens the file while we hold the lease for an instant has us signalled: let it be
	 * one ignored by default */
	fcntl(e->fd, F_SETSIG, SIGURG);
	e->wd = watch(st, e->fd);
	e->dev = sb.st_dev;
	e->key[KEY_OBJ] = (u64)(uintptr_t)obj;
	e->key[KEY_INODE] = sb.st_ino;
	e->key[KEY_WATCH] = (u64)(s64)e->wd;
	e->obj = obj;
	*ret_entry = e;
	return 0;

err_close:
	close(e->fd);
err_free:
	free(e);
	return err;
}

static void entry_close(struct fds_state *st, struct fds_entry *e)
{
	if (e->wd >= 0)
		inotify_rm_watch(st->inotify, e->wd);
	close(e->fd);
}

static int fds_install_as(struct inlay *inlay, struct obj *obj, int accmode)
{
	struct fds_state *st = state_of(inlay);
	struct fds_entry *e;
	bool fresh;
	int fd;

	pthread_mutex_lock(&st->lock);
	e = entry_find(st, KEY_OBJ, (u64)(uintptr_t)obj);
	fresh = !e;
	if (fresh) {
		fd = entry_create(st, obj, &e);
		if (fd)
			goto out;
	}
	fd = reopen(e->fd, accmode);
	if (fd < 0) {
		if (fresh) {
			entry_close(st, e);
			free(e);
		}
		goto out;
	}
	e->installs++;
	if (fresh) {
		obj_get(obj);
		entry_link(st, e);
	}
out:
	pthread_mutex_unlock(&st->lock);
	if (fd < 0)
		log_to(&inlay->log, LOG_ERR, "cannot make a descriptor: %s", strerror(-fd));
	return fd;
}

static int fds_install(struct inlay *inlay, struct obj *obj)
{
	return fds_install_as(inlay, obj, O_RDWR);
}

static int fds_get(struct inlay *inlay, int fd, struct obj **ret_obj)
{
	struct fds_state *st = state_of(inlay);
	struct fds_entry *e;
	struct stat sb;

	if (fstat(fd, &sb))
		return -EBADF;
	pthread_mutex_lock(&st->lock);
	e = entry_find(st, KEY_INODE, sb.st_ino);
	if (e && e->dev == sb.st_dev)
		obj_get(e->obj);
	else
		e = NULL;
	if (e)
		*ret_obj = e->obj;
	pthread_mutex_unlock(&st->lock);
	return e ? 0 : -EINVAL;
}

static int fds_accmode(struct inlay *inlay, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -EBADF : flags & O_ACCMODE;
}

/* Does anybody but us have the file open (mappings count)? */
static bool entry_is_open(struct fds_entry *e)
{
	if (!fcntl(e->fd, F_SETLEASE, F_WRLCK)) {
		fcntl(e->fd, F_SETLEASE, F_UNLCK);
		return false;
	}
	if (errno == EAGAIN || errno == EBUSY)
		return true;
	return e->closes < e->installs;
}

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Something was closed: e joins the suspects. */
static void suspect(struct fds_state *st, struct fds_entry *e)
{
	e->closes++;
	if (!e->suspect_until) {
		e->next_suspect = st->suspects;
		st->suspects = e;
	}
	e->suspect_until = now_ns() + SUSPECT_NS;
}

/*
 * Those that are closed for good end here, but for their objects, which are handed to gone:
 * obj_put() takes other locks. The watch ends under the lock: an object that lives on may get a new
 * entry, for the same inode, at any moment.
 */
static void check_suspects(struct fds_state *st, struct fds_entry **gone)
{
	struct fds_entry **p = &st->suspects, *e;
	u64 now = *p ? now_ns() : 0;
	bool open;

	while ((e = *p)) {
		open = entry_is_open(e);
		if (open && now < e->suspect_until) {
			p = &e->next_suspect;
			continue;
		}
		*p = e->next_suspect;
		e->suspect_until = 0;
		if (open)
			continue;
		entry_unlink(st, e);
		entry_close(st, e);
		e->next[KEY_OBJ] = *gone;
		*gone = e;
	}
}

static void suspect_all(struct fds_state *st, bool unwatched_only)
{
	struct fds_entry *e;
	int i;

	for (i = 0; i < FDS_BUCKETS; i++)
		for (e = st->bucket[KEY_OBJ][i]; e; e = e->next[KEY_OBJ])
			if (!unwatched_only || e->wd < 0)
				suspect(st, e);
}

static void read_events(struct fds_state *st)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *ev;
	struct fds_entry *e;
	ssize_t n, at;

	while ((n = read(st->inotify, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n; at += sizeof(*ev) + ev->len) {
			ev = (const struct inotify_event *)(buf + at);
			if (ev->mask & IN_Q_OVERFLOW) {
				suspect_all(st, false);
				continue;
			}
			e = ev->mask & IN_CLOSE ? entry_find(st, KEY_WATCH, (u64)(s64)ev->wd)
						: NULL;
			if (e)
				suspect(st, e);
		}
		if (n < (ssize_t)(sizeof(buf) - sizeof(*ev)))
			break; /* the queue was shorter than the buffer */
	}
}

/* What a map holds for its users goes with the last of their descriptors, though programs may have the map still. */
static void user_gone(struct obj *obj)
{
	if (obj->kind == OBJ_MAP && map_of(obj)->ops->user_gone)
		map_of(obj)->ops->user_gone(map_of(obj));
}

static void fds_reap(struct inlay *inlay)
{
	struct fds_state *st = state_of(inlay);
	struct fds_entry *gone = NULL, *e;
	struct obj *obj;

	pthread_mutex_lock(&st->lock);
	if (st->count && st->forks == nr_forks) {
		if (st->inotify >= 0)
			read_events(st);
		if (st->unwatched)
			suspect_all(st, true);
		check_suspects(st, &gone);
	}
	pthread_mutex_unlock(&st->lock);
	while (gone) {
		e = gone;
		gone = e->next[KEY_OBJ];
		obj = e->obj;
		free(e);
		user_gone(obj);
		obj_put(obj);
	}
}

static void fds_fini(struct inlay *inlay)
{
	struct fds_state *st = state_of(inlay);
	struct fds_entry *e;
	struct obj *obj;
	int i;

	for (i = 0; i < FDS_BUCKETS; i++) {
		while ((e = st->bucket[KEY_OBJ][i])) {
			obj = e->obj;
			entry_unlink(st, e);
			entry_close(st, e);
			free(e);
			user_gone(obj);
			obj_put(obj);
		}
	}
	if (st->inotify >= 0)
		close(st->inotify);
	pthread_mutex_destroy(&st->lock);
	free(st);
	inlay->fd_state = NULL;
}

static const struct fd_ops world_fd_ops = {
	.install = fds_install,
	.install_as = fds_install_as,
	.accmode = fds_accmode,
	.get = fds_get,
	.reap = fds_reap,
	.fini = fds_fini,
};

int world_fds_init(struct inlay *inlay)
{
	struct fds_state *st = calloc(1, sizeof(*st));

	if (!st)
		return -ENOMEM;
	pthread_mutex_init(&st->lock, NULL);
	pthread_once(&fork_once, watch_forks);
	st->forks = nr_forks;
	st->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (st->inotify < 0)
		log_to(&inlay->log, LOG_DEBUG, "no inotify (%s): every call asks after each object",
		       strerror(errno));
	inlay->fd_state = st;
	inlay->fds = &world_fd_ops;
	return 0;
}

int world_fds_wait_fd(struct inlay *inlay, struct obj *obj)
{
	struct fds_state *st = state_of(inlay);
	int fd;

	if (!obj->ops->readable)
		return -EPERM;
	pthread_mutex_lock(&st->lock);
	fd = obj->wait_fd;
	if (fd < 0) {
		fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (fd < 0)
			fd = -errno;
		else
			__atomic_store_n(&obj->wait_fd, fd, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&st->lock);
	return fd;
}

/* Drain first, look second: a writer that comes between leaves the eventfd readable. */
static void sync_one(struct obj *obj)
{
	u64 count;

	if (!obj->ops->readable(obj) && read(obj->wait_fd, &count, sizeof(count)) < 0)
		return; /* was empty */
	if (obj->ops->readable(obj))
		obj_wake(obj);
}

void world_fds_sync(struct inlay *inlay)
{
	struct fds_state *st = state_of(inlay);
	struct fds_entry *e;
	int i;

	pthread_mutex_lock(&st->lock);
	for (i = 0; i < FDS_BUCKETS; i++)
		for (e = st->bucket[KEY_OBJ][i]; e; e = e->next[KEY_OBJ])
			if (e->obj->wait_fd >= 0)
				sync_one(e->obj);
	pthread_mutex_unlock(&st->lock);
}

u32 world_fds_count(struct inlay *inlay)
{
	struct fds_state *st = state_of(inlay);
	u32 count;

	pthread_mutex_lock(&st->lock);
	count = st->count;
	pthread_mutex_unlock(&st->lock);
	return count;
}
