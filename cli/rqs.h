/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runqslower's user side. The BPF object (bpf/runqslower.bpf.c) does the measuring, in the kernel
 * or in the user engine; what is here loads it (rqs_bpf.c), feeds it (rqs_replay.c) or waits for it
 * (rqs_live.c), keeps each CPU's history of who ran (rqs_history.c), judges rows (rqs_rows.c,
 * rqs_open.c) and prints (rqs_text.c, rqs_json.c).
 */
#ifndef INLAY_CLI_RQS_H
#define INLAY_CLI_RQS_H

#include <stdio.h>

#include "base/types.h"

#include <linux/types.h>
#include "runqslower.h"

#include "engine.h"
#include "opt.h"

struct bpf_link;
struct btf;
struct bpf_map;
struct bpf_object;
struct bpf_program;
struct recording_info;
struct ring_buffer;

enum rqs_storage {
	RQS_STORAGE_TASK,
	RQS_STORAGE_HASH,
	RQS_STORAGE_HASH_NOPREALLOC,
	RQS_NR_STORAGES
};
enum rqs_attach { RQS_ATTACH_AUTO, RQS_ATTACH_TP_BTF, RQS_ATTACH_RAW_TP };
enum rqs_metric { RQS_METRIC_AUTO, RQS_METRIC_WAKEUP, RQS_METRIC_WAKING };

struct rqs_opts {
	const char *input; /* NULL: live */
	u64 min_ns;
	u64 duration_ns;  /* 0: no end */
	u32 tgid, tid;	  /* 0: all */
	const char *comm; /* glob; NULL: all */
	const char *cgroup;
	bool cpu_filter;
	u64 cpu_mask[RQS_MAX_CPUS / 64];
	bool hist, summary, json, profile;
	enum rqs_storage storage;
	bool storage_given;
	enum rqs_attach attach;
	enum rqs_metric metric;
	u64 max_lost; /* U64_MAX: any */
};

/* ---- rqs_bpf.c: the object ---- */

enum rqs_handler {
	RQS_H_WAKEUP,
	RQS_H_WAKEUP_NEW,
	RQS_H_WAKING,
	RQS_H_MIGRATE,
	RQS_H_FORK,
	RQS_H_SWITCH,
	RQS_NR_HANDLERS
};

extern const char *const rqs_storage_names[RQS_NR_STORAGES]; /* "task" … */
extern const char *const rqs_handler_names[RQS_NR_HANDLERS]; /* tracepoint names */

struct rqs_bpf {
	enum rqs_storage storage;
	struct bpf_object *obj;
	struct bpf_map *start, *rows, *cpus;
	struct bpf_program *prog[RQS_NR_HANDLERS]; /* NULL: not loaded */
	struct bpf_link *link[RQS_NR_HANDLERS];
	struct ring_buffer *ring;
	char *mem; /* the map `cpus`, read-only */
	size_t mem_size, cpu_size;
	u32 nr_cpus, ring_mask;
	bool raw_tp;
};

struct rqs_bpf_opts {
	enum rqs_storage storage;
	bool raw_tp;
	u32 nr_cpus;
	const struct rqs_config
		*config;	 /* ring_mask, prev_arg and has_arg3 are set by rqs_bpf_load() */
	u32 ring_entries;	 /* of a CPU's history: a power of two */
	u32 row_bytes;		 /* of the ring buffer: a power of two, of pages */
	const char *btf_path;	 /* NULL: the engine's own types */
	const struct btf *types; /* libbpf's, of either; NULL: none */
};

/*
 * Opens, configures and loads; rows go to take(ctx, row). 0, or -errno with one line in err. Inside
 * cli_engine_enter().
 */
int rqs_bpf_load(struct rqs_bpf *bpf, const struct rqs_bpf_opts *opts,
		 int (*take)(void *ctx, void *row, size_t size), void *ctx, struct strbuf *err);
/*
 * Attaches all handlers, the switch last: what runs then has been stamped. 0, or -errno with one
 * line in err.
 */
int rqs_bpf_attach(struct rqs_bpf *bpf, struct strbuf *err);
/* The switch first: from then on no wait ends, and who waits keeps its stamp. */
void rqs_bpf_detach(struct rqs_bpf *bpf);
void rqs_bpf_unload(struct rqs_bpf *bpf); /* takes a zeroed one */

static inline const struct rqs_cpu *rqs_bpf_cpu(const struct rqs_bpf *bpf, u32 cpu)
{
	return (const struct rqs_cpu *)(bpf->mem + cpu * bpf->cpu_size);
}

/* ---- rqs_history.c: who ran when ---- */

/* One who ran during a wait, and how long. */
struct rqs_share {
	s32 tid; /* 0: idle; -1: nobody knows who */
	char comm[RQS_COMM_LEN];
	u64 ns;
};

struct rqs_shares {
	struct rqs_share *s; /* most first, then lower tid */
	u32 nr, cap;
	u32 *slot; /* hash by tid: index into s, + 1 */
	u32 nr_slots;
};

struct rqs_history;

/* start_ns: history before it does not count. NULL: no memory. */
struct rqs_history *rqs_history_create(u32 nr_cpus, u64 start_ns);
void rqs_history_destroy(struct rqs_history *h);
/* Takes over what the CPUs wrote since the last call. 0 or -ENOMEM. */
int rqs_history_drain(struct rqs_history *h, const struct rqs_bpf *bpf);
int rqs_history_drain_cpu(struct rqs_history *h, const struct rqs_bpf *bpf, u32 cpu);
/*
 * Who ran on cpu in [start, end), where end is the time of history position pos (U64_MAX: of now).
 * What is not known goes to tid -1, so that the shares always sum to end - start. 0 or -ENOMEM.
 */
int rqs_history_ran(struct rqs_history *h, u32 cpu, u64 start, u64 end, u64 pos,
		    struct rqs_shares *ret);
/* Entries overwritten before they could be read. */
u64 rqs_history_lost(const struct rqs_history *h);
/* When a task was first seen to run; U64_MAX: never (or no valid tid). */
u64 rqs_history_first_run(const struct rqs_history *h, s32 tid);
/* When it was last switched out; 0: never. */
u64 rqs_history_last_out(const struct rqs_history *h, s32 tid);
/* Runs on some CPU by the last switch there. */
bool rqs_history_runs_now(const struct rqs_history *h, s32 tid);
/* Another sign of life of a task than running. */
void rqs_history_saw(struct rqs_history *h, s32 tid, u64 ts);
/* So much is kept in detail that rqs_history_reduce() is worth its price. */
bool rqs_history_full(const struct rqs_history *h);
/*
 * Keeps only sums of the times in which no wait that is still on began: starts[nr] are the
 * beginnings of all of those, ascending, looked up no earlier than `before`.
 */
void rqs_history_reduce(struct rqs_history *h, const u64 *starts, u32 nr, u64 before);

void rqs_shares_fini(struct rqs_shares *s);

/* ---- one run ---- */

struct rqs_totals {
	u64 waits, over, wait_ns, longest, missed, failures, rows_lost;
	u64 hist[RQS_NR_BUCKETS];
};

/* A row ready to be printed. */
struct rqs_line {
	struct rqs_row row; /* of an open row: ts is when it was looked at, cpu U32_MAX: unknown */
	bool from_start;    /* it waited when the recording began */
	bool to_end;	    /* it waits when the recording ends; either: wait_ns is a lower bound */
	struct rqs_shares ran;
};

struct rqs_summary;

struct rqs_runnable {
	s32 tid;
	u64 ran_ns; /* CPU time it had had */
};

struct rqs {
	const struct rqs_opts *opts;
	const struct cli_globals *g;
	struct cli_engine *engine;
	struct rqs_bpf
		bpf[RQS_NR_STORAGES]; /* the first one's rows are shown; more only with --profile */
	u32 nr_bpf;
	struct rqs_history *history;
	struct rqs_config config;
	const struct recording_info *info; /* NULL: live */
	bool live, waking;
	bool no_open_start; /* what waited before the start cannot be told from what was missed */
	u32 nr_cpus;
	u64 start_ns, end_ns; /* of the recording, or of attaching and detaching */
	u32 ts_decimals;      /* of the time column */
	s64 wall_offset;      /* live: CLOCK_REALTIME - CLOCK_MONOTONIC */
	u64 lost;	      /* events a recording lacks, as far as counted */
	u64 lost_gaps;	      /* gaps of unknown size */
	bool user_filter;     /* -c: totals are counted here, not in BPF */
	struct rqs_totals totals;
	u64 nr_open, nr_open_start, unknown_tgids;
	struct rqs_line longest; /* of those not over MIN */
	struct rqs_line line;	 /* scratch */
	struct rqs_summary *summary;
	struct rqs_runnable *runnable; /* live: tasks that could run when it began, by tid */
	u32 nr_runnable;
	struct rqs_line *open_end; /* tasks that wait at the end, longest first */
	u32 nr_open_end;
	bool header_done;
	int stats_fd; /* holds run statistics on; 0: none */
	int error;    /* sticky, of row callbacks */
};

/* Fills the parts of rqs->config that come from options and the engine. */
void rqs_configure(struct rqs *rqs);
/* Loads and attaches rqs->opts' object(s); CLI_OK or the exit status, reason printed. */
int rqs_start(struct rqs *rqs, u32 ring_entries, u32 row_bytes);
/* Drains history and rows of all objects. 0 or -errno. */
int rqs_collect(struct rqs *rqs);
void rqs_sum_totals(struct rqs *rqs);
/* Live, at the start: remembers who may be waiting already. 0 or -errno. */
int rqs_note_runnable(struct rqs *rqs);
/* Finds who waits now. 0 or -errno. */
int rqs_find_open(struct rqs *rqs, u64 now);
/* Shortens the history if it has grown: looks up who waits first. */
int rqs_maybe_reduce(struct rqs *rqs, u64 now);
/* After the last event: open rows, last lines, profile. The exit status. */
int rqs_finish(struct rqs *rqs);
void rqs_fini(struct rqs *rqs);

int rqs_run_live(struct rqs *rqs);
int rqs_run_replay(struct rqs *rqs);

/* ---- rqs_rows.c ---- */

int rqs_take_row(void *ctx, void *data, size_t size); /* ring buffer callback; ctx: struct rqs */
u64 rqs_quantile(const struct rqs_totals *t,
		 double q); /* upper bound of the bucket, at most the longest wait */
void rqs_bucket_range(u32 bucket, u64 *ret_from, u64 *ret_to);
u32 rqs_bucket_of(u64 ns);
bool rqs_comm_wanted(const struct rqs *rqs, const char *comm);

/* ---- rqs_summary.c: --summary, a line a task ---- */

struct rqs_task_sum {
	s32 tid, tgid;
	char comm[RQS_COMM_LEN];
	u64 waits, over, wait_ns, longest;
	u64 from_ns; /* the share of its waits over MIN that went to: */
	s32 by_tid;
	char by_comm[RQS_COMM_LEN];
};

struct rqs_summary *rqs_summary_create(void);
void rqs_summary_destroy(struct rqs_summary *s);
int rqs_summary_add(struct rqs_summary *s, const struct rqs_line *line, bool over);
/* Most time waited first; valid until the next call. */
u32 rqs_summary_tasks(struct rqs_summary *s, const struct rqs_task_sum **ret_tasks);

/* ---- rqs_profile.c ---- */

struct rqs_prof_cell {
	bool known;
	u64 runs;
	double mean_ns;
	u64 p50_ns, p99_ns; /* 0: unknown */
};

void rqs_profile_read(struct rqs *rqs,
		      struct rqs_prof_cell cells[RQS_NR_HANDLERS][RQS_NR_STORAGES]);

/* ---- output ---- */

struct rqs_output {
	void (*header)(struct rqs *rqs); /* before the first row */
	void (*line)(struct rqs *rqs, const struct rqs_line *line);
	void (*end)(struct rqs *rqs);
};

extern const struct rqs_output rqs_text, rqs_json;
const struct rqs_output *rqs_output(const struct rqs *rqs);
extern const char *const rqs_kind_names[RQS_NR_KINDS];
/* Why it waited, as shown: rqs_kind_names, or "queued" of one that began before the recording. */
const char *rqs_kind_of(const struct rqs_line *line);
/*
 * An open row whose CPU was idle meanwhile, once it has its shares: the task was throttled, or what would have closed or begun
 * the wait was not recorded, and it did not wait at all.
 */
bool rqs_is_doubtful(const struct rqs_line *line);

/* swapper/N for idle, "(unknown)" for tid -1, else comm. buf: at least 24 bytes. */
const char *rqs_task_name(s32 tid, const char *comm, u32 cpu, char *buf);

#endif
