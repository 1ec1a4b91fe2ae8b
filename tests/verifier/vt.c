// SPDX-License-Identifier: BSD-2-Clause
// See vt.h.
#include "vt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "inlay/inlay.h"
#include "isa/uapi.h"
#include "object/helper.h"
#include "object/instance.h"
#include "object/progtype.h"
#include "verifier/verifier.h"

#define INNER_ARRAY (-1)

static const struct {
	u32 type, key, value, entries, flags;
	int inner; /* map of maps: made like this one */
} map_rows[VT_MAPS] = {
	[1] = { BPF_MAP_TYPE_ARRAY, 4, 48, 1, 0 },
	[2] = { BPF_MAP_TYPE_HASH, 8, 8, 16, 0 },
	[3] = { BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 },
	[4] = { BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0 },
	[5] = { BPF_MAP_TYPE_ARRAY, 4, 48, 1, BPF_F_RDONLY_PROG },
	[7] = { BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0 },
	[8] = { BPF_MAP_TYPE_ARRAY, 4, 64, 8, 0 },
	[9] = { BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 4, 0, 7 },
	[10] = { BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 4, 0, 2 },
	[11] = { BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 4, 0, 2 },
	[12] = { BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 4, 0, INNER_ARRAY },
};

static long bpf_call(struct inlay *inlay, int cmd, union bpf_attr *attr, u32 size)
{
	long ret;

	if (inlay)
		return inlay_bpf(inlay, cmd, attr, size);
	ret = syscall(SYS_bpf, cmd, attr, size);
	return ret < 0 ? -errno : ret;
}

/* Descriptor of the map that gives map n its inner shape; own: to be closed. */
static int inner_of(struct inlay *inlay, const int *fds, int n, bool *ret_own)
{
	union bpf_attr a = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 4,
			     .map_flags = BPF_F_INNER_MAP };

	*ret_own = map_rows[n].inner < 0;
	return *ret_own ? (int)bpf_call(inlay, BPF_MAP_CREATE, &a, 72) : fds[map_rows[n].inner];
}

static int make_map(struct inlay *inlay, const int *fds, int n)
{
	bool own = false;
	union bpf_attr a;
	long fd;

	memset(&a, 0, sizeof(a));
	if (map_rows[n].inner)
		a.inner_map_fd = (u32)inner_of(inlay, fds, n, &own);
	a.map_type = map_rows[n].type;
	a.key_size = map_rows[n].key;
	a.value_size = map_rows[n].value;
	a.max_entries = map_rows[n].entries;
	a.map_flags = map_rows[n].flags;
	fd = bpf_call(inlay, BPF_MAP_CREATE, &a, 72);
	if (own)
		close((int)a.inner_map_fd);
	if (fd < 0)
		return -1;
	if (map_rows[n].flags & BPF_F_RDONLY_PROG) {
		memset(&a, 0, sizeof(a));
		a.map_fd = fd;
		bpf_call(inlay, BPF_MAP_FREEZE, &a, sizeof(a.map_fd));
	}
	return (int)fd;
}

static void find_kernel(struct vt *t)
{
	struct utsname u;
	struct vt_verdict v;
	const struct bpf_insn ret0[] = { ISA_MOV(0, 0), ISA_RETURN() };

	uname(&u);
	if (strncmp(u.release, "6.18.", 5)) {
		snprintf(t->why_not, sizeof(t->why_not), "the kernel is %.40s, not 6.18", u.release);
		return;
	}
	t->kernel = true;
	vt_ask_kernel(t, ret0, 2, BPF_PROG_TYPE_SOCKET_FILTER, 0, 0, &v);
	if (v.err) {
		t->kernel = false;
		snprintf(t->why_not, sizeof(t->why_not), "bpf(2) says %s", strerror(-v.err));
	}
	vt_verdict_fini(&v);
}

void vt_init(struct vt *t)
{
	int err;

	memset(t, 0, sizeof(*t));
	err = inlay_create(NULL, &t->inlay);
	if (err) {
		printf("Bail out! no engine: %s\n", strerror(-err));
		exit(1);
	}
	find_kernel(t);
	for (int i = 0; i < VT_MAPS; i++) {
		t->fd[i] = t->kernel_fd[i] = -1;
		if (!map_rows[i].type)
			continue;
		t->fd[i] = make_map(t->inlay, t->fd, i);
		if (t->kernel)
			t->kernel_fd[i] = make_map(NULL, t->kernel_fd, i);
	}
}

void vt_fini(struct vt *t)
{
	for (int i = 0; i < VT_MAPS; i++) {
		if (t->fd[i] >= 0)
			close(t->fd[i]);
		if (t->kernel_fd[i] >= 0)
			close(t->kernel_fd[i]);
	}
	inlay_destroy(t->inlay);
}

/* ---- text ---- */

static bool symbol(void *ctx, const char *name, struct isa_symbol *ret)
{
	static const char digits[] = "0123456789abc";
	const char *d = strncmp(name, "map", 3) || !name[3] || name[4] ? NULL : strchr(digits, name[3]);

	if (!d || d == digits)
		return false;
	*ret = (struct isa_symbol){ .src = BPF_PSEUDO_MAP_FD, .imm = (s32)(d - digits) };
	return true;
}

static bool callee(void *ctx, const char *name, struct isa_callee *ret)
{
	long n = strtol(name, NULL, 10);

	if (n < 900000)
		return false;
	*ret = (struct isa_callee){ .src = BPF_PSEUDO_KFUNC_CALL, .imm = (s32)n };
	return true;
}

bool vt_assemble(const char *text, struct isa_code *ret_code)
{
	const struct isa_symbols syms = { NULL, symbol, callee };
	struct strbuf err = STRBUF_INIT;
	int ret = isa_assemble(text, &syms, ret_code, &err);

	if (ret)
		printf("# assembler: %s\n", strbuf_str(&err));
	strbuf_fini(&err);
	return !ret;
}

/* Maps are named by their number in the instructions; here they get their descriptors. */
static struct bpf_insn *bind_maps(const int *fd, const struct bpf_insn *insns, u32 n)
{
	struct bpf_insn *copy = malloc(n * sizeof(*copy));

	memcpy(copy, insns, n * sizeof(*copy));
	for (u32 i = 0; i < n; i++)
		if (copy[i].code == (BPF_LD | BPF_IMM | BPF_DW)) {
			if ((copy[i].src_reg == BPF_PSEUDO_MAP_FD || copy[i].src_reg == BPF_PSEUDO_MAP_VALUE) &&
			    copy[i].imm > 0 && copy[i].imm < VT_MAPS)
				copy[i].imm = fd[copy[i].imm];
			i++;
		}
	return copy;
}

static void last_line(struct vt_verdict *v)
{
	char *p = v->log;

	v->reason[0] = 0;
	while (p && *p) {
		char *end = strchr(p, '\n');
		size_t n = end ? (size_t)(end - p) : strlen(p);

		if (n && strncmp(p, "processed ", 10) && strncmp(p, "verification time", 17) &&
		    strncmp(p, "stack depth", 11))
			snprintf(v->reason, sizeof(v->reason), "%.*s", (int)n, p);
		p = end ? end + 1 : NULL;
	}
}

/* ---- verdicts ---- */

static bool any_u32(const struct prog *prog, s32 off, u32 size, bool write, struct ctx_access *info)
{
	info->reg_type = SCALAR_VALUE;
	return off >= 0 && off + size <= 64 && off % size == 0 && size == 4 && !write && off >= 8;
}

static void any_ret(const struct prog *prog, struct ret_range *ret)
{
	ret->any = true;
}

static const struct prog_type_ops other_type = {
	.name = "other",
	.helper_groups = HELPERS_BASE | HELPERS_TRACING,
	.is_valid_access = any_u32,
	.ret_range = any_ret,
};

void vt_judge_keep(struct vt *t, const struct bpf_insn *insns, u32 n, u32 type, u32 flags, u32 log_level,
		   struct vt_verdict *ret, struct prog **ret_prog)
{
	struct prog *p = prog_create(t->inlay);
	struct strbuf log = STRBUF_INIT;
	struct vrf_opts o = { .log_level = log_level ? log_level : 1, .log = &log };
	struct vrf_stats stats = { 0 };

	memset(ret, 0, sizeof(*ret));
	p->type = type;
	p->ops = prog_type_ops(type) ? prog_type_ops(type) : &other_type;
	p->gpl_compatible = true;
	p->insns = bind_maps(t->fd, insns, n);
	p->nr_insns = n;
	p->orig = malloc(n * sizeof(*insns));
	memcpy(p->orig, p->insns, n * sizeof(*insns));
	p->nr_orig = n;
	o.test_state_freq = flags & BPF_F_TEST_STATE_FREQ;
	o.strict_alignment = flags & BPF_F_STRICT_ALIGNMENT;
	ret->err = vrf_check(p, &o, &stats);
	ret->insns = stats.insns_processed;
	ret->log = strdup(strbuf_str(&log));
	last_line(ret);
	strbuf_fini(&log);
	if (ret_prog && !ret->err)
		*ret_prog = p;
	else
		obj_put(&p->obj);
}

void vt_judge(struct vt *t, const struct bpf_insn *insns, u32 n, u32 type, u32 flags, u32 log_level,
	      struct vt_verdict *ret)
{
	vt_judge_keep(t, insns, n, type, flags, log_level, ret, NULL);
}

void vt_ask_kernel(struct vt *t, const struct bpf_insn *insns, u32 n, u32 type, u32 flags, u32 log_level,
		   struct vt_verdict *ret)
{
	static char buf[4 << 20];
	struct bpf_insn *bound = bind_maps(t->kernel_fd, insns, n);
	union bpf_attr a;
	char *stats;
	long fd;

	memset(ret, 0, sizeof(*ret));
	memset(&a, 0, sizeof(a));
	a.prog_type = type;
	a.insns = (u64)(uintptr_t)bound;
	a.insn_cnt = n;
	a.license = (u64)(uintptr_t)"GPL";
	a.prog_flags = flags;
	if (log_level) {
		buf[0] = 0;
		a.log_level = log_level;
		a.log_buf = (u64)(uintptr_t)buf;
		a.log_size = sizeof(buf);
	}
	fd = syscall(SYS_bpf, BPF_PROG_LOAD, &a, 128);
	ret->err = fd < 0 ? -errno : 0;
	if (fd >= 0)
		close((int)fd);
	free(bound);
	ret->log = strdup(log_level ? buf : "");
	stats = strstr(ret->log, "\nprocessed ");
	if (!stats && !strncmp(ret->log, "processed ", 10))
		stats = ret->log - 1;
	if (stats)
		sscanf(stats + 1, "processed %u", &ret->insns);
	last_line(ret);
}

void vt_verdict_fini(struct vt_verdict *v)
{
	free(v->log);
	v->log = NULL;
}
