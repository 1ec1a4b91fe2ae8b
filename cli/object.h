/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BPF object files: read, looked at before libbpf sees them, opened, loaded one program at a time.
 */
#ifndef INLAY_CLI_OBJECT_H
#define INLAY_CLI_OBJECT_H

#include "engine.h"

struct bpf_object;
struct bpf_program;

struct cli_object {
	const char *path; /* the caller's */
	char name[256];	  /* the file's, without its folder */
	void *data;
	size_t size;
};

/*
 * 0, or -errno with one line in err: no such file, no BPF object, one that points outside itself …
 */
int cli_object_read(const char *path, struct cli_object *ret_obj, struct strbuf *err);
void cli_object_free(struct cli_object *obj); /* takes a zeroed one */

/* Inside cli_engine_enter(). 0, or -errno with one line in err. */
int cli_object_open(const struct cli_object *obj, const struct cli_engine *engine,
		    struct bpf_object **ret_obj, struct strbuf *err);

/*
 * What libbpf said last of a failure, in one line: its last warning that says more than "failed".
 * Never NULL.
 */
const char *cli_object_reason(struct strbuf *scratch);

/* What the verifier said of a program. */
struct cli_verdict {
	int err; /* 0: accepted; -errno */
	u32 insns, states;
	u64 time_us;
	struct strbuf reason; /* of a refusal, one line */
	struct strbuf source; /* the source line it was at: "text @ file.c:42"; empty: unknown */
};

void cli_verdict_fini(struct cli_verdict *v);

/*
 * Loads program `index` of the object alone: all others off, struct_ops maps off, untyped programs
 * as sched_cls. The program is unloaded again unless ret_open is given (NULL on failure;
 * bpf_object__close() it). 0 or -ENOMEM.
 */
int cli_object_judge(const struct cli_object *obj, const struct cli_engine *engine, size_t index,
		     struct cli_verdict *ret, struct bpf_object **ret_open,
		     struct bpf_program **ret_prog);

/* Name and type word of program index; false: there is none. The text lives as long as open. */
bool cli_object_program(struct bpf_object *open, size_t index, const char **ret_name,
			const char **ret_type);

#endif
