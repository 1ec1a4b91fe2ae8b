// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory for code. A region is a memfd mapped twice; it is cut into granules of 64 bytes, of which a bitmap says which
 * are in use and another where blocks begin. Programs are small and many share a page, so there is nothing to protect
 * and unprotect: writing goes through the one mapping, running through the other.
 *
 * Guarantees
 *  1. A granule not in use holds trapping instructions only; so does the unused end of a block.
 *  2. jit_mem_find() takes no lock and may be called by a fault handler: a thread that runs a block keeps it alive, and
 *     bits of other blocks that change meanwhile do not matter to it.
 *  3. A child after fork() neither writes nor frees what it shares with its parent.
 *  4. After jit_mem_sync() every thread that comes to the block runs what was written last. Data caches are cleaned by the
 *     address it was written at, instruction caches made to forget by the address it runs at (each may be indexed by
 *     address), and, where processors fetch ahead of that, all that run this process are made to start afresh. Emulators of
 *     a process see writes through the mapping that runs only, and go on with what they translated before: whether this is
 *     one is found out by trying, and the mapping is then made anew in one step, since other threads may be running in it.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arch.h"
#include "base/probe.h"
#include "exec/jit/jit.h"

/* so that from every byte of a region that lies near a call of a helper reaches */
#define REGION_MAX   (u32)min_of((u64)128 << 20, ARCH_CALL_REACH / 4)
#define REGION_MIN   (2u << 20)
#define REGIONS	     6
#define FILL_STEP    (64u << 10) /* bytes made trapping at a time, before their first use */
#define TRAP	     0xcc	 /* int3; on arm64 0xcccccccc is no instruction either */
#define NEAR	     (ARCH_CALL_REACH / 2)
#define WORD_BITS    64

#ifndef MFD_EXEC
#define MFD_EXEC 0x10
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct region {
	u8 *rw;
	const u8 *rx;
	u32 size;
	u32 filled; /* bytes from the start that were made trapping */
	u32 hint;   /* no free granule below */
	u64 *used, *starts; /* bitmaps, one bit a granule; starts is read without the lock */
	bool foreign; /* a parent's */
	int fd;	      /* to map it anew; -1: writing is enough */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all but what jit_mem_find() reads */
static struct region regions[REGIONS];
static u32 nr_regions; /* published after the region it counts */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int init_err;

static bool test_bit(const u64 *map, u32 i)
{
	return map[i / WORD_BITS] >> (i % WORD_BITS) & 1;
}

static void set_bits(u64 *map, u32 from, u32 n, bool on)
{
	u32 i;

	for (i = from; i < from + n; i++) {
		if (on)
			map[i / WORD_BITS] |= 1ULL << (i % WORD_BITS);
		else
			map[i / WORD_BITS] &= ~(1ULL << (i % WORD_BITS));
	}
}

static void set_start(struct region *r, u32 i, bool on)
{
	if (on)
		__atomic_fetch_or(&r->starts[i / WORD_BITS], 1ULL << (i % WORD_BITS), __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(&r->starts[i / WORD_BITS], ~(1ULL << (i % WORD_BITS)), __ATOMIC_RELEASE);
}

static int open_memfd(void)
{
	int fd = memfd_create("inlay-jit", MFD_CLOEXEC | MFD_EXEC);

	/* a kernel before 6.3 does not know MFD_EXEC, and needs none */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("inlay-jit", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* An executable mapping as near to our own code as there is room. */
static void *map_near(int fd, u32 size)
{
	u64 self = (u64)jit_mem_init & ~(u64)(REGION_MIN - 1), dist;
	void *p;

	for (dist = REGION_MAX; dist < NEAR; dist += REGION_MAX / 2) {
		p = mmap((void *)(self - dist), size, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
		if (p != MAP_FAILED && p == (void *)(self - dist))
			return p;
		if (p != MAP_FAILED)
			munmap(p, size);
		else if (errno != EEXIST && errno != ENOMEM && errno != EINVAL)
			return MAP_FAILED;
		p = mmap((void *)(self + dist), size, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
		if (p != MAP_FAILED && p == (void *)(self + dist))
			return p;
		if (p != MAP_FAILED)
			munmap(p, size);
	}
	return mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
}

static void sync_caches(const struct region *r, u32 off, u32 size)
{
	if (ARCH_SYNC_CORE) {
		__builtin___clear_cache((char *)r->rw + off, (char *)r->rw + off + size);
		__builtin___clear_cache((char *)r->rx + off, (char *)r->rx + off + size);
	}
}

/* Code that was run and then written anew runs as it was. Uses the first bytes of a region nobody has yet. */
static bool goes_stale(const struct region *r)
{
	u32 (*returns)(void);
	u32 n, ret = 0;

	memcpy(&returns, &r->rx, sizeof(returns));
	for (n = 1; n <= 2; n++) {
		arch_put_return(r->rw, n);
		sync_caches(r, 0, 8);
		ret = returns();
	}
	return ret != 2;
}

static bool resume_fault(u64 pc, void *ucv);

static int map_region(struct region *r, u32 size)
{
	u32 words = size / JIT_GRANULE / WORD_BITS;
	void *rw = MAP_FAILED, *rx = MAP_FAILED, *maps;
	int fd = open_memfd(), err;

	if (fd < 0)
		return fd;
	maps = mmap(NULL, 2 * words * sizeof(u64), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (maps == MAP_FAILED || ftruncate(fd, size))
		goto err_close;
	rw = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (rw == MAP_FAILED)
		goto err_close;
	rx = map_near(fd, size);
	if (rx == MAP_FAILED)
		goto err_close;
	err = probe_add_range(rx, (u8 *)rx + size, resume_fault);
	if (err) {
		errno = -err;
		goto err_close;
	}
	*r = (struct region){ .rw = rw, .rx = rx, .size = size, .used = maps, .starts = (u64 *)maps + words, .fd = fd };
	if (!goes_stale(r)) {
		close(fd);
		r->fd = -1;
	}
	return 0;
err_close:
	err = errno ? -errno : -ENOMEM;
	if (maps != MAP_FAILED)
		munmap(maps, 2 * words * sizeof(u64));
	if (rw != MAP_FAILED)
		munmap(rw, size);
	if (rx != MAP_FAILED)
		munmap(rx, size);
	close(fd);
	return err;
}

static int add_region(void)
{
	struct rlimit limit;
	u32 size = REGION_MAX;
	int err = -ENOMEM;

	if (nr_regions == REGIONS)
		return -ENOMEM;
	/* growing a file beyond this limit is answered with a deadly signal */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < size)
		size = limit.rlim_cur < REGION_MIN ? 0 : 1u << (31 - __builtin_clz((u32)limit.rlim_cur));
	for (; size >= REGION_MIN; size /= 4) {
		err = map_region(&regions[nr_regions], size);
		if (err != -ENOMEM)
			break;
	}
	if (!err)
		__atomic_store_n(&nr_regions, nr_regions + 1, __ATOMIC_RELEASE);
	return err;
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	u32 i;

	for (i = 0; i < nr_regions; i++)
		regions[i].foreign = true;
	pthread_mutex_unlock(&lock);
}

static void init(void)
{
	/* a kernel without it has to do with what else makes processors start afresh: every change of threads */
	if (ARCH_SYNC_CORE)
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	init_err = add_region();
	if (!init_err)
		init_err = -pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	if (!init_err)
		init_err = probe_init();
}

int jit_mem_init(void)
{
	pthread_once(&once, init);
	return init_err;
}

/* First of n free granules in a row, or -1. */
static s64 find_free(struct region *r, u32 n)
{
	u32 nr = r->size / JIT_GRANULE, i = r->hint, run = 0;
	bool first = true;

	for (; i < nr; i++) {
		if (i % WORD_BITS == 0 && r->used[i / WORD_BITS] == U64_MAX) {
			run = 0;
			i += WORD_BITS - 1;
			continue;
		}
		if (test_bit(r->used, i)) {
			run = 0;
			continue;
		}
		if (first)
			r->hint = i;
		first = false;
		if (++run == n)
			return i + 1 - n;
	}
	return -1;
}

static bool take(struct region *r, u32 n, struct jit_block *block)
{
	s64 at = find_free(r, n);
	u32 end;

	if (at < 0)
		return false;
	end = (u32)min_of(align_up((at + n) * JIT_GRANULE, FILL_STEP), (u64)r->size);
	if (end > r->filled) {
		memset(r->rw + r->filled, TRAP, end - r->filled);
		r->filled = end;
	}
	set_bits(r->used, at, n, true);
	if (r->hint == at)
		r->hint = at + n;
	set_start(r, at, true);
	*block = (struct jit_block){ .rw = r->rw + at * JIT_GRANULE, .rx = r->rx + at * JIT_GRANULE, .size = n * JIT_GRANULE };
	return true;
}

int jit_mem_alloc(u32 size, struct jit_block *ret_block)
{
	u32 i, n = (size + JIT_GRANULE - 1) / JIT_GRANULE;
	int err = jit_mem_init();

	if (err)
		return err;
	if (!n || size > REGION_MAX)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	for (i = 0; i < nr_regions; i++)
		if (!regions[i].foreign && take(&regions[i], n, ret_block))
			break;
	if (i == nr_regions) {
		err = add_region();
		if (!err && !take(&regions[nr_regions - 1], n, ret_block))
			err = -ENOMEM;
	}
	pthread_mutex_unlock(&lock);
	return err ? -ENOMEM : 0;
}

static struct region *region_of(const void *rx)
{
	u32 i, n = __atomic_load_n(&nr_regions, __ATOMIC_ACQUIRE);

	for (i = 0; i < n; i++)
		if ((const u8 *)rx >= regions[i].rx && (const u8 *)rx < regions[i].rx + regions[i].size)
			return &regions[i];
	return NULL;
}

void jit_mem_sync(const struct jit_block *block)
{
	const struct region *r = region_of(block->rx);
	u64 page = (u64)sysconf(_SC_PAGESIZE), from = (u64)(block->rx - r->rx), to = align_up(from + block->size, page);

	sync_caches(r, (u32)from, block->size);
	if (ARCH_SYNC_CORE)
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	from &= ~(page - 1);
	if (r->fd >= 0)
		mmap((void *)(r->rx + from), to - from, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, r->fd, (off_t)from);
}

/* Granules from .. from + n of the block become free; their bytes trap from now on. */
static void give_back(struct region *r, u32 from, u32 n)
{
	set_bits(r->used, from, n, false);
	r->hint = min_of(r->hint, from);
}

void jit_mem_trim(struct jit_block *block, u32 used)
{
	struct region *r = region_of(block->rx);
	u32 keep = (used + JIT_GRANULE - 1) / JIT_GRANULE, at, n = block->size / JIT_GRANULE;

	if (!r || keep >= n || !keep)
		return;
	at = (block->rx - r->rx) / JIT_GRANULE;
	pthread_mutex_lock(&lock);
	give_back(r, at + keep, n - keep);
	pthread_mutex_unlock(&lock);
	block->size = keep * JIT_GRANULE;
}

void jit_mem_free(struct jit_block *block)
{
	struct region *r = block->size ? region_of(block->rx) : NULL;
	u32 at;

	if (!r || r->foreign)
		return;
	at = (block->rx - r->rx) / JIT_GRANULE;
	memset(block->rw, TRAP, block->size);
	pthread_mutex_lock(&lock);
	set_start(r, at, false);
	give_back(r, at, block->size / JIT_GRANULE);
	pthread_mutex_unlock(&lock);
	*block = (struct jit_block){ 0 };
}

const u8 *jit_mem_find(u64 pc)
{
	const struct region *r = region_of((const void *)pc);
	u32 i;
	s64 word;
	u64 bits;

	if (!r)
		return NULL;
	i = (pc - (u64)r->rx) / JIT_GRANULE;
	word = i / WORD_BITS;
	bits = __atomic_load_n(&r->starts[word], __ATOMIC_ACQUIRE) & (U64_MAX >> (WORD_BITS - 1 - i % WORD_BITS));
	while (!bits && --word >= 0)
		bits = __atomic_load_n(&r->starts[word], __ATOMIC_ACQUIRE);
	if (!bits)
		return NULL;
	i = word * WORD_BITS + (WORD_BITS - 1 - __builtin_clzll(bits));
	return r->rx + (u64)i * JIT_GRANULE;
}

static bool resume_fault(u64 pc, void *ucv)
{
	const u8 *block = jit_mem_find(pc);
	const struct jit_head *head = (const struct jit_head *)block;
	const struct jit_fixup *fixup;
	ucontext_t *uc = ucv;
	u64 code = (u64)block + sizeof(*head);
	u32 i;

	if (!block || head->magic != JIT_MAGIC || pc - (u64)block >= head->len)
		return false;
	fixup = (const struct jit_fixup *)(block + head->fixups);
	for (i = 0; i < head->nr_fixups; i++) {
		if (pc - code == fixup[i].fault) {
			ARCH_UC_PC(uc) = code + fixup[i].resume;
			return true;
		}
	}
	return false;
}
