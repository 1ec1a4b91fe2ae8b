// SPDX-License-Identifier: BSD-2-Clause
/*
 * func_info and line_info: each case is judged by us and, where it can be asked, by the running
 * kernel's PROG_LOAD of the same program; errno and message must agree.
 */
#include <stdlib.h>

#include "../tap.h"
#include "btf/btf.h"
#include "btf/info.h"
#include "build.h"
#include "kernel_btf.h"

#define MAX_RECS 4
#define REC_ROOM 64 /* u32s */

struct test_case {
	const char *name;
	u32 func_cnt, func_rec, line_cnt, line_rec;
	u32 func[REC_ROOM], line[REC_ROOM];
	int want;
	const char *message;
};

/* 0: r0 = a 64-bit number (two slots), 2: call 4, 3: exit; 4: r0 = 0, 5: exit */
static const struct bpf_insn prog[] = {
	{BPF_LD | BPF_IMM | BPF_DW, 0, 0, 0, 5},
	{},
	{BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 1},
	{BPF_JMP | BPF_EXIT},
	{BPF_ALU64 | BPF_MOV | BPF_K},
	{BPF_JMP | BPF_EXIT},
};

static const struct btf_subprog subs[] = {{0}, {4}};
static struct blob blob;
static u32 main_id, sub_id, int_id, file, text;
static char kernel_log[1 << 16];

static void build(void)
{
	u32 proto;

	blob_init(&blob);
	int_id = blob_int(&blob, "int", 4, 32, 0, BTF_INT_SIGNED);
	proto = blob_type(&blob, BTF_KIND_FUNC_PROTO, NULL, 0, false, int_id);
	main_id = blob_ref(&blob, BTF_KIND_FUNC, "main", proto);
	sub_id = blob_ref(&blob, BTF_KIND_FUNC, "sub", proto);
	file = blob_str(&blob, "file.c");
	text = blob_str(&blob, "return 0;");
	blob_finish(&blob);
}

static int ask_kernel(int btf_fd, struct test_case *t)
{
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (unsigned long)prog;
	attr.insn_cnt = ARRAY_SIZE(prog);
	attr.license = (unsigned long)"GPL";
	attr.log_buf = (unsigned long)kernel_log;
	attr.log_size = sizeof(kernel_log);
	attr.log_level = 1;
	attr.prog_btf_fd = btf_fd;
	attr.func_info = (unsigned long)t->func;
	attr.func_info_cnt = t->func_cnt;
	attr.func_info_rec_size = t->func_rec;
	attr.line_info = (unsigned long)t->line;
	attr.line_info_cnt = t->line_cnt;
	attr.line_info_rec_size = t->line_rec;
	kernel_log[0] = '\0';
	fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, 128);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int ask_us(const struct btf *btf, struct test_case *t, struct strbuf *out)
{
	struct btf_log log = {.level = 1, .buf = out};
	struct bpf_func_info funcs[MAX_RECS];
	struct bpf_line_info lines[MAX_RECS];
	u32 rec_size, first[ARRAY_SIZE(subs)];
	int err;

	err = btf_check_func_info(&log, btf, t->func, t->func_cnt, t->func_rec, funcs, &rec_size);
	if (!err)
		err = btf_check_func_subprogs(&log, btf, funcs, t->func_cnt, subs,
					      ARRAY_SIZE(subs));
	if (!err)
		err = btf_check_line_info(&log, btf, t->line, t->line_cnt, t->line_rec, prog,
					  ARRAY_SIZE(prog), subs, ARRAY_SIZE(subs), lines, first,
					  &rec_size);
	return err;
}

static void run(const struct btf *btf, int btf_fd, struct test_case *t)
{
	struct strbuf ours_text = STRBUF_INIT;
	int ours = ask_us(btf, t, &ours_text), theirs;

	if (!ok(ours == t->want && strstr(strbuf_str(&ours_text), t->message), "%s: %d, '%s'",
		t->name, t->want, t->message))
		printf("# ours %d %s\n", ours, strbuf_str(&ours_text));
	if (btf_fd < 0) {
		tap_skip("%s: the kernel cannot be asked", t->name);
	} else {
		theirs = ask_kernel(btf_fd, t);
		if (!ok(ours == theirs && strstr(kernel_log, strbuf_str(&ours_text)),
			"%s: as the kernel", t->name))
			printf("# kernel %d %s\n# ours %d %s\n", theirs, kernel_log, ours,
			       strbuf_str(&ours_text));
	}
	strbuf_fini(&ours_text);
}

/* Good records; a case changes them. */
static struct test_case base(const char *name, int want, const char *message)
{
	struct test_case t = {.name = name, .want = want, .message = message};
	u32 funcs[] = {0, main_id, 4, sub_id};
	u32 lines[] = {0, file, text, 1 << 10, 2, file, text, 2 << 10, 4, file, text, 3 << 10};

	t.func_cnt = 2;
	t.func_rec = 8;
	t.line_cnt = 3;
	t.line_rec = 16;
	memcpy(t.func, funcs, sizeof(funcs));
	memcpy(t.line, lines, sizeof(lines));
	return t;
}

#define CASE(name, want, message, ...)                                                             \
	do {                                                                                       \
		struct test_case t = base(name, want, message);                                    \
		__VA_ARGS__;                                                                       \
		run(btf, btf_fd, &t);                                                              \
	} while (0)

static void run_all(const struct btf *btf, int btf_fd)
{
	CASE("good tables", 0, "");
	CASE("no tables", 0, "", t.func_cnt = 0, t.line_cnt = 0);
	CASE("functions only", 0, "", t.line_cnt = 0);
	CASE("lines only", 0, "", t.func_cnt = 0);
	CASE("function record of 4 bytes", -EINVAL, "invalid func info rec size 4", t.func_rec = 4);
	CASE("function record of 10 bytes", -EINVAL, "invalid func info rec size 10",
	     t.func_rec = 10);
	CASE("function record of 256 bytes", -EINVAL, "invalid func info rec size 256",
	     t.func_rec = 256);
	CASE("longer function record with zeros behind", 0, "", t.func_rec = 12, t.func[2] = 0,
	     t.func[3] = 4, t.func[4] = sub_id, t.func[5] = 0);
	CASE("longer function record with more behind", -E2BIG,
	     "nonzero tailing record in func info", t.func_rec = 12, t.func[2] = 7);
	CASE("first function not at 0", -EINVAL,
	     "nonzero insn_off 1 for the first func info record", t.func[0] = 1);
	CASE("functions not in order", -EINVAL,
	     "same or smaller insn offset (0) than previous func info record (0)", t.func[2] = 0);
	CASE("function type that is an int", -EINVAL, "invalid type id 1 in func info",
	     t.func[3] = int_id);
	CASE("function type that is not there", -EINVAL, "invalid type id 99 in func info",
	     t.func[3] = 99);
	CASE("function type -1", -EINVAL, "invalid type id -1 in func info", t.func[3] = ~0u);
	CASE("fewer functions than subprograms", -EINVAL,
	     "number of funcs in func_info doesn't match number of subprogs", t.func_cnt = 1);
	CASE("function elsewhere than the subprogram", -EINVAL,
	     "func_info BTF section doesn't match subprog layout in BPF program", t.func[2] = 5);
	CASE("line record of 12 bytes", -EINVAL, "", t.line_rec = 12);
	CASE("line record of 18 bytes", -EINVAL, "", t.line_rec = 18);
	CASE("line record of 256 bytes", -EINVAL, "", t.line_rec = 256);
	CASE("longer line record with more behind", -E2BIG, "nonzero tailing record in line_info",
	     t.line_rec = 20, t.line[4] = 7);
	CASE("lines not in order", -EINVAL,
	     "Invalid line_info[1].insn_off:0 (prev_offset:0 prog->len:6)", t.line[4] = 0);
	CASE("line behind the program", -EINVAL,
	     "Invalid line_info[2].insn_off:6 (prev_offset:2 prog->len:6)", t.line[8] = 6);
	CASE("line inside a 16-byte instruction", -EINVAL,
	     "Invalid insn code at line_info[1].insn_off", t.line[4] = 1);
	CASE("line text outside the strings", -EINVAL,
	     "Invalid line_info[1].line_off or .file_name_off", t.line[6] = 9999);
	CASE("file name outside the strings", -EINVAL,
	     "Invalid line_info[0].line_off or .file_name_off", t.line[1] = 9999);
	CASE("first function without a line", -EINVAL, "missing bpf_line_info for func#0",
	     t.line[0] = 2, t.line[4] = 3);
	CASE("second function without a line", -EINVAL, "missing bpf_line_info for func#1",
	     t.line[8] = 5);
	CASE("lines end before the second function", -EINVAL,
	     "missing bpf_line_info for 1 funcs starting from func#1", t.line_cnt = 2);
}

static void check_returns(const struct btf *btf)
{
	struct btf_subprog with_tail[] = {{0}, {4, false, true}};
	struct bpf_func_info info[] = {{0, main_id}, {4, sub_id}};
	struct strbuf out = STRBUF_INIT;
	struct btf_log log = {.level = 1, .buf = &out};

	is_int(btf_check_func_subprogs(&log, btf, info, 2, with_tail, 2), 0,
	       "a subprogram with a tail call may return an int");
	is_int(btf_check_func_subprogs(&log, btf, NULL, 0, with_tail, 2), -EINVAL,
	       "a subprogram with a tail call needs BTF");
	ok(strstr(strbuf_str(&out), "tail_call is not allowed in subprogs without BTF"),
	   "and the log says so");
	strbuf_fini(&out);
}

int main(void)
{
	struct btf *btf = NULL;
	union bpf_attr attr;
	int btf_fd = -1;

	build();
	is_int(btf_parse(blob.out, blob.size, NULL, NULL, &btf), 0,
	       "the program's types are parsed");
	if (!btf)
		return tap_done();
	if (!kernel_btf_refuses()) {
		memset(&attr, 0, sizeof(attr));
		attr.btf = (unsigned long)blob.out;
		attr.btf_size = blob.size;
		btf_fd = syscall(SYS_bpf, BPF_BTF_LOAD, &attr, 28);
	}
	run_all(btf, btf_fd);
	check_returns(btf);
	if (btf_fd >= 0)
		close(btf_fd);
	btf_put(btf);
	return tap_done();
}
