// SPDX-License-Identifier: BSD-2-Clause
// Attributes of random words that are sometimes right: whatever they ask for, an errno or a result,
// and no harm done. INLAY_TEST_SEED: other ones.
#include <linux/perf_event.h>
#include <sys/resource.h>

#include "engine.h"
#include "sys/attr.h"

#define ROUNDS 1500

static struct inlay *in;
static u64 seed = 88172645463325252ULL;
static char memory[1 << 16];
static int fds[6];

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static u32 word(void)
{
	switch (rnd() % 8) {
	case 0:
	case 1:
		return 0;
	case 2:
		return rnd() % 40;
	case 3:
		return fds[rnd() % ARRAY_SIZE(fds)];
	case 4:
		return 1u << rnd() % 20;
	case 5:
		return 4;
	case 6:
		return -1u;
	}
	return rnd() % 5000;
}

static u64 address(void)
{
	switch (rnd() % 4) {
	case 0:
		return 0;
	case 1:
		return rnd() % 3 ? 16 : 0xdead000000000000ULL;
	}
	return U64(memory + rnd() % 256 * 8);
}

static void scramble(void *attr, size_t size, int words)
{
	u64 *w = attr, *at;
	u32 *half;

	while (words-- > 0) {
		at = &w[rnd() % (size / 8)];
		half = (u32 *)at + rnd() % 2;
		if (rnd() % 3)
			*half = word();
		else
			*at = address();
	}
}

/* A call that would be good. */
static void good_attr(int cmd, union sys_attr *a)
{
	static const struct bpf_insn ret0[] = {MOV64_IMM(0, 0), EXIT()};

	memset(a, 0, sizeof(*a));
	switch (cmd) {
	case BPF_MAP_CREATE:
		a->map_create.map_type = rnd() % 33;
		a->map_create.key_size = 4;
		a->map_create.value_size = 8;
		a->map_create.max_entries = 4096;
		break;
	case BPF_PROG_LOAD:
		a->prog_load.prog_type = rnd() % 33;
		a->prog_load.insn_cnt = rnd() % 2 ? 2 : rnd() % 64;
		a->prog_load.insns = rnd() % 2 ? U64(ret0) : U64(memory);
		a->prog_load.license = U64("GPL");
		a->prog_load.log_level = rnd() % 4;
		a->prog_load.log_size = a->prog_load.log_level ? 4096 : 0;
		a->prog_load.log_buf = a->prog_load.log_level ? U64(memory + 8192) : 0;
		break;
	case BPF_PROG_TEST_RUN:
		a->test.prog_fd = fds[4 + rnd() % 2];
		a->test.ctx_in = a->test.data_in = U64(memory);
		a->test.ctx_size_in = a->test.data_size_in = 64;
		break;
	case BPF_OBJ_GET_INFO_BY_FD:
		a->info.bpf_fd = fds[rnd() % ARRAY_SIZE(fds)];
		a->info.info_len = rnd() % 300;
		a->info.info = U64(memory + 256);
		break;
	case BPF_RAW_TRACEPOINT_OPEN:
		a->raw_tracepoint.prog_fd = fds[4];
		a->raw_tracepoint.name = U64("sched_switch");
		break;
	case BPF_BTF_LOAD:
		a->btf_load.btf = U64(memory);
		a->btf_load.btf_size = rnd() % 4096;
		break;
	case BPF_MAP_LOOKUP_BATCH:
	case BPF_MAP_LOOKUP_AND_DELETE_BATCH:
	case BPF_MAP_UPDATE_BATCH:
	case BPF_MAP_DELETE_BATCH:
		a->batch.map_fd = fds[rnd() % 4];
		a->batch.out_batch = U64(memory + 128);
		a->batch.keys = U64(memory + 1024);
		a->batch.values = U64(memory + 2048);
		a->batch.count = rnd() % 16;
		break;
	case BPF_PROG_BIND_MAP:
		a->prog_bind_map.prog_fd = fds[4];
		a->prog_bind_map.map_fd = fds[rnd() % 4];
		break;
	default:
		/* most others begin with a descriptor or a number */
		a->elem.map_fd = rnd() % 2 ? fds[rnd() % ARRAY_SIZE(fds)] : rnd() % 8;
		if (cmd >= BPF_MAP_LOOKUP_ELEM && cmd <= BPF_MAP_LOOKUP_AND_DELETE_ELEM)
			a->elem.key = U64(memory + 4096);
		if (cmd <= BPF_MAP_GET_NEXT_KEY && cmd != BPF_MAP_DELETE_ELEM)
			a->elem.value = U64(memory + 4096 + 512);
	}
}

/* What a call may leave behind is put back, so that the next has the same to work with. */
static void reopen(void)
{
	static const struct bpf_insn ret0[] = {MOV64_IMM(0, 0), EXIT()};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] > 2)
			close(fds[i]);
	fds[0] = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, 0);
	fds[1] = map_create(in, BPF_MAP_TYPE_HASH, 4, 8, 4, 0);
	fds[2] = map_create(in, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
	fds[3] = map_create(in, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2, 0);
	fds[4] = prog_load(in, BPF_PROG_TYPE_RAW_TRACEPOINT, ret0, 2);
	fds[5] = prog_load(in, BPF_PROG_TYPE_SOCKET_FILTER, ret0, 2);
}

static void contents(void)
{
	size_t i;

	for (i = 0; i < sizeof(memory); i += 4)
		*(u32 *)(memory + i) = word();
}

static void commands(int cmd)
{
	union sys_attr attr;
	int i, bad = 0, done = 0, nfds;
	long ret;

	reopen();
	objects(in, OBJ_MAP);
	nfds = count_fds();
	for (i = 0; i < ROUNDS; i++) {
		if (i % 64 == 0)
			reopen();
		if (i % 16 == 0)
			contents();
		good_attr(cmd, &attr);
		scramble(&attr, rnd() % 4 ? 72 : sizeof(attr), rnd() % 4);
		/* four thousand million runs would be run, as asked */
		if (cmd == BPF_PROG_TEST_RUN)
			attr.test.repeat %= 100;
		ret = inlay_bpf(in, cmd, (void *)&attr, rnd() % 8 ? sizeof(attr) : rnd() % 200);
		bad += ret < -4095;
		done += ret >= 0;
		if (ret > 2 && fcntl(ret, F_GETFD) >= 0)
			close(ret);
	}
	ok(!bad, "command %d: %d random attributes, %d of them good", cmd, ROUNDS, done);
	reopen();
	for (i = 0; objects(in, OBJ_MAP), count_fds() != nfds && i < 60; i++)
		usleep(50000);
	is_int(count_fds(), nfds, "command %d leaves no descriptor open", cmd);
}

static void perf_events(void)
{
	struct perf_event_attr attr = {};
	int i, good = 0;
	size_t len;
	long fd, at;

	for (i = 0; i < ROUNDS; i++) {
		scramble(&attr, sizeof(attr) & ~7ul, 40);
		if (rnd() % 4) {
			memset(&attr, 0, sizeof(attr));
			attr.type = PERF_TYPE_SOFTWARE;
			attr.config = PERF_COUNT_SW_BPF_OUTPUT;
			attr.sample_type = rnd() % 2 ? PERF_SAMPLE_RAW : rnd();
			attr.size = sizeof(attr);
			attr.wakeup_events = word();
		}
		fd = inlay_perf_event_open(in, &attr, rnd() % 4 ? -1 : word(), rnd() % 3, -1,
					   PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			continue;
		good++;
		inlay_ioctl(in, fd, rnd() % 2 ? PERF_EVENT_IOC_ENABLE : rnd(), word());
		len = 4096 * (rnd() % 9);
		at = inlay_mmap(in, NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				rnd() % 4 ? 0 : 4096);
		if (at > 0)
			munmap((void *)at, len);
		close(fd);
	}
	ok(good > 0, "perf events: %d random ones, %d of them good", ROUNDS, good);
	is_int(objects_settled(in, OBJ_PERF_EVENT, 0), 0, "none is left");
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* A map of random size may be too large for any machine: NULL then, as without the sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

int main(void)
{
	/* a map of random size may be large: refuse it rather than thrash */
	struct rlimit limit = {4ULL << 30, 4ULL << 30};
	int cmd;

	if (!SANITIZED) /* whose shadow alone is larger */
		setrlimit(RLIMIT_AS, &limit);
	if (getenv("INLAY_TEST_SEED"))
		seed ^= strtoull(getenv("INLAY_TEST_SEED"), NULL, 0) * 0x9e3779b97f4a7c15ULL;
	in = engine_start();
	reopen();
	for (cmd = 0; cmd < 38; cmd++)
		commands(cmd);
	perf_events();
	for (cmd = 0; cmd < (int)ARRAY_SIZE(fds); cmd++)
		close(fds[cmd]);
	is_int(objects_settled(in, OBJ_PROG, 0), 0, "no program is left");
	is_int(objects_settled(in, OBJ_MAP, 0), 0, "no map");
	is_int(objects_settled(in, OBJ_LINK, 0), 0, "no link");
	is_int(objects_settled(in, OBJ_BTF, 1), 1, "no BTF but the machine's");
	inlay_destroy(in);
	return tap_done();
}
