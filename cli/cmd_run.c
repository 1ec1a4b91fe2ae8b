// SPDX-License-Identifier: BSD-2-Clause
/*
 * `inlay run`: loads an object and runs it: a program once or many times on input from files, or
 * all of them on the events of a recording. Then says what they returned, how long they took, and
 * what their maps hold.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cli.h"
#include "file.h"
#include "inlining.h"
#include "json.h"
#include "maps.h"
#include "object.h"
#include "run_repeat.h"
#include "object/instance.h"
#include "progress.h"
#include "replay/recording.h"
#include "replay/replay.h"

struct run_opts {
	const char *input, *data_in, *data_out, *ctx_in, *ctx_out;
	u32 repeat;
	bool maps, json, show_inlining;
};

#define O(field) offsetof(struct run_opts, field)

static int set_repeat(const char *value, void *dst, struct strbuf *err)
{
	return cli_parse_id(value, dst, err);
}

static const struct cli_option run_options[] = {
	{ 'i', "input", "FILE", cli_set_str, O(input),
	  "replay a recording: programs on tracepoints that it holds run once an event" },
	{ 0, "repeat", "N", set_repeat, O(repeat), "run N times" },
	{ 0, "maps", NULL, cli_set_flag, O(maps),
	  "print the maps at the end, keys and values by their types" },
	{ 0, "data-in", "FILE", cli_set_str, O(data_in), "packet or arguments to run with" },
	{ 0, "data-out", "FILE", cli_set_str, O(data_out),
	  "where to write the packet as the program left it" },
	{ 0, "ctx-in", "FILE", cli_set_str, O(ctx_in), "context to run with" },
	{ 0, "ctx-out", "FILE", cli_set_str, O(ctx_out),
	  "where to write the context as the program left it" },
	{ 0, "show-inlining", NULL, cli_set_flag, O(show_inlining),
	  "print first what became of each call of a helper: inlined, called directly, or why not" },
	{ 0, "json", NULL, cli_set_flag, O(json), "print JSON, an object a program and a map" },
	{},
};

struct run {
	const struct run_opts *opts;
	const char *prog_name; /* NULL: not named */
	struct cli_object obj;
	struct cli_engine *engine;
	struct bpf_object *open;
	struct bpf_link **links;
	u32 nr_links;
	int stats_fd;
};

/* As trace_pipe shows it. */
static void on_printk(void *ctx, u64 ts_ns, u32 cpu, s32 tid, const char *comm, const char *text)
{
	const struct run_opts *o = ctx;

	cli_progress_clear();
	if (!o->json) {
		printf("%16s-%-7d [%03u] %llu.%06llu: %s\n", comm, tid, cpu,
		       (unsigned long long)(ts_ns / 1000000000),
		       (unsigned long long)(ts_ns / 1000 % 1000000), text);
		return;
	}
	printf("{\"printk\":");
	cli_json_str(stdout, text);
	printf(",\"ts_ns\":%llu,\"cpu\":%u,\"tid\":%d,\"comm\":", (unsigned long long)ts_ns, cpu,
	       tid);
	cli_json_str(stdout, comm);
	puts("}");
}

/* ---- loading ---- */

/* Which programs the engine refuses, each with its reason; else what libbpf says. */
static int explain_load(struct run *r, int err)
{
	struct strbuf why = STRBUF_INIT;
	const char *name, *type;
	int refused = 0;

	cli_object_reason(&why);
	if (strstr(strbuf_str(&why), "missing BPF prog type")) { /* a section that says no type */
		cli_fail("%s: %s", r->obj.path, strbuf_str(&why));
		strbuf_fini(&why);
		return CLI_FAILED;
	}
	for (size_t i = 0; cli_object_program(r->open, i, &name, &type); i++) {
		struct cli_verdict v;

		if (r->prog_name && strcmp(name, r->prog_name))
			continue;
		if (cli_object_judge(&r->obj, r->engine, i, &v, NULL, NULL))
			break;
		if (v.err) {
			cli_fail("%s: %s is refused: %s%s%s%s", r->obj.path, name,
				 v.reason.len ? strbuf_str(&v.reason) : cli_strerror(v.err),
				 v.source.len ? " (at: " : "", strbuf_str(&v.source),
				 v.source.len ? ")" : "");
			refused++;
		}
		cli_verdict_fini(&v);
	}
	if (!refused)
		cli_fail("%s: cannot load: %s", r->obj.path,
			 why.len ? strbuf_str(&why) : cli_strerror(err));
	strbuf_fini(&why);
	return CLI_FAILED;
}

static int choose_programs(struct run *r)
{
	struct bpf_program *prog;
	u32 nr = 0;

	bpf_object__for_each_program(prog, r->open)
	{
		if (r->prog_name)
			bpf_program__set_autoload(prog,
						  !strcmp(bpf_program__name(prog), r->prog_name));
		if (bpf_program__autoload(prog))
			nr++;
	}
	if (!nr)
		return r->prog_name ?
			       cli_fail("%s: no program %s in it", r->obj.path, r->prog_name) :
			       cli_fail("%s: no programs in it", r->obj.path);
	return CLI_OK;
}

static int load(struct run *r)
{
	struct strbuf err = STRBUF_INIT;
	int status, rc = cli_object_open(&r->obj, r->engine, &r->open, &err);

	if (rc) {
		status = cli_fail("%s", strbuf_str(&err));
		strbuf_fini(&err);
		return status;
	}
	status = choose_programs(r);
	if (status)
		return status;
	cli_libbpf_log_reset();
	rc = bpf_object__load(r->open);
	if (rc)
		return explain_load(r, rc);
	/* many runs are timed from outside: two looks at the clock around each cost more than a small program */
	if (r->opts->input || r->opts->repeat <= 1 || !r->engine->inlay)
		r->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return r->opts->show_inlining ? cli_inlining_show(r->engine, r->open, r->opts->json) : CLI_OK;
}

/* ---- results ---- */

static void print_program(const struct run *r, const struct bpf_program *prog, const u32 *retval,
			  const struct cli_timing *timing)
{
	struct bpf_prog_info info = {};
	u32 size = sizeof(info);
	double mean;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
		return;
	if (timing && timing->runs && r->engine->inlay) {
		info.run_cnt = timing->runs;
		mean = timing->ns;
	} else {
		mean = info.run_cnt ? (double)info.run_time_ns / info.run_cnt : 0;
	}
	if (r->opts->json) {
		printf("{\"prog\":\"%s\",\"runs\":%llu,\"mean_ns\":%.1f", bpf_program__name(prog),
		       (unsigned long long)info.run_cnt, mean);
		if (retval)
			printf(",\"retval\":%u", *retval);
		puts("}");
		return;
	}
	printf("%s: %llu run%s", bpf_program__name(prog), (unsigned long long)info.run_cnt,
	       info.run_cnt == 1 ? "" : "s");
	if (info.run_cnt)
		printf(", %.1f ns each", mean);
	if (retval)
		printf(", returned %u", *retval);
	putchar('\n');
}

static int print_maps(struct run *r)
{
	int rc = r->opts->maps ? cli_maps_dump(r->engine, r->open, r->opts->json) : 0;

	return rc ? cli_fail("reading the maps: %s", cli_strerror(rc)) : CLI_OK;
}

/* ---- once, or many times ---- */

static struct bpf_program *only_program(struct run *r)
{
	struct bpf_program *prog, *found = NULL;

	bpf_object__for_each_program(prog, r->open)
	{
		if (!bpf_program__autoload(prog))
			continue;
		if (found) {
			cli_usage(&cmd_run,
				  "%s holds several programs: name one, or replay a recording (-i)",
				  r->obj.path);
			return NULL;
		}
		found = prog;
	}
	return found;
}

static int cannot_run(const struct run *r, const struct bpf_program *prog, int rc)
{
	const char *type = libbpf_bpf_prog_type_str(bpf_program__type(prog)), *hint = "";

	if (rc == -LINUX_ENOTSUPP || rc == -EFAULT)
		hint = "; replay a recording through it: -i FILE";
	else if (rc == -EINVAL && !r->opts->ctx_in &&
		 bpf_program__type(prog) == BPF_PROG_TYPE_RAW_TRACEPOINT)
		hint = "; give it arguments: --ctx-in FILE, 8 bytes each";
	else if (rc == -EINVAL && !r->opts->data_in &&
		 bpf_program__type(prog) != BPF_PROG_TYPE_RAW_TRACEPOINT)
		hint = "; give it a packet: --data-in FILE, 14 bytes or more";
	return cli_fail("%s: %s cannot be run like this (%s program: %s)%s", r->obj.path,
			bpf_program__name(prog), type ? type : "unknown",
			cli_strerror(rc), hint);
}

static int run_once(struct run *r)
{
	struct cli_bytes data = {}, ctx = {}, data_out = {}, ctx_out = {};
	struct cli_timing timing = {};
	LIBBPF_OPTS(bpf_test_run_opts, t);
	struct bpf_program *prog = only_program(r);
	int status = prog ? CLI_OK : CLI_USAGE, rc;

	if (!status)
		status = cli_file_read(r->opts->data_in, &data);
	if (!status)
		status = cli_file_read(r->opts->ctx_in, &ctx);
	/*
	 * a program may make its packet longer; Linux leaves room for 256 bytes before and a page
	 * in all
	 */
	if (!status && (cli_bytes_alloc(&data_out, r->opts->data_out ? data.size + 4096 : 0) ||
			cli_bytes_alloc(&ctx_out, r->opts->ctx_out ? ctx.size : 0)))
		status = cli_fail("out of memory");
	if (status)
		goto out;
	t.data_in = data.data;
	t.data_size_in = data.size;
	t.data_out = data_out.data;
	t.data_size_out = data_out.size;
	t.ctx_in = ctx.data;
	t.ctx_size_in = ctx.size;
	t.ctx_out = ctx_out.data;
	t.ctx_size_out = ctx_out.size;
	rc = cli_run_repeat(r->engine, bpf_program__fd(prog), r->opts->repeat, &t, &timing);
	if (rc) {
		status = cannot_run(r, prog, rc);
		goto out;
	}
	print_program(r, prog, &t.retval, &timing);
	status = cli_file_write(r->opts->data_out, data_out.data, t.data_size_out);
	if (!status)
		status = cli_file_write(r->opts->ctx_out, ctx_out.data, t.ctx_size_out);
	if (!status)
		status = print_maps(r);
out:
	cli_bytes_free(&data);
	cli_bytes_free(&ctx);
	cli_bytes_free(&data_out);
	cli_bytes_free(&ctx_out);
	return status;
}

/* ---- on a recording ---- */

static volatile int stop;

static void on_signal(int sig)
{
	stop = 1;
}

static int attach_all(struct run *r)
{
	struct bpf_program *prog;
	u32 nr = 0;

	bpf_object__for_each_program(prog, r->open) nr++;
	r->links = calloc(nr + 1, sizeof(*r->links));
	if (!r->links)
		return cli_fail("out of memory");
	bpf_object__for_each_program(prog, r->open)
	{
		struct bpf_link *link;

		if (!bpf_program__autoload(prog))
			continue;
		link = bpf_program__attach(prog);
		if (link)
			r->links[r->nr_links++] = link;
		else
			fprintf(stderr, "inlay: %s is not attached: no %s in a recording (%s)\n",
				bpf_program__name(prog), bpf_program__section_name(prog),
				strerror(errno));
	}
	return r->nr_links ?
		       CLI_OK :
		       cli_fail("%s: none of its programs attaches to an event of a recording",
				r->obj.path);
}

static void show_progress(void *ctx, const struct rec_event *ev)
{
	const struct recording_info *info = recording_info(ctx);
	static u32 events;

	if (++events % 4096 == 0)
		cli_progress(NULL, "replaying", ev->ts_ns - info->first_ts_ns,
			     info->last_ts_ns - info->first_ts_ns);
}

static int replay_through(struct run *r, struct recording *rec)
{
	struct replay_opts ro = { .after = show_progress, .ctx = rec };
	struct replay *replay = NULL;
	int status = attach_all(r), rc;
	struct bpf_program *prog;

	if (status)
		return status;
	rc = replay_create(r->engine->inlay->env, rec, &ro, &replay);
	if (rc)
		return cli_fail("cannot replay %s: %s", r->opts->input, cli_strerror(rc));
	rc = replay_run(replay, 0, &stop);
	cli_progress_clear();
	bpf_object__for_each_program(prog, r->open) if (bpf_program__fd(prog) >= 0)
		print_program(r, prog, NULL, NULL);
	status = print_maps(r);
	if (rc < 0)
		status = cli_fail("%s", replay_error(replay));
	if (replay_stats(replay)->lost)
		fprintf(stderr, "inlay: %s lacks %llu events that were lost when it was made\n",
			r->opts->input, (unsigned long long)replay_stats(replay)->lost);
	replay_destroy(replay);
	return status;
}

static int with_engine(struct run *r, const struct cli_globals *g, struct recording *rec)
{
	struct cli_engine_opts eo = { .printk = on_printk, .printk_ctx = (void *)r->opts };
	int status;

	if (rec) {
		eo.nr_cpus = max_of(recording_info(rec)->nr_cpus, 1u);
		eo.manual_clock = true;
	}
	status = cli_engine_create(g, "user", &eo, &r->engine);
	if (status)
		return status;
	if (rec && !r->engine->inlay) {
		status = cli_usage(&cmd_run,
				   "a recording is replayed on the user engine, not in the kernel");
		goto out;
	}
	cli_engine_enter(r->engine);
	status = load(r);
	if (!status && r->engine->inlay && r->engine->btf)
		fprintf(stderr, "inlay: %s runs with the types of --btf: fields that inlay does not fill in read as 0 (without --btf "
				"a program that wants one is refused)\n", r->obj.path);
	if (!status)
		status = rec ? replay_through(r, rec) : run_once(r);
	if (r->stats_fd > 0)
		close(r->stats_fd);
	for (u32 i = 0; i < r->nr_links; i++)
		bpf_link__destroy(r->links[i]);
	free(r->links);
	bpf_object__close(r->open);
	cli_engine_leave(r->engine);
out:
	cli_engine_destroy(r->engine);
	return status;
}

/* The option given that a replay has no use for; NULL: none. */
static const char *not_with_input(const struct run_opts *o)
{
	return o->repeat ? "--repeat" : o->data_in ? "--data-in" : o->data_out ? "--data-out" : o->ctx_in ? "--ctx-in" :
	       o->ctx_out ? "--ctx-out" : NULL;
}

static int run(const struct cli_globals *g, void *opts, int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct recording_opts ro = { .progress = cli_progress, .log = &cli_warnings };
	struct run r = { .opts = opts, .prog_name = argc > 1 ? argv[1] : NULL };
	struct strbuf err = STRBUF_INIT;
	struct recording *rec = NULL;
	int status = CLI_OK;

	if (r.opts->input && not_with_input(r.opts))
		return cli_usage(&cmd_run, "%s is for a run on input from files, -i for one on a recording: give one of them",
				 not_with_input(r.opts));
	if (cli_object_read(argv[0], &r.obj, &err) ||
	    (r.opts->input && recording_open(r.opts->input, &ro, &err, &rec))) {
		cli_progress_clear();
		status = cli_fail("%s", strbuf_str(&err));
	}
	cli_progress_clear();
	strbuf_fini(&err);
	if (!status && rec) {
		cli_warnings_release();
		sigaction(SIGINT, &sa, NULL);
		sigaction(SIGTERM, &sa, NULL);
	}
	if (!status)
		status = with_engine(&r, g, rec);
	recording_close(rec);
	cli_object_free(&r.obj);
	return status;
}

const struct cli_command cmd_run = {
	.name = "run",
	.args = "OBJ [PROG]",
	.summary = "Load, verify and run a BPF object's programs",
	.text = "Without -i: runs PROG (or the only program) on input from files and\n"
		"prints what it returned. With -i: replays a recording; every program\n"
		"on a tracepoint the recording holds runs once an event, with the\n"
		"recorded task, CPU and time, and what it says with bpf_printk() is\n"
		"shown.",
	.options = run_options,
	.opts_size = sizeof(struct run_opts),
	.min_args = 1,
	.max_args = 2,
	.run = run,
};
