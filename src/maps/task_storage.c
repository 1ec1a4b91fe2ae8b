// SPDX-License-Identifier: BSD-2-Clause
// Task storage: local storage whose owner is a task. bpf(2) names the task by a pidfd.
#include "maps/task_storage.h"

#include "maps/local_storage_slots.h"
#include "object/helper.h"
#include "object/instance.h"
#include "object/task_fd.h"

static const u32 helpers[] = {BPF_FUNC_task_storage_get, BPF_FUNC_task_storage_delete,
			      BPF_FUNC_kptr_xchg, 0};

static const struct map_ops *ops_of(const struct storage_ops *impl);

static struct env_owner *owner_of(struct env_task *task)
{
	return env_owner_of(task->obj);
}

static void task_gone(struct env_task *task)
{
	lstore_owner_free(owner_of(task));
}

static int create(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map)
{
	const struct storage_ops *impl = map_storage_impl_find(inlay->storage_impl);
	int err;

	if (!impl) {
		log_to(&inlay->log, LOG_ERR, "there is no storage variant '%s'", inlay->storage_impl);
		return -EINVAL;
	}
	err = lstore_map_create(inlay, attr, ops_of(impl), impl, LSTORE_TASK, ret_map);
	if (!err)
		env_set_task_free_hook(inlay->env, task_gone);
	return err;
}

void *task_storage_find(struct map *map, struct env_task *task)
{
	return lstore_find(owner_of(task), lstore_map_of(map));
}

void *task_storage_get_or_create(struct map *map, struct env_task *task, const void *value)
{
	return lstore_get_or_create(owner_of(task), lstore_map_of(map), value);
}

int task_storage_remove(struct map *map, struct env_task *task)
{
	return lstore_remove(owner_of(task), lstore_map_of(map));
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
	err = lstore_update(owner_of(tf->task), lstore_map_of(map), value, flags);
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

/* ---- in the program's own code ---- */

static u64 (*direct(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64);

/* r0 = what a program's lookup finds, NULL: none. Jumps to be aimed at the cold call, or 0 for none, go to far. */
static void gen_slot(const struct gen_call *call, struct gen *g, u32 *far)
{
	const struct lstore_map *map = lstore_map_of(call->map);

	gen_load(g, BPF_DW, BPF_REG_0, BPF_REG_2,
		 (s16)(offsetof(struct env_owner, slots) - sizeof(struct env_owner)));
	if (call->fact->inner_map) {
		/* r5 is the helper's hidden argument, which it does not look at */
		gen_load(g, BPF_W, BPF_REG_5, BPF_REG_1, offsetof(struct lstore_map, leaf_off));
		gen_load(g, BPF_DW, ISA_REG_AX, BPF_REG_0, offsetof(struct slots_storage, limit));
		*far = gen_insn(g, (struct bpf_insn){.code = BPF_JMP | BPF_JGE | BPF_X,
						     .dst_reg = BPF_REG_5,
						     .src_reg = ISA_REG_AX});
		gen_alu(g, BPF_ADD, BPF_REG_0, BPF_REG_5);
		gen_load(g, BPF_DW, BPF_REG_0, BPF_REG_0, 0);
		gen_load(g, BPF_W, BPF_REG_5, BPF_REG_1, offsetof(struct lstore_map, slot_off));
		gen_alu(g, BPF_ADD, BPF_REG_0, BPF_REG_5);
		gen_load(g, BPF_DW, BPF_REG_0, BPF_REG_0, 0);
		return;
	}
	if (map->leaf_off > offsetof(struct slots_storage, leaf)) {
		gen_load(g, BPF_DW, ISA_REG_AX, BPF_REG_0, offsetof(struct slots_storage, limit));
		*far = gen_jump(g, BPF_JLE, ISA_REG_AX, map->leaf_off);
		gen_load(g, BPF_DW, BPF_REG_0, BPF_REG_0, map->leaf_off);
	}
	gen_load(g, BPF_DW, BPF_REG_0, BPF_REG_0, map->slot_off);
}

/* The lookup; a miss, flags and owners that are not known to be good go to the helper's twin. */
static int gen(const struct gen_call *call, struct gen *g)
{
	u32 to_call[4], nr = 0, far = 0, over;

	if (call->helper->id != BPF_FUNC_task_storage_get)
		return 0;
	if (!call->fact->inner_map && lstore_map_of(call->map)->leaf_off > 32000)
		return 0;
	if (!(call->known & 1u << 4))
		to_call[nr++] = gen_jump(g, BPF_JGT, BPF_REG_4, BPF_LOCAL_STORAGE_GET_F_CREATE);
	else if (call->arg[4] > BPF_LOCAL_STORAGE_GET_F_CREATE)
		return 0;
	if (!call->fact->owner_valid)
		to_call[nr++] = gen_jump(g, BPF_JEQ, BPF_REG_2, 0);
	gen_slot(call, g, &far);
	if (far)
		to_call[nr++] = far;
	else if (!nr && call->known & 1u << 4 && !call->arg[4])
		return 1; /* NULL is the answer: nothing is made */
	to_call[nr++] = gen_jump(g, BPF_JEQ, BPF_REG_0, 0);
	over = gen_jump(g, BPF_JA, 0, 0);
	while (nr)
		gen_land(g, to_call[--nr]);
	g->cold = true;
	gen_call(g, call->can & CAP_DIRECT ? direct(call->map, call->helper->id) : NULL);
	gen_land(g, over);
	return 1;
}

#define TASK_STORAGE_OPS                                                                                          \
	.name = "task_storage", .type = BPF_MAP_TYPE_TASK_STORAGE, .flags = MAP_SLEEPABLE_OK | MAP_IN_TRACING_OK, \
	.helpers = helpers, .check = lstore_check, .create = create, .destroy = lstore_map_destroy,              \
	.sys_lookup = sys_lookup, .sys_update = sys_update, .sys_remove = sys_remove,                            \
	.mem_usage = lstore_mem_usage, .inline_kind = INLINE_STORAGE

/* The table's row: what does not depend on the variant. No map has it. */
const struct map_ops map_ops_task_storage = {TASK_STORAGE_OPS};

/* Maps have these, patterns for inner maps too. */
static const struct variant {
	const struct storage_ops *impl;
	struct map_ops ops;
} variants[] = {
	{&map_storage_linux_outlined, {TASK_STORAGE_OPS, .direct = direct}},
	{&map_storage_linux_slowpath, {TASK_STORAGE_OPS, .direct = direct}},
	{&map_storage_linux_inlined, {TASK_STORAGE_OPS, .direct = direct}},
	{&map_storage_slots, {TASK_STORAGE_OPS, .direct = direct}},
	{&map_storage_jit, {TASK_STORAGE_OPS, .direct = direct, .gen = gen}},
};

static u64 (*direct(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64)
{
	const struct variant *v = container_of_(map->ops, struct variant, ops);

	switch (helper_id) {
	case BPF_FUNC_task_storage_get:
		return v->impl->task_get;
	case BPF_FUNC_task_storage_delete:
		return v->impl->task_delete;
	}
	return NULL;
}

static const struct map_ops *ops_of(const struct storage_ops *impl)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(variants) - 1 && variants[i].impl != impl; i++)
		;
	return &variants[i].ops;
}
