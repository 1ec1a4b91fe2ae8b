// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mutants are made by one to eight small steps on a copy of a seed file. The steps are those that
 * break parsers of binary formats: interesting numbers at aligned places, swapped or cut pieces,
 * bits, and pieces of another seed.
 */
#include "mutate.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct seed_file {
	char *path;
	u8 *data;
	size_t size;
};

struct driver {
	struct seed_file *files;
	size_t nr_files, cap_files;
	u64 iterations, seed, only;
	size_t max_size;
	unsigned int timeout;
	const char *keep;
	bool quiet, have_only;
};

/* Undefined behaviour ends the run, as a memory error does, whatever the environment says. */
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
	return "halt_on_error=1:print_stacktrace=1";
}

static u64 rng_state;
static volatile u64 current_input;
static u64 current_seed;

/* splitmix64: every 64-bit state is a good one, so state = f(seed, number) needs no warm-up. */
static u64 next_random(void)
{
	u64 z = (rng_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

u64 mutate_random(void)
{
	return next_random();
}

static size_t below(size_t n)
{
	return n ? next_random() % n : 0;
}

static size_t put_number(char *to, u64 v)
{
	char tmp[20];
	size_t n = 0, i;

	do {
		tmp[n++] = '0' + v % 10;
		v /= 10;
	} while (v);
	for (i = 0; i < n; i++)
		to[i] = tmp[n - 1 - i];
	return n;
}

/* Async-signal-safe. */
static void say_where(const char *what)
{
	char line[160] = "mutate: ";
	size_t n = strlen(line);
	ssize_t rc;

	memcpy(line + n, what, strlen(what));
	n += strlen(what);
	memcpy(line + n, " at input ", 10);
	n += 10;
	n += put_number(line + n, current_input);
	memcpy(line + n, ", seed ", 7);
	n += 7;
	n += put_number(line + n, current_seed);
	line[n++] = '\n';
	rc = write(2, line, n);
	(void)rc;
}

static void on_fatal(int sig)
{
	say_where(sig == SIGALRM ? "too slow" : "fatal signal");
	if (sig == SIGALRM)
		_exit(1);
	signal(sig, SIG_DFL);
	raise(sig);
}

#if defined(__SANITIZE_ADDRESS__)
void __asan_on_error(void);
void __asan_on_error(void)
{
	say_where("sanitizer report");
}
#endif

static int add_file(struct driver *d, const char *path)
{
	struct seed_file *f;
	FILE *in = fopen(path, "rb");
	struct stat st;
	int err = 0;

	if (!in)
		return -errno;
	if (d->nr_files == d->cap_files) {
		size_t cap = d->cap_files ? 2 * d->cap_files : 16;

		f = realloc(d->files, cap * sizeof(*f));
		if (!f)
			goto err_close;
		d->files = f;
		d->cap_files = cap;
	}
	f = &d->files[d->nr_files];
	if (fstat(fileno(in), &st))
		goto err_close;
	f->size = st.st_size;
	f->data = malloc(f->size + 1);
	f->path = strdup(path);
	if (!f->data || !f->path)
		goto err_free;
	f->size = fread(f->data, 1, f->size, in);
	d->nr_files++;
	fclose(in);
	return 0;

err_free:
	free(f->data);
	free(f->path);
err_close:
	err = errno ? -errno : -ENOMEM;
	fclose(in);
	return err;
}

static int no_dots(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* A folder's files in the order of their names, so that a run can be repeated elsewhere. */
static int add_path(struct driver *d, const char *path)
{
	struct dirent **names;
	struct stat st;
	char *full;
	int n, i, err = 0;

	if (stat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return add_file(d, path);
	n = scandir(path, &names, no_dots, alphasort);
	if (n < 0)
		return -errno;
	for (i = 0; i < n; i++) {
		if (!err && asprintf(&full, "%s/%s", path, names[i]->d_name) < 0)
			err = -ENOMEM;
		if (!err) {
			err = add_path(d, full);
			free(full);
		}
		free(names[i]);
	}
	free(names);
	return err;
}

static const u64 odd_numbers[] = {
	0,
	1,
	2,
	3,
	4,
	7,
	8,
	15,
	16,
	31,
	32,
	63,
	64,
	127,
	128,
	255,
	256,
	4095,
	4096,
	0x7fff,
	0x8000,
	0xffff,
	0x10000,
	0x7fffffff,
	0x80000000,
	0xfffffff0,
	0xffffffff,
	0x100000000ULL,
	0x7fffffffffffffffULL,
	0x8000000000000000ULL,
	0xfffffffffffffff0ULL,
	0xffffffffffffffffULL,
};

/* Where a step writes: half of them in the first 64 bytes, where headers are, or near the end,
 * where tables are. */
static size_t pick_place(size_t size)
{
	switch (below(8)) {
	case 0:
	case 1:
		return below(min_of(size, (size_t)64));
	case 2:
		return size - 1 - below(min_of(size, (size_t)256));
	default:
		return below(size);
	}
}

static void put_odd_number(u8 *data, size_t size)
{
	size_t width = (size_t)1 << below(4), at = pick_place(size);
	u64 v = odd_numbers[below(ARRAY_SIZE(odd_numbers))];
	size_t i;

	if (next_random() & 1)
		at &= ~(width - 1);
	if (below(4) == 0)
		v = next_random();
	for (i = 0; i < width && at + i < size; i++)
		data[at + i] = v >> (8 * i);
}

static void add_to_number(u8 *data, size_t size)
{
	size_t width = (size_t)1 << below(4), at = pick_place(size);
	u64 v = 0;
	size_t i;

	at &= ~(width - 1);
	for (i = 0; i < width && at + i < size; i++)
		v |= (u64)data[at + i] << (8 * i);
	v += (next_random() & 1) ? 1 + below(16) : -(u64)(1 + below(16));
	for (i = 0; i < width && at + i < size; i++)
		data[at + i] = v >> (8 * i);
}

/* Copies a piece of one buffer over another; both stay as long as they are. */
static void copy_piece(u8 *to, size_t to_size, const u8 *from, size_t from_size)
{
	size_t n, at, src;

	if (!to_size || !from_size)
		return;
	at = below(to_size);
	src = below(from_size);
	n = 1 + below(min_of((size_t)64, min_of(to_size - at, from_size - src)));
	memmove(to + at, from + src, n);
}

static size_t insert_piece(u8 *data, size_t size, size_t max)
{
	size_t n = 1 + below(64), at = below(size + 1), i;

	if (n > max || size > max - n || at > size ||
	    max > SIZE_MAX / 2) /* the last two for gcc 12 */
		return size;
	memmove(data + at + n, data + at, size - at);
	if (at >= n && (next_random() & 1)) {
		memmove(data + at, data + at - n, n);
		return size + n;
	}
	for (i = 0; i < n; i++)
		data[at + i] = below(4) ? 0 : next_random();
	return size + n;
}

static size_t cut_piece(u8 *data, size_t size)
{
	size_t at = below(size), n = 1 + below(min_of((size_t)64, size - at));

	memmove(data + at, data + at + n, size - at - n);
	return size - n;
}

/*
 * Lines are the fields of text formats: doubling, dropping or swapping one keeps the rest parsable.
 */
static size_t mutate_line(u8 *data, size_t size, size_t max)
{
	size_t at = below(size), end, n;

	while (at && data[at - 1] != '\n')
		at--;
	for (end = at; end < size && data[end] != '\n'; end++)
		;
	if (end < size)
		end++;
	n = end - at;
	if (n > 4096)
		return size;
	if ((next_random() & 1) && size + n <= max) {
		memmove(data + end + n, data + end, size - end);
		memcpy(data + end, data + at, n);
		return size + n;
	}
	memmove(data + at, data + end, size - end);
	return size - n;
}

static size_t mutate_once(const struct driver *d, u8 *data, size_t size, size_t max)
{
	const struct seed_file *other;
	size_t at;

	if (!size)
		return insert_piece(data, size, max);
	switch (below(12)) {
	case 0:
	case 1:
		data[pick_place(size)] ^= 1u << below(8);
		return size;
	case 2:
	case 3:
	case 4:
		put_odd_number(data, size);
		return size;
	case 5:
	case 6:
		add_to_number(data, size);
		return size;
	case 7:
		copy_piece(data, size, data, size);
		return size;
	case 8:
		other = &d->files[below(d->nr_files)];
		copy_piece(data, size, other->data, other->size);
		return size;
	case 9:
		return below(2) ? insert_piece(data, size, max) : cut_piece(data, size);
	case 10:
		return mutate_line(data, size, max);
	default:
		at = below(size);
		if (below(2))
			return at; /* truncated */
		data[at] = next_random();
		return size;
	}
}

static void run_input(const struct driver *d, void (*one)(const u8 *, size_t), const u8 *data,
		      size_t size)
{
	u8 *exact = malloc(size ? size : 1);
	FILE *out;

	if (!exact)
		return;
	memcpy(exact, data, size);
	if (d->keep) {
		out = fopen(d->keep, "wb");
		if (out) {
			fwrite(exact, 1, size, out);
			fclose(out);
		}
	}
	alarm(d->timeout);
	one(exact, size);
	alarm(0);
	free(exact);
}

/* An input's luck depends on its number and the seed only, so that --only repeats it alone. */
static void start_input(const struct driver *d, u64 number)
{
	current_input = number;
	rng_state = (d->seed * 0x2545f4914f6cdd1dULL) ^ (number * 0xd1342543de82ef95ULL);
	next_random();
}

static void run_mutant(const struct driver *d, void (*one)(const u8 *, size_t), u64 number,
		       u8 *work)
{
	const struct seed_file *f;
	size_t size, steps;

	start_input(d, number);
	f = &d->files[below(d->nr_files)];
	size = min_of(f->size, d->max_size);
	memcpy(work, f->data, size);
	for (steps = 1 + below(1 + below(8)); steps; steps--)
		size = mutate_once(d, work, size, d->max_size);
	run_input(d, one, work, size);
}

static int usage(const char *name)
{
	fprintf(stderr,
		"usage: %s [--iterations N] [--seed S] [--max-size BYTES] [--timeout S]\n"
		"       [--only K] [--keep FILE] [-q] FILE|FOLDER...\n",
		name);
	return 2;
}

static int parse_options(struct driver *d, int argc, char **argv)
{
	static const struct option options[] = {
		{"iterations", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 's'},
		{"max-size", required_argument, NULL, 'm'},
		{"timeout", required_argument, NULL, 't'},
		{"only", required_argument, NULL, 'o'},
		{"keep", required_argument, NULL, 'k'},
		{"quiet", no_argument, NULL, 'q'},
		{},
	};
	int c, err;

	while ((c = getopt_long(argc, argv, "n:s:m:t:o:k:q", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			d->iterations = strtoull(optarg, NULL, 0);
			break;
		case 's':
			d->seed = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			d->max_size = strtoull(optarg, NULL, 0);
			break;
		case 't':
			d->timeout = strtoul(optarg, NULL, 0);
			break;
		case 'o':
			d->only = strtoull(optarg, NULL, 0);
			d->have_only = true;
			break;
		case 'k':
			d->keep = optarg;
			break;
		case 'q':
			d->quiet = true;
			break;
		default:
			return usage(argv[0]);
		}
	}
	for (; optind < argc; optind++) {
		err = add_path(d, argv[optind]);
		if (err) {
			fprintf(stderr, "%s: %s\n", argv[optind], strerror(-err));
			return 2;
		}
	}
	return 0;
}

static void run_all(struct driver *d, void (*one)(const u8 *, size_t), u8 *work)
{
	u64 i;

	if (d->have_only && d->only < d->nr_files) {
		start_input(d, d->only);
		run_input(d, one, d->files[d->only].data, d->files[d->only].size);
		return;
	}
	if (d->have_only) {
		run_mutant(d, one, d->only, work);
		return;
	}
	for (i = 0; i < d->nr_files; i++) {
		start_input(d, i);
		run_input(d, one, d->files[i].data, d->files[i].size);
	}
	for (i = 0; i < d->iterations; i++)
		run_mutant(d, one, d->nr_files + i, work);
}

int mutate_main(int argc, char **argv, void (*one)(const u8 *data, size_t size))
{
	static const int fatal[] = {SIGALRM, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	struct driver d = {.iterations = 1000, .seed = 1, .max_size = 1 << 20, .timeout = 10};
	size_t i;
	u8 *work = NULL;
	int err = parse_options(&d, argc, argv);

	if (err)
		goto out;
	err = 1;
	if (!d.nr_files) {
		d.files = calloc(1, sizeof(*d.files));
		if (!d.files)
			goto out;
		d.nr_files = 1;
	}
	for (i = 0; i < d.nr_files; i++)
		d.max_size = max_of(d.max_size, d.files[i].size);
	work = malloc(d.max_size + 1);
	if (!work)
		goto out;
	current_seed = d.seed;
	/*
	 * A sanitizer brings handlers of its own that say more; it calls __asan_on_error() first.
	 */
	for (i = 0; i < ARRAY_SIZE(fatal); i++) {
#if defined(__SANITIZE_ADDRESS__)
		if (fatal[i] != SIGALRM && fatal[i] != SIGABRT)
			continue;
#endif
		signal(fatal[i], on_fatal);
	}
	run_all(&d, one, work);
	if (!d.quiet)
		printf("%llu inputs, seed %llu: no crash, no hang\n",
		       (unsigned long long)(d.have_only ? 1 : d.nr_files + d.iterations),
		       (unsigned long long)d.seed);
	err = 0;
out:
	for (i = 0; i < d.nr_files; i++) {
		free(d.files[i].path);
		free(d.files[i].data);
	}
	free(d.files);
	free(work);
	return err;
}
