// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of kernel functions and exceptions: accepted programs and refused ones, loaded through bpf(2) into the engine and,
 * where it may be asked, into the running kernel. Verdict and log must be the same, line by line; what differs from machine
 * to machine (ids of functions, addresses, times) is blanked on both sides.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "btf/btf.h"
#include "env/env.h"
#include "inlay/inlay.h"
#include "isa/uapi.h"
#include "object/instance.h"
#include "object/prog.h"
#include "tests/tap.h"
#include "vt.h"

#define LOG_SIZE (1 << 20)
#define MAX_NAMES 64
#define TYPE_ID	 0x7e57 /* upper half of a constant that is to become the id of the struct named */
#define U64(p)	 ((u64)(uintptr_t)(p))

/*
 * Labels that begin with "f_" are static functions, "g_" global ones without an argument, "h_" global ones of a u64, "p_"
 * global ones of a pointer to int. tag: a declaration tag of the program's; tag2 another.
 */
struct row {
	const char *name;
	const char *text;
	const char *reason; /* last line of the log; NULL: accepted */
	u32 type;	    /* 0: tracing, attached to sched_switch (r1: preempt, prev, next, prev_state) */
	const char *tag, *tag2;
	u32 level; /* of the log; 0: 2 */
	bool linux_differs; /* deliberately: docs/kernel-differences.md */
	bool sleepable, not_gpl;
};

#include "kfuncs_rows.h"

static struct btf *types[2]; /* of the engine, of the kernel */
static char names[MAX_NAMES][48];
static u32 nr_names;

static bool callee(void *ctx, const char *name, struct isa_callee *ret)
{
	u32 i;

	if (*name >= '0' && *name <= '9') {
		*ret = (struct isa_callee){ .imm = atoi(name) };
		return true;
	}
	if (strncmp(name, "bpf_", 4) && strcmp(name, "inlay_model"))
		return false;
	for (i = 0; i < nr_names && strcmp(names[i], name); i++)
		;
	if (i == MAX_NAMES)
		return false;
	if (i == nr_names)
		snprintf(names[nr_names++], sizeof(names[0]), "%.47s", name);
	*ret = (struct isa_callee){ .src = BPF_PSEUDO_KFUNC_CALL, .imm = (s32)i };
	return true;
}

/* ---- types of a program ---- */

struct builder {
	u32 t[512];
	char s[1024];
	u32 nt, ns, nr;
};

static u32 add(struct builder *b, const char *name, u32 info, u32 size_or_type)
{
	b->t[b->nt++] = *name ? b->ns : 0;
	if (*name) {
		strcpy(b->s + b->ns, name);
		b->ns += (u32)strlen(name) + 1;
	}
	b->t[b->nt++] = info;
	b->t[b->nt++] = size_or_type;
	return ++b->nr;
}

static void param(struct builder *b, u32 type)
{
	b->t[b->nt++] = 1; /* any name: the first string */
	b->t[b->nt++] = type;
}

enum { T_INT = 1, T_U64, T_PTR, T_VOID_PROTO, T_U64_PROTO, T_PTR_PROTO };

static void begin(struct builder *b)
{
	memset(b, 0, sizeof(*b));
	b->ns = 1;
	add(b, "int", BTF_KIND_INT << 24, 4);
	b->t[b->nt++] = BTF_INT_SIGNED << 24 | 32;
	add(b, "u64", BTF_KIND_INT << 24, 8);
	b->t[b->nt++] = 64;
	add(b, "", BTF_KIND_PTR << 24, T_INT);
	add(b, "", BTF_KIND_FUNC_PROTO << 24, T_INT);
	add(b, "", BTF_KIND_FUNC_PROTO << 24 | 1, T_INT);
	param(b, T_U64);
	add(b, "", BTF_KIND_FUNC_PROTO << 24 | 1, T_INT);
	param(b, T_PTR);
}

static void add_tag(struct builder *b, const char *tag, u32 func)
{
	if (!tag)
		return;
	add(b, tag, BTF_KIND_DECL_TAG << 24, func);
	b->t[b->nt++] = (u32)-1;
}

static long bpf_call(struct inlay *in, int cmd, union bpf_attr *a)
{
	long ret;

	if (in)
		return inlay_bpf(in, cmd, a, sizeof(*a));
	ret = syscall(SYS_bpf, cmd, a, sizeof(*a));
	return ret < 0 ? -errno : ret;
}

static int load_types(struct inlay *in, const struct builder *b)
{
	struct btf_header h = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(h), .type_len = b->nt * 4,
				.str_off = b->nt * 4, .str_len = b->ns };
	union bpf_attr a = { 0 };
	char raw[sizeof(*b) + sizeof(h)];

	memcpy(raw, &h, sizeof(h));
	memcpy(raw + sizeof(h), b->t, b->nt * 4);
	memcpy(raw + sizeof(h) + b->nt * 4, b->s, b->ns);
	a.btf = U64(raw);
	a.btf_size = sizeof(h) + b->nt * 4 + b->ns;
	return (int)bpf_call(in, BPF_BTF_LOAD, &a);
}

/* Functions in ascending order: the program, and what the labels say. */
static u32 describe(const struct row *r, const struct isa_code *code, struct builder *b, struct bpf_func_info *info)
{
	u32 nr = 0;

	for (u32 pc = 0; pc < code->len; pc++) {
		const char *label = NULL;

		for (u32 i = 0; i < code->nr_labels; i++)
			if (code->labels[i].pc == pc && code->labels[i].name[1] == '_' &&
			    strchr("fghp", code->labels[i].name[0]))
				label = code->labels[i].name;
		if (pc && !label)
			continue;
		info[nr].insn_off = pc;
		info[nr++].type_id = add(b, pc ? label : "main", BTF_KIND_FUNC << 24 | (pc && label[0] == 'f' ? 0 : 1),
					 !pc || label[0] == 'f' || label[0] == 'g' ? T_VOID_PROTO :
					 label[0] == 'h' ? T_U64_PROTO : T_PTR_PROTO);
	}
	add_tag(b, r->tag, info[0].type_id);
	add_tag(b, r->tag2, info[0].type_id);
	return nr;
}

/* ---- one load ---- */

static void bind(struct vt *t, bool kernel, struct bpf_insn *insns, const struct isa_code *code)
{
	memcpy(insns, code->insns, code->len * sizeof(*insns));
	for (u32 i = 0; i < code->len; i++) {
		struct bpf_insn *insn = &insns[i];

		if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_KFUNC_CALL &&
		    (u32)insn->imm < nr_names) {
			s32 id = btf_find_by_name_kind(types[kernel], names[insn->imm], BTF_KIND_FUNC);

			insn->imm = id < 0 ? 0 : id;
		}
		if (insn->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_VALUE)
			insn->imm = kernel ? t->kernel_fd[insn->imm] : t->fd[insn->imm];
		if (insn->src_reg == BPF_PSEUDO_FUNC)
			insn->imm = isa_code_label(code, names[insn->imm]) - (s32)i - 1;
		if (insn->src_reg == 0 && insn[1].imm == TYPE_ID) { /* id of a type, by name */
			s32 id = btf_find_by_name_kind(types[kernel], names[insn->imm], BTF_KIND_STRUCT);

			insn->imm = id < 0 ? 0 : id;
			insn[1].imm = 0;
		}
		i++;
	}
}

static bool symbol(void *ctx, const char *name, struct isa_symbol *ret)
{
	struct isa_callee c;

	if (!strncmp(name, "map", 3) && name[3] && !name[4]) {
		*ret = (struct isa_symbol){ .src = BPF_PSEUDO_MAP_FD, .imm = name[3] - '0' };
		return true;
	}
	if (!strncmp(name, "value", 5) && name[5] && !name[6]) {
		*ret = (struct isa_symbol){ .src = BPF_PSEUDO_MAP_VALUE, .imm = name[5] - '0' };
		return true;
	}
	if (!strncmp(name, "type_", 5)) {
		snprintf(names[nr_names], sizeof(names[0]), "%.47s", name + 5);
		*ret = (struct isa_symbol){ .imm = (s32)nr_names++, .imm_hi = TYPE_ID };
		return true;
	}
	if (strncmp(name, "func_", 5))
		return false;
	snprintf(names[nr_names], sizeof(names[0]), "%.47s", name + 5);
	c.imm = (s32)nr_names++;
	*ret = (struct isa_symbol){ .src = BPF_PSEUDO_FUNC, .imm = c.imm };
	return true;
}

/* fd: gets the descriptor of what was accepted; NULL: it is closed. */
static char *load(struct vt *t, bool kernel, const struct row *r, const struct isa_code *code, int *ret_err, int *ret_fd)
{
	struct inlay *in = kernel ? NULL : t->inlay;
	struct bpf_func_info info[16];
	struct bpf_insn *insns = calloc(code->len + 1, sizeof(*insns));
	char *log = calloc(1, LOG_SIZE);
	union bpf_attr a = { 0 };
	struct builder b;
	int btf = -1, fd;
	u32 nr;

	bind(t, kernel, insns, code);
	begin(&b);
	nr = describe(r, code, &b, info);
	a.prog_type = r->type ? r->type : BPF_PROG_TYPE_TRACING;
	if (a.prog_type == BPF_PROG_TYPE_TRACING) {
		a.expected_attach_type = BPF_TRACE_RAW_TP;
		a.attach_btf_id = (u32)btf_find_by_name_kind(types[kernel], "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
	}
	a.prog_flags = r->sleepable ? BPF_F_SLEEPABLE : 0;
	a.insns = U64(insns);
	a.insn_cnt = code->len;
	a.license = U64(r->not_gpl ? "none" : "GPL");
	a.log_level = r->level ? r->level : 2;
	a.log_buf = U64(log);
	a.log_size = LOG_SIZE;
	if (nr > 1 || r->tag) {
		btf = load_types(in, &b);
		if (btf < 0)
			printf("# types: %d\n", btf);
		a.prog_btf_fd = (u32)btf;
		a.func_info = U64(info);
		a.func_info_cnt = nr;
		a.func_info_rec_size = sizeof(info[0]);
	}
	fd = (int)bpf_call(in, BPF_PROG_LOAD, &a);
	*ret_err = fd < 0 ? fd : 0;
	if (ret_fd)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	if (btf >= 0)
		close(btf);
	free(insns);
	return log;
}

/* ---- logs ---- */

/*
 * Lines of a log that are compared: what is said, and what calls concerning tasks did to registers. Other instructions' lines
 * differ where Linux tells how it found that a number matters.
 */
static bool is_compared(const char *line)
{
	static const char *const other[] = { "Live regs", "mark_precise", "verification time", "processed ", "     ", "from ", "\n", "frame ", "(" };
	const char *call = strstr(line, "call bpf_task_"), *end = strchr(line, '\n');

	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		if (!strncmp(line, other[i], strlen(other[i])))
			return false;
	return *line < '0' || *line > '9' || (call && call < end);
}

/* "#65913" after a function's name becomes "#N", and an address or the id of a type "A". */
static char *blank(const char *log)
{
	char *out = calloc(1, 2 * strlen(log) + 16), *to = out;

	for (const char *p = log; *p;) {
		size_t word, blanks = strspn(p, " ");

		if ((p == log || p[-1] == '\n') && !is_compared(p)) {
			p += strcspn(p, "\n");
			p += !!*p;
			continue;
		}
		for (word = 0; p - word > log && (p[-word - 1] == '_' || (p[-word - 1] >= 'a' && p[-word - 1] <= 'z')); word++)
			;
		if (*p == '#' && word > 4) {
			*to++ = *p++;
			*to++ = 'N';
			p += strspn(p, "0123456789");
		} else if (*p == '0' && p[1] == 'x' && strspn(p + 1, "x0123456789abcdef") > 12) {
			p += 1 + strspn(p + 1, "x0123456789abcdef");
			*to++ = 'A';
		} else if (!strncmp(p, "btf_id ", 7)) {
			p += 7 + strspn(p + 7, "0123456789");
			*to++ = 'A';
		} else if (blanks > 1 && p[blanks] == ';') { /* the length of names in front decides */
			p += blanks;
		} else {
			*to++ = *p++;
		}
	}
	return out;
}

static void last_line(const char *log, char *out, size_t n)
{
	const char *p = log;

	*out = 0;
	while (*p) {
		size_t len = strcspn(p, "\n");

		if (len && strncmp(p, "processed ", 10) && strncmp(p, "verification time", 17) && strncmp(p, "stack depth", 11))
			snprintf(out, n, "%.*s", (int)len, p);
		p += len + !!p[len];
	}
}

static void show_difference(const char *a, const char *b)
{
	while (*a || *b) {
		size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");

		if (na != nb || memcmp(a, b, na)) {
			printf("# here:   %.*s\n# kernel: %.*s\n", (int)na, a, (int)nb, b);
			return;
		}
		a += na + !!a[na];
		b += nb + !!b[nb];
	}
}

/* "{task_struct.pid}" is where a field is on that side. */
static bool assemble(const struct row *r, bool kernel, struct isa_code *ret_code)
{
	const struct isa_symbols syms = { NULL, symbol, callee };
	struct strbuf err = STRBUF_INIT, text = STRBUF_INIT;
	const char *from = r->text, *open;
	char type[64], field[64];
	int n, ret;
	u32 off;

	nr_names = 0;
	for (; (open = strchr(from, '{')); from = open + n) {
		strbuf_add(&text, from, (size_t)(open - from));
		if (sscanf(open, "{%63[^.}].%63[^}]}%n", type, field, &n) == 2 &&
		    !btf_find_field_offset(types[kernel], type, field, &off, NULL))
			strbuf_printf(&text, "%u", off);
	}
	strbuf_puts(&text, from);
	ret = isa_assemble(strbuf_str(&text), &syms, ret_code, &err);
	if (ret)
		ok(false, "%s: assembles: %s", r->name, strbuf_str(&err));
	strbuf_fini(&err);
	strbuf_fini(&text);
	return !ret;
}

static void judge(struct vt *t, const struct row *r)
{
	char *ours, *theirs, *a, *b, reason[256];
	struct isa_code code;
	int ret, kret;

	if (!assemble(r, false, &code))
		return;
	ours = load(t, false, r, &code, &ret, NULL);
	last_line(ours, reason, sizeof(reason));
	if (!ok(!ret == !r->reason, "%s: %s", r->name, r->reason ? "refused" : "accepted"))
		printf("# %d %s\n", ret, reason);
	if (r->reason && !ok(ret && strstr(reason, r->reason), "%s: the reason is given", r->name))
		printf("# got: %s\n", reason);
	if (getenv("V"))
		printf("---- inlay\n%s", ours);
	isa_code_fini(&code);
	if (t->kernel && !r->linux_differs && assemble(r, true, &code)) {
		theirs = load(t, true, r, &code, &kret, NULL);
		if (getenv("V"))
			printf("---- kernel\n%s", theirs);
		ok(ret == kret, "%s: the kernel's verdict (%d, kernel %d)", r->name, ret, kret);
		a = blank(ours);
		b = blank(theirs);
		if (!ok(!strcmp(a, b), "%s: the kernel's log", r->name))
			show_difference(a, b);
		free(a);
		free(b);
		free(theirs);
		isa_code_fini(&code);
	}
	free(ours);
}

/* ---- programs that run here and in the kernel ---- */

/* By what the kernel runs such a program with; here it is a tracepoint's, entered at once. */
static bool run(struct vt *t, bool kernel, const struct row *r, u32 *ret_r0)
{
	struct row as = *r;
	union bpf_attr a = { 0 };
	char packet[64] = { 0 };
	struct isa_code code;
	u64 ctx[64] = { 0 };
	struct obj *obj;
	int err, fd = -1;
	char *log;

	as.type = kernel ? BPF_PROG_TYPE_SCHED_CLS : BPF_PROG_TYPE_TRACEPOINT;
	if (!assemble(&as, kernel, &code))
		return false;
	log = load(t, kernel, &as, &code, &err, &fd);
	isa_code_fini(&code);
	if (err)
		printf("# %s\n", log);
	free(log);
	if (err)
		return false;
	if (kernel) {
		a.test.prog_fd = (u32)fd;
		a.test.data_in = U64(packet);
		a.test.data_size_in = sizeof(packet);
		err = (int)bpf_call(NULL, BPF_PROG_TEST_RUN, &a);
		*ret_r0 = a.test.retval;
	} else {
		err = t->inlay->fds->get(t->inlay, fd, &obj);
		if (!err) {
			env_enter(t->inlay->env, 0, env_task_self(t->inlay->env));
			*ret_r0 = (u32)prog_run(prog_of(obj), ctx);
			env_leave(t->inlay->env);
			obj_put(obj);
		}
	}
	close(fd);
	return !err;
}

static void compare_runs(struct vt *t, const struct row *r)
{
	u32 ours = 0, theirs = 0;
	bool ran;

	if (!ok(run(t, false, r, &ours), "%s: runs", r->name) || !t->kernel)
		return;
	ran = run(t, true, r, &theirs);
	ok(ran && ours == theirs, "%s: the kernel's result (%d, kernel %d)", r->name, (s32)ours,
	   (s32)theirs);
}

static struct btf *kernel_types(void)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY);
	struct btf *btf = NULL;
	ssize_t size = 0, n;
	struct stat st;
	char *data;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	data = malloc((size_t)st.st_size);
	while (size < st.st_size && (n = read(fd, data + size, (size_t)(st.st_size - size))) > 0)
		size += n;
	btf_parse_kernel(data, (u32)size, NULL, &btf);
	free(data);
	close(fd);
	return btf;
}

int main(int argc, char **argv)
{
	struct vt t;

	vt_init(&t);
	types[0] = t.inlay->vmlinux;
	if (t.kernel) {
		types[1] = kernel_types();
		if (!types[1]) {
			t.kernel = false;
			strcpy(t.why_not, "its types cannot be read");
		}
	}
	if (!t.kernel)
		printf("# the kernel is not asked: %s\n", t.why_not);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (argc < 2 || strstr(rows[i].name, argv[1]))
			judge(&t, &rows[i]);
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		if (argc < 2 || strstr(runs[i].name, argv[1]))
			compare_runs(&t, &runs[i]);
	btf_put(types[1]);
	vt_fini(&t);
	return tap_done();
}
