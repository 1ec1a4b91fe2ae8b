// SPDX-License-Identifier: BSD-2-Clause
// gen_dat IN.perf.data OUT.trace.dat: the samples of a recording gen_perf made, as trace-cmd's format 6 has them.
//
// One pass over the input a CPU, as a trace.dat holds a CPU's ring buffer pages together. Samples that are no tracepoint
// become sys_enter events. Shares no code with the reader it is there to measure.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE	 4096
#define MAX_CPUS 64
#define COMMON                                                                                                        \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                 \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                                          \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                                  \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define CHARS(name, off) "\tfield:char " name "[16];\toffset:" #off ";\tsize:16;\tsigned:0;\n"
#define INT(name, off)	 "\tfield:int " name ";\toffset:" #off ";\tsize:4;\tsigned:1;\n"
#define LONG(name, off)	 "\tfield:long " name ";\toffset:" #off ";\tsize:8;\tsigned:1;\n"

static const char header_page[] =
	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
	"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
static const char header_event[] =
	"# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n"
	"\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";

static FILE *out;
static uint64_t written;
static uint16_t type_switch, type_wakeup;

static void put(const void *p, size_t n)
{
	if (fwrite(p, 1, n, out) != n) {
		perror("gen_dat: write");
		exit(1);
	}
	written += n;
}

static void put_int(uint64_t v, size_t n)
{
	put(&v, n);
}

static void put_text(const char *s)
{
	put(s, strlen(s) + 1);
}

static void put_format(const char *name, unsigned int id, const char *fields)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), "name: %s\nID: %u\n%s", name, id, fields);

	put_int(n, 8);
	put(text, n);
}

static const char switch_fields[] = COMMON CHARS("prev_comm", 8) INT("prev_pid", 24) INT("prev_prio", 28)
	LONG("prev_state", 32) CHARS("next_comm", 40) INT("next_pid", 56) INT("next_prio", 60)
	"\nprint fmt: \"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d\", "
	"REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & ((((0x0000 | 0x0001 | 0x0002 | 0x0004 | 0x0008 | "
	"0x0010 | 0x0020 | 0x0040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & ((((0x0000 | 0x0001 | 0x0002 | 0x0004 | "
	"0x0008 | 0x0010 | 0x0020 | 0x0040) + 1) << 1) - 1), \"|\", { 0x0001, \"S\" }, { 0x0002, \"D\" }, { 0x0004, \"T\" }, "
	"{ 0x0008, \"t\" }, { 0x0010, \"X\" }, { 0x0020, \"Z\" }, { 0x0040, \"P\" }, { 0x0080, \"I\" }) : \"R\", "
	"REC->prev_state & (((0x0000 | 0x0001 | 0x0002 | 0x0004 | 0x0008 | 0x0010 | 0x0020 | 0x0040) + 1) << 1) ? \"+\" : "
	"\"\", REC->next_comm, REC->next_pid, REC->next_prio\n";
static const char wakeup_fields[] = COMMON CHARS("comm", 8) INT("pid", 24) INT("prio", 28) INT("target_cpu", 32)
	"\nprint fmt: \"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, REC->target_cpu\n";
static const char enter_fields[] = COMMON LONG("id", 8) "\nprint fmt: \"NR %ld\", REC->id\n";

#define TYPE_ENTER 20

static void put_head(unsigned int nr_cpus)
{
	static const char clock[] = "[local] global counter", name[] = "Linux generated 6.1";

	put("\x17\x08\x44tracing", 10);
	put_text("6");
	put("\0\x08", 2); /* little endian, 8 bytes a long */
	put_int(PAGE, 4);
	put_text("header_page");
	put_int(strlen(header_page), 8);
	put(header_page, strlen(header_page));
	put_text("header_event");
	put_int(strlen(header_event), 8);
	put(header_event, strlen(header_event));
	put_int(0, 4); /* ftrace's own */
	put_int(2, 4);
	put_text("sched");
	put_int(2, 4);
	put_format("sched_switch", type_switch, switch_fields);
	put_format("sched_wakeup", type_wakeup, wakeup_fields);
	put_text("raw_syscalls");
	put_int(1, 4);
	put_format("sys_enter", TYPE_ENTER, enter_fields);
	put_int(0, 4); /* kallsyms */
	put_int(0, 4); /* printk */
	put_int(0, 8); /* command lines */
	put_int(nr_cpus, 4);
	put_text("options  ");
	put_int(4, 2);
	put_int(sizeof(clock), 4);
	put_text(clock);
	put_int(5, 2);
	put_int(sizeof(name), 4);
	put_text(name);
	put_int(0, 2);
	put_text("flyrecord");
}

static struct {
	uint8_t b[PAGE];
	uint64_t base, last;
	uint32_t used;
	int open;
} page;

static void flush(void)
{
	uint64_t commit = page.used;

	if (!page.open)
		return;
	memcpy(page.b, &page.base, 8);
	memcpy(page.b + 8, &commit, 8);
	memset(page.b + 16 + page.used, 0, PAGE - 16 - page.used);
	put(page.b, PAGE);
	page.open = 0;
}

static void put_event(uint64_t time, const void *record, uint32_t size)
{
	uint32_t word;
	uint64_t delta;

	if (page.open && 16 + page.used + 24 + size > PAGE)
		flush();
	if (!page.open) {
		page.open = 1;
		page.used = 0;
		page.base = page.last = time;
	}
	delta = time - page.last;
	page.last = time;
	if (delta >= 1u << 27) {
		word = 30 | (uint32_t)(delta & ((1u << 27) - 1)) << 5;
		memcpy(page.b + 16 + page.used, &word, 4);
		word = delta >> 27;
		memcpy(page.b + 20 + page.used, &word, 4);
		page.used += 8;
		delta = 0;
	}
	word = size / 4 | (uint32_t)delta << 5;
	memcpy(page.b + 16 + page.used, &word, 4);
	memcpy(page.b + 20 + page.used, record, size);
	page.used += 4 + size;
}

/* As gen_perf writes them: identifier, ip, pid and tid, time, cpu, period, raw. */
static void put_sample(const uint8_t *p, uint32_t n)
{
	struct {
		uint16_t type;
		uint8_t flags, preempt;
		int32_t pid;
		int64_t id;
	} other = { .type = TYPE_ENTER };
	uint32_t size;
	uint64_t time;
	uint16_t type;

	memcpy(&time, p + 32, 8);
	if (n < 60) {
		memcpy(&other.pid, p + 28, 4);
		put_event(time, &other, sizeof(other));
		return;
	}
	memcpy(&type, p + 60, 2);
	size = type == type_switch ? 64 : 36;
	put_event(time, p + 60, size);
}

/* Of CPU cpu; MAX_CPUS: only looks which types and CPUs there are. */
static void walk(const uint8_t *p, const uint8_t *end, unsigned int cpu, unsigned int *nr_cpus)
{
	while (end - p >= 8) {
		uint32_t type, on;
		uint16_t size, id;

		memcpy(&type, p, 4);
		memcpy(&size, p + 6, 2);
		if (size < 8 || size > end - p)
			return;
		if (type == 9) {
			memcpy(&on, p + 40, 4);
			if (cpu == MAX_CPUS) {
				*nr_cpus = on + 1 > *nr_cpus ? on + 1 : *nr_cpus;
				if (size >= 60) {
					memcpy(&id, p + 60, 2);
					*(size > 110 ? &type_switch : &type_wakeup) = id;
				}
			} else if (on == cpu) {
				put_sample(p, size);
			}
		}
		p += size;
	}
}

int main(int argc, char **argv)
{
	uint64_t table, at[MAX_CPUS][2], data[2];
	unsigned int nr_cpus = 0, cpu;
	const uint8_t *in;
	struct stat st;
	int fd;

	if (argc != 3 || (fd = open(argv[1], O_RDONLY)) < 0 || fstat(fd, &st)) {
		fprintf(stderr, "usage: gen_dat IN.perf.data OUT.trace.dat\n");
		return 2;
	}
	in = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	out = fopen(argv[2], "w");
	if (in == MAP_FAILED || !out || st.st_size < 104 || memcmp(in, "PERFILE2", 8)) {
		fprintf(stderr, "gen_dat: cannot use %s or %s\n", argv[1], argv[2]);
		return 1;
	}
	memcpy(data, in + 40, sizeof(data));
	walk(in + data[0], in + data[0] + data[1], MAX_CPUS, &nr_cpus);
	if (!nr_cpus || nr_cpus > MAX_CPUS || !type_switch || !type_wakeup) {
		fprintf(stderr, "gen_dat: %s was not made by gen_perf\n", argv[1]);
		return 1;
	}
	put_head(nr_cpus);
	table = written;
	memset(at, 0, sizeof(at));
	put(at, nr_cpus * sizeof(at[0]));
	while (written % PAGE)
		put_int(0, 1);
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		at[cpu][0] = written;
		walk(in + data[0], in + data[0] + data[1], cpu, &nr_cpus);
		flush();
		at[cpu][1] = written - at[cpu][0];
	}
	if (fseek(out, table, SEEK_SET) || fwrite(at, sizeof(at[0]), nr_cpus, out) != nr_cpus || fclose(out)) {
		perror("gen_dat");
		return 1;
	}
	return 0;
}
