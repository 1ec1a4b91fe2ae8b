/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line as data: a row an option, a row a command. Parsing, `--help` and completion read
 * the same rows, and the tests compare the man pages with them.
 */
#ifndef INLAY_CLI_OPT_H
#define INLAY_CLI_OPT_H

#include "base/strbuf.h"
#include "base/types.h"

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1, /* the job failed */
	CLI_USAGE = 2,
};

/* Reads value (NULL for a flag) into dst; 0, or -EINVAL with why in err ("…, e.g. 5ms"). */
typedef int (*cli_parse_fn)(const char *value, void *dst, struct strbuf *err);

struct cli_option {
	char letter;	  /* 0: none */
	const char *name; /* without the dashes */
	const char *arg;  /* what help calls the value; NULL: a flag; in brackets: may be left out
			     (--name=VALUE) */
	cli_parse_fn parse;
	size_t offset; /* of what parse gets, in the options the table belongs to */
	const char *help;
};

struct cli_globals {
	const char *engine; /* "user", "kernel"; NULL: the command's default */
	const char **btf;   /* --btf, in order; nr_btf of them */
	u32 nr_btf;
	u32 inline_off;		  /* --no-inline: enum inline_kind */
	const char *storage_impl; /* NULL: default */
	u64 seed;
	bool interp, verbose, help, version;
};

struct cli_command {
	const char *name;
	const char *args;		  /* usage text behind the options */
	const char *summary;		  /* one line */
	const char *text;		  /* paragraphs for --help */
	const struct cli_option *options; /* ends with a row without name; NULL: none */
	size_t opts_size;
	void (*defaults)(void *opts); /* of a zeroed struct; may be NULL */
	int min_args, max_args;	      /* positional ones; max -1: any number */
	/* enum cli_exit, or for commands that run another, its status */
	int (*run)(const struct cli_globals *g, void *opts, int argc, char **argv);
	bool rest_verbatim; /* everything behind the first positional argument is one too (exec) */
};

extern const struct cli_option cli_global_options[];
/* All commands, ends with NULL. */
extern const struct cli_command *const cli_commands[];

const struct cli_command *cli_find_command(const char *name);

/*
 * Sorts argv[1..] into global options, the command's options and positional arguments (moved to
 * args, which has room for argc). cmd_ret: the command found; NULL with --help or --version alone.
 * 0, or -EINVAL with the reason in err. opts: zeroed memory the caller frees, of cmd->opts_size
 * bytes, filled.
 */
int cli_parse(int argc, char **argv, struct cli_globals *g, const struct cli_command **cmd_ret,
	      void **ret_opts, char **args, int *ret_nr_args, struct strbuf *err);

void cli_help(const struct cli_command *cmd, struct strbuf *out); /* NULL: of inlay itself */
/* Every option of a command, or every command (NULL), one a line: for completion. */
void cli_words(const struct cli_command *cmd, struct strbuf *out);

/* ---- values ---- */

int cli_set_flag(const char *value, void *dst, struct strbuf *err); /* bool */
int cli_set_str(const char *value, void *dst,
		struct strbuf *err); /* const char *; the value lives on */
int cli_parse_u32(const char *value, void *dst, struct strbuf *err); /* u32, 0.. */
int cli_parse_id(const char *value, void *dst,
		 struct strbuf *err); /* u32, 1..S32_MAX: a task or process */
int cli_parse_u64(const char *value, void *dst, struct strbuf *err); /* u64, decimal or 0x */
int cli_parse_time_us(const char *value, void *dst,
		      struct strbuf *err); /* u64 ns; bare number: microseconds */
int cli_parse_time_s(const char *value, void *dst,
		     struct strbuf *err); /* u64 ns > 0; bare number: seconds */

#endif
