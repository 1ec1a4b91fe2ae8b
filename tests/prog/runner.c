// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs the cases of .bpft files (README.md) in every configuration: interpreter; compiled, with inlining and without; and
 * for those that use local storage, each variant of it. Each must do what the case says, and all the same.
 */
#include <linux/bpf.h>
#include <string.h>

#include "case.h"
#include "maps/local_storage.h"
#include "tests/tap.h"

static u32 nr_cases, nr_runs;

static bool check(const struct bpft_case *c, const struct case_config *config, const struct case_result *r,
		  const struct case_result *first)
{
	const char *what = NULL;

	if (r->why[0])
		what = r->why;
	else if (c->log && !r->err)
		what = "accepted";
	else if (c->log && !strstr(strbuf_str(&r->log), c->log))
		what = strbuf_str(&r->log);
	else if (!c->log && r->err)
		what = strbuf_str(&r->log);
	else if (c->has_r0 && r->r0 != c->r0)
		what = "another r0";
	else if (r->wrong.len)
		what = "another map";
	else if (first && (first->r0 != r->r0 || strcmp(strbuf_str(&first->state), strbuf_str(&r->state))))
		what = "not what the first configuration did";
	if (!what)
		return true;
	printf("# %s, %s, %s: %.400s\n", config->interp ? "interpreter" : "compiled",
	       config->no_inline ? "calls" : "inlined", config->storage ? config->storage : "default storage", what);
	printf("# r0 = 0x%llx\n%s%s", (unsigned long long)r->r0, strbuf_str(&r->wrong), "");
	return false;
}

static void run_all(struct bpft_case *c)
{
	struct case_result first, r;
	bool uses_storage = false, good;
	u32 i, variant;

	for (i = 0; i < c->nr_maps; i++)
		uses_storage |= c->maps[i].type == BPF_MAP_TYPE_TASK_STORAGE;
	good = c->nr_progs && (c->has_r0 || c->log || c->nr_want);
	memset(&first, 0, sizeof(first));
	for (variant = 0; good; variant++) {
		const struct storage_ops *impl = map_storage_impl_at(variant);
		bool done = uses_storage ? !impl : variant > 0;

		if (done)
			break;
		for (i = 0; i < 4; i++) {
			struct case_config config;

			memset(&config, 0, sizeof(config)); /* compared as bytes */
			config.interp = i & 1;
			config.no_inline = i & 2;
			config.storage = uses_storage ? impl->name : NULL;
			case_run(c, &config, &r);
			nr_runs++;
			good &= check(c, &config, &r, variant || i ? &first : NULL);
			if (variant || i)
				case_result_fini(&r);
			else
				first = r;
		}
	}
	case_result_fini(&first);
	nr_cases++;
	ok(good, "%s: %s", c->file, c->name);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!case_read_file(argv[i], run_all))
			ok(false, "%s can be read", argv[i]);
	case_engines_fini();
	printf("# %u cases, %u runs\n", nr_cases, nr_runs);
	return tap_done();
}
