// SPDX-License-Identifier: BSD-2-Clause
// MAP_CREATE, elements, batches and MAP_FREEZE through bpf(2): each answer that of the running
// kernel.
#include "both.h"

static void create_attributes(struct inlay *in)
{
	static const struct {
		const char *what;
		u32 type, key, value, max, flags;
	} rows[] = {
		{"array", 2, 4, 8, 1, 0},
		{"array of no entries", 2, 4, 8, 0, 0},
		{"array with 8-byte key", 2, 8, 8, 1, 0},
		{"array of no value", 2, 4, 0, 1, 0},
		{"array with unknown flag", 2, 4, 8, 1, 1u << 30},
		{"array NO_PREALLOC", 2, 4, 8, 1, BPF_F_NO_PREALLOC},
		{"array rdonly and wronly", 2, 4, 8, 1, BPF_F_RDONLY | BPF_F_WRONLY},
		{"array rdonly_prog and wronly_prog", 2, 4, 8, 1,
		 BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG},
		{"array mmapable", 2, 4, 8, 1, BPF_F_MMAPABLE},
		{"hash", 1, 4, 8, 1, 0},
		{"hash mmapable", 1, 4, 8, 1, BPF_F_MMAPABLE},
		{"hash of no key", 1, 0, 8, 1, 0},
		{"hash of large key", 1, 513, 8, 1, 0},
		{"hash not preallocated", 1, 4, 8, 1, BPF_F_NO_PREALLOC},
		{"per-CPU array", 6, 4, 8, 1, 0},
		{"per-CPU hash", 5, 4, 8, 1, 0},
		{"ring buffer", 27, 0, 0, 4096, 0},
		{"ring buffer of odd size", 27, 0, 0, 4095, 0},
		{"ring buffer with value", 27, 0, 4, 4096, 0},
		{"perf event array", 4, 4, 4, 2, 0},
		{"task storage without BTF", 29, 4, 8, 0, BPF_F_NO_PREALLOC},
		{"type 0", 0, 4, 8, 1, 0},
		{"type 99", 99, 4, 8, 1, 0},
	};
	unsigned int i;
	long fd;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fd = map_create(in, rows[i].type, rows[i].key, rows[i].value, rows[i].max,
				rows[i].flags);
		note(fd < 0 ? fd : 0, "%s", rows[i].what);
		if (fd >= 0)
			close(fd);
	}
}

static void names(struct inlay *in)
{
	static const char *const names[] = {"",	   "a",	  "a.b_C9",	     "a-b",
					    "a b", "a/b", "0123456789abcde", "0123456789abcdef"};
	union bpf_attr a;
	unsigned int i;
	long fd;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		memset(&a, 0, sizeof(a));
		a.map_type = 2;
		a.key_size = a.value_size = 4;
		a.max_entries = 1;
		memcpy(a.map_name, names[i], strlen(names[i]));
		fd = do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
		note(fd < 0 ? fd : 0, "name '%s'", names[i]);
		if (fd >= 0)
			close(fd);
	}
}

static void create_extras(struct inlay *in)
{
	int i;
	long fd;

	for (i = 0; i < 8; i++) {
		union bpf_attr a = {
			.map_type = 2, .key_size = 4, .value_size = 4, .max_entries = 1};

		switch (i) {
		case 0:
			a.map_extra = 1;
			break;
		case 1:
			a.btf_key_type_id = 1;
			break;
		case 2:
			a.btf_value_type_id = 1;
			break;
		case 3:
			a.btf_vmlinux_value_type_id = 1;
			break;
		case 4:
			a.map_flags = BPF_F_NUMA_NODE;
			a.numa_node = 0;
			break;
		case 5:
			a.map_flags = BPF_F_NUMA_NODE;
			a.numa_node = 12345;
			break;
		case 6:
			a.btf_fd = 77;
			break;
		case 7:
			a.btf_fd = 0;
			a.btf_key_type_id = a.btf_value_type_id = 1;
			break;
		}
		fd = do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
		note(fd < 0 ? fd : 0, "extra %d", i);
		if (fd >= 0)
			close(fd);
	}
}

static void elements_of(struct inlay *in, u32 type, u32 flags, u32 max)
{
	long fd = map_create(in, type, 4, 8, max, flags);
	u64 v = 5, got[64] = {};
	u32 key, next = 0;
	int i;

	note(fd >= 0, "type %u is made", type);
	for (key = 0; key < 4; key++) {
		note(elem(in, BPF_MAP_LOOKUP_ELEM, fd, &key, got, 0), "type %u lookup %u", type,
		     key);
		note(elem(in, BPF_MAP_DELETE_ELEM, fd, &key, NULL, 0), "type %u delete %u", type,
		     key);
		note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, got, BPF_EXIST),
		     "type %u update existing %u", type, key);
		note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, got, BPF_NOEXIST),
		     "type %u update new %u", type, key);
		note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, got, BPF_NOEXIST),
		     "type %u update new again %u", type, key);
	}
	for (i = 0; i < 8; i++)
		note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &(u32){0}, got, i),
		     "type %u update flags %d", type, i);
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &(u32){0}, got, 1ULL << 40),
	     "type %u update high flag", type);
	for (i = 0; i < 6; i++) {
		note(elem(in, BPF_MAP_LOOKUP_ELEM, fd, &(u32){0}, got, i),
		     "type %u lookup flags %d", type, i);
		note(elem(in, BPF_MAP_LOOKUP_AND_DELETE_ELEM, fd, &(u32){0}, got, i),
		     "type %u lookup and delete flags %d", type, i);
	}
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &(u32){0}, &v, 0), "type %u again", type);
	note(elem(in, BPF_MAP_LOOKUP_ELEM, fd, NULL, got, 0), "type %u lookup no key", type);
	note(elem(in, BPF_MAP_LOOKUP_ELEM, fd, &(u32){0}, NULL, 0), "type %u lookup no value",
	     type);
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, (void *)16, got, 0), "type %u update bad key", type);
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &(u32){0}, (void *)16, 0),
	     "type %u update bad value", type);
	note(elem(in, BPF_MAP_DELETE_ELEM, fd, (void *)16, NULL, 0), "type %u delete bad key",
	     type);
	note(elem(in, BPF_MAP_GET_NEXT_KEY, fd, NULL, NULL, 0), "type %u next key nowhere to go",
	     type);
	note(elem(in, BPF_MAP_GET_NEXT_KEY, fd, (void *)16, &next, 0), "type %u next key bad key",
	     type);
	note(elem(in, BPF_MAP_GET_NEXT_KEY, fd, NULL, &next, 0), "type %u first key", type);
	note(elem(in, BPF_MAP_GET_NEXT_KEY, fd, &(u32){99}, &next, 0),
	     "type %u key after one that is not there", type);
	for (i = 0, key = 0;
	     i < 10 && !elem(in, BPF_MAP_GET_NEXT_KEY, fd, i ? &key : NULL, &next, 0); i++)
		key = next;
	note(i, "type %u number of keys", type);
	note(one_fd(in, BPF_MAP_FREEZE, fd), "type %u freeze", type);
	note(one_fd(in, BPF_MAP_FREEZE, fd), "type %u freeze again", type);
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &(u32){0}, got, 0), "type %u update when frozen",
	     type);
	note(elem(in, BPF_MAP_DELETE_ELEM, fd, &(u32){0}, NULL, 0), "type %u delete when frozen",
	     type);
	note(elem(in, BPF_MAP_LOOKUP_AND_DELETE_ELEM, fd, &(u32){0}, got, 0),
	     "type %u take when frozen", type);
	note(elem(in, BPF_MAP_LOOKUP_ELEM, fd, &(u32){0}, got, 0), "type %u lookup when frozen",
	     type);
	close(fd);
}

static void elements(struct inlay *in)
{
	elements_of(in, BPF_MAP_TYPE_ARRAY, 0, 3);
	elements_of(in, BPF_MAP_TYPE_HASH, 0, 3);
	elements_of(in, BPF_MAP_TYPE_HASH, BPF_F_NO_PREALLOC, 3);
}

static void percpu_elements(struct inlay *in)
{
	elements_of(in, BPF_MAP_TYPE_PERCPU_ARRAY, 0, 3);
	elements_of(in, BPF_MAP_TYPE_PERCPU_HASH, 0, 3);
}

static void no_elements_of(struct inlay *in, long fd, const char *what)
{
	char got[8192];
	u32 key = 0;

	note(fd >= 0, "%s is made", what);
	note(elem(in, BPF_MAP_LOOKUP_ELEM, fd, &key, got, 0), "%s lookup", what);
	note(elem(in, BPF_MAP_LOOKUP_ELEM, fd, NULL, got, 0), "%s lookup without key", what);
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, NULL, got, 0), "%s update", what);
	note(elem(in, BPF_MAP_DELETE_ELEM, fd, NULL, NULL, 0), "%s delete", what);
	note(elem(in, BPF_MAP_GET_NEXT_KEY, fd, NULL, got, 0), "%s next key", what);
	note(elem(in, BPF_MAP_LOOKUP_AND_DELETE_ELEM, fd, NULL, got, 0), "%s lookup and delete",
	     what);
	note(one_fd(in, BPF_MAP_FREEZE, fd), "%s freeze", what);
	close(fd);
}

static void no_elements(struct inlay *in)
{
	no_elements_of(in, map_create(in, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0), "ring buffer");
}

/* Two of the array's answers differ by the CPUs, so only errno is noted here. */
static void perf_array(struct inlay *in)
{
	long fd = map_create(in, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2, 0),
	     other = map_create(in, 2, 4, 4, 1, 0);
	u32 key = 0, value = 0xffff, next;

	note(elem(in, BPF_MAP_LOOKUP_ELEM, fd, &key, &value, 0), "perf array lookup");
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, &(u32){0xffff}, 0),
	     "perf array update with no descriptor");
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, &(u32){other}, 0),
	     "perf array update with a map");
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &(u32){2}, &(u32){other}, 0),
	     "perf array update beyond the end");
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, &(u32){other}, 1),
	     "perf array update with a flag");
	note(elem(in, BPF_MAP_DELETE_ELEM, fd, &key, NULL, 0), "perf array delete");
	note(elem(in, BPF_MAP_DELETE_ELEM, fd, &(u32){2}, NULL, 0),
	     "perf array delete beyond the end");
	note(elem(in, BPF_MAP_GET_NEXT_KEY, fd, NULL, &next, 0), "perf array next key");
	close(fd);
	close(other);
}

/* ---- batches ---- */

static long batch(struct inlay *in, int cmd, int fd, void *in_b, void *out_b, void *keys,
		  void *values, u32 *count, u64 flags)
{
	union bpf_attr a = {};
	long ret;

	a.batch.in_batch = U64(in_b);
	a.batch.out_batch = U64(out_b);
	a.batch.keys = U64(keys);
	a.batch.values = U64(values);
	a.batch.count = *count;
	a.batch.map_fd = fd;
	a.batch.elem_flags = flags;
	ret = do_bpf(in, cmd, &a, 56);
	*count = a.batch.count;
	return ret;
}

static void batches_of(struct inlay *in, u32 type, u32 entries)
{
	u32 keys[16], out = 0, in_b, n, i, sum = 0;
	long fd = map_create(in, type, 4, 8, entries, 0), ret;
	u64 values[16];

	for (i = 0; i < 16; i++) {
		keys[i] = i;
		values[i] = i * 10;
	}
	n = entries;
	note(batch(in, BPF_MAP_UPDATE_BATCH, fd, NULL, NULL, keys, values, &n, 0),
	     "type %u batch update", type);
	note(n, "type %u batch update count", type);
	n = 16;
	note(batch(in, BPF_MAP_UPDATE_BATCH, fd, NULL, NULL, keys, values, &n, 0),
	     "type %u batch update too many", type);
	note(n, "type %u batch update too many count", type);
	n = 0;
	note(batch(in, BPF_MAP_LOOKUP_BATCH, fd, NULL, &out, keys, values, &n, 0),
	     "type %u batch of none", type);
	n = 2;
	note(batch(in, BPF_MAP_LOOKUP_BATCH, fd, NULL, &out, keys, values, &n, 1),
	     "type %u batch bad flag", type);
	n = 2;
	note(batch(in, BPF_MAP_LOOKUP_BATCH, fd, NULL, &out, keys, values, &n, BPF_F_LOCK),
	     "type %u batch lock", type);
	n = 2;
	note(batch(in, BPF_MAP_LOOKUP_BATCH, fd, (void *)16, &out, keys, values, &n, 0),
	     "type %u batch bad start", type);
	n = 16;
	memset(values, 0, sizeof(values));
	note(batch(in, BPF_MAP_LOOKUP_BATCH, fd, NULL, &out, keys, values, &n, 0),
	     "type %u all at once", type);
	note(n, "type %u all at once count", type);
	for (i = 0; i < n; i++)
		sum += keys[i] * 1000 + values[i];
	note(sum, "type %u all at once sum", type);
	n = entries;
	note(batch(in, BPF_MAP_LOOKUP_BATCH, fd, NULL, &out, keys, values, &n, 0),
	     "type %u exactly all", type);
	note(n, "type %u exactly all count", type);
	n = 16;
	note(batch(in, BPF_MAP_LOOKUP_BATCH, fd, NULL, &out, (void *)16, values, &n, 0),
	     "type %u nowhere to put keys", type);
	/* in pieces: how large they are is the kernel's business for a hash map, that each comes
	 * once is not */
	for (i = 0, sum = 0, ret = 0; i < 32 && !ret; i++) {
		n = 8;
		in_b = out;
		ret = batch(in, BPF_MAP_LOOKUP_BATCH, fd, i ? &in_b : NULL, &out, keys, values, &n,
			    0);
		while (n && (!ret || ret == -ENOENT))
			sum += keys[--n] + 1;
	}
	note(ret, "type %u in pieces ends", type);
	note(sum, "type %u in pieces sum", type);
	n = 3;
	note(batch(in, BPF_MAP_DELETE_BATCH, fd, NULL, NULL, (u32[]){0, 1, 99}, NULL, &n, 0),
	     "type %u batch delete", type);
	note(n, "type %u batch delete count", type);
	n = 16;
	note(batch(in, BPF_MAP_LOOKUP_AND_DELETE_BATCH, fd, NULL, &out, keys, values, &n, 0),
	     "type %u take all", type);
	note(n, "type %u take all count", type);
	note(elem(in, BPF_MAP_LOOKUP_ELEM, fd, &(u32){2}, values, 0), "type %u after taking all",
	     type);
	n = 1;
	note(batch(in, BPF_MAP_UPDATE_BATCH, fd, NULL, NULL, (void *)16, values, &n, 0),
	     "type %u batch bad keys", type);
	close(fd);
}

static void batches(struct inlay *in)
{
	batches_of(in, BPF_MAP_TYPE_ARRAY, 10);
	batches_of(in, BPF_MAP_TYPE_HASH, 10);
}

static void no_batches(struct inlay *in)
{
	long fd = map_create(in, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
	u32 n = 1, out, key;
	int cmd;
	u64 v;

	for (cmd = BPF_MAP_LOOKUP_BATCH; cmd <= BPF_MAP_DELETE_BATCH; cmd++)
		note(batch(in, cmd, fd, NULL, &out, &key, &v, &n, 0), "ring buffer batch %d", cmd);
	close(fd);
	fd = map_create(in, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2, 0);
	for (cmd = BPF_MAP_LOOKUP_BATCH; cmd <= BPF_MAP_DELETE_BATCH; cmd++)
		note(batch(in, cmd, fd, NULL, &out, &key, &v, &n, 0), "perf array batch %d", cmd);
	close(fd);
}

/* ---- freezing and mappings ---- */

static long map_it(struct inlay *in, int fd, int prot, int flags, u64 off)
{
	void *p;

	if (in)
		return inlay_mmap(in, NULL, 4096, prot, flags, fd, off);
	p = mmap(NULL, 4096, prot, flags, fd, off);
	return p == MAP_FAILED ? -errno : (long)p;
}

static long tried(struct inlay *in, int fd, int prot, int flags, u64 off)
{
	long at = map_it(in, fd, prot, flags, off);

	if (at < 0 && at > -4096)
		return at;
	munmap((void *)at, 4096);
	return 0;
}

static void freezing(struct inlay *in)
{
	long fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE), at;
	u64 v = 1;

	at = map_it(in, fd, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	note(at > 0, "a writable mapping");
	note(one_fd(in, BPF_MAP_FREEZE, fd), "freeze while it is there");
	munmap((void *)at, 4096);
	at = map_it(in, fd, PROT_READ, MAP_SHARED, 0);
	note(one_fd(in, BPF_MAP_FREEZE, fd), "freeze with a read-only mapping");
	note(one_fd(in, BPF_MAP_FREEZE, fd), "freeze again");
	note(mprotect((void *)at, 4096, PROT_READ) ? -errno : 0,
	     "mprotect of the read-only mapping to what it is");
	munmap((void *)at, 4096);
	note(tried(in, fd, PROT_READ | PROT_WRITE, MAP_SHARED, 0),
	     "a writable mapping of a frozen map");
	note(tried(in, fd, PROT_READ, MAP_SHARED, 0), "a read-only mapping of a frozen map");
	at = map_it(in, fd, PROT_READ, MAP_SHARED, 0);
	note(mprotect((void *)at, 4096, PROT_READ | PROT_WRITE) ? -errno : 0,
	     "making that mapping writable");
	munmap((void *)at, 4096);
	note(elem(in, BPF_MAP_UPDATE_ELEM, fd, &(u32){0}, &v, 0), "update of a frozen map");
	close(fd);
	fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_RDONLY);
	note(one_fd(in, BPF_MAP_FREEZE, fd), "freeze through a read-only descriptor");
	close(fd);
	note(one_fd(in, BPF_MAP_FREEZE, 0), "freeze of something else");
}

static void mapping(struct inlay *in)
{
	long fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, BPF_F_MMAPABLE);

	note(tried(in, fd, PROT_READ, MAP_PRIVATE, 0), "private");
	note(tried(in, fd, PROT_READ, MAP_SHARED, 4096), "beyond the end");
	note(tried(in, fd, PROT_READ | PROT_WRITE, MAP_SHARED, 0), "read-write");
	note(tried(in, fd, PROT_WRITE, MAP_SHARED, 0), "write-only");
	close(fd);
	fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, BPF_F_MMAPABLE | BPF_F_RDONLY_PROG);
	note(tried(in, fd, PROT_READ | PROT_WRITE, MAP_SHARED, 0),
	     "read-write of one that is read-only for programs");
	note(tried(in, fd, PROT_READ, MAP_SHARED, 0), "read-only of it");
	close(fd);
	fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, BPF_F_MMAPABLE | BPF_F_RDONLY);
	note(tried(in, fd, PROT_READ, MAP_SHARED, 0), "read-only through a read-only descriptor");
	note(tried(in, fd, PROT_READ | PROT_WRITE, MAP_SHARED, 0),
	     "read-write through a read-only descriptor");
	close(fd);
	fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, BPF_F_MMAPABLE | BPF_F_WRONLY);
	note(tried(in, fd, PROT_READ, MAP_SHARED, 0), "read-only through a write-only descriptor");
	close(fd);
	fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, 0);
	note(tried(in, fd, PROT_READ, MAP_SHARED, 0), "array without BPF_F_MMAPABLE");
	close(fd);
	fd = map_create(in, BPF_MAP_TYPE_HASH, 4, 8, 4, 0);
	note(tried(in, fd, PROT_READ, MAP_SHARED, 0), "hash");
	note(tried(in, fd, PROT_READ, MAP_PRIVATE, 0), "hash private");
	close(fd);
	fd = map_create(in, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
	note(tried(in, fd, PROT_READ | PROT_WRITE, MAP_SHARED, 0), "ring buffer's consumer page");
	note(tried(in, fd, PROT_READ | PROT_WRITE, MAP_SHARED, 4096),
	     "ring buffer's producer page, to write");
	note(tried(in, fd, PROT_READ, MAP_SHARED, 4096), "ring buffer's producer page");
	note(tried(in, fd, PROT_READ, MAP_SHARED, 5 * 4096), "ring buffer beyond its end");
	close(fd);
}

/* What no kernel is needed for. */
static void frozen_and_gone(struct inlay *in)
{
	long fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE), at;

	at = (long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	is_int(one_fd(in, BPF_MAP_FREEZE, fd), -EBUSY,
	       "a writable mapping made behind the engine's back is seen too");
	munmap((void *)at, 4096);
	is_int(one_fd(in, BPF_MAP_FREEZE, fd), 0, "without it the map freezes");
	ok(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED &&
		   errno == EPERM,
	   "then even plain mmap() cannot write it");
	close(fd);
	is_int(objects_settled(in, OBJ_MAP, 0), 0, "no map is left over");
}

int main(void)
{
	struct inlay *in = engine_start();

	both(in, "create", create_attributes);
	both(in, "names", names);
	both(in, "extra attributes", create_extras);
	both(in, "elements", elements);
	both(in, "per-CPU elements", percpu_elements);
	both(in, "maps without elements", no_elements);
	both(in, "perf event array", perf_array);
	both(in, "batches", batches);
	both(in, "maps without batches", no_batches);
	both(in, "freezing", freezing);
	both(in, "mapping", mapping);
	frozen_and_gone(in);
	inlay_destroy(in);
	return tap_done();
}
