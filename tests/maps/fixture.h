/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the map tests stand on: a small machine, descriptors, and map operations by bpf(2)'s rules
 * for two sides, inlay's map types and the running kernel, so that a test can ask both the same.
 */
#ifndef INLAY_TESTS_MAPS_FIXTURE_H
#define INLAY_TESTS_MAPS_FIXTURE_H

#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "btf/btf.h"
#include "env/env.h"
#include "object/instance.h"
#include "object/map.h"
#include "object/task_fd.h"
#include "rcu/mem.h"
#include "rcu/rcu.h"
#include "tap.h"

/* ---- BTF made by hand ---- */

struct btf_blob {
	char types[4096], strings[1024];
	u32 types_len, strings_len, nr;
};

__attribute__((unused)) static u32 blob_string(struct btf_blob *b, const char *s)
{
	u32 off = b->strings_len ? b->strings_len : 1;

	strcpy(b->strings + off, s);
	b->strings_len = off + strlen(s) + 1;
	return off;
}

__attribute__((unused)) static u32 blob_add(struct btf_blob *b, const void *type, u32 size)
{
	memcpy(b->types + b->types_len, type, size);
	b->types_len += size;
	return ++b->nr;
}

__attribute__((unused)) static u32 blob_int(struct btf_blob *b, const char *name, u32 size)
{
	struct {
		struct btf_type t;
		u32 data;
	} i = {{blob_string(b, name), BTF_KIND_INT << 24, {size}}, size * 8};

	return blob_add(b, &i, sizeof(i));
}

/* n elements of type elem, index type the same */
__attribute__((unused)) static u32 blob_array(struct btf_blob *b, u32 elem, u32 index, u32 n)
{
	struct {
		struct btf_type t;
		struct btf_array a;
	} a = {{0, BTF_KIND_ARRAY << 24, {0}}, {elem, index, n}};

	return blob_add(b, &a, sizeof(a));
}

/* One member of type at offset 0. */
__attribute__((unused)) static u32 blob_struct1(struct btf_blob *b, const char *name, u32 size,
						const char *member, u32 type)
{
	struct {
		struct btf_type t;
		struct btf_member m;
	} s = {{blob_string(b, name), BTF_KIND_STRUCT << 24 | 1, {size}},
	       {blob_string(b, member), type, 0}};

	return blob_add(b, &s, sizeof(s));
}

/* The bytes as BTF_LOAD takes them; returns their number. */
__attribute__((unused)) static u32 blob_pack(const struct btf_blob *b, char *out)
{
	struct btf_header h = {.magic = BTF_MAGIC,
			       .version = 1,
			       .hdr_len = sizeof(h),
			       .type_len = b->types_len,
			       .str_off = b->types_len,
			       .str_len = b->strings_len ? b->strings_len : 1};

	memcpy(out, &h, sizeof(h));
	memcpy(out + sizeof(h), b->types, b->types_len);
	memcpy(out + sizeof(h) + b->types_len, b->strings, h.str_len);
	return sizeof(h) + h.type_len + h.str_len;
}

__attribute__((unused)) static struct btf *blob_parse(const struct btf_blob *b)
{
	char bytes[8192];
	struct btf *btf = NULL;

	return btf_parse(bytes, blob_pack(b, bytes), NULL, NULL, &btf) ? NULL : btf;
}

/* ---- the machine ---- */

#define FAKE_FDS 64

static struct inlay fix; /* the engine under test */
static struct obj *fake_fd[FAKE_FDS];

__attribute__((unused)) static int fake_get(struct inlay *inlay, int fd, struct obj **ret_obj)
{
	if (fd < 0 || fd >= FAKE_FDS || !fake_fd[fd])
		return -EBADF;
	obj_get(fake_fd[fd]);
	*ret_obj = fake_fd[fd];
	return 0;
}

static const struct fd_ops fake_fds = {.get = fake_get};

__attribute__((unused)) static u32 possible_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_CONF);
}

__attribute__((unused)) static void fix_up(u32 nr_cpus)
{
	struct btf_blob blob = {.nr = 0};
	struct env_opts opts = {.nr_cpus = nr_cpus, .clock = ENV_CLOCK_MANUAL};
	struct env *env = NULL;

	blob_struct1(&blob, "task_struct", 64, "pid", blob_int(&blob, "int", 4));
	opts.btf = blob_parse(&blob);
	if (!opts.btf || env_create(&opts, &env) || inlay_init(&fix, env, opts.btf, NULL)) {
		printf("Bail out! no machine\n");
		exit(1);
	}
	fix.fds = &fake_fds;
	env_enter(env, 0, NULL);
}

__attribute__((unused)) static void fix_down(void)
{
	struct env *env = fix.env;

	inlay_fini(&fix);
	env_destroy(env);
}

__attribute__((unused)) static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* splitmix64 */
__attribute__((unused)) static u64 rnd(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* A map of inlay's, or NULL with the errno in *ret_err. */
__attribute__((unused)) static struct map *make_map_attr(const struct map_attr *attr, int *ret_err)
{
	const struct map_ops *ops = map_type_ops(attr->map_type);
	struct map *map = NULL;
	int err = ops ? ops->check(attr) : -EINVAL;

	if (!err)
		err = ops->create(&fix, attr, &map);
	if (ret_err)
		*ret_err = err;
	return err ? NULL : map;
}

__attribute__((unused)) static struct map *make_map(u32 type, u32 key, u32 value, u32 max,
						    u32 flags)
{
	struct map_attr attr = {.map_type = type,
				.key_size = key,
				.value_size = value,
				.max_entries = max,
				.map_flags = flags,
				.name = "test"};

	return make_map_attr(&attr, NULL);
}

/* A task storage map whose value is n bytes. */
__attribute__((unused)) static struct map *make_task_map(u32 value_size)
{
	struct btf_blob blob = {.nr = 0};
	struct map_attr attr = {.map_type = BPF_MAP_TYPE_TASK_STORAGE,
				.key_size = 4,
				.value_size = value_size,
				.map_flags = BPF_F_NO_PREALLOC};
	struct map *map;
	u32 byte;

	attr.btf_key_type_id = blob_int(&blob, "int", 4);
	byte = blob_int(&blob, "char", 1);
	attr.btf_value_type_id = blob_array(&blob, byte, attr.btf_key_type_id, value_size);
	attr.btf = blob_parse(&blob);
	map = make_map_attr(&attr, NULL);
	btf_put(attr.btf);
	return map;
}

/* ---- two sides ---- */

struct side {
	const char *name;
	bool kernel;
};

static const struct side inlay_side = {"inlay", false}, kernel_side = {"kernel", true};

static struct map *handles[256];
static int nr_handles;

__attribute__((unused)) static long sys_bpf_raw(int cmd, union bpf_attr *attr)
{
	long ret = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return ret < 0 ? -errno : ret;
}

/* bpf(2) works here. */
__attribute__((unused)) static bool have_kernel(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	long fd = sys_bpf_raw(BPF_MAP_CREATE, &attr);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Handle or -errno. */
__attribute__((unused)) static int s_create(const struct side *s, const struct map_attr *a,
					    int btf_fd)
{
	int err;

	if (s->kernel) {
		union bpf_attr attr = {.map_type = a->map_type,
				       .key_size = a->key_size,
				       .value_size = a->value_size,
				       .max_entries = a->max_entries,
				       .map_flags = a->map_flags,
				       .btf_fd = btf_fd,
				       .btf_key_type_id = a->btf_key_type_id,
				       .btf_value_type_id = a->btf_value_type_id,
				       .numa_node = a->numa_node};

		return sys_bpf_raw(BPF_MAP_CREATE, &attr);
	}
	handles[nr_handles] = make_map_attr(a, &err);
	return err ? err : nr_handles++;
}

__attribute__((unused)) static void s_close(const struct side *s, int h)
{
	if (h < 0)
		return;
	if (s->kernel)
		close(h);
	else if (handles[h])
		obj_put(&handles[h]->obj);
	if (!s->kernel)
		handles[h] = NULL;
	while (!s->kernel && nr_handles && !handles[nr_handles - 1])
		nr_handles--;
}

enum elem_cmd {
	LOOKUP,
	UPDATE,
	DELETE,
	NEXT,
	TAKE /* lookup and delete */
};

static long kernel_elem(enum elem_cmd cmd, int h, const void *key, void *value, u64 flags)
{
	static const int cmds[] = {BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM,
				   BPF_MAP_GET_NEXT_KEY, BPF_MAP_LOOKUP_AND_DELETE_ELEM};
	union bpf_attr attr = {.map_fd = h, .key = (u64)key};

	if (cmd != DELETE) {
		attr.value = (u64)value;
		attr.flags = cmd == NEXT ? 0 : flags;
	}
	return sys_bpf_raw(cmds[cmd], &attr);
}

static long inlay_elem(enum elem_cmd cmd, int h, const void *key, void *value, u64 flags)
{
	struct map *map = handles[h];
	const struct map_ops *ops = map->ops;

	if (!map->key_size && key)
		return -EINVAL;
	if ((cmd == LOOKUP || cmd == TAKE) && flags & ~(u64)BPF_F_LOCK)
		return -EINVAL;
	if (cmd != NEXT && cmd != DELETE &&
	    flags & BPF_F_LOCK) /* bpf(2) looks at this first: no lock in the value */
		return -EINVAL;
	switch (cmd) {
	case LOOKUP:
		return ops->sys_lookup ? ops->sys_lookup(map, key, value, flags) : -LINUX_ENOTSUPP;
	case UPDATE:
		return ops->sys_update ? ops->sys_update(map, key, value, flags) : -LINUX_ENOTSUPP;
	case DELETE:
		return ops->sys_remove ? ops->sys_remove(map, key) : -LINUX_ENOTSUPP;
	case NEXT:
		return ops->sys_next_key ? ops->sys_next_key(map, key, value) : -LINUX_ENOTSUPP;
	case TAKE:
		return ops->sys_lookup_and_delete
			       ? ops->sys_lookup_and_delete(map, key, value, flags)
			       : -LINUX_ENOTSUPP;
	}
	return -EINVAL;
}

/* One element command of bpf(2). value: NEXT's out. 0 or -errno. */
__attribute__((unused)) static long s_elem(const struct side *s, enum elem_cmd cmd, int h,
					   const void *key, void *value, u64 flags)
{
	return s->kernel ? kernel_elem(cmd, h, key, value, flags)
			 : inlay_elem(cmd, h, key, value, flags);
}

#endif
