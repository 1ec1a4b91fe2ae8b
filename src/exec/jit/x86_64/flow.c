// SPDX-License-Identifier: BSD-2-Clause
/*
 * Jumps, calls, code out of the way, and the sizes all that relies on.
 *
 * A jump back knows its distance. A jump forward is short if the code between cannot be longer than a short jump
 * reaches, by the bounds below; what it names is filled in at the end. So every bound must hold: the emission compares
 * where it is with where it may be at every instruction, and a short jump that does not reach makes all of them long.
 */
#include "exec/jit/x86_64/x86_int.h"

#define STUB_MAX 24 /* of a stub, reckoned with the instruction it belongs to */

static u8 alu_bound(enum isa_op op, const struct bpf_insn *insn)
{
	switch (BPF_OP(insn->code)) {
	case BPF_DIV:
	case BPF_MOD:
		return insn->code & BPF_X ? 75 + STUB_MAX : 72;
	case BPF_LSH:
	case BPF_RSH:
	case BPF_ARSH:
		return insn->code & BPF_X ? 12 : 4;
	case BPF_MUL:
		return insn->code & BPF_X ? 4 : 7;
	}
	return insn->code & BPF_X ? 3 : x86_is_s8(insn->imm) ? 4 : 7;
}

u8 jit_x86_bound(enum isa_op op, const struct bpf_insn *insn, const struct insn_fact *fact)
{
	u8 disp = x86_is_s8(insn->off) ? 1 : 4;

	switch ((enum isa_kind)isa_info[op].kind) {
	case ISA_K_ALU:
		return alu_bound(op, insn);
	case ISA_K_NEG:
		return 3;
	case ISA_K_MOV:
		return insn->code & BPF_X ? 4 : 7;
	case ISA_K_END:
		return 9;
	case ISA_K_LD_IMM64:
		return 10;
	case ISA_K_LDX:
		/* the address fused with it may need a larger displacement, but then brings 7 bytes of its own */
		return 4 + disp + 1 + (isa_info[op].internal ? 8 + 7 + 6 + STUB_MAX : 0);
	case ISA_K_TLS:
		return 9;
	case ISA_K_PERCPU:
		return 9 + 7 + 5;
	case ISA_K_ST:
		return 5 + disp + 4;
	case ISA_K_STX:
	case ISA_K_STORE_REL:
	case ISA_K_LOAD_ACQ:
		return 5 + disp;
	case ISA_K_ATOMIC:
		return 40;
	case ISA_K_JA:
		return 5;
	case ISA_K_JMP:
		return (insn->code & BPF_X ? 3 : x86_is_s8(insn->imm) || !insn->imm ? 4 : 7) + 6;
	case ISA_K_MAY_GOTO:
		return 8 + 6 + STUB_MAX;
	case ISA_K_CALL:
		return fact && fact->helper && fact->helper->flags & HELPER_TAIL_CALL ? 70 : 12;
	case ISA_K_EXIT:
		return 4 * 2 + 7 + 1;
	case ISA_K_CAST:
	case ISA_K_LD_ABS:
	case ISA_K_LD_IND:
		break;
	}
	return 0;
}

/* ---- jumps ---- */

u32 jit_x86_next(const struct x86 *c, u32 pc)
{
	if (!c->sub->cold)
		return pc;
	while (pc < c->sub->end && (c->in[pc].flags & JIT_COLD) != c->cold)
		pc++;
	return pc < c->sub->end ? pc : U32_MAX;
}

static void aim_later(struct x86 *c, u32 to, u8 size)
{
	struct jit *j = c->j;

	j->ref[j->nr_refs++] = (struct jit_ref){ .at = x86_off(c) - size, .to = to, .size = size };
}

#define SHORT_LOOK 64 /* slots; more cannot be so short but where cold code lies between */

/* What will be emitted between pc, which is being, and to can be no longer than a short jump reaches. */
static bool is_near(const struct x86 *c, u32 pc, u32 to)
{
	s32 room = 127 - (c->in[to].flags & JIT_LOOP ? JIT_LOOP_PAD : 0) - (c->sub->cold ? 2 * JIT_COLD_PAD : 0);
	u8 cold = c->cold;
	u32 n;

	for (n = 0; n < SHORT_LOOK && room >= 0; n++) {
		const struct jit_insn *in;

		if (++pc == c->sub->end) { /* behind the hot code the cold */
			if (cold || !c->sub->cold)
				return false;
			cold = JIT_COLD;
			pc = c->sub->start;
		}
		in = &c->in[pc];
		if ((in->flags & JIT_COLD) != cold)
			continue;
		if (pc == to)
			return true;
		room -= in->max + (in->flags & JIT_LOOP ? JIT_LOOP_PAD : 0) + (c->sub->cold ? JIT_COLD_PAD : 0);
	}
	return false;
}

static void jump(struct x86 *c, int cc, u32 pc, u32 to)
{
	const struct jit *j = c->j;
	s64 dist = (s64)c->off[to] - x86_off(c) - 2;
	bool known = c->off[to], near;

	if (known)
		near = x86_is_s8(dist);
	else
		near = !j->far && is_near(c, pc, to);
	if (near) {
		c->p[0] = cc < 0 ? 0xeb : 0x70 | cc;
		c->p[1] = known ? (u8)dist : 0;
		c->p += 2;
	} else {
		if (cc >= 0)
			c->p = x86_1(c->p, 0x0f);
		c->p = x86_1(c->p, cc < 0 ? 0xe9 : 0x80 | cc);
		c->p = x86_4(c->p, (u32)((s64)c->off[to] - x86_off(c) - 4));
	}
	if (!known)
		aim_later(c, to, near ? 1 : 4);
}

void jit_x86_jump(struct x86 *c, int cc, u32 pc, u32 to)
{
	u32 fall = pc + isa_slots(c->insns[pc].code), next = jit_x86_next(c, fall);

	if (cc >= 0 && to != fall) {
		if (to == next) { /* what falls through is elsewhere: jump there instead */
			jump(c, cc ^ 1, pc, fall);
			return;
		}
		jump(c, cc, pc, to);
		to = fall;
	}
	if (to != next)
		jump(c, -1, pc, to);
}

void jit_x86_call(struct x86 *c, u64 fn)
{
	s64 dist = (s64)(fn - (c->j->addr + x86_off(c) + 5));

	if (x86_is_s32(dist) && !jit_knobs.far_calls) {
		c->p = x86_4(x86_1(c->p, 0xe8), (u32)dist);
		return;
	}
	c->p = x86_mov_imm(c->p, RAX, fn);
	c->p[0] = 0xff; /* call *rax */
	c->p[1] = 0xd0;
	c->p += 2;
}

/* ---- stubs ---- */

struct jit_stub *jit_x86_stub(struct x86 *c, int cc, u8 kind, u8 reg, u8 w)
{
	struct jit_stub *stub = &c->j->stub[c->j->nr_stubs++];

	if (cc >= 0)
		c->p = x86_1(c->p, 0x0f);
	c->p = x86_4(x86_1(c->p, cc < 0 ? 0xe9 : 0x80 | cc), 0);
	*stub = (struct jit_stub){ .from = x86_off(c) - 4, .kind = kind, .reg = reg, .w = w };
	return stub;
}

/* See divide() for what is in rax and rdx. */
static void result_stub(struct x86 *c, const struct jit_stub *stub)
{
	u8 w = stub->w;

	switch (stub->kind) {
	case STUB_PROBE:
		c->p = x86_zero(c->p, stub->reg);
		break;
	case STUB_DIV:
		c->p = x86_zero(c->p, RAX);
		break;
	case STUB_MOD:
		c->p = x86_mov(c->p, w, RDX, RAX);
		break;
	case STUB_SDIV: /* by 0: rdx 1 -> 0; by -1: rdx 0 -> all ones */
		c->p = x86_rr(c->p, w, 0xff, 1, RDX);
		c->p = x86_f7(c->p, w, 3, RAX);
		c->p = x86_alu(c->p, w, X86_AND, RAX, RDX);
		break;
	case STUB_SMOD: /* by 0: rdx 1 -> all ones; by -1: 0 */
		c->p = x86_f7(c->p, w, 3, RDX);
		c->p = x86_alu(c->p, w, X86_AND, RDX, RAX);
		break;
	}
}

void jit_x86_stubs(struct x86 *c)
{
	struct jit *j = c->j;
	u32 i;

	for (i = 0; i < j->nr_stubs; i++) {
		const struct jit_stub *stub = &j->stub[i];
		u32 here = x86_off(c);

		x86_4(j->code + stub->from, here - stub->from - 4);
		if (stub->fault)
			j->fixup[j->nr_fixups++] = (struct jit_fixup){ .fault = stub->fault, .resume = here };
		if (stub->kind == STUB_MAY_GOTO)
			c->p = x86_store_imm(c->p, 4, jit_x86_counter(c), 0);
		else
			result_stub(c, stub);
		c->p = x86_1(c->p, 0xe9);
		c->p = x86_4(c->p, (stub->kind == STUB_MAY_GOTO ? c->off[stub->to] : stub->back) - x86_off(c) - 4);
	}
	j->nr_stubs = 0;
}
