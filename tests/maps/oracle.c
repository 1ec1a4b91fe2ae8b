// SPDX-License-Identifier: BSD-2-Clause
// The recorded answers of Linux 6.18 about maps (oracle/map_behaviour.tsv), every row of a map type we have: done through
// the engine's bpf(2), the answer printed as the table has it.
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/types.h"
#include "env/env.h"
#include "inlay/inlay.h"
#include "object/instance.h"
#include "tap.h"

static struct inlay *engine;
static long array = -1, hash = -1, lazy = -1, ring = -1, task = -1, batch = -1;
static int pidfd = -1;
static long pagesize;

static const char *error_name(long err)
{
	static const struct {
		int err;
		const char *name;
	} names[] = {{ENOENT, "ENOENT"}, {E2BIG, "E2BIG"}, {EEXIST, "EEXIST"}, {EINVAL, "EINVAL"},
		     {EPERM, "EPERM"},	 {EBADF, "EBADF"}, {EACCES, "EACCES"}, {ENOMEM, "ENOMEM"}};
	static char other[32];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].err == -err)
			return names[i].name;
	snprintf(other, sizeof(other), "error %ld", -err);
	return other;
}

__attribute__((format(printf, 1, 2))) static const char *text(const char *fmt, ...)
{
	static char buf[4][256];
	static u32 at;
	va_list args;

	at = (at + 1) % 4;
	va_start(args, fmt);
	vsnprintf(buf[at], sizeof(buf[at]), fmt, args);
	va_end(args);
	return buf[at];
}

static const char *result(long ret)
{
	return ret < 0 ? error_name(ret) : "0";
}

/* In a tuple an error is quoted. */
static const char *quoted(long ret)
{
	return ret < 0 ? text("'%s'", error_name(ret)) : "0";
}

static const char *bytes(long ret, const unsigned char *value, u32 size)
{
	char out[128];
	u32 i, n = 0;

	if (ret)
		return error_name(ret);
	for (i = 0; i < size; i++)
		n += value[i] >= 32 && value[i] < 127 ? sprintf(out + n, "%c", value[i]) : sprintf(out + n, "\\x%02x", value[i]);
	return text("(0, b'%s')", out);
}

/* ---- commands ---- */

static long create(u32 type, u32 key, u32 value, u32 max, u32 flags)
{
	union bpf_attr a = {.map_type = type, .key_size = key, .value_size = value, .max_entries = max, .map_flags = flags};

	return inlay_bpf(engine, BPF_MAP_CREATE, &a, sizeof(a));
}

/* Just whether it can be made. */
static const char *creates(u32 type, u32 key, u32 value, u32 max, u32 flags)
{
	long fd = create(type, key, value, max, flags);

	if (fd >= 0)
		close(fd);
	return result(fd);
}

static unsigned char out[64];

static long elem(int cmd, long fd, const u64 *key, u64 value, u64 flags)
{
	union bpf_attr a = {.map_fd = fd, .key = (u64)key};

	memset(out, 0, sizeof(out));
	memcpy(out, &value, sizeof(value));
	if (cmd != BPF_MAP_DELETE_ELEM)
		a.value = (u64)out;
	if (cmd != BPF_MAP_DELETE_ELEM && cmd != BPF_MAP_GET_NEXT_KEY)
		a.flags = flags;
	return inlay_bpf(engine, cmd, &a, sizeof(a));
}

static long lookup(long fd, u64 key)
{
	return elem(BPF_MAP_LOOKUP_ELEM, fd, &key, 0, 0);
}

static long update(long fd, u64 key, u64 value, u64 flags)
{
	return elem(BPF_MAP_UPDATE_ELEM, fd, &key, value, flags);
}

static long removes(long fd, u64 key)
{
	return elem(BPF_MAP_DELETE_ELEM, fd, &key, 0, 0);
}

static const char *batched(int cmd)
{
	u64 keys[16], values[16], pos = 0;
	union bpf_attr a = {.batch = {.out_batch = (u64)&pos, .keys = (u64)keys, .values = (u64)values, .count = 16, .map_fd = batch}};
	long ret = inlay_bpf(engine, cmd, &a, sizeof(a));

	return text("(%s, %u)", quoted(ret), a.batch.count);
}

static void fill_batch(void)
{
	u64 i;

	batch = create(BPF_MAP_TYPE_HASH, 8, 8, 16, 0);
	for (i = 0; i < 5; i++)
		update(batch, i, i, BPF_ANY);
}

/* int key, long value; also a map that is asked for with max_entries. */
static long task_map(bool typed, u32 max)
{
	static const char strings[] = "\0int\0long";
	struct {
		struct btf_header h;
		struct btf_type key;
		u32 key_data;
		struct btf_type value;
		u32 value_data;
		char strings[sizeof(strings)];
	} __attribute__((packed)) blob = {
		{BTF_MAGIC, 1, 0, sizeof(struct btf_header), 0, 32, 32, sizeof(strings)},
		{1, BTF_KIND_INT << 24, {4}}, BTF_INT_SIGNED << 24 | 32,
		{5, BTF_KIND_INT << 24, {8}}, BTF_INT_SIGNED << 24 | 64, "",
	};
	union bpf_attr b = {.btf = (u64)&blob, .btf_size = sizeof(blob)};
	union bpf_attr a = {.map_type = BPF_MAP_TYPE_TASK_STORAGE, .key_size = 4, .value_size = 8, .max_entries = max,
			    .map_flags = BPF_F_NO_PREALLOC};
	long fd;

	memcpy(blob.strings, strings, sizeof(strings));
	if (typed) {
		a.btf_fd = inlay_bpf(engine, BPF_BTF_LOAD, &b, sizeof(b));
		a.btf_key_type_id = 1;
		a.btf_value_type_id = 2;
	}
	fd = inlay_bpf(engine, BPF_MAP_CREATE, &a, sizeof(a));
	if (typed)
		close(a.btf_fd);
	return fd;
}

static const char *no_task(bool typed, u32 max)
{
	long fd = task_map(typed, max);

	if (fd >= 0)
		close(fd);
	return result(fd);
}

static const char *another_inner(void)
{
	long inner = create(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), other = create(BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0), fd, ret;
	union bpf_attr a = {.map_type = BPF_MAP_TYPE_ARRAY_OF_MAPS, .key_size = 4, .value_size = 4, .max_entries = 2,
			    .inner_map_fd = inner};

	fd = inlay_bpf(engine, BPF_MAP_CREATE, &a, sizeof(a));
	ret = fd < 0 || update(fd, 0, inner, BPF_ANY) ? -1000 : update(fd, 0, other, BPF_ANY);
	close(inner);
	close(other);
	close(fd);
	return result(ret);
}

static const char *prog_array_range(void)
{
	long fd = create(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2, 0), ret = update(fd, 2, fd, BPF_ANY);

	close(fd);
	return result(ret);
}

static const char *frozen(void)
{
	long fd = create(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), ret;
	union bpf_attr a = {.map_fd = fd};

	ret = inlay_bpf(engine, BPF_MAP_FREEZE, &a, sizeof(a));
	a = (union bpf_attr){.map_fd = 0};
	return text("(%s, %s)", quoted(ret), quoted(update(fd, 0, 1, BPF_ANY)));
}

static const char *ring_map(u64 off, u64 len, int prot)
{
	long mem = inlay_mmap(engine, NULL, len, prot, MAP_SHARED, ring, off);

	if (mem < 0 && mem > -4096)
		return error_name(mem);
	munmap((void *)mem, len);
	return "0";
}

static const char *filled(void)
{
	long first = update(lazy, 1, 1, BPF_ANY), second = update(lazy, 2, 2, BPF_ANY);

	return text("(%s, %s, %s)", quoted(first), quoted(second), quoted(update(lazy, 3, 3, BPF_ANY)));
}

/* ---- rows ---- */

#define ROWS                                                                                       \
	ROW("array: lookup index == max_entries", result(lookup(array, 4)))                        \
	ROW("array: update index == max_entries", result(update(array, 4, 1, BPF_ANY)))            \
	ROW("array: update NOEXIST on an existing index", result(update(array, 1, 1, BPF_NOEXIST))) \
	ROW("array: update EXIST", result(update(array, 1, 78, BPF_EXIST)))                        \
	ROW("array: F_LOCK without a lock in the value", result(update(array, 1, 1, BPF_F_LOCK)))  \
	ROW("array: next_key(NULL)", bytes(elem(BPF_MAP_GET_NEXT_KEY, array, NULL, 0, 0), out, 4)) \
	ROW("array: next_key(last)", result(elem(BPF_MAP_GET_NEXT_KEY, array, &(u64){3}, 0, 0)))   \
	ROW("array: next_key(index out of range) gives first",                                     \
	    bytes(elem(BPF_MAP_GET_NEXT_KEY, array, &(u64){99}, 0, 0), out, 4))                    \
	ROW("array: initial value is zero", bytes(lookup(array, 0), out, 8))                       \
	ROW("array: key_size 8", creates(BPF_MAP_TYPE_ARRAY, 8, 8, 1, 0))                          \
	ROW("array: max_entries 0", creates(BPF_MAP_TYPE_ARRAY, 4, 8, 0, 0))                       \
	ROW("array: value_size 0xffffffff", creates(BPF_MAP_TYPE_ARRAY, 4, U32_MAX, 1, 0))         \
	ROW("hash: lookup missing", result(lookup(hash, 1)))                                       \
	ROW("hash: delete missing", result(removes(hash, 1)))                                      \
	ROW("hash: EXIST on missing", result(update(hash, 1, 10, BPF_EXIST)))                      \
	ROW("hash: insert", result(update(hash, 1, 10, BPF_ANY)))                                  \
	ROW("hash: NOEXIST on present", result(update(hash, 1, 11, BPF_NOEXIST)))                  \
	ROW("hash: insert when full", (update(hash, 2, 20, BPF_NOEXIST), result(update(hash, 3, 30, BPF_ANY)))) \
	ROW("hash: replace when full", result(update(hash, 1, 12, BPF_ANY)))                       \
	ROW("hash: replaced value", bytes(lookup(hash, 1), out, 8))                                \
	ROW("hash: next_key(missing key) gives a first key",                                       \
	    result(elem(BPF_MAP_GET_NEXT_KEY, hash, &(u64){77}, 0, 0)))                            \
	ROW("hash: walk ends", walked())                                                           \
	ROW("hash: lookup_and_delete", bytes(elem(BPF_MAP_LOOKUP_AND_DELETE_ELEM, hash, &(u64){1}, 0, 0), out, 8)) \
	ROW("hash: flags NOEXIST|EXIST", result(update(hash, 1, 1, 3)))                            \
	ROW("hash: key_size 0", creates(BPF_MAP_TYPE_HASH, 0, 8, 4, 0))                            \
	ROW("hash: key_size 1 MiB (accepted since key no longer has to fit one slab object)",      \
	    creates(BPF_MAP_TYPE_HASH, 1 << 20, 8, 1, BPF_F_NO_PREALLOC))                          \
	ROW("hash NO_PREALLOC: full", filled())                                                    \
	ROW("hash NO_PREALLOC: replace when full", result(update(lazy, 2, 22, BPF_ANY)))           \
	ROW("freeze then update from user", frozen())                                              \
	ROW("ringbuf: size not a power of two", creates(BPF_MAP_TYPE_RINGBUF, 0, 0, 3 * pagesize, 0)) \
	ROW("ringbuf: size not a page multiple", creates(BPF_MAP_TYPE_RINGBUF, 0, 0, pagesize / 2, 0)) \
	ROW("ringbuf: size 0", creates(BPF_MAP_TYPE_RINGBUF, 0, 0, 0, 0))                          \
	ROW("ringbuf: value_size 8", creates(BPF_MAP_TYPE_RINGBUF, 0, 8, pagesize, 0))             \
	ROW("ringbuf: syscall lookup with a key pointer (key_size is 0)", result(lookup(ring, 0))) \
	ROW("ringbuf: mmap producer+data rw", ring_map(pagesize, 3 * pagesize, PROT_READ | PROT_WRITE)) \
	ROW("ringbuf: mmap past both data copies", ring_map(0, 5 * pagesize, PROT_READ))           \
	ROW("prog array: index out of range", prog_array_range())                                  \
	ROW("hash batch lookup: room for all, ends with ENOENT", (fill_batch(), batched(BPF_MAP_LOOKUP_BATCH))) \
	ROW("hash batch lookup_and_delete: all", batched(BPF_MAP_LOOKUP_AND_DELETE_BATCH))         \
	ROW("hash batch lookup on empty", batched(BPF_MAP_LOOKUP_BATCH))                           \
	ROW("array of maps: update with another value size", another_inner())                      \
	ROW("task storage: no BTF", no_task(false, 0))                                             \
	ROW("task storage: max_entries 1", no_task(true, 1))                                       \
	ROW("task storage: lookup before create", result(lookup(task, pidfd)))                     \
	ROW("task storage: EXIST on missing", result(update(task, pidfd, 1, BPF_EXIST)))           \
	ROW("task storage: create", result(update(task, pidfd, 41, BPF_NOEXIST)))                  \
	ROW("task storage: NOEXIST on present", result(update(task, pidfd, 1, BPF_NOEXIST)))       \
	ROW("task storage: lookup", bytes(lookup(task, pidfd), out, 8))                            \
	ROW("task storage: bad fd", result(lookup(task, 1000)))

static const char *walked(void)
{
	u64 key;
	long ret = elem(BPF_MAP_GET_NEXT_KEY, hash, NULL, 0, 0);
	u32 n;

	for (n = 0; !ret && n < 2; n++) {
		memcpy(&key, out, sizeof(key));
		ret = elem(BPF_MAP_GET_NEXT_KEY, hash, &key, 0, 0);
	}
	return n == 2 ? result(ret) : "another number of keys";
}

/* In this order: rows build on those before them. */
static const char *row_names[] = {
#define ROW(name_, expr_) name_,
	ROWS
#undef ROW
};

static const char *answer(u32 nr)
{
	u32 at = 0;

#define ROW(name_, expr_)                                                                          \
	if (at++ == nr)                                                                            \
		return expr_;
	ROWS
#undef ROW
	return "";
}

/* Rows of map types there are none of here, and of BTF_LOAD, which its own tests read. */
static bool of_others(const char *name)
{
	static const char *const others[] = {"lru", "lpm", "queue", "stack", "bloom", "btf"};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (!strncmp(name, others[i], strlen(others[i])))
			return true;
	return false;
}

static void compare(const char *name, const char *want)
{
	const char *got;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(row_names); i++)
		if (!strcmp(row_names[i], name))
			break;
	if (i == ARRAY_SIZE(row_names)) {
		ok(of_others(name), "a row that is read here, or of a type there is not: %s", name);
		return;
	}
	got = answer(i);
	if (!ok(!strcmp(got, want), "%s", name))
		printf("# got %s, the kernel says %s\n", got, want);
}

static void open_all(void)
{
	pagesize = sysconf(_SC_PAGESIZE);
	array = create(BPF_MAP_TYPE_ARRAY, 4, 8, 4, 0);
	hash = create(BPF_MAP_TYPE_HASH, 8, 8, 2, 0);
	lazy = create(BPF_MAP_TYPE_HASH, 8, 8, 2, BPF_F_NO_PREALLOC);
	ring = create(BPF_MAP_TYPE_RINGBUF, 0, 0, pagesize, 0);
	task = task_map(true, 0);
	pidfd = inlay_pidfd_open(engine, env_task_self(engine->env)->tid, 0);
}

int main(int argc, char **argv)
{
	const char *shared = getenv("INLAY_SHARED");
	char path[4096], line[512], *tab;
	u32 rows = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/oracle/map_behaviour.tsv", shared ? shared : argc > 1 ? argv[1] : ".");
	f = fopen(path, "r");
	if (!f) {
		printf("1..0 # SKIP no recorded answers (oracle/map_behaviour.tsv under INLAY_SHARED)\n");
		return 0;
	}
	if (inlay_create(NULL, &engine)) {
		printf("Bail out! no engine\n");
		return 1;
	}
	open_all();
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		tab = strchr(line, '\t');
		if (!tab || !rows++)
			continue;
		*tab = 0;
		compare(line, tab + 1);
	}
	fclose(f);
	ok(rows > ARRAY_SIZE(row_names), "the table has all rows that are read here");
	inlay_destroy(engine);
	return tap_done();
}
