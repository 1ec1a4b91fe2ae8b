// SPDX-License-Identifier: BSD-2-Clause
/* The kernel engine and the user engine behind one small interface. */
#include "engine.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "cgroup.h"
#include "cli.h"
#include "env/env.h"
#include "inlay/inlay.h"
#include "object/instance.h"
#include "object/prog.h"
#include "world/shim.h"

/* ---- what libbpf says ---- */

static struct strbuf libbpf_text;
static bool libbpf_verbose;

/* libbpf's lines start with its name and one prefix or the other, which says nothing to a user. */
static int on_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
	struct strbuf line = STRBUF_INIT;
	const char *text;

	if (level == LIBBPF_DEBUG && !libbpf_verbose)
		return 0;
	strbuf_vprintf(&line, fmt, args);
	text = strbuf_str(&line);
	if (!strncmp(text, "libbpf: ", 8))
		text += 8;
	if (libbpf_verbose)
		fprintf(stderr, "libbpf: %s", text);
	else if (level == LIBBPF_WARN && libbpf_text.len < 65536)
		strbuf_puts(&libbpf_text, text);
	strbuf_fini(&line);
	return 0;
}

void cli_libbpf_log(bool verbose)
{
	libbpf_verbose = verbose;
	libbpf_set_print(on_libbpf);
}

const char *cli_libbpf_text(void)
{
	return strbuf_str(&libbpf_text);
}

void cli_libbpf_log_reset(void)
{
	strbuf_reset(&libbpf_text);
}

/* ---- engines ---- */

/* What the engine has to say: its warnings join libbpf's. */
static void on_engine_log(void *ctx, enum inlay_log_level level, const char *text)
{
	if (libbpf_verbose)
		fprintf(stderr, "inlay: %s\n", text);
	else if (level <= INLAY_LOG_WARN && libbpf_text.len < 65536)
		strbuf_printf(&libbpf_text, "%s\n", text);
}

/* Raw BTF as it is, else what libbpf finds in the file's .BTF section. Copied to e->btf. */
static int read_btf(struct cli_engine *e, const char *path)
{
	struct btf *btf = btf__parse(path, NULL);
	const void *data;
	u32 size;

	if (!btf)
		return cli_fail("--btf %s: %s: give raw BTF or an ELF file with a .BTF section, such as "
				"/sys/kernel/btf/vmlinux",
				path, errno == ENOENT && !access(path, F_OK) ? "no BTF in it"
				      : errno == EIO || errno == EINVAL || errno >= 4000 ? "this is no BTF"
											  : strerror(errno));
	data = btf__raw_data(btf, &size);
	e->btf = data ? malloc(size) : NULL;
	if (e->btf) {
		memcpy(e->btf, data, size);
		e->btf_size = size;
	}
	btf__free(btf);
	return e->btf ? CLI_OK : cli_fail("out of memory");
}

static int create_user(struct cli_engine *e, const struct cli_globals *g,
		       const struct cli_engine_opts *opts)
{
	struct inlay_opts o = {
		.size = sizeof(o),
		.nr_cpus = opts ? opts->nr_cpus : 0,
		.clock = opts && opts->manual_clock ? INLAY_CLOCK_MANUAL : INLAY_CLOCK_REAL,
		.seed = g->seed,
		.log = on_engine_log,
		.printk = opts ? opts->printk : NULL,
		.printk_ctx = opts ? opts->printk_ctx : NULL,
		.interp = g->interp,
	};
	int err = e->btf_path ? read_btf(e, e->btf_path) : 0;

	if (err)
		return err;
	o.btf = e->btf;
	o.btf_size = e->btf_size;
	err = inlay_create(&o, &e->inlay);
	if (err)
		return cli_fail("cannot make an engine: %s\n%s", cli_strerror(err), cli_libbpf_text());
	e->inlay->inline_off = g->inline_off;
	e->inlay->storage_impl = g->storage_impl;
	return CLI_OK;
}

int cli_engine_create(const struct cli_globals *g, const char *def,
		      const struct cli_engine_opts *opts, struct cli_engine **ret_engine)
{
	struct cli_engine *e = calloc(1, sizeof(*e));
	int status = CLI_OK;

	if (!e)
		return cli_fail("out of memory");
	e->name = g->engine ? g->engine : def;
	e->btf_path = opts && opts->btf ? opts->btf : g->nr_btf ? g->btf[0] : NULL;
	cli_libbpf_log(g->verbose);
	if (!strcmp(e->name, "user"))
		status = create_user(e, g, opts);
	if (status)
		cli_engine_destroy(e);
	else
		*ret_engine = e;
	return status;
}

void cli_engine_destroy(struct cli_engine *engine)
{
	if (!engine)
		return;
	inlay_destroy(engine->inlay);
	free(engine->btf);
	strbuf_fini(&libbpf_text);
	memset(&libbpf_text, 0, sizeof(libbpf_text));
	free(engine);
}

void cli_engine_enter(struct cli_engine *engine)
{
	shim_enter(engine->inlay);
}

void cli_engine_leave(struct cli_engine *engine)
{
	shim_leave();
}

/* ---- tasks of the running kernel ---- */

static s32 number_of(const char *name)
{
	return isdigit((unsigned char)name[0]) ? atoi(name) : -1;
}

/*
 * /proc/…/stat: "tid (comm) state …", processor is the 39th field. The comm may hold anything, so
 * the last ')' counts.
 */
static int read_stat(int dir, const char *tid_name, struct cli_task *task)
{
	char path[300], text[1024], *open, *close_, *field, state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/stat", tid_name);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	text[n] = 0;
	open = strchr(text, '(');
	close_ = strrchr(text, ')');
	if (!open || !close_ || close_ < open || sscanf(close_ + 1, " %c", &state) != 1)
		return -ESRCH;
	*close_ = 0;
	snprintf(task->comm, sizeof(task->comm), "%s", open + 1);
	task->runnable = state == 'R';
	task->cgroup_id = 0;
	task->cpu = -1;
	field = close_ + 2;
	for (int i = 3; i < 39 && field; i++) {
		field = strchr(field, ' ');
		field += field != NULL;
	}
	if (field)
		task->cpu = atoi(field);
	return 0;
}

static int each_thread(int proc, const char *tgid_name,
		       int (*fn)(const struct cli_task *task, void *ctx), void *ctx)
{
	char path[300];
	struct dirent *ent;
	int rc = 0, fd;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/task", tgid_name);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!rc && (ent = readdir(dir))) {
		struct cli_task task = { .tid = number_of(ent->d_name),
					 .tgid = number_of(tgid_name) };

		if (task.tid > 0 && !read_stat(fd, ent->d_name, &task))
			rc = fn(&task, ctx);
	}
	closedir(dir);
	return rc;
}

static int each_kernel_task(int (*fn)(const struct cli_task *task, void *ctx), void *ctx)
{
	DIR *proc = opendir("/proc");
	struct dirent *ent;
	int rc = 0;

	if (!proc)
		return -errno;
	while (!rc && (ent = readdir(proc)))
		if (number_of(ent->d_name) > 0)
			rc = each_thread(dirfd(proc), ent->d_name, fn, ctx);
	closedir(proc);
	return rc;
}

struct each_user {
	int (*fn)(const struct cli_task *task, void *ctx);
	void *ctx;
};

static int one_user_task(struct env_task *t, void *ctx)
{
	struct each_user *each = ctx;
	struct cli_task task = {
		.tid = t->tid,
		.tgid = t->tgid,
		.cpu = t->cpu,
		.cgroup_id = env_task_cgroup(t),
		.runnable = true,
	};

	snprintf(task.comm, sizeof(task.comm), "%s", env_task_comm(t));
	return each->fn(&task, each->ctx);
}

int cli_engine_each_task(struct cli_engine *engine,
			 int (*fn)(const struct cli_task *task, void *ctx), void *ctx)
{
	struct each_user each = { fn, ctx };

	if (!engine->inlay)
		return each_kernel_task(fn, ctx);
	return env_for_each_task(engine->inlay->env, one_user_task, &each);
}

/*
 * PIDFD_THREAD is O_EXCL (Linux 6.9); older kernels have descriptors of thread group leaders only.
 */
int cli_engine_pidfd(struct cli_engine *engine, s32 tid)
{
	int fd;

	if (engine->inlay)
		return inlay_pidfd_open(engine->inlay, tid, 0);
	fd = syscall(SYS_pidfd_open, tid, O_EXCL);
	if (fd >= 0 || errno != EINVAL)
		return fd < 0 ? -errno : fd;
	fd = syscall(SYS_pidfd_open, tid, 0);
	if (fd >= 0 || errno != EINVAL)
		return fd < 0 ? -errno : fd;
	engine->threads_hidden = true;
	return -ESRCH;
}

int cli_engine_run_quantiles(struct cli_engine *engine, int prog_fd, u64 *ret_p50, u64 *ret_p99)
{
	struct prog_stats *sum;
	struct obj *obj;
	int err;

	if (!engine->inlay)
		return -EOPNOTSUPP;
	err = engine->inlay->fds->get(engine->inlay, prog_fd, &obj);
	if (err)
		return err;
	sum = obj->kind == OBJ_PROG ? malloc(sizeof(*sum)) : NULL;
	if (sum) {
		prog_stats_sum(prog_of(obj), sum);
		*ret_p50 = prog_stats_quantile(sum, 0.5);
		*ret_p99 = prog_stats_quantile(sum, 0.99);
	}
	free(sum);
	obj_put(obj);
	return sum ? 0 : -EINVAL;
}

/* "0::/path" of /proc/TID/cgroup names the directory whose inode number is the id. */
static u64 kernel_cgroup(s32 tid)
{
	char path[64], line[4096];
	u64 id = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", tid);
	f = fopen(path, "re");
	while (f && !id && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::", 3))
			continue;
		line[strcspn(line, "\n")] = 0;
		id = cli_cgroup_id(line + 3);
	}
	if (f)
		fclose(f);
	return id;
}

u64 cli_engine_cgroup(struct cli_engine *engine, const struct cli_task *task)
{
	return engine->inlay ? task->cgroup_id : kernel_cgroup(task->tid);
}

u64 cli_engine_ran_ns(struct cli_engine *engine, s32 tid)
{
	unsigned long long ns = U64_MAX;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	f = engine->inlay ? NULL : fopen(path, "re");
	if (!f || fscanf(f, "%llu", &ns) != 1)
		ns = U64_MAX;
	if (f)
		fclose(f);
	return ns;
}
