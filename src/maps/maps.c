// SPDX-License-Identifier: BSD-2-Clause
// What the map types share: see maps_int.h.
#include "maps/maps_int.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arch.h"
#include "base/log.h"
#include "object/instance.h"
#include "rcu/mem.h"

#define MAP_RESIDENT_MAX (4u << 20) /* bytes: memory users can map is made resident up to this size */
#define MAP_SPINS 200 /* looks at a held lock before the CPU is offered to whoever holds it */

void map_wait_bit(const u32 *word)
{
	int i;

	for (i = 0; i < MAP_SPINS; i++) {
		if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & 1))
			return;
		arch_relax();
	}
	sched_yield(); /* the holder may have lost its CPU; a plain system call, safe in handlers */
}

u32 map_nr_cpus(const struct map *map)
{
	return env_nr_cpus(map->obj.inlay->env);
}

u32 map_percpu_sys_size(const struct map *map)
{
	return map_percpu_slot(map) * map_nr_cpus(map);
}

bool map_wants_node(const struct map_attr *attr)
{
	return attr->map_flags & BPF_F_NUMA_NODE && attr->numa_node != U32_MAX;
}

int map_check_flags(const struct map_attr *attr, u32 known)
{
	u32 prog = BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG, user = BPF_F_RDONLY | BPF_F_WRONLY;

	if (attr->map_flags & ~known)
		return -EINVAL;
	if ((attr->map_flags & prog) == prog || (attr->map_flags & user) == user)
		return -EINVAL;
	if (map_wants_node(attr) && attr->numa_node) /* the simulated machine has node 0 only */
		return -EINVAL;
	return 0;
}

int map_check_btf(struct inlay *inlay, const struct map_attr *attr, enum btf_key_rule rule)
{
	const u32 access = BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG;
	struct btf_map_kv kv = {
		.key_id = attr->btf_key_type_id,
		.value_id = attr->btf_value_type_id,
		.key_size = attr->key_size,
		.value_size = attr->value_size,
		.max_entries = attr->max_entries,
		.key_rule = rule,
		.allowed_fields = 0,
		.prog_ro_or_wo = attr->map_flags & access,
	};
	struct btf_fields fields;
	int err, fields_err;

	if (!attr->btf || !attr->btf_value_type_id)
		return 0;
	err = btf_check_map_kv(attr->btf, &kv, &fields, &fields_err);
	if (err == -EOPNOTSUPP)
		log_to(&inlay->log, LOG_WARN,
		       "map %s: its value has a special field (lock, timer, kernel pointer, list "
		       "…) that this type of map "
		       "does not support",
		       attr->name);
	return err;
}

int map_check_mmap(const struct map *map, int prot, bool shared)
{
	if (!shared)
		return -EINVAL;
	if (!(prot & PROT_WRITE))
		return 0;
	if (__atomic_load_n(&map->frozen, __ATOMIC_ACQUIRE))
		return -EPERM;
	/* a writable page could still be changed after the map was frozen and taken for a constant
	 */
	return map->map_flags & BPF_F_RDONLY_PROG ? -EACCES : 0;
}

int map_mem_init(struct memfile *mem, const char *name, u64 size)
{
	int err;

	if (rcu_mem_fails())
		return -ENOMEM;
	err = memfile_init(mem, name, size);
	if (err)
		return err;
#ifdef MADV_POPULATE_WRITE
	/* resident like the kernel's, not by faults in the middle of programs; not done, they come by those */
	if (size <= MAP_RESIDENT_MAX)
		madvise(mem->addr, mem->size, MADV_POPULATE_WRITE);
#endif
	/* whoever holds the descriptor could otherwise cut the file and fault us */
	if (fcntl(mem->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)) {
		err = -errno;
		memfile_fini(mem);
	}
	return err;
}

size_t map_page_size(void)
{
	static size_t page; /* atomic; every writer writes the same */
	size_t size = __atomic_load_n(&page, __ATOMIC_RELAXED);

	if (unlikely(!size)) {
		size = sysconf(_SC_PAGESIZE);
		__atomic_store_n(&page, size, __ATOMIC_RELAXED);
	}
	return size;
}
