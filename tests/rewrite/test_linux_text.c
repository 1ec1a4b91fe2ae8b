// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs with everything Linux inlines, to this engine and to the running kernel: the same xlated text. Left out of the
 * comparison are addresses, which are each one's own: map ids, callees of helpers, the kernel's variables.
 */
#include "../sys/engine.h"
#include "isa/asm.h"
#include "isa/disasm.h"

#define MAX 512

struct maps {
	int fd[16];
};

static bool symbol(void *ctx, const char *name, struct isa_symbol *ret)
{
	const struct maps *maps = ctx;

	if (name[0] != 'm')
		return false;
	*ret = (struct isa_symbol){ .src = BPF_PSEUDO_MAP_FD, .imm = maps->fd[atoi(name + 1)] };
	return true;
}

static int of_maps(struct inlay *in, u32 type, int inner)
{
	union bpf_attr a = { .map_type = type, .key_size = 4, .value_size = 4, .max_entries = 10, .inner_map_fd = inner };

	return do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
}

static void make_maps(struct inlay *in, struct maps *m)
{
	int i;

	m->fd[0] = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, 0);
	m->fd[1] = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 20, 5, 0);
	m->fd[2] = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 4, BPF_F_INNER_MAP);
	m->fd[3] = map_create(in, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 20, 5, 0);
	m->fd[4] = map_create(in, BPF_MAP_TYPE_HASH, 4, 8, 100, 0);
	m->fd[5] = map_create(in, BPF_MAP_TYPE_HASH, 12, 20, 100, BPF_F_NO_PREALLOC);
	m->fd[6] = map_create(in, BPF_MAP_TYPE_PERCPU_HASH, 4, 8, 100, 0);
	m->fd[7] = of_maps(in, BPF_MAP_TYPE_ARRAY_OF_MAPS, m->fd[4]);
	m->fd[8] = of_maps(in, BPF_MAP_TYPE_HASH_OF_MAPS, m->fd[0]);
	m->fd[9] = of_maps(in, BPF_MAP_TYPE_ARRAY_OF_MAPS, m->fd[0]);
	m->fd[10] = map_create(in, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
	for (i = 0; i <= 10; i++)
		if (m->fd[i] < 0)
			printf("# %s: map %d: %s\n", in ? "inlay" : "kernel", i, strerror(-m->fd[i]));
}

static char reason[1 << 16];

/* Number of xlated slots, or -errno with the log's text in reason. */
static int xlated(struct inlay *in, struct maps *maps, const char *text, struct bpf_insn out[MAX])
{
	struct bpf_prog_info info = { .xlated_prog_len = MAX * sizeof(*out), .xlated_prog_insns = U64(out) };
	struct isa_symbols syms = { .ctx = maps, .symbol = symbol };
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .license = U64("GPL"), .log_level = 1,
				.log_buf = U64(reason), .log_size = sizeof(reason) };
	struct strbuf err = STRBUF_INIT;
	union bpf_attr get = { 0 };
	struct isa_code code;
	long fd, ret;

	ret = isa_assemble(text, &syms, &code, &err);
	if (ret) {
		printf("# %s: %s\n", text, strbuf_str(&err));
		strbuf_fini(&err);
		return ret;
	}
	load.insns = U64(code.insns);
	load.insn_cnt = code.len;
	reason[0] = 0;
	fd = do_bpf(in, BPF_PROG_LOAD, &load, sizeof(load));
	isa_code_fini(&code);
	if (fd < 0)
		return (int)fd;
	get.info.bpf_fd = fd;
	get.info.info_len = sizeof(info);
	get.info.info = U64(&info);
	ret = do_bpf(in, BPF_OBJ_GET_INFO_BY_FD, &get, sizeof(get.info));
	close(fd);
	return ret ? (int)ret : (int)(info.xlated_prog_len / sizeof(*out));
}

/* Takes out what is each one's own. */
static void normalise(struct bpf_insn *insns, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		struct bpf_insn *in = &insns[i];
		bool wide = in->code == (BPF_LD | BPF_IMM | BPF_DW);

		if (in->code == (BPF_JMP | BPF_CALL) && !in->src_reg)
			in->imm = 0;
		if (wide && in->src_reg == BPF_PSEUDO_MAP_FD)
			in->imm = 0;
		/* a kernel variable: its address is loaded, then it */
		if (wide && !in->src_reg && i + 2 < n && insns[i + 2].code == (BPF_LDX | BPF_MEM | BPF_DW) &&
		    (insns[i + 1].imm == -1 || (!in->imm && !insns[i + 1].imm)))
			in->imm = insns[i + 1].imm = 0;
		if (i + 1 < n && in->code == (BPF_ALU64 | BPF_MOV | BPF_K) && insns[i + 1].code == (BPF_ALU64 | BPF_MOV | BPF_X) &&
		    insns[i + 1].off == -1)
			in->imm = 0;
		i += wide;
	}
}

static void show(const char *who, const struct bpf_insn *insns, int n)
{
	struct strbuf t = STRBUF_INIT;
	int pc;

	for (pc = 0; pc < n;) {
		strbuf_printf(&t, "# %s %3d ", who, pc);
		pc += isa_disasm(&t, &insns[pc], n - pc, NULL);
		strbuf_putc(&t, '\n');
	}
	fputs(strbuf_str(&t), stdout);
	strbuf_fini(&t);
}

#define KEY(n) "*(u32 *)(r10 - 4) = " #n "; r2 = r10; r2 += -4;"
#define KEY12  "*(u64 *)(r10 - 16) = 1; *(u64 *)(r10 - 8) = 1; r2 = r10; r2 += -16;"

static const struct {
	const char *name, *text;
} cases[] = {
	{ "lookup in an array", KEY(1) "r1 = m0; call 1; r0 = 0; exit" },
	{ "lookup in an array, key not known",
	  "r1 = *(u64 *)(r1 + 0); *(u32 *)(r10 - 4) = r1; r2 = r10; r2 += -4; r1 = m0; call 1; r0 = 0; exit" },
	{ "lookup in an array of odd values", KEY(1) "r1 = m1; call 1; r0 = 0; exit" },
	{ "lookup in an array of no fixed size", KEY(1) "r1 = m2; call 1; r0 = 0; exit" },
	{ "lookup in a per-CPU array", KEY(1) "r1 = m3; call 1; r0 = 0; exit" },
	{ "lookup in a hash", KEY(1) "r1 = m4; call 1; r0 = 0; exit" },
	{ "lookup in a hash with odd keys", KEY12 "r1 = m5; call 1; r0 = 0; exit" },
	{ "lookup in a per-CPU hash", KEY(1) "r1 = m6; call 1; r0 = 0; exit" },
	{ "lookup in an array of maps", KEY(1) "r1 = m7; call 1; r0 = 0; exit" },
	{ "lookup in a hash of maps", KEY(1) "r1 = m8; call 1; r0 = 0; exit" },
	{ "lookup in a hash found in an array",
	  KEY(1) "r1 = m7; call 1; if r0 == 0 goto e; r1 = r0; r2 = r10; r2 += -4; call 1; r0 = 0; e: exit" },
	{ "lookup in an array found in a hash",
	  KEY(1) "r1 = m8; call 1; if r0 == 0 goto e; r1 = r0; r2 = r10; r2 += -4; call 1; r0 = 0; e: exit" },
	{ "lookup in an array found in an array",
	  KEY(1) "r1 = m9; call 1; if r0 == 0 goto e; r1 = r0; r2 = r10; r2 += -4; call 1; r0 = 0; e: exit" },
	{ "lookup in one of two hashes",
	  "r6 = r1; r3 = *(u64 *)(r1 + 0);" KEY(1) "r1 = m4; if r3 == 0 goto a; r1 = m6; a: call 1; r0 = 0; exit" },
	{ "update and delete",
	  "*(u64 *)(r10 - 16) = 5;" KEY(1) "r3 = r10; r3 += -16; r4 = 0; r1 = m4; call 2;" KEY(2) "r1 = m4; call 3; r0 = 0; exit" },
	{ "another CPU's value", KEY(1) "r3 = 0; r1 = m3; call 195; r0 = 0; exit" },
	{ "a ring buffer's record", "r1 = m10; r2 = 8; r3 = 0; call 131; if r0 == 0 goto e; r1 = r0; r2 = 0; call 132; e: r0 = 0; exit" },
	{ "which CPU", "call 8; exit" },
	{ "jiffies", "call 118; exit" },
	{ "helpers that are called", "call 7; call 14; call 35; call 5; call 42; exit" },
	{ "division", "r2 = *(u64 *)(r1 + 0); r3 = *(u64 *)(r1 + 8); r4 = r2; r2 /= r3; r4 %= r3; w5 = w2; w5 /= w3; w4 %= w3;"
		      "r0 = r2; r0 += r4; r0 += r5; exit" },
	{ "division by a number",
	  "r2 = *(u64 *)(r1 + 0); r4 = r2; r2 /= 3; r4 %= 3; w5 = w2; w5 /= 7; w4 %= 7; r5 s/= 9; w5 s%= 9; r0 = r2; exit" },
	{ "signed division",
	  "r2 = *(u64 *)(r1 + 0); r3 = *(u64 *)(r1 + 8); r4 = r2; r2 s/= r3; r4 s%= r3; w5 = w2; w5 s/= w3; w4 s%= w3; r0 = r2; exit" },
	{ "division by -1", "r2 = *(u64 *)(r1 + 0); r4 = r2; r2 s/= -1; r4 s%= -1; w5 = w2; w5 s/= -1; w4 s%= -1; r0 = r2; exit" },
	{ "division that is jumped to",
	  "r2 = *(u64 *)(r1 + 0); r3 = *(u64 *)(r1 + 8); if r2 == 0 goto d; r3 = 5; d: r2 /= r3; r0 = r2; exit" },
	{ "may_goto", "r0 = 0; l: r0 += 1; may_goto e; goto l; e: exit" },
	{ "two of them", "r0 = 0; l: r0 += 1; may_goto e; may_goto e; goto l; e: exit" },
	{ "may_goto beside a stack", "*(u64 *)(r10 - 24) = 1; r0 = 0; l: r0 += 1; may_goto e; goto l; e: exit" },
	{ "may_goto first of all, and jumped to", "l: may_goto e; r0 = *(u64 *)(r1 + 0); if r0 == 0 goto e; goto l; e: r0 = 0; exit" },
	{ "may_goto in a function of its own",
	  "r6 = r1; r1 = 3; call f; r0 = 0; exit; f: r0 = 1; l: r0 += r1; may_goto e; goto l; e: exit" },
	{ "calls of functions", "r6 = r1; r1 = *(u64 *)(r6 + 0); call f; r1 = 5; call g; exit; f: r0 = r1; exit; g: r0 = r1; r0 *= 2; call f; exit" },
	{ "bpf_fastcall: a spill around a call that is inlined",
	  "r1 = 1; *(u64 *)(r10 - 8) = r1; call 8; r1 = *(u64 *)(r10 - 8); r0 += r1; exit" },
	{ "bpf_fastcall: two",
	  "r1 = 1; r2 = 2; *(u64 *)(r10 - 8) = r1; *(u64 *)(r10 - 16) = r2; call 8; r2 = *(u64 *)(r10 - 16); r1 = *(u64 *)(r10 - 8);"
	  "r0 += r1; r0 += r2; exit" },
	{ "bpf_fastcall: the slot is read elsewhere",
	  "r1 = 1; *(u64 *)(r10 - 8) = r1; call 8; r1 = *(u64 *)(r10 - 8); r0 += r1; r1 = *(u64 *)(r10 - 8); exit" },
	{ "bpf_fastcall: another register comes back",
	  "r1 = 1; *(u64 *)(r10 - 8) = r1; call 8; r2 = *(u64 *)(r10 - 8); r0 += r2; exit" },
	{ "bpf_fastcall: a register the call keeps anyway",
	  "r6 = 1; *(u64 *)(r10 - 8) = r6; call 8; r6 = *(u64 *)(r10 - 8); r0 += r6; exit" },
	{ "bpf_fastcall: not the lowest slot",
	  "r1 = 1; *(u64 *)(r10 - 16) = r1; *(u64 *)(r10 - 8) = r1; call 8; r1 = *(u64 *)(r10 - 8); r0 += r1; r1 = *(u64 *)(r10 - 16); exit" },
	{ "bpf_fastcall: a call that is not inlined",
	  "r1 = 1; *(u64 *)(r10 - 8) = r1; call 5; r1 = *(u64 *)(r10 - 8); r0 += r1; exit" },
	{ "bpf_fastcall: both kinds of calls",
	  "r1 = 1; *(u64 *)(r10 - 8) = r1; call 8; r1 = *(u64 *)(r10 - 8); r6 = r0; *(u64 *)(r10 - 8) = r1; call 5; r1 = *(u64 *)(r10 - 8); r0 += r1; exit" },
	{ "bpf_fastcall: the slot's address is taken",
	  "r1 = 1; *(u64 *)(r10 - 8) = r1; call 8; r1 = *(u64 *)(r10 - 8); r0 += r1; r2 = r10; r2 += -8; r1 = *(u64 *)(r2 + 0); exit" },
};

int main(void)
{
	static struct bpf_insn ours[MAX], theirs[MAX];
	struct maps mine, linux_maps;
	struct inlay *in;
	size_t i;

	if (!have_oracle()) {
		tap_skip("no Linux 6.18 to ask");
		return tap_done();
	}
	in = engine_start();
	make_maps(in, &mine);
	make_maps(NULL, &linux_maps);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		int k = xlated(NULL, &linux_maps, cases[i].text, theirs), o;

		if (k < 0)
			printf("# kernel: %s\n", reason);
		o = xlated(in, &mine, cases[i].text, ours);
		if (o < 0)
			printf("# inlay: %s\n", reason);
		normalise(theirs, max_of(k, 0));
		normalise(ours, max_of(o, 0));
		if (!ok(k > 0 && k == o && !memcmp(ours, theirs, k * sizeof(*ours)), "%s", cases[i].name)) {
			show("kernel", theirs, k);
			show("inlay ", ours, o);
		}
	}
	for (i = 0; i <= 10; i++) {
		close(mine.fd[i]);
		close(linux_maps.fd[i]);
	}
	inlay_destroy(in);
	return tap_done();
}
