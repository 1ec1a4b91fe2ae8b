/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hashes and comparisons of keys, and the comparison of a group's tags. Everything is inline and takes the key size as an
 * argument, so that a lookup specialised for a size is the general one with a constant.
 */
#ifndef INLAY_MAPS_HASH_KEY_H
#define INLAY_MAPS_HASH_KEY_H

#include "base/arch.h"
#include "maps/hash_int.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#ifdef ARCH_SSE2
#include <emmintrin.h>
#endif

/* The thread sanitizer must see what readers load. */
#if defined(__SANITIZE_THREAD__)
#define HASH_PLAIN_MATCH 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HASH_PLAIN_MATCH 1
#endif
#endif
#ifndef ARCH_SSE2
#define HASH_PLAIN_MATCH 1
#endif

#define HASH_SLOTS ((1u << HASH_GROUP) - 1)

/* ---- keys ---- */

static inline u64 hash_load64(const void *p)
{
	u64 v;

	memcpy(&v, p, 8);
	return v;
}

static inline u32 hash_load32(const void *p)
{
	u32 v;

	memcpy(&v, p, 4);
	return v;
}

/* Keys that follow each other differ by the same amount so far; the second multiplication ends that. */
static inline u64 hash_fold(unsigned __int128 p)
{
	u64 half = (u64)p ^ (u64)(p >> 64);

	return (half ^ half >> 32) * 0x9e3779b97f4a7c15ULL;
}

/*
 * Keys of one or two words: multiplied with secret odd numbers, both halves of the product folded together. Who does not
 * know the seeds cannot make keys collide; who does not try gets every bit of the key into the upper half, which chooses
 * the group, and into the low byte, which is the tag. Other keys: XXH3.
 */
static inline u64 hash_bytes(const struct hash_map *h, const void *key, u32 size)
{
	const u64 *s = h->seed;

	if (size == 4) /* the product has all of the key in both halves as it is */
		return hash_fold((hash_load32(key) ^ s[0]) * s[1]);
	if (size == 8)
		return hash_fold((unsigned __int128)(hash_load64(key) ^ s[0]) * s[1]);
	if (size == 16)
		return hash_fold((unsigned __int128)(hash_load64(key) ^ s[0]) * s[1] +
				 (unsigned __int128)(hash_load64((const char *)key + 8) ^ s[2]) * s[3]);
	return XXH3_64bits_withSeed(key, size, s[0]);
}

/* Bytes [8 * i, size) of a key, at most 8, filled up with zeros. */
static inline u64 hash_key_word(const void *key, u32 i, u32 size)
{
	u32 left = size - 8 * i;
	u64 word = 0;

	if (left >= 8)
		memcpy(&word, (const char *)key + 8 * i, 8);
	else if (left == 4)
		memcpy(&word, (const char *)key + 8 * i, 4);
	else
		memcpy(&word, (const char *)key + 8 * i, left);
	return word;
}

/* What differs in word i, if a key of that size has it. */
static inline u64 hash_differs(const char *e, const void *key, u32 i, u32 size)
{
	if (8 * i >= size)
		return 0;
	return __atomic_load_n((const u64 *)e + i, __ATOMIC_ACQUIRE) ^ hash_key_word(key, i, size);
}

/* e may be reused meanwhile: whoever finds it equal asks the home group's seq whether it was. */
static inline bool hash_equal(const char *e, const void *key, u32 size)
{
	const u64 *words = (const u64 *)e;
	u32 i;

	if (size == 4)
		return __atomic_load_n((const u32 *)e, __ATOMIC_ACQUIRE) == hash_load32(key);
	if (__builtin_constant_p(size) && size <= 64) /* where one agrees, mostly all do: no branch a word */
		return !(hash_differs(e, key, 0, size) | hash_differs(e, key, 1, size) | hash_differs(e, key, 2, size) |
			 hash_differs(e, key, 3, size) | hash_differs(e, key, 4, size) | hash_differs(e, key, 5, size) |
			 hash_differs(e, key, 6, size) | hash_differs(e, key, 7, size));
	for (i = 0; i < size / 8; i++)
		if (__atomic_load_n(&words[i], __ATOMIC_ACQUIRE) != hash_load64((const char *)key + 8 * i))
			return false;
	return !(size % 8) || __atomic_load_n(&words[i], __ATOMIC_ACQUIRE) == hash_key_word(key, i, size);
}

static inline u8 hash_tag(u64 hash)
{
	u8 tag = hash;

	return tag + !tag;
}

static inline struct hash_group *hash_home(const struct hash_map *h, u64 hash)
{
	return &h->group[(hash >> 32) * h->nr_groups >> 32];
}

/* ---- tags ---- */

/* Bit i of the low byte: byte i of words is 0. */
static inline u32 hash_zero_bytes(u64 words)
{
	const u64 low7 = 0x7f7f7f7f7f7f7f7fULL;
	u64 high = ~(((words & low7) + low7) | words | low7); /* 0x80 in each byte that is 0, and only there */

	return (high >> 7) * 0x0102040810204080ULL >> 56;
}

/* Bit i: tag i is this one; bits from HASH_GROUP on mean nothing. */
static inline u32 hash_match_plain(const struct hash_group *g, u8 tag)
{
	const u64 *words = (const u64 *)g;
	u64 all = tag * 0x0101010101010101ULL;
	u32 low = hash_zero_bytes(__atomic_load_n(&words[0], __ATOMIC_ACQUIRE) ^ all);

	return low | hash_zero_bytes(__atomic_load_n(&words[1], __ATOMIC_ACQUIRE) ^ all) << 8;
}

#ifdef ARCH_SSE2
static inline u32 hash_match_sse2(const struct hash_group *g, u8 tag)
{
	__m128i same = _mm_cmpeq_epi8(_mm_load_si128((const __m128i *)g), _mm_set1_epi8((char)tag));
	u32 bits = _mm_movemask_epi8(same);

	/* the processor keeps loads in order; the compiler shall, too */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return bits;
}
#endif

/* A lookup is faster if it asks "& HASH_SLOTS" beside its way, not on it: the lowest bit is the same. */
static inline u32 hash_match_any(const struct hash_group *g, u8 tag)
{
#ifdef HASH_PLAIN_MATCH
	return hash_match_plain(g, tag);
#else
	return hash_match_sse2(g, tag);
#endif
}

static inline u32 hash_match(const struct hash_group *g, u8 tag)
{
	return hash_match_any(g, tag) & HASH_SLOTS;
}

/* The number at the lowest bit. The address is spelled out: compilers else add and widen more than it needs. */
static inline u32 hash_elem_of(const struct hash_group *g, u32 bits)
{
	u64 at = (u64)g + 4 * (u64)(u32)__builtin_ctz(bits) + offsetof(struct hash_group, elem);

	return __atomic_load_n((const u32 *)at, __ATOMIC_ACQUIRE);
}

#endif
