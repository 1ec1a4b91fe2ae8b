// SPDX-License-Identifier: BSD-2-Clause
/* `elfcheck_tool FILE...` prints what btf_elfcheck() says of each: "ok" or its errno and reason,
 * one line a file. */
#include <stdio.h>
#include <stdlib.h>

#include "btf/elfcheck.h"

static int check_file(const char *path)
{
	struct strbuf reason = STRBUF_INIT;
	FILE *in = fopen(path, "rb");
	size_t size;
	u8 *data;
	int err;

	if (!in || fseek(in, 0, SEEK_END))
		return 1;
	size = ftell(in);
	rewind(in);
	/* Exactly as large as the file, so that a sanitizer sees a step outside. */
	data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, in) != size)
		return 1;
	fclose(in);
	err = btf_elfcheck(data, size, &reason);
	if (err)
		printf("%d %s\n", err, strbuf_str(&reason));
	else
		printf("ok\n");
	free(data);
	strbuf_fini(&reason);
	return 0;
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (check_file(argv[i]))
			return 1;
	return 0;
}
