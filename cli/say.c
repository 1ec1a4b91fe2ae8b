// SPDX-License-Identifier: BSD-2-Clause
/* One line on standard error, and the exit status that goes with it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <string.h>

#include <bpf/libbpf.h>

#include "base/strbuf.h"
#include "base/types.h"
#include "cli.h"
#include "progress.h"

/* A failure is one line, whatever it has to say. */
static void say(const struct cli_command *see, const char *fmt, va_list args)
{
	fflush(stdout);
	fputs("inlay: ", stderr);
	vfprintf(stderr, fmt, args);
	if (see)
		fprintf(stderr, "; see 'inlay %s --help'", see->name);
	fputc('\n', stderr);
}

int cli_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(NULL, fmt, args);
	va_end(args);
	return CLI_FAILED;
}

int cli_usage(const struct cli_command *cmd, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(cmd, fmt, args);
	va_end(args);
	return CLI_USAGE;
}

static struct strbuf held; /* warnings of an input that is not open yet */
static bool holding = true;

static void warn(void *ctx, enum log_level level, const char *text)
{
	if (level > LOG_WARN)
		return;
	if (holding) {
		strbuf_printf(&held, "inlay: %s\n", text);
		return;
	}
	cli_progress_clear();
	fprintf(stderr, "inlay: %s\n", text);
}

const struct log_sink cli_warnings = { .write = warn };

void cli_warnings_release(void)
{
	holding = false;
	cli_progress_clear();
	fputs(strbuf_str(&held), stderr);
	strbuf_fini(&held);
}

const char *cli_strerror(int err)
{
	static _Thread_local char text[128];
	int code = err < 0 ? -err : err;

	if (code == LINUX_ENOTSUPP)
		code = EOPNOTSUPP;
	if (code < __LIBBPF_ERRNO__START)
		return strerror(code);
	libbpf_strerror(code, text, sizeof(text));
	return text;
}
