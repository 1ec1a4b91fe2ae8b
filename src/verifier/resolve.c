// SPDX-License-Identifier: BSD-2-Clause
/* What the two-slot loads stand for: maps behind descriptors, addresses inside their values, functions. */
#include "verifier/vrf_int.h"

#include <string.h>

#include "object/instance.h"

static int use_map(struct vrf *v, struct map *map, struct map **ret_map)
{
	for (u32 i = 0; i < v->nr_maps; i++)
		if (v->maps[i] == map) {
			obj_put(&map->obj);
			*ret_map = map;
			return 0;
		}
	if (v->nr_maps == ARRAY_SIZE(v->maps)) {
		vrf_say(v, "The total number of maps per program has reached the limit of %zu\n", ARRAY_SIZE(v->maps));
		obj_put(&map->obj);
		return -E2BIG;
	}
	v->maps[v->nr_maps++] = map;
	*ret_map = map;
	return 0;
}

static int map_of_fd(struct vrf *v, int fd, struct map **ret_map)
{
	struct inlay *inlay = v->prog->obj.inlay;
	struct obj *obj = NULL;
	int err = inlay->fds->get(inlay, fd, &obj);

	if (!err && obj->kind != OBJ_MAP) {
		obj_put(obj);
		err = -EINVAL;
	}
	if (err) {
		vrf_say(v, "fd %d is not pointing to valid bpf_map\n", fd);
		return err;
	}
	return use_map(v, map_of(obj), ret_map);
}

static int resolve_map(struct vrf *v, u32 i, bool by_index, bool value)
{
	const struct bpf_insn *insn = &v->insns[i];
	u32 off = (u32)insn[1].imm, left;
	int fd = insn->imm, err;
	struct map *map;
	u64 addr;

	if (by_index) {
		if (!v->opts->fd_array) {
			vrf_say(v, "fd_idx without fd_array is invalid\n");
			return -EPROTO;
		}
		if ((u32)insn->imm >= v->opts->fd_array_cnt)
			return -EFAULT;
		fd = v->opts->fd_array[insn->imm];
	}
	err = map_of_fd(v, fd, &map);
	if (err)
		return err;
	v->facts[i].map = map;
	v->facts[i].imm64 = (u64)(uintptr_t)map;
	if (!value)
		return 0;
	if (off >= VRF_MAX_OFF) {
		vrf_say(v, "direct value offset of %u is not allowed\n", off);
		return -EINVAL;
	}
	if (!map->ops->direct_value) {
		vrf_say(v, "no direct value access support for this map type\n");
		return -EINVAL;
	}
	err = map->ops->direct_value(map, off, &addr, &left);
	if (err) {
		vrf_say(v, "invalid access to map value pointer, value_size=%u off=%u\n", map->value_size, off);
		return err;
	}
	v->facts[i].imm64 = addr;
	return 0;
}

static int resolve_one(struct vrf *v, u32 i)
{
	const struct bpf_insn *insn = &v->insns[i];
	int sub;

	switch (v->aux[i].op) {
	case ISA_LD_IMM64:
		v->facts[i].imm64 = isa_imm64(insn);
		return 0;
	case ISA_LD_MAP_FD:
		return resolve_map(v, i, false, false);
	case ISA_LD_MAP_VALUE:
		return resolve_map(v, i, false, true);
	case ISA_LD_MAP_IDX:
		return resolve_map(v, i, true, false);
	case ISA_LD_MAP_IDX_VALUE:
		return resolve_map(v, i, true, true);
	case ISA_LD_FUNC:
		sub = vrf_find_sub(v, (u32)((s64)i + 1 + insn->imm));
		if (sub < 0)
			return -EINVAL;
		v->facts[i].subprog = (u32)sub;
		return 0;
	}
	vrf_say(v, "unsupported: kernel symbol as constant\n");
	return -EINVAL;
}

int vrf_resolve(struct vrf *v)
{
	char msg[ISA_MSG_MAX];
	int slots, err;

	for (u32 i = 0; i < v->nr; i += (u32)slots) {
		slots = isa_check_shape(&v->insns[i], v->nr - i, msg);
		if (slots < 0) {
			vrf_say(v, "%s\n", msg);
			return slots;
		}
		if (slots == 2) {
			if (v->aux[i].op < 0) {
				vrf_say(v, "unrecognized bpf_ld_imm64 insn\n");
				return -EINVAL;
			}
			err = resolve_one(v, i);
			if (err)
				return err;
		}
	}
	return 0;
}
