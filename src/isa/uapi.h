/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * <linux/bpf.h> and what Linux 6.18 has beyond the header of Debian 12 (6.1). Enumerators of a newer
 * header are shadowed by macros of the same value, which is why these stand after the include.
 */
#ifndef INLAY_ISA_UAPI_H
#define INLAY_ISA_UAPI_H

#include <linux/bpf.h>

/* instruction encoding; bits that <linux/bpf.h> leaves to the kernel's own <linux/filter.h> included */
#ifndef BPF_MEMSX
#define BPF_MEMSX 0x80 /* mode of LDX: load and sign-extend */
#endif
#ifndef BPF_JCOND
#define BPF_JCOND 0xe0 /* operation of JMP: conditional pseudo jump, may_goto */
#endif
#ifndef BPF_LOAD_ACQ
#define BPF_LOAD_ACQ 0x100 /* imm of STX | ATOMIC */
#endif
#ifndef BPF_STORE_REL
#define BPF_STORE_REL 0x110 /* imm of STX | ATOMIC */
#endif
#define BPF_MAY_GOTO 0	      /* src_reg of JMP | JCOND */
#define BPF_ADDR_SPACE_CAST 1 /* off of ALU64 | MOV | X */

/* commands */
#define BPF_TOKEN_CREATE	   36
#define BPF_PROG_STREAM_READ_BY_FD 37

/* map types and flags */
#define BPF_MAP_TYPE_CGRP_STORAGE 32
#define BPF_MAP_TYPE_ARENA	  33
#define BPF_F_PATH_FD		  (1U << 14)
#define BPF_F_VTYPE_BTF_OBJ_FD	  (1U << 15)
#define BPF_F_TOKEN_FD		  (1U << 16)
#define BPF_F_SEGV_ON_FAULT	  (1U << 17)
#define BPF_F_NO_USER_CONV	  (1U << 18)

/* program types, flags and attach types */
#define BPF_PROG_TYPE_NETFILTER	      32
#ifndef BPF_F_XDP_DEV_BOUND_ONLY
#define BPF_F_XDP_DEV_BOUND_ONLY (1U << 6)
#endif
#ifndef BPF_F_TEST_REG_INVARIANTS
#define BPF_F_TEST_REG_INVARIANTS (1U << 7)
#endif
#define BPF_STRUCT_OPS		      44
#define BPF_NETFILTER		      45
#define BPF_TCX_INGRESS		      46
#define BPF_TCX_EGRESS		      47
#define BPF_TRACE_UPROBE_MULTI	      48
#define BPF_CGROUP_UNIX_CONNECT	      49
#define BPF_CGROUP_UNIX_SENDMSG	      50
#define BPF_CGROUP_UNIX_RECVMSG	      51
#define BPF_CGROUP_UNIX_GETPEERNAME   52
#define BPF_CGROUP_UNIX_GETSOCKNAME   53
#define BPF_NETKIT_PRIMARY	      54
#define BPF_NETKIT_PEER		      55
#define BPF_TRACE_KPROBE_SESSION      56
#define BPF_TRACE_UPROBE_SESSION      57
#define BPF_LINK_TYPE_NETFILTER	      10
#define BPF_LINK_TYPE_TCX	      11
#define BPF_LINK_TYPE_UPROBE_MULTI    12
#define BPF_LINK_TYPE_NETKIT	      13
#define BPF_LINK_TYPE_SOCKMAP	      14

/* helper numbers */
#define BPF_FUNC_cgrp_storage_get    210
#define BPF_FUNC_cgrp_storage_delete 211

#endif
