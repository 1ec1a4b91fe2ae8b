// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Programs as clang makes them, for test_objects.py. The name tells the verdict of Linux 6.18: ok_ accepted, bad_ refused; stricter_ accepted, but refused by us.
 * Each is loaded alone, into inlay and, where that is allowed, into the kernel.
 */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define __noinline __attribute__((noinline))

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static void *(*lookup)(void *map, const void *key) = (void *)1;
static long (*update)(void *map, const void *key, const void *val, u64 flags) = (void *)2;
static u64 (*ktime)(void) = (void *)5;
static u32 (*prandom)(void) = (void *)7;
static u64 (*pid_tgid)(void) = (void *)14;
static long (*comm)(void *buf, u32 size) = (void *)16;
static void *(*current_task_btf)(void) = (void *)158;
static long (*read_kernel)(void *dst, u32 size, const void *src) = (void *)113;
static long (*read_kernel_str)(void *dst, u32 size, const void *src) = (void *)115;
static void *(*reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*submit)(void *data, u64 flags) = (void *)132;
static void (*discard)(void *data, u64 flags) = (void *)133;
static long (*for_each)(void *map, void *cb, void *ctx, u64 flags) = (void *)164;
static long (*loop)(u32 n, void *cb, void *ctx, u64 flags) = (void *)181;
static long (*snprintf_)(char *str, u32 size, const char *fmt, u64 *data, u32 len) = (void *)165;

struct task_struct {
	int pid, tgid;
	struct task_struct *real_parent, *group_leader;
	char comm[16];
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

struct slots {
	u64 slot[32];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct slots);
} hist SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

volatile const u32 limit = 16;
u64 total;
u64 table[64];
u32 index_;

/* ---- maps and loops ---- */

SEC("raw_tp/sched_switch") int ok_count(void *ctx)
{
	u32 key = pid_tgid() >> 32;
	u64 one = 1, *n = lookup(&counts, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		update(&counts, &key, &one, BPF_NOEXIST);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_no_null_check(void *ctx)
{
	u32 key = 1;
	u64 *n = lookup(&counts, &key);

	return *n;
}

static __noinline u32 log2(u64 v)
{
	u32 r = 0;

	for (int i = 5; i >= 0; i--)
		if (v >> (1u << i)) {
			v >>= 1u << i;
			r += 1u << i;
		}
	return r;
}

SEC("raw_tp/sched_switch") int ok_histogram(void *ctx)
{
	u32 key = 0, slot;
	struct slots *h = lookup(&hist, &key);

	if (!h)
		return 0;
	slot = log2(ktime());
	if (slot > 31)
		slot = 31;
	__sync_fetch_and_add(&h->slot[slot], 1);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_histogram_off_by_one(void *ctx)
{
	u32 key = 0;
	struct slots *h = lookup(&hist, &key);
	volatile u32 slot = prandom();
	u32 s = slot;

	if (!h || s > 32)
		return 0;
	h->slot[s] = 1;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_loop_over_array(void *ctx)
{
	u64 sum = 0;

	for (u32 i = 0; i < 64; i++)
		sum += ((volatile u64 *)table)[i];
	total = sum;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_loop_with_branches(void *ctx)
{
	u64 sum = 0;

	for (u32 i = 0; i < 300; i++) {
		u32 r = prandom();

		if (r & 1)
			sum += r;
		if (r & 2)
			sum ^= i;
		if (r > 1000)
			continue;
		table[r & 63] = sum;
	}
	total = sum;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_bound_in_rodata(void *ctx)
{
	for (u32 i = 0; i < limit; i++)
		table[i] = prandom();
	return 0;
}

SEC("raw_tp/sched_switch") int bad_index_from_bss(void *ctx)
{
	table[index_] = 1;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_masked_index_from_bss(void *ctx)
{
	table[index_ & 63] = 1;
	return 0;
}

SEC("raw_tp/sched_switch") int bad_endless_loop(void *ctx)
{
	volatile u64 *p = &total;

	for (;;)
		*p = 0;
	return 0;
}

/* ---- callbacks ---- */

struct sum {
	u64 sum;
	u32 n;
	u32 at;
};

static int add_one(u32 i, struct sum *s)
{
	s->sum += i;
	s->n++;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_bpf_loop(void *ctx)
{
	struct sum s = { 0 };

	loop(1000, add_one, &s, 0);
	total = s.sum;
	return 0;
}

static int step_and_index(u32 i, struct sum *s)
{
	s->at += 8;
	return 0;
}

/* The body runs an unknown number of times: what it did to `at` is not what one round does. */
SEC("raw_tp/sched_switch") int bad_index_after_rounds(void *ctx)
{
	struct sum s = { 0 };

	loop(prandom(), step_and_index, &s, 0);
	table[s.at] = 1;
	return 0;
}

static int index_inside(u32 i, struct sum *s)
{
	u32 at = s->at++;

	table[at] = i;
	return 0;
}

SEC("raw_tp/sched_switch") int bad_index_grows_inside(void *ctx)
{
	struct sum s = { 0 };

	loop(1000, index_inside, &s, 0);
	return 0;
}

static int checked_inside(u32 i, struct sum *s)
{
	u32 at = s->at++;

	if (at >= 64)
		return 1;
	table[at] = i;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_index_checked_inside(void *ctx)
{
	struct sum s = { 0 };

	loop(1000, checked_inside, &s, 0);
	total = s.at;
	return 0;
}

static int conditional_inside(u32 i, struct sum *s)
{
	if (prandom() & 1)
		s->n++;
	else if (i & 1)
		s->sum += 3;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_branches_inside(void *ctx)
{
	struct sum s = { 0 };

	loop(prandom(), conditional_inside, &s, 0);
	table[s.at & 63] = s.n;
	return 0;
}

static int returns_two(u32 i, struct sum *s)
{
	return 2;
}

SEC("raw_tp/sched_switch") int bad_callback_returns_two(void *ctx)
{
	loop(10, returns_two, 0, 0);
	return 0;
}

struct rec {
	u64 a, b;
	char comm[16];
};

struct holder {
	struct rec *r;
};

static int releases(u32 i, struct holder *h)
{
	discard(h->r, 0);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_callback_releases_callers(void *ctx)
{
	struct holder h = { reserve(&ring, sizeof(struct rec), 0) };

	if (!h.r)
		return 0;
	loop(2, releases, &h, 0);
	return 0;
}

static int leaks(u32 i, void *h)
{
	struct rec *r = reserve(&ring, sizeof(*r), 0);

	if (r)
		r->a = i;
	return 0;
}

SEC("raw_tp/sched_switch") int bad_callback_leaks(void *ctx)
{
	loop(2, leaks, 0, 0);
	return 0;
}

static int reserves_and_submits(u32 i, void *h)
{
	struct rec *r = reserve(&ring, sizeof(*r), 0);

	if (!r)
		return 1;
	r->a = i;
	submit(r, 0);
	return 0;
}

SEC("raw_tp/sched_switch") int ok_callback_submits(void *ctx)
{
	loop(20, reserves_and_submits, 0, 0);
	return 0;
}

static int inner(u32 i, struct sum *s)
{
	s->n++;
	return 0;
}

static int outer(u32 i, struct sum *s)
{
	s->at++;
	loop(i, inner, s, 0);
	return s->n > 100;
}

SEC("raw_tp/sched_switch") int ok_nested_loops(void *ctx)
{
	struct sum s = { 0 };

	loop(50, outer, &s, 0);
	total = s.n;
	return 0;
}

static int outer_hostile(u32 i, struct sum *s)
{
	loop(i, inner, s, 0);
	table[s->n & 127] = i;
	return 0;
}

SEC("raw_tp/sched_switch") int bad_nested_loops(void *ctx)
{
	struct sum s = { 0 };

	loop(50, outer_hostile, &s, 0);
	return 0;
}

static long each(void *map, u32 *key, u64 *val, struct sum *s)
{
	s->sum += *val;
	*val = *key;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_for_each(void *ctx)
{
	struct sum s = { 0 };

	for_each(&counts, each, &s, 0);
	total = s.sum;
	return 0;
}

static long writes_key(void *map, u32 *key, u64 *val, struct sum *s)
{
	*key = 1;
	return 0;
}

SEC("raw_tp/sched_switch") int bad_for_each_writes_key(void *ctx)
{
	for_each(&counts, writes_key, 0, 0);
	return 0;
}

static long reads_past(void *map, u32 *key, u64 *val, struct sum *s)
{
	total = val[1];
	return 0;
}

SEC("raw_tp/sched_switch") int bad_for_each_reads_past(void *ctx)
{
	for_each(&counts, reads_past, 0, 0);
	return 0;
}

/* ---- ring buffer ---- */

SEC("raw_tp/sched_switch") int ok_ringbuf(void *ctx)
{
	struct rec *r = reserve(&ring, sizeof(*r), 0);

	if (!r)
		return 0;
	r->a = ktime();
	r->b = pid_tgid();
	comm(r->comm, sizeof(r->comm));
	if (r->b)
		submit(r, 0);
	else
		discard(r, 0);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_ringbuf_leak(void *ctx)
{
	struct rec *r = reserve(&ring, sizeof(*r), 0);

	if (!r)
		return 0;
	r->a = ktime();
	if (r->a & 1)
		submit(r, 0);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_ringbuf_after_submit(void *ctx)
{
	struct rec *r = reserve(&ring, sizeof(*r), 0);

	if (!r)
		return 0;
	submit(r, 0);
	r->a = 1;
	return 0;
}

SEC("raw_tp/sched_switch") int bad_ringbuf_past_end(void *ctx)
{
	struct rec *r = reserve(&ring, sizeof(*r), 0);

	if (!r)
		return 0;
	comm(r->comm, sizeof(r->comm) + 1);
	submit(r, 0);
	return 0;
}

/* ---- functions ---- */

__noinline int sum_of(const struct sum *s, int n)
{
	if (!s)
		return n;
	return s->n + n;
}

SEC("raw_tp/sched_switch") int ok_global_function(void *ctx)
{
	struct sum s = { 1, 2, 3 };

	total = sum_of(&s, prandom()) + sum_of(0, 1);
	return 0;
}

__noinline int unchecked(const struct sum *s)
{
	return s->n;
}

SEC("raw_tp/sched_switch") int bad_global_without_null_check(void *ctx)
{
	struct sum s = { 1, 2, 3 };

	return unchecked(&s);
}

__noinline int takes_number(u64 i)
{
	table[i] = 1; /* any caller's number */
	return 0;
}

SEC("raw_tp/sched_switch") int bad_global_trusts_number(void *ctx)
{
	return takes_number(3);
}

SEC("raw_tp/sched_switch") int bad_global_too_small(void *ctx)
{
	u64 small = 1;

	return sum_of((void *)&small, 1);
}

SEC("raw_tp/sched_switch") int bad_global_result_as_index(void *ctx)
{
	struct sum s = { 0 };

	table[(u32)sum_of(&s, 1)] = 1;
	return 0;
}

static __noinline int fill(char *buf, u32 n)
{
	return read_kernel_str(buf, n, current_task_btf());
}

SEC("raw_tp/sched_switch") int ok_static_function(void *ctx)
{
	char buf[32];

	total = fill(buf, sizeof(buf)) + buf[3];
	return 0;
}

SEC("raw_tp/sched_switch") int bad_static_function_overflows(void *ctx)
{
	char buf[32];

	total = fill(buf, 600) + buf[3];
	return 0;
}

/* ---- typed pointers ---- */

SEC("tp_btf/sched_switch") int ok_task_chain(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];

	total = prev->pid + next->real_parent->group_leader->tgid;
	return 0;
}

SEC("tp_btf/sched_switch") int bad_task_write(u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];

	next->pid = 1;
	return 0;
}

SEC("tp_btf/sched_switch") int bad_task_variable_offset(u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];

	total = next->comm[prandom() & 7];
	return 0;
}

SEC("tp_btf/sched_switch") int ok_read_comm(u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];
	char buf[16];

	read_kernel_str(buf, sizeof(buf), next->comm);
	total = buf[0];
	return 0;
}

SEC("tp_btf/sched_switch") int bad_arg_beyond_prototype(u64 *ctx)
{
	total = ctx[9];
	return 0;
}

SEC("raw_tp/sched_switch") int ok_length_of_string(void *ctx)
{
	char buf[64];
	long n = read_kernel_str(buf, sizeof(buf), current_task_btf());

	if (n > 0 && n < sizeof(buf))
		buf[n] = 0;
	total = buf[0];
	return 0;
}

SEC("raw_tp/sched_switch") int bad_length_unchecked(void *ctx)
{
	char buf[8];

	read_kernel(buf, prandom(), ctx);
	total = buf[0];
	return 0;
}

SEC("raw_tp/sched_switch") int ok_snprintf(void *ctx)
{
	static const char fmt[] = "%d and %s";
	char buf[32];
	u64 args[] = { prandom(), (u64)fmt };

	snprintf_(buf, sizeof(buf), fmt, args, sizeof(args));
	total = buf[0];
	return 0;
}

SEC("raw_tp/sched_switch") int bad_snprintf_arguments(void *ctx)
{
	static const char fmt[] = "%d and %d and %d";
	char buf[32];
	u64 args[] = { prandom(), 2 };

	snprintf_(buf, sizeof(buf), fmt, args, sizeof(args));
	total = buf[0];
	return 0;
}

/* ---- maps of maps ---- */

#define __array(name, val) typeof(val) *name[]

static long (*delete)(void *map, const void *key) = (void *)3;
static long (*tail_call)(void *ctx, void *progs, u32 index) = (void *)12;
static void *(*task_storage_get)(void *map, void *task, void *value, u64 flags) = (void *)156;
static long (*task_storage_delete)(void *map, void *task) = (void *)157;

struct inner_storage {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, int);
};

struct inner_hash {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u64);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1000);
	__type(key, u32);
	__array(values, struct inner_storage);
} storages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 16);
	__type(key, u32);
	__array(values, struct inner_hash);
} hashes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 16);
	__type(key, u32);
	__array(values, struct inner_hash);
} named_hashes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u32);
} progs SEC(".maps");

static __noinline int storage_of(u32 i)
{
	void *inner = lookup(&storages, &i);
	int zero = 0;
	int *val;

	if (!inner)
		return -1;
	val = task_storage_get(inner, current_task_btf(), &zero, 1);
	return val ? *val : -2;
}

SEC("raw_tp/sched_switch") int ok_storage_in_array(void *ctx)
{
	total = storage_of(prandom());
	return 0;
}

struct storage_ctx {
	u64 hits, misses;
};

static long storage_body(u32 i, struct storage_ctx *c)
{
	if (storage_of(i % 1000))
		c->misses++;
	else
		c->hits++;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_storage_in_array_in_a_loop(void *ctx)
{
	struct storage_ctx c = {};

	loop(10000, storage_body, &c, 0);
	total = c.hits + c.misses;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_storage_in_array_delete(void *ctx)
{
	u32 i = prandom();
	void *inner = lookup(&storages, &i);

	if (inner)
		task_storage_delete(inner, current_task_btf());
	return 0;
}

SEC("raw_tp/sched_switch") int bad_storage_in_array_no_check(void *ctx)
{
	u32 i = prandom();
	void *inner = lookup(&storages, &i);

	task_storage_delete(inner, current_task_btf());
	return 0;
}

SEC("raw_tp/sched_switch") int bad_lookup_in_storage(void *ctx)
{
	u32 i = prandom();
	void *inner = lookup(&storages, &i);

	if (inner)
		total = (u64)lookup(inner, &i);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_storage_get_from_hash(void *ctx)
{
	u32 i = prandom();
	void *inner = lookup(&hashes, &i);

	if (inner)
		task_storage_get(inner, current_task_btf(), 0, 1);
	return 0;
}

SEC("raw_tp/sched_switch") int ok_hash_in_hash(void *ctx)
{
	u32 i = prandom(), k = i >> 8;
	void *inner = lookup(&named_hashes, &i);
	u64 *n, one = 1;

	if (!inner)
		return 0;
	n = lookup(inner, &k);
	if (n)
		(*n)++;
	else
		update(inner, &k, &one, BPF_NOEXIST);
	delete(inner, &i);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_maps_of_maps_are_not_maps(void *ctx)
{
	u32 i = prandom();
	u64 *inner = lookup(&hashes, &i);

	if (inner)
		total = (u64)lookup(lookup(inner, &i), &i);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_map_into_map_of_maps(void *ctx)
{
	u32 i = prandom();

	update(&hashes, &i, &i, 0);
	return 0;
}

static long add_up(void *map, u32 *key, u64 *val, u64 *sum)
{
	u64 *again = lookup(map, key);

	*sum += *val + *key + (again ? *again : 0);
	return 0;
}

SEC("raw_tp/sched_switch") int ok_for_each_of_inner(void *ctx)
{
	u32 i = prandom();
	void *inner = lookup(&hashes, &i);
	u64 sum = 0;

	if (inner)
		for_each(inner, add_up, &sum, 0);
	total = sum;
	return 0;
}

SEC("raw_tp/sched_switch") int bad_for_each_of_outer(void *ctx)
{
	u64 sum = 0;

	for_each(&hashes, add_up, &sum, 0);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_for_each_of_inner_storage(void *ctx)
{
	u32 i = prandom();
	void *inner = lookup(&storages, &i);
	u64 sum = 0;

	if (inner)
		for_each(inner, add_up, &sum, 0);
	return 0;
}

/* ---- tail calls ---- */

SEC("raw_tp/sched_switch") int ok_tail_call(void *ctx)
{
	tail_call(ctx, &progs, prandom());
	return 1;
}

static __noinline int leave(void *ctx, u32 i)
{
	int ret;

	tail_call(ctx, &progs, i);
	asm volatile("%0 = 0" : "=r"(ret)); /* the compiler does not know, the verifier does */
	return ret;
}

SEC("raw_tp/sched_switch") int ok_tail_call_in_a_function(void *ctx)
{
	return leave(ctx, 1) + leave(ctx, prandom());
}

/* after a tail call its function's result is another program's */
SEC("raw_tp/sched_switch") int bad_result_of_a_tail_call(void *ctx)
{
	u64 i = leave(ctx, 1);

	asm volatile("" : "+r"(i));
	table[i] = 1;
	return 0;
}

static __noinline int leave_big(void *ctx)
{
	char big[200];

	asm volatile("" ::"r"(big) : "memory");
	big[0] = 0;
	asm volatile("" ::"r"(big) : "memory");
	return leave(ctx, 2);
}

SEC("raw_tp/sched_switch") int ok_tail_call_below_208_bytes(void *ctx)
{
	return leave_big(ctx);
}

SEC("raw_tp/sched_switch") int bad_tail_call_below_264_bytes(void *ctx)
{
	char big[64];

	asm volatile("" ::"r"(big) : "memory");
	big[0] = 0;
	asm volatile("" ::"r"(big) : "memory");
	return leave_big(ctx);
}

static long tail_body(u32 i, u64 *c)
{
	*c += i;
	return 0;
}

SEC("raw_tp/sched_switch") int ok_tail_call_beside_a_loop(void *ctx)
{
	u64 c = 0;

	loop(10, tail_body, &c, 0);
	tail_call(ctx, &progs, 3);
	total = c;
	return 0;
}

SEC("raw_tp/sched_switch") int bad_tail_call_holding_a_record(void *ctx)
{
	u64 *rec = reserve(&ring, 8, 0);

	if (!rec)
		return 0;
	tail_call(ctx, &progs, 0);
	submit(rec, 0);
	return 0;
}

SEC("raw_tp/sched_switch") int bad_tail_call_other_context(u64 *ctx)
{
	tail_call(ctx + 1, &progs, 0);
	return 0;
}

/* ---- kernel functions: libbpf finds them in the kernel's types, or the model's ---- */

#define __ksym __attribute__((section(".ksyms")))

extern void bpf_throw(u64 cookie) __ksym;
extern struct task_struct *bpf_task_from_pid(int pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;

static const volatile int never = 0;

int caught(u64 cookie)
{
	return (int)cookie + 1;
}

static __noinline int thrower(int x)
{
	if (x)
		bpf_throw((u64)x);
	return x;
}

SEC("tracepoint/sched/sched_switch") int ok_throw(void *ctx)
{
	return thrower((int)prandom() & 1);
}

__attribute__((btf_decl_tag("exception_callback:caught")))
SEC("tracepoint/sched/sched_switch") int ok_throw_caught(void *ctx)
{
	/* libbpf before 1.3 takes along only what is named somewhere */
	if (never)
		((long (*)(u32, void *, void *, u64))181)(1, (void *)caught, 0, 0);
	return thrower((int)prandom() & 1);
}

SEC("tracepoint/sched/sched_switch") int ok_task_from_pid(void *ctx)
{
	struct task_struct *task = bpf_task_from_pid((int)pid_tgid());

	if (task)
		bpf_task_release(task);
	return 0;
}

SEC("tracepoint/sched/sched_switch") int bad_task_kept(void *ctx)
{
	return !bpf_task_from_pid((int)pid_tgid());
}

SEC("tracepoint/sched/sched_switch") int bad_throw_in_section(void *ctx)
{
	bpf_rcu_read_lock();
	thrower((int)prandom());
	bpf_rcu_read_unlock();
	return 0;
}

SEC("raw_tracepoint/sched_switch") int bad_throw_in_raw_tracepoint(void *ctx)
{
	return thrower((int)prandom());
}
