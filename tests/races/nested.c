// SPDX-License-Identifier: BSD-2-Clause
// An interrupt program that uses the storage its own victim is working on: a signal in every window of every operation.
#include "races.h"

#include <signal.h>
#include <stdio.h>

#include "rcu/rcu.h"

enum act { ACT_GET, ACT_CREATE, ACT_DELETE, ACT_UPDATE, NR_ACTS };

static const char *const act_names[] = {"get", "create", "delete", "update"};

static struct {
	const struct storage_ops *impl;
	struct map *map;
	struct race_owner o;
	enum act inner;
	int at, seen; /* the window to interrupt, windows passed */
	bool pending; /* it came while the mask was set: it runs once that is dropped */
	u64 ran, pended, bad;
	bool busy;
} n;

static u64 get(u64 flags)
{
	u64 init = 77;

	return n.impl->task_get((u64)n.map, (u64)n.o.obj, (u64)&init, flags, 0);
}

/* The interrupt program's body, and what it may see. */
static void inner(bool nested)
{
	bool linux_ = n.impl->loser_null;
	u64 v;
	long err;

	n.ran++;
	rcu_enter();
	switch (n.inner) {
	case ACT_GET:
		v = get(0);
		n.bad += v && *(u64 *)v > 100;
		break;
	case ACT_CREATE:
		v = get(BPF_LOCAL_STORAGE_GET_F_CREATE);
		/* slots always make one; Linux none while the thread is in an operation */
		n.bad += v ? *(u64 *)v > 100 : !(linux_ && nested);
		break;
	case ACT_DELETE:
		err = (long)n.impl->task_delete((u64)n.map, (u64)n.o.obj, 0, 0, 0);
		n.bad += err && err != -ENOENT && !(linux_ && nested && err == -EBUSY);
		break;
	case ACT_UPDATE:
	case NR_ACTS:
		break;
	}
	rcu_leave();
}

static void on_signal(int sig)
{
	if (env_tls.irq_masked)
		n.pending = true;
	else
		inner(true);
}

static void on_hook(const char *where)
{
	if (n.busy || n.seen++ != n.at)
		return;
	n.busy = true;
	raise(SIGUSR1);
	n.busy = false;
}

static void outer(enum act act)
{
	u64 value = 55;

	rcu_enter();
	switch (act) {
	case ACT_GET:
		get(0);
		break;
	case ACT_CREATE:
		get(BPF_LOCAL_STORAGE_GET_F_CREATE);
		break;
	case ACT_DELETE:
		n.impl->task_delete((u64)n.map, (u64)n.o.obj, 0, 0, 0);
		break;
	case ACT_UPDATE:
	case NR_ACTS:
		n.impl->update(&n.o.owner, lstore_map_of(n.map), &value, BPF_ANY, NULL);
		break;
	}
	rcu_leave();
}

/* Returns whether there was a window to interrupt. */
static bool once(enum act act, int at, bool present)
{
	bool more;

	env_owner_init(&n.o.owner, NULL);
	if (present)
		outer(ACT_CREATE);
	n.at = at;
	n.seen = 0;
	n.pending = false;
	lstore_hook = on_hook;
	outer(act);
	lstore_hook = NULL;
	more = n.seen > at;
	if (n.pending) {
		n.pended++;
		inner(false);
	}
	/* one element or none, and the owner's end takes it along */
	n.bad += lstore_elems(lstore_map_of(n.map)) > 1;
	lstore_owner_free(&n.o.owner);
	n.bad += lstore_elems(lstore_map_of(n.map)) != 0;
	return more;
}

void nested(const struct storage_ops *impl, struct map *map)
{
	struct sigaction sa = {.sa_handler = on_signal}, old;
	u32 act, present, windows = 0;
	char more[96];
	int at;

	n.impl = impl;
	n.map = map;
	sigaction(SIGUSR1, &sa, &old);
	for (act = ACT_CREATE; act < NR_ACTS; act++) {
		for (n.inner = ACT_GET; n.inner <= ACT_DELETE; n.inner++) {
			n.bad = 0;
			for (present = 0; present < 2; present++)
				for (at = 0; once(act, at, present); at++)
					windows++;
			snprintf(more, sizeof(more), "%s inside %s", act_names[n.inner], act_names[act]);
			race_ok(!n.bad, "nested in every window:", more);
		}
	}
	sigaction(SIGUSR1, &old, NULL);
	snprintf(more, sizeof(more), "%u windows, %llu of them masked", windows, (unsigned long long)n.pended);
	race_ok(windows >= 20 && n.pended && n.ran == windows, "the interrupt program ran once a window:", more);
	rcu_barrier_all();
}
