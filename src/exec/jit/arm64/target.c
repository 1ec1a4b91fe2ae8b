// SPDX-License-Identifier: BSD-2-Clause
// The arm64 compiler as the driver sees it: what it can do, and the walk over the text that emits it.
#include <errno.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "env/env.h"
#include "exec/jit/arm64/arm64_int.h"

#define LSE_BIT 8 /* HWCAP_ATOMICS */

static bool claims(enum isa_op op)
{
	return jit_a64_rows[op];
}

/* Of the machine it runs on; another's, nothing is taken for granted. */
static void find_features(struct a64 *c)
{
#if defined(__aarch64__)
	c->tls = (char *)&env_tls - (char *)__builtin_thread_pointer();
	c->lse = getauxval(AT_HWCAP) >> LSE_BIT & 1 && !jit_knobs.no_features;
#endif
}

/* After the instruction at last, which may have done others up to pc: its share of the memory, and where it goes on. */
static void emitted(struct a64 *c, u32 last, u32 pc)
{
	u32 at;

	c->limit += c->in[last].max;
	for (at = last + 1; at < pc; at++)
		c->limit += c->in[at].max;
	if (!c->sub->cold)
		return;
	c->limit += JIT_COLD_PAD * (pc - last);
	while (last + isa_slots(c->insns[last].code) < pc)
		last += isa_slots(c->insns[last].code);
	switch (isa_info[c->in[last].op].kind) {
	case ISA_K_JMP:
	case ISA_K_JA:
	case ISA_K_MAY_GOTO:
	case ISA_K_EXIT:
		break;
	default:
		if (pc < c->sub->end) /* nothing goes on behind a throw that is the last there is */
			jit_a64_jump(c, A64_B, last, pc);
	}
}

static void emit_run(struct a64 *c, u8 cold)
{
	u32 pc = c->sub->start, end = c->sub->end, last;

	c->cold = cold;
	while (pc < end) {
		const struct jit_insn *in = &c->in[pc];

		if ((in->flags & JIT_COLD) != cold) {
			pc++;
			continue;
		}
		/* never beyond what was reckoned: the memory ends there */
		if (unlikely(a64_off(c) > c->limit)) {
			c->overrun = true;
			return;
		}
		if (in->flags & JIT_TARGET)
			a64_forget(c);
		c->off[pc] = a64_off(c);
		last = pc;
		pc += jit_a64_rows[in->op](c, pc);
		emitted(c, last, pc);
	}
}

static int aim(struct jit *j)
{
	u32 i, word;

	for (i = 0; i < j->nr_refs; i++) {
		const struct jit_ref *ref = &j->ref[i];
		u32 to = ref->sub ? j->sub[ref->to].entry : j->image->insn_off[ref->to];
		s64 dist = (s64)to - ref->at;

		if (!to)
			return jit_refuse(j, ref->to, "a jump into nowhere", "");
		memcpy(&word, j->code + ref->at, sizeof(word));
		if (dist > (s64)a64_reach(word) || dist < -(s64)a64_reach(word))
			return jit_refuse(j, ref->to, "a jump too far", "");
		word = a64_aim(word, dist);
		memcpy(j->code + ref->at, &word, sizeof(word));
	}
	return 0;
}

static int emit(struct jit *j)
{
	struct a64 c = { .p = j->code, .j = j, .insns = j->text->insns, .in = j->insn, .off = j->image->insn_off,
			 .fuse = !jit_knobs.no_fuse, .via = A64_NONE, .to = A64_NONE,
			 .near = !j->far && j->bound <= a64_reach(A64_CBZ), .near_bit = !j->far && j->bound <= a64_reach(A64_TBZ) };
	u32 s;

	find_features(&c);
	if (j->sub[0].by_pointer)
		return jit_refuse(j, 0, "the program as a function of its own", "");
	for (s = 0; s < j->text->nr_subprogs; s++) {
		if (j->sub[s].start == j->sub[s].end)
			continue;
		c.limit += j->sub[s].bound;
		jit_a64_enter(&c, s);
		a64_forget(&c);
		emit_run(&c, 0);
		if (c.sub->cold)
			emit_run(&c, JIT_COLD);
		if (c.overrun || a64_off(&c) > c.limit)
			return jit_refuse(j, c.sub->start, "its code is larger than reckoned", "");
	}
	j->len = a64_off(&c);
	return aim(j);
}

const struct jit_target jit_target_arm64 = {
	.arch = "arm64",
	.caps = { .name = "jit", .can = CAP_PERCPU | CAP_TLS | CAP_DIRECT | CAP_COLD },
	.elf_machine = 183,
	.bound = jit_a64_bound,
	.sub_bound = jit_a64_sub_bound,
	.throw_bound = A64_UNKEEP,
	.emit = emit,
	.claims = claims,
};

#if defined(__aarch64__)
const struct jit_target *const jit_native = &jit_target_arm64;
const struct exec_impl jit_impl = { .caps = &jit_target_arm64.caps, .prepare = jit_prepare };
#endif
