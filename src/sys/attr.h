/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf(2)'s attribute as Linux 6.18 lays it out, whatever <linux/bpf.h> this is compiled with. Field
 * names are the kernel's; only what some command here reads is named.
 */
#ifndef INLAY_SYS_ATTR_H
#define INLAY_SYS_ATTR_H

#include "base/types.h"

#define SYS_NAME_LEN 16

union sys_attr {
	struct {
		u32 map_type, key_size, value_size, max_entries, map_flags;
		u32 inner_map_fd, numa_node;
		char map_name[SYS_NAME_LEN];
		u32 map_ifindex, btf_fd, btf_key_type_id, btf_value_type_id,
			btf_vmlinux_value_type_id;
		u64 map_extra;
		s32 value_type_btf_obj_fd, map_token_fd;
		u64 excl_prog_hash;
		u32 excl_prog_hash_size;
	} map_create;
	struct {
		u32 map_fd;
		u64 key, value /* also next_key */, flags;
	} elem;
	struct {
		u64 in_batch, out_batch, keys, values;
		u32 count, map_fd;
		u64 elem_flags, flags;
	} batch;
	struct {
		u32 prog_type, insn_cnt;
		u64 insns, license;
		u32 log_level, log_size;
		u64 log_buf;
		u32 kern_version, prog_flags;
		char prog_name[SYS_NAME_LEN];
		u32 prog_ifindex, expected_attach_type, prog_btf_fd, func_info_rec_size;
		u64 func_info;
		u32 func_info_cnt, line_info_rec_size;
		u64 line_info;
		u32 line_info_cnt, attach_btf_id, attach_prog_fd /* also attach_btf_obj_fd */,
			core_relo_cnt;
		u64 fd_array, core_relos;
		u32 core_relo_rec_size, log_true_size;
		s32 prog_token_fd;
		u32 fd_array_cnt;
		u64 signature;
		u32 signature_size;
		s32 keyring_id;
	} prog_load;
	struct {
		u64 pathname;
		u32 bpf_fd, file_flags;
		s32 path_fd;
	} obj;
	struct {
		u32 prog_fd, retval, data_size_in, data_size_out;
		u64 data_in, data_out;
		u32 repeat, duration, ctx_size_in, ctx_size_out;
		u64 ctx_in, ctx_out;
		u32 flags, cpu, batch_size;
	} test;
	struct {
		u32 id /* also start_id */, next_id, open_flags;
		s32 token_fd;
	} by_id;
	struct {
		u32 bpf_fd, info_len;
		u64 info;
	} info;
	struct {
		u64 name;
		u32 prog_fd;
		u64 cookie;
	} raw_tracepoint;
	struct {
		u64 btf, log_buf;
		u32 btf_size, log_size, log_level, log_true_size, btf_flags;
		s32 token_fd;
	} btf_load;
	struct {
		u32 prog_fd, target_fd, attach_type, flags;
		union {
			struct {
				u64 bpf_cookie;
			} perf_event;
			struct {
				u32 target_btf_id;
				u64 cookie;
			} tracing;
		};
	} link_create;
	struct {
		u32 link_fd, new_prog_fd, flags, old_prog_fd;
	} link_update;
	struct {
		u32 link_fd;
	} link_detach;
	struct {
		u32 type;
	} enable_stats;
	struct {
		u32 link_fd, flags;
	} iter_create;
	struct {
		u32 prog_fd, map_fd, flags;
	} prog_bind_map;
	struct {
		u32 flags, bpffs_fd;
	} token_create;
	struct {
		u64 stream_buf;
		u32 stream_buf_len, stream_id, prog_fd;
	} prog_stream;
	char bytes[168]; /* all that 6.18 knows */
};

_Static_assert(sizeof(union sys_attr) == 168, "as Linux 6.18's union bpf_attr");
_Static_assert(offsetof(union sys_attr, prog_load.log_true_size) == 140, "layout of PROG_LOAD");
_Static_assert(offsetof(union sys_attr, map_create.map_extra) == 64, "layout of MAP_CREATE");
_Static_assert(offsetof(union sys_attr, btf_load.log_true_size) == 28, "layout of BTF_LOAD");
_Static_assert(offsetof(union sys_attr, test.ctx_in) == 48, "layout of PROG_TEST_RUN");
_Static_assert(offsetof(union sys_attr, link_create.tracing.cookie) == 24, "layout of LINK_CREATE");

#endif
