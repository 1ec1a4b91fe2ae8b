/* SPDX-License-Identifier: BSD-2-Clause */
/* Fixed-size integers and the few macros everything uses. */
#ifndef INLAY_BASE_TYPES_H
#define INLAY_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
#define S32_MIN INT32_MIN
#define S32_MAX INT32_MAX
#define S64_MIN INT64_MIN
#define S64_MAX INT64_MAX

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define __printf_like(fmt, args) __attribute__((format(printf, fmt, args)))

/* urcu/compiler.h defines caa_container_of; this is the name used in folders that do not need urcu. */
#define container_of_(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Evaluates its arguments once. */
#define min_of(a, b)                                                                               \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		a_ < b_ ? a_ : b_;                                                                 \
	})
#define max_of(a, b)                                                                               \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		a_ > b_ ? a_ : b_;                                                                 \
	})

static inline u64 align_up(u64 v, u64 align) /* align: a power of two */
{
	return (v + align - 1) & ~(align - 1);
}

static inline bool is_pow2(u64 v)
{
	return v && !(v & (v - 1));
}

/* Smallest power of two >= v; v in 1..2^63. */
static inline u64 roundup_pow2(u64 v)
{
	return v <= 1 ? 1 : 1ULL << (64 - __builtin_clzll(v - 1));
}

/* Linux's internal errno for "not supported" at several bpf(2) places; user space's errno.h lacks it. */
#define LINUX_ENOTSUPP 524

#endif
