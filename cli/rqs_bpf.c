// SPDX-License-Identifier: BSD-2-Clause
/*
 * Opens, configures, loads and attaches runqslower's BPF object; the same calls whatever the
 * engine.
 */
#include "rqs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "cli.h"
#include "object.h"

extern const char rqs_obj_task[], rqs_obj_task_end[], rqs_obj_hash[], rqs_obj_hash_end[],
	rqs_obj_hash_noprealloc[], rqs_obj_hash_noprealloc_end[];

static const struct object_bytes {
	const char *begin, *end;
} object_bytes[RQS_NR_STORAGES] = {
	[RQS_STORAGE_TASK] = { rqs_obj_task, rqs_obj_task_end },
	[RQS_STORAGE_HASH] = { rqs_obj_hash, rqs_obj_hash_end },
	[RQS_STORAGE_HASH_NOPREALLOC] = { rqs_obj_hash_noprealloc, rqs_obj_hash_noprealloc_end },
};

const char *const rqs_storage_names[RQS_NR_STORAGES] = {
	[RQS_STORAGE_TASK] = "task",
	[RQS_STORAGE_HASH] = "hash",
	[RQS_STORAGE_HASH_NOPREALLOC] = "hash-noprealloc",
};

const char *const rqs_handler_names[RQS_NR_HANDLERS] = {
	[RQS_H_WAKEUP] = "sched_wakeup",     [RQS_H_WAKEUP_NEW] = "sched_wakeup_new",
	[RQS_H_WAKING] = "sched_waking",     [RQS_H_MIGRATE] = "sched_migrate_task",
	[RQS_H_FORK] = "sched_process_fork", [RQS_H_SWITCH] = "sched_switch",
};

/* Program names in the object: with BTF-typed arguments, and bare. */
static const char *const program_names[RQS_NR_HANDLERS][2] = {
	[RQS_H_WAKEUP] = { "rqs_wakeup", "rqs_raw_wakeup" },
	[RQS_H_WAKEUP_NEW] = { "rqs_wakeup_new", "rqs_raw_wakeup_new" },
	[RQS_H_WAKING] = { "rqs_waking", "rqs_raw_waking" },
	[RQS_H_MIGRATE] = { "rqs_migrate", "rqs_raw_migrate" },
	[RQS_H_FORK] = { "rqs_fork", "rqs_raw_fork" },
	[RQS_H_SWITCH] = { "rqs_switch", "rqs_raw_switch" },
};

static int fail(struct strbuf *err, int rc, const char *what)
{
	struct strbuf why = STRBUF_INIT;

	strbuf_printf(err, "%s: %s", what, cli_strerror(rc));
	if (*cli_object_reason(&why))
		strbuf_printf(err, " (%s)", strbuf_str(&why));
	strbuf_fini(&why);
	return rc;
}

static const struct btf_type *skip_typedefs(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (t && (btf_is_typedef(t) || btf_is_mod(t)))
		t = btf__type_by_id(btf, t->type);
	return t;
}

/*
 * Where sched_switch's arguments stand differs between kernels: (preempt, prev, next) to 5.17,
 * (preempt, prev_state, prev, next) in 5.18, (preempt, prev, next, prev_state) since. The kernel's
 * typedef says it.
 */
static void read_switch_arguments(const struct btf *btf, struct rqs_config *config)
{
	const struct btf_type *t, *proto;
	s32 id = btf ? btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) :
		       -ENOENT;

	config->prev_arg = 1;
	config->has_arg3 = 1;
	if (id < 0)
		return;
	t = skip_typedefs(btf, id);
	proto = t && btf_is_ptr(t) ? skip_typedefs(btf, t->type) : NULL;
	if (!proto || !btf_is_func_proto(proto) || btf_vlen(proto) < 4)
		return;
	config->has_arg3 = btf_vlen(proto) > 4; /* the first parameter is the tracepoint's own */
	t = skip_typedefs(btf, btf_params(proto)[2].type);
	config->prev_arg = t && btf_is_ptr(t) ? 1 : 2;
}

static bool stores_may_pass(void)
{
	struct utsname u;

	return uname(&u) || strcmp(u.machine, "x86_64");
}

static int set_config(struct rqs_bpf *bpf, const struct rqs_bpf_opts *opts)
{
	struct bpf_map *rodata = bpf_object__find_map_by_name(bpf->obj, ".rodata");
	struct rqs_config *config;
	size_t size = 0;
	int rc;

	/* cfg is the only variable there */
	if (!rodata || !bpf_map__initial_value(rodata, &size) || size != sizeof(*config))
		return -EINVAL;
	config = malloc(size);
	if (!config)
		return -ENOMEM;
	*config = *opts->config;
	config->ring_mask = bpf->ring_mask;
	config->wakeup_bytes = opts->row_bytes / 2;
	config->weak_order = stores_may_pass();
	read_switch_arguments(opts->types, config);
	rc = bpf_map__set_initial_value(rodata, config, size);
	free(config);
	return rc;
}

/*
 * Which programs: one of wakeup and waking, typed or bare ones; fork where the stamp is kept by
 * tid.
 */
static void choose_programs(struct rqs_bpf *bpf, const struct rqs_bpf_opts *opts)
{
	for (u32 h = 0; h < RQS_NR_HANDLERS; h++) {
		bool want = h != (opts->config->waking ? RQS_H_WAKEUP : RQS_H_WAKING);

		for (u32 raw = 0; raw < 2; raw++) {
			struct bpf_program *prog =
				bpf_object__find_program_by_name(bpf->obj, program_names[h][raw]);
			bool load = want && raw == opts->raw_tp;

			if (!prog)
				continue;
			bpf_program__set_autoload(prog, load);
			if (load)
				bpf->prog[h] = prog;
		}
	}
}

static int size_maps(struct rqs_bpf *bpf, const struct rqs_bpf_opts *opts)
{
	int rc;

	bpf->start = bpf_object__find_map_by_name(bpf->obj, "start");
	bpf->rows = bpf_object__find_map_by_name(bpf->obj, "rows");
	bpf->cpus = bpf_object__find_map_by_name(bpf->obj, "cpus");
	if (!bpf->start || !bpf->rows || !bpf->cpus)
		return -EINVAL;
	bpf->nr_cpus = opts->nr_cpus;
	bpf->ring_mask = opts->ring_entries - 1;
	bpf->cpu_size = sizeof(struct rqs_cpu) + opts->ring_entries * sizeof(struct rqs_ran);
	bpf->mem_size = align_up(bpf->cpu_size * bpf->nr_cpus, sysconf(_SC_PAGESIZE));
	rc = bpf_map__set_max_entries(bpf->cpus, bpf->nr_cpus);
	if (!rc)
		rc = bpf_map__set_value_size(bpf->cpus, bpf->cpu_size);
	if (!rc)
		rc = bpf_map__set_max_entries(bpf->rows, opts->row_bytes);
	return rc;
}

static int open_object(struct rqs_bpf *bpf, const struct rqs_bpf_opts *opts, struct strbuf *err)
{
	const struct object_bytes *bytes = &object_bytes[opts->storage];
	char name[32];
	LIBBPF_OPTS(bpf_object_open_opts, open_opts, .object_name = name,
		    .btf_custom_path = opts->btf_path);

	snprintf(name, sizeof(name), "rqs_%s", rqs_storage_names[opts->storage]);
	bpf->storage = opts->storage;
	bpf->raw_tp = opts->raw_tp;
	bpf->obj = bpf_object__open_mem(bytes->begin, bytes->end - bytes->begin, &open_opts);
	if (!bpf->obj)
		return fail(err, -errno, "cannot open the BPF object");
	return 0;
}

static int map_cpus(struct rqs_bpf *bpf)
{
	void *mem = mmap(NULL, bpf->mem_size, PROT_READ, MAP_SHARED, bpf_map__fd(bpf->cpus), 0);

	if (mem == MAP_FAILED)
		return -errno;
	bpf->mem = mem;
	return 0;
}

int rqs_bpf_load(struct rqs_bpf *bpf, const struct rqs_bpf_opts *opts,
		 int (*take)(void *ctx, void *row, size_t size), void *ctx, struct strbuf *err)
{
	int rc;

	cli_libbpf_log_reset();
	rc = open_object(bpf, opts, err);
	if (rc)
		return rc;
	rc = size_maps(bpf, opts);
	if (!rc)
		rc = set_config(bpf, opts);
	if (rc)
		return fail(err, rc, "cannot configure the BPF object");
	choose_programs(bpf, opts);
	rc = bpf_object__load(bpf->obj);
	if (rc)
		return fail(err, rc, "cannot load the BPF object");
	rc = map_cpus(bpf);
	if (rc)
		return fail(err, rc, "cannot map the history");
	bpf->ring = ring_buffer__new(bpf_map__fd(bpf->rows), take, ctx, NULL);
	if (!bpf->ring)
		return fail(err, -errno, "cannot map the ring buffer");
	return 0;
}

int rqs_bpf_attach(struct rqs_bpf *bpf, struct strbuf *err)
{
	for (u32 h = 0; h < RQS_NR_HANDLERS; h++) {
		char what[64];

		if (!bpf->prog[h])
			continue;
		bpf->link[h] = bpf_program__attach(bpf->prog[h]);
		if (bpf->link[h])
			continue;
		snprintf(what, sizeof(what), "cannot attach to %s", rqs_handler_names[h]);
		return fail(err, -errno, what);
	}
	return 0;
}

void rqs_bpf_detach(struct rqs_bpf *bpf)
{
	for (u32 h = RQS_NR_HANDLERS; h-- > 0;) {
		bpf_link__destroy(bpf->link[h]);
		bpf->link[h] = NULL;
	}
}

void rqs_bpf_unload(struct rqs_bpf *bpf)
{
	rqs_bpf_detach(bpf);
	ring_buffer__free(bpf->ring);
	if (bpf->mem)
		munmap(bpf->mem, bpf->mem_size);
	bpf_object__close(bpf->obj);
	memset(bpf, 0, sizeof(*bpf));
}
