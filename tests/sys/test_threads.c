// SPDX-License-Identifier: BSD-2-Clause
// Several threads at one engine: descriptors come and go by every road at once, and nothing is lost
// or kept.
#include <pthread.h>

#include "engine.h"

#define THREADS 4
#define ROUNDS	300

static struct inlay *in;
static long failures;

static void check(bool cond)
{
	if (!cond)
		__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

/* A map of one's own: made, used, mapped, closed. */
static void own_map(u32 n)
{
	int fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE), d;
	u64 v = n, got = 0;
	u32 key = 0;
	long at;

	check(fd >= 0);
	check(!elem(in, BPF_MAP_UPDATE_ELEM, fd, &key, &v, 0));
	at = inlay_mmap(in, NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	check(at > 0 && *(u64 *)at == n);
	d = dup(fd);
	close(fd);
	check(!elem(in, BPF_MAP_LOOKUP_ELEM, d, &key, &got, 0) && got == n);
	close(d);
	check(at < 0 || *(u64 *)at == n);
	munmap((void *)at, 4096);
}

/* Whatever maps there are, by id: they may be anybody's and gone at any moment. */
static void everybodys_maps(void)
{
	union bpf_attr a = {};
	u64 value;
	u32 id = 0, key = 0, next;
	int fd;

	for (;;) {
		memset(&a, 0, sizeof(a));
		a.start_id = id;
		if (do_bpf(in, BPF_MAP_GET_NEXT_ID, &a, 8))
			break;
		next = a.next_id;
		check(next > id);
		id = next;
		memset(&a, 0, sizeof(a));
		a.map_id = id;
		fd = do_bpf(in, BPF_MAP_GET_FD_BY_ID, &a, 12);
		check(fd >= 0 || fd == -ENOENT);
		if (fd < 0)
			continue;
		check(!elem(in, BPF_MAP_LOOKUP_ELEM, fd, &key, &value, 0));
		close(fd);
	}
}

static void own_program(void)
{
	int map = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), prog;
	struct bpf_insn insns[] = {
		{BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map},
		{},
		MOV64_IMM(0, 7),
		EXIT(),
	};
	union bpf_attr a = {};
	u64 ctx[2] = {};

	prog = prog_load(in, BPF_PROG_TYPE_RAW_TRACEPOINT, insns, 4);
	check(prog >= 0);
	close(map);
	a.test.prog_fd = prog;
	a.test.ctx_in = U64(ctx);
	a.test.ctx_size_in = sizeof(ctx);
	check(!do_bpf(in, BPF_PROG_TEST_RUN, &a, 76) && a.test.retval == 7);
	close(prog);
}

static void *work(void *arg)
{
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		own_map(i);
		everybodys_maps();
		if (i % 8 == 0)
			own_program();
	}
	return NULL;
}

static void freeze_races(void)
{
	int fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE);

	is_int(one_fd(in, BPF_MAP_FREEZE, fd), 0, "a map still freezes");
	close(fd);
}

/* One thread writes until it is told EPERM, another freezes: once frozen, the value stays. */
static int race_fd;

static void *writer(void *arg)
{
	u64 v = 0;
	u32 key = 0;
	long err = 0;

	while (!err || err == -EBUSY) {
		v++;
		err = elem(in, BPF_MAP_UPDATE_ELEM, race_fd, &key, &v, 0);
	}
	check(err == -EPERM);
	return NULL;
}

static void write_and_freeze(void)
{
	u64 first = 0, second = 0;
	pthread_t t;
	u32 key = 0;
	long err;
	int i;

	for (i = 0; i < 50; i++) {
		race_fd = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
		pthread_create(&t, NULL, writer, NULL);
		do
			err = one_fd(in, BPF_MAP_FREEZE, race_fd);
		while (err == -EBUSY);
		check(!err);
		elem(in, BPF_MAP_LOOKUP_ELEM, race_fd, &key, &first, 0);
		pthread_join(t, NULL);
		elem(in, BPF_MAP_LOOKUP_ELEM, race_fd, &key, &second, 0);
		check(first == second);
		close(race_fd);
	}
	is_int(failures, 0, "a frozen map is written by nobody, whoever was writing");
}

int main(void)
{
	pthread_t t[THREADS];
	int i;

	in = engine_start();
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	is_int(failures, 0, "%d threads: every call did what it should", THREADS);
	is_int(objects_settled(in, OBJ_MAP, 0), 0, "no map is left");
	is_int(objects_settled(in, OBJ_PROG, 0), 0, "no program is left");
	freeze_races();
	write_and_freeze();
	is_int(objects_settled(in, OBJ_MAP, 0), 0, "and no map after that");
	inlay_destroy(in);
	return tap_done();
}
