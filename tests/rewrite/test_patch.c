// SPDX-License-Identifier: BSD-2-Clause
// Moving instructions: jumps, calls, tables and facts keep meaning what they meant.
#include <errno.h>

#include "../exec/bare.h"
#include "rewrite/rewrite_int.h"

static u64 seed = 88172645463325252ULL;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

static u64 run(struct prog *prog)
{
	struct strbuf log = STRBUF_INIT;
	u64 ret = 0xdeadbadc0de;

	if (!exec_prepare(prog, &log)) {
		ret = prog->entry(prog, NULL);
		prog->image_free(prog);
	} else {
		printf("# %s\n", strbuf_str(&log));
	}
	strbuf_fini(&log);
	return ret;
}

#define LEN 80

/* Jumps forward over arithmetic, two-slot constants, calls of two functions at the end. */
static struct prog *generate(void)
{
	struct strbuf t = STRBUF_INIT;
	struct prog *prog;
	int i;

	strbuf_puts(&t, "r0 = 1; r6 = 2; r7 = 3;");
	for (i = 0; i < LEN; i++) {
		strbuf_printf(&t, "l%d:", i);
		switch (rnd() % 8) {
		case 0:
			strbuf_printf(&t, "if r%u %s %d goto l%d;", 6 + rnd() % 2, rnd() % 2 ? ">" : "s<",
				      (int)(rnd() % 1000) - 500, i + 1 + rnd() % (LEN - i));
			break;
		case 1:
			strbuf_printf(&t, "r8 = 0x%x%08x ll; r0 ^= r8;", rnd() & 0xffff, rnd());
			break;
		case 2:
			strbuf_printf(&t, "call f%u; r0 += 5;", rnd() % 2);
			break;
		case 3:
			strbuf_printf(&t, "%s l%d;", rnd() % 2 ? "goto" : "gotol", i + 1 + rnd() % (LEN - i));
			break;
		case 4:
			strbuf_printf(&t, "r1 = 3; r2 = f%u ll; r3 = 0; call 2;", rnd() % 2);
			break;
		default:
			strbuf_printf(&t, "r0 %s %d; r%u += r0;", rnd() % 2 ? "*=" : "^=", rnd() & 0xffff, 6 + rnd() % 2);
		}
	}
	strbuf_printf(&t, "l%d: r0 += r6; r0 += r7; exit;", LEN);
	strbuf_puts(&t, "f0: r0 = 7; r6 = 1; if r6 == 1 goto e0; r0 = 9; e0: exit;");
	strbuf_puts(&t, "f1: call f0; r0 *= 3; exit");
	prog = bare_assemble(strbuf_str(&t));
	strbuf_fini(&t);
	return prog;
}

/* Sequences that do nothing, jumps of their own included; main is the instruction itself. */
static void pad(struct rw_edits *e, u32 pc, const struct bpf_insn *insn)
{
	struct bpf_insn seq[6];

	switch (rnd() % 4) {
	case 0:
		seq[0] = ISA_MOV_REG(9, 9);
		seq[1] = *insn;
		rw_edit(e, pc, 1, seq, 2, 1);
		break;
	case 1:
		seq[0] = ISA_GOTO(1);
		seq[1] = ISA_MOV(0, 666);
		seq[2] = *insn;
		rw_edit(e, pc, 1, seq, 3, 2);
		break;
	case 2:
		seq[0] = ISA_IF_REG(JEQ, 0, 0, 2);
		seq[1] = ISA_MOV(0, 666);
		seq[2] = ISA_GOTO(-2);
		seq[3] = ISA_MOV_REG(9, 9);
		seq[4] = *insn;
		rw_edit(e, pc, 1, seq, 5, 4);
		break;
	case 3:
		/* after it, where it does not jump: [insn, skip, junk, insn+1] */
		if (insn->code == (BPF_JMP | BPF_EXIT))
			return;
		seq[0] = *insn;
		seq[1] = ISA_IF_REG(JEQ, 0, 0, 1);
		seq[2] = ISA_MOV(0, 666);
		rw_edit(e, pc, 1, seq, 3, 0);
		break;
	}
}

static void meaning_is_kept(void)
{
	int i, round, bad = 0, moved = 0;

	for (i = 0; i < 600 && !bad; i++) {
		struct prog *prog = generate();
		u64 want;

		if (!prog) {
			bad++;
			break;
		}
		want = run(prog);
		for (round = 0; round < 3 && !bad; round++) {
			struct rw_edits e = { 0 };
			u32 pc, before = prog->nr_insns;

			for (pc = 0; pc < prog->nr_insns; pc += isa_slots(prog->insns[pc].code))
				if (rnd() % 4 == 0 && isa_slots(prog->insns[pc].code) == 1)
					pad(&e, pc, &prog->insns[pc]);
			if (rw_patch(prog, &e, NULL))
				bad++;
			moved += prog->nr_insns - before;
			if (run(prog) != want)
				bad++;
		}
		bare_free(prog);
	}
	ok(!bad, "%d random programs mean the same after %d slots were inserted", i, moved);
}

static void tables(void)
{
	struct prog *prog = bare_assemble("r6 = 0; if r6 == 0 goto a; call dead; a: call f; exit;"
					  "dead: r0 = 1; exit; f: r0 = 42; exit");
	struct rw_edits e = { 0 };
	struct prog_line lines[] = { { 0, 0, 10, 0 }, { 2, 0, 20, 0 }, { 3, 0, 30, 0 }, { 5, 0, 40, 0 },
				     { 6, 0, 45, 0 }, { 7, 0, 50, 0 }, { 8, 0, 60, 0 } };
	struct prog_func_info funcs[] = { { 0, 100 }, { 5, 101 }, { 7, 102 } };

	if (!prog) {
		ok(false, "the program assembles");
		return;
	}
	prog->line_info = malloc(sizeof(lines));
	memcpy(prog->line_info, lines, sizeof(lines));
	prog->nr_line_info = ARRAY_SIZE(lines);
	prog->func_info = malloc(sizeof(funcs));
	memcpy(prog->func_info, funcs, sizeof(funcs));
	prog->nr_func_info = 3;
	prog->subprogs[0].func_info = 0;
	prog->subprogs[1].func_info = 1;
	prog->subprogs[2].func_info = 2;
	is_int(prog->facts[3].subprog, 2, "f is subprogram 2");
	rw_edit(&e, 2, 1, NULL, 0, RW_NO_MAIN);
	rw_edit(&e, 5, 2, NULL, 0, RW_NO_MAIN);
	is_int(rw_patch(prog, &e, NULL), 0, "a call and the function it called are removed");
	is_int(prog->nr_insns, 6, "their slots are gone");
	is_int(prog->nr_subprogs, 2, "and the subprogram");
	is_int(prog->subprogs[1].start, 4, "the other one moved");
	is_int(prog->facts[2].subprog, 1, "and its call knows its new number");
	is_int(prog->facts[2].orig, 3, "facts remember where they come from");
	ok(prog->nr_func_info == 2 && prog->func_info[1].type_id == 102 && prog->func_info[1].insn_off == 4 &&
		   prog->subprogs[1].func_info == 1,
	   "function information follows");
	ok(prog->nr_line_info == 4 && prog->line_info[1].insn_off == 2 && prog->line_info[1].line_off == 30 &&
		   prog->line_info[2].insn_off == 4 && prog->line_info[2].line_off == 50 &&
		   prog->line_info[3].insn_off == 5,
	   "lines follow; of those that meet the last stays");
	is_u64(run(prog), 42, "and it still runs");
	bare_free(prog);
}

static struct prog *far_program(const char *jump, int distance)
{
	struct strbuf t = STRBUF_INIT;
	struct prog *prog;
	int i;

	strbuf_printf(&t, "r0 = 5; %s out;", jump);
	for (i = 0; i < distance; i++)
		strbuf_puts(&t, "r0 = 0;");
	strbuf_puts(&t, "out: exit");
	prog = bare_assemble(strbuf_str(&t));
	strbuf_fini(&t);
	return prog;
}

/* Inserts n slots in the middle of a program whose jump reaches just so far. */
static int stretch(struct prog *prog, u32 n, struct strbuf *log)
{
	struct bpf_insn seq[8];
	struct rw_edits e = { 0 };
	u32 i;

	for (i = 0; i < n; i++)
		seq[i] = ISA_MOV(0, 0);
	seq[n] = prog->insns[100];
	rw_edit(&e, 100, 1, seq, n + 1, n);
	return rw_patch(prog, &e, log);
}

static void reach(void)
{
	struct strbuf log = STRBUF_INIT;
	struct prog *prog = far_program("if r0 == 5 goto", 32766);

	is_int(stretch(prog, 1, &log), 0, "a conditional jump reaches 32767");
	is_int(prog->insns[1].off, 32767, "and does");
	is_u64(run(prog), 5, "in the right place");
	is_int(stretch(prog, 1, &log), -ERANGE, "but not 32768");
	ok(strstr(strbuf_str(&log), "insn 1 cannot be patched due to 16-bit range"), "which is said: %.*s",
	   (int)log.len - 1, strbuf_str(&log));
	is_int(prog->nr_insns, 32770, "and then nothing has changed");
	is_u64(run(prog), 5, "nor its meaning");
	bare_free(prog);
	prog = far_program("goto", 32767);
	is_int(stretch(prog, 5, &log), 0, "a plain jump becomes a long one");
	ok(prog->insns[1].code == (BPF_JMP32 | BPF_JA) && prog->insns[1].imm == 32772, "with its distance as immediate");
	is_u64(run(prog), 5, "in the right place");
	bare_free(prog);
	prog = far_program("gotol", 40000);
	is_int(stretch(prog, 5, &log), 0, "a long one stays");
	is_u64(run(prog), 5, "in the right place too");
	bare_free(prog);
	strbuf_fini(&log);
}

static void misuse(void)
{
	struct prog *prog = bare_assemble("r0 = 0; goto a; r0 = 1; a: r0 = 2; exit");
	struct bpf_insn one[] = { ISA_MOV(0, 3) };
	struct rw_edits e = { 0 };

	rw_edit(&e, 2, 2, one, 1, RW_NO_MAIN);
	is_int(rw_patch(prog, &e, NULL), -EFAULT, "a jump into the middle of what is replaced is refused");
	is_u64(run(prog), 2, "and nothing has changed");
	is_int(rw_patch(prog, &e, NULL), 0, "no edits: nothing to do");
	rw_edit(&e, 3, 1, one, 1, RW_NO_MAIN);
	is_int(rw_patch(prog, &e, NULL), 0, "its first slot may be a target");
	is_u64(run(prog), 3, "and the jump finds what replaced it");
	bare_free(prog);
}

int main(void)
{
	meaning_is_kept();
	tables();
	reach();
	misuse();
	return tap_done();
}
