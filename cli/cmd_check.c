// SPDX-License-Identifier: BSD-2-Clause
/*
 * `inlay check`: a verdict on every program of every object, as a table; for a refusal the reason
 * beside its source line. Several --btf make several columns, one an engine with those types.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "cli.h"
#include "json.h"
#include "object.h"

#define VMLINUX "/sys/kernel/btf/vmlinux"

struct check_opts {
	const char *csv; /* NULL: no; "": veristat's columns; "full" */
	bool json;
};

struct types {
	const char *label;
	struct cli_engine *engine;
};

struct check {
	const struct check_opts *opts;
	struct types *types;
	u32 nr_types;
	u32 accepted, refused, unreadable;
	const char *last_path; /* of the table */
};

static int set_csv(const char *value, void *dst, struct strbuf *err)
{
	if (*value && strcmp(value, "full")) {
		strbuf_puts(err, "is none of its forms: --csv or --csv=full");
		return -EINVAL;
	}
	return cli_set_str(value, dst, err);
}

static const struct cli_option check_options[] = {
	{ 0, "csv", "[=full]", set_csv, offsetof(struct check_opts, csv),
	  "comma-separated values: file_name,prog_name,verdict,duration,total_insns,total_states; "
	  "full: file,prog,type,verdict,errno,insns,states,reason" },
	{ 0, "json", NULL, cli_set_flag, offsetof(struct check_opts, json),
	  "print JSON, an object a program" },
	{},
};

static void csv_quoted(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"')
			putchar('"');
		putchar(*s == '\n' ? ' ' : *s);
	}
	putchar('"');
}

struct subject {
	const struct cli_object *obj;
	const char *prog, *type;
};

static void print_csv(const struct check *c, const struct subject *s, const struct cli_verdict *v)
{
	const char *verdict = v->err ? "failure" : "success";

	if (*c->opts->csv) {
		printf("%s,%s,%s,%s,%d,%u,%u,", s->obj->name, s->prog, s->type, verdict, -v->err,
		       v->insns, v->states);
		csv_quoted(v->err ? strbuf_str(&v->reason) : "");
		putchar('\n');
		return;
	}
	printf("%s,%s,%s,%llu,%u,%u\n", s->obj->name, s->prog, verdict,
	       (unsigned long long)v->time_us, v->insns, v->states);
}

static void print_json(const struct types *t, const struct subject *s, const struct cli_verdict *v)
{
	printf("{\"file\":");
	cli_json_str(stdout, s->obj->path);
	printf(",\"prog\":");
	cli_json_str(stdout, s->prog);
	printf(",\"type\":\"%s\",\"types\":", s->type);
	cli_json_str(stdout, t->label);
	printf(",\"verdict\":\"%s\",\"errno\":%d,\"insns\":%u,\"states\":%u,\"duration_us\":%llu",
	       v->err ? "failure" : "success", -v->err, v->insns, v->states,
	       (unsigned long long)v->time_us);
	if (v->err) {
		printf(",\"reason\":");
		cli_json_str(stdout, strbuf_str(&v->reason));
		printf(",\"source\":");
		cli_json_str(stdout, strbuf_str(&v->source));
	}
	printf("}\n");
}

static void table_head(struct check *c)
{
	for (u32 i = 0; i < c->nr_types; i++) {
		printf("types");
		if (c->nr_types > 1)
			printf(" %u", i + 1);
		printf(": %s (%s engine)\n", c->types[i].label, c->types[i].engine->name);
	}
	printf("\n%-32s %-16s", "PROGRAM", "TYPE");
	for (u32 i = 0; i < c->nr_types; i++)
		printf(" %-8s %8s %7s", "VERDICT", "INSNS", "STATES");
	putchar('\n');
}

static void print_table(struct check *c, const struct subject *s, const struct cli_verdict *v)
{
	if (c->last_path != s->obj->path) {
		printf("%s\n", s->obj->path);
		c->last_path = s->obj->path;
	}
	printf("  %-30s %-16s", s->prog, s->type);
	for (u32 i = 0; i < c->nr_types; i++)
		printf(" %-8s %8u %7u", v[i].err ? "refused" : "accepted", v[i].insns, v[i].states);
	putchar('\n');
	for (u32 i = 0; i < c->nr_types; i++) {
		if (!v[i].err)
			continue;
		if (c->nr_types > 1)
			printf("    types %u:\n", i + 1);
		if (v[i].source.len)
			printf("    > %s\n", strbuf_str(&v[i].source));
		printf("    %s (%s)\n",
		       v[i].reason.len ? strbuf_str(&v[i].reason) : "no reason given",
		       cli_strerror(v[i].err));
	}
}

static int check_program(struct check *c, const struct cli_object *obj, size_t index,
			 const char *name, const char *type)
{
	struct cli_verdict *v = calloc(c->nr_types, sizeof(*v));
	struct subject s = { obj, name, type };
	int rc = v ? 0 : -ENOMEM;

	for (u32 i = 0; i < c->nr_types && !rc; i++) {
		cli_engine_enter(c->types[i].engine);
		rc = cli_object_judge(obj, c->types[i].engine, index, &v[i], NULL, NULL);
		cli_engine_leave(c->types[i].engine);
		if (rc)
			break;
		c->accepted += !v[i].err;
		c->refused += v[i].err != 0;
		if (c->opts->csv)
			print_csv(c, &s, &v[i]);
		else if (c->opts->json)
			print_json(&c->types[i], &s, &v[i]);
	}
	if (!rc && !c->opts->csv && !c->opts->json)
		print_table(c, &s, v);
	for (u32 i = 0; v && i < c->nr_types; i++)
		cli_verdict_fini(&v[i]);
	free(v);
	return rc;
}

static int check_object(struct check *c, const char *path)
{
	struct strbuf err = STRBUF_INIT;
	struct bpf_object *open = NULL;
	const char *name, *type;
	struct cli_object obj;
	int rc = cli_object_read(path, &obj, &err);

	if (!rc) {
		cli_engine_enter(c->types[0].engine);
		rc = cli_object_open(&obj, c->types[0].engine, &open, &err);
		cli_engine_leave(c->types[0].engine);
	}
	if (rc) {
		c->unreadable++;
		if (c->opts->csv && *c->opts->csv)
			printf("%s,,,skip,%d,0,0,\"cannot open\"\n", obj.name, -rc);
		cli_fail("%s", strbuf_str(&err));
		rc = 0;
	}
	for (size_t i = 0; !rc && open && cli_object_program(open, i, &name, &type); i++)
		rc = check_program(c, &obj, i, name, type);
	if (open) {
		cli_engine_enter(c->types[0].engine);
		bpf_object__close(open);
		cli_engine_leave(c->types[0].engine);
	}
	cli_object_free(&obj);
	strbuf_fini(&err);
	return rc;
}

/* Types: those given; else the running kernel's; else the model. */
static int make_engines(struct check *c, const struct cli_globals *g)
{
	bool kernel = g->engine && !strcmp(g->engine, "kernel");
	u32 n = g->nr_btf ? g->nr_btf : 1;

	c->types = calloc(n, sizeof(*c->types));
	if (!c->types)
		return cli_fail("out of memory");
	for (u32 i = 0; i < n; i++) {
		struct cli_engine_opts eo = {};
		int status;

		if (g->nr_btf)
			eo.btf = g->btf[i];
		else if (!kernel && !access(VMLINUX, R_OK))
			eo.btf = VMLINUX;
		status = cli_engine_create(g, "user", &eo, &c->types[i].engine);
		if (status)
			return status;
		c->types[i].label = g->nr_btf	     ? g->btf[i] :
				    kernel || eo.btf ? "the running kernel's" :
						       "inlay's model of a kernel (no " VMLINUX
						       " here)";
		c->nr_types++;
	}
	return CLI_OK;
}

static void print_end(const struct check *c)
{
	if (c->opts->csv || c->opts->json)
		return;
	printf("\n%u accepted, %u refused", c->accepted, c->refused);
	if (c->unreadable)
		printf(", %u object%s could not be read", c->unreadable,
		       c->unreadable == 1 ? "" : "s");
	putchar('\n');
}

static int run(const struct cli_globals *g, void *opts, int argc, char **argv)
{
	struct check c = { .opts = opts };
	int status = make_engines(&c, g), rc = 0;

	if (!status && c.opts->csv)
		puts(*c.opts->csv ?
			     "file,prog,type,verdict,errno,insns,states,reason" :
			     "file_name,prog_name,verdict,duration,total_insns,total_states");
	else if (!status && !c.opts->json)
		table_head(&c);
	for (int i = 0; i < argc && !status && !rc; i++)
		rc = check_object(&c, argv[i]);
	if (!status) {
		print_end(&c);
		status = rc			   ? cli_fail("%s", cli_strerror(rc)) :
			 c.refused || c.unreadable ? CLI_FAILED :
						     CLI_OK;
	}
	for (u32 i = 0; i < c.nr_types; i++)
		cli_engine_destroy(c.types[i].engine);
	free(c.types);
	return status;
}

const struct cli_command cmd_check = {
	.name = "check",
	.args = "OBJ…",
	.summary = "Verify the programs of BPF objects by the kernel's rules",
	.text = "Prints a verdict for each program, and for a refusal the reason beside\n"
		"its source line. Types come from --btf (may be given several times: a\n"
		"column each), else from the running kernel, else from inlay's own\n"
		"model; the first lines say which. Exit status 0: all programs are\n"
		"accepted.",
	.options = check_options,
	.opts_size = sizeof(struct check_opts),
	.min_args = 1,
	.max_args = -1,
	.run = run,
};
