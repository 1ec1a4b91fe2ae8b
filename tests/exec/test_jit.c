// SPDX-License-Identifier: BSD-2-Clause
// What compiled programs are beside arithmetic: their memory, how they are entered, called, left, and followed.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bare.h"
#include "base/arch.h"
#include "base/probe.h"
#include "env/env.h"
#include "exec/jit/jit.h"
#include "object/instance.h"
#include "object/map.h"

static struct prog *prepared(struct prog *prog, enum exec_engine engine)
{
	struct strbuf log = STRBUF_INIT;

	if (prog && exec_prepare_as(prog, engine, &log)) {
		printf("# %s\n", strbuf_str(&log));
		bare_free(prog);
		prog = NULL;
	}
	strbuf_fini(&log);
	return prog;
}

static const u8 *code_of(struct prog *prog)
{
	struct exec_jit_info info;

	return exec_jit_info(prog, &info) ? NULL : info.code;
}

/* ---- memory ---- */

static void protection(void)
{
	struct prog *prog = bare_prog("r0 = 0; exit");
	char line[512], perms[8];
	unsigned long long begin, end;
	int both = 0, run = 0, written = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %7s", &begin, &end, perms) != 3)
			continue;
		both += perms[1] == 'w' && perms[2] == 'x';
		if (strstr(line, "memfd:inlay-jit")) {
			run += perms[2] == 'x' && (u64)code_of(prog) >= begin && (u64)code_of(prog) < end;
			written += perms[1] == 'w' && perms[2] != 'x';
		}
	}
	fclose(f);
	is_int(both, 0, "no address is both writable and executable");
	ok(run == 1 && written >= 1, "code is written through one mapping and run through another");
	ok(llabs((long long)code_of(prog) - (long long)exec_prepare) < (long long)ARCH_CALL_REACH, "and is within reach of a near call");
	bare_free(prog);
}

static void allocation(void)
{
	struct prog *prog[64], *again;
	const u8 *code, *freed;
	u32 i, near = 0, bad = 0;
	struct jit_block block = { 0 }, big;

	for (i = 0; i < ARRAY_SIZE(prog); i++)
		prog[i] = bare_prog("r0 = *(u64 *)(r1 + 0); exit");
	for (i = 1; i < ARRAY_SIZE(prog); i++)
		near += (u64)code_of(prog[i]) >> 12 == (u64)code_of(prog[i - 1]) >> 12;
	ok(near >= 56, "many programs share a page: %u of 63 neighbours", near);
	freed = code_of(prog[7]);
	bare_free(prog[7]);
	bare_free(prog[8]); /* a hole must have room for the most the code could have been */
	for (i = 0; i < 16; i++)
		bad += freed[i] != 0xcc;
	is_int(bad, 0, "what was freed traps");
	again = bare_prog("r0 = 7; exit");
	ok(code_of(again) == freed, "and is used again");
	prog[7] = again;
	prog[8] = bare_prog("r0 = 8; exit");
	for (i = 0; i < ARRAY_SIZE(prog); i++) {
		u64 ctx = i;

		bad += prog[i]->entry(prog[i], &ctx) != (i == 7 ? 7 : i);
		bare_free(prog[i]);
	}
	is_int(bad, 0, "neighbours are left alone");
	code = NULL;
	for (i = 0; i < 20000; i++) {
		again = bare_prog("r0 = 0; exit");
		code = max_of(code, code_of(again));
		bare_free(again);
	}
	ok(code <= freed + 8192, "20000 programs made and freed take no more room than one");
	ok(!jit_mem_alloc(1 << 20, &big) && !jit_mem_alloc(100, &block) && block.size == 128, "sizes are whole granules");
	jit_mem_trim(&big, 65);
	is_int(big.size, 128, "an end that is not used is given back");
	ok(jit_mem_find((u64)block.rx + 127) == block.rx && jit_mem_find((u64)big.rx) == big.rx && !jit_mem_find(4096),
	   "a block is found by any address in it");
	ok(jit_mem_alloc(U32_MAX, &(struct jit_block){ 0 }) == -12, "too much is refused");
	jit_mem_free(&block);
	jit_mem_free(&big);
	jit_mem_free(&block);
}

static void forking(void)
{
	struct prog *mine = bare_prog("r0 = 5; exit"), *other;
	int status = 0;
	u8 before[32];
	pid_t pid;

	memcpy(before, code_of(mine), sizeof(before));
	pid = fork();
	if (!pid) {
		u64 ret = mine->entry(mine, NULL) == 5;

		bare_free(mine);
		other = bare_prog("r0 = 6; exit");
		_exit(!(ret && other && other->entry(other, NULL) == 6));
	}
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "a child runs what it inherited, frees it, and compiles for itself");
	ok(!memcmp(before, code_of(mine), sizeof(before)) && mine->entry(mine, NULL) == 5, "and leaves its parent's code alone");
	bare_free(mine);
}

/* Exit status of a child that did what fn does. */
static int in_child(int (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(fn());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A program that is to run, whichever engine gets it: 1 compiled, 2 interpreted with a reason, 3 without, 0 not at all. */
static int run_somehow(void)
{
	struct strbuf log = STRBUF_INIT;
	struct prog *prog = bare_assemble("r0 = 5; r0 += 6; exit");

	if (exec_prepare(prog, &log) || prog->entry(prog, NULL) != 11)
		return 0;
	return code_of(prog) ? 1 : strstr(strbuf_str(&log), "not compiled, interpreted: ") ? 2 : 3;
}

/* mmap of executable memory is answered with EACCES from now on, as hardened systems do. */
static int refuse_exec(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 13),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { .len = ARRAY_SIZE(f), .filter = f };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 77;
	return run_somehow();
}

static int forbid_gaining_exec(void)
{
	if (prctl(65 /* PR_SET_MDWE */, 1 /* refuse exec gain */, 0, 0, 0))
		return 77;
	return run_somehow();
}

/* Before and after this process has code memory. */
static void refused(const char *when)
{
	int ret = in_child(refuse_exec);

	if (ret == 77)
		tap_skip("no seccomp filters here");
	else
		is_int(ret, 2, "where executable memory is refused programs are interpreted, and the log says so (%s)", when);
}

static void hardened(void)
{
	int ret = in_child(forbid_gaining_exec);

	if (ret == 77)
		tap_skip("this kernel has no PR_SET_MDWE");
	else
		is_int(ret, 1, "a process that may not make memory executable later compiles all the same");
}

/* ---- entering, calling, leaving ---- */

static void registers(void)
{
#if defined(__x86_64__)
	struct prog *prog = bare_prog("r6 = 1; r7 = 2; r8 = 3; r9 = 4; call f; r0 = r6; exit;"
				      "f: r6 = 9; r7 = 9; r8 = 9; r9 = 9; *(u64 *)(r10 - 8) = 1; r0 = 0; exit");
	u64 bad, rax = (u64)prog->entry, prog_ = (u64)prog;

	__asm__ volatile("push %%rbx\n push %%r12\n push %%r13\n push %%r14\n push %%r15\n push %%rbp\n"
			 "mov $101, %%rbx\n mov $102, %%r12\n mov $103, %%r13\n mov $104, %%r14\n mov $105, %%r15\n"
			 "mov $106, %%rbp\n mov %%rdx, %%rdi\n mov %%rsp, %%rsi\n and $-16, %%rsp\n push %%rsi\n push %%rsi\n"
			 "xor %%esi, %%esi\n call *%%rax\n pop %%rsi\n mov %%rsi, %%rsp\n"
			 "sub $101, %%rbx\n sub $102, %%r12\n or %%r12, %%rbx\n sub $103, %%r13\n or %%r13, %%rbx\n"
			 "sub $104, %%r14\n or %%r14, %%rbx\n sub $105, %%r15\n or %%r15, %%rbx\n sub $106, %%rbp\n or %%rbp, %%rbx\n"
			 "mov %%rbx, %%rdi\n"
			 "pop %%rbp\n pop %%r15\n pop %%r14\n pop %%r13\n pop %%r12\n pop %%rbx\n mov %%rdi, %%rcx\n"
			 : "=c"(bad), "+a"(rax), "+d"(prog_)
			 :
			 : "rdi", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0");
	is_u64(bad, 0, "the caller's registers are kept");
	bare_free(prog);
#elif defined(__aarch64__)
	struct prog *prog = bare_prog("r6 = 1; r7 = 2; r8 = 3; r9 = 4; call f; r0 = r6; exit;"
				      "f: r6 = 9; r7 = 9; r8 = 9; r9 = 9; *(u64 *)(r10 - 8) = 1; call 5; r0 = 0; exit");
	register u64 x0 __asm__("x0") = (u64)prog, x1 __asm__("x1") = 0;
	u64 entry = (u64)prog->entry, ret, bad;

	__asm__ volatile("stp x29, x30, [sp, #-96]!\n stp x19, x20, [sp, #16]\n stp x21, x22, [sp, #32]\n stp x23, x24, [sp, #48]\n"
			 "stp x25, x26, [sp, #64]\n stp x27, x28, [sp, #80]\n"
			 "mov x19, #101\n mov x20, #102\n mov x21, #103\n mov x22, #104\n mov x23, #105\n mov x24, #106\n"
			 "mov x25, #107\n mov x26, #108\n mov x27, #109\n mov x28, sp\n mov x29, #111\n"
			 "blr %2\n"
			 "sub x19, x19, #101\n sub x20, x20, #102\n sub x21, x21, #103\n sub x22, x22, #104\n"
			 "sub x23, x23, #105\n sub x24, x24, #106\n sub x25, x25, #107\n sub x26, x26, #108\n"
			 "sub x27, x27, #109\n mov x9, sp\n sub x28, x28, x9\n sub x29, x29, #111\n"
			 "orr x19, x19, x20\n orr x21, x21, x22\n orr x23, x23, x24\n orr x25, x25, x26\n orr x27, x27, x28\n"
			 "orr x19, x19, x21\n orr x23, x23, x25\n orr x27, x27, x29\n orr x19, x19, x23\n orr x1, x19, x27\n"
			 "ldp x19, x20, [sp, #16]\n ldp x21, x22, [sp, #32]\n ldp x23, x24, [sp, #48]\n ldp x25, x26, [sp, #64]\n"
			 "ldp x27, x28, [sp, #80]\n ldp x29, x30, [sp], #96\n"
			 : "+r"(x0), "+r"(x1)
			 : "r"(entry)
			 : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
			   "x30", "memory", "cc", "v0");
	ret = x0;
	bad = x1;
	is_u64(ret, 1, "a program calls a function that uses the same registers");
	is_u64(bad, 0, "the caller's registers are kept");
	bare_free(prog);
#endif
}

/* Code of an empty program, and what a branch that falls through takes. */
#if defined(__x86_64__)
#define EMPTY	    (3 + 2 + 1)
#define BRANCH_MAX  (4 + 6)
#else
#define EMPTY	    (4 + 4 + 4)
#define BRANCH_MAX  4
#endif

static void alignment(void)
{
	static const char *const text[] = {
		"call 5; exit",
		"*(u64 *)(r10 - 8) = 1; call 5; exit",
		"r6 = 1; call 5; exit",
		"r6 = 1; r7 = 1; call 5; exit",
		"r6 = r10; call 5; exit",
		"r6 = r10; r7 = 1; r8 = 1; call 5; exit",
		"r6 = 1; r7 = 2; r8 = 3; r9 = 4; call 5; exit",
		"call f; exit; f: call 5; exit",
		"r6 = 1; call f; exit; f: r6 = 2; r7 = 2; call 5; exit",
		"*(u8 *)(r10 - 1) = 1; call f; exit; f: r6 = 2; *(u8 *)(r10 - 1) = 1; call g; exit; g: call 5; exit",
		"r1 = 1; r2 = cb ll; r3 = 0; call 2; exit; cb: call 5; exit",
		"r1 = 1; r2 = cb ll; r3 = 0; call 2; exit; cb: r6 = 1; call 5; exit",
		"may_goto out; call 5; exit; out: r0 = 1; exit",
		"r6 = 1; may_goto out; call 5; exit; out: r0 = 1; exit",
	};
	u32 i, depth, bad = 0;

	for (i = 0; i < ARRAY_SIZE(text); i++) {
		for (depth = 8; depth <= PROG_STACK; depth += 8) {
			struct prog *prog = bare_assemble(text[i]);
			u32 s;

			for (s = 0; s < prog->nr_subprogs; s++)
				prog->subprogs[s].stack_depth = depth;
			prog = prepared(prog, EXEC_JIT);
			if (!prog || prog->entry(prog, NULL)) {
				printf("# depth %u: %s\n", depth, text[i]);
				bad++;
			}
			if (prog)
				bare_free(prog);
		}
	}
	is_int(bad, 0, "helpers find the stack aligned, whatever the frame");
}

static u64 twin(u64 r1, u64 r2, u64 r3, u64 r4, u64 r5)
{
	return 1000 + r1;
}

static char warned[200];

static void keep_warning(void *ctx, enum log_level level, const char *text)
{
	if (level == LOG_WARN)
		snprintf(warned, sizeof(warned), "%s", text);
}

static void callees(void)
{
	struct inlay engine = { .log.write = keep_warning };
	struct strbuf log = STRBUF_INIT;
	struct prog *prog;
	int i;

	for (i = 0; i < 2; i++) {
		prog = bare_assemble("r1 = 7; call 3; exit"); /* has no body of its own */
		prog->facts[1].fn = twin;
		prog = prepared(prog, i ? EXEC_JIT : EXEC_INTERP);
		is_u64(prog->entry(prog, NULL), 1007, "a call goes to the twin chosen for it, %s", i ? "compiled" : "interpreted");
		bare_free(prog);
	}
	prog = bare_assemble("call f; exit; f: r0 += 1; call f; exit");
	ok(!exec_prepare(prog, &log) && !code_of(prog) && strstr(strbuf_str(&log), "interpreted: insn 3: more than 8 frames"),
	   "what cannot be compiled is interpreted, and the log says why: %.*s", (int)log.len - 1, strbuf_str(&log));
	bare_free(prog);
	prog = bare_assemble("call f; exit; f: r0 += 1; call f; exit");
	prog->obj.inlay = &engine;
	ok(!exec_prepare(prog, NULL) && engine.nr_refused == 1 && strstr(warned, "interpreted: insn 3: more than 8 frames"),
	   "and the engine counts it and warns: %s", warned);
	bare_free(prog);
	prog = bare_assemble("r0 = 0; exit");
	prog->obj.inlay = &engine;
	ok(!exec_prepare(prog, NULL) && engine.nr_refused == 1, "but only those");
	bare_free(prog);
	strbuf_reset(&log);
	prog = bare_assemble("r0 = *(u8 *)skb[0]; exit");
	ok(exec_prepare_as(prog, EXEC_JIT, &log) < 0 && strstr(strbuf_str(&log), "insn 0: not compiled: LD_ABS_B"),
	   "a row that is not claimed is named");
	bare_free(prog);
	strbuf_fini(&log);
}

/* ---- tail calls ---- */

static struct prog *slots[4];

static struct prog *fake_prog_at(struct map *map, u64 index)
{
	return index < ARRAY_SIZE(slots) ? slots[index] : NULL;
}

static const struct map_ops fake_ops = { .name = "prog_array", .prog_at = fake_prog_at };
static struct map fake_map = { .ops = &fake_ops };

/* counts in *ctx, then calls on */
#define COUNT "r2 = *(u64 *)(r1 + 0); r2 += 1; *(u64 *)(r1 + 0) = r2; "
#define TAIL(index) "r6 = r1; r2 = MAP ll; r3 = " index " ll; call 12; "

static struct prog *tail_prog(const char *text, enum exec_engine engine)
{
	char full[1024], map[32], *at;
	struct prog *prog;

	snprintf(full, sizeof(full), "%s", text);
	snprintf(map, sizeof(map), "0x%llx", (unsigned long long)&fake_map);
	while ((at = strstr(full, "MAP"))) {
		memmove(at + strlen(map), at + 3, strlen(at + 3) + 1);
		memcpy(at, map, strlen(map));
	}
	prog = bare_assemble(full);
	return prepared(prog, engine);
}

static void tail_calls(void)
{
	static const enum exec_engine engines[][2] = {
		{ EXEC_INTERP, EXEC_INTERP }, { EXEC_JIT, EXEC_JIT }, { EXEC_JIT, EXEC_INTERP }, { EXEC_INTERP, EXEC_JIT } };
	static const char *const names[] = { "interpreted", "compiled", "compiled and interpreted", "interpreted and compiled" };
	u32 i, k;
	u64 runs;

	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		slots[0] = tail_prog(COUNT TAIL("1") "r0 = 77; exit", engines[i][0]);
		slots[1] = tail_prog(COUNT "*(u64 *)(r10 - 16) = r1; r7 = 1; r8 = r1; " TAIL("0x100000000")
				     "r0 = *(u64 *)(r8 + 0); exit", engines[i][1]);
		slots[2] = tail_prog("r6 = r1; r7 = 5; " TAIL("3") "r0 = r7; r7 = *(u64 *)(r6 + 0); r0 += r7; exit", engines[i][0]);
		runs = 0;
		is_u64(slots[0]->entry(slots[0], &runs), 34, "33 tail calls, %s", names[i]);
		is_u64(runs, 34, "and 34 runs");
		is_u64(env_tls.tail_calls, 0, "the next run begins at none");
		runs = 10;
		is_u64(slots[2]->entry(slots[2], &runs), 15, "a slot without a program is passed by, and r6 to r9 are kept");
		for (k = 0; k < 3; k++)
			bare_free(slots[k]);
		slots[2] = NULL;
		slots[0] = tail_prog(COUNT "r6 = r1; call f; r7 = r0; r1 = r6; call f; r0 = *(u64 *)(r6 + 0); exit;"
				     "f: *(u64 *)(r10 - 40) = 1; " TAIL("0") "r0 = 3; exit", engines[i][0]);
		runs = 0;
		is_u64(slots[0]->entry(slots[0], &runs), 34, "subprograms' tail calls count together, %s", names[i]);
		bare_free(slots[0]);
		slots[0] = tail_prog("r6 = r1; call f; r0 += 1; exit; f: " TAIL("1") "r0 = 3; exit", engines[i][0]);
		slots[1] = tail_prog("r0 = 100; r6 = 0; r7 = 0; r8 = 0; r9 = 0; *(u64 *)(r10 - 512) = 0; exit", engines[i][1]);
		is_u64(slots[0]->entry(slots[0], &runs), 101, "the target of a subprogram returns to the subprogram's caller, %s", names[i]);
		bare_free(slots[0]);
		bare_free(slots[1]);
		slots[0] = slots[1] = NULL;
	}
}

/* ---- code out of the way, and what is told about it ---- */

static void cold(void)
{
	struct prog *prog = bare_assemble("r0 = 1; if r1 == 0 goto c; l: r0 += 2; exit; c: r0 += 10; goto l");
	struct exec_jit_info info;
	u64 some = 1;

	prog->facts[4].cold = prog->facts[5].cold = 1;
	prog = prepared(prog, EXEC_JIT);
	ok(prog->entry(prog, NULL) == 13 && prog->entry(prog, &some) == 3, "cold code does what it would in place");
	bare_free(prog);
	prog = bare_assemble("r0 = 1; if r1 != 0 goto l; r0 += 10; r0 += 11; l: r0 += 2; exit");
	prog->facts[2].cold = prog->facts[3].cold = 1;
	prog = prepared(prog, EXEC_JIT);
	ok(prog->entry(prog, NULL) == 24 && prog->entry(prog, &some) == 3, "a branch around it is turned");
	exec_jit_info(prog, &info);
	ok(info.insn_off[2] > info.insn_off[5] && info.insn_off[4] > info.insn_off[1] &&
		   info.insn_off[4] - info.insn_off[1] <= BRANCH_MAX,
	   "and the way taken most falls through: %u, %u, %u", info.insn_off[1], info.insn_off[4], info.insn_off[2]);
	ok(info.text == prog && info.len > info.insn_off[3] && !strcmp(info.arch, ARCH_NAME), "code, length and offsets are told");
	bare_free(prog);
	prog = bare_assemble("r0 = 0; exit");
	prog->verified_insns = 2; /* so that no register is cleared for it */
	prog = prepared(prog, EXEC_JIT);
	exec_jit_info(prog, &info);
	is_int(info.len, EMPTY, "an empty program is its three instructions");
	bare_free(prog);
	prog = prepared(bare_assemble("r0 = 0; exit"), EXEC_INTERP);
	is_int(exec_jit_info(prog, &info), -2, "there is nothing to tell of an interpreted one");
	bare_free(prog);
}

static void profilers(void)
{
	struct prog *prog;
	char path[64], line[256], want[128];
	bool found = false;
	u32 magic = 0;
	FILE *f;

	setenv("INLAY_PERF_MAP", "1", 1);
	setenv("INLAY_JITDUMP", "1", 1);
	prog = bare_assemble("r0 = 0; exit");
	strcpy(prog->name, "followed");
	prog->verified_insns = 2;
	prog->tag[0] = 0xab;
	prog = prepared(prog, EXEC_JIT);
	unsetenv("INLAY_PERF_MAP");
	unsetenv("INLAY_JITDUMP");
	snprintf(want, sizeof(want), "%llx %x bpf_prog_ab00000000000000_followed\n", (unsigned long long)code_of(prog), EMPTY);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		found |= !strcmp(line, want);
	ok(found, "perf's map names it");
	if (f)
		fclose(f);
	unlink(path);
	snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
	f = fopen(path, "r");
	ok(f && fread(&magic, 4, 1, f) == 1 && magic == 0x4a695444 && !fseek(f, 0, SEEK_END) && ftell(f) == 40 + 56 + 35 + EMPTY,
	   "the dump holds its code");
	if (f)
		fclose(f);
	unlink(path);
	bare_free(prog);
}

/* ---- signals ---- */

static struct prog *in_handler;
static volatile u64 handled, handled_wrong;

static void on_alarm(int sig)
{
	u64 n = 20;

	handled_wrong += in_handler->entry(in_handler, &n) != 190;
	handled++;
}

static void signals(void)
{
	const char *text = "r6 = r1; r7 = 0; r8 = *(u64 *)(r1 + 0); r0 = 0; l: if r7 == r8 goto out;"
			   "*(u64 *)(r10 - 8) = r7; r2 = 4096; r2 = *(u64 *)(r2 + 8); r3 = *(u64 *)(r10 - 8); r0 += r3; r0 += r2;"
			   "r7 += 1; goto l; out: exit";
	struct itimerval on = { { 0, 500 }, { 0, 500 } }, off = { 0 };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct prog *prog = bare_assemble(text);
	u64 n = 1000, i, bad = 0;

	prog->insns[7].code = BPF_LDX | ISA_PROBE_MEM | BPF_DW; /* faults, or is too low: reads 0 */
	in_handler = prog = prepared(prog, EXEC_JIT);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &on, NULL);
	for (i = 0; handled < 200 && i < 2000000; i++)
		bad += prog->entry(prog, &n) != 499500;
	setitimer(ITIMER_REAL, &off, NULL);
	ok(!bad && !handled_wrong && handled >= 100, "%llu runs in a handler that interrupted others, all with faults",
	   (unsigned long long)handled);
	bare_free(prog);
}

static void *fault_often(void *arg)
{
	struct prog *prog = arg;
	u64 bad = 0, i, where = 0x7fffffffe000 - 4096 * 1024ull;

	for (i = 0; i < 2000; i++)
		bad += prog->entry(prog, &where) != 0;
	return (void *)bad;
}

static void faults(void)
{
	u8 *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct prog *prog = bare_assemble("r2 = *(u64 *)(r1 + 0); r0 = *(u64 *)(r2 + 8); r3 = *(u8 *)(r2 + 0); r0 += r3; exit");
	pthread_t t[3];
	u64 bad = 0, where;
	void *ret;
	int i;

	munmap(page + 4096, 4096);
	prog->insns[1].code = BPF_LDX | ISA_PROBE_MEM | BPF_DW;
	prog->insns[2].code = BPF_LDX | ISA_PROBE_MEM | BPF_B;
	prog = prepared(prog, EXEC_JIT);
	page[4095] = 9;
	where = (u64)page + 4095;
	is_u64(prog->entry(prog, &where), 9, "of two loads one faults and one does not");
	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, fault_often, prog);
	for (i = 0; i < 3; i++) {
		pthread_join(t[i], &ret);
		bad += (u64)ret;
	}
	is_u64(bad, 0, "three threads fault at once");
	bare_free(prog);
	munmap(page, 4096);
}

static void *make_and_run(void *arg)
{
	u64 bad = 0, n, i;

	for (i = 0; i < 400; i++) {
		char text[256];
		struct prog *prog;

		snprintf(text, sizeof(text), "r6 = r1; r2 = 4096; r0 = %u; l: r0 += 1; if r0 < 500 goto l; r3 = *(u64 *)(r2 + 0);"
			 "r0 += r3; r4 = *(u64 *)(r6 + 0); r0 += r4; exit", (unsigned)(i % 400));
		prog = bare_assemble(text);
		prog->insns[5].code = BPF_LDX | ISA_PROBE_MEM | BPF_DW;
		prog = prepared(prog, EXEC_JIT);
		n = i;
		bad += prog->entry(prog, &n) != 500 + i;
		bare_free(prog);
	}
	return (void *)bad;
}

static void threads(void)
{
	pthread_t t[4];
	u64 bad = 0;
	void *ret;
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, make_and_run, NULL);
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], &ret);
		bad += (u64)ret;
	}
	is_u64(bad, 0, "four threads compile, run and free at once");
}

int main(void)
{
	refused("from the start");
	if (jit_available()) {
		tap_skip("no compiler for this machine, or no code memory");
		return tap_done();
	}
	is_int(exec_caps(NULL)->can, CAP_PERCPU | CAP_TLS | CAP_DIRECT | CAP_COLD, "its caps");
	protection();
	allocation();
	forking();
	refused("after fork");
	hardened();
	registers();
	alignment();
	callees();
	tail_calls();
	cold();
	profilers();
	signals();
	faults();
	threads();
	return tap_done();
}
