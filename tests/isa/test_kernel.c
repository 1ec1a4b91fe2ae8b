// SPDX-License-Identifier: BSD-2-Clause
// The running kernel as oracle: random single instructions must be refused in the same words and shown
// as the same text. Skipped where bpf(2) is not to be had, or the kernel is not the one followed.
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "isa/disasm.h"
#include "tap.h"

static char kernel_log[1 << 16];

static int load(const struct bpf_insn *insns, u32 len)
{
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insn_cnt = len,
		.insns = (u64)insns,
		.license = (u64) "GPL",
		.log_level = 2,
		.log_size = sizeof(kernel_log),
		.log_buf = (u64)kernel_log,
	};
	int fd;

	kernel_log[0] = 0;
	fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static u64 seed = 88172645463325252ULL;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

static s32 rnd_imm(void)
{
	static const s32 edge[] = { 0, 1, -1, 2, 16, 31, 32, 63, 64, 0xe1, 0xf1, 0x41, 0x100, 0x110, 24 };

	return rnd() % 8 ? edge[rnd() % ARRAY_SIZE(edge)] : (s32)rnd();
}

static s16 rnd_off(void)
{
	static const s16 edge[] = { 0, 1, -1, 8, 16, 32, -8, 2, 64 };

	return edge[rnd() % ARRAY_SIZE(edge)];
}

/* A row's instruction with some fields disturbed, or any opcode byte at all. */
static struct bpf_insn generate(void)
{
	int op = rnd() % ISA_OP_MAX;
	struct bpf_insn insn = isa_encode(op, rnd() % 10, rnd() % 10, 0, rnd_imm());
	const struct isa_info *info = &isa_info[op];
	int used = info->fields | info->sel;

	if (!(used & ISA_F_DST) && rnd() % 4)
		insn.dst_reg = 0;
	if (!(used & ISA_F_SRC) && rnd() % 4)
		insn.src_reg = 0;
	if (!(used & ISA_F_IMM) && rnd() % 4)
		insn.imm = 0;
	if (rnd() % 3 == 0)
		insn.off = rnd_off();
	if (rnd() % 6 == 0)
		insn.imm = rnd_imm();
	if (rnd() % 10 == 0)
		insn.code = rnd();
	return insn;
}

/* Makes the instruction one whose encoding is all the kernel can dislike before it looks at control flow. */
static bool comparable(struct bpf_insn *insn)
{
	u8 class = BPF_CLASS(insn->code);

	if (insn->code == (BPF_JMP | BPF_CALL) && (insn->src_reg == 1 || insn->src_reg == 2))
		return false; /* where it leads comes first */
	if (insn->code == (BPF_JMP | BPF_CALL) || insn->code == (BPF_JMP | BPF_EXIT))
		return true;
	if (insn->code == (BPF_LD | BPF_IMM | BPF_DW) && insn->src_reg >= 1 && insn->src_reg <= 6)
		return false; /* what it loads comes first */
	if (insn->code == (BPF_JMP32 | BPF_JA))
		insn->imm = 0;
	else if (class == BPF_JMP || class == BPF_JMP32)
		insn->off = 0;
	return true;
}

static const char *our_message(const struct bpf_insn *insn, u32 left, char msg[ISA_MSG_MAX])
{
	int op;

	if (isa_check_shape(insn, left, msg) < 0)
		return msg;
	op = isa_check_insn(insn, msg);
	return op < 0 || isa_check_imm(op, insn, msg) ? msg : NULL;
}

static bool log_has_line(const char *line)
{
	size_t n = strlen(line);
	const char *s;

	for (s = kernel_log; (s = strstr(s, line)); s++)
		if ((s == kernel_log || s[-1] == '\n') && s[n] == '\n')
			return true;
	return false;
}

/* Does the log complain about the encoding? */
static bool log_has_complaint(void)
{
	static const char *const complaint[] = { "reserved fields", "unknown opcode", "div by zero",
		"invalid shift", "invalid atomic", "may_goto imm", "ld_imm64 insn", "can only convert" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(complaint); i++)
		if (strstr(kernel_log, complaint[i]))
			return true;
	return false;
}

/* Is the kernel's text of instruction pc, if it shows one, ours? It names helpers, which isa/ cannot. */
static bool same_text(u32 pc, const struct bpf_insn *insn, u32 left, bool *ret_shown)
{
	struct strbuf text = STRBUF_INIT;
	char head[16], theirs[256];
	const char *s = kernel_log;
	bool same;

	*ret_shown = false;
	snprintf(head, sizeof(head), "\n%u: ", pc);
	s = strstr(s, head);
	if (!s || insn->code == (BPF_JMP | BPF_CALL))
		return true;
	s += strlen(head);
	if (strncmp(s, "(", 1) && strncmp(s, "BUG", 3))
		return true;
	snprintf(theirs, sizeof(theirs), "%.*s", (int)strcspn(s, ";\n"), s);
	while (theirs[0] && theirs[strlen(theirs) - 1] == ' ')
		theirs[strlen(theirs) - 1] = 0;
	*ret_shown = true;
	isa_disasm(&text, insn, left, NULL);
	same = !strcmp(theirs, strbuf_str(&text));
	if (!same)
		printf("# kernel: %s\n# ours:   %s\n", theirs, strbuf_str(&text));
	strbuf_fini(&text);
	return same;
}

static void random_instructions(void)
{
	int i, refused = 0, wrong = 0, text_wrong = 0, shown = 0, accepted = 0;

	for (i = 0; i < 8000; i++) {
		struct bpf_insn prog[16];
		char msg[ISA_MSG_MAX];
		const char *ours;
		bool was_shown;
		u32 n = 0, pc;

		for (; n < 10; n++)
			prog[n] = n == 6 ? ISA_MOV_REG(6, 1) : ISA_MOV(n, n + 1);
		/* r1 is the context until r6 has it */
		prog[1] = ISA_MOV_REG(6, 1);
		prog[6] = ISA_MOV(1, 5);
		pc = n;
		prog[n] = generate();
		if (!comparable(&prog[n]))
			continue;
		n++;
		if (isa_slots(prog[pc].code) == 2)
			prog[n++] = (struct bpf_insn){ .imm = rnd_imm(), .off = rnd() % 8 ? 0 : 1 };
		if (prog[pc].code != (BPF_JMP | BPF_EXIT)) {
			prog[n++] = ISA_MOV(0, 0);
			prog[n++] = ISA_RETURN();
		}
		accepted += !load(prog, n);
		ours = our_message(&prog[pc], n - pc, msg);
		if (ours ? !log_has_line(ours) : log_has_complaint()) {
			if (wrong++ < 5)
				printf("# %02x dst %d src %d off %d imm %d: ours \"%s\", kernel:\n# %s\n",
				       prog[pc].code, prog[pc].dst_reg, prog[pc].src_reg, prog[pc].off,
				       prog[pc].imm, ours ? ours : "accepted",
				       strlen(kernel_log) > 600 ? kernel_log + strlen(kernel_log) - 600 : kernel_log);
		}
		refused += !!ours;
		text_wrong += !same_text(pc, &prog[pc], n - pc, &was_shown);
		shown += was_shown;
	}
	ok(!wrong && refused > 3000, "%d encodings are refused in the kernel's words", refused);
	ok(accepted > 2000, "%d programs are accepted and not complained of", accepted);
	ok(!text_wrong && shown > 6000, "%d instructions have the kernel's text", shown);
}

int main(void)
{
	struct bpf_insn trivial[] = { ISA_MOV(0, 0), ISA_RETURN() };
	struct utsname un;
	int err = load(trivial, 2);

	if (err) {
		tap_skip("the kernel loads no program here: %s", strerror(-err));
		return tap_done();
	}
	if (uname(&un) || strncmp(un.release, "6.18.", 5)) {
		tap_skip("kernel %s, not 6.18: messages may differ", un.release);
		return tap_done();
	}
	random_instructions();
	return tap_done();
}
