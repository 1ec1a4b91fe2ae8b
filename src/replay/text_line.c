// SPDX-License-Identifier: BSD-2-Clause
/*
 * The part of a line that all writers of scheduler events share, in its variants:
 *
 *   comm tid [cpu] time: sys:event: fields           perf script; also pid/tid, without comm, with
 * a period comm-pid [cpu] time: event: fields               trace-cmd report comm-pid (tgid) [cpu]
 * flags time: event: fields  ftrace; tgid and flags only where switched on
 *
 * A comm may hold anything, brackets and colons too, so what decides is the first `[digits]` that
 * is followed by a time and preceded by a number.
 */
#include <ctype.h>
#include <string.h>

#include "replay/format.h"
#include "replay/text_int.h"

#define PREFIX_MAX 512 /* bytes in which the CPU must appear */

static void skip_blank(const char **p, const char *end)
{
	while (*p < end && (**p == ' ' || **p == '\t'))
		++*p;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "765.537988235:" */
static bool parse_time(const char **p, const char *end, struct text_line *l)
{
	const char *q = *p;
	u64 sec = 0, frac = 0;
	u32 digits = 0, n = 0;

	for (; q < end && is_digit(*q) && n < 12; q++, n++)
		sec = sec * 10 + (*q - '0');
	if (!n || q == end)
		return false;
	if (*q == '.') {
		for (q++; q < end && is_digit(*q); q++) {
			if (digits < 9) {
				frac = frac * 10 + (*q - '0');
				digits++;
			}
		}
	}
	if (q == end || *q != ':')
		return false;
	l->no_time = !digits;
	l->frac_digits = digits;
	for (n = digits; n < 9; n++)
		frac *= 10;
	l->ts_ns = sec * 1000000000ULL + frac;
	*p = q + 1;
	return true;
}

/* A number written just before q, and where it begins. */
static bool number_before(const char *start, const char *q, s64 *ret_value, const char **ret_start)
{
	const char *p = q;
	u64 v = 0;

	while (p > start && is_digit(p[-1]) && q - p < 10)
		p--;
	if (p == q)
		return false;
	for (*ret_start = p; p < q; p++)
		v = v * 10 + (*p - '0');
	*ret_value = v;
	return v <= S32_MAX;
}

static void rskip_blank(const char *start, const char **q)
{
	while (*q > start && ((*q)[-1] == ' ' || (*q)[-1] == '\t'))
		--*q;
}

/* "(  123)" or "(-----)" that ends at *q; *q moves before it. */
static bool tgid_before(const char *start, const char **q, struct text_line *l)
{
	const char *open = memrchr(start, '(', *q - start), *p;
	s64 v;

	if (!open || *q - open > 16)
		return false;
	if (number_before(open + 1, *q - 1, &v, &p))
		l->tgid = v;
	*q = open;
	rskip_blank(start, q);
	return true;
}

/* What stands before `[cpu]`, read backwards: the thread's ids, then a comm that is not needed. */
static bool parse_ids(const char *start, const char *q, struct text_line *l)
{
	const char *p;
	s64 v;

	l->tid = l->tgid = -1;
	l->dash = false;
	rskip_blank(start, &q);
	if (q > start && q[-1] == ')' && !tgid_before(start, &q, l))
		return false;
	if (q == start)
		return true; /* a form without comm and thread */
	if (!number_before(start, q, &v, &p))
		return false;
	if (p == start || p[-1] == ' ' || p[-1] == '\t') {
		l->tid = v;
		return true;
	}
	if (p[-1] == '/') { /* pid/tid */
		l->tid = v;
		q = p - 1;
		if (!number_before(start, q, &v, &p))
			return false;
		l->tgid = p > start && p[-1] == '-' ? -1 : v;
		return true;
	}
	if (p[-1] != '-')
		return false;
	if (p - 1 == start || p[-2] == ' ' || p[-2] == '/')
		return true; /* -1: the thread is past saying who it is */
	l->tid = v;
	l->dash = true;
	return true;
}

static bool parse_flags(const char **p, const char *end)
{
	const char *q = *p;

	if (q == end || is_digit(*q))
		return true; /* none */
	while (q < end && !isspace((u8)*q) && q - *p < 12)
		q++;
	if (q == end || *q != ' ')
		return false;
	*p = q;
	skip_blank(p, end);
	return true;
}

static void parse_event_name(const char *p, const char *end, struct text_line *l)
{
	const char *q, *name, *space;

	skip_blank(&p, end);
	for (q = p; q < end && is_digit(*q); q++) /* a sample period */
		;
	if (q > p && q < end && *q == ' ') {
		p = q;
		skip_blank(&p, end);
	}
	space = memchr(p, ' ', end - p);
	q = space ? space : end;
	l->type = REC_OTHER;
	l->fields = l->end = end;
	if (q == p || q[-1] != ':')
		return; /* function tracer and the like */
	q--;
	name = memchr(p, ':', q - p);
	if (name && (name - p != 5 || memcmp(p, "sched", 5)))
		return;
	name = name ? name + 1 : p;
	l->type = rec_event_of_name(name, q - name);
	l->fields = q + 1;
	skip_blank(&l->fields, end);
}

/* After `[cpu]`. */
static bool parse_rest(const char *p, const char *end, struct text_line *l)
{
	static const char lost[] = "PERF_RECORD_LOST lost ";
	s64 v;

	if (p == end || *p != ' ')
		return false;
	skip_blank(&p, end);
	if (!parse_flags(&p, end) || !parse_time(&p, end, l))
		return false;
	l->kind = TEXT_EVENT;
	parse_event_name(p, end, l);
	skip_blank(&p, end);
	if (l->type == REC_OTHER && text_lit(&p, end, lost) && text_int(&p, end, &v)) {
		l->kind = TEXT_LOST; /* perf script --show-lost-events */
		l->lost = v;
	}
	return true;
}

/* "CPU:2 [LOST 17 EVENTS]" of trace_pipe; "CPU:2 [17 EVENTS DROPPED]", "CPU:2 [EVENTS DROPPED]" of
 * trace-cmd. */
static bool parse_lost(const char *p, const char *end, struct text_line *l)
{
	s64 cpu, n = 0;
	bool known;

	if (!text_lit(&p, end, "CPU:") || !text_int(&p, end, &cpu) || !text_lit(&p, end, " ["))
		return false;
	if (text_lit(&p, end, "LOST "))
		known = text_int(&p, end, &n) && text_lit(&p, end, " EVENTS");
	else
		known = (!text_int(&p, end, &n) || text_lit(&p, end, " ")) &&
			text_lit(&p, end, "EVENTS DROPPED");
	if (!known || n < 0)
		return false;
	l->kind = TEXT_LOST;
	l->lost = n;
	l->cpu = cpu < 0 || cpu >= REC_MAX_CPUS ? U32_MAX : cpu;
	return true;
}

/* "# entries-in-buffer/entries-written: 140080/250280   #P:4": the difference was overwritten. */
static void parse_comment(const char *p, const char *end, struct text_line *l)
{
	static const char key[] = "entries-in-buffer/entries-written:";
	const char *q = memmem(p, end - p, key, sizeof(key) - 1);
	s64 have, written;

	if (!q)
		return;
	q += sizeof(key) - 1;
	skip_blank(&q, end);
	if (!text_int(&q, end, &have) || !text_lit(&q, end, "/") || !text_int(&q, end, &written))
		return;
	if (written <= have)
		return;
	l->kind = TEXT_LOST;
	l->lost = written - have;
}

void text_parse_line(const char *p, const char *end, struct text_line *l)
{
	const char *open, *q, *limit;
	s64 cpu;

	memset(l, 0, sizeof(*l));
	l->cpu = U32_MAX;
	l->tid = l->tgid = -1;
	if (end > p && end[-1] == '\r')
		end--;
	if (p == end || *p == '\t')
		return;
	if (*p == '#') {
		parse_comment(p, end, l);
		return;
	}
	limit = end - p > PREFIX_MAX ? p + PREFIX_MAX : end;
	for (open = memchr(p, '[', limit - p); open;
	     open = memchr(open + 1, '[', limit - open - 1)) {
		q = open + 1;
		if (!text_int(&q, end, &cpu) || !text_lit(&q, end, "]") || cpu < 0)
			continue;
		if (!parse_ids(p, open, l) || !parse_rest(q, end, l))
			continue;
		l->cpu = min_of(cpu, (s64)S32_MAX);
		return;
	}
	for (q = p; q < end && isspace((u8)*q); q++)
		;
	if (q != end && !parse_lost(p, end, l))
		l->kind = TEXT_UNKNOWN;
}
