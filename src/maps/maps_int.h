/* SPDX-License-Identifier: BSD-2-Clause */
/* What the map types share: writers' locks, value copies, the checks Linux makes for every type. */
#ifndef INLAY_MAPS_MAPS_INT_H
#define INLAY_MAPS_MAPS_INT_H

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "btf/fields.h"
#include "env/env.h"
#include "object/map.h"

#define MAP_TYPE_ROW(name_) extern const struct map_ops map_ops_##name_;
#include "maps/map_types.def"
#undef MAP_TYPE_ROW

/* As the kernel's allocator and per-CPU allocator limit element sizes; the errno beyond is E2BIG.
 */
#define MAP_KMALLOC_MAX	  (4u << 20)
#define MAP_PCPU_UNIT_MAX (32u << 10)

/* ---- locks ---- */

/*
 * A writers' lock that may be taken in any context: the soft interrupt mask of the thread is set
 * while it is held, so no program runs from a signal handler on top of it and waits for its own
 * thread.
 */
struct map_lock {
	u32 held; /* 0 or 1; atomic */
};

/* Waits a while for bit 0 of a lock word to drop, and gives the CPU away in between. */
void map_wait_bit(const u32 *word);

/* Masks; returns the mask as it was, for map_unmask(). */
static inline u8 map_mask(void)
{
	u8 mask = env_tls.irq_masked;

	__atomic_store_n(&env_tls.irq_masked, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return mask;
}

static inline void map_unmask(u8 mask)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&env_tls.irq_masked, mask, __ATOMIC_RELAXED);
}

/* Returns the mask as it was, for map_lock_release(). */
static inline u8 map_lock_take(struct map_lock *lock)
{
	u8 mask = map_mask();

	while (unlikely(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE)))
		map_wait_bit(&lock->held);
	return mask;
}

static inline void map_lock_release(struct map_lock *lock, u8 mask)
{
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
	map_unmask(mask);
}

/* ---- values ---- */

/*
 * Values are written and copied by aligned 8-byte words, each whole: a reader sees old and new
 * words, never part of one. The memory of a value is 8-byte aligned; the other side need not be.
 */
static inline void map_value_write(void *value, const void *src, u32 size)
{
	u64 *to = value;
	const char *from = src;
	u64 word;
	u32 i;

	for (i = 0; i < size / 8; i++) {
		memcpy(&word, from + 8 * i, 8);
		__atomic_store_n(&to[i], word, __ATOMIC_RELAXED);
	}
	for (i = size & ~7u; i < size; i++)
		__atomic_store_n((char *)value + i, from[i], __ATOMIC_RELAXED);
}

static inline void map_value_read(void *dst, const void *value, u32 size)
{
	const u64 *from = value;
	char *to = dst;
	u64 word;
	u32 i;

	for (i = 0; i < size / 8; i++) {
		word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
		memcpy(to + 8 * i, &word, 8);
	}
	for (i = size & ~7u; i < size; i++)
		to[i] = __atomic_load_n((const char *)value + i, __ATOMIC_RELAXED);
}

static inline void map_value_zero(void *value, u32 size)
{
	u64 *to = value;
	u32 i;

	for (i = 0; i < (size + 7) / 8; i++)
		__atomic_store_n(&to[i], 0, __ATOMIC_RELAXED);
}

/* Per-CPU values travel through bpf(2) as one 8-byte-rounded slot a CPU. */
static inline u32 map_percpu_slot(const struct map *map)
{
	return align_up(map->value_size, 8);
}

u32 map_percpu_sys_size(const struct map *map);
u32 map_nr_cpus(const struct map *map);

/* ---- checks ---- */

/* Flags a type knows, and the access flags' contradictions: 0 or -EINVAL. */
int map_check_flags(const struct map_attr *attr, u32 known);
/* A NUMA node is asked for. */
bool map_wants_node(const struct map_attr *attr);

/* Flags of an update: -EINVAL for those Linux does not know, and for BPF_F_LOCK, as no map here
 * holds a lock. */
static inline int map_check_update_flags(u64 flags)
{
	return flags > BPF_EXIST ? -EINVAL : 0;
}

/* Flags of bpf(2)'s lookups: none is possible without a lock in the value. */
static inline int map_check_lookup_flags(u64 flags)
{
	return flags ? -EINVAL : 0;
}

/*
 * Key and value types against BTF, if the map has any. Special fields (locks, timers, kernel
 * pointers …) are refused with -EOPNOTSUPP and a reason in the instance's log: no map type here
 * gives them meaning yet. 0 or -errno as Linux.
 */
int map_check_btf(struct inlay *inlay, const struct map_attr *attr, enum btf_key_rule rule);

/* mmap rules that do not depend on the type; 0 or -errno. */
int map_check_mmap(const struct map *map, int prot, bool shared);

/* User-mappable memory that its users cannot shrink or grow. 0 or -errno. */
int map_mem_init(struct memfile *mem, const char *name, u64 size);

size_t map_page_size(void);

/*
 * array.c's code for a lookup in any kind of array (object/gen.h): leaves in r0 where the value lies, a jump away from
 * what follows where there is none. Its parts: the caller puts in between what its kind does with the address.
 */
struct map_array_gen {
	u64 values;	   /* address of the first value */
	u32 values_at;	   /* where in the map's struct that address is found, for inner maps */
	u32 stride;	   /* bytes from one value to the next */
	bool any_size;	   /* inner maps may have other max_entries than the pattern */
	bool always;	   /* no jump: the value is there */
	u32 none;	   /* else that jump */
};

/* False: no code for such sizes. */
bool map_array_gen_begin(const struct gen_call *call, struct gen *g, struct map_array_gen *a);
void map_array_gen_end(struct gen *g, const struct map_array_gen *a);

/* dst = this vCPU's slot, where dst has vCPU 0's; they are stride bytes apart */
static inline void map_gen_percpu(struct gen *g, u8 dst, u32 stride)
{
	gen_insn(g, (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_X,
				      .dst_reg = dst,
				      .src_reg = dst,
				      .off = -1,
				      .imm = (s32)stride});
}

/* map_of_maps.c and its users */
struct map *map_inner_shape(const struct map *inner);
void map_inner_shape_free(struct map *shape);
/* What bpf(2) says of inner maps of a map being created: 0 or -errno. */
int map_inner_check(const struct map *inner);
bool map_inner_fits(const struct map *shape, const struct map *inner);
/* Takes a reference to obj if it is a map that fits: 0 or -EINVAL. */
int map_inner_admit(struct map *outer, struct obj *obj);
/* sys_lookup and sys_update of maps whose elements are objects: ids are read, descriptors written. */
int map_fds_sys_lookup(struct map *map, const void *key, void *value, u64 flags);
int map_fds_sys_update(struct map *map, const void *key, const void *value, u64 flags);

/* array.c and percpu_array.c: what they check alike */
int map_array_check(const struct map_attr *attr, u32 flags, bool percpu);
int map_array_next_key(struct map *map, const void *key, void *next_key);
long map_array_remove(struct map *map, const void *key);
int map_array_sys_remove(struct map *map, const void *key);

static inline u32 map_array_index(const void *key)
{
	u32 index;

	memcpy(&index, key, sizeof(index));
	return index;
}

#endif
