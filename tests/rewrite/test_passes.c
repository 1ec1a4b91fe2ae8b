// SPDX-License-Identifier: BSD-2-Clause
// The passes one by one, and what the whole leaves compared with what the running kernel makes of the same program.
#include <errno.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../exec/bare.h"
#include "isa/eval.h"
#include "object/map.h"
#include "object/progtype.h"
#include "rewrite/rewrite_int.h"

static char *text_of(const struct prog *prog)
{
	static char buf[8192];
	struct strbuf out = STRBUF_INIT;
	struct isa_names names = rw_names(prog);
	u32 pc;

	for (pc = 0; pc < prog->nr_insns;) {
		if (pc)
			strbuf_puts(&out, "; ");
		pc += isa_disasm(&out, &prog->insns[pc], prog->nr_insns - pc, &names);
	}
	snprintf(buf, sizeof(buf), "%s", strbuf_str(&out));
	strbuf_fini(&out);
	return buf;
}

/* unseen: slots no path reaches, as digits and letters ("0".."9", "a".."z"). */
static void leaves(const char *text, const char *unseen, const char *want)
{
	struct prog *prog = bare_assemble(text);

	if (!prog) {
		ok(false, "assembles: %s", text);
		return;
	}
	for (; *unseen; unseen++)
		prog->facts[*unseen <= '9' ? *unseen - '0' : *unseen - 'a' + 10].seen = 0;
	if (!ok(!rw_xlate(prog, NULL) && !strcmp(text_of(prog), want), "\"%s\" becomes \"%s\"", text, want))
		printf("# got %s\n", text_of(prog));
	bare_free(prog);
}

static void dead(void)
{
	leaves("r0 = 0; if r0 == 0 goto +1; r0 = 1; exit", "2", "(b7) r0 = 0; (95) exit");
	leaves("r0 = 0; if r0 != 0 goto +1; exit; r0 = 1; exit", "34", "(b7) r0 = 0; (95) exit");
	leaves("r0 = 0; if r0 != 0 goto +1; r0 = 2; exit", "", "(b7) r0 = 0; (55) if r0 != 0x0 goto pc+1; (b7) r0 = 2; (95) exit");
	leaves("r0 = 0; if r1 == 0 goto live; if r0 == 0 goto x; r0 = 7; live: r0 = 1; x: exit", "3",
	       "(b7) r0 = 0; (15) if r1 == 0x0 goto pc+1; (05) goto pc+1; (b7) r0 = 1; (95) exit");
	leaves("goto +0; r0 = 0; goto +0; exit", "", "(b7) r0 = 0; (95) exit");
	leaves("r0 = 0; if r0 == 0 goto +2; r1 = 1 ll; exit", "23", "(b7) r0 = 0; (95) exit");
	leaves("r0 = 0; may_goto +0; exit", "", "(b7) r0 = 0; (95) exit");
	leaves("r0 = 0; may_goto +2; may_goto +1; may_goto +0; exit", "", "(b7) r0 = 0; (95) exit");
	leaves("r0 = 0; goto +1; goto +0; exit", "", "(b7) r0 = 0; (05) goto pc+0; (95) exit");
	leaves("l: r0 += 1; if r0 == 9 goto out; if r0 == 99 goto bad; goto l; bad: r1 = 0; out: exit", "4",
	       "(07) r0 += 1; (15) if r0 == 0x9 goto pc+1; (05) goto pc-3; (95) exit");
	leaves("r0 = 0; if r0 == 0 goto +1; call f; exit; f: r0 = 1; exit", "245", "(b7) r0 = 0; (95) exit");
}

static void probes(void)
{
	struct prog *prog = bare_assemble("r0 = *(u64 *)(r1 + 8); r0 = *(s8 *)(r1 + 1); r0 = *(u32 *)(r10 - 8); exit");
	struct bpf_insn user[4];

	prog->facts[0].mem = INSN_MEM_PROBE;
	prog->facts[1].mem = INSN_MEM_PROBE;
	is_int(rw_xlate(prog, NULL), 0, "loads through pointers that may be stale");
	ok(!strcmp(text_of(prog), "(39) r0 = *(probe u64 *)(r1 +8); (51) r0 = *(probe s8 *)(r1 +1); "
				  "(61) r0 = *(u32 *)(r10 -8); (95) exit"),
	   "become probing loads, others not: %s", text_of(prog));
	rw_user_insns(prog, user);
	ok(user[0].code == (BPF_LDX | BPF_MEM | BPF_DW) && user[1].code == (BPF_LDX | BPF_MEMSX | BPF_B),
	   "what users see of them is plain loads");
	bare_free(prog);
	prog = bare_assemble("*(u64 *)(r1 + 8) = 1; r0 = 0; exit");
	prog->facts[0].mem = INSN_MEM_PROBE;
	is_int(rw_xlate(prog, NULL), -EINVAL, "a store through one is refused");
	bare_free(prog);
}

static int convert(const struct prog *prog, const struct bpf_insn *insn, struct bpf_insn *out)
{
	if (insn->off == 100)
		return -EACCES;
	out[0] = ISA_LOAD(DW, insn->dst_reg, insn->src_reg, 0);
	out[1] = ISA_LOAD(W, insn->dst_reg, insn->dst_reg, insn->off);
	return 2;
}

static void contexts(void)
{
	static const struct prog_type_ops type = { .convert_ctx = convert };
	struct prog *prog = bare_assemble("if r1 == 0 goto out; r2 = *(u32 *)(r1 + 4); r3 = *(u32 *)(r1 + 8); out: exit");

	prog->ops = &type;
	prog->facts[1].mem = INSN_MEM_CTX;
	is_int(rw_xlate(prog, NULL), 0, "context accesses");
	ok(!strcmp(text_of(prog), "(15) if r1 == 0x0 goto pc+3; (79) r2 = *(u64 *)(r1 +0); (61) r2 = *(u32 *)(r2 +4); "
				  "(61) r3 = *(u32 *)(r1 +8); (95) exit"),
	   "are what the type makes of them: %s", text_of(prog));
	bare_free(prog);
	prog = bare_assemble("r2 = *(u32 *)(r1 + 100); exit");
	prog->ops = &type;
	prog->facts[0].mem = INSN_MEM_CTX;
	is_int(rw_xlate(prog, NULL), -EACCES, "the type's refusal is the result");
	bare_free(prog);
}

static void constants(void)
{
	struct prog *prog = bare_assemble("r1 = map[fd:33]; r2 = map[fd:33][0]+16; r3 = btf[id:5 fd:0]; r4 = map[idx:2];"
					  "r5 = 0x5 ll; call pc+1; exit; r0 = 0; exit");
	struct map map = { .obj.id = 7 };

	prog->facts[0].map = prog->facts[2].map = prog->facts[6].map = &map;
	prog->facts[4].imm64 = 0x123456789a;
	is_int(rw_xlate(prog, NULL), 0, "constants");
	memcpy(prog->tag, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8);
	if (!ok(!strcmp(text_of(prog), "(18) r1 = map[id:7]; (18) r2 = map[id:7][0]+16; (18) r3 = 0x123456789a; "
				       "(18) r4 = map[id:7]; (18) r5 = 0x5; (85) call pc+1#bpf_prog_0123456789abcdef_F; "
				       "(95) exit; (b7) r0 = 0; (95) exit"),
		"are shown in bpftool's words"))
		printf("# got %s\n", text_of(prog));
	bare_free(prog);
	prog = bare_assemble("r1 = map[fd:33]; exit");
	is_int(rw_xlate(prog, NULL), -EINVAL, "a map nobody resolved is refused");
	bare_free(prog);
}

static void hidden_args(void)
{
	struct prog *prog = bare_assemble("if r1 == 0 goto c; r4 = 1; c: call 4; call 4; exit");

	prog->facts[2].storage_atomic = 1;
	is_int(rw_xlate(prog, NULL), 0, "calls that create storage");
	ok(!strcmp(text_of(prog), "(15) if r1 == 0x0 goto pc+1; (b7) r4 = 1; (b7) r5 = 2080; (85) call storage_get#4; "
				  "(b7) r5 = 3264; (85) call storage_get#4; (95) exit"),
	   "are told how they may allocate: %s", text_of(prog));
	bare_free(prog);
}

/* ---- the kernel ---- */

static u64 seed = 88172645463325252ULL;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

/* Loads as a socket filter and returns the number of xlated slots, or -errno. */
static int kernel_xlated(const struct bpf_insn *insns, u32 n, struct bpf_insn *out, u32 cap)
{
	struct bpf_prog_info info = { .xlated_prog_len = cap * sizeof(*out), .xlated_prog_insns = (u64)out };
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = n, .insns = (u64)insns,
				.license = (u64) "GPL" };
	union bpf_attr get = { 0 };
	int fd = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load)), err;

	if (fd < 0)
		return -errno;
	get.info.bpf_fd = fd;
	get.info.info_len = sizeof(info);
	get.info.info = (u64)&info;
	err = syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &get, sizeof(get)) ? -errno : 0;
	close(fd);
	return err ? err : (int)(info.xlated_prog_len / sizeof(*out));
}

/* Linux's count of a may_goto's rounds uses r11, which no program can. */
static bool has_may_goto(const struct bpf_insn *insns, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (insns[i].dst_reg == 11)
			return true;
	return false;
}

#define LEN 40

/* Everything in it is constant, so what a run executes is what the verifier sees. */
static u32 generate(struct bpf_insn *out)
{
	static const enum isa_op alu[] = { ISA_ADD64_K, ISA_AND64_K, ISA_XOR64_K, ISA_MOV64_X, ISA_SUB64_X, ISA_OR32_K };
	static const enum isa_op jmp[] = { ISA_JEQ64_K, ISA_JGT64_K, ISA_JNE32_K, ISA_JSLT64_X, ISA_JSET64_K, ISA_JLE64_X };
	u32 n = 0, k, chain;
	int op;

	for (k = 0; k < 4; k++)
		out[n++] = ISA_MOV(k, rnd() % 8);
	while (n < LEN) {
		switch (rnd() % 8) {
		case 0:
			out[n++] = ISA_GOTO(rnd() % 4 ? 0 : rnd() % 3);
			break;
		case 1:
			/* all of a chain lead behind it */
			for (chain = rnd() % 3 + 1; chain && n < LEN; chain--)
				out[n++] = isa_encode(rnd() % 4 ? ISA_MAY_GOTO : ISA_JA, 0, 0, chain - 1, 0);
			if (chain)
				return 0;
			break;
		case 2:
			out[n++] = isa_encode(ISA_LD_IMM64, rnd() % 4, 0, 0, rnd() % 8);
			out[n++] = (struct bpf_insn){ 0 };
			break;
		case 3:
		case 4:
		case 5:
			op = jmp[rnd() % ARRAY_SIZE(jmp)];
			out[n++] = isa_encode(op, rnd() % 4, isa_is_reg_form(isa_info[op].code) ? rnd() % 4 : 0, rnd() % 5,
					      isa_is_reg_form(isa_info[op].code) ? 0 : rnd() % 8);
			break;
		default:
			op = alu[rnd() % ARRAY_SIZE(alu)];
			out[n++] = isa_encode(op, rnd() % 4, isa_is_reg_form(isa_info[op].code) ? rnd() % 4 : 0, 0,
					      isa_is_reg_form(isa_info[op].code) ? 0 : rnd() % 8);
		}
	}
	for (k = 0; k < 5; k++)
		out[n++] = ISA_ALU64(ADD, 0, 1);
	out[n++] = ISA_RETURN();
	return n;
}

/* Marks what one run executes; false if it leaves the program. */
static bool mark_seen(struct prog *prog)
{
	u64 regs[11] = { 0 };
	u32 pc, steps;

	for (pc = 0; pc < prog->nr_insns; pc++)
		prog->facts[pc].seen = 0;
	for (pc = 0, steps = 0; pc < prog->nr_insns && steps < 1000; steps++) {
		const struct bpf_insn *insn = &prog->insns[pc];
		int op = isa_decode(insn);
		u64 src = isa_is_reg_form(insn->code) ? regs[insn->src_reg] : isa_imm(insn);

		prog->facts[pc].seen = 1;
		switch (isa_info[op].kind) {
		case ISA_K_EXIT:
			return true;
		case ISA_K_LD_IMM64:
			regs[insn->dst_reg] = isa_imm64(insn);
			prog->facts[++pc].seen = 1;
			break;
		case ISA_K_JA:
			pc += insn->off;
			break;
		case ISA_K_MAY_GOTO:
			break; /* both ways lead to the same, over others of its kind */
		case ISA_K_JMP:
			pc += isa_eval_jmp(op, regs[insn->dst_reg], src) ? insn->off : 0;
			break;
		default:
			regs[insn->dst_reg] = isa_eval_alu(op, regs[insn->dst_reg], src);
		}
		pc++;
	}
	return false;
}

static void show(const char *who, const struct bpf_insn *insns, u32 n)
{
	struct strbuf t = STRBUF_INIT;
	u32 pc;

	for (pc = 0; pc < n;) {
		pc += isa_disasm(&t, &insns[pc], n - pc, NULL);
		strbuf_puts(&t, "; ");
	}
	printf("# %s: %s\n", who, strbuf_str(&t));
	strbuf_fini(&t);
}

static void same_as_kernel(void)
{
	int i, compared = 0, bad = 0, shrunk = 0, n;

	for (i = 0; i < 20000 && compared < 600 && bad < 3; i++) {
		struct bpf_insn insns[LEN + 8], theirs[8 * LEN];
		struct prog *prog;
		u32 len = generate(insns);

		n = len ? kernel_xlated(insns, len, theirs, ARRAY_SIZE(theirs)) : -EINVAL;
		if (n < 0 || has_may_goto(theirs, n))
			continue; /* unreachable by its control flow; or a may_goto stayed, and Linux counts in the text */
		prog = calloc(1, sizeof(*prog));
		prog->insns = calloc(len, sizeof(*insns));
		memcpy(prog->insns, insns, len * sizeof(*insns));
		prog->nr_insns = len;
		if (!rw_assume(prog, NULL) && mark_seen(prog)) {
			compared++;
			if (rw_xlate(prog, NULL) || (int)prog->nr_insns != n ||
			    memcmp(prog->insns, theirs, n * sizeof(*theirs))) {
				bad++;
				printf("# ours:   %s\n", text_of(prog));
				show("kernel", theirs, n);
				show("loaded", insns, len);
			}
			shrunk += n < (int)len;
		}
		bare_free(prog);
	}
	ok(!bad && compared > 200, "%d random programs are the kernel's, slot for slot", compared);
	ok(shrunk > compared / 2, "most of them, %d, lost something", shrunk);
}

int main(void)
{
	struct bpf_insn trivial[] = { ISA_MOV(0, 0), ISA_RETURN() }, out[4];
	struct utsname un;
	int n;

	dead();
	probes();
	contexts();
	constants();
	hidden_args();
	n = kernel_xlated(trivial, 2, out, 4);
	if (n < 0)
		tap_skip("the kernel loads no program here: %s", strerror(-n));
	else if (uname(&un) || strncmp(un.release, "6.18.", 5))
		tap_skip("kernel %s, not 6.18", un.release);
	else
		same_as_kernel();
	return tap_done();
}
