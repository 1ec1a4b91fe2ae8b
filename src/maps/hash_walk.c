// SPDX-License-Identifier: BSD-2-Clause
// Walks through a hash map, by bpf(2) key by key and by programs with a callback.
#include "maps/hash_key.h"

#define MAX_RESTARTS 64 /* of one list of groups that others keep changing under the walk */

static void copy_key(const struct hash_map *h, const char *e, void *out)
{
	map_value_read(out, e, h->map.key_size);
}

/* The first element at or behind place i of group g, in order of a home group's list; that group is locked. */
static const char *first_from(const struct hash_map *h, const struct hash_group *g, u32 i)
{
	u32 used;

	for (;; g = &h->group[g->next], i = 0) {
		used = ~hash_match(g, 0) & HASH_SLOTS & ~0u << i;
		if (used)
			return hash_elem_at(h, g->elem[__builtin_ctz(used)]);
		if (!g->next)
			return NULL;
	}
}

/* First key of home group nr or a later one. */
static int first_key_from(struct hash_map *h, u32 nr, void *next_key)
{
	const char *e;
	u8 mask;

	for (; nr < h->nr_groups; nr++) {
		struct hash_group *g = &h->group[nr];

		if (hash_match(g, 0) == HASH_SLOTS && !__atomic_load_n(&g->next, __ATOMIC_RELAXED))
			continue;
		mask = hash_lock(g);
		e = first_from(h, g, 0);
		if (e)
			copy_key(h, e, next_key);
		hash_unlock(g, mask);
		if (e)
			return 0;
	}
	return -ENOENT;
}

/* A key that is not there (any more): the first one, as Linux. */
int hash_next_key(struct map *map, const void *key, void *next_key)
{
	struct hash_map *h = hash_of(map);
	struct hash_group *home;
	struct hash_place at;
	const char *e = NULL;
	bool there;
	u64 hash;
	u8 mask;

	if (!key)
		return first_key_from(h, 0, next_key);
	hash = hash_key(h, key);
	home = hash_home(h, hash);
	mask = hash_lock(home);
	there = hash_locate(h, hash, key, &at);
	if (there)
		e = first_from(h, at.g, at.i + 1);
	if (e)
		copy_key(h, e, next_key);
	hash_unlock(home, mask);
	if (e)
		return 0;
	return first_key_from(h, there ? (u32)(home - h->group) + 1 : 0, next_key);
}

struct walk {
	struct hash_map *h;
	struct bpf_func *cb;
	u64 cb_ctx;
	char *(*value_of)(const struct hash_map *h, char *e);
	long nr;
};

/* The group that many steps behind the home group, 0: none. */
static u32 group_behind(const struct hash_map *h, u32 home, u32 steps)
{
	u32 group = home;

	while (steps-- && (group = __atomic_load_n(&h->group[group].next, __ATOMIC_ACQUIRE)))
		;
	return group;
}

/*
 * Shows what is in the list of a home group when the walk comes to each place. An insertion takes the first free place, so
 * a callback that deletes what it is shown and inserts it again does not see it again. Where the group the walk is in is
 * taken off the list meanwhile, what followed it is at its place. True: the callback wants to end it.
 */
static bool walk_list(struct walk *w, u32 home)
{
	struct hash_map *h = w->h;
	u32 group = home, steps = 0, restarts = 0, i = 0;

	do {
		struct hash_group *g = &h->group[group];

		for (; i < HASH_GROUP; i++) {
			char *e;

			if (!__atomic_load_n(&g->tag[i], __ATOMIC_ACQUIRE))
				continue;
			e = hash_elem_at(h, __atomic_load_n(&g->elem[i], __ATOMIC_ACQUIRE));
			w->nr++;
			if (w->cb->call(w->cb, (u64)&h->map, (u64)e, (u64)w->value_of(h, e), w->cb_ctx, 0))
				return true;
			if (steps && group_behind(h, home, steps) != group)
				break;
		}
		if (i == HASH_GROUP)
			steps++;
		else if (++restarts > MAX_RESTARTS)
			return false;
		group = group_behind(h, home, steps);
		i = 0;
	} while (group);
	return false;
}

/* The callback may change the map. */
long hash_for_each_elem(struct hash_map *h, struct bpf_func *cb, u64 cb_ctx, u64 flags,
			char *(*value_of)(const struct hash_map *h, char *e))
{
	struct walk w = {h, cb, cb_ctx, value_of, 0};
	u32 nr;

	if (flags)
		return -EINVAL;
	for (nr = 0; nr < h->nr_groups; nr++) {
		if (hash_match(&h->group[nr], 0) == HASH_SLOTS &&
		    !__atomic_load_n(&h->group[nr].next, __ATOMIC_RELAXED))
			continue;
		if (walk_list(&w, nr))
			break;
	}
	return w.nr;
}
