// SPDX-License-Identifier: BSD-2-Clause
// bpf_snprintf formats: each case against what it should print, and against the running kernel's own bpf_snprintf
// where bpf(2) is allowed.
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/probe.h"
#include "helpers/format.h"
#include "tap.h"

#define OUT 256

static const u8 ip4[4] = { 127, 0, 9, 1 };
static const u8 ip6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

static const struct {
	const char *fmt;
	u64 arg[3];
	u32 nr;
	int ret; /* length without NUL, or -errno */
	const char *want;
	bool local; /* reads this process's memory: the kernel cannot be asked */
} cases[] = {
	{ "plain", {}, 0, 5, "plain" },
	{ "%d %i", { -5, 7 }, 2, 4, "-5 7" },
	{ "%d", { 0x1ffffffffULL }, 1, 2, "-1" },
	{ "%u", { 0xffffffffffffffffULL }, 1, 10, "4294967295" },
	{ "%lu", { 0xffffffffffffffffULL }, 1, 20, "18446744073709551615" },
	{ "%lld", { 1ULL << 63 }, 1, 20, "-9223372036854775808" },
	{ "%x %X", { 0xabc, 0xabc }, 2, 7, "abc ABC" },
	{ "[%5d][%-5d][%05d]", { 42, 42, 42 }, 3, 21, "[   42][42   ][00042]" },
	{ "[%+d][% d]", { 42, 42 }, 2, 10, "[+42][ 42]" },
	{ "[%05d]", { -42 }, 1, 7, "[-0042]" },
	{ "%#x", { 0x1234 }, 1, -EINVAL, NULL },
	{ "%c%c", { 'o', 'k' }, 2, 2, "ok" },
	{ "100%%", {}, 0, 4, "100%" },
	{ "%p", { 0xdead }, 1, -1, NULL, true },
	{ "%px", { 0xffff888000001234ULL }, 1, 16, "ffff888000001234" },
	{ "%s|", { (u64) "text" }, 1, 5, "text|", true },
	{ "[%6s][%-6s]", { (u64) "ab", (u64) "ab" }, 2, 16, "[    ab][ab    ]", true },
	{ "%s|", { 0x10 }, 1, 1, "|" },
	{ "%pi4 %pI4", { (u64)ip4, (u64)ip4 }, 2, 25, "127.000.009.001 127.0.9.1", true },
	{ "%pI6", { (u64)ip6 }, 1, 39, "2001:0db8:0000:0000:0000:0000:0000:0001", true },
	{ "%pi6", { (u64)ip6 }, 1, 32, "20010db8000000000000000000000001", true },
	{ "%d %d", { 1 }, 1, -EINVAL, NULL },
	{ "%y", { 1 }, 1, -EINVAL, NULL },
	{ "%", { 1 }, 1, -EINVAL, NULL },
	{ "%l", { 1 }, 1, -EINVAL, NULL },
	{ "\x01", {}, 0, -EINVAL, NULL },
	{ "caf\xc3\xa9", {}, 0, 5, "caf\xc3\xa9" },
	{ "%\xc3", { 1 }, 1, -EINVAL, NULL },
	{ "a\tb\n", {}, 0, 4, "a\tb\n" },
};

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int array(u32 value_size, u32 flags)
{
	union bpf_attr a = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = value_size, .max_entries = 1,
			     .map_flags = flags };

	return bpf(BPF_MAP_CREATE, &a);
}

#define INSN(c, d, s, o, i) ((struct bpf_insn){ .code = c, .dst_reg = d, .src_reg = s, .off = o, .imm = i })

/* The running kernel's answer: bytes without NUL, or -errno; -ENOSYS: cannot be asked. */
static int ask_kernel(const char *fmt, const u64 *arg, u32 nr, char *text)
{
	char zero_key[4] = { 0 }, padded[OUT] = { 0 };
	int fm = array(OUT, BPF_F_RDONLY_PROG), om = array(OUT, 0), pfd, ret = -ENOSYS;
	struct bpf_insn p[24];
	union bpf_attr a;
	u32 n = 0, i;

	if (fm < 0 || om < 0)
		goto out;
	strcpy(padded, fmt);
	a = (union bpf_attr){ .map_fd = fm, .key = (u64)zero_key, .value = (u64)padded };
	bpf(BPF_MAP_UPDATE_ELEM, &a);
	a = (union bpf_attr){ .map_fd = fm };
	bpf(BPF_MAP_FREEZE, &a);
	for (i = 0; i < nr; i++) {
		p[n++] = INSN(BPF_LD | BPF_IMM | BPF_DW, 1, 0, 0, (s32)arg[i]);
		p[n++] = INSN(0, 0, 0, 0, (s32)(arg[i] >> 32));
		p[n++] = INSN(BPF_STX | BPF_MEM | BPF_DW, 10, 1, -24 + 8 * (s32)i, 0);
	}
	p[n++] = INSN(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_VALUE, 0, om);
	p[n++] = INSN(0, 0, 0, 0, 0);
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, OUT);
	p[n++] = INSN(BPF_LD | BPF_IMM | BPF_DW, 3, BPF_PSEUDO_MAP_VALUE, 0, fm);
	p[n++] = INSN(0, 0, 0, 0, 0);
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 10, 0, 0);
	p[n++] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, -24);
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 5, 0, 0, nr * 8);
	p[n++] = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_snprintf);
	p[n++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	a = (union bpf_attr){ .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insns = (u64)p, .insn_cnt = n,
			      .license = (u64) "GPL" };
	pfd = bpf(BPF_PROG_LOAD, &a);
	if (pfd < 0) {
		/* a format the kernel refuses is refused at load */
		ret = errno == EINVAL ? -EINVAL : -ENOSYS;
		goto out;
	}
	a = (union bpf_attr){ .test.prog_fd = pfd };
	if (!bpf(BPF_PROG_TEST_RUN, &a)) {
		ret = (s32)a.test.retval;
		ret = ret > 0 ? ret - 1 : ret;
		a = (union bpf_attr){ .map_fd = om, .key = (u64)zero_key, .value = (u64)text };
		bpf(BPF_MAP_LOOKUP_ELEM, &a);
	}
	close(pfd);
out:
	close(fm);
	close(om);
	return ret;
}

int main(void)
{
	bool may_ask = array(4, 0) >= 0;
	u32 i;

	probe_init();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[OUT] = "", kernel[OUT] = "";
		int ret = format_text(text, sizeof(text), cases[i].fmt, strlen(cases[i].fmt) + 1, cases[i].arg,
				      cases[i].nr);
		int kret;

		if (cases[i].want) {
			is_int(ret, cases[i].ret, "length of \"%s\"", cases[i].fmt);
			ok(!strcmp(text, cases[i].want), "\"%s\" gives \"%s\" (got \"%s\")", cases[i].fmt, cases[i].want,
			   text);
		} else if (cases[i].ret < -1) {
			is_int(ret, cases[i].ret, "format %u is refused", i);
		}
		if (cases[i].local)
			continue;
		kret = may_ask && (!cases[i].nr || cases[i].nr <= 3) ?
			       ask_kernel(cases[i].fmt, cases[i].arg, cases[i].nr, kernel) : -ENOSYS;
		if (kret == -ENOSYS) {
			tap_skip("bpf(2) refused: the kernel was not asked about format %u", i);
			continue;
		}
		is_int(ret, kret, "format %u: same length or error as the running kernel", i);
		if (kret >= 0)
			ok(!strcmp(text, kernel), "format %u: same text as the running kernel (\"%s\", \"%s\")", i, text,
			   kernel);
	}
	return tap_done();
}
