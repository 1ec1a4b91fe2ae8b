// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory that runs out: each operation is tried with its first allocation refused, then its second,
 * and so on until none is. It must fail with ENOMEM each time, and leave nothing behind (the
 * sanitizer build tells).
 *
 *   test_btf_alloc FILE.btf OBJECT
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "btf/btf.h"
#include "btf/dump_c.h"
#include "btf/elfcheck.h"
#include "btf/fields.h"

/* The linker sends the library's calls here (--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static long fail_at = -1; /* allocations until one fails; -1: none does */

static bool refuse(void)
{
	return fail_at >= 0 && fail_at-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuse() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return refuse() ? NULL : __real_realloc(p, size);
}

struct input {
	u8 *data;
	size_t size;
	struct btf *btf;
};

static int try_parse(struct input *in)
{
	struct btf *btf = NULL;
	int err = btf_parse(in->data, in->size, NULL, NULL, &btf);

	btf_put(btf);
	return err;
}

static int try_dump(struct input *in)
{
	struct strbuf text = STRBUF_INIT;
	int err = btf_dump_c(in->btf, &text);

	strbuf_fini(&text);
	return err;
}

static int try_fields(struct input *in)
{
	struct btf_fields f;
	s32 id = btf_find_by_name_kind(in->btf, "tagged", BTF_KIND_STRUCT);

	return btf_parse_fields(in->btf, id, BTF_FIELD_SPIN_LOCK, 1 << 20, &f);
}

static int try_elfcheck(struct input *in)
{
	return btf_elfcheck(in->data, in->size, NULL);
}

static void try_all(struct input *in, int (*attempt)(struct input *), const char *name)
{
	long n;
	int err, others = 0;

	for (n = 0; n < 100000; n++) {
		fail_at = n;
		err = attempt(in);
		/* Not reached any more: the whole operation had what it needed. */
		if (fail_at >= 0)
			break;
		others += err != -ENOMEM;
	}
	fail_at = -1;
	ok(n > 0 && !err && !others, "%s: each of %ld allocations may fail", name, n);
}

static struct input read_input(const char *path)
{
	struct input in = {.data = malloc(1 << 20)};
	FILE *f = fopen(path, "rb");

	if (f && in.data)
		in.size = fread(in.data, 1, 1 << 20, f);
	if (f)
		fclose(f);
	return in;
}

int main(int argc, char **argv)
{
	struct input types, object;

	if (argc != 3)
		return 2;
	types = read_input(argv[1]);
	object = read_input(argv[2]);
	is_int(btf_parse(types.data, types.size, NULL, NULL, &types.btf), 0,
	       "the types are parsed");
	if (types.btf) {
		try_all(&types, try_parse, "parse");
		try_all(&types, try_dump, "dump as C");
		try_all(&types, try_fields, "search for special fields");
		try_all(&object, try_elfcheck, "check of an object");
	}
	btf_put(types.btf);
	free(types.data);
	free(object.data);
	return tap_done();
}
