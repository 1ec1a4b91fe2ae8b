// SPDX-License-Identifier: BSD-2-Clause
/* libtraceevent, kept in a child process; see tep.h. */
#include "replay/tep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <traceevent/event-parse.h>

#include "replay/child.h"
#include "replay/replay_int.h"

#define TEP_CPU_SECONDS 10
#define TEP_MEMORY	(256ULL << 20)
#define MAX_OFFSET	4096 /* tracepoint records are at most a page */

static u8 field_kind(const struct tep_format_field *tf)
{
	if (tf->flags & TEP_FIELD_IS_DYNAMIC)
		return tf->flags & TEP_FIELD_IS_RELATIVE ? REC_FIELD_REL_LOC : REC_FIELD_DATA_LOC;
	if (tf->flags & TEP_FIELD_IS_ARRAY)
		return REC_FIELD_CHARS;
	return REC_FIELD_INT;
}

static bool is_text_field(const char *name)
{
	size_t n = strlen(name);

	return n >= 4 && !strcmp(name + n - 4, "comm");
}

static bool field_is_sane(const struct rec_field *f, const char *name)
{
	if (f->offset > MAX_OFFSET || f->size > MAX_OFFSET || !f->size)
		return false;
	if (!is_text_field(name))
		return f->kind == REC_FIELD_INT && is_pow2(f->size) && f->size <= 8;
	return f->kind == REC_FIELD_CHARS ||
	       ((f->kind == REC_FIELD_DATA_LOC || f->kind == REC_FIELD_REL_LOC) && f->size == 4);
}

static void take_fields(const struct tep_event *event, enum rec_event_type type,
			struct rec_format *fmt)
{
	const struct tep_format_field *tf;
	struct rec_field *f;
	const char *name;
	u32 i;

	for (i = 0; (name = rec_field_name(type, i)); i++) {
		f = &fmt->fields[i];
		for (tf = event->format.fields; tf; tf = tf->next)
			if (tf->name && !strcmp(tf->name, name))
				break;
		if (tf && tf->offset >= 0 && tf->size > 0 && tf->offset <= MAX_OFFSET &&
		    tf->size <= MAX_OFFSET) {
			f->offset = tf->offset;
			f->size = tf->size;
			f->kind = field_kind(tf);
			f->is_signed = (tf->flags & TEP_FIELD_IS_SIGNED) != 0;
		}
		if (f->kind && field_is_sane(f, name)) {
			fmt->min_size = max_of(fmt->min_size, (u32)f->offset + f->size);
			continue;
		}
		*f = (struct rec_field){};
		if (!rec_field_is_optional(type, i) && !fmt->missing[0])
			memcpy(fmt->missing, name, min_of(strlen(name), sizeof(fmt->missing) - 1));
	}
}

/*
 * The part with the fields, and a print format that prints nothing: ours are read elsewhere
 * (state.h), and those that name a field which is not there make the library dereference NULL.
 */
static char *fields_only(const struct rec_format_text *text, size_t *ret_n)
{
	static const char key[] = "print fmt:", none[] = "print fmt: \"none\"\n";
	const char *print = memmem(text->p, text->n, key, sizeof(key) - 1);
	size_t n = print ? (size_t)(print - text->p) : text->n;
	char *copy = malloc(n + sizeof(none));

	if (!copy)
		return NULL;
	memcpy(copy, text->p, n);
	memcpy(copy + n, none, sizeof(none));
	*ret_n = n + sizeof(none) - 1;
	return copy;
}

void rec_tep_parse(const struct rec_format_text text[REC_NR_TRACEPOINTS],
		   struct rec_format fmt[REC_NR_TRACEPOINTS])
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event;
	size_t n;
	char *copy;
	u32 t;

	memset(fmt, 0, REC_NR_TRACEPOINTS * sizeof(*fmt));
	if (!tep)
		return;
	tep_set_loglevel(TEP_LOG_NONE);
	for (t = 0; t < REC_NR_TRACEPOINTS; t++) {
		if (!text[t].p)
			continue;
		event = NULL;
		copy = fields_only(&text[t], &n);
		if (copy)
			tep_parse_format(tep, &event, copy, n, "sched");
		if (!event || event->id < 0 || event->id > 0xffff)
			continue;
		fmt[t].known = true;
		fmt[t].id = event->id;
		take_fields(event, (enum rec_event_type)t, &fmt[t]);
	}
	/* No tep_free(): the process ends here, and freeing what hostile text built is one more
	 * risk. */
}

bool rec_format_is_sane(const struct rec_format *fmt, enum rec_event_type type)
{
	const char *name;
	u32 i, need = 0;

	if (!fmt->known)
		return true;
	if (fmt->id > 0xffff || !memchr(fmt->missing, '\0', sizeof(fmt->missing)))
		return false;
	for (i = 0; i < REC_MAX_FIELDS; i++) {
		name = rec_field_name(type, i);
		if (!fmt->fields[i].kind) {
			if (name && !rec_field_is_optional(type, i) && !fmt->missing[0])
				return false;
			continue;
		}
		if (!name || !field_is_sane(&fmt->fields[i], name))
			return false;
		need = max_of(need, (u32)fmt->fields[i].offset + fmt->fields[i].size);
	}
	return fmt->min_size == need;
}

int rec_format_check(struct recording *rec, const struct rec_format *fmt, enum rec_event_type type)
{
	if (!fmt->missing[0])
		return 0;
	return rec_fail(rec, ENODATA,
			"its %s events have no usable field '%s' (renamed in the kernel that "
			"recorded them?); "
			"give the text of `perf script --ns` or `trace-cmd report -t` instead",
			rec_event_name(type), fmt->missing);
}

static int tep_child_run(int in_fd, int out_fd, void *arg)
{
	struct rec_format fmt[REC_NR_TRACEPOINTS];

	rec_tep_parse(arg, fmt);
	return rec_child_write(out_fd, fmt, sizeof(fmt)) ? 0 : 1;
}

int rec_tep_parse_in_child(struct recording *rec, const char *where,
			   const struct rec_format_text text[REC_NR_TRACEPOINTS],
			   struct rec_formats *ret_fmts)
{
	struct rec_child_job job = {
		.run = tep_child_run,
		.arg = (void *)text,
		.in_fd = -1,
		.max_memory = TEP_MEMORY,
	};
	struct strbuf why = STRBUF_INIT;
	struct rec_child child;
	struct rec_formats fmts = {};
	ssize_t n;
	bool sane;
	int err;
	u32 t;

	err = rec_child_start(&child, &job);
	if (err)
		return rec_fail(rec, -err, "starting a process to parse its event formats: %s",
				strerror(-err));
	n = rec_child_read(&child, fmts.f, sizeof(fmts.f), TEP_CPU_SECONDS);
	err = rec_child_reap(&child, &why);
	sane = n == sizeof(fmts.f) && !err;
	for (t = 0; sane && t < REC_NR_TRACEPOINTS; t++)
		sane = rec_format_is_sane(&fmts.f[t], (enum rec_event_type)t);
	if (!sane) {
		err = rec_fail(
			rec, EINVAL,
			"input unreadable: libtraceevent fails on the event formats in %s%s%s%s",
			where, why.len ? " (" : "", strbuf_str(&why), why.len ? ")" : "");
		strbuf_fini(&why);
		return err;
	}
	strbuf_fini(&why);
	if (rec_formats_states(&fmts, text))
		rec_warn(rec,
			 "the format of sched_switch in %s has no table of state letters; "
			 "taking that of Linux 4.14 and later",
			 where);
	rec_formats_index(&fmts);
	*ret_fmts = fmts;
	return 0;
}
