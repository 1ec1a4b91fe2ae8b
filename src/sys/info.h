/* SPDX-License-Identifier: BSD-2-Clause */
/* Structures of OBJ_GET_INFO_BY_FD as Linux 6.18 lays them out; field names are the kernel's. */
#ifndef INLAY_SYS_INFO_H
#define INLAY_SYS_INFO_H

#include "base/types.h"

struct sys_prog_info {
	u32 type, id;
	u8 tag[8];
	u32 jited_prog_len, xlated_prog_len;
	u64 jited_prog_insns, xlated_prog_insns;
	u64 load_time; /* ns since boot */
	u32 created_by_uid, nr_map_ids;
	u64 map_ids;
	char name[16];
	u32 ifindex;
	u32 gpl_compatible; /* bit 0 */
	u64 netns_dev, netns_ino;
	u32 nr_jited_ksyms, nr_jited_func_lens;
	u64 jited_ksyms, jited_func_lens;
	u32 btf_id, func_info_rec_size;
	u64 func_info;
	u32 nr_func_info, nr_line_info;
	u64 line_info, jited_line_info;
	u32 nr_jited_line_info, line_info_rec_size, jited_line_info_rec_size, nr_prog_tags;
	u64 prog_tags;
	u64 run_time_ns, run_cnt, recursion_misses;
	u32 verified_insns, attach_btf_obj_id, attach_btf_id, pad;
};

struct sys_map_info {
	u32 type, id, key_size, value_size, max_entries, map_flags;
	char name[16];
	u32 ifindex, btf_vmlinux_value_type_id;
	u64 netns_dev, netns_ino;
	u32 btf_id, btf_key_type_id, btf_value_type_id, btf_vmlinux_id;
	u64 map_extra, hash;
	u32 hash_size, pad;
};

struct sys_btf_info {
	u64 btf;
	u32 btf_size, id;
	u64 name;
	u32 name_len, kernel_btf;
};

struct sys_link_info {
	u32 type, id, prog_id, pad;
	union {
		struct {
			u64 tp_name;
			u32 tp_name_len, pad;
			u64 cookie;
		} raw_tracepoint;
		struct {
			u32 attach_type, target_obj_id, target_btf_id, pad;
			u64 cookie;
		} tracing;
		char all[48];
	};
};

_Static_assert(sizeof(struct sys_prog_info) == 232, "as Linux 6.18");
_Static_assert(sizeof(struct sys_map_info) == 104, "as Linux 6.18");
_Static_assert(sizeof(struct sys_btf_info) == 32, "as Linux 6.18");
_Static_assert(sizeof(struct sys_link_info) == 64, "as Linux 6.18");

#endif
