// SPDX-License-Identifier: BSD-2-Clause
/*
 * `inlay conformance-plugin`: runs one bare sequence of instructions and prints r0, as runners of public instruction test
 * suites ask it: the program as hex bytes on standard input, its memory as hex bytes in an argument. Instructions are
 * counted from 0 in messages, as the caller counts them.
 *
 * No verifier stands before it: a structural check does (rw_assume(): known instructions, targets inside, functions that
 * end), calls of helpers and loads of maps are refused, what faults or does not end in BUDGET_SECONDS is ended with one
 * line that says so.
 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/probe.h"
#include "cli.h"
#include "exec/exec.h"
#include "file.h"
#include "isa/isa.h"
#include "rewrite/rewrite.h"

#define BUDGET_SECONDS 10
#define MAX_BYTES      (1u << 20)

static int digit(int c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? (c | 0x20) - 'a' + 10 : -1;
}

/* Bytes of two digits each, with white space where it likes. CLI_OK or CLI_FAILED, said. */
static int parse_hex(const char *what, const char *s, size_t n, struct cli_bytes *ret)
{
	size_t i = 0, len = 0;
	u8 *out;

	if (cli_bytes_alloc(ret, n / 2 + 1))
		return cli_fail("out of memory");
	out = ret->data;
	while (i < n) {
		if (isspace((u8)s[i]) || !s[i]) {
			i++;
			continue;
		}
		if (digit((u8)s[i]) < 0 || i + 1 >= n || digit((u8)s[i + 1]) < 0)
			return cli_fail("%s: no hex bytes at offset %zu", what, i);
		out[len++] = digit((u8)s[i]) << 4 | digit((u8)s[i + 1]);
		i += 2;
	}
	if (len > MAX_BYTES)
		return cli_fail("%s: %zu bytes, at most %u can be", what, len, MAX_BYTES);
	ret->size = len;
	return CLI_OK;
}

/* r2 is no argument of a program's entry, so the program begins by setting it. */
static struct bpf_insn *with_length(const struct cli_bytes *program, u32 len, u32 *ret_nr)
{
	u32 nr = program->size / sizeof(struct bpf_insn);
	struct bpf_insn *insns = calloc(nr + 1, sizeof(*insns));

	if (!insns)
		return NULL;
	insns[0] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = (s32)len };
	memcpy(insns + 1, program->data, nr * sizeof(*insns));
	*ret_nr = nr + 1;
	return insns;
}

/* What rw_assume() lets pass and a bare program cannot have. */
static int refuse_outside(const struct prog *prog)
{
	for (u32 pc = 1; pc < prog->nr_insns; pc++) {
		const struct bpf_insn *insn = &prog->insns[pc];

		if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg != BPF_PSEUDO_CALL)
			return cli_fail("insn %u: calls %s %d: a bare program has none", pc - 1,
					insn->src_reg ? "kernel function" : "helper", insn->imm);
		if (BPF_CLASS(insn->code) == BPF_LD && insn->code != (BPF_LD | BPF_IMM | BPF_DW) && insn->code)
			return cli_fail("insn %u: loads from a packet: a bare program has none", pc - 1);
		if (insn->code == (BPF_LD | BPF_IMM | BPF_DW)) {
			if (insn->src_reg)
				return cli_fail("insn %u: loads a map or function (src %u): a bare program has none",
						pc - 1, insn->src_reg);
			pc++;
		}
	}
	return CLI_OK;
}

/* The check's reason, a line. It counts the instruction put before the program, too. */
static int refused(const char *why)
{
	int len = (int)strcspn(why, "\n"), n = 0;
	u32 pc;

	if (sscanf(why, "insn %u: %n", &pc, &n) == 1 && n && n <= len && pc)
		return cli_fail("refused: insn %u: %.*s", pc - 1, len - n, why + n);
	return cli_fail("refused: %.*s", len, why);
}

static void ended(int sig)
{
	static const char late[] = "inlay: the program did not end in its budget of 10 seconds\n",
			  fault[] = "inlay: the program accessed memory that is not its own, or took too much stack\n";
	ssize_t n = sig == SIGALRM ? write(STDERR_FILENO, late, sizeof(late) - 1) :
				     write(STDERR_FILENO, fault, sizeof(fault) - 1);

	_exit(n < 0 ? CLI_FAILED : CLI_FAILED);
}

static void guard_run(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	const stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_handler = ended, .sa_flags = SA_ONSTACK };
	const struct itimerval budget = { .it_value = { .tv_sec = BUDGET_SECONDS } };

	sigaltstack(&alt, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
	sigaction(SIGFPE, &sa, NULL);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &budget, NULL);
}

static void free_prog(struct prog *prog)
{
	if (prog->image_free)
		prog->image_free(prog);
	free(prog->funcs);
	free(prog->insns);
	free(prog->facts);
	free(prog->subprogs);
	free(prog->line_info);
	free(prog->func_info);
	free(prog);
}

static int run_bare(const struct cli_globals *g, const struct cli_bytes *program, struct cli_bytes *memory)
{
	struct prog *prog = calloc(1, sizeof(*prog));
	struct strbuf log = STRBUF_INIT;
	int status = CLI_OK;
	u64 r0;

	if (!prog)
		return cli_fail("out of memory");
	prog->insns = with_length(program, memory->size, &prog->nr_insns);
	if (!prog->insns)
		status = cli_fail("out of memory");
	else if (rw_assume(prog, &log))
		status = refused(strbuf_str(&log));
	if (!status)
		status = refuse_outside(prog);
	if (!status && (rw_xlate(prog, &log) || exec_prepare_as(prog, g->interp ? EXEC_INTERP : EXEC_JIT, &log)))
		status = cli_fail("cannot be %s: %s", g->interp ? "interpreted" : "compiled", strbuf_str(&log));
	if (!status) {
		guard_run();
		r0 = prog->entry(prog, memory->size ? memory->data : NULL);
		printf("%llx\n", (unsigned long long)r0);
	}
	free_prog(prog);
	strbuf_fini(&log);
	return status;
}

static int run(const struct cli_globals *g, void *opts, int argc, char **argv)
{
	struct cli_bytes text = {}, program = {}, memory = {};
	int status = cli_file_read("-", &text);

	if (!status)
		status = parse_hex("program", text.data, text.size, &program);
	if (!status && argc)
		status = parse_hex("memory", argv[0], strlen(argv[0]), &memory);
	if (!status && (!program.size || program.size % sizeof(struct bpf_insn)))
		status = cli_fail("program: %zu bytes on standard input are no whole instructions", program.size);
	if (!status)
		status = run_bare(g, &program, &memory);
	cli_bytes_free(&text);
	cli_bytes_free(&program);
	cli_bytes_free(&memory);
	return status;
}

const struct cli_command cmd_conformance = {
	.name = "conformance-plugin",
	.args = "[HEX-MEMORY]",
	.summary = "Run bare instructions, as instruction test suites do",
	.text = "Reads a program as hex bytes from standard input, runs it with r1 pointing\n"
		"to the memory given (hex bytes; none: NULL) and r2 its length, and prints\n"
		"r0 in hex. Compiled, or with --interp interpreted. Not verified: for\n"
		"trusted test programs only.",
	.max_args = 1,
	.run = run,
};
