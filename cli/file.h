/* SPDX-License-Identifier: BSD-2-Clause */
/* Small files in one piece. */
#ifndef INLAY_CLI_FILE_H
#define INLAY_CLI_FILE_H

#include "base/types.h"

struct cli_bytes {
	void *data; /* NULL: none */
	size_t size;
};

/*
 * path NULL: nothing; "-": standard input. CLI_OK, or CLI_FAILED with the reason printed. At most
 * 64 MiB.
 */
int cli_file_read(const char *path, struct cli_bytes *ret);
int cli_file_write(const char *path, const void *data, size_t size); /* "-": standard output */
/* Zeroed; size 0: nothing. 0 or -ENOMEM. */
int cli_bytes_alloc(struct cli_bytes *b, size_t size);
void cli_bytes_free(struct cli_bytes *b);

#endif
