/* SPDX-License-Identifier: BSD-2-Clause */
/* The one place outside exec/jit/ that knows which machine this is compiled for. */
#ifndef INLAY_BASE_ARCH_H
#define INLAY_BASE_ARCH_H

#include <ucontext.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/types.h"

#if defined(__x86_64__)
#define ARCH_NAME "x86_64"
#define ARCH_AUDIT 0xc000003e /* AUDIT_ARCH_X86_64, for seccomp filters */
#define ARCH_UC_PC(uc) ((uc)->uc_mcontext.gregs[REG_RIP])
#define arch_relax() __builtin_ia32_pause() /* in a loop that waits for another CPU */
#define arch_ticks() __builtin_ia32_rdtsc() /* the cycle counter */
#define ARCH_CALL_REACH (1ull << 31) /* bytes, of a call that is one instruction */
#define ARCH_SYNC_CORE 0	     /* processors see by themselves that code was written */
#define ARCH_SSE2 1 /* <emmintrin.h> works; without it plain C does the same */
#define ARCH_COPY_ASM __asm__(".text\n.p2align 4\n.globl arch_copy_bytes\n.hidden arch_copy_bytes\n" \
	".type arch_copy_bytes,@function\narch_copy_bytes:\n" \
	"	mov %rdx, %rcx\n" \
	".globl arch_copy_begin\n.hidden arch_copy_begin\narch_copy_begin:\n" \
	"1:	cmp $8, %rcx\n	jb 2f\n	mov (%rsi), %rax\n	mov %rax, (%rdi)\n" \
	"	add $8, %rsi\n	add $8, %rdi\n	sub $8, %rcx\n	jmp 1b\n" \
	"2:	test %rcx, %rcx\n	jz arch_copy_fixup\n	mov (%rsi), %al\n	mov %al, (%rdi)\n" \
	"	inc %rsi\n	inc %rdi\n	dec %rcx\n	jmp 2b\n" \
	".globl arch_copy_end\n.hidden arch_copy_end\narch_copy_end:\n" \
	".globl arch_copy_fixup\n.hidden arch_copy_fixup\narch_copy_fixup:\n" \
	"	mov %rcx, %rax\n	ret\n" \
	".size arch_copy_bytes,.-arch_copy_bytes\n")
#elif defined(__aarch64__)
#define ARCH_NAME "arm64"
#define ARCH_AUDIT 0xc00000b7 /* AUDIT_ARCH_AARCH64 */
#define ARCH_UC_PC(uc) ((uc)->uc_mcontext.pc)
#define arch_relax() __asm__ volatile("yield")
#define ARCH_CALL_REACH (1ull << 27)
#define ARCH_SYNC_CORE 1
static inline u64 arch_ticks(void)
{
	u64 ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
#define ARCH_COPY_ASM __asm__(".text\n.p2align 4\n.globl arch_copy_bytes\n.hidden arch_copy_bytes\n" \
	".type arch_copy_bytes,%function\narch_copy_bytes:\n" \
	".globl arch_copy_begin\n.hidden arch_copy_begin\narch_copy_begin:\n" \
	"1:	cmp x2, #8\n	b.lo 2f\n	ldr x3, [x1]\n	str x3, [x0]\n" \
	"	add x1, x1, #8\n	add x0, x0, #8\n	sub x2, x2, #8\n	b 1b\n" \
	"2:	cbz x2, arch_copy_fixup\n	ldrb w3, [x1], #1\n	strb w3, [x0], #1\n" \
	"	sub x2, x2, #1\n	b 2b\n" \
	".globl arch_copy_end\n.hidden arch_copy_end\narch_copy_end:\n" \
	".globl arch_copy_fixup\n.hidden arch_copy_fixup\narch_copy_fixup:\n" \
	"	mov x0, x2\n	ret\n" \
	".size arch_copy_bytes,.-arch_copy_bytes\n")
#else
#error "inlay supports x86-64 and arm64"
#endif

/* Whether arch_ticks() counts at one rate on all CPUs, whatever their clocks do. */
static inline bool arch_ticks_steady(void)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
#else
	return true;
#endif
}

/* Writes a function that returns n, below 65536, at p, which is aligned. Bytes: at most 8. */
static inline void arch_put_return(void *p, u32 n)
{
#if defined(__x86_64__)
	u8 *code = p;

	code[0] = 0xb8; /* mov $n, %eax */
	code[1] = n;
	code[2] = n >> 8;
	code[3] = code[4] = 0;
	code[5] = 0xc3; /* ret */
#else
	u32 *code = p;

	code[0] = 0x52800000 | n << 5; /* mov w0, #n */
	code[1] = 0xd65f03c0;	       /* ret */
#endif
}

/*
 * ARCH_COPY_ASM defines it, in base/probe.c. Fault-safe copy of n bytes, one at a time; returns the number of bytes NOT copied. arch_copy_fixup is where the fault
 * handler sends a thread whose program counter lies in [arch_copy_begin, arch_copy_end): it returns with the rest still
 * to do in the return register.
 */
size_t arch_copy_bytes(void *dst, const void *src, size_t n);
extern const char arch_copy_begin[], arch_copy_end[], arch_copy_fixup[];

#endif
