/* SPDX-License-Identifier: BSD-2-Clause */
/* A program attached somewhere. The last reference detaches. */
#ifndef INLAY_OBJECT_LINK_H
#define INLAY_OBJECT_LINK_H

#include "env/env.h"
#include "object/obj.h"
#include "object/prog.h"

struct link {
	struct obj obj;
	u32 type;	 /* BPF_LINK_TYPE_* */
	u32 attach_type; /* BPF_* attach type, 0 where none */
	struct prog *prog; /* reference held */
	u64 cookie;
	/* tracepoints */
	struct env_hook *hook;
	struct env_hook_client client;
};

static inline struct link *link_of(struct obj *obj)
{
	return container_of_(obj, struct link, obj);
}

/* Stops the program from being run through this link (BPF_LINK_DETACH); the object stays. Idempotent. */
void link_detach(struct link *link);

/* Attaches prog to a tracepoint hook: each hit runs it once with the arguments as context. 0 or -errno. */
int link_attach_hook(struct prog *prog, u32 link_type, u32 attach_type, struct env_hook *hook, u64 cookie,
		     struct link **ret_link);

#endif
