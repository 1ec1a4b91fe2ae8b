// SPDX-License-Identifier: BSD-2-Clause
// Tracepoints: a name, its prototype in the machine's BTF, and who is attached, in order of attachment.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"
#include "env/env_int.h"

struct env_hook {
	struct env *env;
	struct env_hook_client *clients; /* RCU; writers hold env->lock */
	u32 nr_args;
	u32 proto;
	struct env_hook *next;
	char name[];
};

/* FUNC_PROTO id behind typedef btf_trace_<name>, whose first parameter is the hidden __data; 0: none. */
static u32 find_proto(struct env *env, const char *name, u32 *ret_args)
{
	const struct btf_type *t;
	char type[128];
	s32 id;

	if (snprintf(type, sizeof(type), "btf_trace_%s", name) >= (int)sizeof(type))
		return 0;
	id = btf_find_by_name_kind(env->btf, type, BTF_KIND_TYPEDEF);
	if (id < 0)
		return 0;
	t = btf_type_by_id(env->btf, btf_type_by_id(env->btf, id)->type);
	if (!t || btf_kind(t) != BTF_KIND_PTR)
		return 0;
	id = t->type;
	t = btf_type_by_id(env->btf, id);
	if (!t || btf_kind(t) != BTF_KIND_FUNC_PROTO || !btf_vlen(t))
		return 0;
	*ret_args = btf_vlen(t) - 1;
	return id;
}

struct env_hook *env_hook_find(struct env *env, const char *name)
{
	struct env_hook *hook;
	u32 proto, nr_args;

	pthread_mutex_lock(&env->lock);
	for (hook = env->hooks; hook; hook = hook->next)
		if (!strcmp(hook->name, name))
			goto out;
	proto = find_proto(env, name, &nr_args);
	if (!proto)
		goto out;
	hook = calloc(1, sizeof(*hook) + strlen(name) + 1);
	if (!hook)
		goto out;
	hook->env = env;
	hook->proto = proto;
	hook->nr_args = nr_args;
	strcpy(hook->name, name);
	hook->next = env->hooks;
	env->hooks = hook;
out:
	pthread_mutex_unlock(&env->lock);
	return hook;
}

void env_hooks_fini(struct env *env)
{
	struct env_hook *hook;

	while ((hook = env->hooks)) {
		env->hooks = hook->next;
		free(hook);
	}
}

const char *env_hook_name(const struct env_hook *hook)
{
	return hook->name;
}

u32 env_hook_nr_args(const struct env_hook *hook)
{
	return hook->nr_args;
}

u32 env_hook_proto(const struct env_hook *hook)
{
	return hook->proto;
}

bool env_hook_active(const struct env_hook *hook)
{
	return __atomic_load_n(&hook->clients, __ATOMIC_RELAXED) != NULL;
}

int env_hook_attach(struct env_hook *hook, struct env_hook_client *client)
{
	struct env_hook_client **p = &hook->clients;

	client->next = NULL;
	pthread_mutex_lock(&hook->env->lock);
	while (*p)
		p = &(*p)->next;
	__atomic_store_n(p, client, __ATOMIC_RELEASE); /* pairs with the loads in env_hook_fire() */
	pthread_mutex_unlock(&hook->env->lock);
	return 0;
}

void env_hook_detach(struct env_hook *hook, struct env_hook_client *client)
{
	struct env_hook_client **p = &hook->clients;

	pthread_mutex_lock(&hook->env->lock);
	while (*p && *p != client)
		p = &(*p)->next;
	if (*p)
		__atomic_store_n(p, client->next, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&hook->env->lock);
	rcu_wait();
}

void env_hook_fire(struct env_hook *hook, const u64 *args, u32 nargs)
{
	struct env_hook_client *c = __atomic_load_n(&hook->clients, __ATOMIC_ACQUIRE);

	if (!c)
		return;
	rcu_enter();
	for (c = __atomic_load_n(&hook->clients, __ATOMIC_ACQUIRE); c;
	     c = __atomic_load_n(&c->next, __ATOMIC_ACQUIRE))
		c->fire(c, args, nargs);
	rcu_leave();
}
