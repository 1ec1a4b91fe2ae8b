// SPDX-License-Identifier: BSD-2-Clause
/* Decoding of binary tracepoint records; see format.h. */
#include "replay/format.h"

#include <errno.h>
#include <string.h>

#include "replay/replay_int.h"

enum {
	SW_PREV_COMM,
	SW_PREV_PID,
	SW_PREV_PRIO,
	SW_PREV_STATE,
	SW_NEXT_COMM,
	SW_NEXT_PID,
	SW_NEXT_PRIO
};
enum { WK_COMM, WK_PID, WK_PRIO, WK_TARGET, WK_SUCCESS };
enum { FK_PARENT_COMM, FK_PARENT_PID, FK_CHILD_COMM, FK_CHILD_PID };
enum { EX_COMM, EX_PID, EX_PRIO, EX_GROUP_DEAD };
enum { MG_COMM, MG_PID, MG_PRIO, MG_ORIG, MG_DEST };

/* A row a tracepoint: its fields in the order of the enums above; "?" before a name: may be absent.
 */
static const struct {
	const char *name;
	const char *fields[REC_MAX_FIELDS];
} tracepoints[REC_NR_TRACEPOINTS] = {
	[REC_SWITCH] = {"sched_switch",
			{"prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm",
			 "next_pid", "next_prio"}},
	[REC_WAKEUP] = {"sched_wakeup", {"comm", "pid", "prio", "target_cpu", "?success"}},
	[REC_WAKEUP_NEW] = {"sched_wakeup_new", {"comm", "pid", "prio", "target_cpu", "?success"}},
	[REC_WAKING] = {"sched_waking", {"comm", "pid", "prio", "target_cpu", "?success"}},
	[REC_FORK] = {"sched_process_fork",
		      {"parent_comm", "parent_pid", "child_comm", "child_pid"}},
	[REC_EXIT] = {"sched_process_exit", {"comm", "pid", "prio", "?group_dead"}},
	[REC_MIGRATE] = {"sched_migrate_task", {"comm", "pid", "prio", "orig_cpu", "dest_cpu"}},
};

const char *rec_event_name(enum rec_event_type type)
{
	return (u32)type < REC_NR_TRACEPOINTS ? tracepoints[type].name : NULL;
}

const char *rec_field_name(enum rec_event_type type, unsigned int field)
{
	const char *name = field < REC_MAX_FIELDS ? tracepoints[type].fields[field] : NULL;

	return name && *name == '?' ? name + 1 : name;
}

bool rec_field_is_optional(enum rec_event_type type, unsigned int field)
{
	return tracepoints[type].fields[field][0] == '?';
}

enum rec_event_type rec_event_of_name(const char *name, size_t n)
{
	u32 t;

	if (n < 12 || memcmp(name, "sched_", 6))
		return REC_OTHER;
	for (t = 0; t < REC_NR_TRACEPOINTS; t++)
		if (strlen(tracepoints[t].name) == n && !memcmp(tracepoints[t].name, name, n))
			return (enum rec_event_type)t;
	return REC_OTHER;
}

int rec_formats_states(struct rec_formats *fmts,
		       const struct rec_format_text text[REC_NR_TRACEPOINTS])
{
	if (!text[REC_SWITCH].p) {
		rec_states_modern(&fmts->states);
		return 0;
	}
	return rec_states_parse(&fmts->states, text[REC_SWITCH].p, text[REC_SWITCH].n);
}

/* Names of 16 characters, numbers of 4 bytes, and of 8 for the one state: what every kernel in use writes. */
static bool is_plain(const struct rec_formats *fmts, enum rec_event_type type)
{
	const struct rec_field *f = fmts->f[type].fields;
	u32 i;

	if (fmts->swap || !fmts->f[type].known)
		return false;
	for (i = 0; i < REC_MAX_FIELDS && tracepoints[type].fields[i]; i++) {
		bool is_state = type == REC_SWITCH && i == SW_PREV_STATE;

		if (rec_field_is_optional(type, i))
			continue;
		if (f[i].kind == REC_FIELD_CHARS ? f[i].size != REC_COMM_LEN :
						   f[i].kind != REC_FIELD_INT || f[i].size != (is_state ? 8 : 4))
			return false;
	}
	return true;
}

void rec_formats_index(struct rec_formats *fmts)
{
	u32 t;

	memset(fmts->by_id, REC_OTHER, sizeof(fmts->by_id));
	for (t = REC_NR_TRACEPOINTS; t-- > 0;) {
		fmts->ids[t] = fmts->f[t].known ? fmts->f[t].id : U32_MAX;
		if (fmts->ids[t] < REC_NEAR_IDS)
			fmts->by_id[fmts->ids[t]] = t;
		fmts->plain[t] = is_plain(fmts, (enum rec_event_type)t);
		fmts->can_fail[t] = (t == REC_WAKEUP || t == REC_WAKEUP_NEW || t == REC_WAKING) &&
				    fmts->f[t].fields[WK_SUCCESS].kind;
	}
}

struct raw_record {
	const u8 *p;
	u32 n;
	bool swap;
};

static inline u16 raw_u16(const struct raw_record *r, u32 off)
{
	u16 v;

	memcpy(&v, r->p + off, sizeof(v));
	return r->swap ? __builtin_bswap16(v) : v;
}

static inline u32 raw_u32(const struct raw_record *r, u32 off)
{
	u32 v;

	memcpy(&v, r->p + off, sizeof(v));
	return r->swap ? __builtin_bswap32(v) : v;
}

static inline u64 raw_u64(const struct raw_record *r, u32 off)
{
	u64 v;

	memcpy(&v, r->p + off, sizeof(v));
	return r->swap ? __builtin_bswap64(v) : v;
}

/* The caller has checked the record against rec_format.min_size. */
static inline s64 raw_int(const struct raw_record *r, const struct rec_field *f)
{
	switch (f->size) {
	case 1:
		return f->is_signed ? (s64)(s8)r->p[f->offset] : r->p[f->offset];
	case 2:
		return f->is_signed ? (s64)(s16)raw_u16(r, f->offset) : raw_u16(r, f->offset);
	case 4:
		return f->is_signed ? (s64)(s32)raw_u32(r, f->offset) : raw_u32(r, f->offset);
	default:
		return raw_u64(r, f->offset);
	}
}

static inline void raw_comm(const struct raw_record *r, const struct rec_field *f,
			    char dst[REC_COMM_LEN])
{
	u32 off = f->offset, len = f->size, loc;

	if (likely(f->kind == REC_FIELD_CHARS && f->size == REC_COMM_LEN)) {
		memcpy(dst, r->p + off, REC_COMM_LEN);
		dst[REC_COMM_LEN - 1] = '\0';
		return;
	}
	if (f->kind != REC_FIELD_CHARS) {
		loc = raw_u32(r, f->offset);
		off = loc & 0xffff;
		len = loc >> 16;
		if (f->kind == REC_FIELD_REL_LOC)
			off += f->offset + f->size;
		if (off > r->n || len > r->n - off)
			len = 0;
	}
	rec_copy_comm(dst, (const char *)r->p + off, len);
}

static void decode_switch(const struct rec_formats *fmts, const struct raw_record *r,
			  struct rec_event *ev)
{
	const struct rec_field *f = fmts->f[REC_SWITCH].fields;
	u64 raw = raw_int(r, &f[SW_PREV_STATE]);

	/* A 4-byte long must not drag sign bits into the mask. */
	if (f[SW_PREV_STATE].size < 8)
		raw &= (1ULL << (8 * f[SW_PREV_STATE].size)) - 1;
	raw_comm(r, &f[SW_PREV_COMM], ev->sw.prev_comm);
	ev->sw.prev_tid = raw_int(r, &f[SW_PREV_PID]);
	ev->sw.prev_prio = raw_int(r, &f[SW_PREV_PRIO]);
	ev->sw.prev_state = rec_state_of_raw(&fmts->states, raw, &ev->sw.preempt);
	raw_comm(r, &f[SW_NEXT_COMM], ev->sw.next_comm);
	ev->sw.next_tid = raw_int(r, &f[SW_NEXT_PID]);
	ev->sw.next_prio = raw_int(r, &f[SW_NEXT_PRIO]);
}

static void decode_wakeup(const struct rec_format *fmt, const struct raw_record *r,
			  struct rec_event *ev)
{
	const struct rec_field *f = fmt->fields;

	raw_comm(r, &f[WK_COMM], ev->wakeup.comm);
	ev->wakeup.tid = raw_int(r, &f[WK_PID]);
	ev->wakeup.prio = raw_int(r, &f[WK_PRIO]);
	ev->wakeup.target_cpu = raw_int(r, &f[WK_TARGET]);
	if (f[WK_SUCCESS].kind && !raw_int(r, &f[WK_SUCCESS]))
		ev->type = REC_OTHER;
}

static void decode_fork(const struct rec_format *fmt, const struct raw_record *r,
			struct rec_event *ev)
{
	const struct rec_field *f = fmt->fields;

	raw_comm(r, &f[FK_PARENT_COMM], ev->fork.parent_comm);
	ev->fork.parent_tid = raw_int(r, &f[FK_PARENT_PID]);
	raw_comm(r, &f[FK_CHILD_COMM], ev->fork.child_comm);
	ev->fork.child_tid = raw_int(r, &f[FK_CHILD_PID]);
	ev->fork.child_tgid = -1;
}

static void decode_exit(const struct rec_format *fmt, const struct raw_record *r,
			struct rec_event *ev)
{
	const struct rec_field *f = fmt->fields;

	raw_comm(r, &f[EX_COMM], ev->exit.comm);
	ev->exit.tid = raw_int(r, &f[EX_PID]);
	ev->exit.prio = raw_int(r, &f[EX_PRIO]);
	ev->exit.group_dead = f[EX_GROUP_DEAD].kind ? raw_int(r, &f[EX_GROUP_DEAD]) != 0 : -1;
}

static void decode_migrate(const struct rec_format *fmt, const struct raw_record *r,
			   struct rec_event *ev)
{
	const struct rec_field *f = fmt->fields;

	raw_comm(r, &f[MG_COMM], ev->migrate.comm);
	ev->migrate.tid = raw_int(r, &f[MG_PID]);
	ev->migrate.prio = raw_int(r, &f[MG_PRIO]);
	ev->migrate.orig_cpu = raw_int(r, &f[MG_ORIG]);
	ev->migrate.dest_cpu = raw_int(r, &f[MG_DEST]);
}

static inline s32 plain_int(const u8 *raw, const struct rec_field *f)
{
	s32 v;

	memcpy(&v, raw + f->offset, sizeof(v));
	return v;
}

static inline void plain_comm(const u8 *raw, const struct rec_field *f, char dst[REC_COMM_LEN])
{
	memcpy(dst, raw + f->offset, REC_COMM_LEN);
	dst[REC_COMM_LEN - 1] = '\0';
}

/* The two events that nearly every recording consists of, where their formats are plain. */
static void plain_switch(const struct rec_formats *fmts, const u8 *raw, struct rec_event *ev)
{
	const struct rec_field *f = fmts->f[REC_SWITCH].fields;
	u64 state;

	plain_comm(raw, &f[SW_PREV_COMM], ev->sw.prev_comm);
	ev->sw.prev_tid = plain_int(raw, &f[SW_PREV_PID]);
	ev->sw.prev_prio = plain_int(raw, &f[SW_PREV_PRIO]);
	memcpy(&state, raw + f[SW_PREV_STATE].offset, sizeof(state));
	ev->sw.prev_state = rec_state_of_raw(&fmts->states, state, &ev->sw.preempt);
	plain_comm(raw, &f[SW_NEXT_COMM], ev->sw.next_comm);
	ev->sw.next_tid = plain_int(raw, &f[SW_NEXT_PID]);
	ev->sw.next_prio = plain_int(raw, &f[SW_NEXT_PRIO]);
}

static void plain_wakeup(const struct rec_format *fmt, const u8 *raw, struct rec_event *ev)
{
	const struct rec_field *f = fmt->fields;

	plain_comm(raw, &f[WK_COMM], ev->wakeup.comm);
	ev->wakeup.tid = plain_int(raw, &f[WK_PID]);
	ev->wakeup.prio = plain_int(raw, &f[WK_PRIO]);
	ev->wakeup.target_cpu = plain_int(raw, &f[WK_TARGET]);
}

int rec_decode(const struct rec_formats *fmts, enum rec_event_type type, const u8 *raw, u32 n,
	       struct rec_event *ev)
{
	struct raw_record r = {raw, n, fmts->swap};

	ev->type = type;
	if ((u32)type >= REC_NR_TRACEPOINTS)
		return 0;
	if (unlikely(n < fmts->f[type].min_size))
		return -EINVAL;
	switch ((u32)type) {
	case REC_SWITCH:
		if (likely(fmts->plain[type]))
			plain_switch(fmts, raw, ev);
		else
			decode_switch(fmts, &r, ev);
		break;
	case REC_WAKEUP:
	case REC_WAKEUP_NEW:
	case REC_WAKING:
		if (likely(fmts->plain[type] && !fmts->can_fail[type]))
			plain_wakeup(&fmts->f[type], raw, ev);
		else
			decode_wakeup(&fmts->f[type], &r, ev);
		break;
	case REC_FORK:
		decode_fork(&fmts->f[type], &r, ev);
		break;
	case REC_EXIT:
		decode_exit(&fmts->f[type], &r, ev);
		break;
	case REC_MIGRATE:
		decode_migrate(&fmts->f[type], &r, ev);
		break;
	}
	return 0;
}
