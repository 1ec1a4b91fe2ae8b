// SPDX-License-Identifier: BSD-2-Clause
/*
 * --summary: for every task how often and how long it waited, and who had the CPU for most of what
 * was over MIN.
 */
#include "rqs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Who ran while a task waited: one a (waiter, runner) pair. */
struct pair {
	u32 waiter; /* index into tasks */
	s32 tid;
	char comm[RQS_COMM_LEN];
	u64 ns;
};

/* Open-addressed: slots hold an index + 1 into an array. */
struct table {
	u32 *slot;
	u32 nr_slots, nr;
};

struct rqs_summary {
	struct rqs_task_sum *task, *sorted;
	struct pair *pair;
	u32 task_cap, pair_cap;
	struct table tasks, pairs;
};

static u32 hash2(u32 a, u32 b)
{
	u64 v = ((u64)a << 32 | b) * 0x9e3779b97f4a7c15ULL;

	return v >> 32;
}

static u32 task_hash(const struct rqs_summary *s, u32 i)
{
	return hash2(s->task[i].tid, 0);
}

static u32 pair_hash(const struct rqs_summary *s, u32 i)
{
	return hash2(s->pair[i].waiter + 1, s->pair[i].tid);
}

static int table_grow(const struct rqs_summary *s, struct table *t,
		      u32 (*hash)(const struct rqs_summary *s, u32 i))
{
	u32 nr_slots = t->nr_slots ? t->nr_slots * 2 : 64;
	u32 *slot = calloc(nr_slots, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (u32 i = 0; i < t->nr; i++) {
		u32 k = hash(s, i) & (nr_slots - 1);

		while (slot[k])
			k = (k + 1) & (nr_slots - 1);
		slot[k] = i + 1;
	}
	free(t->slot);
	t->slot = slot;
	t->nr_slots = nr_slots;
	return 0;
}

static int array_grow(void **array, u32 *cap, size_t size)
{
	u32 new_cap = *cap ? *cap * 2 : 64;
	void *grown = realloc(*array, new_cap * size);

	if (!grown)
		return -ENOMEM;
	*array = grown;
	*cap = new_cap;
	return 0;
}

/*
 * A tid that is used again by a task of another process is another task; one that takes a new name
 * is not.
 */
static int find_task(struct rqs_summary *s, const struct rqs_row *row, u32 *ret_index)
{
	struct table *t = &s->tasks;
	u32 k;

	if (t->nr * 2 >= t->nr_slots && table_grow(s, t, task_hash))
		return -ENOMEM;
	for (k = hash2(row->tid, 0) & (t->nr_slots - 1); t->slot[k];
	     k = (k + 1) & (t->nr_slots - 1)) {
		struct rqs_task_sum *task = &s->task[t->slot[k] - 1];

		if (task->tid == row->tid && task->tgid == row->tgid) {
			*ret_index = t->slot[k] - 1;
			return 0;
		}
	}
	if (t->nr == s->task_cap && array_grow((void **)&s->task, &s->task_cap, sizeof(*s->task)))
		return -ENOMEM;
	s->task[t->nr] = (struct rqs_task_sum){ .tid = row->tid, .tgid = row->tgid };
	*ret_index = t->nr;
	t->slot[k] = ++t->nr;
	return 0;
}

static int add_pair(struct rqs_summary *s, u32 waiter, const struct rqs_share *share)
{
	struct table *t = &s->pairs;
	struct pair *p;
	u32 k;

	if (t->nr * 2 >= t->nr_slots && table_grow(s, t, pair_hash))
		return -ENOMEM;
	for (k = hash2(waiter + 1, share->tid) & (t->nr_slots - 1); t->slot[k];
	     k = (k + 1) & (t->nr_slots - 1)) {
		p = &s->pair[t->slot[k] - 1];
		if (p->waiter == waiter && p->tid == share->tid) {
			p->ns += share->ns;
			memcpy(p->comm, share->comm, sizeof(p->comm));
			return 0;
		}
	}
	if (t->nr == s->pair_cap && array_grow((void **)&s->pair, &s->pair_cap, sizeof(*s->pair)))
		return -ENOMEM;
	p = &s->pair[t->nr];
	*p = (struct pair){ .waiter = waiter, .tid = share->tid, .ns = share->ns };
	memcpy(p->comm, share->comm, sizeof(p->comm));
	t->slot[k] = ++t->nr;
	return 0;
}

struct rqs_summary *rqs_summary_create(void)
{
	return calloc(1, sizeof(struct rqs_summary));
}

void rqs_summary_destroy(struct rqs_summary *s)
{
	if (!s)
		return;
	free(s->task);
	free(s->sorted);
	free(s->pair);
	free(s->tasks.slot);
	free(s->pairs.slot);
	free(s);
}

int rqs_summary_add(struct rqs_summary *s, const struct rqs_line *line, bool over)
{
	struct rqs_task_sum *task;
	u32 index;
	int rc = find_task(s, &line->row, &index);

	if (rc)
		return rc;
	task = &s->task[index];
	memcpy(task->comm, line->row.comm, sizeof(task->comm));
	task->waits++;
	task->wait_ns += line->row.wait_ns;
	task->longest = max_of(task->longest, (u64)line->row.wait_ns);
	if (!over)
		return 0;
	task->over++;
	for (u32 i = 0; i < line->ran.nr && !rc; i++)
		rc = add_pair(s, index, &line->ran.s[i]);
	return rc;
}

static int by_wait(const void *a, const void *b)
{
	const struct rqs_task_sum *x = a, *y = b;

	if (x->wait_ns != y->wait_ns)
		return x->wait_ns < y->wait_ns ? 1 : -1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

u32 rqs_summary_tasks(struct rqs_summary *s, const struct rqs_task_sum **ret_tasks)
{
	u32 nr = s->tasks.nr;

	for (u32 i = 0; i < nr; i++)
		s->task[i].from_ns = 0;
	for (u32 i = 0; i < s->pairs.nr; i++) {
		const struct pair *p = &s->pair[i];
		struct rqs_task_sum *task = &s->task[p->waiter];

		if (p->ns < task->from_ns || (p->ns == task->from_ns && task->by_tid <= p->tid))
			continue;
		task->from_ns = p->ns;
		task->by_tid = p->tid;
		memcpy(task->by_comm, p->comm, sizeof(task->by_comm));
	}
	free(s->sorted);
	s->sorted = malloc((nr ? nr : 1) * sizeof(*s->sorted));
	*ret_tasks = s->sorted;
	if (!s->sorted || !nr)
		return 0;
	memcpy(s->sorted, s->task, nr * sizeof(*s->sorted));
	qsort(s->sorted, nr, sizeof(*s->sorted), by_wait);
	return nr;
}
