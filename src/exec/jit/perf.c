// SPDX-License-Identifier: BSD-2-Clause
/*
 * What profilers are told of compiled programs, on request: INLAY_PERF_MAP=1 keeps the text file perf looks for by
 * process id; INLAY_JITDUMP=1 writes jit-PID.dump in the working directory, whose mapping `perf record` sees, for
 * `perf inject --jit`. A symbol a subprogram, named as Linux names them: bpf_prog_<tag>_<name>.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exec/jit/jit.h"

#define DUMP_MAGIC 0x4a695444 /* "JiTD" */

struct dump_header {
	u32 magic, version, total_size, elf_machine, pad, pid;
	u64 timestamp, flags;
};

struct dump_load {
	u32 id, total_size;
	u64 timestamp;
	u32 pid, tid;
	u64 vma, code_addr, code_size, code_index;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner; /* of the files: a child after fork opens its own */
static int map_fd = -1, dump_fd = -1;
static u64 dump_index;

static bool asked(const char *name)
{
	const char *v = getenv(name);

	return v && *v && strcmp(v, "0");
}

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* A profile is no reason to fail: what cannot be written is left out. */
static void put(int fd, const void *p, size_t n)
{
	ssize_t done = write(fd, p, n);

	(void)done;
}

static void open_dump(void)
{
	struct dump_header h = { .magic = DUMP_MAGIC, .version = 1, .total_size = sizeof(h), .elf_machine = jit_native->elf_machine };
	char name[64];
	void *marker;

	snprintf(name, sizeof(name), "jit-%d.dump", (int)owner);
	dump_fd = open(name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (dump_fd < 0)
		return;
	h.pid = owner;
	h.timestamp = now_ns();
	put(dump_fd, &h, sizeof(h));
	/* perf learns of the file by this mapping alone; it stays */
	marker = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, dump_fd, 0);
	(void)marker;
}

static void open_files(void)
{
	char name[64];

	owner = getpid();
	map_fd = dump_fd = -1;
	if (asked("INLAY_PERF_MAP")) {
		snprintf(name, sizeof(name), "/tmp/perf-%d.map", (int)owner);
		map_fd = open(name, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
	}
	if (asked("INLAY_JITDUMP"))
		open_dump();
}

static void publish_one(const char *name, u64 addr, u32 size)
{
	struct dump_load load = { .total_size = sizeof(load) + strlen(name) + 1 + size, .timestamp = now_ns(), .pid = owner,
				  .tid = syscall(SYS_gettid), .vma = addr, .code_addr = addr, .code_size = size };
	char line[160];

	if (map_fd >= 0) {
		int n = snprintf(line, sizeof(line), "%llx %x %s\n", (unsigned long long)addr, size, name);

		put(map_fd, line, min_of((size_t)n, sizeof(line) - 1));
	}
	if (dump_fd < 0)
		return;
	load.code_index = dump_index++;
	put(dump_fd, &load, sizeof(load));
	put(dump_fd, name, strlen(name) + 1);
	put(dump_fd, (const void *)addr, size);
}

void jit_perf_publish(const struct prog *prog, const struct jit_image *image)
{
	const struct prog *text = exec_text(prog);
	u64 code = (u64)image->block.rx + sizeof(struct jit_head);
	char tag[2 * sizeof(prog->tag) + 1], name[96];
	u32 i;

	if (!asked("INLAY_PERF_MAP") && !asked("INLAY_JITDUMP"))
		return;
	pthread_mutex_lock(&lock);
	if (owner != getpid())
		open_files();
	for (i = 0; i < sizeof(prog->tag); i++)
		snprintf(tag + 2 * i, 3, "%02x", prog->tag[i]);
	for (i = 0; i < text->nr_subprogs; i++) {
		u32 begin = i ? image->sub_off[i] : 0;
		u32 end = i + 1 < text->nr_subprogs ? image->sub_off[i + 1] : image->len;
		const char *own = text->subprogs[i].name ? text->subprogs[i].name : i ? "F" : prog->name;

		if (end <= begin)
			continue;
		snprintf(name, sizeof(name), "bpf_prog_%s_%.60s", tag, *own ? own : "F");
		publish_one(name, code + begin, end - begin);
	}
	pthread_mutex_unlock(&lock);
}
