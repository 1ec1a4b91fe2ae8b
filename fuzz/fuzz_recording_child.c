// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parent's side of the readers that use a child process (replay/child.h), without the cost of a
 * fork an input: what the children of the first inputs wrote is kept, and later inputs get one of
 * those answers, often damaged. So a hundred thousand inputs take a minute, and the parent meets
 * children that lie. Linked with fuzz_recording.c and -Wl,--wrap for each function below.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mutate.h"
#include "replay/child.h"

#define MAX_ANSWERS 24

struct answer {
	int (*run)(int in_fd, int out_fd, void *arg);
	u8 *data;
	size_t size;
};

static struct answer answers[2 * MAX_ANSWERS];
static u32 nr_answers;

/* The answer being given to each child; one is alive at a time, two at most. */
static struct {
	const struct rec_child *child;
	u8 *data;
	size_t size, pos;
} talks[4];

int __real_rec_child_start(struct rec_child *c, const struct rec_child_job *job);
ssize_t __real_rec_child_read(struct rec_child *c, void *buf, size_t n, u32 cpu_seconds);
void __real_rec_child_stop(struct rec_child *c);

int __wrap_rec_child_start(struct rec_child *c, const struct rec_child_job *job);
ssize_t __wrap_rec_child_read(struct rec_child *c, void *buf, size_t n, u32 cpu_seconds);
void __wrap_rec_child_stop(struct rec_child *c);
int __wrap_rec_child_reap(struct rec_child *c, struct strbuf *why);

static u32 answers_of(const struct rec_child_job *job)
{
	u32 i, n = 0;

	for (i = 0; i < nr_answers; i++)
		n += answers[i].run == job->run;
	return n;
}

/* Lets a real child answer, and keeps what it says. */
static void keep_answer(const struct rec_child_job *job)
{
	struct answer *a = &answers[nr_answers];
	struct rec_child real;
	ssize_t n;

	if (__real_rec_child_start(&real, job))
		return;
	a->run = job->run;
	a->data = NULL;
	a->size = 0;
	do {
		a->data = realloc(a->data, a->size + 65536);
		n = a->data ? __real_rec_child_read(&real, a->data + a->size, 65536, 20) : -1;
		a->size += n > 0 ? n : 0;
	} while (n > 0 && a->size < 8 << 20);
	__real_rec_child_stop(&real);
	nr_answers += a->data != NULL;
}

static void damage(u8 *data, size_t *size)
{
	u32 n = mutate_random() % 8, at;

	if (n < 4) /* half of the answers stay whole */
		return;
	if (n == 4)
		*size = *size ? mutate_random() % *size : 0;
	for (; n > 4 && *size; n--) {
		at = mutate_random() % *size;
		data[at] = mutate_random() & 1 ? mutate_random() : 0xff;
	}
}

static u32 talk_of(const struct rec_child *c)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(talks) && talks[i].child != c; i++)
		;
	if (i == ARRAY_SIZE(talks))
		abort(); /* a child that was never started */
	return i;
}

int __wrap_rec_child_start(struct rec_child *c, const struct rec_child_job *job)
{
	const struct answer *a;
	u32 pick, i, slot = talk_of(NULL);

	memset(c, 0, sizeof(*c));
	if (answers_of(job) < MAX_ANSWERS)
		keep_answer(job);
	if (!answers_of(job) || !(mutate_random() % 200))
		return -EAGAIN;
	pick = mutate_random() % answers_of(job);
	for (i = 0; answers[i].run != job->run || pick--; i++)
		;
	a = &answers[i];
	talks[slot].child = c;
	talks[slot].size = a->size;
	talks[slot].pos = 0;
	talks[slot].data = malloc(a->size + 1);
	if (!talks[slot].data)
		abort();
	memcpy(talks[slot].data, a->data, a->size);
	damage(talks[slot].data, &talks[slot].size);
	c->pid = 1;
	return 0;
}

ssize_t __wrap_rec_child_read(struct rec_child *c, void *buf, size_t n, u32 cpu_seconds)
{
	u32 t = talk_of(c);

	if (!(mutate_random() % 2000)) {
		c->hung = true;
		return -ETIMEDOUT;
	}
	n = min_of(n, talks[t].size - talks[t].pos);
	memcpy(buf, talks[t].data + talks[t].pos, n);
	talks[t].pos += n;
	return n;
}

void __wrap_rec_child_stop(struct rec_child *c)
{
	u32 t;

	if (!c->pid)
		return;
	t = talk_of(c);
	free(talks[t].data);
	memset(&talks[t], 0, sizeof(talks[t]));
	c->pid = 0;
}

int __wrap_rec_child_reap(struct rec_child *c, struct strbuf *why)
{
	__wrap_rec_child_stop(c);
	if (!c->hung && mutate_random() % 50)
		return 0;
	strbuf_puts(why, "ended by the harness");
	return -EINVAL;
}
