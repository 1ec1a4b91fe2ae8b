// SPDX-License-Identifier: BSD-2-Clause
#include "object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "btf/elfcheck.h"
#include "cli.h"
#include "object/map.h"

#define MAX_OBJECT (256u << 20)
#define LOG_SIZE                                                                                   \
	(16u << 20) /* of a full log; the most Linux takes is 1 GiB, but nobody reads that */

static int read_all(int fd, struct cli_object *obj)
{
	size_t cap = 0;

	for (;;) {
		ssize_t n;

		if (obj->size == cap) {
			size_t want = cap ? cap * 2 : 65536;
			void *grown = want > MAX_OBJECT ? NULL : realloc(obj->data, want);

			if (!grown)
				return want > MAX_OBJECT ? -EFBIG : -ENOMEM;
			obj->data = grown;
			cap = want;
		}
		n = read(fd, (char *)obj->data + obj->size, cap - obj->size);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		if (n > 0)
			obj->size += n;
	}
}

int cli_object_read(const char *path, struct cli_object *obj, struct strbuf *err)
{
	const char *slash = strrchr(path, '/');
	struct strbuf why = STRBUF_INIT;
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	memset(obj, 0, sizeof(*obj));
	obj->path = path;
	snprintf(obj->name, sizeof(obj->name), "%s", slash ? slash + 1 : path);
	rc = fd < 0 ? -errno : read_all(fd, obj);
	if (fd >= 0)
		close(fd);
	if (rc)
		strbuf_printf(err, "%s: %s", path, cli_strerror(rc));
	else if ((rc = btf_elfcheck(obj->data, obj->size, &why)))
		strbuf_printf(err, "%s: %s", path, strbuf_str(&why));
	strbuf_fini(&why);
	if (rc)
		cli_object_free(obj);
	return rc;
}

void cli_object_free(struct cli_object *obj)
{
	free(obj->data);
	obj->data = NULL;
	obj->size = 0;
}

static bool is_statistic(const char *line)
{
	static const char *const starts[] = { "processed ", "verification time", "stack depth",
					      "max_states", "insns processed" };

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (!strncmp(line, starts[i], strlen(starts[i])))
			return true;
	return false;
}

static bool contains(const char *line, size_t len, const char *what)
{
	const char *found = strstr(line, what);

	return found && found < line + len;
}

/* Lines that only repeat that something failed, or count what the verifier did. */
static bool says_nothing(const char *line, size_t len)
{
	static const char *const noise[] = { "failed to load object", ": failed to load: -",
					     "BPF program load failed", "-- BEGIN PROG LOAD LOG --",
					     "-- END PROG LOAD LOG --" };

	for (size_t i = 0; i < ARRAY_SIZE(noise); i++)
		if (contains(line, len, noise[i]))
			return true;
	return !len || is_statistic(line);
}

const char *cli_object_reason(struct strbuf *scratch)
{
	const char *text = cli_libbpf_text(), *line = text, *best = text;
	size_t best_len = strcspn(text, "\n");

	while (*line) {
		size_t len = strcspn(line, "\n");

		if (!says_nothing(line, len)) {
			best = line;
			best_len = len;
		}
		line += len + (line[len] != 0);
	}
	strbuf_reset(scratch);
	strbuf_add(scratch, best, best_len);
	return strbuf_str(scratch);
}

int cli_object_open(const struct cli_object *obj, const struct cli_engine *engine,
		    struct bpf_object **ret_obj, struct strbuf *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = obj->name,
		    .btf_custom_path = engine->inlay ? NULL : engine->btf_path);
	struct strbuf why = STRBUF_INIT;
	struct bpf_object *open;

	cli_libbpf_log_reset();
	open = bpf_object__open_mem(obj->data, obj->size, &opts);
	if (!open) {
		int rc = -errno;

		if (err)
			strbuf_printf(err, "%s: cannot open: %s (%s)", obj->path,
				      cli_object_reason(&why), cli_strerror(rc));
		strbuf_fini(&why);
		return rc;
	}
	*ret_obj = open;
	return 0;
}

bool cli_object_program(struct bpf_object *open, size_t index, const char **ret_name,
			const char **ret_type)
{
	struct bpf_program *prog;
	size_t i = 0;

	bpf_object__for_each_program(prog, open)
	{
		const char *type = libbpf_bpf_prog_type_str(bpf_program__type(prog));

		if (i++ != index)
			continue;
		*ret_name = bpf_program__name(prog);
		*ret_type = type ? type : "";
		return true;
	}
	return false;
}

void cli_verdict_fini(struct cli_verdict *v)
{
	strbuf_fini(&v->reason);
	strbuf_fini(&v->source);
}

static struct bpf_program *single_out(struct bpf_object *open, size_t index)
{
	struct bpf_program *prog, *chosen = NULL;
	struct bpf_map *map;
	size_t i = 0;

	bpf_object__for_each_program(prog, open)
	{
		bpf_program__set_autoload(prog, i == index);
		if (i++ == index)
			chosen = prog;
	}
	bpf_object__for_each_map(map, open) if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
		bpf_map__set_autocreate(map, false);
	if (chosen && bpf_program__type(chosen) == BPF_PROG_TYPE_UNSPEC)
		bpf_program__set_type(chosen, BPF_PROG_TYPE_SCHED_CLS);
	return chosen;
}

static void read_statistics(const char *log, struct cli_verdict *v)
{
	const char *p = strstr(log, "verification time ");
	unsigned long long us;

	if (p && sscanf(p, "verification time %llu usec", &us) == 1)
		v->time_us = us;
	for (p = log; (p = strstr(p, "processed ")); p++)
		sscanf(p, "processed %u insns (limit %*u) max_states_per_insn %*u total_states %u",
		       &v->insns, &v->states);
}

/* The last line that is no statistic, and the last source line before it. */
static void read_reason(const char *log, struct cli_verdict *v)
{
	const char *line = log;

	while (*line) {
		size_t len = strcspn(line, "\n");

		if (!strncmp(line, "; ", 2)) {
			strbuf_reset(&v->source);
			strbuf_add(&v->source, line + 2, len - 2);
		} else if (len && !is_statistic(line)) {
			strbuf_reset(&v->reason);
			strbuf_add(&v->reason, line, len);
		}
		line += len + (line[len] != 0);
	}
}

/* What libbpf said; where it could not create a map, also what kind of map that is. */
static void explain(struct bpf_object *open, const struct cli_engine *engine, struct strbuf *reason)
{
	struct bpf_map *map;

	cli_object_reason(reason);
	if (!open || !strstr(strbuf_str(reason), "failed to create"))
		return;
	bpf_object__for_each_map(map, open)
	{
		const char *type = libbpf_bpf_map_type_str(bpf_map__type(map));
		char quoted[64];

		snprintf(quoted, sizeof(quoted), "map '%s'", bpf_map__name(map));
		if (strncmp(strbuf_str(reason), quoted, strlen(quoted)))
			continue;
		if (engine->inlay && !map_type_ops(bpf_map__type(map)))
			strbuf_printf(reason, ": inlay has no maps of type %s (%d)",
				      type ? type : "unknown", bpf_map__type(map));
		else
			strbuf_printf(reason, " (type %s)", type ? type : "unknown");
		return;
	}
}

struct attempt {
	struct bpf_object *open;
	struct bpf_program *prog;
	int err;
};

static struct attempt try_load(const struct cli_object *obj, const struct cli_engine *engine,
			       size_t index, char *log, int level)
{
	struct attempt a = {};

	log[0] = 0;
	a.err = cli_object_open(obj, engine, &a.open, NULL);
	if (a.err)
		return a;
	a.prog = single_out(a.open, index);
	if (!a.prog) {
		a.err = -ENOENT;
		return a;
	}
	bpf_program__set_log_buf(a.prog, log, LOG_SIZE);
	bpf_program__set_log_level(a.prog, level);
	a.err = bpf_object__load(a.open);
	return a;
}

int cli_object_judge(const struct cli_object *obj, const struct cli_engine *engine, size_t index,
		     struct cli_verdict *ret, struct bpf_object **ret_open,
		     struct bpf_program **ret_prog)
{
	char *log = malloc(LOG_SIZE);
	struct attempt a;

	if (!log)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	/*
	 * Statistics only: the full log of a long program overflows any buffer, which would turn
	 * the verdict into ENOSPC.
	 */
	a = try_load(obj, engine, index, log, 4);
	ret->err = a.err;
	read_statistics(log, ret);
	if (a.err) {
		bpf_object__close(a.open);
		a = try_load(obj, engine, index, log, 4 | 1);
		if (a.err && log[0])
			read_reason(log, ret);
		if (!ret->reason.len)
			explain(a.open, engine, &ret->reason);
	}
	if (ret_open && !ret->err) {
		bpf_program__set_log_buf(a.prog, NULL, 0);
		*ret_open = a.open;
		*ret_prog = a.prog;
	} else {
		bpf_object__close(a.open);
	}
	free(log);
	return 0;
}
