// SPDX-License-Identifier: BSD-2-Clause
/* The compiler's own time, and programs of any object. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "bench/worker.h"
#include "exec/exec.h"
#include "object/instance.h"
#include "object/prog.h"
#include "run_repeat.h"

/* ---- compile: a verified program compiled again and again ---- */

#define INSN(c, dst, src, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (dst), .src_reg = (src), .off = (o), .imm = (i) })

/* What a round of the text is: arithmetic on what no verifier knows, a store, a load, a branch. */
static const struct bpf_insn pattern[] = {
	{ .code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = 7, .src_reg = 6 },
	{ .code = BPF_ALU64 | BPF_XOR | BPF_K, .dst_reg = 7, .imm = 0x1234567 },
	{ .code = BPF_ALU64 | BPF_LSH | BPF_K, .dst_reg = 7, .imm = 5 },
	{ .code = BPF_STX | BPF_DW | BPF_MEM, .dst_reg = 10, .src_reg = 7, .off = -8 },
	{ .code = BPF_ALU | BPF_MUL | BPF_K, .dst_reg = 6, .imm = 77 },
	{ .code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = 6, .src_reg = 7, .off = 1 },
	{ .code = BPF_ALU64 | BPF_SUB | BPF_X, .dst_reg = 6, .src_reg = 7 },
	{ .code = BPF_LDX | BPF_DW | BPF_MEM, .dst_reg = 8, .src_reg = 10, .off = -8 },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 9, .src_reg = 8 },
	{ .code = BPF_ALU | BPF_AND | BPF_X, .dst_reg = 9, .src_reg = 6 },
};

static u32 make_text(struct bpf_insn *insns, u32 want)
{
	u32 n = 0;

	if (want > 2) {
		insns[n++] = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32);
		insns[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 6, 0, 0, 0);
		insns[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 7, 0, 0, 0);
	}
	for (; n + ARRAY_SIZE(pattern) + 2 <= want; n += ARRAY_SIZE(pattern))
		memcpy(insns + n, pattern, sizeof(pattern));
	for (; n + 2 < want; n++)
		insns[n] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, n);
	insns[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
	insns[n++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return n;
}

const char *bench_compile_choose(const struct bench_params *p, char *program, size_t size)
{
	return NULL; /* made here */
}

int bench_compile_fill(struct bench_worker *w)
{
	struct bpf_insn *insns = calloc(w->p.num_insns + 16, sizeof(*insns));

	if (!insns)
		return -ENOMEM;
	w->prog_fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "text", "GPL", insns, make_text(insns, w->p.num_insns), NULL);
	free(insns);
	return w->prog_fd < 0 ? w->prog_fd : 0;
}

#define TWINS 16

/* Compiled several times by one look at the clock, which costs as much as a short program; given back off it. */
int bench_compile_piece(struct bench_worker *w, int fd)
{
	struct prog *prog, *twins = calloc(TWINS, sizeof(*twins));
	struct obj *obj = NULL;
	u32 i, made = 0;
	int err = twins ? 0 : -ENOMEM;
	u64 start;

	prog = bench_prog(w, w->prog_fd, &obj);
	if (!prog)
		err = -EBADF;
	for (i = 0; i < TWINS && !err; i++) {
		twins[i] = *prog;
		twins[i].image = NULL;
		twins[i].image_free = NULL;
		twins[i].funcs = NULL;
	}
	start = bench_cpu_ns();
	while (made < TWINS && !err) {
		err = exec_prepare_as(&twins[made], EXEC_JIT, NULL);
		made += !err;
	}
	w->piece_ns = bench_cpu_ns() - start;
	/* the two instructions' row is of programs, the others' of instructions */
	w->piece_ops = prog ? TWINS * (w->p.num_insns > 2 ? (prog->lowered ?: prog)->nr_insns : 1) : 0;
	for (i = 0; i < made; i++) {
		twins[i].image_free(&twins[i]);
		free(twins[i].funcs);
	}
	free(twins);
	if (prog)
		obj_put(obj);
	return err;
}

u64 bench_compile_ops(const struct bench_params *p, u64 runs)
{
	return 0; /* the piece knows */
}

/* ---- --obj ---- */

/* As `inlay run --repeat` has it; so many runs that a piece takes about 2 ms. */
int bench_object_piece(struct bench_worker *w, int fd)
{
	static u64 args[12];
	static char packet[64];
	LIBBPF_OPTS(bpf_test_run_opts, t);
	struct bpf_program *prog = bpf_object__find_program_by_name(w->obj, w->program);
	struct cli_timing timing = { 0 };
	u32 repeat = w->expect ?: 2;
	int err;

	if (bpf_program__type(prog) == BPF_PROG_TYPE_SOCKET_FILTER || bpf_program__type(prog) == BPF_PROG_TYPE_SCHED_CLS ||
	    bpf_program__type(prog) == BPF_PROG_TYPE_XDP) {
		t.data_in = packet;
		t.data_size_in = sizeof(packet);
	} else {
		t.ctx_in = args;
		t.ctx_size_in = sizeof(args);
	}
	err = cli_run_repeat(w->engine, fd, repeat, &t, &timing);
	if (err) {
		snprintf(w->why, sizeof(w->why), "%.60s cannot be run like this", w->program);
		return err;
	}
	w->piece_ns = timing.ns * repeat;
	w->piece_ops = repeat;
	w->expect = timing.ns > 0 ? 2e6 / timing.ns : 1000000;
	w->expect = w->expect < 2 ? 2 : w->expect > 1000000 ? 1000000 : w->expect;
	return 0;
}
