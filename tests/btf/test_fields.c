// SPDX-License-Identifier: BSD-2-Clause
/*
 * Key and value types of maps and special fields in values. Each map is also made in the running
 * kernel, where it can be asked: the errno must be the same.
 */
#include <stdlib.h>

#include "../tap.h"
#include "btf/btf.h"
#include "btf/fields.h"
#include "build.h"
#include "kernel_btf.h"

static struct blob blob;
static const char *no_kernel;

/* The types the cases below speak of. */
static struct {
	u32 i32, u32_, i64, i16, bits31, off8, tdef, cnst, ptr, en, st4, arr4, flt4, bool1;
	u32 lock, res_lock, timer, lock_val, two_locks, timer_val, timer_in, both_locks,
		nested_lock, fake_lock;
	u32 list_val, kptr_val, sec, sec_lock, proto;
} id;

static u32 special(const char *name, u32 size)
{
	u32 bytes = blob_array(&blob, id.i32, id.i32, size / 4), s;

	s = blob_struct(&blob, BTF_KIND_STRUCT, name, size, 1, false);
	blob_member(&blob, "opaque", bytes, 0);
	return s;
}

static u32 pair_of(const char *name, u32 size, u32 a, u32 b, u32 b_off)
{
	u32 s = blob_struct(&blob, BTF_KIND_STRUCT, name, size, 2, false);

	blob_member(&blob, "a", a, 0);
	blob_member(&blob, "b", b, b_off * 8);
	return s;
}

static void build_scalars(void)
{
	id.i32 = blob_int(&blob, "int", 4, 32, 0, BTF_INT_SIGNED);
	id.u32_ = blob_int(&blob, "unsigned", 4, 32, 0, 0);
	id.i64 = blob_int(&blob, "long", 8, 64, 0, BTF_INT_SIGNED);
	id.i16 = blob_int(&blob, "short", 2, 16, 0, BTF_INT_SIGNED);
	id.bits31 = blob_int(&blob, "bits31", 4, 31, 0, 0);
	id.off8 = blob_int(&blob, "off8", 4, 24, 8, 0);
	id.tdef = blob_ref(&blob, BTF_KIND_TYPEDEF, "u32", id.u32_);
	id.cnst = blob_ref(&blob, BTF_KIND_CONST, NULL, id.tdef);
	id.ptr = blob_ref(&blob, BTF_KIND_PTR, NULL, id.i32);
	id.en = blob_type(&blob, BTF_KIND_ENUM, "en", 1, false, 4);
	blob_pair(&blob, "EN", 1);
	id.st4 = blob_struct(&blob, BTF_KIND_STRUCT, "st4", 4, 1, false);
	blob_member(&blob, "x", id.i32, 0);
	id.arr4 = blob_array(&blob, id.i32, id.i32, 1);
	id.flt4 = blob_type(&blob, BTF_KIND_FLOAT, "float", 0, false, 4);
	id.bool1 = blob_int(&blob, "_Bool", 1, 8, 0, BTF_INT_BOOL);
	id.proto = blob_type(&blob, BTF_KIND_FUNC_PROTO, NULL, 0, false, 0);
}

static u32 section(const char *name, u32 var_type, u32 size)
{
	u32 var = blob_ref(&blob, BTF_KIND_VAR, "v", var_type), s;

	blob_word(&blob, BTF_VAR_GLOBAL_ALLOCATED);
	s = blob_type(&blob, BTF_KIND_DATASEC, name, 1, false, size);
	blob_word(&blob, var);
	blob_word(&blob, 0);
	blob_word(&blob, size);
	return s;
}

static void build_special(void)
{
	u32 tag, task;

	id.lock = special("bpf_spin_lock", 4);
	id.timer = special("bpf_timer", 16);
	id.lock_val = pair_of("lock_val", 8, id.i32, id.lock, 4);
	id.nested_lock = pair_of("nested_lock", 16, id.i64, id.lock_val, 8);
	id.timer_val = pair_of("timer_val", 24, id.i64, id.timer, 8);
	id.timer_in = pair_of("timer_in", 32, id.timer_val, id.i64, 24);
	id.sec = section(".data", id.i32, 4);
	id.sec_lock = section(".data.lock", id.lock, 4);
	/* The kernel looks a kptr's type up among its own: this one it has. */
	task = blob_struct(&blob, BTF_KIND_STRUCT, "task_struct", 4, 1, false);
	blob_member(&blob, "x", id.i32, 0);
	tag = blob_ref(&blob, BTF_KIND_TYPE_TAG, "kptr_untrusted", task);
	id.kptr_val = pair_of("kptr_val", 16, id.i64, blob_ref(&blob, BTF_KIND_PTR, NULL, tag), 8);
}

static int kernel_map(int btf_fd, u32 type, const struct btf_map_kv *kv, u32 flags)
{
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = kv->key_size;
	attr.value_size = kv->value_size;
	attr.max_entries = kv->max_entries;
	attr.map_flags = flags;
	attr.btf_fd = btf_fd;
	attr.btf_key_type_id = kv->key_id;
	attr.btf_value_type_id = kv->value_id;
	fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, 72);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* What array, hash and task storage say; the engine keeps this in the map types' descriptors. */
static const struct {
	const char *name;
	u32 type, flags;
	enum btf_key_rule key_rule;
	u32 allowed;
} kinds[] = {
	{"array", BPF_MAP_TYPE_ARRAY, 0, BTF_KEY_U32, BTF_FIELDS_MAP & ~BTF_FIELD_UPTR},
	{"hash", BPF_MAP_TYPE_HASH, 0, BTF_KEY_ANY, BTF_FIELDS_MAP & ~BTF_FIELD_UPTR},
	{"percpu array", BPF_MAP_TYPE_PERCPU_ARRAY, 0, BTF_KEY_INT_FD,
	 BTF_FIELD_KPTR | BTF_FIELD_REFCOUNT},
	{"task storage", BPF_MAP_TYPE_TASK_STORAGE, BPF_F_NO_PREALLOC, BTF_KEY_INT_FD,
	 BTF_FIELD_SPIN_LOCK | BTF_FIELD_RES_SPIN_LOCK | BTF_FIELD_KPTR | BTF_FIELD_UPTR |
		 BTF_FIELD_REFCOUNT},
};

static const char *kind_of(const struct btf *btf, u32 type_id)
{
	const struct btf_type *t = btf_type_by_id(btf, type_id);

	return t ? btf_kind_name(btf_kind(t)) : "missing";
}

static void check(const struct btf *btf, int btf_fd, u32 kind, u32 key, u32 key_size, u32 value,
		  u32 value_size, u32 flags)
{
	struct btf_map_kv kv = {
		.key_id = key,
		.value_id = value,
		.key_size = key_size,
		.value_size = value_size,
		.max_entries = kinds[kind].type == BPF_MAP_TYPE_TASK_STORAGE ? 0 : 1,
		.key_rule = kinds[kind].key_rule,
		.allowed_fields = kinds[kind].allowed,
		.prog_ro_or_wo = flags & (BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG),
	};
	struct btf_fields fields;
	int fields_err, ours = btf_check_map_kv(btf, &kv, &fields, &fields_err), theirs;

	if (no_kernel) {
		tap_skip("%s", no_kernel);
		return;
	}
	theirs = kernel_map(btf_fd, kinds[kind].type, &kv, kinds[kind].flags | flags);
	if (!ok(ours == theirs, "%s: key %s %s of %u, value %s %s of %u: %d as the kernel",
		kinds[kind].name, kind_of(btf, key), btf_type_name(btf, key), key_size,
		kind_of(btf, value), btf_type_name(btf, value), value_size, theirs))
		printf("# ours %d\n", ours);
}

static void check_maps(const struct btf *btf, int btf_fd)
{
	const struct {
		u32 id, size;
	} keys[] = {{id.i32, 4},  {id.u32_, 4}, {id.i64, 4},  {id.i64, 8}, {id.bits31, 4},
		    {id.off8, 4}, {id.tdef, 4}, {id.cnst, 4}, {id.ptr, 8}, {id.en, 4},
		    {id.st4, 4},  {id.arr4, 4}, {id.flt4, 4}, {id.i16, 2}, {id.proto, 4},
		    {9999, 4},	  {0, 4}};
	const struct {
		u32 id, size;
	} values[] = {{id.i32, 4},	    {id.i32, 8},	{id.lock_val, 8},
		      {id.nested_lock, 16}, {id.timer_val, 24}, {id.timer_in, 32},
		      {id.kptr_val, 16},    {id.sec, 4},	{id.sec_lock, 4},
		      {id.proto, 4},	    {id.ptr, 8}};
	u32 kind, i;

	for (kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
		for (i = 0; i < ARRAY_SIZE(keys); i++)
			check(btf, btf_fd, kind, keys[i].id, keys[i].size, id.i32, 4, 0);
		for (i = 0; i < ARRAY_SIZE(values); i++)
			check(btf, btf_fd, kind, id.i32, 4, values[i].id, values[i].size, 0);
		check(btf, btf_fd, kind, 0, 4, id.sec, 4, 0);
	}
	check(btf, btf_fd, 0, id.i32, 4, id.lock_val, 8, BPF_F_RDONLY_PROG);
	check(btf, btf_fd, 0, id.i32, 4, id.st4, 4, BPF_F_RDONLY_PROG);
	check(btf, btf_fd, 0, id.i32, 4, id.timer_val, 24, BPF_F_WRONLY_PROG);
}

static void check_found(const struct btf *btf)
{
	struct btf_fields f;
	const struct btf_field *lock;

	is_int(btf_parse_fields(btf, id.lock_val, BTF_FIELDS_MAP, 8, &f), 0,
	       "a value with a spin lock is searched");
	lock = btf_fields_find(&f, BTF_FIELD_SPIN_LOCK);
	ok(f.cnt == 1 && lock && lock->off == 4 && lock->size == 4, "its lock is found at byte 4");
	is_int(btf_parse_fields(btf, id.nested_lock, BTF_FIELDS_MAP, 16, &f), 0,
	       "a nested value is searched");
	lock = btf_fields_find(&f, BTF_FIELD_SPIN_LOCK);
	ok(lock && lock->off == 12, "its lock is found inside the nested struct");
	is_int(btf_parse_fields(btf, id.nested_lock, BTF_FIELD_TIMER, 16, &f), 0,
	       "other kinds are not looked for");
	is_int(f.cnt, 0, "and not found");
	is_int(btf_parse_fields(btf, id.timer_in, BTF_FIELDS_MAP, 32, &f), 0,
	       "a timer is searched");
	ok(f.kinds == BTF_FIELD_TIMER && f.field[0].off == 8, "the timer is found");
	is_int(btf_parse_fields(btf, id.kptr_val, BTF_FIELDS_MAP, 16, &f), 0, "a kptr is searched");
	ok(f.kinds == BTF_FIELD_KPTR_UNREF && f.field[0].off == 8 &&
		   !strcmp(btf_type_name(btf, f.field[0].type_id), "task_struct"),
	   "the kptr and its struct are found");
	is_int(btf_parse_fields(btf, id.sec_lock, BTF_FIELDS_MAP, 4, &f), 0,
	       "a data section is searched");
	is_int(f.kinds, BTF_FIELD_SPIN_LOCK, "a lock that is a global variable is found");
	is_int(btf_parse_fields(btf, id.i32, BTF_FIELDS_MAP, 4, &f), -EINVAL,
	       "an int has no fields");
	ok(!strcmp(btf_field_name(BTF_FIELD_SPIN_LOCK), "bpf_spin_lock") &&
		   !strcmp(btf_field_name(BTF_FIELD_KPTR_REF), "kptr"),
	   "kinds have names");
}

/* Empty structs, each holding the one before many times: 2^30 ways to reach the first. */
static void check_bounded(void)
{
	struct btf_fields f;
	struct btf *btf = NULL;
	u32 last, i;

	blob_init(&blob);
	last = blob_struct(&blob, BTF_KIND_STRUCT, "s", 0, 0, false);
	for (i = 0; i < 30; i++) {
		u32 s = blob_struct(&blob, BTF_KIND_STRUCT, "s", 0, 4, false);
		u32 k;

		for (k = 0; k < 4; k++)
			blob_member(&blob, "m", last, 0);
		last = s;
	}
	blob_finish(&blob);
	is_int(btf_parse(blob.out, blob.size, NULL, NULL, &btf), 0,
	       "a tree of empty structs is parsed");
	is_int(btf_parse_fields(btf, last, BTF_FIELDS_MAP, 0, &f), 0,
	       "and searched in bounded time");
	btf_put(btf);
}

int main(void)
{
	struct btf *btf = NULL;
	union bpf_attr attr;
	int btf_fd = -1;

	blob_init(&blob);
	build_scalars();
	build_special();
	blob_finish(&blob);
	is_int(btf_parse(blob.out, blob.size, NULL, NULL, &btf), 0, "the cases' types are parsed");
	if (!btf)
		return tap_done();
	no_kernel = kernel_btf_refuses();
	if (!no_kernel) {
		memset(&attr, 0, sizeof(attr));
		attr.btf = (unsigned long)blob.out;
		attr.btf_size = blob.size;
		btf_fd = syscall(SYS_bpf, BPF_BTF_LOAD, &attr, 28);
		ok(btf_fd >= 0, "the kernel takes them as well");
	}
	check_maps(btf, btf_fd);
	check_found(btf);
	if (btf_fd >= 0)
		close(btf_fd);
	btf_put(btf);
	check_bounded();
	return tap_done();
}
