// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers with code of their own give what the helper itself gives: the same program, inlined, called from compiled code,
 * and interpreted.
 */
#include "../sys/engine.h"
#include "isa/asm.h"
#include "object/gen.h"

static struct inlay *start(bool interp, u32 off)
{
	struct inlay_opts o = { .size = sizeof(o), .nr_cpus = 2, .seed = 4711, .log = drop_log, .interp = interp };
	struct inlay *in = NULL;

	if (inlay_create(&o, &in))
		exit(1);
	in->inline_off = off;
	return in;
}

/* Runs the text once as a raw tracepoint program on 16 bytes of arguments; what it returns, or a negative error. */
static s64 run(struct inlay *in, const char *text, u64 *ret_out)
{
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .license = U64("GPL") };
	union bpf_attr test = { 0 };
	u64 args[2] = { 5, 6 };
	struct isa_code code;
	long fd, err;

	if (isa_assemble(text, NULL, &code, NULL))
		return -EINVAL;
	load.insns = U64(code.insns);
	load.insn_cnt = code.len;
	fd = do_bpf(in, BPF_PROG_LOAD, &load, sizeof(load));
	isa_code_fini(&code);
	if (fd < 0)
		return fd;
	test.test.prog_fd = fd;
	test.test.ctx_in = U64(args);
	test.test.ctx_size_in = sizeof(args);
	err = do_bpf(in, BPF_PROG_TEST_RUN, &test, sizeof(test.test));
	close(fd);
	*ret_out = test.test.retval;
	return err;
}

/* Of a 64-bit result both halves count: r0 = low ^ rotated high. */
#define FOLD "r1 = r0; r1 >>= 32; r1 *= 3; w0 ^= w1; exit"

static const struct {
	const char *name, *text;
} cases[] = {
	{ "which CPU", "call 8; exit" },
	{ "which node", "call 42; r0 += 7; exit" },
	{ "process and thread", "call 14; " FOLD },
	{ "user and group", "call 15; " FOLD },
	{ "r1 to r5 need not be set", "r6 = r1; call 14; r7 = r0; call 8; r0 += r7; " FOLD },
	{ "the current task, both ways of asking", "call 158; r6 = r0; call 35; if r0 == r6 goto y; r0 = 1; exit; y: r0 = 2; exit" },
	{ "its pid by its fields", "call 158; r1 = r0; if r1 == 0 goto z; call 14; exit; z: r0 = 0; exit" },
	{ "ten random numbers", "r6 = 0; r7 = 10; l: call 7; r6 *= 31; r6 += r0; r7 -= 1; if r7 != 0 goto l; r0 = r6; " FOLD },
	{ "another random number", "call 7; exit" },
};

int main(void)
{
	struct inlay *in[] = { start(false, 0), start(false, INLINE_ALL), start(true, 0) };
	u64 first_random = 0;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 r[3] = { 1, 2, 3 };
		s64 err = 0;

		for (k = 0; k < 3 && !err; k++)
			err = run(in[k], cases[i].text, &r[k]);
		if (!ok(!err && r[0] == r[1] && r[1] == r[2], "%s: the same inlined, called and interpreted", cases[i].name))
			printf("# error %lld; %#llx %#llx %#llx\n", (long long)err, (unsigned long long)r[0], (unsigned long long)r[1],
			       (unsigned long long)r[2]);
		if (i + 2 == ARRAY_SIZE(cases))
			first_random = r[0];
		else if (i + 1 == ARRAY_SIZE(cases))
			ok(r[0] != first_random && r[0], "and it is another");
		if (strstr(cases[i].name, "both ways"))
			is_u64(r[0], 2, "which agree");
		if (!strcmp(cases[i].name, "process and thread"))
			ok(r[0] != 0, "and it is somebody");
	}
	for (k = 0; k < 3; k++)
		inlay_destroy(in[k]);
	return tap_done();
}
