// SPDX-License-Identifier: BSD-2-Clause
// gen_perf BASE.perf.data OUT EVENTS [CPUS [TASKS [SEED]]]: a large perf.data for measurements.
//
// Header, attributes and event formats are BASE's (a perf.data whose first two attributes are sched_switch and
// sched_wakeup and whose last is a software event, recorded by Linux 6.x: tests/data/hog.perf.data). The samples are made
// up: tasks that run, sleep, are woken and preempted on CPUS run queues, a software sample between, rounds of
// FINISHED_ROUND as perf writes them. Shares no code with the reader it is there to measure.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTR_SWITCH 0
#define ATTR_WAKEUP 1
#define MAX_CPUS    64
#define MAX_TASKS   65536

struct section {
	uint64_t off, size;
};

struct header {
	char magic[8];
	uint64_t size, attr_size;
	struct section attrs, data, event_types;
	uint64_t features[4];
};

struct file_attr {
	uint8_t attr[128];
	struct section ids;
};

struct sample_head {
	uint32_t type;
	uint16_t misc, size;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, res;
};

struct switch_sample {
	struct sample_head h;
	uint64_t period;
	uint32_t raw_size;
	struct {
		uint16_t type;
		uint8_t flags, preempt;
		int32_t pid;
		char prev_comm[16];
		int32_t prev_pid, prev_prio;
		int64_t prev_state;
		char next_comm[16];
		int32_t next_pid, next_prio;
	} __attribute__((packed)) raw;
} __attribute__((packed));

struct wakeup_sample {
	struct sample_head h;
	uint64_t period;
	uint32_t raw_size;
	struct {
		uint16_t type;
		uint8_t flags, preempt;
		int32_t pid;
		char comm[16];
		int32_t task, prio, target_cpu;
		uint32_t pad;
	} __attribute__((packed)) raw;
} __attribute__((packed));

struct comm_record {
	uint32_t type;
	uint16_t misc, size;
	uint32_t pid, tid;
	char comm[16];
	uint32_t id_pid, id_tid;
	uint64_t time;
	uint32_t cpu, res;
	uint64_t id;
};

static uint64_t rng, now = 1000000000ULL, written;
static uint64_t id_switch, id_wakeup, id_other;
static uint16_t type_switch, type_wakeup;
static unsigned int nr_cpus = 8, nr_tasks = 1000;
static FILE *out;

/* One run queue: a ring of waiting tasks; task 0 is idle. */
static struct cpu {
	int current, head, nr;
	int queue[MAX_TASKS];
} cpus[MAX_CPUS];
static uint8_t asleep[MAX_TASKS];

static uint32_t rnd(uint32_t below)
{
	rng = rng * 6364136223846793005ULL + 1442695040888963407ULL;
	return (rng >> 33) % below;
}

static void name(char comm[16], int task, int cpu)
{
	char text[32] = "";

	snprintf(text, sizeof(text), task ? "task-%d" : "swapper/%d", task ? task : cpu);
	memcpy(comm, text, 16);
}

static int tid_of(int task)
{
	return task ? 1000 + task : 0;
}

static void write_all(const void *p, size_t n)
{
	if (fwrite(p, 1, n, out) != n) {
		perror("gen_perf: write");
		exit(1);
	}
	written += n;
}

static struct sample_head head(int cpu, uint64_t id, size_t size)
{
	int tid = tid_of(cpus[cpu].current);

	return (struct sample_head){ .type = 9, .misc = 1, .size = size, .id = id, .ip = 0xffffffff81000000ULL,
				     .pid = tid, .tid = tid, .time = now, .cpu = cpu };
}

static void emit_switch(int cpu, int next, int64_t state)
{
	struct switch_sample s = { .h = head(cpu, id_switch, sizeof(s)), .period = 1, .raw_size = sizeof(s.raw) + 0 };
	int prev = cpus[cpu].current;

	s.raw.type = type_switch;
	s.raw.pid = s.raw.prev_pid = tid_of(prev);
	name(s.raw.prev_comm, prev, cpu);
	name(s.raw.next_comm, next, cpu);
	s.raw.prev_state = state;
	s.raw.next_pid = tid_of(next);
	s.raw.prev_prio = s.raw.next_prio = 120;
	write_all(&s, sizeof(s));
	cpus[cpu].current = next;
}

static void emit_wakeup(int cpu, int task, int target)
{
	struct wakeup_sample s = { .h = head(cpu, id_wakeup, sizeof(s)), .period = 1, .raw_size = sizeof(s.raw) };

	s.raw.type = type_wakeup;
	s.raw.pid = tid_of(cpus[cpu].current);
	name(s.raw.comm, task, target);
	s.raw.task = tid_of(task);
	s.raw.prio = 120;
	s.raw.target_cpu = target;
	write_all(&s, sizeof(s));
}

static void push(int cpu, int task)
{
	struct cpu *c = &cpus[cpu];

	c->queue[(c->head + c->nr++) % MAX_TASKS] = task;
}

static int pop(int cpu)
{
	struct cpu *c = &cpus[cpu];
	int task;

	if (!c->nr)
		return 0;
	task = c->queue[c->head];
	c->head = (c->head + 1) % MAX_TASKS;
	c->nr--;
	return task;
}

static void step(void)
{
	struct { struct sample_head h; } other;
	int cpu = rnd(nr_cpus), prev = cpus[cpu].current, task, tries;

	now += 200 + rnd(2000);
	switch (rnd(5)) {
	case 0:
	case 1:
		for (tries = 0; tries < 8; tries++) {
			task = 1 + rnd(nr_tasks);
			if (!asleep[task])
				continue;
			asleep[task] = 0;
			emit_wakeup(rnd(nr_cpus), task, cpu);
			push(cpu, task);
			return;
		}
		/* fall through */
	case 2:
	case 3:
		if (!prev && !cpus[cpu].nr)
			break;
		if (prev && cpus[cpu].nr && rnd(3) == 0) { /* preempted */
			push(cpu, prev);
			emit_switch(cpu, pop(cpu), 0x100);
		} else {
			if (prev)
				asleep[prev] = 1;
			emit_switch(cpu, pop(cpu), prev ? 1 : 0);
		}
		return;
	}
	other.h = head(cpu, id_other, sizeof(other.h));
	write_all(&other, sizeof(other));
}

static void comms(void)
{
	unsigned int t;

	for (t = 1; t <= nr_tasks; t++) {
		struct comm_record r = { .type = 3, .size = sizeof(r), .pid = 1000 + (t & ~7u), .tid = tid_of(t),
					 .id_pid = tid_of(t), .id_tid = tid_of(t), .time = now, .id = id_other };

		name(r.comm, t, 0);
		asleep[t] = 1;
		write_all(&r, sizeof(r));
	}
}

static uint16_t config_of(const uint8_t *base, const struct header *h, int i)
{
	return *(const uint64_t *)(base + h->attrs.off + i * h->attr_size + 8);
}

static uint64_t first_id(const uint8_t *base, const struct header *h, int i)
{
	const struct file_attr *a = (const void *)(base + h->attrs.off + i * h->attr_size);

	return *(const uint64_t *)(base + a->ids.off);
}

static void features(const uint8_t *base, const struct header *h, uint64_t end)
{
	uint64_t off = h->data.off + h->data.size, n = 0, i, pos;
	struct section s[256];

	for (i = 0; i < 256; i++)
		n += h->features[i / 64] >> (i % 64) & 1;
	memcpy(s, base + off, n * sizeof(*s));
	pos = end + n * sizeof(*s);
	for (i = 0; i < n; i++) {
		struct section moved = { pos, s[i].size };

		write_all(&moved, sizeof(moved));
		pos += s[i].size;
	}
	for (i = 0; i < n; i++)
		write_all(base + s[i].off, s[i].size);
}

int main(int argc, char **argv)
{
	uint64_t events, i;
	struct header h;
	struct stat st;
	uint8_t *base;
	int fd, nr_attrs;

	if (argc < 4 || (fd = open(argv[1], O_RDONLY)) < 0 || fstat(fd, &st)) {
		fprintf(stderr, "usage: gen_perf BASE.perf.data OUT EVENTS [CPUS [TASKS [SEED]]]\n");
		return 2;
	}
	base = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	out = fopen(argv[2], "w");
	if (base == MAP_FAILED || !out) {
		perror("gen_perf");
		return 1;
	}
	events = strtoull(argv[3], NULL, 0);
	if (argc > 4)
		nr_cpus = atoi(argv[4]);
	if (argc > 5)
		nr_tasks = atoi(argv[5]);
	rng = argc > 6 ? strtoull(argv[6], NULL, 0) : 1;
	memcpy(&h, base, sizeof(h));
	nr_attrs = h.attrs.size / h.attr_size;
	if (memcmp(h.magic, "PERFILE2", 8) || nr_attrs < 3 || nr_cpus > MAX_CPUS || nr_tasks >= MAX_TASKS) {
		fprintf(stderr, "gen_perf: not a base this can use, or more CPUs or tasks than it can do\n");
		return 1;
	}
	type_switch = config_of(base, &h, ATTR_SWITCH);
	type_wakeup = config_of(base, &h, ATTR_WAKEUP);
	id_switch = first_id(base, &h, ATTR_SWITCH);
	id_wakeup = first_id(base, &h, ATTR_WAKEUP);
	id_other = first_id(base, &h, nr_attrs - 1);

	write_all(base, h.data.off);
	comms();
	for (i = 0; i < events; i++) {
		static const struct { uint32_t type; uint16_t misc, size; } round = { 68, 0, 8 };

		step();
		if (i % 4096 == 4095)
			write_all(&round, sizeof(round));
	}
	h.data.size = written - h.data.off;
	{
		struct header new = h;

		memcpy(&h, base, sizeof(h));
		features(base, &h, written);
		h = new;
	}
	if (fseek(out, 0, SEEK_SET) || fwrite(&h, sizeof(h), 1, out) != 1 || fclose(out)) {
		perror("gen_perf");
		return 1;
	}
	return 0;
}
