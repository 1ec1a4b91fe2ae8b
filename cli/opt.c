// SPDX-License-Identifier: BSD-2-Clause
/* Parses the command line and prints help, both from the option tables. */
#include "opt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct cli_command *cli_find_command(const char *name)
{
	for (const struct cli_command *const *c = cli_commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

struct parser {
	int argc, next; /* next: index of the word to look at */
	char **argv;
	struct cli_globals *g;
	const struct cli_command *cmd;
	void *opts;
	struct strbuf *err;
};

/*
 * The row of a long (name, len) or short (letter) option in the command's table or the global one.
 */
static const struct cli_option *find_option(const struct parser *p, const char *name, size_t len,
					    char letter, void **ret_base)
{
	const struct cli_option *tables[] = { p->cmd ? p->cmd->options : NULL, cli_global_options };
	void *bases[] = { p->opts, p->g };

	for (int t = 0; t < 2; t++) {
		for (const struct cli_option *o = tables[t]; o && o->name; o++) {
			if (letter ? o->letter != letter :
				     strlen(o->name) != len || strncmp(o->name, name, len))
				continue;
			*ret_base = bases[t];
			return o;
		}
	}
	return NULL;
}

static bool value_optional(const struct cli_option *o)
{
	return o->arg && o->arg[0] == '[';
}

static int set_option(struct parser *p, const struct cli_option *o, const char *value, void *base)
{
	struct strbuf why = STRBUF_INIT;
	int ret = o->parse(value, (char *)base + o->offset, &why);

	if (ret)
		strbuf_printf(p->err, "--%s: '%s' %s", o->name, value ? value : "",
			      strbuf_str(&why));
	strbuf_fini(&why);
	return ret;
}

static int missing_value(struct parser *p, const struct cli_option *o)
{
	strbuf_printf(p->err, "option --%s needs a value: --%s %s", o->name, o->name, o->arg);
	return -EINVAL;
}

static int unknown_option(struct parser *p, const char *word)
{
	strbuf_printf(p->err, "unknown option '%s'", word);
	return -EINVAL;
}

static int parse_long(struct parser *p, const char *word)
{
	const char *name = word + 2, *eq = strchr(name, '='), *value = eq ? eq + 1 : NULL;
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	const struct cli_option *o;
	void *base;

	o = find_option(p, name, len, 0, &base);
	if (!o)
		return unknown_option(p, word);
	if (!o->arg && value) {
		strbuf_printf(p->err, "option --%s takes no value", o->name);
		return -EINVAL;
	}
	if (o->arg && !value && !value_optional(o)) {
		if (p->next >= p->argc)
			return missing_value(p, o);
		value = p->argv[p->next++];
	}
	return set_option(p, o, value ? value : value_optional(o) ? "" : NULL, base);
}

/* -v, -vd 5, -d5 */
static int parse_short(struct parser *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const struct cli_option *o;
		void *base;
		int ret;

		o = find_option(p, NULL, 0, *c, &base);
		if (!o)
			return unknown_option(p, word);
		if (!o->arg) {
			ret = set_option(p, o, NULL, base);
			if (ret)
				return ret;
			continue;
		}
		if (c[1])
			return set_option(p, o, c + 1, base);
		if (p->next >= p->argc)
			return missing_value(p, o);
		return set_option(p, o, p->argv[p->next++], base);
	}
	return 0;
}

static int take_command(struct parser *p, const char *word)
{
	p->cmd = cli_find_command(word);
	if (!p->cmd) {
		strbuf_printf(p->err, "unknown command '%s'", word);
		return -EINVAL;
	}
	p->opts = calloc(1, p->cmd->opts_size ? p->cmd->opts_size : 1);
	if (!p->opts) {
		strbuf_puts(p->err, "out of memory");
		return -EINVAL;
	}
	if (p->cmd->defaults)
		p->cmd->defaults(p->opts);
	return 0;
}

/* A word that is no option: "-" is standard input, and "-1" a number somebody meant as one. */
static bool is_positional(const char *word)
{
	return word[0] != '-' || !word[1] || (word[1] >= '0' && word[1] <= '9');
}

static int check_count(const struct parser *p, int nr)
{
	const struct cli_command *cmd = p->cmd;

	if (p->g->help || p->g->version)
		return 0;
	if (!cmd) {
		strbuf_puts(p->err, "no command given");
		return -EINVAL;
	}
	if (nr < cmd->min_args) {
		strbuf_printf(p->err, "%s needs %s", cmd->name, cmd->args);
		return -EINVAL;
	}
	if (cmd->max_args >= 0 && nr > cmd->max_args) {
		strbuf_printf(p->err, "%s takes at most %d argument%s: %s", cmd->name,
			      cmd->max_args, cmd->max_args == 1 ? "" : "s", cmd->args);
		return -EINVAL;
	}
	return 0;
}

int cli_parse(int argc, char **argv, struct cli_globals *g, const struct cli_command **cmd_ret,
	      void **ret_opts, char **args, int *ret_nr_args, struct strbuf *err)
{
	struct parser p = { .argc = argc, .next = 1, .argv = argv, .g = g, .err = err };
	bool only_args = false;
	int nr = 0, ret = 0;

	while (!ret && p.next < argc) {
		const char *word = argv[p.next++];

		if (!only_args && !strcmp(word, "--"))
			only_args = true;
		else if (!only_args && !is_positional(word))
			ret = word[1] == '-' ? parse_long(&p, word) : parse_short(&p, word);
		else if (!p.cmd)
			ret = take_command(&p, word);
		else {
			args[nr++] = (char *)word;
			only_args = only_args || p.cmd->rest_verbatim;
		}
	}
	if (!ret)
		ret = check_count(&p, nr);
	*cmd_ret = p.cmd;
	*ret_opts = p.opts;
	*ret_nr_args = nr;
	return ret;
}

/* Text in lines of at most 80 columns, all but the first indented. */
static void wrap(struct strbuf *out, const char *text, size_t indent, size_t column)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (column > indent && column + 1 + len > 80) {
			strbuf_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		if (column > indent)
			strbuf_putc(out, ' ');
		column += len + (column > indent);
		strbuf_add(out, text, len);
		text += len;
		text += *text != 0;
	}
	strbuf_putc(out, '\n');
}

#define HELP_INDENT 30

static void help_options(const struct cli_option *table, struct strbuf *out)
{
	for (const struct cli_option *o = table; o && o->name; o++) {
		size_t before = out->len, used;

		if (o->letter)
			strbuf_printf(out, "  -%c, --%s", o->letter, o->name);
		else
			strbuf_printf(out, "      --%s", o->name);
		if (value_optional(o))
			strbuf_puts(out, o->arg);
		else if (o->arg)
			strbuf_printf(out, " %s", o->arg);
		used = out->len - before;
		if (used + 2 > HELP_INDENT) {
			strbuf_printf(out, "\n%*s", HELP_INDENT, "");
		} else {
			strbuf_printf(out, "%*s", (int)(HELP_INDENT - used), "");
		}
		wrap(out, o->help, HELP_INDENT, HELP_INDENT);
	}
}

static void help_main(struct strbuf *out)
{
	strbuf_puts(out, "Usage: inlay [OPTION…] COMMAND [OPTION…] [ARG…]\n"
			 "Runs unmodified Linux BPF objects in user space, and in the kernel "
			 "through the same\n"
			 "command line.\n\nCommands:\n");
	for (const struct cli_command *const *c = cli_commands; *c; c++)
		strbuf_printf(out, "  %-12s %s\n", (*c)->name, (*c)->summary);
	strbuf_puts(out, "\nOptions of every command, before or behind it:\n");
	help_options(cli_global_options, out);
	strbuf_puts(out, "\n`inlay COMMAND --help` says more about one command.\n"
			 "Exit status: 0 done, 1 the job failed, 2 wrong usage.\n");
}

void cli_help(const struct cli_command *cmd, struct strbuf *out)
{
	if (!cmd) {
		help_main(out);
		return;
	}
	strbuf_printf(out, "Usage: inlay %s [OPTION…]%s%s\n%s.\n\n", cmd->name,
		      cmd->args[0] ? " " : "", cmd->args, cmd->summary);
	if (cmd->text)
		strbuf_printf(out, "%s\n\n", cmd->text);
	if (cmd->options) {
		strbuf_puts(out, "Options:\n");
		help_options(cmd->options, out);
		strbuf_putc(out, '\n');
	}
	strbuf_puts(out, "Options of every command:\n");
	help_options(cli_global_options, out);
}

void cli_words(const struct cli_command *cmd, struct strbuf *out)
{
	const struct cli_option *tables[] = { cmd ? cmd->options : NULL, cli_global_options };

	if (!cmd)
		for (const struct cli_command *const *c = cli_commands; *c; c++)
			strbuf_printf(out, "%s\n", (*c)->name);
	for (int t = 0; t < 2; t++) {
		for (const struct cli_option *o = tables[t]; o && o->name; o++) {
			strbuf_printf(out, "--%s\n", o->name);
			if (o->letter)
				strbuf_printf(out, "-%c\n", o->letter);
		}
	}
}
