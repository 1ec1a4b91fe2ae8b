// SPDX-License-Identifier: BSD-2-Clause
/* Letters and bits of prev_state; see state.h. */
#include "replay/state.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "replay/recording.h"

/* One row a letter that any kernel since 2.6.33 prints. */
static const struct {
	char letter;
	u32 norm;
} letters[] = {
	{'R', REC_STATE_RUNNING},	  {'S', REC_STATE_INTERRUPTIBLE},
	{'D', REC_STATE_UNINTERRUPTIBLE}, {'T', REC_STATE_STOPPED},
	{'t', REC_STATE_TRACED},	  {'X', REC_STATE_EXIT_DEAD},
	{'Z', REC_STATE_EXIT_ZOMBIE},	  {'x', REC_STATE_DEAD},
	{'P', REC_STATE_PARKED},	  {'I', REC_STATE_IDLE},
	{'K', REC_STATE_WAKEKILL},	  {'W', REC_STATE_WAKING},
	{'N', REC_STATE_NOLOAD},	  {'n', REC_STATE_NEW},
};

static s64 letter_norm(char c)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(letters); i++)
		if (letters[i].letter == c)
			return letters[i].norm;
	return -1;
}

static void states_add(struct rec_states *s, u64 bit, char letter)
{
	s64 norm = letter_norm(letter);

	if (s->nr == REC_MAX_FLAGS || !bit)
		return;
	s->flags[s->nr].bit = bit;
	/* A letter nobody knows is a state nobody knows: not runnable. */
	s->flags[s->nr++].norm = norm < 0 ? REC_STATE_UNINTERRUPTIBLE : norm;
}

static void states_finish(struct rec_states *s)
{
	s->mask = s->plus ? s->plus - 1 : U64_MAX;
}

/* str: the letters of bits 0, 1, 2, …; the bit after the last prints "+". */
static void states_from_letters(struct rec_states *s, const char *str)
{
	u64 bit = 1;

	memset(s, 0, sizeof(*s));
	for (; *str; str++, bit <<= 1)
		states_add(s, bit, *str);
	s->plus = bit;
	states_finish(s);
}

void rec_states_modern(struct rec_states *s)
{
	states_from_letters(s, "SDTtXZPI");
}

/* Constant expressions of print formats: numbers, ( ) | + - & << and, for the two-sided ones, C's
 * precedence. */
struct expr {
	const char *p, *end;
	bool bad;
	int depth;
};

static void expr_space(struct expr *e)
{
	while (e->p < e->end && isspace((u8)*e->p))
		e->p++;
}

static bool expr_take(struct expr *e, const char *tok)
{
	size_t n = strlen(tok);

	expr_space(e);
	if ((size_t)(e->end - e->p) < n || memcmp(e->p, tok, n))
		return false;
	e->p += n;
	return true;
}

static u64 expr_or(struct expr *e);

static u64 expr_number(struct expr *e)
{
	unsigned int base = 10, digit;
	u64 v = 0;
	bool any = false;

	expr_space(e);
	if (e->end - e->p > 2 && e->p[0] == '0' && (e->p[1] == 'x' || e->p[1] == 'X')) {
		base = 16;
		e->p += 2;
	}
	for (; e->p < e->end && isxdigit((u8)*e->p); e->p++, any = true) {
		digit = isdigit((u8)*e->p) ? *e->p - '0' : (*e->p | 32) - 'a' + 10;
		if (digit >= base)
			break;
		v = v * base + digit;
	}
	while (e->p < e->end && any &&
	       (*e->p == 'U' || *e->p == 'L' || *e->p == 'u' || *e->p == 'l'))
		e->p++;
	if (!any)
		e->bad = true;
	return v;
}

static u64 expr_unary(struct expr *e)
{
	u64 v;

	if (++e->depth > 64)
		e->bad = true;
	if (!e->bad && expr_take(e, "(")) {
		v = expr_or(e);
		if (!expr_take(e, ")"))
			e->bad = true;
	} else if (!e->bad && expr_take(e, "~")) {
		v = ~expr_unary(e);
	} else {
		v = e->bad ? 0 : expr_number(e);
	}
	e->depth--;
	return v;
}

static u64 expr_sum(struct expr *e)
{
	u64 v = expr_unary(e);

	while (!e->bad) {
		if (expr_take(e, "+"))
			v += expr_unary(e);
		else if (expr_take(e, "-"))
			v -= expr_unary(e);
		else
			break;
	}
	return v;
}

static u64 expr_shift(struct expr *e)
{
	u64 v = expr_sum(e);

	while (!e->bad && expr_take(e, "<<"))
		v <<= expr_sum(e) & 63;
	return v;
}

static u64 expr_or(struct expr *e)
{
	u64 v = expr_shift(e);

	while (!e->bad) {
		if (expr_take(e, "|"))
			v |= expr_shift(e);
		else if (expr_take(e, "&"))
			v &= expr_shift(e);
		else
			break;
	}
	return v;
}

static const char *find(const char *p, const char *end, const char *what)
{
	return p < end ? memmem(p, end - p, what, strlen(what)) : NULL;
}

/* Of `REC->prev_state & EXPR ? "+" : ""`, the value of EXPR; 0 if there is no such thing. */
static u64 parse_plus(const char *p, const char *end)
{
	static const char field[] = "prev_state";
	const char *q = find(p, end, "? \"+\""), *start = NULL, *at;
	struct expr e;
	u64 v;

	if (!q)
		return 0;
	for (at = find(p, q, field); at; at = find(at, q, field)) {
		at += sizeof(field) - 1;
		start = at;
	}
	if (!start)
		return 0;
	e = (struct expr){start, q};
	if (!expr_take(&e, "&"))
		return 0;
	v = expr_or(&e);
	return e.bad || !is_pow2(v) ? 0 : v;
}

int rec_states_parse(struct rec_states *s, const char *text, size_t n)
{
	const char *end = text + n, *p = find(text, end, "print fmt:");
	const char *q;
	u64 bit, top = 0;
	struct expr e;

	memset(s, 0, sizeof(*s));
	if (!p)
		goto none;
	for (q = p; (q = memchr(q, '{', end - q)); q++) {
		e = (struct expr){q + 1, end};
		bit = expr_or(&e);
		if (e.bad || !expr_take(&e, ",") || !expr_take(&e, "\"") || end - e.p < 2 ||
		    e.p[1] != '"')
			continue;
		states_add(s, bit, e.p[0]);
		top = max_of(top, bit);
	}
	if (!s->nr)
		goto none;
	s->plus = parse_plus(p, end);
	if (!s->plus && find(p, end, "\"+\"") && is_pow2(top))
		s->plus = top << 1; /* the expression is beyond us; in every kernel it is the bit
				       after the last */
	states_finish(s);
	return 0;
none:
	rec_states_modern(s);
	return -ENOENT;
}

void rec_state_witness(struct rec_state_evidence *ev, u64 raw)
{
	ev->count++;
	ev->any |= raw;
	if (is_pow2(raw))
		ev->exact |= raw;
	ev->idle_noload |= (raw & 0x402) == 0x402;
}

/*
 * The eras, by the bit of "+": 256 since 4.14, where no larger value occurs; before, the bit after
 * the last state: 4096 (4.8 to 4.13), 2048 (4.2 to 4.7), 1024 (3.9 to 4.1), 512 (2.6.33 to 3.8). A
 * preempted task's state is exactly that bit, and the states below it that could be mistaken for it
 * (W, P, N, n) are not ones a task sleeps in, so the largest power of two that occurs alone
 * decides. X and Z changed places in 3.14; both mean the task is gone.
 */
void rec_states_infer(struct rec_states *s, const struct rec_state_evidence *ev)
{
	if (ev->any < 512) {
		rec_states_modern(s);
		return;
	}
	if (ev->exact & 4096)
		states_from_letters(s, "SDTtXZxKWPNn");
	else if (ev->exact & 2048)
		states_from_letters(s, "SDTtXZxKWPN");
	else if (ev->idle_noload || ev->any >= 4096)
		states_from_letters(
			s,
			"SDTtXZxKWPNn"); /* nobody was preempted, 2048 and 4096 are both unused */
	else if (ev->exact & 1024)
		states_from_letters(s, "SDTtZXxKWP");
	else
		states_from_letters(s, "SDTtZXxKW");
}

u32 rec_state_of_raw(const struct rec_states *s, u64 raw, bool *ret_preempt)
{
	u64 st = raw & s->mask;
	u32 out = 0, i;

	*ret_preempt = (raw & s->plus) != 0;
	if (likely(!st) || *ret_preempt)
		return REC_STATE_RUNNING;
	for (i = 0; i < s->nr; i++) {
		if ((st & s->flags[i].bit) == s->flags[i].bit)
			out |= s->flags[i].norm;
	}
	return out ? out : REC_STATE_UNINTERRUPTIBLE;
}

s64 rec_state_of_text(const char *p, size_t n, bool *ret_preempt)
{
	s64 norm;
	u32 out = 0;
	size_t i;

	*ret_preempt = n > 0 && p[n - 1] == '+';
	n -= *ret_preempt;
	if (!n)
		return -1;
	for (i = 0; i < n; i++) {
		if (i % 2 == 1) {
			if (p[i] != '|')
				return -1;
			continue;
		}
		norm = letter_norm(p[i]);
		if (norm < 0)
			return -1;
		out |= norm;
	}
	return *ret_preempt ? REC_STATE_RUNNING : out;
}
