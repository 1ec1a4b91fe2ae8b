// SPDX-License-Identifier: BSD-2-Clause
// PROG_LOAD around the verifier, ids, infos, statistics, test runs: each answer that of the running
// kernel.
#include <linux/btf.h>
#include <time.h>

#include "both.h"
#include "sys/attr.h"
#include "sys/info.h"

static const struct bpf_insn ret0[] = {MOV64_IMM(0, 0), EXIT()};
static const struct bpf_insn bad[] = {EXIT()}; /* r0 is not set */

static void attr_of(union sys_attr *a, u32 type, const struct bpf_insn *insns, u32 n)
{
	memset(a, 0, sizeof(*a));
	a->prog_load.prog_type = type;
	a->prog_load.insn_cnt = n;
	a->prog_load.insns = U64(insns);
	a->prog_load.license = U64("GPL");
}

/* errno, or 0 for a program, which is closed again. */
static long load(struct inlay *in, union sys_attr *a, u32 size)
{
	long fd = do_bpf(in, BPF_PROG_LOAD, a, size);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void load_attributes(struct inlay *in)
{
	union sys_attr a;
	int i;

#define TRY(what, ...)                                                                             \
	do {                                                                                       \
		attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, ret0, 2);                                 \
		__VA_ARGS__;                                                                       \
		note(load(in, &a, sizeof(a)), what);                                               \
	} while (0)
	TRY("plain");
	TRY("no instructions", a.prog_load.insn_cnt = 0);
	TRY("too many instructions", a.prog_load.insn_cnt = 1000001);
	TRY("instructions nowhere", a.prog_load.insns = 16);
	TRY("license nowhere", a.prog_load.license = 16);
	TRY("no license", a.prog_load.license = 0);
	TRY("type 999", a.prog_load.prog_type = 999);
	TRY("type 0", a.prog_load.prog_type = 0);
	TRY("name with a slash", memcpy(a.prog_load.prog_name, "a/b", 3));
	TRY("name too long", memset(a.prog_load.prog_name, 'a', 16));
	TRY("name just fits", memset(a.prog_load.prog_name, 'a', 15));
	for (i = 0; i < 32; i++) {
		if (i == 1 || i == 5 ||
		    i == 6) /* alignment and device flags depend on type and machine */
			continue;
		attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, ret0, 2);
		a.prog_load.prog_flags = 1u << i;
		a.prog_load.prog_token_fd = 0xffff;
		note(load(in, &a, sizeof(a)), "flag %d", i);
	}
	TRY("interface 77", a.prog_load.prog_ifindex = 77);
	TRY("attach id 1", a.prog_load.attach_btf_id = 1);
	TRY("attach to descriptor 0xffff", a.prog_load.attach_prog_fd = 0xffff);
	TRY("BTF descriptor without info", a.prog_load.prog_btf_fd = 0xffff);
	TRY("info without BTF", a.prog_load.func_info_cnt = 1, a.prog_load.func_info_rec_size = 8);
	TRY("line info without BTF", a.prog_load.line_info_cnt = 1,
	    a.prog_load.line_info_rec_size = 16, a.prog_load.prog_btf_fd = 0xffff);
	TRY("fd_array_cnt without array", a.prog_load.fd_array_cnt = 1);
	TRY("old kernel version", a.prog_load.kern_version = 1);
	TRY("tracing without target", a.prog_load.prog_type = BPF_PROG_TYPE_TRACING,
	    a.prog_load.expected_attach_type = BPF_TRACE_RAW_TP);
	TRY("tracing with target 0xfffff", a.prog_load.prog_type = BPF_PROG_TYPE_TRACING,
	    a.prog_load.expected_attach_type = BPF_TRACE_RAW_TP,
	    a.prog_load.attach_btf_id = 0xfffff);
	TRY("raw tracepoint", a.prog_load.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT);
	TRY("tracepoint", a.prog_load.prog_type = BPF_PROG_TYPE_TRACEPOINT);
	TRY("kprobe", a.prog_load.prog_type = BPF_PROG_TYPE_KPROBE);
#undef TRY
	/* any size libbpf ever sent */
	attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, ret0, 2);
	for (i = 40; i <= 168; i += 4)
		note(load(in, &a, i), "size %d", i);
}

/* ---- logs ---- */

static void log_arguments(struct inlay *in)
{
	static const struct {
		u32 level, size;
		bool buf;
	} rows[] = {
		{0, 0, false},	       {1, 0, false},	      {1, 100, true},  {0, 100, true},
		{1, 100, false},       {1, 0, true},	      {16, 100, true}, {8, 100, true},
		{9, 100, true},	       {2, 4096, true},	      {4, 4096, true}, {7, 4096, true},
		{1, 0x40000000, true}, {1, 0x3fffffff, true}, {1, 1, true},
	};
	static char buf[4096];
	union sys_attr a;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, bad, 1);
		a.prog_load.log_level = rows[i].level;
		a.prog_load.log_size = rows[i].size;
		a.prog_load.log_buf = rows[i].buf ? U64(buf) : 0;
		note(load(in, &a, sizeof(a)), "level %u, size %u, buffer %d", rows[i].level,
		     rows[i].size, rows[i].buf);
	}
	attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, bad, 1);
	a.prog_load.log_level = 1;
	a.prog_load.log_size = 100;
	a.prog_load.log_buf = 16;
	note(load(in, &a, sizeof(a)), "buffer nowhere");
}

static u32 hash_of(const char *s)
{
	u32 h = 0;

	while (*s)
		h = h * 31 + (unsigned char)*s++;
	return h;
}

/* Every buffer size around the text's own: what is kept, what is returned, what the true size is.
 */
static void log_sizes(struct inlay *in)
{
	char buf[256];
	union sys_attr a;
	int fixed, size;
	long ret;

	for (fixed = 0; fixed < 2; fixed++) {
		for (size = 1; size < 200; size += size < 20 ? 1 : 9) {
			memset(buf, 'X', sizeof(buf));
			attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, bad, 1);
			a.prog_load.log_level = 1 | fixed * 8;
			a.prog_load.log_size = size;
			a.prog_load.log_buf = U64(buf);
			ret = load(in, &a, sizeof(a));
			buf[255] = 0;
			note(ret, "fixed %d, size %d", fixed, size);
			note(a.prog_load.log_true_size, "fixed %d, size %d: true size", fixed,
			     size);
			note(hash_of(buf), "fixed %d, size %d: text", fixed, size);
			note(buf[size] == 'X', "fixed %d, size %d: nothing behind it", fixed, size);
		}
	}
	attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, bad, 1);
	a.prog_load.log_level = 1;
	note(load(in, &a, sizeof(a)), "no buffer");
	note(a.prog_load.log_true_size, "no buffer: true size");
	attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, bad, 1);
	a.prog_load.log_level = 1;
	a.prog_load.log_size = 200;
	a.prog_load.log_buf = U64(buf);
	note(load(in, &a, 140), "attribute that ends before the true size");
	note(a.prog_load.log_true_size, "nothing is written behind it");
}

/* ---- infos ---- */

static long info(struct inlay *in, int fd, void *buf, u32 *len)
{
	union bpf_attr a = {.info = {.bpf_fd = fd, .info_len = *len}};
	long ret;

	a.info.info = U64(buf);
	ret = do_bpf(in, BPF_OBJ_GET_INFO_BY_FD, &a, 16);
	*len = a.info.info_len;
	return ret;
}

static void info_sizes(struct inlay *in)
{
	long prog = prog_load(in, BPF_PROG_TYPE_SOCKET_FILTER, ret0, 2),
	     map = map_create(in, 2, 4, 4, 1, 0), fds[2];
	static char buf[8192];
	u32 len, i, k;

	fds[0] = prog;
	fds[1] = map;
	for (k = 0; k < 2; k++) {
		for (i = 0; i < 400; i += 40) {
			memset(buf, 0, sizeof(buf));
			len = i;
			note(info(in, fds[k], buf, &len), "object %u info of %u", k, i);
			note(len, "object %u info of %u: length", k, i);
		}
		len = 400;
		buf[399] = 1;
		note(info(in, fds[k], buf, &len), "object %u unknown tail", k);
		len = 4097;
		note(info(in, fds[k], buf, &len), "object %u more than a page", k);
		len = 64;
		note(info(in, fds[k], (void *)16, &len), "object %u nowhere", k);
	}
	len = 64;
	note(info(in, 0, buf, &len), "something else");
	len = 64;
	note(info(in, 0xffff, buf, &len), "not open");
	close(prog);
	close(map);
}

static void prog_info(struct inlay *in)
{
	long map = map_create(in, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	struct bpf_insn insns[] = {
		{BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map},
		{},
		{BPF_LD | BPF_IMM | BPF_DW, 2, BPF_PSEUDO_MAP_VALUE, 0, map},
		{0, 0, 0, 0, 4},
		MOV64_IMM(0, 0),
		EXIT(),
	};
	long fd = prog_load(in, BPF_PROG_TYPE_SOCKET_FILTER, insns, 6);
	struct bpf_insn xlated[16] = {};
	struct sys_prog_info i = {};
	u32 len = sizeof(i), ids[4] = {};

	i.nr_map_ids = 4;
	i.map_ids = U64(ids);
	i.xlated_prog_len = sizeof(xlated);
	i.xlated_prog_insns = U64(xlated);
	note(info(in, fd, &i, &len), "prog info");
	note(len, "length");
	note(i.type, "type");
	note(i.id > 0, "id");
	note(*(u64 *)i.tag, "tag");
	note(strcmp(i.name, "test"), "name");
	note(i.gpl_compatible & 1, "license");
	note(i.created_by_uid, "uid");
	note(i.nr_map_ids, "maps used");
	note(ids[0] > 0 && ids[1] == 0, "their ids");
	note(i.xlated_prog_len, "xlated length");
	note(xlated[0].code, "xlated map load");
	note(xlated[0].src_reg, "its kind");
	note((u32)xlated[0].imm == ids[0], "it shows the map's id");
	note(xlated[1].imm, "its second half");
	note(xlated[2].src_reg, "xlated value load");
	note((u32)xlated[2].imm == ids[0], "it shows the map's id");
	note(xlated[3].imm, "its offset");
	note(i.btf_id, "no BTF");
	note(i.run_cnt, "never ran");
	note(i.verified_insns, "instructions verified");
	note(i.func_info_rec_size, "func info record");
	note(i.line_info_rec_size, "line info record");
	note(i.nr_prog_tags, "tags");
	note(i.load_time > 0, "load time");
	memset(&i, 0, sizeof(i));
	len = sizeof(i);
	i.nr_map_ids = 4;
	i.map_ids = 16;
	note(info(in, fd, &i, &len), "map ids nowhere");
	close(fd);
	close(map);
}

static void map_info(struct inlay *in)
{
	long fd = map_create(in, BPF_MAP_TYPE_HASH, 4, 8, 7, BPF_F_NO_PREALLOC);
	struct sys_map_info i = {};
	u32 len = sizeof(i);

	note(info(in, fd, &i, &len), "map info");
	note(len, "length");
	note(i.type, "type");
	note(i.key_size, "key size");
	note(i.value_size, "value size");
	note(i.max_entries, "entries");
	note(i.map_flags, "flags");
	note(strcmp(i.name, "test"), "name");
	note(i.btf_id, "no BTF");
	note(i.map_extra, "extra");
	i.hash_size = 32;
	len = sizeof(i);
	note(info(in, fd, &i, &len), "hash size without room for a hash");
	close(fd);
}

/* An INT, and a PROTO and FUNC for a program's function. */
static const struct {
	struct btf_header h;
	u32 types[4 + 3 + 3];
	char strings[16];
} btf_blob = {
	{.magic = BTF_MAGIC,
	 .version = 1,
	 .hdr_len = sizeof(struct btf_header),
	 .type_len = 40,
	 .str_off = 40,
	 .str_len = 16},
	{1, BTF_KIND_INT << 24, 4, BTF_INT_SIGNED << 24 | 32, /* [1] int */
	 0, (u32)BTF_KIND_FUNC_PROTO << 24, 1,		      /* [2] int (void) */
	 5, BTF_KIND_FUNC << 24 | BTF_FUNC_GLOBAL, 2},	      /* [3] func */
	"\0int\0func\0\0\0\0\0\0",
};

static long btf_load(struct inlay *in, const void *data, u32 size)
{
	union bpf_attr a = {};

	a.btf = U64(data);
	a.btf_size = size;
	return do_bpf(in, BPF_BTF_LOAD, &a, 28);
}

static void btf_objects(struct inlay *in)
{
	long fd = btf_load(in, &btf_blob, sizeof(btf_blob)), fd2;
	struct sys_btf_info i = {};
	union bpf_attr a = {};
	u32 len = sizeof(i), id;
	char copy[256], name[8] = "??";

	note(fd >= 0, "BTF loads");
	i.btf = U64(copy);
	i.btf_size = sizeof(copy);
	note(info(in, fd, &i, &len), "BTF info");
	note(len, "length");
	note(i.btf_size, "size");
	note(memcmp(copy, &btf_blob, sizeof(btf_blob)), "bytes");
	note(i.kernel_btf, "not the kernel's");
	note(i.name_len, "name length");
	id = i.id;
	i = (struct sys_btf_info){.name = U64(name), .name_len = 0};
	note(info(in, fd, &i, &len), "name without room");
	i = (struct sys_btf_info){.name = U64(name), .name_len = 8};
	note(info(in, fd, &i, &len), "name with room");
	note(name[0], "it is empty");
	a.btf_id = id;
	fd2 = do_bpf(in, BPF_BTF_GET_FD_BY_ID, &a, 8);
	note(fd2 >= 0, "by id");
	close(fd2);
	note(btf_load(in, &btf_blob, 3), "too short");
	note(btf_load(in, &btf_blob, 0), "nothing");
	note(btf_load(in, (void *)16, 100), "nowhere");
	note(btf_load(in, &btf_blob, 17 << 20), "too large");
	note(btf_load(in, &btf_blob, sizeof(btf_blob) - 1), "cut");
	close(fd);
	note(do_bpf(in, BPF_BTF_GET_FD_BY_ID, &a, 8), "by id when it is gone");
	/* the kernel's own is number 1 */
	memset(&a, 0, sizeof(a));
	a.btf_id = 1;
	fd = do_bpf(in, BPF_BTF_GET_FD_BY_ID, &a, 8);
	note(fd >= 0, "the kernel's BTF");
	i = (struct sys_btf_info){.name = U64(name), .name_len = 8};
	len = sizeof(i);
	note(info(in, fd, &i, &len), "its info");
	note(i.kernel_btf, "is the kernel's");
	note(hash_of(name), "name");
	i = (struct sys_btf_info){.name = U64(name), .name_len = 4};
	note(info(in, fd, &i, &len), "name in too little room");
	note(hash_of(name), "cut name");
	note(i.name_len, "its length");
	memset(&a, 0, sizeof(a));
	a.map_type = 2;
	a.key_size = a.value_size = 4;
	a.max_entries = 1;
	a.btf_fd = fd;
	a.btf_key_type_id = a.btf_value_type_id = 1;
	note(do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a)), "a map with the kernel's BTF");
	close(fd);
}

static void map_with_btf(struct inlay *in)
{
	long btf = btf_load(in, &btf_blob, sizeof(btf_blob)), fd;
	struct sys_map_info i = {};
	union bpf_attr a = {};
	u32 len = sizeof(i), id;

	a.map_type = 1;
	a.key_size = a.value_size = 4;
	a.max_entries = 1;
	a.btf_fd = btf;
	a.btf_key_type_id = a.btf_value_type_id = 1;
	fd = do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
	note(fd >= 0, "a map with BTF");
	close(btf);
	note(info(in, fd, &i, &len), "its info");
	note(i.btf_key_type_id, "key type");
	note(i.btf_value_type_id, "value type");
	id = i.btf_id;
	memset(&a, 0, sizeof(a));
	a.btf_id = id;
	btf = do_bpf(in, BPF_BTF_GET_FD_BY_ID, &a, 8);
	note(btf >= 0, "the map keeps the BTF alive");
	close(btf);
	close(fd);
	btf = btf_load(in, &btf_blob, sizeof(btf_blob));
	memset(&a, 0, sizeof(a));
	a.map_type = 1;
	a.key_size = 4;
	a.value_size = 8;
	a.max_entries = 1;
	a.btf_fd = btf;
	a.btf_key_type_id = a.btf_value_type_id = 1;
	fd = do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
	note(fd < 0 ? fd : 0, "value type of another size");
	a.value_size = 4;
	a.btf_value_type_id = 99;
	fd = do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
	note(fd < 0 ? fd : 0, "value type that is not there");
	a.btf_fd = 0;
	fd = do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
	note(fd < 0 ? fd : 0, "descriptor that is no BTF");
	close(btf);
}

static void func_and_line_info(struct inlay *in)
{
	long btf = btf_load(in, &btf_blob, sizeof(btf_blob)), fd;
	u32 funcs[8] = {0, 3}, lines[4] = {0, 1, 1, 1 << 10 | 1}, out_f[4] = {}, out_l[8] = {};
	struct sys_prog_info i = {};
	u32 len = sizeof(i);
	union sys_attr a;

#define TRY(what, ...)                                                                             \
	do {                                                                                       \
		attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, ret0, 2);                                 \
		a.prog_load.prog_btf_fd = btf;                                                     \
		a.prog_load.func_info = U64(funcs);                                                \
		a.prog_load.func_info_cnt = 1;                                                     \
		a.prog_load.func_info_rec_size = 8;                                                \
		a.prog_load.line_info = U64(lines);                                                \
		a.prog_load.line_info_cnt = 1;                                                     \
		a.prog_load.line_info_rec_size = 16;                                               \
		__VA_ARGS__;                                                                       \
		note(load(in, &a, sizeof(a)), what);                                               \
	} while (0)
	TRY("both infos");
	TRY("func info only", a.prog_load.line_info_cnt = 0);
	TRY("line info only", a.prog_load.func_info_cnt = 0);
	TRY("func records of 4", a.prog_load.func_info_rec_size = 4);
	TRY("func records of 12", a.prog_load.func_info_rec_size = 12);
	TRY("func records of 10", a.prog_load.func_info_rec_size = 10);
	TRY("func records of 256", a.prog_load.func_info_rec_size = 256);
	TRY("func records nowhere", a.prog_load.func_info = 16);
	TRY("two functions of one", a.prog_load.func_info_cnt = 2);
	TRY("line records of 12", a.prog_load.line_info_rec_size = 12);
	TRY("line records nowhere", a.prog_load.line_info = 16);
	funcs[1] = 1;
	TRY("function of another kind");
	funcs[1] = 77;
	TRY("function that is not there");
	funcs[1] = 3;
	funcs[0] = 1;
	TRY("first function not at 0");
	funcs[0] = 0;
	funcs[2] = 5;
	TRY("unknown bytes in a record", a.prog_load.func_info_rec_size = 16);
	note(a.prog_load.func_info_rec_size, "the size that is known");
	funcs[2] = 0;
	lines[0] = 9;
	TRY("line beyond the end");
	lines[0] = 0;
	lines[1] = 99;
	TRY("line with a bad name");
	lines[1] = 1;
	attr_of(&a, BPF_PROG_TYPE_SOCKET_FILTER, ret0, 2);
	a.prog_load.prog_btf_fd = btf;
	a.prog_load.func_info = U64(funcs);
	a.prog_load.func_info_cnt = 1;
	a.prog_load.func_info_rec_size = 8;
	a.prog_load.line_info = U64(lines);
	a.prog_load.line_info_cnt = 1;
	a.prog_load.line_info_rec_size = 16;
	fd = do_bpf(in, BPF_PROG_LOAD, &a, sizeof(a));
	i.nr_func_info = 1;
	i.func_info_rec_size = 8;
	i.func_info = U64(out_f);
	i.nr_line_info = 2;
	i.line_info_rec_size = 16;
	i.line_info = U64(out_l);
	note(info(in, fd, &i, &len), "info of it");
	note(i.nr_func_info, "functions");
	note(memcmp(out_f, funcs, 8), "as given");
	note(i.nr_line_info, "lines");
	note(memcmp(out_l, lines, 16), "as given");
	note(i.btf_id > 0, "with its BTF");
	close(fd);
	close(btf);
#undef TRY
}

/* ---- links, binding, statistics, test runs ---- */

static void links(struct inlay *in)
{
	long raw = prog_load(in, BPF_PROG_TYPE_RAW_TRACEPOINT, ret0, 2),
	     sock = prog_load(in, 1, ret0, 2), fd;
	long tp = prog_load(in, BPF_PROG_TYPE_TRACEPOINT, ret0, 2);
	char name[32], longname[200];
	struct sys_link_info i = {};
	union sys_attr a = {};
	u32 len = sizeof(i);

	a.raw_tracepoint.prog_fd = raw;
	note(do_bpf(in, BPF_RAW_TRACEPOINT_OPEN, &a, 24), "no name");
	a.raw_tracepoint.name = 16;
	note(do_bpf(in, BPF_RAW_TRACEPOINT_OPEN, &a, 24), "name nowhere");
	a.raw_tracepoint.name = U64("no_such_tracepoint");
	note(do_bpf(in, BPF_RAW_TRACEPOINT_OPEN, &a, 24), "no such tracepoint");
	memset(longname, 'a', sizeof(longname));
	longname[199] = 0;
	a.raw_tracepoint.name = U64(longname);
	note(do_bpf(in, BPF_RAW_TRACEPOINT_OPEN, &a, 24), "long name");
	a.raw_tracepoint.name = U64("sched_migrate_task");
	a.raw_tracepoint.prog_fd = sock;
	note(do_bpf(in, BPF_RAW_TRACEPOINT_OPEN, &a, 24), "a socket filter");
	a.raw_tracepoint.prog_fd = 0xffff;
	note(do_bpf(in, BPF_RAW_TRACEPOINT_OPEN, &a, 24), "no program");
	a.raw_tracepoint.prog_fd = raw;
	a.raw_tracepoint.cookie = 77;
	fd = do_bpf(in, BPF_RAW_TRACEPOINT_OPEN, &a, 24);
	note(fd >= 0, "a link");
	note(info(in, fd, &i, &len), "its info");
	note(len, "length");
	note(i.type, "type");
	note(i.prog_id > 0, "program");
	note(i.raw_tracepoint.tp_name_len, "length of its name");
	note(i.raw_tracepoint.cookie, "cookie");
	i.raw_tracepoint.tp_name = U64(name);
	i.raw_tracepoint.tp_name_len = 32;
	note(info(in, fd, &i, &len), "with room for the name");
	note(strcmp(name, "sched_migrate_task"), "name");
	i.raw_tracepoint.tp_name_len = 6;
	note(info(in, fd, &i, &len), "with too little room");
	note(hash_of(name), "what there is of it");
	i.raw_tracepoint.tp_name_len = 0;
	note(info(in, fd, &i, &len), "with no room");
	memset(&a, 0, sizeof(a));
	a.link_detach.link_fd = fd;
	note(do_bpf(in, BPF_LINK_DETACH, &a, 4), "detach");
	a.link_detach.link_fd = raw;
	note(do_bpf(in, BPF_LINK_DETACH, &a, 4), "detach what is no link");
	memset(&a, 0, sizeof(a));
	a.link_update.link_fd = fd;
	a.link_update.new_prog_fd = raw;
	note(do_bpf(in, BPF_LINK_UPDATE, &a, 16), "update");
	a.link_update.flags = 1;
	note(do_bpf(in, BPF_LINK_UPDATE, &a, 16), "update with a bad flag");
	a.link_update.flags = 0;
	a.link_update.new_prog_fd = 0xffff;
	note(do_bpf(in, BPF_LINK_UPDATE, &a, 16), "update to nothing");
	memset(&a, 0, sizeof(a));
	a.iter_create.link_fd = fd;
	note(do_bpf(in, BPF_ITER_CREATE, &a, 8), "iterate over it");
	close(fd);
	memset(&a, 0, sizeof(a));
	a.link_create.prog_fd = tp;
	a.link_create.target_fd = -1;
	a.link_create.attach_type = BPF_PERF_EVENT;
	note(do_bpf(in, BPF_LINK_CREATE, &a, 48), "perf link to nothing: what libbpf probes");
	a.link_create.prog_fd = raw;
	note(do_bpf(in, BPF_LINK_CREATE, &a, 48), "of a raw tracepoint");
	a.link_create.prog_fd = sock;
	note(do_bpf(in, BPF_LINK_CREATE, &a, 48), "of a socket filter");
	a.link_create.prog_fd = 0xffff;
	note(do_bpf(in, BPF_LINK_CREATE, &a, 48), "of nothing");
	close(raw);
	close(sock);
	close(tp);
}

static void binding(struct inlay *in)
{
	long prog = prog_load(in, 1, ret0, 2), map = map_create(in, 2, 4, 4, 1, 0);
	struct sys_prog_info i = {};
	union sys_attr a = {};
	u32 len = sizeof(i);

	a.prog_bind_map.prog_fd = prog;
	a.prog_bind_map.map_fd = map;
	note(do_bpf(in, BPF_PROG_BIND_MAP, &a, 12), "bind");
	note(do_bpf(in, BPF_PROG_BIND_MAP, &a, 12), "bind again");
	note(info(in, prog, &i, &len), "info");
	note(i.nr_map_ids, "maps of the program");
	a.prog_bind_map.flags = 1;
	note(do_bpf(in, BPF_PROG_BIND_MAP, &a, 12), "bind with a flag");
	a.prog_bind_map.flags = 0;
	a.prog_bind_map.map_fd = prog;
	note(do_bpf(in, BPF_PROG_BIND_MAP, &a, 12), "bind a program");
	a.prog_bind_map.map_fd = 0xffff;
	note(do_bpf(in, BPF_PROG_BIND_MAP, &a, 12), "bind nothing");
	close(prog);
	close(map);
}

static void fd_arrays(struct inlay *in)
{
	long map = map_create(in, 2, 4, 4, 1, 0), fd;
	struct bpf_insn insns[] = {
		{BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_IDX, 0, 1},
		{},
		MOV64_IMM(0, 0),
		EXIT(),
	};
	struct sys_prog_info i = {};
	u32 len = sizeof(i);
	union sys_attr a;
	s32 fds[2];

	fds[0] = 0xffff;
	fds[1] = map;
	attr_of(&a, 1, insns, 4);
	note(load(in, &a, sizeof(a)), "index without an array");
	a.prog_load.fd_array = U64(fds);
	note(load(in, &a, sizeof(a)), "index into an array");
	insns[0].imm = 0;
	note(load(in, &a, sizeof(a)), "index of what is not open");
	a.prog_load.fd_array = 16;
	note(load(in, &a, sizeof(a)), "array nowhere");
	fds[0] = map;
	attr_of(&a, 1, ret0, 2);
	a.prog_load.fd_array = U64(fds);
	a.prog_load.fd_array_cnt = 2;
	fd = do_bpf(in, BPF_PROG_LOAD, &a, sizeof(a));
	note(fd >= 0, "counted array");
	note(info(in, fd, &i, &len), "info");
	note(i.nr_map_ids, "its maps are bound");
	close(fd);
	fds[1] = 0;
	note(load(in, &a, sizeof(a)), "counted array with something else");
	fds[1] = 0xffff;
	note(load(in, &a, sizeof(a)), "counted array with nothing");
	close(map);
}

static void test_runs(struct inlay *in)
{
	struct bpf_insn raw_insns[] = {{BPF_LDX | BPF_MEM | BPF_DW, 0, 1, 8, 0}, EXIT()};
	long sock = prog_load(in, 1, ret0, 2),
	     raw = prog_load(in, BPF_PROG_TYPE_RAW_TRACEPOINT, raw_insns, 2);
	u64 ctx[12] = {5, 6, 7};
	char data[64] = {}, out[64];
	union sys_attr a;
	long stats;

#define TRY(what, fd, ...)                                                                         \
	do {                                                                                       \
		memset(&a, 0, sizeof(a));                                                          \
		a.test.prog_fd = fd;                                                               \
		__VA_ARGS__;                                                                       \
		note(do_bpf(in, BPF_PROG_TEST_RUN, &a, 76), what);                                 \
	} while (0)
	TRY("raw tracepoint", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 24);
	note(a.test.retval, "result");
	TRY("short context", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 8);
	TRY("long context", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 96);
	TRY("too long context", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 104);
	TRY("no context", raw);
	TRY("context without size", raw, a.test.ctx_in = U64(ctx));
	TRY("size without context", raw, a.test.ctx_size_in = 24);
	TRY("context nowhere", raw, a.test.ctx_in = 16, a.test.ctx_size_in = 24);
	TRY("repeat", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 24, a.test.repeat = 2);
	TRY("data", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 24,
	    a.test.data_in = U64(data), a.test.data_size_in = 64);
	TRY("cpu without flag", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 24,
	    a.test.cpu = 1);
	TRY("cpu", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 24, a.test.cpu = 1,
	    a.test.flags = 1);
	TRY("cpu that is not there", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 24,
	    a.test.cpu = 9999, a.test.flags = 1);
	TRY("unknown flag", raw, a.test.ctx_in = U64(ctx), a.test.ctx_size_in = 24,
	    a.test.flags = 128);
	TRY("socket filter", sock, a.test.data_in = U64(data), a.test.data_size_in = 64,
	    a.test.data_out = U64(out), a.test.data_size_out = 64);
	note(a.test.data_size_out, "data out");
	TRY("small data", sock, a.test.data_in = U64(data), a.test.data_size_in = 13);
	TRY("no data", sock);
	TRY("little room", sock, a.test.data_in = U64(data), a.test.data_size_in = 64,
	    a.test.data_out = U64(out), a.test.data_size_out = 10);
	note(a.test.data_size_out, "what there would be");
	TRY("not a program", 0);
	TRY("repeat 3", sock, a.test.data_in = U64(data), a.test.data_size_in = 64,
	    a.test.repeat = 3);
	memset(&a, 0, sizeof(a));
	a.enable_stats.type = 0;
	stats = do_bpf(in, BPF_ENABLE_STATS, &a, 4);
	note(stats >= 0, "statistics on");
	TRY("counted runs", sock, a.test.data_in = U64(data), a.test.data_size_in = 64,
	    a.test.repeat = 5);
	close(stats);
	a.enable_stats.type = 1;
	note(do_bpf(in, BPF_ENABLE_STATS, &a, 4), "statistics of another kind");
	close(sock);
	close(raw);
#undef TRY
}

static void next_ids(struct inlay *in)
{
	union bpf_attr a = {};
	int cmd;

	for (cmd = BPF_PROG_GET_NEXT_ID; cmd <= BPF_MAP_GET_NEXT_ID; cmd++) {
		a.start_id = 0x7fffffff;
		note(do_bpf(in, cmd, &a, 8), "start id too large");
		a.start_id = 0x7ffffffe;
		note(do_bpf(in, cmd, &a, 8), "nothing that late");
	}
	memset(&a, 0, sizeof(a));
	note(do_bpf(in, BPF_PROG_GET_FD_BY_ID, &a, 4), "program 0");
	a.map_id = 0x7ffffff0;
	note(do_bpf(in, BPF_MAP_GET_FD_BY_ID, &a, 12), "map that is not there");
	a.open_flags = BPF_F_RDONLY | BPF_F_WRONLY;
	note(do_bpf(in, BPF_MAP_GET_FD_BY_ID, &a, 12), "both access flags");
	a.open_flags = 1;
	note(do_bpf(in, BPF_MAP_GET_FD_BY_ID, &a, 12), "unknown flag");
}

/* ---- what needs no kernel ---- */

static struct sys_prog_info runs_of(struct inlay *in, int fd)
{
	struct sys_prog_info i = {};
	u32 len = sizeof(i);

	info(in, fd, &i, &len);
	return i;
}

static void statistics(struct inlay *in)
{
	long fd = prog_load(in, 1, ret0, 2), stats;
	union sys_attr a = {};
	char data[64] = {};

	a.test.prog_fd = fd;
	a.test.data_in = U64(data);
	a.test.data_size_in = 64;
	a.test.repeat = 3;
	do_bpf(in, BPF_PROG_TEST_RUN, &a, 76);
	is_u64(runs_of(in, fd).run_cnt, 0, "runs are not counted as long as nobody asks");
	stats = do_bpf(in, BPF_ENABLE_STATS, memset(&a, 0, sizeof(a)), 4);
	a.test.prog_fd = fd;
	a.test.data_in = U64(data);
	a.test.data_size_in = 64;
	a.test.repeat = 3;
	do_bpf(in, BPF_PROG_TEST_RUN, &a, 76);
	is_u64(runs_of(in, fd).run_cnt, 3, "with BPF_ENABLE_STATS they are");
	ok(runs_of(in, fd).run_time_ns > 0, "and their time");
	close(stats);
	do_bpf(in, BPF_PROG_TEST_RUN, &a, 76);
	is_u64(runs_of(in, fd).run_cnt, 3, "until its descriptor is closed");
	is_int(objects_settled(in, OBJ_STATS, 0), 0, "which leaves nothing");
	close(fd);
}

static void refusals(struct inlay *in)
{
	union sys_attr a;
	char buf[512] = "";
	long fd;

	attr_of(&a, BPF_PROG_TYPE_XDP, ret0, 2);
	a.prog_load.log_level = 1;
	a.prog_load.log_size = sizeof(buf);
	a.prog_load.log_buf = U64(buf);
	is_int(load(in, &a, sizeof(a)), -EINVAL, "a program type inlay lacks is EINVAL");
	ok(strstr(buf, "xdp"), "and the log names it");
	fd = map_create(in, BPF_MAP_TYPE_STACK_TRACE, 4, 8, 1, 0);
	is_int(fd, -EINVAL, "so is a map type");
	memset(&a, 0, sizeof(a));
	a.obj.pathname = U64("/sys/fs/bpf/x");
	a.obj.bpf_fd = map_create(in, 2, 4, 4, 1, 0);
	is_int(do_bpf(in, BPF_OBJ_PIN, &a, 16), -EPERM, "pinning is EPERM");
	close(a.obj.bpf_fd);
	a.obj.bpf_fd = 0;
	is_int(do_bpf(in, BPF_OBJ_GET, &a, 16), -ENOENT, "and nothing was pinned: ENOENT");
	is_int(objects_settled(in, OBJ_PROG, 0), 0, "no refused program is left");
	is_int(objects_settled(in, OBJ_BTF, 1), 1, "no BTF but the machine's");
	is_int(objects_settled(in, OBJ_MAP, 0), 0, "no map");
	is_int(objects_settled(in, OBJ_LINK, 0), 0, "no link");
}

int main(void)
{
	struct inlay *in = engine_start();

	both(in, "load attributes", load_attributes);
	both(in, "log arguments", log_arguments);
	both(in, "log sizes", log_sizes);
	both(in, "info sizes", info_sizes);
	both(in, "program info", prog_info);
	both(in, "map info", map_info);
	both(in, "BTF objects", btf_objects);
	both(in, "map with BTF", map_with_btf);
	both(in, "func and line info", func_and_line_info);
	both(in, "links", links);
	both(in, "binding", binding);
	both(in, "descriptor arrays", fd_arrays);
	both(in, "test runs", test_runs);
	both(in, "next ids", next_ids);
	statistics(in);
	refusals(in);
	inlay_destroy(in);
	return tap_done();
}
