// SPDX-License-Identifier: BSD-2-Clause
/* The walk: one instruction after the other, path after path, until all are done or one is refused. */
#include "verifier/vrf_int.h"

#include <stdlib.h>

#include "btf/btf.h"

static int load(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	struct vrf_access a = { .regno = insn->src_reg, .off = insn->off, .size = isa_of(op)->width,
				.value_regno = insn->dst_reg, .atomic = isa_of(op)->kind == ISA_K_LOAD_ACQ };
	int err = vrf_read_reg(v, insn->src_reg);

	a.sign_extend = isa_of(op)->kind == ISA_K_LDX && BPF_MODE(insn->code) == BPF_MEMSX;
	if (!err)
		err = vrf_write_reg(v, insn->dst_reg);
	return err ? err : vrf_mem_access(v, &a);
}

static int store(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	struct vrf_access a = { .regno = insn->dst_reg, .off = insn->off, .size = isa_of(op)->width, .write = true,
				.value_regno = insn->src_reg, .atomic = isa_of(op)->kind == ISA_K_STORE_REL };
	int err = 0;

	if (isa_of(op)->kind == ISA_K_ST) {
		a.value_regno = -1;
		a.imm_value = true;
		vrf_reg_const(&v->imm_reg, (u64)(s64)insn->imm);
	} else {
		err = vrf_read_reg(v, insn->src_reg);
	}
	if (!err)
		err = vrf_read_reg(v, insn->dst_reg);
	return err ? err : vrf_mem_access(v, &a);
}

/* Memory that takes no read-modify-write. */
static bool atomic_refused(u32 type)
{
	switch (type_base(type)) {
	case PTR_TO_CTX:
	case PTR_TO_PACKET:
	case PTR_TO_PACKET_META:
		return true;
	}
	return false;
}

static int atomic(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	const struct isa_info *info = isa_of(op);
	struct vrf_access a = { .regno = insn->dst_reg, .off = insn->off, .size = info->width, .value_regno = -1,
				.atomic = true };
	struct vrf_reg *regs = vrf_regs(v);
	s32 result = info->fx & ISA_FX_R0W ? 0 : info->fx & ISA_FX_SW ? insn->src_reg : -1;
	int err = vrf_read_reg(v, insn->src_reg);

	if (!err)
		err = vrf_read_reg(v, insn->dst_reg);
	if (!err && info->fx & ISA_FX_R0R)
		err = vrf_read_reg(v, 0);
	if (err)
		return err;
	if (atomic_refused(regs[insn->dst_reg].type)) {
		vrf_say(v, "BPF_ATOMIC stores into R%u %s is not allowed\n", insn->dst_reg,
			vrf_type_str(v, regs[insn->dst_reg].type));
		return -EACCES;
	}
	if (result >= 0) {
		err = vrf_write_reg(v, (u32)result);
		if (err)
			return err;
	}
	err = vrf_mem_access(v, &a);
	a.write = true;
	if (!err)
		err = vrf_mem_access(v, &a);
	if (!err && result >= 0) {
		vrf_reg_unknown(&regs[result]);
		vrf_range_zext(&regs[result].range, info->width);
	}
	return err;
}

static int load_imm64(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	struct insn_fact *fact = &v->facts[v->insn_idx];
	struct vrf_reg *dst;
	int err = vrf_write_reg(v, insn->dst_reg);

	if (err)
		return err;
	dst = &vrf_regs(v)[insn->dst_reg];
	switch ((int)op) {
	case ISA_LD_IMM64:
		vrf_reg_const(dst, fact->imm64);
		return 0;
	case ISA_LD_MAP_FD:
	case ISA_LD_MAP_IDX:
		vrf_reg_type(dst, CONST_PTR_TO_MAP);
		dst->map = fact->map;
		return 0;
	case ISA_LD_MAP_VALUE:
	case ISA_LD_MAP_IDX_VALUE:
		vrf_reg_type(dst, PTR_TO_MAP_VALUE);
		dst->map = fact->map;
		dst->off = insn[1].imm;
		return 0;
	case ISA_LD_FUNC:
		if (!v->prog->nr_func_info) {
			vrf_say(v, "missing btf func_info\n");
			return -EINVAL;
		}
		if (v->subs[fact->subprog].is_global) {
			vrf_say(v, "callback function not static\n");
			return -EINVAL;
		}
		vrf_reg_type(dst, PTR_TO_FUNC);
		dst->subprog = fact->subprog;
		return 0;
	}
	return -EINVAL;
}

static int call(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	int err;

	if (op == ISA_CALL_SUBPROG)
		return vrf_call_sub(v, insn);
	err = op == ISA_CALL_KFUNC ? vrf_call_kfunc(v, insn) : vrf_call_helper(v, insn);
	if (!err)
		v->insn_idx++;
	return err;
}

int vrf_step(struct vrf *v, const struct bpf_insn *insn, enum isa_op op)
{
	int err;

	switch ((enum isa_kind)isa_of(op)->kind) {
	case ISA_K_ALU:
	case ISA_K_NEG:
	case ISA_K_MOV:
	case ISA_K_CAST:
	case ISA_K_PERCPU:
	case ISA_K_TLS:
	case ISA_K_END:
		err = vrf_alu(v, insn, op);
		break;
	case ISA_K_LDX:
	case ISA_K_LOAD_ACQ:
		err = load(v, insn, op);
		break;
	case ISA_K_ST:
	case ISA_K_STX:
	case ISA_K_STORE_REL:
		err = store(v, insn, op);
		break;
	case ISA_K_ATOMIC:
		err = atomic(v, insn, op);
		break;
	case ISA_K_LD_IMM64:
		err = load_imm64(v, insn, op);
		v->insn_idx++;
		break;
	case ISA_K_LD_ABS:
	case ISA_K_LD_IND:
		vrf_say(v, "BPF_LD_[ABS|IND] instructions not allowed for this program type\n");
		return -EINVAL;
	case ISA_K_JA:
		v->jumps++;
		v->insn_idx = (u32)((s64)v->insn_idx + 1 + isa_jump_off(insn));
		return 0;
	case ISA_K_JMP:
		v->jumps++;
		return vrf_jump(v, insn, op);
	case ISA_K_MAY_GOTO:
		v->jumps++;
		return vrf_may_goto(v, insn);
	case ISA_K_CALL:
		v->jumps++;
		return call(v, insn, op);
	case ISA_K_EXIT:
		v->jumps++;
		return vrf_exit(v);
	default:
		err = -EINVAL;
	}
	if (!err)
		v->insn_idx++;
	return err;
}

/* The path ended: the next one that waits goes on. 1: none. */
static int next_path(struct vrf *v)
{
	struct vrf_state *parent = v->cur->parent;
	size_t len = v->work ? v->work->log_len : 0;
	int err;

	vrf_log_all_changed(v);
	err = vrf_branch_done(v, parent);
	if (err)
		return err;
	err = vrf_pop(v);
	if (err)
		return 1;
	if (!(v->log_level & 2))
		vrf_log_truncate(v, len);
	v->print_full = true;
	v->insn_log_end = 0;
	return 0;
}

static void log_before(struct vrf *v)
{
	if (v->log_level & 2 && v->print_full) {
		vrf_say(v, "\nfrom %d to %u:", (s32)v->prev_idx, v->insn_idx);
		vrf_log_state(v, v->cur, v->cur->cur, true);
		v->print_full = false;
	}
	if (v->log_level & 3) {
		vrf_log_changes(v);
		vrf_log_line(v, v->insn_idx, "; ");
		vrf_log_insn(v, v->insn_idx);
	}
}

static void log_safe(struct vrf *v)
{
	if (!(v->log_level & 3))
		return;
	if (v->print_full)
		vrf_say(v, "\nfrom %d to %u: safe\n", (s32)v->prev_idx, v->insn_idx);
	else
		vrf_say(v, "%u: safe\n", v->insn_idx);
}

/* One instruction of the current path. 1: the path ended. */
static int one(struct vrf *v)
{
	u32 idx = v->insn_idx;
	const struct bpf_insn *insn = &v->insns[idx];
	char msg[ISA_MSG_MAX];
	int err, op;

	v->cur_hist = NULL;
	if (++v->stats.insns_processed > VRF_MAX_INSNS) {
		vrf_say(v, "BPF program is too large. Processed %u insn\n", v->stats.insns_processed);
		return -E2BIG;
	}
	v->cur->last_idx = v->prev_idx;
	v->cur->insn_idx = idx;
	if (v->aux[idx].prune_point) {
		err = vrf_visited(v);
		if (err == 1)
			log_safe(v);
		if (err)
			return err;
	}
	if (v->aux[idx].jmp_point) {
		err = vrf_hist_push(v, idx, v->prev_idx);
		if (err)
			return err;
	}
	log_before(v);
	v->facts[idx].seen = 1;
	op = v->aux[idx].op;
	if (!v->aux[idx].encoding_ok) {
		op = isa_check_insn(insn, msg);
		if (op < 0) {
			vrf_say(v, "%s\n", msg);
			return op;
		}
		v->aux[idx].op = (s16)op;
		v->aux[idx].encoding_ok = 1;
	}
	err = vrf_step(v, insn, (enum isa_op)op);
	v->prev_idx = idx;
	return err;
}

static void drop_all(struct vrf *v)
{
	if (v->cur)
		vrf_state_put(v, v->cur);
	v->cur = NULL;
	while (v->work)
		vrf_pop(v);
	vrf_state_put(v, v->cur);
	v->cur = NULL;
	for (u32 i = 0; i < v->nr; i++)
		while (v->seen[i]) {
			struct vrf_seen *s = v->seen[i];

			v->seen[i] = s->next;
			vrf_state_put(v, s->st);
			v->mem -= sizeof(*s);
			free(s);
		}
	v->nr_states = 0;
}

/* Judges the function from its entry: the program itself, or a global function for any arguments. */
int vrf_walk(struct vrf *v, u32 subprog)
{
	struct vrf_func *f;
	int err = -ENOMEM;

	v->subprog_entry = subprog;
	v->cur = vrf_state_new(v);
	if (!v->cur)
		return err;
	f = v->cur->frame[0] = vrf_func_new(v, VRF_NO_INSN, 0, subprog);
	if (!f)
		goto out;
	err = 0;
	f->in_exception_cb = v->subs[subprog].is_exception_cb;
	if (subprog)
		err = vrf_prepare_global(v, subprog, f);
	else
		vrf_reg_type(&f->regs[1], PTR_TO_CTX);
	v->insn_idx = v->cur->first_idx = v->subs[subprog].start;
	v->prev_idx = v->cur->last_idx = VRF_NO_INSN;
	vrf_log_all_changed(v);
	v->print_full = false;
	v->insn_log_end = 0;
	while (!err) {
		if (v->insn_idx >= v->nr) {
			vrf_say(v, "invalid insn idx %u insn_cnt %u\n", v->insn_idx, v->nr);
			err = -EFAULT;
			break;
		}
		err = one(v);
		if (err == 1)
			err = next_path(v);
	}
	err = err == 1 ? 0 : err;
out:
	drop_all(v);
	return err;
}
