// SPDX-License-Identifier: BSD-2-Clause
// MAP_CREATE, the element commands, MAP_FREEZE.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "isa/uapi.h"
#include "rcu/rcu.h"
#include "sys/map_int.h"

#define NUMA_NO_NODE 0xffffffffu

/* ---- MAP_CREATE ---- */

static int create_check(struct sys_call *c)
{
	u32 flags = c->attr.map_create.map_flags;

	if (c->attr.map_create.btf_vmlinux_value_type_id)
		return -EINVAL; /* struct_ops only */
	if (c->attr.map_create.btf_key_type_id && !c->attr.map_create.btf_value_type_id)
		return -EINVAL;
	if ((flags & BPF_F_RDONLY) && (flags & BPF_F_WRONLY))
		return -EINVAL;
	/* the simulated machine has node 0 */
	if ((flags & BPF_F_NUMA_NODE) && c->attr.map_create.numa_node &&
	    c->attr.map_create.numa_node != NUMA_NO_NODE)
		return -EINVAL;
	return 0;
}

/* Attributes of things inlay has not got: none may be ignored. */
static int create_refuse(struct sys_call *c)
{
	int fd = c->attr.map_create.map_token_fd;

	if (c->attr.map_create.map_flags & BPF_F_TOKEN_FD)
		return c->inlay->fds->accmode(c->inlay, fd) < 0 ? -EBADF : -EINVAL;
	if (c->attr.map_create.map_ifindex)
		return -EINVAL;
	if (c->attr.map_create.excl_prog_hash) {
		log_to(&c->inlay->log, LOG_ERR,
		       "map create: exclusive maps (excl_prog_hash) are not supported");
		return c->attr.map_create.excl_prog_hash_size == 32 ? -EOPNOTSUPP : -EINVAL;
	}
	return c->attr.map_create.excl_prog_hash_size ? -EINVAL : 0;
}

static int create_find_ops(struct sys_call *c, const struct map_ops **ret_ops)
{
	u32 type = c->attr.map_create.map_type;
	const struct map_ops *ops = map_type_ops(type);

	if (!ops) {
		log_to(&c->inlay->log, LOG_ERR,
		       "map create: map type %u ('%.15s') is not supported", type,
		       c->attr.map_create.map_name);
		return -EINVAL;
	}
	if (c->attr.map_create.map_extra && !(ops->flags & MAP_HAS_EXTRA))
		return -EINVAL;
	*ret_ops = ops;
	return 0;
}

/* The BTF of key and value; *ret_btf stays NULL where none was given. */
static int create_get_btf(struct sys_call *c, struct obj **ret_btf)
{
	struct obj *obj;
	int err;

	if (!c->attr.map_create.btf_key_type_id && !c->attr.map_create.btf_value_type_id)
		return 0;
	err = sys_get(c, c->attr.map_create.btf_fd, OBJ_BTF, &obj);
	if (err)
		return err;
	if (btf_obj_of(obj)->kernel) {
		obj_put(obj);
		return -EACCES;
	}
	*ret_btf = obj;
	return 0;
}

long sys_map_create(struct sys_call *c)
{
	struct map_attr attr = {
		.map_type = c->attr.map_create.map_type,
		.key_size = c->attr.map_create.key_size,
		.value_size = c->attr.map_create.value_size,
		.max_entries = c->attr.map_create.max_entries,
		.map_flags = c->attr.map_create.map_flags & ~BPF_F_TOKEN_FD,
		.numa_node = c->attr.map_create.numa_node,
		.map_extra = c->attr.map_create.map_extra,
		.btf_key_type_id = c->attr.map_create.btf_key_type_id,
		.btf_value_type_id = c->attr.map_create.btf_value_type_id,
	};
	const struct map_ops *ops = NULL;
	struct obj *btf = NULL;
	struct map *map;
	int err = create_check(c);

	if (!err)
		err = create_find_ops(c, &ops);
	if (!err && ops->check)
		err = ops->check(&attr);
	if (!err)
		err = create_refuse(c);
	if (!err)
		err = sys_copy_name(attr.name, c->attr.map_create.map_name);
	if (!err)
		err = create_get_btf(c, &btf);
	if (err)
		return err;
	if (btf)
		attr.btf = btf_obj_of(btf)->btf;
	/* others do not look at inner_map_fd */
	if (ops->flags & MAP_OF_MAPS)
		err = sys_get_map(c, c->attr.map_create.inner_map_fd, &attr.inner);
	if (!err)
		err = ops->create(c->inlay, &attr, &map);
	if (attr.inner)
		obj_put(&attr.inner->obj);
	if (err) {
		obj_put(btf);
		return err;
	}
	map->btf_obj = btf;
	return sys_return_fd(c, &map->obj,
			     attr.map_flags & BPF_F_RDONLY   ? O_RDONLY
			     : attr.map_flags & BPF_F_WRONLY ? O_WRONLY
							     : O_RDWR);
}

/* ---- elements ---- */

int sys_map_begin(struct sys_call *c, u32 fd, u32 access, struct map_call *ret_mc)
{
	struct map *map;
	int err = sys_get_map(c, fd, &map), mode;

	if (err)
		return err;
	mode = c->inlay->fds->accmode(c->inlay, (int)fd);
	/* announce, then look: MAP_FREEZE sets frozen, then looks for writers */
	if (access & MAP_WRITE)
		__atomic_add_fetch(&map->writers, 1, __ATOMIC_SEQ_CST);
	*ret_mc = (struct map_call){map, access,
				    map->ops->sys_value_size ? map->ops->sys_value_size(map)
							     : map->value_size};
	if (((access & MAP_READ) && mode == O_WRONLY) ||
	    ((access & MAP_WRITE) &&
	     (mode == O_RDONLY || __atomic_load_n(&map->frozen, __ATOMIC_SEQ_CST)))) {
		sys_map_end(ret_mc);
		return -EPERM;
	}
	return 0;
}

void sys_map_end(struct map_call *mc)
{
	if (mc->access & MAP_WRITE)
		__atomic_sub_fetch(&mc->map->writers, 1, __ATOMIC_RELEASE);
	obj_put(&mc->map->obj);
}

int sys_map_check_flags(const struct map *map, u64 flags, u64 allowed)
{
	if (flags & ~allowed)
		return -EINVAL;
	return (flags & BPF_F_LOCK) && map->spin_lock_off == U32_MAX ? -EINVAL : 0;
}

/* *ret_key: NULL for a map without keys. */
static int copy_key(struct sys_call *c, const struct map *map, u64 ukey, void **ret_key)
{
	if (map->key_size)
		return user_dup(c->um, ukey, map->key_size, ret_key);
	if (ukey)
		return -EINVAL;
	*ret_key = NULL;
	return 0;
}

typedef int (*lookup_fn)(struct map *map, const void *key, void *value, u64 flags);

static int lookup(struct sys_call *c, struct map_call *mc, lookup_fn fn)
{
	void *key, *value;
	int err = copy_key(c, mc->map, c->attr.elem.key, &key);

	if (err)
		return err;
	value = calloc(1, mc->value_size ? mc->value_size : 1);
	if (!value)
		err = -ENOMEM;
	else if (!fn)
		err = -LINUX_ENOTSUPP;
	else
		err = fn(mc->map, key, value, c->attr.elem.flags);
	if (!err)
		err = user_write(c->um, c->attr.elem.value, value, mc->value_size);
	free(value);
	free(key);
	return err;
}

long sys_map_lookup(struct sys_call *c)
{
	struct map_call mc;
	int err;

	if (c->attr.elem.flags & ~(u64)BPF_F_LOCK)
		return -EINVAL;
	err = sys_map_begin(c, c->attr.elem.map_fd, MAP_READ, &mc);
	if (err)
		return err;
	err = sys_map_check_flags(mc.map, c->attr.elem.flags, BPF_F_LOCK);
	if (!err)
		err = lookup(c, &mc, mc.map->ops->sys_lookup);
	sys_map_end(&mc);
	return err;
}

long sys_map_lookup_and_delete(struct sys_call *c)
{
	struct map_call mc;
	int err;

	if (c->attr.elem.flags & ~(u64)BPF_F_LOCK)
		return -EINVAL;
	err = sys_map_begin(c, c->attr.elem.map_fd, MAP_READ | MAP_WRITE, &mc);
	if (err)
		return err;
	err = sys_map_check_flags(mc.map, c->attr.elem.flags, BPF_F_LOCK);
	if (!err)
		err = lookup(c, &mc, mc.map->ops->sys_lookup_and_delete);
	sys_map_end(&mc);
	return err;
}

long sys_map_update(struct sys_call *c)
{
	void *key = NULL, *value = NULL;
	struct map_call mc;
	int err = sys_map_begin(c, c->attr.elem.map_fd, MAP_WRITE, &mc);

	if (err)
		return err;
	err = sys_map_check_flags(mc.map, c->attr.elem.flags, U64_MAX);
	if (!err)
		err = copy_key(c, mc.map, c->attr.elem.key, &key);
	if (!err)
		err = user_dup(c->um, c->attr.elem.value, mc.value_size, &value);
	if (!err)
		err = mc.map->ops->sys_update
			      ? mc.map->ops->sys_update(mc.map, key, value, c->attr.elem.flags)
			      : -LINUX_ENOTSUPP;
	free(value);
	free(key);
	sys_map_end(&mc);
	return err;
}

long sys_map_delete(struct sys_call *c)
{
	void *key = NULL;
	struct map_call mc;
	int err = sys_map_begin(c, c->attr.elem.map_fd, MAP_WRITE, &mc);

	if (err)
		return err;
	err = copy_key(c, mc.map, c->attr.elem.key, &key);
	if (!err)
		err = mc.map->ops->sys_remove ? mc.map->ops->sys_remove(mc.map, key)
					      : -LINUX_ENOTSUPP;
	free(key);
	sys_map_end(&mc);
	return err;
}

long sys_map_next_key(struct sys_call *c)
{
	void *key = NULL, *next = NULL;
	struct map_call mc;
	int err = sys_map_begin(c, c->attr.elem.map_fd, MAP_READ, &mc);

	if (err)
		return err;
	if (c->attr.elem.key)
		err = copy_key(c, mc.map, c->attr.elem.key, &key);
	if (!err) {
		next = calloc(1, mc.map->key_size ? mc.map->key_size : 1);
		err = next ? 0 : -ENOMEM;
	}
	if (!err)
		err = mc.map->ops->sys_next_key ? mc.map->ops->sys_next_key(mc.map, key, next)
						: -LINUX_ENOTSUPP;
	if (!err)
		err = user_write(c->um, c->attr.elem.value, next, mc.map->key_size);
	free(next);
	free(key);
	sys_map_end(&mc);
	return err;
}

/* ---- MAP_FREEZE ---- */

/* Holding the engine's lock, so no mmap() of ours comes in between. */
static int freeze(struct map *map)
{
	int writers;

	if (map->frozen || __atomic_load_n(&map->writers, __ATOMIC_SEQ_CST))
		return -EBUSY;
	if (map->mem.fd >= 0) {
		writers = memfile_has_writer(&map->mem);
		if (writers)
			return writers < 0 ? writers : -EBUSY;
	}
	__atomic_store_n(&map->frozen, true, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&map->writers, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&map->frozen, false, __ATOMIC_SEQ_CST);
		return -EBUSY;
	}
	return map->mem.fd >= 0 ? memfile_seal(&map->mem) : 0;
}

long sys_map_freeze(struct sys_call *c)
{
	struct map *map;
	int err = sys_get_map(c, c->attr.elem.map_fd, &map);

	if (err)
		return err;
	if (map->spin_lock_off != U32_MAX) {
		err = -LINUX_ENOTSUPP;
	} else if (c->inlay->fds->accmode(c->inlay, (int)c->attr.elem.map_fd) == O_RDONLY ||
		   map->frozen) {
		err = -EPERM;
	} else {
		pthread_mutex_lock(&c->inlay->lock);
		err = freeze(map);
		pthread_mutex_unlock(&c->inlay->lock);
	}
	obj_put(&map->obj);
	return err;
}
