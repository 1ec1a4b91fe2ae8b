// SPDX-License-Identifier: BSD-2-Clause
// Task storage: local storage whose owner is a task. bpf(2) names the task by a pidfd.
#include "maps/task_storage.h"

#include "object/instance.h"
#include "object/task_fd.h"

static const u32 helpers[] = {BPF_FUNC_task_storage_get, BPF_FUNC_task_storage_delete,
			      BPF_FUNC_kptr_xchg, 0};

static void task_gone(struct env_task *task)
{
	lstore_owner_free(&task->storage);
}

static int create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	int err = lstore_map_create(inlay, attr, &map_ops_task_storage, LSTORE_TASK, ret_map);

	if (!err)
		env_set_task_free_hook(inlay->env, task_gone);
	return err;
}

void *task_storage_find(struct map *map, struct env_task *task)
{
	struct lstore_elem *e = lstore_find(&task->storage, lstore_map_of(map));

	return e ? e->value : NULL;
}

void *task_storage_get_or_create(struct map *map, struct env_task *task, const void *value)
{
	struct lstore_map *m = lstore_map_of(map);
	struct lstore_elem *e = lstore_find(&task->storage, m);

	/* a task that died before the first map was made has no storage to say so */
	if (!e && !__atomic_load_n(&task->dead, __ATOMIC_ACQUIRE))
		e = lstore_get_or_create(&task->storage, m, value);
	return e ? e->value : NULL;
}

int task_storage_remove(struct map *map, struct env_task *task)
{
	return lstore_remove(&task->storage, lstore_map_of(map));
}

/* ---- bpf(2) ---- */

/* The live task behind a key, with a reference of its object: 0, -EBADF no task's descriptor,
 * -ENOENT the task is gone. */
static int task_by_key(struct map *map, const void *key, struct task_fd **ret_task)
{
	struct inlay *inlay = map->obj.inlay;
	struct task_fd *tf;
	struct obj *obj;
	int fd;

	memcpy(&fd, key, sizeof(fd));
	if (!inlay->fds || inlay->fds->get(inlay, fd, &obj))
		return -EBADF;
	if (obj->kind != OBJ_TASK) {
		obj_put(obj);
		return -EBADF;
	}
	tf = task_fd_of(obj);
	if (__atomic_load_n(&tf->task->dead, __ATOMIC_ACQUIRE)) {
		obj_put(obj);
		return -ENOENT;
	}
	rcu_thread_enter();
	rcu_enter();
	*ret_task = tf;
	return 0;
}

static void task_done(struct task_fd *tf)
{
	rcu_leave();
	obj_put(&tf->obj);
}

static int sys_lookup(struct map *map, const void *key, void *value, u64 flags)
{
	struct task_fd *tf;
	void *from;
	int err = map_check_lookup_flags(flags);

	if (!err)
		err = task_by_key(map, key, &tf);
	if (err)
		return err;
	from = task_storage_find(map, tf->task);
	if (from)
		map_value_read(value, from, map->value_size);
	task_done(tf);
	return from ? 0 : -ENOENT;
}

static int sys_update(struct map *map, const void *key, const void *value, u64 flags)
{
	struct task_fd *tf;
	int err = task_by_key(map, key, &tf);

	if (err)
		return err;
	err = lstore_update(&tf->task->storage, lstore_map_of(map), value, flags);
	task_done(tf);
	return err;
}

static int sys_remove(struct map *map, const void *key)
{
	struct task_fd *tf;
	int err = task_by_key(map, key, &tf);

	if (err)
		return err;
	err = task_storage_remove(map, tf->task);
	task_done(tf);
	return err;
}

const struct map_ops map_ops_task_storage = {
	.name = "task_storage",
	.type = BPF_MAP_TYPE_TASK_STORAGE,
	.flags = MAP_SLEEPABLE_OK | MAP_IN_TRACING_OK,
	.helpers = helpers,
	.check = lstore_check,
	.create = create,
	.destroy = lstore_map_destroy,
	.sys_lookup = sys_lookup,
	.sys_update = sys_update,
	.sys_remove = sys_remove,
	.mem_usage = lstore_mem_usage,
};
