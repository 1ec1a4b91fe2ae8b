// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* A little of everything a compiler puts into an object: the tests of object checks and BTF begin from it. */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define __core __attribute__((preserve_access_index))

enum small { SMALL_A, SMALL_B = -1, SMALL_C = 5 };
enum wide { WIDE_A = 0x100000000ULL, WIDE_B };

struct only_declared;
union also_declared;

struct bits {
	int a : 3, b : 5;
	unsigned long c;
	enum small e : 4;
	u64 : 0;
	u64 f : 33, g : 31;
};

struct packed {
	char a;
	u64 b;
	short c;
} __attribute__((packed));

struct padded {
	char a;
	struct packed p;
	u32 q __attribute__((aligned(64)));
};

struct outer {
	struct bits in[3];
	const volatile char *name;
	struct only_declared *fwd;
	union {
		u32 x;
		float f;
		double d;
		struct {
			char low, high;
		};
	} u;
	struct {
		u64 q;
	};
	union also_declared *ufwd;
	struct padded pad[2];
	_Bool yes;
	__int128 wide;
	char flex[];
};

typedef struct outer outer_t;
typedef const outer_t *outer_ptr;

struct list {
	struct list *next, **prev;
	int (*compare)(int a, const char *fmt, ...);
	void (*(*get)(int))(outer_ptr);
	char grid[3][4][5];
	int (*rows)[7];
};

struct tagged {
	int __attribute__((btf_type_tag("rcu"))) * p;
	int y;
} __attribute__((btf_decl_tag("marked")));

struct task_struct {
	int pid;
	struct task_struct *parent;
} __core;

struct {
	__uint(type, 1);
	__uint(max_entries, 10);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

static volatile int counter = 3;
int total;
const volatile u64 limit = 7;
struct list lists;
enum wide wide_value;
outer_t *outer;
outer_ptr outer_const;
struct tagged tag;
#ifdef NO_EXTERN /* BTF_LOAD takes no externals; a loader resolves them first */
#define some_kfunc(x) ((void)(x))
#define LINUX_KERNEL_VERSION 5
#define HAVE_KFUNC 0
#else
extern void some_kfunc(int x) __attribute__((section(".ksyms"), weak));
extern int LINUX_KERNEL_VERSION __attribute__((section(".kconfig")));
#define HAVE_KFUNC (some_kfunc != (void *)0)
#endif

static void *(*lookup)(void *map, const void *key) = (void *)1;

static __attribute__((noinline)) int helper(struct tagged *t, int z)
{
	return t->y + z + counter;
}

__attribute__((noinline)) int global_helper(int a)
{
	return a * 2 + limit;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	u32 key = prev->pid;
	u64 *count = lookup(&counts, &key);

	if (count)
		*count += 1;
	if (HAVE_KFUNC)
		some_kfunc(key);
	total += helper(&tag, prev->parent->pid) + global_helper(total) + LINUX_KERNEL_VERSION;
	total += outer->in[1].a + outer_const->u.x + lists.grid[1][2][3] + wide_value;
	return 0;
}

SEC("?xdp")
int on_packet(void *ctx)
{
	return global_helper(total);
}

SEC("license") char _license[] = "Dual BSD/GPL";
