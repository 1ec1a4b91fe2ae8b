// SPDX-License-Identifier: BSD-2-Clause
/* inlay: finds the command, and ends with its status. */
#include "opt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "maps/local_storage.h"
#include "object/gen.h"

static int add_btf(const char *value, void *dst, struct strbuf *err)
{
	struct cli_globals *g = dst;
	const char **grown = realloc(g->btf, (g->nr_btf + 1) * sizeof(*grown));

	if (!grown) {
		strbuf_puts(err, "out of memory");
		return -EINVAL;
	}
	grown[g->nr_btf++] = value;
	g->btf = grown;
	return 0;
}

static int set_engine(const char *value, void *dst, struct strbuf *err)
{
	if (strcmp(value, "user") && strcmp(value, "kernel")) {
		strbuf_puts(err, "is no engine: user or kernel");
		return -EINVAL;
	}
	return cli_set_str(value, dst, err);
}

/* "storage,map"; nothing: all. */
static int set_no_inline(const char *value, void *dst, struct strbuf *err)
{
	static const struct {
		const char *name;
		u32 kind;
	} kinds[] = {
		{ "storage", INLINE_STORAGE }, { "irq", INLINE_IRQ },	{ "map", INLINE_MAP },
		{ "helper", INLINE_HELPER },   { "loop", INLINE_LOOP },
	};
	u32 *off = dst, i;

	if (!*value)
		*off = INLINE_ALL;
	while (*value) {
		size_t len = strcspn(value, ",");

		for (i = 0; i < ARRAY_SIZE(kinds); i++)
			if (strlen(kinds[i].name) == len && !strncmp(kinds[i].name, value, len))
				break;
		if (i == ARRAY_SIZE(kinds) || (value[len] && !value[len + 1])) {
			strbuf_puts(err, "is no list of what is inlined: storage, irq, map, helper, loop");
			return -EINVAL;
		}
		*off |= kinds[i].kind;
		value += len;
		value += *value == ',';
	}
	return 0;
}

static int set_storage_impl(const char *value, void *dst, struct strbuf *err)
{
	const struct storage_ops *impl;
	u32 i;

	if (!map_storage_impl_find(value)) {
		strbuf_puts(err, "is none of");
		for (i = 0; (impl = map_storage_impl_at(i)); i++)
			strbuf_printf(err, "%s %s", i ? "," : "", impl->name);
		return -EINVAL;
	}
	return cli_set_str(value, dst, err);
}

#define G(field) offsetof(struct cli_globals, field)

const struct cli_option cli_global_options[] = {
	{ 0, "engine", "ENGINE", set_engine, G(engine),
	  "user: inlay itself, no privilege needed (the default, but for a live runqslower); "
	  "kernel: bpf(2) of the running kernel" },
	{ 0, "btf", "FILE", add_btf, 0,
	  "types of the kernel to run or judge for, raw or in an ELF file" },
	{ 0, "no-inline", "[=WHAT]", set_no_inline, G(inline_off),
	  "call what would be inlined; WHAT: a list of storage, irq, map, helper, loop" },
	{ 0, "storage-impl", "NAME", set_storage_impl, G(storage_impl),
	  "how the user engine keeps local storage: jit (the default), slots, linux-inlined, "
	  "linux-slowpath, linux-outlined" },
	{ 0, "interp", NULL, cli_set_flag, G(interp),
	  "interpret, do not compile; nothing is inlined then" },
	{ 0, "seed", "N", cli_parse_u64, G(seed), "of the user engine's random numbers" },
	{ 'v', "verbose", NULL, cli_set_flag, G(verbose),
	  "say more about what is done, on standard error" },
	{ 'h', "help", NULL, cli_set_flag, G(help), "print this and exit" },
	{ 'V', "version", NULL, cli_set_flag, G(version), "print the version and exit" },
	{},
};

const struct cli_command *const cli_commands[] = {
	&cmd_runqslower, &cmd_run, &cmd_check, &cmd_dump, &cmd_bench, &cmd_conformance, NULL,
};

/* `inlay --words [COMMAND]`, for shell completion; no option, so that no table has to name it. */
static int print_words(int argc, char **argv)
{
	struct strbuf out = STRBUF_INIT;
	const struct cli_command *cmd = argc > 2 ? cli_find_command(argv[2]) : NULL;

	cli_words(cmd, &out);
	fputs(strbuf_str(&out), stdout);
	strbuf_fini(&out);
	return CLI_OK;
}

static int usage(const struct cli_command *cmd, const struct strbuf *err)
{
	fprintf(stderr, "inlay: %s; see 'inlay%s%s --help'\n", strbuf_str(err), cmd ? " " : "",
		cmd ? cmd->name : "");
	return CLI_USAGE;
}

/*
 * Data that did not reach its destination is a failed job; a reader that has seen enough and went
 * away is not.
 */
static int finish(int status)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (poll(&out, 1, 0) > 0 && out.revents & POLLERR)
		return status;
	fprintf(stderr, "inlay: standard output could not be written\n");
	return status ? status : CLI_FAILED;
}

int main(int argc, char **argv)
{
	struct strbuf err = STRBUF_INIT, out = STRBUF_INIT;
	const struct cli_command *cmd = NULL;
	struct cli_globals g = {};
	void *opts = NULL;
	int nr = 0, status;
	char **args;

	signal(SIGPIPE, SIG_IGN);
	cli_clean_output();
	if (argc > 1 && !strcmp(argv[1], "--words"))
		return print_words(argc, argv);
	args = calloc(argc + 1, sizeof(*args));
	if (!args)
		return CLI_FAILED;
	if (cli_parse(argc, argv, &g, &cmd, &opts, args, &nr, &err)) {
		status = usage(cmd, &err);
	} else if (g.help) {
		cli_help(cmd, &out);
		fputs(strbuf_str(&out), stdout);
		status = CLI_OK;
	} else if (g.version) {
		printf("inlay %s\n", INLAY_VERSION);
		status = CLI_OK;
	} else {
		status = cmd->run(&g, opts, nr, args);
	}
	status = finish(status);
	strbuf_fini(&err);
	strbuf_fini(&out);
	free(opts);
	free(args);
	free(g.btf);
	return status;
}
