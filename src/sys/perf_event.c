// SPDX-License-Identifier: BSD-2-Clause
/*
 * perf_event_open(2) for software BPF_OUTPUT events: the ring behind bpf_perf_event_output().
 *
 * The ring is perf's: a control page, then 2^n pages of records; the writer moves data_head, the
 * reader data_tail. One vCPU writes, and a vCPU is one thread at a time, so writers only ever nest
 * (a program in a signal handler on top of another). Hence:
 *  1. Room is reserved by compare-and-swap of `head`; a nested writer reserves behind the one it
 * interrupted.
 *  2. data_head moves only when the outermost writer is done, to everything reserved until then:
 * the reader never sees a record that is still being filled in.
 *  3. The control page is the user's to write: of it only data_tail is read, and a wild value only
 * makes the ring full.
 */
#include "object/perf_event.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env/env.h"
#include "rcu/rcu.h"
#include "sys/sys_int.h"

#define SAMPLE_KNOWN                                                                               \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |             \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)
#define RING_MAX_PAGES (1u << 18)
#define RECORD_MAX     65528 /* what a 16-bit size can say, in whole words */

struct ring {
	struct perf_event_mmap_page *page;
	u8 *data;
	u64 size;	/* bytes of data, a power of two; 0: only the control page */
	bool overwrite; /* the reader cannot move data_tail: old records go */
};

struct event {
	struct perf_event pe;
	struct rcu_cb rcu;
	struct memfile mem;
	struct ring *ring; /* published once, by the first mmap; freed with the event */
	u64 sample_type;
	u64 id;
	u32 wakeup_events;    /* records a wake-up, where not watermark */
	u32 wakeup_watermark; /* bytes a wake-up; 0: by records */
	bool enabled, paused, wake_due;
	/* writers' side; atomic because of nesting */
	u64 head, lost, wake_head;
	u32 nest, since_wake;
};

static struct event *event_of(struct obj *obj)
{
	return container_of_(perf_event_of(obj), struct event, pe);
}

/* ---- writing ---- */

struct cursor {
	const struct ring *ring;
	u64 at;
};

static void put(struct cursor *cur, const void *src, u32 n)
{
	u64 off = cur->at & (cur->ring->size - 1), first = min_of((u64)n, cur->ring->size - off);

	memcpy(cur->ring->data + off, src, first);
	memcpy(cur->ring->data, (const u8 *)src + first, n - first);
	cur->at += n;
}

static void put_u64(struct cursor *cur, u64 v)
{
	put(cur, &v, sizeof(v));
}

static u32 fixed_size(u64 sample_type)
{
	return 8 * __builtin_popcountll(sample_type & ~(u64)PERF_SAMPLE_RAW);
}

/* The fields of a sample in perf's order. */
static void put_sample(struct cursor *cur, const struct event *ev, const void *data, u32 n,
		       u32 total)
{
	struct perf_event_header h = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, total};
	const struct env_task *task = env_tls.current;
	u32 raw = total - sizeof(h) - fixed_size(ev->sample_type) - sizeof(u32);
	u64 type = ev->sample_type, pad = 0;
	u32 pair[2];

	put(cur, &h, sizeof(h));
	if (type & PERF_SAMPLE_IDENTIFIER)
		put_u64(cur, ev->id);
	if (type & PERF_SAMPLE_IP)
		put_u64(cur, 0);
	if (type & PERF_SAMPLE_TID) {
		pair[0] = task ? task->tgid : 0;
		pair[1] = task ? task->tid : 0;
		put(cur, pair, sizeof(pair));
	}
	if (type & PERF_SAMPLE_TIME)
		put_u64(cur, env_clock_ns(ev->pe.obj.inlay->env));
	if (type & PERF_SAMPLE_ADDR)
		put_u64(cur, 0);
	if (type & PERF_SAMPLE_ID)
		put_u64(cur, ev->id);
	if (type & PERF_SAMPLE_STREAM_ID)
		put_u64(cur, ev->id);
	if (type & PERF_SAMPLE_CPU)
		put_u64(cur, ev->pe.cpu);
	if (type & PERF_SAMPLE_PERIOD)
		put_u64(cur, 1);
	if (type & PERF_SAMPLE_RAW) {
		put(cur, &raw, sizeof(raw));
		put(cur, data, n);
		put(cur, &pad, raw - n);
	}
}

struct lost_record {
	struct perf_event_header h;
	u64 id, lost;
};

/* Room for size bytes, and for a LOST record before them if lost is not 0. False: full. */
static bool reserve(struct event *ev, const struct ring *ring, u32 size, u64 lost, u64 *ret_at)
{
	u64 head = __atomic_load_n(&ev->head, __ATOMIC_RELAXED), tail, need = size;

	if (lost)
		need += sizeof(struct lost_record);
	do {
		/* pairs with the reader's store after it has read the records */
		tail = __atomic_load_n(&ring->page->data_tail, __ATOMIC_ACQUIRE);
		if (need > ring->size)
			return false;
		if (!ring->overwrite &&
		    (head - tail > ring->size || ring->size - (head - tail) < need))
			return false;
	} while (!__atomic_compare_exchange_n(&ev->head, &head, head + need, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*ret_at = head;
	return true;
}

static void publish(struct event *ev, const struct ring *ring)
{
	u64 head;

	if (__atomic_sub_fetch(&ev->nest, 1, __ATOMIC_RELAXED))
		return;
	/* again if a nested writer came and went between load and store: data_head must not go back
	 */
	do {
		head = __atomic_load_n(&ev->head, __ATOMIC_RELAXED);
		__atomic_store_n(&ring->page->data_head, head, __ATOMIC_RELEASE);
	} while (head != __atomic_load_n(&ev->head, __ATOMIC_RELAXED));
}

static void wake(struct event *ev)
{
	bool due;

	if (ev->wakeup_watermark)
		due = ev->head - ev->wake_head >= ev->wakeup_watermark;
	else
		due = ++ev->since_wake >= ev->wakeup_events;
	if (!due)
		return;
	ev->since_wake = 0;
	ev->wake_head = ev->head;
	__atomic_store_n(&ev->wake_due, true, __ATOMIC_RELEASE);
	obj_wake(&ev->pe.obj);
}

static long output(struct perf_event *pe, const void *data, u32 n)
{
	struct event *ev = container_of_(pe, struct event, pe);
	const struct ring *ring = __atomic_load_n(&ev->ring, __ATOMIC_ACQUIRE);
	u32 fixed = sizeof(struct perf_event_header) + fixed_size(ev->sample_type), size = fixed;
	struct lost_record lr;
	struct cursor cur;
	u64 lost;

	if (ev->sample_type & PERF_SAMPLE_RAW)
		size = fixed + align_up((u64)n + sizeof(u32), 8);
	if (n > RECORD_MAX || size > RECORD_MAX)
		return -E2BIG;
	if (!__atomic_load_n(&ev->enabled, __ATOMIC_RELAXED))
		return -EOPNOTSUPP;
	if (!ring || !ring->size)
		return -ENOSPC;
	if (ev->paused) {
		__atomic_add_fetch(&ev->lost, 1, __ATOMIC_RELAXED);
		return -ENOSPC;
	}
	__atomic_add_fetch(&ev->nest, 1, __ATOMIC_RELAXED);
	lost = __atomic_exchange_n(&ev->lost, 0, __ATOMIC_RELAXED);
	if (!reserve(ev, ring, size, lost, &cur.at)) {
		__atomic_add_fetch(&ev->lost, lost + 1, __ATOMIC_RELAXED);
		publish(ev, ring);
		return -ENOSPC;
	}
	cur.ring = ring;
	if (lost) {
		lr = (struct lost_record){{PERF_RECORD_LOST, 0, sizeof(lr)}, ev->id, lost};
		put(&cur, &lr, sizeof(lr));
	}
	put_sample(&cur, ev, data, n, size);
	publish(ev, ring);
	wake(ev);
	return 0;
}

/* ---- the object ---- */

static void destroy(struct rcu_cb *cb)
{
	struct event *ev = container_of_(cb, struct event, rcu);

	memfile_fini(&ev->mem);
	free(ev->ring);
	free(ev);
}

static void release(struct obj *obj)
{
	rcu_defer(&event_of(obj)->rcu, destroy);
}

static struct memfile *memfile(struct obj *obj)
{
	return &event_of(obj)->mem;
}

/* The first mapping decides the size. */
static int make_ring(struct event *ev, u64 len, u64 page, bool overwrite)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	int err;

	if (!ring)
		return -ENOMEM;
	if (ftruncate(ev->mem.fd, len)) {
		err = -errno;
		goto err_free;
	}
	ev->mem.addr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, ev->mem.fd, 0);
	if (ev->mem.addr == MAP_FAILED) {
		err = -errno;
		ev->mem.addr = NULL;
		goto err_free;
	}
	ev->mem.size = len;
	fcntl(ev->mem.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	ring->page = ev->mem.addr;
	ring->page->data_offset = page;
	ring->page->data_size = len - page;
	ring->data = (u8 *)ev->mem.addr + page;
	ring->size = len - page;
	ring->overwrite = overwrite;
	if (!ev->wakeup_events && !ev->wakeup_watermark)
		ev->wakeup_watermark = ring->size / 2; /* perf's default */
	__atomic_store_n(&ev->ring, ring, __ATOMIC_RELEASE);
	return 0;

err_free:
	free(ring);
	return err;
}

static int mmap_check(struct obj *obj, u64 off, u64 len, int prot, bool shared)
{
	struct event *ev = event_of(obj);
	u64 page = sysconf(_SC_PAGESIZE), nr = align_up(len, page) / page - 1;

	if (!shared || off || (nr && !is_pow2(nr)))
		return -EINVAL;
	if (nr > RING_MAX_PAGES)
		return -ENOMEM;
	if (ev->ring)
		return ev->mem.size == (nr + 1) * page ? 0 : -EINVAL;
	return make_ring(ev, (nr + 1) * page, page, !(prot & PROT_WRITE));
}

static bool readable(struct obj *obj)
{
	struct event *ev = event_of(obj);
	const struct ring *ring = __atomic_load_n(&ev->ring, __ATOMIC_ACQUIRE);

	if (!ring || !__atomic_load_n(&ev->wake_due, __ATOMIC_ACQUIRE))
		return false;
	if (__atomic_load_n(&ring->page->data_tail, __ATOMIC_RELAXED) !=
	    __atomic_load_n(&ring->page->data_head, __ATOMIC_RELAXED))
		return true;
	__atomic_store_n(&ev->wake_due, false, __ATOMIC_RELAXED);
	return false;
}

static long ioctl_event(struct obj *obj, unsigned long req, unsigned long arg)
{
	struct event *ev = event_of(obj);

	switch (req) {
	case PERF_EVENT_IOC_ENABLE:
		__atomic_store_n(&ev->enabled, true, __ATOMIC_RELAXED);
		return 0;
	case PERF_EVENT_IOC_DISABLE:
		__atomic_store_n(&ev->enabled, false, __ATOMIC_RELAXED);
		return 0;
	case PERF_EVENT_IOC_RESET:
		return 0; /* its count is always 0 */
	case PERF_EVENT_IOC_ID:
		return user_write(&user_mem_self, arg, &ev->id, sizeof(ev->id));
	case PERF_EVENT_IOC_PAUSE_OUTPUT:
		if (!ev->ring)
			return -EINVAL;
		ev->paused = arg;
		return 0;
	case PERF_EVENT_IOC_SET_BPF:
	case PERF_EVENT_IOC_SET_FILTER:
	case PERF_EVENT_IOC_PERIOD:
	case PERF_EVENT_IOC_REFRESH:
	case PERF_EVENT_IOC_SET_OUTPUT:
		return -EINVAL; /* not for an event that only carries output */
	}
	return -ENOTTY;
}

static const struct obj_ops event_ops = {
	.release = release,
	.memfile = memfile,
	.mmap_check = mmap_check,
	.readable = readable,
	.ioctl = ioctl_event,
};

/* ---- perf_event_open ---- */

static int copy_attr(const struct user_mem *um, u64 uattr, struct perf_event_attr *attr)
{
	u32 size, ksize = sizeof(*attr);
	int err;

	memset(attr, 0, sizeof(*attr));
	if (user_read(um, &size, uattr + offsetof(struct perf_event_attr, size), sizeof(size)))
		return -EFAULT;
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	err = size < PERF_ATTR_SIZE_VER0 ? -E2BIG : user_check_tail(um, uattr, ksize, size);
	if (err == -E2BIG)
		user_write(um, uattr + offsetof(struct perf_event_attr, size), &ksize,
			   sizeof(ksize));
	return err ? err : user_read(um, attr, uattr, min_of(size, ksize));
}

static int check_attr(struct inlay *inlay, const struct perf_event_attr *attr, int pid, int cpu,
		      int group_fd, unsigned long flags)
{
	if (flags & ~(unsigned long)(PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT |
				     PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC))
		return -EINVAL;
	if (attr->type != PERF_TYPE_SOFTWARE || attr->config != PERF_COUNT_SW_BPF_OUTPUT) {
		log_to(&inlay->log, LOG_ERR,
		       "perf event of type %u, config %llu: the user engine has BPF output events "
		       "only",
		       attr->type, (unsigned long long)attr->config);
		return -EOPNOTSUPP;
	}
	if (attr->sample_type & ~(u64)SAMPLE_KNOWN || attr->sample_id_all || attr->write_backward) {
		log_to(&inlay->log, LOG_ERR, "perf event: sample_type 0x%llx%s%s is not supported",
		       (unsigned long long)attr->sample_type,
		       attr->sample_id_all ? ", sample_id_all" : "",
		       attr->write_backward ? ", write_backward" : "");
		return -EOPNOTSUPP;
	}
	if (pid == -1 && cpu == -1)
		return -EINVAL;
	if (pid != -1 || group_fd != -1 || flags & (PERF_FLAG_FD_OUTPUT | PERF_FLAG_PID_CGROUP)) {
		log_to(&inlay->log, LOG_ERR,
		       "perf event: only events of a whole CPU, not of a task or group");
		return -EOPNOTSUPP;
	}
	return cpu < 0 || (u32)cpu >= env_nr_cpus(inlay->env) ? -EINVAL : 0;
}

static int create(struct inlay *inlay, const struct perf_event_attr *attr, u32 cpu,
		  struct event **ret_event)
{
	static u64 next_id;
	struct event *ev = calloc(1, sizeof(*ev));
	int err;

	if (!ev)
		return -ENOMEM;
	err = memfile_init(&ev->mem, "inlay-perf", 0);
	if (err) {
		free(ev);
		return err;
	}
	ev->pe.cpu = cpu;
	ev->pe.output = output;
	ev->id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
	ev->sample_type = attr->sample_type;
	ev->enabled = !attr->disabled;
	if (attr->watermark)
		ev->wakeup_watermark = attr->wakeup_watermark;
	else
		ev->wakeup_events = attr->wakeup_events;
	obj_init(&ev->pe.obj, inlay, OBJ_PERF_EVENT, &event_ops);
	*ret_event = ev;
	return 0;
}

long sys_perf_event_open(struct inlay *inlay, const struct user_mem *um, u64 uattr, int pid,
			 int cpu, int group_fd, unsigned long flags)
{
	struct perf_event_attr attr;
	struct event *ev;
	int fd, err;

	rcu_thread_enter();
	inlay->fds->reap(inlay);
	err = copy_attr(um, uattr, &attr);
	if (!err)
		err = check_attr(inlay, &attr, pid, cpu, group_fd, flags);
	if (!err)
		err = create(inlay, &attr, cpu, &ev);
	if (err)
		return err;
	fd = inlay->fds->install(inlay, &ev->pe.obj);
	obj_put(&ev->pe.obj);
	if (fd >= 0 && !(flags & PERF_FLAG_FD_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	return fd;
}
