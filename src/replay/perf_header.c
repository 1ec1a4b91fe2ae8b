// SPDX-License-Identifier: BSD-2-Clause
/* What stands around the records of a perf.data file: header, attributes, feature sections. */
#include <errno.h>
#include <stdlib.h>

#include "replay/meta.h"
#include "replay/perf_int.h"
#include "replay/tep.h"

#define FILE_HEADER 104
#define PIPE_HEADER 16
#define ATTR_MIN    64 /* PERF_ATTR_SIZE_VER0 */

static int add_id(struct perf *pf, u64 id, u32 attr)
{
	u64 i;

	if (!id)
		return 0;
	if (pf->nr_ids * 2 >= pf->id_cap) {
		u32 cap = pf->id_cap ? pf->id_cap * 2 : 256, old = pf->id_cap, j;
		u64 *keys = calloc(cap, sizeof(*keys)), *old_keys = pf->id_keys;
		u32 *vals = calloc(cap, sizeof(*vals)), *old_vals = pf->id_vals;
		int err = 0;

		if (!keys || !vals) {
			free(keys);
			free(vals);
			return -ENOMEM;
		}
		pf->id_keys = keys;
		pf->id_vals = vals;
		pf->id_cap = cap;
		pf->nr_ids = 0;
		for (j = 0; j < old && !err; j++)
			err = add_id(pf, old_keys[j], old_vals[j]);
		free(old_keys);
		free(old_vals);
	}
	for (i = (id * 0x9e3779b97f4a7c15ULL) >> 32;; i++) {
		i &= pf->id_cap - 1;
		if (pf->id_keys[i] == id)
			return 0;
		if (!pf->id_keys[i])
			break;
	}
	pf->id_keys[i] = id;
	pf->id_vals[i] = attr;
	pf->nr_ids++;
	return 0;
}

static const char *clock_name(u32 id)
{
	static const char *const names[] = {"realtime",	   "mono",     "process",
					    "thread",	   "mono_raw", "realtime_coarse",
					    "mono_coarse", "boot"};

	return id < ARRAY_SIZE(names) ? names[id] : id == 11 ? "tai" : NULL;
}

int perf_add_attr(struct recording *rec, struct perf *pf, const u8 *p, u64 attr_size, const u8 *ids,
		  u64 nr_ids)
{
	struct perf_event_attr attr = {};
	struct perf_layout *l;
	const char *clock;
	u64 i;

	if (pf->nr_attrs == PERF_MAX_ATTRS || nr_ids > PERF_MAX_IDS - pf->nr_ids)
		return rec_fail(rec, EINVAL, "damaged: more than %u events in its header",
				PERF_MAX_ATTRS);
	memcpy(&attr, p, min_of(attr_size, (u64)sizeof(attr)));
	l = reallocarray(pf->attrs, pf->nr_attrs + 1, sizeof(*l));
	if (!l)
		return rec_fail(rec, ENOMEM, "out of memory");
	pf->attrs = l;
	perf_layout_init(&l[pf->nr_attrs], &attr);
	for (i = 0; i < nr_ids; i++)
		if (add_id(pf, perf_u64(ids + 8 * i), pf->nr_attrs))
			return rec_fail(rec, ENOMEM, "out of memory");
	pf->nr_attrs++;
	clock = attr.use_clockid ? clock_name(attr.clockid) : "perf";
	if (clock && !rec->clock)
		rec->clock = strdup(clock);
	return 0;
}

static bool same_layout(const struct perf_layout *a, const struct perf_layout *b)
{
	return a->type == b->type && a->read_format == b->read_format &&
	       a->tail_size == b->tail_size && a->branch_type == b->branch_type &&
	       a->regs_user == b->regs_user && a->regs_intr == b->regs_intr &&
	       a->is_tracepoint == b->is_tracepoint;
}

/* Refuses a tracepoint event that was recorded without what a replay cannot do without. */
static int check_sample_type(struct recording *rec, const struct perf_layout *l)
{
	const char *what = NULL, *how = NULL;

	if (!(l->type & PERF_SAMPLE_TIME))
		what = "times", how = "-T";
	else if (!(l->type & PERF_SAMPLE_CPU))
		what = "CPU numbers", how = "-a or --sample-cpu";
	else if (!(l->type & PERF_SAMPLE_RAW))
		what = "tracepoint fields", how = "-R";
	if (!what)
		return 0;
	return rec_fail(rec, ENODATA,
			"its scheduler events have no %s; record again with `perf record %s`", what,
			how);
}

static bool is_ours(const struct perf *pf, const struct perf_layout *l)
{
	return l->is_tracepoint && pf->have_formats &&
	       rec_type_of_id(&pf->formats, l->config) != REC_OTHER;
}

int perf_settle_attrs(struct recording *rec, struct perf *pf)
{
	struct rec_format *fmt;
	enum rec_event_type type;
	bool same_ids = true;
	int err;
	u32 i;

	memset(pf->recent, 0, sizeof(pf->recent));
	pf->one_layout = true;
	for (i = 0; i < pf->nr_attrs; i++) {
		const struct perf_layout *l = &pf->attrs[i];

		pf->one_layout &= same_layout(&pf->attrs[0], l);
		same_ids &= l->id == pf->attrs[0].id && l->tail_id == pf->attrs[0].tail_id;
		if (l->type & PERF_SAMPLE_CGROUP)
			rec->info.cgroups_known = true;
		if (!is_ours(pf, l))
			continue;
		type = rec_type_of_id(&pf->formats, l->config);
		fmt = &pf->formats.f[type];
		err = check_sample_type(rec, l);
		if (!err)
			err = rec_format_check(rec, fmt, type);
		if (err)
			return err;
		rec->info.recorded[type] = true;
	}
	pf->id_offset = pf->nr_attrs ? pf->attrs[0].id : -1;
	if (!pf->one_layout && (!same_ids || pf->id_offset < 0))
		return rec_fail(
			rec, EPROTONOSUPPORT,
			"its events were recorded with different sample types and without ids; "
			"record "
			"the scheduler events alone, or give the text of `perf script --ns`");
	return 0;
}

int perf_take_formats(struct recording *rec, struct perf *pf, const u8 *p, u64 n, u64 off)
{
	struct rec_meta m;
	int err = rec_meta_parse_perf(rec, &m, p, n, off);

	if (!err && m.big_endian)
		err = rec_fail(rec, EPROTONOSUPPORT,
			       "its tracepoints are big-endian; give the text of "
			       "`perf script --ns` instead");
	if (!err)
		err = rec_tep_parse_in_child(rec, "its tracing data", m.text, &pf->formats);
	if (!err)
		pf->have_formats = true;
	rec_meta_fini(&m);
	return err;
}

/* perf writes a string as u32 length and padded bytes. */
void perf_take_host(struct recording *rec, u32 feature, const u8 *p, u64 n)
{
	struct strbuf b = STRBUF_INIT;
	u32 len;

	if ((feature != PERF_FEAT_HOSTNAME && feature != PERF_FEAT_OSRELEASE) || n < 4)
		return;
	len = strnlen((const char *)p + 4, min_of((u64)perf_u32(p), n - 4));
	if (rec->host)
		strbuf_printf(&b, "%s ", rec->host);
	strbuf_add(&b, (const char *)p + 4, min_of(len, 128u));
	if (strbuf_failed(&b)) {
		strbuf_fini(&b);
		return;
	}
	free(rec->host);
	rec->host = b.s;
}

static int section_outside(struct recording *rec, const char *what, u64 off, u64 size)
{
	u64 have = rec->in.size;

	if (off <= have && size <= have - off)
		return 0;
	return rec_fail(
		rec, EINVAL,
		"truncated: %s should be %llu bytes at offset %llu, but the file has only %llu "
		"(%llu missing); copy or record it again",
		what, (unsigned long long)size, (unsigned long long)off, (unsigned long long)have,
		(unsigned long long)(off > have ? size : size - (have - off)));
}

static int read_attrs(struct recording *rec, struct perf *pf, u64 off, u64 size, u64 each)
{
	const u8 *map = rec->in.map;
	u64 i, ids, ids_size;
	int err;

	if (each < ATTR_MIN + 16 || size % each)
		return rec_fail(rec, EINVAL, "damaged: event attributes of %llu bytes, %llu in all",
				(unsigned long long)each, (unsigned long long)size);
	for (i = 0; i < size / each; i++) {
		const u8 *p = map + off + i * each;

		ids = perf_u64(p + each - 16);
		ids_size = perf_u64(p + each - 8);
		err = section_outside(rec, "a table of event ids", ids, ids_size);
		if (!err)
			err = perf_add_attr(rec, pf, p, each - 16, map + ids, ids_size / 8);
		if (err)
			return err;
	}
	return 0;
}

static int read_features(struct recording *rec, struct perf *pf, const u8 *bits)
{
	u64 table = pf->end, off, size;
	u32 bit, nr = 0;
	int err;

	for (bit = 0; bit < PERF_FEAT_BITS; bit++) {
		if (!(bits[bit / 8] & 1 << bit % 8))
			continue;
		err = section_outside(rec, "the table of its features", table, 16ULL * ++nr);
		if (err)
			return err;
		off = perf_u64(rec->in.map + table + 16 * (nr - 1));
		size = perf_u64(rec->in.map + table + 16 * (nr - 1) + 8);
		if (bit != PERF_FEAT_TRACING_DATA && bit != PERF_FEAT_HOSTNAME &&
		    bit != PERF_FEAT_OSRELEASE)
			continue;
		err = section_outside(rec, "a feature section", off, size);
		if (!err && bit == PERF_FEAT_TRACING_DATA)
			err = perf_take_formats(rec, pf, rec->in.map + off, size, off);
		if (err)
			return err;
		perf_take_host(rec, bit, rec->in.map + off, size);
	}
	return 0;
}

int perf_read_header(struct recording *rec, struct perf *pf)
{
	static const u8 no_features[PERF_FEAT_BITS / 8];
	const u8 *map = rec->in.map;
	u64 hdr_size = rec->in.size >= 16 ? perf_u64(map + 8) : 0;
	u64 data_size;
	int err;

	pf->map = map;
	if (hdr_size == PIPE_HEADER) {
		pf->is_pipe = true;
		pf->begin = PIPE_HEADER;
		pf->end = rec->in.size;
		return 0;
	}
	if (rec->in.size < FILE_HEADER || hdr_size < FILE_HEADER || hdr_size > rec->in.size)
		return rec_fail(
			rec, EINVAL,
			"damaged or truncated: a perf.data header of %llu bytes in a file of %llu",
			(unsigned long long)hdr_size, (unsigned long long)rec->in.size);
	pf->begin = perf_u64(map + 40);
	data_size = perf_u64(map + 48);
	if (!data_size && pf->begin < rec->in.size &&
	    !memcmp(map + 72, no_features, sizeof(no_features)))
		return rec_fail(rec, EINVAL,
				"unfinished: the header says no data, yet %llu bytes follow; `perf "
				"record` did not "
				"end properly, and the event formats it writes last are missing; "
				"record again",
				(unsigned long long)(rec->in.size - pf->begin));
	err = section_outside(rec, "the data section", pf->begin, data_size);
	if (err)
		return err;
	pf->end = pf->begin + data_size;
	err = section_outside(rec, "the table of event attributes", perf_u64(map + 24),
			      perf_u64(map + 32));
	if (!err)
		err = read_attrs(rec, pf, perf_u64(map + 24), perf_u64(map + 32),
				 perf_u64(map + 16));
	if (!err)
		err = read_features(rec, pf, map + 72);
	if (!err)
		err = perf_settle_attrs(rec, pf);
	return err;
}
