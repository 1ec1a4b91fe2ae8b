// SPDX-License-Identifier: BSD-2-Clause
// Arrays of programs, for tail calls. The first program that uses the array, or is put in, says what all must be like.
#include "maps/fd_array.h"
#include "object/prog.h"

struct prog_array {
	struct fd_array a;
	struct map_lock lock; /* guards owner */
	struct {
		bool known;
		u32 type, expected_attach_type, attach_proto;
	} owner;
};

static struct prog_array *prog_array_of(const struct map *map)
{
	return container_of_(fd_array_of(map), struct prog_array, a);
}

static struct obj *to_obj(void *elem)
{
	return &((struct prog *)elem)->obj;
}

static void destroy(struct map *map)
{
	fd_array_clear(fd_array_of(map), to_obj);
	fd_array_fini(fd_array_of(map)); /* the first member of all of it */
}

static int create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	struct prog_array *p;
	int err = map_check_btf(inlay, attr, BTF_KEY_U32);

	if (err)
		return err;
	p = rcu_mem_alloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	map_init(&p->a.map, &map_ops_prog_array, inlay, attr);
	err = fd_array_take_memory(&p->a);
	if (err) {
		obj_abort(&p->a.map.obj);
		destroy(&p->a.map);
		return err;
	}
	*ret_map = &p->a.map;
	return 0;
}

/* All programs of an engine are compiled, or none is: that part of Linux's rule always holds. */
static int admit(struct map *map, const struct prog *prog)
{
	struct prog_array *p = prog_array_of(map);
	u8 mask = map_lock_take(&p->lock);
	int err = 0;

	if (!p->owner.known) {
		p->owner.known = true;
		p->owner.type = prog->type;
		p->owner.expected_attach_type = prog->expected_attach_type;
		p->owner.attach_proto = prog->attach_proto;
	} else if (p->owner.type != prog->type || p->owner.expected_attach_type != prog->expected_attach_type ||
		   p->owner.attach_proto != prog->attach_proto) {
		err = -EINVAL;
	}
	map_lock_release(&p->lock, mask);
	return err;
}

static struct prog *prog_at(struct map *map, u64 index)
{
	return fd_array_at(map, (u32)index);
}

static int set_obj(struct map *map, const void *key, struct obj *obj, u64 flags)
{
	int err = fd_array_check_update(map, key, flags);

	if (err)
		return err;
	if (obj) {
		if (obj->kind != OBJ_PROG)
			return -EINVAL;
		err = admit(map, prog_of(obj));
		if (err)
			return err;
		obj_get(obj);
	}
	return fd_array_set(map, key, obj ? prog_of(obj) : NULL, to_obj);
}

static int obj_id(struct map *map, const void *key, u32 *ret_id)
{
	return fd_array_obj_id(map, key, to_obj, ret_id);
}

static int sys_remove(struct map *map, const void *key)
{
	return fd_array_set(map, key, NULL, to_obj);
}

/* Programs in the array may use it: that circle is cut here. */
static void user_gone(struct map *map)
{
	fd_array_clear(fd_array_of(map), to_obj);
}

static const u32 helpers[] = {BPF_FUNC_tail_call, 0};

const struct map_ops map_ops_prog_array = {
	.name = "prog_array",
	.type = BPF_MAP_TYPE_PROG_ARRAY,
	.flags = MAP_CAN_ITER_KEYS | MAP_SLEEPABLE_OK | MAP_IN_TRACING_OK | MAP_OF_FDS | MAP_NO_BATCH,
	.helpers = helpers,
	.check = fd_array_check,
	.create = create,
	.destroy = destroy,
	.sys_lookup = map_fds_sys_lookup,
	.sys_update = fd_array_sys_update,
	.sys_remove = sys_remove,
	.sys_next_key = map_array_next_key,
	.mem_usage = fd_array_mem_usage,
	.set_obj = set_obj,
	.obj_id = obj_id,
	.admit = admit,
	.prog_at = prog_at,
	.user_gone = user_gone,
};
