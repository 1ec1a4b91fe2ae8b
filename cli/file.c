// SPDX-License-Identifier: BSD-2-Clause
#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define MAX_FILE (64u << 20)

int cli_bytes_alloc(struct cli_bytes *b, size_t size)
{
	b->data = size ? calloc(1, size) : NULL;
	b->size = size;
	return size && !b->data ? -ENOMEM : 0;
}

void cli_bytes_free(struct cli_bytes *b)
{
	free(b->data);
	b->data = NULL;
	b->size = 0;
}

static int read_stream(FILE *f, struct cli_bytes *b)
{
	size_t cap = 0, n;

	do {
		if (b->size == cap) {
			void *grown;

			cap = cap ? cap * 2 : 4096;
			grown = cap > MAX_FILE ? NULL : realloc(b->data, cap);
			if (!grown)
				return cap > MAX_FILE ? -EFBIG : -ENOMEM;
			b->data = grown;
		}
		n = fread((char *)b->data + b->size, 1, cap - b->size, f);
		b->size += n;
	} while (n);
	return ferror(f) ? -EIO : 0;
}

int cli_file_read(const char *path, struct cli_bytes *ret)
{
	FILE *f;
	int rc;

	if (!path)
		return CLI_OK;
	f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	rc = f ? read_stream(f, ret) : -errno;
	if (f && f != stdin)
		fclose(f);
	return rc ? cli_fail("%s: %s", path, cli_strerror(rc)) : CLI_OK;
}

int cli_file_write(const char *path, const void *data, size_t size)
{
	FILE *f;
	int rc = 0;

	if (!path)
		return CLI_OK;
	f = strcmp(path, "-") ? fopen(path, "we") : stdout;
	if (!f || fwrite(data, 1, size, f) != size)
		rc = errno ? errno : EIO;
	if (f && f != stdout && fclose(f) && !rc)
		rc = errno;
	return rc ? cli_fail("%s: %s", path, cli_strerror(rc)) : CLI_OK;
}
