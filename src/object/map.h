/* SPDX-License-Identifier: BSD-2-Clause */
/* A map, and what a map type is: one struct map_ops a type, listed in maps/map_types.def. */
#ifndef INLAY_OBJECT_MAP_H
#define INLAY_OBJECT_MAP_H

#include "object/gen.h"
#include "object/obj.h"
#include "object/prog.h"
#include "rcu/rcu.h"

struct btf;
struct map_ops;

#define MAP_NAME_LEN 16

/* BPF_MAP_CREATE's attribute, already copied and checked for what all types share. */
struct map_attr {
	u32 map_type, key_size, value_size, max_entries, map_flags;
	u32 numa_node; /* looked at only with BPF_F_NUMA_NODE */
	u64 map_extra;
	char name[MAP_NAME_LEN];
	struct btf *btf; /* borrowed; NULL: none */
	u32 btf_key_type_id, btf_value_type_id;
	struct map *inner; /* borrowed; map of inner_map_fd; NULL: none. Only MAP_OF_MAPS take one */
};

struct map {
	struct obj obj;
	const struct map_ops *ops;
	u32 type, key_size, value_size, max_entries, map_flags;
	u64 map_extra;
	char name[MAP_NAME_LEN];
	struct btf *btf; /* own reference */
	struct obj *btf_obj; /* its object, own reference; NULL: none. Set by sys/ */
	u32 btf_key_type_id, btf_value_type_id;
	u32 spin_lock_off; /* of a bpf_spin_lock in the value; U32_MAX: none */
	bool frozen;	   /* bpf(2) may not write any more; set once, instance lock */
	long writers;	   /* bpf(2) writes under way; atomic. frozen is set only when 0 and then keeps it 0 */
	struct memfile mem; /* user-mappable memory; fd -1: none */
	struct rcu_cb rcu;  /* deferred destroy */
	struct map *inner;  /* MAP_OF_MAPS: the map whose shape (type, sizes, flags) all inner maps share, its own copy, no object */
};

/* map_ops.flags */
enum map_flag {
	MAP_CAN_ITER_KEYS = 1u << 0, /* get_next_key works */
	MAP_VALUE_DIRECT = 1u << 1,  /* direct_value(): ld_imm64 may take an address inside the value */
	MAP_PERCPU = 1u << 2,
	MAP_NO_SYS_ACCESS = 1u << 3, /* bpf(2) element commands are refused with sys_errno */
	MAP_INDEXED = 1u << 4,	     /* keys are indexes below max_entries that always exist: a constant one is never absent */
	MAP_SLEEPABLE_OK = 1u << 5,
	MAP_IN_TRACING_OK = 1u << 6,
	MAP_HAS_EXTRA = 1u << 7,     /* map_extra means something; for others it must be 0 */
	MAP_OF_FDS = 1u << 8,	     /* elements are objects: bpf(2) writes a u32 fd (set_obj), reads a u32 id (obj_id) */
	MAP_OF_MAPS = 1u << 9,	     /* with MAP_OF_FDS: they are maps, made like map->inner; create needs attr->inner */
	MAP_NO_BATCH = 1u << 10,     /* no batch commands: -LINUX_ENOTSUPP */
};

/* map_ops.shown: what Linux shows in place of a lookup. */
enum map_shown {
	MAP_SHOWN_ARRAY = 1u << 0,   /* index times size */
	MAP_SHOWN_HASH = 1u << 1,    /* a call, then the way from element to value */
	MAP_SHOWN_POINTER = 1u << 2, /* the value is a pointer that is followed */
};

/*
 * Program-side operations run inside a read section, in any context (signal handlers too): no malloc, no plain mutex.
 * sys_* are bpf(2)'s: they may allocate; flags are the command's. Keys and values are kernel memory of key_size and
 * sys_value_size() bytes. All return 0 or -errno as Linux does for that type. A NULL operation: -LINUX_ENOTSUPP from
 * bpf(2), refused by the verifier from a program.
 */
struct map_ops {
	const char *name; /* bpftool's word: "hash", "task_storage" */
	u32 type;	  /* the UAPI number */
	u32 flags;	  /* enum map_flag */
	/* 0-terminated ids of the helpers that may take this map; NULL: any helper that does not insist on other types */
	const u32 *helpers;

	int (*check)(const struct map_attr *attr); /* errno Linux gives for these sizes and flags */
	int (*create)(struct inlay *inlay, const struct map_attr *attr, struct map **ret_map);
	void (*destroy)(struct map *map); /* after a grace period; frees the map itself */

	void *(*lookup)(struct map *map, const void *key);
	long (*update)(struct map *map, const void *key, const void *value, u64 flags);
	long (*remove)(struct map *map, const void *key);
	void *(*lookup_percpu)(struct map *map, const void *key, u32 cpu);
	long (*for_each)(struct map *map, struct bpf_func *cb, u64 cb_ctx, u64 flags); /* count or -errno */
	/* Address of value byte off (single-element arrays); size bytes follow it. */
	int (*direct_value)(struct map *map, u32 off, u64 *ret_addr, u32 *ret_size);

	u32 (*sys_value_size)(const struct map *map); /* NULL: value_size */
	int (*sys_lookup)(struct map *map, const void *key, void *value, u64 flags);
	int (*sys_update)(struct map *map, const void *key, const void *value, u64 flags);
	int (*sys_remove)(struct map *map, const void *key);
	int (*sys_lookup_and_delete)(struct map *map, const void *key, void *value, u64 flags);
	int (*sys_next_key)(struct map *map, const void *key /* NULL: first */, void *next_key);
	u64 (*mem_usage)(const struct map *map);

	/*
	 * MAP_OF_FDS, for bpf(2): takes its own reference of obj on success; obj NULL deletes the element. -EINVAL where obj
	 * is not what the map holds (maps with MAP_OF_MAPS, else programs), or does not fit the others.
	 */
	int (*set_obj)(struct map *map, const void *key, struct obj *obj, u64 flags);
	int (*obj_id)(struct map *map, const void *key, u32 *ret_id); /* of the element; -ENOENT: none there */
	/*
	 * May this program use the map for tail calls, or be put in? 0, or -EINVAL as Linux: all must be like the first.
	 * Called when a program that uses the map is about to be finished by PROG_LOAD. NULL: any program.
	 */
	int (*admit)(struct map *map, const struct prog *prog);
	/* Program to go on with in a tail call; NULL: none there. Valid for the read section. Lock-free, any context. */
	struct prog *(*prog_at)(struct map *map, u64 index);
	/* The last reference of a user (fd or pin) to the map is gone; a program's may be left. NULL: nothing to do. */
	void (*user_gone)(struct map *map);

	/*
	 * Code in place of a call of a helper that takes this map (object/gen.h), by which call->helper->id says; NULL: none.
	 * inline_kind: which switch turns it off.
	 */
	gen_fn gen;
	u32 inline_kind; /* enum inline_kind; 0: INLINE_MAP */
	u32 shown;	 /* enum map_shown; 0: Linux calls the map's function */
	/* Twin of the helper for this type, called directly when the map is known (helper id -> function); NULL: none. */
	u64 (*(*direct)(const struct map *map, u32 helper_id))(u64, u64, u64, u64, u64);

	int (*mmap_check)(struct map *map, u64 off, u64 len, int prot, bool shared); /* NULL: -EINVAL */
	bool (*readable)(struct map *map);
};

/* The row of map_types.def with this number, or NULL. */
const struct map_ops *map_type_ops(u32 type);
/* i-th row, NULL past the end. */
const struct map_ops *map_type_at(u32 i);

/* Fills what all maps share from attr (takes references) and makes it an object of the instance (refs 1, no id). */
void map_init(struct map *map, const struct map_ops *ops, struct inlay *inlay, const struct map_attr *attr);
/* Gives back what map_init took; for create's error path and destroy. Does not free map. */
void map_fini(struct map *map);

static inline struct map *map_of(struct obj *obj)
{
	return container_of_(obj, struct map, obj);
}

/*
 * A program's read of this map is a constant: read-only from programs, frozen, and nobody can write it any more
 * (bpf(2) and writable mappings included).
 */
bool map_is_const(const struct map *map);

#endif
