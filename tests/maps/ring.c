// SPDX-License-Identifier: BSD-2-Clause
// Ring buffers: sizes, order, hostile consumers, mapping rules, producers in threads and handlers.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "fixture.h"
#include "maps/ringbuf.h"

#define RUN_NS 700000000ULL

static struct map *make_ring(u32 size)
{
	return make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, size, 0);
}

/* A consumer's view, mapped from the descriptor as libbpf does. */
struct consumer {
	u64 *cons, *prod;
	char *data;
	u64 mask;
	size_t bytes;
};

static void consumer_map(struct consumer *c, struct map *map)
{
	size_t page = sysconf(_SC_PAGESIZE);

	c->mask = map->max_entries - 1;
	c->bytes = page + 2 * map->max_entries;
	c->cons = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map->mem.fd, 0);
	c->prod = mmap(NULL, c->bytes, PROT_READ, MAP_SHARED, map->mem.fd, page);
	c->data = (char *)c->prod + page;
}

static void consumer_unmap(struct consumer *c)
{
	munmap(c->cons, sysconf(_SC_PAGESIZE));
	munmap(c->prod, c->bytes);
}

/* A copy of the next committed record, discarded ones skipped; NULL: none. Moves on. */
static const void *consume(struct consumer *c, u32 *ret_len)
{
	static char copy[8192] __attribute__((aligned(8)));
	u64 cons = __atomic_load_n(c->cons, __ATOMIC_RELAXED),
	    prod = __atomic_load_n(c->prod, __ATOMIC_ACQUIRE);
	const void *sample;
	u32 len, *hdr;

	while (cons < prod) {
		hdr = (u32 *)(c->data + (cons & c->mask));
		len = __atomic_load_n(hdr, __ATOMIC_ACQUIRE);
		if (len & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		cons += align_up((len & ~BPF_RINGBUF_DISCARD_BIT) + BPF_RINGBUF_HDR_SZ, 8);
		sample = len & BPF_RINGBUF_DISCARD_BIT
				 ? NULL
				 : memcpy(copy, hdr + 2, min_of(len, (u32)sizeof(copy)));
		*ret_len = len;
		__atomic_store_n(c->cons, cons, __ATOMIC_RELEASE);
		if (sample)
			return sample;
	}
	return NULL;
}

/* ---- sizes ---- */

static void sizes(void)
{
	static const struct {
		u64 size;
		bool fits;
	} rows[] = {{4080, true},	{4081, false}, {8192, false}, {(1u << 30) - 1, false},
		    {1u << 30, false},	{0, true},     {1, true},     {~0ULL, false},
		    {1ULL << 32, false}};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct map *map = make_ring(4096);
		void *rec = ringbuf_reserve(map, rows[i].size);

		ok(!rec == !rows[i].fits, "reserve of %llu in a fresh ring of 4096 %s",
		   (unsigned long long)rows[i].size, rows[i].fits ? "succeeds" : "fails");
		if (rec)
			ringbuf_commit(rec, 0, false);
		obj_put(&map->obj);
	}
}

static void layout(void)
{
	struct map *map = make_ring(8192);
	u32 page = sysconf(_SC_PAGESIZE), *hdr;
	void *rec = ringbuf_reserve(map, 2 * page - 1024);

	ringbuf_commit(rec, 0, true);
	is_u64(ringbuf_query(map, BPF_RB_PROD_POS), 2 * page - 1016,
	       "the producer's position counts the header");
	rec = ringbuf_reserve(map, 100);
	hdr = (u32 *)rec - 2;
	is_u64(hdr[0], 100 | BPF_RINGBUF_BUSY_BIT, "a reserved record is busy");
	is_u64(hdr[1], 3 + (2 * page - 1016) / page,
	       "the header tells its page, as Linux counts them");
	ringbuf_commit(rec, 0, false);
	is_u64(hdr[0], 100, "a committed record has its length");
	is_u64(ringbuf_query(map, BPF_RB_AVAIL_DATA), 2 * page - 1016 + 112,
	       "query: available data");
	is_u64(ringbuf_query(map, BPF_RB_RING_SIZE), 8192, "query: size");
	is_u64(ringbuf_query(map, BPF_RB_CONS_POS), 0, "query: consumer's position");
	is_u64(ringbuf_query(map, 4), 0, "query: anything else is 0");
	obj_put(&map->obj);
}

/* ---- order ---- */

static void order(void)
{
	struct map *map = make_ring(4096);
	struct consumer c;
	const char *got;
	void *a, *b, *d;
	u32 len;

	consumer_map(&c, map);
	a = ringbuf_reserve(map, 2);
	d = ringbuf_reserve(map, 9);
	b = ringbuf_reserve(map, 2);
	ok(!map->ops->readable(map) == false, "reserved data makes the ring readable, as in Linux");
	strcpy(b, "B");
	ringbuf_commit(b, 0, false);
	ok(!consume(&c, &len), "a record committed out of order is not visible yet");
	strcpy(a, "A");
	ringbuf_commit(a, 0, false);
	got = consume(&c, &len);
	ok(got && !strcmp(got, "A") && len == 2, "the first is visible once committed");
	ok(!consume(&c, &len), "not the third before the second");
	ringbuf_commit(d, 0, true);
	got = consume(&c, &len);
	ok(got && !strcmp(got, "B"), "a discarded record is skipped");
	ok(!consume(&c, &len) && !map->ops->readable(map), "the ring is empty");
	consumer_unmap(&c);
	obj_put(&map->obj);
}

/* Records whose data runs past the end of the data area are whole for the consumer and for the next
 * round. */
static void wrap(void)
{
	struct map *map = make_ring(4096);
	struct consumer c;
	u32 len, i, j, bad = 0, past_end = 0;
	u64 seed = 5;

	consumer_map(&c, map);
	for (i = 0; i < 5000; i++) {
		u32 size = rnd(&seed) % 700;
		unsigned char *rec = ringbuf_reserve(map, size);
		const unsigned char *got;

		bad += !rec;
		if (!rec)
			break;
		past_end += (u64)((char *)rec - (char *)map->mem.addr) + size > 3 * 4096;
		for (j = 0; j < size; j++)
			rec[j] = i + j;
		ringbuf_commit(rec, 0, false);
		got = consume(&c, &len);
		bad += !got || len != size;
		for (j = 0; got && j < size; j++)
			bad += got[j] != (unsigned char)(i + j);
	}
	is_u64(bad, 0, "records of any size come out whole");
	ok(past_end > 100, "%u of them ran past the end of the data", past_end);
	consumer_unmap(&c);
	obj_put(&map->obj);
}

static void full(void)
{
	struct map *map = make_ring(4096);
	u32 n = 0;
	void *rec;

	while ((rec = ringbuf_reserve(map, 56))) {
		ringbuf_commit(rec, 0, false);
		n++;
	}
	is_u64(n, 63, "a full ring keeps one byte free, so 63 records of 64 bytes fit in 4096");
	*(u64 *)map->mem.addr = 64;
	ok((rec = ringbuf_reserve(map, 56)) != NULL, "what the consumer read makes room");
	ringbuf_commit(rec, 0, false);
	ok(!ringbuf_reserve(map, 56), "and no more than that");
	obj_put(&map->obj);
}

/* ---- hostile consumers ---- */

static void hostile(void)
{
	struct map *map = make_ring(0x4000);
	u64 *cons = map->mem.addr, seed = 1, i;
	char *a, *b;
	u32 bad = 0;

	*cons = 0x3000;
	a = ringbuf_reserve(map, 0x3000);
	b = ringbuf_reserve(map, 0x3000);
	ok(a && !b, "a consumer position in the future does not let two reservations overlap");
	ringbuf_commit(a, 0, false);
	obj_put(&map->obj);

	map = make_ring(4096);
	cons = map->mem.addr;
	for (i = 0; i < 200000; i++) {
		*cons = i & 1 ? rnd(&seed) : rnd(&seed) % 16384;
		a = ringbuf_reserve(map, rnd(&seed) % 4200);
		b = ringbuf_reserve(map, rnd(&seed) % 400);
		bad += a && (a < (char *)map->mem.addr + 2 * 4096 ||
			     a > (char *)map->mem.addr + 3 * 4096);
		if (b)
			ringbuf_commit(b, rnd(&seed) % 4, rnd(&seed) & 1);
		if (a)
			ringbuf_commit(a, rnd(&seed) % 4, rnd(&seed) & 1);
	}
	is_u64(bad, 0, "any consumer position leaves reservations inside the data");
	obj_put(&map->obj);
}

/* The data can be written through the descriptor (pwrite): what a record's header says of its ring
 * is not believed. */
static void forged_header(void)
{
	struct map *map = make_ring(4096), *other = make_ring(4096);
	static const u32 forged[] = {0, 1, 2, 4, 5, 6, 1000, 0x7fffffff, 0xffffffff};
	u32 i, *hdr;
	void *rec;

	for (i = 0; i < ARRAY_SIZE(forged); i++) {
		rec = ringbuf_reserve(map, 8);
		if (!rec)
			break;
		hdr = (u32 *)rec - 2;
		hdr[1] = forged[i];
		ringbuf_commit(rec, 0, false);
		if (hdr[0] & BPF_RINGBUF_BUSY_BIT) {
			hdr[1] = 3;
			ringbuf_commit(rec, 0, false);
		}
	}
	is_u64(i, ARRAY_SIZE(forged), "a forged header does no harm");
	hdr = (u32 *)((char *)map->mem.addr + 2 * 4096);
	for (i = 0; i < 1024; i++)
		hdr[i] = 0xfffffff0u;
	for (i = 0; i < 100; i++)
		if ((rec = ringbuf_reserve(map, 100)))
			ringbuf_commit(rec, 0, false);
	*(u64 *)((char *)map->mem.addr + 4096) = 12345677; /* producer's position */
	for (i = 0; i < 100; i++)
		if ((rec = ringbuf_reserve(map, 100)))
			ringbuf_commit(rec, 0, false);
	ok(true, "lengths and positions that are not ours do no harm");
	obj_put(&other->obj);
	obj_put(&map->obj);
}

/* ---- mapping rules, with the kernel where it may be asked ---- */

static void map_rules(void)
{
	u64 page = sysconf(_SC_PAGESIZE), size = 4 * page;
	const struct {
		const char *what;
		u64 off, len;
		int prot;
		bool shared;
		int want;
	} rows[] = {
		{"consumer page, read-write", 0, page, PROT_READ | PROT_WRITE, true, 0},
		{"consumer page, read-only", 0, page, PROT_READ, true, 0},
		{"consumer page, private", 0, page, PROT_READ, false, -EINVAL},
		{"producer page and both copies, read-only", page, page + 2 * size, PROT_READ, true,
		 0},
		{"producer page and data, read-write", page, page + size, PROT_READ | PROT_WRITE,
		 true, -EPERM},
		{"producer page, read-write", page, page, PROT_READ | PROT_WRITE, true, -EPERM},
		{"both position pages, read-write", 0, 2 * page, PROT_READ | PROT_WRITE, true,
		 -EPERM},
		{"one page more than both copies", page, 2 * page + 2 * size, PROT_READ, true,
		 -EINVAL},
		{"everything, read-only", 0, 2 * page + 2 * size, PROT_READ, true, 0},
		{"past the end", 2 * page + 2 * size, page, PROT_READ, true, -EINVAL},
	};
	struct map *map = make_ring(size);
	struct map_attr attr = {.map_type = BPF_MAP_TYPE_RINGBUF, .max_entries = size};
	int h = have_kernel() ? s_create(&kernel_side, &attr, 0) : -1;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		void *p;

		is_int(map->ops->mmap_check(map, rows[i].off, rows[i].len, rows[i].prot,
					    rows[i].shared),
		       rows[i].want, "mmap %s", rows[i].what);
		if (h < 0)
			continue;
		p = mmap(NULL, rows[i].len, rows[i].prot, rows[i].shared ? MAP_SHARED : MAP_PRIVATE,
			 h, rows[i].off);
		is_int(p == MAP_FAILED ? -errno : 0, rows[i].want,
		       "mmap %s: the kernel says the same", rows[i].what);
		if (p != MAP_FAILED)
			munmap(p, rows[i].len);
	}
	s_close(&kernel_side, h);
	is_int(ftruncate(map->mem.fd, 4096), -1,
	       "the memory cannot be cut short through the descriptor");
	obj_put(&map->obj);
}

/* ---- wake-ups ---- */

static void one(struct map *map, u64 flags, bool discard)
{
	ringbuf_commit(ringbuf_reserve(map, 8), flags, discard);
}

static void wake_ups(void)
{
	struct map *map = make_ring(4096);
	struct consumer c;
	u32 len;
	int p[2];

	/* a pipe in place of the eventfd: counts bytes, 8 a wake-up */
	if (pipe2(p, O_NONBLOCK | O_CLOEXEC)) {
		ok(false, "pipe");
		return;
	}
	consumer_map(&c, map);
	map->obj.wait_fd = p[1];
#define WOKEN(what, want)                                                                          \
	do {                                                                                       \
		char buf_[64];                                                                     \
		is_int(read(p[0], buf_, sizeof(buf_)), (want) ? 8 * (want) : -1, what);            \
	} while (0)
	one(map, 0, false);
	WOKEN("the first record wakes a consumer that has read everything", 1);
	one(map, 0, false);
	WOKEN("the second does not: the consumer is behind", 0);
	one(map, BPF_RB_FORCE_WAKEUP, false);
	WOKEN("FORCE_WAKEUP does", 1);
	while (consume(&c, &len))
		;
	one(map, BPF_RB_NO_WAKEUP, false);
	WOKEN("NO_WAKEUP does not", 0);
	while (consume(&c, &len))
		;
	one(map, 0, true);
	WOKEN("a discarded record wakes as well", 1);
#undef WOKEN
	map->obj.wait_fd = -1;
	close(p[0]);
	close(p[1]);
	consumer_unmap(&c);
	obj_put(&map->obj);
}

/* ---- producers at the same time ---- */

struct record {
	u32 producer, filler;
	u64 seq, check;
	char data[];
};

static struct {
	struct map *map;
	u64 deadline, sent[3], failed[3];
	bool stop;
} many;

static u64 check_of(u32 producer, u64 seq)
{
	return seq * 0x9e3779b97f4a7c15ULL ^ producer;
}

static bool produce(u32 producer, u64 *seed)
{
	u32 extra = rnd(seed) % 100;
	struct record *rec;

	rcu_enter();
	rec = ringbuf_reserve(many.map, sizeof(*rec) + extra);
	if (rec) {
		rec->producer = producer;
		rec->filler = extra;
		rec->seq = many.sent[producer];
		rec->check = check_of(producer, rec->seq);
		memset(rec->data, (int)rec->seq, extra);
		ringbuf_commit(rec, 0,
			       rnd(seed) % 8 == 0 ? (many.failed[producer]++, true) : false);
		many.sent[producer]++;
	}
	rcu_leave();
	return rec;
}

static void *producer_thread(void *arg)
{
	u32 who = (u32)(uintptr_t)arg;
	u64 seed = who, n;
	sigset_t alarm;

	env_enter(fix.env, who, NULL);
	/* only the first producer is interrupted, so that the handler is a single producer as well
	 */
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(who ? SIG_BLOCK : SIG_UNBLOCK, &alarm, NULL);
	for (n = 0; n % 64 || now_ns() < many.deadline; n++)
		if (!produce(who, &seed))
			sched_yield();
	env_leave(fix.env);
	return NULL;
}

static u64 handler_seed = 99;

static void on_signal(int sig)
{
	if (!env_tls.irq_masked && env_tls.env)
		produce(2, &handler_seed);
}

static void producers(void)
{
	struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	u64 next[3] = {0}, got = 0, bad = 0;
	const struct record *rec;
	struct consumer c;
	pthread_t t[2];
	sigset_t alarm;
	u32 len, i;

	many.map = make_ring(16384);
	many.deadline = now_ns() + RUN_NS;
	consumer_map(&c, many.map);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &every, NULL);
	pthread_create(&t[0], NULL, producer_thread, (void *)0);
	pthread_create(&t[1], NULL, producer_thread, (void *)1);
	while (now_ns() < many.deadline + 100000000 || ringbuf_query(many.map, BPF_RB_AVAIL_DATA)) {
		rec = consume(&c, &len);
		if (!rec) {
			sched_yield();
			continue;
		}
		got++;
		if (rec->producer > 2 || rec->check != check_of(rec->producer, rec->seq) ||
		    rec->seq < next[rec->producer] || len != sizeof(*rec) + rec->filler) {
			bad++;
			continue;
		}
		next[rec->producer] = rec->seq + 1;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	signal(SIGALRM, SIG_IGN);
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	is_u64(bad, 0, "records of several producers are whole and in each producer's order");
	is_u64(got,
	       many.sent[0] + many.sent[1] + many.sent[2] - many.failed[0] - many.failed[1] -
		       many.failed[2],
	       "all that were submitted arrive, none that were discarded");
	ok(many.sent[0] > 20 && many.sent[1] > 20 && many.sent[2] > 10,
	   "%llu, %llu and, in a handler, %llu records", (unsigned long long)many.sent[0],
	   (unsigned long long)many.sent[1], (unsigned long long)many.sent[2]);
	consumer_unmap(&c);
	obj_put(&many.map->obj);
}

static void large(void)
{
	struct map *map = make_ring(1u << 31);
	void *rec = map ? ringbuf_reserve(map, (1u << 30) - 16) : NULL;

	if (!map) {
		tap_skip("no 4 GiB of address space for a 2 GiB ring");
		return;
	}
	is_u64(map->mem.size, 2 * 4096 + (2ULL << 31), "a 2 GiB ring has 64-bit sizes");
	ok(rec != NULL, "and takes a record of nearly 1 GiB");
	if (rec)
		ringbuf_commit(rec, 0, true);
	is_u64(ringbuf_query(map, BPF_RB_AVAIL_DATA), (1u << 30) - 8, "positions are right");
	obj_put(&map->obj);
}

int main(void)
{
	fix_up(3);
	sizes();
	layout();
	order();
	wrap();
	full();
	hostile();
	forged_header();
	map_rules();
	wake_ups();
	producers();
	large();
	fix_down();
	return tap_done();
}
