// SPDX-License-Identifier: BSD-2-Clause
// Maps whose elements are maps or programs: what bpf(2) answers (recorded from Linux 6.18, and asked again where it may
// be), what programs find, and how long that lives.
#include "fixture.h"
#include "object/prog.h"

static bool kernel_ok;

struct shape {
	u32 type, key, value, max, flags;
};

/* A map as a descriptor: of the kernel, or a slot of fake_fd; or -errno. */
static int open_map(bool kernel, struct shape s, int inner_fd)
{
	struct map_attr a = {.map_type = s.type, .key_size = s.key, .value_size = s.value, .max_entries = s.max, .map_flags = s.flags};
	struct map *map;
	int err, fd;

	if (kernel) {
		union bpf_attr attr = {.map_type = s.type, .key_size = s.key, .value_size = s.value, .max_entries = s.max,
				       .map_flags = s.flags, .inner_map_fd = inner_fd};

		return sys_bpf_raw(BPF_MAP_CREATE, &attr);
	}
	if (inner_fd > 0 && fake_fd[inner_fd] && fake_fd[inner_fd]->kind == OBJ_MAP)
		a.inner = map_of(fake_fd[inner_fd]);
	map = make_map_attr(&a, &err);
	if (err)
		return err;
	for (fd = 1; fake_fd[fd]; fd++)
		;
	fake_fd[fd] = &map->obj;
	obj_publish(&map->obj);
	return fd;
}

static void close_map(bool kernel, int fd)
{
	if (kernel) {
		close(fd);
	} else if (fd > 0) {
		obj_put(fake_fd[fd]);
		fake_fd[fd] = NULL;
	}
}

static long elem(bool kernel, enum elem_cmd cmd, int fd, const void *key, void *value, u64 flags)
{
	long ret;

	if (kernel)
		return kernel_elem(cmd, fd, key, value, flags);
	handles[0] = map_of(fake_fd[fd]);
	ret = inlay_elem(cmd, 0, key, value, flags);
	handles[0] = NULL;
	return ret;
}

/* ---- making them ---- */

#define ARRAY_SHAPE ((struct shape){BPF_MAP_TYPE_ARRAY, 4, 8, 4, 0})

static void outer(const char *what, struct shape s, struct shape in, int want)
{
	int side, inner, template, fd;

	for (side = 0; side <= kernel_ok; side++) {
		template = open_map(side, ARRAY_SHAPE, 0);
		inner = in.type ? open_map(side, in, template) : -1;
		fd = open_map(side, s, inner);
		is_int(fd < 0 ? fd : 0, want, "%s%s", what, side ? ": the kernel says the same" : "");
		close_map(side, fd);
		close_map(side, inner);
		close_map(side, template);
	}
}

static void making(void)
{
	struct shape a = {BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2, 0}, h = {BPF_MAP_TYPE_HASH_OF_MAPS, 8, 4, 2, 0},
		     p = {BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2, 0}, in = ARRAY_SHAPE, bad;

	outer("array of maps", a, in, 0);
	outer("hash of maps", h, in, 0);
	outer("prog array", p, in, 0);
	outer("array of maps without an inner one", a, (struct shape){0}, -EBADF);
	outer("hash of maps without an inner one", h, (struct shape){0}, -EBADF);
	bad = a, bad.value = 8;
	outer("array of maps, value_size 8", bad, in, -EINVAL);
	bad = h, bad.value = 8;
	outer("hash of maps, value_size 8", bad, in, -EINVAL);
	bad = p, bad.value = 8;
	outer("prog array, value_size 8", bad, in, -EINVAL);
	bad = p, bad.key = 8;
	outer("prog array, key_size 8", bad, in, -EINVAL);
	bad = a, bad.max = 0;
	outer("array of maps, max_entries 0", bad, in, -EINVAL);
	bad = a, bad.flags = BPF_F_RDONLY_PROG;
	outer("array of maps, RDONLY_PROG", bad, in, -EINVAL);
	bad = a, bad.flags = BPF_F_MMAPABLE;
	outer("array of maps, MMAPABLE", bad, in, -EINVAL);
	bad = a, bad.flags = BPF_F_INNER_MAP;
	outer("array of maps, INNER_MAP", bad, in, -EINVAL);
	bad = p, bad.flags = BPF_F_RDONLY;
	outer("prog array, RDONLY", bad, in, 0);
	bad = p, bad.flags = BPF_F_RDONLY_PROG;
	outer("prog array, RDONLY_PROG", bad, in, -EINVAL);
	bad = h, bad.flags = BPF_F_NO_PREALLOC;
	outer("hash of maps, NO_PREALLOC", bad, in, 0);
	outer("array of maps of maps", a, a, -EINVAL);
	outer("array of prog arrays", a, p, -LINUX_ENOTSUPP);
	outer("array of hashes", a, (struct shape){BPF_MAP_TYPE_HASH, 8, 8, 2, 0}, 0);
	outer("array of per-CPU arrays", a, (struct shape){BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 2, 0}, 0);
	outer("array of ringbufs", a, (struct shape){BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0}, 0);
	outer("array of perf event arrays", a, (struct shape){BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2, 0}, 0);
}

/* ---- what fits ---- */

static void put_in(const char *what, struct shape pattern, struct shape in, int want)
{
	int side, outer_fd, pattern_fd, fd;
	u32 key = 1;

	for (side = 0; side <= kernel_ok; side++) {
		pattern_fd = open_map(side, pattern, 0);
		outer_fd = open_map(side, (struct shape){BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2, 0}, pattern_fd);
		fd = open_map(side, in, 0);
		is_int(elem(side, UPDATE, outer_fd, &key, &fd, BPF_ANY), want, "put in %s%s", what,
		       side ? ": the kernel says the same" : "");
		close_map(side, fd);
		close_map(side, outer_fd);
		close_map(side, pattern_fd);
	}
	rcu_barrier_all();
}

static void fitting(void)
{
	struct shape a = ARRAY_SHAPE, h = {BPF_MAP_TYPE_HASH, 8, 8, 4, 0}, pc = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 4, 0}, other;

	put_in("an array", a, a, 0);
	other = a, other.value = 16;
	put_in("an array with another value size", a, other, -EINVAL);
	other = a, other.max = 5;
	put_in("an array with other max_entries", a, other, -EINVAL);
	other = a, other.flags = BPF_F_INNER_MAP;
	put_in("an array with other flags", a, other, -EINVAL);
	a.flags = BPF_F_INNER_MAP;
	other = a, other.max = 5;
	put_in("an INNER_MAP array with other max_entries", a, other, 0);
	put_in("a hash", h, h, 0);
	other = h, other.max = 1000;
	put_in("a hash with other max_entries", h, other, 0);
	other = h, other.key = 4;
	put_in("a hash with another key size", h, other, -EINVAL);
	other = h, other.flags = BPF_F_NO_PREALLOC;
	put_in("a hash with other flags", h, other, -EINVAL);
	put_in("a hash for an array", a, h, -EINVAL);
	other = pc, other.max = 9;
	put_in("a per-CPU array with other max_entries", pc, other, 0);
}

/* ---- element commands ---- */

struct cmd {
	const char *what;
	enum elem_cmd cmd;
	u64 key;
	int fd; /* UPDATE: index into fds below; -1: none */
	u64 flags;
	int want, id; /* id: LOOKUP's, of that descriptor */
};

static u32 id_of(bool kernel, int fd)
{
	struct bpf_map_info info = {0};
	union bpf_attr attr = {.info = {.bpf_fd = fd, .info_len = sizeof(info), .info = (u64)&info}};

	if (!kernel)
		return fake_fd[fd]->id;
	return sys_bpf_raw(BPF_OBJ_GET_INFO_BY_FD, &attr) ? 0 : info.id;
}

static void commands(const char *name, struct shape s, const struct cmd *cmds, u32 n)
{
	int side, fds[2], fd, bad_fd;
	u32 i, value;

	for (side = 0; side <= kernel_ok; side++) {
		fds[0] = open_map(side, ARRAY_SHAPE, 0);
		fds[1] = open_map(side, ARRAY_SHAPE, 0);
		fd = open_map(side, s, fds[0]);
		bad_fd = side ? 1000 : 60;
		for (i = 0; i < n; i++) {
			const struct cmd *c = &cmds[i];
			u64 out[2] = {0};

			value = c->fd < 0 ? bad_fd : fds[c->fd];
			memcpy(out, &value, sizeof(value));
			is_int(elem(side, c->cmd, fd, &c->key, out, c->flags), c->want, "%s: %s%s", name, c->what,
			       side ? ": the kernel says the same" : "");
			if (c->cmd == LOOKUP && !c->want)
				is_u64((u32)out[0], id_of(side, fds[c->id]), "%s: %s: its id", name, c->what);
		}
		close_map(side, fd);
		close_map(side, fds[0]);
		close_map(side, fds[1]);
	}
	rcu_barrier_all();
}

static const struct cmd array_cmds[] = {
	{"lookup in an empty slot", LOOKUP, 0, 0, 0, -ENOENT},
	{"lookup index == max_entries", LOOKUP, 2, 0, 0, -ENOENT},
	{"update index == max_entries", UPDATE, 2, 0, 0, -E2BIG},
	{"update index == max_entries with a bad descriptor", UPDATE, 2, -1, 0, -E2BIG},
	{"update with a bad descriptor", UPDATE, 0, -1, 0, -EBADF},
	{"update NOEXIST", UPDATE, 0, 0, BPF_NOEXIST, -EINVAL},
	{"update EXIST with a bad descriptor", UPDATE, 0, -1, BPF_EXIST, -EINVAL},
	{"update", UPDATE, 0, 0, 0, 0},
	{"lookup", LOOKUP, 0, 0, 0, 0, 0},
	{"replace", UPDATE, 0, 1, 0, 0},
	{"lookup the new one", LOOKUP, 0, 0, 0, 0, 1},
	{"delete", DELETE, 0, 0, 0, 0},
	{"second delete", DELETE, 0, 0, 0, -ENOENT},
	{"delete index == max_entries", DELETE, 2, 0, 0, -E2BIG},
	{"lookup_and_delete", TAKE, 0, 0, 0, -LINUX_ENOTSUPP},
	{"next_key(last)", NEXT, 1, 0, 0, -ENOENT},
	{"leave one in", UPDATE, 1, 0, 0, 0},
};

static const struct cmd hash_cmds[] = {
	{"lookup missing", LOOKUP, 7, 0, 0, -ENOENT},
	{"update with a bad descriptor", UPDATE, 7, -1, 0, -EBADF},
	{"update EXIST on missing", UPDATE, 7, 0, BPF_EXIST, -ENOENT},
	{"insert", UPDATE, 7, 0, BPF_NOEXIST, 0},
	{"update NOEXIST on present", UPDATE, 7, 1, BPF_NOEXIST, -EEXIST},
	{"lookup", LOOKUP, 7, 0, 0, 0, 0},
	{"replace", UPDATE, 7, 1, BPF_ANY, 0},
	{"lookup the new one", LOOKUP, 7, 0, 0, 0, 1},
	{"second insert", UPDATE, 8, 1, BPF_ANY, 0},
	{"insert when full", UPDATE, 9, 1, BPF_ANY, -E2BIG},
	{"delete", DELETE, 7, 0, 0, 0},
	{"second delete", DELETE, 7, 0, 0, -ENOENT},
	{"next_key of the last", NEXT, 8, 0, 0, -ENOENT},
	{"lookup_and_delete", TAKE, 8, 0, 0, -LINUX_ENOTSUPP},
};

/* Of programs there are none here: a map is none, too. */
static const struct cmd prog_cmds[] = {
	{"index out of range", UPDATE, 2, 0, 0, -E2BIG},
	{"update with a bad descriptor", UPDATE, 0, -1, 0, -EBADF},
	{"update with a map", UPDATE, 0, 0, 0, -EINVAL},
	{"update EXIST", UPDATE, 0, 0, BPF_EXIST, -EINVAL},
	{"lookup in an empty slot", LOOKUP, 0, 0, 0, -ENOENT},
	{"delete of an empty slot", DELETE, 0, 0, 0, -ENOENT},
	{"delete index == max_entries", DELETE, 2, 0, 0, -E2BIG},
	{"lookup_and_delete", TAKE, 0, 0, 0, -LINUX_ENOTSUPP},
	{"next_key(last)", NEXT, 1, 0, 0, -ENOENT},
};

/* ---- how long inner maps live ---- */

static void lifetime(struct shape s, const char *what)
{
	long before = fix.nr_objs[OBJ_MAP];
	int first = open_map(false, ARRAY_SHAPE, 0), second = open_map(false, ARRAY_SHAPE, 0), fd = open_map(false, s, first), i;
	struct map *outer_map = map_of(fake_fd[fd]), *found;
	u64 key = 1, value = 5;

	elem(false, UPDATE, fd, &key, &first, 0);
	rcu_enter();
	found = outer_map->ops->lookup(outer_map, &key);
	ok(found == map_of(fake_fd[first]), "%s: a program's lookup gives the inner map", what);
	ok(!outer_map->ops->lookup(outer_map, &(u64){0}), "%s: NULL where there is none", what);
	close_map(false, first);
	elem(false, UPDATE, fd, &key, &second, 0);
	usleep(20000); /* let the worker try */
	ok(!found->ops->update(found, &(u32){0}, &value, 0) && *(u64 *)found->ops->lookup(found, &(u32){0}) == 5,
	   "%s: one that is replaced lives as long as who found it", what);
	rcu_leave();
	rcu_barrier_all();
	is_int(fix.nr_objs[OBJ_MAP], before + 2, "%s: and no longer", what);
	close_map(false, second);
	rcu_barrier_all();
	is_int(fix.nr_objs[OBJ_MAP], before + 2, "%s: the outer map holds what is in it", what);
	rcu_enter();
	found = outer_map->ops->lookup(outer_map, &key);
	for (i = 0; i < 100; i++) /* the hash's memory is used again */
		elem(false, DELETE, fd, &key, NULL, 0);
	ok(found && !found->ops->update(found, &(u32){1}, &value, 0), "%s: so does one that is deleted", what);
	rcu_leave();
	close_map(false, fd);
	rcu_barrier_all();
	is_int(fix.nr_objs[OBJ_MAP], before, "%s: all are gone in the end", what);
}

/* A reader follows what it finds while inner maps are replaced, deleted and made. */
static struct {
	struct map *outer;
	bool stop; /* atomic */
	u64 reads, bad;
} race;

static void *follow(void *arg)
{
	u64 key = 0;

	env_enter(fix.env, 1, NULL);
	while (!__atomic_load_n(&race.stop, __ATOMIC_RELAXED)) {
		struct map *inner;
		u64 *value;

		key = (key + 1) % 2;
		rcu_enter();
		inner = race.outer->ops->lookup(race.outer, &key);
		value = inner ? inner->ops->lookup(inner, &(u32){0}) : NULL;
		race.bad += value && *value != key + 100;
		rcu_leave();
		race.reads++;
	}
	env_leave(fix.env);
	return NULL;
}

static void followed(struct shape s, const char *what)
{
	int pattern = open_map(false, ARRAY_SHAPE, 0), fd = open_map(false, s, pattern), inner;
	u64 key, value, end = now_ns() + 700000000, rounds = 0;
	pthread_t thread;

	memset(&race, 0, sizeof(race));
	race.outer = map_of(fake_fd[fd]);
	pthread_create(&thread, NULL, follow, NULL);
	while (now_ns() < end) {
		key = rounds++ % 2;
		value = key + 100;
		inner = open_map(false, ARRAY_SHAPE, 0);
		map_of(fake_fd[inner])->ops->sys_update(map_of(fake_fd[inner]), &(u32){0}, &value, 0);
		elem(false, UPDATE, fd, &key, &inner, 0);
		close_map(false, inner);
		if (rounds % 3 == 0)
			elem(false, DELETE, fd, &key, NULL, 0);
	}
	__atomic_store_n(&race.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	is_u64(race.bad, 0, "%s: who follows what it finds reads that key's map (%llu reads)", what,
	       (unsigned long long)race.reads);
	close_map(false, fd);
	close_map(false, pattern);
	rcu_barrier_all();
}

/* ---- programs ---- */

static int released;

static void prog_released(struct obj *obj)
{
	released++;
}

static const struct obj_ops prog_ops = {.release = prog_released};

static void prog_init(struct prog *prog, u32 type, u32 attach, int fd)
{
	memset(prog, 0, sizeof(*prog));
	obj_init(&prog->obj, &fix, OBJ_PROG, &prog_ops);
	prog->type = type;
	prog->expected_attach_type = attach;
	obj_publish(&prog->obj);
	fake_fd[fd] = &prog->obj;
}

static void programs(void)
{
	int fd = open_map(false, (struct shape){BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 3, 0}, 0);
	struct map *map = map_of(fake_fd[fd]);
	struct prog progs[4];
	u32 key = 1, id = 0, i;

	prog_init(&progs[0], BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 50);
	prog_init(&progs[1], BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 51);
	prog_init(&progs[2], BPF_PROG_TYPE_SOCKET_FILTER, 0, 52);
	prog_init(&progs[3], BPF_PROG_TYPE_RAW_TRACEPOINT, 1, 53);
	is_int(elem(false, UPDATE, fd, &key, &(u64){50}, 0), 0, "a program is put in");
	is_int(elem(false, LOOKUP, fd, &key, &id, 0), 0, "bpf(2) finds it");
	is_u64(id, progs[0].obj.id, "by its id");
	is_int(elem(false, UPDATE, fd, &key, &(u64){52}, 0), -EINVAL, "one of another type does not fit");
	is_int(elem(false, UPDATE, fd, &key, &(u64){53}, 0), -EINVAL, "nor one for another attachment");
	is_int(map->ops->admit(map, &progs[2]), -EINVAL, "nor may such a program use the map");
	is_int(map->ops->admit(map, &progs[1]), 0, "one like it may");
	rcu_enter();
	ok(map->ops->prog_at(map, 1) == &progs[0], "a tail call finds it");
	ok(map->ops->prog_at(map, 1ULL << 32 | 1) == &progs[0], "the index has 32 bits");
	ok(!map->ops->prog_at(map, 0) && !map->ops->prog_at(map, 3) && !map->ops->prog_at(map, U32_MAX), "none elsewhere");
	rcu_leave();
	is_int(elem(false, UPDATE, fd, &key, &(u64){51}, 0), 0, "it is replaced");
	ok(progs[0].obj.refs == 1 && progs[1].obj.refs == 2, "the map holds what is in it and nothing else");
	key = 2;
	elem(false, UPDATE, fd, &key, &(u64){50}, 0);
	map->ops->user_gone(map);
	ok(!map->ops->prog_at(map, 1) && !map->ops->prog_at(map, 2), "when its last user is gone it is emptied");
	is_int(elem(false, UPDATE, fd, &key, &(u64){50}, 0), 0, "who still has it may fill it again");
	close_map(false, fd);
	rcu_barrier_all();
	ok(progs[0].obj.refs == 1 && progs[1].obj.refs == 1 && !released, "with the map its references go");
	for (i = 0; i < 4; i++) {
		fake_fd[50 + i] = NULL;
		obj_put(&progs[i].obj);
	}
}

int main(void)
{
	static const struct shape array = {BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2, 0}, hash = {BPF_MAP_TYPE_HASH_OF_MAPS, 8, 4, 2, 0},
				  progs = {BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2, 0};

	kernel_ok = have_kernel();
	fix_up(2);
	making();
	fitting();
	commands("array of maps", array, array_cmds, ARRAY_SIZE(array_cmds));
	commands("hash of maps", hash, hash_cmds, ARRAY_SIZE(hash_cmds));
	commands("prog array", progs, prog_cmds, ARRAY_SIZE(prog_cmds));
	lifetime(array, "array of maps");
	lifetime(hash, "hash of maps");
	followed(array, "array of maps");
	followed(hash, "hash of maps");
	programs();
	fix_down();
	is_int(fix.nr_objs[OBJ_MAP], 0, "no map is left");
	return tap_done();
}
