// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads of struct fields, judged by our walk and by the running kernel's verifier: each is a
 * three-instruction tp_btf program that loads size bytes at an offset of the task_struct it is
 * given. Verdict, message and the kind of value read must agree.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../tap.h"
#include "btf/btf.h"
#include "btf/walk.h"

static char log_buf[1 << 16];
static struct btf *btf;

static int load(u32 attach_id, u32 arg, s32 off, u32 size)
{
	u32 bpf_size = size == 1 ? BPF_B : size == 2 ? BPF_H : size == 4 ? BPF_W : BPF_DW;
	struct bpf_insn insns[] = {
		{BPF_LDX | BPF_MEM | BPF_DW, 1, 1, arg * 8, 0},
		{BPF_LDX | BPF_MEM | bpf_size, 0, 1, off, 0},
		{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
		{BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_TRACING;
	attr.expected_attach_type = BPF_TRACE_RAW_TP;
	attr.attach_btf_id = attach_id;
	attr.insns = (unsigned long)insns;
	attr.insn_cnt = ARRAY_SIZE(insns);
	attr.license = (unsigned long)"GPL";
	attr.log_buf = (unsigned long)log_buf;
	attr.log_size = sizeof(log_buf);
	attr.log_level = 2;
	log_buf[0] = '\0';
	fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, 128);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* What the verifier's log says r0 is after the load. */
static void kernel_kind(char *out, size_t n)
{
	char *line = strstr(log_buf, "1: ("), *r0, *end;

	out[0] = '\0';
	line = line ? strstr(line, "; R0") : NULL;
	r0 = line ? strchr(line, '=') : NULL;
	if (!r0)
		return;
	end = r0 + 1 + strcspn(r0 + 1, "( \n");
	snprintf(out, n, "%.*s", (int)(end - r0 - 1), r0 + 1);
}

static void our_kind(const struct btf_walk *w, char *out, size_t n)
{
	switch (w->kind) {
	case BTF_WALK_SCALAR:
		snprintf(out, n, "scalar");
		break;
	case BTF_WALK_PTR:
		snprintf(out, n, "ptr_%s", btf_type_name(btf, w->type_id));
		break;
	case BTF_WALK_PTR_UNTRUSTED:
		snprintf(out, n, "mem");
		break;
	case BTF_WALK_STRUCT:
		snprintf(out, n, "struct");
		break;
	}
}

/* The kernel puts trust and tags before the kind; those are the verifier's to decide. */
static bool same_kind(const char *theirs, const char *ours)
{
	const char *p;

	if (!strcmp(ours, "mem"))
		return strstr(theirs, "mem");
	if (!strcmp(ours, "scalar"))
		return !strncmp(theirs, "scalar", 6);
	p = strstr(theirs, "ptr_");
	if (!p)
		return false;
	p += strncmp(p, "ptr_or_null_", 12) ? 4 : 12;
	return !strcmp(p, ours + 4);
}

static unsigned int nr_checked, nr_wrong;

static void check(u32 attach_id, u32 arg, u32 struct_id, u32 off, u32 size)
{
	struct strbuf text = STRBUF_INIT;
	struct btf_log log = {.level = 1, .buf = &text};
	struct btf_walk w = {};
	char theirs_kind[128], ours_kind[128] = "";
	int theirs = load(attach_id, arg, off, size);
	int ours = btf_struct_access(&log, btf, struct_id, off, size, &w);
	bool same = theirs == ours;

	kernel_kind(theirs_kind, sizeof(theirs_kind));
	if (!ours)
		our_kind(&w, ours_kind, sizeof(ours_kind));
	if (same && ours)
		same = strstr(log_buf, strbuf_str(&text));
	else if (same)
		same = same_kind(theirs_kind, ours_kind);
	nr_checked++;
	if (!same && nr_wrong++ < 20) {
		printf("# %s +%u size %u: kernel %d %s, ours %d %s %s",
		       btf_type_name(btf, struct_id), off, size, theirs, theirs_kind, ours,
		       ours_kind, strbuf_str(&text));
		printf("\n# %s\n", log_buf);
	}
	strbuf_fini(&text);
}

/* Struct that argument arg of a tracepoint points to; 0: none. */
static u32 arg_struct(const char *tracepoint, u32 arg, s32 *attach_id)
{
	const struct btf_type *proto, *t;
	char name[64];
	u32 id;

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	*attach_id = btf_find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	if (*attach_id < 0)
		return 0;
	proto = btf_func_proto(btf, *attach_id);
	/* parameter 0 is the tracepoint's own data pointer */
	if (!proto || btf_vlen(proto) < arg + 2)
		return 0;
	t = btf_type_skip_modifiers(btf, btf_params(proto)[arg + 1].type, NULL);
	if (btf_kind(t) != BTF_KIND_PTR)
		return 0;
	t = btf_type_skip_modifiers(btf, t->type, &id);
	return btf_is_struct_or_union(t) ? id : 0;
}

static void check_arg(const char *tracepoint, u32 arg, u32 step)
{
	s32 attach_id;
	u32 id = arg_struct(tracepoint, arg, &attach_id), off, size, bytes;

	if (!id) {
		tap_skip("%s argument %u: not in this kernel", tracepoint, arg);
		return;
	}
	bytes = btf_type_by_id(btf, id)->size;
	nr_checked = nr_wrong = 0;
	for (off = 0; off < bytes + 16 && off < 32000; off += 1 + rand() % step)
		for (size = 1; size <= 8; size *= 2)
			check(attach_id, arg, id, off, size);
	ok(nr_checked > 100 && !nr_wrong,
	   "%u reads of struct %s (%s) are judged as the kernel judges them", nr_checked,
	   btf_type_name(btf, id), tracepoint);
}

static int read_kernel_btf(void)
{
	u8 *data = malloc(BTF_MAX_BYTES);
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY), err = -ENOENT;
	size_t len = 0;
	ssize_t n = 1;

	while (fd >= 0 && data && n > 0 && len < BTF_MAX_BYTES) {
		n = read(fd, data + len, BTF_MAX_BYTES - len);
		len += n > 0 ? n : 0;
	}
	if (len)
		err = btf_parse_kernel(data, len, NULL, &btf);
	close(fd);
	free(data);
	return err;
}

int main(int argc, char **argv)
{
	u32 step = argc > 1 ? atoi(argv[1]) : 12;
	struct utsname u;

	if (uname(&u) || strncmp(u.release, "6.18.", 5) || read_kernel_btf()) {
		printf("1..0 # SKIP the running kernel is not 6.18, or shows no BTF\n");
		return 0;
	}
	if (load(btf_find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF), 1, 0, 4)) {
		printf("1..0 # SKIP bpf(2) PROG_LOAD is refused here\n");
		btf_put(btf);
		return 0;
	}
	srand(1);
	check_arg("sched_switch", 1, step);
	check_arg("kfree_skb", 0, step);
	check_arg("inet_sock_set_state", 0, step);
	check_arg("signal_generate", 2, step);
	check_arg("block_rq_issue", 0, step);
	check_arg("cgroup_mkdir", 0, step);
	check_arg("net_dev_queue", 0, step);
	check_arg("workqueue_execute_start", 0, 1);
	check_arg("irq_handler_entry", 1, 1);
	btf_put(btf);
	return tap_done();
}
