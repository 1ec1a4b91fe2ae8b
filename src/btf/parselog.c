// SPDX-License-Identifier: BSD-2-Clause
/* The text of BTF_LOAD's log, line by line as Linux writes it. */
#include "btf/btf_int.h"

#include <string.h>

static void log_v(struct btf_log *log, const char *fmt, va_list args)
{
	struct strbuf *b = log->buf;

	if (log->max && b->len >= log->max)
		return;
	strbuf_vprintf(b, fmt, args);
	if (log->max && b->len > log->max && b->s) {
		b->len = log->max;
		b->s[b->len] = '\0';
	}
}

bool btf_log_wanted(const struct btf_log *log)
{
	return log && log->level && log->buf;
}

bool btf_log_verbose(const struct btf_log *log)
{
	return btf_log_wanted(log) && log->level != BTF_LOG_ERRORS;
}

void btf_log_printf(struct btf_log *log, const char *fmt, ...)
{
	va_list args;

	if (!btf_log_wanted(log))
		return;
	va_start(args, fmt);
	log_v(log, fmt, args);
	va_end(args);
}

void btf_env_log(struct btf_env *env, const char *fmt, ...)
{
	va_list args;

	if (!btf_log_wanted(env->log))
		return;
	va_start(args, fmt);
	log_v(env->log, fmt, args);
	va_end(args);
}

static void log_type_v(struct btf_env *env, const struct btf_type *t, bool details, const char *fmt,
		       va_list args)
{
	u32 kind = btf_kind(t);

	btf_env_log(env, "[%u] %s %s%s", env->log_id, btf_kind_name(kind),
		    btf_name_for_log(env->btf, t->name_off), details ? " " : "");
	if (details && kind < NR_BTF_KINDS && btf_kinds[kind].log_details)
		btf_kinds[kind].log_details(env, t);
	if (fmt) {
		btf_env_log(env, " ");
		log_v(env->log, fmt, args);
	}
	btf_env_log(env, "\n");
}

void btf_env_log_type(struct btf_env *env, const struct btf_type *t, const char *fmt, ...)
{
	va_list args;

	if (!btf_log_wanted(env->log) || (!fmt && !btf_log_verbose(env->log)))
		return;
	va_start(args, fmt);
	log_type_v(env, t, true, fmt, args);
	va_end(args);
}

void btf_env_log_basic(struct btf_env *env, const struct btf_type *t, const char *fmt, ...)
{
	va_list args;

	if (!btf_log_wanted(env->log))
		return;
	va_start(args, fmt);
	log_type_v(env, t, false, fmt, args);
	va_end(args);
}

/*
 * An entry's line follows its type's line. While types are checked one by one that line is there
 * already; later, and when only errors are wanted, it has to be written now.
 */
static void log_owner(struct btf_env *env, const struct btf_type *t)
{
	va_list none;

	if (env->phase == BTF_PHASE_META && btf_log_verbose(env->log))
		return;
	memset(&none, 0, sizeof(none));
	log_type_v(env, t, true, NULL, none);
}

static void log_reason_v(struct btf_env *env, const char *fmt, va_list args)
{
	if (fmt) {
		btf_env_log(env, " ");
		log_v(env->log, fmt, args);
	}
	btf_env_log(env, "\n");
}

void btf_env_log_member(struct btf_env *env, const struct btf_type *s, const struct btf_member *m,
			const char *fmt, ...)
{
	va_list args;

	if (!btf_log_wanted(env->log) || (!fmt && !btf_log_verbose(env->log)))
		return;
	log_owner(env, s);
	btf_env_log(env, "\t%s type_id=%u", btf_name_for_log(env->btf, m->name_off), m->type);
	if (btf_kflag(s))
		btf_env_log(env, " bitfield_size=%u", BTF_MEMBER_BITFIELD_SIZE(m->offset));
	btf_env_log(env, " bits_offset=%u", btf_member_bit_offset(s, m));
	va_start(args, fmt);
	log_reason_v(env, fmt, args);
	va_end(args);
}

void btf_env_log_vsi(struct btf_env *env, const struct btf_type *s, const struct btf_var_secinfo *v,
		     const char *fmt, ...)
{
	va_list args;

	if (!btf_log_wanted(env->log) || (!fmt && !btf_log_verbose(env->log)))
		return;
	if (env->phase != BTF_PHASE_META || !btf_log_verbose(env->log))
		log_owner(env, s);
	btf_env_log(env, "\t type_id=%u offset=%u size=%u", v->type, v->offset, v->size);
	va_start(args, fmt);
	log_reason_v(env, fmt, args);
	va_end(args);
}
