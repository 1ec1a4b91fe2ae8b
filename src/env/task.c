// SPDX-License-Identifier: BSD-2-Clause
// Tasks: task_struct objects laid out by BTF and filled in by field name, found by tid, freed after a grace period.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "btf/btf.h"
#include "env/env_int.h"

/* The allocation behind a task: the machine's part, then what programs' code reads before the object, then task_struct. */
struct task_block {
	struct env_task task;
	struct rcu_cb rcu;
	struct env_task *parent; /* reference held */
	struct env_owner owner;	 /* directly before obj */
	char obj[] __attribute__((aligned(8)));
};

const char env_no_slots[ENV_NO_SLOTS_BYTES] __attribute__((aligned(64)));

static struct task_block *block_of(struct env_task *task)
{
	return container_of_(task, struct task_block, task);
}

static u32 field(struct env *env, const char *type, const char *name)
{
	u32 off;

	return btf_find_field_offset(env->btf, type, name, &off, NULL) ? U32_MAX : off;
}

static u32 type_size(struct env *env, const char *type)
{
	s32 id = btf_find_by_name_kind(env->btf, type, BTF_KIND_STRUCT);
	u32 size;

	return id < 0 || btf_resolve_size(env->btf, id, &size) ? 0 : size;
}

int env_task_layout_init(struct env *env)
{
	struct env_task_layout *l = &env->task;

	l->size = type_size(env, "task_struct");
	if (!l->size) {
		log_to(&env->log, LOG_ERR, "the machine's BTF has no struct task_struct: give BTF of a kernel, "
					   "or leave it out to use the built-in model");
		return -ENOENT;
	}
	l->pid = field(env, "task_struct", "pid");
	l->tgid = field(env, "task_struct", "tgid");
	l->comm = field(env, "task_struct", "comm");
	l->prio = field(env, "task_struct", "prio");
	l->state = field(env, "task_struct", "__state");
	l->on_cpu = field(env, "task_struct", "on_cpu");
	l->cpu = field(env, "task_struct", "thread_info.cpu");
	l->real_parent = field(env, "task_struct", "real_parent");
	l->group_leader = field(env, "task_struct", "group_leader");
	l->cgroups = field(env, "task_struct", "cgroups");
	env->css_set_size = type_size(env, "css_set");
	env->css_set_cgroup = field(env, "css_set", "dfl_cgrp");
	env->cgroup_size = type_size(env, "cgroup");
	env->cgroup_kn = field(env, "cgroup", "kn");
	env->kn_size = type_size(env, "kernfs_node");
	env->kn_id = field(env, "kernfs_node", "id");
	return 0;
}

/* Writes one field of the object; a machine whose BTF lacks the field has no reader of it either. */
static void put(struct env_task *task, u32 off, const void *value, size_t size)
{
	if (off != U32_MAX)
		memcpy(task->obj + off, value, size);
}

static void put_u32(struct env_task *task, u32 off, u32 value)
{
	put(task, off, &value, sizeof(value));
}

static void put_ptr(struct env_task *task, u32 off, const void *value)
{
	put(task, off, &value, sizeof(value));
}

struct env_task *env_task_alloc(struct env *env, s32 tid, s32 tgid, const char *comm)
{
	struct task_block *b = calloc(1, sizeof(*b) + env->task.size);
	struct env_task *task;

	if (!b)
		return NULL;
	_Static_assert(offsetof(struct task_block, obj) == offsetof(struct task_block, owner.self) + 8 &&
			       offsetof(struct task_block, obj) == offsetof(struct task_block, owner.slots) + 16,
		       "env_task_of() reads the word before the object, compiled code the one before that");
	task = &b->task;
	env_owner_init(&b->owner, task);
	task->obj = b->obj;
	task->refs = 1;
	task->env = env;
	task->tid = tid;
	put_u32(task, env->task.pid, tid);
	env_task_set_tgid(task, tgid);
	env_task_set_comm(task, comm);
	return task;
}

static void free_block(struct rcu_cb *cb)
{
	free(container_of_(cb, struct task_block, rcu));
}

void env_task_get(struct env_task *task)
{
	__atomic_add_fetch(&task->refs, 1, __ATOMIC_RELAXED);
}

void env_task_put(struct env_task *task)
{
	struct task_block *b;

	if (__atomic_sub_fetch(&task->refs, 1, __ATOMIC_ACQ_REL))
		return;
	b = block_of(task);
	/* the last reference may be a parent's child's: storage went at env_task_exit() */
	if (b->parent)
		env_task_put(b->parent);
	rcu_defer(&b->rcu, free_block);
}

static struct env_task **bucket(struct env *env, s32 tid)
{
	return &env->by_tid[((u32)tid * 0x9e3779b1u) >> 20];
}

struct env_task *env_task_find(struct env *env, s32 tid)
{
	struct env_task *task = *bucket(env, tid);

	while (task && task->tid != tid)
		task = task->next_tid;
	return task;
}

struct env_task *env_idle_task(struct env *env, u32 cpu)
{
	return env->vcpus[cpu].idle;
}

static void unhash(struct env_task *task)
{
	struct env_task **p = bucket(task->env, task->tid);

	for (; *p; p = &(*p)->next_tid) {
		if (*p != task)
			continue;
		*p = task->next_tid;
		task->env->nr_tasks--;
		return;
	}
}

struct env_task *env_task_create(struct env *env, s32 tid, s32 tgid, const char *comm)
{
	struct env_task *old = env_task_find(env, tid), *task, **head;

	if (old)
		env_task_exit(old);
	task = env_task_alloc(env, tid, tgid, comm);
	if (!task)
		return NULL;
	pthread_mutex_lock(&env->lock);
	head = bucket(env, tid);
	task->next_tid = *head;
	*head = task;
	env->nr_tasks++;
	pthread_mutex_unlock(&env->lock);
	env_task_set_tgid(task, tgid); /* again: now its leader can be found, itself included */
	return task;
}

void env_task_exit(struct env_task *task)
{
	if (task->dead)
		return;
	__atomic_store_n(&task->dead, true, __ATOMIC_RELEASE); /* pairs with the loads in maps/ */
	__atomic_store_n(&block_of(task)->owner.gone, 1, __ATOMIC_SEQ_CST); /* before its storage is looked for */
	pthread_mutex_lock(&task->env->lock);
	if (!task->idle)
		unhash(task);
	pthread_mutex_unlock(&task->env->lock);
	if (task->env->task_free)
		task->env->task_free(task);
	env_task_put(task);
}

static int by_tid(const void *a, const void *b)
{
	s32 x = (*(struct env_task *const *)a)->tid, y = (*(struct env_task *const *)b)->tid;

	return (x > y) - (x < y);
}

int env_for_each_task(struct env *env, int (*fn)(struct env_task *task, void *ctx), void *ctx)
{
	struct env_task **all = calloc(env->nr_tasks + 1, sizeof(*all)), *task;
	u32 i, n = 0;
	int ret = 0;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < ENV_TID_BUCKETS; i++)
		for (task = env->by_tid[i]; task; task = task->next_tid)
			all[n++] = task;
	qsort(all, n, sizeof(*all), by_tid);
	for (i = 0; i < n && !ret; i++)
		ret = fn(all[i], ctx);
	free(all);
	return ret;
}

static int exit_one(struct env_task *task, void *ctx)
{
	env_task_exit(task);
	return 0;
}

void env_tasks_fini(struct env *env)
{
	struct env_cgroup *cg;

	env_for_each_task(env, exit_one, NULL);
	while ((cg = env->cgroups)) {
		env->cgroups = cg->next;
		free(cg);
	}
}

void env_set_task_free_hook(struct env *env, void (*fn)(struct env_task *task))
{
	env->task_free = fn;
}

void env_task_set_comm(struct env_task *task, const char *comm)
{
	char buf[ENV_COMM_LEN] = { 0 };

	strncpy(buf, comm ? comm : "", sizeof(buf) - 1);
	put(task, task->env->task.comm, buf, sizeof(buf));
}

void env_task_set_tgid(struct env_task *task, s32 tgid)
{
	struct env_task *leader = tgid == task->tid ? task : tgid > 0 ? env_task_find(task->env, tgid) : NULL;

	task->tgid = tgid;
	put_u32(task, task->env->task.tgid, tgid);
	/* A pointer, not a reference: like the kernel's, it may outlive the leader only for readers that probe it. */
	put_ptr(task, task->env->task.group_leader, leader == task ? task->obj : NULL);
}

void env_task_set_prio(struct env_task *task, s32 prio)
{
	put_u32(task, task->env->task.prio, prio);
}

void env_task_set_state(struct env_task *task, u32 state)
{
	put_u32(task, task->env->task.state, state);
}

u32 env_task_state(const struct env_task *task)
{
	u32 state = 0;

	if (task->env->task.state != U32_MAX)
		memcpy(&state, task->obj + task->env->task.state, sizeof(state));
	return state;
}

void env_task_set_on_cpu(struct env_task *task, bool on_cpu)
{
	put_u32(task, task->env->task.on_cpu, on_cpu);
}

void env_task_set_cpu(struct env_task *task, u32 cpu)
{
	task->cpu = cpu;
	put_u32(task, task->env->task.cpu, cpu);
}

void env_task_set_parent(struct env_task *task, struct env_task *parent)
{
	struct task_block *b = block_of(task);

	if (parent)
		env_task_get(parent);
	if (b->parent)
		env_task_put(b->parent);
	b->parent = parent;
	put_ptr(task, task->env->task.real_parent, parent ? parent->obj : NULL);
}

static struct env_cgroup *cgroup_find(struct env *env, u64 id)
{
	u32 css = align_up(env->css_set_size, 8), cgrp = align_up(env->cgroup_size, 8);
	char *cgroup, *kn;
	struct env_cgroup *cg;

	for (cg = env->cgroups; cg; cg = cg->next)
		if (cg->id == id)
			return cg;
	if (!css || !cgrp || !env->kn_size || env->css_set_cgroup == U32_MAX || env->cgroup_kn == U32_MAX ||
	    env->kn_id == U32_MAX)
		return NULL;
	cg = calloc(1, sizeof(*cg) + css + cgrp + env->kn_size);
	if (!cg)
		return NULL;
	cg->id = id;
	cg->css_set = cg->mem;
	cgroup = cg->mem + css;
	kn = cgroup + cgrp;
	memcpy(cg->css_set + env->css_set_cgroup, &cgroup, sizeof(cgroup));
	memcpy(cgroup + env->cgroup_kn, &kn, sizeof(kn));
	memcpy(kn + env->kn_id, &id, sizeof(id));
	cg->next = env->cgroups;
	env->cgroups = cg;
	return cg;
}

void env_task_set_cgroup(struct env_task *task, u64 cgroup_id)
{
	struct env *env = task->env;
	struct env_cgroup *cg = NULL;

	if (cgroup_id) {
		pthread_mutex_lock(&env->lock);
		cg = cgroup_find(env, cgroup_id);
		pthread_mutex_unlock(&env->lock);
	}
	put_ptr(task, env->task.cgroups, cg ? cg->css_set : NULL);
}

u64 env_task_cgroup(const struct env_task *task)
{
	struct env *env = task->env;
	char *css = NULL;
	struct env_cgroup *cg;

	if (env->task.cgroups == U32_MAX)
		return 0;
	memcpy(&css, task->obj + env->task.cgroups, sizeof(css));
	for (cg = env->cgroups; css && cg; cg = cg->next)
		if (cg->css_set == css)
			return cg->id;
	return 0;
}

const char *env_task_comm(const struct env_task *task)
{
	return task->env->task.comm == U32_MAX ? "" : task->obj + task->env->task.comm;
}

struct env_task *env_task_self(struct env *env)
{
	s32 tid = syscall(SYS_gettid);
	struct env_task *task = env_task_find(env, tid);
	char comm[ENV_COMM_LEN] = { 0 };

	if (task)
		return task;
	pthread_getname_np(pthread_self(), comm, sizeof(comm));
	task = env_task_create(env, tid, getpid(), comm);
	if (task)
		env_task_set_prio(task, 120);
	return task;
}
