// SPDX-License-Identifier: BSD-2-Clause
// Socket filters: the context is struct __sk_buff as programs see it, kept in that very layout, so no access is converted.
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "env/env.h"
#include "object/helper.h"
#include "object/instance.h"
#include "progtypes/progtypes_int.h"

#define ETH_HEADER 14
#define MAX_PACKET (64 * 1024)
#define TEST_SKB_CHECKSUM_COMPLETE (1u << 2) /* BPF_F_, of newer headers */

#define FIELD_IN(off, field)                                                                       \
	((off) >= offsetof(struct __sk_buff, field) &&                                             \
	 (off) < offsetof(struct __sk_buff, field) + sizeof(((struct __sk_buff *)0)->field))

/* Fields a socket filter may not see; packet pointers and sockets are not modelled at all. */
static bool hidden(u32 off)
{
	return FIELD_IN(off, tc_classid) || FIELD_IN(off, data) || FIELD_IN(off, data_end) ||
	       FIELD_IN(off, data_meta) || FIELD_IN(off, tstamp) || FIELD_IN(off, wire_len) ||
	       FIELD_IN(off, hwtstamp) || FIELD_IN(off, sk) || FIELD_IN(off, flow_keys) ||
	       (off >= offsetof(struct __sk_buff, family) && off < offsetof(struct __sk_buff, data_meta));
}

static bool is_valid_access(const struct prog *prog, s32 off, u32 size, bool write, struct ctx_access *info)
{
	if (off < 0 || off + size > sizeof(struct __sk_buff) || off % size || hidden(off))
		return false;
	info->reg_type = SCALAR_VALUE;
	if (FIELD_IN(off, cb)) /* the one field of any width, and the one a filter may write */
		return true;
	if (write || size > sizeof(u32))
		return false;
	info->ctx_field_size = sizeof(u32);
	return true;
}

static int test_run(struct prog *prog, struct test_run *run)
{
	struct __sk_buff skb = { 0 }, *in = (struct __sk_buff *)run->ctx_in;
	u32 repeat = run->repeat ? run->repeat : 1;
	int err;

	/* the checksum flag wants what we do not compute: nothing a filter could see */
	if (run->flags & ~(u32)TEST_SKB_CHECKSUM_COMPLETE || run->cpu || run->batch_size)
		return -EINVAL;
	if (run->data_size_in < ETH_HEADER || run->data_size_in > MAX_PACKET || !run->data_in)
		return -EINVAL;
	if (run->ctx_in && run->ctx_size_in > sizeof(skb))
		return -E2BIG;
	if (run->ctx_in) {
		/* what the caller may set: the rest must be zero, as the kernel has it for the fields we model */
		memcpy(&skb, in, run->ctx_size_in);
		if (skb.len || skb.pkt_type || skb.queue_mapping || skb.protocol || skb.vlan_present || skb.hash ||
		    skb.napi_id || skb.remote_ip4 || skb.local_ip4)
			return -EINVAL;
	}
	skb.len = run->data_size_in - ETH_HEADER;
	memcpy(&skb.protocol, (const u8 *)run->data_in + 12, sizeof(u16));
	err = progtype_run(prog, &skb, U32_MAX, repeat, run);
	if (err)
		return err;
	run->data_out = malloc(run->data_size_in);
	if (!run->data_out)
		return -ENOMEM;
	memcpy(run->data_out, run->data_in, run->data_size_in);
	run->data_size_out = run->data_size_in;
	if (run->ctx_out) {
		run->ctx_size_out = min_of(run->ctx_size_in, (u32)sizeof(skb));
		memcpy(run->ctx_out, &skb, run->ctx_size_out);
	}
	return 0;
}

const struct prog_type_ops prog_type_socket_filter = {
	.name = "socket_filter",
	.type = BPF_PROG_TYPE_SOCKET_FILTER,
	.helper_groups = HELPERS_BASE | HELPERS_NET,
	.is_valid_access = is_valid_access,
	.ret_range = progtype_any_return,
	.ctx_size = sizeof(struct __sk_buff),
	.ctx_struct = "__sk_buff",
	.test_run = test_run,
};
