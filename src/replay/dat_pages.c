// SPDX-License-Identifier: BSD-2-Clause
/* Ring buffer pages; see dat_pages.h. */
#include "replay/dat_pages.h"

#include <stdlib.h>
#include <string.h>

#include <traceevent/kbuffer.h>

static void stop(struct dat_pages *s, bool odd)
{
	s->ended = true;
	s->odd = odd;
}

static u32 get_u32(const struct dat_pages *s, u64 pos)
{
	u32 v;

	memcpy(&v, s->job->in->map + pos, sizeof(v));
	return s->job->swap ? __builtin_bswap32(v) : v;
}

/* Unpacks the next chunk. meta.c has checked that all of them lie in the file and are no larger than it allows. */
static bool next_chunk(struct dat_pages *s)
{
	u32 page_size = s->job->meta->page_size;
	u64 packed, size;
	u8 *grown;

	if (!s->left) {
		stop(s, false);
		return false;
	}
	if (s->job->in->size - s->pos < 8)
		goto odd;
	packed = get_u32(s, s->pos);
	size = get_u32(s, s->pos + 4);
	s->chunk_pos = s->pos;
	s->pos += 8;
	if (!size || size % page_size || size > REC_META_MAX_UNPACKED || packed > s->job->in->size - s->pos)
		goto odd;
	if (size > s->chunk_cap) {
		grown = realloc(s->chunk, size);
		if (!grown)
			goto odd;
		s->chunk = grown;
		s->chunk_cap = size;
	}
	if (!rec_meta_unpack(s->job->meta->compression, s->job->in->map + s->pos, packed, s->chunk, size))
		goto odd;
	s->pos += packed;
	s->left--;
	s->page = s->chunk;
	s->end = s->chunk + size;
	return true;
odd:
	stop(s, true);
	return false;
}

/* The event kbuf stands at. */
static inline void take(struct dat_pages *s, void *data, unsigned long long ts)
{
	int size = kbuffer_event_size(s->kbuf);

	s->rec.ts = ts;
	s->rec.data = data;
	s->rec.size = size;
	if (unlikely(size < 0 || s->rec.data >= s->page || (u64)(s->page - s->rec.data) < (u64)size)) {
		stop(s, true); /* page is the end of the one it must lie in */
		return;
	}
	s->rec.offset = s->chunk ? s->chunk_pos : (u64)(s->rec.data - s->job->in->map);
}

void dat_pages_turn(struct dat_pages *s)
{
	u32 page_size = s->job->meta->page_size;
	unsigned long long ts;
	void *data;

	for (;;) {
		if (s->page == s->end && (!s->job->meta->packed || !next_chunk(s))) {
			stop(s, s->odd);
			return;
		}
		if (kbuffer_load_subbuffer(s->kbuf, (void *)s->page) < 0 ||
		    kbuffer_subbuffer_size(s->kbuf) > (int)page_size) {
			stop(s, true);
			return;
		}
		s->page += page_size;
		data = kbuffer_read_event(s->kbuf, &ts);
		if (data)
			break;
	}
	s->rec.missed = kbuffer_missed_events(s->kbuf);
	take(s, data, ts);
}

void dat_pages_next(struct dat_pages *s)
{
	unsigned long long ts;
	void *data = kbuffer_next_event(s->kbuf, &ts);

	if (unlikely(!data)) {
		dat_pages_turn(s);
		return;
	}
	s->rec.missed = 0; /* what was lost was lost before a page */
	take(s, data, ts);
}

void dat_pages_first(struct dat_pages *s, const struct dat_job *job, u32 cpu, int long_size, bool old_format)
{
	const struct rec_meta *m = job->meta;
	struct rec_extent e = m->extents[cpu];
	struct kbuffer *kbuf = s->kbuf;

	if (!kbuf) {
		kbuf = kbuffer_alloc(long_size == 8 ? KBUFFER_LSIZE_8 : KBUFFER_LSIZE_4,
				     m->big_endian ? KBUFFER_ENDIAN_BIG : KBUFFER_ENDIAN_LITTLE);
		if (kbuf && old_format)
			kbuffer_set_old_format(kbuf);
	}
	*s = (struct dat_pages){.job = job, .kbuf = kbuf, .rec.cpu = cpu, .chunk = s->chunk, .chunk_cap = s->chunk_cap};
	if (!kbuf || (!m->packed && e.size % m->page_size) || (m->packed && e.size && job->in->size - e.off < 4)) {
		stop(s, true);
		return;
	}
	if (!e.size) {
		stop(s, false);
		return;
	}
	if (m->packed) {
		s->left = get_u32(s, e.off);
		s->pos = e.off + 4;
	} else {
		s->page = job->in->map + e.off;
		s->end = s->page + e.size;
	}
	dat_pages_turn(s);
}
