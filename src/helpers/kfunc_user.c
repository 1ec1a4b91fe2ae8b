// SPDX-License-Identifier: BSD-2-Clause
// Memory of the process a program runs in.
#include <errno.h>
#include <string.h>

#include "base/probe.h"
#include "helpers/kfuncs_int.h"

#define PAD_ZEROS 1 /* BPF_F_PAD_ZEROS, of newer headers */

/* Linux may wait here for memory to be brought in; so may the fault-safe read, in its own way. */
static u64 copy_from_user_str(u64 dst, u64 size, u64 src, u64 flags, u64 r5)
{
	char *to = (char *)dst;
	u32 n = (u32)size;
	long len;

	if (flags & ~(u64)PAD_ZEROS)
		return (u32)-EINVAL;
	if (!n)
		return 0;
	len = probe_read_str(to, (const void *)src, n);
	if (len < 0) {
		if (flags & PAD_ZEROS)
			memset(to, 0, n);
		return (u32)len;
	}
	if (flags & PAD_ZEROS)
		memset(to + len, 0, n - (u32)len);
	return (u64)len;
}

const struct kfunc_desc kfunc_bpf_copy_from_user_str = {
	.name = "bpf_copy_from_user_str",
	.fn = copy_from_user_str,
	.flags = KFUNC_SLEEPABLE,
	.proto = "i p i p i",
};
