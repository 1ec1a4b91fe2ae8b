/* SPDX-License-Identifier: BSD-2-Clause */
/* A loaded object's maps as text or JSON, their keys and values by BTF. */
#ifndef INLAY_CLI_MAPS_H
#define INLAY_CLI_MAPS_H

#include "engine.h"

struct bpf_object;

/* All maps but read-only data, in the object's order. Inside cli_engine_enter(). 0 or -errno. */
int cli_maps_dump(struct cli_engine *engine, struct bpf_object *obj, bool json);

#endif
