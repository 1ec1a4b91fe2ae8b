/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to verifier/: registers, states and the functions its files share.
 *
 * A verification walks every path of the program, one instruction after the other, over an abstract state (struct
 * vrf_state). Where paths part, the other side waits in a stack; where paths meet, states seen before are compared
 * (prune.c) and a path that can bring nothing new ends. All messages are Linux's.
 *
 * Functions return 0 or positive, or -errno with the message already in the log.
 */
#ifndef INLAY_VERIFIER_VRF_INT_H
#define INLAY_VERIFIER_VRF_INT_H

#include "verifier/verifier.h"

#include <errno.h>

#include "base/arena.h"
#include "isa/isa.h"
#include "object/helper.h"
#include "object/map.h"
#include "object/progtype.h"
#include "verifier/range.h"

#define VRF_MAX_INSNS	    1000000 /* processed */
#define VRF_MAX_JUMPS	    8192    /* branches waiting at a time */
#define VRF_MAX_OFF	    (1 << 29) /* beyond that, pointer offsets are refused */
#define VRF_MAX_SUBPROGS    256
#define VRF_MAX_MEM	    (768u << 20) /* bytes of states */
#define VRF_NO_INSN	    U32_MAX
#define VRF_STACK_SLOTS	    (PROG_STACK / 8)

#define CALLER_SAVED 6 /* r0..r5 */

enum vrf_delta {
	DELTA_NONE = 0,
	DELTA_64, /* x + off */
	DELTA_32, /* (u32)(x + off), x below 2^32 */
};

struct vrf_reg {
	u32 type; /* enum reg_type | enum type_flag */
	s32 off;  /* pointers: known part of the offset, the rest is range */
	/*
	 * Pointers: registers with the same id hold the same pointer (one NULL check serves all). Numbers: registers with
	 * the same id hold the same number x, or x + off (delta says how).
	 */
	u32 id;
	u8 delta; /* enum vrf_delta; numbers with an id only */
	u32 ref_id; /* acquired reference this pointer is (part of); 0 none */
	u32 frameno; /* PTR_TO_STACK: whose stack */
	bool precise; /* numbers: some decision depended on the exact range */
	union {
		struct map *map;
		u32 mem_size; /* PTR_TO_MEM */
		u32 subprog;  /* PTR_TO_FUNC */
		struct {
			const struct btf *btf;
			u32 btf_id;
		};
	};
	struct vrf_range range; /* the number, or what a pointer's offset has beyond off */
};

enum vrf_slot_kind {
	SLOT_INVALID = 0, /* never written */
	SLOT_SPILL,	  /* holds (part of) reg */
	SLOT_MISC,	  /* some number */
	SLOT_ZERO,
};

/* Eight bytes of stack: slot n covers [fp - 8(n+1), fp - 8n), and type[i] is the byte at fp - 8n - 1 - i: 7 the lowest. */
struct vrf_slot {
	struct vrf_reg reg; /* what was spilled, if type[7] is SLOT_SPILL */
	u8 type[8];
};

struct vrf_func {
	struct vrf_reg regs[ISA_REG_MAX];
	u32 frameno, subprog;
	u32 callsite; /* instruction of the call; VRF_NO_INSN: main */
	bool in_callback, in_exception_cb;
	s32 cb_min, cb_max; /* what the callback may return */
	u32 callback_depth; /* rounds a callback call at this point was followed */
	u32 nr_slots, cap_slots;
	struct vrf_slot *slots;
	/* liveness between a checkpoint and its children: bit n for slot n */
	u64 read, written;
};

struct vrf_ref {
	u32 id, insn_idx;
};

/* One step on the way from the checkpoint before; what backtracking needs to go back. */
struct vrf_hist {
	u32 idx, prev;
	u8 stack_access : 1; /* the instruction loads or stores slot spi of frame by whatever register */
	u8 dst_stack : 1, src_stack : 1; /* comparison: operand is a stack pointer */
	u8 frame, spi;
	u8 nr_linked;
	/* numbers that a comparison narrowed together: register (bit 7 clear) or slot (bit 7 set), with frame in the high byte */
	u16 linked[6];
};

struct vrf_state {
	struct vrf_func *frame[PROG_MAX_FRAMES];
	u32 cur; /* index of the running frame */
	u32 nr_refs;
	struct vrf_ref *refs;
	struct vrf_state *parent; /* checkpoint this one follows; a reference */
	u32 branches;	   /* paths from here that are not finished */
	u32 refcnt;	   /* list, children, work */
	u32 depth;	   /* checkpoints before it */
	u32 insn_idx, first_idx, last_idx;
	u32 may_goto_depth, callback_unroll_depth;
	u32 preempt_offs; /* sections without preemption that are open */
	bool in_rcu;	  /* a section the program opened itself */
	/* outermost unfinished loop head this checkpoint's paths ran back into; see prune.c */
	struct vrf_state *loop_entry;
	struct vrf_backedge *backedges; /* paths that ended by running into this one while it was unfinished */
	struct vrf_hist *hist;
	u32 nr_hist, cap_hist;
	bool cleaned;
};

struct vrf_backedge {
	struct vrf_backedge *next;
	struct vrf_state *state;  /* the path that ended, as it was */
	struct vrf_state *target; /* checkpoint it was covered by */
	u32 last_idx; /* instruction the path ran last */
};

/* A checkpoint in the list of its instruction. */
struct vrf_seen {
	struct vrf_seen *next;
	struct vrf_state *st;
	u32 misses, hits;
};

/* A path that waits. */
struct vrf_work {
	struct vrf_work *next;
	struct vrf_state *st;
	u32 insn_idx, prev_idx;
	size_t log_len;
};

#define VRF_OP_HALF (-1) /* second slot of a two-slot instruction */
#define VRF_OP_BAD  (-2) /* known opcode, impossible fields: refused when reached */

struct vrf_insn {
	s16 op;		      /* enum isa_op or VRF_OP_* */
	u16 live_in;	      /* registers read later than this point */
	u8 prune_point : 1;
	u8 jmp_point : 1;
	u8 force_checkpoint : 1;
	u8 calls_callback : 1;
	u8 cfg_explored : 1;
	u8 jump_target : 1;
	u8 encoding_ok : 1; /* looked at when first reached; op is right */
	u8 fastcall_pattern : 1; /* facts of the same names, while they may still be cancelled */
	u8 fastcall_spills;
	u32 ptr_type; /* register type the first path used here: engines need one meaning */
};

struct vrf_sub {
	u32 start, end; /* [start, end) */
	u32 stack_depth;
	bool is_global, is_cb, called, checked, has_tail_call;
	bool is_exception_cb;
	bool may_sleep, may_throw; /* it or what it calls */
	bool reads_stale; /* some path may read bytes of this stack that it never wrote */
	bool has_fastcall; /* some call here has spills and fills of a fastcall around it */
	bool keep_fastcall_stack; /* some of them stay: so does the stack they use */
	s32 fastcall_off; /* stack from here up is not the patterns' */
	u32 fastcall_depth;
	s32 func_info;
	const char *name;
};

/* A kernel function the program calls. */
struct vrf_kfunc {
	u32 id;
	const struct kfunc_desc *desc; /* NULL: none that programs may call here */
	const char *name;
	const struct btf_type *proto;
};

/* A frame or state that is not in use. */
struct vrf_spare {
	struct vrf_spare *next;
};

struct vrf_idmap {
	u32 nr, fresh;
	struct {
		u32 old, cur;
	} pair[(ISA_REG_MAX + VRF_STACK_SLOTS) * PROG_MAX_FRAMES];
};

struct vrf {
	struct prog *prog;
	const struct vrf_opts *opts;
	struct vrf_stats stats;
	const struct btf *machine; /* types of the machine; borrowed */
	u32 log_level;
	struct strbuf *log;
	struct bpf_insn *insns;
	u32 nr;
	struct insn_fact *facts;
	struct vrf_insn *aux;
	struct vrf_sub subs[VRF_MAX_SUBPROGS + 1];
	u32 nr_subs;
	struct map *maps[64]; /* used maps; references held until handed over */
	u32 nr_maps;
	u32 max_ctx_offset; /* end of the furthest byte of the context accessed */
	struct vrf_kfunc *kfuncs;
	u32 nr_kfuncs;
	bool calls_kfuncs; /* id 0 included, which stands for none */
	u32 exception_cb; /* subprogram; 0: the cookie is what the program returns */
	bool throws;	  /* some path comes to a throw */

	struct vrf_state *cur;
	struct vrf_work *work;
	u32 nr_work;
	struct vrf_seen **seen; /* by instruction */
	u32 insn_idx, prev_idx;
	u32 next_id;
	u32 jumps, prev_jumps, prev_insns;
	size_t mem; /* bytes of states alive */
	struct vrf_hist *cur_hist; /* entry of the current instruction, made on demand */
	u32 nr_states; /* in the lists */
	struct vrf_idmap idmap;
	struct vrf_spare *spare_funcs, *spare_states; /* given back, for the next ones; not in mem */
	struct vrf_reg any_number;
	u32 subprog_entry; /* the function being judged: 0 or a global one */

	/* log */
	u16 scratched_regs;
	u64 scratched_slots;
	bool print_full;
	size_t insn_log_start, insn_log_end;
	u32 prev_line;
	struct vrf_reg imm_reg; /* operand of the instruction at hand, where it is a constant */
};

/* ---- verifier.c, check.c ---- */
int vrf_walk(struct vrf *v, u32 subprog);
/* 1: the path ended (exit of the main program); 0: go on at v->insn_idx. */
int vrf_step(struct vrf *v, const struct bpf_insn *insn, enum isa_op op);

/* ---- log.c ---- */
void vrf_say(struct vrf *v, const char *fmt, ...) __printf_like(2, 3);
void vrf_log_insn(struct vrf *v, u32 idx);
void vrf_log_state(struct vrf *v, const struct vrf_state *st, u32 frame, bool all);
void vrf_log_changes(struct vrf *v);
void vrf_log_line(struct vrf *v, u32 idx, const char *prefix);
void vrf_log_truncate(struct vrf *v, size_t len);
void vrf_log_stats(struct vrf *v);
size_t vrf_log_len(const struct vrf *v);
/* "map_value_or_null": the text lives until the next call with the same slot (0..3). */
const char *vrf_type_str(struct vrf *v, u32 type);
void vrf_tnum_str(char *buf, size_t n, struct tnum t);

static inline void vrf_log_all_changed(struct vrf *v) /* the next state is shown whole */
{
	v->scratched_regs = UINT16_MAX;
	v->scratched_slots = U64_MAX;
}

/* ---- state.c ---- */
static inline struct vrf_func *vrf_cur(const struct vrf *v)
{
	return v->cur->frame[v->cur->cur];
}

static inline struct vrf_reg *vrf_regs(const struct vrf *v)
{
	return vrf_cur(v)->regs;
}

struct vrf_state *vrf_state_new(struct vrf *v);
struct vrf_state *vrf_state_copy(struct vrf *v, const struct vrf_state *st); /* without history; takes parent's reference */
void vrf_state_put(struct vrf *v, struct vrf_state *st);
struct vrf_func *vrf_func_new(struct vrf *v, u32 callsite, u32 frameno, u32 subprog);
void vrf_func_free(struct vrf *v, struct vrf_func *f);
void vrf_spare_free(struct vrf *v);
int vrf_grow_stack(struct vrf *v, struct vrf_func *f, u32 slots);
/* Queues a copy of the current state to go on at insn_idx. NULL: no memory or too many (reported). */
struct vrf_state *vrf_push(struct vrf *v, u32 insn_idx, u32 prev_idx);
/* Takes the next waiting path. 0, or -ENOENT. */
int vrf_pop(struct vrf *v);
int vrf_hist_push(struct vrf *v, u32 idx, u32 prev);
struct vrf_hist *vrf_hist_here(struct vrf *v); /* entry of the current instruction, or NULL: no memory */

void vrf_reg_not_init(struct vrf_reg *reg);
void vrf_reg_unknown(struct vrf_reg *reg);
void vrf_reg_const(struct vrf_reg *reg, u64 val);
void vrf_reg_zero_off(struct vrf_reg *reg); /* offset of a pointer: exactly 0 */
void vrf_reg_type(struct vrf_reg *reg, u32 type);
static inline void vrf_reg_unlink(struct vrf_reg *reg) /* reg: a number */
{
	reg->id = 0;
	reg->delta = DELTA_NONE;
	reg->off = 0;
}
static inline bool vrf_reg_is_const(const struct vrf_reg *reg)
{
	return reg->type == SCALAR_VALUE && vrf_tnum_is_const(reg->range.var);
}
static inline bool vrf_reg_is_null(const struct vrf_reg *reg)
{
	return vrf_reg_is_const(reg) && !reg->range.var.value;
}
static inline u32 vrf_new_id(struct vrf *v)
{
	return ++v->next_id;
}
/* Calls fn for every register and spilled register of every frame. */
void vrf_for_each_reg(struct vrf_state *st, void (*fn)(struct vrf_reg *reg, void *ctx), void *ctx);
static inline bool vrf_slot_is_spill(const struct vrf_slot *s)
{
	return s->type[7] == SLOT_SPILL;
}
static inline bool vrf_slot_is_spilled_scalar(const struct vrf_slot *s)
{
	return s->type[7] == SLOT_SPILL && s->reg.type == SCALAR_VALUE;
}
static inline bool vrf_slot_is_full_spill(const struct vrf_slot *s)
{
	return s->type[0] == SLOT_SPILL;
}

/* ---- reg.c ---- */
/* r is read: known? */
int vrf_read_reg(struct vrf *v, u32 r);
/* r is written: not the frame pointer? The register is then marked changed. */
int vrf_write_reg(struct vrf *v, u32 r);
bool vrf_is_pointer(u32 type);
bool vrf_may_be_null(u32 type);
void vrf_mark_stack_read(struct vrf *v, u32 frame, u32 spi);
void vrf_mark_stack_written(struct vrf *v, u32 frame, u32 spi);

/* ---- cfg.c, subprog.c, live.c, resolve.c ---- */
int vrf_find_subprogs(struct vrf *v);
int vrf_add_sub(struct vrf *v, s64 start);
int vrf_check_jumps(struct vrf *v);
int vrf_check_cfg(struct vrf *v);
int vrf_find_sub(const struct vrf *v, u32 start); /* index, or -1 */
u32 vrf_sub_of(const struct vrf *v, u32 idx);
int vrf_resolve(struct vrf *v);
int vrf_live_regs(struct vrf *v);

/* ---- mem.c, stack.c, btfmem.c ---- */
struct vrf_access {
	u32 regno; /* base */
	s32 off;   /* of the instruction */
	u32 size;
	bool write;
	s32 value_regno; /* loaded into, or stored from; -1: none (immediate or helper) */
	bool imm_value; /* stores v->imm_reg */
	bool sign_extend;
	bool atomic; /* must be aligned */
};
int vrf_mem_access(struct vrf *v, const struct vrf_access *a);
/* [base + off, +size) lies within mem_size bytes, whatever the variable part. */
int vrf_region_check(struct vrf *v, u32 regno, s32 off, u32 size, u32 mem_size, bool zero_ok);
int vrf_map_access(struct vrf *v, u32 regno, s32 off, u32 size, bool write, bool zero_ok);
int vrf_ptr_off_zero(struct vrf *v, const struct vrf_reg *reg, u32 regno);
int vrf_ptr_off_fixed(struct vrf *v, const struct vrf_reg *reg, u32 regno);
/* Stack through regno by an instruction. */
int vrf_stack_access(struct vrf *v, const struct vrf_access *a);
/*
 * Stack handed to a helper: readable, or written by it. raw: the helper fills all of it; 1 if so, and vrf_stack_fill() is
 * due when all arguments are judged.
 */
int vrf_stack_arg(struct vrf *v, u32 regno, s32 off, u32 size, bool zero_ok, bool write, bool raw);
/* part: it may leave some of it as it was. */
void vrf_stack_fill(struct vrf *v, u32 regno, u32 size, bool part);
int vrf_btf_access(struct vrf *v, const struct vrf_access *a);

/* ---- alu.c, ptr.c, branch.c ---- */
void vrf_give_id(struct vrf *v, struct vrf_reg *reg);
int vrf_alu(struct vrf *v, const struct bpf_insn *insn, enum isa_op op);
int vrf_ptr_alu(struct vrf *v, const struct bpf_insn *insn, u8 alu_op, struct vrf_reg *dst, const struct vrf_reg *ptr,
		const struct vrf_reg *num);
int vrf_jump(struct vrf *v, const struct bpf_insn *insn, enum isa_op op);
int vrf_may_goto(struct vrf *v, const struct bpf_insn *insn);
/* Linked numbers: those that share id with reg take its range. */
void vrf_sync_linked(struct vrf *v, struct vrf_state *st, const struct vrf_reg *known, struct vrf_hist *h);
void vrf_ptr_is_null(struct vrf_state *st, u32 id, u32 ref_id, bool is_null);

/* ---- call.c, args.c, func.c, callback.c, refs.c ---- */
int vrf_call_helper(struct vrf *v, const struct bpf_insn *insn);
int vrf_call_sub(struct vrf *v, const struct bpf_insn *insn);
int vrf_exit(struct vrf *v); /* as vrf_step() */
int vrf_check_result(struct vrf *v, u32 regno); /* that the program may return what the register holds */
int vrf_push_callback(struct vrf *v, const struct helper_desc *h, const struct vrf_reg *args, u32 subprog,
		      struct map *map);
int vrf_ret_in_range(struct vrf *v, u32 regno, s32 min, s32 max, const char *where); /* 64 bits */
int vrf_callback_return(struct vrf *v, struct vrf_func *callee);
int vrf_call_global(struct vrf *v, u32 subprog);
int vrf_prepare_global(struct vrf *v, u32 subprog, struct vrf_func *f); /* registers of a global function at its entry */
int vrf_const_str(struct vrf *v, u32 regno, const char **ret_str);

struct vrf_call_meta {
	struct map *map;
	u32 map_regno;
	u32 ref_id;	 /* of the released argument */
	s32 release_regno;
	u32 mem_size;	 /* ARG_CONST_ALLOC_SIZE */
	s32 subprog;
	u64 size_max;	 /* of the last size argument */
	bool size_known;
	bool raw;	 /* the memory argument at hand is filled whole by the helper */
	u32 raw_size;
	s32 raw_regno;	 /* stack buffer to be filled: its register, -1 none */
	bool const_key;
	u64 key;
	const char *str;
	bool fills_part; /* what it is to fill it may fill in part only */
};
int vrf_check_arg(struct vrf *v, u32 arg, const struct helper_desc *h, struct vrf_call_meta *m);
/* A pointer of size bytes for reading (and writing), as a helper or global function gets it. */
int vrf_mem_arg(struct vrf *v, u32 regno, u32 size, bool zero_ok, bool write, struct vrf_call_meta *m);
int vrf_arg_off(struct vrf *v, u32 regno, u32 arg_type); /* the pointer may have the offset it has */
/* Register regno is the size of the memory in the one before. */
int vrf_size_arg(struct vrf *v, u32 regno, bool zero_ok, bool write, struct vrf_call_meta *m);

int vrf_ref_acquire(struct vrf *v, u32 insn_idx, u32 *ret_id);
int vrf_ref_release(struct vrf *v, u32 id);
void vrf_drop_null_refs(struct vrf *v, struct vrf_state *st);
bool vrf_ref_find(const struct vrf_state *st, u32 id);
/* Nothing may be held: references; and, where sections are looked at, no section be open. what: for the message. */
int vrf_resources_at(struct vrf *v, bool sections, const char *what);

/* ---- kfunc.c, kfunc_args.c, kfunc_call.c, throw.c ---- */
int vrf_add_kfunc(struct vrf *v, u32 idx); /* before the walk: the call at idx */
const struct vrf_kfunc *vrf_kfunc_at(const struct vrf *v, u32 idx); /* NULL: id 0, or no call of a kernel function */
const struct kfunc_desc *vrf_kfunc_desc(const struct vrf *v, u32 idx); /* NULL too where it may not be called */
/* 1: the path ended, by a throw. */
int vrf_call_kfunc(struct vrf *v, const struct bpf_insn *insn);
/* What arguments tell the rest of the call. */
struct vrf_kfunc_meta {
	u32 ref_id;	 /* of the argument that is a reference */
	s32 release_regno; /* 0: none */
	bool has_const;
	u64 constant; /* of the __k argument */
};
int vrf_kfunc_args(struct vrf *v, const struct vrf_kfunc *k, struct vrf_kfunc_meta *m);
/* The function that exceptions go on with, by the program's tag. */
int vrf_find_exception_cb(struct vrf *v);
/* What functions do that those that call them must know: they sleep, they throw. */
void vrf_merge_effects(struct vrf *v);
int vrf_check_throws(struct vrf *v); /* none from a callback */
/* Sleeping is out of place here: why ("rcu_read_lock region"); NULL: it is not. */
const char *vrf_no_sleep(const struct vrf *v);

/* ---- precise.c ---- */
int vrf_mark_precise(struct vrf *v, u32 regno);
int vrf_mark_precise_in(struct vrf *v, u32 frame, u32 regno);
int vrf_mark_slot_precise(struct vrf *v, u32 frame, u32 spi);
/* Marks in st's ancestors what old needs exact; *changed counts. Starts from st itself (insn last_idx). */
int vrf_propagate_precise(struct vrf *v, const struct vrf_state *old, struct vrf_state *st, bool *ret_changed);

/* ---- prune.c, equal.c ---- */
enum vrf_exact {
	VRF_NOT_EXACT, /* what is not precise may differ */
	VRF_EXACT,     /* registers and stack are the same */
	VRF_WITHIN,    /* every range lies within, precise or not */
};
bool vrf_states_equal(struct vrf *v, struct vrf_state *old, struct vrf_state *cur, enum vrf_exact exact);
/* 1: covered by a state seen before; 0 go on. */
int vrf_visited(struct vrf *v);
int vrf_branch_done(struct vrf *v, struct vrf_state *st);
struct vrf_state *vrf_prev_visit(struct vrf *v, struct vrf_state *cur, u32 idx);
void vrf_widen(struct vrf *v, struct vrf_state *old, struct vrf_state *cur);
void vrf_propagate_read(struct vrf *v, const struct vrf_state *old, struct vrf_state *st, bool *ret_changed);

/* ---- fastcall.c ---- */
void vrf_fastcall_mark(struct vrf *v);
/* Stack of function subprog is accessed at off (the lowest byte) by the current instruction. */
void vrf_fastcall_access(struct vrf *v, u32 subprog, s64 off);
void vrf_fastcall_settle(struct vrf *v);

/* ---- depth.c, global.c ---- */
int vrf_check_depth(struct vrf *v);
/* FUNC and FUNC_PROTO of a subprogram; NULL without BTF. */
const struct btf_type *vrf_func_proto(const struct vrf *v, u32 subprog);

#endif
