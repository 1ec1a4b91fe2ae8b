// SPDX-License-Identifier: BSD-2-Clause
// The small commands: statistics, binding, pins, tokens, streams.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/ticks.h"
#include "isa/uapi.h"
#include "object/map.h"
#include "object/prog.h"
#include "sys/sys_int.h"

/* ---- ENABLE_STATS: run statistics are kept while the descriptor is open ---- */

static void stats_release(struct obj *obj)
{
	__atomic_sub_fetch(&obj->inlay->stats_users, 1, __ATOMIC_RELAXED);
	free(obj);
}

static const struct obj_ops stats_ops = {
	.release = stats_release,
};

long sys_enable_stats(struct sys_call *c)
{
	struct obj *obj;

	if (c->attr.enable_stats.type != BPF_STATS_RUN_TIME)
		return -EINVAL;
	obj = calloc(1, sizeof(*obj));
	if (!obj)
		return -ENOMEM;
	obj_init(obj, c->inlay, OBJ_STATS, &stats_ops);
	arch_ticks_init(); /* what runs are timed with */
	__atomic_add_fetch(&c->inlay->stats_users, 1, __ATOMIC_RELAXED);
	return sys_return_fd(c, obj, O_RDWR);
}

/* ---- PROG_BIND_MAP: the program keeps the map, as if it used it ---- */

static int add_map(struct prog *prog, struct map *map)
{
	struct map **maps;
	u32 i;

	for (i = 0; i < prog->nr_maps; i++)
		if (prog->maps[i] == map)
			return 0;
	maps = realloc(prog->maps, (prog->nr_maps + 1) * sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	obj_get(&map->obj);
	prog->maps = maps;
	maps[prog->nr_maps++] = map;
	return 0;
}

/* The list is read under the same lock (sys_prog_info), and by nothing that runs. */
int sys_prog_add_map(struct inlay *inlay, struct prog *prog, struct map *map)
{
	int err;

	pthread_mutex_lock(&inlay->lock);
	err = add_map(prog, map);
	pthread_mutex_unlock(&inlay->lock);
	return err;
}

long sys_prog_bind_map(struct sys_call *c)
{
	struct prog *prog;
	struct map *map;
	int err;

	if (c->attr.prog_bind_map.flags)
		return -EINVAL;
	err = sys_get_prog(c, c->attr.prog_bind_map.prog_fd, &prog);
	if (err)
		return err;
	err = sys_get_map(c, c->attr.prog_bind_map.map_fd, &map);
	if (!err) {
		err = sys_prog_add_map(c->inlay, prog, map);
		obj_put(&map->obj);
	}
	obj_put(&prog->obj);
	return err;
}

/* ---- pins: there is no bpffs in a process ---- */

static int read_path(struct sys_call *c)
{
	char path[PATH_MAX];
	long n = user_read_str(c->um, path, c->attr.obj.pathname, sizeof(path));

	return n < 0 ? n : n ? 0 : -ENOENT;
}

long sys_obj_pin(struct sys_call *c)
{
	struct obj *obj;
	int err;

	if (c->attr.obj.file_flags & ~BPF_F_PATH_FD ||
	    (!c->attr.obj.file_flags && c->attr.obj.path_fd))
		return -EINVAL;
	if (c->inlay->fds->get(c->inlay, (int)c->attr.obj.bpf_fd, &obj))
		return -EINVAL; /* not open is no other word here */
	obj_put(obj);
	err = read_path(c);
	if (err)
		return err;
	log_to(&c->inlay->log, LOG_ERR, "object pin: the user engine has no bpffs to pin on");
	return -EPERM;
}

long sys_obj_get(struct sys_call *c)
{
	u32 known = BPF_F_RDONLY | BPF_F_WRONLY | BPF_F_PATH_FD, flags = c->attr.obj.file_flags;
	int err;

	if (c->attr.obj.bpf_fd || flags & ~known ||
	    (!(flags & BPF_F_PATH_FD) && c->attr.obj.path_fd))
		return -EINVAL;
	if ((flags & BPF_F_RDONLY) && (flags & BPF_F_WRONLY))
		return -EINVAL;
	err = read_path(c);
	return err ? err : -ENOENT; /* nothing was ever pinned */
}

/* ---- TOKEN_CREATE: needs a bpffs mount with delegation options ---- */

long sys_token_create(struct sys_call *c)
{
	if (c->attr.token_create.flags)
		return -EINVAL;
	return c->inlay->fds->accmode(c->inlay, (int)c->attr.token_create.bpffs_fd) < 0 ? -EBADF
											: -EINVAL;
}

/* ---- PROG_STREAM_READ_BY_FD: streams hold what bpf_stream_* kfuncs wrote, and there are none of
 * these ---- */

long sys_prog_stream_read(struct sys_call *c)
{
	u32 id = c->attr.prog_stream.stream_id;
	struct prog *prog;
	int err = sys_get_prog(c, c->attr.prog_stream.prog_fd, &prog);

	if (err)
		return err;
	obj_put(&prog->obj);
	return id == 1 || id == 2 ? 0 : -ENOENT;
}
