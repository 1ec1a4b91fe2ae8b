// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who ran when, on each CPU.
 *
 * The BPF side writes every switch into a small ring a CPU; here they are taken over into chunks of
 * CHUNK entries. What a wait needs is the time from its beginning to its end, so only chunks in
 * which some wait that is still on began must be kept entry by entry. All others are reduced to a
 * sum a task, and neighbours to one such chunk (new waits begin now, never in the past). So memory
 * is bounded by the tasks that wait, not by the length of the recording, and nothing is forgotten:
 * even a task that waits from the first event to the last gets exact shares.
 *
 * If the ring was overwritten before it was read (a live run whose reader got no CPU), the time
 * from the last entry known before to the first one after belongs to tid -1.
 */
#include "rqs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK	     256
#define FULL_ENTRIES (1u << 20) /* 32 MiB */
#define MAX_TID	     (4u << 20) /* Linux's PID_MAX_LIMIT */

struct chunk {
	u64 first_pos;	       /* history position of raw[0] */
	u64 start;	       /* ns, of the first entry */
	u32 nr;		       /* entries in raw, or sums */
	struct rqs_ran *raw;   /* NULL: reduced */
	struct rqs_share *sum; /* one a task, in no order */
};

struct hist_cpu {
	struct chunk *chunk; /* oldest first */
	u32 nr, cap;
	u64 next_pos;	     /* first position not taken over */
	struct rqs_ran last; /* newest entry */
};

struct task_seen {
	u64 first_run, last_out; /* ns; 0: never */
};

struct rqs_history {
	u64 start_ns;
	u32 nr_cpus;
	u64 raw_entries; /* in chunks kept in detail */
	u64 full_at;
	u64 lost;
	struct task_seen *seen; /* by tid; pages appear as they are written */
	struct hist_cpu cpu[];
};

struct rqs_history *rqs_history_create(u32 nr_cpus, u64 start_ns)
{
	struct rqs_history *h = calloc(1, sizeof(*h) + nr_cpus * sizeof(h->cpu[0]));

	if (!h)
		return NULL;
	h->nr_cpus = nr_cpus;
	h->start_ns = start_ns;
	h->full_at = FULL_ENTRIES;
	h->seen = mmap(NULL, MAX_TID * sizeof(*h->seen), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (h->seen == MAP_FAILED) {
		free(h);
		return NULL;
	}
	return h;
}

static void chunk_free(struct chunk *c)
{
	free(c->raw);
	free(c->sum);
}

void rqs_history_destroy(struct rqs_history *h)
{
	if (!h)
		return;
	for (u32 i = 0; i < h->nr_cpus; i++) {
		for (u32 j = 0; j < h->cpu[i].nr; j++)
			chunk_free(&h->cpu[i].chunk[j]);
		free(h->cpu[i].chunk);
	}
	munmap(h->seen, MAX_TID * sizeof(*h->seen));
	free(h);
}

static struct task_seen *seen_of(const struct rqs_history *h, s32 tid)
{
	return tid > 0 && tid < (s32)MAX_TID ? &h->seen[tid] : NULL;
}

void rqs_history_saw(struct rqs_history *h, s32 tid, u64 ts)
{
	struct task_seen *seen = seen_of(h, tid);

	if (seen && (!seen->first_run || ts < seen->first_run))
		seen->first_run = ts ? ts : 1;
}

static struct chunk *chunk_add(struct hist_cpu *cpu, u64 pos, u64 start)
{
	struct chunk *c;

	if (cpu->nr == cpu->cap) {
		u32 cap = cpu->cap ? cpu->cap * 2 : 16;
		struct chunk *grown = realloc(cpu->chunk, cap * sizeof(*grown));

		if (!grown)
			return NULL;
		cpu->chunk = grown;
		cpu->cap = cap;
	}
	c = &cpu->chunk[cpu->nr];
	*c = (struct chunk){ .first_pos = pos, .start = start };
	c->raw = malloc(CHUNK * sizeof(*c->raw));
	if (!c->raw)
		return NULL;
	cpu->nr++;
	return c;
}

static int history_push(struct rqs_history *h, struct hist_cpu *cpu, u64 pos,
			const struct rqs_ran *ran)
{
	struct chunk *c = cpu->nr ? &cpu->chunk[cpu->nr - 1] : NULL;
	struct task_seen *out = seen_of(h, cpu->last.tid);

	if (out && cpu->nr)
		out->last_out = ran->ts;
	rqs_history_saw(h, ran->tid, ran->ts);
	if (!c || !c->raw || c->nr == CHUNK || pos != c->first_pos + c->nr) {
		c = chunk_add(cpu, pos, max_of((u64)ran->ts, h->start_ns));
		if (!c)
			return -ENOMEM;
	}
	c->raw[c->nr++] = *ran;
	cpu->last = *ran;
	h->raw_entries++;
	return 0;
}

/*
 * nr_lost entries were overwritten before they were copied; the next one known is that after pos.
 */
static int history_gap(struct rqs_history *h, struct hist_cpu *cpu, u64 nr_lost, u64 pos)
{
	struct rqs_ran gap = { .ts = cpu->last.ts, .tid = -1 };

	h->lost += nr_lost;
	return history_push(h, cpu, pos, &gap);
}

int rqs_history_drain_cpu(struct rqs_history *h, const struct rqs_bpf *bpf, u32 n)
{
	const struct rqs_cpu *shared = rqs_bpf_cpu(bpf, n);
	struct hist_cpu *cpu = &h->cpu[n];
	u64 size = bpf->ring_mask + 1, pos = __atomic_load_n(&shared->pos, __ATOMIC_ACQUIRE),
	    newest;
	int rc = 0;

	while (!rc && cpu->next_pos < pos) {
		struct rqs_ran ran = shared->ran[cpu->next_pos & bpf->ring_mask];

		/*
		 * the writer fills the slot of `newest` before it says so; pairs with its
		 * publishing of pos
		 */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		newest = __atomic_load_n(&shared->pos, __ATOMIC_ACQUIRE);
		if (newest - cpu->next_pos >= size) {
			u64 resume = newest - size / 2;

			rc = history_gap(h, cpu, resume - cpu->next_pos, resume - 1);
			cpu->next_pos = resume;
			pos = newest;
			continue;
		}
		rc = history_push(h, cpu, cpu->next_pos++, &ran);
	}
	return rc;
}

int rqs_history_drain(struct rqs_history *h, const struct rqs_bpf *bpf)
{
	int rc = 0;

	for (u32 i = 0; i < h->nr_cpus && !rc; i++)
		rc = rqs_history_drain_cpu(h, bpf, i);
	return rc;
}

u64 rqs_history_lost(const struct rqs_history *h)
{
	return h->lost;
}

u64 rqs_history_first_run(const struct rqs_history *h, s32 tid)
{
	const struct task_seen *seen = seen_of(h, tid);

	return seen && seen->first_run ? seen->first_run : U64_MAX;
}

u64 rqs_history_last_out(const struct rqs_history *h, s32 tid)
{
	const struct task_seen *seen = seen_of(h, tid);

	return seen ? seen->last_out : 0;
}

bool rqs_history_runs_now(const struct rqs_history *h, s32 tid)
{
	for (u32 i = 0; i < h->nr_cpus; i++)
		if (h->cpu[i].nr && h->cpu[i].last.tid == tid)
			return true;
	return false;
}

/* ---- shares ---- */

void rqs_shares_fini(struct rqs_shares *s)
{
	free(s->s);
	free(s->slot);
	memset(s, 0, sizeof(*s));
}

static void shares_reset(struct rqs_shares *s)
{
	s->nr = 0;
	if (s->slot)
		memset(s->slot, 0, s->nr_slots * sizeof(*s->slot));
}

static int shares_grow(struct rqs_shares *s)
{
	u32 cap = s->cap ? s->cap * 2 : 16, nr_slots = cap * 2;
	struct rqs_share *grown = realloc(s->s, cap * sizeof(*grown));
	u32 *slot = calloc(nr_slots, sizeof(*slot));

	if (grown)
		s->s = grown;
	if (!grown || !slot) {
		free(slot);
		return -ENOMEM;
	}
	free(s->slot);
	s->slot = slot;
	s->nr_slots = nr_slots;
	s->cap = cap;
	for (u32 i = 0; i < s->nr; i++) {
		u32 k = (u32)s->s[i].tid * 2654435761u & (nr_slots - 1);

		while (slot[k])
			k = (k + 1) & (nr_slots - 1);
		slot[k] = i + 1;
	}
	return 0;
}

/* The name kept is the one given first: callers go back in time, so it is the last the task had. */
static int shares_add(struct rqs_shares *s, s32 tid, const char *comm, u64 ns)
{
	u32 k;

	if (!ns)
		return 0;
	if (s->nr == s->cap && shares_grow(s))
		return -ENOMEM;
	k = (u32)tid * 2654435761u & (s->nr_slots - 1);
	while (s->slot[k] && s->s[s->slot[k] - 1].tid != tid)
		k = (k + 1) & (s->nr_slots - 1);
	if (!s->slot[k]) {
		struct rqs_share *new = &s->s[s->nr++];

		new->tid = tid;
		new->ns = 0;
		memcpy(new->comm, comm, sizeof(new->comm));
		s->slot[k] = s->nr;
	}
	s->s[s->slot[k] - 1].ns += ns;
	return 0;
}

static int by_ns(const void *a, const void *b)
{
	const struct rqs_share *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/*
 * Most first. A row may have hundreds of shares and a recording a hundred thousand rows: places are sorted, not the shares,
 * byte by byte of the time (times of equal length have their upper bytes in common, and those are skipped).
 */
struct place {
	u64 key; /* ~ns */
	u32 at;
};

static void sort_places(struct place *from, struct place *to, u32 nr, u64 differ)
{
	for (u32 shift = 0; shift < 64; shift += 8) {
		u32 start[256] = {}, sum = 0, n;

		if (!(differ >> shift & 0xff))
			continue;
		for (u32 i = 0; i < nr; i++)
			start[from[i].key >> shift & 0xff]++;
		for (u32 b = 0; b < 256; b++) {
			n = start[b];
			start[b] = sum;
			sum += n;
		}
		for (u32 i = 0; i < nr; i++)
			to[start[from[i].key >> shift & 0xff]++] = from[i];
		memcpy(from, to, nr * sizeof(*from));
	}
}

static int shares_sort(struct rqs_shares *s)
{
	struct rqs_share *sorted;
	struct place *places;
	u64 any = 0, all = U64_MAX;

	if (s->nr < 64) {
		if (s->nr)
			qsort(s->s, s->nr, sizeof(*s->s), by_ns);
		return 0;
	}
	sorted = malloc(s->cap * sizeof(*sorted));
	places = malloc(2 * s->nr * sizeof(*places));
	if (!sorted || !places) {
		free(sorted);
		free(places);
		return -ENOMEM;
	}
	for (u32 i = 0; i < s->nr; i++) {
		places[i] = (struct place){ ~s->s[i].ns, i };
		any |= places[i].key;
		all &= places[i].key;
	}
	sort_places(places, places + s->nr, s->nr, any ^ all);
	for (u32 i = 0; i < s->nr; i++)
		sorted[i] = s->s[places[i].at];
	/* among equals the lower tid comes first */
	for (u32 i = 0, n; i < s->nr; i += n) {
		for (n = 1; i + n < s->nr && sorted[i + n].ns == sorted[i].ns; n++)
			;
		if (n > 1)
			qsort(sorted + i, n, sizeof(*sorted), by_ns);
	}
	free(places);
	free(s->s);
	s->s = sorted;
	return 0;
}

static const char unknown_comm[RQS_COMM_LEN] = "";

/*
 * Adds a chunk's part of [start, *until) and sets *until to where it begins. 1: start is reached.
 */
static int chunk_shares(const struct chunk *c, u64 start, u64 *until, u64 pos,
			struct rqs_shares *ret)
{
	u32 i = c->nr;

	if (!c->raw) {
		/* Reduced too early: that cannot be, but must not be invented either. */
		if (c->start < start)
			return 1;
		for (i = 0; i < c->nr; i++)
			if (shares_add(ret, c->sum[i].tid, c->sum[i].comm, c->sum[i].ns))
				return -ENOMEM;
		*until = min_of(*until, c->start);
		return *until <= start;
	}
	if (pos != U64_MAX && pos < c->first_pos + i)
		i = pos > c->first_pos ? pos - c->first_pos : 0;
	while (i-- > 0) {
		const struct rqs_ran *ran = &c->raw[i];
		u64 from = max_of((u64)ran->ts, start);

		if (from < *until) {
			if (shares_add(ret, ran->tid, ran->comm, *until - from))
				return -ENOMEM;
			*until = from;
		}
		if (ran->ts <= start)
			return 1;
	}
	return 0;
}

int rqs_history_ran(struct rqs_history *h, u32 n, u64 start, u64 end, u64 pos,
		    struct rqs_shares *ret)
{
	struct hist_cpu *cpu = n < h->nr_cpus ? &h->cpu[n] : NULL;
	u64 until = end;
	int rc = 0;

	shares_reset(ret);
	for (u32 i = cpu ? cpu->nr : 0; i-- > 0 && !rc;) {
		if (pos != U64_MAX && cpu->chunk[i].raw && cpu->chunk[i].first_pos >= pos)
			continue;
		rc = chunk_shares(&cpu->chunk[i], start, &until, pos, ret);
	}
	if (rc < 0)
		return rc;
	if (until > start && shares_add(ret, -1, unknown_comm, until - start))
		return -ENOMEM;
	return shares_sort(ret);
}

/* ---- reducing ---- */

bool rqs_history_full(const struct rqs_history *h)
{
	return h->raw_entries > h->full_at;
}

/* Is there a start in [from, to)? */
static bool any_start(const u64 *starts, u32 nr, u64 from, u64 to)
{
	u32 lo = 0, hi = nr;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (starts[mid] < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < nr && starts[lo] < to;
}

/* Replaces a's detail by sums, and adds b's (the chunk after it, or NULL), which ends at `end`. */
static int chunk_merge(struct rqs_history *h, struct chunk *a, struct chunk *b, u64 end,
		       struct rqs_shares *s)
{
	u64 until = end, raw = a->raw ? a->nr : 0;
	struct rqs_share *sum;

	shares_reset(s);
	if (b && chunk_shares(b, h->start_ns, &until, U64_MAX, s) < 0)
		return -ENOMEM;
	if (until > a->start && chunk_shares(a, a->start, &until, U64_MAX, s) < 0)
		return -ENOMEM;
	sum = malloc((s->nr ? s->nr : 1) * sizeof(*sum));
	if (!sum)
		return -ENOMEM;
	if (s->nr)
		memcpy(sum, s->s, s->nr * sizeof(*sum));
	raw += b && b->raw ? b->nr : 0;
	h->raw_entries -= raw;
	free(a->raw);
	free(a->sum);
	a->raw = NULL;
	a->sum = sum;
	a->nr = s->nr;
	if (b)
		chunk_free(b);
	return 0;
}

static int reduce_cpu(struct rqs_history *h, struct hist_cpu *cpu, const u64 *starts, u32 nr,
		      u64 before, struct rqs_shares *scratch)
{
	u32 out = 0, i;
	int rc = 0;

	for (i = 0; i + 1 < cpu->nr; i++) {
		struct chunk *c = &cpu->chunk[i], *to = out ? &cpu->chunk[out - 1] : NULL;
		u64 end = cpu->chunk[i + 1].start;

		/* A start at the very beginning of a chunk of sums takes it whole. */
		if (end > before || (c->raw && any_start(starts, nr, c->start + 1, end))) {
			cpu->chunk[out++] = *c;
		} else if (to && !to->raw && !any_start(starts, nr, c->start, c->start + 1)) {
			rc = chunk_merge(h, to, c, end, scratch);
			if (rc)
				break;
		} else {
			rc = c->raw ? chunk_merge(h, c, NULL, end, scratch) : 0;
			if (rc)
				break;
			cpu->chunk[out++] = *c;
		}
	}
	for (; i < cpu->nr; i++)
		cpu->chunk[out++] = cpu->chunk[i];
	cpu->nr = out;
	return rc;
}

void rqs_history_reduce(struct rqs_history *h, const u64 *starts, u32 nr, u64 before)
{
	struct rqs_shares scratch = {};

	/* Without memory the rest stays in detail: nothing is lost but the saving. */
	for (u32 i = 0; i < h->nr_cpus; i++)
		if (reduce_cpu(h, &h->cpu[i], starts, nr, before, &scratch))
			break;
	rqs_shares_fini(&scratch);
	h->full_at = max_of((u64)FULL_ENTRIES, h->raw_entries * 2);
}
