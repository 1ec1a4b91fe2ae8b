// SPDX-License-Identifier: BSD-2-Clause
// OBJ_GET_INFO_BY_FD: what is known of an object, and the arrays the caller wants of it.
#include "sys/info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "btf/btf.h"
#include "exec/exec.h"
#include "isa/uapi.h"
#include "object/link.h"
#include "object/map.h"
#include "object/prog.h"
#include "rewrite/rewrite.h"
#include "sys/sys_int.h"

/* Copies the caller's structure in, as far as it goes; *ret_len is what goes back out. */
static int copy_in(struct sys_call *c, void *info, u32 size, u32 *ret_len)
{
	int err = user_check_tail(c->um, c->attr.info.info, size, c->attr.info.info_len);

	if (err)
		return err;
	*ret_len = min_of(c->attr.info.info_len, size);
	memset(info, 0, size);
	return user_read(c->um, info, c->attr.info.info, *ret_len);
}

static int copy_out(struct sys_call *c, const void *info, u32 len)
{
	if (user_write(c->um, c->attr.info.info, info, len) ||
	    sys_put_field(c, info.info_len, &len))
		return -EFAULT;
	return 0;
}

/* *nr: how many the caller has room for; becomes how many there are. -EFAULT. */
static int put_array(struct sys_call *c, u64 dst, u32 *nr, const void *src, u32 have, u32 size)
{
	u32 n = min_of(*nr, have);

	*nr = have;
	return n ? user_write(c->um, dst, src, (size_t)n * size) : 0;
}

/* ---- programs ---- */

static int put_map_ids(struct sys_call *c, struct prog *prog, struct sys_prog_info *info)
{
	u32 i, nr, *ids;
	int err;

	pthread_mutex_lock(&c->inlay->lock);
	nr = prog->nr_maps;
	ids = calloc(nr ? nr : 1, sizeof(*ids));
	for (i = 0; ids && i < nr; i++)
		ids[i] = prog->maps[i]->obj.id;
	pthread_mutex_unlock(&c->inlay->lock);
	if (!ids)
		return -ENOMEM;
	err = put_array(c, info->map_ids, &info->nr_map_ids, ids, nr, sizeof(*ids));
	free(ids);
	return err;
}

static int put_xlated(struct sys_call *c, struct prog *prog, struct sys_prog_info *info)
{
	u32 size = prog->nr_insns * sizeof(struct bpf_insn),
	    len = min_of(info->xlated_prog_len, size);
	struct bpf_insn *copy;
	int err;

	info->xlated_prog_len = size;
	if (!len)
		return 0;
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	rw_user_insns(prog, copy);
	err = user_write(c->um, info->xlated_prog_insns, copy, len);
	free(copy);
	return err;
}

/* Where functions begin, and how long they are: all of it as one where they do not follow each other. */
static int put_functions(struct sys_call *c, const struct exec_jit_info *j, struct sys_prog_info *info)
{
	u32 i, nr = max_of(j->text->nr_subprogs, 1u), *lens = calloc(nr, sizeof(*lens));
	u64 *starts = calloc(nr, sizeof(*starts));
	int err = starts && lens ? 0 : -ENOMEM;

	for (i = 0; !err && i < nr; i++) {
		u32 from = i ? j->sub_off[i] : 0, to = i + 1 < nr ? j->sub_off[i + 1] : j->len;

		if (to < from || to > j->len)
			break;
		starts[i] = (u64)(uintptr_t)j->code + from;
		lens[i] = to - from;
	}
	if (!err && i < nr) {
		nr = 1;
		starts[0] = (u64)(uintptr_t)j->code;
		lens[0] = j->len;
	}
	if (!err)
		err = put_array(c, info->jited_ksyms, &info->nr_jited_ksyms, starts, nr, sizeof(*starts));
	if (!err)
		err = put_array(c, info->jited_func_lens, &info->nr_jited_func_lens, lens, nr, sizeof(*lens));
	free(starts);
	free(lens);
	return err;
}

/* Addresses of the lines' first instructions. */
static int put_lines(struct sys_call *c, const struct exec_jit_info *j, struct sys_prog_info *info)
{
	u32 i, nr = j->text->nr_line_info;
	u64 *at = calloc(max_of(nr, 1u), sizeof(*at));
	int err;

	if (!at)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		at[i] = (u64)(uintptr_t)j->code + j->insn_off[j->text->line_info[i].insn_off];
	err = put_array(c, info->jited_line_info, &info->nr_jited_line_info, at, nr, sizeof(*at));
	free(at);
	return err;
}

/* Machine code at the addresses where it runs in this process; none where the program is interpreted. */
static int put_jited(struct sys_call *c, const struct prog *prog, struct sys_prog_info *info)
{
	struct exec_jit_info j;
	int err;

	if (exec_jit_info(prog, &j)) {
		info->jited_prog_len = info->nr_jited_ksyms = info->nr_jited_func_lens = info->nr_jited_line_info = 0;
		return 0;
	}
	err = put_array(c, info->jited_prog_insns, &info->jited_prog_len, j.code, j.len, 1);
	if (!err)
		err = put_functions(c, &j, info);
	return err ? err : put_lines(c, &j, info);
}

static int put_prog_arrays(struct sys_call *c, struct prog *prog, struct sys_prog_info *info)
{
	int err = put_map_ids(c, prog, info);

	if (!err)
		err = put_xlated(c, prog, info);
	if (!err)
		err = put_array(c, info->func_info, &info->nr_func_info, prog->func_info,
				prog->nr_func_info, sizeof(*prog->func_info));
	if (!err)
		err = put_array(c, info->line_info, &info->nr_line_info, prog->line_info,
				prog->nr_line_info, sizeof(*prog->line_info));
	if (!err)
		err = put_array(c, info->prog_tags, &info->nr_prog_tags, prog->tag, 1,
				sizeof(prog->tag));
	return err;
}

long sys_prog_info(struct sys_call *c, struct prog *prog)
{
	struct sys_prog_info info;
	struct prog_stats sum;
	u32 len;
	int err = copy_in(c, &info, sizeof(info), &len);

	if (err)
		return err;
	prog_stats_sum(prog, &sum);
	info.type = prog->type;
	info.id = prog->obj.id;
	memcpy(info.tag, prog->tag, sizeof(info.tag));
	memcpy(info.name, prog->name, sizeof(info.name));
	info.load_time = prog->load_time_ns;
	info.created_by_uid = prog->uid;
	info.gpl_compatible = prog->gpl_compatible;
	info.btf_id = prog->btf_obj ? prog->btf_obj->id : 0;
	info.func_info_rec_size = sizeof(struct prog_func_info);
	info.line_info_rec_size = sizeof(struct prog_line);
	info.jited_line_info_rec_size = sizeof(u64);
	info.run_time_ns = sum.nsecs;
	info.run_cnt = sum.cnt;
	info.recursion_misses = sum.misses;
	info.verified_insns = prog->verified_insns;
	info.attach_btf_id = prog->attach_btf_id;
	if (prog->attach_btf_id)
		info.attach_btf_obj_id = c->inlay->vmlinux_obj->id;
	err = put_prog_arrays(c, prog, &info);
	if (!err)
		err = put_jited(c, prog, &info);
	return err ? err : copy_out(c, &info, len);
}

/* ---- maps, BTF, links ---- */

long sys_map_info(struct sys_call *c, struct map *map)
{
	struct sys_map_info info;
	u32 len;
	int err = copy_in(c, &info, sizeof(info), &len);

	if (err)
		return err;
	if (info.hash || info.hash_size)
		return -EINVAL; /* hashes of contents are not kept */
	memset(&info, 0, sizeof(info));
	info.type = map->type;
	info.id = map->obj.id;
	info.key_size = map->key_size;
	info.value_size = map->value_size;
	info.max_entries = map->max_entries;
	info.map_flags = map->map_flags;
	info.map_extra = map->map_extra;
	memcpy(info.name, map->name, sizeof(info.name));
	if (map->btf_obj) {
		info.btf_id = map->btf_obj->id;
		info.btf_key_type_id = map->btf_key_type_id;
		info.btf_value_type_id = map->btf_value_type_id;
	}
	return copy_out(c, &info, len);
}

long sys_btf_info(struct sys_call *c, struct btf_obj *bo)
{
	const char *name = bo->kernel ? "vmlinux" : "";
	u32 len, size, name_cap, full;
	struct sys_btf_info info;
	const void *data;
	int err = copy_in(c, &info, sizeof(info), &len);

	if (err)
		return err;
	name_cap = info.name_len;
	if (!info.name != !name_cap)
		return -EINVAL;
	data = btf_raw_data(bo->btf, &full);
	size = min_of(full, info.btf_size);
	if (size && user_write(c->um, info.btf, data, size))
		return -EFAULT;
	info.btf_size = full;
	info.id = bo->obj.id;
	info.kernel_btf = bo->kernel;
	info.name_len = strlen(name);
	err = info.name ? sys_put_str(c, info.name, name_cap, name) : 0;
	if (err && err != -ENOSPC)
		return err;
	return copy_out(c, &info, len) ? -EFAULT : err;
}

static int fill_raw_tracepoint(struct sys_call *c, struct link *link, struct sys_link_info *info)
{
	const char *name = env_hook_name(link->hook);
	u32 cap = info->raw_tracepoint.tp_name_len;

	if (!info->raw_tracepoint.tp_name != !cap)
		return -EINVAL;
	info->raw_tracepoint.tp_name_len = strlen(name) + 1;
	info->raw_tracepoint.cookie = link->cookie;
	return info->raw_tracepoint.tp_name
		       ? sys_put_str(c, info->raw_tracepoint.tp_name, cap, name)
		       : 0;
}

long sys_link_info(struct sys_call *c, struct link *link)
{
	struct sys_link_info info;
	u32 len;
	int err = copy_in(c, &info, sizeof(info), &len);

	if (err)
		return err;
	info.type = link->type;
	info.id = link->obj.id;
	info.prog_id = link->prog->obj.id;
	if (link->hook) {
		err = fill_raw_tracepoint(c, link, &info);
		if (err)
			return err;
	}
	return copy_out(c, &info, len);
}

long sys_obj_info(struct sys_call *c)
{
	struct obj *obj;
	long ret = c->inlay->fds->get(c->inlay, (int)c->attr.info.bpf_fd, &obj);

	if (ret == -EBADF)
		return -EBADFD; /* this command's own word for it */
	if (ret)
		return ret;
	ret = -EINVAL;
	switch (obj->kind) {
	case OBJ_MAP:
		ret = sys_map_info(c, map_of(obj));
		break;
	case OBJ_PROG:
		ret = sys_prog_info(c, prog_of(obj));
		break;
	case OBJ_LINK:
		ret = sys_link_info(c, link_of(obj));
		break;
	case OBJ_BTF:
		ret = sys_btf_info(c, btf_obj_of(obj));
		break;
	case OBJ_STATS:
	case OBJ_PERF_EVENT:
	case OBJ_TASK:
	case OBJ_KINDS:
		break;
	}
	obj_put(obj);
	return ret;
}
