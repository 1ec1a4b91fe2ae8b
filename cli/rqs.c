// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a live run and a replay of runqslower share: configuration, loading with fallbacks,
 * collecting, the end.
 */
#include "rqs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "cli.h"

void rqs_configure(struct rqs *rqs)
{
	const struct rqs_opts *o = rqs->opts;
	struct rqs_config *c = &rqs->config;

	c->min_ns = o->min_ns;
	c->tgid = o->tgid;
	c->tid = o->tid;
	c->waking = rqs->waking;
	c->cpu_filter = o->cpu_filter;
	memcpy(c->cpu_mask, o->cpu_mask, sizeof(c->cpu_mask));
	/*
	 * A wait of 0 ns is not "longer than 0", but MIN 0 shows all. -c and --summary look at
	 * every wait here.
	 */
	c->emit_all = !o->min_ns || o->comm || o->summary;
	c->emit_missed = !rqs->no_open_start || o->comm;
	rqs->user_filter = o->comm;
}

/* ---- loading ---- */

/* Of the objects that run for --profile only the first one's rows count. */
static int drop_row(void *ctx, void *data, size_t size)
{
	return 0;
}

static int try_load(struct rqs *rqs, struct rqs_bpf *bpf, struct rqs_bpf_opts *o,
		    struct strbuf *err)
{
	int rc;

	strbuf_reset(err);
	rc = rqs_bpf_load(bpf, o, bpf == rqs->bpf ? rqs_take_row : drop_row, rqs, err);
	if (rc)
		rqs_bpf_unload(bpf);
	return rc;
}

/*
 * Loads one object. Where tracing programs may not use task storage the preallocated hash stands
 * in, and without BTF-typed tracepoints raw ones with the hash; both are announced.
 */
static int load_one(struct rqs *rqs, struct rqs_bpf *bpf, struct rqs_bpf_opts *o)
{
	struct strbuf err = STRBUF_INIT;
	int rc;

	if (o->raw_tp && o->storage == RQS_STORAGE_TASK) {
		o->storage = RQS_STORAGE_HASH;
		fprintf(stderr, "inlay: raw tracepoints give no typed tasks, as task storage "
				"needs: using the hash\n");
	}
	rc = try_load(rqs, bpf, o, &err);
	if (rc && rc != -EPERM && o->storage == RQS_STORAGE_TASK && !rqs->opts->storage_given &&
	    !rqs->opts->profile) {
		struct strbuf second = STRBUF_INIT;
		int rc2;

		o->storage = RQS_STORAGE_HASH;
		rc2 = try_load(rqs, bpf, o, &second);
		if (!rc2) {
			fprintf(stderr, "inlay: no task storage for tracing programs here: using "
					"the hash of 10,240 tasks\n");
			rc = 0;
		}
		strbuf_fini(&second);
	}
	if (rc)
		cli_fail("%s", strbuf_str(&err));
	strbuf_fini(&err);
	return rc ? CLI_FAILED : CLI_OK;
}

static int attach_all(struct rqs *rqs)
{
	struct strbuf err = STRBUF_INIT;
	int rc = 0;

	for (u32 i = 0; i < rqs->nr_bpf && !rc; i++)
		rc = rqs_bpf_attach(&rqs->bpf[i], &err);
	if (rc)
		cli_fail("%s", strbuf_str(&err));
	strbuf_fini(&err);
	return rc ? CLI_FAILED : CLI_OK;
}

static int load_all(struct rqs *rqs, struct rqs_bpf_opts *o)
{
	int rc = load_one(rqs, &rqs->bpf[0], o);

	if (rc)
		return rc;
	rqs->nr_bpf = 1;
	for (u32 s = 0; rqs->opts->profile && s < RQS_NR_STORAGES && !rc; s++) {
		if (s == rqs->bpf[0].storage || (o->raw_tp && s == RQS_STORAGE_TASK))
			continue;
		o->storage = s;
		rc = load_one(rqs, &rqs->bpf[rqs->nr_bpf], o);
		rqs->nr_bpf += !rc;
	}
	return rc;
}

int rqs_start(struct rqs *rqs, u32 ring_entries, u32 row_bytes)
{
	struct rqs_bpf_opts o = {
		.storage = rqs->opts->storage,
		.raw_tp = rqs->opts->attach == RQS_ATTACH_RAW_TP,
		.nr_cpus = rqs->nr_cpus,
		.config = &rqs->config,
		.ring_entries = ring_entries,
		.row_bytes = row_bytes,
		.btf_path = rqs->engine->btf_path,
	};
	struct btf *own = btf__load_vmlinux_btf(),
		   *given = o.btf_path ? btf__parse(o.btf_path, NULL) : NULL;
	int rc;

	/*
	 * typed tracepoints are the kernel's own types; a file with types helps only to find fields
	 */
	if (rqs->opts->attach == RQS_ATTACH_AUTO &&
	    (!own || btf__find_by_name_kind(own, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) < 0)) {
		fprintf(stderr, "inlay: no BTF-typed tracepoints here: using raw ones\n");
		o.raw_tp = true;
	}
	o.types = given ? given : own;
	rc = load_all(rqs, &o);
	btf__free(own);
	btf__free(given);
	if (rc)
		return rc;
	if (rqs->opts->profile) {
		rqs->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
		if (rqs->stats_fd < 0)
			fprintf(stderr, "inlay: run statistics cannot be switched on: %s\n",
				cli_strerror(rqs->stats_fd));
	}
	return attach_all(rqs);
}

/* ---- collecting ---- */

int rqs_collect(struct rqs *rqs)
{
	int rc = rqs_history_drain(rqs->history, &rqs->bpf[0]);

	for (u32 i = 0; i < rqs->nr_bpf && !rc; i++) {
		int n = ring_buffer__consume(rqs->bpf[i].ring);

		if (n < 0)
			rc = n;
	}
	return rc ? rc : rqs->error;
}

void rqs_sum_totals(struct rqs *rqs)
{
	struct rqs_totals *t = &rqs->totals;

	for (u32 i = 0; i < rqs->nr_cpus; i++) {
		const struct rqs_cpu *c = rqs_bpf_cpu(&rqs->bpf[0], i);

		t->failures += c->failures;
		t->rows_lost += c->rows_lost;
		if (rqs->user_filter)
			continue;
		t->missed += c->missed;
		t->waits += c->waits;
		t->over += c->over;
		t->wait_ns += c->wait_ns;
		t->longest = max_of(t->longest, (u64)c->longest);
		for (u32 b = 0; b < RQS_NR_BUCKETS; b++)
			t->hist[b] += c->hist[b];
	}
	if (!rqs->opts->min_ns) /* "all", those of 0 ns included */
		t->over = t->waits;
}

const struct rqs_output *rqs_output(const struct rqs *rqs)
{
	return rqs->opts->json ? &rqs_json : &rqs_text;
}

const char *rqs_task_name(s32 tid, const char *comm, u32 cpu, char *buf)
{
	if (tid > 0)
		return comm;
	if (tid < 0)
		return "(unknown)";
	snprintf(buf, 24, "swapper/%u", cpu);
	return buf;
}

/* ---- the end ---- */

int rqs_finish(struct rqs *rqs)
{
	const struct rqs_output *out = rqs_output(rqs);

	rqs_sum_totals(rqs);
	for (u32 i = 0; i < rqs->nr_open_end && !rqs->opts->summary; i++) {
		struct rqs_line *line = &rqs->open_end[i];
		int rc = rqs_history_ran(rqs->history, line->row.cpu, line->row.ts - line->row.wait_ns,
					 line->row.ts, U64_MAX, &line->ran);

		if (rc)
			return cli_fail("who ran meanwhile: %s", cli_strerror(rc));
		out->line(rqs, line);
		rqs_shares_fini(&line->ran);
	}
	rqs->nr_open = rqs->nr_open_end;
	out->end(rqs);
	if (rqs->totals.rows_lost)
		fprintf(stderr,
			"inlay: %llu rows were lost as they came faster than they could be read: a "
			"larger MIN or a filter (-p, -t, -C) makes them fewer\n",
			(unsigned long long)rqs->totals.rows_lost);
	if (rqs->lost + rqs->totals.rows_lost > rqs->opts->max_lost ||
	    (rqs->lost_gaps && rqs->opts->max_lost != U64_MAX))
		return cli_fail("more events were lost than --max-lost %llu allows",
				(unsigned long long)rqs->opts->max_lost);
	return CLI_OK;
}

void rqs_fini(struct rqs *rqs)
{
	if (rqs->stats_fd > 0)
		close(rqs->stats_fd);
	for (u32 i = 0; i < rqs->nr_bpf; i++)
		rqs_bpf_unload(&rqs->bpf[i]);
	for (u32 i = 0; i < rqs->nr_open_end; i++)
		rqs_shares_fini(&rqs->open_end[i].ran);
	free(rqs->open_end);
	free(rqs->runnable);
	rqs_shares_fini(&rqs->line.ran);
	rqs_shares_fini(&rqs->longest.ran);
	rqs_history_destroy(rqs->history);
	rqs_summary_destroy(rqs->summary);
}
