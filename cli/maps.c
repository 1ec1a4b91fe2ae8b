// SPDX-License-Identifier: BSD-2-Clause
#include "maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "btf_data.h"
#include "json.h"

struct dump {
	struct cli_engine *engine;
	const struct btf *btf;
	struct bpf_map *map;
	bool json, per_cpu;
	u32 nr_cpus, nr;		       /* nr: entries printed */
	size_t key_size, value_size, buf_size; /* buf_size: of a value as bpf(2) gives it */
	u8 *value;
	int error;
};

static bool is_per_cpu(enum bpf_map_type type)
{
	return type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
	       type == BPF_MAP_TYPE_LRU_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE;
}

static void print_value(struct dump *d)
{
	u32 id = bpf_map__btf_value_type_id(d->map);
	size_t step = align_up(d->value_size, 8);

	if (!d->per_cpu) {
		btf_data_print(stdout, d->btf, id, d->value, d->value_size);
		return;
	}
	putchar('[');
	for (u32 i = 0; i < d->nr_cpus; i++) {
		if (i)
			putchar(',');
		btf_data_print(stdout, d->btf, id, d->value + i * step, d->value_size);
	}
	putchar(']');
}

static void entry_begin(struct dump *d)
{
	fputs(d->json ? (d->nr ? ",{\"key\":" : "{\"key\":") : "  ", stdout);
	d->nr++;
}

static void entry_value(struct dump *d)
{
	fputs(d->json ? ",\"value\":" : ": ", stdout);
	print_value(d);
	fputs(d->json ? "}" : "\n", stdout);
}

/* ---- maps with keys ---- */

static const struct dump *sorting; /* qsort has no context */

static int by_key(const void *a, const void *b)
{
	return btf_data_compare(sorting->btf, bpf_map__btf_key_type_id(sorting->map),
				sorting->key_size, a, b);
}

static int read_keys(struct dump *d, u8 **ret_keys, u32 *ret_nr)
{
	int fd = bpf_map__fd(d->map);
	u32 nr = 0, cap = 64;
	u8 *keys = malloc(cap * d->key_size);

	while (keys && !bpf_map_get_next_key(fd, nr ? keys + (nr - 1) * d->key_size : NULL,
					     keys + nr * d->key_size)) {
		if (++nr < cap)
			continue;
		cap *= 2;
		u8 *grown = realloc(keys, cap * d->key_size);

		if (!grown)
			free(keys);
		keys = grown;
	}
	if (!keys)
		return -ENOMEM;
	*ret_keys = keys;
	*ret_nr = nr;
	return errno == ENOENT ? 0 : -errno;
}

/* An array's entries that were never written are not worth a line each. */
static bool is_zero(const u8 *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i])
			return false;
	return true;
}

/* The maps behind global variables have no key type; their only key is 0. */
static void print_key(const struct dump *d, const u8 *key)
{
	u32 id = bpf_map__btf_key_type_id(d->map), number;

	if (id || d->key_size != sizeof(number)) {
		btf_data_print(stdout, d->btf, id, key, d->key_size);
		return;
	}
	memcpy(&number, key, sizeof(number));
	printf("%u", number);
}

static int dump_keys(struct dump *d)
{
	enum bpf_map_type type = bpf_map__type(d->map);
	bool array = type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY;
	u8 *keys;
	u32 nr;
	int rc = read_keys(d, &keys, &nr);

	if (rc)
		return rc;
	sorting = d;
	qsort(keys, nr, d->key_size, by_key);
	for (u32 i = 0; i < nr; i++) {
		const u8 *key = keys + i * d->key_size;

		if (bpf_map_lookup_elem(bpf_map__fd(d->map), key, d->value))
			continue;
		if (array && nr > 1 && is_zero(d->value, d->buf_size))
			continue;
		entry_begin(d);
		print_key(d, key);
		entry_value(d);
	}
	free(keys);
	return 0;
}

/* ---- task storage: asked task by task ---- */

static int dump_task(const struct cli_task *task, void *ctx)
{
	struct dump *d = ctx;
	int fd = cli_engine_pidfd(d->engine, task->tid), rc;

	if (fd < 0)
		return 0;
	rc = bpf_map_lookup_elem(bpf_map__fd(d->map), &fd, d->value);
	close(fd);
	if (rc)
		return 0;
	entry_begin(d);
	if (d->json) {
		printf("{\"tid\":%d,\"comm\":", task->tid);
		cli_json_str(stdout, task->comm);
		putchar('}');
	} else {
		cli_json_str(stdout, task->comm);
		printf("/%d", task->tid);
	}
	entry_value(d);
	return 0;
}

static int dump_map(struct dump *d)
{
	enum bpf_map_type type = bpf_map__type(d->map);
	const char *word = libbpf_bpf_map_type_str(type), *why = NULL;
	int rc = 0;

	d->key_size = bpf_map__key_size(d->map);
	d->value_size = bpf_map__value_size(d->map);
	d->per_cpu = is_per_cpu(type);
	d->buf_size = d->per_cpu ? align_up(d->value_size, 8) * d->nr_cpus : d->value_size;
	d->nr = 0;
	free(d->value);
	d->value = calloc(1, d->buf_size + 1);
	if (!d->value)
		return -ENOMEM;
	if (type == BPF_MAP_TYPE_RINGBUF || type == BPF_MAP_TYPE_PERF_EVENT_ARRAY || !d->value_size)
		why = "not readable by key";
	if (d->json)
		printf("{\"map\":\"%s\",\"type\":\"%s\",\"entries\":[", bpf_map__name(d->map),
		       word ? word : "?");
	else
		printf("map %s (%s)%s%s\n", bpf_map__name(d->map), word ? word : "?",
		       why ? ": " : "", why ? why : "");
	if (!why && type == BPF_MAP_TYPE_TASK_STORAGE)
		rc = cli_engine_each_task(d->engine, dump_task, d);
	else if (!why)
		rc = dump_keys(d);
	if (d->json)
		puts("]}");
	else if (!why && !d->nr && !rc)
		puts("  (empty)");
	return rc;
}

int cli_maps_dump(struct cli_engine *engine, struct bpf_object *obj, bool json)
{
	struct dump d = { .engine = engine, .btf = bpf_object__btf(obj), .json = json };
	int cpus = libbpf_num_possible_cpus(), rc = cpus < 0 ? cpus : 0;

	d.nr_cpus = rc ? 0 : cpus;
	bpf_object__for_each_map(d.map, obj)
	{
		if (rc)
			break;
		if (bpf_map__fd(d.map) >= 0 && !strstr(bpf_map__name(d.map), ".rodata"))
			rc = dump_map(&d);
	}
	free(d.value);
	return rc;
}
