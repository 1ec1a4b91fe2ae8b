// SPDX-License-Identifier: BSD-2-Clause
// The x86-64 compiler as the driver sees it: what it can do, and the walk over the text that emits it.
#include <errno.h>

#include "env/env.h"
#include "exec/jit/x86_64/x86_int.h"

static bool claims(enum isa_op op)
{
	return jit_x86_rows[op];
}

/* Of the machine it runs on; another's, nothing is taken for granted. */
static void find_features(struct x86 *c)
{
#if defined(__x86_64__)
	char *self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	c->tls = (char *)&env_tls - self;
	__builtin_cpu_init();
	c->bmi2 = __builtin_cpu_supports("bmi2") && !jit_knobs.no_features;
	/* Intel's dividers before Ice Lake take three times as long in 64 bits, whatever the operands are */
	c->slow_div = jit_knobs.slow_div || (__builtin_cpu_is("intel") && !__builtin_cpu_supports("gfni"));
#endif
}

/* After the instruction at last, which may have done others up to pc: its share of the memory, and where it goes on. */
static inline void emitted(struct x86 *c, u32 last, u32 pc)
{
	u32 at;

	c->limit += c->in[last].max;
	for (at = last + 1; at < pc; at++)
		c->limit += c->in[at].max;
	if (likely(!c->sub->cold))
		return;
	c->limit += JIT_COLD_PAD * (pc - last);
	while (last + isa_slots(c->insns[last].code) < pc)
		last += isa_slots(c->insns[last].code);
	switch (isa_info[c->in[last].op].kind) {
	case ISA_K_JMP:
	case ISA_K_JA:
	case ISA_K_EXIT:
		break;
	default:
		if (pc < c->sub->end) /* nothing goes on behind a throw that is the last there is */
			jit_x86_jump(c, -1, last, pc);
	}
}

static void emit_run(struct x86 *c, u8 cold)
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
		if (unlikely(x86_off(c) > c->limit)) {
			c->overrun = true;
			return;
		}
		if (in->flags & JIT_TARGET) {
			if (in->flags & JIT_LOOP) {
				if (!cold)
					c->p = x86_nops(c->p, -x86_off(c) & JIT_LOOP_PAD);
				c->limit += JIT_LOOP_PAD;
			}
			x86_forget(c);
		}
		c->off[pc] = x86_off(c);
		last = pc;
		pc += jit_x86_rows[in->op](c, pc);
		emitted(c, last, pc);
	}
}

static int aim(struct jit *j)
{
	u32 i;

	for (i = 0; i < j->nr_refs; i++) {
		const struct jit_ref *ref = &j->ref[i];
		u32 to = ref->sub ? j->sub[ref->to].entry : j->image->insn_off[ref->to];
		s64 dist = (s64)to - ref->at - ref->size;

		if (!to)
			return jit_refuse(j, ref->to, "a jump into nowhere", "");
		if (ref->size == 4) {
			x86_4(j->code + ref->at, (u32)dist);
		} else {
			if (!x86_is_s8(dist))
				return -ERANGE;
			j->code[ref->at] = (u8)dist;
		}
	}
	return 0;
}

static int emit(struct jit *j)
{
	struct x86 c = { .p = j->code, .j = j, .insns = j->text->insns, .in = j->insn, .off = j->image->insn_off,
			 .fuse = !jit_knobs.no_fuse };
	u32 s;

	find_features(&c);
	if (j->sub[0].by_pointer)
		return jit_refuse(j, 0, "the program as a function of its own", "");
	for (s = 0; s < j->text->nr_subprogs; s++) {
		if (j->sub[s].start == j->sub[s].end)
			continue;
		c.limit += j->sub[s].bound;
		jit_x86_enter(&c, s);
		x86_forget(&c);
		emit_run(&c, 0);
		if (c.sub->cold)
			emit_run(&c, JIT_COLD);
		if (c.overrun)
			return jit_refuse(j, c.sub->start, "its code is larger than reckoned", "");
		jit_x86_stubs(&c);
	}
	j->len = x86_off(&c);
	return aim(j);
}

const struct jit_target jit_target_x86_64 = {
	.arch = "x86_64",
	.caps = { .name = "jit", .can = CAP_PERCPU | CAP_TLS | CAP_DIRECT | CAP_COLD },
	.elf_machine = 62,
	.bound = jit_x86_bound,
	.sub_bound = jit_x86_sub_bound,
	.throw_bound = X86_UNKEEP,
	.emit = emit,
	.claims = claims,
};

#if defined(__x86_64__)
const struct jit_target *const jit_native = &jit_target_x86_64;
const struct exec_impl jit_impl = { .caps = &jit_target_x86_64.caps, .prepare = jit_prepare };
#endif
