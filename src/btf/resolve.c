// SPDX-License-Identifier: BSD-2-Clause
/*
 * Follows the references between types, in the order Linux does, to find rings, missing types and
 * sizes.
 *
 * A type is a frame on a stack of 32; a step of its kind either pushes the type it waits for or
 * finishes the frame. A pointer may lead back to a struct that is still open, and a struct may hold
 * a pointer whose target is not known yet: what ends a search ("a sink") therefore depends on
 * whether it goes through pointers or through structs and arrays (enum btf_mode). Each type is
 * pushed at most once, so the work is linear in the number of types and members.
 */
#include "btf/btf_int.h"

#include <errno.h>

#define BAD(env, t, ...) (btf_env_log_type(env, t, __VA_ARGS__), -EINVAL)

enum btf_visit {
	NOT_VISITED,
	OPEN,
	RESOLVED,
};

static bool needs_resolve(const struct btf_type *t)
{
	return btf_kinds[btf_kind(t)].resolve;
}

/* Kinds nothing but their own users may refer to. */
static bool source_only(const struct btf_type *t)
{
	u32 kind = btf_kind(t);

	return kind == BTF_KIND_VAR || kind == BTF_KIND_DECL_TAG || kind == BTF_KIND_DATASEC;
}

static bool is_resolved(const struct btf_env *env, u32 id)
{
	/* A base was resolved when it was parsed. */
	return id < env->btf->start_id || env->visited[id - env->btf->start_id] == RESOLVED;
}

static bool is_sink(const struct btf_env *env, const struct btf_type *t)
{
	if (env->mode == BTF_MODE_TBD)
		return !needs_resolve(t);
	if (btf_is_modifier(t))
		return false;
	if (env->mode == BTF_MODE_PTR)
		return btf_kind(t) != BTF_KIND_PTR;
	return btf_kind(t) != BTF_KIND_ARRAY && !btf_is_struct_or_union(t);
}

static bool must_wait(const struct btf_env *env, const struct btf_type *t, u32 id)
{
	return !is_sink(env, t) && !is_resolved(env, id);
}

static int push(struct btf_env *env, const struct btf_type *t, u32 id)
{
	u32 at = id - env->btf->start_id;

	if (env->depth == BTF_MAX_DEPTH)
		return -E2BIG;
	if (id < env->btf->start_id || env->visited[at] != NOT_VISITED)
		return -EEXIST;
	env->visited[at] = OPEN;
	env->stack[env->depth++] = (struct btf_frame){.t = t, .id = id};
	if (env->mode == BTF_MODE_TBD) {
		if (btf_kind(t) == BTF_KIND_PTR)
			env->mode = BTF_MODE_PTR;
		else if (btf_kind(t) == BTF_KIND_ARRAY || btf_is_struct_or_union(t))
			env->mode = BTF_MODE_STRUCT;
	}
	return 0;
}

static int finish(struct btf_env *env, u32 resolved_id, u32 resolved_size)
{
	u32 at = env->stack[--env->depth].id - env->btf->start_id;

	env->visited[at] = RESOLVED;
	env->btf->resolved_id[at] = resolved_id;
	env->btf->resolved_size[at] = resolved_size;
	return 0;
}

/* A type that a sized thing cannot be made of, but that a typedef or pointer may name. */
static bool may_be_named(const struct btf_type *t)
{
	u32 kind = btf_kind(t);

	return kind == BTF_KIND_UNKN || kind == BTF_KIND_FWD || kind == BTF_KIND_FUNC_PROTO;
}

/* Moves *id along what was resolved before, to the last type known. */
static const struct btf_type *follow_resolved(struct btf_env *env, u32 *id)
{
	*id = btf_resolved_id(env->btf, *id);
	return btf_type_at(env->btf, *id);
}

/*
 * The last part of a pointer's or modifier's step: what it ends at must have a size or be nameable.
 */
static int finish_ref(struct btf_env *env, struct btf_frame *f, u32 id)
{
	const struct btf_type *t = btf_type_at(env->btf, id);

	if (!btf_id_size(env->btf, &id, NULL)) {
		if (is_resolved(env, id) && needs_resolve(t))
			t = follow_resolved(env, &id);
		if (!may_be_named(t))
			return BAD(env, f->t, "Invalid type_id");
	}
	return finish(env, id, 0);
}

int btf_resolve_modifier(struct btf_env *env, struct btf_frame *f)
{
	u32 id = f->t->type;
	const struct btf_type *next = btf_type_at(env->btf, id);

	if (!next || source_only(next))
		return BAD(env, f->t, "Invalid type_id");
	if (must_wait(env, next, id))
		return push(env, next, id);
	return finish_ref(env, f, id);
}

/*
 * A modifier finished below a struct may have stopped at a pointer that is not finished. Whoever
 * needs to go on through pointers waits for that one too. Returns 1 if a frame was pushed, 0 or
 * -errno.
 */
static int wait_behind_modifier(struct btf_env *env, const struct btf_type *next, u32 id)
{
	int err;

	if (!btf_is_modifier(next))
		return 0;
	next = follow_resolved(env, &id);
	if (btf_kind(next) != BTF_KIND_PTR || !must_wait(env, next, id))
		return 0;
	err = push(env, next, id);
	return err ? err : 1;
}

int btf_resolve_ptr(struct btf_env *env, struct btf_frame *f)
{
	u32 id = f->t->type;
	const struct btf_type *next = btf_type_at(env->btf, id);
	int rc;

	if (!next || source_only(next))
		return BAD(env, f->t, "Invalid type_id");
	if (must_wait(env, next, id))
		return push(env, next, id);
	rc = wait_behind_modifier(env, next, id);
	if (rc)
		return min_of(rc, 0);
	return finish_ref(env, f, id);
}

int btf_resolve_var(struct btf_env *env, struct btf_frame *f)
{
	u32 id = f->t->type;
	const struct btf_type *next = btf_type_at(env->btf, id);
	int rc;

	if (!next || source_only(next))
		return BAD(env, f->t, "Invalid type_id");
	if (must_wait(env, next, id))
		return push(env, next, id);
	rc = wait_behind_modifier(env, next, id);
	if (rc)
		return min_of(rc, 0);
	if (!btf_id_size(env->btf, &id, NULL))
		return BAD(env, f->t, "Invalid type_id");
	return finish(env, id, 0);
}

/* A type something with a size can be made of, as far as its kind tells. */
static bool can_have_size(const struct btf_type *t)
{
	return !btf_has_no_size(t) && !source_only(t);
}

int btf_resolve_array(struct btf_env *env, struct btf_frame *f)
{
	const struct btf_array *a = btf_array(f->t);
	u32 elem_id = a->type, index_id = a->index_type, elem_size;
	const struct btf_type *t = btf_type_at(env->btf, index_id);

	if (!can_have_size(t))
		return BAD(env, f->t, "Invalid index");
	if (must_wait(env, t, index_id))
		return push(env, t, index_id);
	t = btf_id_size(env->btf, &index_id, NULL);
	if (!t || btf_kind(t) != BTF_KIND_INT || !btf_int_is_regular(t))
		return BAD(env, f->t, "Invalid index");

	t = btf_type_at(env->btf, elem_id);
	if (!can_have_size(t))
		return BAD(env, f->t, "Invalid elem");
	if (must_wait(env, t, elem_id))
		return push(env, t, elem_id);
	t = btf_id_size(env->btf, &elem_id, &elem_size);
	if (!t)
		return BAD(env, f->t, "Invalid elem");
	if (btf_kind(t) == BTF_KIND_INT && !btf_int_is_regular(t))
		return BAD(env, f->t, "Invalid array of int");
	if ((u64)elem_size * a->nelems > U32_MAX)
		return BAD(env, f->t, "Array size overflows U32_MAX");
	return finish(env, elem_id, elem_size * a->nelems);
}

static int check_member(struct btf_env *env, const struct btf_type *s, const struct btf_member *m)
{
	const struct btf_type *t = btf_type_at(env->btf, m->type);

	return btf_kinds[btf_kind(t)].check_member(env, s, m, t, btf_kflag(s));
}

int btf_resolve_struct(struct btf_env *env, struct btf_frame *f)
{
	const struct btf_type *s = f->t, *t;
	const struct btf_member *m = btf_members(s);
	u32 i = f->next_member;
	int err;

	/* The member this frame waited for. */
	if (i) {
		err = check_member(env, s, m + i - 1);
		if (err)
			return err;
	}
	for (; i < btf_vlen(s); i++) {
		t = btf_type_at(env->btf, m[i].type);
		if (!can_have_size(t)) {
			btf_env_log_member(env, s, m + i, "Invalid member");
			return -EINVAL;
		}
		if (must_wait(env, t, m[i].type)) {
			f->next_member = i + 1;
			return push(env, t, m[i].type);
		}
		err = check_member(env, s, m + i);
		if (err)
			return err;
	}
	return finish(env, 0, 0);
}

int btf_resolve_datasec(struct btf_env *env, struct btf_frame *f)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(f->t);
	const struct btf_type *var;
	u32 i, id, size;

	env->mode = BTF_MODE_TBD;
	for (i = f->next_member; i < btf_vlen(f->t); i++) {
		var = btf_type_at(env->btf, v[i].type);
		if (!var || btf_kind(var) != BTF_KIND_VAR) {
			btf_env_log_vsi(env, f->t, v + i, "Not a VAR kind member");
			return -EINVAL;
		}
		if (must_wait(env, var, v[i].type)) {
			f->next_member = i + 1;
			return push(env, var, v[i].type);
		}
		id = var->type;
		if (!btf_id_size(env->btf, &id, &size)) {
			btf_env_log_vsi(env, f->t, v + i, "Invalid type");
			return -EINVAL;
		}
		if (v[i].size < size) {
			btf_env_log_vsi(env, f->t, v + i, "Invalid size");
			return -EINVAL;
		}
	}
	return finish(env, 0, 0);
}

int btf_resolve_func(struct btf_env *env, struct btf_frame *f)
{
	const struct btf_type *proto = btf_type_at(env->btf, f->t->type);
	const struct btf_param *p;
	u32 i;

	if (!proto || btf_kind(proto) != BTF_KIND_FUNC_PROTO)
		return BAD(env, f->t, "Invalid type_id");
	p = btf_params(proto);
	for (i = 0; i < btf_vlen(proto); i++)
		if (!p[i].name_off && p[i].type)
			return BAD(env, f->t, "Invalid arg#%u", i + 1);
	return finish(env, f->t->type, 0);
}

int btf_resolve_decl_tag(struct btf_env *env, struct btf_frame *f)
{
	s32 component = btf_decl_tag(f->t)->component_idx;
	u32 id = f->t->type, kind, parts;
	const struct btf_type *next = btf_type_at(env->btf, id);

	kind = next ? btf_kind(next) : BTF_KIND_UNKN;
	if (kind != BTF_KIND_FUNC && kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION &&
	    kind != BTF_KIND_VAR && kind != BTF_KIND_TYPEDEF)
		return BAD(env, f->t, "Invalid type_id");
	if (must_wait(env, next, id))
		return push(env, next, id);
	if (component != -1) {
		parts = 0; /* a variable or typedef has none */
		if (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION)
			parts = btf_vlen(next);
		else if (kind == BTF_KIND_FUNC)
			parts = btf_vlen(btf_type_at(env->btf, next->type));
		if ((u32)component >= parts)
			return BAD(env, f->t, "Invalid component_idx");
	}
	return finish(env, id, 0);
}

/* A type that is of no use once resolved must have got what its kind promises. */
static bool result_is_sane(const struct btf_env *env, const struct btf_type *t, u32 id)
{
	const struct btf *btf = env->btf;
	u32 end, size;

	if (!is_resolved(env, id))
		return false;
	end = btf->resolved_id[id - btf->start_id];
	size = btf->resolved_size[id - btf->start_id];
	if (btf_is_struct_or_union(t) || btf_kind(t) == BTF_KIND_DATASEC)
		return !end && !size;
	if (btf_kind(t) == BTF_KIND_DECL_TAG || btf_kind(t) == BTF_KIND_FUNC)
		return end && !size;
	if (btf_is_modifier(t) || btf_kind(t) == BTF_KIND_PTR || btf_kind(t) == BTF_KIND_VAR) {
		t = btf_type_at(btf, end);
		return t && !btf_is_modifier(t) && btf_kind(t) != BTF_KIND_VAR &&
		       btf_kind(t) != BTF_KIND_DATASEC;
	}
	if (btf_kind(t) == BTF_KIND_ARRAY) {
		const struct btf_array *a = btf_array(t);
		u32 elem_id = a->type, elem_size;

		t = btf_id_size(btf, &elem_id, &elem_size);
		return t && !btf_is_modifier(t) && a->nelems * elem_size == size;
	}
	return false;
}

static int resolve_one(struct btf_env *env, const struct btf_type *t, u32 id)
{
	u32 saved = env->log_id;
	struct btf_frame *f;
	int err;

	env->mode = BTF_MODE_TBD;
	env->depth = 0;
	err = push(env, t, id);
	while (!err && env->depth) {
		f = &env->stack[env->depth - 1];
		env->log_id = f->id;
		err = btf_kinds[btf_kind(f->t)].resolve(env, f);
	}
	env->log_id = id;
	if (err == -E2BIG)
		btf_env_log_type(env, t, "Exceeded max resolving depth:%u", (u32)BTF_MAX_DEPTH);
	else if (err == -EEXIST)
		btf_env_log_type(env, t, "Loop detected");
	if (!err && !result_is_sane(env, t, id)) {
		btf_env_log_type(env, t, "Invalid resolve state");
		err = -EINVAL;
	}
	env->log_id = saved;
	return err;
}

/* A return or argument type: resolved if need be, then it must have a size. 1: it has; 0: not; or
 * -errno. */
static int proto_part(struct btf_env *env, u32 id)
{
	const struct btf_type *t = btf_type_at(env->btf, id);
	int err;

	if (!t || source_only(t))
		return 0;
	if (needs_resolve(t) && !is_resolved(env, id)) {
		err = resolve_one(env, t, id);
		if (err)
			return err;
	}
	return btf_id_size(env->btf, &id, NULL) ? 1 : 0;
}

static bool arg_name_ok(const struct btf_env *env, u32 name_off)
{
	return !name_off || (btf_name_offset_ok(env->btf, name_off) &&
			     btf_name_is_identifier(env->btf, name_off));
}

static int check_proto(struct btf_env *env, const struct btf_type *t)
{
	const struct btf_param *p = btf_params(t);
	u32 i, n = btf_vlen(t);
	int rc;

	if (t->type) {
		rc = proto_part(env, t->type);
		if (rc < 0)
			return rc;
		if (!rc)
			return BAD(env, t, "Invalid return type");
	}
	/* "...": a last argument of type void, without a name */
	if (n && !p[n - 1].type) {
		if (p[n - 1].name_off)
			return BAD(env, t, "Invalid arg#%u", n);
		n--;
	}
	for (i = 0; i < n; i++) {
		rc = arg_name_ok(env, p[i].name_off) ? proto_part(env, p[i].type) : 0;
		if (rc < 0)
			return rc;
		if (!rc)
			return BAD(env, t, "Invalid arg#%u", i + 1);
	}
	return 0;
}

int btf_resolve_all(struct btf_env *env)
{
	struct btf *btf = env->btf;
	const struct btf_type *t;
	u32 id;
	int err = 0;

	env->phase = BTF_PHASE_TYPE;
	for (id = max_of(btf->start_id, 1u); !err && id < btf_nr_types(btf); id++) {
		t = btf_type_at(btf, id);
		env->log_id = id;
		if (needs_resolve(t) && !is_resolved(env, id))
			err = resolve_one(env, t, id);
		if (!err && btf_kind(t) == BTF_KIND_FUNC_PROTO)
			err = check_proto(env, t);
	}
	return err;
}
