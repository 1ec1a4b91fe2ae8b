// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inlining changes nothing but time: random programs that use maps of every kind, maps in maps, and helpers, on the same
 * contents, compiled with everything inlined, with each kind switched off, with nothing inlined, and interpreted. What they
 * return and what is then in the maps must be the same.
 */
#include "../sys/engine.h"
#include "base/strbuf.h"
#include "isa/asm.h"
#include "object/gen.h"

#define NR_MAPS 9
#define KEYS	16

/* Outer maps last: they hold map 0 and map 1. */
enum { ARRAY, HASH, ODD_HASH, LATE_HASH, CPU_ARRAY, CPU_HASH, ODD_ARRAY, ARRAY_OF, HASH_OF };

struct side {
	const char *name;
	struct inlay *in;
	int fd[NR_MAPS];
	u64 ret;
	u8 content[NR_MAPS][KEYS][2 * 32];
	int found[NR_MAPS][KEYS];
};

static u64 seed = 88172645463325252ULL;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

static int of_maps(struct inlay *in, u32 type, int inner)
{
	union bpf_attr a = { .map_type = type, .key_size = 4, .value_size = 4, .max_entries = KEYS, .inner_map_fd = inner };

	return do_bpf(in, BPF_MAP_CREATE, &a, sizeof(a));
}

static void begin(struct side *s)
{
	u32 key;

	s->fd[ARRAY] = map_create(s->in, BPF_MAP_TYPE_ARRAY, 4, 8, 8, 0);
	s->fd[HASH] = map_create(s->in, BPF_MAP_TYPE_HASH, 4, 8, KEYS, 0);
	s->fd[ODD_HASH] = map_create(s->in, BPF_MAP_TYPE_HASH, 12, 20, KEYS, 0);
	s->fd[LATE_HASH] = map_create(s->in, BPF_MAP_TYPE_HASH, 4, 8, KEYS, BPF_F_NO_PREALLOC);
	s->fd[CPU_ARRAY] = map_create(s->in, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 8, 0);
	s->fd[CPU_HASH] = map_create(s->in, BPF_MAP_TYPE_PERCPU_HASH, 4, 8, KEYS, 0);
	s->fd[ODD_ARRAY] = map_create(s->in, BPF_MAP_TYPE_ARRAY, 4, 20, 5, 0);
	s->fd[ARRAY_OF] = of_maps(s->in, BPF_MAP_TYPE_ARRAY_OF_MAPS, s->fd[ARRAY]);
	s->fd[HASH_OF] = of_maps(s->in, BPF_MAP_TYPE_HASH_OF_MAPS, s->fd[HASH]);
	for (key = 0; key < KEYS; key += 3) {
		elem(s->in, BPF_MAP_UPDATE_ELEM, s->fd[ARRAY_OF], &key, &s->fd[ARRAY], 0);
		elem(s->in, BPF_MAP_UPDATE_ELEM, s->fd[HASH_OF], &key, &s->fd[HASH], 0);
	}
}

static void put(struct strbuf *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct strbuf *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	strbuf_vprintf(t, fmt, args);
	va_end(args);
}

/* The key at r10 - 16, a constant or what r8 holds; r2 points to it. */
static void put_key(struct strbuf *t)
{
	if (rnd() % 2)
		put(t, "*(u32 *)(r10 - 16) = %u;", rnd() % (KEYS + 2));
	else
		put(t, "*(u32 *)(r10 - 16) = r8;");
	if (rnd() % 4 == 0)
		put(t, "call 8; r7 += r0;");
	put(t, "r2 = r10; r2 += -16;");
}

/* With a value's address in r0, or NULL. */
static void put_use(struct strbuf *t, u32 i)
{
	put(t, "if r0 == 0 goto no%u;", i);
	if (rnd() % 3)
		put(t, "r1 = *(u64 *)(r0 + 0); r7 ^= r1; r7 += %u;", rnd() & 0xff);
	if (rnd() % 3)
		put(t, "*(u64 *)(r0 + 0) = r%u;", 7 + rnd() % 2);
	put(t, "r8 ^= %u; no%u: r8 &= 15;", rnd() & 15, i);
}

static void put_step(struct strbuf *t, u32 i)
{
	u32 map = rnd() % (ODD_ARRAY + 1);

	switch (rnd() % 8) {
	case 0:
		put(t, "*(u64 *)(r10 - 40) = r7; *(u64 *)(r10 - 32) = r8; *(u64 *)(r10 - 24) = 1;");
		put_key(t);
		put(t, "r3 = r10; r3 += -40; r4 = %u; r1 = m%u; call 2; r7 += r0;", rnd() % 3, map);
		break;
	case 1:
		put_key(t);
		put(t, "r1 = m%u; call 3; r7 ^= r0;", map == ARRAY || map == CPU_ARRAY || map == ODD_ARRAY ? HASH : map);
		break;
	case 2:
		put_key(t);
		put(t, "r1 = m%u; call 1; if r0 == 0 goto out%u; r1 = r0; r2 = r10; r2 += -16; call 1;",
		    rnd() % 2 ? ARRAY_OF : HASH_OF, i);
		put_use(t, i);
		put(t, "out%u:", i);
		break;
	case 3:
		put(t, "call %u; r7 += r0;", rnd() % 2 ? 7 : 42);
		break;
	case 4: /* one of two maps */
		put_key(t);
		put(t, "r1 = m%u; if r8 > 7 goto other%u; r1 = m%u; other%u: call 1;", HASH, i, LATE_HASH, i);
		put_use(t, i);
		break;
	default:
		put_key(t);
		put(t, "r1 = m%u; call 1;", map);
		put_use(t, i);
	}
}

static void generate(struct strbuf *t)
{
	u32 i, steps = 2 + rnd() % 14;

	put(t, "r6 = r1; r7 = *(u64 *)(r6 + 8); r8 = *(u64 *)(r6 + 0); r8 &= 15; *(u64 *)(r10 - 16) = 0; *(u64 *)(r10 - 8) = 0;");
	for (i = 0; i < steps; i++)
		put_step(t, i);
	put(t, "r0 = r7; r7 >>= 32; w0 ^= w7; exit");
}

static bool symbol(void *ctx, const char *name, struct isa_symbol *ret)
{
	const struct side *s = ctx;

	if (name[0] != 'm')
		return false;
	*ret = (struct isa_symbol){ .src = BPF_PSEUDO_MAP_FD, .imm = s->fd[atoi(name + 1)] };
	return true;
}

static char reason[1 << 16];

static long run_on(struct side *s, const char *text, const u64 args[2])
{
	struct isa_symbols syms = { .ctx = s, .symbol = symbol };
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .license = U64("GPL"), .log_level = 1,
				.log_buf = U64(reason), .log_size = sizeof(reason) };
	union bpf_attr test = { 0 };
	struct strbuf why = STRBUF_INIT;
	struct isa_code code;
	long err, fd;
	int i;

	err = isa_assemble(text, &syms, &code, &why);
	if (err) {
		printf("# %s\n", strbuf_str(&why));
		return err;
	}
	load.insns = U64(code.insns);
	load.insn_cnt = code.len;
	fd = do_bpf(s->in, BPF_PROG_LOAD, &load, sizeof(load));
	isa_code_fini(&code);
	if (fd < 0)
		return fd;
	test.test.prog_fd = fd;
	test.test.ctx_in = U64(args);
	test.test.ctx_size_in = 16;
	for (i = 0; i < 3 && !err; i++) {
		err = do_bpf(s->in, BPF_PROG_TEST_RUN, &test, sizeof(test.test));
		s->ret = s->ret * 31 + test.test.retval;
	}
	close(fd);
	return err;
}

static void read_maps(struct side *s)
{
	u32 map, key;

	memset(s->content, 0, sizeof(s->content));
	for (map = 0; map < ARRAY_OF; map++)
		for (key = 0; key < KEYS; key++) {
			u64 wide[2] = { key, 0 };

			s->found[map][key] = elem(s->in, BPF_MAP_LOOKUP_ELEM, s->fd[map], wide, s->content[map][key], 0);
		}
}

static void compare(struct side *sides, int nr, int rounds)
{
	int i, k, bad = 0, loaded = 0;

	for (i = 0; i < rounds && !bad; i++) {
		u64 args[2] = { rnd(), (u64)rnd() << 32 | rnd() };
		struct strbuf t = STRBUF_INIT;
		long err = 0;

		generate(&t);
		for (k = 0; k < nr && !err; k++) {
			sides[k].ret = 0;
			err = run_on(&sides[k], strbuf_str(&t), args);
		}
		if (err) {
			bad++;
			printf("# %s: %ld: %s\n# %s\n", sides[k - 1].name, err, strbuf_str(&t), reason);
		}
		loaded += !err;
		for (k = 0; k < nr; k++)
			read_maps(&sides[k]);
		for (k = 1; k < nr && !err; k++) {
			if (sides[k].ret == sides[0].ret && !memcmp(sides[k].content, sides[0].content, sizeof(sides[k].content)) &&
			    !memcmp(sides[k].found, sides[0].found, sizeof(sides[k].found)))
				continue;
			bad++;
			printf("# %s and %s: %#llx %#llx: %s\n", sides[0].name, sides[k].name, (unsigned long long)sides[0].ret,
			       (unsigned long long)sides[k].ret, strbuf_str(&t));
		}
		strbuf_fini(&t);
	}
	ok(!bad, "%d programs return and leave the same, inlined or not", loaded);
}

int main(int argc, char **argv)
{
	static struct side sides[] = {
		{ .name = "interpreted" }, { .name = "inlined" },   { .name = "called" },
		{ .name = "no-map" },	   { .name = "no-helper" },
	};
	static const u32 off[] = { 0, 0, INLINE_ALL, INLINE_MAP, INLINE_HELPER };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sides); i++) {
		struct inlay_opts o = { .size = sizeof(o), .nr_cpus = 2, .seed = 7, .log = drop_log, .interp = i == 0 };

		if (inlay_create(&o, &sides[i].in))
			return 1;
		sides[i].in->inline_off = off[i];
		begin(&sides[i]);
	}
	compare(sides, ARRAY_SIZE(sides), argc > 1 ? atoi(argv[1]) : 600);
	for (i = 0; i < ARRAY_SIZE(sides); i++)
		inlay_destroy(sides[i].in);
	return tap_done();
}
