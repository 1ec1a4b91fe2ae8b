// SPDX-License-Identifier: BSD-2-Clause
// Which engine runs a program, and what both need.
#include "exec/exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "env/env.h"
#include "exec/exec_int.h"
#include "exec/jit/jit.h"
#include "object/instance.h"
#include "object/map.h"

static const struct exec_impl *engine_of(const struct inlay *inlay)
{
	return !(inlay && inlay->interp) && !jit_available() ? &jit_impl : &exec_interp;
}

const struct caps *exec_caps(const struct inlay *inlay)
{
	return engine_of(inlay)->caps;
}

int exec_make_funcs(struct prog *prog, u32 nr)
{
	u32 i;

	free(prog->funcs);
	prog->funcs = calloc(nr + 1, sizeof(*prog->funcs));
	if (!prog->funcs)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		prog->funcs[i] = (struct bpf_func){ .prog = prog, .subprog = i };
	return 0;
}

u32 exec_exception_cb(const struct prog *text)
{
	u32 i;

	for (i = 0; i < text->nr_subprogs; i++)
		if (text->subprogs[i].is_exception_cb)
			return i;
	return PROG_NO_SUBPROG;
}

/* The index is a u32 to Linux: what is above is not looked at. */
struct prog *exec_tail_target(struct map *map, u64 index)
{
	struct prog *target = NULL;

	if (env_tls.tail_calls < EXEC_TAIL_CALLS_MAX && map->ops->prog_at)
		target = map->ops->prog_at(map, (u32)index);
	if (!target || !target->image)
		return NULL;
	env_tls.tail_calls++;
	return target;
}

/* Such a program runs ten times slower: its loader is told, the instance's log too, and it is counted. */
static void say_interpreted(const struct prog *prog, struct strbuf *log, const struct strbuf *why)
{
	struct inlay *inlay = prog->obj.inlay;
	const char *text = strbuf_str(why);

	if (log && why->len)
		strbuf_printf(log, "not compiled, interpreted: %s", text);
	if (!inlay || jit_available())
		return;
	__atomic_fetch_add(&inlay->nr_refused, 1, __ATOMIC_RELAXED);
	log_to(&inlay->log, LOG_WARN, "program '%s' is not compiled but interpreted: %.*s", prog->name,
	       (int)strcspn(text, "\n"), text);
}

int exec_prepare_as(struct prog *prog, enum exec_engine engine, struct strbuf *log)
{
	const struct prog *text = exec_text(prog);
	struct strbuf why = STRBUF_INIT;
	int err;

	if (!text->nr_insns || !text->nr_subprogs || !text->facts)
		return -EINVAL;
	if (engine == EXEC_INTERP || (engine == EXEC_AUTO && prog->obj.inlay && prog->obj.inlay->interp))
		return exec_interp.prepare(prog, log);
	if (engine == EXEC_JIT)
		return jit_impl.prepare(prog, log);
	err = jit_impl.prepare(prog, &why);
	if (err && err != -ENOMEM) {
		err = exec_interp.prepare(prog, log);
		if (!err)
			say_interpreted(prog, log, &why);
	}
	strbuf_fini(&why);
	return err;
}

int exec_prepare(struct prog *prog, struct strbuf *log)
{
	return exec_prepare_as(prog, EXEC_AUTO, log);
}

int exec_jit_info(const struct prog *prog, struct exec_jit_info *ret_info)
{
	const struct exec_head *head = prog->image;

	if (!head || head->impl != &jit_impl)
		return -ENOENT;
	jit_info(prog, ret_info);
	return 0;
}

int exec_jit_show(const struct prog *prog, const char *arch, struct exec_jit_info *ret_info, void **ret_mem, struct strbuf *log)
{
	return jit_show(prog, arch, ret_info, ret_mem, log);
}
