/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a recording's prev_state means. The bits behind a letter moved five times since 2.6.33 (256
 * is "+" in one kernel and "W" in another), so the table comes from the recording's own print
 * format; text has only letters, or bare numbers whose table is inferred from the numbers that
 * occur.
 */
#ifndef INLAY_REPLAY_STATE_H
#define INLAY_REPLAY_STATE_H

#include "base/types.h"

#define REC_MAX_FLAGS 24

struct rec_states {
	u64 plus; /* the bit that prints "+"; 0: none */
	u64 mask; /* bits that hold the state */
	u32 nr;
	struct {
		u64 bit;
		u32 norm; /* enum rec_state bits */
	} flags[REC_MAX_FLAGS];
};

/* The meaning of Linux 4.14 and later, for recordings that say nothing. */
void rec_states_modern(struct rec_states *s);

/*
 * From the text of sched_switch's format file (n bytes, need not be terminated). 0; -ENOENT: it has
 * no table of letters, and s is as rec_states_modern() leaves it.
 */
int rec_states_parse(struct rec_states *s, const char *text, size_t n);

/* Numbers seen as prev_state in a text without a format; feed all, then ask for the table. */
struct rec_state_evidence {
	u64 exact; /* bit n: the value 1 << n occurred alone */
	u64 any;   /* all values, or-ed */
	u64 count;
	bool idle_noload; /* 0x402, TASK_IDLE before 4.14, occurred */
};

void rec_state_witness(struct rec_state_evidence *ev, u64 raw);
void rec_states_infer(struct rec_states *s, const struct rec_state_evidence *ev);

/* enum rec_state bits of a raw value; ret_preempt: it carries the "+" bit. */
u32 rec_state_of_raw(const struct rec_states *s, u64 raw, bool *ret_preempt);

/* Of letters such as "S", "R+" or "D|K"; -1 if they are none. */
s64 rec_state_of_text(const char *p, size_t n, bool *ret_preempt);

#endif
