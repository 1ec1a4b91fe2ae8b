/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON text. */
#ifndef INLAY_CLI_JSON_H
#define INLAY_CLI_JSON_H

#include <stdio.h>

/*
 * A string with its quotes. Bytes that are no UTF-8 (a task may have any name) become lone
 * surrogates \udc80 … \udcff, which is how Python's "surrogateescape" reads such bytes, so no name
 * is confused with another.
 */
void cli_json_str(FILE *f, const char *s);

#endif
