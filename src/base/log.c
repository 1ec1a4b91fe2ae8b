// SPDX-License-Identifier: BSD-2-Clause
// Formats one line and hands it to the caller's sink.
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void log_to(const struct log_sink *sink, enum log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	if (!sink || !sink->write)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	sink->write(sink->ctx, level, line);
}
