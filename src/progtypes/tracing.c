// SPDX-License-Identifier: BSD-2-Clause
// Tracing programs, of which the user engine serves tp_btf: a raw tracepoint whose arguments are typed by BTF.
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "btf/btf.h"
#include "object/helper.h"
#include "object/instance.h"
#include "object/link.h"
#include "progtypes/progtypes_int.h"

#define TP_PREFIX "btf_trace_"
#define TP_HIDDEN_ARGS 1 /* void *__data */

static int check_load(struct prog *prog, struct strbuf *log)
{
	const struct btf *btf = prog->obj.inlay->vmlinux;
	u32 id = prog->attach_btf_id;
	const struct btf_type *t;

	if (!id) {
		strbuf_puts(log, "Tracing programs must provide btf_id\n");
		return -EINVAL;
	}
	t = btf_type_by_id(btf, id);
	if (!t) {
		strbuf_printf(log, "attach_btf_id %u is invalid\n", id);
		return -EINVAL;
	}
	if (!*btf_type_name(btf, id)) {
		strbuf_printf(log, "attach_btf_id %u doesn't have a name\n", id);
		return -EINVAL;
	}
	if (prog->expected_attach_type != BPF_TRACE_RAW_TP) {
		strbuf_printf(log, "inlay serves tp_btf of the tracing programs; attach type %u is not served\n",
			      prog->expected_attach_type);
		return -EINVAL;
	}
	if (btf_kind(t) != BTF_KIND_TYPEDEF) {
		strbuf_printf(log, "attach_btf_id %u is not a typedef\n", id);
		return -EINVAL;
	}
	if (strncmp(btf_type_name(btf, id), TP_PREFIX, strlen(TP_PREFIX))) {
		strbuf_printf(log, "attach_btf_id %u points to wrong type name %s\n", id, btf_type_name(btf, id));
		return -EINVAL;
	}
	t = btf_type_by_id(btf, t->type);
	if (!t || btf_kind(t) != BTF_KIND_PTR)
		return -EINVAL;
	prog->attach_proto = t->type;
	t = btf_type_by_id(btf, t->type);
	if (!t || btf_kind(t) != BTF_KIND_FUNC_PROTO || btf_vlen(t) < TP_HIDDEN_ARGS)
		return -EINVAL;
	prog->attach_name = btf_type_name(btf, id) + strlen(TP_PREFIX);
	return 0;
}

static bool is_valid_access(const struct prog *prog, s32 off, u32 size, bool write, struct ctx_access *info)
{
	if (!progtype_plain_read(off, size, write, 0, RAW_TP_MAX_ARGS * 8, info))
		return false;
	return progtype_btf_ctx_access(prog, TP_HIDDEN_ARGS, off, size, info);
}

static int attach(struct prog *prog, const char *tp_name, struct obj *target, u64 cookie, struct link **ret_link)
{
	struct env_hook *hook;

	if (tp_name || target)
		return -EINVAL;
	hook = env_hook_find(prog->obj.inlay->env, prog->attach_name);
	if (!hook)
		return -ENOENT;
	return link_attach_hook(prog, BPF_LINK_TYPE_RAW_TRACEPOINT, prog->expected_attach_type, hook, cookie, ret_link);
}

/* Linux calls test functions of its own to be traced; for a tracepoint it has none, and this is what it says. */
static int test_run(struct prog *prog, struct test_run *run)
{
	return run->flags || run->cpu || run->batch_size ? -EINVAL : -EFAULT;
}

const struct prog_type_ops prog_type_tracing = {
	.name = "tracing",
	.type = BPF_PROG_TYPE_TRACING,
	.helper_groups = HELPERS_BASE | HELPERS_TRACING,
	.kfunc_groups = KFUNCS_GENERIC,
	.check_load = check_load,
	.is_valid_access = is_valid_access,
	.ret_range = progtype_any_return,
	.attach = attach,
	.test_run = test_run,
};
