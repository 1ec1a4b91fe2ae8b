// SPDX-License-Identifier: BSD-2-Clause
/*
 * Recorded arithmetic through the whole engine: bpf(2), verifier, rewriting, interpreter. Each vector twice: with
 * operands the verifier knows, so that it computes the result itself and removes the branch it thinks dead, and with
 * operands from the context, which it cannot know. The same program also with a wrong expectation, which must be noticed.
 */
#include "../isa/vectors.h"
#include "../sys/engine.h"
#include "isa/asm.h"

static struct inlay *in;

static long run(int fd, const u64 ctx[2])
{
	union bpf_attr a = { 0 };
	long ret;

	a.test.prog_fd = fd;
	a.test.ctx_in = U64(ctx);
	a.test.ctx_size_in = 16;
	ret = do_bpf(in, BPF_PROG_TEST_RUN, &a, sizeof(a.test));
	return ret ? ret : (long)a.test.retval;
}

/* 1: r2 was want, 2: it was not; or -errno. */
static long judge(const char *before, const char *program, const u64 ctx[2], u64 want)
{
	static char log[1 << 16];
	struct strbuf text = STRBUF_INIT;
	struct isa_code code;
	long ret = -EINVAL;

	strbuf_printf(&text, "%s; %s; r4 = 0x%llx ll; r0 = 1; if r2 == r4 goto out; r0 = 2; out: exit", before, program,
		      (unsigned long long)want);
	if (!isa_assemble(strbuf_str(&text), NULL, &code, &text)) {
		union bpf_attr a = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insns = U64(code.insns),
				     .insn_cnt = code.len, .license = U64("GPL"), .log_level = 1, .log_buf = U64(log),
				     .log_size = sizeof(log) };

		log[0] = 0;
		ret = do_bpf(in, BPF_PROG_LOAD, &a, sizeof(a));
		if (ret >= 0) {
			int fd = (int)ret;

			ret = run(fd, ctx);
			close(fd);
		} else {
			printf("# %s\n# %.400s\n", program, log);
		}
		isa_code_fini(&code);
	}
	strbuf_fini(&text);
	return ret;
}

static void vector(const char *name, const char *program, u64 r2, u64 r3, u64 want)
{
	char known[128];
	u64 ctx[2] = { r2, r3 };
	const char *unknown = "r3 = *(u64 *)(r1 + 8); r2 = *(u64 *)(r1 + 0)";

	snprintf(known, sizeof(known), "r2 = 0x%llx ll; r3 = 0x%llx ll", (unsigned long long)r2, (unsigned long long)r3);
	is_int(judge(known, program, ctx, want), 1, "%s, operands known", name);
	is_int(judge(unknown, program, ctx, want), 1, "%s, operands unknown", name);
	ok(judge(known, program, ctx, want ^ 1) == 2 && judge(unknown, program, ctx, want ^ (1ULL << 63)) == 2,
	   "%s, and nothing else", name);
}

static void recorded(void)
{
	const char *dir = getenv("INLAY_SHARED");
	char path[4096], line[1024], *field[5], *p;
	int n, rows = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/oracle/alu.tsv", dir ? dir : SOURCE_ROOT "/../shared");
	f = fopen(path, "r");
	if (!f) {
		tap_skip("no recorded vectors (oracle/alu.tsv under INLAY_SHARED)");
		return;
	}
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		for (n = 0, p = line; n < 5 && (field[n] = strsep(&p, "\t")); n++)
			;
		if (n < 5)
			continue;
		vector(field[0], field[3], strtoull(field[1], NULL, 0), strtoull(field[2], NULL, 0),
		       strtoull(field[4], NULL, 0));
		rows++;
	}
	fclose(f);
	ok(rows >= 60, "%d recorded vectors were run", rows);
}

int main(void)
{
	size_t i;

	in = engine_start();
	for (i = 0; i < ARRAY_SIZE(isa_vectors); i++)
		vector(isa_vectors[i].name, isa_vectors[i].program, isa_vectors[i].r2, isa_vectors[i].r3,
		       isa_vectors[i].want);
	recorded();
	is_int(objects(in, OBJ_PROG), 0, "no program is left");
	inlay_destroy(in);
	return tap_done();
}
