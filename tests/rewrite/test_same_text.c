// SPDX-License-Identifier: BSD-2-Clause
/*
 * The same random programs, with values nobody knows, to this engine and to the running kernel: the same verdict, and
 * slot for slot the same xlated program, guards of divisions included. Left out are 32-bit shifts by an unknown count: of
 * their result Linux does not know that its upper half is 0, so it keeps code that is dead.
 */
#include "../sys/engine.h"
#include "isa/disasm.h"

#define LEN 48
#define MAX 512

static u64 seed = 88172645463325252ULL;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

static bool left_out(int op)
{
	u8 code = isa_info[op].code, o = BPF_OP(code);

	return (o == BPF_LSH || o == BPF_RSH || o == BPF_ARSH) && isa_is_reg_form(code) && isa_info[op].width == 4;
}

static struct bpf_insn one(u32 left)
{
	int op = rnd() % ISA_OP_MAX;
	const struct isa_info *info = &isa_info[op];
	u8 dst = rnd() % 6, src = info->fields & ISA_F_SRC ? rnd() % 6 : 0;
	s32 imm = info->fields & ISA_F_IMM ? (rnd() % 3 ? (s32)(rnd() % 9) : (s32)rnd()) : 0;

	switch (info->kind) {
	case ISA_K_ALU:
		if (left_out(op) || ((BPF_OP(info->code) == BPF_DIV || BPF_OP(info->code) == BPF_MOD) && rnd() % 4))
			break;
		if (!isa_is_reg_form(info->code) && BPF_OP(info->code) != BPF_ADD)
			imm &= 31; /* shifts among them */
		return isa_encode(op, dst, src, 0, imm);
	case ISA_K_NEG:
	case ISA_K_MOV:
	case ISA_K_END:
		return isa_encode(op, dst, src, 0, imm);
	case ISA_K_JMP:
		return isa_encode(op, dst, src, rnd() % min_of(left, 9u), imm);
	case ISA_K_JA:
		if (op == ISA_JA)
			return ISA_GOTO(rnd() % min_of(left, 3u));
		break;
	case ISA_K_LDX:
		if (!info->internal)
			return isa_encode(op, dst, 10, -8 * (1 + rnd() % 3), 0);
		break;
	case ISA_K_ST:
	case ISA_K_STX:
		return isa_encode(op, 10, src, -8 * (1 + rnd() % 3), imm);
	}
	return one(left);
}

static u32 generate(struct bpf_insn *out)
{
	u32 n = 0, k;

	for (k = 0; k < 6; k++)
		out[n++] = k == 1 ? ISA_MOV_REG(6, 1) : rnd() % 3 ? ISA_LOAD(DW, k, 1, 8 * (k % 4)) : ISA_MOV(k, rnd() % 9);
	out[n++] = ISA_LOAD(DW, 1, 6, 8);
	for (k = 1; k <= 3; k++)
		out[n++] = ISA_STORE(DW, 10, -8 * k, k);
	while (n < LEN) {
		out[n] = one(LEN - n);
		n++;
	}
	for (k = 0; k < 8; k++)
		out[n++] = ISA_ALU64_REG(ADD, 0, k % 6);
	out[n++] = ISA_RETURN();
	return n;
}

static char reason[1 << 16];

/* Number of xlated slots, or -errno with the log's text in reason. */
static int xlated(struct inlay *in, const struct bpf_insn *insns, u32 n, struct bpf_insn out[MAX])
{
	struct bpf_prog_info info = { .xlated_prog_len = MAX * sizeof(*out), .xlated_prog_insns = U64(out) };
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insn_cnt = n, .insns = U64(insns),
				.license = U64("GPL"), .log_level = 1, .log_buf = U64(reason), .log_size = sizeof(reason) };
	union bpf_attr get = { 0 };
	long fd, err;

	reason[0] = 0;
	fd = do_bpf(in, BPF_PROG_LOAD, &load, sizeof(load));
	if (fd < 0)
		return (int)fd;
	get.info.bpf_fd = fd;
	get.info.info_len = sizeof(info);
	get.info.info = U64(&info);
	err = do_bpf(in, BPF_OBJ_GET_INFO_BY_FD, &get, sizeof(get.info));
	close(fd);
	return err ? (int)err : (int)(info.xlated_prog_len / sizeof(*out));
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

int main(void)
{
	int i, same = 0, shrunk = 0, refused = 0, verdicts = 0, texts = 0;
	struct bpf_insn insns[LEN + 16], ours[MAX], theirs[MAX];
	struct inlay *in;

	if (!have_oracle()) {
		tap_skip("no Linux 6.18 to ask");
		return tap_done();
	}
	in = engine_start();
	for (i = 0; i < 900; i++) {
		u32 len = generate(insns);
		int k = xlated(NULL, insns, len, theirs), o = xlated(in, insns, len, ours);

		if (k < 0 && o < 0) {
			refused++;
			continue;
		}
		if ((k < 0) != (o < 0)) {
			if (verdicts++ < 3) {
				printf("# kernel %d, inlay %d: %.300s\n", k, o, o < 0 ? reason : "");
				show("loaded", insns, len);
			}
			continue;
		}
		if (k != o || memcmp(ours, theirs, k * sizeof(*ours))) {
			if (texts++ < 3) {
				show("loaded", insns, len);
				show("kernel", theirs, k);
				show("inlay ", ours, o);
			}
			continue;
		}
		same++;
		shrunk += k < (int)len;
	}
	ok(!verdicts, "the same verdict on %d programs (%d refused)", i, refused);
	ok(!texts && same > 500, "the same text of %d programs of %d", same, same + texts);
	ok(shrunk > 100, "of which %d lost something", shrunk);
	inlay_destroy(in);
	return tap_done();
}
