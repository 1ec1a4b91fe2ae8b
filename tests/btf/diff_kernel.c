// SPDX-License-Identifier: BSD-2-Clause
/* Mutants of BTF blobs: our parser and the running kernel must give the same errno and the same
 * log, to the byte. */
#include <stdio.h>
#include <string.h>

#include "btf/btf.h"
#include "kernel_btf.h"
#include "mutate.h"

static char *kernel_log;
static int differences;

static void save(const char *what, const u8 *data, size_t size)
{
	char name[64];
	FILE *out;

	snprintf(name, sizeof(name), "btf-diff-%d.bin", differences);
	out = fopen(name, "wb");
	if (out) {
		fwrite(data, 1, size, out);
		fclose(out);
	}
	fprintf(stderr, "%s differs; input saved as %s\n", what, name);
}

static const char *tail(const char *text)
{
	size_t n = strlen(text);

	return n > 300 ? text + n - 300 : text;
}

static void compare(const u8 *data, size_t size)
{
	struct strbuf text = STRBUF_INIT;
	struct btf_log log = {.level = 1, .buf = &text};
	struct btf *btf = NULL;
	int ours, theirs;

	if (differences >= 10)
		return;
	theirs = kernel_btf_load(data, size, kernel_log);
	ours = btf_parse(data, size, NULL, &log, &btf);
	if (ours != theirs) {
		differences++;
		save("errno", data, size);
		fprintf(stderr, "kernel %d ...%s\nours %d ...%s\n", theirs, tail(kernel_log), ours,
			tail(strbuf_str(&text)));
	} else if (strcmp(kernel_log, strbuf_str(&text))) {
		differences++;
		save("log", data, size);
		fprintf(stderr, "kernel ...%s\nours ...%s\n", tail(kernel_log),
			tail(strbuf_str(&text)));
	}
	btf_put(btf);
	strbuf_fini(&text);
}

int main(int argc, char **argv)
{
	const char *why = kernel_btf_refuses();
	int status;

	if (why) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	kernel_log = malloc(KERNEL_LOG_SIZE);
	if (!kernel_log)
		return 1;
	status = mutate_main(argc, argv, compare);
	printf("%s 1 - mutated BTF is judged as the kernel judges it\n1..1\n",
	       status || differences ? "not ok" : "ok");
	free(kernel_log);
	return status || differences;
}
