/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a register, argument or return value may be, in the kernel's words. Shared by descriptors (helpers, program
 * types) and the verifier. A type is a base and flags above bit 8.
 */
#ifndef INLAY_OBJECT_REGTYPE_H
#define INLAY_OBJECT_REGTYPE_H

#include "base/types.h"

#define TYPE_BASE_BITS 8
#define TYPE_BASE_MASK 0xffu

enum type_flag {
	PTR_MAYBE_NULL = 1u << 8,
	MEM_RDONLY = 1u << 9,
	MEM_RINGBUF = 1u << 10, /* record from bpf_ringbuf_reserve: only submit/discard take it */
	MEM_USER = 1u << 11,
	MEM_PERCPU = 1u << 12,
	OBJ_RELEASE = 1u << 13, /* argument: the call gives the reference back */
	PTR_UNTRUSTED = 1u << 14,
	MEM_UNINIT = 1u << 15, /* argument: memory the call fills */
	MEM_FIXED_SIZE = 1u << 16, /* argument: size in helper_desc.arg_size */
	MEM_WRITE = 1u << 17,
	MEM_ALIGNED = 1u << 18,
	PTR_TRUSTED = 1u << 19,
	MEM_RCU = 1u << 20,
	MEM_ALLOC = 1u << 21,
	DYNPTR_TYPE_FLAG = 1u << 22,
	NON_OWN_REF = 1u << 23,
};

enum reg_type {
	NOT_INIT = 0,
	SCALAR_VALUE,
	PTR_TO_CTX,
	CONST_PTR_TO_MAP,
	PTR_TO_MAP_VALUE,
	PTR_TO_MAP_KEY,
	PTR_TO_STACK,
	PTR_TO_PACKET,
	PTR_TO_PACKET_META,
	PTR_TO_PACKET_END,
	PTR_TO_TP_BUFFER,
	PTR_TO_BTF_ID,
	PTR_TO_MEM,
	PTR_TO_BUF,
	PTR_TO_FUNC,
	REG_TYPE_MAX
};

enum arg_type {
	ARG_DONTCARE = 0, /* unused */
	ARG_CONST_MAP_PTR,
	ARG_PTR_TO_MAP_KEY,
	ARG_PTR_TO_MAP_VALUE,
	ARG_PTR_TO_MEM,
	ARG_CONST_SIZE,
	ARG_CONST_SIZE_OR_ZERO,
	ARG_PTR_TO_CTX,
	ARG_ANYTHING,
	ARG_PTR_TO_BTF_ID, /* struct named in helper_desc.arg_btf */
	ARG_PTR_TO_RINGBUF_MEM,
	ARG_CONST_ALLOC_SIZE_OR_ZERO,
	ARG_PTR_TO_FUNC,
	ARG_PTR_TO_STACK,
	ARG_PTR_TO_CONST_STR,
	ARG_PTR_TO_SPIN_LOCK,
	ARG_TYPE_MAX
};

enum ret_type {
	RET_INTEGER = 0,
	RET_VOID,
	RET_PTR_TO_MAP_VALUE, /* with PTR_MAYBE_NULL as a rule */
	RET_PTR_TO_MEM,	      /* size from the ARG_CONST_ALLOC_SIZE_OR_ZERO argument, or helper_desc.ret_size */
	RET_PTR_TO_BTF_ID,    /* struct named in helper_desc.ret_btf */
	RET_PTR_TO_MEM_OR_BTF_ID,
	RET_TYPE_MAX
};

static inline u32 type_base(u32 type)
{
	return type & TYPE_BASE_MASK;
}

static inline u32 type_flags(u32 type)
{
	return type & ~TYPE_BASE_MASK;
}

#endif
