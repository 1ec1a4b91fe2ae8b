// SPDX-License-Identifier: BSD-2-Clause
/* One line on standard error, and the exit status that goes with it. */
#include <stdarg.h>
#include <stdio.h>

#include "cli.h"

static void say(const char *fmt, va_list args)
{
	fflush(stdout);
	fputs("inlay: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

int cli_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	return CLI_FAILED;
}

int cli_usage(const struct cli_command *cmd, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	if (cmd)
		fprintf(stderr, "Try 'inlay %s --help'.\n", cmd->name);
	return CLI_USAGE;
}
