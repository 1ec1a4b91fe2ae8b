// SPDX-License-Identifier: BSD-2-Clause
// Links to tracepoints.
#include "object/link.h"

#include <errno.h>
#include <stdlib.h>

#include "rcu/rcu.h"

static void release(struct obj *obj)
{
	struct link *link = link_of(obj);

	link_detach(link);
	obj_put(&link->prog->obj);
	free(link); /* env_hook_detach() waited for running handlers */
}

static const struct obj_ops link_obj_ops = {
	.release = release,
};

static void fire(struct env_hook_client *client, const u64 *args, u32 nargs)
{
	struct link *link = container_of_(client, struct link, client);

	prog_run(link->prog, (void *)args);
}

void link_detach(struct link *link)
{
	if (link->hook)
		env_hook_detach(link->hook, &link->client);
	link->hook = NULL;
}

int link_attach_hook(struct prog *prog, u32 link_type, u32 attach_type, struct env_hook *hook, u64 cookie,
		     struct link **ret_link)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return -ENOMEM;
	link->type = link_type;
	link->attach_type = attach_type;
	link->cookie = cookie;
	link->client.fire = fire;
	obj_init(&link->obj, prog->obj.inlay, OBJ_LINK, &link_obj_ops);
	obj_get(&prog->obj);
	link->prog = prog;
	link->hook = hook;
	env_hook_attach(hook, &link->client);
	*ret_link = link;
	return 0;
}
