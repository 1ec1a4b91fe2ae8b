// SPDX-License-Identifier: BSD-2-Clause
// Runs a case in one configuration, in an engine of its own.
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "btf/btf.h"
#include "case.h"
#include "env/env.h"
#include "inlay/inlay.h"
#include "isa/asm.h"
#include "isa/uapi.h"
#include "object/helper.h"
#include "object/instance.h"
#include "object/prog.h"

#define U64(p)	 ((u64)(uintptr_t)(p))
#define NR_CPUS	 2
#define VALUE_MAX 4096
#define LOG_SIZE (1 << 20)

struct runner {
	const struct bpft_case *c;
	struct inlay *in;
	struct case_result *ret;
	int map_fd[CASE_MAX_MAPS], prog_fd[CASE_MAX_PROGS];
	char func[8][32]; /* names that "r1 = func_NAME" asked for */
	u32 nr_func;
};

static void wrong_case(struct runner *r, const char *what, const char *of, long err)
{
	if (!r->ret->why[0])
		snprintf(r->ret->why, sizeof(r->ret->why), "%s %.64s: %s", what, of, err < 0 ? strerror(-err) : "");
}

static long call(struct runner *r, int cmd, union bpf_attr *a)
{
	return inlay_bpf(r->in, cmd, a, sizeof(*a));
}

/* ---- types: "int", a value of any size, and for callbacks a static function without arguments ---- */

struct types {
	struct btf_header h;
	u32 t[256];
	char s[512];
	u32 nt, ns, nr;
};

static u32 type_name(struct types *b, const char *name)
{
	u32 at = b->ns;

	strcpy(b->s + at, name);
	b->ns += strlen(name) + 1;
	return at;
}

static u32 add_type(struct types *b, const char *name, u32 info, u32 size_or_type)
{
	b->t[b->nt++] = *name ? type_name(b, name) : 0;
	b->t[b->nt++] = info;
	b->t[b->nt++] = size_or_type;
	return ++b->nr;
}

static void begin_types(struct types *b)
{
	memset(b, 0, sizeof(*b));
	b->ns = 1;
	add_type(b, "int", BTF_KIND_INT << 24, 4);
	b->t[b->nt++] = BTF_INT_SIGNED << 24 | 32;
}

static long load_types(struct runner *r, struct types *b)
{
	char raw[sizeof(*b)];
	union bpf_attr a = { 0 };

	b->h = (struct btf_header){ .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(b->h),
				    .type_len = b->nt * 4, .str_off = b->nt * 4, .str_len = b->ns };
	memcpy(raw, &b->h, sizeof(b->h));
	memcpy(raw + sizeof(b->h), b->t, b->nt * 4);
	memcpy(raw + sizeof(b->h) + b->nt * 4, b->s, b->ns);
	a.btf = U64(raw);
	a.btf_size = sizeof(b->h) + b->nt * 4 + b->ns;
	return call(r, BPF_BTF_LOAD, &a);
}

/* ---- maps ---- */

static int map_index(const struct bpft_case *c, const char *name)
{
	for (u32 i = 0; i < c->nr_maps; i++)
		if (!strcmp(c->maps[i].name, name))
			return i;
	return -1;
}

static bool is_storage(const struct case_map *m)
{
	return m->type == BPF_MAP_TYPE_TASK_STORAGE;
}

static void make_map(struct runner *r, u32 i)
{
	const struct case_map *m = &r->c->maps[i];
	union bpf_attr a = { .map_type = m->type, .key_size = m->key, .value_size = m->value, .max_entries = m->max,
			     .map_flags = m->flags };
	int inner = m->inner[0] ? map_index(r->c, m->inner) : -1;
	struct types b;
	long fd, btf = -1;

	if (inner >= 0)
		a.inner_map_fd = r->map_fd[inner];
	if (is_storage(m)) {
		begin_types(&b);
		add_type(&b, "value", BTF_KIND_STRUCT << 24, m->value);
		a.map_flags |= BPF_F_NO_PREALLOC;
		btf = load_types(r, &b);
		a.btf_fd = btf;
		a.btf_key_type_id = 1;
		a.btf_value_type_id = 2;
		if (btf < 0)
			wrong_case(r, "types of map", m->name, btf);
	}
	fd = call(r, BPF_MAP_CREATE, &a);
	if (btf >= 0)
		close(btf);
	if (fd < 0)
		wrong_case(r, "map", m->name, fd);
	r->map_fd[i] = fd;
}

static u32 sys_size(const struct case_map *m)
{
	bool percpu = m->type == BPF_MAP_TYPE_PERCPU_HASH || m->type == BPF_MAP_TYPE_PERCPU_ARRAY;

	return percpu ? align_up(m->value, 8) * NR_CPUS : m->value;
}

/* Numbers, 8 bytes each, the last one cut to what is left. */
static void put_numbers(const char *text, void *dst, u32 size)
{
	char *end = (char *)text;

	memset(dst, 0, size);
	for (u32 off = 0; off < size && *end; off += 8) {
		u64 v = strtoull(end, &end, 0);

		memcpy((char *)dst + off, &v, min_of(size - off, 8u));
	}
}

static void show_numbers(struct strbuf *out, const void *src, u32 size)
{
	for (u32 off = 0; off < size; off += 8) {
		u64 v = 0;

		memcpy(&v, (const char *)src + off, min_of(size - off, 8u));
		strbuf_printf(out, "%s0x%llx", off ? " " : "", (unsigned long long)v);
	}
}

static int prog_fd_of(struct runner *r, const char *name)
{
	for (u32 i = 0; i < r->c->nr_progs; i++)
		if (!strcmp(r->c->progs[i].name, name))
			return r->prog_fd[i];
	return -1;
}

/* key's room: VALUE_MAX */
static int key_of(struct runner *r, const struct case_map *m, const char *text, void *key)
{
	if (!is_storage(m)) {
		put_numbers(text, key, m->key);
		return -1;
	}
	memset(key, 0, m->key);
	*(int *)key = inlay_pidfd_open(r->in, (int)syscall(SYS_gettid), 0);
	return *(int *)key;
}

/* "MAP KEY = prog NAME | map NAME | numbers"; those with main wait until it is loaded. */
static void fill(struct runner *r, const char *line, bool with_main)
{
	char name[16] = "", key_text[64] = "", what[512] = "", arg[16] = "", key[VALUE_MAX], value[VALUE_MAX];
	union bpf_attr a = { 0 };
	int i, fd = -1, task;
	long err;

	if (sscanf(line, "%15s %63[^=] = %511[^\n]", name, key_text, what) != 3 || (i = map_index(r->c, name)) < 0) {
		wrong_case(r, "fill", line, 0);
		return;
	}
	if (sscanf(what, "prog %15s", arg) == 1) {
		if (!strcmp(arg, "main") != with_main)
			return;
		fd = prog_fd_of(r, arg);
		memcpy(value, &fd, sizeof(fd));
	} else if (with_main) {
		return;
	} else if (sscanf(what, "map %15s", arg) == 1 && map_index(r->c, arg) >= 0) {
		memcpy(value, &r->map_fd[map_index(r->c, arg)], sizeof(int));
	} else {
		put_numbers(what, value, sys_size(&r->c->maps[i]));
	}
	task = key_of(r, &r->c->maps[i], key_text, key);
	a.map_fd = r->map_fd[i];
	a.key = U64(key);
	a.value = U64(value);
	err = call(r, BPF_MAP_UPDATE_ELEM, &a);
	if (err)
		wrong_case(r, "fill", line, err);
	if (task >= 0)
		close(task);
}

/* The value at a key as text, or "none". */
static void value_at(struct runner *r, u32 i, const void *key, struct strbuf *out)
{
	char value[VALUE_MAX] = "";
	union bpf_attr a = { .map_fd = r->map_fd[i] };

	a.key = U64(key);
	a.value = U64(value);
	if (call(r, BPF_MAP_LOOKUP_ELEM, &a))
		strbuf_puts(out, "none");
	else
		show_numbers(out, value, sys_size(&r->c->maps[i]));
}

static void check_map(struct runner *r, const char *line)
{
	char name[16] = "", key_text[64] = "", want[512] = "", key[VALUE_MAX], value[VALUE_MAX];
	struct strbuf got = STRBUF_INIT, wanted = STRBUF_INIT;
	int i, task;

	if (sscanf(line, "%15s %63[^=] = %511[^\n]", name, key_text, want) != 3 || (i = map_index(r->c, name)) < 0) {
		wrong_case(r, "map", line, 0);
		return;
	}
	task = key_of(r, &r->c->maps[i], key_text, key);
	value_at(r, i, key, &got);
	if (task >= 0)
		close(task);
	if (!strcmp(want, "none")) {
		strbuf_puts(&wanted, want);
	} else {
		put_numbers(want, value, sys_size(&r->c->maps[i]));
		show_numbers(&wanted, value, sys_size(&r->c->maps[i]));
	}
	if (strcmp(strbuf_str(&got), strbuf_str(&wanted)))
		strbuf_printf(&r->ret->wrong, "# %s: is %s\n", line, strbuf_str(&got));
	strbuf_fini(&got);
	strbuf_fini(&wanted);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void dump_map(struct runner *r, u32 i)
{
	const struct case_map *m = &r->c->maps[i];
	char key[VALUE_MAX], next[VALUE_MAX], *lines[512];
	union bpf_attr a = { .map_fd = r->map_fd[i] };
	u32 nr = 0;

	if (m->type == BPF_MAP_TYPE_PROG_ARRAY || m->type == BPF_MAP_TYPE_RINGBUF || m->inner[0] || is_storage(m))
		return;
	a.next_key = U64(next);
	while (nr < ARRAY_SIZE(lines) && !call(r, BPF_MAP_GET_NEXT_KEY, &a)) {
		struct strbuf line = STRBUF_INIT;

		memcpy(key, next, m->key);
		a.key = U64(key);
		strbuf_printf(&line, "%s ", m->name);
		show_numbers(&line, key, m->key);
		strbuf_puts(&line, " = ");
		value_at(r, i, key, &line);
		lines[nr++] = line.s;
	}
	qsort(lines, nr, sizeof(*lines), by_text);
	for (u32 n = 0; n < nr; n++) {
		strbuf_printf(&r->ret->state, "%s\n", lines[n]);
		free(lines[n]);
	}
}

/* ---- programs ---- */

static bool symbol(void *ctx, const char *name, struct isa_symbol *ret)
{
	struct runner *r = ctx;
	const char *value = strrchr(name, '_');
	char base[16] = "";
	int i = map_index(r->c, name);

	if (i >= 0) {
		*ret = (struct isa_symbol){ .src = BPF_PSEUDO_MAP_FD, .imm = r->map_fd[i] };
		return true;
	}
	if (!strncmp(name, "func_", 5) && r->nr_func < ARRAY_SIZE(r->func)) {
		snprintf(r->func[r->nr_func], sizeof(r->func[0]), "%.31s", name + 5);
		*ret = (struct isa_symbol){ .src = BPF_PSEUDO_FUNC, .imm = (s32)r->nr_func++ };
		return true;
	}
	if (value && !strcmp(value, "_value") && (size_t)(value - name) < sizeof(base)) {
		memcpy(base, name, value - name);
		i = map_index(r->c, base);
		*ret = (struct isa_symbol){ .src = BPF_PSEUDO_MAP_VALUE, .imm = i >= 0 ? r->map_fd[i] : 0 };
		return i >= 0;
	}
	return false;
}

static bool callee(void *ctx, const char *name, struct isa_callee *ret)
{
	for (u32 id = 1; id < 256; id++) {
		const struct helper_desc *h = helper_by_id(id);

		if (h && !strcmp(h->name, name)) {
			*ret = (struct isa_callee){ .imm = (s32)id };
			return true;
		}
	}
	if (kfunc_by_name(name)) {
		*ret = (struct isa_callee){ .src = BPF_PSEUDO_KFUNC_CALL };
		ret->imm = btf_find_by_name_kind(((struct runner *)ctx)->in->vmlinux, name, BTF_KIND_FUNC);
		return true;
	}
	return false;
}

/* Aims loads of functions, and marks where functions begin. */
static bool find_functions(struct runner *r, struct isa_code *code, u8 *starts)
{
	bool any = false;

	starts[0] = 1;
	for (u32 pc = 0; pc < code->len; pc++) {
		struct bpf_insn *insn = &code->insns[pc];

		if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL)
			starts[pc + 1 + insn->imm] = 1;
		if (insn->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (insn->src_reg == BPF_PSEUDO_FUNC) {
			int to = isa_code_label(code, r->func[insn->imm]);

			if (to < 0) {
				wrong_case(r, "no function", r->func[insn->imm], 0);
				return false;
			}
			insn->imm = to - (s32)pc - 1;
			starts[to] = 1;
			any = true;
		}
		pc++;
	}
	return any;
}

/* "{task_struct.pid}": offsets of fields, which differ from machine to machine. */
static void expand_fields(struct runner *r, const char *text, struct strbuf *out)
{
	char type[64], field[64];
	const char *open;
	u32 off;
	int n;

	while ((open = strchr(text, '{'))) {
		strbuf_add(out, text, open - text);
		n = 0;
		if (sscanf(open, "{%63[^.}].%63[^}]}%n", type, field, &n) != 2 || !n ||
		    btf_find_field_offset(r->in->vmlinux, type, field, &off, NULL)) {
			wrong_case(r, "no field", open, 0);
			return;
		}
		strbuf_printf(out, "%u", off);
		text = open + n;
	}
	strbuf_puts(out, text);
}

static long load_prog(struct runner *r, const struct case_prog *p)
{
	const struct isa_symbols syms = { r, symbol, callee };
	struct bpf_func_info info[16];
	union bpf_attr a = { .prog_type = r->c->prog_type };
	struct strbuf err = STRBUF_INIT, text = STRBUF_INIT;
	struct isa_code code = { 0 };
	char *log = calloc(1, LOG_SIZE), name[16], tag[64];
	bool main = p == r->c->progs;
	struct types b;
	int catch;
	u8 *starts;
	u32 nr = 0;
	long fd, btf = -1;

	r->nr_func = 0;
	expand_fields(r, p->text, &text);
	if (isa_assemble(strbuf_str(&text), &syms, &code, &err)) {
		if (!r->ret->why[0])
			snprintf(r->ret->why, sizeof(r->ret->why), "assembler: %.140s", strbuf_str(&err));
		strbuf_fini(&err);
		strbuf_fini(&text);
		free(log);
		return -EINVAL;
	}
	starts = calloc(code.len + 1, 1);
	a.insns = U64(code.insns);
	a.insn_cnt = code.len;
	a.license = U64("GPL");
	a.log_buf = U64(log);
	a.log_size = LOG_SIZE;
	a.log_level = 1;
	catch = main && r->c->catch[0] ? isa_code_label(&code, r->c->catch) : -1;
	if (catch >= 0)
		starts[catch] = 1;
	if (find_functions(r, &code, starts) || r->c->types || catch >= 0) {
		begin_types(&b);
		add_type(&b, "", BTF_KIND_FUNC_PROTO << 24, 1);
		add_type(&b, "u64", BTF_KIND_INT << 24, 8);
		b.t[b.nt++] = 64;
		add_type(&b, "", BTF_KIND_FUNC_PROTO << 24 | 1, 1);
		b.t[b.nt++] = 1;
		b.t[b.nt++] = 3;
		for (u32 pc = 0; pc < code.len && nr < ARRAY_SIZE(info); pc++) {
			if (!starts[pc])
				continue;
			snprintf(name, sizeof(name), "f%u", pc);
			info[nr].insn_off = pc;
			info[nr++].type_id = (s32)pc == catch ? add_type(&b, r->c->catch, BTF_KIND_FUNC << 24 | 1, 4) :
								add_type(&b, name, BTF_KIND_FUNC << 24, 2);
		}
		if (catch >= 0) {
			snprintf(tag, sizeof(tag), "exception_callback:%s", r->c->catch);
			add_type(&b, tag, BTF_KIND_DECL_TAG << 24, info[0].type_id);
			b.t[b.nt++] = (u32)-1;
		}
		btf = load_types(r, &b);
		if (btf < 0)
			wrong_case(r, "types of", p->name, btf);
		a.prog_btf_fd = btf;
		a.func_info = U64(info);
		a.func_info_cnt = nr;
		a.func_info_rec_size = sizeof(info[0]);
	}
	fd = call(r, BPF_PROG_LOAD, &a);
	strbuf_puts(&r->ret->log, log);
	if (btf >= 0)
		close(btf);
	free(starts);
	free(log);
	isa_code_fini(&code);
	strbuf_fini(&err);
	strbuf_fini(&text);
	return fd;
}

static void run_main(struct runner *r, int fd)
{
	u64 ctx[64];
	struct obj *obj;
	int err = r->in->fds->get(r->in, fd, &obj);

	if (err) {
		wrong_case(r, "main", "", err);
		return;
	}
	memset(ctx, 0, sizeof(ctx));
	if (r->c->prog_type == BPF_PROG_TYPE_SOCKET_FILTER)
		*(u32 *)ctx = 64; /* __sk_buff.len */
	else
		for (u32 i = 0; i < 12; i++)
			ctx[i] = (i + 1) * 0x0102030405060708ULL;
	env_enter(r->in->env, 1, env_task_self(r->in->env));
	for (u32 i = 0; i < r->c->runs; i++)
		r->ret->r0 = prog_run(prog_of(obj), ctx);
	env_leave(r->in->env);
	show_numbers(&r->ret->state, ctx, 192);
	strbuf_putc(&r->ret->state, '\n');
	obj_put(obj);
}

static void run_case(struct runner *r)
{
	const struct bpft_case *c = r->c;
	int main_fd;
	u32 i;

	for (i = 0; i < c->nr_maps && !r->ret->why[0]; i++)
		make_map(r, i);
	for (i = 1; i < c->nr_progs && !r->ret->why[0]; i++) {
		r->prog_fd[i] = (int)load_prog(r, &c->progs[i]);
		if (r->prog_fd[i] < 0)
			wrong_case(r, strbuf_str(&r->ret->log), c->progs[i].name, r->prog_fd[i]);
	}
	for (i = 0; i < c->nr_fill && !r->ret->why[0]; i++)
		fill(r, c->fill[i], false);
	if (r->ret->why[0])
		return;
	strbuf_reset(&r->ret->log);
	main_fd = r->prog_fd[0] = (int)load_prog(r, &c->progs[0]);
	r->ret->err = min_of(main_fd, 0);
	if (main_fd < 0)
		return;
	for (i = 0; i < c->nr_fill && !r->ret->why[0]; i++)
		fill(r, c->fill[i], true);
	run_main(r, main_fd);
	for (i = 0; i < c->nr_maps; i++)
		dump_map(r, i);
	for (i = 0; i < c->nr_want; i++)
		check_map(r, c->want_map[i]);
}

static struct engine {
	struct case_config config;
	struct inlay *in;
} engines[32];
static u32 nr_engines;

static struct inlay *engine_for(const struct case_config *config)
{
	struct inlay_opts o = { .size = sizeof(o), .nr_cpus = NR_CPUS, .seed = 1, .interp = config->interp };
	struct engine *e;

	for (e = engines; e < engines + nr_engines; e++)
		if (!memcmp(&e->config, config, sizeof(*config)))
			return e->in;
	if (nr_engines == ARRAY_SIZE(engines) || inlay_create(&o, &e->in))
		return NULL;
	e->config = *config;
	e->in->inline_off = config->no_inline ? INLINE_ALL : 0;
	e->in->storage_impl = config->storage;
	nr_engines++;
	return e->in;
}

void case_engines_fini(void)
{
	while (nr_engines)
		inlay_destroy(engines[--nr_engines].in);
}

void case_run(const struct bpft_case *c, const struct case_config *config, struct case_result *ret)
{
	struct runner r = { .c = c, .ret = ret, .in = engine_for(config) };
	struct env_task *self;
	u32 i, refused;

	memset(ret, 0, sizeof(*ret));
	if (!r.in) {
		snprintf(ret->why, sizeof(ret->why), "no engine");
		return;
	}
	for (i = 0; i < CASE_MAX_MAPS; i++)
		r.map_fd[i] = -1;
	for (i = 0; i < CASE_MAX_PROGS; i++)
		r.prog_fd[i] = -1;
	refused = r.in->nr_refused;
	self = env_task_self(r.in->env);
	if (self)
		run_case(&r);
	if (r.in->nr_refused != refused)
		wrong_case(&r, "not compiled but interpreted", "", 0);
	for (i = 0; i < CASE_MAX_PROGS; i++)
		if (r.prog_fd[i] >= 0)
			close(r.prog_fd[i]);
	for (i = 0; i < CASE_MAX_MAPS; i++)
		if (r.map_fd[i] >= 0)
			close(r.map_fd[i]);
}

void case_result_fini(struct case_result *r)
{
	strbuf_fini(&r->log);
	strbuf_fini(&r->state);
	strbuf_fini(&r->wrong);
}
