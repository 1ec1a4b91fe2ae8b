// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fields of the scheduler events in text: the kernel's `key=value` print formats, trace-cmd's raw
 * output (the same with numbers for states), and the form of trace-cmd's plugin, `comm:pid [prio] S
 * ==> comm:pid [prio]`.
 *
 * A comm is up to 15 bytes of anything: spaces, '=', "==>", even " pid=7". It ends at the first
 * place from where the whole rest fits.
 */
#include <string.h>

#include "replay/replay_int.h"
#include "replay/text_int.h"

#define COMM_MAX 31 /* bytes a comm may have in text; some kernels' are longer than 15 */

bool text_lit(const char **p, const char *end, const char *lit)
{
	size_t n = strlen(lit);

	if ((size_t)(end - *p) < n || memcmp(*p, lit, n))
		return false;
	*p += n;
	return true;
}

/* Decimal ("001" is one), or hexadecimal after "0x". */
bool text_int(const char **p, const char *end, s64 *ret_value)
{
	const char *q = *p;
	bool neg = q < end && *q == '-';
	u64 v = 0;
	u32 n = 0, digit;

	q += neg;
	if (end - q > 2 && q[0] == '0' && q[1] == 'x') {
		for (q += 2; q < end && n < 16; q++, n++) {
			if (*q >= '0' && *q <= '9')
				digit = *q - '0';
			else if ((*q | 32) >= 'a' && (*q | 32) <= 'f')
				digit = (*q | 32) - 'a' + 10;
			else
				break;
			v = v << 4 | digit;
		}
	} else {
		for (; q < end && *q >= '0' && *q <= '9' && n < 18; q++, n++)
			v = v * 10 + (*q - '0');
	}
	if (!n)
		return false;
	*ret_value = neg ? -v : v;
	*p = q;
	return true;
}

static bool int_field(const char **p, const char *end, const char *key, s64 *ret_value)
{
	return text_lit(p, end, key) && text_int(p, end, ret_value);
}

struct side { /* a task as the text shows it */
	const char *comm;
	size_t comm_len;
	s64 tid, prio;
};

static void take_side(const struct side *s, s32 *tid, s32 *prio, char comm[REC_COMM_LEN])
{
	*tid = s->tid;
	if (prio)
		*prio = s->prio;
	rec_copy_comm(comm, s->comm, s->comm_len);
}

/* Up to a blank; letters, or a number. */
static bool state_field(const char **p, const char *end, struct rec_event *ev, u64 *ret_raw)
{
	const char *q = memchr(*p, ' ', end - *p), *num = *p;
	s64 v;

	if (!q)
		q = end;
	if (q == *p)
		return false;
	if (text_int(&num, q, &v) && num == q) {
		*ret_raw = v;
	} else {
		v = rec_state_of_text(*p, q - *p, &ev->sw.preempt);
		if (v < 0) { /* letters or bits nobody knows: it is not runnable */
			if (q - *p > 24)
				return false;
			ev->sw.preempt = false;
			v = REC_STATE_UNINTERRUPTIBLE;
		}
		ev->sw.prev_state = v;
		*ret_raw = U64_MAX;
	}
	*p = q;
	return true;
}

/* What follows a comm, in one of the forms; on success *p is behind it. */
typedef bool (*rest_fn)(const char **p, const char *end, struct side *s, struct rec_event *ev,
			u64 *raw);

/* Finds where the comm that begins at *p ends: the first place from where rest fits. */
static bool with_comm(const char **p, const char *end, rest_fn rest, struct side *s,
		      struct rec_event *ev, u64 *raw)
{
	const char *start = *p, *q;
	size_t n;

	for (n = 0; n <= COMM_MAX && n <= (size_t)(end - start); n++) {
		q = start + n;
		if (!rest(&q, end, s, ev, raw))
			continue;
		s->comm = start;
		s->comm_len = n;
		*p = q;
		return true;
	}
	return false;
}

static bool at_end(const char *p, const char *end)
{
	while (p < end && *p == ' ')
		p++;
	return p == end;
}

static bool next_key(const char **p, const char *end, struct side *s, struct rec_event *ev,
		     u64 *raw)
{
	return int_field(p, end, " next_pid=", &s->tid) &&
	       int_field(p, end, " next_prio=", &s->prio) && at_end(*p, end);
}

static bool prev_key(const char **p, const char *end, struct side *s, struct rec_event *ev,
		     u64 *raw)
{
	struct side next;

	if (!int_field(p, end, " prev_pid=", &s->tid) ||
	    !int_field(p, end, " prev_prio=", &s->prio) || !text_lit(p, end, " prev_state=") ||
	    !state_field(p, end, ev, raw))
		return false;
	text_lit(p, end, " ==>");
	if (!text_lit(p, end, " next_comm=") || !with_comm(p, end, next_key, &next, ev, raw))
		return false;
	take_side(&next, &ev->sw.next_tid, &ev->sw.next_prio, ev->sw.next_comm);
	return true;
}

/* ":pid [prio]" */
static bool plugin_ids(const char **p, const char *end, struct side *s)
{
	return int_field(p, end, ":", &s->tid) && int_field(p, end, " [", &s->prio) &&
	       text_lit(p, end, "]");
}

static bool next_plugin(const char **p, const char *end, struct side *s, struct rec_event *ev,
			u64 *raw)
{
	return plugin_ids(p, end, s) && at_end(*p, end);
}

static bool prev_plugin(const char **p, const char *end, struct side *s, struct rec_event *ev,
			u64 *raw)
{
	struct side next;

	if (!plugin_ids(p, end, s) || !text_lit(p, end, " ") || !state_field(p, end, ev, raw) ||
	    !text_lit(p, end, " ==> ") || !with_comm(p, end, next_plugin, &next, ev, raw))
		return false;
	take_side(&next, &ev->sw.next_tid, &ev->sw.next_prio, ev->sw.next_comm);
	return true;
}

static bool parse_switch(const char *p, const char *end, struct rec_event *ev, u64 *raw)
{
	struct side prev;
	bool key = text_lit(&p, end, "prev_comm=");

	ev->sw.prev_state = 0;
	ev->sw.preempt = false;
	if (!with_comm(&p, end, key ? prev_key : prev_plugin, &prev, ev, raw))
		return false;
	take_side(&prev, &ev->sw.prev_tid, &ev->sw.prev_prio, ev->sw.prev_comm);
	return true;
}

static bool wakeup_key(const char **p, const char *end, struct side *s, struct rec_event *ev,
		       u64 *raw)
{
	s64 success = 1, cpu = -1;

	if (!int_field(p, end, " pid=", &s->tid) || !int_field(p, end, " prio=", &s->prio))
		return false;
	int_field(p, end, " success=", &success);
	if (!int_field(p, end, " target_cpu=", &cpu) || !at_end(*p, end))
		return false;
	ev->wakeup.target_cpu = cpu;
	if (!success)
		ev->type = REC_OTHER;
	return true;
}

static bool wakeup_plugin(const char **p, const char *end, struct side *s, struct rec_event *ev,
			  u64 *raw)
{
	s64 success = 1, cpu = -1;

	if (!plugin_ids(p, end, s))
		return false;
	int_field(p, end, " success=", &success);
	int_field(p, end, " CPU:", &cpu);
	if (!at_end(*p, end))
		return false;
	ev->wakeup.target_cpu = cpu;
	if (!success)
		ev->type = REC_OTHER;
	return true;
}

static bool parse_wakeup(const char *p, const char *end, struct rec_event *ev, u64 *raw)
{
	struct side s;
	bool key = text_lit(&p, end, "comm=");

	if (!with_comm(&p, end, key ? wakeup_key : wakeup_plugin, &s, ev, raw))
		return false;
	take_side(&s, &ev->wakeup.tid, &ev->wakeup.prio, ev->wakeup.comm);
	return true;
}

static bool child_rest(const char **p, const char *end, struct side *s, struct rec_event *ev,
		       u64 *raw)
{
	return int_field(p, end, " child_pid=", &s->tid) && at_end(*p, end);
}

static bool parent_rest(const char **p, const char *end, struct side *s, struct rec_event *ev,
			u64 *raw)
{
	struct side child;

	if (!int_field(p, end, " pid=", &s->tid) && !int_field(p, end, " parent_pid=", &s->tid))
		return false;
	if (!text_lit(p, end, " child_comm=") || !with_comm(p, end, child_rest, &child, ev, raw))
		return false;
	take_side(&child, &ev->fork.child_tid, NULL, ev->fork.child_comm);
	return true;
}

static bool parse_fork(const char *p, const char *end, struct rec_event *ev, u64 *raw)
{
	struct side s;

	if ((!text_lit(&p, end, "comm=") && !text_lit(&p, end, "parent_comm=")) ||
	    !with_comm(&p, end, parent_rest, &s, ev, raw))
		return false;
	take_side(&s, &ev->fork.parent_tid, NULL, ev->fork.parent_comm);
	ev->fork.child_tgid = -1;
	return true;
}

static bool exit_rest(const char **p, const char *end, struct side *s, struct rec_event *ev,
		      u64 *raw)
{
	s64 dead = -1;

	if (!int_field(p, end, " pid=", &s->tid) || !int_field(p, end, " prio=", &s->prio))
		return false;
	if (text_lit(p, end, " group_dead=") && !text_int(p, end, &dead)) {
		if (text_lit(p, end, "true"))
			dead = 1;
		else if (text_lit(p, end, "false"))
			dead = 0;
	}
	ev->exit.group_dead = dead < 0 ? -1 : dead != 0;
	return at_end(*p, end);
}

static bool parse_exit(const char *p, const char *end, struct rec_event *ev, u64 *raw)
{
	struct side s;

	if (!text_lit(&p, end, "comm=") || !with_comm(&p, end, exit_rest, &s, ev, raw))
		return false;
	take_side(&s, &ev->exit.tid, &ev->exit.prio, ev->exit.comm);
	return true;
}

static bool migrate_rest(const char **p, const char *end, struct side *s, struct rec_event *ev,
			 u64 *raw)
{
	s64 orig, dest;

	if (!int_field(p, end, " pid=", &s->tid) || !int_field(p, end, " prio=", &s->prio) ||
	    !int_field(p, end, " orig_cpu=", &orig) || !int_field(p, end, " dest_cpu=", &dest))
		return false;
	ev->migrate.orig_cpu = orig;
	ev->migrate.dest_cpu = dest;
	return at_end(*p, end);
}

static bool parse_migrate(const char *p, const char *end, struct rec_event *ev, u64 *raw)
{
	struct side s;

	if (!text_lit(&p, end, "comm=") || !with_comm(&p, end, migrate_rest, &s, ev, raw))
		return false;
	take_side(&s, &ev->migrate.tid, &ev->migrate.prio, ev->migrate.comm);
	return true;
}

bool text_parse_fields(const struct text_line *line, struct rec_event *ev, u64 *ret_raw)
{
	const char *p = line->fields, *end = line->end;

	*ret_raw = U64_MAX;
	ev->type = line->type;
	switch ((u32)line->type) {
	case REC_SWITCH:
		return parse_switch(p, end, ev, ret_raw);
	case REC_WAKEUP:
	case REC_WAKEUP_NEW:
	case REC_WAKING:
		return parse_wakeup(p, end, ev, ret_raw);
	case REC_FORK:
		return parse_fork(p, end, ev, ret_raw);
	case REC_EXIT:
		return parse_exit(p, end, ev, ret_raw);
	case REC_MIGRATE:
		return parse_migrate(p, end, ev, ret_raw);
	default:
		return true;
	}
}
