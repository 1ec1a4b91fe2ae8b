// SPDX-License-Identifier: BSD-2-Clause
/*
 * PROG_LOAD: copy in, check what is not about instructions, then verifier, rewriter, engine.
 *
 * The program has no id until all is done, so nobody finds it half made; on any error its last
 * reference goes. The log reaches the caller in either case, and its own trouble (no room, a bad
 * address) outweighs the verdict.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "btf/btf.h"
#include "exec/exec.h"
#include "isa/uapi.h"
#include "object/map.h"
#include "object/progtype.h"
#include "rewrite/rewrite.h"
#include "sys/sys_int.h"
#include "verifier/verifier.h"

#define MAX_INSNS    1000000
#define MAX_FD_INDEX 65536
#define LICENSE_LEN  128
#define KNOWN_FLAGS                                                                                \
	(BPF_F_STRICT_ALIGNMENT | BPF_F_ANY_ALIGNMENT | BPF_F_TEST_RND_HI32 |                      \
	 BPF_F_TEST_STATE_FREQ | BPF_F_SLEEPABLE | BPF_F_XDP_HAS_FRAGS |                           \
	 BPF_F_XDP_DEV_BOUND_ONLY | BPF_F_TEST_REG_INVARIANTS | BPF_F_TOKEN_FD)

/* Linux's words for program types, by number: for the reason given when one is not served. */
static const char *const type_names[] = {
	"unspec",
	"socket_filter",
	"kprobe",
	"sched_cls",
	"sched_act",
	"tracepoint",
	"xdp",
	"perf_event",
	"cgroup_skb",
	"cgroup_sock",
	"lwt_in",
	"lwt_out",
	"lwt_xmit",
	"sock_ops",
	"sk_skb",
	"cgroup_device",
	"sk_msg",
	"raw_tracepoint",
	"cgroup_sock_addr",
	"lwt_seg6local",
	"lirc_mode2",
	"sk_reuseport",
	"flow_dissector",
	"cgroup_sysctl",
	"raw_tracepoint_writable",
	"cgroup_sockopt",
	"tracing",
	"struct_ops",
	"ext",
	"lsm",
	"sk_lookup",
	"syscall",
	"netfilter",
};

static const char *const gpl_licenses[] = {
	"GPL",		"GPL v2",	"GPL and additional rights",
	"Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL",
};

static int check_flags(struct sys_call *c)
{
	u32 flags = c->attr.prog_load.prog_flags;

	if (flags & ~KNOWN_FLAGS)
		return -EINVAL;
	if (flags & BPF_F_TOKEN_FD)
		return c->inlay->fds->accmode(c->inlay, c->attr.prog_load.prog_token_fd) < 0
			       ? -EBADF
			       : -EINVAL;
	return 0;
}

static int read_license(struct sys_call *c, bool *ret_gpl)
{
	char license[LICENSE_LEN];
	size_t i;

	if (user_read_str(c->um, license, c->attr.prog_load.license, sizeof(license)) < 0)
		return -EFAULT;
	*ret_gpl = false;
	for (i = 0; i < ARRAY_SIZE(gpl_licenses); i++)
		*ret_gpl |= !strcmp(license, gpl_licenses[i]);
	return 0;
}

/* What the program is to be attached to, as far as descriptors and ids say: Linux's rules for which
 * type may name what. */
static int check_target(struct sys_call *c)
{
	u32 type = c->attr.prog_load.prog_type, id = c->attr.prog_load.attach_btf_id;
	u32 fd = c->attr.prog_load.attach_prog_fd;
	struct obj *obj;
	int err;

	if (fd) {
		err = c->inlay->fds->get(c->inlay, (int)fd, &obj);
		if (err)
			return -EINVAL;
		if (obj->kind == OBJ_BTF)
			err = btf_obj_of(obj)->kernel ? 0 : -EOPNOTSUPP;
		else
			err = -EINVAL; /* programs attached to programs are not served */
		obj_put(obj);
		if (err || !id)
			return err ? err : -EINVAL;
	}
	if (!id)
		return 0;
	if (id > 0xfffff)
		return -EINVAL;
	return type == BPF_PROG_TYPE_TRACING || type == BPF_PROG_TYPE_LSM ||
			       type == BPF_PROG_TYPE_STRUCT_OPS || type == BPF_PROG_TYPE_EXT
		       ? 0
		       : -EINVAL;
}

/* What inlay has not got is refused, never ignored; the reason also goes to the verifier's log. */
static int check_served(struct sys_call *c, const struct prog_type_ops *ops, struct sys_log *log)
{
	u32 type = c->attr.prog_load.prog_type;

	if (!ops) {
		strbuf_printf(&log->text, "program type %u (%s) is not supported by inlay\n", type,
			      type < ARRAY_SIZE(type_names) ? type_names[type] : "unknown");
		return -EINVAL;
	}
	if (c->attr.prog_load.core_relo_cnt) {
		strbuf_puts(&log->text, "CO-RE relocations by the kernel (core_relos) are not "
					"supported by inlay\n");
		return -EOPNOTSUPP;
	}
	if (c->attr.prog_load.signature) {
		strbuf_puts(&log->text, "signed programs are not supported by inlay\n");
		return -EINVAL;
	}
	/* no type served here can be offloaded to a device */
	if (c->attr.prog_load.prog_ifindex)
		return -EINVAL;
	if (c->attr.prog_load.prog_flags & BPF_F_SLEEPABLE && type != BPF_PROG_TYPE_KPROBE) {
		strbuf_puts(&log->text, "Only fentry/fexit/fmod_ret, lsm, iter, uprobe, and "
					"struct_ops programs can be sleepable\n");
		return -EINVAL;
	}
	return 0;
}

static int copy_insns(struct sys_call *c, struct prog *prog)
{
	size_t size = (size_t)c->attr.prog_load.insn_cnt * sizeof(struct bpf_insn);
	void *mem;
	int err = user_dup(c->um, c->attr.prog_load.insns, size, &mem);

	if (err)
		return err;
	prog->orig = mem;
	prog->nr_orig = prog->nr_insns = c->attr.prog_load.insn_cnt;
	prog->insns = malloc(size);
	if (!prog->insns)
		return -ENOMEM;
	memcpy(prog->insns, prog->orig, size);
	sys_prog_tag(prog->orig, prog->nr_orig, prog->tag);
	return 0;
}

static u64 boottime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* ---- fd_array ---- */

/* Descriptors are named by index in loads of maps and calls of kfuncs: how many does the program
 * name? */
static u32 fd_array_used(const struct prog *prog)
{
	u32 i, used = 0, index;

	for (i = 0; i < prog->nr_insns; i++) {
		const struct bpf_insn *insn = &prog->insns[i];

		if (insn->code == (BPF_LD | BPF_IMM | BPF_DW) &&
		    (insn->src_reg == BPF_PSEUDO_MAP_IDX ||
		     insn->src_reg == BPF_PSEUDO_MAP_IDX_VALUE))
			index = insn->imm;
		else if (insn->code == (BPF_JMP | BPF_CALL) &&
			 insn->src_reg == BPF_PSEUDO_KFUNC_CALL)
			index = insn->off;
		else
			continue;
		used = max_of(used, index < MAX_FD_INDEX ? index + 1 : 0);
	}
	return used;
}

static int copy_fd_array(struct sys_call *c, const struct prog *prog, s32 **ret_fds, u32 *ret_cnt)
{
	u32 cnt = c->attr.prog_load.fd_array_cnt;
	void *mem;
	int err;

	*ret_fds = NULL;
	*ret_cnt = 0;
	if (!c->attr.prog_load.fd_array)
		return cnt ? -EFAULT : 0;
	if (cnt > MAX_FD_INDEX)
		return -E2BIG;
	if (!cnt)
		cnt = fd_array_used(prog);
	if (!cnt)
		return 0;
	err = user_dup(c->um, c->attr.prog_load.fd_array, cnt * sizeof(s32), &mem);
	if (err)
		return err;
	*ret_fds = mem;
	*ret_cnt = cnt;
	return 0;
}

/* With fd_array_cnt every entry must be a map or BTF, and the program keeps the maps, used or not.
 */
static int bind_fd_array(struct sys_call *c, struct prog *prog, const s32 *fds, struct sys_log *log)
{
	struct obj *obj;
	int err = 0;
	u32 i;

	for (i = 0; i < c->attr.prog_load.fd_array_cnt && !err; i++) {
		err = c->inlay->fds->get(c->inlay, fds[i], &obj);
		if (!err && obj->kind == OBJ_MAP)
			err = sys_prog_add_map(c->inlay, prog, map_of(obj));
		else if (!err && obj->kind != OBJ_BTF)
			err = -EINVAL;
		else if (err) {
			strbuf_printf(&log->text, "fd %d is not pointing to valid bpf_map or btf\n",
				      fds[i]);
			return err;
		}
		obj_put(obj);
	}
	return err;
}

/* ---- the pipeline ---- */

static int verify(struct sys_call *c, struct prog *prog, struct sys_log *log, const s32 *fds,
		  u32 nr_fds)
{
	u32 flags = prog->flags;
	struct vrf_opts opts = {
		.log_level = log->level,
		.log = &log->text,
		.fd_array = fds,
		.fd_array_cnt = nr_fds,
		.strict_alignment = flags & BPF_F_STRICT_ALIGNMENT,
		.any_alignment = flags & BPF_F_ANY_ALIGNMENT,
		.test_state_freq = flags & BPF_F_TEST_STATE_FREQ,
		.test_reg_invariants = flags & BPF_F_TEST_REG_INVARIANTS,
	};
	struct vrf_stats stats = {0};
	int err = vrf_check(prog, &opts, &stats);

	prog->verified_insns = stats.insns_processed;
	return err;
}

/* Maps of programs to call take only such as are like the first; a user of theirs counts. */
static int admit(struct prog *prog)
{
	u32 i;
	int err = 0;

	for (i = 0; i < prog->nr_maps && !err; i++)
		if (prog->maps[i]->ops->admit)
			err = prog->maps[i]->ops->admit(prog->maps[i], prog);
	return err;
}

static int judge(struct sys_call *c, struct prog *prog, struct sys_log *log)
{
	u32 nr_fds;
	s32 *fds;
	int err = copy_fd_array(c, prog, &fds, &nr_fds);

	if (err)
		return err;
	err = bind_fd_array(c, prog, fds, log);
	if (!err)
		err = sys_prog_load_info(c, prog, log);
	if (!err && prog->ops->check_load)
		err = prog->ops->check_load(prog, &log->text);
	if (!err)
		err = verify(c, prog, log, fds, nr_fds);
	free(fds);
	if (!err)
		err = rw_xlate(prog, &log->text);
	if (!err)
		err = rw_lower(prog, exec_caps(c->inlay), &log->text);
	if (!err)
		err = exec_prepare(prog, &log->text);
	return err ? err : admit(prog);
}

static int fill(struct sys_call *c, struct prog *prog, bool gpl)
{
	int err;

	prog->type = c->attr.prog_load.prog_type;
	prog->expected_attach_type = c->attr.prog_load.expected_attach_type;
	prog->flags = c->attr.prog_load.prog_flags;
	prog->sleepable = prog->flags & BPF_F_SLEEPABLE;
	prog->attach_btf_id = c->attr.prog_load.attach_btf_id;
	prog->gpl_compatible = gpl;
	prog->uid = getuid();
	prog->load_time_ns = boottime_ns();
	prog->ops = prog_type_ops(prog->type);
	err = copy_insns(c, prog);
	return err ? err : sys_copy_name(prog->name, c->attr.prog_load.prog_name);
}

/* From here on there is a log: whatever happens, it is handed over. */
static int load_logged(struct sys_call *c, struct prog *prog)
{
	struct sys_log log;
	u32 true_size;
	int err = sys_log_init(&log, c->attr.prog_load.log_level, c->attr.prog_load.log_size,
			       c->attr.prog_load.log_buf);

	if (err)
		return err;
	err = check_served(c, prog->ops, &log);
	if (!err)
		err = judge(c, prog, &log);
	if (err && log.text.len)
		log_to(&c->inlay->log, LOG_DEBUG, "program '%s': %s", prog->name,
		       strbuf_str(&log.text));
	if (strbuf_failed(&log.text))
		err = -ENOMEM;
	err = sys_log_finish(c, &log, err, &true_size);
	sys_log_fini(&log);
	if (c->usize >= offsetof(union sys_attr, prog_load.prog_token_fd) &&
	    sys_put_field(c, prog_load.log_true_size, &true_size))
		return -EFAULT;
	return err;
}

long sys_prog_load(struct sys_call *c)
{
	struct prog *prog;
	bool gpl;
	int err = check_flags(c);

	if (err)
		return err;
	if (!c->attr.prog_load.insn_cnt || c->attr.prog_load.insn_cnt > MAX_INSNS)
		return -E2BIG;
	err = read_license(c, &gpl);
	if (!err)
		err = check_target(c);
	if (err)
		return err;
	prog = prog_create(c->inlay);
	if (!prog)
		return -ENOMEM;
	err = fill(c, prog, gpl);
	if (!err)
		err = load_logged(c, prog);
	if (err) {
		obj_put(&prog->obj);
		return err;
	}
	return sys_return_fd(c, &prog->obj, O_RDWR);
}
